"""Packages that no submission may import.  A separate file, because the sandbox's processes read it."""

# Packages that contain the whole answer to an item; the grader's sandbox has none of them.
LIBRARIES = ("allennlp", "evaluate", "fairseq", "fairseq2", "flash_attn", "flax", "haiku", "keras",
             "labml_nn", "local_attention", "nltk", "onmt", "performer_pytorch", "rotary_embedding_torch",
             "sacrebleu", "speechbrain", "tensorflow", "torchmetrics", "torchtext", "transformers",
             "x_transformers", "xformers")
