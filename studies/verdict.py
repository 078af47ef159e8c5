"""What can be known of the labels' errors? Crowds alike, and spot checks on sets with gold.

Usage: verdict.py [--data ../shared/data] [--draws 400] [--sheets 500] [--troubled 20] [--dry]. Learns how wrong labels
were from the mixed model's expected error, on every set with gold that is there, and writes it to
src/moral_entropy/verdict/data/crowds.json; then draws random sheets from every set, and from corpora with a trouble
made on purpose, and writes the tables of docs/evidence/verdict.md. What is said of a set was learnt without its family.
With --dry it only prints.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from false_alarms import FIRST_SEED, TROUBLES
from gold_sets import ALL_SETS, DATA, PANEL, ROOT, gold_votes
from page import put
from scipy.special import expit, logit

import moral_entropy
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.result import QuestionFit
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.ties import DECIMALS
from moral_entropy.verdict.crowds import unlike_others
from moral_entropy.verdict.error_rate import Belief, error_rate, tally
from moral_entropy.verdict.sheet import draw_blocks, from_blocks
from moral_entropy.verdict.verdict import TOLERANCE, answer_for
from moral_entropy.votes.table import Floats, Votes

PAGE = ROOT / "docs" / "evidence" / "verdict.md"
FACTS = ROOT / "src" / "moral_entropy" / "verdict" / "data" / "crowds.json"
MODELS = {"llmbar_natural", "trecrag24_9judges", PANEL}
FAMILIES = {"rte": "snow", "snow_temp": "snow", "web": "search", "S_Rel": "search"}
SIZES = (20, 50, 100)
TROUBLED_SHEET = 50
MASS = 0.9
FLAG, FLAG_SHARE = 0.05, 0.10
"""Expected error above which more than that share of the labels is likely wrong: chosen on fifty sets, among which are
these, where it had a sensitivity of .82 and a specificity of .89."""


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """A set with gold: what the fit expects, and which of its labels are wrong.

    Parameters
    ----------
    name, family
        The set, and the sets that are left out together with it.
    people
        Whether people voted; else language models.
    expected
        Expected error of the mixed model, over all items.
    claimed
        Expected error by the published p.
    sure_j, wrong_j
        Of the items with gold: how sure the published p is of its label, and whether that is wrong.
    """

    name: str
    family: str
    people: bool
    expected: float
    claimed: float
    sure_j: Floats
    wrong_j: Floats

    @property
    def error(self) -> float:
        """Share of wrong labels."""
        return float(self.wrong_j.mean())


def labelled(name: str, found: QuestionFit, several: bool) -> LabelledSet:
    """Take from a fit what is expected and what is wrong."""
    ballot, p_ik = found.ballot, found.p_ik
    known = ballot.gold_i >= 0
    return LabelledSet(
        name=f"{name}: {found.question}" if several else name,
        family=FAMILIES.get(name, name),
        people=name not in MODELS,
        expected=float(np.average(1.0 - found.summary.mean_ik.max(axis=1), weights=ballot.count_i)),
        claimed=float(np.average(1.0 - p_ik.max(axis=1), weights=ballot.count_i)),
        sure_j=p_ik.max(axis=1)[known],
        wrong_j=(found.label_i != ballot.gold_i)[known].astype(float),
    )


def read_sets(data: Path, draws: int) -> Iterator[LabelledSet]:
    """Fit every set that is there; no gold is used in a fit."""
    for name, votes in gold_votes(data, ALL_SETS):
        fits = fits_of(votes, draws)
        yield from (labelled(name, one, len(fits) > 1) for one in fits)


def read_troubled(corpora: int, draws: int) -> Iterator[LabelledSet]:
    """Fit corpora with one thing wrong, made on purpose: those of the study of alarms, whose truth is known."""
    for trouble in TROUBLES:
        print(f"  {trouble.name}", file=sys.stderr, flush=True)
        for seed in range(FIRST_SEED, FIRST_SEED + corpora):
            yield labelled(trouble.name, fits_of(trouble.make(seed), draws)[0], False)


def fits_of(votes: Votes, draws: int) -> tuple[QuestionFit, ...]:
    """Fit votes, whatever there is to warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return tuple(fit(votes, draws=draws).fits)


def line(sets: Sequence[LabelledSet], *, constant: bool) -> tuple[float, float]:
    """Fit logit error = intercept + slope · logit expected error; families count alike."""
    x, y, weight = _points(sets)
    if constant or len(sets) < 3:
        return float(np.average(y, weights=weight)), 0.0
    mean_x, mean_y = np.average(x, weights=weight), np.average(y, weights=weight)
    slope = float(
        np.average((x - mean_x) * (y - mean_y), weights=weight) / np.average((x - mean_x) ** 2, weights=weight)
    )
    return float(mean_y - slope * mean_x), slope


def _points(sets: Sequence[LabelledSet]) -> tuple[Floats, Floats, Floats]:
    size = {one.family: sum(other.family == one.family for other in sets) for one in sets}
    x = logit(np.clip([one.expected for one in sets], 1e-3, 0.5))
    # Half an error more and half a right one more, so that a set without errors has a logit.
    y = [logit((one.wrong_j.sum() + 0.5) / (len(one.wrong_j) + 1.0)) for one in sets]
    return np.asarray(x), np.asarray(y), np.array([1.0 / size[one.family] for one in sets])


def left_out(sets: Sequence[LabelledSet], *, constant: bool) -> Floats:
    """Return how far every set is from what the other families let one expect, in logits."""
    found = []
    for one in sets:
        intercept, slope = line([other for other in sets if other.family != one.family], constant=constant)
        x, y, _ = _points([one])
        found.append(float(y[0] - intercept - slope * x[0]))
    return np.array(found)


def spread(sets: Sequence[LabelledSet], *, constant: bool) -> float:
    """Return the root mean square of these distances, families counting alike."""
    _, _, weight = _points(sets)
    return float(np.sqrt(np.average(left_out(sets, constant=constant) ** 2, weights=weight)))


def belief(sets: Sequence[LabelledSet], about: LabelledSet) -> Belief | None:
    """Return what the other families say of a set of people; None for language models."""
    others = [one for one in sets if one.people and one.family != about.family]
    if not about.people:
        return None
    constant = spread(others, constant=False) >= spread(others, constant=True)
    intercept, slope = line(others, constant=constant)
    x, _, _ = _points([about])
    families = len({one.family for one in others})
    return Belief(intercept + slope * float(x[0]), spread(others, constant=constant), unlike_others(families))


def crowd_facts(sets: Sequence[LabelledSet]) -> dict[str, Any]:
    """Return what goes into the data file, with where it is from."""
    people = [one for one in sets if one.people]
    by_line, by_constant = spread(people, constant=False), spread(people, constant=True)
    constant = by_line >= by_constant
    intercept, slope = line(people, constant=constant)
    x, _, weight = _points(people)
    return {
        "made_by": f"studies/verdict.py, moral-entropy {moral_entropy.__version__}",
        "meaning": "logit(share of wrong labels) = intercept + slope * logit(expected error), sd for a family left out",
        "people": {
            "intercept": round(intercept, 3),
            "slope": round(slope, 3),
            "sd": round(min(by_line, by_constant), 3),
            "sd_of_line": round(by_line, 3),
            "sd_of_constant": round(by_constant, 3),
            "typical": round(float(np.average(x, weights=weight)), 3),
            "n_sets": len(people),
            "n_families": len({one.family for one in people}),
        },
        "floor": {"held": sum(one.error >= one.expected for one in sets), "of": len(sets)},
        "flag": {"above": FLAG, "share": FLAG_SHARE, **flag_counts(sets)},
        "sets": {
            one.name: {
                "family": one.family,
                "people": one.people,
                "gold": len(one.wrong_j),
                "expected": round(one.expected, 4),
                "error": round(one.error, 4),
            }
            for one in sets
        },
    }


def flag_counts(sets: Sequence[LabelledSet]) -> dict[str, int]:
    """Count the sets with many wrong labels, and the flagged ones among these and among the others."""
    bad = [one for one in sets if one.error > FLAG_SHARE]
    return {
        "bad": len(bad),
        "flagged_bad": sum(one.expected > FLAG for one in bad),
        "flagged_good": sum(one.expected > FLAG for one in sets if one.error <= FLAG_SHARE),
    }


@dataclass(frozen=True)
class Sheets:
    """What random sheets of one size found on one set: shares and means over the sheets."""

    held: float
    held_alone: float
    width: float
    width_alone: float
    bias: float
    ship: float
    soft: float


def try_sheets(one: LabelledSet, prior: Belief | None, n: int, n_sheets: int) -> Sheets:
    """Draw random sheets, and see how often the interval holds the true share."""
    order_j = np.argsort(np.round(one.sure_j, DECIMALS), kind="stable")
    count_j, rows = np.ones(len(order_j)), []
    for sheet in range(n_sheets):
        chosen, weight = draw_blocks(order_j, count_j, n, seed=sheet)
        found = tally(one.wrong_j[chosen], weight, 1.0 - one.sure_j[chosen] if from_blocks(weight) else None)
        alone = error_rate(found, len(order_j), mass=MASS)
        both = error_rate(found, len(order_j), prior=prior, mass=MASS) if prior else alone
        answer = answer_for(both, TOLERANCE, one.claimed)
        rows.append(
            (
                both.low <= one.error <= both.high,
                alone.low <= one.error <= alone.high,
                both.high - both.low,
                alone.high - alone.low,
                both.value - one.error,
                answer == "ship",
                answer == "ship soft",
            )
        )
    return Sheets(*np.mean(np.array(rows, dtype=float), axis=0).tolist())


# --- The page -----------------------------------------------------------------------------------------------------


def crowd_table(sets: Sequence[LabelledSet]) -> str:
    """Lay out what was expected of every set, what its family's absence let one believe, and what was wrong."""
    rows = ["| set | voters | gold | floor (expected error) | crowds alike, 90% | wrong |",
            "| --- | --- | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for one in sets:
        found = belief(sets, one)
        # As the verdict shows it: of crowds alike, not of one unlike all others.
        shares = () if found is None else replace(found, anything=0.0).quantiles(0.05, 0.95)
        alike = "–".join(f"{share:.0%}" for share in shares) or "–"
        rows.append(
            f"| {one.name} | {'people' if one.people else 'models'} | {len(one.wrong_j):,} | {one.expected:.1%} "
            f"| {alike} | {one.error:.1%} |"
        )
    return "\n".join(rows)


def sheet_table(sets: Sequence[LabelledSet], found: dict[tuple[str, int], Sheets]) -> str:
    """Lay out, by set and size: intervals that hold, with and without crowds alike, their widths, and "ship"."""
    head = "| set | wrong |" + "".join(f" {n}: holds | width | alone | ship |" for n in SIZES)
    rows = [head, "| --- | ---: |" + " ---: |" * (4 * len(SIZES))]
    for one in sets:
        cells = []
        for n in SIZES:
            if (at := found.get((one.name, n))) is None:
                cells.append("– | – | – | –")
            else:
                cells.append(
                    f"{at.held:.0%} | {at.width:.2f} | {at.held_alone:.0%}, {at.width_alone:.2f} | {at.ship:.1%}"
                )
        rows.append(f"| {one.name} | {one.error:.1%} | {' | '.join(cells)} |")
    return "\n".join(rows)


def summary(sets: Sequence[LabelledSet], found: dict[tuple[str, int], Sheets]) -> str:
    """Say in a table what holds over all sets, by size of the sheet."""
    rows = ["| labels checked | intervals that hold | the same, people | width | checks alone: hold | width "
            "| mean bias | wrong assurance, worst set |",
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]  # fmt: skip
    for n in SIZES:
        some = [(one, found[one.name, n]) for one in sets if (one.name, n) in found]
        bad = [(at.ship, one.name) for one, at in some if one.error > TOLERANCE]
        worst, where = max(bad) if bad else (0.0, "–")
        people = [at.held for one, at in some if one.people]
        held, width, held_alone, width_alone, bias = np.mean(
            [(at.held, at.width, at.held_alone, at.width_alone, at.bias) for _, at in some], axis=0
        )
        rows.append(
            f"| {n} | {held:.1%} | {np.mean(people):.1%} | {width:.3f} | {held_alone:.1%} | {width_alone:.3f} "
            f"| {100 * bias:+.2f} points | {worst:.1%} ({where if worst else 'none'}) |"
        )
    return "\n".join(rows)


def trouble_table(troubled: Sequence[tuple[LabelledSet, Sheets]]) -> str:
    """Lay out, by trouble: how wrong the labels are, and how often sheets call labels fit to ship that are not."""
    rows = ["| made on purpose | wrong, from – to | corpora with too many wrong | sheets of these that end in ship |",
            "| --- | ---: | ---: | ---: |"]  # fmt: skip
    for name in dict.fromkeys(one.name for one, _ in troubled):
        errors = [one.error for one, _ in troubled if one.name == name]
        ships = [at.ship for one, at in troubled if one.name == name and one.error > TOLERANCE]
        shipped = f"{np.mean(ships):.1%}" if ships else "–"
        rows.append(f"| {name} | {min(errors):.1%} – {max(errors):.1%} | {len(ships)} of {len(errors)} | {shipped} |")
    return "\n".join(rows)


def trouble_text(troubled: Sequence[tuple[LabelledSet, Sheets]], n: int) -> str:
    """Say how often labels with too many errors are called fit to ship, over all corpora with a trouble."""
    ships = [at.ship for one, at in troubled if one.error > TOLERANCE]
    worst = max(ships, default=0.0)
    return (
        f"Corpora of the [study of alarms](validation.md), {TROUBLED_SHEET} labels checked against the known truth, "
        f"{n} sheets each. "
        f"More than {TOLERANCE:.0%} of the labels are wrong in {len(ships)} of {len(troubled)} corpora; of the sheets "
        f"drawn from these, {np.mean(ships) if ships else 0.0:.1%} end in *ship* ({worst:.1%} in the worst corpus). "
        "Without checked labels no run does, whatever its votes: a test holds that."
    )


def page_text(
    sets: Sequence[LabelledSet],
    found: dict[tuple[str, int], Sheets],
    troubled: Sequence[tuple[LabelledSet, Sheets]],
    facts: dict[str, Any],
    n: int,
    n_troubled: int | None = None,
) -> str:
    """Return the tables of the page with what they say."""
    people, floor, flag = facts["people"], facts["floor"], facts["flag"]
    used = "the line is used" if people["slope"] else "it does not beat a constant, so the constant range is used"
    middle = expit(people["intercept"] + people["slope"] * people["typical"])
    return "\n\n".join(
        [
            f"Made by {facts['made_by']}; {n} random sheets for each set and size.",
            "### Crowds alike",
            f"Of {people['n_sets']} sets of people in {people['n_families']} families, predicted without their own "
            f"family: spread around the line {people['sd_of_line']:.2f} logits, around a constant "
            f"{people['sd_of_constant']:.2f}; {used}. Typical share of wrong labels: {middle:.0%}. "
            f"The floor held on {floor['held']} of {floor['of']} sets. "
            f"A floor above {flag['above']:.0%} flags {flag['flagged_bad']} of the {flag['bad']} sets with more than "
            f"{flag['share']:.0%} wrong, and {flag['flagged_good']} of the {floor['of'] - flag['bad']} others.",
            crowd_table(sets),
            "### Spot checks",
            summary(sets, found),
            "By set; *alone*: the interval of the checked labels by themselves, how often it holds and its width; "
            "*ship*: share of the sheets after which the labels are called fit to ship at a tolerance of "
            f"{TOLERANCE:.0%}.",
            sheet_table(sets, found),
            "### Votes with a trouble made on purpose",
            trouble_text(troubled, n_troubled or n),
            trouble_table(troubled),
        ]
    )


def main() -> None:
    """Run the study; write the data file and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    parser.add_argument("--draws", type=int, default=400, help="posterior draws per fit")
    parser.add_argument("--sheets", type=int, default=500, help="random sheets for each set and size")
    parser.add_argument("--troubled", type=int, default=20, help="corpora of each trouble")
    parser.add_argument("--dry", action="store_true", help="print, and write nothing")
    asked = parser.parse_args()
    sets = list(read_sets(asked.data, asked.draws))
    facts = crowd_facts(sets)
    found = {
        (one.name, n): try_sheets(one, belief(sets, one), n, asked.sheets)
        for one in sets
        for n in SIZES
        if n < len(one.wrong_j)
    }
    troubled = [
        (one, try_sheets(one, belief(sets, one), TROUBLED_SHEET, asked.sheets))
        for one in read_troubled(asked.troubled, asked.draws)
    ]
    text = page_text(sets, found, troubled, facts, asked.sheets)
    print(text)
    if not asked.dry:
        FACTS.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), "verdict", "studies/verdict.py", text), encoding="utf-8")


if __name__ == "__main__":
    main()
