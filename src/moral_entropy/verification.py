"""`verify`: whether a run folder still says what its votes say.

The run is computed again, from the votes that it holds and the options that it was made with: every table, and every
fact of the manifest that follows from votes. Files that cannot be computed, such as the report, are compared with the
digests in the manifest. Nothing outside the folder is read, whatever the manifest names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import polars as pl

from moral_entropy.errors import RunFolderError
from moral_entropy.names import ALL
from moral_entropy.option_fields import from_plain
from moral_entropy.options import AuditOptions
from moral_entropy.pipeline import make_run
from moral_entropy.progress import Progress, Stopwatch, silent
from moral_entropy.runs.folder import FILES, MANIFEST, changed_files, digest_of, plain_facts, read_manifest
from moral_entropy.runs.reload import priors_of, read_run_votes
from moral_entropy.runs.run import Run, as_run

SAME = 1e-9
"""Figures this close, absolutely or as a share, are the same on another processor (`docs/reference/run-folder.md`)."""

NOT_FROM_VOTES = frozenset({"version", "versions", "command", "input", "columns", "guessed", "rows", "dropped",
                            "notes", "not_read", "seconds", "threads", "validated", "passes", "steepness",
                            "modes", FILES})  # fmt: skip
"""Facts of the manifest that do not follow from the votes of the run, or that the last bits of sums decide."""

OTHER_FILES = (("groups", "annotators"), ("groups", "target"), ("judges", "roles"))
"""Options that may name a file which the run does not hold; roles may be the name of a column, too."""

FRAME = "a DataFrame"
"""What the manifest says of a table in memory."""

ROW = ("question", "domain", "item", "annotator", "rule", "reference", "label", "metric", "class", "true", "voted",
       "check", "kind", "rank", "word")  # fmt: skip
"""Columns that tell a reader which row is meant."""


@dataclass(frozen=True)
class Verification:
    """Whether a run stands: `differences` has one phrase per file that is not what votes and settings give."""

    differences: tuple[str, ...]

    @property
    def stands(self) -> bool:
        """Whether every file is as it was written and says what the votes say."""
        return not self.differences


def verify(
    run: Run | str | Path, *, votes_file: str | Path | None = None, progress: Progress | None = None
) -> Verification:
    """Compute a run folder again from its votes and settings, compare the digests of its files, say what stands.

    Parameters
    ----------
    run
        A run folder, or the run on disk.
    votes_file
        The file that was audited, if it shall be compared with the digest in the manifest.
    progress
        Called with the name of the stage and the share of it done.

    Examples
    --------
    >>> import tempfile
    >>> import moral_entropy as me
    >>> with tempfile.TemporaryDirectory() as home:
    ...     votes = me.simulate_votes(n_items=30, n_annotators=4, votes_per_item=3, seed=1).votes
    ...     run = me.audit(votes, out=f"{home}/run", draws=20, report=False)
    ...     verify(run).stands
    True
    """
    folder = as_run(run).folder
    opened = Run(read_manifest(folder), path=folder)
    files, digest = opened.manifest.get(FILES, {}), opened.manifest.get("input", {}).get("sha256")
    if outside := [name for name in files if (folder / name).resolve().parent != folder.resolve()]:
        return Verification((f"{MANIFEST} names {outside[0]!r}, which is not in the folder",))
    options = opened.manifest.get("options", {})
    values = [options.get(stage, {}).get(name) for stage, name in OTHER_FILES]
    texts = [name for name in values if isinstance(name, str)]
    if read := [name for name in texts if name == FRAME or Path(name).suffix or Path(name).exists()]:
        msg = (
            f"{opened.where} was made with {read[0]!r}, which it does not hold, so it cannot be computed again. Audit "
            "the votes again with that file, and compare both runs: moral-entropy compare."
        )
        raise RunFolderError(msg)
    differences = []
    if votes_file is not None and digest and digest_of(Path(votes_file)) != digest:
        differences.append(f"{Path(votes_file).name}: is not the file that was audited: its digest is another")
    try:
        differences += _differences(opened, _audit_again(opened, progress or silent))
    except Exception as error:
        differences.append(f"figures cannot be computed again: {f'{error}'.strip() or type(error).__name__}")
    added = sorted(path.name for path in folder.glob("*.parquet") if path.name not in files)
    differences += [f"{name}: was not written by a command, the manifest has no digest of it" for name in added]
    changed = [name for name in changed_files(folder) if not any(name in difference for difference in differences)]
    return Verification((*differences, *(f"{name}: was changed after it was written" for name in changed)))


def _audit_again(run: Run, progress: Progress) -> Run:
    """Audit the votes of a run with the options, the seed and the priors in its manifest."""
    options = from_plain(AuditOptions, run.manifest["options"], MANIFEST)
    return make_run(partial(read_run_votes, run), options, "", Stopwatch(), progress, priors_of(run.manifest))


def _differences(run: Run, computed: Run) -> Iterator[str]:
    """Yield the first cell that differs of every table, and the first fact of the manifest."""
    for name in computed.tables:
        tables = [side.table(name) if side.has(name) else pl.DataFrame() for side in (run, computed)]
        if name == "findings":
            # Those of `validate` came later.
            tables = [frame.filter(~pl.col("check").is_in(run.manifest.get("validated", []))) for frame in tables]
        if difference := table_difference(*tables):
            yield f"{name}.parquet: {difference}"
    facts = fact_differences(run.manifest, plain_facts(computed.manifest))
    yield from [f"{MANIFEST}: {difference}" for difference in facts][:1]


def table_difference(stored: pl.DataFrame, computed: pl.DataFrame) -> str:
    """Name the first cell in which a table as it was written differs from the one computed again; nothing if none does.

    Words, counts and orders must be the same; figures may differ by 1e-9. Columns that only the first table has (those
    of `--keep`) cannot be computed and are left alone.

    Examples
    --------
    >>> table = pl.DataFrame({"item": ["a", "b"], "p": [0.25, 0.5]})
    >>> table_difference(table, table.with_columns(p=pl.Series([0.25, 0.75])))
    "1 of 2 values of p differs; item 'b': 0.5 written, 0.75 computed"
    """
    if lacking := [name for name in computed.columns if name not in stored.columns]:
        return f"column {lacking[0]} is missing"
    if stored.height != computed.height:
        return f"{stored.height:,} rows written, {computed.height:,} computed"
    for name in computed.columns:
        old, new = stored[name].cast(computed[name].dtype, strict=False), computed[name]
        differs = old.ne_missing(new)
        if new.dtype.is_float():
            differs &= ~((old - new).abs() <= SAME * new.abs().clip(lower_bound=1.0)).fill_null(value=False)
        if n := int(differs.sum()):
            row = int(differs.arg_true()[0])
            keys = {key: computed[key][row] for key in ROW if key in computed.columns}
            where = ", ".join(f"{key} {value!r}" for key, value in keys.items() if value not in (None, "", ALL))
            cell = f"{where or f'row {row + 1:,}'}: {shown(old[row])} written, {shown(new[row])} computed"
            return f"{n:,} of {stored.height:,} values of {name} differ{'s' * (n == 1)}; {cell}"
    return ""


def fact_differences(stored: Any, computed: Any, where: str = "") -> Iterator[str]:
    """Yield where two sets of plain facts differ.

    Examples
    --------
    >>> list(fact_differences({"seed": 1, "votes": [3, 4]}, {"seed": 0, "votes": [3, 4]}))
    ['seed: 1 written, 0 computed']
    """
    if isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        stored, computed = dict(enumerate(stored)), dict(enumerate(computed))
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        for name in [name for name in {**computed, **stored} if name not in NOT_FROM_VOTES]:
            yield from fact_differences(stored.get(name), computed.get(name), f"{where}.{name}".lstrip("."))
    elif type(stored) is not type(computed) or not (
        math.isclose(stored, computed, rel_tol=SAME, abs_tol=SAME) if type(stored) is float else stored == computed
    ):
        yield f"{where}: {shown(stored)} written, {shown(computed)} computed"
