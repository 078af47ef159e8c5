"""Can these labels be shipped? Checked labels → the share of all labels that is wrong, and an answer in plain words.

Votes cannot say how many labels are wrong: annotators who share a mistake agree on it. So without checked labels there
is no answer. With them there is one against a tolerance: the better, the more is tolerated and the fewer are wrong.

Labels are checked by a spot check or, where none was made, by gold. Sheets of several spot checks add up; those made to
repair labels measure nothing. The interval is Jeffreys', narrower where labels were drawn in proportion to their risk.
Whether labels are shown to be good enough rests on the exact bounds of Clopper and Pearson.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit, log_expit, logit

from moral_entropy.findings import many
from moral_entropy.items.states import positions
from moral_entropy.rules.intervals import exact_interval, jeffreys_interval
from moral_entropy.rules.rules import PLURALITY, PUBLISHED, Rule, rule_named
from moral_entropy.runs.run import Question, Run, cautions
from moral_entropy.ties import DECIMALS
from moral_entropy.verdict.figures import KEYS, annotator_shares, mean_over_items, pooled_rates, wrong_by
from moral_entropy.verdict.sheet import MOST_CHECKED, ROWS, spot_checks
from moral_entropy.votes.table import UNKNOWN, Floats

SLOPE, SLOPE_SD = 1.0, 0.5
"""How steeply the logit of the true risk follows that of p, before any label is checked: as p says, give or take. Over
sets with gold it is 0.4 to 1.9."""

MOST_CHECKS = 100_000
"""Largest number of checks that anybody is told to make."""

FIGURES = dict.fromkeys(("wrong", "value", "low", "high"), pl.Float64())
CHECKED = pl.Schema({"kind": pl.String(), "name": pl.String(), "checked": pl.Int64(), **FIGURES})


@dataclass(frozen=True)
class ErrorRate:
    """The share of all labels that is wrong.

    Parameters
    ----------
    checked, wrong
        How many labels were checked, and how many of them are wrong; a tie that is broken at random counts as a part.
    value, low, high
        The share, and its interval.
    at_least, bound
        Exact bounds of the share (Clopper and Pearson): each is missed in at most one sheet of twenty (for an interval
        of 90%), whatever the share.
    """

    checked: int
    wrong: float
    value: float
    low: float
    high: float
    at_least: float
    bound: float


def error_rate(
    wrong_j: Floats, population: float, weight_j: Floats | None = None, risk_j: Floats | None = None, mass: float = 0.9
) -> ErrorRate:
    """Estimate the share of wrong labels from checked ones.

    Parameters
    ----------
    wrong_j
        Whether each checked label is wrong.
    population
        How many labels there are. What is checked is known: where most of them were, the interval is narrow.
    weight_j
        For how many labels each stands.
    risk_j
        How probably each is wrong by p, where one label was drawn from each block of labels that are alike in it.
    mass
        Mass of the interval.

    Examples
    --------
    >>> rate = error_rate([1] * 8 + [0] * 42, 10_000)
    >>> round(rate.low, 2), rate.value, round(rate.high, 2)
    (0.09, 0.16, 0.26)
    """
    wrong = np.asarray(wrong_j, dtype=float)
    weight = np.ones(len(wrong)) if weight_j is None else np.asarray(weight_j, dtype=float)
    total = float(weight.sum())
    if not total:
        return ErrorRate(0, 0.0, float("nan"), 0.0, 1.0, 0.0, 1.0)
    share, worth = float(wrong @ weight) / total, total**2 / float(weight @ weight)
    gain = 1.0 if risk_j is None else _gain(wrong, weight / total, risk_j, worth)
    return _rate(len(wrong), float(wrong.sum()), share, worth, population, mass, gain)


def _gain(wrong_j: Floats, weight_j: Floats, risk_j: Floats, worth: float) -> float:
    """Return by how much less the share varies than over labels drawn without regard to their risk.

    In a block of labels with the risk r one draw varies by r (1 - r), and without blocks by share (1 - share). How
    steeply the true risk follows that of p is learnt from the checked labels themselves.
    """
    share = float(wrong_j @ weight_j)
    if wrong_j.min() == wrong_j.max():
        return 1.0
    # Late: few commands need it, and it takes long to load.
    from scipy.optimize import minimize

    x_j = logit(np.clip(risk_j, 1e-6, 1.0 - 1e-6))
    sign_j, off_j = 2.0 * wrong_j - 1.0, x_j - np.average(x_j, weights=weight_j)

    def penalised(at: Floats) -> float:
        # The logit of the risk is a + b x: a is free, b is drawn towards `SLOPE`.
        likelihood = (weight_j * worth) @ log_expit(sign_j * (at[0] + at[1] * off_j))
        return float((at[1] - SLOPE) ** 2 / (2.0 * SLOPE_SD**2) - likelihood)

    at = minimize(penalised, [float(logit(share)), SLOPE], tol=1e-9).x
    true_j = expit(at[0] + at[1] * off_j)
    return float(share * (1.0 - share) / (weight_j @ (true_j * (1.0 - true_j))))


def _rate(n: int, wrong: float, share: float, worth: float, total: float, mass: float, gain: float = 1.0) -> ErrorRate:
    """Return the share with its interval; `worth` is how many equally weighted checks there are (Kish 1965)."""
    unseen = max(1.0 - n / total, 0.0)
    if unseen < 1e-9:
        return ErrorRate(n, wrong, share, share, share, share, share)
    # Sampling without replacement is worth that many draws with it.
    draws = np.asarray(worth / unseen)
    low, high = (float(end) for end in jeffreys_interval(share * draws * gain, draws * gain, mass))
    at_least, bound = (float(end) for end in exact_interval(share * draws, draws, mass))
    return ErrorRate(n, wrong, share, low if share > 0.0 else 0.0, high if share < 1.0 else 1.0, at_least, bound)


def checks_needed(share: float, tolerance: float, *, mass: float = 0.9) -> int | None:
    """Return how many random checks would show that no more than `tolerance` is wrong, if `share` is.

    None where the share is not below the tolerance, or where it would take more than anybody checks.

    Examples
    --------
    >>> checks_needed(0.05, 0.10)
    107
    >>> checks_needed(0.12, 0.10) is None
    True
    """
    too_few, enough = 0, MOST_CHECKS + 1
    while enough - too_few > 1:
        n = (too_few + enough) // 2
        if exact_interval(share * n, n, mass)[1] <= tolerance:
            enough = n
        else:
            too_few = n
    return enough if enough <= MOST_CHECKS else None


class Checks(NamedTuple):
    """The checked labels of a run.

    Parameters
    ----------
    error
        The share of the consensus' labels that is wrong.
    worst
        The same if every label on a row left blank is wrong.
    blank
        Rows of the sheets that have no answer.
    rows
        The checked items of a spot check: question, item, truth, label, weight. None where gold was used.
    """

    error: ErrorRate
    worst: ErrorRate
    blank: int = 0
    rows: pl.DataFrame | None = None


def checks_of(run: Run) -> Checks | None:
    """Return the checked labels of a run: by spot checks, else by gold; None where nothing was checked.

    Gold checks nothing where it was used as evidence, and where a column was only guessed to be gold: nobody said that
    its answers are right.
    """
    rows = spot_checks(run).filter(pl.col("purpose") == "measure")
    rows = rows.filter(pl.col("answer").is_not_null().any().over("sheet"))
    if rows.height:
        return _by_hand(run, rows)
    is_evidence = run.manifest.get("use_gold") or "gold" in run.manifest["guessed"]
    if is_evidence or "gold" not in run.table("audit")["reference"]:
        return None
    n_all, n_gold, squares, wrong = gold_sums(run).select(pl.col("items", "n", "squares", "wrong").sum()).row(0)
    if not n_gold:
        return None
    error = _rate(round(n_gold), wrong, wrong / n_gold, n_gold**2 / squares, n_all, run.interval)
    return Checks(error, error)


def gold_sums(run: Run) -> pl.DataFrame:
    """Count, by question and part, all labels, those with gold (`n`; `squares` of their weights) and the wrong ones."""
    weight = pl.col("count")
    with_gold, is_wrong = weight.filter(pl.col("gold").is_not_null()), pl.col("gold") != pl.col("label")
    sums = run.scan("items").group_by("question", "part").agg(
        items=weight.sum(), n=with_gold.sum(), squares=with_gold.pow(2).sum(), wrong=weight.filter(is_wrong).sum()
    )  # fmt: skip
    return sums.sort("question", "part").collect(engine="streaming")


def how_wrong(run: Run) -> pl.Expr:
    """Return whether a label is wrong by its `truth`: 0 or 1, and of the levels of a scale ½ within one level."""
    wrong = (pl.col("truth") != pl.col("label")).cast(pl.Float64)
    for question in run.questions:
        if question.levels:
            ranks: dict[str, Any] = {"old": question.labels, "new": range(len(question.labels)), "default": None}
            levels_off = pl.col("label").replace_strict(**ranks) - pl.col("truth").replace_strict(**ranks)
            here = pl.col("question") == question.name
            wrong = pl.when(here).then(levels_off.abs().clip(0, 2) / 2.0).otherwise(wrong)
    return wrong


def _by_hand(run: Run, rows: pl.DataFrame) -> Checks:
    """Return the answers of the sheets that measure, with the weights of all of them together."""
    items = run.table("items", where=pl.col("item").is_in(rows["item"].unique().implode()))
    items = items.select(*KEYS, "published", risk=wrong_by(run), now="label")
    rows = rows.rename({"answer": "truth"}).join(items, on=KEYS, how="inner", maintain_order="left")
    # Of a run whose labels are the answers, what was wrong before.
    rows = rows.with_columns(label=pl.coalesce("label", "now"))
    # A sheet counts as often as it has rows, and within it each row by its block.
    weight = pl.col("weight") / pl.col("weight").mean().over("sheet")
    answered, every = rows.drop_nulls("truth").with_columns(weight), rows.with_columns(weight)
    # Each item of a sheet was drawn from a block of its own unless weights are small.
    in_blocks = bool((rows.group_by("sheet").agg(pl.col("weight").min())["weight"] >= 1.0 / MOST_CHECKED).all())
    # A row is left blank where the answer is hard: nobody knows that its label is right.
    error, worst = (
        error_rate(sheet.select(wrong).to_series().to_numpy(), n_labels(run), weight_j=sheet["weight"].to_numpy(),
                   risk_j=sheet["risk"].to_numpy() if in_blocks and sheet is answered else None, mass=run.interval)
        for sheet, wrong in ((answered, how_wrong(run)), (every, pl.col("truth").ne_missing(pl.col("label"))))
    )  # fmt: skip
    return Checks(error, worst, every.height - answered.height, answered)


def checked_frame(run: Run) -> pl.DataFrame:
    """Return what the checks found of the consensus, of each rule and of each annotator: `CHECKED`.

    Annotators come worst first, those who are surely wrong most often; their intervals are exact.
    """
    checks = checks_of(run)
    if checks is None:
        return pl.DataFrame(schema=CHECKED)
    error, labels = checks.error, None
    rows = [("consensus", "consensus", error.checked, error.wrong, error.value, error.low, error.high)]
    names = run.table("audit_rules")["rule"].unique(maintain_order=True).to_list()
    if checks.rows is None:
        rates = pooled_rates(run, "gold")
        for name, row in ((name, rates[name, "disagreement"]) for name in names if (name, "disagreement") in rates):
            # Where gold knows all labels, there is no interval.
            no_ends = error.checked >= n_labels(run) or row["low"] is None
            low, high = (row["value"],) * 2 if no_ends else (row["low"], row["high"])
            rows.append(("rule", name, row["n"], row["value"] * row["n"], row["value"], low, high))
    else:
        best = (run.manifest.get("best_rule") or {}).get("rule")
        rows += _rules(run, checks.rows, filter(None, dict.fromkeys([*names, best])))
        labels = checks.rows.lazy().select(*KEYS, "truth", count=pl.lit(1.0))
    wrong = (pl.col("n") - pl.col("right")).round(DECIMALS)
    people = annotator_shares(run, labels).filter(question="").select(
        kind=pl.lit("annotator"), name="annotator", checked="n", wrong=wrong, value=1.0 - pl.col("right") / pl.col("n"),
        low=1.0 - pl.col("high"), high=1.0 - pl.col("low"),
    )  # fmt: skip
    worst_first = people.sort(-pl.col("low").round(DECIMALS), maintain_order=True)
    return pl.concat([pl.DataFrame(rows, schema=CHECKED, orient="row"), worst_first])


def _rules(run: Run, rows: pl.DataFrame, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Yield what each hard rule got wrong on the checked items that have votes: rows of `CHECKED`."""
    votes = run.table("votes", where=pl.col("item").is_in(rows["item"].unique().implode()))
    parts = [(question, rows.filter(question=question.name)) for question in run.questions]
    weight_j = np.concatenate([part["weight"].to_numpy() for _, part in parts])
    for name in names:
        try:
            rule = rule_named(name)
        except Exception:
            # A rule of a package that is not installed here.
            continue
        wrong_j = np.concatenate([_wrong_of(rule, question, part, votes) for question, part in parts])
        labelled = ~np.isnan(wrong_j)
        if not rule.soft and labelled.any():
            rate = error_rate(wrong_j[labelled], n_labels(run), weight_j=weight_j[labelled], mass=run.interval)
            yield "rule", name, rate.checked, rate.wrong, rate.value, rate.low, rate.high


def _wrong_of(rule: Rule, question: Question, rows: pl.DataFrame, votes: pl.DataFrame) -> Floats:
    """Return how probably the rule's label is wrong, item by item; NaN where it says nothing."""
    labels = list(question.labels)
    if rule.sees == PUBLISHED.sees:
        return (rows["published"] != rows["truth"]).cast(pl.Float64).to_numpy()
    truth_j = positions(rows["truth"], labels, default=UNKNOWN)
    cast = votes.filter(question=question.name).join(rows.select("item").with_row_index("at"), on="item")
    counts_jk = np.zeros((rows.height, len(labels)), dtype=np.int64)
    np.add.at(counts_jk, (cast["at"].to_numpy(), positions(cast["label"], labels, default=0)), 1)
    if question.positive is not None:
        positive = labels.index(question.positive)
        return np.asarray(np.abs(rule.scores(counts_jk, positive) - (truth_j == positive)))
    if rule.name != PLURALITY.name:
        return np.full(rows.height, np.nan)
    score_jk = np.stack([rule.scores(counts_jk, k) for k in range(len(labels))], axis=1)
    return np.asarray(1.0 - score_jk[np.arange(rows.height), truth_j])


# --- Can these labels be shipped? ------------------------------------------------------------------------------------

Answer = Literal["ship", "ship soft", "not yet", "unknown"]
STATUS = {"ship": "ready", "ship soft": "care", "not yet": "stop"}

ENOUGH = 20
"""Checked labels below which nothing shows that p admits its errors."""


@dataclass(frozen=True)
class Verdict:
    """The answer to "can I ship these labels?".

    Parameters
    ----------
    answer
        "ship", "ship soft" (as probabilities), "not yet", or "unknown": nothing was checked.
    title
        The answer in a few words.
    text
        In a few sentences: what is known, and what to do next.
    status
        How it is coloured: "ready", "care", "stop" or "unknown".
    error
        The share of wrong labels, where labels were checked.
    checked_by
        "spot check", "gold", or empty.
    tolerance
        The share of wrong labels that is tolerated.
    """

    answer: Answer
    title: str
    text: str
    status: str
    error: ErrorRate | None
    checked_by: str
    tolerance: float


def verdict_of(run: Run) -> Verdict:
    """Say whether the labels of a run can be shipped, and how."""
    checks, tolerance = checks_of(run), float(run.manifest["options"]["verdict"]["tolerance"])
    if checks is None:
        n_high = sum(finding.severity == "high" for finding in cautions(run))
        first = f"{many(n_high, 'warning')} to settle first" if n_high else "check some labels"
        text = (
            f"Votes cannot show mistakes that annotators share: check {f'{ROWS}' if n_labels(run) > ROWS else 'the'} "
            "labels. Fill in spot-check.csv of the run folder (in Python: run.spot_check). "
            f"{needed_sentence(run, tolerance)}"
        )
        title, status = f"Votes alone cannot tell: {first}.", "stop" if n_high else "unknown"
        return Verdict("unknown", title, text, status, None, "", tolerance)
    claimed = mean_over_items(run, wrong_by(run))
    answer = answer_for(checks.worst, tolerance, claimed)
    title, *sentences = _checks_say(run, checks, tolerance, claimed, answer)
    by = "gold" if checks.rows is None else "spot check"
    return Verdict(answer, title, " ".join(sentences), STATUS[answer], checks.error, by, tolerance)


def needed_sentence(run: Run, tolerance: float) -> str:
    """Say how many random checks show that no more is wrong than is tolerated: if none is, and if half as many are."""
    n_items = n_labels(run)
    none, if_half = (checks_needed(wrong, tolerance, mass=run.interval) or n_items for wrong in (0.0, tolerance / 2))
    return (
        f"To show that at most {100 * tolerance:g}% are wrong takes {min(none, n_items):,} checks if none is found "
        f"wrong, {min(if_half, n_items):,} if {50 * tolerance:g}% are."
    )


def n_labels(run: Run) -> int:
    """Count the labels of a run: items, over all questions."""
    return round(float(sum(fit["items_counted"] for fit in run.manifest["questions"])))


def answer_for(error: ErrorRate, tolerance: float, claimed: float) -> Literal["ship", "ship soft", "not yet"]:
    """Decide by the checked labels: the better, the more is tolerated and the fewer are wrong.

    Parameters
    ----------
    error
        The share of wrong labels.
    tolerance
        The share of wrong labels that is tolerated: hard labels must be shown to be within it.
    claimed
        Share of wrong labels that p itself claims: labels may go out as probabilities where enough were checked and
        these do not show more errors than p admits.

    Examples
    --------
    >>> few, more = (error_rate([1] * k + [0] * (50 - k), 1_000) for k in (1, 8))
    >>> answer_for(few, 0.1, 0.02), answer_for(more, 0.1, 0.15), answer_for(more, 0.1, 0.05)
    ('ship', 'ship soft', 'not yet')
    """
    if error.bound <= tolerance:
        return "ship"
    enough = error.checked >= ENOUGH or error.at_least == error.bound
    return "ship soft" if enough and claimed >= error.at_least else "not yet"


def _checks_say(run: Run, checks: Checks, tolerance: float, claimed: float, answer: Answer) -> Iterator[str]:
    """Yield the title, then what was found, what it rests on, and whether more checks would help."""
    error, width = checks.error, checks.error.high - checks.error.low
    blank = f"{many(checks.blank, 'row')} of the sheet {'is' if checks.blank == 1 else 'are'} blank"
    too_many = "too many are wrong" if error.value >= tolerance else "too few labels were checked"
    yield {
        "ship": f"Ship: at most {100 * tolerance:g}% of the labels are wrong.",
        "ship soft": "Ship soft: publish p, not hard labels.",
        "not yet": f"Not yet: {blank if error.bound <= tolerance else too_many}.",
    }[answer]
    by_hand = checks.rows is not None
    low, high = (_percent(end, width) for end in (error.low, error.high))
    interval = f" ({run.interval:.0%} interval {low.rstrip('%')}–{high})" if width else " of all labels"
    yield (
        f"{error.wrong:,.0f} of {error.checked:,} labels {'checked' if by_hand else 'with a known answer'} are wrong: "
        f"{_percent(error.value, width)}{interval}; tolerated: {100 * tolerance:g}%."
    )
    is_part, has_levels = not by_hand and error.checked < n_labels(run), any(part.levels for part in run.questions)
    notes = {
        "That counts if the items with gold labels are a random part of all.": is_part,
        "A label within one level of the answer counts as half wrong.": by_hand and has_levels,
        f"{blank}: if these are the hard ones, more is wrong.": checks.blank > 0,
        f"By p itself {_percent(claimed)} are expected wrong.": error.value > tolerance,
    }
    yield from (note for note, holds in notes.items() if holds)
    if answer != "ship" and error.value <= tolerance < error.bound:
        n_further = (checks_needed(error.value, tolerance, mass=run.interval) or 0) - error.checked
        hint = f"If the share stays as it is, about {n_further:,} more checks would settle it."
        yield hint if n_further > 0 else "It is too near to the tolerance to be settled by checking."
    if by_hand and run.manifest["use_gold"]:
        yield "That was before: here checked labels are the answers."


def _percent(share: float, width: float = 1.0) -> str:
    """Write a share in per cent, with a decimal where it is small or its interval narrow."""
    return f"{share:.1%}" if 0 < share < 0.02 or width < 0.02 else f"{share:.0%}"
