"""What was found in a corpus, compared with what its authors and the paper count.

Takes a `Corpus`, returns lines of text and the figures in them; prints nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from moral_entropy.corpora.corpus import Corpus
from moral_entropy.corpora.facts import CorpusFacts, DomainFacts, corpus_facts, published_files
from moral_entropy.names import ALL, NO_DOMAIN

if TYPE_CHECKING:
    import polars as pl


def found_lines(corpus: Corpus) -> list[DomainFacts]:
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
    return [*lines, _line(ALL, per_item, facts.foundations)]


def _line(name: str, per_item: pl.DataFrame, foundations: Sequence[str]) -> DomainFacts:
    shares = per_item.select(foundations).mean().row(0)
    return DomainFacts(name, per_item.height, int(per_item["votes"].sum()) / per_item.height, shares)


def paper_lines(name: str) -> dict[str, DomainFacts]:
    """Return the paper's table by domain; its line for the whole corpus is the mean over the texts of all domains.

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
    return {domain.name: domain for domain in (*facts.domains, _pooled(facts))}


def _pooled(facts: CorpusFacts) -> DomainFacts:
    items = sum(domain.items for domain in facts.domains)
    any_rule = [
        sum(domain.items * domain.any_rule[f] for domain in facts.domains) / items
        for f in range(len(facts.foundations))
    ]
    votes_per_item = sum(domain.items * domain.votes_per_item for domain in facts.domains) / items
    return DomainFacts(ALL, items, votes_per_item, any_rule)


def summary_lines(corpus: Corpus) -> list[str]:
    """Return the lines to print: what was found, what was expected, and both tables.

    Parameters
    ----------
    corpus
        From `read_corpus`.
    """
    return [*_count_lines(corpus), "", *_table_lines(corpus)]


def _count_lines(corpus: Corpus) -> list[str]:
    expected = published_files(corpus.name)
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
        lines.append(_spell(line, line.name))
        if line.name in paper:
            lines.append(_spell(paper[line.name], "  in the paper"))
    legend = ", ".join(f"{name[:2].capitalize()} {name}" for name in facts.foundations)
    return [*lines, f"{legend}: texts that anyone flagged; #Ann.: annotations per text; N: texts"]


def _spell(line: DomainFacts, name: str) -> str:
    shares = "".join(f"{100 * share:>7.1f}" for share in line.any_rule)
    return f"{name:20}{shares}{line.votes_per_item:>8.2f}{line.items:>9,}"
