"""Run: the result of an audit, as named tables; the same in memory and on disk.

`runs.make` builds a run from fitted votes, `read_run` opens a folder, `Run.save` writes one. Report, check, explain,
next, compare, export and training take a `Run`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from moral_entropy.errors import RunFolderError, UsageError, refuse_forked
from moral_entropy.findings import RANK, Finding, headline, merge_alike, mute, name_where_needed
from moral_entropy.model.consensus import Consensus
from moral_entropy.model.entropy import shown_parts
from moral_entropy.runs.folder import (
    FILES,
    MANIFEST,
    checked_folder,
    digest_of,
    read_manifest,
    read_table,
    scan_table,
    write_manifest,
    write_rows,
    write_table,
    writing,
)
from moral_entropy.schemas import ALIASES, BETWEEN, SCHEMAS

if TYPE_CHECKING:
    from moral_entropy.explanation import Explanation
    from moral_entropy.options import Layout
    from moral_entropy.rules.gate import Limit
    from moral_entropy.verdict.verdict import Verdict

SCHEMA = 4
"""Version of the run folder: it rises whenever a column changes its meaning or is removed."""

OPTIONAL = ("posterior", "texts", "spot_checks", "groups", "group_readings", "group_items", "target_items",
            "text_worth", "text_conflicts", "scores", "raters", "rating_rules")  # fmt: skip
"""Tables that not every run has."""

EXPECTED = ("version", "questions", "input", "columns", "votes", "items", "annotators", "anonymous", "priors",
            "options", "seconds", "use_gold", "draws", "seed")  # fmt: skip
"""Facts that every command relies on."""


@dataclass(frozen=True)
class Table:
    """A table that is made on demand: its columns, and its rows in chunks."""

    schema: pl.Schema
    frames: Callable[[], Iterable[pl.DataFrame]]


@dataclass(frozen=True)
class Question:
    """One question of a run.

    Parameters
    ----------
    name
        What it is called.
    labels
        The labels a vote can take.
    positive
        The positive label of two; None for more.
    levels
        The value of each label where they are levels of a scale, from low to high; else empty.
    scale
        "nominal", "ordinal" or "interval".
    """

    name: str
    labels: tuple[str, ...]
    positive: str | None
    levels: tuple[float, ...] = ()
    scale: str = "nominal"

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """What is graded: (name shown, label taken as positive); the question itself, or each label of more than two.

        Examples
        --------
        >>> Question("tone", ("anger", "joy", "none"), None).targets[0]
        ('tone: anger', 'anger')
        """
        if self.positive is not None:
            return ((self.name, self.positive),)
        return tuple((f"{self.name}: {label}", label) for label in self.labels)


@dataclass(frozen=True, eq=False)
class Run:
    """The result of an audit.

    Parameters
    ----------
    manifest
        What went into the run and how it went: plain values, as in `manifest.json`.
    tables
        Tables that are not on disk, or stand in for one there, by name: frames, and tables still to be made.
    path
        The run folder; None for a run in memory.
    consensus
        The fits, where the run was made here and its votes lie on this machine.

    Examples
    --------
    >>> import moral_entropy as me
    >>> run = me.audit(me.simulate_votes(n_items=50, n_annotators=5, votes_per_item=3, seed=1).votes, draws=50)
    >>> run.items.columns[:4], run.items.height
    (['question', 'item', 'domain', 'n_votes'], 50)
    """

    manifest: dict[str, Any]
    tables: Mapping[str, Table | pl.DataFrame] = field(default_factory=dict)
    path: Path | None = None
    consensus: Consensus | None = None
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict, init=False, repr=False)

    @property
    def folder(self) -> Path:
        """The run folder; an error for a run in memory."""
        if self.path is None:
            msg = "this run is in memory and has no folder. Write one first: run.save('run/')."
            raise UsageError(msg)
        return self.path

    @property
    def where(self) -> str:
        """Its name in a sentence: the folder, or "the run in memory"."""
        return "the run in memory" if self.path is None else str(self.path)

    def has(self, name: str) -> bool:
        """Return whether the run has a table."""
        return name in self.tables or (self.path is not None and (self.path / f"{name}.parquet").exists())

    def table(self, name: str, *, where: pl.Expr | None = None) -> pl.DataFrame:
        """Return a table, or some of its rows; an optional table that the run lacks has no rows.

        Parameters
        ----------
        name
            One of `SCHEMAS`, such as "items" or "audit".
        where
            Which rows; all by default.
        """
        refuse_forked()
        if name in ALIASES:
            warnings.warn(f"the table {name!r} is {ALIASES[name]!r} since 0.3", DeprecationWarning, stacklevel=2)
            names = {new: old for old, new in ALIASES.items()}
            return self.table(ALIASES[name], where=where).rename(names, strict=False)
        if name in OPTIONAL and not self.has(name):
            return pl.DataFrame(schema=SCHEMAS[name])
        if self.path is not None and name not in self.tables:
            return read_table(self.path, name, where=where)
        table = self.tables[name]
        if isinstance(table, Table):
            if name not in self._frames:
                self._frames[name] = pl.concat([pl.DataFrame(schema=table.schema), *table.frames()])
            table = self._frames[name]
        return table if where is None else table.filter(where)

    def scan(self, name: str) -> pl.LazyFrame:
        """Scan a table, so that only the columns asked for are read."""
        if self.path is None or name in self.tables or not self.has(name):
            return self.table(name).lazy()
        return scan_table(self.path, name)

    @property
    def items(self) -> pl.DataFrame:
        """One row per question and item: votes, p with its interval, label, entropies."""
        return self.table("items")

    @property
    def annotators(self) -> pl.DataFrame:
        """One row per question and annotator: votes, disagreement, sensitivity, specificity, role."""
        return self.table("annotator_summary")

    @property
    def rules(self) -> pl.DataFrame:
        """One row per figure of the audit of consensus rules, with its interval."""
        return self.table("audit")

    @property
    def entropy(self) -> pl.DataFrame:
        """Mean entropies by question and domain."""
        return self.table("entropy")

    @property
    def groups(self) -> pl.DataFrame:
        """Groups of annotators compared, column by column; no rows where none were asked for."""
        return self.table("groups")

    @property
    def findings(self) -> pl.DataFrame:
        """One row per finding about the consensus itself: its level, what it means and what to do."""
        return self.table("findings")

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions, each once, in the order of the fits."""
        by_name: dict[str, Question] = {}
        for fit in self.manifest["questions"]:
            levels, scale = tuple(fit.get("levels", ())), fit.get("scale", "nominal")
            question = Question(fit["question"], tuple(fit["labels"]), fit["positive"], levels, scale)
            by_name.setdefault(question.name, question)
        return tuple(by_name.values())

    @property
    def interval(self) -> float:
        """Mass of every interval."""
        return float(self.manifest["interval"])

    @property
    def model(self) -> str:
        """The model of the fits: "mixed" or "paper"."""
        return str(self.manifest.get("model", "paper"))

    @property
    def between_groups(self) -> bool:
        """Whether a truth per group was found, so that items and entropies have a part between groups."""
        return BETWEEN in self.manifest["questions"][0]

    @property
    def text_votes(self) -> dict[str, float]:
        """Votes that a text counts for, by question."""
        facts = (self.manifest.get("text_worth") or {}).get("questions", ())
        return {row["question"]: row["counted"] for row in facts if row["counted"]}

    @property
    def parts(self) -> dict[str, str]:
        """The parts of the entropy that the run tells apart: the name on screens by column of the tables."""
        fits = self.manifest["questions"]
        votes_per_item = sum(fit["votes"] for fit in fits) / max(sum(fit["items_counted"] for fit in fits), 1)
        return shown_parts(self.model, votes_per_item, between=self.between_groups)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the labels can be shipped, in words: `answer`, `title` and `text`, and the `error` if any."""
        # Late: the verdict is computed from runs.
        from moral_entropy.verdict.verdict import verdict_of

        return verdict_of(self)

    @cached_property
    def checked(self) -> pl.DataFrame:
        """What checked labels, or gold, say of the consensus, each rule and each annotator: how much is wrong."""
        from moral_entropy.verdict.verdict import checked_frame

        return checked_frame(self)

    @property
    def judges(self) -> pl.DataFrame:
        """One row per question and judge, best first: how right, whom it copies, what it adds to the others."""
        from moral_entropy.judges.table import describe_judges

        return describe_judges(self).frame

    def spot_check(self, n: int = 50, *, repair: bool = False) -> pl.DataFrame:
        """Return a sheet of items to check by hand: fill in the column `answer`, then see `with_answers`.

        Parameters
        ----------
        n
            How many rows.
        repair
            The least sure items first: to mend their labels, not to measure how many are wrong.
        """
        from moral_entropy.verdict.sheet import make_sheet, printable

        return printable(self, make_sheet(self, n, purpose="repair" if repair else "measure"))

    def with_answers(self, *sheets: Any) -> Run:
        """Return the run with the answers of filled-in sheets: dataframes or files. Its verdict knows them then."""
        from moral_entropy.verdict.sheet import with_answers

        return with_answers(self, sheets)

    def explain(self, item: str, *, question: str | None = None) -> list[Explanation]:
        """Explain an item's label: what each vote adds to its probability; one explanation per question."""
        from moral_entropy.explanation import explain_item

        return explain_item(self, item, question=question)

    def next(self, n: int = 100, *, question: str | None = None, annotators: Sequence[str] = ()) -> pl.DataFrame:
        """Return the items on which further votes help most, best first: see `moral-entropy next`."""
        from moral_entropy.planning import next_votes

        return next_votes(self, n, question=question, annotators=annotators)

    def check(self, *, maximum: Sequence[str] = (), minimum: Sequence[str] = (), strict: bool = False) -> list[Limit]:
        """Check figures of the run against limits, as `maximum=["uncertain=0.1"]`; each has an `outcome`."""
        from moral_entropy.rules.advice import with_leading_rates
        from moral_entropy.rules.gate import check_limits
        from moral_entropy.verdict.figures import run_figures

        rates = with_leading_rates(self.rules, expected=self.model == "mixed")
        return check_limits(rates, maxima=maximum, minima=minimum, extra=run_figures(self), strict=strict)

    def export(
        self, out: str | Path, *, to: Layout = "csv", force: bool = False, group: str | None = None,
        names: bool = False, about: Mapping[str, str] | None = None,
    ) -> list[Path]:  # fmt: skip
        """Write the items with votes, probabilities and soft labels for other programs, and return the files.

        Parameters
        ----------
        out
            A folder for "hf", "release", and for "lewidi" with several questions; else a file.
        to
            The layout.
        force
            Replace what is there.
        group
            Column of annotators' groups whose soft labels are written too.
        names
            Write annotators' names as they are, and not pseudonyms.
        about
            What a card says of the data: name, licence, language, url.
        """
        from moral_entropy.report.export import export_run

        return export_run(self, out, to=to, force=force, group=group, names=names, about=about)

    def train(self, out: str | Path, **options: Any) -> dict[str, Any]:
        """Train a text classifier on the labels of the run, as `moral-entropy train` does, and return its scores."""
        from moral_entropy.train import train

        return train(self, out, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return what the first screen says as plain values, the same as `moral-entropy audit --json` prints."""
        from moral_entropy.verdict.summary import Summary

        return Summary(self).record()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: tables are made; the consensus stays where it was fitted."""
        frames = {name: self.table(name) for name in self.tables}
        return {"manifest": self.manifest, "tables": frames, "path": self.path, "consensus": None, "_frames": {}}

    def markdown(self) -> str:
        """Return the first screen as Markdown."""
        from moral_entropy.verdict.summary import Summary

        return Summary(self).markdown()

    def save(self, path: str | Path, *, force: bool = False) -> Run:
        """Write the run folder, whole or not at all, and return the run on disk.

        Parameters
        ----------
        path
            Where the folder shall be.
        force
            Replace an earlier run there.
        """
        from moral_entropy.verdict.sheet import add_sheet

        with writing(path, force=force) as folder:
            self.write_to(folder)
            add_sheet(replace(self, tables={}, path=folder))
        return replace(self, manifest=read_manifest(path), tables={}, path=Path(path))

    def write_to(self, folder: Path, advance: Callable[[float], None] | None = None) -> None:
        """Write manifest and tables into a folder that exists; the manifest has a digest of every table."""
        digests: dict[str, str] = {}
        for n, (name, table) in enumerate(self.tables.items()):
            file = folder / f"{name}.parquet"
            to_make = table.frames() if isinstance(table, Table) and name not in self._frames else [self.table(name)]
            write_table(file, table.schema, to_make)
            digests[file.name] = digest_of(file)
            if advance is not None:
                advance((n + 1) / len(self.tables))
        # Workers of a cluster have written theirs.
        parts = {path.name: digest_of(path) for path in sorted(folder.glob("*.parquet")) if path.is_dir()}
        write_manifest(folder, {**self.manifest, FILES: digests | parts})

    def __repr__(self) -> str:
        """Show what the run is about, then what the screen of `moral-entropy audit` shows."""
        from moral_entropy.verdict.summary import Summary

        facts, names = self.manifest, ", ".join(question.name for question in self.questions)
        line = f"Run({facts['votes']:,} votes on {facts['items']:,} items; {names}; {self.path or 'in memory'})"
        # A run whose tables are gone still has a name.
        with suppress(Exception):
            line = "\n".join([line, *Summary(self).lines()])
        return line


def read_run(path: str | Path) -> Run:
    """Open a run folder.

    Examples
    --------
    >>> read_run("nowhere")
    Traceback (most recent call last):
    ...
    moral_entropy.errors.RunFolderError: nowhere is no run folder: there is no such folder. ...
    """
    folder = checked_folder(path)
    manifest = read_manifest(folder)
    if manifest.get("schema") != SCHEMA:
        by = f"moral-entropy {manifest.get('version', '?')}, schema {manifest.get('schema', 1)}"
        msg = f"{folder} was written by another version ({by}; this one reads {SCHEMA}). Run the audit again."
        raise RunFolderError(msg)
    run = Run(manifest, path=folder)
    try:
        empty = [name for name in EXPECTED if manifest[name] is None or manifest[name] == []]
        why = f"it has nothing as {empty[0]!r}" if empty else ""
        if not why and run.questions and not 0 < run.interval < 1:
            why = "its interval is no share"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
    if why:
        msg = f"{folder / MANIFEST} is damaged: {why}. Run the audit again."
        raise RunFolderError(msg)
    return run


def as_run(run: Run | str | Path) -> Run:
    """Return a run, opened if a folder is named."""
    return run if isinstance(run, Run) else read_run(run)


# --- Findings --------------------------------------------------------------------------------------------------------


def findings_frame(findings: Iterable[Finding]) -> pl.DataFrame:
    """Lay findings out as rows of findings.parquet; a figure that does not exist (NaN) is null there.

    Examples
    --------
    >>> findings_frame([Finding("laplace", "pareto_k", 0.4), Finding("nuts", "ess", float("nan"))])["value"].to_list()
    [0.4, None]
    """
    rows = [vars(finding) | {"code": finding.code} for finding in findings]
    frame = pl.DataFrame(rows, schema=SCHEMAS["findings"])
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def read_findings(run: Run | str | Path) -> list[Finding]:
    """Read the findings of a run, or of a run folder."""
    frame = as_run(run).table("findings").drop("code", strict=False)
    level = pl.when(pl.col("level").is_in(list(RANK))).then("level").otherwise(pl.lit("info"))
    texts = frame.with_columns(pl.col(pl.String).fill_null(""), value=pl.col("value").fill_null(float("nan")))
    return [Finding(**row) for row in texts.with_columns(level=level).iter_rows(named=True)]


def cautions(run: Run) -> list[Finding]:
    """List what should make a reader doubt, worst first: the worst of each kind, its text a title without full stop."""
    groups = merge_alike(name_where_needed(read_findings(run)))
    return [replace(worst, text=headline(worst, alike).removesuffix(".")) for worst, alike in groups]


def add_findings(run: Run, findings: Iterable[Finding]) -> None:
    """Write findings into a run folder, keeping earlier figures that were not found again this time."""
    frame = findings_frame(mute(findings, run.manifest["options"].get("verdict", {}).get("ignore", ())))
    earlier = run.findings.join(frame, on=["check", "metric"], how="anti", maintain_order="left")
    write_rows(run.folder, "findings", pl.concat([earlier, frame]))
