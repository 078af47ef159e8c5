"""The whole study: read → fit → grade → compare → a folder of tables and pages.

`run_study` does what `moral-entropy reproduce` does, and prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moral_entropy import __version__
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.options import PriorOptions
from moral_entropy.consensus.result import Consensus
from moral_entropy.findings import alarm_sentences, without_warnings
from moral_entropy.names import ALL, MEAN
from moral_entropy.options import as_plain
from moral_entropy.pipeline.facts import count_votes, reading_facts
from moral_entropy.pipeline.priors import priors_for
from moral_entropy.progress import Progress, Stopwatch, silent
from moral_entropy.reproduce.any_foundation import any_foundation
from moral_entropy.reproduce.comparison import Basis, compare_figures
from moral_entropy.reproduce.figures import as_frame, corpora_figures, counted_figures, dissent_figures, entropy_figures
from moral_entropy.reproduce.grading import grade_rules
from moral_entropy.reproduce.options import Inputs, ReproduceOptions
from moral_entropy.reproduce.pages import comparison_tables, to_html, to_markdown
from moral_entropy.reproduce.published import CORPORA, read_published
from moral_entropy.reproduce.soft_labels import soft_label_figures
from moral_entropy.reproduce.sources import corpora_in, load_votes
from moral_entropy.runs.folder import writing
from moral_entropy.runs.manifest import write_manifest
from moral_entropy.votes.table import Votes

if TYPE_CHECKING:
    import polars as pl

PRIORS = PriorOptions(preset="mft")
"""The paper's: 80,20 for a foundation, 500,500 for any foundation; confusion rows of 1.8 and 1.2."""


@dataclass(frozen=True, eq=False)
class Study:
    """A finished study.

    Parameters
    ----------
    path
        The folder.
    comparison
        Every published figure with ours: `compare_figures`.
    figures
        All figures of ours, published or not.
    manifest
        As written.
    """

    path: Path
    comparison: pl.DataFrame
    figures: pl.DataFrame
    manifest: dict[str, Any]


@dataclass(eq=False)
class Fits:
    """Votes and fits of the corpora, filled one by one."""

    votes: dict[str, Votes] = field(default_factory=dict)
    foundations: dict[str, Consensus] = field(default_factory=dict)
    any_foundation: dict[str, Consensus] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def run_study(
    inputs: Inputs,
    out: str | Path,
    options: ReproduceOptions | None = None,
    *,
    force: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> Study:
    """Run the paper's study and write its figures next to the published ones.

    Parameters
    ----------
    inputs
        The corpora.
    out
        The folder; it appears when the study is complete, or not at all.
    options
        How to fit.
    force
        Replace the folder of an earlier run.
    command
        What the user typed, for the manifest.
    progress
        Called with the name of the stage and the share of it done.

    Examples
    --------
    >>> import tempfile
    >>> study = run_study(Inputs(twins=True, scale=0.01), f"{tempfile.mkdtemp()}/out", ReproduceOptions(draws=20))
    >>> study.comparison.filter(section="entropy").height
    150
    """
    options, progress, watch = options or ReproduceOptions(), progress or silent, Stopwatch()
    files = (*inputs.files.values(), inputs.gold, inputs.themes, options.soft_labels)
    with writing(out, force=force, inputs=files) as folder:
        fits = _fit_all(inputs, options, progress, watch)
        with watch.timing("grade"):
            figures = _figures(fits, options, progress)
        with watch.timing("write"):
            comparison = compare_figures(
                read_published(), figures, Basis(corpora_in(inputs), inputs.twins, inputs.scale)
            )
            tables = comparison_tables(comparison, basis_lines(fits, inputs, options))
            comparison.write_parquet(folder / "comparison.parquet", compression="zstd")
            figures.write_parquet(folder / "figures.parquet", compression="zstd")
            (folder / "comparison.md").write_text(to_markdown(tables), encoding="utf-8")
            (folder / "comparison.html").write_text(to_html(tables), encoding="utf-8")
        manifest = _manifest(fits, inputs, options, command, watch)
        write_manifest(folder, manifest)
    return Study(Path(out), comparison, figures, manifest)


def _fit_all(inputs: Inputs, options: ReproduceOptions, progress: Progress, watch: Stopwatch) -> Fits:
    fits = Fits()
    for name in corpora_in(inputs):
        with watch.timing("read"):
            progress(f"read {name}", 0.0)
            votes = load_votes(name, inputs, options.seed)
            together = any_foundation(votes)
        fits.votes[name] = votes
        with watch.timing("fit"), without_warnings():
            fits.foundations[name] = _fit(name, votes, options, progress)
            if together is not None:
                fits.any_foundation[name] = _fit(name, together, options, progress)
        fitted = [every[name] for every in (fits.foundations, fits.any_foundation) if name in every]
        found = [finding for consensus in fitted for finding in consensus.findings]
        fits.warnings += [f"{CORPORA[name]} {sentence}" for sentence in alarm_sentences(found)]
    return fits


def _fit(name: str, votes: Votes, options: ReproduceOptions, progress: Progress) -> Consensus:
    def advance(_stage: str, share: float) -> None:
        progress(f"fit {name}", share)

    return fit(votes, options.fit, priors=priors_for(votes, PRIORS), progress=advance)


def _figures(fits: Fits, options: ReproduceOptions, progress: Progress) -> pl.DataFrame:
    import polars as pl

    progress("grade", 0.0)
    seed, threads = options.seed, options.threads
    graded = [grade_rules(fits.foundations, seed=seed, threads=threads)]
    if fits.any_foundation:
        whole = grade_rules(fits.any_foundation, seed=seed, threads=threads)
        graded.append(whole.filter(~pl.col("foundation").is_in([ALL, MEAN])))
    others = [
        *corpora_figures(fits.votes),
        *entropy_figures(fits.foundations),
        *counted_figures(graded[0]),
        *(figure for name, votes in fits.votes.items() for figure in dissent_figures(name, votes)),
        *(soft_label_figures(options.soft_labels) if options.soft_labels else ()),
    ]
    return pl.concat([as_frame(others), *graded])


def basis_lines(fits: Fits, inputs: Inputs, options: ReproduceOptions) -> list[str]:
    """Describe the data that our figures were computed from, one sentence each."""
    lines = []
    for name, votes in fits.votes.items():
        n_annotators = len(votes.annotators)
        lines.append(f"{CORPORA[name]}: {votes.reading.source}, {votes.n_items:,} texts, {n_annotators:,} annotators.")
        if name not in fits.any_foundation:
            lines.append(
                f"All annotations of {CORPORA[name]} name a foundation, so it is in no figure of any foundation."
            )
    if inputs.twins:
        scale = "" if inputs.scale == 1 else f" at scale {inputs.scale:g}"
        lines.append(
            f"The votes are simulated{scale}: what differs says nothing against the paper. Gold is their truth."
        )
    lines.append(
        f"Fitted by foundation and corpus with the paper's priors; {options.draws:,} draws, seed {options.seed}, "
        f"coordinates {options.coordinates}. Intervals hold 90% of the draws, against gold of "
        f"resampled texts. moral-entropy {__version__}."
    )
    return lines


def _manifest(fits: Fits, inputs: Inputs, options: ReproduceOptions, command: str, watch: Stopwatch) -> dict[str, Any]:
    return {
        "version": __version__,
        "command": command,
        "corpora": {name: reading_facts(votes, count_votes(votes)) for name, votes in fits.votes.items()},
        "twins": {"scale": inputs.scale, "seed": options.seed} if inputs.twins else None,
        "converged": {name: consensus.converged for name, consensus in fits.foundations.items()},
        "priors": as_plain(PRIORS),
        **as_plain(options),
        "warnings": fits.warnings,
        "versions": {name: version(name) for name in ("numpy", "scipy", "polars", "numba")},
        "seconds": {stage: round(spent, 3) for stage, spent in watch.seconds.items()},
    }
