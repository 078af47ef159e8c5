"""The highlights of the eMFD: what a highlight votes for, and domains from GDELT themes."""

from __future__ import annotations

import random

import polars as pl
import pytest
from corpora.layouts import FOUNDATIONS, csv_text, emfd_csv, item_of

from moral_entropy import read_votes
from moral_entropy.corpora.corpus import read_corpus
from moral_entropy.corpora.emfd import load_theme_map, read_themes
from moral_entropy.errors import VotesError


def highlights(*, n_texts=36, seed=4):
    """Dozens of texts, each marked by one to three coders for one foundation apiece."""
    draw = random.Random(seed)
    listed = []
    for number in range(n_texts):
        text = f"passage {number}, with a comma" + "\nand a line" * (number % 2)
        for coder in draw.sample(range(100, 112), draw.choice([1, 1, 2, 3])):
            listed.append((text, draw.choice(FOUNDATIONS), coder, 1 + number % 6))
    return [*listed, ("passage 0, with a comma", "care", 7, 1)]


def expected(listed, domain_of=lambda document: None):
    votes = []
    for text, foundation, coder, document in listed:
        item = item_of("emfd", text)
        votes += [(item, str(coder), q, int(q == foundation), domain_of(document), text) for q in FOUNDATIONS]
    return sorted(votes)


@pytest.mark.parametrize("how", ["plain", "windows", "fractions", "spelling", "parquet"])
def test_a_highlight_is_a_yes_and_four_noes(write, how):
    listed = highlights()
    if how == "fractions":
        path = write(emfd_csv([(t, f, float(c), float(d)) for t, f, c, d in listed]), "highlights_raw.csv")
    elif how == "spelling":
        path = write(emfd_csv([(t, f" {f.title()} ", c, d) for t, f, c, d in listed]), "highlights_raw.csv")
    elif how == "parquet":
        path = write("", "h.parquet")
        names = ["content", "assigned_domain", "coder_id", "document_id"]
        pl.DataFrame(listed, schema=names, orient="row").write_parquet(path)
    else:
        path = write(emfd_csv(listed, newline="\r\n" if how == "windows" else "\n"), "highlights_raw.csv")
    corpus = read_corpus("emfd", path)
    assert corpus.votes.rows() == expected(listed)
    assert corpus.rows == len(listed) and corpus.dropped == {}
    assert read_votes(corpus.votes).domains == ()


def test_or_a_yes_and_nothing_else(write):
    listed = [*highlights(), ("passage 0, with a comma", "loyalty", 7, 1), ("passage 0, with a comma", "care", 7, 2)]
    corpus = read_corpus("emfd", write(emfd_csv(listed), "h.csv"), emfd_votes="assigned")
    assert corpus.votes.rows() == [vote for vote in expected(listed[:-1]) if vote[3] == 1]
    # The same coder may mark a passage for two foundations; only the third highlight repeats one.
    assert corpus.dropped == {"repeats, the first kept": 1}
    assert "every vote is a yes" in corpus.notes[-1]


def test_a_passage_marked_twice_by_a_coder(write):
    listed = [("p", "care", 7, 1), ("p", "loyalty", 7, 2), ("p", "care", 8, 1)]
    path = write(emfd_csv(listed), "h.csv")
    assert read_corpus("emfd", path).votes.rows() == expected([listed[0], listed[2]])
    assert read_corpus("emfd", path, on_repeat="last").votes.rows() == expected(listed[1:])
    assert read_corpus("emfd", path, on_repeat="count").votes.rows() == expected(listed)


THEMES = {
    1: "TAX_FNCACT;KILL;PROTEST",
    2: "TERROR,120;TAX_FNCACT,7",
    3: "unrest_checkpoint | WB_1",
    4: "HUMAN_RIGHTS_ABUSES",
    5: "",
}
DOMAINS = {1: "Physical Violence", 2: "Asymmetric Threats", 3: "Internal Unrest", 4: "Civil Liberties"}


def test_domains_come_from_themes(write):
    listed = highlights()
    themes = write(csv_text(("document_id", "themes"), THEMES.items()), "themes.csv")
    corpus = read_corpus("emfd", write(emfd_csv(listed), "h.csv"), themes=themes)
    assert corpus.votes.rows() == expected(listed, lambda document: DOMAINS.get(document, "Untagged"))


def test_themes_may_come_a_row_each(write):
    rows = [(document, code) for document, codes in THEMES.items() for code in codes.split(";")]
    path = write(csv_text(("Document_ID", "Theme"), rows), "themes.csv")
    read = dict(read_themes(path, load_theme_map()).rows())
    assert read == {"1": DOMAINS[1], "2": DOMAINS[2], "3": DOMAINS[3], "4": DOMAINS[4], "5": "Untagged"}


def test_the_map_can_be_another(write):
    theme_map = write('"War" = ["KILL", "TERROR"]\n"Streets" = ["PRO*"]\n', "map.toml")
    themes = write(csv_text(("document_id", "themes"), [(1, "PROTEST"), (2, "PROTEST;KILL"), (3, "PR")]), "t.csv")
    listed = [(f"p{document}", "care", 7, document) for document in (1, 2, 3)]
    corpus = read_corpus("emfd", write(emfd_csv(listed), "h.csv"), themes=themes, theme_map=theme_map)
    assert corpus.votes.rows() == expected(listed, {1: "Streets", 2: "War", 3: "Untagged"}.get)


def test_a_passage_in_two_documents_is_of_the_first_domain_by_name(write):
    themes = write(csv_text(("document_id", "themes"), [(1, "KILL"), (2, "TERROR")]), "t.csv")
    path = write(emfd_csv([("p", "care", 7, 1), ("p", "care", 8, 2)]), "h.csv")
    assert set(read_corpus("emfd", path, themes=themes).votes["domain"]) == {"Asymmetric Threats"}
    apart = read_corpus("emfd", path, themes=themes, by_domain=True).votes
    item = item_of("emfd", "p")
    assert set(apart["item"]) == {f"{item}@Asymmetric Threats", f"{item}@Physical Violence"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('"War" = "KILL"', "Write a list of codes"),
        ('"War" = [1]', "Write a list of codes"),
        ('"War" = ["*"]', "Write a list of codes"),
        ("War = [", "is no TOML"),
    ],
)
def test_a_wrong_map_is_refused(write, content, words):
    with pytest.raises(VotesError, match=words):
        load_theme_map(write(content, "map.toml"))


def test_wrong_files(write, tmp_path):
    good = write(emfd_csv(highlights()), "h.csv")
    with pytest.raises(VotesError, match="has no column 'themes'"):
        read_corpus("emfd", good, themes=write("document_id,x\n1,KILL\n", "t.csv"))
    with pytest.raises(VotesError, match="has no column 'document_id'"):
        read_corpus("emfd", good, themes=write("id,themes\n1,KILL\n", "t.csv"))
    with pytest.raises(VotesError, match=r"theme map .* cannot be read"):
        read_corpus("emfd", good, themes=good, theme_map=tmp_path / "nowhere.toml")
    with pytest.raises(VotesError, match=r"has no column 'assigned_domain'.*Is it highlights_raw\.csv"):
        read_corpus("emfd", write("content,coder_id\nx,1\n", "x.csv"))
    with pytest.raises(VotesError, match=r"1 of 1 annotations name a label that emfd does not have\. First: 'liberty'"):
        read_corpus("emfd", write(emfd_csv([("p", "liberty", 1, 1)]), "x.csv"))
