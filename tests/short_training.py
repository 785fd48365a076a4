"""Kernels in which a lesson runs to its end in a fraction of the time: a model learns for five steps only.

The tests in a browser put this file among IPython's startup files.  `fit` counts all of its steps, so that
curves keep their length, but nothing is learned from the sixth on; so claims and assertions are left out.
"""

import ast

import torch
from IPython import get_ipython

from course_lib import training

LEARNED = 5


class WithoutClaims(ast.NodeTransformer):
    """A claim is not even computed: of a model that learned nothing, a ratio may divide by zero."""

    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)

    def visit_Expr(self, node):
        claims = isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "claim"
        return ast.copy_location(ast.Pass(), node) if claims else self.generic_visit(node)


def fit(parameters, loss, steps, fit=training.fit, **options):
    notes = "append" in loss.__code__.co_names    # it keeps something of every step
    losses = fit(parameters, loss, min(steps, LEARNED), **options)
    with torch.no_grad():
        for step in range(LEARNED, steps):
            losses.append(loss(step).item() if notes else losses[-1])
    return losses


training.fit = fit
get_ipython().ast_transformers.append(WithoutClaims())
