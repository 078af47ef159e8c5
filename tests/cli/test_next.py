"""`moral-entropy next` and `plan`: how many votes, which items, and tasks whose answers come back to the same items."""

from __future__ import annotations

import csv
import json
import zipfile

import polars as pl
import pytest

import moral_entropy as me
from moral_entropy.files import FORMULA, without_formulas
from moral_entropy.planning import next_votes
from moral_entropy.runs.folder import read_table


@pytest.fixture
def audited(audit_once):
    audit_once("run", "--draws", 50)


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_nobody_is_asked_twice_and_someone_new_only_where_all_have_voted(audited):
    votes = read_table("run", "votes").filter(question="care")
    voters = dict(votes.group_by("item").agg(pl.col("annotator")).rows())
    queue = next_votes("run", 1_000, question="care")
    assert queue["labels_right"].is_sorted(descending=True)
    for item, annotator in queue.select("item", "annotator").rows():
        if annotator is None:
            assert sorted(voters.get(item, [])) == list("abcde")
        else:
            assert annotator not in voters.get(item, [])


def test_only_those_who_can_be_asked(audited):
    queue = next_votes("run", 50, annotators=["b"])
    assert set(queue["annotator"]) == {"b"}


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
    code, out, _ = run("next", "run", "-n", 4)
    assert code == 0 and "labels are uncertain" in out
    assert next_votes("run", 60)["item"].is_unique().all()


def test_the_answer_comes_first_in_words_with_a_curve(run, audited):
    code, out, _ = run("next", "run", "-n", 3, "--target", "uncertain=0.05")
    items = read_table("run", "items")
    uncertain = items.filter(pl.max_horizontal("p", 1 - pl.col("p")) < 0.75).height
    assert code == 0 and out.startswith(f"{uncertain} of {items.height} labels are uncertain")
    flat = " ".join(out.split())
    assert "more votes uncertain wrong" in flat and "To have 5.0% of the labels uncertain" in flat
    assert "Uncertain now, by question: care" in flat and "rank item" in flat
    record = json.loads(run("next", "run", "-n", 3, "--json")[1])
    assert [row["rank"] for row in record["items"]] == [1, 2, 3]
    assert {row["question"] for row in record["forecast"]} == {"(all)", "care", "fairness"}


def test_a_plan_from_a_pilot(run, audited):
    code, out, _ = run("plan", "run", "--within", "0.05", "--price", "0.1,1")
    assert code == 0 and "intervals of ±0.05" in " ".join(out.split())
    plans = json.loads(run("plan", "run", "--within", "0.05", "--price", "0.1,1", "--json")[1])["plans"]
    costs = [row["cost"] for row in plans]
    assert costs == sorted(costs) and f"at {costs[0]:,.2f}" in " ".join(out.split())
    assert run("plan", "run", "--price", "1,2,3")[0] == 2


def test_the_file_appears_whole_and_is_not_replaced_unasked(run, audited, folder):
    code, out, _ = run("next", "run", "-n", 7, "-o", "queue.csv")
    assert code == 0 and "queue.csv: 7 items" in out
    assert len(read_csv(folder / "queue.csv")) == 7
    code, _, err = run("next", "run", "-o", "queue.csv")
    assert code == 2 and "--force" in err
    assert run("next", "run", "-n", 2, "-o", "queue.csv", "--force")[0] == 0
    assert len(read_csv(folder / "queue.csv")) == 2
    assert not [path for path in folder.iterdir() if path.name.startswith(".queue")]
    assert run("next", "run", "-o", "queue.xlsx")[0] == 2


# --- Tasks out and votes back ------------------------------------------------------------------------------------

VOTERS = ("new one", "new two")


def answer(question, item, voter):
    """Whatever somebody answers: 0 or 1."""
    return str((len(question) + int(item[1:]) + len(voter)) % 2)


def from_label_studio(file, folder):
    tasks = json.loads(file.read_text())
    assert all(task["predictions"] == [] and task["data"]["domain"] in ("BLM", "Sandy") for task in tasks)
    for number, task in enumerate(tasks, 900):
        item = task["data"]["moral_entropy_item"]
        # The tool gives ids of its own.
        task["id"] = number
        task["annotations"] = [
            {
                "completed_by": {"email": voter},
                "was_cancelled": False,
                "result": [
                    {"from_name": question, "to_name": "text", "type": "choices",
                     "value": {"choices": [answer(question, item, voter)]}} for question in ("care", "fairness")
                ],
            }
            for voter in VOTERS
        ]  # fmt: skip
    (folder / "back.json").write_text(json.dumps(tasks))
    return "back.json"


def from_argilla(file, folder):
    records = json.loads(file.read_text())
    assert all(record["suggestions"] == {} for record in records)
    for record in records:
        record["responses"] = {
            question: [
                {"value": answer(question, record["id"], voter), "user_id": voter, "status": "submitted"}
                for voter in VOTERS
            ]
            for question in ("care", "fairness")
        }
    (folder / "back.json").write_text(json.dumps(records))
    return "back.json"


def from_doccano(file, folder):
    examples = [json.loads(line) for line in file.read_text().splitlines()]
    assert all(example["label"] == [] for example in examples)
    with zipfile.ZipFile(folder / "back.zip", "w") as archive:
        for voter in VOTERS:
            lines = [
                json.dumps(example | {"id": n, "label": [answer(example["moral_entropy_question"],
                                                                example["moral_entropy_item"], voter)]})
                for n, example in enumerate(examples, 500)
            ]  # fmt: skip
            archive.writestr(f"{voter}.jsonl", "\n".join(lines))
    return "back.zip"


def from_prodigy(file, folder):
    tasks = [json.loads(line) for line in file.read_text().splitlines()]
    assert all("score" not in task and "suggested" not in task["meta"] for task in tasks)
    lines = [
        json.dumps(task | {"accept": [answer(task["moral_entropy_question"], task["moral_entropy_item"], voter)],
                           "answer": "accept", "_annotator_id": voter, "_session_id": voter})
        for task in tasks for voter in VOTERS
    ]  # fmt: skip
    (folder / "back.jsonl").write_text("\n".join(lines))
    return "back.jsonl"


def from_sheet(file, folder):
    rows = pl.read_csv(file) if file.suffix == ".csv" else pl.read_excel(file)
    assert rows.columns == ["text_id", "domain", "rater", "care", "fairness"]
    filled = [
        {**row, "rater": voter, **{name: answer(name, row["text_id"], voter) for name in ("care", "fairness")}}
        for row in rows.to_dicts()
        for voter in VOTERS
    ]
    pl.DataFrame(filled).write_csv(folder / "back.csv")
    return "back.csv"


TOOLS = {
    "label-studio": (".json", from_label_studio),
    "argilla": (".json", from_argilla),
    "doccano": (".jsonl", from_doccano),
    "prodigy": (".jsonl", from_prodigy),
    "csv": (".csv", from_sheet),
    "xlsx": (".xlsx", from_sheet),
}


@pytest.mark.parametrize("to", TOOLS)
def test_votes_that_come_back_belong_to_the_same_items(run, audited, folder, to):
    suffix, annotate = TOOLS[to]
    # Every item that is listed needs both questions here, so that nothing is asked by halves.
    assert run("next", "run", "-n", 12, "--to", to, "-o", f"queue{suffix}")[0] == 0
    queue = next_votes("run", 12)
    back = annotate(folder / f"queue{suffix}", folder)
    sheet = {"annotator": "rater", "questions": ("care", "fairness")} if to in ("csv", "xlsx") else {}
    votes = me.read_votes(back, **sheet)
    asked = {(row["item"], question) for row in queue.to_dicts() for question in row["questions"].split(", ")}
    if to not in ("doccano", "prodigy"):
        asked = {(item, question) for item in queue["item"] for question in ("care", "fairness")}
    expected = {(q, item, voter, answer(q, item, voter)) for item, q in asked for voter in VOTERS}
    came = {
        (ballot.question, votes.items[int(i)], votes.annotators[int(ballot.annotator_a[code // 2])],
         ballot.labels[code % 2])
        for ballot in votes.ballots
        for at, i in enumerate(ballot.item_i)
        for code in ballot.code_v[ballot.start_i[at] : ballot.start_i[at + 1]].tolist()
    }  # fmt: skip
    assert came == expected and votes.n_votes == len(expected)
    domains = dict(read_table("run", "items").select("item", "domain").iter_rows())
    if votes.domains:
        assert {item: votes.domains[code] for item, code in zip(votes.items, votes.domain_i, strict=True)} == {
            item: domains[item] for item in votes.items
        }
    assert votes.domains or to == "argilla"


def test_predictions_are_shown_when_asked_for(run, audited, folder):
    assert run("next", "run", "-n", 5, "--to", "label-studio", "-o", "queue.json", "--predictions")[0] == 0
    labels = {(row["question"], row["item"]): row["label"] for row in read_table("run", "items").to_dicts()}
    for task in json.loads((folder / "queue.json").read_text()):
        for prediction in task["predictions"]:
            [result] = prediction["result"]
            key = result["from_name"], task["data"]["moral_entropy_item"]
            assert result["value"]["choices"] == [labels[key]] and 0.5 <= prediction["score"] <= 1


HOSTILE = ['=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "fine, really", '"quoted"']


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
        assert row["item"].startswith("'=")
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
        (("--target", "soon=1"), 2, "uncertain=0.1 or wrong=0.05"),
        (("--to", "argilla"), 2, "Name it with -o"),
        (("-o", "no/such/queue.csv"), 1, "no folder"),
    ],
)
def test_misuse_is_answered(run, audited, arguments, code, text):
    found, out, err = run("next", "run", *arguments)
    assert (found, out) == (code, "")
    assert text in err and "Traceback" not in err
