"""Options of the reproduction: the corpora it is run on, and how to fit them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moral_entropy.errors import UsageError
from moral_entropy.model.options import FIT, FitOptions
from moral_entropy.options import StageOptions, option

FILES, TWINS = "The corpora", "Simulated twins"


@dataclass(frozen=True)
class Inputs(StageOptions):
    """The data of the study: files of the corpora, or simulated twins of all three."""

    mftc: str | Path | None = option(
        None,
        "File of MFTC, as published, or a table of votes with a column for the foundation.",
        metavar="FILE",
        panel=FILES,
    )
    mfrc: str | Path | None = option(None, "File of MFRC, likewise.", metavar="FILE", panel=FILES)
    emfd: str | Path | None = option(None, "File of eMFD, likewise.", metavar="FILE", panel=FILES)
    gold: str | Path | None = option(
        None, "File of eMFD's known labels: item, question, gold.", metavar="FILE", panel=FILES
    )
    themes: str | Path | None = option(
        None,
        "File of eMFD's GDELT themes (document_id, themes), from which its domains follow; with the published file.",
        metavar="FILE",
        panel=FILES,
    )
    twins: bool = option(False, "Simulate all three corpora instead of reading files.", panel=TWINS)
    scale: float = option(1.0, "Size of the twins; 1 is that of the corpora.", panel=TWINS)

    def __post_init__(self) -> None:
        """Raise a `UsageError` for options that contradict each other."""
        super().__post_init__()
        rules = [
            (
                not self.twins and not self.files,
                "name at least one corpus (--mftc FILE, …), or simulate them: --twins.",
            ),
            (self.twins and bool(self.files), "twins are simulated, so no file is read. Give --twins, or files."),
            (self.gold is not None and self.emfd is None, "gold labels (--gold) are eMFD's. Add --emfd FILE."),
            (self.themes is not None and self.emfd is None, "themes (--themes) are eMFD's. Add --emfd FILE."),
            (not self.twins and self.scale != 1, "scale (--scale) is the size of the twins. Add --twins."),
        ]
        for wrong, msg in rules:
            if wrong:
                raise UsageError(msg)

    @property
    def files(self) -> dict[str, str | Path]:
        """The files that are given, by short name of the corpus."""
        named = {"mftc": self.mftc, "mfrc": self.mfrc, "emfd": self.emfd}
        return {name: file for name, file in named.items() if file is not None}


@dataclass(frozen=True)
class ReproduceOptions(StageOptions):
    """How to fit the corpora; everything else is as in the paper."""

    draws: int = option(1_000, "Posterior draws.", panel=FIT, least=2)
    seed: int = option(0, "Seed of the draws and of the twins.", panel=FIT, least=0)

    @property
    def fit(self) -> FitOptions:
        """The options of the fits, which are of the paper's model."""
        return FitOptions(model="paper", draws=self.draws, seed=self.seed)
