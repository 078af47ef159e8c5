"""Everyday files of votes with their truth planted: `FILES` maps a name to what writes it, and what must be read.

Three coders answer about 24 texts: which labels apply (any number), which one, how severe, yes or no. The same answers
are laid out as people lay them out. Seeded: the same everywhere.
"""

from __future__ import annotations

import csv
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from openpyxl import Workbook

Votes = dict[str, list[tuple[str, str, str]]]
"""By question: item, annotator, label."""

LABELS = ("authority", "care", "fairness", "loyalty")
CODERS = ("Anna", "Ben", "Cleo")
ITEMS = tuple(f"t{n:02}" for n in range(1, 25))
RNG = random.Random(35)
TRUTHS = {item: {label for label in LABELS if RNG.random() < 0.4} for item in ITEMS}
SETS = {
    (item, coder): tuple(label for label in LABELS if (label in TRUTHS[item]) != (RNG.random() < 0.12))
    for item in ITEMS
    for coder in CODERS
}
ONE = {cell: RNG.choice(("care", "fairness", "loyalty")) for cell in SETS}
YES = {cell: RNG.choice(("yes", "no")) for cell in SETS}
SEVERITY = {cell: RNG.choice("12345") for cell in SETS}
HALVES = {cell: RNG.choice(("1", "1.5", "2", "2.5", "3")) for cell in SETS}


class Everyday(NamedTuple):
    """What to read, with which options, and what must come of it: votes, notes, or an error that names the way out.

    `error` is part of the message; with the options `way`, which it names, the file must be read right.
    """

    source: Any
    votes: Votes
    options: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    error: str = ""
    way: dict[str, Any] | None = None


def of(answers: dict[tuple[str, str], str], question: str = "label") -> Votes:
    """Return single answers as votes on one question; an empty answer is no vote."""
    return {question: [(item, coder, label) for (item, coder), label in answers.items() if label]}


def of_sets(prefix: str = "", yes: str = "1", no: str = "0") -> Votes:
    """Return the sets of labels as a yes/no question for each label."""
    return {
        prefix + label: [(item, coder, yes if label in names else no) for (item, coder), names in SETS.items()]
        for label in LABELS
    }


def named(votes: Votes, name: Callable[[str], str]) -> Votes:
    """Return the same votes by annotators with other names."""
    return {question: [(item, name(who), label) for item, who, label in rows] for question, rows in votes.items()}


def joined(between: str, nothing: str = "none") -> dict[tuple[str, str], str]:
    """Spell every set in one cell."""
    return {cell: between.join(names) or nothing for cell, names in SETS.items()}


def table(path: Path, rows: list[tuple[Any, ...]], delimiter: str = ",") -> str:
    """Write rows, of which the first is the header, and return the path."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")
    return str(path)


def book(path: Path, merged: tuple[str, ...] = (), **sheets: list[tuple[Any, ...]]) -> str:
    """Write a workbook with a sheet for each name, and return the path."""
    workbook = Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append([cell if cell != "" else None for cell in row])
        for cells in merged:
            sheet.merge_cells(cells)
    workbook.save(path)
    return str(path)


def wide(answers: dict[tuple[str, str], str], header: tuple[str, ...] = ("text_id", *CODERS)) -> list[tuple[Any, ...]]:
    """Lay answers out with one row per item and one column per coder."""
    return [header, *((item, *(answers[item, coder] for coder in CODERS)) for item in ITEMS)]


def long(*columns: dict[tuple[str, str], str], header: str) -> list[tuple[Any, ...]]:
    """Lay answers out with one row per item and coder."""
    return [tuple(header.split(",")), *((*cell, *(answers[cell] for answers in columns)) for cell in SETS)]


def marks(coder: str, mark: str) -> list[tuple[Any, ...]]:
    """Lay the sets of one coder out with a column of marks for each label."""
    rows = [(item, *(mark if label in SETS[item, coder] else "" for label in LABELS)) for item in ITEMS]
    return [("text_id", *LABELS), *rows]


def each_coder(folder: Path, rows: Callable[[str], list[tuple[Any, ...]]]) -> list[str]:
    """Write a file for each coder."""
    return [table(folder / f"coder_{coder}.csv", rows(coder)) for coder in CODERS]


def form(folder: Path) -> Everyday:
    heads = [f"Which apply? [{item}]" for item in ITEMS]
    rows = [("2026/05/01", coder, *(", ".join(SETS[item, coder]) or "none" for item in ITEMS)) for coder in CODERS]
    votes = {q: [(f"Which apply? [{i}]", who, x) for i, who, x in listed] for q, listed in of_sets().items()}
    return Everyday(table(folder / "form.csv", [("Timestamp", "Username", *heads), *rows]), votes)


def merged_items(folder: Path) -> Everyday:
    rows = [(item if at == 0 else "", coder, ONE[item, coder]) for item in ITEMS for at, coder in enumerate(CODERS)]
    cells = tuple(f"A{2 + 3 * n}:A{4 + 3 * n}" for n in range(len(ITEMS)))
    path = book(folder / "merged.xlsx", cells, Votes=[("text_id", "coder", "label"), *rows])
    return Everyday(path, of(ONE), notes=("48 rows without an item belong to the item above",))


def merged_header(folder: Path) -> Everyday:
    top = ("text_id", *(cell for coder in CODERS for cell in (coder, *[""] * (len(LABELS) - 1))))
    below = ("", *(label for _ in CODERS for label in LABELS))
    rows = [(i, *("x" if label in SETS[i, who] else "" for who in CODERS for label in LABELS)) for i in ITEMS]
    path = book(folder / "levels.xlsx", ("B1:E1", "F1:I1", "J1:M1"), Votes=[top, below, *rows])
    return Everyday(path, of_sets(), notes=("a column for each annotator (Anna, Ben, Cleo) and question (authority",))


def typos(folder: Path) -> Everyday:
    spelt = dict(ONE)
    spelt["t03", "Anna"] = "loylaty"
    return Everyday(
        table(folder / "votes.csv", long(spelt, header="text_id,coder,label")), of(spelt),
        notes=("'loylaty' (1 vote) of 'loyalty'. To join them, write  loylaty = \"loyalty\"  into a file",),
    )  # fmt: skip


def typo_joined(folder: Path) -> Everyday:
    spelt = dict(ONE)
    spelt["t03", "Anna"] = "loylaty"
    (folder / "labels.toml").write_text('loylaty = "loyalty"\n', encoding="utf-8")
    path = table(folder / "votes.csv", long(spelt, header="text_id,coder,label"))
    truth = ONE | {("t03", "Anna"): "loyalty"}
    return Everyday(path, of(truth), {"labels": str(folder / "labels.toml")})


def cases(folder: Path) -> Everyday:
    rows = [
        (item.upper() if coder == "Ben" else item, coder.lower() if n % 5 == 0 else f"{coder} ", label)
        for n, ((item, coder), label) in enumerate(ONE.items())
    ]
    notes = ("annotators that are spelt differently count as one: 'Anna' (also 'anna')", "items that are spelt")
    return Everyday(table(folder / "votes.csv", [("text_id", "coder", "label"), *rows]), of(ONE), notes=notes)


def machine_errors(folder: Path) -> Everyday:
    failures = ("Error: 429 rate limit", "None", "APIConnectionError: timed out", "HTTP 500")
    spelt = {cell: {"yes": "pass", "no": "fail"}[label] for cell, label in YES.items()}
    for n, cell in enumerate(cell for cell in spelt if cell[1] == "Ben"):
        spelt[cell] = failures[n % 4]
    votes = {cell: label for cell, label in spelt.items() if cell[1] != "Ben"}
    path = table(folder / "votes.csv", long(spelt, header="item,judge,verdict"))
    return Everyday(path, of(votes, "verdict"), notes=("annotators without a single vote: Ben.", "taken for no answer"))


def json_maps(folder: Path, outer: int) -> Everyday:
    maps: dict[str, dict[str, str]] = {}
    for cell, label in ONE.items():
        maps.setdefault(cell[outer], {})[cell[1 - outer]] = label
    path = folder / "votes.json"
    path.write_text(json.dumps(maps, indent=1), encoding="utf-8")
    return Everyday(str(path), of(ONE), notes=("labels by ",))


def coder_sheets(folder: Path) -> Everyday:
    sheets = {coder: marks(coder, "✓") for coder in CODERS}
    notes = [("label", "what it means"), ("care", "kindness"), ("fairness", "justice")]
    return Everyday(
        book(folder / "coders.xlsx", **sheets, Codebook=notes), of_sets(), notes=("3 sheets, each an annotator: Anna",)
    )


def zipped(folder: Path) -> Everyday:
    with zipfile.ZipFile(folder / "coders.zip", "w") as archive:
        for coder in CODERS:
            records = [{"id": item, "text": item, "label": list(SETS[item, coder])} for item in ITEMS]
            archive.writestr(f"{coder}.jsonl", "\n".join(map(json.dumps, records)))
    return Everyday(str(folder / "coders.zip"), of_sets())


def archive(folder: Path) -> Everyday:
    path = table(folder / "votes.csv", long(ONE, header="item,coder,label"))
    with tarfile.open(folder / "votes.tar.gz", "w:gz") as tar:
        tar.add(path, "votes.csv")
    return Everyday(str(folder / "votes.tar.gz"), {}, error="is an archive of files (tar). Unpack it")


def stray_quotes(folder: Path) -> Everyday:
    rows = [f'{item},{coder},{label},"a"b"' if n == 3 else f"{item},{coder},{label},fine" for n, ((item, coder), label)
            in enumerate(ONE.items())]  # fmt: skip
    rows[9] += ' close"'
    (folder / "votes.csv").write_text("\n".join(["item,coder,label,remark", *rows]), encoding="utf-8")
    return Everyday(
        str(folder / "votes.csv"),
        {},
        error="a double quote that swallows the rows after it. Close it, or write it twice",
    )


def lines_in_cells(folder: Path) -> Everyday:
    texts = {cell: f'first, "so"\nsecond, third, fourth line of {cell[0]}' for cell in ONE}
    return Everyday(table(folder / "votes.csv", long(ONE, texts, header="item,coder,label,remark")), of(ONE))


def zero_bytes(folder: Path) -> Everyday:
    path = Path(table(folder / "votes.csv", long(ONE, header="item,coder,label")))
    path.write_bytes(path.read_bytes() + bytes(512))
    return Everyday(str(path), {}, error="512 zero bytes")


def far_cell(folder: Path) -> Everyday:
    path = book(folder / "far.xlsx", Votes=wide(ONE))
    from openpyxl import load_workbook

    workbook = load_workbook(path)
    workbook.active["XFD1048576"] = "x"
    workbook.save(path)
    return Everyday(path, {}, error="a lone cell far outside its table, XFD1048576. Delete it")


def long_ids(folder: Path) -> Everyday:
    rows = [(2**60 + int(item[1:]), coder, label) for (item, coder), label in ONE.items()]
    path = book(folder / "ids.xlsx", Votes=[("item", "coder", "label"), *rows])
    return Everyday(path, {}, error="72 cells of ids.xlsx are numbers of 16 digits or more, of which Excel keeps 15")


def batches(folder: Path, layout: Callable[..., list[tuple[Any, ...]]]) -> Everyday:
    header, *rows = layout()
    half = len(rows) // 2
    paths = [table(folder / "may.csv", [header, *rows[:half]]), table(folder / "june.csv", [header, *rows[half:]])]
    return Everyday(paths, of(ONE), notes=("2 files read as one: may, june.",))


def counts(folder: Path) -> Everyday:
    labels = sorted(set(ONE.values()))
    rows = [(item, *(sum(ONE[item, who] == label for who in CODERS) for label in labels)) for item in ITEMS]
    votes = {"label": [(i, "(anonymous)", ONE[i, who]) for i in ITEMS for who in CODERS]}
    return Everyday(table(folder / "counts.csv", [("item", *labels), *rows]), votes, notes=("they count labels",))


ZERO_ONE = {cell: str(int(label == "yes")) for cell, label in YES.items()}
DATES = {cell: {"care": "2024-05-01", "fairness": "2024-06-01", "loyalty": "1/2/2024"}[x] for cell, x in ONE.items()}
CODES = {cell: {"care": "1.1", "fairness": "1.10", "loyalty": "1.2"}[label] for cell, label in ONE.items()}
SIGNS = {cell: {"yes": "+1", "no": "-1"}[label] for cell, label in YES.items()}
COMMAS = {cell: label.replace(".", ",") for cell, label in HALVES.items()}
X_MARKS = {cell: "x" if label == "yes" else "" for cell, label in YES.items()}
SEVERAL = long(YES, ONE, SEVERITY, header="text_id,coder,toxic,category,severity")

FILES: dict[str, Callable[[Path], Everyday]] = {
    "wide, lists with commas": lambda f: Everyday(
        table(f / "sheet.csv", wide(joined(", "))), of_sets(),
        notes=("separated by ',' (guessed)", "'none' beside lists of labels means no to every label"),
    ),
    "wide, lists with bars": lambda f: Everyday(table(f / "sheet.csv", wide(joined("|", "nm"))), of_sets()),
    "wide, lists with semicolons": lambda f: Everyday(table(f / "s.csv", wide(joined("; ", "non-moral"))), of_sets()),
    "wide, lists in brackets": lambda f: Everyday(
        table(f / "sheet.csv", wide({cell: json.dumps(names) for cell, names in SETS.items()})), of_sets()
    ),
    "wide, lists, Excel": lambda f: Everyday(book(f / "sheet.xlsx", Votes=wide(joined(", "))), of_sets()),
    "combinations as labels, on demand": lambda f: Everyday(
        table(f / "sheet.csv", wide(joined(", "))), of(joined(", ")), {"multilabel": "", "missing": ()}
    ),
    "long, lists": lambda f: Everyday(table(f / "v.csv", long(joined(","), header="item,coder,label")), of_sets()),
    "long, lists with plus": lambda f: Everyday(
        table(f / "v.csv", long(joined("+"), header="item,coder,answer")), of_sets()
    ),
    "a form with check boxes": form,
    "a file per coder, marks": lambda f: Everyday(
        each_coder(f, lambda who: marks(who, "x")), named(of_sets(), "coder_{}".format),
        notes=("3 files, each an annotator: coder_Anna", "'x' is read as yes and a blank cell as no"),
    ),
    "a glob of files per coder": lambda f: Everyday(
        (each_coder(f, lambda who: marks(who, "1")), str(f / "coder_*.csv"))[1], named(of_sets(), "coder_{}".format)
    ),
    "a folder of files per coder": lambda f: Everyday(
        (each_coder(f, lambda who: marks(who, "X")), str(f))[1], named(of_sets(), "coder_{}".format)
    ),
    "a file per coder, labels": lambda f: Everyday(
        each_coder(f, lambda who: [("id", "text", "label"), *((i, f"text {i}", ONE[i, who]) for i in ITEMS)]),
        named(of(ONE), "coder_{}".format),
    ),
    "a file per coder, lists": lambda f: Everyday(
        each_coder(f, lambda who: [("id", "codes"), *((i, ", ".join(SETS[i, who]) or "none") for i in ITEMS)]),
        named(of_sets(), "coder_{}".format),
    ),
    "a file per coder, a column with their name": lambda f: Everyday(
        each_coder(f, lambda who: [("id", who), *((i, ONE[i, who]) for i in ITEMS)]),
        named(of(ONE), "coder_{}".format),
    ),
    "a sheet per coder, marks, and a codebook": coder_sheets,
    "a sheet per coder, labels": lambda f: Everyday(
        book(f / "b.xlsx", **{who: [("id", "label"), *((i, ONE[i, who]) for i in ITEMS)] for who in CODERS}), of(ONE)
    ),
    "a zip with a file per coder": zipped,
    "two batches, long": lambda f: batches(f, lambda: long(ONE, header="item,coder,label")),
    "two batches, wide": lambda f: batches(f, lambda: wide(ONE)),
    "marks by item and coder": lambda f: Everyday(
        table(f / "v.csv", [("item", "coder", *LABELS), *(
            (item, who, *("1" if label in names else "" for label in LABELS)) for (item, who), names in SETS.items())]),
        of_sets(),
    ),
    "wide, marks, numbered coders": lambda f: Everyday(
        table(f / "v.csv", wide(X_MARKS, ("item", "coder 1", "coder 2", "coder 3"))),
        named(of(ZERO_ONE), lambda who: f"coder {CODERS.index(who) + 1}"),
    ),
    "wide, marks, names": lambda f: Everyday(
        table(f / "v.csv", wide(X_MARKS)), of(ZERO_ONE), error="(--format wide)", way={"format": "wide"}
    ),
    "wide, zeros and ones": lambda f: Everyday(
        table(f / "v.csv", wide(ZERO_ONE)), of(ZERO_ONE), error="(--format wide)", way={"format": "wide"}
    ),
    "wide, a column per coder and question": lambda f: Everyday(
        table(f / "v.csv", [("item", *(f"coder{n}_{q}" for n in (1, 2, 3) for q in ("toxic", "severity"))), *(
            (i, *(answers[i, who] for who in CODERS for answers in (YES, SEVERITY))) for i in ITEMS)]),
        named(of(YES, "toxic") | of(SEVERITY, "severity"), lambda who: f"coder{CODERS.index(who) + 1}"),
    ),
    "several answer columns": lambda f: Everyday(
        table(f / "v.csv", SEVERAL), of(YES, "toxic") | of(ONE, "category") | of(SEVERITY, "severity"),
        notes=("3 columns of answers, each a question: category, toxic, severity",),
    ),
    "one of several answer columns": lambda f: Everyday(
        table(f / "v.csv", SEVERAL), of(SEVERITY, "severity"), {"label": "severity"}
    ),
    "lists and ratings, Excel": lambda f: Everyday(
        book(f / "v.xlsx", Votes=long(joined(", "), SEVERITY, header="text_id,coder,foundations,severity")),
        of_sets("foundations: ") | of(SEVERITY, "severity"),
    ),
    "a typing error": typos,
    "a typing error, joined": typo_joined,
    "names and ids in another case": cases,
    "decimal commas": lambda f: Everyday(
        table(f / "v.csv", long(COMMAS, header="item,coder,rating"), ";"), of(HALVES, "rating")
    ),
    "decimal commas in quotes": lambda f: Everyday(
        table(f / "v.csv", long(COMMAS, header="item,coder,rating")), of(HALVES, "rating")
    ),
    "merged cells of items": merged_items,
    "merged cells in the header": merged_header,
    "dates as labels": lambda f: Everyday(table(f / "v.csv", long(DATES, header="item,coder,label")), of(DATES)),
    "codes of a taxonomy": lambda f: Everyday(table(f / "v.csv", long(CODES, header="item,coder,label")), of(CODES)),
    "plus and minus one": lambda f: Everyday(table(f / "v.csv", long(SIGNS, header="item,coder,label")), of(SIGNS)),
    "errors of machines": machine_errors,
    "JSON by annotator": lambda f: json_maps(f, 1),
    "JSON by item": lambda f: json_maps(f, 0),
    "voter-id": lambda f: Everyday(table(f / "v.csv", long(ONE, header="item,voter-id,label")), of(ONE)),
    "a column called truth": lambda f: Everyday(
        table(f / "v.csv", [("item", "coder", "label", "truth"), *((*cell, x, "care") for cell, x in ONE.items())]),
        of(ONE), notes=("column 'truth' may hold true labels and is not used (--gold truth uses it)",),
    ),
    "long": lambda f: Everyday(table(f / "v.csv", long(ONE, header="item,annotator,label")), of(ONE)),
    "wide": lambda f: Everyday(table(f / "v.csv", wide(ONE)), of(ONE)),
    "counts": counts,
    "an archive": archive,
    "stray quotes": stray_quotes,
    "cells with lines, commas and quotes": lines_in_cells,
    "zero bytes": zero_bytes,
    "a cell far outside": far_cell,
    "long ids in Excel": long_ids,
}  # fmt: skip
