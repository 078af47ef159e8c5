"""A fit as a run has it → what an item's votes say, one after the other: log-odds, and probabilities of states.

Takes a fit's record in the manifest and rows of its tables, returns arrays. Items may lie between labels; under the
paper's model the states are the labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.model.states import States
from moral_entropy.votes.table import Floats, Ints


@dataclass(frozen=True, eq=False)
class FittedStates:
    """The states of one fit at its mode. Axes: **z** state, **k** label, **d** domain, **g** group of states.

    Parameters
    ----------
    labels
        The labels, in order.
    states
        The states.
    weight_dg
        Their weights, a row for every domain.
    domains
        Name of each row's domain, None for items without one; empty if all items share one row.
    """

    labels: tuple[str, ...]
    states: States
    weight_dg: Floats
    domains: tuple[str | None, ...]

    @classmethod
    def of(cls, fit: dict[str, Any], log_odds: Mapping[str, float] | None = None) -> FittedStates:
        """Read them from a fit's record in the manifest.

        Parameters
        ----------
        fit
            The record.
        log_odds
            Prior log-odds of labels against one whose own are left out, for the paper's model.
        """
        mixture, labels = fit["mixture"], tuple(fit["labels"])
        if mixture is None:
            log_k = np.array([(log_odds or {}).get(label, 0.0) for label in labels])
            return cls(labels, States(len(labels)), _shares(log_k)[None], ())
        states = States(len(labels), mixture["points"], ordered="levels" in fit)
        return cls(labels, states, np.array(mixture["weights"]), tuple(mixture["domains"]))

    def domain_i(self, names: pl.Series) -> Ints:
        """Find the row of each item's domain."""
        domains = [name for name in self.domains if name is not None]
        return positions(names, domains, default=max(len(self.domains) - 1, 0))

    @cached_property
    def log_weight_dz(self) -> Floats:
        """Log weights of the states, a row for every domain."""
        return np.asarray(np.log(self.states.weight_of_states(self.weight_dg)))

    def log_votes(self, matrices: Mapping[Any, Floats], votes: Sequence[tuple[Any, str]]) -> Floats:
        """Compute the log probability of votes, by annotator and label, in every state: axes n and z."""
        chances = [matrices[annotator][:, self.labels.index(label)] for annotator, label in votes]
        chance_nk = np.array(chances).reshape(-1, len(self.labels))
        return np.asarray(np.log(self.states.votes_azv(chance_nk[..., None])[..., 0]))

    def odds_after(
        self, domain_i: Sequence[str | None], log_vote_inz: Floats, pair_i: Sequence[tuple[str, str]]
    ) -> Floats:
        """Compute log-odds between two labels for items of equally many votes: before any vote, and after each in turn.

        Parameters
        ----------
        domain_i
            The items' domains.
        log_vote_inz
            Log probabilities of the votes of each item in every state, in their order: of `log_votes`.
        pair_i
            The two labels of each item.
        """
        row_i = [self.domains.index(domain) if self.domains else 0 for domain in domain_i]
        after_itz = np.cumsum(np.concatenate([self.log_weight_dz[row_i, None], log_vote_inz], axis=1), axis=1)
        log_itk = np.log(_shares(after_itz) @ self.states.mix_zk)
        towards_i, against_i = np.array([[self.labels.index(label) for label in pair] for pair in pair_i]).T
        at_i = np.arange(len(row_i))
        return np.asarray(log_itk[at_i, :, towards_i] - log_itk[at_i, :, against_i])

    def probabilities(self, domains: pl.Series, log_votes_iz: Floats, known_i: Ints) -> Floats:
        """Compute how probable each state of every item is: `p_iz`.

        Parameters
        ----------
        domains
            The items' domains.
        log_votes_iz
            Log probability of all votes on each item in every state.
        known_i
            Index of each item's label where that was given as evidence, else negative.
        """
        row_i = self.domain_i(domains) if self.domains else np.zeros(len(log_votes_iz), dtype=np.int64)
        p_iz = _shares(self.log_weight_dz[row_i] + log_votes_iz)
        p_iz[known_i >= 0] = np.eye(self.states.n_states)[known_i[known_i >= 0]]
        return p_iz


def _shares(log_z: Floats) -> Floats:
    # SciPy's softmax, for small arrays, takes longer than all the rest.
    weight_z = np.exp(log_z - log_z.max(axis=-1, keepdims=True))
    return np.asarray(weight_z / weight_z.sum(axis=-1, keepdims=True))


def counted_votes(votes: pl.DataFrame, groups: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """Let every group of annotators vote as one on each item, and say whose votes stand together.

    As the fit did, it is the group's most frequent vote, of equally frequent ones that of whoever comes first in the
    group; the first stands for the group.

    Parameters
    ----------
    votes
        Item, annotator and label of every vote.
    groups
        Annotators who count as one.

    Returns
    -------
    pl.DataFrame
        item, annotator, label, and at: the rows of the votes that each stands for.

    Examples
    --------
    >>> votes = pl.DataFrame({"item": [7, 7, 7], "annotator": ["a", "b", "c"], "label": ["yes", "no", "no"]})
    >>> counted_votes(votes, [("c", "a")]).rows()
    [(7, 'c', 'no', [0, 2]), (7, 'b', 'no', [1])]
    """
    rows = votes.select("item", "annotator", "label").with_row_index("at")
    if not groups:
        return rows.select("item", "annotator", "label", pl.concat_list("at"))
    kind = votes.schema["annotator"]
    ranks = [(str(name), str(group[0]), rank) for group in groups for rank, name in enumerate(group)]
    members = pl.DataFrame(ranks, schema={"annotator": pl.String, "first": pl.String, "rank": pl.Int64}, orient="row")
    rows = rows.join(
        members.cast({"annotator": kind, "first": kind}), on="annotator", how="left", maintain_order="left"
    )
    # Two votes of an annotator who is in no group are two.
    alone = pl.when(pl.col("first").is_null()).then("at")
    keys = ["item", "annotator", "alone"]
    rows = rows.with_columns(annotator=pl.coalesce("first", "annotator"), alone=alone)
    times = pl.len().over(*keys, "label").alias("times")
    ordered = rows.with_columns(times).sort(pl.col("times"), -pl.col("rank"), descending=True, maintain_order=True)
    ballots = ordered.group_by(keys, maintain_order=True).agg(pl.col("label").first(), pl.col("at").sort())
    return ballots.sort(pl.col("at").list.first()).drop("alone")


def positions(names: pl.Series, order: Sequence[str], *, default: int) -> Ints:
    """Return the position of each name among those known; `default` where there is none.

    Examples
    --------
    >>> positions(pl.Series(["b", None, "a"]), ["a", "b"], default=-1).tolist()
    [1, -1, 0]
    """
    codes = names.replace_strict(list(order), range(len(order)), default=default, return_dtype=pl.Int64)
    return np.asarray(codes.to_numpy())


def confusion_by_annotator(cells: pl.DataFrame, n_labels: int) -> dict[Any, Floats]:
    """Return the confusion matrices at the mode by annotator, from rows of annotators.parquet."""
    matrices = cells["probability"].to_numpy().reshape(-1, n_labels, n_labels)
    return dict(zip(cells["annotator"].gather_every(n_labels**2).to_list(), matrices, strict=True))
