"""Build what would be released, twice, install it into empty environments, and audit a file of votes in each.

Prints sizes and times; ends with 1 where something is not as it should be: two builds that differ, a file in the wheel
above 1 MB without need, a first audit that fails. Warns where the archives name no address of the project.

Usage: python tools/release_check.py [--keep FOLDER] [--python PROGRAM]… [--write]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]

MOST_BYTES = 1_000_000
"""A file of the wheel may be this large; larger ones must be named in `NEEDED`."""

NEEDED: tuple[str, ...] = ()
"""Larger files that the wheel needs."""

EPOCH = "1763337600"
"""The time that archives get where git does not know one."""

PAGE = ROOT / "docs" / "evidence" / "release.md"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"

IMPORT = "import time; t = time.perf_counter(); import moral_entropy; print(f'{time.perf_counter() - t:.3f}')"


def build(folder: Path) -> list[Path]:
    """Build sdist and wheel into a folder and return both."""
    told = {**os.environ, "SOURCE_DATE_EPOCH": source_date()}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, env=told, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.iterdir())


def source_date() -> str:
    """Return the time of the last commit, or that of the last release where there is no git."""
    asked = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return EPOCH
    return done.stdout.strip() or EPOCH


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def differing(once: list[Path], again: list[Path]) -> list[str]:
    """Name the archives of two builds that are not the same, bit for bit."""
    if [path.name for path in once] != [path.name for path in again]:
        return ["the names of the archives"]
    return [one.name for one, two in zip(once, again, strict=True) if digest(one) != digest(two)]


def too_large(wheel: Path) -> list[str]:
    """List files in a wheel that are larger than they may be."""
    with zipfile.ZipFile(wheel) as archive:
        return [
            f"{entry.filename} ({entry.file_size:,} bytes)"
            for entry in archive.infolist()
            if entry.file_size > MOST_BYTES and entry.filename not in NEEDED
        ]


def write_votes(path: Path) -> None:
    """Write a small file of votes: four annotators, right three times in four."""
    draw = random.Random(1)
    lines = ["text_id,rater,vote"]
    for item in range(100):
        truth = draw.random() < 0.4
        lines += [f"{item},{name},{'yes' if truth == (draw.random() < 0.75) else 'no'}" for name in "abcd"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Step(NamedTuple):
    """What was done, how long somebody waits for it, and how long processors worked on it, in seconds."""

    name: str
    waited: float
    worked: float


def timed(name: str, command: Sequence[str | Path], **told: Any) -> Step:
    """Run a command that must not fail, and time it; where it fails, end with what it said."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, **told)
    if done.returncode:
        sys.exit(f"error: {name} failed\n{done.stderr}")
    waited, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Step(name, waited, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def newcomer(wheel: Path, python: str, home: Path) -> list[Step]:
    """Go the way of a newcomer: an empty environment, pip install, the first audit, and the report is there."""
    environment, work = home / "venv", home / "elsewhere"
    subprocess.run([python, "-m", "venv", str(environment)], check=True)
    programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
    pip: list[str | Path] = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    work.mkdir()
    write_votes(work / "votes.csv")
    told = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told["NUMBA_CACHE_DIR"] = str(work / "cache")
    program = programs / "moral-entropy"
    here: dict[str, Any] = {"cwd": work, "env": told}
    steps = [
        timed("install", [*pip, "-c", ROOT / "constraints.txt", wheel]),
        timed("first audit", [program, "audit", "votes.csv", "-o", "run", "--quiet"], **here),
        timed("second audit", [program, "audit", "votes.csv", "-o", "again", "--quiet"], **here),
        timed("verify", [program, "verify", "run", "--votes", "votes.csv", "--quiet"], **here),
    ]
    if not (work / "run" / "report.html").is_file():
        sys.exit("error: the first audit wrote no report")
    asked = [str(programs / "python"), "-c", IMPORT]
    spent = float(subprocess.run(asked, check=True, capture_output=True, text=True, **here).stdout)
    return [*steps, Step("import moral_entropy", spent, spent)]


def version_of(python: str) -> str:
    """Return the version of an interpreter."""
    asked = [python, "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def without_address() -> list[str]:
    """Warn where the archives say nowhere what the project's address is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if project.get("urls"):
        return []
    return ["pyproject.toml has no [project.urls]: the index will show no address. See CONTRIBUTING.md, To release."]


def measured(archives: Sequence[Path], times: dict[str, list[Step]], load: float) -> str:
    """Return what was seen as Markdown: sizes, and a table of seconds by version of Python."""
    sizes = ", ".join(f"{path.name} {path.stat().st_size / 1e6:.2f} MB" for path in archives)
    names = [step.name for step in next(iter(times.values()))]
    rows = [
        f"| {version} | {' | '.join(f'{step.waited:.2f} ({step.worked:.2f})' for step in steps)} |"
        for version, steps in times.items()
    ]
    processors = os.cpu_count() or 1
    busy = "" if load < processors else " The machine had much other work to do: go by the seconds in brackets."
    return "\n".join(
        [
            f"{sizes}; {platform.system()} on {platform.machine()}, {processors} processors, load at the start "
            f"{load:.1f}.{busy}",
            "",
            f"| Python | {' | '.join(names)} |",
            f"|{' --- |' * (len(names) + 1)}",
            *rows,
        ]
    )


def write_page(text: str) -> None:
    """Write what was seen between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    made, times = re.subn(f"(?<={BEGIN}\n).*?(?={END})", lambda _: f"{text}\n", page, flags=re.DOTALL)
    if times != 1:
        sys.exit(f"error: {PAGE.name} has no place for what was measured")
    PAGE.write_text(made, encoding="utf-8")


def main() -> int:
    """Check the release and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", type=Path, help="folder for the archives; by default they are deleted")
    parser.add_argument("--python", action="append", help="an interpreter to install with; may be given several times")
    parser.add_argument("--write", action="store_true", help=f"write what was seen to {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as home:
        once, again = (build(Path(home) / name) for name in ("once", "again"))
        wheel = next(path for path in once if path.suffix == ".whl")
        problems = [f"two builds differ: {name}" for name in differing(once, again)]
        problems += [f"too large: {name}" for name in too_large(wheel)]
        for path in once:
            print(f"{path.name}: sha256 {digest(path)}")
        times = {}
        for n, python in enumerate(asked.python or [sys.executable]):
            (Path(home) / f"python-{n}").mkdir()
            times[version_of(python)] = newcomer(wheel, python, Path(home) / f"python-{n}")
        text = measured(once, times, load)
        print(f"\nseconds waited, in brackets seconds of processors\n{text}")
        if asked.write:
            write_page(text)
        if asked.keep is not None:
            asked.keep.mkdir(parents=True, exist_ok=True)
            for path in once:
                (asked.keep / path.name).write_bytes(path.read_bytes())
    for warning in without_address():
        print(f"warning: {warning}", file=sys.stderr)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
