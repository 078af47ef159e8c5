"""What should make a reader doubt a run: warnings by severity, each with its meaning and what to do.

Takes a run and the sums of its items, gives a ranked list. Finds nothing new: everything is in the run folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from moral_entropy.report.validation import MEANINGS, findings_in, unsaid_alarms
from moral_entropy.runs.run import Run
from moral_entropy.validate.finding import Finding
from moral_entropy.validate.verdict import about, titled

Severity = Literal["high", "medium", "low"]
RANK: dict[str, int] = {"high": 0, "medium": 1, "low": 2}

THIN, VERY_THIN = 2.0, 1.5
SURELY_BELOW_CHANCE = 0.95
DOMINATES = 0.4
NOTICEABLE, MANY = 0.001, 0.01
POORLY_CALIBRATED, BADLY_CALIBRATED = 0.1, 0.2
BEHIND = 0.02
DROPPED = 0.05

COVERED = ("the climb used", "the mode is flat", "votes an item. With fewer", "all votes are one annotator's")
"""Phrases of warnings in the manifest that a caution here says better."""


@dataclass(frozen=True)
class Caution:
    """One warning.

    Parameters
    ----------
    severity
        "high": do not ship before this is settled; "medium": say so when you ship; "low": good to know.
    title
        What was seen, with figures.
    meaning
        Why it matters.
    action
        What to do.
    """

    severity: Severity
    title: str
    meaning: str
    action: str


def cautions(run: Run, sums: pl.DataFrame) -> list[Caution]:
    """List what should make a reader doubt, worst first.

    Parameters
    ----------
    run
        The run.
    sums
        Of its items, see `item_sums`.
    """
    alarms = [finding for finding in findings_in(run) if finding.alarms]
    found = [
        *_climbs(run),
        *_curvature(run),
        *_thin(run, sums),
        *_against(sums),
        *_below_chance(run),
        *_dominant(run),
        *_calibration(run),
        *_behind(run),
        *_input(run),
        *_validation(alarms),
        *_others(run, alarms),
    ]
    return sorted(found, key=lambda caution: RANK[caution.severity])


def _climbs(run: Run) -> Iterator[Caution]:
    failed = _fits(run, lambda fit: not fit["converged"])
    if failed:
        yield Caution(
            "high",
            f"The fit of {_listed(failed)} did not converge",
            "The climb stopped before the top, so p and everything made from it may still move.",
            "Raise --max-passes, or look at annotators with very few votes.",
        )


def _curvature(run: Run) -> Iterator[Caution]:
    flat = _fits(run, lambda fit: fit["curvature"]["positive_definite"] is False)
    if flat:
        yield Caution(
            "medium",
            f"The mode of {_listed(flat)} is flat in some direction",
            "The votes do not settle every annotator's error rates; intervals along that direction are a guess.",
            "Collect more votes per annotator, or state firmer priors with --prior-confusion.",
        )
    if not run.manifest["draws"]:
        yield Caution(
            "medium",
            "No posterior draws were asked for",
            "There are no intervals and no split of the entropy: a figure here may be firm or a guess.",
            "Run the audit again without --draws 0.",
        )


def _thin(run: Run, sums: pl.DataFrame) -> Iterator[Caution]:
    per_item = {row["question"]: row["votes"] / row["items"] for row in sums.iter_rows(named=True) if row["items"]}
    thin = {name: votes for name, votes in per_item.items() if votes < THIN}
    if thin:
        least = min(thin.values())
        yield Caution(
            "high" if least < VERY_THIN else "medium",
            f"Thin data: {least:.2f} votes an item on {_listed(thin)}",
            "With fewer than two votes an item the prior decides much of the answer, and p can be confident and wrong.",
            "Audit again under other priors (--prior-prevalence) and compare; report both, or collect second votes.",
        )
    alone = _fits(run, lambda fit: fit["annotators"] == 1) if not run.manifest["anonymous"] else []
    if alone:
        yield Caution(
            "high",
            f"All votes on {_listed(alone)} are one annotator's",
            "Nothing tells that annotator's errors from the truth; the answer is the prior's.",
            "Have a second annotator label some of the same items.",
        )


def _against(sums: pl.DataFrame) -> Iterator[Caution]:
    rows = sums.filter(pl.col("against") > NOTICEABLE * pl.col("items")).sort(
        "against", descending=True, maintain_order=True
    )
    if rows.is_empty():
        return
    worst = rows.row(0, named=True)
    share = worst["against"] / worst["items"]
    yield Caution(
        "high" if share > MANY else "medium",
        f"Votes overruled: on {worst['against']:,.0f} items of {worst['question']} ({share:.1%}) nobody voted for the "
        "consensus label" + (f", also on {_listed(rows['question'][1:])}" if rows.height > 1 else ""),
        "That needs a prevalence above one half or annotators worse than chance: often a mode whose labels switched.",
        "Look at these items below (filter: votes overruled) and at annotators below chance; state a "
        "prevalence you can defend with --prior-prevalence.",
    )


def _below_chance(run: Run) -> Iterator[Caution]:
    summary = run.table("annotator_summary")
    below = summary.filter(pl.col("below_chance") > SURELY_BELOW_CHANCE)
    if below.is_empty():
        return
    who = below["annotator"].cast(pl.String).unique(maintain_order=True)
    share = int(below["n_votes"].sum()) / max(int(summary["n_votes"].sum()), 1)
    n_all = summary["annotator"].n_unique()
    yield Caution(
        "high" if share > DOMINATES / 4 else "medium",
        f"{len(who):,} of {n_all:,} annotators look worse than chance on some question ({_listed(who)}; "
        f"{share:.1%} of the votes)",
        "Their votes count against what they say. Either they misread the scale, or the labels switched for them.",
        "Read some of their votes; correct a reversed scale in the data, or drop them and audit again.",
    )


def _dominant(run: Run) -> Iterator[Caution]:
    votes = run.scan("annotators").select("question", "part", "annotator", "n_votes").unique().collect()
    by_one = votes.group_by("annotator").agg(pl.col("n_votes").sum())
    by_one = by_one.sort("n_votes", "annotator", descending=[True, False])
    total = by_one["n_votes"].sum()
    if run.manifest["anonymous"] or by_one.height < 3 or not total:
        return
    first, n_votes = by_one.row(0)
    # Of three annotators one third each is no dominance.
    if n_votes / total > max(DOMINATES, 1.5 / by_one.height):
        yield Caution(
            "medium",
            f"One annotator dominates: {first} gave {n_votes / total:.0%} of all votes",
            "The consensus leans on one person's reading, and rates of the others are measured against it.",
            "Audit again without this annotator and compare; spread the next votes over others.",
        )


def _calibration(run: Run) -> Iterator[Caution]:
    ece = run.scan("audit").filter(rule="consensus", reference="gold", metric="ece", question="(all)", domain="(all)")
    for value in ece.select("value").drop_nulls().collect().to_series().to_list()[:1]:
        if value > POORLY_CALIBRATED:
            yield Caution(
                "high" if value > BADLY_CALIBRATED else "medium",
                f"p is off by {value:.2f} on average against the gold labels (expected calibration error)",
                "Votes are not independent given the label, as the model assumes, so p is too sure of itself.",
                "Do not read p as a frequency; rank by it, or recalibrate it on the gold labels.",
            )


def _behind(run: Run) -> Iterator[Caution]:
    """The consensus against gold, beside the rules it would replace."""
    wrong = run.table("audit").filter(
        reference="gold", metric="disagreement", question="(all)", domain="(all)", label="(all)"
    )
    shares = dict(wrong.select("rule", "value").drop_nulls().iter_rows())
    usual = shares.get("plurality", shares.get("majority"))
    if usual is not None and shares.get("consensus", 0.0) > usual + BEHIND:
        yield Caution(
            "high",
            f"the consensus misses {shares['consensus']:.1%} of the gold labels, the plain vote {usual:.1%}",
            "Annotators err together, or under another guideline than the gold labels; the model takes their agreement "
            "for accuracy.",
            "Trust gold where you have it; audit groups of annotators on their own, or ship vote shares instead.",
        )


def _input(run: Run) -> Iterator[Caution]:
    manifest = run.manifest
    dropped, rows = sum(manifest["dropped"].values()), max(manifest["rows"], 1)
    if dropped / rows > DROPPED:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in manifest["dropped"].items())
        yield Caution(
            "low",
            f"{dropped:,} of {rows:,} rows were left out ({reasons})",
            "If they are not missing at random, the rates of those who left blanks are off.",
            "Check that the columns were read as you meant; they are listed under Method.",
        )
    if manifest["items_without_votes"]:
        yield Caution(
            "low",
            f"{manifest['items_without_votes']:,} items have no vote",
            "Their p is the prevalence, and no rule on votes says anything about them.",
            "Leave them out of what you publish, or have them annotated.",
        )


def _validation(alarms: Sequence[Finding]) -> Iterator[Caution]:
    """One caution a side of the validation: its worst finding, and how many more there are."""
    for side, found in unsaid_alarms(alarms).items():
        worst, more = found[0], len(found) - 1
        said = f"{about(worst)}: {worst.text.rstrip('.')}".removeprefix(": ")
        yield Caution(
            "high" if worst.level == "bad" else "medium",
            f"{titled(side)}: {said}" + (f" (and {more:,} more like it)" if more else ""),
            MEANINGS.get(side, "A check of the posterior raised doubt."),
            "See “Is the yardstick straight?” below for all findings and what they concern.",
        )


def _others(run: Run, alarms: Sequence[Finding]) -> Iterator[Caution]:
    """Whatever else the run warned of, questions with the same warning together."""
    questions_of: dict[str, list[str]] = {}
    # The audit warns of its own alarms; they are said above already.
    said = (*COVERED, *(finding.text for finding in alarms if finding.text))
    for message in run.manifest["warnings"]:
        if any(phrase in message for phrase in said):
            continue
        question, colon, text = message.partition(": ")
        known = bool(colon) and any(question.startswith(one.name) for one in run.questions)
        questions_of.setdefault(text if known else message, []).extend([question] if known else [])
    for text, questions in questions_of.items():
        lead = f"{_listed(questions)}: " if questions else ""
        if "another mode" in text:
            yield Caution(
                "medium",
                f"{lead}the votes hardly tell two answers apart",
                text.partition(". ")[0].capitalize() + ".",
                "State priors you can defend (--prior-prevalence, --prior-confusion), and report what the other says.",
            )
            continue
        first, _, rest = text.partition(". ")
        yield Caution("medium", lead + first, "The audit warned of this itself.", rest or "Look at the command's help.")


def _fits(run: Run, is_bad: Any) -> list[str]:
    found = [fit for fit in run.manifest["questions"] if is_bad(fit)]
    return [f"{fit['question']} ({fit['part']})" if fit["part"] else fit["question"] for fit in found]


def _listed(names: Any, most: int = 4) -> str:
    texts: Sequence[str] = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
