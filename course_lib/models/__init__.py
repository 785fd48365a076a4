"""The models that the lessons build, one file a family, each equal to PyTorch's own module in a test.

rnn.py, convolution.py, seq2seq.py and rnnsearch.py come before the Transformer; attention.py, norm.py,
residual.py and positional.py are its parts, transformer.py the whole; lm.py has BERT and GPT, caching.py
decoding with a cache, style_tokens.py attention over learned vectors.  Begin with rnn.py, or with
attention.py.
"""
