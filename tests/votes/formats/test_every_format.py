"""The same votes in every layout are the same votes."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import tempfile
import zipfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moral_entropy.cli.main import main
from moral_entropy.errors import UsageError, VotesError
from moral_entropy.votes.formats.records import FORMATS, detect_format, key_paths
from moral_entropy.votes.read import read_votes


def by_item(rows):
    return {item: list(group) for item, group in itertools.groupby(sorted(rows), key=lambda row: row[0])}


def label_studio(rows, folder):
    tasks = [
        {
            "id": item,
            "annotations": [
                {
                    "completed_by": {"id": 1, "email": who},
                    "result": [{"from_name": "label", "type": "choices", "value": {"choices": [label]}}],
                    "was_cancelled": False,
                }
                for _, who, label in group
            ],
            "data": {"text": f"text {item}"},
        }
        for item, group in by_item(rows).items()
    ]
    (folder / "export.json").write_text(json.dumps(tasks))
    return folder / "export.json"


def argilla(rows, folder):
    records = [
        {
            "id": item, "text": f"text {item}", "label.responses": [label for _, _, label in group],
            "label.responses.users": [who for _, who, _ in group], "label.responses.status": ["submitted"] * len(group),
        }
        for item, group in by_item(rows).items()
    ]  # fmt: skip
    (folder / "argilla.jsonl").write_text("\n".join(map(json.dumps, records)))
    return folder / "argilla.jsonl"


def prodigy(rows, folder):
    options = [{"id": label, "text": label} for label in LABELS]
    tasks = [
        {"text": f"text {item}", "_input_hash": item, "options": options, "accept": [label], "answer": "accept",
         "_annotator_id": who}
        for item, who, label in rows
    ]  # fmt: skip
    (folder / "prodigy.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    return folder / "prodigy.jsonl"


def mturk(rows, folder):
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["HITId", "WorkerId", "AssignmentStatus", "Input.text", "Answer.label"])
    table.writerows([item, who, "Approved", f"text {item}", label] for item, who, label in rows)
    (folder / "batch.csv").write_text(text.getvalue())
    return folder / "batch.csv"


def lewidi(rows, folder):
    entries = {
        item: {
            "text": f"text {item}", "annotations": ",".join(label for _, _, label in group),
            "annotators": ",".join(who for _, who, _ in group), "soft_label": {},
        }
        for item, group in by_item(rows).items()
    }  # fmt: skip
    (folder / "lewidi.json").write_text(json.dumps(entries))
    return folder / "lewidi.json"


def hf_datasets(rows, folder):
    frame = pl.DataFrame(rows, schema=["item", "annotator", "label"], orient="row")
    (folder / "hf").mkdir()
    frame.with_columns(text="text " + pl.col("item")).write_parquet(folder / "hf" / "train-00000-of-00001.parquet")
    return folder / "hf"


def inspect_log(rows, folder):
    samples = [
        {"id": item, "epoch": 1, "input": f"text {item}", "target": "",
         "scores": {who: {"value": label, "answer": "so"} for _, who, label in group}}
        for item, group in by_item(rows).items()
    ]  # fmt: skip
    spec = {"task": "qa", "model": "openai/gpt-4o", "created": "2026-01-01T00:00:00+00:00"}
    with zipfile.ZipFile(folder / "log.eval", "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": spec}))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        archive.writestr("summaries.json", "[]")
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": spec}))
    return folder / "log.eval"


def promptfoo(rows, folder):
    results = [
        {
            "testIdx": n, "promptIdx": 0, "provider": {"id": "openai:gpt-4o"}, "prompt": {"raw": "{{q}}", "label": "p"},
            "vars": {"q": "?"}, "testCase": {"description": item, "vars": {"q": "?"}}, "success": True, "score": 1,
            "response": {"output": f"text {item}"},
            "gradingResult": {"pass": True, "score": 1, "reason": "", "componentResults": [
                {"pass": True, "score": 1, "reason": f"I say [[{label}]]",
                 "assertion": {"type": "llm-rubric", "value": "is it good?", "provider": who}}
                for _, who, label in group
            ]},
        }
        for n, (item, group) in enumerate(by_item(rows).items())
    ]  # fmt: skip
    whole = {"evalId": "eval-1", "results": {"version": 3, "results": results, "stats": {}}, "config": {}}
    (folder / "results.json").write_text(json.dumps(whole))
    return folder / "results.json"


def langfuse(rows, folder):
    scores = [
        {"id": f"s{n}", "timestamp": "2026-01-01T00:00:00Z", "traceId": item, "observationId": None, "name": "tone",
         "source": "ANNOTATION", "authorUserId": who, "dataType": "CATEGORICAL", "value": 0, "stringValue": label,
         "comment": None, "metadata": {"text": f"text {item}"}}
        for n, (item, who, label) in enumerate(rows)
    ]  # fmt: skip
    (folder / "scores.json").write_text(json.dumps({"data": scores, "meta": {"page": 1, "totalItems": len(scores)}}))
    return folder / "scores.json"


def openai_evals(rows, folder):
    (folder / "evals").mkdir()
    for user in sorted({who for _, who, _ in rows}):
        lines = [{"spec": {"completion_fns": [user], "eval_name": "tone.dev.v0", "run_id": "r"}}]
        for n, (item, who, label) in enumerate(rows):
            if who == user:
                event = {"run_id": "r", "event_id": n, "sample_id": item, "created_by": "", "created_at": "2026-01-01"}
                lines.append({**event, "type": "sampling", "data": {"prompt": f"text {item}", "sampled": label}})
                match = {"correct": True, "expected": label, "picked": label, "sampled": label, "options": []}
                lines.append({**event, "type": "match", "data": match})
        lines.append({"final_report": {"accuracy": 1.0}})
        (folder / "evals" / f"{user}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder / "evals"


def judges(rows, folder):
    records = [
        {"id": item, "input": f"text {item}", "output": "so", "scores": {who: label for _, who, label in group}}
        for item, group in by_item(rows).items()
    ]
    (folder / "judged.jsonl").write_text("\n".join(map(json.dumps, records)))
    return folder / "judged.jsonl"


def moral_entropy(rows, folder):
    records = [
        {"question": "label", "item": item, "text": f"text {item}", "label": "none", "soft_label": [0.2, 0.2, 0.6],
         "annotators": [who for _, who, _ in group], "annotations": [label for _, _, label in group]}
        for item, group in by_item(rows).items()
    ]  # fmt: skip
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, records)))
    return folder / "items.jsonl"


WRITERS = {
    "inspect": inspect_log, "promptfoo": promptfoo, "langfuse": langfuse, "openai-evals": openai_evals,
    "label-studio": label_studio, "argilla": argilla, "prodigy": prodigy,
    "mturk": mturk, "lewidi": lewidi, "judges": judges, "hf-datasets": hf_datasets,
}  # fmt: skip
LABELS = ("care", "fairness", "none")
CELLS = [(f"i{item}", f"ann {who}") for item in range(5) for who in "abcd"]
ROWS = [(item, who, LABELS[n * n % 3]) for n, (item, who) in enumerate(CELLS)]


CORPORA = ("mftc", "mfrc", "emfd")
"""Whose votes are on five questions of their own: see tests/corpora/test_published.py."""


def test_every_format_has_a_writer_here():
    others = {"deepeval", "lm-eval", "mlflow", *CORPORA}
    assert set(WRITERS) == set(FORMATS) - others


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=4, deadline=None)
@given(
    labels=st.dictionaries(st.sampled_from(CELLS), st.sampled_from(LABELS), min_size=2).filter(
        lambda labels: len(set(labels.values())) > 1
    ),
    order=st.randoms(use_true_random=False),
)
def test_the_same_votes_come_out_of_every_format(name, labels, order):
    rows = [(*cell, label) for cell, label in labels.items()]
    order.shuffle(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = WRITERS[name](rows, Path(folder))
        assert detect_format(path) == name
        votes = read_votes(path)
    ballot = votes.ballots[0]
    found = set()
    for i in range(ballot.n_items):
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            annotator, label = divmod(int(code), ballot.n_labels)
            found.add((votes.items[int(ballot.item_i[i])], votes.annotators[annotator], ballot.labels[label]))
    assert found == set(rows)
    assert ballot.n_votes == len(rows)
    assert votes.texts.to_list() == [f"text {item}" for item in votes.items]


@pytest.mark.parametrize("name", WRITERS)
def test_naming_the_format_reads_the_same(name, tmp_path, spelt):
    path = WRITERS[name](ROWS, tmp_path)
    detected, named = read_votes(path), read_votes(str(path), format=name)
    assert spelt(detected) == spelt(named) == sorted(ROWS)
    assert f"format: {name} (named)." in named.reading.notes


def test_an_export_of_ours_is_read_by_its_lists_of_votes(tmp_path, spelt):
    votes = read_votes(moral_entropy(ROWS, tmp_path))
    assert spelt(votes) == sorted(ROWS)
    assert "format: lewidi (detected)." in votes.reading.notes


@pytest.mark.parametrize("name", ["label-studio", "argilla", "prodigy", "lewidi", "mturk", "promptfoo", "judges"])
def test_gzipped_exports_are_known_too(name, tmp_path, spelt):
    path = WRITERS[name](ROWS, tmp_path)
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert spelt(read_votes(packed)) == sorted(ROWS)


@pytest.mark.parametrize("name", ["lewidi", "label-studio", "inspect"])
def test_an_export_is_audited_with_no_option_at_all(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = WRITERS[name](ROWS, tmp_path)
    assert main(["audit", path.name, "-o", "run/"]) == 0, capsys.readouterr().err
    assert f"format: {name} (detected)." in capsys.readouterr().out
    assert (tmp_path / "run" / "items.parquet").is_file()
    assert main(["audit", path.name, "-o", "again/", "--format", name, "--quiet", "--draws", "0"]) == 0


def test_bad_exports_exit_with_1_and_misused_formats_with_2(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    label_studio(ROWS, tmp_path)
    whole = Path("export.json").read_text()
    Path("export.json").write_text(whole[: len(whole) // 2])
    assert main(["audit", "export.json", "-o", "run"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: export.json is no JSON") and error.count("\n") == 1
    assert not Path("run").exists()
    assert main(["audit", "export.json", "-o", "run", "--format", "labelstudio"]) == 2
    assert main(["audit", "export.json", "-o", "run", "--layout", "wide"]) == 2
    assert "--layout went with version 0.3: it is a format: --format wide" in capsys.readouterr().err


def test_a_format_is_for_one_file(tmp_path):
    with pytest.raises(UsageError, match=r"format=\"prodigy\" reads one file or folder, not DataFrame"):
        read_votes(pl.DataFrame({"item": [1], "label": [1]}), format="prodigy")
    with pytest.raises(UsageError, match=r"format is 'xml'; choose one of auto, long, wide, respondents, label-studio"):
        read_votes("votes.csv", format="xml")
    with pytest.raises(VotesError, match="there is no file"):
        read_votes(tmp_path / "nowhere.json", format="label-studio")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "hf-datasets"])
def test_a_table_is_refused_as_the_export_of_a_tool(name, write):
    table = write("item,annotator,label\n1,a,x\n1,b,y\n")
    assert detect_format(table) is None
    with pytest.raises(VotesError) as error:
        read_votes(table, format=name)
    assert "\n" not in str(error.value)


def test_long_and_wide_are_formats_too(write, spelt):
    wide = write("item,x,y\n1,0,1\n2,1,1\n", "wide.csv")
    assert spelt(read_votes(wide, format="wide")) == [(1, "x", "0"), (1, "y", "1"), (2, "x", "1"), (2, "y", "1")]
    with pytest.raises(VotesError, match="no column that looks like the annotator"):
        read_votes(wide, format="long")
    with pytest.raises(TypeError, match=r"has no option 'layout'\. Did you mean 'format'"):
        read_votes(wide, layout="long")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def walked(value, around=()):
    if isinstance(value, list):
        return set().union(*(walked(part, around) for part in value))
    if not isinstance(value, dict):
        return set()
    return set().union(*({(*around, key)} | walked(part, (*around, key)) for key, part in value.items()))


@given(value=JSON, ascii_only=st.booleans(), share=st.floats(0, 1))
def test_keys_are_found_without_parsing_and_never_invented(value, ascii_only, share):
    whole = json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    keys, _ = key_paths(whole)
    assert keys == walked(value)
    assert key_paths(whole[: int(share * len(whole))])[0] <= keys


def test_a_long_text_of_quotes_is_passed_over_in_one_go():
    head = b'{"text": "' + b'\\"' * 100_000
    assert key_paths(head)[0] == {("text",)}


@given(
    junk=st.binary(max_size=300),
    start=st.sampled_from([b"", b"[", b"{", b"[{", b'{"_input_hash": 1, "answer": ', b"PK\x03\x04"]),
)
@settings(max_examples=60, deadline=None)
def test_no_junk_is_more_than_a_votes_error(junk, start):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.json"
        path.write_bytes(start + junk)
        with pytest.raises(VotesError):
            read_votes(path)


def with_one_part_replaced(value, draw, part):
    """Put something else in one place of a JSON value, chosen by going down at random."""
    if not isinstance(value, (dict, list)) or not value or draw.random() < 0.15:
        return part
    key = draw.choice(sorted(value)) if isinstance(value, dict) else draw.randrange(len(value))
    changed = value.copy()
    changed[key] = with_one_part_replaced(value[key], draw, part)
    return changed


@pytest.mark.parametrize("name", ["label-studio", "argilla", "prodigy", "lewidi", "promptfoo", "langfuse", "judges"])
@settings(max_examples=15, deadline=None)
@given(part=JSON, draw=st.randoms(use_true_random=False))
def test_an_export_with_a_strange_part_is_read_or_refused(name, part, draw):
    with tempfile.TemporaryDirectory() as folder:
        path = WRITERS[name](ROWS, Path(folder))
        lines = path.suffix == ".jsonl"
        value = [json.loads(line) for line in path.read_text().splitlines()] if lines else json.loads(path.read_text())
        path.write_text(json.dumps(with_one_part_replaced(value, draw, part)))
        try:
            votes = read_votes(path, format=name)
        except VotesError as error:
            assert str(error)
        else:
            assert votes.n_votes > 0


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000])
def test_bottomless_json_is_refused(content, write):
    with pytest.raises(VotesError, match="nested too deeply"):
        read_votes(write(content, "export.json"), format="prodigy")
