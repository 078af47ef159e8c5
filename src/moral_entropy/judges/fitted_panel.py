"""How the judges of a question vote, as a run has it or as it was fitted again: what a panel is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from moral_entropy.consensus.parts import domains_of
from moral_entropy.consensus.result import Consensus
from moral_entropy.consensus.states import States, corners
from moral_entropy.runs.between_labels import FittedStates, positions
from moral_entropy.runs.run import Question, Run
from moral_entropy.votes.table import Floats, Ints


class FittedPanel(NamedTuple):
    """How annotators vote. Axes: **a** annotator, true **k**, **v**oted, **d** domain, **z** state, **i** item.

    Parameters
    ----------
    names
        Names of the annotators.
    confusion_akv
        Their confusion rows.
    states, weight_dz
        The states of items, and their weights by domain.
    domain_i
        The domain of each item.
    power
        Power of each item's likelihood.
    counted
        Names of annotators who are counted as one, by group.
    """

    names: list[str]
    confusion_akv: Floats
    states: States
    weight_dz: Floats
    domain_i: Ints
    power: float
    counted: list[list[str]]

    def for_judges(self, judges: Sequence[str], judge_of: dict[str, str]) -> dict[str, Any]:
        """Return the fields of a `Panel` that say how its judges vote.

        Parameters
        ----------
        judges
            Names of the judges.
        judge_of
            The judge by name of the annotator who has its unsure votes.
        """
        n_labels = self.confusion_akv.shape[-1]
        # Who voted in another part only tells nothing here.
        confusion_akv = np.concatenate([self.confusion_akv, np.full((1, n_labels, n_labels), 1.0 / n_labels)])
        unsure = {judge: name for name, judge in judge_of.items()}
        place_j, second_j = (
            positions(pl.Series(some, dtype=pl.String), self.names, default=len(self.names))
            for some in (judges, [unsure.get(name, name) for name in judges])
        )
        return {
            "prior_iz": np.log(self.weight_dz)[self.domain_i],
            "vote_jzk": np.log(self.states.votes_azv(confusion_akv[place_j] ** self.power)),
            "unsure_jzk": np.log(self.states.votes_azv(confusion_akv[second_j] ** self.power)),
            "mix_zk": self.states.mix_zk,
            "group_j": _groups(judges, [[judge_of.get(name, name) for name in some] for some in self.counted]),
        }


def as_published(run: Run, question: Question, items: pl.Series) -> FittedPanel:
    """Read how judges vote from a run; from the first part of a question that was fitted in several."""
    fit = next(fit for fit in run.manifest["questions"] if fit["question"] == question.name)
    labels, n_labels = fit["labels"], len(fit["labels"])
    here = (pl.col("question") == fit["question"]) & (pl.col("part") == fit["part"])
    cells = run.table("annotators", where=here)
    if fit["mixture"] is None:
        states, weight_dz = corners(n_labels), np.array([[fit["prevalence"][label] for label in labels]])
        domain_i: Ints = np.zeros(len(items), dtype=np.int64)
        power = float(fit["exponent"]["value"])
    else:
        between = FittedStates.of(fit)
        states, weight_dz, power = between.states, between.states.weight_of_states(between.weight_dg), between.power
        domains = items.to_frame("item").join(run.table("items", where=here).select("item", "domain"), on="item",
                                              how="left", maintain_order="left")["domain"]  # fmt: skip
        domain_i = between.domain_i(domains) if between.domains else np.zeros(len(items), dtype=np.int64)
    return FittedPanel(
        cells["annotator"].cast(pl.String).gather_every(n_labels**2).to_list(),
        cells["probability"].to_numpy().reshape(-1, n_labels, n_labels),
        states,
        weight_dz,
        domain_i,
        power,
        [[str(name) for name in group] for group in fit["counted_as_one"]],
    )


def as_fitted(consensus: Consensus, items: pl.Series) -> FittedPanel:
    """Take how judges vote from a fit of one question, the first part where it was fitted in several."""
    fit, votes = consensus.fits[0], consensus.votes
    names = votes.annotators.cast(pl.String).gather(fit.ballot.annotator_a).to_list()
    domains = domains_of(votes, fit.ballot)
    places = pl.DataFrame({"item": votes.items.gather(fit.ballot.item_i)}).with_row_index("at")
    at_i = items.to_frame("item").join(places, on="item", how="left", maintain_order="left")["at"].fill_null(0)
    return FittedPanel(
        names,
        fit.rows_akv,
        fit.states,
        fit.states.weight_of_states(fit.weight_dg),
        domains.domain_i[at_i.to_numpy()] if len(fit.weight_dg) > 1 else np.zeros(len(items), dtype=np.int64),
        fit.exponent.value,
        [[names[a] for a in group] for group in fit.counted_groups],
    )


def _groups(judges: Sequence[str], counted: Sequence[Sequence[str]]) -> Ints:
    group_of = {name: g for g, group in enumerate(counted) for name in group}
    return np.array([group_of.get(name, len(counted) + j) for j, name in enumerate(judges)], dtype=np.int64)
