"""Two audits → how the grades of every rule changed.

Takes the frames of `audit.parquet`. They hold no draws, so an interval of a difference is put together from the two
intervals as if the audits were independent (the square-and-add rule of Zou and Donner, 2008). Where the runs share
items or votes, their errors are alike and the interval is wider than need be, not narrower. Two audits of the same file
that agree to the last digit are one audit, and the change is 0.
"""

from __future__ import annotations

import polars as pl

METRICS = ("fpr", "fnr", "fdr")
GROUP = ("question", "domain", "label", "rule", "reference", "metric")

GRADES = pl.Schema(
    {
        **dict.fromkeys(GROUP, pl.String()),
        **{f"{name}{side}": pl.Float64() for side in ("_a", "_b") for name in ("value", "low", "high")},
        **dict.fromkeys(("change", "low", "high"), pl.Float64()),
        **dict.fromkeys(("n_a", "n_b"), pl.Int64()),
    }
)


def grade_changes(audit_a: pl.DataFrame, audit_b: pl.DataFrame, *, same_input: bool = False) -> pl.DataFrame:
    """Compute the change of every grade that both audits have.

    Parameters
    ----------
    audit_a, audit_b
        As in `audit.parquet`.
    same_input
        Whether both are audits of the same file.

    Examples
    --------
    >>> row = dict.fromkeys(GROUP, "(all)")
    >>> row |= {"metric": "fpr", "rule": "any", "value": 0.3, "low": 0.26, "high": 0.33}
    >>> a, b = pl.DataFrame([row | {"n": 90}]), pl.DataFrame([row | {"n": 80, "value": 0.2, "low": 0.17, "high": 0.23}])
    >>> grade_changes(a, b).select(pl.col("change", "low", "high").round(3)).row(0)
    (-0.1, -0.142, -0.05)
    """
    sides = [_renamed(audit, side) for audit, side in ((audit_a, "_a"), (audit_b, "_b"))]
    joined = sides[0].join(sides[1], on=GROUP, how="inner", maintain_order="left")
    change = pl.col("value_b") - pl.col("value_a")
    one_audit = pl.all_horizontal(pl.col(f"{name}_a") == pl.col(f"{name}_b") for name in ("value", "low", "high", "n"))
    reach = pl.when(~(one_audit & same_input))
    below, above = _root(_reach("b", "low"), _reach("a", "high")), _root(_reach("b", "high"), _reach("a", "low"))
    return (
        joined.with_columns(
            change.alias("change"),
            (change - reach.then(below).otherwise(0.0)).alias("low"),
            (change + reach.then(above).otherwise(0.0)).alias("high"),
        )
        .select(*GRADES)
        .match_to_schema(GRADES)
    )


def _renamed(audit: pl.DataFrame, side: str) -> pl.DataFrame:
    figures = {name: f"{name}{side}" for name in ("value", "low", "high", "n")}
    return audit.filter(pl.col("metric").is_in(METRICS)).rename(figures)


def _reach(side: str, end: str) -> pl.Expr:
    """Return how far a figure's interval reaches from it: 0 where the figure is outside of it."""
    value = pl.col(f"value_{side}")
    distance = value - pl.col(f"low_{side}") if end == "low" else pl.col(f"high_{side}") - value
    return distance.clip(lower_bound=0.0)


def _root(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    return (one**2 + other**2).sqrt()


def rules_of(audit: pl.DataFrame) -> list[str]:
    """Name the rules of an audit, in its order."""
    return audit["rule"].unique(maintain_order=True).to_list()
