"""Do soft labels win? The comparison of targets on real Reddit comments, and on simulated tweets whose truth is known.

MFRC: 17,457 comments with how many of (nearly always) three annotators named each foundation; who did is not known.
MFTC's twin: simulated votes of 23 annotators, and texts made of filler and cue words, so that the truth is known.

Usage: soft_labels.py [--data ../shared/data] [--only NAME,…] [--jobs 2] [--work FOLDER] [--dry]. Writes the tables of
docs/evidence/soft-labels.md; with --dry only prints. With --work run folders and studies stay there, and studies that
are there already are not run again.
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
from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.study.compare import Study
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.page import study_page
from moral_entropy.study.run import run_study
from moral_entropy.train.scores import area_under_roc
from moral_entropy.votes.options import ReadOptions

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence" / "soft-labels.md"
FOUNDATIONS = ("Authority", "Care", "Equality", "Loyalty", "Proportionality", "Purity")
TARGETS = StudyOptions().targets
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
    """

    name: str
    title: str
    corpus: str
    options: StudyOptions

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
    Setting("mfrc-minilm-full", "MFRC, MiniLM, fully fine-tuned", "mfrc", FULL),
    Setting("mfrc-minilm-layers", "MFRC, MiniLM, its last two layers", "mfrc", LAYERS),
    Setting(
        "panel-minilm-layers", "Nine language models on MFRC, MiniLM, its last two layers", "mfrc-panel",
        replace(LAYERS, targets=("soft", "share", "majority", "any")),
    ),
    Setting("panel-tfidf", "Nine language models on MFRC, tfidf", "mfrc-panel", TFIDF),
    Setting("twin-minilm-layers", "MFTC's twin, MiniLM, its last two layers", "mftc-twin",
        replace(LAYERS, targets=("soft", "share", "majority"), train_texts=1_000)),
    Setting("mfrc-tfidf", "MFRC, tfidf", "mfrc", TFIDF),
    Setting("mfrc-minilm-head", "MFRC, MiniLM, the head alone", "mfrc", HEAD),
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


def with_tables(page: str, text: str) -> str:
    """Put text between the markers of the page."""
    return put(page, "soft labels", "studies/soft_labels.py", text)


def make_all(chosen: Sequence[Setting], data: Path, work: Path, jobs: int) -> list[str]:
    """Run the studies, several at a time; the sections come in order."""
    if jobs == 1:
        return [make_study(setting, data, work) for setting in chosen]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(make_study, chosen, [data] * len(chosen), [work] * len(chosen)))


def main() -> None:
    """Run the studies and write their page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT / ".." / "shared" / "data", help="folder with mfrc_counts")
    parser.add_argument("--only", default="", help=f"some of {', '.join(one.name for one in SETTINGS)}")
    parser.add_argument("--jobs", type=int, default=1, help="studies at a time")
    parser.add_argument("--work", type=Path, help="keep run folders and studies here")
    parser.add_argument("--dry", action="store_true", help="print the tables and leave the page alone")
    asked = parser.parse_args()
    chosen = [one for one in SETTINGS if not asked.only or one.name in asked.only.split(",")]
    with tempfile.TemporaryDirectory() as nowhere:
        work = asked.work or Path(nowhere)
        work.mkdir(parents=True, exist_ok=True)
        sections = make_all(chosen, asked.data, work, asked.jobs)
        if (work / "mftc-twin").is_dir():
            sections.append(labels_section(work / "mftc-twin"))
    text = "\n\n".join([f"moral-entropy {moral_entropy.__version__}.", *sections])
    print(text)
    if not asked.dry:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
