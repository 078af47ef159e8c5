"""A study → one page of Markdown that says where soft labels win, where not, and against which reference.

Every sentence about the outcome is made from the figures. Touches no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.markup import markdown_table
from moral_entropy.names import MEAN
from moral_entropy.report.soft_labels import (
    CONSTANT,
    FAVOURED,
    HELD_OUT,
    METRICS,
    REFERENCES,
    in_a_sentence,
    one_split,
    overall,
    sentences,
    show,
    show_difference,
)
from moral_entropy.study.compare import Study
from moral_entropy.study.tables import joined_table

FIRST = ("accuracy", "log_loss", "auc")
"""Metrics of the first lines."""

FAIREST = ("gold", HELD_OUT, "votes", "majority", "consensus")
"""References for the first lines, the one that favours the fewest targets first."""

POINTS = 6
"""Points shown per learning curve."""


def study_page(study: Study, *, title: str = "Do soft labels win?", level: int = 1) -> str:
    """Write the page of a study.

    Parameters
    ----------
    study
        What was found.
    title
        Title of the page.
    level
        Level of its heading, so that it can be a part of a longer page.
    """
    table = joined_table(study.scores, study.differences)
    marks = "#" * (level + 1)
    parts = [
        f"{'#' * level} {title}",
        *_first_lines(table, study.facts),
        *_how_made(study),
        f"{marks} The answer",
        "\n".join(_answer_lines(table)),
        f"{marks} Scores",
        *_score_sections(table, study.facts, level + 2),
        f"{marks} Question by question",
        *_question_sections(table, level + 2),
        *_split_section(table, marks),
        *_curve_section(study.curves, marks),
        *_notes(study.notes, marks),
    ]
    return "\n\n".join(parts) + "\n"


def _first_lines(table: pl.DataFrame, facts: dict[str, Any]) -> Iterator[str]:
    """Say in a line per model where the base wins, where it loses, and by how much, against the fairest reference."""
    rows = overall(table).filter(pl.col("better").is_not_null(), pl.col("metric").is_in(FIRST))
    reference = next(name for name in FAIREST if name in set(rows["reference"]))
    for model in rows["model"].unique(maintain_order=True):
        own = rows.filter(model=model, reference=reference)
        said = [
            f"{verb} {in_a_sentence(found)}"
            for verb, sides in (
                ("wins on", [facts["base"]]),
                ("loses on", facts["targets"]),
                ("is level on", ["neither"]),
            )
            if (found := _by_metric(own.filter(pl.col("better").is_in(sides)), taken=facts["base"], verb=verb))
        ]
        yield f"**{model}, against {reference}: {facts['base']} {'; '.join(said)}.**"


def _by_metric(rows: pl.DataFrame, *, taken: str, verb: str) -> list[str]:
    if verb == "loses on":
        rows = rows.filter(pl.col("better") != taken)
    found = []
    for metric in FIRST:
        against = [
            f"{row['target']} {show_difference(row)}" for row in rows.filter(metric=metric).iter_rows(named=True)
        ]
        if against:
            found.append(f"{METRICS[metric]} ({', '.join(against)})")
    return found


def _how_made(study: Study) -> Iterator[str]:
    facts = study.facts
    seeds, n_splits = facts["seeds"], len(facts["sizes"])
    first = next(iter(facts["sizes"].values()))
    sizes = f"{first['train']:,} texts to train on, {first['validation']:,} to validate, {first['test']:,} to test"
    several = "" if n_splits == 1 else f"{n_splits} splits ({facts['split']}), the first with "
    yield (
        f"{facts['items']:,} texts, {len(facts['questions'])} question{'s' * (len(facts['questions']) > 1)}; "
        f"{several}{sizes}, never the same text on two sides. Targets: {', '.join(facts['targets'])}. "
        f"Models: {', '.join(facts['models'])}. {len(seeds)} seed{'s' * (len(seeds) > 1)}. Split, seeds, steps and "
        "architecture are the same for every target."
    )
    yield (
        f"Differences are {facts['base']} less the other target, on the same items with the same seeds. Intervals hold "
        f"{facts['interval']:.0%} of {facts['replicates']} resamplings of texts and seeds together; somebody wins "
        "where the interval leaves out 0. With this many comparisons some will by chance."
    )


def _answer_lines(table: pl.DataFrame) -> Iterator[str]:
    """Say by reference what it is, whom it favours, and whom the base beats: a list in Markdown."""
    for reference, said in sentences(table).items():
        yield f"- **Against {reference}**: {REFERENCES[reference]}. Whom it favours: {FAVOURED[reference]}."
        yield from (f"  - {sentence}" for sentence in said)


def _score_sections(table: pl.DataFrame, facts: dict[str, Any], level: int) -> Iterator[str]:
    """Write one table per model and reference: every target's scores, and the base's lead over it."""
    rows = overall(table)
    for model in facts["models"]:
        for reference in (name for name in REFERENCES if name in set(table["reference"])):
            own = rows.filter(pl.col("model").is_in([model, CONSTANT]), reference=reference)
            yield f"{'#' * level} {model}, against {reference}"
            yield _table(("target", *METRICS.values()), _score_cells(own))
    yield (
        f"Below a score, in brackets: {facts['base']} less this target, with its interval. pp: percentage points. "
        f"{CONSTANT}: the mean {facts['base']} target as the answer to every text."
    )


def _score_cells(own: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    for model, target in own.select("model", "target").unique(maintain_order=True).iter_rows():
        by_metric = {row["metric"]: row for row in own.filter(model=model, target=target).iter_rows(named=True)}
        cells = (_score_cell(by_metric[metric]) if metric in by_metric else "–" for metric in METRICS)
        yield (CONSTANT if model == CONSTANT else str(target), *cells)


def _score_cell(row: dict[str, Any]) -> str:
    value, difference = show(row["metric"], row["value"]), show_difference(row)
    return f"{value} [{difference}]" if difference else value


def _question_sections(table: pl.DataFrame, level: int) -> Iterator[str]:
    """Write the base's AUC against the majority label, as the paper's table has it, and its lead in accuracy."""
    rows = one_split(table).filter(pl.col("question") != MEAN)
    for model in rows.filter(pl.col("model") != CONSTANT)["model"].unique(maintain_order=True):
        yield f"{'#' * level} {model}"
        yield _table(*_question_table(rows.filter(model=model)))


def _question_table(own: pl.DataFrame) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    other = _other_target(own)
    asked = [("consensus", "accuracy"), ("majority", "accuracy"), ("gold", "accuracy"), (HELD_OUT, "log_loss")]
    asked = [(reference, metric) for reference, metric in asked if reference in set(own["reference"])]
    header = (
        "question",
        "AUC against the majority label",
        *(f"{METRICS[metric]} less that of {other}, against {reference}" for reference, metric in asked),
    )
    rows = []
    for question in own["question"].unique(maintain_order=True):
        here = own.filter(question=question)
        base = here.filter(pl.col("better").is_null(), reference="majority", metric="auc").to_dicts()[0]
        auc = f"{show('auc', base['value'])} ({show('auc', base['low'])} to {show('auc', base['high'])})"
        found = [here.filter(target=other, reference=name, metric=metric).to_dicts() for name, metric in asked]
        rows.append((str(question), auc, *((show_difference(one[0]) if one else "") or "–" for one in found)))
    return header, rows


def _split_section(table: pl.DataFrame, marks: str) -> Iterator[str]:
    """Write the lead in accuracy and log loss split by split, where there are several."""
    if table["split"].n_unique() == 1:
        return
    other = _other_target(table)
    rows = table.filter(
        pl.col("better").is_not_null(),
        pl.col("metric").is_in(["accuracy", "log_loss"]),
        question=MEAN,
        target=other,
    )
    cells = [
        (
            *(row[name] for name in ("split", "model", "reference")),
            METRICS[row["metric"]],
            show(row["metric"], row["value"]),
            show_difference(row) or "–",
        )
        for row in rows.iter_rows(named=True)
    ]
    yield f"{marks} Split by split"
    yield f"The other target is {other}."
    header = ("split", "model", "against", "metric", "its score", "lead of the base")
    yield markdown_table(header, cells, is_markdown=True)


def _other_target(table: pl.DataFrame) -> str:
    others = table.filter(pl.col("better").is_not_null())["target"].unique(maintain_order=True).to_list()
    return "majority" if "majority" in others else str(others[0])


def _curve_section(curves: pl.DataFrame, marks: str) -> Iterator[str]:
    """Write the mean loss over seeds and splits, step by step; a model that reports only its last loss has none."""
    one = ("model", "split", "target", "seed")
    # The number of batches differs between seeds: curves are averaged point by point, not step by step.
    curves = curves.filter(pl.len().over(one) > 1).with_columns(point=pl.int_range(pl.len()).over(one))
    if curves.is_empty():
        return
    yield f"{marks} Learning curves"
    yield (
        "Loss against the target's own, in nats per text, summed over questions; training then validation. Targets "
        "have entropies of their own, so rows can be followed along but not compared with each other."
    )
    for model in curves["model"].unique(maintain_order=True):
        own = curves.filter(model=model)
        last = max(own["point"])
        points = np.linspace(0, last, min(POINTS, last + 1)).round().astype(int).tolist()
        rows = [
            (str(target), *(_losses(own.filter(target=target, point=point)) for point in points))
            for target in own["target"].unique(maintain_order=True)
        ]
        steps = [f"{np.mean(own.filter(point=point)['step'].to_list()):,.0f}" for point in points]
        yield _table((f"{model}: after step", *steps), rows)


def _losses(rows: pl.DataFrame) -> str:
    known = [rows[name].drop_nulls().to_list() for name in ("train_loss", "validation_loss")]
    return " / ".join(f"{np.mean(losses):.3f}" if losses else "–" for losses in known)


def _notes(notes: Sequence[str], marks: str) -> Iterator[str]:
    if notes:
        yield f"{marks} Remarks"
        yield "\n".join(f"- {note}" for note in notes)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown_table(header, rows, numbers=header[1:], is_markdown=True)
