"""No NaN in any table or sentence, whatever the draws, and no warning of NumPy on the screen."""

from __future__ import annotations

import re

import polars as pl
import pytest


def assert_finite(folder):
    for file in folder.glob("*.parquet"):
        frame = pl.read_parquet(file)
        for name, kind in frame.schema.items():
            assert not kind.is_float() or not frame[name].is_nan().any(), (file.name, name)
    for name in ("manifest.json", "findings.parquet"):
        text = (
            (folder / name).read_text()
            if name.endswith("json")
            else str(pl.read_parquet(folder / name)["text"].to_list())
        )
        assert not re.search(r"\bnan\b", text, re.IGNORECASE), re.findall(r".{60}\bnan\b", text, re.IGNORECASE)


@pytest.mark.parametrize("draws", [0, 2, 20])
def test_no_table_holds_nan_however_few_the_draws(run, folder, draws):
    code, out, err = run("audit", "votes.csv", "-o", "run", "--draws", draws)
    assert code == 0 and not re.search(r"\bnan\b", out + err, re.IGNORECASE)
    assert run("validate", "run", "--checks", "identifiability,laplace", "--quiet")[0] == 0
    assert_finite(folder / "run")


EXTREMES = {
    "--anonymous --model paper": 0,
    "--prior-prevalence 1e300": 2,
    "--prior-prevalence 1e12": 0,
    "--cost-fp 1e308 --cost-fn 1e308": 2,
    "--cost-fp 1e100 --cost-fn 1": 0,
    "--smoothing 1e300": 0,
    "--prior-confusion 1e300,1": 2,
}


@pytest.mark.parametrize("flags", EXTREMES)
def test_no_warning_of_numpy_reaches_the_screen(run, folder, flags):
    # Warnings are errors in tests: one of NumPy would end the command with "RuntimeWarning: …".
    code, out, err = run("audit", "votes.csv", "-o", "run", "--draws", 20, "--no-report", *flags.split())
    assert code == EXTREMES[flags] and "RuntimeWarning" not in out + err and "should not happen" not in err, err
    if code == 0:
        assert_finite(folder / "run")


def test_words_of_texts_without_a_word_among_the_uncertain(run, folder):
    rows = [
        f"{n},{who},{(n < 6) == (at > n % 2)!s},{'' if n < 6 else 'plain words here'}"
        for n in range(24)
        for at, who in enumerate("abc")
    ]
    (folder / "texts.csv").write_text("item,annotator,label,text\n" + "\n".join(rows) + "\n")
    code, out, err = run("audit", "texts.csv", "-o", "run", "--draws", 20, "--no-report")
    assert code == 0 and "RuntimeWarning" not in out + err


def test_escapes_in_labels_are_spelt_out_on_the_screen(run, folder):
    text = (folder / "votes.csv").read_text().replace("care", "ca\x1b[31mre").replace("BLM", "B\x07LM\u202e")
    (folder / "votes.csv").write_text(text)
    code, out, err = run("audit", "votes.csv", "-o", "run", "--draws", 20)
    assert code == 0 and "\\x1b[31m" in out
    commands = ("check run --max any.fdr=0", "next run", "explain run t001", "compare run run",
                "check run --max ca\x1b[31mre=1")  # fmt: skip
    for command in commands:
        _, shown, said = run(*command.split())
        out, err = out + shown, err + said
    assert not set("\x1b\x07\u202e") & set(out + err)


def test_what_exists_is_misuse_for_files_and_exports(run, folder):
    assert run("audit", "votes.csv", "-o", "run", "--draws", 0, "--no-report", "--quiet")[0] == 0
    for command in ("export run --to csv -o votes.csv", "next run -o votes.csv", "report run -o votes.csv",
                    "simulate --items 9 -o votes.csv", "export run --to hf -o run"):  # fmt: skip
        code, _, err = run(*command.split())
        assert code == 2 and "exists" in err, command
