"""Build what would be released, twice, install it into an empty environment, and audit a file of votes with it.

Prints sizes and times; ends with 1 where something is not as it should be: two builds that differ, a file in the wheel
above 1 MB without need, a first audit that fails.

Usage: python tools/release_check.py [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

MOST_BYTES = 1_000_000
"""A file of the wheel may be this large; larger ones must be named in `NEEDED`."""

NEEDED: tuple[str, ...] = ()
"""Larger files that the wheel needs."""

EPOCH = "1763337600"
"""The time that archives get where git does not know one."""

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


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel and what it needs into an empty environment; return the folder of its programs."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    return programs


def first_audit(programs: Path, folder: Path) -> dict[str, float]:
    """Audit votes from another folder with an empty cache, then again; return the seconds."""
    folder.mkdir()
    write_votes(folder / "votes.csv")
    told = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told["MORAL_ENTROPY_CACHE"] = str(folder / "cache")
    program, seconds = str(programs / "moral-entropy"), {}
    commands = {
        "first audit": ["audit", "votes.csv", "-o", "run", "--quiet"],
        "second audit": ["audit", "votes.csv", "-o", "again", "--quiet"],
        "verify": ["verify", "run", "--votes", "votes.csv", "--quiet"],
    }
    for name, command in commands.items():
        begin = time.perf_counter()
        subprocess.run([program, *command], cwd=folder, env=told, check=True, stdout=subprocess.DEVNULL)
        seconds[name] = time.perf_counter() - begin
    done = subprocess.run(
        [str(programs / "python"), "-c", IMPORT], cwd=folder, env=told, check=True, capture_output=True, text=True
    )
    if not (folder / "run" / "report.html").is_file():
        sys.exit("error: the first audit wrote no report")
    return {"import": float(done.stdout), **seconds}


def main() -> int:
    """Check the release and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", type=Path, help="folder for the archives; by default they are deleted")
    keep = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as home:
        once, again = (build(Path(home) / name) for name in ("once", "again"))
        wheel = next(path for path in once if path.suffix == ".whl")
        problems = [f"two builds differ: {name}" for name in differing(once, again)]
        problems += [f"too large: {name}" for name in too_large(wheel)]
        for path in once:
            print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, sha256 {digest(path)}")
        begin = time.perf_counter()
        programs = install(wheel, Path(home) / "venv")
        print(f"install: {time.perf_counter() - begin:.1f} s")
        for name, spent in first_audit(programs, Path(home) / "elsewhere").items():
            print(f"{name}: {spent:.2f} s")
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for path in once:
                (keep / path.name).write_bytes(path.read_bytes())
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
