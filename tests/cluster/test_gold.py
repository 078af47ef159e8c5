"""A file of gold labels: what one machine makes of it, the votes in parts."""

from __future__ import annotations

import polars as pl
import pytest
from cluster.here import Here
from cluster.tables import vote_table, write_parts
from cluster.test_audit import assert_same_manifest, audit_both, options_of

from moral_entropy.consensus.options import FitOptions
from moral_entropy.errors import VotesError
from moral_entropy.pipeline.audit import audit
from moral_entropy.votes.options import ReadOptions

ONE_PREVALENCE = FitOptions(draws=40, domain_prevalence="off")
"""What domains share is learnt in many rounds; other tests let parts and workers do that."""


def votes_and_gold(seed, questions=("care", "harm"), **columns):
    """Votes without gold, and a file of it with some items that nobody voted on."""
    frame = vote_table(300, 8, seed=seed, questions=questions)
    gold = frame.filter(pl.col("gold").is_not_null()).select("item", "question", "gold").unique(maintain_order=True)
    strangers = pl.DataFrame({"item": ["nobody 1", "nobody 2"], "question": ["care"] * 2, "gold": ["no", "yes"]})
    return frame.drop("gold"), pl.concat([gold, strangers]).with_columns(**columns)


def audit_with(tmp_path, frame, gold, **others):
    gold.write_csv(tmp_path / "gold.csv")
    options = options_of(read=ReadOptions(gold_file=tmp_path / "gold.csv"), fit=ONE_PREVALENCE, **others)
    return audit_both(tmp_path, frame, options)


@pytest.mark.parametrize("fit_by", [None, "wave"])
def test_gold_is_that_of_one_machine(tmp_path, fit_by):
    one, many = audit_with(tmp_path, *votes_and_gold(1), fit_by=fit_by)
    assert_same_manifest(one, many)
    assert many["columns"]["gold"] == "gold.csv"
    assert "2 items of gold.csv have no vote and are ignored." in many["notes"]
    items = pl.read_parquet(tmp_path / "many" / "items.parquet")
    assert items["gold"].is_not_null().sum() == 120
    assert "gold" in pl.read_parquet(tmp_path / "many" / "audit.parquet")["reference"].to_list()


def test_workers_get_the_gold_of_their_items(tmp_path, workers):
    frame, gold = votes_and_gold(2)
    gold.write_csv(tmp_path / "gold.csv")
    options = options_of(read=ReadOptions(gold_file=tmp_path / "gold.csv"), fit=ONE_PREVALENCE)
    assert_same_manifest(*audit_both(tmp_path, frame, options, workers=workers))


def test_ids_that_are_numbers_here_and_text_there(tmp_path):
    frame, gold = votes_and_gold(3, questions=("care",))
    number = pl.col("item").str.strip_prefix("item ").cast(pl.Int64, strict=False)
    gold = gold.with_columns(pl.when(number.is_null()).then("item").otherwise(number.cast(pl.String)).alias("item"))
    assert_same_manifest(*audit_with(tmp_path, frame.with_columns(number), gold.drop("question")))


def test_sets_of_labels_and_another_case(tmp_path):
    frame, gold = votes_and_gold(4, questions=("care",))
    sets = pl.when(pl.col("label") == "yes").then(pl.lit("care,harm")).otherwise(pl.lit("harm")).alias("label")
    frame = frame.drop("question").with_columns(sets)
    frame = frame.with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(pl.lit("none")).otherwise("label").alias("label")
    )
    gold = gold.drop("question").with_columns(gold=pl.lit("Care"))
    gold.write_csv(tmp_path / "gold.csv")
    options = options_of(read=ReadOptions(multilabel=",", gold_file=tmp_path / "gold.csv"))
    assert_same_manifest(*audit_both(tmp_path, frame, options))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda gold: gold.with_columns(item=pl.lit("x") + pl.col("item")), "the votes begin with item 'item 0'"),
        (lambda gold: gold.with_columns(gold=pl.lit("perhaps")), "60 items have the gold label 'perhaps' on 'care'"),
        (lambda gold: pl.concat([gold, gold.with_columns(gold=pl.lit("no"))]), "items have more than one gold label"),
        (lambda gold: gold.drop("question"), "does not say which of the 2 questions"),
        (
            lambda gold: gold.rename({"item": "thing", "gold": "truth", "question": "why"}),
            "looks like the item",
        ),
    ],
)
def test_what_is_wrong_is_said_in_the_same_words(tmp_path, change, words):
    frame, gold = votes_and_gold(5)
    change(gold).write_csv(tmp_path / "gold.csv")
    source = write_parts(frame, tmp_path / "parts", 2)
    options = options_of(read=ReadOptions(gold_file=tmp_path / "gold.csv"))
    with pytest.raises(VotesError, match=words) as one:
        audit(source, tmp_path / "one", options)
    with pytest.raises(VotesError) as many:
        audit(source, tmp_path / "many", options, workers=Here(), part_rows=500)
    assert str(many.value) == str(one.value)
    assert not (tmp_path / "many").exists()
