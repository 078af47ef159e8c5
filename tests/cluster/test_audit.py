"""The run folder of a cluster against that of one machine: the same tables, row by row."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from cluster.here import Here
from cluster.tables import LEARNT, assert_same_tables, vote_table, write_parts

from moral_entropy.cluster.read import LEFT_OUT
from moral_entropy.consensus.options import FitOptions, PriorOptions
from moral_entropy.errors import UsageError, VotesError
from moral_entropy.grading.options import GradeOptions
from moral_entropy.pipeline.audit import audit
from moral_entropy.pipeline.options import AuditOptions
from moral_entropy.votes.options import ReadOptions


def options_of(*, read=None, fit=None, draws=40, **others):
    return AuditOptions(read=read or ReadOptions(), fit=fit or FitOptions(draws=draws), report=False, **others)


def closeness(options, frame):
    """How near the figures of a cluster are to those of one machine."""
    return LEARNT if options.fit.by_domain and "domain" in frame.columns else 1e-8


def audit_both(tmp_path, frame, options, *, workers=None, n_files=3, part_rows=900, without=()):
    """Audit a table on one machine and in parts; give both manifests."""
    source = write_parts(frame, tmp_path / "parts", n_files)
    one = audit(source, tmp_path / "one", options)
    many = audit(source, tmp_path / "many", options, workers=workers or Here(), part_rows=part_rows)
    close = closeness(options, frame)
    assert_same_tables(tmp_path / "one", tmp_path / "many", close=close, without=without)
    assert_same_heights(one.manifest, many.manifest, close=close)
    return one.manifest, many.manifest


def assert_same_heights(one, many, *, close):
    """The log posterior of every fit, up to rounding."""
    for found, expected in zip(many["questions"], one["questions"], strict=True):
        assert found["log_posterior"] == pytest.approx(expected["log_posterior"], rel=close)


def assert_same_manifest(one, many):
    """All that was read."""
    for name in (
        "input",
        "columns",
        "guessed",
        "rows",
        "dropped",
        "items",
        "items_without_votes",
        "annotators",
        "votes",
    ):
        assert many[name] == one[name], name
    # Judges are looked at one by one on one machine alone.
    assert many["warnings"] == [text for text in one["warnings"] if "known answers are" not in text]
    assert set(many["notes"]) == {*one["notes"], LEFT_OUT}
    for found, expected in zip(many["questions"], one["questions"], strict=True):
        same = ("question", "part", "labels", "positive", "items", "items_without_votes", "annotators", "votes")
        assert {name: found[name] for name in same} == {name: expected[name] for name in same}


def test_workers_write_the_run_folder_of_one_machine(tmp_path, workers):
    # Weights by domain take many rounds; test_fit lets workers learn them.
    options = options_of(fit=FitOptions(draws=40, domain_prevalence="off"))
    one, many = audit_both(tmp_path, vote_table(700, 14, seed=1), options, workers=workers)
    assert_same_manifest(one, many)
    assert many["cluster"]["parts"] > 2


@pytest.mark.parametrize("part_rows", [500, 10**6])
def test_any_number_of_parts_gives_the_same_tables(tmp_path, part_rows):
    assert_same_manifest(
        *audit_both(tmp_path, vote_table(500, 9, seed=2), options_of(), n_files=1, part_rows=part_rows)
    )


def test_more_than_two_labels(tmp_path):
    frame = vote_table(400, 8, seed=3, labels=("anger", "joy", "none"), questions=("tone",))
    assert_same_manifest(*audit_both(tmp_path, frame, options_of()))


def test_items_fitted_by_a_column(tmp_path):
    options = options_of(fit_by="wave", priors=PriorOptions(prevalence=(80.0, 20.0)))
    one, many = audit_both(tmp_path, vote_table(500, 9, seed=4), options)
    assert_same_manifest(one, many)
    assert {question["part"] for question in many["questions"]} == {"first", "second"}


def test_texts_published_labels_and_sets_of_labels(tmp_path):
    rng = np.random.default_rng(5)
    frame = vote_table(300, 7, seed=5, questions=("any",)).drop("question", "gold", "domain", "wave")
    sets = ["care", "care,harm", "harm", "none"]
    number_r = frame["item"].str.strip_prefix("item ").cast(pl.Int64).to_numpy()
    frame = frame.with_columns(
        label=pl.Series([sets[k] for k in rng.integers(4, size=frame.height)]),
        text=pl.Series([f"words of {n}" for n in number_r]),
        shipped=pl.Series([sets[n % 4] for n in number_r]),
    )
    # Words are ranked where all texts are: here there are too few to rank any.
    one, many = audit_both(tmp_path, frame, options_of(read=ReadOptions(multilabel=",", published="shipped")))
    assert_same_manifest(one, many)
    assert (tmp_path / "many" / "texts.parquet").is_file()


def test_integer_ids_in_files_sorted_by_item_need_no_exchange(tmp_path):
    frame = vote_table(300, 6, seed=6).with_columns(pl.col("item").str.strip_prefix("item ").cast(pl.Int32))
    frame = frame.sort("item")
    source_rows = frame.height // 3
    edge = frame["item"][source_rows]
    files = [frame.filter(pl.col("item") < edge), frame.filter(pl.col("item") >= edge)]
    (tmp_path / "parts").mkdir()
    for n, file in enumerate(files):
        file.write_parquet(tmp_path / "parts" / f"part-{n}.parquet")
    source = str(tmp_path / "parts" / "*.parquet")
    one = audit(source, tmp_path / "one", options_of())
    many = audit(source, tmp_path / "many", options_of(), workers=Here(), part_rows=10**6)
    assert_same_tables(tmp_path / "one", tmp_path / "many", close=LEARNT)
    assert_same_heights(one.manifest, many.manifest, close=LEARNT)
    assert_same_manifest(one.manifest, many.manifest)
    assert pl.read_parquet(tmp_path / "many" / "items.parquet")["item"].dtype == pl.Int64


def test_without_draws(tmp_path):
    assert_same_manifest(*audit_both(tmp_path, vote_table(200, 6, seed=7), options_of(draws=0)))


@pytest.mark.parametrize(
    "fit",
    [
        FitOptions(draws=120, model="paper"),
        FitOptions(draws=120, model="paper", temper="gold"),
        FitOptions(draws=120, model="paper", use_gold=True),
        FitOptions(draws=120, use_gold=True),
        FitOptions(draws=120, use_gold=True, domain_prevalence="off"),
    ],
    ids=["paper", "paper, tempered", "paper, evidence", "mixed, evidence", "mixed, evidence, one domain"],
)
def test_gold_as_evidence_and_for_tempering(tmp_path, fit):
    assert_same_manifest(*audit_both(tmp_path, vote_table(250, 6, seed=12), options_of(fit=fit)))


def test_one_matrix_for_all_tempered(tmp_path):
    # Items of equal counts have the same p but for rounding: that decides their ranks, and on which side of the edge of
    # a bin of the calibration against gold they fall.
    frame = vote_table(250, 6, seed=12).drop("gold")
    options = options_of(fit=FitOptions(draws=120, model="paper", temper="heldout", pooling="full"))
    one, many = audit_both(tmp_path, frame, options, without=["outliers.parquet"])
    assert_same_manifest(one, many)
    for found, expected in zip(many["questions"], one["questions"], strict=True):
        assert found["exponent"] == pytest.approx(expected["exponent"], abs=1e-8)
        assert found["exponent"]["n"] > 0


def test_the_first_of_repeated_votes_is_the_first_in_the_files(tmp_path):
    frame = vote_table(200, 4, seed=8, questions=("care",))
    again = frame.sample(fraction=0.2, seed=8).with_columns(label=pl.lit("yes"))
    options = options_of(read=ReadOptions(on_repeat="first"))
    assert_same_manifest(*audit_both(tmp_path, pl.concat([frame, again]), options))


def test_the_report_is_written_from_the_run_folder(tmp_path):
    source = write_parts(vote_table(150, 5, seed=9), tmp_path / "parts", 2)
    options = AuditOptions(fit=FitOptions(draws=20))
    run = audit(source, tmp_path / "run", options, workers=Here(), part_rows=500)
    assert (run.path / "report.html").stat().st_size > 10_000
    assert json.loads((run.path / "manifest.json").read_text())["cluster"]["parts"] > 1


def test_repeats_are_refused_wherever_they_lie(tmp_path):
    frame = vote_table(100, 4, seed=10, questions=("care",))
    again = frame.filter(pl.col("label").is_not_null()).head(1)
    other = "no" if again["label"][0] == "yes" else "yes"
    source = write_parts(pl.concat([frame, again.with_columns(label=pl.lit(other))]), tmp_path / "parts", 2)
    with pytest.raises(VotesError, match=r"1 of .* contradict another vote"):
        audit(source, tmp_path / "run", options_of(), workers=Here(), part_rows=100)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (options_of(fit=FitOptions(draws=0, model="paper", solver="adam")), "adam"),
        (options_of(grade=GradeOptions(bootstrap=5)), "bootstrap"),
        (options_of(read=ReadOptions(keep=("domain",))), r"keep \(--keep\) needs one machine"),
        (options_of(read=ReadOptions(sheet="Votes")), r"sheet is for other files than Parquet"),
        (options_of(fit_by="annotator"), "'annotator' describes annotators or votes, not items"),
    ],
)
def test_what_needs_one_machine_is_refused(tmp_path, options, words):
    source = write_parts(vote_table(60, 4, seed=11), tmp_path / "parts", 2)
    with pytest.raises(UsageError, match=words):
        audit(source, tmp_path / "run", options, workers=Here(), part_rows=100)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("file", ["wide.csv", "wide.parquet"])
def test_what_workers_cannot_read_is_read_here_and_sent(tmp_path, file):
    wide = pl.DataFrame(
        {"item": range(60)} | {f"ann {a}": [(n * (a + 1) // 3) % 2 for n in range(60)] for a in range(5)}
    )
    (wide.write_csv if file.endswith("csv") else wide.write_parquet)(tmp_path / file)
    one = audit(tmp_path / file, tmp_path / "one", options_of())
    many = audit(tmp_path / file, tmp_path / "many", options_of(), workers=Here(), part_rows=90)
    assert many.manifest["cluster"]["parts"] > 2
    assert_same_tables(tmp_path / "one", tmp_path / "many", close=1e-8)
    assert_same_heights(one.manifest, many.manifest, close=1e-8)
    assert_same_manifest(one.manifest, many.manifest)


def test_annotators_that_share_rows(tmp_path):
    # L-BFGS magnifies the rounding of sums over parts.
    options = options_of(fit=FitOptions(draws=40, pooling="partial"))
    source = write_parts(vote_table(250, 6, seed=12).drop("gold"), tmp_path / "parts", 2)
    one = audit(source, tmp_path / "one", options)
    many = audit(source, tmp_path / "many", options, workers=Here(), part_rows=400)
    assert_same_tables(
        tmp_path / "one", tmp_path / "many", close=1e-5, without=["outliers.parquet", "findings.parquet"]
    )
    assert_same_heights(one.manifest, many.manifest, close=LEARNT)
    assert_same_manifest(one.manifest, many.manifest)
