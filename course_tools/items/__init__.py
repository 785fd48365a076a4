"""What is asked: one module for each exercise, with its items, their inputs, references and mistakes.

registry finds them by the key of an exercise or by the name of an item.
"""
