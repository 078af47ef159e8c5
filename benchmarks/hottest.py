"""A raw profile of py-spy → the hottest places: which lines of ours the samples fell on, callees included.

Usage: hottest.py PROFILE [--least SHARE]. Make the profile with
`py-spy record -r 50 --threads -f raw -o PROFILE -- moral-entropy audit VOTES -o RUN`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

OURS = "moral_entropy/"


def main() -> None:
    """Print the places, by their share of all samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", type=Path)
    parser.add_argument(
        "--least", type=float, default=0.02, help="share of the samples below which a place is left out"
    )
    asked = parser.parse_args()
    stacks = list(read_stacks(asked.profile.read_text(encoding="utf-8")))
    total = sum(samples for _, samples in stacks)
    print(f"{total:,} samples")
    for place, samples in hottest(stacks).most_common():
        if samples >= asked.least * total:
            print(f"{samples / total:6.1%}  {place}")


def read_stacks(text: str) -> Iterator[tuple[list[str], int]]:
    """Read lines of frames, separated by semicolons and outermost first, and how often they were seen."""
    for line in text.splitlines():
        frames, _, samples = line.rpartition(" ")
        yield frames.split(";"), int(samples)


def hottest(stacks: list[tuple[list[str], int]]) -> Counter[str]:
    """Count the samples under each of our functions once, however often it stands on the stack.

    Examples
    --------
    >>> hottest([(["main", "fit (moral_entropy/fit.py:1)", "exp (numpy)"], 3)])
    Counter({'fit (moral_entropy/fit.py)': 3})
    """
    seen: Counter[str] = Counter()
    for frames, samples in stacks:
        ours = {frame.rpartition(":")[0] + ")" for frame in frames if OURS in frame}
        seen.update(dict.fromkeys(ours, samples))
    return seen


if __name__ == "__main__":
    main()
