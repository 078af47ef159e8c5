"""The whole study: read → fit → grade → compare → a folder of tables and pages.

`run_study` does what `moral-entropy reproduce` does, and prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moral_entropy import __version__
from moral_entropy.findings import warning_sentences, without_warnings
from moral_entropy.model.consensus import Consensus
from moral_entropy.model.fit import fit
from moral_entropy.model.priors import priors_for
from moral_entropy.names import ALL, MEAN
from moral_entropy.option_fields import as_plain
from moral_entropy.options import Inputs, PriorOptions, ReproduceOptions
from moral_entropy.progress import Progress, Stopwatch, silent
from moral_entropy.reproduce.figures import (
    SCHEMA,
    any_foundation,
    corpora_figures,
    counted_figures,
    dissent_figures,
    entropy_figures,
)
from moral_entropy.reproduce.grading import grade_rules
from moral_entropy.reproduce.pages import comparison_page
from moral_entropy.reproduce.published import CORPORA, compare_figures, read_published
from moral_entropy.reproduce.sources import corpora_in, load_votes
from moral_entropy.runs.folder import write_manifest, writing
from moral_entropy.runs.make import count_votes, reading_facts
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


Fits = Mapping[str, Consensus]
"""Consensus by corpus: on the foundations, or on any foundation."""


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
    corpora, seed = corpora_in(inputs), options.seed
    with writing(out, force=force, inputs=(*inputs.files.values(), inputs.gold, inputs.themes)) as folder:
        with watch.timing("read"):
            progress("read", 0.0)
            votes = {name: load_votes(name, inputs, seed) for name in corpora}
            together = {name: own for name in corpora if (own := any_foundation(votes[name])) is not None}
        with watch.timing("fit"), without_warnings():
            fits, fits_together = _fit(votes, options, progress), _fit(together, options, progress)
        with watch.timing("grade"):
            progress("grade", 0.0)
            figures = _figures(votes, fits, fits_together, options)
        comparison = compare_figures(read_published(), figures, corpora, twins=inputs.twins, scale=inputs.scale)
        page = comparison_page(comparison, basis_lines(votes, set(together), inputs, options))
        with watch.timing("write"):
            comparison.write_parquet(folder / "comparison.parquet", compression="zstd")
            figures.write_parquet(folder / "figures.parquet", compression="zstd")
            (folder / "comparison.md").write_text(page, encoding="utf-8")
        manifest = {
            "version": __version__,
            "command": command,
            "corpora": {name: reading_facts(own, count_votes(own)) for name, own in votes.items()},
            "twins": {"scale": inputs.scale, "seed": seed} if inputs.twins else None,
            "converged": {name: consensus.converged for name, consensus in fits.items()},
            "priors": as_plain(PRIORS),
            **as_plain(options),
            "warnings": _warnings(fits, fits_together),
            "versions": {name: version(name) for name in ("numpy", "scipy", "polars", "numba")},
            "seconds": {stage: round(spent, 3) for stage, spent in watch.seconds.items()},
        }
        write_manifest(folder, manifest)
    return Study(Path(out), comparison, figures, manifest)


def _fit(votes: Mapping[str, Votes], options: ReproduceOptions, progress: Progress) -> Fits:
    fits = {}
    for name, own in votes.items():

        def advance(_stage: str, share: float, name: str = name) -> None:
            progress(f"fit {name}", share)

        fits[name] = fit(own, options.fit, priors=priors_for(own, PRIORS), progress=advance)
    return fits


def _warnings(*fits: Fits) -> list[str]:
    warnings = []
    for name, corpus in CORPORA.items():
        findings = [finding for of_corpora in fits if name in of_corpora for finding in of_corpora[name].findings]
        warnings += [f"{corpus} {sentence}" for sentence in warning_sentences(findings)]
    return warnings


def _figures(votes: Mapping[str, Votes], fits: Fits, fits_together: Fits, options: ReproduceOptions) -> pl.DataFrame:
    import polars as pl

    graded = [grade_rules(fits, seed=options.seed)]
    if fits_together:
        whole = grade_rules(fits_together, seed=options.seed)
        graded.append(whole.filter(~pl.col("foundation").is_in([ALL, MEAN])))
    others = [
        *corpora_figures(votes),
        *entropy_figures(fits),
        *counted_figures(graded[0]),
        *(figure for name, own in votes.items() for figure in dissent_figures(name, own)),
    ]
    return pl.concat([pl.DataFrame(others, schema=SCHEMA), *graded])


def basis_lines(votes: Mapping[str, Votes], with_any: set[str], inputs: Inputs, options: ReproduceOptions) -> list[str]:
    """Describe the data that our figures were computed from, one sentence each."""
    lines = []
    for name, own in votes.items():
        n_annotators = len(own.annotators)
        lines.append(f"{CORPORA[name]}: {own.reading.source}, {own.n_items:,} texts, {n_annotators:,} annotators.")
        if name not in with_any:
            lines.append(
                f"All annotations of {CORPORA[name]} name a foundation, so it is in no figure of any foundation."
            )
    if inputs.twins:
        scale = "" if inputs.scale == 1 else f" at scale {inputs.scale:g}"
        lines.append(
            f"The votes are simulated{scale}: what differs says nothing against the paper. Gold is their truth."
        )
    lines.append(
        f"Fitted by foundation and corpus with the paper's priors; {options.draws:,} draws, seed {options.seed}. "
        f"Intervals, against gold alone, are over resampled texts. moral-entropy {__version__}."
    )
    return lines
