"""`moral-entropy corpus`: published files to votes that can be audited."""

from __future__ import annotations

import hashlib
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import polars as pl
import pytest
from corpora.layouts import csv_text, emfd_csv, expected_votes, mfrc_csv, mftc_json, plan


@pytest.fixture
def files(folder):
    (folder / "MFTC_V4_text.json").write_text(mftc_json(plan("mftc")))
    (folder / "final_mfrc_data.csv").write_text(mfrc_csv(plan("mfrc")))
    marks = [
        (f"passage {n}", ("authority", "care", "fairness", "loyalty", "sanctity")[n % 5], n % 4, n) for n in range(30)
    ]
    (folder / "highlights_raw.csv").write_text(emfd_csv(marks + [(t, "care", c + 9, d) for t, _, c, d in marks]))
    (folder / "themes.csv").write_text(csv_text(("document_id", "themes"), [(1, "KILL"), (2, "PROTEST")]))
    return folder


NAMES = {"mftc": "MFTC_V4_text.json", "mfrc": "final_mfrc_data.csv", "emfd": "highlights_raw.csv"}


@pytest.mark.parametrize("name", NAMES)
def test_votes_can_be_audited_without_an_option(run, files, name):
    code, out, err = run("corpus", name, NAMES[name], "-o", "votes.parquet")
    assert (code, err) == (0, "")
    assert "expected" in out and "in the paper" in out and "moral-entropy audit votes.parquet" in out
    code, out, _ = run("audit", "votes.parquet", "-o", "run")
    assert code == 0 and "authority" in out and "sanctity" in out


def test_the_file_holds_the_votes(run, files):
    run("corpus", "mfrc", NAMES["mfrc"], "-o", "votes.parquet")
    assert pl.read_parquet("votes.parquet").rows() == expected_votes("mfrc", plan("mfrc"))


def test_flags_reach_the_reader(run, files):
    run("corpus", "emfd", NAMES["emfd"], "-o", "all.parquet", "--themes", "themes.csv")
    domains = set(pl.read_parquet("all.parquet")["domain"])
    assert domains == {"Physical Violence", "Internal Unrest", "Untagged"}
    code, out, _ = run("corpus", "emfd", NAMES["emfd"], "-o", "assigned.parquet", "--emfd-votes", "assigned")
    assert code == 0 and "every vote is a yes" in out
    assert pl.read_parquet("assigned.parquet").height == 60
    rows = [*plan("mfrc", n_items=3), *plan("mfrc", n_items=1)]
    (files / "twice.csv").write_text(mfrc_csv(rows))
    code, _, err = run("corpus", "mfrc", "twice.csv", "-o", "x.parquet", "--on-repeat", "error")
    assert code == 1 and "repeat an (item, annotator) pair" in err
    code, out, _ = run("corpus", "mfrc", "twice.csv", "-o", "x.parquet", "--on-repeat", "count")
    assert code == 0 and "-o run/ --preset mft --on-repeat count" in out
    assert pl.read_parquet("x.parquet").height == 5 * len(rows)


def test_unknown_labels(run, files):
    text = (files / "highlights_raw.csv").read_text().replace("loyalty", "liberty")
    (files / "odd.csv").write_text(text)
    code, out, err = run("corpus", "emfd", "odd.csv", "-o", "x.parquet")
    assert (code, out) == (1, "") and "6 of 60 annotations" in err and not (files / "x.parquet").exists()
    code, out, _ = run("corpus", "emfd", "odd.csv", "-o", "x.parquet", "--ignore-unknown", "--by-domain")
    assert code == 0 and "such as 'liberty'" in out and "no known label 6" in out


@pytest.mark.parametrize("name", NAMES)
def test_where(run, name):
    code, out, err = run("corpus", name, "--where")
    assert (code, err) == (0, "") and "Published: " in out and "Licence: " in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["corpus"],
        ["corpus", "mtfc", "x", "-o", "y"],
        ["corpus", "mftc", "-o", "y"],
        ["corpus", "mftc", "MFTC_V4_text.json"],
        ["corpus", "mftc", "MFTC_V4_text.json", "--where"],
        ["corpus", "mftc", "--where", "--fetch", "https://example.org"],
        ["corpus", "mftc", "--fetch", "https://example.org", "-o", "y"],
        ["corpus", "mftc", "--fetch", "https://example.org", "--sha256", "0" * 64],
        ["corpus", "mftc", "--fetch", "https://example.org", "--sha256", "0", "-o", "y"],
        ["corpus", "mftc", "--fetch", "file:///x", "--sha256", "0" * 64, "-o", "y"],
        ["corpus", "mftc", "--fetch", "https://x.org", "--sha256", "0" * 64, "-o", "y", "--max-size", "big"],
        ["corpus", "mftc", "MFTC_V4_text.json", "--sha256", "0" * 64, "-o", "y"],
        ["corpus", "mftc", "MFTC_V4_text.json", "-o", "y", "--themes", "themes.csv"],
        ["corpus", "mftc", "MFTC_V4_text.json", "-o", "y", "--emfd-votes", "assigned"],
        ["corpus", "emfd", "highlights_raw.csv", "-o", "y", "--theme-map", "x.toml"],
        ["corpus", "mftc", "MFTC_V4_text.json", "-o", "y", "--on-repeat", "second"],
    ],
)
def test_misuse_is_exit_2_and_leaves_nothing(run, files, arguments):
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and err.startswith("error: ") and "Traceback" not in err
    assert not (files / "y").exists()


def test_a_half_file_is_exit_1_and_leaves_nothing(run, files):
    text = (files / "MFTC_V4_text.json").read_text()
    (files / "half.json").write_text(text[: len(text) // 2])
    code, out, err = run("corpus", "mftc", "half.json", "-o", "y.parquet")
    assert (code, out) == (1, "") and "half.json is no JSON" in err and err.count("\n") == 1
    assert not list(files.glob("*y.parquet*")) and not list(files.glob(".y*"))


def test_a_file_is_replaced_with_force_only(run, files):
    (files / "votes.parquet").write_text("mine")
    assert run("corpus", "mfrc", NAMES["mfrc"], "-o", "votes.parquet")[0] == 2
    assert (files / "votes.parquet").read_text() == "mine"
    assert run("corpus", "mfrc", NAMES["mfrc"], "-o", "votes.parquet", "--force")[0] == 0
    assert pl.read_parquet("votes.parquet").height == 5 * len(plan("mfrc"))


@pytest.fixture
def url(files, monkeypatch):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_arguments):
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/{NAMES['mfrc']}"
        server.shutdown()
        thread.join()


def test_fetch(run, files, url):
    sha256 = hashlib.sha256((files / NAMES["mfrc"]).read_bytes()).hexdigest()
    flags = ["--fetch", url, "--sha256", sha256, "-o", "got.csv"]
    code, out, err = run("corpus", "mfrc", *flags, "--max-size", "1MB")
    assert (code, err) == (0, "") and "moral-entropy corpus mfrc got.csv" in out
    assert (files / "got.csv").read_bytes() == (files / NAMES["mfrc"]).read_bytes()
    assert "there already" in run("corpus", "mfrc", *flags)[1]
    (files / "got.csv").write_text("mine")
    assert run("corpus", "mfrc", *flags)[0] == 2 and (files / "got.csv").read_text() == "mine"
    assert run("corpus", "mfrc", *flags, "--force")[0] == 0
    code, _, err = run("corpus", "mfrc", "--fetch", url, "--sha256", "0" * 64, "-o", "other.csv")
    assert code == 1 and "not the file" in err and not list(files.glob("other*"))
    code, _, err = run("corpus", "mfrc", "--fetch", url, "--sha256", sha256, "-o", "other.csv", "--max-size", "1kb")
    assert code == 1 and "1,000 is the most allowed" in err and not list(files.glob("other*"))
