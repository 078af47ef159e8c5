"""The study of soft labels: its commands are what it does, and its tables go where they belong."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score
from study_support import annotators, told_votes, train_by_cue
from support import load_script

from moral_entropy.consensus.fit import fit
from moral_entropy.study.compare import compare_targets
from moral_entropy.study.options import StudyOptions
from moral_entropy.study.page import study_page

study = load_script("studies/soft_labels.py", "soft_labels_study")


def test_names_are_different():
    names = [setting.name for setting in study.SETTINGS]
    assert len(set(names)) == len(names)
    assert {setting.corpus for setting in study.SETTINGS} == set(study.AUDITS)


def test_a_command_names_what_differs_from_the_defaults():
    setting = study.Setting("one", "One", "mfrc", replace(study.LAYERS, train_texts=30, seeds=2, split="domains"))
    assert setting.command == (
        "moral-entropy study mfrc/ --targets soft,share,any,majority,two-vote --models minilm --seeds 2 "
        f"--train-texts 30 --test-texts {study.LAYERS.test_texts} --layers 2 --max-length {study.LAYERS.max_length} "
        f"--epochs {study.LAYERS.epochs} --learning-rate {study.LAYERS.learning_rate} --split domains -o one/"
    )
    plain = study.Setting("one", "One", "mftc-twin", StudyOptions(models=("tfidf",), seeds=3))
    assert plain.command.endswith("--models tfidf --seeds 3 -o one/")


def test_a_section_is_the_page_of_the_study_one_level_down(tmp_path):
    consensus = fit(told_votes(confusion_akv=annotators(*[(0.9, 0.8)] * 5), n_items=200), draws=20)
    options = StudyOptions(targets=("soft", "any"), models=("tfidf",), seeds=1, replicates=20, held_out=0)
    found = compare_targets(consensus, options, train=train_by_cue)
    for name, frame in (("", found.scores), ("_differences", found.differences), ("_curves", found.curves)):
        frame.write_parquet(tmp_path / f"study{name}.parquet")
    facts = {**found.facts, "notes": list(found.notes), "seconds": {"fit": 30.0, "train": 60.0}}
    (tmp_path / "manifest.json").write_text(json.dumps(facts))
    setting = study.Setting("one", "One", "mfrc", study.TFIDF)
    text = study.section(setting, tmp_path)
    assert text.startswith("## One\n\n```\nmoral-entropy study mfrc/")
    body = study_page(found).partition("\n\n")[2].strip()
    assert text.partition("Took 1.5 minutes.\n\n")[2].replace("\n###", "\n##") == body


def test_labels_are_held_against_the_truth(tmp_path):
    rows = {
        "question": ["care"] * 4, "domain": ["a", "a", "b", "b"], "n_votes": [4] * 4, "n_positive": [0, 2, 2, 4],
        "p": [0.1, 0.4, 0.3, 0.9], "gold": ["0", "1", "0", "1"],
    }  # fmt: skip
    pl.DataFrame(rows).write_parquet(tmp_path / "items.parquet")
    last = study.labels_section(tmp_path).splitlines()[-1]
    shares = roc_auc_score([0, 1, 0, 1], [0, 0.5, 0.5, 1])
    assert last == f"| care | {shares:.3f} | 1.000 | 0.500 to 0.500 | 0.250 to 0.750 | 0.250 to 0.600 |"


def test_tables_go_between_the_markers():
    page = study.PAGE.read_text(encoding="utf-8")
    changed = study.with_tables(page, "TABLES")
    assert "TABLES" in changed and changed.split("<!--")[0] == page.split("<!--")[0]
    with pytest.raises(ValueError, match="has no place for the tables"):
        study.with_tables("no markers", "TABLES")
    for part in (study.TUNED, study.HEAD_ALONE, study.REFINE):
        assert "TABLES" in study.with_tables(page, "TABLES", part)


def test_claims_are_answered_from_the_tables():
    consensus = fit(told_votes(confusion_akv=annotators(*[(0.9, 0.8)] * 5), n_items=200), draws=20)
    options = StudyOptions(targets=("soft", "majority"), models=("minilm",), seeds=1, replicates=20, held_out=0)
    found = compare_targets(consensus, options, train=train_by_cue)
    curves = pl.DataFrame(
        {"target": ["soft"] * 8, "seed": [0] * 8, "validation_loss": [2.0, 1.8, 1.7, 1.6, 1.58, 1.55, 1.52, 1.5]}
    )
    said = study.claims(replace(found, curves=curves, facts={"settings": {"epochs": 2}}), "One")
    [gain] = found.differences.filter(reference="gold", metric="accuracy", question="(mean)")["difference"].to_list()
    assert f"against gold {100 * gain:+.1f} pp".replace("-", "−").replace("+0.0", "0.0") in said
    assert "80% of the fall" in said, "from 2.0 to 1.6 of from 2.0 to 1.5"
