"""Logs of judges: what is a vote in each, who cast it, and what counts as a failure."""

from __future__ import annotations

import json
import zipfile

import pytest

from moral_entropy.errors import VotesError
from moral_entropy.votes.formats.exported_votes import verdict_in
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
    assert votes.reading.dropped == {"judge without a verdict": 1, "no label": 1, "sample that failed": 1}
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
        "assertion that no model graded": 1, "judge without a verdict": 1, "no label": 1, "output that failed": 1,
    }  # fmt: skip
    assert votes.domains == ("sys-a", "sys-b")
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
    assert votes.reading.dropped == {"judge without a verdict": 1}


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
    assert votes.reading.dropped == {"judge without a verdict": 1, "no label": 1}
    assert votes.domains == ("sys-a",)
