"""Summary: what was found in a corpus beside what its authors and the paper count.

Takes a `Corpus`, returns lines of text and the figures in them; prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moral_entropy.corpora.build import Corpus
from moral_entropy.corpora.facts import published
from moral_entropy.corpora.twins import CorpusFacts, corpus_facts

if TYPE_CHECKING:
    import polars as pl

TOTAL = "(all)"
NO_DOMAIN = "(none)"


@dataclass(frozen=True)
class DomainLine:
    """A line of the paper's table "Corpora".

    Parameters
    ----------
    domain
        Its name; "(all)" for the corpus.
    any_rule
        Share of the texts that at least one annotator flagged, a foundation each, in alphabetical order.
    votes_per_item
        Annotations per text.
    items
        How many texts.
    """

    domain: str
    any_rule: Sequence[float]
    votes_per_item: float
    items: int


def found_lines(corpus: Corpus) -> list[DomainLine]:
    """Compute the table from the votes, domains in the order of the paper and the whole corpus last.

    Parameters
    ----------
    corpus
        From `read_corpus`.
    """
    import polars as pl

    facts = corpus_facts(corpus.name)
    per_item = corpus.annotations.group_by("item").agg(
        pl.col("domain").first().fill_null(NO_DOMAIN),
        pl.len().alias("votes"),
        *(pl.col(name).max().fill_null(0).cast(pl.Float64) for name in facts.foundations),
    )
    order = [domain.name for domain in facts.domains]
    found = per_item["domain"].unique().to_list()
    names = [name for name in order if name in found] + sorted(name for name in found if name not in order)
    lines = [_line(name, per_item.filter(domain=name), facts.foundations) for name in names if name != NO_DOMAIN]
    return [*lines, _line(TOTAL, per_item, facts.foundations)]


def _line(name: str, per_item: pl.DataFrame, foundations: Sequence[str]) -> DomainLine:
    shares = per_item.select(foundations).mean().row(0)
    return DomainLine(name, shares, int(per_item["votes"].sum()) / per_item.height, per_item.height)


def paper_lines(name: str) -> dict[str, DomainLine]:
    """Give the paper's table by domain; its line for the whole corpus is the mean over texts of the others.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".

    Examples
    --------
    >>> paper_lines("mfrc")["US Politics"].any_rule
    [0.197, 0.296, 0.383, 0.077, 0.084]
    >>> paper_lines("mftc")["(all)"].items
    33858
    """
    facts = corpus_facts(name)
    lines = {d.name: DomainLine(d.name, d.any_rule, d.votes_per_item, d.items) for d in facts.domains}
    return {**lines, TOTAL: _pooled(facts)}


def _pooled(facts: CorpusFacts) -> DomainLine:
    items = sum(domain.items for domain in facts.domains)
    any_rule = [
        sum(domain.items * domain.any_rule[f] for domain in facts.domains) / items
        for f in range(len(facts.foundations))
    ]
    return DomainLine(
        TOTAL, any_rule, sum(domain.items * domain.votes_per_item for domain in facts.domains) / items, items
    )


def summary_lines(corpus: Corpus) -> list[str]:
    """Say what was found, what was expected, and how the table compares with the paper's.

    Parameters
    ----------
    corpus
        From `read_corpus`.
    """
    return [*_count_lines(corpus), "", *_table_lines(corpus)]


def _count_lines(corpus: Corpus) -> list[str]:
    expected = published(corpus.name)
    texts = expected.texts_by_domain if corpus.by_domain else expected.texts
    counts = {
        "annotations": (corpus.rows, expected.rows),
        "texts by domain" if corpus.by_domain else "texts": (corpus.votes["item"].n_unique(), texts),
        "annotators": (corpus.votes["annotator"].n_unique(), corpus_facts(corpus.name).annotators),
    }
    lines = [f"{'':16}{'found':>9}{'expected':>10}"]
    for what, (found, wanted) in counts.items():
        lines.append(f"{what:16}{found:>9,}{wanted:>10,}{'' if found == wanted else '  differs'}")
    lines += [f"note: {note}" for note in corpus.notes]
    if corpus.dropped:
        lines.append("left out: " + ", ".join(f"{reason} {count:,}" for reason, count in corpus.dropped.items()))
    return lines


def _table_lines(corpus: Corpus) -> list[str]:
    facts = corpus_facts(corpus.name)
    short = [name[:2].capitalize() for name in facts.foundations]
    paper = paper_lines(corpus.name)
    lines = [f"{'domain':20}" + "".join(f"{name + '%':>7}" for name in short) + f"{'#Ann.':>8}{'N':>9}"]
    for line in found_lines(corpus):
        lines.append(_spell(line, line.domain))
        if line.domain in paper:
            lines.append(_spell(paper[line.domain], "  in the paper"))
    legend = ", ".join(f"{name[:2].capitalize()} {name}" for name in facts.foundations)
    return [*lines, f"{legend}: texts that anyone flagged; #Ann.: annotations per text; N: texts"]


def _spell(line: DomainLine, name: str) -> str:
    shares = "".join(f"{100 * share:>7.1f}" for share in line.any_rule)
    return f"{name:20}{shares}{line.votes_per_item:>8.2f}{line.items:>9,}"
