"""Classifiers trained on the labels of a run: targets, models, checkpoints, predictions.

The package can be called as its function `train`: `moral_entropy.train(run, "model/")`.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from moral_entropy.option_fields import lists_options
from moral_entropy.options import TrainOptions

if TYPE_CHECKING:
    from moral_entropy.runs.run import Run


@lists_options(TrainOptions)
def train(
    run: Run | str | Path, out: str | Path, options: TrainOptions | None = None, **changes: Any
) -> dict[str, Any]:
    """Train a text classifier on the labels of a run, save it, and return its scores: see `moral-entropy train`.

    Parameters
    ----------
    run
        The run, or its folder.
    out
        Folder of the model; it appears when the model is complete, or not at all.
    options
        All options as one object; keywords change some of them.
    **changes
        Options by name.
    """
    from moral_entropy.train.run import run_training

    return run_training(run, out, (options or TrainOptions()).changed(changes, "train"))


class _Package(ModuleType):
    """A package that is called as its function of the same name, since both are `moral_entropy.train`."""

    __call__ = staticmethod(train)


__signature__ = inspect.signature(train)
sys.modules[__name__].__class__ = _Package
