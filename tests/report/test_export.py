"""Exports: every row, soft labels that add up, formulas disarmed, and back again through our own reader."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re

import polars as pl
import pytest
import yaml
from report_support import make_run, vote_frame

import moral_entropy as me
from moral_entropy.errors import UsageError
from moral_entropy.report.card import croissant_facts, dataset_card, write_card
from moral_entropy.report.export import export_run
from moral_entropy.runs.folder import read_table
from moral_entropy.runs.run import read_run


def test_jsonl_has_every_item_with_its_votes_and_soft_label(many_run, tmp_path):
    [file] = export_run(many_run, tmp_path / "out.jsonl", to="jsonl", names=True)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    table = read_table(many_run, "posterior").select("item", "class", "p")
    posterior = {(item, label): p for item, label, p in table.iter_rows()}
    votes = read_table(many_run, "votes")
    assert len(rows) == read_table(many_run, "items").height
    for row in rows:
        assert sum(row["soft_label"]) == pytest.approx(1)
        assert row["soft_label"] == [pytest.approx(posterior[row["item"], label]) for label in row["labels"]]
        mine = votes.filter(item=row["item"]).select("annotator", "label").rows()
        assert sorted(zip(row["annotators"], row["annotations"], strict=True)) == sorted(mine)


def test_soft_labels_of_two_follow_the_order_of_the_labels(plain_run, tmp_path):
    [file] = export_run(plain_run, tmp_path / "out.jsonl", to="jsonl")
    for row in map(json.loads, file.read_text().splitlines()):
        assert dict(zip(row["labels"], row["soft_label"], strict=True))["1"] == row["p"]


def test_csv_holds_no_formula(hostile_run, tmp_path):
    [file] = export_run(hostile_run, tmp_path / "out.csv", to="csv")
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    assert len(rows) == 120
    for row in rows:
        for name in ("text", "item", "domain", "question", "label"):
            assert not row[name].startswith(("=", "+", "-", "@", "\t", "\r")), row[name]
        assert len(json.loads(row["votes"])["annotators"]) == int(row["n_votes"])
    assert any(row["text"].startswith("'=HYPERLINK(") for row in rows)


@pytest.mark.parametrize("kind", ["plain", "many", "hostile"])
def test_hf_is_a_folder_others_can_load(kind, request, tmp_path):
    import pyarrow.parquet as pq

    run = request.getfixturevalue(f"{kind}_run")
    data, card, croissant = export_run(run, tmp_path / "dataset", to="hf")
    table = pq.read_table(data)
    assert table.num_rows == read_table(run, "items").height
    facts = yaml.safe_load(card.read_text().split("---")[1])
    [config] = facts["configs"]
    assert (card.parent / config["data_files"][0]["path"]).is_file()
    assert json.loads(croissant.read_text())["distribution"][0]["contentUrl"] == "data/train.parquet"


def test_hugging_face_loads_it(plain_run, tmp_path):
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    data, *_ = export_run(plain_run, tmp_path / "dataset", to="hf")
    loaded = datasets.load_dataset("parquet", data_files=str(data), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.num_rows == 240 and len(loaded[0]["soft_label"]) == 2


def test_lewidi_comes_back_through_our_own_reader(tmp_path):
    run = make_run(vote_frame(questions=("q",), gold=False, n_items=40), tmp_path / "run", report=False)
    [file] = export_run(run, tmp_path / "q.json", to="lewidi", names=True)
    votes = me.read_votes(file)
    ballot, want = votes.ballots[0], read_table(run, "votes")
    assert ballot.n_votes == want.height
    back = sorted(
        (votes.items[int(i)], votes.annotators[int(ballot.annotator_a[code // 2])], ballot.labels[code % 2])
        for row, i in enumerate(ballot.item_i)
        for code in ballot.code_v[ballot.start_i[row] : ballot.start_i[row + 1]].tolist()
    )
    assert back == sorted(want.select("item", "annotator", "label").rows())


def test_lewidi_of_several_questions_is_a_folder(plain_run, tmp_path):
    files = export_run(plain_run, tmp_path / "out", to="lewidi")
    assert [file.name for file in files] == ["care.json", "fairness.json"]
    entry = json.loads(files[0].read_text())["t000"]
    assert entry["soft_label"].keys() == {"0", "1"} and entry["other_info"]["domain"] == "BLM"
    with pytest.raises(UsageError, match=r"2 questions\. Name a folder"):
        export_run(plain_run, tmp_path / "one.json", to="lewidi")


def test_tools_get_p_as_predictions(many_run, tmp_path):
    table = read_table(many_run, "posterior").select("item", "class", "p")
    posterior = {(item, label): p for item, label, p in table.iter_rows()}
    labels = dict(read_table(many_run, "items").select("item", "label").iter_rows())
    best = {item: posterior[item, label] for item, label in labels.items()}
    [file] = export_run(many_run, tmp_path / "tasks.json", to="label-studio")
    for task in json.loads(file.read_text()):
        [one], item = task["predictions"], task["data"]["moral_entropy_item"]
        assert one["score"] == pytest.approx(best[item])
        assert one["result"][0]["value"]["choices"] == [labels[item]]
        assert one["result"][0]["to_name"] == "text" in task["data"]
    [file] = export_run(many_run, tmp_path / "records.json", to="argilla")
    for record in json.loads(file.read_text()):
        assert record["suggestions"]["tone"]["value"] == labels[record["id"]]
        assert record["suggestions"]["tone"]["score"] == pytest.approx(best[record["id"]])
    [file] = export_run(many_run, tmp_path / "tasks.jsonl", to="prodigy")
    for task in map(json.loads, file.read_text().splitlines()):
        assert task["score"] == pytest.approx(best[task["moral_entropy_item"]])
        assert set(task["accept"]) < {option["id"] for option in task["options"]}


def test_three_anonymous_voters_a_text_come_back_from_lewidi(tmp_path):
    counts = pl.DataFrame({"item": range(30), "no": [n % 4 for n in range(30)], "yes": [3 - n % 4 for n in range(30)]})
    run = make_run(counts, tmp_path / "run", report=False, anonymous=True, counts=("no", "yes"))
    [file] = export_run(run, tmp_path / "q.json", to="lewidi")
    votes = me.read_votes(file)
    assert votes.n_votes == 90 and "the votes are anonymous" in " ".join(votes.reading.notes)


def test_nothing_is_written_over_unless_told_to(plain_run, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        export_run(plain_run, tmp_path / "out.csv", to="csv")
    export_run(plain_run, tmp_path / "out.csv", to="csv", force=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match="no earlier export"):
        export_run(plain_run, tmp_path / "folder", to="hf", force=True)
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "mine"


def test_force_replaces_an_earlier_export_and_no_other_dataset(plain_run, tmp_path):
    data, card, _ = export_run(plain_run, tmp_path / "dataset", to="hf")
    card.write_text("edited")
    export_run(plain_run, tmp_path / "dataset", to="hf", force=True)
    assert card.read_text() != "edited"
    (data.parent / "test.parquet").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"no earlier export: it holds data/test\.parquet"):
        export_run(plain_run, tmp_path / "dataset", to="hf", force=True)
    assert (data.parent / "test.parquet").read_bytes() == b"mine"


def test_an_export_that_fails_leaves_the_earlier_one(plain_run, tmp_path, monkeypatch):
    files = export_run(plain_run, tmp_path / "dataset", to="hf")
    before = [file.read_bytes() for file in files]

    def fail(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("moral_entropy.report.card.dataset_card", fail)
    with pytest.raises(OSError, match="No space"):
        export_run(plain_run, tmp_path / "dataset", to="hf", force=True)
    assert [file.read_bytes() for file in files] == before
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_the_card_states_entropy_labels_and_agreement(plain_run):
    card = dataset_card(read_run(plain_run), about={"name": "Care", "licence": "cc-by-4.0", "language": "en"})
    entropy = read_table(plain_run, "entropy").filter(question="care", domain="(all)")["total"].item()
    alpha = read_table(plain_run, "agreement").filter(
        question="care", domain="(all)", statistic="krippendorff_alpha"
    )["value"].item()  # fmt: skip
    assert f"{round(entropy, 4)}" in card and f"{alpha:.2f}" in card
    front = yaml.safe_load(card.split("---")[1])
    assert (front["size_categories"], front["license"], front["language"]) == (["n<1K"], "cc-by-4.0", "en")
    assert card.split("---")[2].lstrip().startswith("# Care")


def test_hostile_names_are_inert_in_the_card(hostile_run):
    for file in write_card(hostile_run):
        text = file.read_text()
        if file.suffix == ".md":
            assert "<script" not in text and "![" not in text
        else:
            json.loads(text)


def test_croissant_describes_columns_that_are_there(plain_run):
    [records] = croissant_facts(read_run(plain_run))["recordSet"]
    named = [field["source"]["extract"]["column"] for field in records["field"]]
    assert set(named) <= set(pl.read_parquet_schema(plain_run / "items.parquet"))


# --- Sheets, suffixes and releases ------------------------------------------------------------------------------------


def test_a_wide_sheet_has_one_row_per_item_and_opens_in_excel(plain_run, tmp_path):
    [csv_file] = export_run(plain_run, tmp_path / "labels.csv", to="wide")
    [book] = export_run(plain_run, tmp_path / "labels.xlsx", to="wide")
    sheet, items = pl.read_csv(csv_file), read_table(plain_run, "items")
    assert sheet.height == items["item"].n_unique() == pl.read_excel(book).height
    ends = ("", " p", " uncertain")
    assert sheet.columns == ["item", "domain", "text", *(f"{q}{end}" for q in ("care", "fairness") for end in ends)]
    care = {row["item"]: row for row in items.filter(question="care").to_dicts()}
    for row in sheet.to_dicts():
        p = care[row["item"]]["p"]
        assert str(row["care"]) == care[row["item"]]["label"] and row["care p"] == pytest.approx(p)
        assert row["care uncertain"] == (max(p, 1 - p) < 0.75)


@pytest.mark.parametrize(("to", "name"), [("csv", "a.xlsx"), ("xlsx", "a.csv"), ("release", "a.csv"), ("hf", "a.json")])
def test_a_wrong_suffix_is_an_error(plain_run, tmp_path, to, name):
    with pytest.raises(UsageError, match="is written to"):
        export_run(plain_run, tmp_path / name, to=to)
    assert not list(tmp_path.iterdir())


def test_entropy_is_that_of_the_soft_label(many_run, tmp_path):
    rows = pl.read_parquet(export_run(many_run, tmp_path / "a.parquet", to="parquet")[0])
    for entropy, shares in rows.select("entropy", "soft_label").iter_rows():
        assert entropy == pytest.approx(-sum(p * math.log(p) for p in shares if p), abs=1e-6)


NAMES = [
    "maria.gonzalez@example.org",
    "Otto Weber",
    "li_wei",
    "amina",
    "j.smith",
    "zoe",
    "raj",
    "inga",
    "noor",
    "tom",
    "eva",
    "kim",
]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A release of votes by people with names, demographics, a column per item and one per vote."""
    folder = tmp_path_factory.mktemp("release")
    votes = me.simulate_votes(n_items=60, n_annotators=12, votes_per_item=5, seed=4).votes
    ballot = votes.ballots[0]
    rows = [
        {"item": f"t{i}", "annotator": NAMES[code // 2], "label": ["no", "yes"][code % 2], "text": f"text {i}",
         "source": f"page {i % 7}", "minute": n, "gender": "wmd"[0 if code // 2 < 6 else 1 if code // 2 < 11 else 2]}
        for i in range(60)
        for n, code in enumerate(ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]].tolist())
    ]  # fmt: skip
    run = me.audit(pl.DataFrame(rows), folder / "run", draws=50, keep=("source", "minute", "gender"), report=False)
    files = export_run(run, folder / "data", to="release", about={"licence": "cc0-1.0"})
    return run, folder / "data", files


def test_a_release_names_nobody_and_its_key_lies_beside_it(released):
    run, folder, files = released
    key = pl.read_csv(folder.with_name("data-key.csv"))
    assert set(key["annotator"]) == set(NAMES) and files[-1] == folder.with_name("data-key.csv")
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".parquet":
                content = pl.read_parquet(path).write_ndjson().encode()
            words = set(re.split(r"[^\w@.-]+", content.decode()))
            assert not words & set(NAMES) and b"Otto Weber" not in content, path
    names = dict(key.select("pseudonym", "annotator").iter_rows())
    votes = pl.read_parquet(folder / "votes" / "votes.parquet")
    back = votes.with_columns(pl.col("annotator").replace(names)).select("question", "item", "annotator", "label")
    assert sorted(back.rows()) == sorted(run.table("votes").select("question", "item", "annotator", "label").rows())


def test_small_cells_and_columns_about_single_votes_are_withheld(released):
    _, folder, _ = released
    votes = pl.read_parquet(folder / "votes" / "votes.parquet")
    assert set(votes.columns) == {"question", "item", "annotator", "label", "source", "gender"}
    people = votes.unique("annotator")
    # Six, five and one: the single one is withheld.
    assert sorted(people["gender"].value_counts().rows(), key=str) == [("m", 5), ("w", 6), (None, 1)]
    card = (folder / "README.md").read_text()
    assert "1 of 12 values are withheld" in card and "minute is not published" in card


def test_checksums_and_every_column_in_croissant(released):
    _, folder, _ = released
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    facts = json.loads((folder / "croissant.json").read_text())
    assert facts["license"] == "cc0-1.0" and facts["rai:personalSensitiveInformation"]
    for records in facts["recordSet"]:
        [file] = {field["source"]["fileObject"]["@id"] for field in records["field"]}
        columns = [field["source"]["extract"]["column"] for field in records["field"]]
        assert columns == pl.read_parquet(folder / file).columns


def test_no_export_names_anybody_unless_asked(released, tmp_path):
    run, *_ = released
    for to, name in (("csv", "a.csv"), ("jsonl", "a.jsonl"), ("lewidi", "a.json"), ("label-studio", "b.json")):
        [file] = export_run(run, tmp_path / name, to=to)
        assert "maria.gonzalez" not in file.read_text()
    [file] = export_run(run, tmp_path / "named.csv", to="csv", names=True)
    assert "maria.gonzalez" in file.read_text()
