"""What must hold however a command ends: words instead of a traceback, whole folders, parts that sum, no NaN."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import warnings
from pathlib import Path
from typing import Any

import polars as pl

LONGEST = 4_000
"""Characters of an error; longer ones are called endless."""

NEVER = re.compile(
    r"Traceback \(most recent|This should not happen|or the mistake is ours"
    r"|\b\w*Warning:|\bpanicked\b|\b(?:about|to) nan\b|\bnan%"
    r"|[\x00-\x08\x1b]"
)
"""What no command may print: tracebacks, Python's own warnings, NaN in a sentence, control characters."""

CHANGES = ("seconds", "cpu_seconds", "command", "files", "seal")
"""What may differ between two manifests of the same audit: times, the command, and digests of what tells them."""


def run_main(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, standard output and standard error."""
    from moral_entropy.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("default")
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def wrong_words(code: int, out: str, err: str) -> str:
    """Say what is wrong with how a command ended; empty if nothing is."""
    if found := NEVER.search(out + err):
        at = (out + err)[max(0, found.start() - 100) : found.end() + 300]
        return f"printed {found[0]!r}: …{at}"
    if code not in (0, 1, 2, 3, 4):
        return f"exit code {code}"
    if code and "error:" not in err and not out:
        return f"exit code {code} without a word"
    errors = [line for line in err.splitlines() if line.startswith("error:")]
    if any(len(line) > LONGEST for line in errors):
        return f"an error of {max(map(len, errors)):,} characters: {errors[0][:200]}"
    return ""


def wrong_folder(folder: Path) -> str:
    """Say what is wrong with what a command left in a folder: a half-written run, NaN, parts that do not sum."""
    left = [path.name for path in folder.iterdir() if ".partial" in path.name or ".replaced" in path.name]
    if left:
        return f"left {left[0]}"
    for run in folder.iterdir():
        if run.is_dir() and (run / "votes.parquet").exists() and (problem := wrong_run(run)):
            return f"{run.name}: {problem}"
    return ""


def wrong_run(run: Path) -> str:
    """Say what is wrong with a run folder; empty if nothing is."""
    if not (run / "manifest.json").is_file():
        return "no manifest"
    if re.search(r"\bNaN\b|\bInfinity\b|\bnan%", (run / "manifest.json").read_text(encoding="utf-8")):
        return "NaN in the manifest"
    for file in sorted(run.glob("*.parquet")):
        frame = pl.read_parquet(file)
        for name, kind in frame.schema.items():
            if kind.is_float() and frame[name].is_nan().any():
                return f"NaN in {name} of {file.name}"
    items = pl.read_parquet(run / "items.parquet")
    parts = items.select("entropy", total=pl.sum_horizontal("ambiguity", "doubt_votes", "doubt_annotators"))
    drawn = parts.filter(items["ambiguity"].is_not_null())
    gap = (drawn["entropy"] - drawn["total"]).abs().max()
    if isinstance(gap, float) and gap > 1e-9:
        return f"the parts of an entropy miss its sum by {gap:.2g}"
    outside = items.filter(~pl.col("p").is_between(0.0, 1.0) | (pl.col("entropy") < -1e-12))
    return f"{outside.height} items with p or entropy out of range" if outside.height else ""


def digest(path: Path) -> dict[str, str]:
    """Return a hash per file, of a file or of all in a folder, but for what may differ in a manifest."""
    if path.is_file():
        return {"": _hash(path)}
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    return {str(file.relative_to(path)): _hash(file) for file in files}


def differing(one: Path, other: Path) -> str:
    """Say which files of two folders that should be equal are not; empty if all are."""
    first, second = digest(one), digest(other)
    names = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    return f"the same seed gave other bytes in {', '.join(names)}" if names else ""


def _hash(file: Path) -> str:
    content = file.read_bytes()
    if file.name == "manifest.json":
        with contextlib.suppress(ValueError):
            facts: dict[str, Any] = json.loads(content)
            content = json.dumps({key: facts[key] for key in facts if key not in CHANGES}).encode()
    return hashlib.sha256(content).hexdigest()
