"""Results of evaluation tools, and records of judges → long tables of votes.

A judge without a verdict has failed, which is counted.

Inspect: logs, `.eval` (a zip of JSON, also with zstd) or JSON, or a folder of them. A scorer is a judge, and its value
of a sample is the vote: C, I, P, N, a number, or a dictionary with one value per question. A panel of graders
(`metadata.panel`, or a value that is a list) has one judge per grader, named after its model. Items are samples; of
further epochs, which are other outputs, `id#2` and so on, and where a folder has logs of several models, with the model
before them. The model is the column `system`, and the sample, which its epochs share, the column `sample`.

Promptfoo: `promptfoo eval -o results.json`. An output is an item: a test of a provider with a prompt. Judges are its
model-graded assertions (`llm-rubric` and the like; all assertions where none is model-graded), and a vote is pass or
fail, or `[[X]]` in the reason. A question is the assertion's metric.

Langfuse: exported scores, as JSON (an array, or a page of the API), JSON Lines or CSV. A score of a trace or
observation is a vote. Its name is the question; `question/judge` or `question:judge` names the judge too. Of people
(source ANNOTATION) the author is the judge, of others what the metadata call judge, model or evaluator, else the
source.

OpenAI evals: the log that `oaieval` records, one event per line, or a folder of them. In a `match` the model itself is
the judge: what it picked is the vote, and what was expected is kept as `expected`. In `metrics` with a choice
(model-graded evals) the last model of the specification is the judge.

DeepEval: a test run as JSON. A test case is an item, a metric a question, its evaluation model the judge, and a vote is
pass or fail. lm-evaluation-harness: `samples_*.jsonl` of `--log_samples`, or a folder of them. A document of a task is
an item, a metric a question, the filter that extracts the answer the judge; the folder names the system. MLflow: traces
as JSON (an array, or JSON Lines). A trace is an item, a feedback a vote on the question of its name by its source, and
an expectation a column `expected`.

Records of judges: `{"id": 1, "scores": {"gpt-4o": 4, "llama": "… [[A]]"}}`, as Braintrust and many scripts write it;
`{"id": 1, "judge": "gpt-4o", "output": "… Score: 4"}`; or one object of all judges, `{"gpt-4o": {"1": "yes"}}`. A
verdict may be inside a text (`verdict_in`). Records with a plain column of labels are read as a table.
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.votes.columns import plain_name
from moral_entropy.votes.formats.fields import Record, at, dicts, first_of, last_text, listed, mapping, scalars, text_of
from moral_entropy.votes.formats.records import BRACKETS, ExportedVotes, export_of, files_of, read_rows, verdict_in
from moral_entropy.votes.labels import NUMBER
from moral_entropy.votes.source import MAGIC_ZIP, MOST_BYTES, ZIP_ERRORS, head_of, json_value, read_json, read_records
from moral_entropy.votes.table import ReadingLog, refuse

# --- Inspect --------------------------------------------------------------------------------------------------------

HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"
ZSTD = 93
"""How zip files call this compression."""


@export_of("inspect", "/eval/task /eval/model", "(header|journal/start)json samples/.+", files=("*.eval", "*.json"))
def read_inspect(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a log, or of all logs of a folder."""
    logs = []
    for file in files_of("inspect", path):
        header, samples = _read_log(file)
        about = mapping(header.get("eval"))
        logs.append((str(about.get("model") or ""), about.get("task"), _graders(about), samples))
    n_models = len({model for model, _, _, _ in logs})
    votes = ExportedVotes(path.name, "Inspect", log, judges=True)
    for model, task, graders, samples in logs:
        for sample in samples:
            _add_sample(votes, sample, f"{model}/" if n_models > 1 else "", {"system": model, "task": task}, graders)
    return votes.to_table("Scores are in the samples: was the log written before it was scored?")


def _graders(about: Record) -> dict[str, list[str]]:
    """Return the models of every scorer that has a panel of them."""
    graders = {}
    for scorer in dicts(about.get("scorers")):
        names = [str(at(model, "model") or model) for model in listed(at(scorer, "options", "model"))]
        graders[str(scorer.get("name"))] = [
            name if names.count(name) == 1 else f"{name}#{names[: n + 1].count(name)}" for n, name in enumerate(names)
        ]
    return graders


def _add_sample(
    votes: ExportedVotes, sample: Record, before: str, facts: dict[str, Any], graders: dict[str, list[str]]
) -> None:
    epoch = sample.get("epoch")
    item = f"{before}{sample.get('id')}" if before else sample.get("id")
    if isinstance(epoch, int) and epoch > 1:
        item = f"{item}#{epoch}"
    facts = facts | {"target": sample.get("target"), "sample": str(sample.get("id"))}
    about = scalars(facts) | {"text": last_text(sample.get("input"), role="user")}
    votes.add_item(item, scalars(sample.get("metadata")) | about)
    if sample.get("error"):
        votes.log.drop("sample that failed", 1)
    for scorer, score in mapping(sample.get("scores")).items():
        value, names = at(score, "value"), graders.get(scorer, [])
        for question, part in (value if isinstance(value, dict) else {"score": value}).items():
            grades = listed(at(score, "metadata", "panel", "votes")) or listed(part)
            if not grades:
                votes.add_vote(item, scorer, question, part)
            for n, grade in enumerate(grades):
                judge = names[n] if len(names) == len(grades) else f"{scorer}/{n + 1}"
                votes.add_vote(item, judge, question, grade)


def _read_log(path: Path) -> tuple[Record, list[Record]]:
    """Read the header and the samples of one log."""
    if not head_of(path).startswith(MAGIC_ZIP):
        log = read_json(path)
        if not isinstance(at(log, "eval"), dict):
            refuse(f"{path.name} is no log of Inspect: it has no record 'eval'.")
        return log, dicts(log.get("samples"))
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            head = [name for name in (HEADER, START) if name in names]
            members = [name for name in names if name.startswith(SAMPLES) and name.endswith(".json")]
            size = sum(archive.getinfo(member).file_size for member in members)
            if not head:
                refuse(f"{path.name} is no log of Inspect: it has neither {HEADER} nor {START}.")
            if size > MOST_BYTES:
                refuse(f"{path.name} unpacks to {size:,} bytes, more than is read at once. Split the log.")
            parts = {member: _unpack(archive, member) for member in (head[0], *members)}
    except ZIP_ERRORS as error:
        refuse(f"{path.name} cannot be unpacked: {error}. Write it as JSON: inspect log convert --to json.")
    header, *samples = [json_value(part, f"{member} in {path.name}") for member, part in parts.items()]
    return mapping(header), dicts(samples)


def _unpack(archive: zipfile.ZipFile, member: str) -> bytes:
    """Return the bytes of a member, also where it is compressed with zstd, which Python unpacks since 3.14."""
    info = archive.getinfo(member)
    if info.compress_type != ZSTD or sys.version_info >= (3, 14):
        return archive.read(member)
    file: Any = archive.fp
    file.seek(info.header_offset + 26)
    name_length, extra_length = struct.unpack("<HH", file.read(4))
    file.seek(name_length + extra_length, 1)
    # Polars unpacks what it reads: a table of one column, with a line of the text in every row.
    data = file.read(info.compress_size)
    lines = pl.read_csv(data, has_header=False, separator="\x1f", quote_char=None, infer_schema=False)
    return "\n".join(lines.to_series(0).fill_null("").to_list()).encode()


# --- Promptfoo ------------------------------------------------------------------------------------------------------

JUDGES = re.compile(r"rubric|graded|factual|g-eval|relevance|faithful|recall|select-best|closedqa|conversation")
"""Types of assertions that a language model grades."""

FAILED = re.compile(r"could not (?:extract|parse)|no output|api (?:call )?error|timed? ?out|fetch failed", re.I)
"""Reasons of an assertion whose judge failed."""


@export_of("promptfoo", "(/results){1,2}/gradingresult")
def read_promptfoo(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file of results."""
    document = read_json(path)
    rows = dicts(at(document, "results")) or dicts(at(document, "results", "results"))
    if not rows:
        refuse(f"{path.name} has no results of promptfoo. Write them with: promptfoo eval -o results.json")
    gradings = [mapping(row.get("gradingResult")) for row in rows]
    # The results of single assertions, those of nested sets too; of one alone its own.
    parts_of = [dicts(grading.get("componentResults", [grading] if grading else [])) for grading in gradings]
    graded = any(JUDGES.search(_type(part)) for parts in parts_of for part in parts)
    multiple = [name for name in ("provider", "prompt") if len({_named(row, name) for row in rows}) > 1]
    votes = ExportedVotes(path.name, "promptfoo", log, judges=True)
    for row, parts in zip(rows, parts_of, strict=True):
        test, text = mapping(row.get("testCase")), at(row, "response", "output")
        test_id = first_of(row.get("vars"), "id", "item", "case_id") or at(test, "metadata", "id")
        test_id = str(test_id or test.get("description") or first_of(row, "testIdx", "id") or 0)
        item = "/".join([test_id, *(_named(row, name) for name in multiple)])
        # Answers to the same test are one cluster.
        facts = {"system": _named(row, "provider"), "sample": test_id, "text": text if isinstance(text, str) else None}
        votes.add_item(item, scalars(row.get("vars")) | scalars(test.get("metadata")) | facts)
        if first_of(row, "error") is not None and row.get("failureReason") == 2:
            log.drop("output that failed", 1)
        times: Counter[tuple[str, str]] = Counter()
        for part in parts:
            if graded and not JUDGES.search(_type(part)):
                log.drop("assertion that no model graded", 1)
                continue
            assertion, reason = mapping(part.get("assertion")), str(part.get("reason") or "")
            question = str(first_of(assertion, "metric") or "pass")
            judge = _named(assertion, "provider") or _type(part) or "assertion"
            times[question, judge] += 1
            name = judge if (again := times[question, judge]) == 1 else f"{judge}#{again}"
            verdict = (BRACKETS.findall(reason) or [_pass_or_fail(part.get("pass"))])[-1]
            votes.add_vote(item, name, question, None if FAILED.search(reason) else verdict)
    return votes.to_table("Votes are the results of assertions, such as llm-rubric: the tests have none.")


def _type(part: Record) -> str:
    return str(at(part, "assertion", "type") or "")


def _pass_or_fail(passed: Any) -> str | None:
    return ("pass" if passed else "fail") if isinstance(passed, bool) else None


def _named(row: Record, name: str) -> str:
    value = row.get(name)
    return str((first_of(value, "label", "id", "raw") if isinstance(value, dict) else value) or "")


# --- Langfuse -------------------------------------------------------------------------------------------------------

SPLIT = re.compile(r"\s*[/:]\s*")
SCORE_JUDGES = ("judge", "model", "evaluator")


@export_of("langfuse", "(/(data/)?)?traceid (/(data/)?)?name (/(data/)?)?source (/(data/)?)?(string)?value")
def read_langfuse(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of an export."""
    votes = ExportedVotes(path.name, "Langfuse", log, judges=True)
    for record in read_rows(path, log, "data"):
        row = {plain_name(name): value for name, value in record.items()}
        item = first_of(row, "observationid", "traceid", "sessionid")
        if item is None:
            log.drop("score of no trace", 1)
            continue
        metadata = scalars(row.get("metadata"))
        about = scalars(metadata, without=SCORE_JUDGES)
        votes.add_item(item, about | {"text": text_of(about)})
        question, *judges = SPLIT.split(str(row.get("name") or "score"), maxsplit=1)
        judge, text, value = str(row.get("source") or "").casefold(), first_of(row, "stringvalue"), row.get("value")
        if judge == "annotation":
            judge = first_of(row, "authoruserid", "authorusername", "author", "authorid") or judge
        else:
            judge = first_of(metadata, *SCORE_JUDGES) or judge or "score"
        if text is not None and str(row.get("datatype") or "CATEGORICAL").upper() != "NUMERIC":
            value = text
        elif isinstance(value, str) and not NUMBER.fullmatch(value.strip()):
            value = verdict_in(value)
        votes.add_vote(item, judges[0] if judges else str(judge), question, value)
    return votes.to_table("Export scores of traces or observations.")


# --- OpenAI evals ---------------------------------------------------------------------------------------------------


@export_of("openai-evals", "/spec/completionfns /sampleid /data", files=("*.jsonl", "*.json"))
def read_openai_evals(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a log, or of all logs of a folder."""
    votes = ExportedVotes(path.name, "OpenAI evals", log, judges=True)
    for file in files_of("openai-evals", path):
        events = read_records(file)
        spec = next((mapping(event["spec"]) for event in events if "spec" in event), {})
        models = [str(model) for model in listed(spec.get("completion_fns"))] or [file.stem]
        for event in events:
            item, data, kind = event.get("sample_id"), mapping(event.get("data")), event.get("type")
            if item is not None and kind == "sampling":
                votes.add_item(item, {"text": last_text(data.get("prompt"))})
            elif item is not None and kind == "match":
                votes.add_item(item, scalars({"expected": data.get("expected")}))
                picked = scalars(data).get("picked", verdict_in(data.get("sampled")))
                votes.add_vote(item, models[0], "choice", picked)
            elif item is not None and kind == "metrics" and "choice" in data:
                votes.add_item(item, {"system": models[0]} if len(models) > 1 else {})
                choice = scalars(data).get("choice")
                choice = None if choice == "__invalid__" else choice
                votes.add_vote(item, models[-1], "choice", choice)
    return votes.to_table("Votes are events of the type match with a pick, or metrics with a choice.")


# --- DeepEval, lm-evaluation-harness, MLflow ------------------------------------------------------------------------


@export_of("deepeval", "(/testrundata)?/testcases/metricsdata")
def read_deepeval(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a test run."""
    document = mapping(read_json(path))
    run = mapping(document.get("testRunData")) or document
    votes = ExportedVotes(path.name, "DeepEval", log, judges=True)
    system = scalars(run.get("hyperparameters")).get("model")
    for n, case in enumerate(dicts(first_of(run, "testCases", "test_cases"))):
        item = str(first_of(case, "name") or n)
        votes.add_item(item, scalars(case.get("metadata")) | {"text": case.get("input"), "system": system})
        for metric in dicts(first_of(case, "metricsData", "metrics_data")):
            name = str(metric.get("name") or "metric").removesuffix(" [GEval]")
            judge = first_of(metric, "evaluationModel", "evaluation_model") or f"{name} scorer"
            verdict = _pass_or_fail(metric.get("success")) if metric.get("error") is None else None
            votes.add_vote(item, judge, name, verdict)
    return votes.to_table("Votes are results of metrics: was the run saved before it was evaluated?")


@export_of("lm-eval", "/docid /filter /metrics /filteredresps", files=("**/samples_*.jsonl",))
def read_lm_eval(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of samples."""
    votes = ExportedVotes(path.name, "lm-evaluation-harness", log, judges=True)
    files = files_of("lm-eval", path)
    systems = {file.parent.name for file in files}
    for file in files:
        task, system = "_".join(file.stem.split("_")[1:-1]) or file.stem, file.parent.name
        for record in read_records(file):
            sample = f"{task}/{record.get('doc_id')}"
            item = f"{system}/{sample}" if len(systems) > 1 else sample
            about = {"sample": sample, "task": task} | ({"system": system} if len(systems) > 1 else {})
            votes.add_item(item, scalars(record.get("doc")) | about)
            for metric in map(str, listed(record.get("metrics"))):
                votes.add_vote(item, record.get("filter"), metric, scalars(record).get(metric))
    return votes.to_table("Votes are metrics of samples: write them with --log_samples.")


@export_of("mlflow", "((/traces)?/info)?/assessments/assessmentname")
def read_mlflow(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of traces."""
    votes = ExportedVotes(path.name, "MLflow", log, judges=True)
    for trace in read_rows(path, log, "traces"):
        info = mapping(trace.get("info")) or trace
        item = first_of(info, "trace_id", "request_id")
        about = scalars(info.get("tags")) | {"text": first_of(info, "request_preview")}
        assessments = dicts(info.get("assessments"))
        expected = [at(part, "expectation", "value") for part in assessments if "expectation" in part]
        votes.add_item(item, about | scalars({"expected": expected[0] if expected else None}))
        for part in assessments:
            if "feedback" in part and part.get("valid") is not False:
                verdict = scalars(part["feedback"]).get("value")
                judge, kind = (str(at(part, "source", key) or "") for key in ("source_id", "source_type"))
                # A judge without a name is called after what it is.
                if judge in ("", "default"):
                    judge = kind.casefold().replace("_", " ") or "scorer"
                votes.add_vote(item, judge, part.get("assessment_name"), verdict)
    return votes.to_table("Votes are feedbacks of traces; expectations are no votes.")


# --- Records of judges ----------------------------------------------------------------------------------------------

QUESTION = "verdict"
IDS = ("id", "item", "item_id", "question_id", "sample_id", "example_id", "span_id")
PANELS = ("scores", "judges", "verdicts", "judgments", "judgements", "grades")
JUDGE = ("judge", "judge_model", "grader", "evaluator")
SAID = ("verdict", "judgment", "judgement", "judge_output", "output", "response", "completion")
ID, PANEL, BY, VERDICT = ("/(" + "|".join(map(plain_name, names)) + ")" for names in (IDS, PANELS, JUDGE, SAID))


@export_of("judges", f"{ID} {PANEL}/.+ !{PANEL}/", f"{ID} {BY} {VERDICT} !/(label|vote|annotation|rating|score)")
def read_judges(path: Path, log: ReadingLog) -> pl.DataFrame:
    """Read the votes of a file."""
    votes = ExportedVotes(path.name, "judges' records", log, judges=True)
    for n, record in enumerate(read_records(path), 1):
        item = first_of(record, *IDS)
        if item is None or isinstance(item, (dict, list)):
            refuse(f"record {n:,} of {path.name} has no id: one of {', '.join(IDS)} names the item.")
        about = scalars(record, without={*IDS, *PANELS, *JUDGE, *SAID, "criterion"})
        facts = scalars(record.get("metadata")) | about
        votes.add_item(item, facts | {"text": text_of(facts)})
        panel = next((record[name] for name in PANELS if isinstance(record.get(name), dict)), None)
        verdicts = {first_of(record, *JUDGE): first_of(record, *SAID)} if panel is None else panel
        question = QUESTION if panel is not None else str(record.get("criterion") or QUESTION)
        for judge, answer in verdicts.items():
            verdict = verdict_in(answer) if isinstance(answer, (str, dict)) else answer
            # A short text without any pattern is the label itself.
            if verdict is None and isinstance(answer, str) and len(answer.split()) == 1:
                verdict = answer
            votes.add_vote(item, judge, question, verdict)
    return votes.to_table("A verdict is a label, or in a text [[A]], Score: 4, or yes or no.")
