"""Who stands with the majority on the most doubtful items: the paper's switching table, for the page."""

from __future__ import annotations

import polars as pl

from moral_entropy.names import ALL
from moral_entropy.outliers.switching import switching_table
from moral_entropy.report.run import Question, Run

SCHEMA = pl.Schema(
    {"question": pl.String, "annotator": pl.String, "with_majority": pl.Int64, "against_majority": pl.Int64}
)


def switching_rows(run: Run, *, most: int) -> pl.DataFrame:
    """Count, on the items of highest entropy, how often each annotator stands with and against the majority.

    Parameters
    ----------
    run
        The run.
    most
        Annotators a question at most, those with most votes on these items.

    Returns
    -------
    pl.DataFrame
        question, annotator, with_majority, against_majority; no rows where votes have no annotators.
    """
    if run.manifest.get("anonymous") or not run.has("votes"):
        return pl.DataFrame(schema=SCHEMA)
    pieces = [_of_question(run, question, most) for question in run.questions]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *pieces])


def _of_question(run: Run, question: Question, most: int) -> pl.DataFrame:
    top = run.frame("outliers").filter(kind="item", ranking="entropy", domain=ALL, question=question.name)
    names = top["name"].unique(maintain_order=True)
    wanted = pl.col("item").cast(pl.String).is_in(names.implode())
    votes = run.scan("votes").filter(pl.col("question") == question.name, wanted).collect(engine="streaming")
    if votes.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    roles = switching_table(votes, names.to_list(), question=question.name, positive=question.positive).roles
    total = pl.col("with_majority") + pl.col("against_majority")
    kept = roles.sort(total, "annotator", descending=[True, False]).head(most)
    return kept.select(pl.lit(question.name).alias("question"), "annotator", "with_majority", "against_majority")
