"""`moral-entropy judges`: what was judged, with an interval, then whom to keep, then the best panel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from moral_entropy.cli.flags import Json, Run
from moral_entropy.cli.screen import filled, printable, rows_table, show
from moral_entropy.errors import UsageError
from moral_entropy.findings import many
from moral_entropy.names import ALL
from moral_entropy.options import JudgeOptions

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from moral_entropy.judges.score import Score
    from moral_entropy.judges.table import Judges

EXIT_CODES = {"": 0, "trusted": 0, "untrusted": 1, "undecided": 3}
MOST_ROWS = 30

ESTIMATES = {"score": "", "PPI++": "ppi_", "known alone": "gold_", "plain votes": "votes_"}
"""How the score is estimated, and what the columns of each estimate begin with."""

SCORES = "system: {group:24} | verdict: {verdict} | items: {n_items:,} | known: {n_gold:,}"
DIFFERENCES = "systems: {group:18} - {other:18} | verdict: {verdict}"
PANELS = "judges: {judges} | size: {size} | % wrong: {wrong!p:.1f} | on unseen items: {wrong_unseen!p:.1f}"
RANKING = (
    "name: {name:40} | rank: {rank} | interval: {rank_low}–{rank_high} | votes: {n:,} | % won: {win_rate!p:.0f} | "
    "strength: {strength:z.2f} ({low:z.2f} to {high:z.2f})"
)
POSITIONS = (
    "judge: {judge:28} | votes: {n:,} | points for the first shown: {bias!p:z.0f} ({bias_low!p:z.0f} to "
    "{bias_high!p:z.0f}) | discrimination: {discrimination:.2f}"
)
RIGHT = " | % right: {right_all!p:.1f} ({right_all_low!p:.0f}–{right_all_high!p:.0f})"
AGREES = " | % as others: {agrees!p:.1f} ({agrees_low!p:.0f}–{agrees_high!p:.0f})"
ADDS = " | nats: {nats:z.3f} | saved: {saved!p:z.1f}"


def judges(run: Run, options: JudgeOptions, json: Json = False) -> None:
    """Score systems by their judges and known answers, then say which judges to keep, and the best panel.

    Answers are known from gold, a filled-in spot check, or people's votes beside those of language models. Without any,
    nothing is called trusted. With --at-least the exit code is 0 if trusted, 1 if untrusted, 3 if undecided.

    Example: moral-entropy judges run/ --at-least 0.7
    """
    from moral_entropy.judges.known import default_system
    from moral_entropy.judges.score import score
    from moral_entropy.judges.table import describe_judges
    from moral_entropy.report.export import check_suffix, write_frame
    from moral_entropy.runs.run import read_run

    opened = read_run(run)
    by = options.by or default_system(opened)
    described = describe_judges(opened, options)
    scores = None
    if by is not None or options.at_least is not None or described.frame["n_known"].sum() or described.replace.height:
        names = ("question", "at_least", "values", "roles", "cluster_column", "strata_column", "interval")
        scores = score(opened, by, **{name: getattr(options, name) for name in names})
    if options.labels is not None:
        if described.labels.is_empty():
            msg = "there are no labels to write: it takes 30 known answers, and items whose answer is not known."
            raise UsageError(msg)
        check_suffix(Path(options.labels), "csv")
        write_frame(described.labels.lazy(), Path(options.labels))
    notes = list(dict.fromkeys((*(scores.notes if scores else ()), *described.notes)))
    record = (scores.as_dict() if scores else {}) | described.as_dict() | {"notes": notes}
    show("judges", record, _lines(scores, described, notes, run), as_json=json)
    raise typer.Exit(EXIT_CODES[scores.verdict if scores else ""])


def _lines(scores: Score | None, described: Judges, notes: list[str], run: str) -> Iterator[str | Table]:
    """Yield scores, where there are any, and what is known of judges as lines and tables."""
    if scores is not None:
        yield from _score_lines(scores, run)
    for (question,), rows in described.frame.group_by(["question"], maintain_order=True):
        effective = "".join(
            f"; worth {row['effective']:.1f} that err independently ({row['low']:.1f}–{row['high']:.1f})"
            for row in described.effective.filter(question=question).to_dicts()
        )
        order = "best first" if rows["n_known"].sum() else "by how often they agree with the others"
        yield f"{question}: {many(rows.height, 'judge')}, {order}{effective}"
        yield from (
            filled(f"  {printable(row['judge'], 28)}: {row['advice']}", "  ") for row in rows.head(MOST_ROWS).to_dicts()
        )
        yield ""
        yield from _judge_lines(rows)
        panels = described.panels.filter(question=question)
        if panels.height:
            yield "\nbest panel of each size, by known answers"
            yield rows_table(panels, PANELS, n_words=1)
        ranking, positions = (table.filter(question=question) for table in (described.ranking, described.positions))
        if ranking.height:
            yield "\nranking by comparisons (Bradley–Terry–Davidson; strength in log-odds)"
            yield rows_table(ranking.head(MOST_ROWS), RANKING, n_words=1)
            yield from _more(ranking)
            yield ""
            yield rows_table(_without_all(positions.head(MOST_ROWS), "judge"), POSITIONS, n_words=1)
        yield from (filled(str(text), "  ") for text in described.replace.filter(question=question)["text"])
        yield ""
    yield from (filled(f"note: {note}", "  ") for note in notes)


def _judge_lines(rows: pl.DataFrame) -> Iterator[str | Table]:
    graded, copies = (rows["n_known"] > 0).any(), (rows["counted_with"] != "").any()
    records = rows.head(MOST_ROWS).to_dicts()
    for row in records:
        copies_of = row["counted_with"].split(", ")
        row["with"] = f"{len(copies_of)} others" if len(copies_of) > 1 else row["counted_with"]
    cells = "judge: {judge:28} | role: {role}" + " | counted with: {with:24}" * copies + " | votes: {n_votes:,}"
    added = rows["nats"].is_not_null().any()
    yield rows_table(records, cells + RIGHT * graded + AGREES + ADDS * added, n_words=2 + copies)
    yield from _more(rows)
    if added:
        yield filled("nats and saved: gain of log score and of right labels in 100 over the judges kept above it", "  ")


def _more(rows: pl.DataFrame) -> list[str]:
    return [f"{rows.height - MOST_ROWS:,} more: --json, or run.judges"] if rows.height > MOST_ROWS else []


def _without_all(rows: pl.DataFrame, column: str) -> list[dict[str, Any]]:
    return [row | {column: "all" if row[column] == ALL else row[column]} for row in rows.to_dicts()]


def _score_lines(scores: Score, run: str) -> Iterator[str | Table]:
    from moral_entropy.judges.values import is_share

    for (question, quantity), rows in scores.frame.group_by(["question", "quantity"], maintain_order=True):
        share = is_share(str(quantity))
        unit, bound = ("!p:z.1f", "!p:z.0f") if share else (":z.2f", ":z.2f")
        estimates = "".join(
            f" | {name}: {{{at}value{unit}}} ({{{at}low{bound}}} to {{{at}high{bound}}})"
            for name, at in ESTIMATES.items()
        )
        yield f"{question}: {quantity}{', %' * share} (and {scores.interval:.0%} interval)"
        begin, n_words = (SCORES, 2) if scores.verdict else (SCORES.replace(" | verdict: {verdict}", ""), 1)
        yield rows_table(_without_all(rows, "group"), begin + estimates.replace(" to ", "–"), n_words=n_words)
        yield ""
        apart = scores.differences.filter(question=question, quantity=quantity)
        if apart.height:
            yield "differences"
            yield rows_table(apart, DIFFERENCES + estimates, n_words=2)
            yield ""
        if lines := list(_undecided(rows, apart, run)):
            yield from (*lines, "")


def _undecided(rows: pl.DataFrame, apart: pl.DataFrame, run: str) -> Iterator[str]:
    """Say what would settle what is undecided."""
    names = [*rows["group"], *(f"{group_a} - {group_b}" for group_a, group_b in apart.select("group", "other").rows())]
    for name, row in zip(names, [*rows.to_dicts(), *apart.to_dicts()], strict=True):
        if row["verdict"] == "undecided" and row["n_gold"]:
            begin = f"{printable(name, 40)}: " if rows.height > 1 else ""
            settles = "known answers on these items will not settle it: it takes more items"
            if row["more_gold"] is not None:
                settles = f"about {row['more_gold']:,} more known answers would settle it, if the score stays as it is"
            yield f"{begin}undecided; {settles}"
    if rows["more_gold"].is_not_null().any() or apart["more_gold"].is_not_null().any():
        yield f"random items to label: moral-entropy spot-check {run} -n N, then --answers with the filled-in sheet"
