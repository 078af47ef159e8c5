"""The study as a page: the paper's tables in its own layout, its figures, and ours beside its own.

Takes the comparison and our figures; writes charts (PNG, SVG, Vega-Lite) and tables (CSV) into the folder of the study,
and returns `index.html`, which shows them without a network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from moral_entropy.corpora.figures import RULES
from moral_entropy.corpora.published import CORPORA, LARGEST, READINGS, foundations, read_published, spell, spell_gap
from moral_entropy.files import without_formulas
from moral_entropy.markup import NOTHING, html_page, html_table
from moral_entropy.names import ALL, MEAN
from moral_entropy.report.figures import CONFIG, colours_of, draw

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 92rem; margin: 1rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: .6rem 0 1.2rem; font-size: .75rem; display: block; overflow-x: auto }
th, td { padding: .15rem .5rem; text-align: left; border-bottom: 1px solid #ddd; vertical-align: top }
.number { text-align: right; white-space: nowrap } caption { text-align: left; color: #555 }
.far td:nth-child(4) { color: #a33 } img { max-width: 100% } h2 { margin-top: 2rem }
.note { color: #555; margin: .2rem 0 }
"""

SUPPLEMENT = {
    "cross_entropy_smoothed": "cross-entropy", "kl_smoothed": "KL", "brier": "Brier",
    "brier_reliability": "reliability", "brier_resolution": "resolution", "brier_uncertainty": "uncertainty",
    "ece": "ECE", "zero_one": "0/1 regret",
}  # fmt: skip
"""The paper's supplement; hard rules have infinite cross-entropy and KL, so that theirs are of the smoothed answer."""

FIGURES = {
    "mftc": ("consensus", "MFTC: FPR and FNR of three rules against the Bayesian consensus"),
    "mfrc": ("consensus", "MFRC: FPR and FNR of three rules against the Bayesian consensus"),
    "emfd": ("gold", "eMFD: FPR and FNR of three rules against gold labels"),
}
"""The paper's three figures: what rates are held against, and the title."""

Row = Sequence[str]
Table = tuple[Row, Sequence[Row]]


# --- charts -----------------------------------------------------------------------------------------------------------


def write_charts(figures: pl.DataFrame, folder: Path) -> None:
    """Write the paper's three figures, and the regimes of the corpora, as PNG, SVG and Vega-Lite."""
    for name, spec in chart_specs(figures).items():
        path = folder / f"paper-figure-{name}.vl.json"
        path.write_text(json.dumps({**spec, "config": CONFIG}) + "\n", encoding="utf-8")
        for kind in ("png", "svg"):
            (folder / f"paper-figure-{name}.{kind}").write_bytes(draw(spec, kind))


def chart_specs(figures: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the charts by name, as Vega-Lite specifications with their data; those without data are left out."""
    specs = {}
    for corpus, (reference, title) in FIGURES.items():
        cells = figures.filter(
            pl.col("metric").is_in(["fpr", "fnr"]), pl.col("foundation").is_in(foundations()),
            pl.col("domain") != MEAN, corpus=corpus, reference=reference,
        )  # fmt: skip
        # Without domains, as eMFD's file is, there is one for all.
        by_domain = cells.filter(pl.col("domain") != ALL)
        rows = (cells if by_domain.is_empty() else by_domain).with_columns(pl.col("metric").str.to_uppercase())
        if rows.height:
            specs[corpus] = _rates_chart(rows.select("domain", "foundation", "rule", "metric", "value"), title)
    specs["regimes"] = _regimes_chart(figures)
    return specs


def _rates_chart(rows: pl.DataFrame, title: str) -> dict[str, Any]:
    names, n_domains = list(foundations()), rows["domain"].n_unique()
    colours = {"domain": names, "range": colours_of(names)}
    bars = {
        "x": {"field": "domain", "type": "nominal", "title": None, "axis": {"labelAngle": -35, "labelLimit": 110}},
        "xOffset": {"field": "foundation", "sort": names},
        "y": {"field": "value", "type": "quantitative", "title": None, "scale": {"domain": [0, 1]},
              "axis": {"format": "%"}},
        "color": {"field": "foundation", "type": "nominal", "scale": colours,
                  "legend": {"orient": "bottom", "title": None}},
    }  # fmt: skip
    facet = {"row": {"field": "metric", "sort": ["FPR", "FNR"], "title": None},
             "column": {"field": "rule", "sort": ["majority", "any", "two-vote"], "title": None}}  # fmt: skip
    size = {"width": max(120, 42 * n_domains), "height": 120}
    return _chart(title, rows.to_dicts(), facet, {**size, "mark": {"type": "bar"}, "encoding": bars})


def _chart(title: str, rows: list[dict[str, Any]], facet: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    schema = "https://vega.github.io/schema/vega-lite/v5.json"
    return {"$schema": schema, "title": title, "data": {"values": rows}, "facet": facet, "spec": spec}


def _regimes_chart(figures: pl.DataFrame) -> dict[str, Any]:
    """Draw every cell's aleatoric and epistemic entropy, the paper's and ours: three corpora, three regimes."""
    cells = {("ours", *row[:3], row[3]): row[4] for row in figures.filter(
        pl.col("metric").is_in(["aleatoric", "epistemic"]), pl.col("domain") != ALL,
    ).select("corpus", "domain", "foundation", "metric", "value").iter_rows()}  # fmt: skip
    cells |= {("paper", figure.corpus, figure.domain, figure.foundation, figure.metric): figure.value
              for figure in read_published() if figure.section == "entropy"}  # fmt: skip
    rows = [
        {"source": source, "corpus": CORPORA[corpus], "domain": domain, "foundation": foundation, "aleatoric": value,
         "epistemic": max(cells[source, corpus, domain, foundation, "epistemic"], 1e-5)}
        for (source, corpus, domain, foundation, metric), value in cells.items() if metric == "aleatoric"
    ]  # fmt: skip
    axis, series = {"type": "quantitative", "scale": {"zero": False, "type": "log"}}, {"field": "corpus", "title": None}
    encoding = {x: {"field": name, "title": name, **axis} for x, name in (("x", "aleatoric"), ("y", "epistemic"))}
    spec = {"width": 380, "height": 260, "mark": {"type": "point", "filled": True, "opacity": 0.7},
            "encoding": encoding | {"color": series, "shape": series}}  # fmt: skip
    title = "Three regimes: mean entropies of every domain and foundation, in nats"
    return _chart(title, rows, {"column": {"field": "source", "sort": ["paper", "ours"], "title": None}}, spec)


# --- tables -----------------------------------------------------------------------------------------------------------


def page_of(
    comparison: pl.DataFrame, figures: pl.DataFrame, tables: Mapping[str, pl.DataFrame], notes: Sequence[str],
    *, twins: bool, folder: Path,
) -> str:  # fmt: skip
    """Write every table of the study into its folder, and return the page that shows them.

    Parameters
    ----------
    comparison, figures
        From `compare_figures` and `our_figures`.
    tables
        dissent, switching, outliers, words, checks, warnings and soft-labels.
    notes
        Sentences about the data.
    twins
        Whether the votes are simulated.
    folder
        Where the tables go, as `paper-*.csv`; the charts are there.
    """
    values = {tuple(row[:-1]): row[-1] for row in figures.select(
        "corpus", "domain", "foundation", "rule", "reference", "metric", "value").iter_rows()}  # fmt: skip
    layouts = {
        "corpora": corpora_table(values), "entropy": entropy_table(values), "rules": rules_table(figures),
        "supplement": supplement_table(figures), "soft-labels": soft_table(tables["soft-labels"]),
    }  # fmt: skip
    layout_of = {name: _as_rows(frame) for name, frame in tables.items() if name != "soft-labels"}
    for name, (header, rows) in {**layouts, **layout_of}.items():
        table = pl.DataFrame(rows, schema=dict.fromkeys(header, pl.String), orient="row")
        (folder / f"paper-{name}.csv").write_text(without_formulas(table).write_csv(), encoding="utf-8")
    parts = [
        "<h1>Moral Entropy: the paper's study, and ours beside it</h1>",
        *(f'<p class="note">{escape(note)}</p>' for note in notes),
        *_headline(comparison, twins=twins),
        _section("Corpora", "Texts that somebody flagged, in %; annotations per text; texts. Ours (paper).",
                 layouts["corpora"], "corpora"),
        *(_figure(name, title, folder) for name, (_, title) in FIGURES.items()),
        _section("Rules, by domain and foundation", "Rates in %. z*: against the Bayesian consensus, yes from p = ½; "
                 "expected: items weighted by p; gold: against known labels.", layouts["rules"], "rules", 24),
        _section("Supplement: scores against p", "Means over all texts and foundations of a corpus, in nats where it "
                 "applies. Cross-entropy and KL of a rule that says never or always are infinite: these are of its "
                 "answer as that many votes with half a vote added each way.", layouts["supplement"], "supplement"),
        _section("Soft-label fine-tuning", "The same classifier, texts and split, trained on p, on majority and on any "
                 "labels; accuracy in %, with 90% intervals over tested texts. The paper's AUC is against hard "
                 "labels.", layouts["soft-labels"], "soft-labels"),
        _section("Moral Entropy, split", "Mean entropy in nats, aleatoric and epistemic, and the epistemic share. Ours "
                 "(paper).", layouts["entropy"], "entropy"),
        _figure("regimes", "Three regimes across corpora", folder),
        _section("Annotators who switch", "The most uncertain texts that most annotators voted on; a tie of the "
                 "majority is a yes.", layout_of["switching"], "switching"),
        _section("Dissent from the majority", "Share of an annotator's votes against the majority, by domain.",
                 _dissent(tables["dissent"]), "dissent", 24),
        _section("Uncertain items", "The 100 items of highest entropy of every foundation and domain.",
                 layout_of["outliers"], "outliers", 12),
        _section("Words of uncertain items", "Log-odds against the other items, with an informative prior.",
                 layout_of["words"], "words", 12),
        _section("Sampling and ensemble", "NUTS against the Laplace approximation, and modes found from random starts.",
                 layout_of["checks"], "checks", 24),
        _section("What the audits warn of", "", layout_of["warnings"], ""),
        _section("Every published figure", "All readings; distances in percentage points (pp) or units.",
                 _all_rows(comparison), "", 400),
        "<h2>Readings</h2><ul>",
        *(f"<li>{escape(name)}: {escape(meaning)}</li>" for name, meaning in READINGS.items()), "</ul>",
    ]  # fmt: skip
    return html_page("Moral Entropy, reproduced", "\n".join(parts), STYLE)


def headline_rows(comparison: pl.DataFrame) -> pl.DataFrame:
    """Choose the figures of the opening table: every claim of the paper's text, in its likeliest reading.

    What is said of all corpora is about a pool, of texts or of texts and foundations; means of a corpus are over its
    cells, those of a domain over foundations.
    """
    reading, pooled = pl.col("reading"), pl.col("corpus") == ALL
    likeliest = (
        pl.when(pooled).then(reading.is_in(["any foundation", "pooled"]))
        .when(pl.col("section") == "domains").then(reading.is_in(["mean", ""]))
        .otherwise(reading.is_in(["cells", ""]))
    )  # fmt: skip
    in_text = ~pl.col("section").is_in(["corpora", "entropy"]) & ~pl.col("metric").is_in(["disagreement", "fdr"])
    return comparison.filter(in_text & likeliest)


def headline_cells(row: Mapping[str, Any]) -> Row:
    """Write one line of the opening table: figure, paper, ours, distance, expected, truth."""
    metric = row["metric"]
    corpus = "all" if row["corpus"] == ALL else CORPORA[row["corpus"]]
    implied = ("", ALL, MEAN, LARGEST, row["reading"])
    place = [corpus, *(row[name] for name in ("domain", "foundation", "rule") if row[name] not in implied)]
    against = " vs gold" if row["reference"] == "gold" else ""
    reading = f" ({row['reading']})" if row["reading"] else ""
    cells = [NOTHING if row[name] is None else spell(metric, row[name]) for name in ("ours", "expected", "truth")]
    distance = NOTHING if row["distance"] is None else spell_gap(metric, row["distance"])
    metric_of = f"{'largest ' * (row['domain'] == LARGEST)}{metric.replace('_', ' ')}"
    name = f"{', '.join(place)}: {metric_of}{against}{reading}"
    return name, row["printed"], cells[0], distance, cells[1], cells[2]


def _headline(comparison: pl.DataFrame, *, twins: bool) -> Iterable[str]:
    header = ("figure", "paper", "ours", "distance", "ours, expected", "known truth" if twins else "")
    rows = headline_rows(comparison)
    cells = [headline_cells(row)[: 6 if twins else 5] for row in rows.iter_rows(named=True)]
    classes = ["far" if row["within"] is False else "" for row in rows.iter_rows(named=True)]
    yield html_table(header[: 6 if twins else 5], cells, numbers=header[1:], row_classes=classes)
    yield (
        '<p class="note">Ours: against the Bayesian consensus, yes from p = ½, as in the paper. Expected: items '
        "weighted by p instead. Red distances are beyond rounding.</p>"
    )


def _section(title: str, words: str, table: Table, file: str, max_rows: int = 200) -> str:
    header, rows = table
    link = f' All rows: <a href="paper-{file}.csv">paper-{file}.csv</a>.' if file else ""
    body = "<p>There is none.</p>"
    if rows:
        numbers = [name for at, name in enumerate(header) if all(_is_number(row[at]) for row in rows)]
        body = html_table(header, rows[:max_rows], numbers=numbers)
    return f'<h2>{escape(title)}</h2>\n<p class="note">{escape(words)}{link}</p>\n{body}'


def _is_number(cell: str) -> bool:
    return cell in ("", NOTHING) or cell.lstrip("−+-")[:1].isdigit()


def _figure(name: str, title: str, folder: Path) -> str:
    if not (folder / f"paper-figure-{name}.svg").is_file():
        return f'<h2>{escape(title)}</h2>\n<p class="note">There are no such labels in these votes.</p>'
    files = (f'<a href="paper-figure-{name}.{kind}">{kind}</a>' for kind in ("png", "svg", "vl.json"))
    return (
        f'<h2>{escape(title)}</h2>\n<figure><img src="paper-figure-{name}.svg" alt="{escape(title)}">'
        f"<figcaption>{', '.join(files)}</figcaption></figure>"
    )


Values = Mapping[tuple[str, ...], float | None]


def _ours_and_paper(values: Values, corpus: str, domain: str, foundation: str, metric: str, rule: str = "") -> str:
    """Write a cell: our figure, and the paper's in parentheses."""
    ours = values.get((corpus, domain, foundation, rule, "", metric))
    paper = _published().get((corpus, domain, foundation, metric))
    cells = [NOTHING if value is None else spell(metric, value).rstrip("%") for value in (ours, paper)]
    return f"{cells[0]} ({cells[1]})"


def _published() -> dict[tuple[str, str, str, str], float]:
    tables = (figure for figure in read_published() if figure.section in ("corpora", "entropy"))
    return {(figure.corpus, figure.domain, figure.foundation, figure.metric): figure.value for figure in tables}


def _domains(section: str) -> list[tuple[str, str]]:
    """Return corpora and domains in the order of the paper's tables."""
    figures = (figure for figure in read_published() if figure.section == section and figure.domain != ALL)
    return list(dict.fromkeys((figure.corpus, figure.domain) for figure in figures))


def corpora_table(values: Values) -> Table:
    """Lay out the paper's table of corpora: Au% to Sa%, annotations per text, texts."""
    header = ("corpus", "subcorpus", *(f"{name[:2].title()}%" for name in foundations()), "#Ann.", "N")
    rows = []
    for corpus, domain in _domains("corpora"):
        flagged = [_ours_and_paper(values, corpus, domain, name, "flagged", "any") for name in foundations()]
        sizes = [_ours_and_paper(values, corpus, domain, ALL, metric) for metric in ("annotations_per_text", "texts")]
        rows.append((CORPORA[corpus], domain, *flagged, *sizes))
    return header, rows


def entropy_table(values: Values) -> Table:
    """Lay out the paper's table of entropies: 15 domains × 5 foundations × aleatoric and epistemic, and the share."""
    parts = ("aleatoric", "epistemic")
    header = ("corpus", "domain", *(f"{name} {part[:3]}" for name in foundations() for part in parts), "epi. share")
    rows = []
    for corpus, domain in _domains("entropy"):
        cells = [_ours_and_paper(values, corpus, domain, name, part) for name in foundations() for part in parts]
        sums = [sum(values.get((corpus, domain, name, "", "", part)) or 0.0 for name in foundations())
                for part in ("epistemic", "total")]  # fmt: skip
        rows.append((CORPORA[corpus], domain, *cells, f"{sums[0] / sums[1]:.1%}" if sums[1] else NOTHING))
    return header, rows


def rules_table(figures: pl.DataFrame) -> Table:
    """Lay out FPR and FNR of the three rules by corpus, domain and foundation: thresholded, expected and gold."""
    sources = (("consensus", "", "z*"), ("consensus", "expected_", "expected"), ("gold", "", "gold"))
    columns = {(rule, reference, f"{prefix}{metric}"): f"{rule} {metric.upper()} {name}"
               for rule in RULES for metric in ("fpr", "fnr") for reference, prefix, name in sources}  # fmt: skip
    rows: dict[tuple[str, ...], dict[tuple[str, ...], str]] = {}
    for corpus, domain, foundation, *at, value in figures.select(
        "corpus", "domain", "foundation", "rule", "reference", "metric", "value"
    ).iter_rows():
        if tuple(at) in columns and value is not None:
            rows.setdefault((corpus, domain, foundation), {})[tuple(at)] = f"{100 * value:.1f}"
    header = ("corpus", "domain", "foundation", *columns.values())
    order = sorted(rows, key=lambda place: (place[2] not in (ALL, MEAN), place[1] not in (ALL, MEAN)))
    return header, [(CORPORA.get(place[0], place[0]), *place[1:], *(rows[place].get(at, NOTHING) for at in columns))
                    for place in order]  # fmt: skip


def supplement_table(figures: pl.DataFrame) -> Table:
    """Lay out the supplement: every score of every rule against p, by corpus."""
    graded = figures.filter(pl.col("metric").is_in(list(SUPPLEMENT)), domain=ALL, foundation=ALL, reference="consensus")
    cells = {tuple(row[:3]): row[3] for row in graded.select("corpus", "rule", "metric", "value").iter_rows()}
    places = list(dict.fromkeys(graded.select("corpus", "rule").iter_rows()))
    rows = [(CORPORA.get(corpus, corpus), rule, *(f"{cells[corpus, rule, metric]:.4f}" for metric in SUPPLEMENT))
            for corpus, rule in places]  # fmt: skip
    return ("corpus", "rule", *SUPPLEMENT.values()), rows


def soft_table(scores: pl.DataFrame) -> Table:
    """Lay out the soft-label comparison: AUC and accuracy by foundation, and how much better soft labels are."""
    auc = {figure.foundation: figure.value for figure in read_published() if figure.metric == "auc"}
    header = ("foundation", "against", "AUC soft", "AUC paper", "accuracy soft", "gain over majority", "gain over any")
    rows: list[Row] = []
    if scores.is_empty():
        return header, rows
    by = {(row["question"], row["reference"], row["metric"], row["target"]): row for row in scores.to_dicts()}
    for question, reference in dict.fromkeys((key[0], key[1]) for key in by):
        soft, right = by[question, reference, "auc", "soft"], by[question, reference, "accuracy", "soft"]
        gains = [by[question, reference, "accuracy", target] for target in ("majority", "any")]
        # A cell that begins with a plus would be a formula in a spreadsheet.
        cells = [NOTHING if gain["difference"] is None else
                 f"{100 * gain['difference']:.1f} ({100 * gain['difference_low']:.1f} to "
                 f"{100 * gain['difference_high']:.1f})".replace("-", "−") for gain in gains]  # fmt: skip
        paper = f"{auc[question]:.3f}" if question in auc and reference == "majority" else ""
        scores_of = [NOTHING if row["value"] is None else f"{scale * row['value']:.{digits}f}"
                 for row, scale, digits in ((soft, 1, 3), (right, 100, 1))]  # fmt: skip
        rows.append((question, reference, scores_of[0], paper, scores_of[1], *cells))
    return header, rows


def _dissent(rates: pl.DataFrame) -> Table:
    """Show the rates of the paper's domain first, one column per foundation."""
    first = pl.col("domain") != "BLM"
    wide = rates.filter(pl.col("domain") != ALL).sort(first, maintain_order=True)
    wide = wide.with_columns(pl.format("{}", (100 * pl.col("dissent")).round(1))).pivot(
        "foundation", index=["corpus", "domain", "annotator"], values="dissent", aggregate_function="first"
    )
    return _as_rows(wide)


def _as_rows(frame: pl.DataFrame) -> Table:
    def write(value: Any) -> str:
        return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

    return tuple(frame.columns), [tuple(map(write, row)) for row in frame.iter_rows()]


def _all_rows(comparison: pl.DataFrame) -> Table:
    header = ("corpus", "domain", "foundation", "rule", "metric", "reading", "paper", "ours", "distance", "expected",
              "truth", "note")  # fmt: skip
    rows = []
    for row in comparison.iter_rows(named=True):
        _, printed, ours, distance, expected, truth = headline_cells(row)
        place = (CORPORA.get(row["corpus"], row["corpus"]), row["domain"], row["foundation"], row["rule"])
        metric = row["metric"] + (" vs gold" if row["reference"] == "gold" else "")
        rows.append((*place, metric, row["reading"], printed, ours, distance, expected, truth, row["note"]))
    return header, rows
