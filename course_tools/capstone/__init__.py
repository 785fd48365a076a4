"""The capstone of exercise 12: a Transformer of the learner's own parts, trained to translate.

gather()     collects the answers to earlier exercises that pass, and the library's for the rest
train()      trains the assembled Transformer on English to Korean, and counts its exact matches
page()       writes an HTML page: which parts are the learner's own, training curve, attention, translations
"""

from .components import gather
from .report import page
from .trainer import train

__all__ = ["gather", "page", "train"]
