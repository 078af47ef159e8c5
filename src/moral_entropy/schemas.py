"""The columns of every table of a run; `docs/reference/run-folder.md` says what each means."""

from __future__ import annotations

import polars as pl

PARTS = ("ambiguity", "doubt_votes", "doubt_annotators")
"""The three parts of the entropy."""

BETWEEN = "between_groups"
"""The fourth part. Only runs that found a truth per group of annotators have this column, in `items` and `entropy`."""

ALL_PARTS = (*PARTS, "aleatoric", "epistemic")
"""The same in two parts too, as the model has them."""

ITEMS = pl.Schema(
    {
        "question": pl.String(),
        "item": pl.String(),
        "domain": pl.String(),
        "n_votes": pl.Int32(),
        "n_positive": pl.Int32(),
        "p_map": pl.Float64(),
        "p_model": pl.Float64(),
        "p": pl.Float64(),
        "p_low": pl.Float64(),
        "p_high": pl.Float64(),
        "p_calibrated": pl.Float64(),
        **dict.fromkeys(("p_votes", "p_text"), pl.Float64()),
        "label": pl.String(),
        "entropy": pl.Float64(),
        **dict.fromkeys(ALL_PARTS, pl.Float64()),
        "count": pl.Float64(),
        "part": pl.String(),
        "gold": pl.String(),
        "published": pl.String(),
    }
)
POSTERIOR = pl.Schema(
    {
        "question": pl.String(),
        "item": pl.String(),
        "class": pl.String(),
        **dict.fromkeys(("p_map", "p_model", "p", "p_votes", "p_text"), pl.Float64()),
    }
)
ANNOTATORS = pl.Schema(
    {
        "question": pl.String(),
        "annotator": pl.String(),
        "n_votes": pl.Int64(),
        "disagreement": pl.Float64(),
        "true": pl.String(),
        "voted": pl.String(),
        "probability": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "part": pl.String(),
    }
)
ENTROPY = pl.Schema(
    {
        "question": pl.String(),
        "domain": pl.String(),
        "n_items": pl.Int64(),
        "total": pl.Float64(),
        **dict.fromkeys(ALL_PARTS, pl.Float64()),
    }
)
AUDIT = pl.Schema(
    {
        **dict.fromkeys(("question", "domain", "label", "rule", "reference", "metric"), pl.String()),
        **dict.fromkeys(("value", "low", "high"), pl.Float64()),
        "n": pl.Int64(),
    }
)
AUDIT_RULES = pl.Schema(
    {
        **dict.fromkeys(("question", "label", "rule", "meaning"), pl.String()),
        **dict.fromkeys(("items", "abstained", "tied"), pl.Int64()),
        "same_as": pl.String(),
    }
)
AUDIT_ANY_BY_VOTES = pl.Schema(
    {
        **dict.fromkeys(("question", "label"), pl.String()),
        **dict.fromkeys(("votes", "n"), pl.Int64()),
        **{
            f"{figure}{bound}": pl.Float64()
            for figure in ("curve", "predicted", "expected_fpr", "fpr")
            for bound in ("", "_low", "_high")
        },
    }
)
AUDIT_RELIABILITY = pl.Schema(
    {
        **dict.fromkeys(("question", "part", "label", "bins"), pl.String()),
        "bin": pl.Int64(),
        **dict.fromkeys(("p", "gold", "low", "high"), pl.Float64()),
        "n": pl.Int64(),
    }
)
AUDIT_ADVICE = pl.Schema(
    {
        **dict.fromkeys(("question", "label", "rule"), pl.String()),
        **dict.fromkeys(("cost", "cost_of_p", "excess", "cost_of_majority"), pl.Float64()),
        "n": pl.Int64(),
    }
)
VOTES = pl.Schema(dict.fromkeys(("question", "item", "annotator", "label"), pl.String()))
TEXTS = pl.Schema(dict.fromkeys(("item", "text"), pl.String()))
SPOT_CHECKS = pl.Schema(
    {
        **dict.fromkeys(("question", "item"), pl.String()),
        "sheet": pl.Int32(),
        **dict.fromkeys(("purpose", "domain"), pl.String()),
        "weight": pl.Float64(),
        **dict.fromkeys(("answer", "label"), pl.String()),
    }
)
PUSHES = pl.Schema(
    {
        **dict.fromkeys(("question", "part", "annotator", "voted", "class"), pl.String()),
        **dict.fromkeys(("push", "low", "high"), pl.Float64()),
    }
)
ANNOTATOR_SUMMARY = pl.Schema(
    {
        **dict.fromkeys(("question", "part", "annotator"), pl.String()),
        "n_votes": pl.Int64(),
        **dict.fromkeys(("disagreement", "disagreement_others"), pl.Float64()),
        **{
            f"{figure}{bound}": pl.Float64()
            for figure in ("sensitivity", "specificity", "youden")
            for bound in ("", "_low", "_high")
        },
        "below_chance": pl.Float64(),
        "gold_votes": pl.Int64(),
        **{f"gold_accuracy{bound}": pl.Float64() for bound in ("", "_low", "_high")},
        "role": pl.String(),
    }
)
AGREEMENT = pl.Schema(
    {
        **dict.fromkeys(("question", "domain", "statistic"), pl.String()),
        **dict.fromkeys(("value", "low", "high"), pl.Float64()),
        "n": pl.Int64(),
    }
)
OUTLIERS = pl.Schema(
    {
        **dict.fromkeys(("kind", "question", "domain", "name"), pl.String()),
        "score": pl.Float64(),
        **dict.fromkeys(("reason", "ranking"), pl.String()),
        "rank": pl.Int32(),
    }
)
FINDINGS = pl.Schema(
    {
        **dict.fromkeys(("code", "check", "question", "part", "domain", "subject", "metric"), pl.String()),
        **dict.fromkeys(("value", "low", "high"), pl.Float64()),
        "n": pl.Int64(),
        **dict.fromkeys(("level", "text", "meaning", "remedy"), pl.String()),
    }
)
GROUPS = pl.Schema(
    {
        **dict.fromkeys(("question", "part", "column", "label", "group"), pl.String()),
        **dict.fromkeys(("n_annotators", "n_votes", "n_items"), pl.Int64()),
        **dict.fromkeys(("rate", "difference", "low", "high", "p_value", "p_adjusted"), pl.Float64()),
        **dict.fromkeys(("within", "across", "ratio"), pl.Float64()),
    }
)
GROUP_READINGS = pl.Schema(
    {
        **dict.fromkeys(("question", "part", "column", "label", "reading"), pl.String()),
        **dict.fromkeys(("shared", "parting", "gain", "gain_p", "loss", "loss_p"), pl.Float64()),
        **dict.fromkeys(("n_annotators", "n_votes"), pl.Int64()),
    }
)
GROUP_ITEMS = pl.Schema(
    {
        **dict.fromkeys(("question", "part", "column", "label", "item", "group"), pl.String()),
        **dict.fromkeys(("n_votes", "n_yes"), pl.Int64()),
        **dict.fromkeys(("p", "spread", "between"), pl.Float64()),
    }
)
TARGET_ITEMS = pl.Schema(
    {
        **dict.fromkeys(("question", "part", "item", "label"), pl.String()),
        **dict.fromkeys(("p_target", "p_pool", "effective_votes"), pl.Float64()),
    }
)
TEXT_WORTH = pl.Schema(
    {
        **dict.fromkeys(("question", "by", "name"), pl.String()),
        "n_votes": pl.Int64(),
        **dict.fromkeys(("worth", "low", "high", "gain", "gain_low", "gain_high", "against", "expected"), pl.Float64()),
    }
)
TEXT_CONFLICTS = pl.Schema(
    {
        **dict.fromkeys(("question", "item", "label"), pl.String()),
        **dict.fromkeys(("p_votes", "p_text", "p_both"), pl.Float64()),
        "n_votes": pl.Int64(),
        **dict.fromkeys(("text_label", "words"), pl.String()),
    }
)
SCHEMAS = {
    "items": ITEMS,
    "posterior": POSTERIOR,
    "annotators": ANNOTATORS,
    "entropy": ENTROPY,
    "audit": AUDIT,
    "audit_rules": AUDIT_RULES,
    "audit_any_by_votes": AUDIT_ANY_BY_VOTES,
    "audit_reliability": AUDIT_RELIABILITY,
    "audit_advice": AUDIT_ADVICE,
    "votes": VOTES,
    "texts": TEXTS,
    "pushes": PUSHES,
    "annotator_summary": ANNOTATOR_SUMMARY,
    "agreement": AGREEMENT,
    "outliers": OUTLIERS,
    "findings": FINDINGS,
    "spot_checks": SPOT_CHECKS,
    "groups": GROUPS,
    "group_readings": GROUP_READINGS,
    "group_items": GROUP_ITEMS,
    "target_items": TARGET_ITEMS,
    "text_worth": TEXT_WORTH,
    "text_conflicts": TEXT_CONFLICTS,
}
"""Columns by table. The ids (`item`, `annotator`) are integers where all ids of the input were."""


def with_between(schema: pl.Schema) -> pl.Schema:
    """Return the schema of `items` or `entropy` of a run that found a truth per group: one more column, at the end.

    Examples
    --------
    >>> with_between(ENTROPY).names()[-1]
    'between_groups'
    """
    return pl.Schema({**schema, BETWEEN: pl.Float64()})


def with_ids(schema: pl.Schema, **ids: pl.DataType) -> pl.Schema:
    """Return a schema whose id columns have the type of the ids that were read.

    Examples
    --------
    >>> with_ids(POSTERIOR, item=pl.Int64())["item"]
    Int64
    """
    return pl.Schema({name: ids.get(name, dtype) for name, dtype in schema.items()})
