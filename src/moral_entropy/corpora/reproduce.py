"""The paper's whole study: read the corpora → audit each → compare with the paper → a folder with a page to open.

`run_study` does what `moral-entropy reproduce` does, and prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from moral_entropy import __version__
from moral_entropy.checks.run import run_check
from moral_entropy.corpora.figures import (
    RULES,
    SCHEMA,
    any_foundation,
    dissent_rates,
    our_figures,
    placed,
    uncertain_items,
)
from moral_entropy.corpora.page import page_of, write_charts
from moral_entropy.corpora.published import ANY_FOUNDATION, CORPORA, compare_figures, read_published
from moral_entropy.corpora.sources import corpora_in, load_votes
from moral_entropy.errors import MissingExtraError, TrainError
from moral_entropy.findings import without_warnings
from moral_entropy.items.disagreement import switching_table
from moral_entropy.model.fit import fit
from moral_entropy.model.priors import priors_for
from moral_entropy.names import ALL, MEAN
from moral_entropy.option_fields import as_plain
from moral_entropy.options import AuditOptions, Inputs, ReproduceOptions, TrainOptions
from moral_entropy.pipeline import audit
from moral_entropy.progress import Progress, Stopwatch, ignore, silent
from moral_entropy.rules.table import audit_rules
from moral_entropy.runs.folder import write_manifest, writing
from moral_entropy.runs.make import count_votes, reading_facts
from moral_entropy.runs.run import Run, findings_frame
from moral_entropy.train import run as training
from moral_entropy.train import targets
from moral_entropy.train.classifier import train_classifier
from moral_entropy.votes.table import Votes

CHECKS: dict[str, tuple[int, dict[str, Any]]] = {
    "nuts": (10, {"chains": 2, "tune": 150, "draws": 150}), "ensemble": (30, {"members": 10}),
}  # fmt: skip
"""Checks, with the number of annotators up to which they take seconds, and settings with which they do; `validate` has
more chains and draws."""

FEW_DRAWS = 100
"""With fewer draws neither check is made."""

TESTED = 0.2
"""Share of the texts that classifiers are tested on."""

SHOWN = ("MFTC", "BLM", "care")
"""What the paper's table of switching annotators is about; the first of each where these votes have no such."""

Tables = dict[str, pl.DataFrame]


class Study(NamedTuple):
    """A finished study: its folder, every published figure beside ours, all figures of ours, and the manifest."""

    path: Path
    comparison: pl.DataFrame
    figures: pl.DataFrame
    manifest: dict[str, Any]


def run_study(
    inputs: Inputs,
    out: str | Path,
    options: ReproduceOptions | None = None,
    *,
    force: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> Study:
    """Run the paper's study and write its tables and figures beside the published ones.

    Parameters
    ----------
    inputs
        The corpora.
    out
        The folder; it appears when the study is complete, or not at all.
    options
        How to fit, and which classifier to train.
    force
        Replace the folder of an earlier run.
    command
        What the user typed, for the manifest.
    progress
        Called with the name of the stage and the share of it done.

    Examples
    --------
    >>> import tempfile
    >>> quick = ReproduceOptions(draws=20, classifier="none")
    >>> study = run_study(Inputs(twins=True, scale=0.005), f"{tempfile.mkdtemp()}/out", quick)
    >>> study.comparison.filter(section="entropy").height
    150
    """
    options, progress, watch = options or ReproduceOptions(), progress or silent, Stopwatch()
    corpora = corpora_in(inputs)
    with writing(out, force=force, inputs=(*inputs.files.values(), inputs.gold, inputs.themes)) as folder:
        votes, runs, any_audits = dict[str, Votes](), dict[str, Run](), dict[str, pl.DataFrame]()
        for name in corpora:
            with watch.timing("read"):
                progress(f"read {CORPORA[name]}", 0.0)
                votes[name] = load_votes(name, inputs, options.seed)
            with watch.timing("audit"):
                runs[name] = audit(votes[name], options=_audit_options(options), progress=_named(progress, name))
                any_audits |= _audit_any(name, votes[name], options)
        with watch.timing("sample"):
            findings = pl.concat([_findings(name, run, options, progress) for name, run in runs.items()])
        with watch.timing("train"):
            scores, reason = _train(runs, options, progress)
        with watch.timing("write"):
            progress("write", 0.0)
            figures = pl.concat([our_figures(runs, any_audits), _soft_figures(scores)])
            comparison = compare_figures(read_published(), figures, corpora, twins=inputs.twins)
            tables = _tables(runs) | {"checks": findings, "soft-labels": scores}
            for name, frame in {"comparison": comparison, "figures": figures}.items():
                frame.write_parquet(folder / f"{name}.parquet", compression="zstd")
            write_charts(figures, folder)
            notes = [*basis_lines(votes, set(any_audits), inputs, options), *([reason] if reason else [])]
            warnings = [f"{CORPORA[name]}: {text}" for name, run in runs.items() for text in run.manifest["warnings"]]
            tables["warnings"] = pl.DataFrame({"warning": warnings}, schema={"warning": pl.String})
            page = page_of(comparison, figures, tables, notes, twins=inputs.twins, folder=folder)
            (folder / "index.html").write_text(page, encoding="utf-8")
        manifest = {
            "version": __version__,
            "command": command,
            "corpora": {
                name: reading_facts(corpus_votes, count_votes(corpus_votes)) for name, corpus_votes in votes.items()
            },
            "twins": {"scale": inputs.scale, "seed": options.seed} if inputs.twins else None,
            **as_plain(options),
            "notes": notes,
            "warnings": warnings,
            "versions": {name: version(name) for name in ("numpy", "scipy", "polars", "numba")},
            "seconds": watch.seconds,
        }
        write_manifest(folder, manifest)
    return Study(Path(out), comparison, figures, manifest)


def _named(progress: Progress, name: str) -> Progress:
    return lambda stage, share: progress(f"{CORPORA[name]}: {stage}", share)


def _audit_options(options: ReproduceOptions) -> AuditOptions:
    return AuditOptions().changed({
        "model": "paper", "draws": options.draws, "seed": options.seed, "preset": options.preset, "rules": RULES,
        **({"solver": "adam", "steps": options.steps} if options.steps else {}),
    })  # fmt: skip


def _audit_any(name: str, votes: Votes, options: ReproduceOptions) -> dict[str, pl.DataFrame]:
    """Grade the rules on the question of any foundation; nothing where nobody says no to it."""
    together = any_foundation(votes)
    if together is None:
        return {}
    audit_options = _audit_options(options)
    with without_warnings():
        consensus = fit(together, audit_options.fit, priors=priors_for(together, audit_options.priors))
        return {name: audit_rules(together, consensus, rules=RULES, seed=options.seed).frame}


def _findings(name: str, run: Run, options: ReproduceOptions, progress: Progress) -> pl.DataFrame:
    """Sample the posterior and search again from random starts, where there are few annotators."""
    consensus, findings = run.consensus, []
    for check, (max_annotators, settings) in CHECKS.items():
        # A few draws are nothing to compare samples with.
        if consensus is not None and len(consensus.votes.annotators) <= max_annotators and options.draws >= FEW_DRAWS:
            progress(f"{CORPORA[name]}: {check}", 0.0)
            with without_warnings():
                findings += run_check(consensus, check, required=False, seed=options.seed, **settings)
    frame = findings_frame(findings).with_columns(corpus=pl.lit(name), foundation="question")
    return frame.select("corpus", "check", "foundation", "metric", "value", "text")


def _train(runs: Mapping[str, Run], options: ReproduceOptions, progress: Progress) -> tuple[pl.DataFrame, str]:
    """Train the same classifier on soft and hard labels of MFTC, or of the first corpus with texts."""
    name = next((name for name in ("mftc", *runs) if name in runs and runs[name].has("texts")), None)
    if options.classifier == "none" or name is None:
        return pl.DataFrame(), "" if name else "No classifier was trained: the votes come without texts."
    run, settings = runs[name], TrainOptions(model=options.classifier, compare=True, seed=options.seed)
    kinds = [*training.COMPARED, *(["gold"] if targets.has_labels(run, "gold") else [])]

    advance = partial(progress, f"{CORPORA[name]}: train")
    try:
        train, test = targets.split_targets(targets.read_targets(run, kinds), TESTED, seed=options.seed)
        targets.check_classes(train, "soft")
        first = train_classifier(train, "soft", settings, advance=ignore)
        scores = training.compare_targets(train, test, settings, first, advance=advance)
    except (MissingExtraError, TrainError) as error:
        return pl.DataFrame(), f"No classifier was trained: {error}"
    return scores.with_columns(corpus=pl.lit(name)), ""


def _soft_figures(scores: pl.DataFrame) -> pl.DataFrame:
    """Return the AUC of the soft-label model against the majority's label, and its gain over majority labels."""
    if scores.is_empty():
        return SCHEMA.to_frame()
    reference = "gold" if "gold" in scores["reference"] else "majority"
    auc = scores.filter(pl.col("question") != MEAN, metric="auc", target="soft", reference="majority")
    gain = scores.filter(question=MEAN, metric="accuracy", target="majority", reference=reference)
    ends = {"value": "difference", "low": "difference_low", "high": "difference_high"}
    rows = [
        auc.select("value", "low", "high", "n", foundation="question", metric=pl.lit("auc")),
        gain.select("n", foundation=pl.lit(ALL), metric=pl.lit("accuracy_gain"), **ends),
    ]
    return placed(pl.concat(rows, how="diagonal"), corpus=scores["corpus"][0], domain=ALL)


def _tables(runs: Mapping[str, Run]) -> Tables:
    """Collect what the paper says of annotators and items: dissent, switching, uncertain items and their words."""

    def all_runs(frames: Iterator[pl.DataFrame]) -> pl.DataFrame:
        labelled = (frame.with_columns(corpus=pl.lit(CORPORA[name])) for name, frame in zip(runs, frames, strict=True))
        return pl.concat([frame.select("corpus", pl.exclude("corpus")) for frame in labelled], how="diagonal")

    dissent = all_runs(dissent_rates(run) for run in runs.values())
    outliers = all_runs(uncertain_items(run) for run in runs.values())
    words = all_runs(run.table("outliers").filter(kind="word").drop("kind", "ranking") for run in runs.values())
    return {"dissent": dissent, "outliers": outliers, "words": words, "switching": _switching(runs, outliers)}


def _switching(runs: Mapping[str, Run], outliers: pl.DataFrame) -> pl.DataFrame:
    """Lay out who voted what on the five most uncertain texts that most annotators of the domain voted on."""
    items = outliers.with_columns(pl.col("domain").fill_null(ALL))
    for column, choice in zip(("corpus", "domain", "question"), SHOWN, strict=True):
        values = items[column].unique(maintain_order=True)
        if len(values):
            items = items.filter(pl.col(column) == (choice if choice in values else values[0]))
    items = items.filter(pl.col("n_votes") == items["n_votes"].max()).head(5)
    if items.is_empty():
        return pl.DataFrame()
    question = items["question"][0]
    run = next(run for name, run in runs.items() if CORPORA[name] == items["corpus"][0])
    positive = next(entry.positive for entry in run.questions if entry.name == question)
    frame, _ = switching_table(run.table("votes"), items["item"].to_list(), question=question, positive=positive)
    about = [name for name in ("corpus", "domain", "question", "item", "text") if name in items.columns]
    return items.select(about).join(frame, on="item", maintain_order="left")


def basis_lines(votes: Mapping[str, Votes], with_any: set[str], inputs: Inputs, options: ReproduceOptions) -> list[str]:
    """Describe the data that our figures were computed from, and how, one sentence each."""
    lines = []
    for name, read in votes.items():
        lines.append(
            f"{CORPORA[name]}: {read.reading.source}, {read.n_items:,} texts, {len(read.annotators):,} annotators."
        )
        if name not in with_any:
            lines[-1] += f" All its annotations name a foundation, so it is in no figure of {ANY_FOUNDATION}."
    if inputs.twins:
        scale = "" if inputs.scale == 1 else f" at scale {inputs.scale:g}"
        lines.append(f"The votes are simulated{scale}: what differs says nothing against the paper.")
    prior = "80,20 (500,500 for any foundation)" if options.preset else "flat, as the paper prints none"
    search = f"{options.steps} steps of Adam" if options.steps else "EM, to the mode"
    lines.append(
        f"One fit per foundation and corpus, --model paper: prior of the prevalence {prior}, of confusion rows 1.8 and "
        f"1.2; {search}; {options.draws:,} draws from the Gaussian there, seed {options.seed}. Version {__version__}."
    )
    return lines
