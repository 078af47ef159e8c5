"""Twelve small files of votes, as users have them, and the flags that an audit of each needs.

`write_input(name, folder)` writes the files and returns the arguments of `moral-entropy audit`.
Seeded: the same everywhere.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

SKILLS = {"ann": 0.95, "bob": 0.9, "cyd": 0.85, "dee": 0.8, "eve": 0.7, "fay": 0.6}
COLOURS = ("blue", "green", "red", "white")
WORDS = {True: ("cruel", "hurt", "attack"), False: ("rain", "tax", "lunch")}


def write_table(path: Path, header: str, rows: list[tuple[object, ...]]) -> None:
    """Write rows under a header as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header.split(","), *rows])


def answer(rng: random.Random, truth: bool, skill: float) -> str:
    """Draw a vote of an annotator who is right with chance `skill`."""
    return "yes" if truth == (rng.random() < skill) else "no"


def two_labels(folder: Path) -> list[str]:
    """Six annotators of uneven skill answer yes or no; one in five votes is missing."""
    rng, rows = random.Random(1), []
    for item in range(90):
        truth = rng.random() < 0.35
        rows += [(f"t{item}", a, answer(rng, truth, s)) for a, s in SKILLS.items() if rng.random() < 0.8]
    write_table(folder / "votes.csv", "item,annotator,label", rows)
    return ["votes.csv"]


def four_labels(folder: Path) -> list[str]:
    """Five annotators name one of four colours; two colours are often confused."""
    rng, rows = random.Random(2), []
    for item in range(80):
        truth = rng.choices(COLOURS, (5, 3, 2, 1))[0]
        for annotator, skill in list(SKILLS.items())[:5]:
            wrong = {"blue": "green", "green": "blue"}.get(truth) if rng.random() < 0.6 else None
            label = truth if rng.random() < skill else wrong or rng.choice(COLOURS)
            rows.append((item, annotator, label))
    write_table(folder / "colours.csv", "item,annotator,colour", rows)
    return ["colours.csv", "--label", "colour"]


def wide_rows(seed: int, n_items: int, says: tuple[str, str]) -> list[tuple[object, ...]]:
    """Draw a sheet with one row per item and one column per annotator; empty cells are missing votes."""
    rng, rows = random.Random(seed), []
    for item in range(n_items):
        truth = rng.random() < 0.3
        cells = [says[answer(rng, truth, s) == "yes"] if rng.random() < 0.85 else "" for s in SKILLS.values()]
        rows.append((f"post {item}", *cells))
    return rows


def wide(folder: Path) -> list[str]:
    """One row per item, one column per annotator, 0 and 1."""
    write_table(folder / "sheet.csv", ",".join(["post_id", *SKILLS]), wide_rows(3, 70, ("0", "1")))
    return ["sheet.csv", "--format", "wide"]


def excel(folder: Path) -> list[str]:
    """The same kind of sheet as an Excel workbook, with words for answers."""
    from openpyxl import Workbook

    book = Workbook()
    for row in [("post_id", *SKILLS), *wide_rows(4, 60, ("no", "yes"))]:
        book.active.append([cell or None for cell in row])
    book.save(folder / "book.xlsx")
    return ["book.xlsx", "--format", "wide"]


def gold(folder: Path) -> list[str]:
    """Five annotators; the true label of every second item is known."""
    rng, rows = random.Random(5), []
    for item in range(100):
        truth = rng.random() < 0.4
        known = ("yes" if truth else "no") if item % 2 else ""
        for annotator, skill in list(SKILLS.items())[1:]:
            if rng.random() < 0.85:
                rows.append((item, annotator, answer(rng, truth, skill), known))
    write_table(folder / "votes.csv", "item,annotator,label,truth", rows)
    return ["votes.csv", "--gold", "truth"]


def domains(folder: Path) -> list[str]:
    """Texts from three sources with different shares of yes."""
    rng, rows = random.Random(6), []
    for item in range(66):
        source = ("forum", "wiki", "news")[item % 3]
        truth = rng.random() < {"forum": 0.6, "wiki": 0.2, "news": 0.35}[source]
        text = f"{rng.choice(WORDS[truth])} {rng.choice(WORDS[rng.random() < 0.4])} and number {item}"
        for annotator, skill in SKILLS.items():
            if rng.random() < 0.7:
                rows.append((item, annotator, answer(rng, truth, skill), source, text))
    write_table(folder / "votes.csv", "item,annotator,label,source,text", rows)
    return ["votes.csv", "--domain", "source", "--text", "text"]


def groups(folder: Path) -> list[str]:
    """Twelve annotators of two parties that see a third of the items differently."""
    rng, rows = random.Random(7), []
    for item in range(80):
        truths = {"left": rng.random() < 0.45}
        truths["right"] = rng.random() < 0.3 if item % 3 == 0 else truths["left"]
        for number in rng.sample(range(12), 7):
            party = ("left", "right")[number % 2]
            rows.append((item, f"p{number:02}", answer(rng, truths[party], 0.7 + number / 50), party))
    write_table(folder / "votes.csv", "item,annotator,label,party", rows)
    return ["votes.csv", "--annotator-group", "party"]


def judges(folder: Path) -> list[str]:
    """Four language models and one person grade the answers of three systems."""
    rng, rows = random.Random(8), []
    panel = {"gpt-4o": 0.85, "gpt-4o-mini": 0.75, "claude-3-5-sonnet": 0.88, "llama-3-70b": 0.7, "human_1": 0.95}
    for prompt in range(26):
        for system, share in (("alpha", 0.7), ("beta", 0.5), ("gamma", 0.4)):
            good = rng.random() < share
            shared = rng.random() < 0.15
            for judge, skill in panel.items():
                if judge == "human_1" and prompt % 2:
                    continue
                grade = "no" if shared and judge.startswith("gpt") else answer(rng, good, skill)
                rows.append((f"q{prompt}-{system}", judge, grade, system))
    write_table(folder / "grades.csv", "item,judge,correct,system", rows)
    return ["grades.csv", "--annotator", "judge", "--label", "correct", "--domain", "system"]


def label_studio(folder: Path) -> list[str]:
    """An export of Label Studio: tasks with the annotations of up to four people."""
    rng, tasks = random.Random(9), []
    for task in range(60):
        truth = rng.random() < 0.4
        marks = []
        for annotator, skill in ((1, 0.9), (2, 0.85), (3, 0.8), (4, 0.65)):
            if rng.random() < 0.85:
                choice = "Toxic" if answer(rng, truth, skill) == "yes" else "Fine"
                value = {"from_name": "toxicity", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
                marks.append({"id": 10 * task + annotator, "completed_by": annotator, "result": [value]})
        tasks.append({"id": task + 1, "data": {"text": f"comment {task}"}, "annotations": marks})
    (folder / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    return ["export.json"]


def thin(folder: Path) -> list[str]:
    """One or two votes per item, by five annotators."""
    rng, rows = random.Random(10), []
    for item in range(100):
        truth = rng.random() < 0.4
        for annotator in rng.sample(list(SKILLS)[:5], rng.choice((1, 2, 2))):
            rows.append((item, annotator, answer(rng, truth, SKILLS[annotator])))
    write_table(folder / "votes.csv", "item,annotator,label", rows)
    return ["votes.csv"]


def copies(folder: Path) -> list[str]:
    """Six annotators, of whom one hands in the votes of another."""
    rng, rows = random.Random(11), []
    for item in range(90):
        truth = rng.random() < 0.4
        votes = {a: answer(rng, truth, s) for a, s in SKILLS.items()}
        votes["twin"] = votes["eve"]
        rows += [(item, a, v) for a, v in votes.items() if a in ("eve", "twin") or rng.random() < 0.8]
    write_table(folder / "votes.csv", "item,annotator,label", rows)
    return ["votes.csv"]


def paper(folder: Path) -> list[str]:
    """Moral foundations: three yes/no questions about each post, with the priors of the paper."""
    rng, rows = random.Random(12), []
    for post in range(60):
        truths = [rng.random() < share for share in (0.4, 0.2, 0.1)]
        for annotator, skill in list(SKILLS.items())[:5]:
            rows.append((post, annotator, *(int(answer(rng, truth, skill) == "yes") for truth in truths)))
    write_table(folder / "posts.csv", "post_id,annotator,care,loyalty,purity", rows)
    return ["posts.csv", "--questions", "care,loyalty,purity", "--preset", "mft", "--model", "paper"]


INPUTS = {
    make.__name__: make
    for make in (
        two_labels, four_labels, wide, excel, gold, domains, groups, judges, label_studio, thin, copies, paper,
    )
}  # fmt: skip
ALSO_PAPER = ("two_labels", "four_labels", "wide", "gold", "domains", "groups", "copies")
"""Inputs that are also audited with the model of the paper, as `<name>_paper`."""

NAMES = (*INPUTS, *(f"{name}_paper" for name in ALSO_PAPER))


def write_input(name: str, folder: Path) -> list[str]:
    """Write the files of an input into a folder and return the arguments after `moral-entropy audit`."""
    base = name.removesuffix("_paper")
    return [*INPUTS[base](folder), *(["--model", "paper"] if base != name else [])]
