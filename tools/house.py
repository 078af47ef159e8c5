"""Count the package and its documentation: code lines, files, dataclasses, flags, words, vague names of variables.

Usage: python tools/house.py [TREE] [--against OTHER] [--budget] [--write] [--walk] [--packages FOLDER ...]

A tree is a checkout. `--against` prints both trees side by side; `--budget` compares the tree with tools/budget.toml
and fails above it; `--write` lowers that file to what is counted; `--walk` counts what one plain audit runs;
`--packages` counts folders of other packages in the same way, tests left out.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
BUDGET = HERE / "tools" / "budget.toml"
KINDS = ("code", "files", "dataclasses", "flags", "words", "vague")
VAGUE = frozenset(
    re.findall(
        r"\w+",
        """
        one ones other others some several both what which who whose them this that such own whole
        rest more most few many another same found told given asked known named said wanted taken
        made kept seen left done shown meant drawn merged counted looked used chosen needed held
        sent written called learnt believed heard judged settled spoken
        """,
    )
)
"""Pronouns and participles: as the name of a variable they make the reader look at the right-hand side."""
SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

FLAGS = """
import json
from moral_entropy.cli.commands import SENTENCES, load_command
print(json.dumps({c: sum(p.param_type_name == "option" for p in load_command(c).params) for c in SENTENCES}))
"""

WALK = """
import json, sys
from pathlib import Path
import moral_entropy
from moral_entropy.cli.main import main

ROOT = str(Path(moral_entropy.__file__).parent)
functions, deepest = set(), []

def profile(frame, event, _):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name.startswith("<"):
        return
    if code in functions:
        return
    path = []
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return
        if name.startswith(ROOT) and (not path or path[-1] != name):
            path.append(name)
        frame = frame.f_back
    functions.add(code)
    if len(path) > len(deepest):
        deepest[:] = path[::-1]

sys.setprofile(profile)
code = main(["audit", "votes.csv", "-o", "run", "--quiet"])
sys.setprofile(None)
assert code == 0
relative = [str(Path(name).relative_to(ROOT)) for name in deepest]
files = len({function.co_filename for function in functions})
print(json.dumps({"functions": len(functions), "files": files, "deepest": relative}))
"""


def code_lines(text: str, tree: ast.AST) -> int:
    """Count the lines with code on them: no blank lines, comments, docstrings or other bare strings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def is_dataclass(node: ast.AST) -> bool:
    """Say whether a node is a class that is decorated as a dataclass."""
    return isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(part) for part in node.decorator_list)


def bindings(tree: ast.AST) -> list[str]:
    """Return the name of every variable and argument that is bound in a module."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return names + [
        node.arg for node in ast.walk(tree) if isinstance(node, ast.arg) and node.arg not in {"self", "cls"}
    ]


def package_rows(folders: list[Path]) -> list[str]:
    """Return a row of CSV for every package: code lines, files, classes, dataclasses, vague names of bindings in %."""
    rows = ["package,code lines,files,classes,dataclasses,vague names (%)"]
    for root in folders:
        paths = [path for path in root.rglob("*.py") if not any(part.startswith("test") for part in path.parts)]
        texts = [path.read_text(encoding="utf-8") for path in paths]
        trees = [ast.parse(text) for text in texts]
        nodes = [node for tree in trees for node in ast.walk(tree)]
        names = [name for tree in trees for name in bindings(tree)]
        counts = (
            sum(map(code_lines, texts, trees)), len(paths), sum(isinstance(node, ast.ClassDef) for node in nodes),
            sum(map(is_dataclass, nodes)),
        )  # fmt: skip
        share = 100.0 * sum(name in VAGUE for name in names) / len(names)
        rows.append(f"{root.name},{','.join(map(str, counts))},{share:.2f}")
    return rows


def run_in(tree: Path, script: str, folder: Path) -> str:
    """Run a script with the package of a tree and return what it prints."""
    env = os.environ | {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def measure(tree: Path) -> dict[str, Counter[str]]:
    """Count a tree: for each kind the number by folder (flags: by command)."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    root = tree / "src" / "moral_entropy"
    for path in sorted(root.rglob("*.py")):
        text, folder = path.read_text(encoding="utf-8"), path.relative_to(root).parts[0]
        parsed = ast.parse(text)
        counts["files"][folder] += 1
        counts["code"][folder] += code_lines(text, parsed)
        counts["dataclasses"][folder] += sum(map(is_dataclass, ast.walk(parsed)))
        counts["vague"][folder] += sum(name in VAGUE for name in bindings(parsed))
    counts["flags"].update(json.loads(run_in(tree, FLAGS, tree)))
    for path in (tree / "README.md", *sorted((tree / "docs").rglob("*.md"))):
        folder = "/".join(path.relative_to(tree).parts[:-1][:2]) or "README.md"
        counts["words"][folder] += len(path.read_text(encoding="utf-8").split())
    return counts


def print_counts(now: dict[str, Counter[str]], before: dict[str, Counter[str]] | None) -> None:
    """Print what was counted by folder, with what was before if there is a tree to compare with."""

    def cell(kind: str, folder: str | None) -> str:
        values = [kinds[kind].total() if folder is None else kinds[kind][folder] for kinds in (before, now) if kinds]
        return " → ".join(f"{value:,}" for value in values)

    tables = {("code", "files", "dataclasses", "vague"): "folder", ("flags",): "command", ("words",): "documentation"}
    for kinds, title in tables.items():
        print(f"{title:<16}" + "".join(f"{kind:>20}" for kind in kinds))
        for folder in sorted(
            {folder for counts in (now, before or {}) for kind in kinds for folder in counts.get(kind, ())}
        ):
            print(f"{folder:<16}" + "".join(f"{cell(kind, folder):>20}" for kind in kinds))
        print(f"{'all':<16}" + "".join(f"{cell(kind, None):>20}" for kind in kinds) + "\n")


def over_budget(now: dict[str, Counter[str]], budget: dict[str, dict[str, int]]) -> list[str]:
    """Return a line for every kind that is above its budget: by how much, and in which folders."""
    lines = []
    for kind in KINDS:
        allowed = budget[kind]
        excess = now[kind].total() - allowed["all"]
        if excess > 0:
            grown = {folder: n - allowed.get(folder, 0) for folder, n in now[kind].items()}
            places = sorted((folder for folder in grown if grown[folder] > 0), key=lambda folder: -grown[folder])
            where = ", ".join(f"{folder} +{grown[folder]:,}" for folder in places) or "spread over all folders"
            lines.append(f"{kind}: {now[kind].total():,}, {excess:,} above the budget of {allowed['all']:,}. {where}")
    return lines


def write_budget(now: dict[str, Counter[str]]) -> None:
    """Write what was counted as the budget."""
    text = "# At most this much, in all; by folder (flags: by command) to say where it grew. Lower it with every cut.\n"
    for kind in KINDS:
        rows = {"all": now[kind].total()} | dict(sorted(now[kind].items()))
        text += f"\n[{kind}]\n" + "".join(f'"{folder}" = {count}\n' for folder, count in rows.items() if count)
    BUDGET.write_text(text, encoding="utf-8")


def walk(tree: Path) -> dict[str, Any]:
    """Audit 1,600 votes and count the functions and files of the package that run; with the deepest chain of files."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            f"{i},a{a},{'yes' if (i % 3 == 0) != ((7 * i + a * a) % 11 < a) else 'no'}"
            for i in range(200)
            for a in range(8)
        ]
        (Path(folder) / "votes.csv").write_text("item,annotator,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
        result: dict[str, Any] = json.loads(run_in(tree, WALK, Path(folder)).splitlines()[-1])
    print(f"one audit of 1,600 votes: {result['functions']:,} functions in {result['files']} files")
    print(f"deepest: {len(result['deepest']) - 1} changes of file: {' → '.join(result['deepest'])}")
    return result


def main() -> None:
    """Read the arguments and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, default=HERE)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--budget", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--walk", action="store_true")
    parser.add_argument("--packages", nargs="+", type=Path)
    asked = parser.parse_args()
    if asked.packages:
        print("\n".join(package_rows(asked.packages)))
        return
    if asked.walk:
        walk(asked.tree.resolve())
        return
    now = measure(asked.tree.resolve())
    if asked.write:
        write_budget(now)
    elif asked.budget:
        lines = over_budget(now, tomllib.loads(BUDGET.read_text(encoding="utf-8")))
        sys.exit("\n".join(lines)) if lines else print("within tools/budget.toml")
    else:
        print_counts(now, measure(asked.against.resolve()) if asked.against else None)


if __name__ == "__main__":
    main()
