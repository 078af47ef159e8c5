"""Results of evaluation frameworks: DeepEval, lm-evaluation-harness, MLflow.

DeepEval: a test run as JSON. A test case is an item, a metric a question, its evaluation model the judge, and a vote is
pass or fail. lm-evaluation-harness: `samples_*.jsonl` of `--log_samples`, or a folder of them. A document of a task is
an item, a metric a question, the filter that extracts the answer the judge; the folder names the system. MLflow: traces
as JSON (an array, or JSON Lines). A trace is an item, a feedback a vote on the question of its name by its source, and
an expectation a column `expected`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.formats.exported_votes import NO_VERDICT, ExportedVotes
from moral_entropy.votes.formats.records import (
    Record,
    dicts,
    first_of,
    listed,
    mapping,
    peek,
    read_json,
    read_records,
    scalars,
)
from moral_entropy.votes.table import ReadingLog

CASES = ("testCases", "test_cases")


def detect_deepeval(path: Path) -> bool:
    """Return whether a file is a test run of DeepEval."""
    head = peek(path)
    return any(
        head.has(*inside, cases, metrics)
        for inside in ((), ("testRunData",))
        for cases in CASES
        for metrics in ("metricsData", "metrics_data")
    )


def deepeval_to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a test run."""
    document = mapping(read_json(path))
    run = mapping(document.get("testRunData")) or document
    votes = ExportedVotes(path.name, "DeepEval", log)
    system = scalars(mapping(run.get("hyperparameters"))).get("model")
    for at, case in enumerate(dicts(first_of(run, *CASES))):
        item = str(first_of(case, "name") or at)
        about = scalars(mapping(case.get("metadata"))) | {"text": case.get("input")}
        votes.add_item(item, about | ({} if system is None else {"system": system}))
        for metric in dicts(first_of(case, "metricsData", "metrics_data")):
            name = str(metric.get("name") or "metric").removesuffix(" [GEval]")
            judge = first_of(metric, "evaluationModel", "evaluation_model") or f"{name} scorer"
            passed = metric.get("success") if metric.get("error") is None else None
            verdict = ("pass" if passed else "fail") if isinstance(passed, bool) else None
            votes.add_vote(item, judge, name, verdict, missing=NO_VERDICT)
    return votes.to_table("Votes are results of metrics: was the run saved before it was evaluated?")


def detect_lm_eval(path: Path) -> bool:
    """Return whether a file holds samples of lm-evaluation-harness, or a folder has such files."""
    return any(_is_samples(file) for file in lm_eval_files(path)[:3])


def _is_samples(path: Path) -> bool:
    head = peek(path)
    return all(head.has(name) for name in ("doc_id", "filter", "metrics", "filtered_resps"))


def lm_eval_files(path: Path) -> list[Path]:
    """Return the files of samples in a folder and the folders in it."""
    return sorted(path.glob("**/samples_*.jsonl")) if path.is_dir() else [path]


def lm_eval_to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of samples."""
    votes = ExportedVotes(path.name, "lm-evaluation-harness", log)
    files = lm_eval_files(path)
    systems = {file.parent.name for file in files}
    for file in files:
        task, system = "_".join(file.stem.split("_")[1:-1]) or file.stem, file.parent.name
        for record in read_records(file):
            sample = f"{task}/{record.get('doc_id')}"
            item = f"{system}/{sample}" if len(systems) > 1 else sample
            about = {"sample": sample, "task": task} | ({"system": system} if len(systems) > 1 else {})
            votes.add_item(item, scalars(mapping(record.get("doc"))) | about)
            for metric in map(str, listed(record.get("metrics"))):
                value = record.get(metric)
                verdict = None if isinstance(value, (dict, list)) else value
                votes.add_vote(item, record.get("filter"), metric, verdict, missing=NO_VERDICT)
    return votes.to_table("Votes are metrics of samples: write them with --log_samples.")


def detect_mlflow(path: Path) -> bool:
    """Return whether a file holds traces of MLflow with assessments."""
    head = peek(path)
    return any(head.has(*inside, "assessments", "assessment_name") for inside in ((), ("info",), ("traces", "info")))


def mlflow_to_table(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of traces."""
    votes = ExportedVotes(path.name, "MLflow", log)
    for trace in _traces(path):
        info = mapping(trace.get("info")) or trace
        item = first_of(info, "trace_id", "request_id")
        about = scalars(mapping(info.get("tags"))) | {"text": first_of(info, "request_preview")}
        assessments = dicts(info.get("assessments"))
        expected = next(
            (mapping(part["expectation"]).get("value") for part in assessments if "expectation" in part), None
        )
        votes.add_item(item, about | scalars({"expected": expected}))
        for part in assessments:
            if "feedback" not in part or part.get("valid") is False:
                continue
            value = mapping(part["feedback"]).get("value")
            verdict = None if isinstance(value, (dict, list)) else value
            votes.add_vote(item, _source(part), part.get("assessment_name"), verdict, missing=NO_VERDICT)
    return votes.to_table("Votes are feedbacks of traces; expectations are no votes.")


def _traces(path: Path) -> list[Record]:
    head = peek(path)
    if ("traces",) in head.lists:
        return dicts(mapping(read_json(path)).get("traces"))
    return read_records(path)


def _source(part: Record) -> Any:
    """Return who gave a feedback; a judge without a name is called after what it is."""
    source = mapping(part.get("source"))
    name, kind = str(source.get("source_id") or ""), str(source.get("source_type") or "").casefold()
    if kind == "human":
        return name or "human"
    return f"{kind.replace('_', ' ') or 'scorer'}" if name in ("", "default") else name
