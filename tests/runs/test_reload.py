"""A run folder gives back the votes and the consensus it was made from, bit by bit."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from moral_entropy.errors import RunFolderError
from moral_entropy.options import AuditOptions, FitOptions, ReadOptions
from moral_entropy.pipeline import audit
from moral_entropy.runs.folder import read_manifest, write_manifest
from moral_entropy.runs.reload import read_run_votes, reload_consensus
from moral_entropy.runs.run import read_run

ARRAYS = ("item_i", "annotator_a", "start_i", "code_v", "count_i", "gold_i", "published_i")


def votes_frame(labels=("no", "yes")):
    rng = np.random.default_rng(5)
    item = np.repeat(np.arange(40), 3)
    return pl.DataFrame(
        {
            "item": [f"é{n:02}" for n in item],
            "annotator": [f"a{n}" for n in (item + np.tile([0, 1, 2], 40)) % 7],
            "label": rng.choice(labels, len(item)),
            "question": ["care" if n % 3 else "harm" for n in item],
            "domain": [("web", "news", None)[n % 3] for n in item],
            "text": [f"text <b>{n}</b> 🙂" for n in item],
            "gold": [labels[n % len(labels)] if n % 4 else None for n in item],
            "published": [labels[0] if n % 5 else None for n in item],
        }
    )


CASES = {
    "two labels": (
        votes_frame(),
        AuditOptions(read=ReadOptions(gold="gold", published="published"), fit=FitOptions(draws=50)),
    ),
    "three labels": (
        votes_frame(("a", "b", "c")),
        AuditOptions(read=ReadOptions(gold="gold"), fit=FitOptions(draws=50)),
    ),
    "fitted by part": (votes_frame(), AuditOptions(fit_by="domain", fit=FitOptions(seed=4, draws=50))),
    "anonymous": (
        votes_frame().drop("annotator"),
        AuditOptions(read=ReadOptions(anonymous=True), fit=FitOptions(draws=50)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_run_folder_gives_its_votes_and_consensus_back(case, tmp_path):
    frame, options = CASES[case]
    run = audit(frame, tmp_path / "run", options)
    again = reload_consensus(tmp_path / "run")
    for was, now in zip(run.consensus.fits, again.fits, strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(now.ballot, name), getattr(was.ballot, name), err_msg=name)
        assert (now.ballot.question, now.ballot.part, now.ballot.labels) == (
            was.ballot.question,
            was.ballot.part,
            was.ballot.labels,
        )
        np.testing.assert_array_equal(now.p_ik, was.p_ik)
        np.testing.assert_array_equal(now.low_i, was.low_i)
        np.testing.assert_array_equal(now.confusion_sakv, was.confusion_sakv)


def test_facts_about_items_come_back(tmp_path):
    was = audit(votes_frame(), tmp_path / "run", AuditOptions(fit=FitOptions(draws=0))).consensus.votes
    now = read_run_votes(tmp_path / "run")
    assert now.items.equals(was.items)
    assert now.annotators.equals(was.annotators)
    assert now.texts is not None
    assert now.texts.equals(was.texts)
    assert now.domains == was.domains == ("news", "web")
    np.testing.assert_array_equal(now.domain_i, was.domain_i)


def test_changes_are_obeyed(tmp_path):
    audit(votes_frame(), tmp_path / "run", AuditOptions(fit=FitOptions(draws=0)))
    assert reload_consensus(tmp_path / "run", draws=20).fits[0].n_draws == 20


def test_a_folder_that_lacks_a_column_is_refused(tmp_path):
    audit(votes_frame(), tmp_path / "run", AuditOptions(fit=FitOptions(draws=0)))
    items = tmp_path / "run" / "items.parquet"
    pl.read_parquet(items).drop("gold").write_parquet(items)
    with pytest.raises(RunFolderError, match=r"items.parquet lacks the column 'gold'.*Run the audit again"):
        read_run_votes(tmp_path / "run")


@pytest.mark.parametrize("schema", [None, 3, 99])
def test_a_folder_of_another_version_is_refused(tmp_path, schema):
    audit(votes_frame(), tmp_path / "run", AuditOptions(fit=FitOptions(draws=0)))
    manifest = read_manifest(tmp_path / "run")
    del manifest["schema"]
    write_manifest(tmp_path / "run", manifest | ({} if schema is None else {"schema": schema}))
    with pytest.raises(RunFolderError, match=rf"schema {schema or 1}; this one reads 4.*Run the audit again"):
        read_run(tmp_path / "run")
