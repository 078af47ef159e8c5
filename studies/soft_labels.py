"""Do soft labels win? The comparison of targets on real Reddit comments, and on simulated tweets whose truth is known.

MFRC: 17,457 comments with how many of (nearly always) three annotators named each foundation; who did is not known.
MFTC's twin: simulated votes of 23 annotators, and texts made of filler and cue words, so that the truth is known.

The panel: nine settings of language models that voted on comments of MFRC; people's labels are gold.

Usage: soft_labels.py [--data ../shared/data] [--only NAME,…] [--jobs 2] [--work FOLDER] [--dry]. Writes the tables of
docs/evidence/soft-labels.md, of which a part is replaced where all of its studies were asked for; with --dry only
prints. With --work run folders and studies stay there; studies that are there already are not run again, and one that
was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from page import put

import moral_entropy
from moral_entropy.consensus.options import PriorOptions
from moral_entropy.corpora.twins import twin
from moral_entropy.markup import markdown_table
from moral_entropy.names import MEAN
from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.report.soft_labels import CONSTANT, show_difference
from moral_entropy.runs.reload import reload_consensus
from moral_entropy.study.compare import Study
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.page import study_page
from moral_entropy.study.run import run_study
from moral_entropy.train.refine import refine
from moral_entropy.train.refined import Grade, grade_refined, refined_lines
from moral_entropy.train.scores import area_under_roc
from moral_entropy.votes.options import ReadOptions

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence" / "soft-labels.md"
FOUNDATIONS = ("Authority", "Care", "Equality", "Loyalty", "Proportionality", "Purity")
TARGETS = StudyOptions().targets
SOFT_LABELS = "soft labels"
"""The part about tfidf."""

TUNED = "fine-tuned"
"""The part of the page about encoders that learn."""

HEAD_ALONE = "head alone"
"""The part about encoders of which only the last layer learns."""

REFINE = "refine"

SCALE = 0.15
"""Size of MFTC's twin."""


@dataclass(frozen=True)
class Setting:
    """One study.

    Parameters
    ----------
    name, title
        A word for files, and a line for the page.
    corpus
        "mfrc", "mfrc-panel" or "mftc-twin".
    options
        Of the study.
    part
        Part of the page that it belongs to.
    """

    name: str
    title: str
    corpus: str
    options: StudyOptions
    part: str = SOFT_LABELS

    @property
    def command(self) -> str:
        """What a user would type after the audit."""
        asked = self.options
        tuned = asked.models != ("tfidf",)
        flags = {
            "--train-texts": asked.train_texts,
            "--test-texts": asked.test_texts,
            "--head-only": asked.head_only or None,
            "--layers": asked.layers,
            "--max-length": asked.max_length if tuned else None,
            "--epochs": asked.epochs if tuned else None,
            "--batch-size": asked.batch_size if asked.batch_size != StudyOptions().batch_size else None,
            "--learning-rate": asked.learning_rate,
            "--split": asked.split if asked.split != "items" else None,
        }
        said = " ".join(
            flag if value is True else f"{flag} {value}" for flag, value in flags.items() if value is not None
        )
        start = (
            f"moral-entropy study {self.corpus}/ --targets {','.join(asked.targets)} --models {','.join(asked.models)}"
        )
        return " ".join(filter(None, (start, f"--seeds {asked.seeds}", said, f"-o {self.name}/")))


TFIDF = StudyOptions(models=("tfidf",), seeds=3)
HEAD = StudyOptions(
    models=("minilm",), seeds=5, head_only=True, max_length=64, epochs=20, batch_size=128, learning_rate=1e-2
)
FULL = StudyOptions(
    targets=("soft", "share", "majority"), models=("minilm",), seeds=3, held_out=0, max_length=32, epochs=2,
    learning_rate=1e-4, train_texts=1_500, test_texts=1_500,
)  # fmt: skip
LAYERS = replace(FULL, targets=TARGETS, layers=2, learning_rate=3e-4)

SETTINGS = (
    Setting("mfrc-minilm-full", "MFRC, MiniLM, fully fine-tuned", "mfrc", FULL, TUNED),
    Setting("mfrc-minilm-layers", "MFRC, MiniLM, its last two layers", "mfrc", LAYERS, TUNED),
    Setting(
        "panel-minilm-layers", "Nine language models on MFRC, MiniLM, its last two layers", "mfrc-panel",
        replace(LAYERS, targets=("soft", "share", "majority", "any", "annotators")), TUNED,
    ),
    Setting(
        "panel-tfidf", "Nine language models on MFRC, tfidf", "mfrc-panel",
        replace(TFIDF, targets=(*TARGETS, "annotators")),
    ),
    Setting("twin-minilm-layers", "MFTC's twin, MiniLM, its last two layers", "mftc-twin",
        replace(LAYERS, train_texts=3_000), TUNED,
    ),
    Setting("mfrc-tfidf", "MFRC, tfidf", "mfrc", TFIDF),
    Setting("mfrc-minilm-head", "MFRC, MiniLM, the head alone", "mfrc", HEAD, HEAD_ALONE),
    Setting("twin", "MFTC's twin, tfidf", "mftc-twin", TFIDF),
    Setting(
        "twin-domains", "MFTC's twin, each domain tested by what was learnt on the others", "mftc-twin",
        replace(TFIDF, seeds=1, split="leave-domain-out", held_out=0),
    ),
)  # fmt: skip


def audit_mfrc(data: Path, out: Path) -> None:
    """Audit the Reddit comments: counts of three anonymous annotators."""
    read = ReadOptions(item="ID", text="text", anonymous=True, questions=FOUNDATIONS, of="3")
    source = data / "mfrc_counts" / "counts_with_text.csv"
    audit(source, out, AuditOptions(read=read, priors=PriorOptions(preset="mft"), report=False))


def audit_panel(data: Path, out: Path) -> None:
    """Audit the votes of nine settings of language models on Reddit comments; people's labels are gold."""
    folder = data / "mfrc_llm_panel"
    texts = pl.read_csv(folder / "items.csv", columns=["item", "text"])
    votes = pl.read_csv(folder / "votes.csv").join(texts, on="item", how="left", maintain_order="left")
    read = ReadOptions(
        text="text", multilabel="|", on_repeat="count", gold_file=str(folder / "items.csv"), gold="gold_multilabel"
    )
    audit(votes, out, AuditOptions(read=read, report=False))


def audit_twin(_data: Path, out: Path) -> None:
    """Audit MFTC's twin."""
    audit(twin("mftc", scale=SCALE), out, AuditOptions(priors=PriorOptions(preset="mft"), report=False))


AUDITS: dict[str, Callable[[Path, Path], None]] = {
    "mfrc": audit_mfrc, "mfrc-panel": audit_panel, "mftc-twin": audit_twin,
}  # fmt: skip


def make_study(setting: Setting, data: Path, work: Path) -> str:
    """Run one study, unless it is there, and return its part of the page."""
    out, run = work / setting.name, work / setting.corpus
    if not (out / "manifest.json").is_file():
        began = time.perf_counter()
        if not run.is_dir():
            AUDITS[setting.corpus](data, run)
        print(f"{setting.name}: audited in {time.perf_counter() - began:.0f} s", flush=True)
        run_study(run, out, setting.options, command=setting.command)
        print(f"{setting.name}: done after {time.perf_counter() - began:.0f} s", flush=True)
    return section(setting, out)


def load_study(out: Path, manifest: dict[str, Any]) -> Study:
    """Read a study back from its folder."""
    names = ("study", "study_differences", "study_curves")
    scores, differences, curves = (pl.read_parquet(out / f"{name}.parquet") for name in names)
    return Study(scores, differences, curves, tuple(manifest["notes"]), manifest)


def section(setting: Setting, out: Path) -> str:
    """Write a study's part of the page: the command, how long it took, and its own page one level down."""
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    _, _, body = study_page(load_study(out, manifest), level=2).partition("\n\n")
    took = f"{sum(manifest['seconds'].values()) / 60:.1f} minutes"
    if "cpu_seconds" in manifest:
        took += f", {manifest['cpu_seconds']:.0f} seconds of one core"
    without = "" if setting.options.held_out else " To save time no votes were held out here."
    return f"## {setting.title}\n\n```\n{setting.command}\n```\n\nTook {took}.{without}\n\n{body.strip()}"


def labels_section(run: Path) -> str:
    """Compare the twin's labels themselves with the truth, before any classifier: ranking, and spread over domains."""
    items = pl.read_parquet(run / "items.parquet").with_columns(
        share=pl.col("n_positive") / pl.col("n_votes"), truth=(pl.col("gold") == "1").cast(pl.Float64)
    )
    rows = []
    for (question,), own in items.group_by("question", maintain_order=True):
        once = np.ones((1, own.height))
        auc = [area_under_roc(own[name].to_numpy(), own["truth"].to_numpy(), once)[0] for name in ("share", "p")]
        means = own.group_by("domain").agg(pl.col("truth", "share", "p").mean())
        ends = [f"{min(means[name]):.3f} to {max(means[name]):.3f}" for name in ("truth", "share", "p")]
        rows.append((str(question), *(f"{value:.3f}" for value in auc), *ends))
    header = ("question", "AUC of the share", "AUC of p", "truth, by domain", "share, by domain", "p, by domain")
    words = (
        "Before any classifier: how well the vote share and the consensus p rank the twin's items against the truth, "
        "and the lowest and highest mean of a domain."
    )
    table = markdown_table(header, rows, numbers=header[1:], is_markdown=True)
    return f"## MFTC's twin, the labels themselves\n\n{words}\n\n{table}"


# --- The paper's claims ----------------------------------------------------------------------------------------------


def claims(study: Study, title: str) -> str:
    """Answer the paper's three claims from a study: accuracy gained, AUC by foundation, plateau within an epoch."""
    lines = [f"- Accuracy, soft less majority (the paper: 2 to 3 points more): {_gains(study.differences)}."]
    lines.append(f"- AUC of soft against the majority label (the paper: .93 to .96): {_areas(study.scores)}.")
    curves = study.curves.filter(pl.col("validation_loss").is_not_null())
    if not curves.is_empty():
        lines.append(f"- A plateau within an epoch: {_plateau(curves, study.facts['settings']['epochs'])}.")
    return f"**{title}**\n\n" + "\n".join(lines)


def _gains(differences: pl.DataFrame) -> str:
    rows = differences.filter(target="majority", metric="accuracy", question=MEAN).to_dicts()
    named = [{**row, "difference_low": row["low"], "difference_high": row["high"]} for row in rows]
    return "; ".join(f"against {row['reference']} {show_difference(row)}" for row in named)


def _areas(scores: pl.DataFrame) -> str:
    rows = scores.filter(pl.col("model") != CONSTANT, target="soft", reference="majority", metric="auc")
    said = [f"{row['question']} {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})" for row in rows.to_dicts()]
    return ", ".join(said)


def _plateau(curves: pl.DataFrame, epochs: int) -> str:
    """Say how much of the fall of soft's validation loss was over when the first epoch was."""
    own = curves.filter(target="soft").with_columns(point=pl.int_range(pl.len()).over("seed"))
    mean = own.group_by("point").agg(pl.col("validation_loss").mean()).sort("point")["validation_loss"].to_list()
    end_of_first = len(mean) // epochs - 1
    fall = mean[0] - min(mean)
    share = (mean[0] - mean[end_of_first]) / fall if fall > 0 else 1.0
    said = ", ".join(f"{loss:.3f}" for loss in mean)
    return (
        f"validation loss of soft at the quarters of {epochs} epochs {said}; {share:.0%} of the fall after the first "
        "quarter of an epoch was over when the first epoch was"
    )


def claims_section(chosen: Sequence[Setting], work: Path) -> str:
    """Answer the claims for every fine-tuned study that is there."""
    said = ["## The paper's claims, one by one"]
    for setting in chosen:
        manifest = json.loads((work / setting.name / "manifest.json").read_text(encoding="utf-8"))
        if setting.part == TUNED and "majority" in setting.options.targets:
            said.append(claims(load_study(work / setting.name, manifest), setting.title))
    return "\n\n".join(said)


# --- Refining --------------------------------------------------------------------------------------------------------

REFINED = {"mfrc-panel": "Nine language models, gold by people", "mftc-twin": "MFTC's twin, the truth known"}


def refine_section(work: Path) -> str:
    """Refine the runs that have gold, and grade votes alone beside votes and text."""
    parts = [
        "`moral-entropy refine RUN/ -o refined.parquet`: tfidf, five folds, the weight learnt from held-out votes."
    ]
    for corpus, title in REFINED.items():
        refined = refine(reload_consensus(work / corpus))
        grades = grade_refined(refined)
        rows = [_grade_cells(grade) for grade in grades]
        header = (
            "question",
            "recalibrated",
            "log loss, votes",
            "with text",
            "saved",
            "accuracy, votes",
            "with text",
            "AUC, votes",
            "with text",
        )
        lines = "\n".join(f"- {line}" for line in refined_lines(refined, grades))
        parts.append(f"### {title}\n\n{lines}\n\n{markdown_table(header, rows, numbers=header[2:], is_markdown=True)}")
    return "\n\n".join(parts)


def _grade_cells(grade: Grade) -> tuple[str, ...]:
    figures = []
    for name, style in (("log_loss", "z.3f"), ("accuracy", ".1%"), ("auc", "z.3f")):
        figures += [format(scores[name], style) for scores in (grade.votes, grade.refined)]
        if name == "log_loss":
            figures.append(f"{grade.gain:z.3f} ± {grade.gain_se:.3f}")
    return (grade.question, "yes" if grade.recalibrated else "no", *figures)


def with_tables(page: str, text: str, part: str = SOFT_LABELS) -> str:
    """Put text between the markers of a part of the page."""
    return put(page, part, "studies/soft_labels.py", text)


def make_all(chosen: Sequence[Setting], data: Path, work: Path, jobs: int) -> dict[str, str]:
    """Run the studies, several at a time; returns their sections by name."""
    if jobs == 1:
        made = [make_study(setting, data, work) for setting in chosen]
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            made = list(pool.map(make_study, chosen, [data] * len(chosen), [work] * len(chosen)))
    return dict(zip((setting.name for setting in chosen), made, strict=True))


def parts_of_page(chosen: Sequence[Setting], sections: dict[str, str], work: Path) -> dict[str, str]:
    """Put the sections together, part by part; a part of which a study is missing is left out."""
    found = {}
    for part in dict.fromkeys(setting.part for setting in SETTINGS):
        own = [setting for setting in SETTINGS if setting.part == part]
        if {setting.name for setting in own} <= set(sections):
            said = [f"moral-entropy {moral_entropy.__version__}."]
            said += [claims_section(own, work)] if part == TUNED else []
            said += [sections[setting.name] for setting in own]
            said += [labels_section(work / "mftc-twin")] if part == SOFT_LABELS else []
            found[part] = "\n\n".join(said)
    return found


def main() -> None:
    """Run the studies and write their page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT / ".." / "shared" / "data", help="folder with mfrc_counts")
    names = (REFINE, *(one.name for one in SETTINGS))
    parser.add_argument("--only", default=",".join(names), help=f"some of {', '.join(names)}")
    parser.add_argument("--jobs", type=int, default=1, help="studies at a time")
    parser.add_argument("--work", type=Path, help="keep run folders and studies here")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    wanted = asked.only.split(",")
    chosen = [one for one in SETTINGS if one.name in wanted]
    with tempfile.TemporaryDirectory() as nowhere:
        work = asked.work or Path(nowhere)
        work.mkdir(parents=True, exist_ok=True)
        sections = make_all(chosen, asked.data, work, asked.jobs)
        parts = parts_of_page(chosen, sections, work)
        if REFINE in wanted:
            for corpus in REFINED:
                if not (work / corpus).is_dir():
                    AUDITS[corpus](asked.data, work / corpus)
            parts[REFINE] = refine_section(work)
    print("\n\n".join(parts.values() if parts else sections.values()))
    if not asked.dry:
        page = PAGE.read_text(encoding="utf-8")
        for part, text in parts.items():
            page = with_tables(page, text, part)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
