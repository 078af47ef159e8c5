"""What a release needs beside the code: versions that agree, metadata, shell completion, lowest versions, workflows."""

from __future__ import annotations

import datetime
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import moral_entropy as me
from moral_entropy.cli.main import main

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_is_of_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == me.__version__ and cited["license"] == PROJECT["license"] == "MIT"
    assert cited["date-released"] == datetime.date.fromisoformat(str(cited["date-released"]))


def test_the_lowest_versions_are_those_of_the_project():
    lowest = dict(
        line.split("==") for line in (ROOT / "constraints-lowest.txt").read_text().splitlines() if "==" in line
    )
    for wanted in PROJECT["dependencies"]:
        name, least = re.split(r">=", wanted)
        assert lowest[name] == least or lowest[name].startswith(f"{least}."), wanted
    assert len(lowest) == len(PROJECT["dependencies"])


@pytest.mark.parametrize("page", ["SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE", "CITATION.cff"])
def test_pages_that_others_look_for_are_there(page):
    assert len((ROOT / page).read_text(encoding="utf-8")) > 400


def complete(words, at):
    """Return what the shell would offer."""
    asked = {"_MORAL_ENTROPY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from moral_entropy.cli.main import main; sys.exit(main([]))"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **asked}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_shell_completes_commands_flags_and_choices():
    assert complete("moral-entropy ve", 1) == ["verify"]
    assert complete("moral-entropy check --ma", 2) == ["--max"]
    assert {"hf", "csv"} <= set(complete("moral-entropy export run --to ", 4))


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def steps_of(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_whole(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert {"name", True, "permissions", "jobs"} <= workflow.keys()
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for name, job in workflow["jobs"].items():
        assert {"runs-on", "timeout-minutes", "steps"} <= job.keys(), name
        assert set([job.get("needs")] if "needs" in job else []) <= workflow["jobs"].keys()
    for step in steps_of(workflow):
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1"))
        called = re.findall(r"^make ([\w-]+)", step.get("run", ""), flags=re.MULTILINE)
        assert set(called) <= set(targets), called
        # What a stranger can write goes into scripts by the environment, never by pasting.
        assert "${{" not in step.get("run", "")
        for file in re.findall(r"(?:tests|tools)/[\w/.]+", step.get("run", "")):
            assert (ROOT / file).exists(), file


def test_every_supported_python_and_system_is_tested():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    jobs = workflow["jobs"]
    supported = sorted(re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"])))
    assert jobs["test"]["strategy"]["matrix"]["python"] == jobs["windows"]["strategy"]["matrix"]["python"] == supported
    assert jobs["test"]["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest"]
    assert jobs["windows"]["runs-on"] == "windows-latest" and {"lowest", "check", "release-check"} <= jobs.keys()


def test_only_the_publishing_job_may_prove_who_it_is():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    allowed = {name: job.get("permissions", {}) for name, job in workflow["jobs"].items()}
    assert allowed == {"build": {}, "publish": {"id-token": "write"}}
    assert workflow["jobs"]["publish"]["needs"] == "build" and "secrets." not in str(workflow)


def script_of(name):
    [step] = [step for step in ACTION["runs"]["steps"] if step["name"] == name]
    return step["run"]


def test_the_action_takes_its_inputs_by_the_environment():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "") and (step.get("shell") == "bash" or "uses" in step)
        used = re.findall(r"inputs\.(\w+)", str(step))
        assert set(used) <= ACTION["inputs"].keys()


def noisy_votes(path, flips):
    """Write the votes of five people on 200 items, some of which are flipped."""
    rows = ["item,annotator,label"]
    for i in range(200):
        rows += [f"t{i},{a},{(i % 3 == 0) ^ ((7 * i + 13 * n) % 20 < flips)}" for n, a in enumerate("abcde")]
    path.write_text("\n".join(rows) + "\n")


CASES = {
    "better": (1, "", 0, "holds"),
    "same": (3, "", 0, "holds"),
    "worse": (8, "", 1, "FAILED"),
    "undecidable": (3, "--strict", 3, "UNDECIDED"),
    "limit": (3, "--max label/uncertain=0", 1, "FAILED"),
}
"""Flips in twenty votes, limits, exit code, and the word in log and summary. The earlier batch has three flips; that is
undecidable with --strict, as the interval of alpha reaches below what is tolerated."""


@pytest.fixture(scope="module")
def in_a_shell(tmp_path_factory):
    """Run steps of action.yml as they are, with this package; install nothing."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    folder = tmp_path_factory.mktemp("action")
    (folder / "bin").mkdir()
    for name, command in (
        ("moral-entropy", f'exec "{sys.executable}" -m moral_entropy "$@"'),
        ("python", f'if [ "$1" = -m ]; then echo "$@" > pip.txt; else exec "{sys.executable}" "$@"; fi'),
    ):
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / "bin" / name).chmod(0o755)

    def run(step, **values):
        path = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
        command = [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", script_of(step)]
        return subprocess.run(
            command, env={**os.environ, **path, **values}, cwd=folder, capture_output=True, text=True, check=False
        )

    # The step itself audits the earlier batch; later ones are audited here.
    noisy_votes(folder / "old.csv", 3)
    assert run("Audit", VOTES="old.csv", RUN="old", OPTIONS="--draws 50 --no-report").returncode == 0
    return folder, run


def test_the_action_installs_its_own_checkout(in_a_shell):
    folder, run = in_a_shell
    assert run("Install", SOURCE="/some/where").returncode == 0
    assert (folder / "pip.txt").read_text().split() == ["-m", "pip", "install", "--quiet", "/some/where"]
    assert "github.action_path" in str(ACTION)


def test_the_action_keeps_kernels_and_knows_them_again(in_a_shell, tmp_path):
    """An installed file is new each time; Numba takes what it kept only where the date is the same."""
    _, run = in_a_shell
    [keep, audit] = [step for step in ACTION["runs"]["steps"] if "moral-entropy-kernels" in str(step)]
    assert keep["with"]["path"] == audit["env"]["NUMBA_CACHE_DIR"]
    compiled = []
    for _ in range(2):
        shutil.rmtree(tmp_path / "src", ignore_errors=True)
        shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
        here = {"PYTHONPATH": str(tmp_path / "src"), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
        assert run("Install", SOURCE=".", **here).returncode == 0
        assert (
            run("Audit", VOTES="old.csv", RUN="again", OPTIONS="--draws 50 --no-report --force", **here).returncode == 0
        )
        compiled.append({path: path.stat().st_mtime_ns for path in (tmp_path / "kernels").rglob("*.nb*")})
    assert compiled[0] and compiled[0] == compiled[1]


@pytest.mark.parametrize("case", CASES)
def test_the_steps_of_the_action_audit_and_check(case, in_a_shell):
    folder, run = in_a_shell
    n_flips, limits, code, word = CASES[case]
    new, votes = f"new-{n_flips}", folder / f"new-{n_flips}.csv"
    if not votes.exists():
        noisy_votes(votes, n_flips)
        assert main(["audit", str(votes), "-o", str(folder / new), "--draws", "50", "--no-report", "--quiet"]) == 0
    values = {"RUN": new, "AGAINST": "" if "--max" in limits else "old", "LIMITS": limits}
    done = run("Check", **values, GITHUB_STEP_SUMMARY=f"{case}.md")
    assert done.returncode == code, done.stderr
    summary = (folder / f"{case}.md").read_text()
    assert word in done.stdout and word in summary and "check 50 labels" in summary


def test_a_broken_run_has_an_exit_code_of_its_own(in_a_shell):
    folder, run = in_a_shell
    (folder / "broken").mkdir()
    done = run("Check", RUN="broken", AGAINST="old", LIMITS="", GITHUB_STEP_SUMMARY="broken.md")
    assert done.returncode == 4 and "is no run folder" in done.stderr


def test_the_container_copies_files_that_are_there():
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY") and "--from" not in line]
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    assert lines[-2:] == ['ENTRYPOINT ["moral-entropy"]', 'CMD ["--help"]'] and "USER 10001" in lines


def release_check():
    spec = importlib.util.spec_from_file_location("release_check", ROOT / "tools" / "release_check.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_release_check_finds_builds_that_differ_and_large_files(tmp_path):
    check = release_check()
    for name, data in (("once", b"a" * 2_000_000), ("again", b"b")):
        (tmp_path / name).mkdir()
        with zipfile.ZipFile(tmp_path / name / "x.whl", "w") as archive:
            archive.writestr("moral_entropy/data.bin", data)
            archive.writestr("moral_entropy/small.py", "x = 1")
    once, again = (sorted((tmp_path / name).iterdir()) for name in ("once", "again"))
    assert check.differing(once, once) == [] and check.differing(once, again) == ["x.whl"]
    assert check.too_large(once[0]) == ["moral_entropy/data.bin (2,000,000 bytes)"] and check.too_large(again[0]) == []


def test_the_release_check_states_sizes_and_seconds_and_asks_for_an_address(tmp_path, monkeypatch):
    check = release_check()
    (tmp_path / "a.whl").write_bytes(b"x" * 20_000)
    steps = [check.Step("install", 12.345, 6.7), check.Step("first audit", 20.0, 21.0)]
    text = check.measured([tmp_path / "a.whl"], {"3.11.7": steps}, load=0.0)
    assert text.startswith("a.whl 0.02 MB; ") and text.endswith("\n| 3.11.7 | 12.35 (6.70) | 20.00 (21.00) |")
    assert "brackets" not in text and "brackets" in check.measured([], {"3.11.7": steps}, load=1e9)
    monkeypatch.setattr(check, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text(f"# Times\n\n{check.BEGIN}\nold\n{check.END}\nrest\n")
    check.write_page(text)
    assert (tmp_path / "page.md").read_text() == f"# Times\n\n{check.BEGIN}\n{text}\n{check.END}\nrest\n"
    assert check.timed("nothing", [sys.executable, "-c", "pass"]).waited > 0
    with pytest.raises(SystemExit, match="error: going wrong failed\nit is broken"):
        check.timed("going wrong", [sys.executable, "-c", "import sys; sys.exit('it is broken')"])
    assert bool(check.without_address()) != bool(PROJECT.get("urls"))
    page = (ROOT / "docs" / "evidence" / "release.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (3\.\d+)\.", page, flags=re.MULTILINE)) >= {"3.11", "3.12", "3.13"}


PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")


def test_the_paper_cites_what_its_bibliography_has_and_shows_figures_that_are_there():
    entries = re.findall(
        r"^@\w+\{(\w+),$", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    _, front, body = PAPER.split("---\n", 2)
    assert set(re.findall(r"@(\w+)", body)) == set(entries) and len(entries) == len(set(entries))
    figures = dict(re.findall(r"\\label\{(fig:\w+)\}\]\(([^)]+)\)", body))
    assert set(re.findall(r"\\autoref\{(fig:\w+)\}", body)) == figures.keys()
    assert [figure for figure in figures.values() if not (ROOT / "paper" / figure).is_file()] == []
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= yaml.safe_load(front).keys()
    for heading in ("Summary", "Statement of need", "References"):
        assert f"\n# {heading}\n" in body


REAL = (ROOT / "docs" / "evidence" / "real-votes.md").read_text(encoding="utf-8")


def test_the_figures_of_the_paper_are_those_of_real_votes():
    means = dict(re.findall(r"^\| ([\w ]+) \| (\.\d{3} \| [^|]* \| \.\d{3}) \|", REAL, flags=re.MULTILINE))
    ratio, _, accuracy = means["published p"].split(" | ")
    [plurality] = re.findall(r"^\| plurality \| \S+ \| [^|]* \| (\.\d{3}) \|", REAL, flags=re.MULTILINE)
    said = " ".join(PAPER.split())
    assert f"have {ratio} of the log loss" in said
    assert f"an accuracy of {accuracy} (the plain vote: {plurality})" in said


def test_the_readme_says_what_real_votes_show():
    table = (ROOT / "docs" / "data" / "real-votes.csv").read_text(encoding="utf-8")
    pairs = re.findall(r"^[^,]+,(\.\d{3})/[^,]+,(\.\d{3})/", table, flags=re.MULTILINE)
    more, less = (sum(better) for better in ([p > v for v, p in pairs], [p < v for v, p in pairs]))
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert len(pairs) >= 19 and f"[{len(pairs)} public sets]" in readme
    assert f"than those of the plain vote on {more}, and less often on {less}." in readme


def test_the_readme_reads_in_three_minutes():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    # 240 words per minute, blocks of code and output left out.
    assert len(re.sub(r"\]\([^)]*\)", "", prose).split()) <= 720
    [where] = re.findall(r"^## Where next\n(.*?)^\[", page, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^- \[", where, flags=re.MULTILINE)) == 3
