"""The capstone's training in exercise 12, cut short: twenty steps on 200 sentences, and no goal to reach."""

SOURCE = """from course_tools.capstone import trainer
trainer.CORPUS, trainer.HELD_OUT, trainer.LONGEST, trainer.GOAL = 200, 4, 5, 0.0
mine = capstone.train(parts, Transformer, label_smoothing_loss, warmup_rate, beam_search, train, steps=20)"""
