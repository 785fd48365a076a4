"""The machine around the course: what checks exercises, grades a class, and makes notebooks and pages.

items: what is asked.  judging: how an answer is judged.  grading: a class.  capstone: the learner's own
Transformer.  exports: other systems.  authoring: lessons, diagrams and the book.  cli: the `course` command.
Lessons import course_lib, not this package.  The map in CONTRIBUTING.md says where everything is.
"""
