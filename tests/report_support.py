"""Run folders to report on: a plain one, one with three labels, and one whose every text is an attack."""

from __future__ import annotations

import json
import random
from html.parser import HTMLParser
from pathlib import Path

import polars as pl

from moral_entropy.options import AuditOptions, FitOptions, ReadOptions
from moral_entropy.pipeline import audit

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "{{ 7 * 7 }} {% raw %} ${window.hacked = 3}",
    "\"'><img src=x onerror='window.hacked = 4'>",
    "\u202egnp.exe\u202c right to left \u200f mark",
    "emoji 🧑🏽‍🚀👩‍👩‍👧‍👦 and \u2028 separators \u2029 and \ufeff marks",
    "long " * 20_000,
    '=HYPERLINK("http://example.org","click")',
    "<!-- <script> javascript:window.hacked=5 -->",
    "\t@SUM(1+1)*cmd|' /C calc'!A0",
]


def vote_frame(
    *, n_items=120, labels=("0", "1"), questions=("care", "fairness"), annotators="abcdef", gold=True, seed=5
):
    """Votes right four times in five, a row a vote, with texts, two domains, some items without a domain."""
    draw = random.Random(seed)
    rows = []
    for question in questions:
        for item in range(n_items):
            truth = labels[int(draw.random() < 0.35) if len(labels) == 2 else draw.randrange(len(labels))]
            for annotator in annotators:
                if draw.random() < 0.7 or annotator == annotators[item % len(annotators)]:
                    vote = truth if draw.random() < 0.8 else draw.choice(labels)
                    rows.append(
                        {
                            "item": f"t{item:03}",
                            "annotator": annotator,
                            "question": question,
                            "label": vote,
                            "domain": ["BLM", "Sandy", None][item % 3],
                            "text": f"text number {item} about {['rain', 'trains', 'votes'][item % 3]}",
                            **({"gold": truth} if gold else {}),
                        }
                    )
    return pl.DataFrame(rows)


def hostile_frame():
    """Votes whose texts, ids, annotators, domains and questions all try to break out of the page."""
    frame = vote_frame(n_items=60, questions=(HOSTILE[0], HOSTILE[2]), gold=False)
    number = pl.col("item").str.slice(1).cast(pl.Int64)
    names = pl.Series([text[:60] for text in HOSTILE])
    return frame.with_columns(
        text=pl.lit(pl.Series(HOSTILE)).implode().list.get(number % len(HOSTILE)),
        item=pl.lit(names).implode().list.get(number % len(HOSTILE)) + " " + pl.col("item"),
        annotator=pl.col("annotator").replace(dict(zip("abcdef", names[:6], strict=True))),
        domain=pl.lit(names).implode().list.get(number % 3),
    )


def make_run(frame, path, *, report=True, draws=60, **read):
    """Audit a frame into a run folder and give its path."""
    options = AuditOptions(read=ReadOptions(**read), fit=FitOptions(draws=draws, seed=1), report=report)
    # Named, as only gold that is named counts as checked labels.
    return audit(frame, path, options, gold="gold" if "gold" in getattr(frame, "columns", ()) else None).path


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, texts of script elements."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts = [], []
        self._inside = None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "script":
            self._inside = dict(attributes)
            self.scripts.append((self._inside, []))

    def handle_endtag(self, tag):
        if tag == "script":
            self._inside = None

    def handle_data(self, data):
        if self._inside is not None:
            self.scripts[-1][1].append(data)

    def data(self):
        """The JSON of the page."""
        [texts] = [texts for attributes, texts in self.scripts if attributes.get("id") == "data"]
        return json.loads("".join(texts))


def page_of(run):
    """Parse a run's report."""
    return Page((Path(run) / "report.html").read_text(encoding="utf-8"))


def rows_of(table):
    """Unpack a table of the page, as its script does."""
    columns = {
        name: column if isinstance(column, list) else [column["of"][at] for at in column["at"]]
        for name, column in table.items()
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
