"""Croissant: what it says of responsible use, and that MLCommons' own reader takes it, where that is installed."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from moral_entropy.report.card import croissant_facts
from moral_entropy.report.export import export_run
from moral_entropy.runs.run import read_run

REQUIRED = ("dataLimitations", "dataBiases", "dataUseCases", "dataAnnotationProtocol", "dataAnnotationAnalysis",
            "annotationsPerItem", "personalSensitiveInformation", "dataCollectionMissingData")  # fmt: skip

READ = """
import json, sys
import mlcroissant
read = []
for file in sys.argv[1:]:
    dataset = mlcroissant.Dataset(file)
    rows = list(dataset.records("items"))
    if len(dataset.metadata.record_sets) > 1:
        list(dataset.records("votes"))
    plain = {name: value.decode() if isinstance(value, bytes) else value for name, value in rows[0].items()}
    read.append({"errors": list(dataset.metadata.ctx.issues.errors), "rows": len(rows), "first": plain})
print(json.dumps(read, default=str))
"""


def test_every_field_on_responsible_use_says_something(plain_run, many_run):
    for path in (plain_run, many_run):
        facts = croissant_facts(read_run(path))
        for name in REQUIRED:
            told = facts[f"rai:{name}"]
            assert told and all(sentence.strip() for sentence in ([told] if isinstance(told, str) else told)), name


def test_figures_are_those_of_the_run(plain_run):
    facts = croissant_facts(read_run(plain_run))
    audit = pl.read_parquet(plain_run / "audit.parquet").filter(
        question="(all)", domain="(all)", label="(all)", rule="any", reference="consensus"
    )
    rate = dict(zip(audit["metric"], audit["value"], strict=True))
    figures = f"FPR {rate['expected_fpr']:.1%} and FNR {rate['expected_fnr']:.1%}"
    assert f"the rule any have {figures}" in " ".join(facts["rai:dataBiases"])
    [file] = facts["distribution"]
    assert file["sha256"] == hashlib.sha256((plain_run / "items.parquet").read_bytes()).hexdigest()
    kinds = {field["name"]: field["dataType"] for field in facts["recordSet"][0]["field"]}
    assert kinds["n_votes"] == "sc:Integer" and kinds["item"] == "sc:Text" and kinds["p"] == "sc:Float"


def test_the_digest_of_an_export_is_that_of_its_file(plain_run, tmp_path):
    export_run(plain_run, tmp_path / "dataset", to="hf")
    facts = json.loads((tmp_path / "dataset" / "croissant.json").read_text())
    data = (tmp_path / "dataset" / "data" / "train.parquet").read_bytes()
    assert facts["distribution"][0]["sha256"] == hashlib.sha256(data).hexdigest()


def test_the_reader_of_mlcommons_takes_a_run_and_a_release(plain_run, tmp_path):
    if importlib.util.find_spec("mlcroissant") is None:
        pytest.skip("mlcroissant is not installed")
    file, data = tmp_path / "croissant.json", shutil.copy(plain_run / "items.parquet", tmp_path)
    file.write_text(json.dumps(croissant_facts(read_run(plain_run))))
    released_data, _, released, *_ = export_run(plain_run, tmp_path / "dataset", to="release")
    command = [sys.executable, "-c", READ, str(file), str(released)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for facts, path in zip(json.loads(done.stdout), (data, released_data), strict=True):
        items = pl.read_parquet(Path(path))
        assert facts["errors"] == [] and facts["rows"] == items.height
        assert facts["first"]["items/item"] == items["item"][0]
        assert float(facts["first"]["items/p"]) == items["p"][0]
