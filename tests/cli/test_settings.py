"""`--settings`: a run is repeated from its manifest or from a TOML file, and flags decide where both speak."""

from __future__ import annotations

import hashlib
import json
import random

import pytest

from moral_entropy.option_fields import keywords
from moral_entropy.options import AuditOptions
from moral_entropy.runs.folder import read_manifest


def write_files(folder):
    draw = random.Random(2)
    long = ["i,a,l,q,d,t,g,p,n"]
    wide = ["text_id,size,ann,bob,cem,dee"]
    several, counts, asked = ["item,annotator,label"], ["item,no,yes"], ["item,care,harm,n"]
    for item in range(60):
        truth = draw.random() < 0.4
        cells = [int(truth == (draw.random() < 0.85)) for _ in range(4)]
        wide.append(f"{item},{draw.randint(1, 3)},{','.join(map(str, cells))}")
        counts.append(f"{item},{4 - sum(cells)},{sum(cells)}")
        asked.append(f"{item},{sum(cells)},{4 - sum(cells)},4")
        known = "" if item % 3 else f"{['no', 'yes'][truth]}"
        for name, cell in zip(("ann", "bob", "cem", "dee"), cells, strict=True):
            vote = "yes" if cell and item % 2 else "yep" if cell else "no"
            row = f"{item},{name},{vote},care,{'uv'[item % 2]},text {item},{known},{['no', 'yes'][cells[0]]},2"
            long += [row] * (2 if draw.random() < 0.1 else 1)
            several.append(f"{item},{name},{'care;harm' if cell else 'harm' if item % 4 else 'other'}")
    files = {"long": long, "wide": wide, "several": several, "counts": counts, "asked": asked}
    for name, lines in files.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "gold.csv").write_text("item,gold,question\n1,1,care\n2,0,care\n5,1,harm\n")
    (folder / "known.csv").write_text("annotator,true,voted,pseudo_votes\nann,no,no,9\nann,yes,yes,9\n")
    (folder / "checked.csv").write_text("item,answer\n1,yes\n2,no\n")
    (folder / "people.csv").write_text("annotator,team\nann,x\nbob,x\ncem,y\ndee,y\n")
    (folder / "roles.csv").write_text("judge,role\nann,llm\nbob,llm\ncem,person\n")
    sure = [f"{i},{who},{(i + (i * n) % 7 // 6) % 2},0.{5 + (i * n) % 5}"
            for n, who in enumerate(("ann", "bob", "cem"), start=1) for i in range(60)]  # fmt: skip
    (folder / "sure.csv").write_text("\n".join(["item,annotator,label,sure", *sure]) + "\n")
    levels = [f"{i},{who},{('low', 'medium', 'high')[(i + n * i % 5 // 4) % 3]}"
              for n, who in enumerate(("ann", "bob", "cem"), start=1) for i in range(60)]  # fmt: skip
    (folder / "levels.csv").write_text("\n".join(["item,annotator,label", *levels]) + "\n")
    (folder / "shares.csv").write_text("column,group,share\nteam,x,60\nteam,y,40\n")
    (folder / "map.toml").write_text('yep = "yes"\n')


COLUMNS = "--item i --annotator a --label l --question q --domain d --text t --gold g --published p"
RUNS = {
    "long": f"long.csv {COLUMNS} --positive no --labels map.toml --on-repeat count --format long --classes no,yes "
    "--prior-prevalence 8,2 --prior-confusion 3,1.5 --prior-annotators known.csv --draws 30 --seed 5 "
    "--interval 0.5 --gold-as-evidence --model paper --threads 1 --rules any,published --cost-fp 2 --cost-fn 3 "
    "--tolerance 0.2 --spot-check checked.csv --smoothing 1 --fit-by d --no-report "
    "--keep n --missing NA,skip --keep-case --encoding utf-8 --use-text off",
    "wide": "wide.csv --format wide --count size --draws 20 --exclude dee --merge ann+bob --domain-prevalence off",
    "several labels": "several.csv --multilabel ; --gold-file gold.csv --preset mft --draws 20 --model paper",
    "groups": "several.csv --multilabel ; --annotator-group team --annotators people.csv --target shares.csv "
    "--draws 20 --no-report",
    "levels": "levels.csv --scale ordinal --order low,medium,high --draws 20 --no-report",
    "judges": "sure.csv --roles roles.csv --ignore ME012 --draws 20 --no-report",
    "counts": "counts.csv --anonymous --counts no,yes --draws 20 --no-report",
    "counted questions": "asked.csv --anonymous --questions care,harm --of n --draws 20 --no-report",
}
# Decisions need a run to decide about: tests/serve.
NEEDS_EXTRAS = {"--sheet", "--solver", "--steps", "--decisions"}


def tables(path):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.glob("*.parquet")}


@pytest.fixture
def files(folder):
    write_files(folder)
    return folder


def test_every_flag_is_among_the_runs():
    given = {word for words in RUNS.values() for word in words.split() if word.startswith("--")}
    # Flags of 0.2 that `--set` has replaced are still understood.
    flags = {option.flag for option in keywords(AuditOptions).values() if option.flag}
    assert {flag if flag in flags else flag.replace("--no-", "--") for flag in given} == {*flags} - NEEDS_EXTRAS


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.filterwarnings("ignore::moral_entropy.errors.MoralEntropyWarning")
def test_the_manifest_repeats_a_run_byte_for_byte(run, files, name):
    source, *flags = RUNS[name].split()
    code, _, err = run("audit", source, "-o", "first", "--quiet", *flags)
    assert code == 0, err
    assert run("audit", source, "-o", "again", "--quiet", "--settings", "first/manifest.json")[0] == 0
    assert tables(files / "again") == tables(files / "first") != {}
    first, again = read_manifest("first"), read_manifest("again")
    # The report shows what was typed.
    for facts in (first, again):
        facts["files"].pop("report.html", None)
    assert {key for key in first if first[key] != again[key]} <= {"seconds", "command"}
    assert (files / "again" / "report.html").exists() == (files / "first" / "report.html").exists()


def test_a_run_folder_stands_for_its_manifest(run, folder):
    run("audit", "votes.csv", "-o", "first", "--draws", 20, "--seed", 3, "--no-report")
    run("audit", "votes.csv", "-o", "again", "--settings", "first")
    assert tables(folder / "again") == tables(folder / "first")


def test_a_flag_decides_over_the_settings(run, folder):
    (folder / "s.toml").write_text("report = false\n[fit]\ndraws = 20\nseed = 3\nuse_gold = true\n")
    run("audit", "votes.csv", "-o", "run", "--settings", "s.toml", "--seed", 4, "--no-gold-as-evidence", "--report")
    facts = read_manifest("run")
    assert (facts["draws"], facts["seed"], facts["use_gold"]) == (20, 4, False)
    assert (folder / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[fit]\ndrawz = 5\n", "s.toml [fit] has 'drawz', which is no option there. Did you mean 'draws'?"),
        ("[fit]\ndraws = 1\n", "draws is 1; use 0 for the mode alone, or at least 2."),
        ("[fit\n", "s.toml is neither TOML nor a manifest"),
        ("fit = 5\n", "s.toml has 'fit', which is no option there"),
    ],
)
def test_settings_that_cannot_be_are_misuse(run, folder, text, words):
    (folder / "s.toml").write_text(text)
    code, _, err = run("audit", "votes.csv", "-o", "run", "--settings", "s.toml", "--seed", 3)
    assert (code, (folder / "run").exists()) == (2, False)
    assert words in err


def test_a_manifest_without_options_and_a_file_that_is_not_there(run, folder):
    (folder / "manifest.json").write_text(json.dumps({"version": "0.0"}))
    for file, words in (("manifest.json", "holds no options: an earlier version wrote it"), ("nowhere", "nowhere")):
        code, _, err = run("audit", "votes.csv", "-o", "run", "--settings", file)
        assert code == 2 and words in err


def test_help_shows_the_everyday_flags_and_help_all_every_one(run):
    short, long = (run("audit", flag)[1] for flag in ("--help", "--help-all"))
    flags = [option for option in keywords(AuditOptions).values() if option.flag and not option.rare]
    everyday = [one.flag for one in flags if one.everyday]
    assert 10 <= len(everyday) <= 14
    assert [one.flag for one in flags if f"{one.flag} " in short] == everyday
    # Long flags with an opposite are cut where columns are narrow.
    assert [one.flag for one in flags if one.flag[:14] not in long] == []
    assert all(flag in short for flag in ("--out", "--settings", "--force", "--help-all"))
    assert all(name in " ".join(long.split()) for name in ("--set", "threads,", "interval,"))
