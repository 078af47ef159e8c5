"""Checkpoints: the state of a training on disk, so that a killed one can go on.

One file, replaced as a whole: a kill while it is written leaves the one before. It says what training it belongs to,
and a training with other texts, targets or settings refuses it.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from moral_entropy.errors import FileError, TrainError
from moral_entropy.files import whole_file
from moral_entropy.train.options import TrainOptions
from moral_entropy.train.targets import Targets

FILE = "state.pt"


@dataclass(frozen=True)
class Checkpoints:
    """Where the state of a training is kept.

    Parameters
    ----------
    folder
        Made when the first checkpoint is written.
    every
        Steps between two checkpoints.
    resume
        Whether to go on from the checkpoint that is there; it is an error if there is none.
    """

    folder: Path
    every: int = 50
    resume: bool = False

    @property
    def file(self) -> Path:
        """The file."""
        return self.folder / FILE

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint; the old one stays until the new one is complete."""
        import torch

        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with whole_file(self.file) as partial, partial.open("wb") as file:
                torch.save(dict(state), file)
        except (FileError, OSError, RuntimeError) as error:
            what = f"a checkpoint to {self.folder}"
            raise cannot_write(what, error.__cause__ or error) from error

    def read(self, belongs: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the state to go on from; None to start at the beginning.

        Parameters
        ----------
        belongs
            The identity of the training.
        """
        import torch

        if not self.resume:
            return None
        if not self.file.is_file():
            msg = f"there is nothing to resume: {self.folder} holds no checkpoint. Start anew without --resume."
            raise TrainError(msg)
        try:
            state: dict[str, Any] = torch.load(self.file, map_location="cpu", weights_only=True)
        except Exception as error:
            msg = f"the checkpoint {self.file} is damaged. Delete {self.folder} and start anew without --resume."
            raise TrainError(msg) from error
        _check_same(state["belongs"], belongs)
        return state

    def clear(self) -> None:
        """Remove the checkpoint, once the model is saved."""
        shutil.rmtree(self.folder, ignore_errors=True)


def identity(train: Targets, validation: Targets | None, options: TrainOptions) -> dict[str, Any]:
    """Return what decides a training: two of the same identity take the same steps."""
    asked = {name: value for name, value in options.settings().items() if name != "device"}
    return {
        "model": options.model,
        "targets": train.kind,
        **asked,
        "texts and targets": _digest(train),
        "validation": _digest(validation) if validation is not None else "",
    }


def cannot_write(what: str, error: BaseException) -> TrainError:
    """Return the error for a write that the system refused."""
    full = getattr(error, "errno", None) == errno.ENOSPC or "os error 28" in str(error).lower()
    why = "no space is left on the disk" if full else (getattr(error, "strerror", None) or str(error).splitlines()[0])
    return TrainError(f"cannot write {what}: {why}. Make room, or write elsewhere with -o.")


def _digest(targets: Targets) -> str:
    digest = hashlib.sha256("\0".join(targets.texts).encode("utf-8", "surrogatepass"))
    digest.update(repr(targets.head.facts()).encode())
    voters = () if targets.voters is None else (targets.voters.target_io, targets.voters.votes_ib)
    for array in (targets.target_io, targets.weight_iq, *voters):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _check_same(then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    other = [name for name in now if then.get(name) != now[name]]
    if other:
        first = other[0]
        msg = (
            f"the checkpoint belongs to another training: {len(other)} of {len(now)} settings differ. First: "
            f"{first} was {then.get(first)!r} and is {now[first]!r}. Resume with the same settings, or start anew "
            "without --resume."
        )
        raise TrainError(msg)
