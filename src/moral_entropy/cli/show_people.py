"""`next --for people` → the screen, a file, or JSON: what to accept, and whom to ask about the rest."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import polars as pl

from moral_entropy.cli.screen import plain_table, print_json, print_parts, printable
from moral_entropy.judges.people import escalate, sentence_of
from moral_entropy.report.export import write_tasks
from moral_entropy.runs.run import Run

RISK = 0.1
WIDTH = 80


def show_people(
    run: Run, number: int, agreement: float, *, question: str | None, out: Path | None, to: str, json: bool
) -> None:
    """Print what can be accepted and the items to send, or write these to a file."""
    parts = escalate(run, agreement=agreement, risk=RISK, question=question)
    queue = pl.concat([part["queue"] for part in parts]).sort("expected_gain", descending=True, maintain_order=True)
    queue = queue.head(number).with_columns(rank=pl.int_range(1, pl.len() + 1))
    sentences = [sentence_of(part, agreement, RISK) for part in parts]
    lines = [fill(text, WIDTH, subsequent_indent="  ") for text in sentences]
    if out is not None:
        tasks = queue.group_by("item", maintain_order=True).agg(
            pl.col("rank").first(), questions=pl.col("question").str.join(", ")
        )
        write_tasks(run, tasks, out, to=to)
    if json:
        print_json("next", {"sentences": sentences, "queue": queue.to_dicts()})
        return
    last = f"the first {queue.height:,} to send hold about {queue['expected_gain'].sum():.0f} wrong labels"
    if out is not None or queue.is_empty():
        print_parts(lines if out is None else [*lines, f"{out}: {last}"])
        return
    cells = [
        (f"{row['rank']}", printable(row["question"], 20), printable(row["item"], 40), printable(row["label"], 20),
         f"{row['confidence']:.3f}", f"{row['expected_gain']:.2f}")
        for row in queue.iter_rows(named=True)
    ]  # fmt: skip
    heads = ("rank", "question", "item", "label", "confidence", "wrong")
    print_parts([*lines, "", plain_table(heads, cells, n_words=4), last])
