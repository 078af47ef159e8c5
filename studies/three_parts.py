"""The three parts of the entropy, followed: what becomes of each as votes on an item arrive.

Annotators about .8 right vote on a corpus in which some items lie between the labels; the mixed model is fitted to it.
Then further items whose place is known get 3, 10, 30, … votes, and the parts of their entropy are computed from the
fitted draws. An item halfway between the labels keeps its ambiguity, one that is surely a label keeps nothing.

Usage: three_parts.py [--items 2000] [--followed 400] [--dry]. Writes docs/figures/three-parts.svg and a table of
docs/concepts/entropy.md; with --dry only prints. Takes about half a minute.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import vl_convert
from page import put

from moral_entropy.consensus.entropy import EntropyParts, decompose_entropy
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.fitted import fit_of_part
from moral_entropy.consensus.parts import local_parts
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.markup import markdown_table
from moral_entropy.votes.table import Floats, Votes, ballot_from_codes

DOCS = Path(__file__).resolve().parents[1] / "docs"
FIGURE, PAGE = DOCS / "figures" / "three-parts.svg", DOCS / "concepts" / "entropy.md"

ANNOTATORS, VOTES_PER_ITEM = 200, 8
RIGHT = (0.7, 0.9)
"""Lowest and highest chance of an annotator to be right; about .8 on average."""

BETWEEN = 0.35
"""Share of the corpus' items that lie between the labels, anywhere."""

PLACES = {"halfway between the labels": 0.5, "surely one label": 1.0}
VOTES = (3, 10, 30, 100, 300)
PARTS = {"ambiguity": "#CC79A7", "votes": "#56B4E9", "annotators": "#D55E00"}


@dataclass(frozen=True, eq=False)
class Crowd:
    """Annotators, and who they are asked by. Axes: **a** annotator, true **k**, **v**oted, **i** item."""

    confusion_akv: Floats
    rng: np.random.Generator

    @classmethod
    def of(cls, seed: int) -> Crowd:
        """Draw annotators."""
        rng = np.random.default_rng(seed)
        right_ak = rng.uniform(*RIGHT, size=(ANNOTATORS, 2))
        confusion_akv = np.stack([right_ak, 1.0 - right_ak], axis=2)
        confusion_akv[:, 1] = confusion_akv[:, 1, ::-1]
        return cls(confusion_akv, rng)

    def vote(self, share_i: Floats, n_votes: int) -> Votes:
        """Have every item voted on by annotators drawn at random; `share_i` is how much of label 1 an item has."""
        n_items = len(share_i)
        item_v = np.repeat(np.arange(n_items), n_votes)
        # Nobody votes twice on an item, unless there are not enough annotators.
        asked = [self.rng.choice(ANNOTATORS, n_votes, replace=n_votes > ANNOTATORS) for _ in range(n_items)]
        annotator_v = np.concatenate(asked)
        yes_ak = self.confusion_akv[:, :, 1]
        chance_v = np.where(
            self.rng.random(len(item_v)) < share_i[item_v], yes_ak[annotator_v, 1], yes_ak[annotator_v, 0]
        )
        ballot = ballot_from_codes(
            "label",
            ("0", "1"),
            item_v=item_v,
            annotator_v=annotator_v,
            label_v=(self.rng.random(len(item_v)) < chance_v).astype(int),
            item_i=np.arange(n_items, dtype=np.int32),
            annotator_a=np.arange(ANNOTATORS, dtype=np.int32),
        )
        names = pl.Series(range(n_items)), pl.Series(range(ANNOTATORS))
        return Votes(*names, (ballot,), (), np.full(n_items, -1, dtype=np.int32))

    def corpus(self, n_items: int) -> Votes:
        """Draw items, some between the labels, and have them voted on."""
        pure_i = self.rng.integers(2, size=n_items).astype(float)
        between_i = self.rng.random(n_items) < BETWEEN
        return self.vote(np.where(between_i, self.rng.random(n_items), pure_i), VOTES_PER_ITEM)


def follow(crowd: Crowd, fitted: QuestionFit, place: float, n_votes: int, n_items: int) -> EntropyParts:
    """Compute the parts of the entropy of further items in one place, with the parameters of a fit."""
    votes = crowd.vote(np.full(n_items, place), n_votes)
    [part] = local_parts(votes).handles
    return decompose_entropy(fit_of_part(part, 0, fitted))


def study(n_items: int, n_followed: int, seed: int = 0) -> pl.DataFrame:
    """Follow items: one row per place and number of votes, with the means of the three parts, in nats."""
    crowd = Crowd.of(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        [fitted] = fit(crowd.corpus(n_items), model="mixed", seed=seed).fits
    rows = []
    for name, place in PLACES.items():
        for n_votes in VOTES:
            parts = follow(crowd, fitted, place, n_votes, n_followed)
            means = (parts.ambiguity_i.mean(), parts.votes_i.mean(), parts.annotators_i.mean())
            rows.append({"place": name, "n": n_votes} | dict(zip(PARTS, map(float, means), strict=True)))
    return pl.DataFrame(rows)


def chart(found: pl.DataFrame) -> dict[str, Any]:
    """Draw the parts, stacked, by number of votes: one panel per place, as a Vega-Lite specification."""
    long = found.unpivot(list(PARTS), index=["place", "n"], variable_name="part", value_name="nats")
    at = pl.col("part").replace_strict(list(PARTS), range(len(PARTS)), return_dtype=pl.Int64)
    drawn = (
        alt.Chart(alt.InlineData(values=long.with_columns(at=at).to_dicts()))
        .mark_bar()
        .encode(
            x=alt.X("n:O", title="votes on the item", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("nats:Q", title="entropy, nats", scale=alt.Scale(domain=[0, 0.7])),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=list(PARTS), range=list(PARTS.values())),
                legend=alt.Legend(orient="top"),
            ),
            order=alt.Order("at:Q"),
        )
        .properties(width=260, height=220)
        .facet(facet=alt.Facet("place:N", title=None, sort=list(PLACES)), columns=2)
        .properties(description="Entropy of an item in three parts, by number of votes")
    )
    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: dict[str, Any] = drawn.to_dict()
    spec.pop("config", None)
    return spec


def table(found: pl.DataFrame) -> str:
    """Return the figures as a Markdown table."""
    rows = [(row["place"], row["n"], *(f"{row[part]:.3f}" for part in PARTS)) for row in found.iter_rows(named=True)]
    return markdown_table(("an item", "has votes", *PARTS), rows)


def main() -> int:
    """Run the study; write the figure and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=2_000)
    parser.add_argument("--followed", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    found = study(given.items, given.followed, given.seed)
    print(table(found))
    if not given.dry:
        config = {"background": "white", "font": "DejaVu Sans, Arial, sans-serif"}
        FIGURE.write_text(vl_convert.vegalite_to_svg(chart(found), config=config), encoding="utf-8")
        PAGE.write_text(
            put(PAGE.read_text(encoding="utf-8"), "parts", Path(__file__).name, table(found)), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
