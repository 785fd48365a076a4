"""How an answer is judged: one specification for the learner's check cell, `course check` and `course grade`.

`check` is what an exercise's cells call; judge.py, match.py and describe.py compare and put into words.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..items import registry

if TYPE_CHECKING:  # the others import torch
    from .judge import Verdict
    from .probes import Answer
    from .spec import Item


class CheckFailed(AssertionError):
    """An answer does not pass yet.  In a notebook, only the message is shown, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def check(answer: "Answer") -> None:
    """Check an answer of an exercise: print one line if it passes, raise CheckFailed if not.

    answer: the function or class, with the name that the exercise gives it.
    """
    from .judge import examine
    from .observe import substitute
    namespace = _namespace(answer)
    stem, item = registry.find(_name(answer, namespace))
    earlier = _from_earlier(item, namespace)
    replaced: dict[str, Any] = {}
    try:
        namespace.update({name: registry.find(name)[1].reference for name in earlier})
        for used in item.uses:  # an earlier answer that does not pass must not cost this one
            if used in namespace and not examine(registry.find(used)[1], namespace[used]).passed:
                replaced[used] = namespace[used]
                namespace[used] = substitute(used, registry.find(used)[1].reference)
        verdict = _borrowed(item, answer, namespace) or examine(item, answer)
    finally:
        namespace.update(earlier | replaced)
    lines = [f"{'✓' if verdict.passed else '✗'} {item.name}: {verdict.message}"]
    if verdict.substituted:
        lines.append(f"    {tried_with(verdict.substituted)}")
    if not verdict.passed:
        raise CheckFailed("\n".join([*lines, f"    See {pointer(stem, item)}."]))
    print("\n".join(lines))


def tried_with(names: Sequence[str]) -> str:
    """The line about references that an answer called in place of earlier answers."""
    do = "does" if len(names) == 1 else "do"
    return f"(This was checked with the correct {', '.join(names)}, because yours {do} not pass yet.)"


def pointer(stem: str, item: "Item") -> str:
    """Where the lesson explains an item: "lesson 01, 'A gate instead of a squeeze'"."""
    return f"lesson {stem.split('_')[0]}, '{item.where}'"


def _borrowed(item: "Item", answer: "Answer", namespace: dict[str, Any]) -> "Verdict | None":
    """The verdict on an answer whose source takes its work from a library, or None."""
    from . import honesty
    from .judge import Verdict
    try:
        source, *others = honesty.sources(answer, namespace)
    except (OSError, TypeError):  # no source is available, as for a partial
        return None
    sentence = honesty.borrowed(source, item, others)
    return Verdict("free_call", sentence) if sentence else None


def _namespace(answer: "Answer") -> dict[str, Any]:
    """The names that an answer sees: those of the notebook it was written in."""
    if isinstance(answer, type):
        return vars(sys.modules.get(answer.__module__, sys.modules["__main__"]))
    return getattr(answer, "__globals__", vars(sys.modules["__main__"]))


def _from_earlier(item: "Item", namespace: dict[str, Any]) -> dict[str, Any]:
    """The answers from earlier exercises, unless a cell of this notebook redefines them.  The check replaces
    them by the references, as grading does."""
    return {name: namespace[name] for name in item.handed
            if name in namespace and getattr(namespace[name], "__module__", None) != "__main__"}


def _name(answer: "Answer", namespace: dict[str, Any]) -> str:
    """The answer's own name; for a lambda or a wrapped function, the name of the item that it is bound to."""
    name = getattr(answer, "__name__", "")
    known = {name for stem in registry.stems() for name in registry.items(stem)}
    if name in known:
        return name
    bound = [key for key, value in namespace.items() if value is answer and key in known]
    if not bound:
        raise ValueError(f"{name or answer!r} is not a graded item. check(...) accepts one of: "
                         f"{', '.join(sorted(known))}")
    return bound[0]

