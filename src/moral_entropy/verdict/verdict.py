"""Can these labels be shipped? What is known, in plain words.

Votes cannot say how many labels are wrong: annotators who share a mistake agree on it. So without checked labels
there is no answer. With checked labels there is a share of wrong ones, and an answer against a tolerance: the better,
the more is tolerated and the fewer are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from moral_entropy.findings import Finding, many
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


def verdict_of(run: Run, findings: Sequence[Finding] | None = None) -> Verdict:
    """Say whether the labels of a run can be shipped, and how.

    Parameters
    ----------
    run
        The run.
    findings
        Its warnings; those of the run when not given.
    """
    checks = checks_of(run)
    if checks is not None:
        return _from_checks(run, checks, tolerance_of(run))
    n_high = sum(finding.severity == "high" for finding in (cautions(run) if findings is None else findings))
    first = f"{many(n_high, 'warning')} to settle first" if n_high else "check some labels"
    title = f"Votes alone cannot tell: {first}."
    check = f"check {ROWS:,} labels." if n_labels(run) > ROWS else "check the labels."
    text = (
        f"Votes cannot show mistakes that annotators share: {check} Fill in spot-check.csv of the run folder (in "
        f"Python: run.spot_check). {needed_sentence(run)}"
    )
    return Verdict("unknown", title, text, "stop" if n_high else "unknown", None, "", tolerance_of(run))


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


def _from_checks(run: Run, checks: Checks, tolerance: float) -> Verdict:
    claimed = mean_over_items(run, wrong_by(run, "p"))
    answer = answer_for(checks.worst, tolerance, claimed)
    text = " ".join(
        _checks_say(
            checks, tolerance, claimed, answer, run.interval, ordered=any(question.levels for question in run.questions)
        )
    )
    if checks.by == "spot check" and run.manifest["use_gold"]:
        text += " That was before: here checked labels are the answers."
    return Verdict(answer, _title(answer, checks, tolerance), text, STATUS[answer], checks.error, checks.by, tolerance)


def _title(answer: Answer, checks: Checks, tolerance: float) -> str:
    if answer == "ship":
        return f"Ship: at most {100 * tolerance:g}% of the labels are wrong."
    if answer == "ship soft":
        return "Ship soft: publish p, not hard labels."
    if checks.error.bound <= tolerance:
        return f"Not yet: {_blank_rows(checks)}."
    return "Not yet: too few labels were checked." if checks.error.value < tolerance else "Not yet: too many are wrong."


def _blank_rows(checks: Checks) -> str:
    return f"{many(checks.blank, 'row')} of the sheet {'is' if checks.blank == 1 else 'are'} blank"


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


def _checks_say(
    checks: Checks, tolerance: float, claimed: float, answer: Answer, mass: float, *, ordered: bool
) -> Iterator[str]:
    error = checks.error
    yield f"{error_sentence(checks, mass)}; tolerated: {100 * tolerance:g}%."
    if checks.by == "gold" and error.checked < checks.population:
        yield "That counts if the items with gold labels are a random part of all."
    if checks.by == "spot check" and ordered:
        yield "A label within one level of the answer counts as half wrong."
    if checks.blank:
        yield f"{_blank_rows(checks)}: if these are the hard ones, more is wrong."
    if error.value > tolerance and answer == "ship soft":
        yield f"p admits it: by p itself {_percent(claimed)} are expected wrong."
    if error.value > tolerance and claimed < error.at_least:
        yield f"p does not admit it: by p itself only {_percent(claimed)} are expected wrong."
    if answer != "ship" and error.value <= tolerance < error.bound:
        n_further = (checks_needed(error.value, tolerance, mass=mass) or 0) - error.checked
        if n_further > 0:
            yield f"If the share stays as it is, about {n_further:,} more checks would settle it."
        else:
            yield "It is too near to the tolerance to be settled by checking."


def error_sentence(checks: Checks, mass: float) -> str:
    """Say what was found, as "8 of 50 labels checked are wrong: 16% (90% interval 9–26%)".

    Examples
    --------
    >>> from moral_entropy.verdict.checked import error_rate
    >>> rate = error_rate([1] * 8 + [0] * 42, 1_000.0)
    >>> error_sentence(Checks("spot check", rate, rate, 1_000.0), 0.9)
    '8 of 50 labels checked are wrong: 16% (90% interval 9–26%)'
    """
    error, width = checks.error, checks.error.high - checks.error.low
    of = "labels checked" if checks.by == "spot check" else "labels with a known answer"
    share = f"{error.wrong:,.0f} of {error.checked:,} {of} are wrong: {_percent(error.value, width)}"
    if error.low == error.high:
        return f"{share}, and these are all"
    low, high = (_percent(end, width) for end in (error.low, error.high))
    return f"{share} ({mass:.0%} interval {low.rstrip('%')}–{high})"


def _percent(share: float, width: float = 1.0) -> str:
    """Write a share in per cent, with a decimal where it is small or its interval narrow."""
    return f"{share:.1%}" if 0 < share < 0.02 or width < 0.02 else f"{share:.0%}"
