"""Grade one notebook: its cells run in a kernel, in order; the verdicts are reached here."""

import contextlib
import math
from dataclasses import replace

from ..items import registry
from ..judging import honesty, tried_with
from ..judging.judge import Verdict, judge, symptom
from . import GradingError, references, tidy
from .kernels import replies
from .kernels.outcome import Budget, Interrupted, KernelLost
from .question import question_for
from .reports.evidence import evidence
from .reports.messages import HELPERS, UNANSWERED, raised
from .side_effects import has_side_effects

SET_UP = 60.0  # seconds at least for a set-up cell: it imports torch
SUBSTITUTE = "__import__('course_tools.judging.observe', fromlist=['']).substitute"
ISOLATED = ("\n    (This was checked without your other answers, "
            "because one of them changes something that this one needs.)")


class GradingSession:
    """Runs the cells of one merged notebook, and collects the verdict on each item.

    given: {name: source} of the answers that were handed in.  notes: {name: text} for the feedback.
    kernel: makes a kernel; a lost one (hung, ended) is replaced, and all cells so far run again.
    timeout: seconds for one cell, and for all calls of one answer.  budget: seconds for all of that together.
    verdicts: {name: Verdict}, filled by `examine`.  details: {name: the evidence for it}.
    sandbox: the layers of the kernel's sandbox, in words.
    """

    def __init__(self, items, given, notes, seed, kernel, timeout, budget=math.inf):
        self.items, self.given, self.notes, self.seed = items, given, notes, seed
        self.make_kernel, self.timeout, self.budget = kernel, timeout, Budget(budget)
        self.kernel, self.sandbox, self.begun = None, None, False
        self.ran, self.broken, self.substituted = {}, {}, []  # ran: {source: seconds}, in order
        self.verdicts, self.details = {}, {}
        self.set_ups, self.side_effects = [], False  # side_effects: an answer changed more than its own names

    def set_up(self, source):
        """Run a set-up cell of the exercise; before the first one, provide the answers to earlier exercises.

        Raises GradingError if it fails before any answer has run.
        """
        first = [] if self.set_ups else references.handed_over(self.items.values())
        self.set_ups.append(source)
        try:
            problems = [self._run(cell, max(self.timeout, SET_UP)).error for cell in [*first, source]]
            problem = next(filter(None, problems), None)
        except KernelLost as lost:
            problem = lost
        if problem and not self.begun:
            raise GradingError(f"the set-up of the exercise itself fails: {problem}")

    def answer(self, name, source):
        """Run an answer cell.  An error is kept for the verdict on its item."""
        if name not in self.given:
            return
        self.begun = True
        try:
            outcome = self._run(source, self.timeout)
        except KernelLost as lost:
            self.broken[name] = Verdict(lost.status, str(lost))
            return
        if outcome.error:
            self.broken[name] = raised(*outcome.error)

    def examine(self, name):
        """Reach the verdict on an item.  If it fails and later answers use it, its reference replaces it."""
        item = self.items[name]
        verdict = self._verdict(item)
        if self.side_effects and verdict.status in ("wrong", "error", "timeout"):
            verdict = self._in_isolation(item)
        self.side_effects = self.side_effects or has_side_effects(self.given.get(name, ""))
        substituted = [used for used in verdict.substituted if used in self.substituted]
        if substituted:
            verdict = verdict.adding(f"\n    {tried_with(substituted)}")
        if name in self.notes and name in self.given:
            verdict = verdict.adding(f"\n    ({self.notes[name]})")
        verdict = replace(verdict, message=tidy(verdict.message))
        self.verdicts[name] = verdict
        if not verdict.passed and any(name in self.items[other].uses for other in self.given):
            self._substitute(item)
        return verdict

    def _in_isolation(self, item):
        """The verdict on an answer without those before it, in a separate kernel."""
        self.close()
        isolated = GradingSession(self.items, {item.name: self.given[item.name]}, {}, self.seed,
                               self.make_kernel, self.timeout)
        isolated.budget, isolated.begun = self.budget, True
        try:
            for source in self.set_ups:
                isolated.set_up(source)
            for used in item.uses:
                isolated._substitute(registry.find(used)[1])
            isolated.answer(item.name, self.given[item.name])
            verdict = isolated._verdict(item)
            self.details.update(isolated.details)
        finally:
            isolated.close()
        return verdict.adding(ISOLATED * verdict.passed)

    def close(self):
        """End the kernel."""
        if self.kernel is not None:
            self.kernel.stop()
            self.kernel = None

    def _verdict(self, item):
        name = item.name
        if name not in self.given:
            return Verdict("missing", self.notes.get(name) or self._unanswered(item))
        borrowed = honesty.borrowed(self.given[name], item, self.given.values())
        if borrowed:
            return Verdict("free_call", borrowed)
        broken = self.broken.get(name)
        if broken and self.given[name] not in self.ran:  # it ended the kernel
            return broken
        if not broken and not honesty.readable(self.given[name]):
            return Verdict("free_call", "The cell runs, but it is not plain Python, so it earns nothing. "
                                        "Leave out IPython's commands.")
        verdict = self._observed(item)
        if verdict is None:
            return broken or Verdict("error", f"The cell does not define {name}. Is the name spelt right?")
        if broken:
            verdict = verdict.adding(f"\n    (There is another problem. {broken.message})")
        return verdict

    def _unanswered(self, item):
        """The message for an item without an answer; of a debug item with what its code shows."""
        if not item.planted:
            return UNANSWERED
        return f"{UNANSWERED} {symptom(item, question_for(item, self.seed).trials)}"

    def _observed(self, item):
        """The verdict on what the answer does, or None if there is no answer of that name."""
        question = question_for(item, self.seed)
        try:
            observations = self._with_kernel(self.timeout, lambda kernel, seconds: kernel.observe(
                item, question.trials, seconds))
        except KernelLost as lost:
            if lost.status == "error":
                self._give_up(item)
            return Verdict(lost.status, str(lost))
        except replies.Malformed as problem:
            self._give_up(item)
            return Verdict("error", f"What the answer does could not be observed ({problem}).")
        if observations is None:
            return None
        try:
            verdict = judge(item, question.trials, observations, question.viewed)
        except Exception as problem:  # a result for which even the comparison fails is not right
            return Verdict("error", "The answer gave a result that cannot be compared "
                                    f"({type(problem).__name__}).")
        if verdict.status in ("wrong", "error"):
            self.details[item.name] = evidence(item, question, observations, verdict)
        errors = {one["error"]["type"] for one in observations if one["error"]}
        if verdict.status == "error" and "NameError" in errors:
            verdict = verdict.adding(HELPERS)
        return verdict

    def _give_up(self, item):
        """Continue in a new kernel, without the cell that damaged this one."""
        self.ran.pop(self.given[item.name], None)
        self.close()

    def _substitute(self, item):
        """Replace an answer that did not pass by its reference, so that one mistake costs only one item."""
        source = f"{references.source(item)}{item.name} = {SUBSTITUTE}({item.name!r}, {item.name})\n"
        with contextlib.suppress(KernelLost):
            self._run(source, self.timeout)
        self.substituted.append(item.name)

    def _run(self, source, timeout):
        """The Outcome of a cell, which runs again whenever the kernel is replaced.  Raises KernelLost."""
        outcome = self._with_kernel(timeout, lambda kernel, seconds: kernel.run(source, seconds))
        self.ran[source] = timeout
        return outcome

    def _with_kernel(self, timeout, work):
        """work(kernel, seconds), on a new kernel in which all cells have run again if the last one was lost;
        the seconds are the part of `timeout` that the budget allows.  Raises KernelLost.

        If the kernel ends, this is tried again: an earlier cell may have ended it (a late thread, quit()).
        If it is ended from outside, it is tried a few times more: the next one may be ended in the same way.
        """
        left = {KernelLost: 1, Interrupted: 4}
        while True:
            try:
                while self.kernel is None:
                    self.kernel = self.make_kernel()
                    self._catch_up()
                self.sandbox = self.kernel.sandbox
                return work(self.kernel, self.budget.share(timeout))
            except (KernelLost, Interrupted) as lost:
                self.close()
                if lost.status == "timeout" or not left[type(lost)]:
                    raise self.budget.explain(lost) from None
                left[type(lost)] -= 1

    def _catch_up(self):
        """Run all cells again in a new kernel; a cell that fails to run is left out from then on."""
        for source, timeout in list(self.ran.items()):
            seconds = self.budget.share(timeout)
            try:
                self.kernel.run(source, seconds)
            except KernelLost:
                del self.ran[source]
                self.close()
                return
