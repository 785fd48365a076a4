"""What grading comes to, as it is kept on disk and passed between processes: plain JSON, with these keys.

A Result is what became of one submission; report.py writes the Summary of a class from them (results.json,
whose schema is reports/results.schema.json).
"""

from typing import Literal, NotRequired, TypedDict

Status = Literal["graded", "unreadable", "unknown_exercise", "failed"]  # of a submission


class Evidence(TypedDict):
    """What a page shows of a wrong answer; each None if unknown.

    difference: the result and the expected one.  inputs: as code.  line: the source line that raised.
    """

    difference: str | None
    inputs: str | None
    line: str | None


class ItemScore(TypedDict):
    """One item of a submission, as results.json has it.

    mistake: the name of a known one.  remark: what could be better in an answer that passes.
    status: "passed", "wrong", "error", "timeout", "free_call", "missing", or the submission's own Status.
    """

    name: str
    points: int
    max_points: int
    passed: bool
    mistake: str | None
    message: str
    status: str
    remark: str | None


class ItemResult(ItemScore):
    """An ItemScore with what only the student's page shows.

    see: where the lesson explains it.  section: the heading there.  answer: the cell that was handed in.
    """

    see: str | None
    section: NotRequired[str]
    answer: NotRequired[str | None]
    evidence: NotRequired[Evidence | None]


class Result(TypedDict):
    """What became of one submission.

    exercise: its stem, None if the file is not an exercise.  message: why it was not graded.  seed, timeout,
    sandbox: what it was graded with; None if nothing was run.  digest: of all that determines the verdicts.
    """

    student: str
    path: str
    exercise: str | None
    status: Status
    message: NotRequired[str]
    items: list[ItemResult]
    score: int
    max_score: int
    seed: int | None
    timeout: float | None
    sandbox: str | None
    digest: str | None


class SubmissionScore(TypedDict):
    """A submission in results.json."""

    student: str
    exercise: str | None
    path: str
    status: Status
    score: int
    max_score: int
    message: NotRequired[str]
    items: list[ItemScore]


class Summary(TypedDict):
    """results.json.  sandbox: the layers that were active, in words.  caution: if they are too few."""

    seed: int
    sandbox: str
    caution: str | None
    submissions: list[SubmissionScore]
