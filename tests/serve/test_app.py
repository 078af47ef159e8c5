"""The app as a process on loopback: who may ask what, what is kept, and that the run never changes."""

from __future__ import annotations

import json
import threading
import time

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from serve_support import WAIT, decisions_of, serving, serving_here

from moral_entropy import read_votes
from moral_entropy.cli.main import main
from moral_entropy.runs.folder import digest_of
from moral_entropy.runs.run import read_run
from moral_entropy.serve.app import HEADERS, MOST_BODY
from moral_entropy.serve.views import VIEWS

pytest.importorskip("starlette", reason="the extra [serve] is not installed")
pytest.importorskip("uvicorn", reason="the extra [serve] is not installed")


@pytest.fixture(scope="module")
def looked_at(made_run):
    """A server that nobody decides anything at."""
    with serving(made_run) as server:
        yield server


def answer_of(item, at=0, **facts):
    return {"question": item["question"], "item": item["item"], "label": item["labels"][at], **facts}


def settle_next(server, *, who=None, at=0, **facts):
    item = server.view("settle", who=who)["item"]
    return item, server.json("/decide", answer_of(item, at, kind="settle", cause="other", **facts), who=who)


# --- Who may ask what ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example.org:{port}", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_host_is_refused_first(looked_at, host, method):
    # A page elsewhere whose name was pointed at this machine has our address and its own name.
    body = None if method == "GET" else {}
    status, _, text = looked_at.ask("/start.json", body, Host=host.format(port=looked_at.port), Origin=None)
    assert status == 403 and "verdict" not in text


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_the_names_of_this_machine_are_served(looked_at, name):
    assert looked_at.ask("/start", Host=f"{name}:{looked_at.port}")[0] == 200


@pytest.mark.parametrize(
    "path", ["/", "/items.json", "/static/serve.js", "/export/gold.csv", "/start.json?token=guess"]
)
@pytest.mark.parametrize("cookie", [None, "moral_entropy_who=ann", "moral_entropy_{port}=guess"])
def test_a_token_is_required(looked_at, path, cookie):
    cookie = cookie and cookie.format(port=looked_at.port)
    assert looked_at.ask(path, Cookie=cookie)[0] == 403


def test_the_token_is_in_the_address_once(looked_at):
    status, headers, _ = looked_at.ask(f"/items?label=1&token={looked_at.token}", Cookie=None)
    assert (status, headers["location"]) == (303, "/items?label=1")
    cookie = headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and looked_at.token.lower() in cookie


@pytest.mark.parametrize("origin", ["http://example.org", "null", None, "http://localhost:{port}"])
def test_a_write_from_another_page_is_refused(looked_at, origin):
    origin = origin and origin.format(port=looked_at.port)
    assert looked_at.ask("/decide", {}, Origin=origin)[0] == 403


@pytest.mark.parametrize("length", [str(MOST_BODY + 1), "many", None])
def test_a_long_body_is_refused_unread(looked_at, length):
    headers = {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": length}
    connection_status = looked_at.ask("/decide", method="POST", **headers)[0]
    assert connection_status in (400, 413)


@pytest.mark.parametrize("path", ["/start", "/items.json", "/static/serve.js", "/nowhere", "/static/nowhere", "/a/b"])
def test_every_answer_keeps_the_page_to_itself(looked_at, path):
    for about in ({}, {"Cookie": None}):
        _, headers, _ = looked_at.ask(path, **about)
        assert {name: headers[name] for name in HEADERS} == HEADERS
        assert "unsafe" not in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers


def test_every_page_has_an_address_and_json(looked_at):
    item = looked_at.view("settle")["item"]
    for name in VIEWS:
        assert looked_at.ask(f"/{name}")[0] == 200
        data = looked_at.view(name, **({"question": item["question"], "item": item["item"]} if name == "item" else {}))
        assert data["names"]
    assert looked_at.ask("/nowhere")[0] == looked_at.ask("/nowhere.json")[0] == 404


@pytest.mark.parametrize(
    "body, status",
    [
        ({}, 400),
        ({"kind": "check"}, 400),
        ({"kind": "check", "question": "care", "item": "nobody"}, 404),
        ({"kind": "check", "question": "care", "item": "t001", "label": "perhaps"}, 400),
        ([], 400),
        ({"kind": "settle", "question": "care", "item": "t001", "label": "1", "cause": "weather"}, 400),
    ],
)
def test_what_is_no_decision_is_refused(looked_at, body, status):
    assert looked_at.ask("/decide", body)[0] == status
    assert not decisions_of(looked_at.run)


# --- Deciding --------------------------------------------------------------------------------------------------------


def test_a_check_is_blind_and_ends_in_the_verdict(run):
    with serving_here(run) as server:
        for n in range(50):
            data = server.view("check")
            assert set(data["item"]) == {"question", "item", "domain", "text", "labels"}
            assert data["progress"] == {"rows": 50, "done": n, "left": 50 - n}
            assert set(server.json("/decide", answer_of(data["item"], n % 2, kind="check"))) == {"saved"}
        data = server.view("check")
        assert data["item"] is None and data["verdict"]["error"]["checked"] == 50
        low, value, high = (data["verdict"]["error"][name] for name in ("low", "value", "high"))
        assert low < value < high
        server.json("/more-checks", {})
        assert server.view("check")["progress"]["rows"] > 50


def test_decisions_say_who_when_what_and_why(run):
    with serving(run, "--who", "ann") as server:
        item, answer = settle_next(server, why="the codebook has no rule", id="first")
        assert answer["changed"]["now"] == item["labels"][0] and answer["changed"]["explanation"]["steps"]
        # A browser that repeats itself is heard once.
        server.json("/decide", answer_of(item, kind="settle", cause="other", id="first"))
        [entry] = decisions_of(run)
        assert (entry["who"], entry["cause"], entry["why"]) == ("ann", "other", "the codebook has no rule")
        assert entry["time"].endswith("+00:00") and entry["kind"] == "settle" and entry["label"] == item["labels"][0]
        assert server.json("/undo", {})["undone"]["item"] == item["item"]
        assert server.view("settle")["item"] == item
        assert server.json("/undo", {})["undone"] is None
    assert [entry["kind"] for entry in decisions_of(run)] == ["settle", "undo"]


def test_unsure_and_skipped_items_come_later_or_not_at_all(run):
    with serving_here(run) as server:
        first = server.view("settle")["item"]
        server.json("/decide", answer_of(first, kind="skip"))
        second = server.view("settle")["item"]
        server.json("/decide", answer_of(second, kind="settle") | {"label": None})
        left = server.view("settle")["progress"]["left"]
        assert server.view("settle")["item"] not in (first, second)
        assert left == len(read_run(run).items.filter(pl.col("p") > 0)) - 1
        assert server.view("start")["settled"] == 0


def test_nobody_is_asked_about_their_own_items_first(run):
    mine = set(read_run(run).table("votes").filter(annotator="a")["item"])
    with serving_here(run, "A") as server:
        for _ in range(3):
            item, _ = settle_next(server)
            assert item["item"] not in mine and not item["own"]


def test_two_people_share_the_work_and_conflicts_are_shown(run):
    with serving_here(run, "ann", "bob") as server:
        assert "item" not in server.view("settle")
        items = [server.view("settle", who=name)["item"]["item"] for name in ("ann", "bob")]
        assert items[0] != items[1]
        item, _ = settle_next(server, who="ann", at=0)
        server.json("/decide", answer_of(item, 1, kind="settle", cause="ambiguous"), who="bob")
        [rows] = server.view("decisions")["conflicts"]
        assert {row["who"]: row["label"] for row in rows} == {"ann": item["labels"][0], "bob": item["labels"][1]}
        assert server.view("start")["conflicts"] == 1 and server.view("moved")["decided"] == 0
        server.json("/decide", answer_of(item, 1, kind="settle", final=True), who="ann")
        assert not server.view("decisions")["conflicts"] and server.view("moved")["decided"] == 1
        assert server.ask("/decide", answer_of(item, kind="settle"), who="eve")[0] == 400


def test_sure_items_are_confirmed_in_bulk_with_the_errors_expected(run):
    with serving_here(run) as server:
        data = server.view("bulk")
        assert data["items"] and data["expected_wrong"] == pytest.approx(sum(row["wrong"] for row in data["items"]))
        assert all(row["agree"] == row["n_votes"] and row["wrong"] <= 0.05 for row in data["items"])
        chosen = [{"question": row["question"], "item": row["item"]} for row in data["items"][:5]]
        assert server.json("/confirm", {"items": chosen}) == {"confirmed": 5}
        assert server.view("bulk")["left"] == data["left"] - 5
    labels = {(row["question"], row["item"]): row["label"] for row in data["items"]}
    assert all(labels[entry["question"], entry["item"]] == entry["label"] for entry in decisions_of(run))


@pytest.mark.parametrize("torn", [b'{"id": "x", "kind": "che', b"\xff\xfe"])
def test_what_was_decided_survives_a_kill(run, torn):
    with serving(run) as server:
        settled = [settle_next(server)[0]["item"] for _ in range(3)]
        server.kill()
    with (run / "decisions.jsonl").open("ab") as file:
        file.write(torn)
    with serving(run) as server:
        assert server.view("start")["settled"] == 3
        settled.append(settle_next(server)[0]["item"])
        assert server.view("start")["torn"] == 1
        assert [row["item"] for row in server.view("decisions")["decisions"]][::-1] == settled
        assert server.stop() == 143


def test_a_new_run_is_made_beside_and_equals_that_of_the_command_line(run, votes_file, tmp_path, monkeypatch):
    before = {path.name: digest_of(path) for path in run.iterdir()}
    with serving(run) as server:
        for n in range(10):
            settle_next(server, at=n % 2)
            item = server.view("check")["item"]
            server.json("/decide", answer_of(item, n % 2, kind="check"))
        server.json("/new-run", {})
        until = time.monotonic() + WAIT
        while (moved := server.view("moved"))["status"] == "running" and time.monotonic() < until:
            time.sleep(0.2)
        assert moved["status"] == "done", moved
    after = {path.name: digest_of(path) for path in run.iterdir()}
    assert after.pop("decisions.jsonl") and after == before
    out, settings = tmp_path / "again", run / "manifest.json"
    flags = ["--settings", str(settings), "--decisions", str(run / "decisions.jsonl"), "-o", str(out), "--quiet"]
    assert main(["audit", str(votes_file), *flags]) == 0
    ours, theirs = read_run(tmp_path / "run-2"), read_run(out)
    for name in ("items", "annotators", "annotator_summary", "audit", "entropy", "spot_checks"):
        assert_frame_equal(ours.table(name), theirs.table(name), abs_tol=1e-9, rel_tol=0)
    decided = {(entry["question"], entry["item"]): entry["label"] for entry in decisions_of(run)}
    labels = {(q, i): label for q, i, label in ours.items.select("question", "item", "label").iter_rows()}
    assert all(labels[key] == label for key, label in decided.items())
    assert moved["path"] == str((tmp_path / "run-2").resolve())
    before_and_after = read_run(run).items["label"], ours.items["label"]
    assert moved["labels_changed"] == (before_and_after[0] != before_and_after[1]).sum()


def test_decisions_that_other_votes_do_not_have_are_refused(run, votes_file, tmp_path, capsys):
    entry = {"id": "1", "kind": "settle", "question": "care", "item": "t999", "who": "ann", "label": "1"}
    path = tmp_path / "decisions.jsonl"
    flags = ["audit", str(votes_file), "--decisions", str(path), "-o", str(tmp_path / "out")]
    path.write_text("")
    assert main(flags) == 1 and "has no decision on a label" in capsys.readouterr().err
    path.write_text(json.dumps(entry) + "\n")
    assert main(flags) == 1
    assert "1 of 1 decisions are about items or labels that these votes do not have. First: item 't999'" in " ".join(
        capsys.readouterr().err.split()
    )


# --- Looking ---------------------------------------------------------------------------------------------------------


def test_facets_count_what_they_lead_to(looked_at):
    data = looked_at.view("items")
    for name, values in data["facets"].items():
        for value, n in values:
            assert looked_at.view("items", **{name: value})["total"] == n
    assert looked_at.view("items", q="TRAINS")["total"] == sum(
        "trains" in (text or "") for text in joined_texts(looked_at.run)
    )
    first, second = looked_at.view("items")["items"], looked_at.view("items", page=2)["items"]
    wrong = [row["wrong"] for row in first + second]
    assert wrong == sorted(wrong, reverse=True) and len(wrong) == 40


def joined_texts(path):
    run = read_run(path)
    return run.items.join(run.table("texts"), on="item", how="left")["text"].to_list()


def test_a_cell_of_the_matrix_opens_the_items_it_counts(looked_at):
    data = looked_at.view("annotators", question="care")
    for a, b, n, same in data["pairs"]:
        assert looked_at.view("items", question="care", a=a, b=b)["total"] == n - same


def test_most_votes_and_the_consensus_differ_where_they_do(made_run, tmp_path):
    from report_support import make_run, vote_frame

    many = make_run(vote_frame(labels=("x", "y", "z"), questions=("tone",), gold=False), tmp_path / "many", draws=30)
    for path in (made_run, many):
        run = read_run(path)
        counts = run.table("votes").group_by("question", "item", "label").len()
        top = counts.filter(pl.col("len") == pl.col("len").max().over("question", "item"))
        apart = run.items.join(top, on=["question", "item", "label"], how="anti")
        # Ties of two labels are no conflict either.
        with serving_here(path) as server:
            shown = server.view("items", show="differs")["total"]
            assert shown == apart.filter(pl.col("n_votes") > 0).height == server.view("rules")["n_differ"]


def test_exports_are_read_again(run, votes_file, tmp_path):
    with serving_here(run) as server:
        for n in range(4):
            settle_next(server, at=n % 2)
        gold = tmp_path / "gold.csv"
        gold.write_text(server.ask("/export/gold.csv")[2], encoding="utf-8")
        tasks = json.loads(server.ask("/export/label-studio.json")[2])
        assert server.ask("/export/nothing.json")[0] == 400
    votes = read_votes(votes_file, gold_file=gold)
    assert sum((ballot.gold_i >= 0).sum() for ballot in votes.ballots) == 4
    entries = {(entry["item"], entry["label"]) for entry in decisions_of(run)}
    choices = {
        (task["data"]["moral_entropy_item"], result["value"]["choices"][0])
        for task in tasks
        for annotation in task["annotations"]
        for result in annotation["result"]
    }
    assert choices == entries


# --- Load ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n_clients, n_rounds", [(12, 8), pytest.param(50, 120, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_many_clients_lose_no_decision(run, n_clients, n_rounds):
    names = [f"p{n:02}" for n in range(n_clients)]
    acknowledged, errors = [], []
    with serving(run, "--who", ",".join(names)) as server:

        def work(name):
            try:
                for _ in range(n_rounds):
                    item = server.view("settle", who=name)["item"]
                    if item is None:
                        server.json("/undo", {}, who=name)
                        continue
                    answer = server.json("/decide", answer_of(item, kind="settle", cause="other"), who=name)
                    acknowledged.append(answer["saved"])
                    server.view("items", who=name, show="decided")
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(n_rounds * WAIT)
        assert errors == [] and not any(thread.is_alive() for thread in threads)
    entries = decisions_of(run)
    assert len(acknowledged) >= n_clients and {entry["id"] for entry in entries} >= set(acknowledged)
    assert {entry["who"] for entry in entries} == set(names)


def test_the_extra_is_named_where_it_is_missing(run, monkeypatch, capsys):
    monkeypatch.setattr("moral_entropy.serve.app.find_spec", lambda name: None)
    assert main(["serve", str(run)]) == 1
    assert "pip install 'moral-entropy[serve]'" in capsys.readouterr().err
