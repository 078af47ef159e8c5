"""Can these labels be shipped? What is known, in plain words.

Votes cannot say how many labels are wrong: annotators who share a mistake agree on it. So without checked labels
there is no yes, whatever the model thinks of itself: there is a floor, the range of crowds alike, and a warning
where much is likely wrong. With checked labels there is a share of wrong ones, and an answer against a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from moral_entropy.findings import Finding, many
from moral_entropy.runs.findings import cautions
from moral_entropy.runs.run import Run
from moral_entropy.verdict.checked import Checks, checks_of
from moral_entropy.verdict.crowds import MOST_NAMES, Crowds, crowds_of_people, guess_who_voted
from moral_entropy.verdict.error_rate import Belief, ErrorRate, checks_needed
from moral_entropy.verdict.options import TOLERANCE, WhoVoted
from moral_entropy.verdict.rates import wrong_by
from moral_entropy.verdict.sheet import ROWS

Answer = Literal["ship", "ship soft", "not yet", "unknown"]
Status = Literal["ready", "care", "stop", "unknown"]

STATUS: dict[Answer, Status] = {"ship": "ready", "ship soft": "care", "not yet": "stop", "unknown": "unknown"}


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
    floor
        Share of the labels that is expected to be wrong at least, by the mixed model.
    alike
        Range of the shares of wrong labels of crowds alike; None for panels of language models.
    """

    answer: Answer
    title: str
    text: str
    status: Status
    error: ErrorRate | None
    checked_by: str
    tolerance: float
    floor: float | None
    alike: tuple[float, float] | None


def verdict_of(run: Run) -> Verdict:
    """Say whether the labels of a run can be shipped, and how."""
    return give_verdict(run, cautions(run))


def give_verdict(run: Run, found: Sequence[Finding]) -> Verdict:
    """Say whether the labels can be shipped, and how.

    Parameters
    ----------
    run
        The run.
    found
        Its warnings.
    """
    floor, belief = expected_error(run), belief_about(run)
    known = {"tolerance": tolerance_of(run), "floor": floor, "alike": _range(belief, run.interval)}
    checks = checks_of(run)
    if checks is not None:
        return _from_checks(run, checks, belief, **known)
    items = sum(fit["items_counted"] for fit in run.manifest["questions"])
    return _from_votes(found, round(items), **known)


def tolerance_of(run: Run) -> float:
    """Return the share of wrong labels that is tolerated."""
    return float(_asked(run).get("tolerance", TOLERANCE))


def who_voted(run: Run) -> WhoVoted:
    """Return who voted, as told or as guessed from the annotators' names."""
    told: WhoVoted | None = _asked(run).get("voters")
    if told is not None:
        return told
    if stored := run.manifest.get("roles"):
        models = sum(one["role"] == "llm" for one in stored["judges"])
        n_judges = run.manifest["annotators"] - len(run.manifest.get("unsure", {}))
        return "models" if models > MOST_NAMES * n_judges else "people"
    return guess_who_voted(run.scan("annotator_summary").select("annotator").unique().collect()["annotator"].to_list())


def _asked(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.manifest["options"].get("verdict", {})
    return found


def expected_error(run: Run) -> float | None:
    """Compute the share of wrong labels that the mixed model expects: a floor. None under another model."""
    if run.model != "mixed":
        return None
    return _mean_wrong(run, "p_model")


def claimed_error(run: Run) -> float:
    """Compute the share of wrong labels that the published p claims."""
    return _mean_wrong(run, "p")


def _mean_wrong(run: Run, column: str) -> float:
    """Average how probably a label is wrong, by one of the probabilities."""
    weight = pl.col("count")
    sums = run.scan("items").select((wrong_by(run, column) * weight).sum() / weight.sum())
    return float(sums.collect(engine="streaming").item() or 0.0)


def belief_about(run: Run) -> Belief | None:
    """Return what crowds alike let one expect of a run's errors; None for panels of language models."""
    if who_voted(run) == "models":
        return None
    return crowds_of_people().belief(expected_error(run))


def _range(belief: Belief | None, mass: float) -> tuple[float, float] | None:
    if belief is None:
        return None
    # Of crowds alike: that this one is unlike all is said by what was not checked.
    low, high = replace(belief, anything=0.0).quantiles((1.0 - mass) / 2, (1.0 + mass) / 2)
    return low, high


# --- From votes alone ---------------------------------------------------------------------------------------------


def _from_votes(found: Sequence[Finding], n_items: int, **known: Any) -> Verdict:
    crowds, floor = crowds_of_people(), known["floor"]
    n_high = sum(one.severity == "high" for one in found)
    flagged = floor is not None and floor > crowds.flag
    answer: Answer = "not yet" if n_high or flagged else "unknown"
    if n_high:
        title = f"Not yet: {many(n_high, 'warning')} to settle first."
    elif flagged:
        title = f"Not yet: more than {crowds.flag_share:.0%} of the labels are likely wrong."
    else:
        title = "Votes alone cannot tell: check some labels."
    text = " ".join(_votes_say(crowds, known["floor"], known["alike"], flagged))
    return Verdict(answer, title, f"{text} {next_step(n_items)}", STATUS[answer], None, "", **known)


def next_step(n_items: int) -> str:
    """Say what to do where nobody has checked labels."""
    some = f"Check {ROWS:,} of them" if n_items > ROWS else "Check them"
    return (
        f"{some} by hand, which takes minutes, and you know: fill in spot-check.csv of the run folder (in Python: "
        "run.spot_check)."
    )


def _votes_say(crowds: Crowds, floor: float | None, alike: tuple[float, float] | None, flagged: bool) -> Iterator[str]:
    yield "Nobody has checked these labels, and votes cannot say how many are wrong:"
    yield "people who make the same mistake agree on it."
    if floor is not None:
        held = f"this held on {crowds.floor_held} of {crowds.floor_of} sets of votes with known answers"
        yield f"Expect at least {floor:.1%} to be wrong ({held})."
    if alike is None:
        yield "The annotators are taken for language models (if not: --voters people); for these there is no range."
    else:
        yield f"In similar crowds, {alike[0]:.0%} to {alike[1]:.0%} of the labels were wrong ({crowds.n_sets} sets)."
    if flagged:
        yield f"Where {crowds.flag:.0%} or more was expected, mostly more than {crowds.flag_share:.0%} was wrong."


# --- With checked labels ------------------------------------------------------------------------------------------


def _from_checks(run: Run, checks: Checks, belief: Belief | None, **known: Any) -> Verdict:
    error, tolerance = checks.error(belief, run.interval), known["tolerance"]
    # What holds of some domains is not said of all.
    answer: Answer = "not yet" if checks.domains else answer_for(error, tolerance, claimed_error(run))
    title = _title(answer, checks, error, tolerance)
    text = " ".join(_checks_say(run, checks, error, tolerance, answer))
    return Verdict(answer, title, text, STATUS[answer], error, checks.by, **known)


def _title(answer: Answer, checks: Checks, error: ErrorRate, tolerance: float) -> str:
    if checks.domains:
        return f"Not yet: only {', '.join(checks.domains)} was checked."
    if answer == "ship":
        return f"Ship: at most {tolerance:.0%} of the labels are wrong."
    if answer == "ship soft":
        return "Ship soft: publish p, not hard labels."
    return "Not yet: too few labels were checked." if error.value < tolerance else "Not yet: too many are wrong."


def answer_for(error: ErrorRate, tolerance: float, claimed: float) -> Literal["ship", "ship soft", "not yet"]:
    """Decide by the checked labels.

    Parameters
    ----------
    error
        The share of wrong labels. It must be shown to be within the tolerance, whatever crowds alike did.
    tolerance
        The share of wrong labels that is tolerated.
    claimed
        Share of wrong labels that p itself claims: labels may go out as probabilities where p admits their errors.

    Examples
    --------
    >>> from moral_entropy.verdict.error_rate import error_rate, tally
    >>> few, some = (error_rate(tally([1] * k + [0] * (50 - k)), 1_000) for k in (1, 8))
    >>> answer_for(few, 0.1, 0.02), answer_for(some, 0.1, 0.15), answer_for(some, 0.1, 0.05)
    ('ship', 'ship soft', 'not yet')
    """
    if error.bound <= tolerance:
        return "ship"
    if error.value > tolerance and claimed >= error.low:
        return "ship soft"
    return "not yet"


def _checks_say(run: Run, checks: Checks, error: ErrorRate, tolerance: float, answer: Answer) -> Iterator[str]:
    yield f"{error_sentence(checks, error, run.interval)}; tolerated: {tolerance:.0%}."
    if checks.domains:
        yield f"Only {', '.join(checks.domains)} was checked: nothing is known of the other domains."
        return
    if checks.by == "gold" and error.checked < checks.population:
        yield "That counts if the items with gold labels are a random part of all."
    if checks.blank:
        yield (
            f"{many(checks.blank, 'row')} of the sheet {'is' if checks.blank == 1 else 'are'} blank: if these are the "
            "hard ones, more is wrong."
        )
    if answer == "ship soft":
        yield f"p admits it: by p itself {claimed_error(run):.0%} are expected wrong."
    if answer == "not yet" and error.value > tolerance:
        yield f"p does not admit it: by p itself only {claimed_error(run):.0%} are expected wrong."
    if answer == "not yet" and error.value <= tolerance:
        needed = checks_needed(error.value, tolerance, mass=run.interval)
        more = None if needed is None else needed - error.checked
        if more is not None and more > 0:
            yield f"If the share stays as it is, about {more:,} more checks would settle it."
        else:
            yield "It is too near to the tolerance to be settled by checking."


def error_sentence(checks: Checks, error: ErrorRate, mass: float) -> str:
    """Say what was found, as "8 of 50 labels checked are wrong: 16% (90% interval 9–26%)".

    Examples
    --------
    >>> from moral_entropy.verdict.error_rate import tally
    >>> checks = Checks("spot check", tally([1] * 8 + [0] * 42), 1_000.0)
    >>> error_sentence(checks, checks.error(None, 0.9), 0.9)
    '8 of 50 labels checked are wrong: 16% (90% interval 9–26%)'
    """
    of = "labels checked" if checks.by == "spot check" else "labels with a known answer"
    found = f"{error.wrong:,.0f} of {error.checked:,} {of} are wrong: {_percent(error.value, error.high - error.low)}"
    if error.low == error.high:
        return f"{found}, and these are all"
    low, high = (_percent(bound, error.high - error.low) for bound in (error.low, error.high))
    return f"{found} ({mass:.0%} interval {low.rstrip('%')}–{high})"


def _percent(share: float, width: float = 1.0) -> str:
    """Write a share in per cent, with a decimal where it is small or its interval narrow."""
    return f"{share:.1%}" if 0 < share < 0.02 or width < 0.02 else f"{share:.0%}"
