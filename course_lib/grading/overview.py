"""The class on one page, without a name: how the points are spread, and what to teach again."""

import statistics
from collections import Counter

BINS = 10  # bars of the distribution
REASONS = 3  # told for each item
STATUSES = {"missing": "not answered", "wrong": "wrong, in a way that has no name",
            "error": "raised an error, or could not be compared", "timeout": "did not come to an end",
            "free_call": "called a library for the answer", "unreadable": "in a notebook that can't be read",
            "failed": "not graded"}


def page(graded, template):
    """overview.html of a summary (results.json).  template: of a page, everything put in is escaped."""
    stems = sorted({one["exercise"] for one in graded["submissions"] if one["exercise"]})
    parts = [exercise([one for one in graded["submissions"] if one["exercise"] == stem], stem)
             for stem in stems]
    ahead = sorted((reason for part in parts for item in part["items"] for reason in item["reasons"]
                    if reason["named"]), key=lambda reason: -reason["count"])
    return template.render(parts=parts, again=ahead[:5], caution=graded["caution"]) + "\n"


def exercise(results, stem):
    """What the page says of one exercise.  results: its submissions, at least one."""
    shares = [one["score"] / one["max_score"] if one["max_score"] else 0.0 for one in results]
    scores = [one["score"] for one in results]
    bins = Counter(min(int(share * BINS), BINS - 1) for share in shares)
    highest = max(bins.values())
    names = [item["name"] for item in max(results, key=lambda one: len(one["items"]))["items"]]
    return {"title": stem.replace("_", " "), "count": len(results), "worth": results[0]["max_score"],
            "mean": statistics.mean(scores), "median": statistics.median(scores),
            "bars": [{"from": 100 * at // BINS, "to": 100 * (at + 1) // BINS, "count": bins[at],
                      "height": 100 * bins[at] / highest} for at in range(BINS)],
            "items": [item(results, stem, name) for name in names]}


def item(results, stem, name):
    """What the page says of one item: the share that passed, and why the others did not."""
    found = [item for one in results for item in one["items"] if item["name"] == name]
    wrong = Counter(_reason(one) for one in found if not one["passed"])
    passed = sum(one["passed"] for one in found)
    return {"name": name, "passed": passed, "count": len(found), "share": 100 * passed / len(found),
            "reasons": [{"item": name, "exercise": stem.split("_")[0], "named": named, "text": text,
                         "count": count, "share": 100 * count / len(found)}
                        for (named, text), count in wrong.most_common(REASONS)]}


def _reason(one):
    """(whether it is a mistake that has a name, what went wrong in words that hold for a whole class)"""
    if one["mistake"]:
        return True, one["message"].split("\n")[0]
    return False, STATUSES.get(one["status"], one["status"])
