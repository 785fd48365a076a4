"""python -m course_tools.authoring VERB [KEY ...], where KEY is a lesson: 1 or 01_long_term_dependency."""

import argparse
import sys

from ..exercise import NotebookError
from . import book, budget, capstone_page, diagrams, execute, findings, handout, shown, stored, studies

VERBS = {
    "notebooks": (execute.notebooks, "execute lessons and solutions, and store their outputs"),
    "frames": (execute.frames, "draw the pictures with which sliders move in the book"),
    "exercises": (handout.exercises, "generate exercises/ from solutions/"),
    "diagrams": (diagrams.diagrams, "draw the diagrams into notebooks/images/"),
    "capstone": (capstone_page.capstone, "draw notebooks/capstone.html, where the library's model runs"),
    "shows": (shown.shows, "refresh the cells that show source code of the library"),
    "site": (book.site, "build the book, the course as a site, in site/"),
    "findings": (findings.findings, "run the lessons with five seeds to see whether their findings hold"),
    "budget": (budget.budget, "print each lesson's words, cells and findings, and the minutes for its title"),
    "studies": (studies.studies, "run studies and store their tables; without KEY those that have changed"),
}
OPTIONS = {"notebooks": ("--fresh", "store all new outputs, pictures included"),
           "frames": ("--fresh", "draw all of them, those of unchanged code too"),
           "capstone": ("--fresh", "train the model again, for about a minute"),
           "findings": ("--widen", "make no range smaller: on another kind of processor")}


def main(argv=None):
    """Run one command and return the exit status.  Every expected problem is one message on stderr."""
    parser = argparse.ArgumentParser(prog="python -m course_tools.authoring", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (_, text) in VERBS.items():
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("keys", nargs="*", metavar="KEY")
        if name in OPTIONS:
            option, help = OPTIONS[name]
            verb.add_argument(option, action="store_true", help=help)
    given = vars(parser.parse_args(argv))
    try:
        return VERBS[given.pop("verb")][0](**given) or 0
    except (NotebookError, stored.Fault) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
