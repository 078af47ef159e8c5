"""The documentation is true: its blocks run, and nothing that exists is missing from it."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import random
import re
import shlex
import shutil
import tomllib
from functools import cache
from pathlib import Path

import pytest
from golden.test_cli_text import CASES

import moral_entropy as me
from moral_entropy.checks.run import CHEAP, CHECKS
from moral_entropy.cli.commands import SENTENCES, load_command
from moral_entropy.cli.main import main
from moral_entropy.option_fields import keywords
from moral_entropy.options import AuditOptions
from moral_entropy.runs.folder import read_manifest
from moral_entropy.schemas import SCHEMAS
from moral_entropy.votes.formats import records

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NUMBER = {4: "four", 5: "five", 6: "six"}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


IN_ORDER = (ROOT / "docs" / "tutorial" / "first-audit.md", ROOT / "docs" / "how-to" / "thin-data.md")
"""Their blocks build on each other: tests/golden runs them in order."""


def blocks(language):
    pages = [page for page in PAGES if page not in IN_ORDER]
    found = [(page, block) for page in pages for kind, block in BLOCK.findall(page.read_text()) if kind == language]
    return [pytest.param(block, id=f"{page.relative_to(ROOT)}-{n}") for n, (page, block) in enumerate(found)]


def votes_csv():
    draw = random.Random(8)
    lines = ["item,annotator,label,domain,text"]
    for item in range(150):
        truth = draw.random() < 0.35
        text = f"{'harm' if truth else 'tea'} {item} and {draw.choice(['rain', 'sun'])}"
        lines += [f"{item},{name},{int(truth == (draw.random() < 0.85))},{'ab'[item % 2]},{text}" for name in "vwxyz"]
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text(votes_csv())
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "votes.csv", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


STUDY = "$ moral-entropy reproduce"
"""Begins a command that takes seconds; the same with other numbers is among the golden texts."""


def test_the_study_of_the_documentation_is_among_the_golden_texts():
    [block] = [block.values[0] for block in blocks("console") if STUDY in block.values[0]]
    golden = " ".join(["$ moral-entropy", *CASES["reproduce"]])
    assert re.sub(r"[\d.]+", "#", block.strip()) == re.sub(r"[\d.]+", "#", golden)


@pytest.mark.parametrize("block", [block for block in blocks("console") if STUDY not in block.values[0]])
def test_commands_in_the_documentation_run(block, folder, capsys):
    commands = [shlex.split(line[2:], comments=True) for line in block.splitlines() if line.startswith("$ ")]
    assert commands, "a console block without a command"
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for program, *arguments in commands:
        assert program in ("moral-entropy", "make"), program
        if program == "make":
            assert set(arguments) <= set(targets)
        else:
            assert main(arguments) == 0, capsys.readouterr().err


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The run folder that the pages speak of; who writes to it copies it."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "votes.csv").write_text(votes_csv())
    assert main(["audit", str(folder / "votes.csv"), "-o", str(folder / "run"), "--draws", "20", "--quiet"]) == 0
    return folder / "run"


@pytest.mark.parametrize("block", blocks("python"))
def test_python_in_the_documentation_runs(block, folder, audited, capsys, monkeypatch):
    # A format that a page declares is gone with it.
    monkeypatch.setattr(records, "FORMATS", dict(records.FORMATS))
    shutil.copytree(audited, "run")
    exec(compile(block, "<documentation>", "exec"), {})


def test_the_readme_shows_six_lines_of_python():
    [block] = [block for kind, block in BLOCK.findall((ROOT / "README.md").read_text()) if kind == "python"]
    assert len([line for line in block.splitlines() if line.strip()]) <= 6


def test_every_export_is_documented():
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    assert [name for name in me.__all__ if f"`{name}`" not in page] == []


@cache
def commands():
    return {name: [flag for flag in flags if flag.startswith("--")] for name, flags in flags_by_command().items()}


def flags_by_command():
    options = {name: load_command(name).params for name in SENTENCES}
    return {name: [flag for one in options[name] for flag in (*one.opts, *one.secondary_opts)] for name in SENTENCES}


def test_every_command_and_flag_is_documented():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    found = commands()
    assert set(found) == {
        "audit",
        "check",
        "compare",
        "explain",
        "export",
        "judges",
        "plan",
        "next",
        "predict",
        "report",
        "reproduce",
        "serve",
        "simulate",
        "spot-check",
        "train",
        "validate",
        "verify",
    }
    for command, flags in found.items():
        assert len(flags) >= 2
        rows = re.findall(r"^- (`--.*?): ", section_of(page, command), flags=re.MULTILINE)
        assert sorted(re.findall(r"`(--[\w-]+)`", " ".join(rows))) == sorted(flags)


def section_of(page, command):
    [section] = re.findall(rf"^## {command}\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    return section


def flags_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text))


def flags_by_line(text):
    """Pair the flags on each line that calls one command with that command; others with none."""
    for line in text.splitlines():
        called = re.findall(r"moral-entropy ([a-z-]+) ", line)
        yield (called[0] if len(set(called)) == 1 else ""), flags_in(line)


@pytest.mark.parametrize("command", SENTENCES)
def test_a_command_is_documented_with_its_own_flags_only(command):
    section = section_of((ROOT / "docs" / "reference" / "commands.md").read_text(), command)
    known = {name: {*flags, "--help"} for name, flags in commands().items()}
    for called, flags in flags_by_line(section):
        assert flags <= known[called or command], (called or command, flags - known[called or command])


@pytest.mark.parametrize("page", ["README.md", "docs/reference/commands.md", "docs/reference/run-folder.md"])
def test_flags_in_the_documentation_exist(page):
    known = {name: {*flags, "--help"} for name, flags in commands().items()}
    known[""] = {flag for flags in known.values() for flag in flags} | {
        "--version",
        "--debug",
        "--strict",
        "--install-completion",
        "--show-completion",
    }
    for called, flags in flags_by_line((ROOT / page).read_text()):
        assert flags <= known[called], (called, flags - known[called])


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stub_has_every_public_name_and_keyword():
    stub = tool("stub")
    written, made = (ast.parse(text) for text in (stub.STUB.read_text(encoding="utf-8"), stub.stub_text()))
    assert ast.dump(written) == ast.dump(made), "run python tools/stub.py"


def test_the_reference_of_python_is_that_of_the_docstrings():
    reference = tool("python_reference")
    page = reference.PAGE.read_text(encoding="utf-8")
    assert reference.with_reference(page) == page, "run make golden"
    assert re.findall(r"^### (\w+)$", page, flags=re.MULTILINE) == [
        name for name in me.__all__ if name != "__version__"
    ]
    # Options are named; what they mean is in the lists of flags.
    [audit] = re.findall(r"^### audit\n(.*?)^### ", page, flags=re.MULTILINE | re.DOTALL)
    assert "| `out` | `None` | The run folder" in audit
    named = re.findall(r"`(\w+)`", re.search(r"^Options, .*$", audit, flags=re.MULTILINE)[0])
    assert {"draws", "model", "rules"} <= set(named)
    rare = {option.name for option in keywords(AuditOptions).values() if option.rare} | {"facts", "prior_confusion"}
    flags = commands()["audit"]
    assert {name for name in named if f"--{name.replace('_', '-')}" not in flags} <= rare
    assert doctest.testmod(reference).failed == 0


def test_the_tables_of_flags_are_those_of_the_commands():
    tables = tool("flag_tables")
    page = tables.PAGE.read_text()
    assert tables.with_tables(page) == page, "run make golden"


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_column_of_the_run_folder_is_documented(name):
    page = (ROOT / "docs" / "reference" / "run-folder.md").read_text()
    [section] = re.findall(rf"^## {name}\.parquet\n(.*?)(?=^## )", page, flags=re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^- (`.*?`) \((\w[^)]*)\): ", section, flags=re.MULTILINE)
    documented = [(column, kind) for columns, kind in rows for column in re.findall(r"`(\w+)`", columns)]
    assert [column for column, _ in documented] == SCHEMAS[name].names()
    for column, kind in documented:
        assert str(SCHEMAS[name][column]) in kind


def test_every_key_of_the_manifest_is_documented(audited):
    page = (ROOT / "docs" / "reference" / "run-folder.md").read_text()
    facts = read_manifest(audited)
    keys = {*facts, *facts["questions"][0], *facts["questions"][0]["curvature"], *facts["priors"], *facts["input"]}
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_the_index_lists_every_page():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)", index.read_text())}
    decisions = {*(ROOT / "docs" / "adr").glob("0*.md")}
    assert {page for page in PAGES if index.parent in page.parents} - linked - decisions == {index}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_a_heading_lead_to_one(page):
    for link, anchor in re.findall(r"\]\(([^)#]*\.md)?#([^)]+)\)", page.read_text()):
        headings = re.findall(r"^#+ (.*)$", ((page.parent / link) if link else page).read_text(), flags=re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, (
            link,
            anchor,
        )


def test_every_decision_is_listed():
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (ROOT / "docs" / "adr" / "README.md").read_text())
    assert listed == sorted(path.name for path in (ROOT / "docs" / "adr").glob("0*.md"))


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["torch"], *extras["test"], *extras["dev"]]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    assert [name for name in (re.split(r"[<>=]", want)[0] for want in wanted) if name not in pinned] == []


def test_every_check_is_explained_and_named():
    concepts, commands, tables = (
        (ROOT / "docs" / name).read_text()
        for name in ("concepts/validation.md", "reference/commands.md", "reference/run-folder.md")
    )
    rows = re.findall(r"^\| `([\w-]+)`( \*)? \| (.*?) \|", concepts, flags=re.MULTILINE)
    assert rows == [(name, " *" if check.cheap else "", check.title) for name, check in CHECKS.items()]
    assert all(f"`{name}`" in commands and f"`{name}`" in tables for name in CHECKS)
    assert f"these {NUMBER[len(CHEAP)]} run in every audit" in " ".join(commands.split())


def test_what_make_quick_runs_exists():
    listed = re.search(r"^QUICK := ((?:.*\\\n)+.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1]
    folders = re.findall(r"^(tests/\w+)$", listed.replace(" ", "\n"), flags=re.MULTILINE)
    assert len(folders) > 5 and [path for path in folders if not (ROOT / path).is_dir()] == []


def names_in(page):
    """Return the names such as `runs/run.read_run` of a page: a file under src/moral_entropy and what is in it."""
    return sorted(set(re.findall(r"(?<![\w/.])((?:[a-z_]+/)*[a-z_]+)\.([A-Za-z_]\w*(?:\.\w+)?)(?![\w/])", page)))


def test_every_function_of_the_architecture_exists():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "moral_entropy"
    named = [(file, name) for file, name in names_in(page) if (package / f"{file}.py").is_file() and name != "py"]
    assert len(named) > 30
    for file, name in named:
        value = importlib.import_module(f"moral_entropy.{file.replace('/', '.')}")
        for part in name.split("."):
            value = getattr(value, part)
    missing = [
        f"{file}.{name}" for file, name in names_in(page) if "/" in file and not (package / f"{file}.py").is_file()
    ]
    assert [name for name in missing if not name.startswith(("docs/", "tests/", "tools/", "studies/"))] == []


def test_the_walk_of_the_architecture_is_short_and_every_folder_is_in_its_table():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    [walk] = [block for kind, block in BLOCK.findall(page) if not kind]
    assert 8 <= len(re.findall(r"^\s*\d+ ", walk, flags=re.MULTILINE)) <= 14
    folders = {path.parent.name for path in (ROOT / "src" / "moral_entropy").glob("*/__init__.py")}
    rows = " ".join(re.findall(r"^\| (`.*?) \|", page, flags=re.MULTILINE))
    assert sorted(name for name in folders if f"`{name}`" not in rows) == []
