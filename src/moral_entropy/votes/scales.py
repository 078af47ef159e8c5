"""Scales: whether the labels of a question are names, levels in an order, or scores, and which votes are no level.

Takes the labels that occur with their votes, and returns a `Scale`, or None for names. Words are in an order only where
it is known or given (`--order`); numbers only where a name such as "rating" or the votes themselves say so, since
classes are often numbered too. Whatever is no level is counted and named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from moral_entropy.options import ReadOptions
from moral_entropy.votes.table import Floats, Ints, ReadingLog, refuse, shown

WORDS = """
strongly disagree=completely disagree=totally disagree, disagree, somewhat disagree=slightly disagree=rather disagree,
  neutral=neither agree nor disagree=neither=undecided, somewhat agree=slightly agree=rather agree, agree,
  strongly agree=completely agree=totally agree
never, rarely=seldom, sometimes=occasionally, often=frequently=usually, very often, always
very low, low, medium=moderate=mid=middle, high, very high
none=no=absent, minimal=very mild, mild=slight, moderate, severe=strong, very severe=extreme
terrible=awful, very poor=very bad, poor=bad, fair=average=acceptable=ok=okay, good, very good, excellent=outstanding
no, maybe=perhaps=possibly=partly=partially, yes
not at all, slightly=a little=a bit, somewhat=moderately, very=quite=mostly, extremely=completely
very unlikely, unlikely, possible, likely, very likely
very negative, negative, neutral, positive, very positive
very dissatisfied, dissatisfied, neutral, satisfied, very satisfied
not relevant=irrelevant, marginally relevant=somewhat relevant=partially relevant, relevant, highly relevant
"""
"""Known scales of words, one per paragraph, from low to high; words of one level have = between them."""

SCALES = [
    [level.strip().split("=") for level in line.split(",")] for line in WORDS.replace(",\n  ", ", ").strip().split("\n")
]

ASIDE = re.compile(
    r"(i )?(don'?t|do not) know|dk|not applicable|n/?a|no (opinion|response|answer)|(not sure|unsure|uncertain)"
    r"|(can'?t|cannot) (say|tell|judge)|(prefer|rather) not (to )?(say|answer)|refused?|skip(ped)?|abstain"
)
"""Answers beside a scale that are no level of it, in lower case."""

CODES = frozenset({-999.0, -99.0, -98.0, -9.0, -8.0, 88.0, 98.0, 99.0, 999.0, 9999.0})
"""Numbers that stand for no answer in questionnaires, where they lie off the other levels."""

HINT = re.compile(
    r"rat(e|ed|ing)s?|scores?|stars?|likert|grades?|level|severity|quality|relevance|strength|intensity|valence|arousal"
    r"|acceptability|offensiveness|toxicity|(dis)?agreement|confidence|similarity|likelihood|mos"
)
"""Words in the name of a question whose numbers are levels or scores."""

NUMBERED = re.compile(r"([-+]?\d+(?:\.\d+)?)(?:\s*[-–=:.)(]\s*\D.*)?", flags=re.DOTALL)
"""A number, or a number with what it means behind it, such as "5 - very good"."""

MOST_LEVELS, BINS = 12, 5
"""Levels of an ordinal question at most, of more the numbers are scores; and the bins in which scores are fitted."""

RARE, FEW = 0.01, 0.05
"""Share of the votes below which numbers that lie off a scale, and words beside numbers, are no levels."""

NEAR, BEST_ORDERS, LEAST_PAIRS = 0.96, 0.1, 30.0
"""Numbers are levels if votes on an item that differ lie nearer to each other than by chance (their mean distance is at
most so much of it), by more than in nine of ten other orders, over enough pairs. Of the numbered sets that we know, the
ordered ones are at .62 to .96, the classes (labelme, face_sentiment, fact_eval, pandalm_test) at 1.01 to 1.17."""

ITEMS_TESTED, ORDERS_TRIED = 200_000, 200


class Scale(NamedTuple):
    """The levels of a question from low to high, their values, what label is which level, and scores by label."""

    labels: tuple[str, ...]
    levels: tuple[float, ...]
    level_of: dict[str, str]
    score_of: dict[str, float] | None = None


def find_scale(
    question: str,
    n_of: Mapping[str, int],
    near: Callable[[Mapping[str, int]], bool],
    options: ReadOptions,
    log: ReadingLog,
) -> Scale | None:
    """Return the scale of a question; None where its labels are names, as two labels always are.

    Parameters
    ----------
    question
        Its name.
    n_of
        Votes by label.
    near
        Whether votes on an item that differ lie near each other, given the rank of every label.
    options
        What the user says of scale and order.
    log
        What is guessed, and what is no level.

    Examples
    --------
    >>> votes = {"high": 9, "low": 7, "medium": 4, "don't know": 1}
    >>> find_scale("risk", votes, lambda rank_of: False, ReadOptions(), log := ReadingLog()).labels
    ('low', 'medium', 'high')
    >>> log.dropped, log.notes[-1]
    ({'no level of the scale': 1}, 'scale: low < medium < high (guessed; --scale nominal if these are names).')
    """
    plain = {label: " ".join(label.casefold().replace("’", "'").split()) for label in n_of}
    present = {label: n for label, n in n_of.items() if not ASIDE.fullmatch(plain[label])}
    if options.scale == "nominal" or len(present) < 3:
        return None
    scale = _by_order(plain, options.order) if options.order else None
    guessed = scale is None and options.scale == "auto"
    scale = scale or _by_words(present, plain)
    if scale is None or options.scale == "interval":
        scale = _by_numbers(question, present, near, options, log) or scale
    if scale is None or len(scale.labels) < 3:
        if options.scale != "auto" and scale is None:
            problem = f"{options.scale} needs an order of the labels of {question!r}, which is not known"
            refuse(f"--scale {problem}: {shown(list(present))}. Name them from low to high (--order a,b,c).")
        return None
    outside = {label: n for label, n in n_of.items() if n and label not in scale.level_of}
    if outside:
        names = shown([f"{label!r} ({n:,} votes)" for label, n in outside.items()])
        log.drop("no level of the scale", sum(outside.values()))
        log.note(f"no level of the scale of {question!r}, and taken for no answer: {names}.")
    used_levels = {scale.level_of[label] for label, n in n_of.items() if n and label in scale.level_of}
    if unused := [label for label in scale.labels if label not in used_levels]:
        log.note(f"levels of {question!r} that nobody used: {shown(unused)}.")
    note = f"scale: {' < '.join(scale.labels)}"
    if scale.score_of:
        ends = f"{min(scale.score_of.values()):g} to {max(scale.score_of.values()):g}"
        note = f"scores of {question!r} from {ends}, fitted in {BINS} bins"
    log.note(f"{note} (guessed; --scale nominal if these are names)." if guessed else f"{note}.")
    return scale


def _by_order(plain: Mapping[str, str], order: Sequence[str]) -> Scale | None:
    """Return the scale that the user gave, if two labels at least are in it."""
    listed = {" ".join(name.casefold().split()): name.strip() for name in order}
    level_of = {label: listed[name] for label, name in plain.items() if name in listed}
    if len(set(level_of.values())) < 2:
        return None
    numbers = [NUMBERED.fullmatch(name) for name in order]
    value_k = [float(number[1]) for number in numbers if number]
    rising = len(value_k) == len(order) and value_k == sorted(set(value_k))
    return Scale(tuple(listed.values()), tuple(value_k) if rising else _ranks(len(order)), level_of)


def _by_words(present: Mapping[str, int], plain: Mapping[str, str]) -> Scale | None:
    """Return the known scale that has all of these labels."""
    for scale in SCALES:
        rank_of = {word: rank for rank, words in enumerate(scale) for word in words}
        if all(plain[label] in rank_of for label in present):
            by_rank: dict[int, str] = {}
            for label in present:
                by_rank.setdefault(rank_of[plain[label]], label)
            labels = tuple(by_rank[rank] for rank in sorted(by_rank))
            return Scale(labels, _ranks(len(labels)), {label: by_rank[rank_of[plain[label]]] for label in present})
    return None


def _ranks(n_labels: int) -> tuple[float, ...]:
    return tuple(float(rank) for rank in range(1, n_labels + 1))


def _by_numbers(
    question: str,
    present: Mapping[str, int],
    near: Callable[[Mapping[str, int]], bool],
    options: ReadOptions,
    log: ReadingLog,
) -> Scale | None:
    """Return the scale of labels that are numbers, nearly all of them."""
    total, matches = sum(present.values()), {label: NUMBERED.fullmatch(label.strip()) for label in present}
    value_of = {label: float(number[1]) for label, number in matches.items() if number}
    n_words = sum(n for label, n in present.items() if label not in value_of)
    if len(value_of) < 3 or (options.scale == "auto" and n_words > FEW * total):
        return None
    value_of, is_whole = _on_scale(value_of, present, keep_all=options.scale == "interval")
    values = sorted(set(value_of.values()))
    short = len(values) <= MOST_LEVELS and options.scale != "interval"
    if short and is_whole:
        values = [float(value) for value in range(int(values[0]), int(values[-1]) + 1)]
    scale = _levels(values, value_of) if short else _bins(value_of, present)
    if options.scale == "auto" and not names_ratings(question):
        rank_of = {label: scale.labels.index(level) for label, level in scale.level_of.items()}
        if len(set(rank_of.values())) < 4 or not near(rank_of):
            return None
    return scale


def _on_scale(value_of: dict[str, float], n_of: Mapping[str, int], *, keep_all: bool) -> tuple[dict[str, float], bool]:
    """Leave out codes of no answer, rare numbers far off, and rare fractions; say whether all others are whole."""
    total = sum(n_of[label] for label in value_of)
    off = {label for label, value in value_of.items() if value in CODES}
    inner = [value for label, value in value_of.items() if label not in off]
    if inner and max(inner) - min(inner) < MOST_LEVELS:
        off = {label for label in off if not min(inner) - 1 <= value_of[label] <= max(inner) + 1}
        value_of = {label: value for label, value in value_of.items() if label not in off}
    if not keep_all:
        value_of = _without_far(value_of, n_of, total)
    fractions = [label for label, value in value_of.items() if value != int(value)]
    if fractions and not keep_all and sum(n_of[label] for label in fractions) < RARE * total:
        value_of, fractions = {label: value for label, value in value_of.items() if label not in fractions}, []
    return value_of, not fractions


def _without_far(value_of: dict[str, float], n_of: Mapping[str, int], total: int) -> dict[str, float]:
    """Leave out rare numbers far off the others, such as 55 among 1 to 5, where a short range remains."""
    remaining, removed = dict(value_of), 0
    while remaining and max(remaining.values()) - min(remaining.values()) >= MOST_LEVELS:
        middle = float(np.median(list(remaining.values())))
        far = max(remaining, key=lambda label: abs(remaining[label] - middle))
        removed += n_of[far]
        if removed > RARE * total:
            return value_of
        del remaining[far]
    return remaining or value_of


def _levels(values: Sequence[float], value_of: Mapping[str, float]) -> Scale:
    name_of = {value: f"{value:g}" for value in values}
    # Labels that say what a number means keep their words.
    name_of |= {value: label for label, value in sorted(value_of.items(), reverse=True)}
    level_of = {label: name_of[value] for label, value in value_of.items()}
    return Scale(tuple(name_of[value] for value in values), tuple(values), level_of)


def _bins(value_of: dict[str, float], n_of: Mapping[str, int]) -> Scale:
    """Cut scores into bins of equal width between the outermost half percents of the votes."""
    value_l, n_l = np.array(list(value_of.values())), np.array([n_of[label] for label in value_of])
    low, high = np.quantile(np.repeat(value_l, np.minimum(n_l, 1_000)), [0.005, 0.995])
    if low == high:
        low, high = float(value_l.min()), float(value_l.max())
    edge_b = np.linspace(low, high, BINS + 1)
    bin_l = np.clip(np.searchsorted(edge_b, value_l, side="right") - 1, 0, BINS - 1)
    names = tuple(f"{edge_b[b]:.4g} to {edge_b[b + 1]:.4g}" for b in range(BINS))
    level_of = {label: names[b] for label, b in zip(value_of, bin_l.tolist(), strict=True)}
    return Scale(names, tuple(((edge_b[1:] + edge_b[:-1]) / 2.0).tolist()), level_of, value_of)


def names_ratings(name: str) -> bool:
    """Return whether the name of a question or a column is that of ratings, such as quality_score."""
    return any(HINT.fullmatch(word) for word in re.split(r"[\W_\d]+", name.casefold()))


def number_of(label: str) -> float | None:
    """Return the number that a label is, or begins with."""
    number = NUMBERED.fullmatch(label.strip())
    return float(number[1]) if number else None


def lie_near(item_v: Ints, rank_v: Ints, n_levels: int) -> bool:
    """Tell whether votes on an item that differ lie nearer to each other than by chance: see `NEAR`.

    Examples
    --------
    >>> rank_v = np.array([0, 1, 2, 3, 1, 2, 3, 2] * 10)
    >>> lie_near(np.repeat(np.arange(40), 2), rank_v, 4)
    True
    """
    tested_v = (rank_v >= 0) & (item_v < ITEMS_TESTED)
    item_v, rank_v = item_v[tested_v].astype(np.int64), rank_v[tested_v]
    if not len(item_v):
        return False
    n_items = int(item_v.max()) + 1
    counts_ik = np.bincount(item_v * n_levels + rank_v, minlength=n_items * n_levels).reshape(n_items, n_levels)
    partners_i = np.maximum(counts_ik.sum(axis=1) - 1.0, 1.0)
    pairs_kl = (counts_ik / partners_i[:, None]).T @ counts_ik
    votes_k = counts_ik.sum(axis=0).astype(np.float64)
    apart_kl = ~np.eye(n_levels, dtype=bool)
    chance_kl = np.outer(votes_k, votes_k) * apart_kl
    pairs_kl = pairs_kl * apart_kl
    if pairs_kl.sum() < LEAST_PAIRS or not chance_kl.any():
        return False

    def nearness(rank_k: Ints) -> float:
        distance_kl: Floats = np.abs(np.subtract.outer(rank_k, rank_k)).astype(np.float64)
        return float(np.average(distance_kl, weights=pairs_kl) / np.average(distance_kl, weights=chance_kl))

    rng, ours = np.random.default_rng(0), nearness(np.arange(n_levels))
    random_orders = [nearness(rng.permutation(n_levels)) for _ in range(ORDERS_TRIED)]
    return ours <= NEAR and float(np.mean(np.array(random_orders) <= ours + 1e-9)) <= BEST_ORDERS


def note_other_scales(label_v: Ints, annotator_v: Ints, names: Sequence[str], scale: Scale, log: ReadingLog) -> None:
    """Note annotators who never leave the lower half of a scale of numbers that others use whole."""
    n_levels, n_annotators = len(scale.labels), len(names)
    if n_levels < 6 or (scale.levels == _ranks(n_levels) and n_levels < 8):
        return
    top_a, votes_a = np.full(n_annotators, -1), np.bincount(annotator_v, minlength=n_annotators)
    np.maximum.at(top_a, annotator_v, label_v)
    low_a = np.flatnonzero((votes_a >= 30) & (2 * (top_a + 1) <= n_levels))
    if 0 < len(low_a) < (votes_a >= 30).sum():
        top = scale.labels[int(top_a[low_a].max())]
        raters = shown([names[a] for a in low_a.tolist()], 5)
        log.note(
            f"another scale? {len(low_a)} annotators never say more than {top} of {scale.labels[-1]}: {raters}. "
            "Their votes are taken as they are; if theirs is a shorter scale, audit them on their own (--exclude)."
        )
