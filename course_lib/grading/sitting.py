"""One notebook's way through its kernel: cells run there in order, verdicts are reached here."""

import contextlib
import math

from .. import checks
from ..checks import honesty, tried_with
from ..checks.judge import Verdict, judge
from . import GradingError, references, tidy, wire
from .evidence import evidence
from .kernel import Budget, Interrupted, KernelLost
from .question import question
from .traces import leaves_traces
from .words import HELPERS, UNANSWERED, raised

SET_UP = 60.0  # seconds at least for a set-up cell: it imports torch
LEND = "__import__('course_lib.checks.observe', fromlist=['']).lend"
APART = "\n    (tried without your other answers: one of them changes what this one needs)"


class Sitting:
    """Runs the cells of one merged notebook, and collects the verdict on each item.

    given: {name: source} of the answers that were handed in.  notes: {name: text} for the feedback.
    kernel: makes a kernel; a lost one (hung, ended) is made anew and brought to where it was.
    timeout: seconds for one cell, and for all calls of one answer.  budget: seconds for all of that together.
    verdicts: {name: Verdict}, filled by `examine`.  details: {name: the evidence for it}.
    sandbox: what held the kernel, in words.
    """

    def __init__(self, items, given, notes, seed, kernel, timeout, budget=math.inf):
        self.items, self.given, self.notes, self.seed = items, given, notes, seed
        self.make_kernel, self.timeout, self.budget = kernel, timeout, Budget(budget)
        self.kernel, self.sandbox, self.begun = None, None, False
        self.ran, self.broken, self.lent = {}, {}, []  # ran: {source: seconds}, in order
        self.verdicts, self.details = {}, {}
        self.set_ups, self.tracing = [], False  # tracing: an answer left more behind than its names

    def set_up(self, source):
        """Run a cell of the pristine notebook, and before the first one what the exercise hands over.

        Raises GradingError if it fails before any answer ran.
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
        """Run an answer cell.  What goes wrong is kept for the verdict on its item."""
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
        """Reach the verdict on an item; lend its reference to later answers if they build on it in vain."""
        item = self.items[name]
        verdict = self._verdict(item)
        if self.tracing and verdict.status in ("wrong", "error", "timeout"):
            verdict = self._apart(item)
        self.tracing = self.tracing or leaves_traces(self.given.get(name, ""))
        lent = [used for used in verdict.lent if used in self.lent]
        if lent:
            verdict.message += f"\n    {tried_with(lent)}"
        if name in self.notes and name in self.given:
            verdict.message += f"\n    ({self.notes[name]})"
        verdict.message = tidy(verdict.message)
        self.verdicts[name] = verdict
        if not verdict.passed and any(name in self.items[other].uses for other in self.given):
            self._lend(item)
        return verdict

    def _apart(self, item):
        """The verdict on an answer without those before it, in a kernel of its own."""
        self.close()
        alone = Sitting(self.items, {item.name: self.given[item.name]}, {}, self.seed, self.make_kernel,
                        self.timeout)
        alone.budget, alone.begun = self.budget, True
        try:
            for source in self.set_ups:
                alone.set_up(source)
            for used in item.uses:
                alone._lend(checks.find(used)[1])
            alone.answer(item.name, self.given[item.name])
            verdict = alone._verdict(item)
            self.details.update(alone.details)
        finally:
            alone.close()
        verdict.message += APART * verdict.passed
        return verdict

    def close(self):
        """End the kernel."""
        if self.kernel is not None:
            self.kernel.stop()
            self.kernel = None

    def _verdict(self, item):
        name = item.name
        if name not in self.given:
            return Verdict("missing", self.notes.get(name, UNANSWERED))
        borrowed = honesty.borrowed(self.given[name], item, self.given.values())
        if borrowed:
            return Verdict("free_call", borrowed)
        broken = self.broken.get(name)
        if broken and self.given[name] not in self.ran:  # it ended the kernel
            return broken
        if not broken and not honesty.readable(self.given[name]):
            return Verdict("free_call", "the cell runs, but it can't be read as Python, so it earns nothing: "
                                        "leave IPython's commands out.")
        verdict = self._observed(item)
        if verdict is None:
            return broken or Verdict("error", f"the cell defines no {name}: is the name spelt right?")
        if broken:
            verdict.message += f"\n    (besides, {broken.message})"
        return verdict

    def _observed(self, item):
        """The verdict on what the answer does, or None if there is none of that name."""
        asked = question(item, self.seed)
        try:
            seen = self._with_kernel(self.timeout, lambda kernel, seconds: kernel.observe(
                item, asked.trials, seconds))
        except KernelLost as lost:
            if lost.status == "error":
                self._give_up(item)
            return Verdict(lost.status, str(lost))
        except wire.Malformed as problem:
            self._give_up(item)
            return Verdict("error", f"what it does could not be observed ({problem}).")
        if seen is None:
            return None
        try:
            verdict = judge(item, asked.trials, seen, asked.observe)
        except Exception as problem:  # a result so odd that even the comparison fails is not the right one
            return Verdict("error", f"gave a result that can't be compared ({type(problem).__name__}).")
        if verdict.status in ("wrong", "error"):
            self.details[item.name] = evidence(item, asked, seen, verdict)
        errors = {one["error"]["type"] for one in seen if one["error"]}
        if verdict.status == "error" and "NameError" in errors:
            verdict.message += HELPERS
        return verdict

    def _give_up(self, item):
        """Go on in a new kernel, without the cell that spoilt this one."""
        self.ran.pop(self.given[item.name], None)
        self.close()

    def _lend(self, item):
        """Put the reference in place of an answer that did not pass: one mistake costs one item."""
        source = f"{references.source(item)}{item.name} = {LEND}({item.name!r}, {item.name})\n"
        with contextlib.suppress(KernelLost):
            self._run(source, self.timeout)
        self.lent.append(item.name)

    def _run(self, source, timeout):
        """The Outcome of a cell, which is run again whenever a kernel is made anew.  Raises KernelLost."""
        outcome = self._with_kernel(timeout, lambda kernel, seconds: kernel.run(source, seconds))
        self.ran[source] = timeout
        return outcome

    def _with_kernel(self, timeout, work):
        """work(kernel, seconds), on a new kernel in which all has run again if the last one was lost; the
        seconds are what the budget has left of `timeout`.  Raises KernelLost.

        If the kernel ends it is tried once more: an earlier cell may have ended it (a late thread, quit()).
        Ended from outside, a few times more: whatever ended this one may have ended the next, too.
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
        """Run all cells again in a new kernel; one that can't is left out from then on."""
        for source, timeout in list(self.ran.items()):
            seconds = self.budget.share(timeout)
            try:
                self.kernel.run(source, seconds)
            except KernelLost:
                del self.ran[source]
                self.close()
                return
