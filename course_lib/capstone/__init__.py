"""The capstone of exercise 12: a Transformer of the learner's own parts, trained to translate.

gather()     the answers of the earlier exercises that pass, the library's for the rest
train()      trains the assembled Transformer on English to Korean, and counts its exact matches
page()       what of it is the learner's own work, the curve, attention maps, translations: an HTML page
"""

from .parts import gather
from .report import page
from .trainer import train

__all__ = ["gather", "page", "train"]
