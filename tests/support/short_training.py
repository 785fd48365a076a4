"""Kernels in which a lesson runs to its end in a fraction of the time: a model learns for five steps only.

The tests in a browser put this file among IPython's startup files.  `fit` counts all of its steps, so that
curves keep their length, but from the sixth on they repeat what the fifth gave; so findings and
assertions are left out.
"""

import ast

from IPython import get_ipython

from course_lib import training

LEARNED = 5
ASSERTS = {"finding", "identity", "claim"}


class WithoutFindings(ast.NodeTransformer):
    """A finding is not even computed: of a model that learned nothing, a ratio may divide by zero."""

    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node):
        asserts = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") in ASSERTS
        return ast.copy_location(ast.Pass(), node) if asserts else self.generic_visit(node)


def fit(parameters, loss, steps, fit=training.fit, **options):
    kept = [cell.cell_contents for cell in loss.__closure__ or () if isinstance(cell.cell_contents, list)]
    before, learned = [len(one) for one in kept], min(steps, LEARNED)
    losses = fit(parameters, loss, learned, **options)
    for one, size in zip(kept, before):
        if new := len(one) - size:    # the loss keeps something of every step, or where step % every == 0
            every = 1 if new == learned else max(c for c in loss.__code__.co_consts if type(c) is int)
            one += one[-1:] * (len(range(0, steps, every)) - new)
    return losses + losses[-1:] * (steps - learned)


training.fit = fit
get_ipython().ast_transformers.append(WithoutFindings())
