"""snorkel's LabelModel with its defaults: annotators are its labelling functions, missing votes its abstentions."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from child import Answer, Call, Lap, LongVotes
from snorkel.labeling.model import LabelModel

SEED = 0


def version() -> str:
    """Give the installed version."""
    return importlib.metadata.version("snorkel")


class _Watched(LabelModel):  # type: ignore[misc]
    lap: Lap

    # Called once an epoch, as the last thing in it.
    def _update_lr_scheduler(self, step: int) -> None:
        super()._update_lr_scheduler(step)
        self.lap()


def _label_model(votes: LongVotes) -> Call:
    # Bytes: an eighth of the memory of its usual integers, and it takes either.
    label_ia: Any = votes.matrix(-1, "int8")

    def call(lap: Lap) -> Answer:
        model = _Watched(cardinality=votes.n_labels, verbose=False)
        model.lap = lap
        model.fit(label_ia, seed=SEED, progress_bar=False)
        return Answer(model.predict_proba(label_ia), f"always {model.train_config.n_epochs} epochs")

    return call


TOOLS = {"label-model": _label_model}
