"""Can these labels be shipped? What is known, in plain words.

Votes cannot say how many labels are wrong: annotators who share a mistake agree on it. So without checked labels
there is no answer. With checked labels there is a share of wrong ones, and an answer against a tolerance: the better,
the more is tolerated and the fewer are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from moral_entropy.findings import many
from moral_entropy.options import TOLERANCE
from moral_entropy.runs.run import Run, cautions
from moral_entropy.verdict.checked import Checks, ErrorRate, checks_needed, checks_of
from moral_entropy.verdict.rates import mean_over_items, wrong_by
from moral_entropy.verdict.sheet import ROWS

Answer = Literal["ship", "ship soft", "not yet", "unknown"]
Status = Literal["ready", "care", "stop", "unknown"]

STATUS: dict[Answer, Status] = {"ship": "ready", "ship soft": "care", "not yet": "stop", "unknown": "unknown"}

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
    status: Status
    error: ErrorRate | None
    checked_by: str
    tolerance: float


def verdict_of(run: Run) -> Verdict:
    """Say whether the labels of a run can be shipped, and how."""
    checks, tolerance = checks_of(run), tolerance_of(run)
    if checks is None:
        n_high = sum(finding.severity == "high" for finding in cautions(run))
        first = f"{many(n_high, 'warning')} to settle first" if n_high else "check some labels"
        check = f"check {ROWS:,} labels." if n_labels(run) > ROWS else "check the labels."
        text = (
            f"Votes cannot show mistakes that annotators share: {check} Fill in spot-check.csv of the run folder (in "
            f"Python: run.spot_check). {needed_sentence(run)}"
        )
        title = f"Votes alone cannot tell: {first}."
        return Verdict("unknown", title, text, "stop" if n_high else "unknown", None, "", tolerance)
    claimed = mean_over_items(run, wrong_by(run, "p"))
    answer = answer_for(checks.worst, tolerance, claimed)
    title, *sentences = _checks_say(run, checks, tolerance, claimed, answer)
    return Verdict(answer, title, " ".join(sentences), STATUS[answer], checks.error, checks.by, tolerance)


def needed_sentence(run: Run, tolerance: float | None = None) -> str:
    """Say how many random checks show that no more is wrong than is tolerated: if nothing is, and if half as much is.

    Parameters
    ----------
    run
        The run.
    tolerance
        The share of wrong labels that is tolerated; the run's when not given.
    """
    share, n_items = tolerance_of(run) if tolerance is None else tolerance, n_labels(run)
    none, if_half = (checks_needed(wrong, share, mass=run.interval) or n_items for wrong in (0.0, share / 2))
    return (
        f"To show that at most {100 * share:g}% are wrong takes {min(none, n_items):,} checks if none is found wrong, "
        f"{min(if_half, n_items):,} if {50 * share:g}% are."
    )


def n_labels(run: Run) -> int:
    """Count the labels of a run: items, over all questions."""
    return round(float(sum(fit["items_counted"] for fit in run.manifest["questions"])))


def tolerance_of(run: Run) -> float:
    """Return the share of wrong labels that is tolerated."""
    return float(run.manifest["options"].get("verdict", {}).get("tolerance", TOLERANCE))


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
    >>> from moral_entropy.verdict.checked import error_rate
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
    by_hand = checks.by == "spot check"
    low, high = (_percent(end, width) for end in (error.low, error.high))
    interval = f" ({run.interval:.0%} interval {low.rstrip('%')}–{high})" if width else ", and these are all"
    yield (
        f"{error.wrong:,.0f} of {error.checked:,} labels {'checked' if by_hand else 'with a known answer'} are wrong: "
        f"{_percent(error.value, width)}{interval}; tolerated: {100 * tolerance:g}%."
    )
    if not by_hand and error.checked < checks.population:
        yield "That counts if the items with gold labels are a random part of all."
    if by_hand and any(question.levels for question in run.questions):
        yield "A label within one level of the answer counts as half wrong."
    if checks.blank:
        yield f"{blank}: if these are the hard ones, more is wrong."
    if error.value > tolerance:
        yield f"By p itself {_percent(claimed)} are expected wrong."
    if answer != "ship" and error.value <= tolerance < error.bound:
        n_further = (checks_needed(error.value, tolerance, mass=run.interval) or 0) - error.checked
        hint = f"If the share stays as it is, about {n_further:,} more checks would settle it."
        yield hint if n_further > 0 else "It is too near to the tolerance to be settled by checking."
    if by_hand and run.manifest["use_gold"]:
        yield "That was before: here checked labels are the answers."


def _percent(share: float, width: float = 1.0) -> str:
    """Write a share in per cent, with a decimal where it is small or its interval narrow."""
    return f"{share:.1%}" if 0 < share < 0.02 or width < 0.02 else f"{share:.0%}"
