"""Logs of judges: what is a vote in each, who cast it, and what counts as a failure."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.records import verdict_in
from moral_entropy.votes.read import read_votes


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("A is shorter, B is right. [[B]]", "B"),
        ("[[A]] at first sight. On reflection: [[tie]]", "tie"),
        ("Rating: [[7]]", "7"),
        ("Clear, but thin.\n\n**Score: 4/5**", "4"),
        ("Final verdict: no", "no"),
        ("The answer is 42? My score is 3.5", "3.5"),
        ('Here it is: {"reasoning": "…", "verdict": "yes"}', "yes"),
        ('```json\n{"score": 2}\n```', 2),
        ("<verdict>pass</verdict>", "pass"),
        ("Yes.", "Yes"),
        ("No, it invents a date.", "No"),
        ("B", "B"),
        ("4", "4"),
        (True, True),
        (0.5, 0.5),
        ({"score": 1, "rationale": "so"}, 1),
        ("I'm sorry, I can't help with that.", None),
        ("Yesterday it rained.", None),
        ("", None),
        (None, None),
    ],
)
def test_verdicts_in_texts(text, verdict):
    assert verdict_in(text) == verdict


def sample(number, epoch=1, **scores):
    told = {name: {"value": value, "answer": "x", "explanation": "because"} for name, value in scores.items()}
    return {"id": number, "epoch": epoch, "input": [{"role": "user", "content": f"ask {number}"}], "target": "x",
            "scores": told, "metadata": {"domain": "law"}}  # fmt: skip


def inspect_json(model, *samples):
    return json.dumps({"version": 2, "status": "success", "eval": {"task": "qa", "model": model}, "samples": samples})


def test_scorers_of_inspect_are_judges_and_epochs_are_items(write, spelt):
    failed = {**sample(2), "scores": None, "error": {"message": "timeout"}}
    log = inspect_json(
        "openai/gpt-4o", sample(1, strict="C", mild="C"), sample(1, epoch=2, strict="I", mild="C"), failed,
        sample(3, strict="I", mild=float("nan")),
    )  # fmt: skip
    votes = read_votes(write(log, "log.json"), domain="system")
    assert spelt(votes) == [
        ("1", "mild", "C"), ("1", "strict", "C"), ("1#2", "mild", "C"), ("1#2", "strict", "I"), ("3", "strict", "I"),
    ]  # fmt: skip
    assert votes.reading.dropped == {"mild without a verdict": 1, "no label": 1, "sample that failed": 1}
    assert votes.domains == ("openai/gpt-4o",)
    assert votes.texts.to_list() == ["ask 1", "ask 1", "ask 2", "ask 3"]


def test_values_by_name_are_questions(write):
    log = inspect_json("m", *(sample(n, judge={"clear": n % 2, "true": 1 - n % 2}, other={"clear": 1, "true": 0})
                              for n in range(4)))  # fmt: skip
    assert read_votes(write(log, "log.json")).questions == ("clear", "true")


def test_a_folder_of_inspect_logs_keeps_models_apart(tmp_path, spelt):
    for model in ("a", "b"):
        with zipfile.ZipFile(tmp_path / f"{model}.eval", "w") as archive:
            archive.writestr("header.json", json.dumps({"eval": {"task": "qa", "model": model}}))
            archive.writestr("samples/1_epoch_1.json", json.dumps(sample(1, strict="C", mild="I")))
            archive.writestr("_journal/summaries/1.json", "[]")
    votes = read_votes(tmp_path)
    assert spelt(votes) == [(f"{m}/1", who, v) for m in "ab" for who, v in (("mild", "I"), ("strict", "C"))]


def test_a_damaged_log_of_inspect(tmp_path):
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "qa", "model": "m"}}))
        archive.writestr("samples/1_epoch_1.json", '{"id": 1, "sco')
    with pytest.raises(VotesError, match=r"samples/1_epoch_1\.json in log\.eval is no JSON"):
        read_votes(tmp_path / "log.eval")


def test_an_archive_without_a_header_is_no_log_of_inspect(tmp_path):
    with zipfile.ZipFile(tmp_path / "book.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(VotesError, match=r"book\.xlsx is no log of Inspect: it has neither header\.json nor"):
        read_votes(tmp_path / "book.xlsx", format="inspect")


def output(test, provider, *parts, **more):
    components = [
        {"pass": passed, "score": float(passed), "reason": reason, "assertion": {"type": kind, **assertion}}
        for kind, passed, reason, assertion in parts
    ]
    return {"testIdx": test, "promptIdx": 0, "provider": {"id": provider, "label": ""}, "vars": {"q": f"q{test}"},
            "prompt": {"raw": "{{q}}", "label": "{{q}}"}, "testCase": {"vars": {"q": f"q{test}"}},
            "response": {"output": f"o{test}"}, "success": True, "failureReason": 0,
            "gradingResult": {"pass": True, "componentResults": components}, **more}  # fmt: skip


def test_model_graded_assertions_of_promptfoo_are_judges(write, spelt):
    gpt, llama = {"provider": "openai:gpt-4o"}, {"provider": {"id": "ollama:llama"}}
    rows = [
        output(0, "sys-a", ("llm-rubric", True, "fine", gpt), ("llm-rubric", False, "no", llama),
               ("contains", True, "", {})),
        output(0, "sys-b", ("llm-rubric", False, "bad", gpt),
               ("llm-rubric", False, "Could not extract JSON from llm-rubric response", llama)),
        output(1, "sys-a", ("llm-rubric", True, "fine", gpt), ("llm-rubric", True, "again", gpt)),
        output(1, "sys-b", failureReason=2, error="timeout"),
    ]  # fmt: skip
    whole = json.dumps({"version": 3, "results": rows, "stats": {}})
    votes = read_votes(write(whole, "results.json"), domain="system")
    assert spelt(votes) == [
        ("0/sys-a", "ollama:llama", "fail"), ("0/sys-a", "openai:gpt-4o", "pass"), ("0/sys-b", "openai:gpt-4o", "fail"),
        ("1/sys-a", "openai:gpt-4o", "pass"), ("1/sys-a", "openai:gpt-4o#2", "pass"),
    ]  # fmt: skip
    assert votes.reading.dropped == {
        "assertion that no model graded": 1, "ollama:llama without a verdict": 1, "no label": 1,
        "output that failed": 1,
    }  # fmt: skip
    assert votes.domains == ("sys-a", "sys-b")
    # Answers to the same test are one cluster.
    assert votes.kept["sample"].unique().sort().to_list() == ["0", "1"]
    assert votes.ballots[0].labels[votes.ballots[0].positive] == "pass"


def test_langfuse_scores_as_a_table(write, spelt):
    table = (
        "id,timestamp,traceId,observationId,name,source,value,stringValue,dataType,authorUserId\n"
        "1,2026,t1,,helpful/gpt-4o,EVAL,1,True,BOOLEAN,\n"
        "2,2026,t1,,helpful/llama,EVAL,0,False,BOOLEAN,\n"
        "3,2026,t1,,helpful,ANNOTATION,1,True,BOOLEAN,ann\n"
        "4,2026,t2,o7,helpful,ANNOTATION,0,False,BOOLEAN,ann\n"
    )
    votes = read_votes(write(table, "scores.csv"))
    assert votes.questions == ("helpful",)
    assert spelt(votes) == [
        ("o7", "ann", "false"), ("t1", "ann", "true"), ("t1", "gpt-4o", "true"), ("t1", "llama", "false"),
    ]  # fmt: skip


def test_numbers_of_langfuse_stay_numbers(write, spelt):
    scores = [
        {"traceId": f"t{n}", "name": "stars", "source": "EVAL", "dataType": "NUMERIC", "value": float(n % 3),
         "metadata": {"model": who}}
        for n in range(4) for who in ("gpt", "llama")
    ]  # fmt: skip
    votes = read_votes(write(json.dumps(scores), "scores.json"))
    assert votes.ballots[0].labels == ("0", "1", "2")
    assert votes.annotators.to_list() == ["gpt", "llama"]


def test_one_record_per_item_and_judge(write, spelt):
    said = [(1, "gpt", "[[A]]"), (1, "llama", "Verdict: B"), (2, "gpt", "I refuse."), (2, "llama", "[[B]]")]
    lines = "\n".join(json.dumps({"item": i, "judge": who, "output": text, "system": "s"}) for i, who, text in said)
    votes = read_votes(write(lines, "judged.jsonl"))
    assert spelt(votes) == [(1, "gpt", "A"), (1, "llama", "B"), (2, "llama", "B")]
    assert votes.reading.dropped == {"gpt without a verdict": 1}


def test_records_with_a_column_of_labels_are_a_table(write, spelt):
    lines = "\n".join(json.dumps({"item": i, "judge": who, "label": i % 2}) for i in range(3) for who in "ab")
    votes = read_votes(write(lines, "judged.jsonl"), annotator="judge")
    assert len(spelt(votes)) == 6
    assert not any("judges (detected)" in note for note in votes.reading.notes)


def test_model_graded_evals_of_openai(write, spelt):
    def event(sample, kind, data):
        return {"run_id": "r", "event_id": 1, "sample_id": sample, "type": kind, "data": data}

    lines = [
        {"spec": {"completion_fns": ["sys-a", "gpt-4o"], "eval_name": "fact"}},
        event("fact.1", "metrics", {"choice": "A", "score": 1.0}),
        event("fact.2", "metrics", {"choice": "B", "score": 0.0}),
        event("fact.3", "metrics", {"choice": "__invalid__", "score": None}),
        {"final_report": {"counts/A": 1}},
    ]
    votes = read_votes(write("\n".join(map(json.dumps, lines)), "run.jsonl"), domain="system")
    assert spelt(votes) == [("fact.1", "gpt-4o", "A"), ("fact.2", "gpt-4o", "B")]
    assert votes.reading.dropped == {"gpt-4o without a verdict": 1, "no label": 1}
    assert votes.domains == ("sys-a",)


def test_a_panel_of_inspect_is_read_grader_by_grader(tmp_path):
    """The layout of inspect_ai 0.3.285: votes of a panel in the metadata, failures as null, models in the scorers."""
    panel = {"votes": ["I", "P", None], "size": 3, "failures": [{"index": 2, "reason": "grader_failed"}]}
    models = [{"model": f"openai/{name}", "config": {}} for name in ("gpt-4o", "o3", "gpt-4o")]
    score = {"value": float("nan"), "answer": "x", "history": [], "metadata": {"panel": panel}}
    collected = {"value": ["C", "C", "I"], "history": []}
    samples = [
        {"id": "q1", "epoch": 1, "input": "ask", "target": "x", "scores": {"model_graded_qa": score}},
        {"id": "q1", "epoch": 2, "input": "ask", "target": "x", "scores": {"model_graded_qa": collected}},
    ]
    scorers = [{"name": "model_graded_qa", "options": {"model": models}}]
    header = {"eval": {"task": "qa", "model": "m", "scorers": scorers}}
    (tmp_path / "log.json").write_text(json.dumps(header | {"samples": samples}))
    votes = read_votes(tmp_path / "log.json")
    assert votes.annotators.to_list() == ["openai/gpt-4o#1", "openai/gpt-4o#2", "openai/o3"]
    assert votes.ballots[0].labels == ("C", "I", "P")
    assert votes.ballots[0].counts_ik.tolist() == [[0, 1, 1], [2, 1, 0]]
    assert votes.reading.dropped == {"openai/gpt-4o#2 without a verdict": 1}
    assert votes.kept["sample"].unique().to_list() == ["q1"]


def test_a_test_run_of_deepeval(tmp_path):
    """The layout of deepeval 4.3.1: `TestRun.model_dump(by_alias=True)` under testRunData."""
    metrics = [
        {"name": "Correctness [GEval]", "threshold": 0.5, "success": True, "score": 0.8, "evaluationModel": "gpt-4.1"},
        {"name": "Faithfulness", "success": False, "score": 0.1, "evaluationModel": "o4-mini"},
        {"name": "Correctness [GEval]", "error": "timeout", "evaluationModel": "o4-mini"},
    ]
    cases = [{"name": f"test_case_{n}", "input": f"ask {n}", "metricsData": metrics} for n in range(2)]
    cases.append({"name": "test_case_2", "input": "ask", "metricsData": [{**metrics[0], "success": False},
                                                                       {**metrics[1], "success": True}]})  # fmt: skip
    run = {"testRunData": {"testFile": "t.py", "testCases": cases, "metricsScores": []}, "testRunLink": None}
    (tmp_path / "run.json").write_text(json.dumps(run))
    votes = read_votes(tmp_path / "run.json")
    assert votes.questions == ("Correctness", "Faithfulness")
    assert votes.annotators.to_list() == ["gpt-4.1", "o4-mini"]
    assert votes.ballots[0].counts_ik.tolist() == [[0, 1], [0, 1], [1, 0]]
    assert votes.reading.dropped == {"o4-mini without a verdict": 2}


def test_samples_of_lm_evaluation_harness(tmp_path):
    """The layout of lm_eval 0.4.13: one file per task, a line per document and filter, a folder per model."""
    for model, right in (("org__a", 1.0), ("org__b", 0.0)):
        folder = tmp_path / "results" / model
        folder.mkdir(parents=True)
        lines = [
            {"doc_id": n, "doc": {"question": f"ask {n}"}, "target": "7", "arguments": [], "resps": [["7"]],
             "filtered_resps": ["7"], "filter": name, "metrics": ["exact_match"], "doc_hash": "x",
             "exact_match": right if name == "strict-match" else float(n % 2)}
            for n in range(3) for name in ("strict-match", "flexible-extract")
        ]  # fmt: skip
        (folder / "samples_gsm8k_2026-11-18T01-00-00.jsonl").write_text("\n".join(map(json.dumps, lines)))
    votes = read_votes(tmp_path / "results")
    assert votes.annotators.to_list() == ["flexible-extract", "strict-match"]
    assert votes.items.to_list()[0] == "org__a/gsm8k/0"
    assert votes.domains == ("org__a", "org__b")
    assert votes.kept["sample"].n_unique() == 3
    assert votes.n_votes == 12


def test_traces_of_mlflow(tmp_path):
    """Lines as `mlflow.entities.Trace.to_json` of 3.17.2 writes them."""

    def feedback(value, source, kind):
        return {"assessment_name": "correct", "trace_id": "tr", "source": {"source_type": kind, "source_id": source},
                "feedback": {"value": value}, "valid": True}  # fmt: skip

    expected = {"assessment_name": "answer", "source": {"source_type": "HUMAN", "source_id": "anna@x.org"},
                "expectation": {"value": "yes"}}  # fmt: skip
    lines = [
        {"info": {"trace_id": f"tr-{n}", "state": "OK", "request_preview": "ask", "tags": {"system": "new"},
                  "assessments": [feedback(n > 0, "openai:/gpt-4o", "LLM_JUDGE"), feedback(True, "anna@x.org", "HUMAN"),
                                  feedback(n > 0, "default", "LLM_JUDGE"), expected]}, "data": {"spans": []}}
        for n in range(2)
    ]  # fmt: skip
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, lines)))
    votes = read_votes(tmp_path / "traces.jsonl")
    assert votes.annotators.to_list() == ["anna@x.org", "llm judge", "openai:/gpt-4o"]
    assert votes.ballots[0].counts_ik.tolist() == [[2, 1], [0, 3]]


def test_one_object_of_judges_with_labels_by_item(tmp_path):
    labels = {"gpt": {"a": "yes", "b": "no", "c": "yes"}, "llama": {"a": "yes", "b": "no", "c": "no"}}
    (tmp_path / "votes.json").write_text(json.dumps(labels))
    votes = read_votes(tmp_path / "votes.json")
    assert votes.annotators.to_list() == ["gpt", "llama"]
    assert votes.ballots[0].counts_ik.tolist() == [[0, 2], [2, 0], [1, 1]]


REAL_LOGS = {
    # Three graders of a panel, one of whom refuses once, and a scorer; two epochs; packed with zstd.
    "inspect-0.3.285.eval": ("score", {
        "q0": "C I P C", "q1": "I . C C", "q0#2": "C C C I", "q1#2": "P C I C",
    }, ("mockllm/g1", "mockllm/g2", "mockllm/g3", "strict")),
    "deepeval-4.3.1.json": ("Correctness", {
        "case-0": "pass pass pass", "case-1": "fail . pass", "case-2": "fail . fail",
    }, ("gpt-4.1", "o4-mini", "claude-x")),
    "mlflow-3.17.2.jsonl": ("correct", {
        "tr-0": "true false true", "tr-1": "false false false", "tr-2": "true . .",
    }, ("openai:/gpt-4o", "openai:/o3", "anna")),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL_LOGS)
def test_files_that_the_libraries_themselves_wrote(name, spelt):
    """Made with mock models by the versions in the names; what was voted is what the library reports of it."""
    if name.endswith(".eval"):
        pytest.importorskip("pyarrow")
    question, labels, judges = REAL_LOGS[name]
    votes = read_votes(Path(__file__).parent / "logs" / name)
    cast = {(item, judge): label for item, text in labels.items()
            for judge, label in zip(judges, text.split(), strict=True) if label != "."}  # fmt: skip
    assert {(item, judge): label for item, judge, label in spelt(votes, question)} == cast
    assert any("without a verdict" in reason for reason in votes.reading.dropped)
