"""The grader: a submission's answers run in a kernel of their own, and are judged outside it."""
