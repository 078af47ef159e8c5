"""Spread: votes that choose several labels → a yes/no question for each label.

Takes the long table of an export, whose label column may hold lists. With one question the reader of tables does it
all, as for `multilabel`; with several, those that allow several labels are spread here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from moral_entropy.votes.labels import NO_YES, LabelMap, load_label_map, rename_label
from moral_entropy.votes.options import Options
from moral_entropy.votes.source import ReadingLog

if TYPE_CHECKING:
    import polars as pl

Labels = str | Path | Mapping[str, str | bool] | None

ANY_SEPARATOR = ","


def spread_choices(frame: pl.DataFrame, options: Options, log: ReadingLog) -> tuple[pl.DataFrame, Options]:
    """Make votes that choose several labels readable.

    Parameters
    ----------
    frame
        The long table of an export; one without lists of labels comes back as it is.
    options
        What the user asked for. A separator splits texts into labels.
    log
        Where remarks go.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"item": [1, 1], "annotator": ["a", "a"], "question": ["tone", "sure"],
    ...                       "label": [["sad", "cross"], ["yes"]]})
    >>> spread_choices(table, Options(), ReadingLog())[0].select("question", "label").rows()
    [('sure', 'yes'), ('tone: cross', '1'), ('tone: sad', '1')]
    """
    import polars as pl

    several = frame.get_column("question").n_unique() > 1
    if options.multilabel and several and frame.schema["label"] == pl.String:
        frame = frame.with_columns(pl.col("label").str.split(options.multilabel))
    if not isinstance(frame.schema["label"], pl.List):
        return frame, options
    if not several:
        question = frame.item(0, "question")
        log.note(f"{question!r} allows several labels: each is a yes/no question of its own.")
        return frame, replace(options, multilabel=options.multilabel or ANY_SEPARATOR)
    return _spread(frame, replace(options, multilabel=None), log)


def _spread(frame: pl.DataFrame, options: Options, log: ReadingLog) -> tuple[pl.DataFrame, Options]:
    import polars as pl

    length = pl.col("label").list.len()
    counted = frame.group_by("question").agg((length != 1).any().alias("several")).filter("several")
    sets = sorted(counted.get_column("question").to_list())
    single = frame.filter(~pl.col("question").is_in(sets)).with_columns(pl.col("label").list.first())
    change = load_label_map(options.labels)
    log.note(f"each label of {', '.join(repr(name) for name in sets)} is a yes/no question of its own.")
    votes_on = {
        name: frame.filter(pl.col("question") == name) for name in sets if rename_label(name, change) is not None
    }
    log.drop("question left out by the label map", frame.height - single.height - sum(map(len, votes_on.values())))
    parts = [part for votes in votes_on.values() for part in _yes_no(votes, change)]
    chosen = {label for votes in votes_on.values() for label in _labels(votes)}
    spelt = set(single.get_column("label").drop_nulls().to_list())
    return pl.concat([single, *parts]), replace(options, labels=_left_over(change, chosen - spelt, options.labels))


def _yes_no(votes: pl.DataFrame, change: LabelMap) -> Iterator[pl.DataFrame]:
    """Give a table of yes and no for each label of a question, after the label map."""
    import polars as pl

    new = {label: rename_label(label, change) for label in _labels(votes)}
    mapped = pl.element().str.strip_chars().replace_strict(new, default=None, return_dtype=pl.String)
    votes = votes.with_columns(pl.col("label").list.eval(mapped.drop_nulls()))
    no, yes = NO_YES
    for label in sorted({label for label in new.values() if label is not None}):
        named = pl.col("label").list.contains(label)
        answer = pl.when(pl.col("label").is_null()).then(None).when(named).then(pl.lit(yes)).otherwise(pl.lit(no))
        yield votes.with_columns(pl.col("question") + f": {label}", answer.alias("label"))


def _labels(votes: pl.DataFrame) -> list[str]:
    """List the labels that some vote chooses."""
    labels = votes.get_column("label").explode().drop_nulls().str.strip_chars().unique().sort()
    return [label for label in labels.to_list() if label]


def _left_over(change: LabelMap, used: set[str], labels: Labels) -> Labels:
    """Give what is left of a label map once the labels of sets are renamed."""
    folded = {label.casefold() for label in used}
    if not change or not folded & {name.casefold() for name in change}:
        return labels
    left = {name: target for name, target in change.items() if name.casefold() not in folded}
    return {name: False if target is None else target for name, target in left.items()}
