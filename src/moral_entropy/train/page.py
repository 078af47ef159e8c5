"""A study → one page of Markdown that says where soft labels win, where not, and against which reference.

Every sentence about the outcome is made from the figures. Touches no files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.train.compare import Study
from moral_entropy.train.references import FAVOURED, REFERENCES
from moral_entropy.train.scores import METRICS
from moral_entropy.train.study_tables import CONSTANT, MEAN
from moral_entropy.train.verdicts import (
    SHOWN,
    answers,
    joined_table,
    score_rows,
    show,
    show_gap,
    verdicts,
)

POINTS = 6
"""Points of a learning curve shown."""


def study_page(study: Study, *, title: str = "Do soft labels win?", level: int = 1) -> str:
    """Write the page of a study.

    Parameters
    ----------
    study
        What was found.
    title
        Of the page.
    level
        Of its heading, so that it can be a part of a longer page.
    """
    table = joined_table(study.scores, study.differences)
    marks = "#" * (level + 1)
    parts = [
        f"{'#' * level} {title}",
        *how_made(study),
        f"{marks} The answer",
        "\n".join(answer_lines(table)),
        f"{marks} Scores",
        *score_sections(table, study.facts, level + 2),
        f"{marks} Question by question",
        *question_sections(table, level + 2),
        *_split_section(table, marks),
        *curve_section(study.curves, marks),
        *_notes(study.notes, marks),
    ]
    return "\n\n".join(parts) + "\n"


def how_made(study: Study) -> Iterator[str]:
    """Say how the study was made, a paragraph each."""
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


def answer_lines(table: pl.DataFrame) -> Iterator[str]:
    """Say by reference what it is, whom it favours, and how the base fares against it: a list in Markdown."""
    for reference, sentences in answers(verdicts(table)).items():
        yield f"- **Against {reference}**: {REFERENCES[reference]}. Whom it favours: {FAVOURED[reference]}."
        yield from (f"  - {sentence}" for sentence in sentences)


def score_sections(table: pl.DataFrame, facts: dict[str, Any], level: int) -> Iterator[str]:
    """Give a table a model and reference: every target's scores, and the base's lead over it."""
    for model in facts["models"]:
        for reference in (name for name in REFERENCES if name in set(table["reference"])):
            yield f"{'#' * level} {model}, against {reference}"
            rows = [
                (target, *(_score_cell(by_metric.get(metric)) for metric in METRICS))
                for target, by_metric in score_rows(table, model, reference)
            ]
            yield markdown_table(("target", *SHOWN.values()), rows, numbers=True)
    yield (
        f"Below a score, in brackets: {facts['base']} less this target, with its interval. pp: percentage points. "
        f"{CONSTANT}: the mean {facts['base']} target as the answer to every text."
    )


def _score_cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    gap = show_gap(row["metric"], row["difference"], row["difference_low"], row["difference_high"])
    return show(row["metric"], row["value"]) + ("" if row["difference"] is None else f" [{gap}]")


def question_sections(table: pl.DataFrame, level: int) -> Iterator[str]:
    """Give the base's AUC against the majority label, as the paper's table has it, and its lead in accuracy."""
    rows = _one_split(table).filter(pl.col("question") != MEAN)
    for model in rows.filter(pl.col("model") != CONSTANT)["model"].unique(maintain_order=True):
        own = rows.filter(model=model)
        yield f"{'#' * level} {model}"
        yield markdown_table(*_question_table(own), numbers=True)


def _question_table(own: pl.DataFrame) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    others = own.filter(pl.col("better").is_not_null())["target"].unique(maintain_order=True).to_list()
    shown_other = "majority" if "majority" in others else others[0]
    asked = [("consensus", "accuracy"), ("majority", "accuracy"), ("gold", "accuracy"), ("held-out votes", "log_loss")]
    asked = [(reference, metric) for reference, metric in asked if reference in set(own["reference"])]
    header = (
        "question",
        "AUC against the majority label",
        *(f"{SHOWN[metric]} less that of {shown_other}, against {reference}" for reference, metric in asked),
    )
    rows = []
    for question in own["question"].unique(maintain_order=True):
        here = own.filter(question=question)
        base = here.filter(pl.col("better").is_null(), reference="majority", metric="auc").to_dicts()
        auc = f"{show('auc', base[0]['value'])} ({show('auc', base[0]['low'])} to {show('auc', base[0]['high'])})"
        gaps = [here.filter(target=shown_other, reference=ref, metric=metric).to_dicts() for ref, metric in asked]
        rows.append((str(question), auc, *(_gap_cell(found) for found in gaps)))
    return header, rows


def _gap_cell(found: Sequence[dict[str, Any]]) -> str:
    if not found:
        return "–"
    row = found[0]
    return show_gap(row["metric"], row["difference"], row["difference_low"], row["difference_high"])


def _one_split(table: pl.DataFrame) -> pl.DataFrame:
    splits = table["split"].unique().to_list()
    return table.filter(split=splits[0] if len(splits) == 1 else MEAN)


def _split_section(table: pl.DataFrame, marks: str) -> Iterator[str]:
    """Give the lead in accuracy and log loss split by split, where there are several."""
    if table["split"].n_unique() == 1:
        return
    yield f"{marks} Split by split"
    rows = table.filter(
        pl.col("better").is_not_null(),
        pl.col("metric").is_in(["accuracy", "log_loss"]),
        question=MEAN,
        target=_rival(table),
    )
    cells = [
        (
            row["split"],
            row["model"],
            row["reference"],
            SHOWN[row["metric"]],
            show(row["metric"], row["value"]),
            _gap_cell([row]),
        )
        for row in rows.iter_rows(named=True)
    ]
    yield f"The other target is {_rival(table)}."
    yield markdown_table(("split", "model", "against", "metric", "its score", "lead of the base"), cells)


def _rival(table: pl.DataFrame) -> str:
    others = table.filter(pl.col("better").is_not_null())["target"].unique(maintain_order=True).to_list()
    return "majority" if "majority" in others else str(others[0])


def curve_section(curves: pl.DataFrame, marks: str) -> Iterator[str]:
    """Give the loss along the way, a mean over seeds and splits; a model that tells only its last loss has none."""
    one = ("model", "split", "target", "seed")
    # Seeds have batches of their own number: trainings are laid side by side point by point, not step by step.
    curves = curves.filter(pl.len().over(one) > 1).with_columns(point=pl.int_range(pl.len()).over(one))
    if curves.is_empty():
        return
    yield f"{marks} Learning curves"
    yield (
        "Loss against the target's own, in nats a text, summed over questions; training then validation. Targets have "
        "entropies of their own, so rows can be followed along but not compared with each other."
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
        yield markdown_table((f"{model}: after step", *steps), rows, numbers=True)


def _losses(rows: pl.DataFrame) -> str:
    known = [rows[name].drop_nulls().to_list() for name in ("train_loss", "validation_loss")]
    return " / ".join(f"{np.mean(losses):.3f}" if losses else "–" for losses in known)


def _notes(notes: Sequence[str], marks: str) -> Iterator[str]:
    if notes:
        yield f"{marks} Remarks"
        yield "\n".join(f"- {note}" for note in notes)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    r"""Write a table in Markdown; with `numbers`, all columns but the first are flush right.

    Examples
    --------
    >>> print(markdown_table(("a", "b"), [("x|y", "1")], numbers=True))
    | a | b |
    | --- | ---: |
    | x\|y | 1 |
    """
    rule = ["---", *(["---:" if numbers else "---"] * (len(header) - 1))]
    lines = [header, rule, *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
