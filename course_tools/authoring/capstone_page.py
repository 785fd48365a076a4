"""notebooks/capstone.html: the capstone's page for the library's own Transformer, linked from lesson 12."""

import contextlib
import io
import tempfile

from .. import files
from ..capstone import gather, report, train
from ..items import registry
from . import stored

OWN = ("Transformer", "label_smoothing_loss", "warmup_rate")    # what `train` is given besides the parts


def capstone(keys, fresh=False):
    """Draw the page again, with the weights, the losses and the score that it holds.

    fresh: train the model first, for about a minute.
    """
    path = stored.ROOT / "notebooks" / "capstone.html"
    result = trained() if fresh or not path.exists() else report.stored(path.read_text(encoding="utf-8"))
    files.write(path, report.draw(result, mine=False))
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


def trained():
    """The Result of training the library's parts only."""
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()):
        parts = gather(empty)
        result = train(parts, *(registry.find(name)[1].reference for name in OWN))
    result.parts, result.ran = [], set()    # on the course's page, nothing is the learner's
    return result
