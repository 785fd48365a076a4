"""Packages that no submission may import.  In a file of its own, since the sandbox's processes read it."""

# Packages that hold the answer to an item as a whole; the grader's sandbox has none of them.
LIBRARIES = ("allennlp", "evaluate", "fairseq", "fairseq2", "flash_attn", "flax", "haiku", "keras",
             "labml_nn", "local_attention", "nltk", "onmt", "performer_pytorch", "rotary_embedding_torch",
             "sacrebleu", "speechbrain", "tensorflow", "torchmetrics", "torchtext", "transformers",
             "x_transformers", "xformers")
