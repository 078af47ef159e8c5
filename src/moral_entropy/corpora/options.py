"""Options of the corpora: how to read published files, and what to simulate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from moral_entropy.errors import UsageError
from moral_entropy.options import StageOptions, option
from moral_entropy.votes.options import OnRepeat

CorpusName = Literal["mftc", "mfrc", "emfd"]
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


@dataclass(frozen=True)
class SimulateOptions(StageOptions):
    """What to simulate: a twin of a moral corpus, or plain votes of some size."""

    like: CorpusName | None = option(None, "Make a twin of this moral corpus.")
    scale: float | None = option(None, "Size of the twin; 1, that of the corpus, when not given.")
    items: int | None = option(None, "How many items, without --like.")
    annotators: int | None = option(None, "How many annotators, without --like; 20 when not given.")
    votes_per_item: float | None = option(None, "Votes per item, without --like; 3 when not given.")
    classes: int | None = option(None, "How many labels, without --like; 2 when not given.")
    seed: int = option(0, "Same seed, same votes.", least=0)

    def __post_init__(self) -> None:
        """Refuse sizes that contradict each other."""
        super().__post_init__()
        given = [
            name for name in ("items", "annotators", "votes_per_item", "classes") if getattr(self, name) is not None
        ]
        msg = ""
        if self.like is not None and given:
            flag = f"--{given[0].replace('_', '-')}"
            msg = (
                f"--like {self.like} has its corpus' sizes, so {flag} cannot be given too. Use --scale, or drop --like."
            )
        elif self.like is None and self.scale is not None:
            msg = "--scale is the size of a twin. Name the corpus with --like, or give --items."
        elif self.like is None and self.items is None:
            msg = "say what to simulate: --like mftc, mfrc or emfd, or --items 1000."
        if msg:
            raise UsageError(msg)

    @property
    def sizes(self) -> dict[str, Any]:
        """The keywords of `write_simulated`."""
        return {
            "n_items": self.items,
            "n_annotators": 20 if self.annotators is None else self.annotators,
            "votes_per_item": 3 if self.votes_per_item is None else self.votes_per_item,
            "n_labels": 2 if self.classes is None else self.classes,
            "seed": self.seed,
        }
