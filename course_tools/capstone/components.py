"""Collect the parts of a Transformer from the exercises beside this notebook."""

from ..answers import collect

# Where each part comes from, in the order in which later parts use earlier ones.
EXERCISES = {
    "03_seq2seq": ["greedy_decode"],
    "05_query_key_value": ["attention"],
    "06_batch_vs_layer_norm": ["layer_norm"],
    "08_self_attention_and_masks": ["causal_mask", "padding_mask"],
    "09_multi_head_attention": ["split_heads", "merge_heads", "MultiHeadAttention"],
    "10_positional_encoding": ["positional_encoding", "add_positions"],
    "11_transformer_blocks": ["FeedForward", "EncoderBlock", "DecoderBlock"],
}


def gather(folder="."):
    """The parts of the Transformer that you built in earlier exercises, as {name: function or class}.

    folder: the folder of the exercise notebooks, by default that of this notebook.  Each answer that passes
    its check is used, and sees the parts before it; any other is replaced by the library's.  Prints a line
    for each.
    """
    return collect.gather([name for names in EXERCISES.values() for name in names], folder)
