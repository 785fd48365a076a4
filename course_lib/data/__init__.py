"""The data of the lessons: made from a seed, without any download.

toy.py has small tasks with a known answer, english_korean.py sentence pairs with gold alignments (from
grammar/), agreement.py sentences with a gap for 'was' or 'were', text.py English prose.  vocab.py turns
tokens into numbers, batches.py makes padded batches.  Begin with toy.py.
"""
