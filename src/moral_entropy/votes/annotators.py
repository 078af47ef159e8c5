"""Annotators that a user names: those whose votes are not read, and those who count as one.

Takes names as they are written, finds them among the annotators, and says which are unknown. Knows no file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from moral_entropy.errors import VotesError
from moral_entropy.option_fields import did_you_mean
from moral_entropy.votes.layouts import QuestionVotes
from moral_entropy.votes.table import Ints, ReadingLog, shown

EXCLUDED = "an excluded annotator"
PLUS = "+"


def find_annotators(names: Sequence[str], annotators: pl.Series, option: str) -> Ints:
    """Find annotators by name; those that are none are an error.

    Parameters
    ----------
    names
        As a user writes them; spaces around a name do not matter.
    annotators
        Names of all annotators, or their numbers.
    option
        What the user wrote them for, as in `exclude`.

    Examples
    --------
    >>> import polars as pl
    >>> find_annotators(["bob"], pl.Series(["ann", "bob"]), "exclude").tolist()
    [1]
    """
    place = {str(name): a for a, name in enumerate(annotators.to_list())}
    wanted = [str(name).strip() for name in names]
    unknown = [name for name in dict.fromkeys(wanted) if name not in place]
    if unknown:
        n = len(unknown)
        msg = (
            f"{option}: {n} of {len(set(wanted))} names {'is no annotator' if n == 1 else 'are no annotators'}: "
            f"{shown([repr(name) for name in unknown])}.{did_you_mean(unknown[0], place)} "
            f"Annotators: {shown(list(place))}."
        )
        raise VotesError(msg)
    return np.array([place[name] for name in wanted], dtype=np.int64)


def exclude_annotators(
    questions: Sequence[QuestionVotes], annotators: pl.Series, names: Sequence[str], log: ReadingLog
) -> tuple[QuestionVotes, ...]:
    """Leave out the votes of some annotators, and log how many votes that were.

    Parameters
    ----------
    questions
        The votes of every question.
    annotators
        Who `annotator_v` points to.
    names
        Whose votes to leave out.
    log
        Where the count goes.
    """
    if not names:
        return tuple(questions)
    excluded_a = np.zeros(len(annotators), dtype=np.bool_)
    excluded_a[find_annotators(names, annotators, "exclude")] = True
    kept = []
    for votes in questions:
        kept_v = np.flatnonzero(~excluded_a[votes.annotator_v])
        log.drop(EXCLUDED, len(votes.item_v) - len(kept_v))
        kept.append(votes.take(kept_v))
    return tuple(kept)


def merged_annotators(groups: Sequence[str], annotators: pl.Series) -> Ints:
    """Number the groups of annotators that a user wants counted as one, as `A+B`; everyone else is alone in theirs.

    Groups that share a name are one group. A name may have a plus itself, as in `C++`.

    Parameters
    ----------
    groups
        As a user writes them.
    annotators
        Names of all annotators, or their numbers.

    Returns
    -------
    Ints
        Number of each annotator's group, from 0 on.

    Examples
    --------
    >>> import polars as pl
    >>> merged_annotators(["ann+cy"], pl.Series(["ann", "bob", "cy"])).tolist()
    [0, 1, 0]
    """
    group_a = np.arange(len(annotators))
    known = {str(name) for name in annotators.to_list()}
    for group in groups:
        names = split_names(group, known)
        if len(set(names)) < 2:
            msg = (
                f"merge has {group!r}, which names one annotator. Write those who count as one with a plus: A+B "
                "(CLI: --merge A+B)."
            )
            raise VotesError(msg)
        members = find_annotators(names, annotators, "merge")
        group_a[np.isin(group_a, group_a[members])] = group_a[members].min()
    return np.unique(group_a, return_inverse=True)[1].astype(np.int64)


def split_names(group: str, known: set[str]) -> list[str]:
    """Split at every plus that is not part of a known name; the longest known name wins.

    Examples
    --------
    >>> split_names("C+++ann", {"C++", "ann"})
    ['C++', 'ann']
    """
    parts, names, at = group.split(PLUS), [], 0
    while at < len(parts):
        ends = range(len(parts), at, -1)
        end = next((end for end in ends if PLUS.join(parts[at:end]).strip() in known), at + 1)
        names.append(PLUS.join(parts[at:end]).strip())
        at = end
    return names
