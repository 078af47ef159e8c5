"""A run on somebody's desk: what its lists need in memory, the decisions so far, and what to decide next.

Lists are made from a few columns of all items, held in memory; texts, votes and explanations are read from the run
folder for the items on a page. Decisions are appended to `decisions.jsonl`; nothing else in the folder is touched.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import polars as pl

from moral_entropy.decisions import CAUSES, DECISIONS, LABELLING, Decision, DecisionLog, Key, agreed, with_decisions
from moral_entropy.errors import MoralEntropyError, UsageError
from moral_entropy.items.rank import first
from moral_entropy.judges.roles import LLM
from moral_entropy.pipeline import settle
from moral_entropy.runs.run import Question, Run
from moral_entropy.verdict.figures import KEYS, wrong_by
from moral_entropy.verdict.sheet import make_sheet, spot_checks

MOST_QUEUED = 5_000
"""Items that are queued in one order; more are offered once a new run is made."""

MOST_WORDS = 2_000
"""Characters of a note, at most."""

CATEGORIES = ("question", "domain", "label")


class Desk:
    """A run, its decisions, and the people who decide.

    Parameters
    ----------
    run
        A run folder.
    names
        Who decides; with several names the browser asks who sits there.
    """

    def __init__(self, run: Run, names: Sequence[str]) -> None:
        self.run, self.names = run, tuple(names)
        self.questions: dict[str, Question] = {question.name: question for question in run.questions}
        self.log = DecisionLog(run.folder / DECISIONS)
        self.job: dict[str, Any] = {"status": "none"}
        self.index = self._index()
        self._lock = Lock()
        self._sheets: list[pl.DataFrame] = []
        self._queues: dict[str, list[Key]] = {}

    def _index(self) -> pl.DataFrame:
        """Return what lists are sorted and filtered by, one row per question and item."""
        run, n_for = self.run, pl.col("n_positive").cast(pl.Int32)
        two = {name: entry.positive for name, entry in self.questions.items() if entry.positive is not None}
        is_two = pl.col("question").is_in(list(two))
        # Of two labels, votes for the positive one are counted; of more, those for the consensus label.
        is_positive = pl.col("label") == pl.col("question").replace_strict(two, default=None, return_dtype=pl.String)
        mine = pl.when(is_two & ~is_positive).then(pl.col("n_votes") - n_for).otherwise(n_for)
        index = (
            run.scan("items")
            .select(*KEYS, "domain", "label", "p", "n_votes", "count", wrong=wrong_by(run), agree=mine)
            .with_columns(pl.col(CATEGORIES).cast(pl.Categorical), pl.col("p").cast(pl.Float32))
            .with_columns(risk=pl.col("wrong") * pl.col("count"), differs=2 * pl.col("agree") < pl.col("n_votes"))
            .drop("count")
            .with_row_index("row")
            .collect()
        )
        return index if len(two) == len(self.questions) else self._with_pluralities(index, list(two))

    def _with_pluralities(self, index: pl.DataFrame, two: list[str]) -> pl.DataFrame:
        """Correct `differs` where there are more than two labels: another label must have more votes."""
        in_doubt = index.lazy().filter("differs").select(pl.col("question").cast(pl.String), "item", "agree")
        votes = self.run.scan("votes").join(in_doubt, on=KEYS, how="semi").group_by(*KEYS, "label").len()
        tops = votes.group_by(KEYS).agg(top=pl.col("len").max()).with_columns(pl.col("question").cast(pl.Categorical))
        joined = index.lazy().join(tops, on=KEYS, how="left", maintain_order="left")
        is_two = pl.col("question").cast(pl.String).is_in(two)
        return (
            joined.with_columns(pl.col("differs") & (is_two | (pl.col("top") > pl.col("agree")))).drop("top").collect()
        )

    # --- What was decided -------------------------------------------------------------------------------------------

    def expected_wrong(self) -> float:
        """Return how many labels are expected wrong by p, of those that nobody has decided on."""
        decided = sum(float(entry.get("risk") or 0.0) for entry in self.log.decided().values())
        return max(float(self.index["risk"].sum()) - decided, 0.0)

    def with_decisions(self) -> Run:
        """Return the run with the decisions as answers of its spot checks."""
        return with_decisions(self.run, self.log.entries(), self.sheet())

    def sheet(self) -> pl.DataFrame:
        """Return the rows to check blind: those of the run, and the further sheets that were asked for."""
        n_more = len([entry for entry in self.log.entries() if entry["kind"] == "sheet"])
        with self._lock:
            while len(self._sheets) <= n_more:
                rows = self._sheets[-1] if self._sheets else spot_checks(self.run)
                if self._sheets or rows.filter(purpose="measure").is_empty():
                    # An error where all items are on sheets already.
                    with suppress(UsageError):
                        rows = pl.concat([rows, make_sheet(replace(self.run, tables={"spot_checks": rows}))])
                self._sheets.append(rows)
            return self._sheets[n_more]

    def to_check(self) -> dict[Key, dict[str, Any]]:
        """Return the rows of the sheets that measure, by question and item."""
        rows = self.sheet().filter(purpose="measure").with_columns(pl.col("item").cast(pl.String))
        return {(row["question"], row["item"]): row for row in rows.iter_rows(named=True)}

    # --- What to decide next ----------------------------------------------------------------------------------------

    def queue(self, order: str) -> list[Key]:
        """Return the items to settle in one order, most to be gained first."""
        if order not in self._queues:
            rows = ORDERS[order][1](self)
            at = first(rows["score"].to_numpy(), MOST_QUEUED)
            keys = rows[at].select(pl.col(KEYS).cast(pl.String)).rows()
            self._queues[order] = [(str(question), str(item)) for question, item in keys]
        return self._queues[order]

    def waiting(self, keys: Iterable[Key], person: str) -> list[Key]:
        """Return which items one person may decide on, in their order.

        What the person voted on, passed over or has to check blind comes after all others, and so does what is the
        turn of somebody else. What others were unsure of is open; what they have decided is not.
        """
        by_key, turn, sheet = self.log.standing(), self.names.index(person), self.to_check()
        places = []
        for rank, key in enumerate(keys):
            by_person = by_key.get(key, {})
            mine = by_person.get(person)
            if agreed(by_person) is None and (mine is None or mine["kind"] == "skip"):
                later = mine is not None, key[1] in self.own_items(person), key in sheet
                places.append((*later, rank % len(self.names) != turn, rank, key))
        return [place[-1] for place in sorted(places)]

    @lru_cache(maxsize=64)  # noqa: B019 a program has one desk
    def own_items(self, person: str) -> frozenset[str]:
        """Return the items that somebody has voted on as an annotator."""
        names = self.run.annotators["annotator"].cast(pl.String).unique().drop_nulls().to_list()
        mine = [name for name in names if name.casefold() == person.casefold()]
        if not mine:
            return frozenset()
        votes = self.run.scan("votes").filter(pl.col("annotator").cast(pl.String).is_in(mine))
        return frozenset(votes.select(pl.col("item").cast(pl.String)).collect()["item"].to_list())

    @cached_property
    def orders(self) -> dict[str, str]:
        """The orders in which items can be settled, with what each is called."""
        judges = (self.run.manifest.get("roles") or {}).get("judges", ())
        is_mixed = 0 < sum(row["role"] == LLM for row in judges) < self.run.manifest["annotators"]
        has_groups = not self.run.table("group_items").is_empty()
        offered = {"gain": True, "rule": True, "groups": has_groups, "judges": is_mixed}
        return {name: ORDERS[name][0] for name, is_offered in offered.items() if is_offered}

    # --- Deciding ---------------------------------------------------------------------------------------------------

    def entry(self, person: str, kind: str, **facts: Any) -> dict[str, Any]:
        """Return a new line of the log."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return {"id": secrets.token_hex(8), "time": now, "who": person, "kind": kind} | facts

    def decide(self, person: str, *bodies: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Check decisions that a browser sent, write them with one write, and return them."""
        entries = [self._checked(person, body) for body in bodies]
        self.log.append(entries)
        return entries

    def _checked(self, person: str, body: Mapping[str, Any]) -> dict[str, Any]:
        kind, question, item, label = (body.get(name) for name in ("kind", "question", "item", "label"))
        if kind not in (*LABELLING, "skip") or question not in self.questions or not isinstance(item, str):
            msg = f"a decision is about an item and a question of this run; {kind!r}, {question!r}, {item!r} is not."
            raise UsageError(msg)
        row = self.row(question, item)
        for value, choices in ((label, self.questions[question].labels), (body.get("cause"), CAUSES)):
            if value is not None and value not in choices:
                msg = f"{value!r} is none of {', '.join(choices)}."
                raise UsageError(msg)
        on_sheet = self.to_check().get((question, item), {})
        facts = {
            "question": question,
            "item": item,
            "label": None if kind == "skip" else row["label"] if kind == "confirm" else label,
            "cause": body.get("cause"),
            "why": str(body.get("why") or "")[:MOST_WORDS],
            "was": row["label"],
            "risk": row["risk"],
            "sheet": on_sheet.get("sheet"),
            "weight": on_sheet.get("weight"),
        }
        entry = self.entry(person, kind, **facts)
        # A browser that repeats itself after a crash sends the same id.
        identity = {"id": str(body["id"])[:64]} if body.get("id") else {}
        return entry | identity | ({"final": True} if body.get("final") else {})

    def undo(self, person: str) -> Decision | None:
        """Take back the last decision of a person, and return it; None where there is none."""
        entries = self.log.entries()
        undone = {entry["of"] for entry in entries if entry["kind"] == "undo"}
        mine = (entry for entry in reversed(entries) if entry["who"] == person and "item" in entry)
        last = next((entry for entry in mine if entry["id"] not in undone), None)
        if last is not None:
            self.log.append([self.entry(person, "undo", of=last["id"])])
        return last

    def row(self, question: str, item: str) -> dict[str, Any]:
        """Return what the lists have on one item."""
        identifier = pl.lit(item).cast(self.index.schema["item"], strict=False)
        rows = self.index.filter(pl.col("item") == identifier, pl.col("question") == question)
        if rows.is_empty():
            msg = f"the run has no item {item!r} of question {question!r}."
            raise LookupError(msg)
        return rows.row(0, named=True) | {"item": item}

    # --- A new run --------------------------------------------------------------------------------------------------

    def make_run(self, after: Callable[[Run], dict[str, Any]]) -> None:
        """Begin to make a new run beside this one, its checked labels being evidence; `after` describes it."""
        with self._lock:
            if self.job["status"] == "running":
                return
            self.job = {"status": "running", "stage": "reading", "share": 0.0}
        Thread(target=self._make_run, args=(after,), daemon=True).start()

    def _make_run(self, after: Callable[[Run], dict[str, Any]]) -> None:
        def progress(stage: str, share: float) -> None:
            self.job |= {"stage": stage, "share": share}

        try:
            out = beside(self.run.folder)
            command = f"moral-entropy serve {self.run.folder}"
            new = settle(self.with_decisions(), out, command=command, progress=progress)
            self.job = {"status": "done", "path": str(out), **after(new)}
        except (MoralEntropyError, OSError) as error:
            self.job = {"status": "failed", "error": str(error)}
        except Exception as error:
            self.job = {"status": "failed", "error": f"{type(error).__name__}: {error}"}


def beside(folder: Path) -> Path:
    """Return the first folder of this name with a number that is not there yet: run-2, run-3 and so on."""
    folder = folder.resolve()
    return next(path for n in range(2, 10_000) if not (path := folder.with_name(f"{folder.name}-{n}")).exists())


# --- Orders ----------------------------------------------------------------------------------------------------------


def _by_gain(desk: Desk) -> pl.DataFrame:
    """Score by how many labels a right answer is expected to put right: the chance that the label is wrong."""
    return desk.index.select(*KEYS, score="risk").filter(pl.col("score") > 0)


def _by_rule(desk: Desk) -> pl.DataFrame:
    return desk.index.filter("differs").select(*KEYS, score="risk")


def _by_groups(desk: Desk) -> pl.DataFrame:
    rows = desk.run.table("group_items").group_by(KEYS, maintain_order=True).agg(score=pl.col("spread").max())
    return rows.filter(pl.col("score") > 0)


def _by_judges(desk: Desk) -> pl.DataFrame:
    """Score items on which most people and most language models chose different labels."""
    models = [row["judge"] for row in desk.run.manifest["roles"]["judges"] if row["role"] == LLM]
    is_model = pl.col("annotator").cast(pl.String).is_in(models)
    counts = desk.run.scan("votes").group_by(*KEYS, "label", model=is_model).len()
    top = counts.sort("len", "label", descending=[True, False]).unique([*KEYS, "model"], keep="first")
    apart = top.group_by(KEYS).agg(pl.col("label").n_unique()).filter(pl.col("label") > 1).collect()
    apart = apart.with_columns(pl.col("question").cast(pl.Categorical))
    return desk.index.join(apart, on=KEYS, how="semi", maintain_order="left").select(*KEYS, score="risk")


ORDERS: dict[str, tuple[str, Callable[[Desk], pl.DataFrame]]] = {
    "gain": ("most likely wrong first", _by_gain),
    "rule": ("most votes and the consensus differ", _by_rule),
    "groups": ("groups of annotators differ", _by_groups),
    "judges": ("people and language models differ", _by_judges),
}
"""What to settle first: what it is called, and a score per item."""
