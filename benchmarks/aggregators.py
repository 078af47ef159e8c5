"""Aggregators of votes, ours and other people's, with their defaults; each runs in a process of its own.

`run_tool` starts a process with limits on CPU seconds and memory: ours in this environment, the others in .venv-other.
As a script: aggregators.py TOOL SECONDS VOTES.npz OUT [VOTES.npz OUT …] writes OUT.json, and OUT.npy with the label
probabilities of every item. Needs nothing but NumPy and the tool itself.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
OTHER = ROOT / ".venv-other" / "bin" / "python"
MEMORY_GB = 8.0
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

LongVotes = dict[str, Any]
"""Integers: `item_v`, `annotator_v`, `label_v`, `n_items`, `n_annotators`, `n_labels`, and `domain_i` if any."""

Prepare = Callable[[LongVotes], Callable[[], np.ndarray]]
"""Brings votes into a tool's format; what it returns is timed, and returns label probabilities, or zeros and ones."""


def ours(column: str, **options: Any) -> Prepare:
    """Return our fit: the published p, or the model's own."""

    def prepare(votes: LongVotes) -> Callable[[], np.ndarray]:
        import polars as pl

        from moral_entropy import fit, read_votes

        frame = {"item": votes["item_v"], "annotator": votes["annotator_v"]}
        frame["label"] = [f"k{label:03}" for label in votes["label_v"]]
        if "domain_i" in votes:
            frame["domain"] = [f"d{domain:03}" for domain in votes["domain_i"][votes["item_v"]]]
        table = read_votes(pl.DataFrame(frame), on_repeat="count")

        def call() -> np.ndarray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = fit(table, **options).fits[0]
            p_ik = np.zeros((votes["n_items"], votes["n_labels"]))
            rows = table.items.cast(pl.Int64).to_numpy()[fitted.ballot.item_i]
            columns = [int(label[1:]) for label in fitted.ballot.labels]
            p_ik[np.ix_(rows, columns)] = fitted.p_ik if column == "p" else fitted.model_ik
            return p_ik

        return call

    return prepare


def share(pseudo_votes: float) -> Prepare:
    """Return vote shares, with so many votes added to every label."""

    def prepare(votes: LongVotes) -> Callable[[], np.ndarray]:
        def call() -> np.ndarray:
            counts_ik = np.full((votes["n_items"], votes["n_labels"]), pseudo_votes)
            np.add.at(counts_ik, (votes["item_v"], votes["label_v"]), 1.0)
            return counts_ik / counts_ik.sum(axis=1, keepdims=True)

        return call

    return prepare


def crowd_kit(name: str, *, labels_only: bool = False) -> Prepare:
    """Return an aggregator of crowd-kit."""

    def prepare(votes: LongVotes) -> Callable[[], np.ndarray]:
        import pandas as pd
        from crowdkit import aggregation
        from crowdkit.aggregation.classification import wawa, zero_based_skill

        # Their check that they are fitted fails under scikit-learn 1.6 and later, fitted or not.
        for module in (wawa, zero_based_skill):
            module.check_is_fitted = lambda *_, **__: None
        columns = {"task": votes["item_v"], "worker": votes["annotator_v"], "label": votes["label_v"].astype("int64")}
        table, tool = pd.DataFrame(columns), getattr(aggregation, name)
        items, labels = range(votes["n_items"]), range(votes["n_labels"])

        def call() -> np.ndarray:
            if labels_only:
                label_i = tool().fit_predict(table).reindex(items).to_numpy()
                return np.eye(votes["n_labels"])[label_i.astype(int)]
            # A label that nobody chose has no column.
            p_ik = tool().fit_predict_proba(table).reindex(index=items, columns=labels)
            return p_ik.fillna(0.0).to_numpy()

        return call

    return prepare


def peerannot(name: str) -> Prepare:
    """Return an aggregator of peerannot: Dawid–Skene, or its iterated weighted vote, which gives labels only."""

    def prepare(votes: LongVotes) -> Callable[[], np.ndarray]:
        from peerannot.models.aggregation.dawid_skene import DawidSkene
        from peerannot.models.aggregation.iwmv import IWMV

        answers: dict[int, dict[int, int]] = {item: {} for item in range(votes["n_items"])}
        for item, annotator, label in zip(votes["item_v"], votes["annotator_v"], votes["label_v"], strict=True):
            answers[int(item)][int(annotator)] = int(label)
        tool = DawidSkene if name == "DawidSkene" else IWMV

        def call() -> np.ndarray:
            # It draws from NumPy's global generator.
            np.random.seed(0)  # noqa: NPY002
            model = tool(answers=answers, n_workers=votes["n_annotators"], n_classes=votes["n_labels"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.run()
            if tool is DawidSkene:
                return np.asarray(model.get_probas())
            return np.eye(votes["n_labels"])[np.asarray(model.get_answers(), dtype=int)]

        return call

    return prepare


def matrix(votes: LongVotes, empty: float, dtype: str) -> np.ndarray:
    """Return one row per item and one column per annotator; of repeated votes the last."""
    label_ia = np.full((votes["n_items"], votes["n_annotators"]), empty, dtype=dtype)
    label_ia[votes["item_v"], votes["annotator_v"]] = votes["label_v"]
    return label_ia


def cleanlab(votes: LongVotes) -> Callable[[], np.ndarray]:
    """Return CROWDLAB; in place of a classifier's probabilities it gets the share of each label among all votes."""
    from cleanlab import multiannotator

    label_ia, inside = matrix(votes, np.nan, "float32"), "_get_post_pred_probs_and_weights"
    share_k = np.bincount(votes["label_v"], minlength=votes["n_labels"]) / len(votes["label_v"])
    original, answers = getattr(multiannotator, inside), []

    def call() -> np.ndarray:
        # It returns the probability of its consensus label alone; those of all labels are computed on the way.
        setattr(multiannotator, inside, lambda **asked: answers.append(original(**asked)) or answers[-1])
        multiannotator.get_label_quality_multiannotator(
            label_ia, np.tile(share_k, (votes["n_items"], 1)), return_detailed_quality=False,
            return_annotator_stats=False, verbose=False,
        )  # fmt: skip
        setattr(multiannotator, inside, original)
        return np.asarray(answers[-1][0])

    return call


def snorkel(votes: LongVotes) -> Callable[[], np.ndarray]:
    """Return snorkel's LabelModel: annotators are its labelling functions, missing votes its abstentions."""
    from snorkel.labeling.model import LabelModel

    label_ia = matrix(votes, -1, "int8")

    def call() -> np.ndarray:
        model = LabelModel(cardinality=votes["n_labels"], verbose=False)
        model.fit(label_ia, seed=0, progress_bar=False)
        return np.asarray(model.predict_proba(label_ia))

    return call


TOOLS: dict[str, tuple[str, Prepare]] = {
    "**moral-entropy**, published p": ("moral-entropy", ours("p")),
    "moral-entropy, p_model": ("moral-entropy", ours("p_model")),
    "moral-entropy, the paper's model": ("moral-entropy", ours("p", model="paper")),
    "smoothed vote share": ("moral-entropy", share(0.5)),
    "vote share (plurality)": ("moral-entropy", share(0.0)),
    "crowd-kit DawidSkene": ("crowd-kit", crowd_kit("DawidSkene")),
    "crowd-kit OneCoinDawidSkene": ("crowd-kit", crowd_kit("OneCoinDawidSkene")),
    "crowd-kit GLAD": ("crowd-kit", crowd_kit("GLAD")),
    "crowd-kit MACE": ("crowd-kit", crowd_kit("MACE")),
    "crowd-kit MMSR": ("crowd-kit", crowd_kit("MMSR", labels_only=True)),
    "crowd-kit Wawa": ("crowd-kit", crowd_kit("Wawa")),
    "crowd-kit ZeroBasedSkill": ("crowd-kit", crowd_kit("ZeroBasedSkill")),
    "peerannot DawidSkene": ("peerannot", peerannot("DawidSkene")),
    "peerannot IWMV": ("peerannot", peerannot("IWMV")),
    "cleanlab CROWDLAB, no classifier": ("cleanlab", cleanlab),
    "snorkel LabelModel": ("snorkel", snorkel),
}
"""Every tool by its name: the package that it comes with, and how it is called."""

OURS, SHARE, PLURALITY = "**moral-entropy**, published p", "smoothed vote share", "vote share (plurality)"


def run_tool(tool: str, pairs: Sequence[tuple[Path, Path]], seconds: float) -> list[dict[str, Any]]:
    """Run a tool on the questions of one set in one process; return a report each, `failed` where there is no answer.

    Parameters
    ----------
    tool
        A name in `TOOLS`.
    pairs
        Votes as `LongVotes` in .npz files, and where the answer to each goes.
    seconds
        CPU seconds for all calls together, without importing and converting.
    """
    peer = TOOLS[tool][0] != "moral-entropy"
    if peer and not OTHER.exists():
        return [{"failed": "not installed: `make studies` makes .venv-other"}] * len(pairs)
    paths = [str(path) for pair in pairs for path in pair]
    command = [str(OTHER) if peer else sys.executable, __file__, tool, str(seconds), *paths]
    own = {} if peer else {"PYTHONPATH": str(ROOT / "src")}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | ONE_THREAD | own, timeout=5 * seconds + 400
        )
    except subprocess.TimeoutExpired:
        return [{"failed": f"ended after {5 * seconds + 400:g} s, converting the votes included"}] * len(pairs)
    lost = {"failed": f"failed with {done.returncode}: {(done.stderr.strip().splitlines() or ['no word'])[-1][:200]}"}
    reports = [Path(f"{out}.json") for _, out in pairs]
    return [json.loads(report.read_text(encoding="utf-8")) if report.exists() else lost for report in reports]


class TimeIsUpError(BaseException):
    """The limit has passed. No `Exception`, so that no tool takes it for one of its own."""


def _ring(*_: object) -> None:
    raise TimeIsUpError


def main(tool: str, seconds: float, *paths: str) -> None:
    """Run a tool on votes, one set after the other, and write what came of it."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(MEMORY_GB * 1e9),) * 2)
    signal.signal(signal.SIGPROF, _ring)
    package, prepare = TOOLS[tool]
    rng = np.random.default_rng(0)
    item_v, annotator_v = (part.ravel() for part in np.indices((60, 4)))
    tiny = {"item_v": item_v, "annotator_v": annotator_v, "label_v": rng.integers(0, 2, 240).astype(np.int8)}
    # Imports, compilers and thread pools are set going by a call that does not count.
    prepare({**tiny, "n_items": 60, "n_annotators": 4, "n_labels": 2})()
    for source, out in zip(paths[::2], paths[1::2], strict=True):
        report: dict[str, Any] = {"tool": tool, "version": f"{package} {importlib.metadata.version(package)}"}
        try:
            with np.load(source) as parts:
                call = prepare({name: part if part.ndim else int(part) for name, part in parts.items()})
            # A timer of 0 would never ring.
            signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-3))
            before = time.process_time()
            p_ik = call()
            report["seconds"] = time.process_time() - before
            report["labels_only"] = bool(np.isin(p_ik, (0.0, 1.0)).all())
            np.save(f"{out}.npy", np.asarray(p_ik, dtype=float))
            seconds -= report["seconds"]
        except TimeIsUpError:
            report["failed"], seconds = "not done in its CPU seconds", 0.0
        except (MemoryError, RuntimeError) as error:
            if not isinstance(error, MemoryError) and "allocate memory" not in str(error):
                raise
            report["failed"] = f"out of memory at {MEMORY_GB:g} GB"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        report["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        Path(f"{out}.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
