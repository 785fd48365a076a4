"""How fast the course's Transformer is beside others: `python -m course_lib.speed.bench`."""
