"""Ordered questions: a score per item, every rater's bias and spread, rules on ratings, and what to say of raters.

Votes count as numbers here: the values of levels, or the scores that were given. A rating is taken as the item's value
plus the rater's bias plus noise of the rater's spread; a level stands for the values nearest to it, and those at the
ends of a scale for everything beyond. An item's value, as a rater met it, is what all other raters make of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri, stdtrit

from moral_entropy.findings import Finding, Level, many
from moral_entropy.model.consensus import Consensus, QuestionFit
from moral_entropy.model.findings import finding_of
from moral_entropy.names import person
from moral_entropy.rules.grade import share_of
from moral_entropy.votes.table import UNKNOWN, Ballot, Floats

ROUNDS = 30
"""Rounds in which biases, spreads and items' values are found from each other."""

GAIN = 0.9
"""Raters' biases are taken off scores where others' votes are then predicted with at most so much of the
squared error. On snow_valence and snow_anger it is .96, and the plain mean is nearer to gold; with simulated biases
of half the spread it is about .75."""

FEW_VOTES, FALSE_ALARMS = 10, 0.02
"""Votes below which nothing is said of a rater, and how often anything is said of any of several raters alike."""

LARGE, STEEPER = 0.05, 0.3
"""Share of the scale's length from which a bias is worth a word, and how far from 1 a slope is."""

ITEM_WORTH = 3.0
"""Votes' worth of all items' spread in that of one item: with two votes it says little by itself."""

TRIM = 0.2
"""Share of the votes that a trimmed mean leaves out at either end."""

CUT_METRICS = ("wrong", "fpr", "fnr", "fdr", "for")
"""Grades of scores that are cut at a level: the share on the wrong side, and the four rates of two labels."""

HABITS = {
    "reversed": "rates against the others, as if the scale were turned round",
    "random": "rates as if at random",
    "severe": "rates lower than the others",
    "lenient": "rates higher than the others",
    "central": "stays near the middle of the scale",
    "extreme": "goes to the ends of the scale",
}
"""What raters are called, in the order in which it is asked, and what they do."""


class Raters(NamedTuple):
    """Raters of one question, in points of the scale. Axes: **a** rater, **i** item.

    Parameters
    ----------
    bias_a, bias_se_a
        How much higher a rater rates than the others do, and its standard error.
    spread_a, log_spread_se_a
        Standard deviation of a rater's noise, and the standard error of its logarithm.
    slope_a, slope_se_a
        By how much a rating rises where that of the others rises by 1.
    value_i
        Items' values, biases taken off.
    gain
        Squared error of votes predicted with biases over that without.
    """

    bias_a: Floats
    bias_se_a: Floats
    spread_a: Floats
    log_spread_se_a: Floats
    slope_a: Floats
    slope_se_a: Floats
    value_i: Floats
    gain: float


def given_scores(ballot: Ballot) -> Floats:
    """Return what every vote says in numbers."""
    levels = np.array(ballot.levels)
    return levels[ballot.code_v % ballot.n_labels] if ballot.score_v is None else ballot.score_v


def fit_raters(ballot: Ballot) -> Raters:
    """Find bias, spread and slope of every rater, from how others rated the same items."""
    item_v, rater_v = np.repeat(np.arange(ballot.n_items), ballot.votes_i), ballot.code_v // ballot.n_labels
    score_v, count_v = given_scores(ballot), ballot.count_i[item_v]
    n_a = np.maximum(np.bincount(rater_v, minlength=ballot.n_annotators), 1.0)

    def by_rater(values_v: Floats) -> Floats:
        return np.asarray(np.bincount(rater_v, weights=values_v, minlength=ballot.n_annotators), dtype=np.float64)

    def by_item(values_v: Floats) -> Floats:
        return np.asarray(np.bincount(item_v, weights=values_v, minlength=ballot.n_items), dtype=np.float64)

    centre = float(np.average(score_v, weights=count_v))
    total = max(float(np.average((score_v - centre) ** 2, weights=count_v)), 1e-12)
    mean_i = by_item(score_v) / np.maximum(ballot.votes_i, 1)
    within = float(((score_v - mean_i[item_v]) ** 2).sum() / max((ballot.votes_i - 1).clip(min=0).sum(), 1))
    within = float(np.clip(within, 0.02 * total, total))
    between = max(total - within, 0.05 * total)
    bias_a, spread_a, latent_v = np.zeros(ballot.n_annotators), np.full(ballot.n_annotators, np.sqrt(within)), score_v
    second_v, off_v, noise_v = np.zeros(len(score_v)), score_v, np.ones(len(score_v))
    for _ in range(ROUNDS):
        weight_v = 1.0 / spread_a[rater_v] ** 2
        pull_v = weight_v * (score_v - bias_a[rater_v] - centre)
        pull_i, precision_i = by_item(pull_v), by_item(weight_v) + 1.0 / between
        # Without the rater's own vote: a rater is not compared with themselves.
        precision_v = precision_i[item_v] - weight_v
        value_v = centre + (pull_i[item_v] - pull_v) / precision_v
        between = float(np.mean((pull_i / precision_i) ** 2 + 1.0 / precision_i))
        noise_v = spread_a[rater_v] ** 2 + 1.0 / precision_v
        if ballot.score_v is None:
            latent_v, second_v = _latent(ballot, value_v + bias_a[rater_v], np.sqrt(noise_v))
        off_v = latent_v - value_v
        bias_a = by_rater(off_v / noise_v) / np.maximum(by_rater(1.0 / noise_v), 1e-300)
        bias_a -= float(np.average(bias_a, weights=n_a))
        square_v = (off_v - bias_a[rater_v]) ** 2 + second_v - 1.0 / precision_v
        # One prior vote of the crowd's spread, so that two equal votes do not make a rater perfect.
        variance_a = by_rater(square_v / noise_v**2) + within / (2.0 * within) ** 2
        variance_a /= by_rater(1.0 / noise_v**2) + 1.0 / (2.0 * within) ** 2
        spread_a = np.sqrt(np.maximum(variance_a, 1e-3 * within))
    score_bias_v = (off_v - bias_a[rater_v]) / noise_v
    bias_se_a = 1.0 / np.sqrt(np.maximum(by_rater(score_bias_v**2), 1e-12))
    slack_v = spread_a[rater_v] ** 2 * (((off_v - bias_a[rater_v]) ** 2 + second_v) / noise_v**2 - 1.0 / noise_v)
    log_se_a = 1.0 / np.sqrt(np.maximum(by_rater(slack_v**2), 0.04))
    # Slopes of the plain scores: the latent ones follow the others' by construction.
    apart_v = value_v - (by_rater(value_v) / n_a)[rater_v]
    along_a = np.maximum(by_rater(apart_v**2), 1e-12)
    slope_a = by_rater(apart_v * score_v) / along_a
    residual_v = score_v - (by_rater(score_v) / n_a)[rater_v] - slope_a[rater_v] * apart_v
    slope_se_a = np.sqrt(by_rater(residual_v**2) / np.maximum(n_a - 2.0, 1.0) / along_a)
    # Drawn to 0 as far as they may be chance.
    true_spread = max(float(np.average(bias_a**2 - bias_se_a**2, weights=n_a)), 0.0)
    shrunk_a = bias_a * true_spread / (true_spread + bias_se_a**2)
    value_i = by_item(score_v - shrunk_a[rater_v]) / np.maximum(ballot.votes_i, 1)
    others_v = ballot.votes_i[item_v] - 1.0

    def squared_error(shift_a: Floats, factor_a: Floats) -> float:
        free_v = score_v - shift_a[rater_v] - centre
        error_v = free_v - (by_item(free_v)[item_v] - free_v) / (others_v + within / between)
        return float(((factor_a[rater_v] * error_v)[others_v > 0] ** 2).sum())

    # A vote was part of its rater's bias: without it the error is larger.
    plain, unbiased = squared_error(0.0 * n_a, n_a / n_a), squared_error(shrunk_a, n_a / np.maximum(n_a - 1.0, 1.0))
    gain = unbiased / plain if plain > 0 else 1.0
    return Raters(bias_a, bias_se_a, spread_a, log_se_a, slope_a, slope_se_a, value_i, gain)


def _latent(ballot: Ballot, mean_v: Floats, spread_v: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the values behind levels, normal around some mean before they were rounded."""
    levels = np.array(ballot.levels)
    bound_b = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2.0, [np.inf]])
    label_v = ballot.code_v % ballot.n_labels
    low_v, high_v = ((bound_b[label_v + end] - mean_v) / spread_v for end in (0, 1))
    # Far out in a tail both ends have one probability: there the nearer end is the value.
    low_v, high_v = np.clip(low_v, -8.0, 7.5), np.clip(high_v, -7.5, 8.0)
    mass_v = np.maximum(ndtr(high_v) - ndtr(low_v), 1e-300)
    at_low_v, at_high_v = (np.exp(-0.5 * end_v**2) / np.sqrt(2.0 * np.pi) for end_v in (low_v, high_v))
    shift_v = (at_low_v - at_high_v) / mass_v
    variance_v = 1.0 + (low_v * at_low_v - high_v * at_high_v) / mass_v - shift_v**2
    return mean_v + spread_v * shift_v, spread_v**2 * np.clip(variance_v, 1e-6, 1.0)


def score_frame(votes_items: pl.Series, fit: QuestionFit, raters: Raters, interval: float) -> pl.DataFrame:
    """Return a score per item: of levels the mean of p, of scores the mean; its interval is from the raters' spread."""
    ballot, levels = fit.ballot, np.array(fit.ballot.levels)
    score_v, n_i = given_scores(ballot), ballot.votes_i
    item_v = np.repeat(np.arange(ballot.n_items), n_i)
    total_i = np.bincount(item_v, weights=score_v, minlength=ballot.n_items)
    votes_i = np.where(n_i > 0, total_i / np.maximum(n_i, 1), np.nan)
    if ballot.score_v is None:
        mean_i = fit.p_ik @ levels
    else:
        mean_i = np.where(n_i > 0, raters.value_i, np.nan) if raters.gain < GAIN else votes_i
    square_i = np.bincount(item_v, weights=(score_v - votes_i[item_v]) ** 2, minlength=ballot.n_items)
    free_i = np.maximum(n_i - 1.0, 0.0)
    pooled = float(square_i.sum() / max(free_i.sum(), 1.0))
    variance_i = (square_i + ITEM_WORTH * pooled) / (free_i + ITEM_WORTH)
    half_i = stdtrit(free_i + ITEM_WORTH, 0.5 + interval / 2.0) * np.sqrt(variance_i / np.maximum(n_i, 1))
    ends = (mean_i - half_i, mean_i + half_i)
    if ballot.score_v is None:
        ends = (np.maximum(ends[0], levels[0]), np.minimum(ends[1], levels[-1]))
    low_i, high_i = (np.where(n_i > 0, end_i, np.nan) for end_i in ends)
    gold_i = levels[ballot.gold_i] if (ballot.gold_i != UNKNOWN).any() else np.full(ballot.n_items, np.nan)
    gold_i = np.where(ballot.gold_i == UNKNOWN, np.nan, gold_i) if ballot.gold_score_i is None else ballot.gold_score_i
    columns = {
        "item": votes_items.gather(ballot.item_i), "n_votes": n_i, "mean": mean_i, "low": low_i, "high": high_i,
        "median": levels[fit.label_i] if ballot.score_v is None else _medians(ballot),
        "mean_votes": votes_i, "gold": gold_i,
    }  # fmt: skip
    return _placed(pl.DataFrame(columns), ballot).with_columns(pl.col(pl.Float64).fill_nan(None))


def _medians(ballot: Ballot) -> Floats:
    score_v = given_scores(ballot)
    order_v = np.lexsort((score_v, np.repeat(np.arange(ballot.n_items), ballot.votes_i)))
    sorted_v = np.append(score_v[order_v], np.nan)
    first_i, n_i = ballot.start_i[:-1], ballot.votes_i
    middle_i = (sorted_v[first_i + (n_i - 1).clip(min=0) // 2] + sorted_v[first_i + n_i // 2 - (n_i == 0)]) / 2.0
    return np.where(n_i > 0, middle_i, np.nan)


def _placed(frame: pl.DataFrame, ballot: Ballot) -> pl.DataFrame:
    return frame.select(pl.lit(ballot.question).alias("question"), pl.lit(ballot.part).alias("part"), pl.all())


def rater_frame(annotators: pl.Series, ballot: Ballot, raters: Raters, interval: float) -> pl.DataFrame:
    """Return a row per rater: bias, spread and slope with intervals, and a role where one is sure."""
    wide = ndtri(0.5 + interval / 2.0)
    spread_ends = (raters.spread_a * np.exp(sign * wide * raters.log_spread_se_a) for sign in (-1.0, 1.0))
    role_a = _roles(ballot, raters)
    columns = {
        "annotator": annotators.gather(ballot.annotator_a), "n_votes": ballot.votes_a,
        "bias": raters.bias_a, "bias_low": raters.bias_a - wide * raters.bias_se_a,
        "bias_high": raters.bias_a + wide * raters.bias_se_a, "spread": raters.spread_a,
        **dict(zip(("spread_low", "spread_high"), spread_ends, strict=True)),
        "slope": raters.slope_a, "slope_low": raters.slope_a - wide * raters.slope_se_a,
        "slope_high": raters.slope_a + wide * raters.slope_se_a, "role": pl.Series(role_a, dtype=pl.String),
    }  # fmt: skip
    return _placed(pl.DataFrame(columns), ballot)


def _roles(ballot: Ballot, raters: Raters) -> list[str]:
    """Name raters of whom something is sure, all raters looked at together."""
    enough_a = (ballot.votes_a >= FEW_VOTES) & (ballot.n_annotators >= 3)
    sure = float(-ndtri(FALSE_ALARMS / 2.0 / max(int(enough_a.sum()), 1)))
    scores = np.array(ballot.levels) if ballot.score_v is None else ballot.score_v
    large = LARGE * float(scores.max() - scores.min())
    high_a, low_a = raters.slope_a + sure * raters.slope_se_a, raters.slope_a - sure * raters.slope_se_a
    usual = float(np.median(raters.slope_a[enough_a])) if enough_a.any() else 1.0
    far_a = np.abs(raters.bias_a) > np.maximum(sure * raters.bias_se_a, large)
    tests = {
        "reversed": high_a < 0.0, "random": high_a < STEEPER * usual, "severe": far_a & (raters.bias_a < 0.0),
        "lenient": far_a & (raters.bias_a > 0.0), "central": high_a < (1.0 - STEEPER) * usual,
        "extreme": low_a > (1.0 + STEEPER) * usual,
    }  # fmt: skip
    roles = np.select([test_a & enough_a for test_a in tests.values()], list(tests), default="")
    return [str(role) for role in roles]


def _figure(role: str) -> str:
    return "bias" if role in ("severe", "lenient") else "slope"


def rater_sentence(rater: dict[str, Any]) -> str:
    """Say what a rater with a role does, with the figure that shows it; a row of the table raters."""
    figure = _figure(rater["role"])
    unit = "points" if figure == "bias" else "points where the others' rating rises by 1"
    moves = "moves " * (figure == "slope")
    size = f"{moves}{rater[figure]:+.2f} {unit} ({rater[figure + '_low']:+.2f} to {rater[figure + '_high']:+.2f})"
    return f"{HABITS[rater['role']]}: {size} over {rater['n_votes']:,} votes"


def rater_findings(fit: QuestionFit, frame: pl.DataFrame) -> Iterator[Finding]:
    """Yield, for every role, who has it, with the figures of the clearest case."""
    for role in HABITS:
        figure = _figure(role)
        rows = frame.filter(role=role).with_columns(name=pl.col("annotator").cast(pl.String))
        if rows.is_empty():
            continue
        ordered = rows.sort(pl.col(figure).round(6), descending=role in ("lenient", "extreme"), maintain_order=True)
        first, *further = ordered.rows(named=True)
        also = f"; {many(len(further), 'other')} likewise" if further else ""
        level: Level = "doubt" if role in ("reversed", "random", "severe", "lenient") else "note"
        yield finding_of(
            fit, "ratings", role, first[figure], low=first[figure + "_low"], high=first[figure + "_high"],
            n=int(first["n_votes"]), subject=first["name"], level=level,
            text=f"{person(first['name'])} {rater_sentence(first)}{also}.",
            meaning="Plain means and medians move with who rated an item; the consensus takes raters as they are.",
            remedy="See the table raters; ask these raters how they read the scale, or leave them out (--exclude).",
        )  # fmt: skip


# --- Rules on ratings ---------------------------------------------------------------------------------------------


def rule_scores(ballot: Ballot) -> dict[str, Floats]:
    """Return what every rule on ratings makes of the items with votes; NaN without votes."""
    levels, counts_ik, n_i = np.array(ballot.levels), ballot.counts_ik, ballot.votes_i.astype(np.float64)
    at_least_one_i = np.maximum(n_i, 1.0)
    mean_i = counts_ik @ levels / at_least_one_i
    # A trimmed mean counts, of every level, the votes between the trimmed ends.
    upto_ik = np.cumsum(counts_ik, axis=1)
    cut_i1 = np.floor(TRIM * n_i)[:, None]
    kept_ik = np.clip(upto_ik, cut_i1, n_i[:, None] - cut_i1)
    kept_ik = np.diff(kept_ik, axis=1, prepend=cut_i1)
    middle_ik = upto_ik / at_least_one_i[:, None]
    low_i, high_i = (middle_ik >= 0.5 - 1e-9).argmax(axis=1), (middle_ik > 0.5 + 1e-9).argmax(axis=1)
    scores = {
        "mean": mean_i, "rounded-mean": levels[np.abs(mean_i[:, None] - levels - 1e-9).argmin(axis=1)],
        "median": (levels[low_i] + levels[high_i]) / 2.0,
        "trimmed-mean": kept_ik @ levels / np.maximum(kept_ik.sum(axis=1), 1.0),
        "majority-level": levels[counts_ik.argmax(axis=1)],
    }  # fmt: skip
    return {name: np.where(n_i > 0, score_i, np.nan) for name, score_i in scores.items()}


def rule_frame(fit: QuestionFit, scores: pl.DataFrame) -> pl.DataFrame:
    """Grade every rule on ratings against the consensus and, where it is known, against gold."""
    ballot, rows = fit.ballot, list[dict[str, Any]]()
    references = {"consensus": fit.p_ik}
    if (ballot.gold_i != UNKNOWN).any():
        gold_ik = np.eye(ballot.n_labels)[ballot.gold_i]
        references["gold"] = np.where((ballot.gold_i == UNKNOWN)[:, None], np.nan, gold_ik)
    rules = rule_scores(ballot)
    if "gold" in references:
        rules |= {
            "consensus-mean": fit.p_ik @ np.array(ballot.levels),
            "consensus": np.array(ballot.levels)[fit.label_i],
        }
    for reference, truth_ik in references.items():
        usable_i = np.isfinite(truth_ik[:, 0]) & (ballot.votes_i > 0)
        for rule, score_i in rules.items():
            if usable_i.any() and (reference == "gold" or not rule.startswith("consensus")):
                metrics = grade_scores(score_i[usable_i], truth_ik[usable_i], ballot, ballot.count_i[usable_i])
                rows += [
                    {"rule": rule, "reference": reference, "cut": cut, "metric": metric, "value": value,
                     "n": int(usable_i.sum())}
                    for (metric, cut), value in metrics.items()
                ]  # fmt: skip
    if ballot.gold_score_i is not None:
        rows += _grades_of_scores(scores)
    schema = {"rule": pl.String, "reference": pl.String, "cut": pl.String, "metric": pl.String, "value": pl.Float64}
    return _placed(pl.DataFrame(rows, schema={**schema, "n": pl.Int64}), ballot).fill_nan(None)


def _grades_of_scores(scores: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Compare mean and median of the scores with known ones."""
    graded = scores.drop_nulls(["gold", "mean_votes"])
    for rule, column in (("mean", "mean_votes"), ("median", "median")) if graded.height else ():
        off_i = (graded[column] - graded["gold"]).to_numpy()
        figures = {"bias": off_i.mean(), "mae": np.abs(off_i).mean(), "rmse": np.sqrt((off_i**2).mean())}
        for metric, value in figures.items():
            yield {"rule": rule, "reference": "gold", "cut": "", "metric": metric, "value": value, "n": len(off_i)}


def grade_scores(score_i: Floats, truth_ik: Floats, ballot: Ballot, weight_i: Floats) -> dict[tuple[str, str], float]:
    """Compare scores with probabilities of the levels: errors in points, and for every cut what is on the wrong side.

    Returns
    -------
    dict
        By metric and cut, which is empty for the first: bias, mae, rps, qwk, wasserstein; then `CUT_METRICS`.
    """
    levels, weight_i = np.array(ballot.levels), weight_i / weight_i.sum()
    mean_i, off_ik = truth_ik @ levels, np.abs(score_i[:, None] - levels)
    steps_b = np.diff(levels)
    below_ib = np.cumsum(truth_ik, axis=1)[:, :-1]
    score_ib = (score_i[:, None] < levels[1:]).astype(np.float64)
    # Expected squared disagreement, and what it would be were scores and levels independent.
    square_i = (off_ik**2 * truth_ik).sum(axis=1)
    spread = (
        weight_i @ (truth_ik @ levels**2) - (weight_i @ mean_i) ** 2 + weight_i @ score_i**2 - (weight_i @ score_i) ** 2
    )
    chance = float(spread + (weight_i @ score_i - weight_i @ mean_i) ** 2)
    grades = {
        ("bias", ""): float(weight_i @ (score_i - mean_i)),
        ("mae", ""): float(weight_i @ (off_ik * truth_ik).sum(axis=1)),
        ("rps", ""): float(weight_i @ ((score_ib - below_ib) ** 2).sum(axis=1)),
        ("qwk", ""): 1.0 - float(weight_i @ square_i) / chance if chance > 0 else float("nan"),
        ("wasserstein", ""): float(np.abs(weight_i @ (score_ib - below_ib)) @ steps_b),
    }
    for b, cut in enumerate(ballot.labels[1:]):
        yes_i, truth_i = 1.0 - score_ib[:, b], 1.0 - below_ib[:, b]
        false_yes, false_no = weight_i @ (yes_i * (1.0 - truth_i)), weight_i @ ((1.0 - yes_i) * truth_i)
        flagged, true = weight_i @ yes_i, weight_i @ truth_i
        wrong = np.array([false_yes + false_no, false_yes, false_no, false_yes, false_no])
        rate_m = share_of(wrong, np.array([1.0, 1.0 - true, true, flagged, 1.0 - flagged]))
        grades |= {(metric, cut): float(rate) for metric, rate in zip(CUT_METRICS, rate_m, strict=True)}
    return grades


def study_ratings(consensus: Consensus) -> tuple[dict[str, pl.DataFrame], list[Finding]]:
    """Return the tables of ordered questions, and what was found about their raters; nothing where there are none."""
    scores, people, rules, findings = [], [], [], list[Finding]()
    for fit in consensus.fits:
        if fit.ballot.levels is None or not fit.ballot.n_votes:
            continue
        raters = fit_raters(fit.ballot)
        scores.append(score_frame(consensus.votes.items, fit, raters, consensus.interval))
        rules.append(rule_frame(fit, scores[-1]))
        if not consensus.votes.anonymous:
            people.append(rater_frame(consensus.votes.annotators, fit.ballot, raters, consensus.interval))
            findings += rater_findings(fit, people[-1])
    frames = {"scores": scores, "raters": people, "rating_rules": rules}
    return {name: pl.concat(parts) for name, parts in frames.items() if parts}, findings
