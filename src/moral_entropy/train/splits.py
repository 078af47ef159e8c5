"""Items → those to train on, to stop by, and to test on; never the same text on two sides.

A text's side is decided by a hash of the text itself and a seed, so that further items, or another order, do not move
the others. Knows nothing of votes or models.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moral_entropy.errors import TrainError, UsageError
from moral_entropy.train.targets import Targets
from moral_entropy.votes.table import Floats, Ints

Mask = NDArray[np.bool_]

KINDS = ("items", "domains", "leave-domain-out")
TEST, VALIDATION = 0.2, 0.1
"""Share of the texts to test on, and to stop training by."""

FEWEST_OF_DOMAIN = 40
"""A domain with fewer different texts is not split on its own."""

FEWEST_TO_TRAIN = 10
"""With fewer texts there is no training."""


@dataclass(frozen=True, eq=False)
class Split:
    """Items to train on, to validate on and to test on, by position, ascending.

    Parameters
    ----------
    name
        "items", the domain it lies within, or "without …" for the domain that is tested.
    train_i, validation_i, test_i
        Positions of the items.
    """

    name: str
    train_i: Ints
    validation_i: Ints
    test_i: Ints


def normal_text(text: str) -> str:
    r"""Normalise a text, so that texts that differ in case, white space or Unicode form are the same.

    Examples
    --------
    >>> normal_text("  Care\n FOR them ") == normal_text("care for them")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def hash_texts(texts: Sequence[str], *, seed: int, purpose: str) -> Floats:
    """Hash every text to a number between 0 and 1: the same for the same text, seed and purpose.

    Examples
    --------
    >>> first, second, other = hash_texts(["One", "one ", "two"], seed=0, purpose="test").tolist()
    >>> first == second, first == other
    (True, False)
    """
    start = f"{seed}|{purpose}|"
    return np.array([_hash(start + normal_text(text)) for text in texts], dtype=float)


def _hash(key: str) -> float:
    # Lone surrogates occur in scraped texts and have no UTF-8.
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def make_splits(
    kind: str,
    texts: Sequence[str],
    domains: Sequence[str | None],
    *,
    seed: int = 0,
    draw: int = 0,
    test: float = TEST,
    validation: float = VALIDATION,
) -> tuple[tuple[Split, ...], tuple[str, ...]]:
    """Split items by their texts.

    Parameters
    ----------
    kind
        "items": one split of all; "domains": each domain on its own; "leave-domain-out": each domain tested by what
        was trained on all others.
    texts, domains
        Of every item; None for no domain.
    seed
        Decides the tested items.
    draw
        Decides which of the others are for validation: the tested ones stay the same from draw to draw.
    test, validation
        Shares of the texts.

    Returns
    -------
    tuple
        The splits, and remarks on what was left out.

    Examples
    --------
    >>> texts = [f"text {n}" for n in range(100)]
    >>> (split,), _ = make_splits("items", texts, [None] * 100)
    >>> len(split.train_i) + len(split.validation_i) + len(split.test_i)
    100
    """
    if kind not in KINDS:
        msg = f"there is no split {kind!r}. Choose one of {', '.join(KINDS)}."
        raise UsageError(msg)
    if not 0.0 < test < 1.0 or not 0.0 <= validation < 1.0 - test:
        msg = f"shares of {test:g} to test and {validation:g} to validate leave nothing to train on."
        raise UsageError(msg)
    in_test_i = hash_texts(texts, seed=seed, purpose="test") < test
    in_validation_i = hash_texts(texts, seed=draw, purpose="validation") < validation / (1.0 - test)

    def split(name: str, rest_i: Mask, test_i: Mask) -> Split:
        sides = (rest_i & ~in_validation_i, rest_i & in_validation_i, test_i)
        return Split(name, *map(np.flatnonzero, sides))

    notes: tuple[str, ...] = ()
    if kind == "items":
        splits = [split("items", ~in_test_i, in_test_i)]
    else:
        domain_i, normal = np.array([name or "" for name in domains]), [normal_text(text) for text in texts]
        names, notes = _large_domains(kind, normal, domain_i)
        if kind == "domains":
            splits = [split(name, (domain_i == name) & ~in_test_i, (domain_i == name) & in_test_i) for name in names]
        else:
            # A text that also occurs in the tested domain would have been seen in training.
            splits = [
                split(f"without {name}", ~_occurs_in(normal, domain_i == name), domain_i == name) for name in names
            ]
    for one in splits:
        check_split(one, texts)
    return tuple(splits), notes


def _large_domains(kind: str, normal: Sequence[str], domain_i: NDArray[np.str_]) -> tuple[list[str], tuple[str, ...]]:
    """Name the domains that are large enough to be split, with a remark on those that are not."""
    named = [str(name) for name in np.unique(domain_i) if name]
    if not named:
        msg = "no item has a domain, so there is nothing to split by. Split by items, or name the domain column."
        raise TrainError(msg)
    if kind == "leave-domain-out" and len(named) < 2:
        msg = f"all items are of one domain, {named[0]!r}: nothing is left when it is left out. Split by items."
        raise TrainError(msg)
    sizes = {name: len({normal[i] for i in np.flatnonzero(domain_i == name).tolist()}) for name in named}
    few = [name for name in named if sizes[name] < FEWEST_OF_DOMAIN]
    if len(few) == len(named):
        most = max(sizes.values())
        msg = f"no domain has {FEWEST_OF_DOMAIN} different texts; the largest has {most}. Split by items."
        raise TrainError(msg)
    note = (
        f"{len(few)} of {len(named)} domains have fewer than {FEWEST_OF_DOMAIN} different texts and are not tested. "
        f"First: {few[0]!r}, {sizes[few[0]]}."
        if few
        else ""
    )
    return [name for name in named if name not in few], (note,) if note else ()


def _occurs_in(normal: Sequence[str], chosen_i: Mask) -> Mask:
    chosen = {normal[i] for i in np.flatnonzero(chosen_i).tolist()}
    return np.array([text in chosen for text in normal])


def check_split(split: Split, texts: Sequence[str]) -> None:
    """Refuse a split with an empty side, or with a text on two sides.

    Examples
    --------
    >>> check_split(Split("mine", np.array([0, 1]), np.array([2]), np.array([3])), ["a", "b", "c", "B "])
    Traceback (most recent call last):
    ...
    moral_entropy.errors.TrainError: split 'mine': 1 of 1 texts to test on is also trained on. First: 'B ' (items ...
    """
    for side, at_i in (("train", split.train_i), ("test", split.test_i)):
        if not len(at_i):
            msg = f"split {split.name!r} has nothing to {side} on: {len(texts):,} items are too few, or too much alike."
            raise TrainError(msg)
    seen = {normal_text(texts[i]): int(i) for i in split.test_i[::-1]}
    for side, at_i in (("trained on", split.train_i), ("validated on", split.validation_i)):
        both = list(_shared(seen, at_i, texts))
        if both:
            here, there = both[0]
            msg = (
                f"split {split.name!r}: {len(both):,} of {len(split.test_i):,} texts to test on is also {side}. First: "
                f"{texts[here][:60]!r} (items {here:,} and {there:,}). Keep items of one text together."
            )
            raise TrainError(msg)


def _shared(seen: dict[str, int], at_i: Ints, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    for i in at_i:
        tested = seen.get(normal_text(texts[i]))
        if tested is not None:
            yield tested, int(i)


def split_validation(targets: Targets, share: float, *, seed: int) -> tuple[Targets, Targets | None]:
    """Split off a share of the texts for validation; items of one text stay together.

    Parameters
    ----------
    targets
        All of them.
    share
        Of the texts that are split off; 0 for none.
    seed
        Decides which.
    """
    held_i = hash_texts(targets.texts, seed=seed, purpose="validation") < share
    train = targets.take(np.flatnonzero(~held_i))
    if train.n_items < FEWEST_TO_TRAIN:
        msg = (
            f"{train.n_items} texts are left to train on, and {FEWEST_TO_TRAIN} are the fewest. "
            "Audit more items with a text."
        )
        raise TrainError(msg)
    return train, targets.take(np.flatnonzero(held_i)) if held_i.any() else None
