"""What is printed beside the published figures."""

from __future__ import annotations

import pytest
from corpora.layouts import FOUNDATIONS, emfd_csv, mfrc_csv, mftc_json, plan

from moral_entropy.corpora.corpus import read_corpus
from moral_entropy.corpora.facts import corpus_facts, published_files, where_published
from moral_entropy.corpora.summary import found_lines, paper_lines, summary_lines

# Counts of the issue and totals of the paper, typed apart from the data files.
COUNTS = {"mftc": (128_454, 33_687, 33_858), "mfrc": (61_226, 17_886, 17_886), "emfd": (73_001, 54_868, 54_883)}


@pytest.mark.parametrize("name", COUNTS)
def test_the_counts_to_expect(name):
    known = published_files(name)
    assert (known.rows, known.texts, known.texts_by_domain) == COUNTS[name]
    assert paper_lines(name)["(all)"].items == COUNTS[name][2]
    assert set(known.labels) == {*FOUNDATIONS, "none"}
    assert tuple(corpus_facts(name).foundations) == FOUNDATIONS


def by_hand(planned, domain):
    texts = {}
    for one in planned:
        if domain in (one.domain, "(all)"):
            texts.setdefault(one.text, []).append(one.means)
    shares = [sum(any(f in means for means in votes) for votes in texts.values()) / len(texts) for f in FOUNDATIONS]
    return shares, sum(map(len, texts.values())) / len(texts), len(texts)


@pytest.mark.parametrize(("name", "lay_out"), [("mftc", mftc_json), ("mfrc", mfrc_csv)])
def test_the_table_is_that_of_a_plain_loop(write, name, lay_out):
    planned = plan(name)
    lines = found_lines(read_corpus(name, write(lay_out(planned), f"{name}.{'json' if name == 'mftc' else 'csv'}")))
    assert [line.name for line in lines] == [*(d.name for d in corpus_facts(name).domains), "(all)"]
    for line in lines:
        shares, votes_per_item, items = by_hand(planned, line.name)
        assert list(line.any_rule) == pytest.approx(shares, abs=1e-12)
        assert (line.votes_per_item, line.items) == (pytest.approx(votes_per_item, abs=1e-12), items)


def test_the_paper_s_line_for_the_whole_is_its_mean_over_texts():
    whole = paper_lines("mfrc")["(all)"]
    care = (0.374 * 5366 + 0.296 * 5351 + 0.160 * 7169) / 17_886
    assert whole.any_rule[1] == pytest.approx(care) and whole.votes_per_item == pytest.approx(2.997, abs=1e-3)


def test_what_is_printed(write):
    planned = plan("mfrc")
    printed = "\n".join(summary_lines(read_corpus("mfrc", write(mfrc_csv([*planned, planned[0]]), "m.csv"))))
    assert f"annotations           {len(planned) + 1}    61,226  differs" in printed
    assert "texts                  40    17,886  differs" in printed
    assert "annotators              6         6\n" in printed
    assert "left out: repeats, the first kept 1" in printed
    [at] = [n for n, line in enumerate(printed.splitlines()) if line.startswith("US Politics")]
    figures = " ".join(printed.splitlines()[at + 1].split())
    assert figures == "in the paper 19.7 29.6 38.3 7.7 8.4 2.99 5,351"
    assert max(map(len, printed.splitlines())) <= 130


def test_domains_the_paper_does_not_have_are_printed_too(write):
    planned = [one if one.domain != "Sandy" else type(one)(**{**vars(one), "domain": "Extra"}) for one in plan("mftc")]
    lines = summary_lines(read_corpus("mftc", write(mftc_json(planned), "m.json")))
    at = next(n for n, line in enumerate(lines) if line.startswith("Extra"))
    assert lines[at + 1].startswith("(all)") and not any(line.startswith("Sandy") for line in lines)


@pytest.mark.parametrize("emfd_votes", ["all", "assigned"])
def test_without_themes_there_is_one_line(write, emfd_votes):
    path = write(emfd_csv([("p", "care", 1, 1), ("p", "loyalty", 2, 1), ("q", "care", 1, 1)]), "h.csv")
    [line] = found_lines(read_corpus("emfd", path, emfd_votes=emfd_votes))
    assert (line.name, list(line.any_rule)) == ("(all)", [0, 1, 0, 0.5, 0])
    assert (line.votes_per_item, line.items) == (1.5, 2)


def test_where_to_find_them():
    assert "https://osf.io/k5n7y/" in where_published("mftc") and "publisher's page" in where_published("mftc")
    assert "USC-MOLA-Lab/MFRC" in where_published("mfrc") and "CC-BY-4.0" in where_published("mfrc")
    assert "https://osf.io/vw85e" in where_published("emfd") and "(eMFD)" in where_published("emfd")
