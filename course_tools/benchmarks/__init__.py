"""How fast the course is, compared with others: `make bench`.

transformer.py compares training and decoding with torch.nn.Transformer (transformer_baselines.py).  grader.py
compares the grader with nbgrader, nbval and bare forks (grader_baselines.py).  Begin with their docstrings.
"""
