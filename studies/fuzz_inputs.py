"""Mutated files of votes, read and now and then audited: each ends in votes or in one paragraph."""

from __future__ import annotations

import contextlib
import random
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_cases import Outcome
from fuzz_checks import LONGEST, differing, run_main, wrong_folder, wrong_words
from fuzz_files import Made, all_files
from fuzz_flags import prepared
from fuzz_mutations import mutated

from moral_entropy.errors import MoralEntropyError, MoralEntropyWarning
from moral_entropy.votes.formats.exports import FORMATS
from moral_entropy.votes.read import read_votes

AUDITED = 0.08
"""Share of the cases that go through the whole audit, on the command line's own way."""

OPTIONS: dict[str, tuple[Any, ...]] = {
    "format": ("auto", "long", "wide", "respondents", *FORMATS),
    "layout": ("long", "wide", "respondents"),
    "anonymous": (True,),
    "on_repeat": ("first", "last", "count"),
    "multilabel": (";", ","),
    "missing": ((), ("none",)),
    "keep_case": (True,),
    "encoding": ("utf-8", "cp1252", "utf-16"),
    "classes": (2, 3, 5),
    "exclude": (("ann a",),),
    "keep": (("text",), ("domain",)),
}


@cache
def made_files() -> dict[str, Made]:
    """Return the files that mutations begin with, made once."""
    return all_files()


def warm_up() -> None:
    """Import and compile what an audit needs, before cases are timed."""
    prepared()
    made_files()


def input_case(number: int, seed: int, folder: Path) -> Outcome:
    """Mutate a file and read it, or audit it."""
    draw = random.Random(f"input {seed} {number}")
    files = made_files()
    made, what = mutated(files[draw.choice(sorted(files))], draw)
    options = dict(made.options)
    if draw.random() < 0.3:
        name = draw.choice(sorted(OPTIONS))
        options[name] = draw.choice(OPTIONS[name])
        what += f"; {name}={options[name]!r}"
    path = made.write(folder)
    return _audit(path, options, what, draw) if draw.random() < AUDITED else _read(path, options, what)


def _read(path: Path, options: dict[str, Any], what: str) -> Outcome:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", MoralEntropyWarning)
            votes = read_votes(path, **options)
    except MoralEntropyError as error:
        told = str(error)
        wrong = f"an error of {len(told):,} characters: {told[:200]}" if len(told) > LONGEST else ""
        return Outcome(what, "refused", wrong)
    except Exception as error:
        return Outcome(what, "broke", "".join(traceback.format_exception(error))[-1500:])
    return Outcome(what, "read", "" if votes.n_votes > 0 else "read without a vote")


def _audit(path: Path, options: dict[str, Any], what: str, draw: random.Random) -> Outcome:
    flags = [word for name, value in options.items() for word in _flag(name, value)]
    common = ["--draws", str(draw.choice((0, 2, 20))), "--seed", "3", *flags]
    if draw.random() < 0.8:
        common.append("--no-report")
    with contextlib.chdir(path.parent):
        code, out, err = run_main(["audit", path.name, "-o", "run", *common])
        wrong = wrong_words(code, out, err) or wrong_folder(path.parent)
        if not wrong and code == 0 and draw.random() < 0.3:
            Path("run").rename("first")
            run_main(["audit", path.name, "-o", "run", *common])
            wrong = differing(Path("first"), Path("run"))
    return Outcome(f"audit {what}", "audited" if code == 0 else "refused", wrong)


def _flag(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return [flag]
    return [flag, ",".join(value) if isinstance(value, tuple) else str(value)]
