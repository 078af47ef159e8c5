"""Measure the house: files, lines of code, dataclasses, flags, longest function, imports between folders.

Usage: python tools/house.py [src/moral_entropy]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that docstrings and other bare strings take."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def code_lines(text: str, tree: ast.AST) -> set[int]:
    """Return the numbers of the lines with code on them: no blank lines, comments or docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - docstring_lines(tree)


def is_dataclass(node: ast.ClassDef) -> bool:
    """Say whether a class is decorated as a dataclass."""
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def flags_in(tree: ast.AST) -> int:
    """Count the places that declare a flag or an option: typer's, and those of options classes."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sum(ast.unparse(call.func) in ("Option", "typer.Option", "option") for call in calls)


def room_of(path: Path, root: Path) -> str:
    """Name the folder a file belongs to; a file at the top is a room of its own."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def main(root: Path) -> None:
    """Print the table."""
    files, code, classes, flags = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    longest, edges = (0, ""), set[tuple[str, str]]()
    for path in sorted(root.rglob("*.py")):
        text, room = path.read_text(encoding="utf-8"), room_of(path, root)
        tree = ast.parse(text)
        lines = code_lines(text, tree)
        files[room] += 1
        code[room] += len(lines)
        flags[room] += flags_in(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[room] += is_dataclass(node)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = len(lines & set(range(node.lineno, (node.end_lineno or 0) + 1)))
                longest = max(longest, (size, f"{path.relative_to(root)}:{node.name}"))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("moral_entropy."):
                target = str(node.module).split(".")[1]
                if target != room and (root / room).is_dir() and (root / target).is_dir():
                    edges.add((room, target))
    print(f"{'room':<12}{'files':>6}{'code':>8}{'dataclasses':>13}{'flags':>7}")
    for room in sorted(files):
        print(f"{room:<12}{files[room]:>6}{code[room]:>8,}{classes[room]:>13}{flags[room]:>7}")
    totals = (files.total(), code.total(), classes.total(), flags.total())
    print(f"{'all':<12}{totals[0]:>6}{totals[1]:>8,}{totals[2]:>13}{totals[3]:>7}")
    print(f"longest function: {longest[0]} lines, {longest[1]}; import edges between folders: {len(edges)}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "src/moral_entropy"))
