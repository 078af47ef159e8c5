"""A real sheet, filled in from published answers, and what the command says of it: for docs/how-to/spot-check.md.

Usage: spot_check_page.py [--data ../shared/data]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import tempfile
from pathlib import Path

import polars as pl
from gold_sets import DATA, ROOT
from page import put

from moral_entropy.cli.main import main as command

PAGE = ROOT / "docs" / "how-to" / "spot-check.md"


def said(data: Path) -> str:
    """Audit the votes, fill in the sheet, and return what is printed."""
    gold = pl.read_csv(data / "rte" / "gold.csv", infer_schema=False)
    truth = dict(zip(gold["item"].to_list(), gold[gold.columns[1]].to_list(), strict=True))
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run("audit", str(data / "rte" / "votes.csv"), "-o", "checked-run", "--quiet")
            sheet = pl.read_csv("checked-run/spot-check.csv", infer_schema=False)
            filled = sheet.with_columns(answer=pl.col("item").replace_strict(truth))
            Path("checked-run/spot-check.csv").write_text(filled.write_csv(), encoding="utf-8")
            return run("spot-check", "checked-run", "--answers", "checked-run/spot-check.csv")
        finally:
            os.chdir(here)


def run(*arguments: str) -> str:
    """Run a command; return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        command(list(arguments))
    return out.getvalue()


def main() -> None:
    """Write what is printed into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets")
    text = said(parser.parse_args().data.resolve())
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(put(page, "rte", "studies/spot_check_page.py", f"```text\n{text.rstrip()}\n```"), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
