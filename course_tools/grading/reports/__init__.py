"""What the grader writes: a folder of results, and pages for students and teachers.

gradebook.py keeps the results of a class on disk, a file for each submission.  report.py writes CSV, JSON
and JUnit XML from them, pages.py the feedback pages and their index, overview.py the page about the class,
all from templates/.  evidence.py finds what a page shows of a wrong answer; messages.py has what the grader
says beyond the checks.  Begin with report.py.
"""
