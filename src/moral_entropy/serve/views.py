"""What every page of the app shows, as plain values: the same for a browser and for a script (`.json`).

A view takes the desk, the query of the address and who sits there. Texts go out as they are: the page puts them in as
text and never as markup.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from moral_entropy.comparison import Comparison, compare
from moral_entropy.decisions import CAUSES, LABELLING, Decision, Key
from moral_entropy.errors import UsageError
from moral_entropy.explanation import explain_item
from moral_entropy.model.entropy import MOST_WRONG
from moral_entropy.report.export import TOOLS, decided_tasks
from moral_entropy.report.page import annotator_rows, question_cells, rules_section, table
from moral_entropy.report.words import shown_size, shown_title
from moral_entropy.runs.run import Run
from moral_entropy.serve.desk import CATEGORIES, Desk
from moral_entropy.verdict.figures import KEYS, mean_over_items, wrong_by
from moral_entropy.verdict.verdict import verdict_of
from moral_entropy.votes.table import Ints

PAGE, BULK, SURE = 20, 50, 0.05
"""Items on a page; items that are confirmed together; largest chance of error of those."""

MATRIX, LISTED, EXAMPLES = 16, 200, 5
"""Annotators of the matrix of pairs; decisions and moved items that are listed; examples of a confusion."""

Query = Mapping[str, str]
Data = dict[str, Any]


def start(desk: Desk, query: Query, person: str) -> Data:
    """Say where the run stands: the verdict, what was decided, what is next."""
    kinds = Counter(entry["kind"] for entry in desk.log.decided().values())
    by_person = Counter(entry["who"] for people in desk.log.standing().values() for entry in people.values())
    return {
        "title": shown_title(desk.run),
        "size": shown_size(desk.run),
        "verdict": verdict(desk),
        "questions": question_cells(desk.run),
        "check": _check_progress(desk),
        "settled": kinds["settle"] + kinds["confirm"],
        "expected_wrong": desk.expected_wrong(),
        "conflicts": len(desk.log.conflicts()),
        "people": dict(by_person),
        "torn": desk.log.n_torn,
        "job": desk.job,
    }


def verdict(desk: Desk) -> Data:
    """Return what the labels checked so far say of all labels."""
    plain = asdict(verdict_of(desk.with_decisions()))
    return {name: plain[name] for name in ("answer", "title", "text", "status", "error")}


def _check_progress(desk: Desk) -> Data:
    rows, decided = desk.to_check(), desk.log.decided()
    return {"rows": len(rows), "done": sum(row["answer"] is not None or key in decided for key, row in rows.items())}


def check(desk: Desk, query: Query, person: str) -> Data:
    """Return the next item to check, blind: its text and labels, neither votes nor p; at the end the verdict."""
    waiting = desk.waiting((key for key, row in desk.to_check().items() if row["answer"] is None), person)
    waiting.sort(key=lambda key: key != _named(query))
    data: Data = {"progress": _check_progress(desk) | {"left": len(waiting)}, "kind": "check"}
    return data | ({"item": _blind(desk, waiting[0])} if waiting else {"item": None, "verdict": verdict(desk)})


def settle(desk: Desk, query: Query, person: str) -> Data:
    """Return the next item to settle in an order; its votes are shown once it is decided."""
    order = query.get("order") if query.get("order") in desk.orders else "gain"
    question = query.get("question") if query.get("question") in desk.questions else None
    named_key = _named(query)
    queue = (key for key in desk.queue(str(order)) if named_key or question in (None, key[0]))
    waiting = desk.waiting(queue, person)
    key = named_key or (waiting[0] if waiting else None)
    kinds = [entry["kind"] for entry in desk.log.decided().values()]
    return {
        "kind": "settle",
        "order": order,
        "orders": desk.orders,
        "causes": CAUSES,
        "question": question,
        "questions": list(desk.questions),
        "progress": {"done": kinds.count("settle"), "left": len(waiting), "expected_wrong": desk.expected_wrong()},
        "final": bool(named_key and named_key in desk.log.conflicts()),
        "item": None if key is None else _blind(desk, key) | {"own": key[1] in desk.own_items(person)},
    }


def _named(query: Query) -> Key | None:
    return (query["question"], query["item"]) if "item" in query and "question" in query else None


def _blind(desk: Desk, key: Key) -> Data:
    """Return what somebody may see of an item before deciding on it."""
    question, item = key
    row = desk.row(question, item)
    texts = _texts(desk, [item])
    facts = {"question": question, "item": item, "domain": row["domain"], "text": texts.get(item)}
    return facts | {"labels": desk.questions[question].labels}


def _texts(desk: Desk, items: Iterable[str]) -> dict[str, str]:
    if not desk.run.has("texts"):
        return {}
    ids = pl.Series(list(items), dtype=pl.String).cast(desk.index.schema["item"])
    rows = desk.run.scan("texts").filter(pl.col("item").is_in(ids.implode())).collect()
    return {str(item): text for item, text in rows.iter_rows() if text is not None}


def item(desk: Desk, query: Query, person: str) -> Data:
    """Return everything about one item: its votes, what each adds, and what was decided."""
    key = _named(query)
    if key is None:
        msg = "an item is named by ?question=…&item=…."
        raise LookupError(msg)
    decisions = [_plain(entry) for entry in desk.log.standing().get(key, {}).values()]
    return _blind(desk, key) | {"explanation": explanation(desk, key), "decisions": decisions}


def explanation(desk: Desk, key: Key) -> Data:
    """Return why the label of an item is what it is."""
    [explained] = explain_item(desk.run, key[1], question=key[0])
    steps = [asdict(step) for step in explained.steps]
    if desk.run.manifest["anonymous"]:
        steps = [step | {"annotator": step["voted"] and "somebody"} for step in steps]
    return asdict(explained) | {"steps": steps}


def changed(desk: Desk, entry: Decision) -> Data:
    """Say what a decision changed, and whose votes it bears out."""
    key = entry["question"], entry["item"]
    explained = explanation(desk, key)
    votes = [(step["annotator"], step["voted"]) for step in explained["steps"] if step["annotator"] is not None]
    settlements = [each for each in desk.log.decided().values() if each["kind"] == "settle"]
    return {
        "explanation": explained,
        "was": entry["was"],
        "now": entry["label"],
        "right": [name for name, voted in votes if voted == entry["label"]],
        "wrong": [name for name, voted in votes if voted != entry["label"]],
        "risk": entry["risk"],
        "expected_wrong": desk.expected_wrong(),
        "consensus_right": sum(each["label"] == each["was"] for each in settlements),
        "settled": len(settlements),
    }


def bulk(desk: Desk, query: Query, person: str) -> Data:
    """Return unanimous items of which the consensus is sure, to be confirmed together, with the errors expected."""
    unanimous = (pl.col("agree") == pl.col("n_votes")) & (pl.col("n_votes") > 1) & (pl.col("wrong") <= SURE)
    # Items on a sheet are left out: the spot check would be answered in bulk.
    left_out = _keys(desk, [*desk.log.standing(), *desk.to_check()])
    rows = desk.index.filter(unanimous).join(left_out, on=KEYS, how="anti", maintain_order="left")
    n_left, rows = rows.height, rows.sort("wrong", maintain_order=True).head(BULK)
    return {
        "left": n_left,
        "sure": 1 - SURE,
        "expected_wrong": float(rows["wrong"].sum()),
        "items": _listed(desk, rows),
    }


def _keys(desk: Desk, keys: Iterable[Key]) -> pl.DataFrame:
    frame = pl.DataFrame(list(keys), schema={"question": pl.String, "item": pl.String}, orient="row")
    return frame.select(pl.col("question").cast(pl.Categorical), pl.col("item").cast(desk.index.schema["item"]))


def _listed(desk: Desk, rows: pl.DataFrame) -> list[Data]:
    texts, decided = _texts(desk, rows["item"].cast(pl.String)), desk.log.decided()
    columns = ("question", "item", "domain", "label", "p", "wrong", "n_votes", "agree")
    listed = []
    for row in rows.select(columns).iter_rows(named=True):
        key = (row["question"], str(row["item"]))
        text = texts.get(key[1])
        decision = decided.get(key)
        facts = {"item": key[1], "text": text and text[:300], "decided": decision and decision["label"]}
        listed.append(row | facts)
    return listed


# --- Look ------------------------------------------------------------------------------------------------------------

SHOW: dict[str, tuple[str, pl.Expr]] = {
    "all": ("all items", pl.lit(value=True)),
    "uncertain": ("uncertain: wrong with a chance above a quarter", pl.col("wrong") > MOST_WRONG),
    "differs": ("most votes and the consensus differ", pl.col("differs")),
    "split": ("votes differ", pl.col("agree") < pl.col("n_votes")),
    "unanimous": ("votes agree", pl.col("agree") == pl.col("n_votes")),
}
SORTS = {
    "unsure": ("least sure first", "wrong", -1),
    "sure": ("surest first", "wrong", 1),
    "votes": ("most votes first", "n_votes", -1),
}


def items(desk: Desk, query: Query, person: str) -> Data:
    """Return one page of items by facets, words, or two annotators who differ; the least sure first."""
    facets = {name: query[name] for name in CATEGORIES if query.get(name)}
    rows, show = desk.index, query.get("show", "all")
    if show == "decided":
        rows = rows.join(_keys(desk, desk.log.decided()), on=KEYS, how="semi", maintain_order="left")
    elif show in SHOW and show != "all":
        rows = rows.filter(SHOW[show][1])
    if words := query.get("q", "").strip():
        rows = rows.filter(pl.col("item").is_in(_matching(desk, words).implode()))
    if query.get("a") and query.get("b"):
        rows = rows.join(_apart(desk, query["a"], query["b"]), on=KEYS, how="semi", maintain_order="left")
    counts = {}
    for name in CATEGORIES:
        values = _within(rows, facets, except_for=name)[name].drop_nulls().value_counts(sort=True, name="n")
        counts[name] = values.cast({name: pl.String}).sort("n", name, descending=[True, False]).head(50).rows()
    rows = _within(rows, facets)
    sort = query.get("sort") if query.get("sort") in SORTS else "unsure"
    page = max(int(query["page"]) if query.get("page", "").isdigit() else 1, 1)
    on_list = np.zeros(desk.index.height, dtype=bool)
    on_list[rows["row"].to_numpy()] = True
    order_i = _order(desk, *SORTS[str(sort)][1:])
    return {
        "total": rows.height,
        "page": page,
        "pages": max(-(-rows.height // PAGE), 1),
        "facets": counts,
        "shows": {name: title for name, (title, _) in SHOW.items()} | {"decided": "decided"},
        "sorts": {name: title for name, (title, _, _) in SORTS.items()},
        "query": {**facets, "show": show, "sort": sort, "q": words, "a": query.get("a", ""), "b": query.get("b", "")},
        "items": _listed(desk, desk.index[order_i[on_list[order_i]][(page - 1) * PAGE : page * PAGE]]),
    }


@lru_cache(maxsize=8)
def _order(desk: Desk, column: str, sign: int) -> Ints:
    """Return all rows in the order of a column: sorted once, as there may be very many."""
    return np.argsort(sign * desk.index[column].to_numpy(), kind="stable")


def _within(rows: pl.DataFrame, facets: Query, except_for: str = "") -> pl.DataFrame:
    """Return the rows that have certain categories."""
    conditions = [pl.col(name) == value for name, value in facets.items() if name != except_for]
    return rows.filter(*conditions) if conditions else rows


@lru_cache(maxsize=8)
def _matching(desk: Desk, words: str) -> pl.Series:
    """Return the items whose id or text has these words, in capitals or not."""
    pattern = f"(?i){re.escape(words)}"
    items = desk.index["item"].clear()
    if desk.run.has("texts"):
        items = desk.run.scan("texts").filter(pl.col("text").str.contains(pattern)).select("item").collect()["item"]
    if " " not in words:
        items = pl.concat([items, desk.index["item"].filter(desk.index["item"].cast(pl.String).str.contains(pattern))])
    return items


def _apart(desk: Desk, a: str, b: str) -> pl.DataFrame:
    """Return the items on which two annotators gave different labels."""
    votes = desk.run.scan("votes").filter(pl.col("annotator").cast(pl.String).is_in([a, b]))
    by_item = votes.group_by(KEYS).agg(pl.col("label", "annotator").n_unique())
    rows = by_item.filter(pl.col("label") > 1, pl.col("annotator") > 1).select(KEYS).collect()
    return rows.with_columns(pl.col("question").cast(pl.Categorical))


def annotators(desk: Desk, query: Query, person: str) -> Data:
    """Return the annotators, those worth a look first, and how often each two of them agree."""
    question = query.get("question") if query.get("question") in desk.questions else next(iter(desk.questions))
    people, _ = annotator_rows(desk.run)
    people = people.filter(question=question)
    right = pl.col("label") == pl.col("truth")
    tallies = _decided_votes(desk).group_by("annotator").agg(pl.format("{} of {}", right.sum(), pl.len()))
    right_of = dict(tallies.iter_rows())
    rows = [
        (row["annotator"], row["sentence"], f"{row['n_votes']:,}", right_of.get(row["annotator"], "–"))
        for row in people.iter_rows(named=True)
    ]
    names, cells = pairs(desk.run, str(question))
    return {
        "question": question,
        "questions": list(desk.questions),
        "people": table(("annotator", "in a sentence", "votes", "right of decided"), rows, 2),
        "annotators": names,
        "pairs": cells,
    }


def _decided_votes(desk: Desk) -> pl.DataFrame:
    """Return the votes on decided items, with what was decided."""
    decided = desk.log.decided()
    rows = [(question, item, entry["label"]) for (question, item), entry in decided.items()]
    truth = pl.DataFrame(rows, schema=dict.fromkeys((*KEYS, "truth"), pl.String), orient="row")
    truth = truth.with_columns(pl.col("item").cast(desk.index.schema["item"]))
    votes = desk.run.table("votes", where=pl.col("item").is_in(truth["item"].unique().implode()))
    return votes.join(truth, on=KEYS).with_columns(pl.col("annotator").cast(pl.String))


@lru_cache(maxsize=16)
def pairs(run: Run, question: str) -> tuple[list[str], list[list[Any]]]:
    """Return the annotators with most votes, and per pair of them: items both voted on, and on how many they agree."""
    summary = run.annotators.filter(question=question).drop_nulls("annotator")
    ranked = summary.sort("n_votes", "annotator", descending=[True, False]).head(MATRIX)
    names = ranked["annotator"].cast(pl.String).to_list()
    votes = run.scan("votes").filter(pl.col("question") == question)
    votes = votes.select("item", "label", name=pl.col("annotator").cast(pl.String))
    votes = votes.filter(pl.col("name").is_in(names))
    twice = votes.join(votes, on="item").filter(pl.col("name") < pl.col("name_right"))
    n_equal = (pl.col("label") == pl.col("label_right")).sum()
    by_pair = twice.group_by("name", "name_right").agg(n=pl.len(), same=n_equal)
    return names, [list(row) for row in by_pair.sort("name", "name_right").collect().iter_rows()]


def rules(desk: Desk, query: Query, person: str) -> Data:
    """Return how the rules fare that people use instead of a model."""
    section = rules_section(desk.run)
    n_differ = desk.index.filter("differs").height
    return {name: section[name] for name in ("reference", "advice", "table", "words")} | {"n_differ": n_differ}


# --- Decisions -------------------------------------------------------------------------------------------------------


def _plain(entry: Decision) -> Data:
    names = ("id", "time", "who", "kind", "question", "item", "label", "cause", "why", "was", "final")
    return {name: entry.get(name) for name in names}


def decisions(desk: Desk, query: Query, person: str) -> Data:
    """Return the last decisions, and the items on which people differ."""
    by_key = desk.log.standing()
    last = [_plain(entry) for entry in desk.log.entries() if "item" in entry][-LISTED:]
    conflicts = [[_plain(entry) for entry in by_key[key].values()] for key in desk.log.conflicts()]
    undone = {entry["of"] for entry in desk.log.entries() if entry["kind"] == "undo"}
    last = [row | {"undone": row["id"] in undone} for row in reversed(last)]
    return {"decisions": last, "total": len(desk.log.entries()), "conflicts": conflicts, "tools": list(TOOLS)}


def confused(desk: Desk, query: Query, person: str) -> Data:
    """Return what was confused with what: votes against decisions, with causes and examples for the codebook."""
    votes, decided = _decided_votes(desk), desk.log.decided()
    wrong = votes.filter(pl.col("label") != pl.col("truth"))
    cells = wrong.group_by("question", "truth", "label", maintain_order=True).agg(
        votes=pl.len(),
        items=pl.col("item").n_unique(),
        examples=pl.col("item").cast(pl.String).unique(maintain_order=True),
    )
    rows = []
    for row in cells.sort("votes", "truth", "label", descending=[True, False, False]).iter_rows(named=True):
        entries = [decided[row["question"], item] for item in row["examples"]]
        causes = Counter(entry["cause"] for entry in entries if entry.get("cause"))
        texts = _texts(desk, row["examples"][:EXAMPLES])
        examples = [_plain(entry) | {"text": (texts.get(entry["item"]) or "")[:200]} for entry in entries[:EXAMPLES]]
        rows.append(row | {"causes": dict(causes.most_common()), "examples": examples})
    causes = Counter(entry["cause"] for entry in decided.values() if entry.get("cause"))
    labelled = [entry for entry in decided.values() if entry["kind"] in LABELLING[:2]]
    n_right = sum(entry["label"] == entry["was"] for entry in labelled)
    return {"cells": rows, "causes": dict(causes.most_common()), "decided": len(labelled), "consensus_right": n_right}


def moved(desk: Desk, query: Query, person: str) -> Data:
    """Return how far the new run is, and what moved in it."""
    return desk.job | {
        "folder": str(desk.run.folder),
        "decided": len(desk.log.decided()),
        "left_out": len(desk.log.conflicts()),
    }


def describe(desk: Desk, new: Run) -> Data:
    """Compare a new run with that on the desk."""
    changes = compare(desk.run, new)
    if not isinstance(changes, Comparison):
        return {"sentence": "the runs share no item"}
    keys = [f"{question}\n{item}" for question, item in desk.log.decided()]
    rows = changes.items.with_columns(pl.col("item").cast(pl.String))
    rows = rows.with_columns(decided=pl.concat_str("question", "item", separator="\n").is_in(keys))
    flips = rows.filter("label_changed")
    columns = ("question", "item", "label_a", "label_b", "p_a", "p_b", "moved", "decided")
    movers = rows.filter(~pl.col("decided") & (pl.col("moved") > 0.005)).head(LISTED)
    return {
        "labels_changed": flips.height,
        "labels_changed_undecided": flips.filter(~pl.col("decided")).height,
        "before": mean_over_items(desk.run, wrong_by(desk.run)),
        "after": mean_over_items(new, wrong_by(new)),
        "items": movers.select(columns).to_dicts(),
    }


def export(desk: Desk, name: str) -> bytes:
    """Return decisions as a gold file (`gold.csv`), or as tasks of an annotation tool (`label-studio.json`, …)."""
    decided = desk.log.decided()
    if name == "gold.csv":
        rows = [(question, item, entry["label"]) for (question, item), entry in decided.items()]
        return pl.DataFrame(rows, schema=["question", "item", "gold"], orient="row").write_csv().encode()
    tool, _, _ = name.partition(".")
    if tool not in TOOLS or not decided:
        msg = f"there is nothing to export as {name!r}: decide something, then gold.csv, or a tool: {', '.join(TOOLS)}."
        raise UsageError(msg)
    answers = {key: (entry["who"], entry["label"]) for key, entry in decided.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        decided_tasks(desk.run, answers, path, tool)
        return path.read_bytes()


VIEWS: dict[str, Callable[[Desk, Query, str], Data]] = {
    view.__name__: view
    for view in (start, check, settle, bulk, item, items, annotators, rules, decisions, confused, moved)
}
"""Every page by its name, which is its address too."""
