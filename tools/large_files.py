"""Refuse files too large for the repository: names in, exit code 1 if any is above the limit."""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT_KB = 1_000


def main(names: list[str]) -> int:
    """Name every file above the limit; give 1 if there is one."""
    large = [name for name in names if Path(name).stat().st_size > LIMIT_KB * 1_000]
    for name in large:
        print(f"{name} is {Path(name).stat().st_size / 1_000:,.0f} kB; the limit is {LIMIT_KB:,} kB.")
    return int(bool(large))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
