"""Run → its first screen: what was read, a row per question, whom and what to look at, the next command.

The terminal, `print(run)`, `run.markdown()`, notebooks and `--json` show one `Summary`. Every number on it is either
counted from votes and labels or was held against planted truths (`tests/truth/test_first_screen.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.errors import harmless
from moral_entropy.findings import Finding, many
from moral_entropy.markup import NOTHING, markdown_table, markdown_text
from moral_entropy.names import ALL, person
from moral_entropy.rules.intervals import exact_interval, jeffreys_interval
from moral_entropy.runs.run import Run, cautions
from moral_entropy.schemas import BETWEEN
from moral_entropy.verdict.figures import pooled_rules, run_figures
from moral_entropy.verdict.sheet import ROWS, SHEET
from moral_entropy.verdict.verdict import gold_sums, n_labels

NARROW, WIDE = 80, 120
"""Columns of the screen: at least and at most."""

LINES = {"notes": 5, "rows": 6, "checked": 4, "groups": 3, "warnings": 6}
"""Most lines of each part: 25 in all with the heading, the header and the two last lines."""

MOST_UNREAD = 6
"""Columns that were not read and are named."""

TYPING, POSITIVE = "rare labels may be typing errors", "positive label:"
"""Beginnings of notes: one that asks for something, and one that few need."""

REPORT = "report.html"

FEW_VOTES, GAP, SURE = 20, 0.10, 0.99
"""An annotator is named whose agreement with the others, on so many votes, is surely so far below their median."""

OFF_SCREEN = ("pareto_k", "information_left")
"""Metrics of doubts about intervals, of which the screen shows none: the report and --verbose tell them."""

READ = ("rows", "votes", "items", "annotators", "items_without_votes", "columns", "guessed", "notes", "dropped")
QUESTION = ("question", "part", "labels", "positive", "items", "votes", "annotators", "entropy", "ambiguity",
            "doubt_votes", "doubt_annotators", BETWEEN, "uncertain", "ambiguous", "converged")  # fmt: skip
FINDING = ("code", "severity", "text", "meaning", "remedy")
"""What the record has of the reading, of every question and of every finding."""


class Summary:
    """What a reader of a run sees first.

    Attributes
    ----------
    run
        The run.
    heading, notes
        What was read, and how.
    questions
        One row per fit, the worst first where there are many: see `question_rows`.
    sentences, groups
        What checked labels say, or how to check; what was found about groups of annotators.
    findings, warnings
        Every finding that should make a reader doubt; whom and what to look at, worst first, each one sentence.
    commands
        By name, what to type or open next.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.findings = run, cautions(run)
        manifest, questions = run.manifest, len({fit["question"] for fit in run.manifest["questions"]})
        people = "no annotators named" if manifest["anonymous"] else many(manifest["annotators"], "annotator")
        facts = [many(manifest["items"], "item"), people, *([many(questions, "question")] if questions > 1 else [])]
        facts = [one_line(manifest["input"]["source"], 50), *facts, many(manifest["votes"], "vote")]
        self.heading, self.notes = " · ".join(facts), list(reading_notes(manifest))
        self.questions, self.sentences = question_rows(run), _sentences(run)
        groups = manifest.get("groups") or {"notes": [], "sentences": []}
        self.groups: list[str] = [*groups["notes"], *groups["sentences"]]
        self.warnings, self.commands = list(_warnings(run, self.findings)), _commands(run)

    def lines(self, width: int = NARROW) -> list[str]:
        """Return the first screen: at most 25 lines, none wider than the window but for names of files.

        Parameters
        ----------
        width
            Columns of the window.
        """
        width = min(max(width, NARROW), WIDE)
        heads, rows, footer = self._table(width - 60)
        # A command without a folder writes no report.
        where = "with --verbose" if self.run.path is None and self.run.manifest["command"] else "in the report"
        parts = [
            [self.heading[:WIDE]],
            _at_most(LINES["notes"], self.notes, width, f"more notes {where}"),
            [f"  {line}" for line in (*text_table(heads, rows), footer) if line],
            _at_most(LINES["checked"], self.sentences, width, ""),
            _at_most(LINES["groups"], self.groups, width, f"more on groups {where}"),
            _at_most(LINES["warnings"] - (3 if self.groups else 0), [f"! {text}" for text in self.warnings], width,
                     "more in the report, or with --verbose"),
            [f"  {name:<7} {command}" for name, command in self.commands.items()],
        ]  # fmt: skip
        return [harmless(line) for part in parts for line in part]

    def markdown(self) -> str:
        """Return the same as Markdown."""
        heads, rows, footer = self._table(WIDE)
        texts = "\n".join(f"- {markdown_text(text)}" for text in (*self.notes, *self.sentences, *self.groups))
        last = [*(f"- **!** {markdown_text(text)}" for text in self.warnings),
                *(f"- {name}: `{command}`" for name, command in self.commands.items())]  # fmt: skip
        parts = f"**{markdown_text(self.heading)}**", texts, markdown_table(heads, rows), footer, "\n".join(last)
        return "\n\n".join(filter(None, parts)) + "\n"

    def record(self) -> dict[str, Any]:
        """Return the same as plain values, with the figures as numbers: what `audit --json` prints."""
        run, manifest = self.run, self.run.manifest
        files = {"run": run.path, "report": run.path / REPORT, "spot_check": run.path / SHEET} if run.path else {}
        # The share of every label is by the consensus; with two labels that of yes has its name.
        questions = [
            {name: fit[name] for name in QUESTION if name in fit} | {"shares": fit["prevalence"]}
            | ({"share_of_yes": fit["prevalence"][fit["positive"]]} if fit["positive"] else {})
            for fit in manifest["questions"]
        ]  # fmt: skip
        return {
            "version": manifest["version"],
            "source": manifest["input"]["source"],
            "read": {name: manifest[name] for name in READ},
            "questions": questions,
            "verdict": asdict(run.verdict),
            "summary": {"questions": self.questions, "sentences": self.sentences, "warnings": self.warnings},
            "figures": run_figures(run, annotators=False, domains=False),
            "findings": [{name: getattr(finding, name) for name in FINDING} for finding in self.findings],
            "rules": pooled_rules(run),
            "best_rule": manifest.get("best_rule"),
            "advice": manifest["advice"],
            "checked": run.checked.to_dicts(),
            "paths": {name: str(path) for name, path in files.items() if path.exists()},
        }

    def _table(self, longest: int) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
        """Return the heads and the rows that are shown, and a sentence about the others."""
        has_gold = [row["gold"] is not None for row in self.questions]
        wrong = "wrong by gold" if all(has_gold) else "wrong" if any(has_gold) else "wrong if independent"
        heads = ("question", "agreement", "uncertain", "majority differs", wrong)
        n_rows = LINES["rows"] if len(self.questions) <= LINES["rows"] else LINES["rows"] - 1
        rows: list[tuple[str, ...]] = []
        for row in self.questions[:n_rows]:
            alpha = NOTHING if row["alpha"] is None else f"α {row['alpha']:z.2f}".replace("0.", ".")
            figures = alpha + " ordered" * row["ordered"], percent(row["uncertain"]), percent(row["differs"])
            rows.append((short_name(row["question"], longest), *figures, wrong_range(row)))
        if not (hidden := [row["uncertain"] for row in self.questions[n_rows:]]):
            return heads, rows, ""
        doubt = f"less in doubt (uncertain {percent(min(hidden))} to {percent(max(hidden))})"
        return heads, rows, f"and {many(len(hidden), 'more question')}, {doubt}: see the report"


# --- What was read --------------------------------------------------------------------------------------------------


def reading_notes(manifest: dict[str, Any]) -> Iterator[str]:
    """Yield what was guessed, noted and left out while the votes were read."""
    columns = manifest["columns"]
    guessed = [role if columns[role] == role else f"{role} = {short_name(columns[role])}"
               for role in columns if role in manifest["guessed"]]  # fmt: skip
    if guessed:
        yield f"guessed: {', '.join(guessed)}"
    if unread := manifest.get("not_read"):
        yield f"not read: {', '.join(map(short_name, unread[:MOST_UNREAD]))}{', …' * (len(unread) > MOST_UNREAD)}"
    # What may be wrong comes before what is only told: the screen has few lines.
    yield from sorted(manifest["notes"], key=lambda note: (not note.startswith(TYPING), note.startswith(POSITIVE)))
    dropped = ", ".join(f"{reason} {count:,}" for reason, count in manifest["dropped"].items())
    unvoted = manifest["items_without_votes"]
    facts = [f"left out: {dropped}" * bool(dropped), f"without a vote: {many(unvoted, 'item')}" * bool(unvoted)]
    if any(facts):
        yield "; ".join(filter(None, facts))


# --- A row per question ---------------------------------------------------------------------------------------------


def question_rows(run: Run) -> list[dict[str, Any]]:
    """Return the figures of every fit; where there are more than fit on the screen, the worst first."""
    agreement = run.table("agreement").filter(domain=ALL).select("question", "statistic", "value")
    figures = {(question, statistic): value for question, statistic, value in agreement.iter_rows()}
    gold, rows = _wrong_by_gold(run) if run.verdict.checked_by == "gold" else {}, []
    for fit in run.manifest["questions"]:
        ordered = figures.get((fit["question"], "krippendorff_alpha_ordinal"))
        alpha = figures.get((fit["question"], "krippendorff_alpha")) if ordered is None else ordered
        place = fit["question"] + (f" / {fit['part']}" if fit["part"] else "")
        by_votes = fit.get("wrong_low"), fit.get("wrong_high"), None
        low, high, n_gold = gold.get((fit["question"], fit["part"]), by_votes)
        rows.append(
            {"question": place, "items": round(fit["items_counted"]), "ordered": ordered is not None,
             "alpha": alpha, "uncertain": fit["uncertain"], "differs": fit.get("majority_differs"), "low": low,
             "high": high, "gold": n_gold}
        )  # fmt: skip
    if len(rows) > LINES["rows"]:
        rows.sort(key=lambda row: (-(row["uncertain"] or 0.0), row["question"]))
    return rows


def _wrong_by_gold(run: Run) -> dict[tuple[str, str], tuple[float, float, int]]:
    """Return, by question and part, the interval of the share of labels that known answers say are wrong."""
    rates = {}
    for question, part, items, n, _, wrong in gold_sums(run).filter(pl.col("n") > 0).iter_rows():
        low, high = (float(end) for end in exact_interval(wrong, n, run.interval))
        rates[question, part or ""] = (wrong / n, wrong / n, round(n)) if n >= items - 0.5 else (low, high, round(n))
    return rates


def wrong_range(row: dict[str, Any]) -> str:
    """Show between which shares of the labels are wrong, by a row of `question_rows`."""
    if row["low"] is None or row["low"] == row["high"]:
        return percent(row["low"])
    # Rounded outward, so that it holds what it holds.
    return f"{math.floor(100 * row['low'])}–{math.ceil(100 * row['high'])}%"


def percent(share: float | None) -> str:
    """Write a share in whole per cent.

    Examples
    --------
    >>> percent(0.094), percent(0.004), percent(0.0), percent(None)
    ('9%', '<1%', '0%', '–')
    """
    return NOTHING if share is None else "<1%" if 0 < share < 0.005 else f"{share:.0%}"


# --- What is known of errors ----------------------------------------------------------------------------------------


def _sentences(run: Run) -> list[str]:
    texts = [facts["sentence"] for facts in [run.manifest.get("text_worth")] if facts]
    if run.verdict.error is not None:
        return [f"{run.verdict.title} {run.verdict.text}", *texts]
    if "gold" in run.manifest["guessed"]:
        column = short_name(run.manifest["columns"]["gold"])
        texts.insert(0, f"Column {column} looks like known answers; with --gold {column} they count as checked labels.")
    sheet = f" ({run.path / SHEET})" if run.path is not None else ""
    thin = all(fit.get("wrong_low") is None for fit in run.manifest["questions"])
    shared = "Shared mistakes come on top, and votes cannot show them"
    lead = "Votes alone cannot show how many labels are wrong" if thin else shared
    return [f"{lead}: check {many(min(ROWS, n_labels(run)), 'label')}{sheet}.", *texts]


# --- Whom and what to look at ---------------------------------------------------------------------------------------


def _warnings(run: Run, findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what to look at: what must be settled, people, doubts, labels that nobody chose, notes."""
    findings = [finding for finding in findings if finding.metric not in OFF_SCREEN]
    subjects = {name for finding in findings if finding.is_warning for name in finding.subject.split(", ")}
    yield from (f"{finding.text}." for finding in findings if finding.level == "bad")
    yield from outlying_people(run, subjects)
    yield from (f"{finding.text}." for finding in findings if finding.level == "doubt")
    fits = run.manifest["questions"]
    is_said = any(finding.metric == "unsupported_labels" and finding.is_warning for finding in findings)
    for fit in () if is_said else fits:
        if unchosen := fit.get("labels_nobody_chose"):
            about = f" on {short_name(fit['question'])}" if len(fits) > 1 else ""
            yield f"{many(unchosen, 'item')}{about} {'has' if unchosen == 1 else 'have'} a label that nobody chose."


def outlying_people(run: Run, except_for: Iterable[str] = ()) -> Iterator[str]:
    """Name, question by question, the annotator who is surely far worse than the others.

    Where there are known answers, by how often votes agree with these; else with the majority of the others.

    Parameters
    ----------
    run
        The run.
    except_for
        Who is named elsewhere.
    """
    by_gold = run.verdict.checked_by == "gold"
    right, n = ("gold_accuracy", "gold_votes") if by_gold else (1.0 - pl.col("disagreement_others"), "n_votes")
    # Raters of a scale have findings of their own: to be a level off is no error of that kind.
    scales = [question.name for question in run.questions if question.levels and not by_gold]
    people = run.table("annotator_summary").with_columns(right=right, n=n).drop_nulls("right")
    people = people.filter(pl.col("n") >= FEW_VOTES, ~pl.col("question").is_in(scales))
    whom = "known answers" if by_gold else "the majority of the others"
    for (question, _), frame in people.group_by("question", "part", maintain_order=True):
        right_a, n_a = frame["right"].to_numpy(), frame["n"].cast(pl.Float64).to_numpy()
        far_a = jeffreys_interval(right_a * n_a, n_a, SURE)[1] < np.median(right_a) - GAP
        names = frame["annotator"].cast(pl.String).to_list()
        order = [a for a in np.argsort(right_a, kind="stable") if far_a[a] and names[a] not in set(except_for)]
        about = f" on {short_name(str(question))}" if len(run.questions) > 1 else ""
        also = f" ({len(order) - 1} more are like that)" if len(order) > 1 else ""
        for a in order[:1] if len(right_a) >= 3 else ():
            lead, rest_a = person(short_name(names[a])), right_a[~far_a]
            agrees = f"{lead} agrees with {whom} on {right_a[a]:.0%} of {n_a[a]:,.0f} votes{about}{also}"
            yield f"{agrees}; the rest on {rest_a.min():.0%} to {rest_a.max():.0%}."


def _commands(run: Run) -> dict[str, str]:
    path, is_checked = run.path, run.verdict.error is not None
    if path is None:
        command, call = run.manifest["command"], "run.save('run/')" if is_checked else "run.spot_check()"
        return {"keep": f"{command} -o run/"} if command else {"next": call}
    check = f"moral-entropy spot-check {path} --answers {path / SHEET} -o {path}-checked"
    place = {"report": str(path / REPORT)} if (path / REPORT).is_file() else {"tables": str(path)}
    return {"next": f"moral-entropy next {path}" if is_checked else check} | place


# --- Text -----------------------------------------------------------------------------------------------------------


def short_name(name: str, longest: int = 24) -> str:
    r"""Return a name from the data as one word or in quotes, so that it can imitate no line of the screen.

    Examples
    --------
    >>> short_name("care"), short_name("next\n  run evil"), short_name("a" * 30)
    ('care', "'next\\n run evil'", 'aaaaaaaaaaaaaaaaaaaaaaa…')
    """
    line = one_line(name, longest)
    return f"'{line}'" if " " in line.replace(" / ", "") else line


def one_line(text: str, longest: int) -> str:
    """Return a text on one line, cut to so many letters; what cannot be printed is spelt out."""
    line = " ".join("".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text).split())
    return line if len(line) <= max(longest, 8) else f"{line[: max(longest, 8) - 1]}…"


def _at_most(n_lines: int, texts: Sequence[str], width: int, ending: str) -> list[str]:
    """Wrap texts, whole ones as far as so many lines go; the last line counts those that are left out."""
    shape: dict[str, Any] = {"initial_indent": "  ", "subsequent_indent": "    ", "break_long_words": False}
    blocks = [wrap(text, width, **shape, break_on_hyphens=False) for text in texts]
    fits, lines = sum(map(len, blocks)) <= n_lines, list[str]()
    room = n_lines if fits else n_lines - (len(blocks) > 1)
    while blocks and len(lines) + len(blocks[0]) <= room:
        lines += blocks.pop(0)
    if blocks and not lines:
        *_, last = lines = blocks.pop(0)[:room]
        lines[-1] = f"{last[: width - 2]} …"
    return [*lines, f"  {len(blocks):,} {ending}"] if blocks and ending else lines


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table as lines: the first column, of words, to the left, the others, of figures, to the right.

    Examples
    --------
    >>> print(*text_table(("rule", "% wrong"), [("any", "9.5")]), sep="|")
    rule  % wrong|any       9.5
    """
    first, *wide = (max(map(len, column)) for column in zip(heads, *rows, strict=True))
    for word, *figures in (heads, *rows):
        yield "  ".join([word.ljust(first), *map(str.rjust, figures, wide)]).rstrip()
