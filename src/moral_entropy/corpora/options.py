"""Options of reading the published files of a moral corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moral_entropy.options import StageOptions, option
from moral_entropy.votes.options import OnRepeat

EmfdVotes = Literal["all", "assigned"]
PANEL = "Reading the files"


@dataclass(frozen=True)
class CorpusOptions(StageOptions):
    """How to read a corpus: the options of `read_corpus`, which explains them."""

    on_repeat: OnRepeat | None = option(
        None,
        "When an annotator labelled a text twice: first and last keep that vote in the order of the files, count keeps "
        "each as a vote of its own, error stops; first when not given.",
        metavar="NAME",
        panel=PANEL,
    )
    by_domain: bool = option(
        False,
        "A text that occurs in two domains is two items; otherwise it belongs to the first domain by name.",
        panel=PANEL,
    )
    ignore_unknown: bool = option(
        False, "Pass over labels that the corpus does not have; otherwise the file is refused.", panel=PANEL
    )
    emfd_votes: EmfdVotes = option(
        "all",
        "eMFD only, where a coder looked for one foundation. all: a highlight is a no for the other four, which is a "
        "strong assumption; assigned: it votes on that one alone, so that there are only yes votes.",
        panel=PANEL,
    )
    themes: str | Path | None = option(
        None, "eMFD only: table of document_id and GDELT themes.", metavar="FILE", panel=PANEL
    )
    theme_map: str | Path | None = option(
        None, "eMFD only: TOML file that says which themes are of which domain.", metavar="FILE", panel=PANEL
    )
