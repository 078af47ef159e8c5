"""How sure votes are: read as probabilities, and votes of which a judge is unsure told apart from its others.

The fit counts votes whole. So a judge's votes of which it is less sure than of half of its votes become those of a
second annotator, "NAME (unsure)", whose errors are learnt apart: nobody has to believe that a judge who says 90% is
right in 90%. Takes `Votes`, returns `Votes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from moral_entropy.errors import UsageError
from moral_entropy.findings import listed
from moral_entropy.votes.table import Ballot, Floats, Ints, Votes

UNSURE = " (unsure)"
FEWEST_VOTES = 20
"""Votes that a judge must have on either side to be taken apart: of fewer the prior would say more than they."""


def sureness(given: pl.Series) -> pl.Series:
    """Return how sure each vote is, as a probability; 1 where nothing is said.

    Parameters
    ----------
    given
        Probabilities of the label that was voted for, or logarithms of them: these are all 0 or less.

    Examples
    --------
    >>> sureness(pl.Series("logprob", [-0.5, None, 0.0])).round(3).to_list()
    [0.607, 1.0, 1.0]
    """
    sure = given.cast(pl.Float64, strict=False)
    if sure.drop_nulls().len() and sure.drop_nulls().max() <= 0:  # type: ignore[operator]
        sure = sure.exp()
    bad = (sure.is_null() & given.is_not_null()) | ~sure.is_between(0, 1).fill_null(True)
    if bad.any():
        msg = (
            f"{int(bad.sum()):,} of {len(given):,} votes have a {given.name!r} that is no probability. First: "
            f"{given.filter(bad)[0]!r}. Write numbers from 0 to 1, or logarithms of them."
        )
        raise UsageError(msg)
    return sure.fill_null(1.0).alias("sure")


def split_unsure(votes: Votes, column: str) -> Votes:
    """Give every judge's unsure votes to an annotator of their own.

    Parameters
    ----------
    votes
        The votes, with the column kept.
    column
        How sure each is: see `sureness`.

    Examples
    --------
    >>> from moral_entropy.votes.read import read_votes
    >>> table = pl.DataFrame({"item": range(80), "judge": "gpt", "label": [0, 1] * 40, "c": [0.6] * 40 + [0.9] * 40})
    >>> votes = split_unsure(read_votes(table, annotator="judge", keep=("c",)), "c")
    >>> votes.annotators.to_list(), [ballot.votes_a.tolist() for ballot in votes.ballots]
    (['gpt', 'gpt (unsure)'], [[40, 40]])
    """
    if votes.anonymous:
        msg = "how sure votes are tells of judges, and these votes are anonymous. Leave out --confidence."
        raise UsageError(msg)
    sure_r = sureness(votes.kept[column]).to_numpy()
    unsure_bv = _unsure(votes, sure_r)
    pairs = list(zip(votes.ballots, unsure_bv, strict=True))
    apart = np.unique(np.concatenate([_who(one)[unsure_v] for one, unsure_v in pairs]))
    if not len(apart):
        return votes
    names = votes.annotators.cast(pl.String)
    annotators = pl.concat([names, names.gather(apart) + UNSURE])
    order = annotators.arg_sort().to_numpy()
    place_a = np.argsort(order)
    second_a = np.full(len(names), -1)
    second_a[apart] = len(names) + np.arange(len(apart))
    ballots = (_split(one, np.where(unsure_v, second_a[_who(one)], _who(one)), place_a) for one, unsure_v in pairs)
    return replace(votes, annotators=annotators.gather(order), ballots=tuple(ballots))


def _who(ballot: Ballot) -> Ints:
    return np.asarray(ballot.annotator_a[ballot.code_v // ballot.n_labels])


def _unsure(votes: Votes, sure_r: Floats) -> list[NDArray[np.bool_]]:
    """Tell which votes are less sure than the judge's median, where there are enough of both kinds."""
    rows = [np.arange(0) if one.row_v is None else one.row_v for one in votes.ballots]
    who_v = np.concatenate([_who(one) for one in votes.ballots])
    sure_v = sure_r[np.concatenate(rows)]
    frame = pl.DataFrame({"who": who_v, "sure": sure_v}).with_columns(
        unsure=pl.col("sure").round(9) < pl.col("sure").median().over("who").round(9)
    )
    few = pl.min_horizontal(pl.col("unsure").sum(), (~pl.col("unsure")).sum()).over("who") < FEWEST_VOTES
    unsure_v = frame.select(pl.col("unsure") & ~few)["unsure"].to_numpy()
    return np.split(unsure_v, np.cumsum([one.n_votes for one in votes.ballots])[:-1])


def _split(ballot: Ballot, who_v: Ints, place_a: Ints) -> Ballot:
    """Return a ballot whose votes are those of other annotators, in their order."""
    annotator_a, own_v = np.unique(place_a[who_v], return_inverse=True)
    code_v = own_v * ballot.n_labels + ballot.code_v % ballot.n_labels
    order_v = np.lexsort((code_v, np.repeat(np.arange(ballot.n_items), ballot.votes_i)))
    row_v = None if ballot.row_v is None else ballot.row_v[order_v]
    return replace(ballot, annotator_a=annotator_a, code_v=code_v[order_v].astype(np.int32), row_v=row_v)


def unsure_among(annotators: pl.Series) -> dict[str, str]:
    """Return the judge by name of the annotator who has its unsure votes.

    Examples
    --------
    >>> unsure_among(pl.Series(["gpt", "gpt (unsure)", "odd (unsure)"]))
    {'gpt (unsure)': 'gpt'}
    """
    names = set(annotators.cast(pl.String))
    return {name: name.removesuffix(UNSURE) for name in sorted(names)
            if name.endswith(UNSURE) and name.removesuffix(UNSURE) in names}  # fmt: skip


def unsure_note(judge_of: Mapping[str, str]) -> str:
    """Say whose votes were taken apart."""
    return (
        f"votes of which {listed(sorted(judge_of.values()))} {'is' if len(judge_of) == 1 else 'are'} less sure than of "
        f"half of their votes count as those of further annotators, called NAME{UNSURE}."
    )
