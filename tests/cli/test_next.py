"""`moral-entropy next`: the queue is the ranking of the audit, by whom is right, and no cell is a formula."""

from __future__ import annotations

import csv
import json

import polars as pl
import pytest

from moral_entropy.files import FORMULA, without_formulas
from moral_entropy.planning import count_ambiguous, next_votes
from moral_entropy.runs.folder import read_table


@pytest.fixture
def audited(audit_once):
    audit_once("run", "--draws", 50)


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_queue_is_the_ranking_that_the_audit_wrote(audited):
    ranked = read_table("run", "outliers").filter(ranking="one more vote", domain="(all)", question="care")
    queue = next_votes("run", 30, question="care")
    assert queue["rank"].to_list() == list(range(1, 31))
    assert queue["expected_gain"].to_list() == pytest.approx(ranked["score"][:30].to_list(), abs=1e-12)
    assert set(queue["question"]) == {"care"}


def test_so_it_is_under_the_papers_model(audit_once):
    audit_once("run", "--draws", 50, "--model", "paper")
    test_the_queue_is_the_ranking_that_the_audit_wrote(None)


def test_nobody_is_asked_twice_and_someone_new_only_where_all_have_voted(audited):
    votes = read_table("run", "votes").filter(question="care")
    voters = dict(votes.group_by("item").agg(pl.col("annotator")).rows())
    queue = next_votes("run", 1_000, question="care")
    assert queue.height == 82 - count_ambiguous("run", question="care") > 0
    for item, annotator, gain, average in queue.select("item", "annotator", "expected_gain", "average_gain").rows():
        if annotator is None:
            assert sorted(voters.get(item, [])) == list("abcde") and gain == average
        else:
            assert annotator not in voters.get(item, [])
    assert queue["annotator"].null_count() > 0


def test_only_those_who_can_be_asked(audited):
    queue = next_votes("run", 50, annotators=["b"])
    assert set(queue["annotator"]) == {"b"}
    assert queue["expected_gain"].is_sorted(descending=True)


def test_of_all_questions_the_most_telling(audited):
    queue = next_votes("run", 20)
    apart = pl.concat([next_votes("run", 20, question=question) for question in ("care", "fairness")])
    best = apart.sort("expected_gain", descending=True)["expected_gain"].to_list()[:20]
    assert queue["expected_gain"].to_list() == pytest.approx(best)


def test_more_than_two_labels_and_parts(run, folder):
    rows = [
        f"{i},{a},{'rgb'[(i * (2 + n) + i // 3) % 3]},{'uv'[i % 2]}"
        for i in range(60)
        for n, a in enumerate("wxyz")
        if (i + n) % 4
    ]
    (folder / "colours.csv").write_text("\n".join(["item,annotator,label,domain", *rows]) + "\n")
    arguments = ("audit", "colours.csv", "-o", "run", "--draws", 30, "--fit-by", "domain", "--quiet")
    assert run(*arguments)[0] == 0
    ranked = read_table("run", "outliers").filter(ranking="one more vote", domain="(all)")
    queue = next_votes("run", 60)
    assert sorted(queue["expected_gain"]) == pytest.approx(sorted(ranked["score"]), abs=1e-12)


def test_a_table_on_the_screen_and_json(run, audited):
    code, out, _ = run("next", "run", "-n", 3)
    assert code == 0 and len(out.partition("\n\n")[0].splitlines()) == 6 and out.startswith("rank")
    records = json.loads(run("next", "run", "-n", 3, "--json")[1])["votes"]
    assert [record["rank"] for record in records] == [1, 2, 3] and "is expected to take" in records[0]["reason"]


def test_ambiguous_items_are_counted_and_not_asked_about(run, audited, folder):
    # Half of the items are said to be ambiguous, as no fit has said yet.
    table = folder / "run" / "items.parquet"
    items = pl.read_parquet(table)
    every_second = pl.int_range(pl.len()) % 2 == 0
    items.with_columns(ambiguity=pl.when(every_second).then("entropy").otherwise(0.0)).write_parquet(table)
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    uncertain = items.filter(every_second, pl.max_horizontal("p", 1 - pl.col("p")) < 0.75)
    for fit in manifest["questions"]:
        fit["ambiguous"] = uncertain.filter(question=fit["question"]).height / fit["items_counted"]
    (folder / "run" / "manifest.json").write_text(json.dumps(manifest | {"model": "mixed"}))
    queue = next_votes("run", 1_000)
    assert queue.join(uncertain, on=["question", "item"], how="semi").is_empty()
    assert queue.height == items.height - uncertain.height
    code, out, _ = run("next", "run", "-n", 3)
    told = f"{uncertain.height} items look ambiguous, and votes would hardly help: ship their probabilities"
    assert code == 0 and told in out
    assert "Below about 30 votes per item" in out
    assert "Below about 30" in run("next", "run", "-n", 3, "-o", "queue.csv")[1]


def test_the_file_appears_whole_and_is_not_replaced_unasked(run, audited, folder):
    code, out, _ = run("next", "run", "-n", 7, "-o", "queue.csv")
    assert code == 0 and "queue.csv: 7 votes" in out
    rows = read_csv(folder / "queue.csv")
    assert [row["rank"] for row in rows] == [str(n) for n in range(1, 8)]
    code, _, err = run("next", "run", "-o", "queue.csv")
    assert code == 2 and "--force" in err
    assert run("next", "run", "-n", 2, "-o", "queue.csv", "--force")[0] == 0
    assert len(read_csv(folder / "queue.csv")) == 2
    assert not [path for path in folder.iterdir() if path.name.startswith(".queue")]


HOSTILE = ['=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "fine, really", '"quoted"']


@pytest.mark.parametrize("to", ["label-studio", "argilla", "prodigy"])
def test_a_queue_for_a_tool_asks_for_the_same_votes_and_suggests_p(run, audited, folder, to):
    assert run("next", "run", "-n", 12, "--to", to, "-o", "queue.json")[0] == 0
    text = (folder / "queue.json").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()] if to == "prodigy" else json.loads(text)
    queue = next_votes("run", 12)
    wanted = {(row["question"], row["item"]): max(row["p"], 1 - row["p"]) for row in queue.iter_rows(named=True)}
    if to == "label-studio":
        assert all(task["annotations"] == [] for task in records)
        found = {
            (one["result"][0]["from_name"], task["data"]["moral_entropy_item"]): one["score"]
            for task in records
            for one in task["predictions"]
        }
        assert records[0]["data"]["ask"] == queue["annotator"][0]
    elif to == "argilla":
        assert all(record["responses"] == {} for record in records)
        found = {
            (question, record["id"]): one["score"]
            for record in records
            for question, one in record["suggestions"].items()
        }
        assert records[0]["metadata"]["ask"] == queue["annotator"][0]
    else:
        assert all("answer" not in task for task in records)
        found = {(task["moral_entropy_question"], task["moral_entropy_item"]): task["score"] for task in records}
        assert records[0]["meta"]["ask"] == queue["annotator"][0]
    assert found == pytest.approx(wanted)
    # The most telling item comes first.
    assert next(iter(found))[1] == queue["item"][0]
    assert run("next", "run", "--to", to)[0] == 2


def test_nothing_is_a_formula_in_a_spreadsheet(run, folder):
    items = HOSTILE * 3
    lines = pl.DataFrame(
        [
            (f"={i}", f"@{a}", str((i + len(a) + (i % 3 == 0)) % 2), text)
            for i, text in enumerate(items)
            for a in ("a", "bb", "ccc")
            if (i + len(a)) % 3
        ],
        schema=["item", "annotator", "label", "text"],
        orient="row",
    )
    lines.write_csv(folder / "hostile.csv")
    assert run("audit", "hostile.csv", "-o", "run", "--draws", 0, "--quiet")[0] == 0
    assert run("next", "run", "-o", "queue.csv")[0] == 0
    for row in read_csv(folder / "queue.csv"):
        assert row["item"].startswith("'=") and row["annotator"][:2] in ("'@", "")
        for cell in row.values():
            assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r"), cell
        assert row["text"].removeprefix("'") in HOSTILE


def test_cells_are_only_marked_where_needed():
    frame = pl.DataFrame({"text": [*HOSTILE, None, ""], "score": range(-3, 7)})
    marked = without_formulas(frame)
    assert marked["text"].to_list() == [*(f"'{text}" for text in HOSTILE[:6]), *HOSTILE[6:], None, ""]
    assert marked["score"].to_list() == frame["score"].to_list()
    assert FORMULA.startswith("^")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--question", "car"), 1, "Did you mean 'care'?"),
        (("--annotators", "a,nobody"), 1, "1 of 2 annotators never voted here. First: 'nobody'."),
        (("-n", "0"), 2, "--number"),
        (("-o", "no/such/queue.csv"), 1, "no folder"),
    ],
)
def test_misuse_is_answered(run, audited, arguments, code, text):
    found, out, err = run("next", "run", *arguments)
    assert (found, out) == (code, "")
    assert text in err and "Traceback" not in err
