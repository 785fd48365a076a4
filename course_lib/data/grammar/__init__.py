"""The synchronous grammar behind english_korean.py.

korean: word forms · lexicon: the tables of words · words: those tables as objects · tree: what a sentence
means · writer: a tree in both languages · parser: English back to trees · phrases, clauses, sentences:
random trees.
"""
