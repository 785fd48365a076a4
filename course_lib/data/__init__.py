"""The data of the lessons: made from a seed, without any download."""
