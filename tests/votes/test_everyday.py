"""Everyday files: what spreadsheets, forms, notebooks and colleagues hand over.

Each file has the exact votes it must give, or the exact question it must end in. All of them are made up.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import random
import sys
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest

from moral_entropy.errors import MissingExtraError, MoralEntropyError, UsageError, VotesError
from moral_entropy.votes.read import read_votes

VOTES = [
    ("q1", "ann", "yes"),
    ("q1", "bob", "no"),
    ("q2", "ann", "no"),
    ("q2", "bob", "no"),
    ("q3", "ann", "yes"),
    ("q3", "bob", "yes"),
]
HEADER = ("item", "annotator", "label")
NUMBERED = [(int(item[1]), annotator, label) for item, annotator, label in VOTES]
ZERO_ONE = [(item, annotator, "1" if label == "yes" else "0") for item, annotator, label in VOTES]


@dataclass(frozen=True)
class Question:
    """The error that a file must end in, and whether it is a question (exit code 2)."""

    text: str
    error: type[Exception] = UsageError


@dataclass(frozen=True)
class File:
    """A file, the options that the user types, and what must come of it: votes, by question, or an error.

    `said` are notes that must be among those printed, word for word; `dropped` is what must be left out, by reason.
    """

    content: Any
    want: Any = field(default_factory=lambda: VOTES)
    name: str = "votes.csv"
    options: dict[str, Any] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)


def table(header=HEADER, rows=VOTES, *, between=",", end="\n", above="", quote=False):
    cells = [header, *rows]
    mark = '"' if quote else ""
    return above + "".join(between.join(f"{mark}{cell}{mark}" for cell in row) + end for row in cells)


def relabelled(spell, rows=VOTES):
    """The same votes with labels spelt in another way, vote by vote."""
    return [(item, annotator, spell(label, at)) for at, (item, annotator, label) in enumerate(rows)]


def wide(header, spell=str):
    """One row per item: q1, q2, q3 by ann and bob."""
    answers = {(item, annotator): label for item, annotator, label in VOTES}
    rows = [[item, *(spell(answers[item, who]) for who in ("ann", "bob"))] for item in ("q1", "q2", "q3")]
    return table(header, rows)


def by_person(header, first=("ann", "bob"), before=(), spell=str):
    """One row per person: ann and bob on q1, q2, q3."""
    answers = {(item, annotator): label for item, annotator, label in VOTES}
    rows = [
        [*some, name, *(spell(answers[item, who]) for item in ("q1", "q2", "q3"))]
        for who, name, some in zip(("ann", "bob"), first, before or ((), ()), strict=True)
    ]
    return table(header, rows)


def book(**sheets):
    """An Excel workbook; made when it is needed, as the writer may be missing."""

    def write():
        openpyxl = pytest.importorskip("openpyxl", reason="writing workbooks needs openpyxl")
        pytest.importorskip("fastexcel", reason="needs the extra: pip install 'moral-entropy[excel]'")
        made = openpyxl.Workbook()
        made.remove(made.active)
        for name, rows in sheets.items():
            sheet = made.create_sheet(name)
            for row in rows:
                sheet.append(list(row))
        buffer = io.BytesIO()
        made.save(buffer)
        return buffer.getvalue()

    return write


def parquet(**columns):
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def columns(header=HEADER, rows=VOTES):
    return {name: [row[at] for row in rows] for at, name in enumerate(header)}


FRENCH = [("q1", "René", "oui"), ("q1", "Zoë", "non"), ("q2", "René", "non")]
CP1252_SAID = "the file is not UTF-8 (byte 0xe9 in line 2) and is read as Windows-1252 (--encoding names another)."
SHEET = [HEADER, *VOTES]
COUNTED = ("item", "care", "harm", "none")
ANONYMOUS = "(anonymous)"
PEOPLE = "one row per person: each of 3 columns is read as an item (--format wide: as annotators)."
ANNOTATORS = "no annotator and no label column: each of 2 columns is read as an annotator."

ENCODINGS_AND_DIALECTS = {
    "plain": File(table()),
    "windows line ends": File(table(end="\r\n")),
    "old mac line ends": File(table(end="\r")),
    "utf-8 with a mark": File(b"\xef\xbb\xbf" + table().encode()),
    "utf-16 of excel": File(table(between="\t").encode("utf-16"), name="votes.txt", said=("encoding: UTF-16.",)),
    "utf-16 big endian": File(b"\xfe\xff" + table().encode("utf-16-be"), said=("encoding: UTF-16.",)),
    "utf-16 without a mark": File(table().encode("utf-16-le"), options={"encoding": "utf-16-le"}),
    "utf-32": File(
        table().encode("utf-32"),
        Question(
            "votes.csv holds 85 zero bytes, the first at 0. Copy it anew, save it as UTF-8, or name its "
            "encoding (--encoding utf-16-le).",
            VotesError,
        ),
    ),
    "windows-1252": File(table(rows=FRENCH).encode("cp1252"), FRENCH, said=(CP1252_SAID,)),
    "windows-1252, semicolons, gzipped": File(
        gzip.compress(table(rows=FRENCH, between=";").encode("cp1252")), FRENCH, "votes.csv.gz", said=(CP1252_SAID,)
    ),
    "named encoding": File(
        table(rows=[("q1", "Łukasz", "tak"), ("q1", "Żaneta", "nie")]).encode("cp1250"),
        [("q1", "Łukasz", "tak"), ("q1", "Żaneta", "nie")],
        options={"encoding": "cp1250"},
    ),
    "unknown encoding": File(
        table(),
        Question("encoding is 'cp-what', which Python does not know. Common: utf-8, utf-16, cp1252."),
        options={"encoding": "cp-what"},
    ),
    "semicolons": File(table(between=";")),
    "tabs": File(table(between="\t"), name="votes.tsv"),
    "bars": File(table(between="|")),
    "everything quoted": File(table(quote=True)),
    "blanks after commas": File(table(between=", ")),
    "a hint for excel": File(table(between=";", above="sep=;\n")),
    "comments above the header": File(
        table(above="# exported 3 May, by Ann, version 2\n# do not edit\n\n"),
        said=("skipped above the header: 2 lines, the first is '# exported 3 May, by Ann, version 2'.",),
    ),
    "a header that begins with a number sign": File(table(("#item", "annotator", "label"), between="\t")),
    "a title above the header": File(
        table(above="Annotation of May 2024\n\n"),
        said=("skipped above the header: 1 line, the first is 'Annotation of May 2024'.",),
    ),
    "a title of a spreadsheet": File(
        table(above="Annotation of May 2024,,\n,,\n"),
        said=("skipped above the header: 1 line, the first is 'Annotation of May 2024'.",),
    ),
    "decimal commas": File(
        table(
            ("item", "annotator", "rating"), relabelled(lambda label, _: "5,0" if label == "yes" else "3,5"),
            between=";",
        ),
        relabelled(lambda label, _: "5" if label == "yes" else "3.5"),
        said=("decimal commas are read as points: rating.",),
    ),
    "an empty column at the end": File(table(between=",").replace("\n", ",\n")),
    "rows of nothing at the end": File(table() + ",,\n,,\n"),
    "the index of pandas": File(
        table(("", *HEADER), [(at, *row) for at, row in enumerate(VOTES)]),
        said=("a column without a name numbers the rows and is not read.",),
    ),
    "a header twice": File(
        table((*HEADER, "label"), [(*row, "x") for row in VOTES]),
        said=("the header has 'label' more than once; the later ones are called 'label_duplicated_0' and so on.",),
    ),
    "no header": File(
        table((1, 7, 0), [(1, 8, 1)]),
        Question(
            "votes.csv seems to have no header: its first line is 1, 7, 0. "
            "Add a first line with names of columns, such as item,annotator,label.",
            VotesError,
        ),
    ),
    "texts with commas and line ends": File(
        table((*HEADER, "text"), [(*row, f'"{row[0]}, that\nis"') for row in VOTES]),
    ),
}  # fmt: skip

WORKBOOKS = {
    "a workbook": File(book(Sheet1=SHEET), name="votes.xlsx"),
    "a workbook by another name": File(book(Sheet1=SHEET), name="votes.csv"),
    "a title above the table": File(
        book(Sheet1=[["Annotation of May"], [], *SHEET]),
        name="votes.xlsx",
        said=("skipped above the header: 1 line, the first is 'Annotation of May'.",),
    ),
    "ids that are numbers": File(
        book(Sheet1=[HEADER, *NUMBERED]), [(item, who, label) for item, who, label in NUMBERED], "votes.xlsx"
    ),
    "ratings, dates and truth": File(
        book(
            Sheet1=[
                (*HEADER, "date"),
                *[(item, who, label == "yes", dt.datetime(2024, 5, 3, 12)) for item, who, label in VOTES],
            ]
        ),
        relabelled(lambda label, _: "true" if label == "yes" else "false"),
        "votes.xlsx",
    ),
    "the only sheet with data": File(
        book(Notes=[["read me"]], Votes=SHEET, Sheet3=[]),
        name="votes.xlsx",
        said=("sheet: 'Votes' (the only one with data).",),
    ),
    "two sheets with data": File(
        book(Votes=SHEET, Codebook=[["label", "meaning"], ["yes", "moral"]]),
        Question(
            "votes.xlsx has 2 sheets with data: 'Votes' (6 rows), 'Codebook' (1 rows). "
            "Name the one with the votes: sheet='Votes' (CLI: --sheet 'Votes')."
        ),
        "votes.xlsx",
    ),
    "a sheet that is named": File(
        book(Codebook=[["label", "meaning"], ["yes", "moral"]], Votes=SHEET),
        name="votes.xlsx",
        options={"sheet": "votes"},
        said=("sheet: 'Votes' (named).",),
    ),
    "a sheet that does not exist": File(
        book(Votes=SHEET, Old=SHEET),
        Question("votes.xlsx has no sheet 'New'. Sheets: Votes, Old. Name one with --sheet."),
        "votes.xlsx",
        {"sheet": "New"},
    ),
    "a sheet of no workbook": File(
        table(),
        Question("sheet is 'Votes', but votes.csv is no Excel workbook. Leave out sheet (--sheet)."),
        options={"sheet": "Votes"},
    ),
    "an empty workbook": File(
        book(Sheet1=[], Sheet2=[]),
        Question("votes.xlsx has no sheet with a header and rows. Sheets: Sheet1, Sheet2.", VotesError),
        "votes.xlsx",
    ),
    "a form in a workbook": File(
        book(
            Answers=[
                ("Timestamp", "Username", "q1", "q2", "q3"),
                (dt.datetime(2024, 5, 3, 12), "ann", "yes", "no", "yes"),
                (dt.datetime(2024, 5, 3, 13), "bob", "no", "no", "yes"),
            ]
        ),
        name="form.xlsx",
        said=(PEOPLE,),
    ),
}  # fmt: skip

LABELS = {
    "case and blanks": File(
        table(rows=relabelled(lambda label, at: [" YES", "No ", "no", "NO", "Yes", "yes"][at])),
        said=(
            "labels that are spelt differently count as one: 'no' (also 'NO', 'No'), 'yes' (also 'YES', 'Yes') "
            "(--keep-case keeps them apart).",
        ),
    ),
    "case of other words": File(
        table(rows=relabelled(lambda label, at: ["Care", "harm", "Harm", "harm", "care", "CARE"][at])),
        relabelled(lambda label, _: "care" if label == "yes" else "harm"),
    ),
    "case that matters": File(
        table(rows=relabelled(lambda label, at: ["Care", "harm", "Harm", "harm", "care", "CARE"][at])),
        relabelled(lambda label, at: ["Care", "harm", "Harm", "harm", "care", "CARE"][at]),
        options={"keep_case": True},
    ),
    "y, yes, true and 1": File(table(rows=relabelled(lambda label, at: ["y", "n", "0", "FALSE", "1", "TRUE"][at]))),
    "y and n alone": File(
        table(rows=relabelled(lambda label, _: label[0])), relabelled(lambda label, _: label[0])
    ),
    "zeros and ones stay": File(table(rows=ZERO_ONE), ZERO_ONE),
    "1 and yes among other words": File(
        table(rows=relabelled(lambda label, at: ["1", "no", "no", "no", "yes", "maybe"][at])),
        relabelled(lambda label, at: ["1", "no", "no", "no", "yes", "maybe"][at]),
    ),
    "no answer in many spellings": File(
        table(rows=[*VOTES, *[("q4", f"p{at}", word) for at, word in enumerate(
            ("", "NA", "N/A", "n/a", "-", "null", "none", "?", "no answer", "No Answer"))]]),
        said=(
            "taken for no answer: '-', '?', 'N/A', 'NA', 'No Answer', 'n/a', 'no answer', 'none', 'null' "
            "(--missing names others).",
        ),
        dropped={"no label": 10},
    ),
    "none is a label among words": File(
        table(rows=relabelled(lambda label, _: "none" if label == "no" else "hate")),
        relabelled(lambda label, _: "none" if label == "no" else "hate"),
        said=(
            "'none' is read as a label (--missing none takes it for no answer).", "positive label: 'hate' (guessed).",
        ),
    ),
    "none that is named as missing": File(
        table(rows=[*relabelled(lambda label, _: "love" if label == "no" else "hate"), ("q4", "ann", "none")]),
        relabelled(lambda label, _: "love" if label == "no" else "hate"),
        options={"missing": ["none"]},
        dropped={"no label": 1},
    ),
    "plus and minus": File(
        table(rows=relabelled(lambda label, _: "+" if label == "yes" else "-")),
        relabelled(lambda label, _: "+" if label == "yes" else "-"),
    ),
    "missing that is named": File(
        table(rows=[*VOTES, ("q4", "ann", "Unsure"), ("q4", "bob", "skip")]),
        options={"missing": ["unsure", "skip"]},
        said=("taken for no answer: 'Unsure', 'skip' (--missing names others).",),
        dropped={"no label": 2},
    ),
    "nothing is missing but empty cells": File(
        table(rows=[*VOTES, ("q4", "ann", "NA"), ("q4", "bob", "")]),
        [*VOTES, ("q4", "ann", "NA")],
        options={"missing": []},
        dropped={"no label": 1},
    ),
    "the positive label by its meaning": File(
        table(rows=relabelled(lambda label, _: "Hateful" if label == "yes" else "Non-hateful")),
        relabelled(lambda label, _: "Hateful" if label == "yes" else "Non-hateful"),
        said=("positive label: 'Hateful' (guessed).",),
    ),
    "identical repeats": File(
        table(rows=[*VOTES, VOTES[0], VOTES[3], VOTES[3]]), dropped={"identical repeat": 3}
    ),
    "contradictory repeats": File(
        table(rows=[*VOTES, VOTES[1], ("q1", "ann", "no")]),
        Question(
            "1 of 7 votes on 'label' contradict another vote of the same annotator on the same item. First: item 'q1', "
            "annotator 'ann' voted 'yes' (row 1) and 'no' (row 8). "
            'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).',
            VotesError,
        ),
    ),
    "a question without a yes": File(
        table(("item", "annotator", "care", "harm"), [(item, who, label, "no") for item, who, label in VOTES]),
        {"care": VOTES},
        said=("all votes on 'harm' are 'no': the question is left out.",),
    ),
    "gold spelt in another way": File(
        table((*HEADER, "gold"), [(*row, "Y" if row[0] == "q3" else "") for row in VOTES]),
        options={"gold": "gold"}, said=("gold label 'Y' is taken for 'yes'.",),
    ),
}  # fmt: skip

SHAPES = {
    "annotators as columns": File(wide(("item", "ann", "bob")), said=(ANNOTATORS,)),
    "annotators as numbered columns": File(
        wide(("id", "rater 1", "rater 2")),
        [(item, {"ann": "rater 1", "bob": "rater 2"}[who], label) for item, who, label in VOTES],
        said=(ANNOTATORS,),
    ),
    "models as columns": File(
        wide(("prompt", "gpt-4o", "claude-3"), lambda label: {"yes": "8", "no": "3"}[label]),
        sorted((item, {"ann": "gpt-4o", "bob": "claude-3"}[who], {"yes": "8", "no": "3"}[label])
               for item, who, label in VOTES),
        said=(ANNOTATORS,),
    ),
    "a judge with a wider scale": File(
        "item,judge_1,judge_2,judge_3\na,1,2,9\nb,5,4,10\nc,3,3,8\n",
        [("a", "judge_1", "1"), ("a", "judge_2", "2"), ("a", "judge_3", "9"), ("b", "judge_1", "5"),
         ("b", "judge_2", "4"), ("b", "judge_3", "10"), ("c", "judge_1", "3"), ("c", "judge_2", "3"),
         ("c", "judge_3", "8")],
    ),
    "ids told from cells": File(wide(("headline or so", "coder 1", "coder 2")), [
        (item, {"ann": "coder 1", "bob": "coder 2"}[who], label) for item, who, label in VOTES
    ]),
    "a form": File(
        by_person(("Timestamp", "Email Address", "Is it wrong to lie?", "Is it wrong to cheat?",
                   "May one steal bread?"),
                  first=("a@x.org", "b@x.org"), before=(("2024/05/03 12:00",), ("2024/05/03 13:00",))),
        [("Is it wrong to cheat?", "a@x.org", "no"), ("Is it wrong to cheat?", "b@x.org", "no"),
         ("Is it wrong to lie?", "a@x.org", "yes"), ("Is it wrong to lie?", "b@x.org", "no"),
         ("May one steal bread?", "a@x.org", "yes"), ("May one steal bread?", "b@x.org", "yes")],
        said=(PEOPLE,),
    ),
    "a form without names": File(
        table(("Timestamp", "q1", "q2", "q3"), [("12:00", "yes", "no", "yes"), ("12:05", "no", "no", "yes")]),
        [(item, {"ann": 1, "bob": 2}[who], label) for item, who, label in VOTES],
        said=(PEOPLE, "no column of annotators: people are called by the number of their row."),
    ),
    "a questionnaire with ids": File(by_person(("participant", "q1", "q2", "q3")), said=(PEOPLE,)),
    "a questionnaire with plain ids": File(by_person(("id", "q1", "q2", "q3")), said=(PEOPLE,)),
    "a questionnaire with what people are": File(
        by_person(("age", "gender", "ResponseId", "q1", "q2", "q3"), before=((31, "f"), (45, "m"))),
        said=(PEOPLE,),
    ),
    "people who answered twice": File(
        by_person(("participant", "q1", "q2", "q3"), first=("ann", "ann")),
        Question(
            "1 of 4 votes on 'label' contradict another vote of the same annotator on the same item. First: item 'q1', "
            "annotator 'ann' voted 'yes' (row 1) and 'no' (row 2). "
            'Choose on_repeat="first", "last" or, to keep each as a vote of its own, "count" (CLI: --on-repeat last).',
            VotesError,
        ),
        options={"format": "respondents"},
    ),
    "respondents by order": File(
        by_person(("name", "zoe", "tim", "kim")),
        [({"q1": "zoe", "q2": "tim", "q3": "kim"}[item], who, label) for item, who, label in VOTES],
        options={"format": "respondents", "annotator": "name"},
    ),
    "respondents with plain ids by order": File(
        by_person(("id", "zoe", "tim", "kim")),
        [({"q1": "zoe", "q2": "tim", "q3": "kim"}[item], who, label) for item, who, label in VOTES],
        options={"format": "respondents"},
    ),
    "names over yes and no, rows with an id": File(
        wide(("id", "zoe", "tim")),
        Question(
            "what are the columns zoe, tim of votes.csv? They could be: annotators, one row per item (--format wide); "
            "items, one row per person (--format respondents). Say which."
        ),
    ),
    "words over zeros and ones": File(
        wide(("item", "care", "harm"), lambda label: "1" if label == "yes" else "0"),
        Question(
            "what are the columns care, harm of votes.csv? They could be: annotators, one row per item (--format wide)"
            "; items, one row per person (--format respondents); yes/no questions, with one answer per row "
            "(--anonymous --questions care,harm). Say which."
        ),
    ),
    "words over numbers": File(
        table(COUNTED, [("a", 3, 0, 0), ("b", 1, 1, 0), ("c", 0, 2, 1)]),
        Question(
            "what are the columns care, harm, none of votes.csv? They could be: annotators, one row per item (--format "
            "wide); items, one row per person (--format respondents); labels, with how many chose each (--anonymous "
            "--counts care,harm,none); questions, with how many of N said yes (--anonymous --questions care,harm,none "
            "--of N). Say which."
        ),
    ),
    "counts that add up": File(
        table(COUNTED, [("a", 2, 0, 0), ("b", 1, 1, 0), ("c", 0, 1, 1)]),
        [("a", ANONYMOUS, "care"), ("a", ANONYMOUS, "care"), ("b", ANONYMOUS, "care"), ("b", ANONYMOUS, "harm"),
         ("c", ANONYMOUS, "harm"), ("c", ANONYMOUS, "none")],
        said=("the 3 columns add up to 2 in every row: they count labels.",),
    ),
    "counts that are named": File(
        table(COUNTED, [("a", 2, 0, 0), ("b", 1, 0, 0), ("c", 0, 1, 1)]),
        [("a", ANONYMOUS, "care"), ("a", ANONYMOUS, "care"), ("b", ANONYMOUS, "care"), ("c", ANONYMOUS, "harm"),
         ("c", ANONYMOUS, "none")],
        options={"anonymous": True, "counts": ["care", "harm", "none"]},
    ),
    "columns of zeros and ones by annotators": File(
        table(("item", "annotator", "care", "harm"), [
            (item, who, label, harm) for (item, who, label), harm in zip(ZERO_ONE, "110010", strict=True)
        ]),
        {
            "care": ZERO_ONE,
            "harm": [(item, who, harm) for (item, who, _), harm in zip(ZERO_ONE, "110010", strict=True)],
        },
        said=("2 columns of answers, each a question: care, harm (--label care reads one).",),
    ),
    "two columns that could be the label": File(
        table(("item", "annotator", "tone", "mood"), [(*row, mood) for row, mood in zip(VOTES, "abcabb", strict=True)]),
        {"tone": VOTES, "mood": [(*row[:2], mood) for row, mood in zip(VOTES, "abcabb", strict=True)]},
    ),
    "the one column left is the label": File(table(("tweet_id", "worker", "hate"))),
    "what people are is no label": File(
        table(("tweet_id", "worker", "gender", "hate", "confidence", "seconds"),
              [(item, who, "f" if who == "ann" else "m", label, f"0.{at}", at) for at, (item, who, label)
               in enumerate(VOTES)]),
    ),
    "an annotator told from cells": File(table(("item", "who did it", "label"))),
    "an item told from cells": File(table(("thing", "annotator", "label"))),
    "nobody voted": File(
        table(("item", "label"), [(item, label) for item, _, label in VOTES]),
        Question(
            "votes.csv has no column that looks like the annotator. Found: item, label. "
            'Name it with annotator="COLUMN" (CLI: --annotator COLUMN). '
            'If each column is an annotator: format="wide" (CLI: --format wide). If each file is: name them all. '
            "Votes without annotators: anonymous=True (CLI: --anonymous). "
            "If its first line is a vote already, add a header.",
            VotesError,
        ),
    ),
    "what annotators are is no domain": File(
        table((*HEADER, "group"), [(*row, "f" if row[1] == "ann" else "m") for row in VOTES]),
        Question(
            "column 'group' describes annotators, not items: 3 items have several values of it, the first ('q1') 'f' "
            "and 'm'. It cannot be the items' domain: leave out domain (--domain), or name another column."
        ),
        options={"domain": "group"},
    ),
    "what votes are is no domain": File(
        table((*HEADER, "wave"), [(*row, str(at % 4)) for at, row in enumerate(VOTES)]),
        Question(
            "column 'wave' describes votes, not items: 3 items have several values of it, the first ('q1') '0' and '1'."
            " Items cannot be told apart by it: name a column that describes items (--fit-by)."
        ),
        options={"facts": ["wave"]},
    ),
    "a guessed domain that is none": File(
        table((*HEADER, "source"), [(*row, "f" if row[1] == "ann" else "m") for row in VOTES]),
        said=(
            "column 'source' describes annotators, not items: 3 items have several values of it, the first ('q1') 'f' "
            "and 'm'. It is not taken for the domain.",
        ),
    ),
}  # fmt: skip

OTHER_FILES = {
    "parquet": File(parquet(**columns()), name="votes.parquet"),
    "parquet of categories and truth": File(
        parquet(item=pl.Series([row[0] for row in VOTES], dtype=pl.Categorical), annotator=[row[1] for row in VOTES],
                label=[row[2] == "yes" for row in VOTES]),
        relabelled(lambda label, _: "true" if label == "yes" else "false"),
        "votes.parquet",
    ),
    "json lines": File("\n".join(json.dumps(dict(zip(HEADER, row, strict=True))) for row in VOTES), name="votes.jsonl"),
    "json of a wide table": File(
        json.dumps([{"item": "q1", "ann": "yes", "bob": "no"}, {"item": "q2", "ann": "no", "bob": "no"},
                    {"item": "q3", "ann": "yes", "bob": "yes"}]),
        name="votes.json",
    ),
    "json with half a character": File(
        '{"item": 1, "annotator": "\\ud800", "label": "x"}\n{"item": 1, "annotator": "b", "label": "y"}\n',
        [(1, "b", "y"), (1, "\ufffd", "x")],
        "votes.jsonl",
    ),
    "json with a record in a cell": File(
        '[{"item": 1, "annotator": "a", "label": "x", "more": ' + '{"a": ' * 300 + "1" + "}" * 300
        + '}, {"item": 1, "annotator": "b", "label": "y"}]',
        [(1, "a", "x"), (1, "b", "y")],
        "votes.json",
    ),
    "parquet with durations and bytes": File(
        parquet(item=pl.Series([1, 1], dtype=pl.Int64).cast(pl.Duration("ms")), annotator=[b"a", b"\xff"],
                label=pl.Series([1, 2], dtype=pl.Int64).cast(pl.Duration("ms"))),
        [("0:00:00.001000", "\\xff", "0:00:00.002000"), ("0:00:00.001000", "a", "0:00:00.001000")],
        "votes.parquet",
    ),
    "parquet with lists of texts": File(
        parquet(**columns(), text=[[row[0]] for row in VOTES]), name="votes.parquet"
    ),
    "parquet with ids of 128 bits": File(
        parquet(item=pl.Series([2**100, 2**100 + 1], dtype=pl.Int128), annotator=["a", "a"], label=["x", "y"]),
        [(str(2**100), "a", "x"), (str(2**100 + 1), "a", "y")],
        "votes.parquet",
    ),
}  # fmt: skip

FILES = ENCODINGS_AND_DIALECTS | WORKBOOKS | LABELS | SHAPES | OTHER_FILES


def read(file, write):
    content = file.content() if callable(file.content) else file.content
    return read_votes(write(content, file.name), **file.options)


@pytest.mark.parametrize("name", FILES)
def test_everyday_files_give_their_votes_or_end_in_their_question(name, write, spelt):
    file = FILES[name]
    if isinstance(file.want, Question):
        with pytest.raises(file.want.error) as error:
            read(file, write)
        assert str(error.value) == file.want.text
        return
    votes = read(file, write)
    wanted = file.want if isinstance(file.want, dict) else {votes.questions[0]: file.want}
    assert {question: spelt(votes, question) for question in votes.questions} == {
        question: sorted(some, key=lambda vote: (vote[0], vote[1])) for question, some in wanted.items()
    }
    assert votes.reading.dropped == file.dropped
    assert set(file.said) <= set(votes.reading.notes)


def mutated(content, draw):
    """The same bytes with a few of them changed, taken out, put in or cut off."""
    content = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(content) + 1)
        what = draw.random()
        if what < 0.4:
            content[at : at + 1] = bytes([draw.randrange(256)])
        elif what < 0.6:
            del content[at : at + draw.choice((1, 3, 20))]
        elif what < 0.9:
            content[at:at] = draw.choice((b",", b";", b"\n", b'"', b"\0", b"\xff", b"# ", b"NA", b"9" * 30, b"[", b"{"))
        else:
            del content[at:]
    return bytes(content)


@pytest.mark.parametrize("part", range(2))
def test_damaged_files_are_read_or_refused_in_one_paragraph(part, write):
    draw = random.Random(part)
    files = [file for file in FILES.values() if not callable(file.content)]
    for _ in range(150):
        file = draw.choice(files)
        content = file.content.encode() if isinstance(file.content, str) else file.content
        try:
            read_votes(write(mutated(content, draw), file.name), **file.options)
        except MoralEntropyError as error:
            assert "\n" not in str(error) and len(str(error)) < 2_000


def test_there_are_enough_of_them():
    assert len(FILES) == sum(map(len, (ENCODINGS_AND_DIALECTS, WORKBOOKS, LABELS, SHAPES, OTHER_FILES))) >= 60


def test_a_workbook_without_its_reader_says_what_to_install(write, monkeypatch):
    content = book(Sheet1=SHEET)()
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(MissingExtraError) as error:
        read_votes(write(content, "votes.xlsx"))
    assert str(error.value) == (
        "votes.xlsx is an Excel workbook, and reading it needs fastexcel. Run: pip install 'moral-entropy[excel]'"
    )


def test_a_damaged_workbook(write):
    content = book(Sheet1=SHEET)()
    with pytest.raises(VotesError, match=r"votes.xlsx is a (zip file or a )?damaged Excel workbook"):
        read_votes(write(content[: len(content) // 2], "votes.xlsx"))


def test_gold_labels_in_a_workbook(write, tmp_path):
    gold = tmp_path / "gold.xlsx"
    gold.write_bytes(book(Notes=[["read me"]], Gold=[("item", "gold"), ("q1", "YES"), ("q3", "n")])())
    votes = read_votes(write(table()), gold_file=gold)
    ballot = votes.ballots[0]
    assert [None if code < 0 else ballot.labels[code] for code in ballot.gold_i] == ["yes", None, "no"]
    assert "gold.xlsx: sheet: 'Gold' (the only one with data)." in votes.reading.notes
    gold.write_bytes(book(One=[("item", "gold"), ("q1", "yes")], Two=[("item", "gold"), ("q1", "yes")])())
    with pytest.raises(UsageError) as error:
        read_votes(write(table()), gold_file=gold)
    assert str(error.value) == (
        "gold.xlsx has 2 sheets with data: 'One' (1 rows), 'Two' (1 rows). "
        "Save the one that is meant as a file of its own."
    )


def test_kept_columns_go_with_their_votes(write):
    rows = [(*row, f"{at}:00", 30 if row[1] == "ann" else 45) for at, row in enumerate(VOTES)]
    votes = read_votes(write(table((*HEADER, "time", "age"), [*rows[3:], *rows[:3], rows[0]])), keep=["age", "time"])
    ballot = votes.ballots[0]
    kept = [(votes.kept["time"][int(row)], votes.kept["age"][int(row)]) for row in ballot.row_v]
    # Votes are sorted by item and annotator, as they are here.
    assert kept == [(time, str(age)) for *_, time, age in rows]
    assert read_votes(write(table())).ballots[0].row_v is None


def test_kept_columns_of_people(write):
    people = by_person(("age", "participant", "q1", "q2", "q3"), before=((31,), (45,)))
    votes = read_votes(write(people), keep=["age"])
    assert [votes.kept["age"][int(row)] for row in votes.ballots[0].row_v] == ["31", "45"] * 3


def test_names_of_columns_that_votes_have_cannot_be_kept():
    with pytest.raises(UsageError, match=r"keep names 'label', which votes.parquet has already"):
        read_votes(pl.DataFrame(columns()), keep=["label"])
