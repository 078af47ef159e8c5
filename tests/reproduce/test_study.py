"""The study end to end: on twins, on files as published, on tables of votes."""

from __future__ import annotations

import json

import polars as pl
import pytest
from corpora.layouts import csv_text, emfd_csv, expected_votes, item_of, mfrc_csv, mftc_json, plan

from moral_entropy.errors import RunFolderError, UsageError, VotesError
from moral_entropy.options import Inputs, ReproduceOptions
from moral_entropy.reproduce.sources import load_votes, read_themes
from moral_entropy.reproduce.study import run_study

FILES = ["comparison.md", "comparison.parquet", "figures.parquet", "manifest.json"]
QUICK = ReproduceOptions(draws=30)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return run_study(Inputs(twins=True, scale=0.05), tmp_path_factory.mktemp("study") / "out", QUICK, command="typed")


def test_the_folder(study):
    assert sorted(path.name for path in study.path.iterdir()) == FILES
    assert pl.read_parquet(study.path / "comparison.parquet").equals(study.comparison)
    manifest = json.loads((study.path / "manifest.json").read_text())
    assert manifest["command"] == "typed" and manifest["twins"] == {"scale": 0.05, "seed": 0}
    assert any(message.startswith("eMFD ") for message in manifest["warnings"])


def test_all_entropy_cells_have_a_figure(study):
    cells = study.comparison.filter(section="entropy")
    assert cells.height == 150 and cells["ours"].null_count() == 0 and (cells["ours"] >= 0).all()
    assert cells.select("corpus", "domain").unique().height == 15


def test_what_has_no_figure_says_so(study):
    missing = study.comparison.filter(pl.col("ours").is_null())
    assert set(missing["section"]) == {"soft labels"}
    assert set(missing["note"]) == {"no classifier was trained"}
    assert set(study.comparison["verdict"]) == {"not comparable"}


def test_rates_have_intervals_against_gold_alone(study):
    rates = study.comparison.filter(pl.col("metric").is_in(["fpr", "fnr", "fdr", "disagreement"]))
    told = rates.drop_nulls("low")
    assert rates.height > 50 and 0 < told.height < 20
    assert (told["low"] <= told["high"]).all()


def test_same_seed_same_bytes(study, tmp_path):
    again = run_study(Inputs(twins=True, scale=0.05), tmp_path / "again", QUICK)
    for name in FILES[:-1]:
        assert (again.path / name).read_bytes() == (study.path / name).read_bytes()


def test_it_appears_whole_or_not_at_all(tmp_path):
    (tmp_path / "votes.csv").write_text("item,annotator,question,label\n1,a,care,1\n1,b,care,0\n")
    with pytest.raises(VotesError, match=r"no votes on 4 of the five foundations\. First: 'authority'"):
        run_study(Inputs(mftc=tmp_path / "votes.csv"), tmp_path / "out", QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_force(tmp_path):
    inputs, out = Inputs(mfrc=tmp_path / "mfrc.csv"), tmp_path / "out"
    (tmp_path / "mfrc.csv").write_text(mfrc_csv(plan("mfrc")))
    run_study(inputs, out, QUICK)
    with pytest.raises(RunFolderError, match="--force"):
        run_study(inputs, out, QUICK)
    assert run_study(inputs, out, QUICK, force=True).path == out


@pytest.mark.parametrize(("name", "file", "lay_out"), [("mftc", "m.json", mftc_json), ("mfrc", "m.csv", mfrc_csv)])
def test_one_corpus_from_its_published_file(tmp_path, name, file, lay_out):
    planned = plan(name)
    (tmp_path / file).write_text(lay_out(planned))
    study = run_study(Inputs(**{name: tmp_path / file}), tmp_path / "out", QUICK)
    verdicts = dict(study.comparison.group_by("corpus").agg(pl.col("verdict").unique().sort()).iter_rows())
    others = {"mftc": ["mfrc", "emfd"], "mfrc": ["mftc", "emfd"]}[name]
    assert all(verdicts[other] == ["not comparable"] for other in (*others, "(all)"))
    assert "differs" in verdicts[name]
    own = study.figures.filter(corpus=name, domain="(all)", foundation="care", metric="flagged")
    texts = {row[0] for row in expected_votes(name, planned)}
    flagged = {row[0] for row in expected_votes(name, planned) if row[2] == "care" and row[3] == "1"}
    assert own["value"][0] == pytest.approx(len(flagged) / len(texts))
    facts = json.loads((study.path / "manifest.json").read_text())["corpora"][name]
    assert facts["input"]["source"] == file and len(facts["input"]["sha256"]) == 64
    assert facts["rows"] == 5 * len(planned)


def test_a_table_of_votes_gives_the_same_votes_as_the_published_file(tmp_path):
    (tmp_path / "raw.csv").write_text(mfrc_csv(plan("mfrc")))
    columns = ["item", "annotator", "question", "label", "domain", "text"]
    table = pl.DataFrame(expected_votes("mfrc", plan("mfrc")), schema=columns, orient="row")
    table.write_parquet(tmp_path / "votes.parquet")
    raw, made = (load_votes("mfrc", Inputs(mfrc=tmp_path / file)) for file in ("raw.csv", "votes.parquet"))
    assert raw.items.equals(made.items) and raw.domains == made.domains
    for one, other in zip(raw.ballots, made.ballots, strict=True):
        assert one.code_v.tolist() == other.code_v.tolist()


THEMES = {
    1: "TAX_FNCACT;KILL;PROTEST",
    2: "TERROR,120;TAX_FNCACT,7",
    3: "unrest_checkpoint | WB_1",
    4: "HUMAN_RIGHTS_ABUSES",
    5: "",
}
DOMAINS = {
    "1": "Physical Violence",
    "2": "Asymmetric Threats",
    "3": "Internal Unrest",
    "4": "Civil Liberties",
    "5": "Untagged",
}


def test_domains_come_from_themes_of_every_layout(tmp_path):
    path = tmp_path / "themes.csv"
    path.write_text(csv_text(("document_id", "themes"), THEMES.items()))
    assert dict(read_themes(path).rows()) == DOMAINS
    path.write_text(
        csv_text(("Document_ID", "Theme"), [(n, code) for n, codes in THEMES.items() for code in codes.split(";")])
    )
    assert dict(read_themes(path).rows()) == DOMAINS
    for header, missing in (("document_id,x", "themes"), ("id,themes", "document_id")):
        path.write_text(f"{header}\n1,KILL\n")
        with pytest.raises(VotesError, match=f"has no column '{missing}'"):
            read_themes(path)


def test_a_passage_in_documents_of_two_domains_is_two_items(tmp_path):
    (tmp_path / "themes.csv").write_text("document_id,themes\n1,KILL\n2,TERROR\n")
    marks = [("p", name, 7, 1) for name in FOUNDATIONS] + [
        ("p", "care", 8, 2),
        ("q", "care", 8, 3),
        ("q", "loyalty", 9, 3),
    ]
    (tmp_path / "h.csv").write_text(emfd_csv([(f"{text} {name}", name, *ids) for text, name, *ids in marks]))
    inputs = Inputs(emfd=tmp_path / "h.csv", themes=tmp_path / "themes.csv")
    votes = load_votes("emfd", inputs)
    care = item_of("emfd", "p care")
    assert {f"{care}@Physical Violence", f"{care}@Asymmetric Threats"} <= set(votes.items)
    assert f"{item_of('emfd', 'q care')}@Untagged" in set(votes.items) and len(votes.reading.sha256) == 64


FOUNDATIONS = ("authority", "care", "fairness", "loyalty", "sanctity")


@pytest.fixture
def highlights(tmp_path):
    """Passages marked by two coders each, who mostly look for the same foundation."""
    marks = [(f"passage {n}", FOUNDATIONS[n % 5], n % 7, n) for n in range(60)]
    marks += [(f"passage {n}", FOUNDATIONS[(n + (n % 4 == 0)) % 5], 9 + n % 3, n) for n in range(60)]
    (tmp_path / "highlights_raw.csv").write_text(emfd_csv(marks))
    themes = "document_id,themes\n" + "".join(f"{n},{'KILL' if n % 2 else 'PROTEST'}\n" for n in range(60))
    (tmp_path / "themes.csv").write_text(themes)
    return tmp_path


def test_emfd_has_no_question_of_any_foundation_and_gold_only_if_given(highlights):
    files = {"emfd": highlights / "highlights_raw.csv"}
    study = run_study(Inputs(**files), highlights / "out", QUICK)
    gold = study.comparison.filter(reference="gold")
    assert set(gold["note"]) == {"no gold labels"}
    assert "any foundation" not in set(study.figures["foundation"])
    assert "so it is in no figure of any foundation" in (study.path / "comparison.md").read_text()


def test_emfd_with_gold_and_themes(highlights):
    files = {"emfd": highlights / "highlights_raw.csv"}
    items = load_votes("emfd", Inputs(**files, themes=highlights / "themes.csv")).items.to_list()
    rows = [(item, name, int(at % 5 == f)) for at, item in enumerate(items) for f, name in enumerate(FOUNDATIONS)]
    pl.DataFrame(rows, schema=["item", "question", "gold"], orient="row").write_csv(highlights / "gold.csv")
    inputs = Inputs(**files, gold=highlights / "gold.csv", themes=highlights / "themes.csv")
    study = run_study(inputs, highlights / "out", QUICK)
    gold = study.comparison.filter(reference="gold")
    assert gold["ours"].null_count() == 0 and set(gold["verdict"]) <= {"same", "differs"}
    domains = set(study.figures.filter(metric="texts", corpus="emfd")["domain"])
    assert domains == {"(all)", "Physical Violence", "Internal Unrest"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "name at least one corpus"),
        ({"mftc": "x", "twins": True}, "no file is read"),
        ({"mftc": "x", "gold": "g"}, "--emfd FILE"),
        ({"twins": True, "themes": "t"}, "--emfd FILE"),
        ({"mftc": "x", "scale": 0.5}, "--twins"),
    ],
)
def test_contradictions(given, message):
    with pytest.raises(UsageError, match=message):
        Inputs(**given)


def test_more_than_two_labels_are_refused(tmp_path):
    rows = [
        f"{item},{who},{name},{(item + at) % 3}"
        for item in range(6)
        for at, who in enumerate("ab")
        for name in FOUNDATIONS
    ]
    (tmp_path / "votes.csv").write_text("item,annotator,question,label\n" + "\n".join(rows) + "\n")
    with pytest.raises(VotesError, match=r"5 of the five foundations .* First: 'authority' has 0, 1, 2"):
        load_votes("mftc", Inputs(mftc=tmp_path / "votes.csv"))
