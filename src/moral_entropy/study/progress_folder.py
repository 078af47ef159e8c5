"""What a study has trained so far, on disk, so that a stopped one goes on instead of beginning again.

One small file per finished training: the answers about the tested texts, and the learning curve. Its name is a hash of
everything that decides the training, so that a study with other votes, targets, texts or settings never reads it. The
training that was stopped halfway has a checkpoint beside them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from moral_entropy import __version__
from moral_entropy.errors import FileError
from moral_entropy.files import whole_file
from moral_entropy.train.checkpoint import Checkpoints, cannot_write, identity
from moral_entropy.train.classifier import Point
from moral_entropy.train.options import TFIDF, TrainOptions
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Floats


@dataclass(frozen=True, eq=False)
class Trained:
    """What is kept of one training: `p_io` about the tested texts, and the learning curve."""

    p_io: Floats
    curve: tuple[Point, ...]


@dataclass(frozen=True)
class ProgressFolder:
    """Where finished trainings of a study are kept until it is complete."""

    folder: Path

    def read(self, key: str) -> Trained | None:
        """Return a training that was finished earlier; None where there is none, or a damaged one."""
        try:
            with self._file(key).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                curve = tuple(Point(int(step), float(one), float(two)) for step, one, two in stored["curve"])
                return Trained(np.asarray(stored["p_io"]), curve)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def write(self, key: str, trained: Trained) -> None:
        """Keep a finished training, and drop its checkpoint."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with whole_file(self._file(key)) as partial, partial.open("wb") as file:
                np.savez(file, p_io=trained.p_io, curve=np.array(trained.curve, dtype=float).reshape(-1, 3))
        except (OSError, FileError) as error:
            what = f"what was trained to {self.folder}"
            raise cannot_write(what, error.__cause__ or error) from error
        shutil.rmtree(self.folder / key, ignore_errors=True)

    def checkpoints(self, key: str, options: TrainOptions) -> Checkpoints | None:
        """Return where the state of a training is kept; a training that was stopped goes on from there."""
        if options.model == TFIDF or options.head_only:
            return None
        found = Checkpoints(self.folder / key)
        return Checkpoints(found.folder, resume=found.file.is_file())

    def clear(self) -> None:
        """Remove everything, once the study is written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def progress_folder(out: str | Path) -> ProgressFolder:
    """Return the hidden folder beside a study's own.

    Examples
    --------
    >>> progress_folder("results/study").folder.name
    '.study.training'
    """
    target = Path(out).resolve()
    return ProgressFolder(target.with_name(f".{target.name}.training"))


def training_key(train: Targets, validation: Targets | None, options: TrainOptions, tested: Sequence[str]) -> str:
    """Hash what decides a training and the texts it is asked about."""
    decides = {"version": __version__, **identity(train, validation, options), "tested": list(tested)}
    said = json.dumps(decides, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    return hashlib.sha256(said).hexdigest()[:32]
