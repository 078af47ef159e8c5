"""Run the notebooks of docs/notebooks, keep their output in them, and write a page of each for the site.

A notebook is written here as plain text: paragraphs, and between lines of ``` the code. `write` makes the .ipynb that
people open and the .md that the site shows, both with the output of a run.

Usage: python tools/notebooks.py
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"

TWIN = """
# A moral corpus: what a rule did to its labels

A simulated twin of the Moral Foundations Twitter Corpus: its domains, annotators, votes per text and flagged shares.
Texts and truth are made up, so that the truth is known. A hundredth of its size is enough to see what rules do.

```
import polars as pl

import moral_entropy as me
from moral_entropy.corpora.twins import twin

corpus = twin("mftc", scale=0.01, seed=1)
frame = corpus.filter(pl.col("question").is_in(["care", "loyalty"]))
print(frame.height, "votes on", frame["item"].n_unique(), "texts")
```

One call audits the votes. `gold` is left out: in life nobody has it.

```
run = me.audit(frame.drop("gold"), draws=200, preset="mft", report=False)
print(run.verdict.title)
```

How often would two common rules have called a text moral although it is not (false positive rate, fpr), and the other
way round (false negative rate, fnr)? Without the truth these are expected rates: a text counts as yes with its p, as
no with the rest. Here the truth is known, so both can be shown:

```
truth = frame.select("question", "item", "gold").unique()
known = run.items.join(truth.rename({"gold": "truth"}), on=["question", "item"])
share = known["n_positive"] / known["n_votes"]
yes = known["truth"].cast(pl.String).is_in(["1", "yes", "true"])
pooled = run.rules.filter(question="(all)", domain="(all)", label="(all)", reference="consensus")
for name, says in {"any": share > 0, "majority": share >= 0.5}.items():
    for rate, of in {"fpr": ~yes, "fnr": yes}.items():
        expected = pooled.filter(rule=name, metric=f"expected_{rate}")["value"].item()
        print(f"{name:<8} {rate}  expected {expected:.2f}, true {(says != yes).filter(of).mean():.2f}")
```

And is p worth more than the share of the votes? The Brier score is the mean squared distance from the truth:

```
print(f"share of the votes  {((share - yes.cast(float)) ** 2).mean():.3f}")
print(f"published p         {((known['p'] - yes.cast(float)) ** 2).mean():.3f}")
```
"""

PANEL = """
# A panel of language models

Seven simulated judges say of 300 answers whether they are good. Three of them are one model asked three times, which
always says the same. Are seven judges worth seven votes?

```
import random

import polars as pl

import moral_entropy as me

draw = random.Random(3)
rows = []
for answer in range(300):
    good = draw.random() < 0.5
    first = good if draw.random() < 0.7 else not good
    for n in range(7):
        says = first if n < 3 else good if draw.random() < 0.85 else not good
        rows.append({"answer": answer, "judge": f"judge-{n}", "verdict": "good" if says else "bad", "truth": good})
frame = pl.DataFrame(rows)
```

```
names = {"item": "answer", "annotator": "judge", "label": "verdict", "positive": "good"}
run = me.audit(frame.drop("truth"), **names, draws=200, report=False)
merged = [fit["counted_as_one"] for fit in run.manifest["questions"]]
print("counted as one:", merged[0])
```

A majority of seven listens to that model three times. What does that cost?

```
truth = frame.group_by("answer").agg(pl.col("truth").first(), share=(pl.col("verdict") == "good").mean())
known = run.items.join(truth, left_on="item", right_on="answer")
print(f"majority wrong:  {((known['share'] >= 0.5) != known['truth']).mean():.1%}")
print(f"consensus wrong: {((known['p'] >= 0.5) != known['truth']).mean():.1%}")
```
"""

NOTEBOOKS = {"moral-corpus": TWIN, "llm-panel": PANEL}


def cells_of(text: str) -> list[tuple[str, str]]:
    r"""Split a text into cells: ("markdown", paragraphs) and ("code", lines).

    Examples
    --------
    >>> cells_of("Words.\n```\nx = 1\n```\nMore.")
    [('markdown', 'Words.'), ('code', 'x = 1'), ('markdown', 'More.')]
    """
    parts = re.split(r"^```$", text, flags=re.MULTILINE)
    cells = [("code" if n % 2 else "markdown", part.strip("\n")) for n, part in enumerate(parts)]
    return [(kind, part.strip() if kind == "markdown" else part) for kind, part in cells if part.strip()]


def run_cells(cells: list[tuple[str, str]]) -> list[str]:
    """Run the code of a notebook from the project's root, cell after cell; return what each cell prints."""
    space: dict[str, Any] = {"__name__": "__main__"}
    printed, before = [], Path.cwd()
    os.chdir(ROOT)
    try:
        for n, (kind, code) in enumerate(cells):
            out = io.StringIO()
            if kind == "code":
                with contextlib.redirect_stdout(out):
                    exec(compile(ast.parse(code), f"<cell {n}>", "exec"), space)
            printed.append(out.getvalue())
    finally:
        os.chdir(before)
    return printed


def as_notebook(cells: list[tuple[str, str]], printed: list[str]) -> dict[str, Any]:
    """Return a notebook as its JSON has it."""
    made: list[dict[str, Any]] = []
    for n, ((kind, text), out) in enumerate(zip(cells, printed, strict=True)):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{n}", "metadata": {}, "source": lines_of(text)}
        if kind == "code":
            shown = [{"name": "stdout", "output_type": "stream", "text": lines_of(out)}] if out else []
            cell |= {"execution_count": None, "outputs": shown}
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def as_page(name: str, cells: list[tuple[str, str]], printed: list[str]) -> str:
    """Return a notebook as a page of the site, with what it printed."""
    parts = [f"<!-- Written by tools/notebooks.py; the notebook itself is {name}.ipynb. -->"]
    for (kind, text), out in zip(cells, printed, strict=True):
        parts.append(text if kind == "markdown" else f"```py\n{text}\n```")
        if out:
            parts.append(f"```\n{out.rstrip()}\n```")
    return "\n\n".join(parts) + f"\n\n[The notebook]({name}.ipynb) to run it yourself.\n"


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, each with its end, as notebooks keep them."""
    return text.splitlines(keepends=True)


def write(name: str) -> None:
    """Run a notebook, and write it and its page."""
    cells = cells_of(NOTEBOOKS[name])
    printed = run_cells(cells)
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(as_notebook(cells, printed), indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
    (FOLDER / f"{name}.md").write_text(as_page(name, cells, printed), encoding="utf-8")


if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        write(notebook)
