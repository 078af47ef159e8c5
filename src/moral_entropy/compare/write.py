"""Comparison → a folder of Parquet files, a JSON file and a page; it appears whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moral_entropy import __version__
from moral_entropy.compare.page import comparison_page
from moral_entropy.compare.table import Comparison
from moral_entropy.errors import RunFolderError
from moral_entropy.markup import json_rows
from moral_entropy.runs.folder import writing

PAGE, FACTS = "compare.html", "compare.json"


def check_out(out: str | Path) -> None:
    """Refuse a folder that holds anything: a comparison never replaces files, least of all a run."""
    path = Path(out)
    if path.is_dir():
        found = sorted(entry.name for entry in path.iterdir())
        if not found:
            return
        msg = (
            f"{path} exists and holds {len(found)} file{'s' * (len(found) > 1)}. First: {found[0]}. A comparison "
            "replaces nothing; choose another folder with -o."
        )
        raise RunFolderError(msg)
    if path.exists():
        msg = f"{path} is a file, and a comparison needs a folder. Choose another with -o."
        raise RunFolderError(msg)


def write_comparison(comparison: Comparison, out: str | Path) -> Path:
    """Write the tables, the facts and the page; return the folder.

    Parameters
    ----------
    comparison
        What to write.
    out
        The folder; it must be new or empty.
    """
    check_out(out)
    with writing(out) as folder:
        for name, frame in comparison.tables().items():
            frame.write_parquet(folder / f"{name}.parquet", compression="zstd")
        facts = json.dumps(comparison_facts(comparison), indent=2, ensure_ascii=False, allow_nan=False)
        (folder / FACTS).write_text(facts + "\n", encoding="utf-8")
        (folder / PAGE).write_text(comparison_page(comparison), encoding="utf-8")
    return Path(out)


def comparison_facts(comparison: Comparison) -> dict[str, Any]:
    """Return what was compared and how, apart from the tables, as JSON can hold it."""
    return {
        "version": __version__,
        "a": comparison.a,
        "b": comparison.b,
        "settings": [{"name": name, "a": a, "b": b} for name, a, b in comparison.settings],
        "notes": list(comparison.notes),
        "interval": comparison.interval,
        "replicates": comparison.replicates,
        "seed": comparison.seed,
    }


def as_record(comparison: Comparison, *, top: int) -> dict[str, Any]:
    """Return everything as JSON can hold it, of the items only those that moved most."""
    tables = comparison.tables() | {"items": comparison.items.head(top)}
    return {**comparison_facts(comparison), **{name: json_rows(frame.to_dicts()) for name, frame in tables.items()}}
