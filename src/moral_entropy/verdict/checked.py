"""Run → its checked labels: how many are wrong, of the consensus, of every rule and of every annotator.

Labels are checked by a spot check or, where none was made, by gold. Sheets of several spot checks add up; those that
were limited to a domain count in that domain's proportion, those made to repair labels measure nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from moral_entropy.names import NO_DOMAIN
from moral_entropy.rules.intervals import exact_interval
from moral_entropy.rules.rules import PLURALITY, PUBLISHED, Rule, rule_named
from moral_entropy.runs.run import Question, Run
from moral_entropy.ties import DECIMALS
from moral_entropy.verdict.error_rate import Belief, ErrorRate, Tally, error_rate, tally
from moral_entropy.verdict.rates import pooled_rate, wrong_by
from moral_entropy.verdict.sheet import KEYS, from_blocks, spot_checks
from moral_entropy.votes.table import Floats, Ints

CHECKED = pl.Schema(
    {
        "kind": pl.String(),
        "name": pl.String(),
        "checked": pl.Int64(),
        "wrong": pl.Float64(),
        "value": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
    }
)


@dataclass(frozen=True, eq=False)
class Checks:
    """The checked labels of a run.

    Parameters
    ----------
    by
        "spot check" or "gold".
    found
        Of the consensus' labels.
    population
        How many labels there are of which the checked ones are a part.
    blank
        Rows of the sheets that have no answer.
    domains
        Domains that the checks are about, where not about all.
    rows
        The checked items of a spot check: question, item, truth, label, weight. Empty where gold was used.
    """

    by: Literal["spot check", "gold"]
    found: Tally
    population: float
    blank: int = 0
    domains: tuple[str, ...] = ()
    rows: pl.DataFrame | None = None

    def error(self, prior: Belief | None, mass: float) -> ErrorRate:
        """Return the share of wrong labels of the consensus."""
        return error_rate(self.found, self.population, prior=prior, mass=mass)


def checks_of(run: Run) -> Checks | None:
    """Return the checked labels of a run: by spot checks, else by gold; None where nothing was checked."""
    return spot_checks_of(run) or gold_checks_of(run)


def gold_checks_of(run: Run) -> Checks | None:
    """Count the labels that gold says are wrong; None where there is no gold, or where it was used as evidence."""
    if run.manifest.get("use_gold"):
        return None
    known, weight = pl.col("gold").is_not_null(), pl.col("count")
    wrong = known & (pl.col("gold") != pl.col("label"))
    sums = run.scan("items").select(
        all=weight.sum(),
        known=weight.filter(known).sum(),
        squares=weight.filter(known).pow(2).sum(),
        wrong=weight.filter(wrong).sum(),
    )
    row = sums.collect(engine="streaming").row(0, named=True)
    if not row["known"]:
        return None
    share = row["wrong"] / row["known"]
    found = Tally(round(row["known"]), row["wrong"], share, row["known"] ** 2 / row["squares"])
    return Checks("gold", found, row["all"])


def spot_checks_of(run: Run) -> Checks | None:
    """Return the answers of the sheets that measure, with the weights of all of them together; None without any."""
    asked = spot_checks(run).filter(pl.col("purpose") == "measure")
    answered = asked.drop_nulls("answer")
    if answered.is_empty():
        return None
    sheets = answered["sheet"].unique()
    blank = asked.filter(pl.col("sheet").is_in(sheets.implode()), pl.col("answer").is_null()).height
    items = run.table("items", where=pl.col("item").is_in(answered["item"].unique().implode()))
    items = items.with_columns(risk=wrong_by(run, "p"))
    rows = answered.rename({"answer": "truth", "domain": "limit"}).join(
        items.select(*KEYS, "domain", "label", "published", "risk"), on=KEYS, how="inner", maintain_order="left"
    )
    in_blocks = all(from_blocks(mine["weight"].to_numpy()) for _, mine in rows.group_by("sheet"))
    # A sheet counts as often as it has answers, and within it each row by its block.
    rows = rows.with_columns(weight=pl.col("weight") / pl.col("weight").mean().over("sheet"))
    counts = _items_by_domain(run)
    domains: tuple[str, ...] = ()
    if rows["limit"].is_not_null().any():
        rows, domains = _by_domain(rows, counts)
    population = counts["items"].sum() if not domains else counts.filter(pl.col("domain").is_in(domains))["items"].sum()
    wrong = (rows["truth"] != rows["label"]).to_numpy()
    found = tally(wrong, rows["weight"].to_numpy(), rows["risk"].to_numpy() if in_blocks else None)
    return Checks("spot check", found, float(population), blank, domains, rows)


def _items_by_domain(run: Run) -> pl.DataFrame:
    domain = pl.col("domain").fill_null(NO_DOMAIN)
    return run.scan("items").group_by(domain=domain).agg(items=pl.col("count").sum()).collect(engine="streaming")


def _by_domain(rows: pl.DataFrame, counts: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Let every domain count as often as it has items; name the domains where some have no checks."""
    rows = rows.with_columns(pl.col("domain").fill_null(NO_DOMAIN))
    rows = rows.join(counts, on="domain", how="left", maintain_order="left").with_columns(
        weight=pl.col("weight") * pl.col("items") / pl.col("weight").sum().over("domain")
    )
    checked = tuple(sorted(rows["domain"].unique().to_list()))
    return rows.drop("items"), checked if len(checked) < counts.height else ()


def checked_frame(run: Run, prior: Belief | None = None) -> pl.DataFrame:
    """Return what the checks found of the consensus, each rule and each annotator: `CHECKED`.

    Annotators and rules are compared with the checked labels alone; the consensus also with crowds alike. The
    intervals of annotators against gold are exact. Annotators come worst first: those who are surely wrong most often.
    """
    checks = checks_of(run)
    if checks is None:
        return pl.DataFrame(schema=CHECKED)
    mass = run.interval
    rows = [("consensus", "consensus", checks.error(prior, mass))]
    if checks.rows is not None:
        votes = _votes_on(run, checks.rows)
        rows += [("rule", name, error_rate(found, checks.population, mass=mass))
                 for name, found in _rules(run, checks.rows, votes)]  # fmt: skip
        people = [("annotator", name, error_rate(found, math.inf, mass=mass)) for name, found in _people(votes)]
        rows += sorted(people, key=lambda one: -round(one[2].low, DECIMALS))
    else:
        rows += [("rule", name, one) for name, one in _rules_against_gold(run, checks)]
        people = [("annotator", name, one) for name, one in annotators_against_gold(run)]
        rows += sorted(people, key=lambda one: -round(one[2].low, DECIMALS))
    plain = [(kind, name, one.checked, one.wrong, one.value, one.low, one.high) for kind, name, one in rows]
    return pl.DataFrame(plain, schema=CHECKED, orient="row")


def _votes_on(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the votes on the checked items, with the truth."""
    if not run.has("votes"):
        return pl.DataFrame(schema={"question": pl.String, "item": rows.schema["item"], "annotator": pl.String,
                                    "label": pl.String, "truth": pl.String, "weight": pl.Float64})  # fmt: skip
    votes = run.table("votes", where=pl.col("item").is_in(rows["item"].unique().implode()))
    return votes.join(rows.select(*KEYS, "truth", "weight"), on=KEYS, how="inner", maintain_order="left")


def _people(votes: pl.DataFrame) -> Iterator[tuple[str, Tally]]:
    for (who,), mine in sorted(votes.group_by("annotator"), key=lambda pair: str(pair[0][0])):
        if who is not None:
            yield str(who), tally((mine["label"] != mine["truth"]).to_numpy(), mine["weight"].to_numpy())


def _rules(run: Run, rows: pl.DataFrame, votes: pl.DataFrame) -> Iterator[tuple[str, Tally]]:
    """Yield what each hard rule got wrong on the checked items that have votes."""
    names = run.table("audit_rules")["rule"].unique(maintain_order=True).to_list()
    best = (run.manifest.get("best_rule") or {}).get("rule")
    for name in dict.fromkeys([*names, *([best] if best else [])]):
        rule = _known_rule(name)
        if rule is None:
            continue
        wrong, weight = [], []
        for question in run.questions:
            mine = rows.filter(question=question.name)
            if (found := _wrong_of(rule, question, mine, votes)) is not None:
                wrong.append(found)
                weight.append(mine["weight"].to_numpy())
        if wrong:
            wrong_j, weight_j = np.concatenate(wrong), np.concatenate(weight)
            answered = ~np.isnan(wrong_j)
            yield name, tally(wrong_j[answered], weight_j[answered])


def _known_rule(name: str) -> Rule | None:
    try:
        rule = rule_named(name)
    except Exception:
        return None
    return None if rule.soft else rule


def _wrong_of(rule: Rule, question: Question, rows: pl.DataFrame, votes: pl.DataFrame) -> Floats | None:
    """Return how probably the rule's label is wrong, item by item; NaN where it says nothing."""
    labels = list(question.labels)
    truth_j = np.array([labels.index(label) for label in rows["truth"].to_list()], dtype=np.int64)
    at = np.arange(len(truth_j))
    if rule.sees == PUBLISHED.sees:
        said = rows["published"].to_list()
        return np.array([np.nan if one is None else float(one != labels[t]) for one, t in zip(said, truth_j)])  # noqa: B905
    counts_jk = _counts(rows, votes.filter(question=question.name), labels)
    if question.positive is None:
        if rule.name != PLURALITY.name:
            return None
        score_jk = np.stack([rule.scores(counts_jk, k) for k in range(len(labels))], axis=1)
        return np.asarray(1.0 - score_jk[at, truth_j])
    positive = labels.index(question.positive)
    yes_j = rule.scores(counts_jk, positive)
    return np.where(truth_j == positive, 1.0 - yes_j, yes_j)


def _counts(rows: pl.DataFrame, votes: pl.DataFrame, labels: list[str]) -> Ints:
    places = rows.select("item").with_row_index("at")
    found = votes.join(places, on="item", how="inner")
    counts_jk = np.zeros((rows.height, len(labels)), dtype=np.int64)
    code = found["label"].replace_strict(labels, range(len(labels)), return_dtype=pl.Int64).to_numpy()
    np.add.at(counts_jk, (found["at"].to_numpy(), code), 1)
    return counts_jk


def _rules_against_gold(run: Run, checks: Checks) -> Iterator[tuple[str, ErrorRate]]:
    """Yield what the audit found against gold; where gold knows all labels, without an interval."""
    all_known = checks.found.checked >= checks.population
    for name in run.table("audit_rules")["rule"].unique(maintain_order=True).to_list():
        row = pooled_rate(run, name, "disagreement", "gold")
        if row is not None:
            ends = (None if all_known else row[bound] for bound in ("low", "high"))
            low, high = (row["value"] if end is None else end for end in ends)
            yield name, ErrorRate(row["n"], row["value"] * row["n"], row["value"], low, high, high)


def annotators_against_gold(run: Run) -> Iterator[tuple[str, ErrorRate]]:
    """Yield how many of every annotator's votes gold says are wrong, over all questions, with an exact interval."""
    known = run.annotators.filter(pl.col("gold_votes") > 0)
    right = pl.col("gold_accuracy") * pl.col("gold_votes")
    counted = known.group_by("annotator", maintain_order=True).agg(right=right.sum(), n=pl.col("gold_votes").sum())
    right_a, n_a = counted["right"].to_numpy(), counted["n"].cast(pl.Float64).to_numpy()
    low_a, high_a = exact_interval(n_a - right_a, n_a, run.interval)
    for name, wrong, n, low, high in zip(
        counted["annotator"].to_list(), n_a - right_a, n_a, low_a, high_a, strict=True
    ):
        if name is not None:
            yield (
                str(name),
                ErrorRate(round(n), round(wrong, DECIMALS), wrong / n, float(low), float(high), float(high)),
            )
