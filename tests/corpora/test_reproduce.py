"""The study end to end: on twins, on files as published, on tables of votes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import polars as pl
import pytest
from corpora.layouts import csv_text, emfd_csv, expected_votes, item_of, mfrc_csv, mftc_json, plan

from moral_entropy.corpora import reproduce
from moral_entropy.corpora.reproduce import run_study
from moral_entropy.corpora.sources import load_votes, read_themes
from moral_entropy.corpora.twins import twin
from moral_entropy.errors import UsageError, VotesError
from moral_entropy.options import Inputs, ReproduceOptions

TABLES = ("checks", "corpora", "dissent", "entropy", "outliers", "rules", "soft-labels", "supplement", "switching",
          "warnings", "words")  # fmt: skip
CHARTS = ("emfd", "mfrc", "mftc", "regimes")
FILES = sorted(
    ["comparison.parquet", "figures.parquet", "index.html", "manifest.json"]
    + [f"paper-{name}.csv" for name in TABLES]
    + [f"paper-figure-{name}.{kind}" for name in CHARTS for kind in ("png", "svg", "vl.json")]
)
QUICK = ReproduceOptions(draws=30, classifier="none")


@pytest.fixture(scope="module", autouse=True)
def few_starts():
    """Sampling takes seconds, for which `tests/checks` has its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce, "CHECKS", {"ensemble": (30, {"members": 2})})
        yield


def test_every_table_and_figure_of_the_paper_has_a_file(study):
    assert sorted(path.name for path in study.path.iterdir()) == FILES
    assert pl.read_parquet(study.path / "comparison.parquet").equals(study.comparison)
    manifest = json.loads((study.path / "manifest.json").read_text())
    assert (
        manifest["command"] == "typed" and manifest["twins"] == {"scale": 0.025, "seed": 1} and manifest["draws"] == 100
    )
    page = (study.path / "index.html").read_text()
    assert "http" not in page.replace("https://vega", "") and "<script" not in page
    for name in (*TABLES[:-2], "words"):
        assert f'href="paper-{name}.csv"' in page


def test_the_page_opens_with_paper_ours_and_distance(study):
    page = (study.path / "index.html").read_text()
    first = page[page.index("<table>") : page.index("</table>")]
    heads = [
        f'<th class="number">{name}</th>' for name in ("paper", "ours", "distance", "ours, expected", "known truth")
    ]
    assert all(head in first for head in heads)
    row = study.comparison.filter(corpus="mftc", rule="any", metric="fpr", reading="cells").row(0, named=True)
    cells = (f"{100 * row[name]:.1f}%" for name in ("ours", "expected", "truth"))
    assert all(cell in first for cell in ("19.9%", *cells))
    assert 30 <= first.count("<tr") <= 45


def test_tables_are_laid_out_as_in_the_paper(study):
    entropy = pl.read_csv(study.path / "paper-entropy.csv")
    assert entropy.shape == (15, 13)
    ours = study.figures.filter(corpus="mfrc", domain="US Politics", foundation="care", metric="aleatoric")["value"][0]
    cell = entropy.filter(corpus="MFRC", domain="US Politics")["care ale"][0]
    assert cell == f"{ours:.4f} (0.0531)"
    corpora = pl.read_csv(study.path / "paper-corpora.csv")
    assert corpora.columns == ["corpus", "subcorpus", "Au%", "Ca%", "Fa%", "Lo%", "Sa%", "#Ann.", "N"]
    assert corpora.height == 15 and corpora["N"][0].endswith("(5,366)")
    switching = pl.read_csv(study.path / "paper-switching.csv", infer_schema=False)
    assert switching.height == 5 and set(switching["domain"]) == {"BLM"} and switching["text"].null_count() == 0
    assert {"A00", "A01", "A02", "A03", "A04", "majority"} <= set(switching.columns)
    outliers = pl.read_csv(study.path / "paper-outliers.csv", infer_schema=False)
    assert outliers.group_by("corpus", "question", "domain").len()["len"].max() == 100


def test_a_classifier_is_trained_on_soft_and_hard_labels(study):
    gains = study.comparison.filter(section="soft labels")
    assert gains.height == 6 and gains["ours"].null_count() == 0 and gains["low"].null_count() == 0
    table = pl.read_csv(study.path / "paper-soft-labels.csv")
    assert set(table["against"]) == {"gold", "majority", "any", "strict-majority"}
    assert table["gain over majority"].str.contains(" to ").all()


def test_sampling_and_ensemble_are_there(study):
    checks = pl.read_csv(study.path / "paper-checks.csv")
    assert {("mfrc", "ensemble"), ("mftc", "ensemble")} <= set(checks.select("corpus", "check").iter_rows())


def test_charts_have_every_cell(study):
    for name, n_domains in (("mftc", 7), ("mfrc", 3), ("emfd", 5)):
        rows = json.loads((study.path / f"paper-figure-{name}.vl.json").read_text())["data"]["values"]
        cells = {(row["domain"], row["foundation"], row["rule"], row["metric"]): row["value"] for row in rows}
        assert len(rows) == len(cells) > 0.8 * n_domains * 5 * 3 * 2
        reference = "gold" if name == "emfd" else "consensus"
        for (domain, foundation, rule, metric), value in list(cells.items())[::17]:
            ours = study.figures.filter(corpus=name, domain=domain, foundation=foundation, rule=rule,
                                        metric=metric.lower(), reference=reference)  # fmt: skip
            assert ours["value"].to_list() == [value]


def test_the_twins_are_those_of_scale_and_seed(study):
    table = twin("mfrc", seed=1, scale=0.025).filter(domain="US Politics", question="care")
    flagged = table.group_by("item").agg(pl.col("label").max())["label"].mean()
    ours = study.figures.filter(corpus="mfrc", domain="US Politics", foundation="care", metric="flagged")
    assert ours["value"].to_list() == [pytest.approx(flagged)]


def test_all_entropy_cells_have_a_figure(study):
    cells = study.comparison.filter(section="entropy")
    assert cells.height == 150 and cells["ours"].null_count() == 0 and (cells["ours"] >= 0).all()


PUBLISHED = {"mftc": ("m.json", mftc_json), "mfrc": ("m.csv", mfrc_csv)}


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The study of one corpus, from its file as published; the file beside the study's folder."""

    @cache
    def published(name):
        folder, (file, lay_out) = tmp_path_factory.mktemp(name), PUBLISHED[name]
        (folder / file).write_text(lay_out(plan(name)))
        return run_study(Inputs(**{name: folder / file}), folder / "out", QUICK)

    return published


def test_same_seed_same_figures(published, tmp_path):
    first = published("mftc")
    again = run_study(Inputs(mftc=first.path.parent / "m.json"), tmp_path / "again", QUICK)
    assert first.comparison.equals(again.comparison) and first.figures.equals(again.figures)


def test_two_hundred_steps_and_other_priors(published, tmp_path):
    pytest.importorskip("torch")
    plain = published("mfrc")
    for change, note in (({"steps": 200}, "200 steps of Adam"), ({"preset": "mft"}, "")):
        inputs = Inputs(mfrc=plain.path.parent / "m.csv")
        other = run_study(inputs, tmp_path / next(iter(change)), replace(QUICK, **change))
        assert note in " ".join(other.manifest["notes"]) and not plain.figures.equals(other.figures)


def test_it_appears_whole_or_not_at_all(tmp_path):
    (tmp_path / "votes.csv").write_text("item,annotator,question,label\n1,a,care,1\n1,b,care,0\n")
    with pytest.raises(VotesError, match=r"no votes on 4 of the five foundations\. First: 'authority'"):
        run_study(Inputs(mftc=tmp_path / "votes.csv"), tmp_path / "out", QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_one_corpus_from_its_published_file(published, name):
    planned, study = plan(name), published(name)
    ours = dict(study.comparison.group_by("corpus").agg(pl.col("ours").drop_nulls().len()).iter_rows())
    others = {"mftc": ["mfrc", "emfd"], "mfrc": ["mftc", "emfd"]}[name]
    assert ours[name] > 10 and all(ours[other] == 0 for other in others)
    own = study.figures.filter(corpus=name, domain="(all)", foundation="care", metric="flagged")
    texts = {row[0] for row in expected_votes(name, planned)}
    flagged = {row[0] for row in expected_votes(name, planned) if row[2] == "care" and row[3] == "1"}
    assert own["value"][0] == pytest.approx(len(flagged) / len(texts))
    facts = json.loads((study.path / "manifest.json").read_text())["corpora"][name]
    assert facts["input"]["source"] == PUBLISHED[name][0] and len(facts["input"]["sha256"]) == 64
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
    assert "so it is in no figure of any foundation" in (study.path / "index.html").read_text()


def test_emfd_with_gold_and_themes(highlights):
    files = {"emfd": highlights / "highlights_raw.csv"}
    items = load_votes("emfd", Inputs(**files, themes=highlights / "themes.csv")).items.to_list()
    rows = [(item, name, int(at % 5 == f)) for at, item in enumerate(items) for f, name in enumerate(FOUNDATIONS)]
    pl.DataFrame(rows, schema=["item", "question", "gold"], orient="row").write_csv(highlights / "gold.csv")
    inputs = Inputs(**files, gold=highlights / "gold.csv", themes=highlights / "themes.csv")
    study = run_study(inputs, highlights / "out", QUICK)
    gold = study.comparison.filter(reference="gold")
    assert gold["ours"].null_count() == 0
    assert (study.path / "paper-figure-emfd.svg").is_file()
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


def test_all_three_published_files_with_coders_that_are_numbers(highlights):
    (highlights / "mftc.json").write_text(mftc_json(plan("mftc")))
    (highlights / "mfrc.csv").write_text(mfrc_csv(plan("mfrc")))
    files = {"mftc": "mftc.json", "mfrc": "mfrc.csv", "emfd": "highlights_raw.csv"}
    study = run_study(Inputs(**{name: highlights / file for name, file in files.items()}), highlights / "out", QUICK)
    assert set(study.figures["corpus"]) == {"mftc", "mfrc", "emfd", "(all)"}
    pooled = study.comparison.filter(corpus="(all)", rule="any", metric="fpr", reading="pooled")
    assert pooled["ours"].null_count() == 0 and pooled["truth"].null_count() == 1
