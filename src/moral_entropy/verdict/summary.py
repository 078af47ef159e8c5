"""Run → its last screen: the verdict, four figures, the findings with their remedy, the best simple rule, the report.

The terminal, `print(run)`, notebooks and `--json` all show a `Summary`, so that they say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from textwrap import fill
from typing import Any

import polars as pl

from moral_entropy.findings import Finding, Severity, many
from moral_entropy.markup import html_table
from moral_entropy.runs.run import Run, caution_record, cautions
from moral_entropy.verdict.headlines import Headline, headlines, run_figures, with_interval
from moral_entropy.verdict.rates import interval_in_percent, pooled_rules
from moral_entropy.verdict.sheet import sheet_name
from moral_entropy.verdict.verdict import Verdict

WIDTH = 80
REPORT = "report.html"

MOST_ANNOTATORS = 5
"""Annotators shown, those who are surely wrong most often first."""

FEW = 5
"""Checked votes of an annotator below which a share says nothing."""

WORDS: dict[Severity, str] = {"high": "Settle first", "medium": "Doubt", "low": "Note"}
"""How grave a finding is."""


@dataclass(frozen=True, eq=False)
class Summary:
    """What a reader of a run must know.

    Parameters
    ----------
    run
        The run.
    verdict
        Whether the labels can be shipped.
    figures
        The four headline figures.
    findings
        What should make a reader doubt, worst first, each with what it means and what to do.
    checked
        What checked labels say of the consensus, each rule and each annotator.
    """

    run: Run
    verdict: Verdict
    figures: Sequence[Headline]
    findings: Sequence[Finding]
    checked: pl.DataFrame

    # --- The screen -----------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """Yield the last screen, at most 80 characters wide but for file names."""
        yield f"Can I ship these labels? {self.verdict.title}"
        yield _wrapped(self.verdict.text, 2)
        if (command := self.next_command) is not None:
            yield f"  Then: {command}"
        yield ""
        yield from self._figure_lines()
        yield ""
        yield from self._finding_lines()
        yield from self._checked_lines()
        yield ""
        yield _wrapped(self.advice)
        if self.run.path is not None:
            yield ""
            yield from self._file_lines()

    @property
    def next_command(self) -> str | None:
        """What to type once the sheet is filled in; None where labels were checked, and for a run in memory."""
        if self.run.path is None or self.verdict.error is not None:
            return None
        return f"moral-entropy spot-check {self.run.path} --answers {self.run.path / sheet_name(1)}"

    @property
    def advice(self) -> str:
        """The best simple rule, and what a spot check found of it."""
        told = str(self.run.manifest["advice"])
        best = self.run.manifest.get("best_rule") or {}
        found = self.checked.filter(kind="rule", name=best.get("rule", ""))
        if self.verdict.checked_by != "spot check" or found.is_empty():
            return told
        row = found.row(0, named=True)
        return f"{told} Of {row['checked']:,} labels checked by hand it gets {row['wrong']:,.0f} wrong."

    def _figure_lines(self) -> Iterator[str]:
        wide = max(len(one.name) for one in self.figures)
        for one in self.figures:
            yield f"  {one.name:<{wide}}  {with_interval(one)}"
            yield _wrapped(one.note, wide + 4)

    def _finding_lines(self) -> Iterator[str]:
        if not self.findings:
            yield "No warnings."
            return
        yield f"{many(len(self.findings), 'warning')}{', worst first' * (len(self.findings) > 1)}:"
        for number, one in enumerate(self.findings, start=1):
            yield _wrapped(f"{number}. {WORDS[one.severity]}: {one.text}.", 5, first=2)
            yield _wrapped(one.meaning, 5)
            yield _wrapped(f"What to do: {one.remedy}", 5)

    def _checked_lines(self) -> Iterator[str]:
        """Yield what checked labels found: by hand of everything, by gold of annotators, as the rules come before."""
        found = self.checked
        if found.is_empty():
            return
        everyone = found.filter(kind="annotator")
        people = everyone.filter(pl.col("checked") >= FEW)
        by_hand = self.verdict.checked_by == "spot check"
        others = found.filter(pl.col("kind") != "annotator").rows(named=True) if by_hand else []
        shown = [*others, *people.head(MOST_ANNOTATORS).rows(named=True)]
        if not shown:
            return
        what = "checked labels" if by_hand else "annotators' votes on items with gold, worst first"
        yield ""
        yield f"{what}: % wrong (and {self.run.interval:.0%} interval)"
        heads = ("whose", "checked", "wrong", "% wrong")
        yield from text_table(heads, [_checked_cells(one, by_hand=by_hand) for one in shown], n_words=1)
        if (more := everyone.height - min(people.height, MOST_ANNOTATORS)) > 0:
            yield _wrapped(f"{many(more, 'more annotator')}: see the report, or run.checked in Python")

    def _file_lines(self) -> Iterator[str]:
        path = self.run.folder
        files = sorted(file.name for file in path.iterdir())
        seconds = sum(self.run.manifest["seconds"].values())
        if REPORT in files:
            yield f"Report: {path / REPORT}"
        yield f"Tables: {path} ({len(files)} files; {seconds:.1f} s)"

    # --- Notebooks and programs -----------------------------------------------------------------------------------

    def html(self) -> str:
        """Return the same for a notebook."""
        figures = [(one.name, with_interval(one), one.note) for one in self.figures]
        doubts = [(WORDS[one.severity], one.text, one.meaning, one.remedy) for one in self.findings]
        heads = ("", "finding", "what it means", "what to do")
        return "\n".join([
            f"<p>{escape(self.run.in_one_line)}</p>",
            f"<p><b>Can I ship these labels? {escape(self.verdict.title)}</b> {escape(self.verdict.text)}</p>",
            html_table(("figure", "value", "meaning"), figures),
            html_table(heads, doubts) if doubts else "<p>No warnings.</p>",
            f"<p>{escape(self.advice)}</p>",
        ])  # fmt: skip

    def record(self) -> dict[str, Any]:
        """Return the same as plain values, with the figures as numbers: what `audit --json` prints."""
        run = self.run
        return {
            "verdict": asdict(self.verdict),
            "headlines": [asdict(one) for one in self.figures],
            "figures": run_figures(run, annotators=False),
            "findings": [caution_record(one) for one in self.findings],
            "rules": pooled_rules(run),
            "best_rule": run.manifest.get("best_rule"),
            "advice": self.advice,
            "checked": self.checked.to_dicts(),
            "paths": self._paths(),
        }

    def _paths(self) -> dict[str, str]:
        if (path := self.run.path) is None:
            return {}
        named = {"report": path / REPORT, "spot_check": path / sheet_name(1)}
        return {"run": str(path)} | {name: str(file) for name, file in named.items() if file.is_file()}


def summarise(run: Run) -> Summary:
    """Return what a reader of a run must know."""
    return Summary(run, run.verdict, headlines(run, run.verdict), cautions(run), run.checked)


def _checked_cells(one: dict[str, Any], *, by_hand: bool) -> tuple[str, ...]:
    named = one["name"] if one["kind"] == "consensus" or not by_hand else f"{one['kind']} {one['name']}"
    share = interval_in_percent(one["value"], one["low"], one["high"])
    return (named, f"{one['checked']:,}", f"{one['wrong']:,.0f}", share)


def _wrapped(text: str, indent: int = 0, first: int | None = None) -> str:
    lead = " " * (indent if first is None else first)
    return fill(text, WIDTH, initial_indent=lead, subsequent_indent=" " * indent, break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, n_words: int) -> Iterator[str]:
    """Yield a table as lines: the first columns, of words, to the left, the others, of figures, to the right.

    Examples
    --------
    >>> print(*text_table(("rule", "% wrong"), [("any", "9.5")], n_words=1), sep="|")
    rule  % wrong|any       9.5
    """
    wide = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [cell.ljust(size) if n < n_words else cell.rjust(size)
                 for n, (cell, size) in enumerate(zip(row, wide, strict=True))]  # fmt: skip
        yield "  ".join(cells).rstrip()
