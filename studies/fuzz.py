"""Does anything break? Mutated files, random flags, and kills at random moments: `make fuzz`.

Every case ends in a result or in one paragraph that says what is wrong: no traceback, no hang, no half-written folder,
no NaN; parts of the entropy sum, and the same seed gives the same bytes. Seeds are explicit, so a case can be made
again by its number. What was found is kept in .fuzz/, from which a study that was stopped goes on.

Usage: fuzz.py [--inputs 10000] [--flags 1000] [--folders 700] [--kills 300] [--minutes 60] [--jobs 2] [--seed 0]
[--dry]. Writes a part of docs/evidence/reliability.md; with --dry only prints. --minutes is for each of the four.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fuzz_cases import Limits, Outcome, Plan, run_cases
from fuzz_flags import flags_case
from fuzz_folders import folder_case
from fuzz_inputs import input_case
from fuzz_kills import kill_case
from fuzz_page import figures, written

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence" / "reliability.md"
KINDS = {
    "inputs": (input_case, Limits(60.0)),
    "flags": (flags_case, Limits(240.0)),
    "folders": (folder_case, Limits(120.0)),
    "kills": (kill_case, Limits(900.0)),
}


def main() -> int:
    """Run the study; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    for kind, count in (("inputs", 10_000), ("flags", 1_000), ("folders", 700), ("kills", 300)):
        parser.add_argument(f"--{kind}", type=int, default=count)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=ROOT / ".fuzz")
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    found: dict[str, list[Outcome]] = {}
    for kind, (case, limits) in KINDS.items():
        plan = Plan(getattr(given, kind), given.minutes, given.jobs, given.seed, given.kept / f"{kind}.jsonl")
        print(f"{kind}: {plan.count:,} cases", flush=True)
        found[kind] = run_cases(
            case, plan, limits, say=lambda text: print(text, flush=True), every=plan.count // 20 or 1
        )
    print(figures(found, given.seed))
    if not given.dry:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found, given.seed), encoding="utf-8")
    return int(any(outcome.wrong for outcomes in found.values() for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
