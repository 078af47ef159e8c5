"""Alarms → a few sentences: those of one kind in one, the worst with its text, the others by name."""

from __future__ import annotations

from collections.abc import Iterable

from moral_entropy.validate.finding import RANK, Finding


def alarm_sentences(findings: Iterable[Finding]) -> list[str]:
    """Give a sentence for every kind of alarm, in the order in which kinds appear.

    Examples
    --------
    >>> doubts = [Finding("temper", "exponent", 0.5, question=name, level="doubt", text="too sure.")
    ...           for name in ("care", "harm")]
    >>> alarm_sentences(doubts)
    ['care: too sure. The same in 1 more: harm.']
    """
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.alarms:
            kinds.setdefault((finding.side, finding.figure), []).append(finding)
    return [_sentence(alarms) for alarms in kinds.values()]


def _sentence(alarms: list[Finding]) -> str:
    worst = min(alarms, key=lambda finding: RANK[finding.level])
    where = dict.fromkeys(_where(finding) for finding in alarms)
    others = [name for name in where if name != _where(worst)]
    name = f"{_where(worst)}: " if _where(worst) else ""
    if not others:
        return f"{name}{worst.text}"
    listed = ", ".join(others[:4]) + (", …" if len(others) > 4 else "")
    end = "" if worst.text.endswith((".", "!", "?")) else "."
    return f"{name}{worst.text}{end} The same in {len(others)} more: {listed}."


def _where(finding: Finding) -> str:
    return f"{finding.question} / {finding.part}" if finding.part else finding.question
