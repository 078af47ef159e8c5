"""The columns of every table of a run; `docs/reference/run-folder.md` says what each means."""

from __future__ import annotations

import polars as pl

PARTS = ("ambiguity", "doubt_votes", "doubt_annotators")
"""The three parts of the entropy."""

BETWEEN = "between_groups"
"""The fourth part. Only runs that found a truth per group of annotators have this column, in `items` and `entropy`."""

SCORE = "score_given"
"""What a vote said in numbers: a column of `votes` where a question asks for scores."""

ALL_PARTS = (*PARTS, "aleatoric", "epistemic")
"""The same in two parts too, as the model has them."""

NAMES = (
    "question item domain label part published class annotator true voted rule reference metric meaning same_as bins "
    "text role statistic kind name reason ranking code check subject level remedy purpose answer column group reading "
    "by text_label words gold cut"
)
COUNTS = "n_votes n_items n items abstained tied votes bin gold_votes n_annotators n_yes"
SMALL_COUNTS = "n_positive rank sheet"

TYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(NAMES.split(), pl.String()),
    **dict.fromkeys(COUNTS.split(), pl.Int64()),
    **dict.fromkeys(SMALL_COUNTS.split(), pl.Int32()),
}
"""The type of a column in every table that has it; of those that are not listed, a figure."""

COLUMNS = {
    "items": "question item domain n_votes n_positive p_map p_model p p_low p_high p_calibrated p_votes p_text label "
    "entropy ambiguity doubt_votes doubt_annotators aleatoric epistemic count part gold published",
    "posterior": "question item class p_map p_model p p_votes p_text",
    "annotators": "question annotator n_votes disagreement true voted probability low high part",
    "entropy": "question domain n_items total ambiguity doubt_votes doubt_annotators aleatoric epistemic",
    "audit": "question domain label rule reference metric value low high n",
    "audit_rules": "question label rule meaning items abstained tied same_as",
    "audit_any_by_votes": "question label votes n curve curve_low curve_high predicted predicted_low predicted_high "
    "expected_fpr expected_fpr_low expected_fpr_high fpr fpr_low fpr_high",
    "audit_reliability": "question part label bins bin p gold low high n",
    "audit_advice": "question label rule cost cost_of_p excess cost_of_majority n",
    "votes": "question item annotator label",
    "texts": "item text",
    "contributions": "question part annotator voted class contribution low high",
    "annotator_summary": "question part annotator n_votes disagreement disagreement_others sensitivity sensitivity_low "
    "sensitivity_high specificity specificity_low specificity_high youden youden_low youden_high below_chance "
    "gold_votes gold_accuracy gold_accuracy_low gold_accuracy_high role",
    "agreement": "question domain statistic value low high n",
    "outliers": "kind question domain name score reason ranking rank",
    "findings": "code check question part domain subject metric value low high n level text meaning remedy",
    "spot_checks": "question item sheet purpose weight answer label",
    "groups": "question part column label group n_annotators n_votes n_items rate difference low high p_value "
    "p_adjusted within across ratio",
    "group_readings": "question part column label reading shared parting gain gain_p loss loss_p n_annotators n_votes",
    "group_items": "question part column label item group n_votes n_yes p spread between",
    "target_items": "question part item label p_target p_pool effective_votes",
    "text_worth": "question by name n_votes worth low high gain gain_low gain_high against expected",
    "scores": "question part item n_votes mean low high median mean_votes gold",
    "raters": "question part annotator n_votes bias bias_low bias_high spread spread_low spread_high slope slope_low "
    "slope_high role",
    "rating_rules": "question part rule reference cut metric value n",
    "text_conflicts": "question item label p_votes p_text p_both n_votes text_label words",
}
"""The columns of every table, in order."""

ALIASES = {"pushes": "contributions", "push": "contribution"}
"""Names of tables and columns of 0.2, and what they are called since; they go in 0.4."""

SCHEMAS = {
    table: pl.Schema({name: TYPES.get(name, pl.Float64()) for name in names.split()})
    for table, names in COLUMNS.items()
}
"""Columns by table. The ids (`item`, `annotator`) are integers where all ids of the input were."""

# Half the bytes in the largest table; of the curve of reliability, gold is a share, of scores a score.
SCHEMAS["items"]["n_votes"] = pl.Int32()
SCHEMAS["audit_reliability"]["gold"] = SCHEMAS["scores"]["gold"] = pl.Float64()


def with_between(schema: pl.Schema) -> pl.Schema:
    """Return the schema of `items` or `entropy` of a run that found a truth per group: one more column, at the end.

    Examples
    --------
    >>> with_between(SCHEMAS["entropy"]).names()[-1]
    'between_groups'
    """
    return pl.Schema({**schema, BETWEEN: pl.Float64()})


def with_ids(schema: pl.Schema, **ids: pl.DataType) -> pl.Schema:
    """Return a schema whose id columns have the type of the ids that were read.

    Examples
    --------
    >>> with_ids(SCHEMAS["posterior"], item=pl.Int64())["item"]
    Int64
    """
    return pl.Schema({name: ids.get(name, dtype) for name, dtype in schema.items()})
