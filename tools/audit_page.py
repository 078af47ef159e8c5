"""Write the tables of docs/evidence/paper-on-twins.md from a reproduced study.

moral-entropy reproduce --twins -o out/ && python tools/audit_page.py out/
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import polars as pl

from moral_entropy.corpora.twin_parameters import corpus_facts, twin_parameters
from moral_entropy.corpora.twins import twin, twin_places
from moral_entropy.markup import markdown_table
from moral_entropy.names import ALL, MEAN
from moral_entropy.reproduce.grading import RULES
from moral_entropy.reproduce.published import CORPORA, foundations, spell
from moral_entropy.runs.manifest import read_manifest

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "paper-on-twins.md"


def main(folder: str) -> None:
    """Write every table between its marks."""
    figures = pl.read_parquet(Path(folder) / "figures.parquet")
    beside = pl.read_parquet(Path(folder) / "comparison.parquet")
    tables = {"run": run_line(folder), "headline": headline(beside), "entropy": entropy(beside)}
    if twins := read_manifest(folder)["twins"]:
        tables["twins"] = twin_table(beside, twins["scale"], twins["seed"])
    for name in CORPORA:
        tables[name] = rule_table(figures, name, "consensus")
    tables["emfd-gold"] = rule_table(figures, "emfd", "gold")
    page = PAGE.read_text(encoding="utf-8")
    for section, text in tables.items():
        page = with_section(page, section, text)
    PAGE.write_text(page, encoding="utf-8")


def run_line(folder: str) -> str:
    """Say which run the tables are of."""
    manifest = read_manifest(folder)
    twins, seconds = manifest["twins"], sum(manifest["seconds"].values())
    kind = f"twins at scale {twins['scale']:g}, seed {twins['seed']}" if twins else "the corpora"
    return f"moral-entropy {manifest['version']}; {kind}; {manifest['draws']:,} draws; {seconds:.0f} s."


def twin_table(beside: pl.DataFrame, scale: float, seed: int) -> str:
    """Lay what was published of each corpus beside what is counted on its twin, a row per foundation."""
    rows = []
    for name, written in CORPORA.items():
        facts, frame = corpus_facts(name), twin(name, scale=scale, seed=seed)
        parameters = twin_parameters(name, scale=scale, seed=seed)
        place_if = np.concatenate([twin_places(parameters, d, seed=seed) for d in range(len(facts.domains))])
        for f, foundation in enumerate(facts.foundations):
            flagged = beside.filter(section="corpora", corpus=name, metric="flagged", foundation=foundation)
            apart = (flagged["ours"] - flagged["published"]).abs().max()
            between = ((place_if[:, f] > 0) & (place_if[:, f] < 1)).mean()
            share, rates = counted_rates(frame.filter(question=foundation))
            published = (facts.prevalence[f], facts.sensitivity[f], facts.specificity[f])
            pairs = (
                f"{one:.3f} / {other:.3f}"
                for one, other in zip(published, (share, rates[1], 1 - rates[0]), strict=True)
            )
            moved = int((parameters.shift_df[:, f] > 0).sum())
            rows.append(
                (
                    written,
                    foundation,
                    f"{100 * apart:.2f}",
                    *pairs,
                    f"{moved} of {len(facts.domains)}",
                    f"{between:.1%}",
                )
            )
    header = (
        "corpus",
        "foundation",
        "flagged, most apart (points)",
        "prevalence",
        "sensitivity",
        "specificity",
        "domains with other specificity",
        "between labels",
    )
    return markdown_table(header, rows, numbers=header[2:])


def counted_rates(frame: pl.DataFrame) -> tuple[float, dict[int, float]]:
    """Count the share of yes texts, and how often annotators say yes to no and yes texts: means over annotators."""
    share = frame.unique("item")["gold"].mean()
    by_annotator = frame.group_by("annotator", "gold").agg(pl.col("label").mean())
    rates = dict(by_annotator.group_by("gold").agg(pl.col("label").mean()).iter_rows())
    return share, rates


def headline(beside: pl.DataFrame) -> str:
    """Lay the paper's figures of the text beside ours, a row each, a column a reading."""
    readings = ("cells", "mean", "pooled", "any foundation")
    rates = beside.filter(pl.col("section").is_in(["audit", "domains"]), pl.col("reading") != "")
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rates.iter_rows(named=True):
        where = CORPORA.get(row["corpus"], "all three")
        if row["section"] == "domains":
            where += f", {row['domain']}"
        metric = row["metric"] + (" (gold)" if row["reference"] == "gold" else "")
        key = (where, row["rule"], metric, row["printed"])
        rows.setdefault(key, {})[row["reading"]] = spell(row["metric"], row["ours"])
    header = ("where", "rule", "figure", "paper", *(f"ours: {reading}" for reading in readings))
    cells = [(*key, *(ours.get(reading, "") for reading in readings)) for key, ours in rows.items()]
    return markdown_table(header, cells, numbers=header[3:])


def rule_table(figures: pl.DataFrame, corpus: str, reference: str) -> str:
    """Return FPR / FNR in per cent: one row per domain and rule, one column per foundation."""
    own = figures.filter(corpus=corpus, reference=reference)
    value = {
        (row["domain"], row["rule"], row["foundation"], row["metric"]): row["value"]
        for row in own.iter_rows(named=True)
    }
    columns = (*foundations(), MEAN)
    rows = []
    for domain in (*(one.name for one in corpus_facts(corpus).domains), ALL):
        for rule in RULES:
            pairs = [[value.get((domain, rule, name, metric)) for metric in ("fpr", "fnr")] for name in columns]
            rows.append((domain, rule, *(" / ".join(map(_percent, pair)) for pair in pairs)))
    return markdown_table(("domain", "rule", *columns), rows, numbers=columns)


def entropy(beside: pl.DataFrame) -> str:
    """Compare mean entropies over the cells of each corpus."""
    rows = []
    for name, written in CORPORA.items():
        for metric in ("aleatoric", "epistemic"):
            own = beside.filter(section="entropy", corpus=name, metric=metric)
            ratio = (own["ours"] / own["published"]).median()
            mean = (own["published"].mean(), own["ours"].mean())
            rows.append(
                (written, metric, *(f"{one:.4f}" for one in mean), f"{ratio:.1f}", str(int(own["within"].sum())))
            )
    header = ("corpus", "part", "paper, mean of cells", "ours, mean of cells", "median ratio", "cells within tolerance")
    return markdown_table(header, rows, numbers=header[2:])


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def with_section(page: str, section: str, text: str) -> str:
    """Put a text between the marks of its section."""
    begin, end = f"<!-- {section}: written by tools/audit_page.py -->", f"<!-- end of {section} -->"
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not between.search(page):
        msg = f"docs/evidence/paper-on-twins.md has no place for {section!r}: {begin} … {end}"
        raise ValueError(msg)
    return between.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


if __name__ == "__main__":
    main(*sys.argv[1:])
