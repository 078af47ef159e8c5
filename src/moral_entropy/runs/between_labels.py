"""The states between labels, as a run has them: what an item's votes say, one after the other.

Takes a fit's record in the manifest and rows of its tables, returns arrays. Nothing here is for the paper's model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.consensus.states import States
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
    power
        Power of each item's likelihood.
    """

    labels: tuple[str, ...]
    states: States
    weight_dg: Floats
    domains: tuple[str | None, ...]
    power: float

    @classmethod
    def of(cls, fit: dict[str, Any]) -> FittedStates:
        """Read them from a fit's record in the manifest."""
        mixture, labels = fit["mixture"], tuple(fit["labels"])
        states, power = States(len(labels), mixture["points"]), float(fit["exponent"]["value"])
        return cls(labels, states, np.array(mixture["weights"]), tuple(mixture["domains"]), power)

    def domain_i(self, names: pl.Series) -> Ints:
        """Find the row of each item's domain."""
        known = [name for name in self.domains if name is not None]
        return positions(names, known, default=max(len(self.domains) - 1, 0))

    @cached_property
    def log_weight_dz(self) -> Floats:
        """Log weights of the states, a row for every domain."""
        return np.asarray(np.log(self.states.weight_of_states(self.weight_dg)))

    def log_votes(self, chance_nk: Floats) -> Floats:
        """Compute the log probability of votes in every state, axes n and z, from their chances under each label."""
        return np.asarray(np.log(self.states.votes_azv(chance_nk[..., None] ** self.power)[..., 0]))

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
        # SciPy's softmax, for small arrays, takes longer than all the rest.
        weight_itz = np.exp(after_itz - after_itz.max(axis=2, keepdims=True))
        log_itk = np.log((weight_itz / weight_itz.sum(axis=2, keepdims=True)) @ self.states.mix_zk)
        one_i, other_i = np.array([[self.labels.index(label) for label in pair] for pair in pair_i]).T
        at_i = np.arange(len(row_i))
        return np.asarray(log_itk[at_i, :, one_i] - log_itk[at_i, :, other_i])


@dataclass(frozen=True)
class CountedVote:
    """A vote as it was counted.

    Parameters
    ----------
    at
        Positions of the votes that it stands for: several, where annotators are counted as one.
    annotator, label
        Whose vote it is, and for which label.
    """

    at: tuple[int, ...]
    annotator: Any
    label: str


def counted_votes(cast: Sequence[tuple[Any, str]], groups: Sequence[Sequence[Any]]) -> list[CountedVote]:
    """Let every group of annotators vote as one on one item, and say whose votes stand together.

    As the fit did with all rows at once (`counted_once.count_once`) it is the group's most frequent vote, of equally
    frequent ones that of whoever comes first in the group; the first stands for the group.

    Parameters
    ----------
    cast
        Annotator and label of every vote.
    groups
        Annotators who count as one.

    Examples
    --------
    >>> counted_votes([("a", "yes"), ("b", "no"), ("c", "no")], [("c", "a")])
    [CountedVote(at=(0, 2), annotator='c', label='no'), CountedVote(at=(1,), annotator='b', label='no')]
    """
    group_of = {name: tuple(group) for group in groups for name in group}
    together: dict[Any, list[int]] = {}
    for at, (who, _) in enumerate(cast):
        # Two votes of one annotator who is in no group are two.
        together.setdefault(group_of.get(who, at), []).append(at)
    counted = []
    for key, members in together.items():
        if not isinstance(key, tuple):
            counted.append(CountedVote(tuple(members), *cast[members[0]]))
            continue
        times = Counter(cast[at][1] for at in members)
        ranked = [cast[at][1] for at in sorted(members, key=lambda at: key.index(cast[at][0]))]
        label = next(label for label in ranked if times[label] == max(times.values()))
        counted.append(CountedVote(tuple(members), key[0], label))
    return counted


def positions(names: pl.Series, known: Sequence[str], *, default: int) -> Ints:
    """Return the position of each name among those known; `default` where there is none.

    Examples
    --------
    >>> positions(pl.Series(["b", None, "a"]), ["a", "b"], default=-1).tolist()
    [1, -1, 0]
    """
    found = names.replace_strict(list(known), range(len(known)), default=default, return_dtype=pl.Int64)
    return np.asarray(found.to_numpy())


def confusion_by_annotator(cells: pl.DataFrame, n_labels: int) -> dict[Any, Floats]:
    """Return the confusion matrices at the mode by annotator, from rows of annotators.parquet."""
    matrices = cells["probability"].to_numpy().reshape(-1, n_labels, n_labels)
    return dict(zip(cells["annotator"].gather_every(n_labels**2).to_list(), matrices, strict=True))
