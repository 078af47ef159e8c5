"""Run → tables and a methods paragraph for a paper: CSV, Markdown and LaTeX, all with the figures of this run.

Per question: prevalence, agreement, error rates of rules, and the parts of the entropy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.files import without_formulas, write_text
from moral_entropy.markup import NOTHING, markdown_table, markdown_text
from moral_entropy.names import ALL, MEAN, MULTICLASS
from moral_entropy.report.words import RATES, fill_template, protocol
from moral_entropy.runs.run import Run, as_run
from moral_entropy.verdict.summary import question_rows

CAPTIONS = {
    "questions": "By question: items, votes, Krippendorff's alpha, labels whose chance of error is above a quarter, "
    "items that the majority labels otherwise, and the range of the share of wrong labels: by gold, else if errors are "
    "independent.",
    "prevalence": "Share of the items that have each label, as the model estimates it.",
    "agreement": "Agreement between annotators.",
    "rates": "Error rates of rules: those to expect under p (reference consensus), and those counted against gold.",
    "entropy": "Mean entropy per item and its parts, in nats.",
}
FIGURES = ("alpha", "alpha_low", "alpha_high", "uncertain", "majority_differs", "wrong_from", "wrong_to")
LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}"}
    | {">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "α": r"$\alpha$", "“": "``", "”": "''"}
)
"""How characters are written that mean something else in LaTeX."""


def write_paper(run: Run | str | Path, folder: str | Path) -> list[Path]:
    """Write tables and a methods paragraph for a paper, and return their paths.

    Parameters
    ----------
    run
        The run, or its folder.
    folder
        Where they go; files of the same name are replaced.
    """
    run, target = as_run(run), Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    tables, text = paper_tables(run), methods(run)
    files = {f"{name}.csv": without_formulas(frame).write_csv() for name, frame in tables.items()}
    cells = {CAPTIONS[name]: text_cells(frame) for name, frame in tables.items()}
    files["tables.md"] = "\n\n".join(f"{caption}\n\n{markdown_table(*grid)}" for caption, grid in cells.items())
    files["tables.tex"] = "\n\n".join(latex_table(caption, *grid) for caption, grid in cells.items())
    files |= {"methods.md": markdown_text(text), "methods.tex": text.translate(LATEX)}
    for name, content in files.items():
        write_text(target / name, content.rstrip("\n") + "\n")
    return [target / name for name in files]


def paper_tables(run: Run) -> dict[str, pl.DataFrame]:
    """Return the tables by name, as numbers: questions, prevalence, agreement, rates, entropy."""
    parts = {"items": "n_items", "total": "total"} | {name: part for part, name in run.parts.items()}
    ends = {"low": "value_low", "high": "value_high"}
    shares = [
        (" / ".join(filter(None, (fit["question"], fit["part"]))), label, share)
        for fit in run.manifest["questions"]
        for label, share in fit["prevalence"].items()
    ]
    return {
        "questions": question_frame(run),
        "prevalence": pl.DataFrame(shares, schema=["question", "label", "share"], orient="row"),
        "agreement": run.table("agreement").filter(domain=ALL).drop("domain").rename(ends),
        "rates": rate_frame(run),
        "entropy": run.table("entropy").filter(domain=ALL).select("question", **parts),
    }


def question_frame(run: Run) -> pl.DataFrame:
    """Return the rows of the first screen, one per question: the same figures, votes, and alpha with its interval."""
    fits = {" / ".join(filter(None, (fit["question"], fit["part"]))): fit for fit in run.manifest["questions"]}
    agreement = (
        run.table("agreement").filter(domain=ALL).rows_by_key(["question", "statistic"], named=True, unique=True)
    )
    rows = []
    for row in question_rows(run):
        fit = fits[row["question"]]
        alpha = agreement.get((fit["question"], f"krippendorff_alpha{'_ordinal' * row['ordered']}"), {})
        ends = (alpha.get("low"), alpha.get("high"))
        shares = (row[name] for name in ("uncertain", "differs", "low", "high"))
        rows.append((row["question"], row["items"], fit["votes"], row["alpha"], *ends, *shares))
    types = {"question": pl.String, "items": pl.Int64, "votes": pl.Int64, **dict.fromkeys(FIGURES, pl.Float64)}
    return pl.DataFrame(rows, schema=types, orient="row")


def rate_frame(run: Run) -> pl.DataFrame:
    """Return the rates of every rule by question, or by label of more than two: expected under p, and against gold."""
    large = pl.col("question").is_in([question.name for question in run.questions if question.positive is None])
    by_label = large & ~pl.col("label").is_in([ALL, MULTICLASS])
    is_target = ~pl.col("question").is_in([ALL, MEAN]) & (by_label | ~large)
    target = pl.when(by_label).then(pl.format("{}: {}", "question", "label")).otherwise("question")
    rates: dict[tuple[str, ...], dict[str, Any]] = {}
    name = pl.col("metric").str.strip_prefix("expected_")
    # Against the consensus, what p lets one expect goes before the count of its labels.
    leads = name.is_in(list(RATES)) & ((pl.col("reference") == "gold") | (pl.col("metric") != name))
    frame = run.table("audit").filter(is_target, leads, domain=ALL).with_columns(question=target, metric=name)
    for row in frame.iter_rows(named=True):
        key = {column: row[column] for column in ("question", "rule", "reference")}
        ends = {f"{row['metric']}{end}": row[end[1:] or "value"] for end in ("", "_low", "_high")}
        rates.setdefault(tuple(key.values()), key).update(ends)
    return pl.DataFrame(list(rates.values()), infer_schema_length=None)


def text_cells(frame: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Round a table of figures for reading: its heads, and its cells with intervals beside their values."""
    columns = [name for name in frame.columns if not name.endswith(("_low", "_high"))]
    is_figure = {name: frame[name].dtype == pl.Float64 for name in columns}
    rows = [
        [interval_of(row, name, ".3f") if is_figure[name] else str(row[name]) for name in columns]
        for row in frame.iter_rows(named=True)
    ]
    return [name.replace("_", " ") for name in columns], rows


def interval_of(row: Mapping[str, Any], name: str, form: str) -> str:
    """Show the figure of a column with its interval, if it has one.

    Examples
    --------
    >>> interval_of({"fpr": 0.123, "fpr_low": 0.1, "fpr_high": 0.15}, "fpr", ".1%")
    '12.3% (10.0–15.0)'
    """
    return with_ends(form, *(row.get(f"{name}{end}") for end in ("", "_low", "_high")))


def with_ends(form: str, value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Show a figure with its interval, if it has one and is not known exactly."""
    if value is None:
        return NOTHING
    if low is None or high is None or low == high:
        return f"{value:z{form}}"
    bounds = (f"{end:z{form}}".removesuffix("%") for end in (low, high))
    return f"{value:z{form}} ({(' to ' if low < 0 else '–').join(bounds)})"


def latex_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Write a table in LaTeX, with rules of the package booktabs.

    Examples
    --------
    >>> print(latex_table("Rates.", ["rule", "fpr"], [["any_1", "12%"]]))
    \begin{table}
    \caption{Rates.}
    \begin{tabular}{lr}
    \toprule
    rule & fpr \\
    \midrule
    any\_1 & 12\% \\
    \bottomrule
    \end{tabular}
    \end{table}
    """
    head, *lines = (" & ".join(cell.translate(LATEX) for cell in row) + r" \\" for row in (heads, *rows))
    columns = "l" + "r" * (len(heads) - 1)
    title = rf"\caption{{{caption.translate(LATEX)}}}"
    begin = [r"\begin{table}", title, rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    return "\n".join([*begin, head, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def methods(run: Run) -> str:
    """Say in one paragraph how the labels were made and how sure they are, with the figures of the run."""
    total = pl.format("{} on {}", pl.col("total").round(3), "question")
    error = run.verdict.error
    text = fill_template(
        "methods.txt",
        protocol=protocol(run),
        questions=question_frame(run).to_dicts(),
        entropy=run.table("entropy").filter(domain=ALL).select(total).to_series().to_list(),
        verdict=run.verdict,
        share="" if error is None else with_ends(".1%", error.value, error.low, error.high),
        mass=run.interval,
        interval=interval_of,
        percent=partial(with_ends, ".1%"),
    )
    return " ".join(text.split())
