"""`verify`: whether a run folder still says what its votes say.

Two things are looked at. The digests in the manifest tell whether a file is the one that a command wrote. And the run
is computed again, from the votes that it holds and the options that it was made with: every table, every fact of the
manifest that follows from votes, and the report. So a change is found even where somebody changed the digest as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import polars as pl

from moral_entropy import __version__
from moral_entropy.consensus.parts import local_parts
from moral_entropy.errors import MoralEntropyError, RunFolderError
from moral_entropy.options import from_plain
from moral_entropy.pipeline.audit import make_run
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.progress import Progress, Stopwatch, silent
from moral_entropy.report.data import ITEMS, report_data
from moral_entropy.report.html import REPORT, render
from moral_entropy.runs.differences import SAME, compare_tables, fact_differences
from moral_entropy.runs.folder import MANIFEST
from moral_entropy.runs.manifest import FILES, digest_of, plain_facts, read_manifest, read_sealed, seal_of
from moral_entropy.runs.reload import priors_of, read_run_votes
from moral_entropy.runs.run import Run, as_run
from moral_entropy.schemas import SCHEMAS

State = Literal["stands", "differs", "not checked"]

GIVEN = ("votes", "texts", "spot_checks")
"""Tables that hold what was given, or found later: no figure of the audit."""

FROM_ELSEWHERE = frozenset(
    {"version", "versions", "command", "input", "columns", "guessed", "rows", "dropped", "notes", "seconds", "threads",
     "validated", "cluster", FILES}
)  # fmt: skip
"""Facts of the manifest that do not follow from the votes of the run; its seal guards them."""

OF_THE_CLIMB = ("passes", "gradient_norm", "modes")
"""How a climb went, which the last bits of sums decide."""

FIGURES = "figures"
"""What stands in the list of files for all figures together, where they cannot be computed again."""

ON_CLUSTERS = 1e-6
"""How far apart figures of one machine and of a cluster may be."""

SIX_DIGITS = 1e-5
"""Figures of a report have six digits; the last may be rounded otherwise on another processor."""

SCRIPTS = re.compile(r"<script(?! type=.application/json).*?</script>|<meta http-equiv=.*?>", flags=re.DOTALL)
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', flags=re.DOTALL)


@dataclass(frozen=True)
class Checked:
    """What was found about one file of a run.

    Parameters
    ----------
    file
        Its name.
    state
        "stands", "differs" or "not checked".
    text
        What was seen, in words.
    """

    file: str
    state: State
    text: str


@dataclass(frozen=True)
class Verification:
    """Whether a run stands.

    Parameters
    ----------
    path
        The run folder.
    made_by
        Version of this package that made the run.
    checks
        What was found, file by file.
    """

    path: Path
    made_by: str
    checks: tuple[Checked, ...] = field(repr=False)

    @property
    def stands(self) -> bool:
        """Whether every file is as it was written and says what the votes say."""
        return not any(check.state == "differs" for check in self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        wrong = [check.file for check in self.checks if check.state == "differs"]
        if not wrong:
            n = sum(check.state == "stands" for check in self.checks)
            if any(check.file == FIGURES and check.state == "not checked" for check in self.checks):
                return f"{n} files are as they were written; whether votes and settings give them could not be checked."
            return f"This run stands: {n} files are as they were written, and say what the votes and settings give."
        more = f" and {len(wrong) - 1} more" * (len(wrong) > 1)
        return f"This run does not stand: {wrong[0]}{more} is not what the votes and settings of the run give."


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
    facts = read_manifest(folder)
    opened = Run(facts, path=folder)
    found = check_files(folder)
    try:
        if (lost := _lost_input(facts)) is not None:
            found.append(Checked(FIGURES, "not checked", lost))
        else:
            computed = compute_again(opened, progress)
            found += _check_facts(facts, computed)
            found += _check_tables(opened, computed)
        found += _check_report(opened)
    except (MoralEntropyError, OSError, pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        found.append(Checked(FIGURES, "differs", f"cannot be computed again: {_first_line(error)}"))
    if votes_file is not None:
        found.append(_check_input(facts, Path(votes_file)))
    return Verification(folder, str(facts.get("version", "?")), tuple(_by_file(found)))


def compute_again(run: Run, progress: Progress | None = None) -> Run:
    """Audit the votes of a run again with the options, the seed and the priors in its manifest."""
    options = from_plain(AuditOptions, run.manifest["options"], MANIFEST)
    votes, fit = read_run_votes(run), options.fit
    read = partial(local_parts, votes, use_gold=fit.use_gold, by_domain=fit.by_domain, threads=fit.threads)
    return make_run(read, options, "", Stopwatch(), progress or silent, priors_of(run.manifest))


def _lost_input(facts: Mapping[str, Any]) -> str | None:
    """Say what the run cannot be computed again without: what described annotators or a population and is not here."""
    given = {name: facts["options"].get("groups", {}).get(name) for name in ("annotators", "target")}
    for name, source in given.items():
        if source is not None and not Path(source).is_file():
            return f"{name} came from {source!r}, which is not here; figures are computed again where it is"
    return None


def check_files(folder: Path) -> list[Checked]:
    """Compare the manifest with its seal and every other file with its digest."""
    facts, seal = read_sealed(folder)
    return [_check_manifest(facts, seal), *_check_digests(Run(facts, path=folder))]


def _check_manifest(facts: Mapping[str, Any], seal: str | None) -> Checked:
    if seal is None:
        return Checked(MANIFEST, "differs", "has no seal, so that nobody can tell whether it was changed")
    if seal != seal_of(facts):
        return Checked(MANIFEST, "differs", "was changed after it was written")
    return Checked(MANIFEST, "stands", "as written")


def _check_digests(run: Run) -> Iterator[Checked]:
    """Compare every file with its digest; name those that are gone, and tables of which none was noted."""
    noted = run.manifest.get(FILES, {})
    for name, digest in noted.items():
        path = run.folder / name
        if not path.is_file():
            yield Checked(name, "differs", "is missing")
        elif digest_of(path) != digest:
            yield Checked(name, "differs", "was changed after it was written")
        else:
            yield Checked(name, "stands", "as written")
    for table in SCHEMAS:
        name = f"{table}.parquet"
        if name not in noted and (run.folder / name).is_file():
            yield Checked(name, "differs", "was not written by a command: the manifest has no digest of it")


def _check_facts(facts: Mapping[str, Any], computed: Run) -> Iterator[Checked]:
    """Compare what the manifest says of fits, settings and warnings."""
    same = _tolerance(facts)
    written, again = (_comparable(one) for one in (facts, plain_facts(computed.manifest)))
    differences = list(fact_differences(written, again, same=same))
    if differences:
        more = f"; and {len(differences) - 1:,} facts more" * (len(differences) > 1)
        yield Checked(MANIFEST, "differs", f"computed again: {differences[0]}{more}")
    else:
        yield Checked(MANIFEST, "stands", "its facts computed again")
    by = str(facts.get("version"))
    if by != __version__:
        yield Checked(MANIFEST, "stands", f"made by version {by}, computed again by {__version__}")


def _comparable(facts: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in facts.items() if name not in FROM_ELSEWHERE}
    fits = [{name: value for name, value in fit.items() if name not in OF_THE_CLIMB} for fit in facts["questions"]]
    return kept | {"questions": fits}


def _check_tables(run: Run, computed: Run) -> Iterator[Checked]:
    """Compare every table with the one computed again."""
    later, clustered = run.manifest.get("validated", []), "cluster" in run.manifest
    for name in computed.made:
        file = f"{name}.parquet"
        if not run.has(name):
            yield Checked(file, "differs", "is missing")
            continue
        written, again = run.table(name), computed.table(name)
        note = ""
        if name == "findings" and later:
            kept = ~pl.col("side").is_in(later)
            written, again = written.filter(kept), again.filter(kept)
            note = f"; findings of {', '.join(later)} came later: validate finds them again"
        if clustered and name in ("items", "findings"):
            written, again = (_without_recalibration(one) for one in (written, again))
        agreement = compare_tables(written, again, same=_tolerance(run.manifest))
        how = "the same in the run computed again" if name in GIVEN else "computed again"
        state: State = "differs" if agreement.differences else "stands"
        yield Checked(file, state, f"{how}: {agreement.words}{note}")


def _without_recalibration(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out what gold teaches about p, which only an audit on one machine finds."""
    if "figure" in frame.columns:
        return frame.filter(pl.col("figure") != "recalibration")
    return frame.drop("p_calibrated", strict=False)


def _check_report(run: Run) -> Iterator[Checked]:
    """Compare the report with the one that the tables of the run give: its figures, then its words."""
    if not (run.folder / REPORT).is_file():
        return
    page = (run.folder / REPORT).read_text(encoding="utf-8")
    holds = DATA.search(page)
    if holds is None:
        yield Checked(REPORT, "differs", "holds no figures")
        return
    written = json.loads(holds[1])
    rows, differences = ITEMS, _figures_apart(run, written, ITEMS)
    if differences and (rows := _n_shown(written)) != ITEMS:
        differences = min(differences, _figures_apart(run, written, rows), key=len)
    if differences:
        more = f"; and {len(differences) - 1:,} more" * (len(differences) > 1)
        yield Checked(REPORT, "differs", f"made again from the tables: {differences[0]}{more}")
    elif written["version"] == __version__ and _words_of(page) != _words_of(render(run, items=rows)):
        yield Checked(REPORT, "differs", "made again from the tables: its charts are the same, its words are not")
    else:
        yield Checked(REPORT, "stands", "made again from the tables: the same")


def _figures_apart(run: Run, written: Mapping[str, Any], items: int) -> list[str]:
    """List where the figures that a report holds differ from those of the tables; charts are drawn from them."""
    again = json.loads(json.dumps(report_data(run, cap=items)))
    ours = {**again, "charts": written["charts"], "version": written["version"]}
    return list(fact_differences(written, ours, same=SIX_DIGITS))


def _n_shown(written: Mapping[str, Any]) -> int:
    """Count the rows of the item explorer of a report."""
    columns = (one for one in written["items"].values())
    return max(1, *(len(one["at"] if isinstance(one, dict) else one) for one in columns))


def _words_of(page: str) -> str:
    """Return a page without its scripts and charts: what a reader sees at first."""
    return DATA.sub("", SCRIPTS.sub("", page))


def _check_input(facts: Mapping[str, Any], path: Path) -> Checked:
    noted = facts.get("input", {}).get("sha256")
    if not noted:
        return Checked(path.name, "not checked", "the votes came from a dataframe, which has no digest")
    if not path.is_file():
        msg = f"{path} does not exist, so it cannot be compared with the votes of the run."
        raise RunFolderError(msg)
    if digest_of(path) != noted:
        return Checked(path.name, "differs", "is not the file that was audited: its digest is another")
    return Checked(path.name, "stands", "is the file that was audited")


def _by_file(found: list[Checked]) -> Iterator[Checked]:
    """Put what was found about one file together; what differs is said, the rest only where all is well."""
    for file in dict.fromkeys(check.file for check in found):
        about = [check for check in found if check.file == file]
        wrong = [check for check in about if check.state == "differs"]
        texts = dict.fromkeys(check.text for check in wrong or about)
        yield Checked(file, (wrong or about)[0].state, "; ".join(texts))


def _tolerance(facts: Mapping[str, Any]) -> float:
    return ON_CLUSTERS if "cluster" in facts else SAME


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
