"""A release of real votes: nobody is named in any file, and the readers of MLCommons and Hugging Face take it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import polars as pl
import pytest
from report_support import make_run, vote_frame
from support import real_data

import moral_entropy as me
from moral_entropy.findings import Finding
from moral_entropy.report.card import dataset_card
from moral_entropy.report.export import export_run
from moral_entropy.runs.run import add_findings, read_run

SETS = {
    "popquorn_offensiveness": ("ratings.csv", {"label": "rating", "text": "text", "annotator_group": ("gender",),
                                               "keep": ("race", "age", "education")}),
    "hate_paradigms": ("votes.csv", {"annotator_group": ("group",)}),
    "framing": ("votes.csv", {"keep": ("role",)}),
}  # fmt: skip

READ = """
import json, sys
import datasets, mlcroissant
cache, *folders = sys.argv[1:]
read = []
for folder in folders:
    described = mlcroissant.Dataset(f"{folder}/croissant.json")
    facts = {"errors": list(described.metadata.ctx.issues.errors)}
    for part in ("items", "votes"):
        loaded = datasets.load_dataset(folder, part, split="train", cache_dir=f"{cache}/{len(read)}")
        records = list(described.records(part))
        facts[part] = {"rows": loaded.num_rows, "first": loaded[0], "columns": loaded.column_names,
                       "croissant_rows": len(records), "croissant_columns": list(records[0])}
    read.append(facts)
print(json.dumps(read))
"""


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """By set: the names of its annotators, its run, and the folder of its release."""
    return {name: released(name, tmp_path_factory.mktemp(name)) for name in SETS}


def released(name, folder):
    file, columns = SETS[name]
    # Names are at stake, not figures: 100 items will do.
    frame = pl.read_csv(real_data(name) / file).filter(pl.col("item").rank("dense") <= 100)
    # A number that is a name, such as 17, stands in texts and figures by chance; a name of letters does not.
    if frame["annotator"].dtype.is_integer():
        frame = frame.with_columns(pl.format("rater_{}", "annotator").alias("annotator"))
    run = me.audit(frame, folder / "run", draws=20, report=False, **columns)
    export_run(run, folder / "data", to="release")
    return set(frame["annotator"]), run, folder / "data"


@pytest.mark.parametrize("name", SETS)
def test_no_file_names_an_annotator(name, releases):
    names, run, folder = releases[name]
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["README.md", "SHA256SUMS", "croissant.json", "data/train.parquet", "votes/votes.parquet"]
    for file in files:
        raw = (folder / file).read_bytes()
        text = pl.read_parquet(folder / file).write_ndjson() if file.endswith(".parquet") else raw.decode()
        assert [name for name in names if name in text or name.encode() in raw] == [], file
        if file.endswith(".parquet"):
            assert file_cells(folder / file).isdisjoint(names), file
    key = pl.read_csv(folder.with_name("data-key.csv"))
    assert set(key["annotator"]) == names
    published = pl.read_parquet(folder / "votes/votes.parquet")
    pseudonyms = dict(key.iter_rows())
    assert set(published["annotator"]) == set(pseudonyms.values())
    columns = ["item", "annotator", "label"]
    votes = run.table("votes")
    known = votes.select(pl.col(columns).cast(pl.String)).with_columns(pl.col("annotator").replace(pseudonyms))
    assert sorted(published.select(columns).rows()) == sorted(known.rows())


def file_cells(path):
    """Return every cell of a Parquet file as text, those of lists one by one."""
    frame = pl.read_parquet(path)
    columns = [column.explode() if column.dtype == pl.List else column for column in frame]
    return {cell for column in columns for cell in column.cast(pl.String).unique()}


def test_a_name_that_is_a_number_is_hidden_and_figures_are_not(tmp_path):
    run = read_run(make_run(vote_frame(n_items=40), tmp_path / "run", report=False))
    texts = {"": "votes are few: 26 in all.", "26": "26 rates low.", "7 and 26": "7 and 26 copy each other."}
    add_findings(run, [Finding("votes", f"m{n}", 1.0, subject=subject, level="doubt", text=text)
                       for n, (subject, text) in enumerate(texts.items())])  # fmt: skip
    card = dataset_card(read_run(run.folder), hidden=["26"])
    assert "Votes are few: 26 in all." in card and "rates low" not in card and "copy each" not in card


def test_the_readers_of_mlcommons_and_hugging_face_take_it(releases, tmp_path):
    for package in ("mlcroissant", "datasets"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    paths = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    folders = [str(folder) for _, _, folder in releases.values()]
    command = [sys.executable, "-c", READ, str(tmp_path / "cache"), *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | paths)
    assert done.returncode == 0, done.stderr
    for (_, run, folder), facts in zip(releases.values(), json.loads(done.stdout), strict=True):
        assert facts["errors"] == [] and facts["votes"]["rows"] == run.table("votes").height
        for part, file in (("items", "data/train.parquet"), ("votes", "votes/votes.parquet")):
            frame, loaded = pl.read_parquet(folder / file), facts[part]
            assert loaded["rows"] == loaded["croissant_rows"] == frame.height
            assert loaded["columns"] == frame.columns
            assert loaded["croissant_columns"] == [f"{part}/{name}" for name in frame.columns]
            assert loaded["first"] == frame.row(0, named=True)
