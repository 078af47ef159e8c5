"""Twelve inputs, audited through the command line: every table, the manifest and the screen are as frozen.

Numbers agree to 1e-9 (relative or absolute), all else exactly; `frozen/README.md` says since when. What differs on
purpose is listed with its reason in `frozen/differences.toml`; an entry that no longer differs fails.
`REWRITE_GOLDEN=1` freezes anew; then delete the entries by hand.
"""

from __future__ import annotations

import difflib
import io
import json
import math
import os
import re
import tempfile
import tomllib
import warnings
from contextlib import redirect_stderr, redirect_stdout
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from frozen_inputs import NAMES, write_input

from moral_entropy import __version__
from moral_entropy.cli.main import main

FROZEN = Path(__file__).parent / "frozen"
SAME = 1e-9
VOLATILE = {"version", "versions", "command", "seconds", "sha256", "seal", "threads", "schema", "passes", "steepness"}
"""Entries of the manifest, at any depth, that tell of the machine or the moment."""

KINDS = {
    "findings": ("check", "metric"), "audit": ("metric",), "outliers": ("kind", "ranking"), "agreement": ("statistic",),
}  # fmt: skip
"""Tables whose rows are of several kinds, and the columns that say which."""


def rounded(value):
    """Return a value as JSON has it: numbers with twelve significant digits, what is not finite as text."""
    if isinstance(value, dict):
        return {str(key): rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple | pl.Series):
        return [rounded(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int) else str(value)


def steady(manifest):
    """Drop what tells of the machine or the moment from a manifest; of the files only their names stay."""
    if isinstance(manifest, dict):
        kept = {key: steady(value) for key, value in manifest.items() if key not in VOLATILE}
        return kept | ({"files": sorted(kept["files"])} if "files" in kept else {})
    return [steady(part) for part in manifest] if isinstance(manifest, list) else manifest


@cache
def audited(name):
    """Audit an input in a folder of its own; return its tables, manifest and screen as plain values."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["COLUMNS"] = "80"
        screen = io.StringIO()
        try:
            arguments = ["audit", *write_input(name, Path()), "-o", "run", "--seed", "0", "--draws", "200"]
            with warnings.catch_warnings(), redirect_stdout(screen), redirect_stderr(screen):
                warnings.simplefilter("ignore")
                code = main(arguments)
            assert code == 0, screen.getvalue()
            tables = {path.stem: pl.read_parquet(path).to_dict() for path in sorted(Path("run").glob("*.parquet"))}
            tables["spot-check.csv"] = pl.read_csv("run/spot-check.csv", infer_schema=False).to_dict()
            manifest = steady(json.loads(Path("run/manifest.json").read_text(encoding="utf-8")))
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    text = re.sub(r"\d+\.\d s\)", "… s)", screen.getvalue()).replace(__version__, "…")
    return rounded({"tables": tables, "manifest": manifest, "screen": text.splitlines()})


def packed(column):
    """Return a column as its distinct values and the place of each row's value, if that is shorter to write."""
    places = {}
    rows = [places.setdefault(json.dumps(value), len(places)) for value in column]
    short = {"values": [json.loads(value) for value in places], "rows": rows}
    return min(column, short, key=lambda form: len(json.dumps(form)))


def freeze(name):
    """Write what an input gives."""
    result = audited(name)
    tables = {
        table: {key: packed(cells) for key, cells in columns.items()} for table, columns in result["tables"].items()
    }
    text = json.dumps(result | {"tables": tables}, ensure_ascii=False, separators=(",", ":"))
    (FROZEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def frozen(name):
    """Read what an input gave when it was frozen."""
    result = json.loads((FROZEN / f"{name}.json").read_text(encoding="utf-8"))
    for columns in result["tables"].values():
        for key, cells in columns.items():
            if isinstance(cells, dict):
                columns[key] = [cells["values"][place] for place in cells["rows"]]
    return result


def apart(before, after):
    """Return by how much two values differ, in words, or nothing if they are the same."""
    if isinstance(before, float | int) and isinstance(after, float | int) and not isinstance(before, bool):
        if math.isclose(before, after, rel_tol=SAME, abs_tol=SAME):
            return ""
        return f"{before!r} became {after!r}, by {after - before:.3g}"
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return next(filter(None, map(apart, before, after)), "")
    return "" if before == after else f"{before!r} became {after!r}"


def table_differences(path, before, after):
    """Yield what differs in a table, by column: the first row, its values, and in how many rows."""
    yield from ((f"{path}/{column}", "the column went") for column in before if column not in after)
    yield from ((f"{path}/{column}", "the column is new") for column in after if column not in before)
    rows = [len(next(iter(table.values()), [])) for table in (before, after)]
    if rows[0] != rows[1]:
        yield path, f"{rows[0]} rows became {rows[1]}"
        return
    for column in set(before) & set(after):
        texts = [apart(*pair) for pair in zip(before[column], after[column], strict=True)]
        rows_apart = [row for row, text in enumerate(texts) if text]
        if rows_apart:
            key = {name: cells[rows_apart[0]] for name, cells in list(before.items())[:5] if name != column}
            yield f"{path}/{column}", f"row {rows_apart[0]} {key}: {texts[rows_apart[0]]} ({len(rows_apart)} rows)"


def parted(tables):
    """Split tables whose rows are of several kinds by kind, so that one kind can go or change without the others."""
    parts = {}
    for name, columns in tables.items():
        kinds = [key for key in KINDS.get(name, ()) if key in columns]
        rows = range(len(next(iter(columns.values()), [])))
        by_kind = {}
        for row in rows if kinds else ():
            by_kind.setdefault("/".join([name, *(str(columns[key][row]) for key in kinds)]), []).append(row)
        parts |= {
            kind: {key: [cells[row] for row in some] for key, cells in columns.items()}
            for kind, some in (by_kind or {name: rows}).items()
        }
    return parts


def tree_differences(path, before, after):
    """Yield what differs in the manifest, by path."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from ((f"{path}/{key}", f"{before[key]!r} went") for key in before if key not in after)
        yield from ((f"{path}/{key}", f"{after[key]!r} is new") for key in after if key not in before)
        for key in set(before) & set(after):
            yield from tree_differences(f"{path}/{key}", before[key], after[key])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for pair in zip(before, after, strict=True):
            yield from tree_differences(path, *pair)
    elif text := apart(before, after):
        yield path, text


@cache
def differences(name):
    """Return all (path, what differs) between an audit now and the frozen one."""
    before, after = frozen(name), audited(name)
    old, new = parted(before["tables"]), parted(after["tables"])
    result = [(f"tables/{table}", "the table, or its rows of this kind, went") for table in old if table not in new]
    result += [(f"tables/{table}", "the table, or its rows of this kind, are new") for table in new if table not in old]
    for table in set(old) & set(new):
        result += table_differences(f"tables/{table}", old[table], new[table])
    result += tree_differences("manifest", before["manifest"], after["manifest"])
    lines = difflib.unified_diff(before["screen"], after["screen"], n=0, lineterm="")
    return sorted(result + [(f"screen/{line}", "") for line in list(lines)[2:] if not line.startswith("@@")])


def accepted():
    """Read the differences that are meant: pattern of the input, pattern of the path, reason, figure."""
    with (FROZEN / "differences.toml").open("rb") as file:
        return tomllib.load(file).get("difference", [])


def covers(entry, name, path):
    """Say whether an entry accepts a difference: its own path, what is under it, or what its pattern matches."""
    places = [entry["where"]] if isinstance(entry["where"], str) else entry["where"]
    under = any(path == where or path.startswith(f"{where}/") or fnmatchcase(path, where) for where in places)
    return under and fnmatchcase(name, entry.get("input", "*"))


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_gives_what_it_gave(name):
    if os.environ.get("REWRITE_GOLDEN"):
        freeze(name)
    meant = accepted()
    surprises = [
        f"{path}: {text}" for path, text in differences(name) if not any(covers(entry, name, path) for entry in meant)
    ]
    assert not surprises, f"{name}: {len(surprises)} differences that nobody listed\n" + "\n".join(surprises[:40])


def test_every_listed_difference_has_a_reason_and_is_still_one():
    seen = [(name, path) for name in NAMES for path, _ in differences(name)]
    for entry in accepted():
        assert entry["reason"], entry
        assert any(covers(entry, name, path) for name, path in seen), f"stale, nothing differs any more: {entry}"


def test_a_changed_figure_is_told_with_its_table_column_row_and_size():
    before = {"item": ["a", "b"], "p": [0.5, 0.25]}
    after = {"item": ["a", "b"], "p": [0.5, 0.25 + 2e-9]}
    [(path, text)] = table_differences("tables/items", before, after)
    assert path == "tables/items/p"
    assert text.startswith("row 1 {'item': 'b'}: 0.25 became 0.250000002, by 2e-09")
