"""A reproduced study → the screen: how many figures are the same, and the headline ones side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moral_entropy.markup import NOTHING
from moral_entropy.reproduce.beside import VERDICTS
from moral_entropy.reproduce.pages import sum_up
from moral_entropy.reproduce.published import CORPORA, spell

if TYPE_CHECKING:
    from moral_entropy.reproduce.study import Study


def print_study(study: Study) -> None:
    """Print the verdicts by section, the figures of the rules, and where the files are."""
    console = Console(highlight=False)
    console.print(_table(("section", "figures", *VERDICTS, "within"), sum_up(study.beside)))
    console.print("within: ours is within the tolerance, comparable or not\n", soft_wrap=True)
    rows = [_cells(row) for row in study.beside.filter(section="audit").iter_rows(named=True)]
    console.print(_table(("corpus", "rule", "metric", "reading", "paper", "ours"), rows, n_words=4))
    files = " ".join(sorted(path.name for path in study.path.iterdir()))
    seconds = sum(study.manifest["seconds"].values())
    console.print(escape(f"\n{study.path}: {files}  ({seconds:.1f} s)"), soft_wrap=True)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    metric = row["metric"] + (" vs gold" if row["reference"] == "gold" else "")
    ours = NOTHING if row["ours"] is None else spell(row["metric"], row["ours"])
    return (CORPORA.get(row["corpus"], row["corpus"]), row["rule"], metric, row["reading"], row["printed"], ours)


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]], n_words: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    for at, name in enumerate(header):
        table.add_column(name, justify="left" if at < n_words else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table
