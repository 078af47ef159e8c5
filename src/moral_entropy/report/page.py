"""Run → what a report's page shows: answer, table by question, what to do, annotators, groups, judges, rules, method.

`page_data` returns what the template writes, as texts and rows of texts, and what the page's script needs, as columns.
A column of texts that repeat is a list of distinct texts and a list of positions in it. Computes nothing that is not in
a table of the run, or counted from one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl
import polars.selectors as cs

from moral_entropy import __version__
from moral_entropy.checks.run import is_thorough, verdict
from moral_entropy.findings import overview
from moral_entropy.items.ratings import HABITS, rater_sentence
from moral_entropy.judges.known import MOST_JUDGES, default_system
from moral_entropy.judges.roles import LLM, roles_of
from moral_entropy.judges.score import score
from moral_entropy.judges.table import describe_judges
from moral_entropy.judges.values import is_share
from moral_entropy.markup import NOTHING
from moral_entropy.model.entropy import REMEDIES, parts_note
from moral_entropy.names import ALL, MEAN
from moral_entropy.report.items import shown_items, text_cut
from moral_entropy.report.paper import interval_of, question_frame, rate_frame, with_ends
from moral_entropy.report.words import (
    RATES,
    ROLES,
    annotator_sentence,
    label_notes,
    shown_size,
    shown_title,
    votes_per_item,
)  # fmt: skip
from moral_entropy.rules.advice import CAVEAT
from moral_entropy.runs.run import Run, cautions, read_findings
from moral_entropy.verdict.figures import pooled_rules
from moral_entropy.verdict.summary import outlying_people, reading_notes

ITEMS = 2_000
"""Rows of the item explorer unless asked otherwise; a row is an item and question."""

DIGITS = 4
"""Significant digits of what the page's script shows: more than it prints."""

MAX_PEOPLE, MAX_CELLS, MAX_ROWS, MAX_PLOTS, MAX_VOTES = 3_000, 8_000, 200, 24, 1_000_000
"""Rows of annotators, cells of their confusions, rows of other tables, plots; votes with a section on judges."""

FACTS = ("version", "command", "input", "columns", "guessed", "rows", "dropped", "notes", "converged", "fit_by",
         "priors", "draws", "seed", "solver", "interval", "use_gold", "versions")  # fmt: skip
PERSON = ("question", "part", "annotator", "n_votes", "role", "disagreement_others", "sensitivity", "sensitivity_low",
          "sensitivity_high", "specificity", "specificity_low", "specificity_high", "youden")  # fmt: skip


def page_data(run: Run, *, max_items: int = ITEMS) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gather what a report shows: what the template writes, and what the page's script needs.

    Parameters
    ----------
    run
        The run.
    max_items
        Rows of the item explorer at most.
    """
    people, cells = annotator_rows(run)
    items = shown_items(run, max_items)
    words = run.table("outliers").filter(pl.col("rank") <= 30, kind="word", domain=ALL)
    n_items = run.scan("items").select(pl.len()).collect().item()
    n_people = run.scan("annotator_summary").select(pl.len()).collect().item()
    texts = {
        "version": __version__,
        "title": shown_title(run),
        "size": shown_size(run),
        "verdict": asdict(run.verdict),
        "label_notes": label_notes(run),
        "interval": run.interval,
        "anonymous": bool(run.manifest["anonymous"]),
        "votes_per_item": votes_per_item(run),
        "reading": [f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in reading_notes(run.manifest)],
        "outlying": list(outlying_people(run)),
        "questions": question_cells(run),
        "findings": findings_section(run),
        "checked": checked_tables(run) if run.verdict.error is not None else [],
        "texts": texts_section(run) if run.manifest.get("text_worth") else None,
        "uncertainty": uncertainty_section(run),
        "reliability": reliability_rows(run) if "gold" in run.table("audit")["reference"] else [],
        "groups": groups_section(run) if "groups" in run.manifest else None,
        "judges": judges_section(run) if run.manifest.get("roles") else None,
        "rules": rules_section(run),
        "people_note": f"{people.height:,} of {n_people:,}, those with most votes" * (people.height < n_people),
        "method": method_section(run),
    }
    interactive = {
        "questions": [asdict(question) for question in run.questions],
        "parts": list(run.parts.items()),
        "is_mixed": run.model == "mixed",
        "anonymous": texts["anonymous"],
        "items_total": n_items,
        "text_cut": text_cut(items["texts"].height),
        "people": packed(people),
        "confusion": packed(cells),
        "words": packed(words.select("question", "reason", word=pl.col("name").str.slice(0, 60))),
        **{name: packed(frame) for name, frame in items.items()},
    }
    return texts, interactive


# --- The answer, question by question ------------------------------------------------------------------------------


def table(
    heads: Sequence[str], rows: Sequence[Sequence[object]], words: int = 1, title: str = "", left_out: int = 0
) -> dict[str, Any]:
    """Return a table for the template: its first columns are words, the others figures; long ones are cut."""
    cells = [[NOTHING if cell is None else str(cell) for cell in row] for row in rows[:MAX_ROWS]]
    left_out += len(rows) - len(cells)
    return {"heads": heads, "rows": cells, "words": words, "title": title, "left_out": left_out}


def table_of(
    rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], words: int = 1, title: str = ""
) -> dict[str, Any]:
    """Return a table of rows: under each head the value of a column, or "column:format" with its interval if any.

    Examples
    --------
    >>> table_of([{"rule": "any", "n": 1200, "fpr": 0.1}], {"rule": "rule", "items": "n:,", "wrong": "fpr:.1%"})["rows"]
    [['any', '1,200', '10.0%']]
    """
    rows = list(rows)
    cells: list[list[object]] = []
    for row in rows[:MAX_ROWS]:
        cells.append([])
        for name, _, form in (spec.partition(":") for spec in columns.values()):
            value = row[name]
            if isinstance(value, int):
                value = f"{value:{form}}"
            cells[-1].append(interval_of(row, name, form) if form and not isinstance(value, str) else value)
    return table(tuple(columns), cells, words, title, len(rows) - len(cells))


def question_cells(run: Run) -> dict[str, Any]:
    """Return the table by question: the rows of the first screen."""
    rows = question_frame(run).with_columns(per_item=pl.col("votes") / pl.col("items").clip(1)).to_dicts()
    for row in rows:
        ends = dict.fromkeys(with_ends(".1%", row[name]) for name in ("wrong_from", "wrong_to"))
        row["wrong"] = "–".join(ends).replace("%–", "–")
    wrong = "wrong by gold" if run.verdict.checked_by == "gold" else "wrong if errors are independent"
    figures = {"agreement α": "alpha:.2f", "uncertain": "uncertain:.1%", "majority differs": "majority_differs:.1%"}
    heads = {"question": "question", "items": "items:,", "votes per item": "per_item:.1f", **figures, wrong: "wrong"}
    return table_of(rows, heads)


def findings_section(run: Run) -> dict[str, Any]:
    """Return what was found: issues worst first, then every other kind by what came of it."""
    findings, issues = read_findings(run), cautions(run)
    rows = overview(findings)
    names = {"fine": "Looked at and fine"} | {
        name: name.capitalize() for name in ("not applicable", "muted", "not checked")
    }
    kinds = {title: [row for row in rows if row["status"] == status] for status, title in names.items()}
    return {
        "issues": [
            {name: getattr(issue, name) for name in ("code", "title", "severity", "text", "meaning", "remedy")}
            for issue in issues
        ],
        "verdict": verdict(findings),
        "more": "" if is_thorough(findings) else "For the full examination: moral-entropy validate RUN",
        "kinds": [(title, members) for title, members in kinds.items() if members],
    }


def checked_tables(run: Run) -> list[dict[str, Any]]:
    """Return what checked labels found: of consensus and rules, of rules graded label by label, of annotators.

    With more than two labels a rule may be graded on every label of an item, and be right on most of them. Such a rule
    is not to be compared with those that give an item one label.
    """
    rows = run.checked
    n_labels = rows.filter(kind="consensus")["checked"].sum()
    by_label, person = (pl.col("kind") == "rule") & (pl.col("checked") > n_labels), pl.col("kind") == "annotator"
    parts = {"": rows.filter(~by_label, ~person), "Rules that decide on each label by itself": rows.filter(by_label),
             "Votes of annotators, worst first": rows.filter(person)}  # fmt: skip
    heads = ("whose", "checked", "wrong", "share wrong")
    return [table(heads, _checked_cells(part), title=title) for title, part in parts.items() if part.height]


def _checked_cells(rows: pl.DataFrame) -> list[list[str]]:
    """Return the rows as texts; rules with the same figures share one."""
    names: dict[tuple[str, ...], list[str]] = {}
    for row in rows.iter_rows(named=True):
        wrong = with_ends(".1%", row["value"], row["low"], row["high"])
        figures = (f"{row['checked']:,}", f"{row['wrong']:,.0f}", wrong)
        names.setdefault(("rule " if row["kind"] == "rule" else row["name"], *figures), []).append(row["name"])
    return [[lead + ", ".join(group) if lead == "rule " else lead, *cells] for (lead, *cells), group in names.items()]


def texts_section(run: Run) -> dict[str, Any]:
    """Return what the items' texts are worth, and the items whose text says otherwise than their votes."""
    heads = {"question": "question", "item": "item", "consensus": "label", "by its text": "text_label"}
    heads |= {"words": "words", "votes": "n_votes:,", "p by votes": "p_votes:.2f", "p by text": "p_text:.2f"}
    rows = run.table("text_conflicts").head(50).iter_rows(named=True)
    conflicts = table_of(rows, heads, 5, "Items whose text says otherwise")
    return {"sentence": run.manifest["text_worth"]["sentence"], "table": conflicts}


# --- Annotators and items ------------------------------------------------------------------------------------------


def annotator_rows(run: Run) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the annotators, those worth a look first, with a sentence each, and confusion cells of many labels.

    With several questions there is also a row per annotator for all of them. Those with fewest votes are left out
    where there are more than `MAX_PEOPLE` rows, or `MAX_CELLS` cells.
    """
    copies = {
        (fit["question"], fit["part"], str(name)): str(group[0] if at else group[1])
        for fit in run.manifest["questions"] for group in fit["counted_as_one"] for at, name in enumerate(group)
    }  # fmt: skip
    name, keys = pl.col("annotator").cast(pl.String), ["question", "part", "annotator"]
    summary = run.table("annotator_summary").select(PERSON).with_columns(name)
    rows = (
        summary.sort("n_votes", "annotator", descending=[True, False], maintain_order=True).head(MAX_PEOPLE).to_dicts()
    )
    raters = (
        run.table("raters").filter(pl.col("role") != "").with_columns(name) if run.has("raters") else pl.DataFrame()
    )
    rater_by_key = {tuple(rater[key] for key in keys): rater for rater in raters.iter_rows(named=True)}
    for row in rows:
        key = tuple(row[column] for column in keys)
        copied, rater = copies.get(key, ""), rater_by_key.get(key)
        # Copies come after those who vote badly, few votes last.
        row["trouble"] = ROLES.index(row["role"]) if row["role"] else 4.6 if copied else 4.8
        row["sentence"] = annotator_sentence(row, copied)
        if rater:
            row |= {
                "trouble": list(HABITS).index(rater["role"]) / 2,
                "sentence": f"{row['annotator']} {rater_sentence(rater)}.",
            }
    people = pl.DataFrame(rows, schema={**summary.schema, "trouble": pl.Float64, "sentence": pl.String})
    people = people.sort("trouble", pl.col("youden").round(9), nulls_last=True, maintain_order=True)
    large = [question.name for question in run.questions if question.positive is None]
    at = people.select(*keys, at=pl.int_range(pl.len()))
    cells = run.table("annotators", where=pl.col("question").is_in(large)).with_columns(name)
    cells = cells.join(at, on=keys).sort("at", maintain_order=True)
    # No matrix is cut in the middle.
    last = cells["at"][MAX_CELLS] if cells.height > MAX_CELLS else people.height
    if len(run.questions) > 1 and not run.manifest["anonymous"]:
        people = pl.concat([_over_questions(people), people], how="diagonal_relaxed").select(people.columns)
    return people.drop("trouble"), cells.filter(pl.col("at") < last).select(*keys, "true", "voted", "probability")


def _over_questions(people: pl.DataFrame) -> pl.DataFrame:
    """Return one row per annotator: the question on which they are most worth a look, and on how many more they are."""
    is_bad = pl.col("trouble") < len(ROLES) - 1.3
    worst = people.group_by("annotator", maintain_order=True).agg(
        pl.col("n_votes").sum(), pl.col("question", "sentence", "trouble").first(), n_bad=is_bad.sum(), n=pl.len()
    )
    further = pl.format(" Worth a look on {} more of {} questions.", pl.col("n_bad") - 1, "n")
    further = pl.when(pl.col("n_bad") > 1).then(further).otherwise(pl.lit(""))
    sentence = (
        pl.when(pl.col("n_bad") == 0).then(pl.format("Nothing unusual on {} questions.", "n"))
        .otherwise(pl.format("On {}: {}{}", "question", "sentence", further))
    )  # fmt: skip
    return worst.with_columns(sentence=sentence, question=pl.lit(ALL), part=pl.lit(""))


def packed(frame: pl.DataFrame) -> dict[str, Any]:
    """Return a table as columns that JSON can hold; figures that are not finite become null.

    Examples
    --------
    >>> packed(pl.DataFrame({"rule": ["any", "any"], "value": [0.12345678, float("inf")]}))
    {'rule': {'of': ['any'], 'at': [0, 0]}, 'value': [0.1235, None]}
    """
    floats = cs.float()
    finite = frame.with_columns(pl.when(floats.is_finite()).then(floats.round_sig_figs(DIGITS)))
    columns: dict[str, Any] = finite.to_dict(as_series=False)
    for name in finite.select(pl.col(pl.String)).columns:
        at: dict[str | None, int] = {}
        codes = [at.setdefault(text, len(at)) for text in columns[name]]
        columns[name] = {"of": list(at), "at": codes}
    return columns


# --- Uncertainty, groups, judges, rules, method --------------------------------------------------------------------


def uncertainty_section(run: Run) -> dict[str, Any]:
    """Return the mean entropy of every question as bars of its parts, and by domain as a table."""
    rows, parts = run.table("entropy"), run.parts
    pooled = rows.filter(domain=ALL).to_dicts()
    longest = max([row["total"] for row in pooled] + [1e-9])
    bars = []
    for row in pooled:
        # Without draws all that is known is the total.
        split = {name: row[part] for part, name in parts.items() if row[part] is not None} or {"total": row["total"]}
        widths = [(name, f"{nats:.3f}", f"{100 * nats / longest:.2f}") for name, nats in split.items()]
        bars.append({"question": row["question"], "total": f"{row['total']:.3f}", "parts": widths})
    heads = {"question": "question", "domain": "domain", "items": "n_items:,", "total, nats": "total:.3f"}
    heads |= {name: f"{part}:.3f" for part, name in parts.items()}
    by_domain = table_of(rows.filter(pl.col("domain") != ALL).iter_rows(named=True), heads, 2, "By domain")
    remedies = [(name, REMEDIES[part]) for part, name in parts.items()]
    return {"bars": bars, "remedies": remedies, "note": parts_note(run.model), "by_domain": by_domain}


def reliability_rows(run: Run) -> list[dict[str, Any]]:
    """Return p against gold in bins, by question or label: target, n and dots of p, gold, low and high."""
    positive = {question.name: question.positive for question in run.questions}
    dots: dict[str, list[dict[str, float]]] = {}
    for row in run.table("audit_reliability").filter(bins="width").iter_rows(named=True):
        target = row["question"] if positive[row["question"]] else f"{row['question']}: {row['label']}"
        dots.setdefault(target, []).append({name: row[name] for name in ("p", "gold", "low", "high", "n")})
    return [{"target": target, "n": sum(dot["n"] for dot in bins), "dots": bins} for target, bins in dots.items()][
        :MAX_PLOTS
    ]


def groups_section(run: Run) -> dict[str, Any]:
    """Return what the report shows of groups, of a run that has them: the largest difference first."""
    # Late: SciPy's statistics take long to load.
    from moral_entropy.groups.table import largest_first

    facts, rows = run.manifest["groups"], largest_first(run.groups)
    is_tested = pl.col("p_value").is_not_null()
    heads = ("question", "by", "group", "annotators", "share or mean", "difference", "p", "α within", "α across")
    tested, untested = ([*map(group_cells, rows.filter(keep).to_dicts())] for keep in (is_tested, ~is_tested))
    people = {"by": "column", "group": "group", "annotators": "annotators:,", "share": "share:.1%"}
    people["target"] = "target:.1%"
    return {
        "sentences": [f"{text[:1].upper()}{text[1:]}" for text in facts["sentences"]],
        "notes": facts["notes"],
        "table": table(heads, tested, 3),
        "untested": table(heads, untested, 3, "Shares that are not tested"),
        "people": table_of(facts["composition"], people, 2, "Whose consensus is this?"),
        "parting": parting_items(run),
    }


def group_cells(row: dict[str, Any]) -> list[str]:
    """Return the row of a group as it is shown: shares in %, differences in points, ratings as they are."""
    scale, unit, digits = (1, "", 2) if row["label"] == MEAN else (100, "%", 1)
    rate, gap, low, high = (
        NOTHING if row[name] is None else f"{scale * row[name]:z.{digits}f}"
        for name in ("rate", "difference", "low", "high")
    )
    sign = "+" if (row["difference"] or 0) > 0 else ""
    ends = "" if row["low"] is None else f" ({low} to {high})"
    figures = (("p_adjusted", ".3f"), ("within", ".2f"), ("across", ".2f"))
    part = f" / {row['part']}" if row["part"] else ""
    return [
        f"{row['question']}{part}: {row['label']}", row["column"], row["group"], f"{row['n_annotators']:,}",
        rate + unit * (row["rate"] is not None), f"{sign}{gap}{ends}",
        *(with_ends(form, row[name]) for name, form in figures),
    ]  # fmt: skip


def parting_items(run: Run) -> dict[str, Any]:
    """Return the items on which groups with a truth each part most."""
    rows = run.table("group_items", where=pl.col("between").is_not_null())
    votes = pl.format("{} {} of {}", "group", "n_yes", "n_votes")
    items = rows.group_by("question", "label", "item", "column", maintain_order=True).agg(
        votes.str.join("; ").alias("votes"), pl.col("spread").first()
    )
    first = items.sort(-pl.col("spread").round(9), maintain_order=True).head(20)
    texts = dict(run.table("texts", where=pl.col("item").is_in(first["item"].implode())).iter_rows())
    cells = [
        [f"{row['question']}: {row['label']}", row["item"], (texts.get(row["item"]) or "")[:300], row["votes"]]
        for row in first.iter_rows(named=True)
    ]
    return table(("votes for", "item", "text", "by group"), cells, 4, "Items on which they part most")


def judges_section(run: Run) -> dict[str, Any] | None:
    """Return the section on judges as tables and sentences; None where no language model voted."""
    facts = run.manifest
    if facts["anonymous"] or facts["votes"] > MAX_VOTES or facts["annotators"] > MOST_JUDGES:
        return None
    names = run.table("annotator_summary")["annotator"].cast(pl.String).unique().drop_nulls().to_list()
    if LLM not in roles_of(run, names)[0].values():
        return None
    judges = describe_judges(run)
    scores = score(run, default_system(run)) if judges.frame["n_known"].sum() else None
    tables = [_scores(scores.frame, "Scores"), _scores(scores.differences, "Differences")] if scores else []
    heads = {"question": "question", "judge": "judge", "in a sentence": "advice", "votes": "n_votes:,"}
    heads |= {"no vote": "missing:.0%", "right": "right_all:.0%", "as the others": "agrees:.0%"}
    tables.append(table_of(judges.frame.iter_rows(named=True), heads, 3, "Judges, best first"))
    panels = {"question": "question", "judges": "judges", "size": "size", "wrong on other items": "wrong_unseen:.1%"}
    tables.append(table_of(judges.panels.iter_rows(named=True), panels, 2, "Best panel of each size"))
    notes = [*judges.replace["text"], *(scores.notes if scores is not None else ()), *judges.notes]
    return {"tables": [each for each in tables if each["rows"]], "notes": list(dict.fromkeys(notes))}


def _scores(frame: pl.DataFrame, title: str) -> dict[str, Any]:
    rows = []
    for row in frame.head(MAX_ROWS).iter_rows(named=True):
        form = ".1%" if is_share(row["quantity"]) else ".2f"
        bounds = ([row[f"{name}{end}"] for end in ("value", "low", "high")] for name in ("", "ppi_", "gold_", "votes_"))
        system = "all" if row["group"] == ALL else " − ".join((row["group"], *filter(None, [row.get("other")])))
        begin = (row["question"], row["quantity"], system, f"{row['n_gold']:,}")
        rows.append([*begin, *(with_ends(form, *figures) for figures in bounds)])
    heads = ("question", "score of", "system", "known answers", "score", "PPI++", "known alone", "plain votes")
    return table(heads, rows, 3, title, frame.height - len(rows))


def rules_section(run: Run) -> dict[str, Any]:
    """Return the rules in one small table, and by question."""
    rules, by_question = pooled_rules(run), rate_frame(run)
    metrics = {name: rate for name, rate in RATES.items() if any(rule["figures"].get(name) for rule in rules)}
    rows = []
    for rule in rules:
        rows.append([", ".join(rule["names"])])
        for name in metrics:
            rate, thresholded = (rule["figures"].get(key) or {} for key in (name, f"thresholded_{name}"))
            beside = "" if thresholded.get("value") is None else f" ({thresholded['value']:.0%})"
            rows[-1].append(with_ends(".1%", *(rate.get(key) for key in ("value", "low", "high"))) + beside)
    heads = {"question": "question", "rule": "rule", "against": "reference"}
    heads |= {rate.name: f"{name}:.1%" for name, rate in RATES.items() if name in by_question.columns}
    meanings = run.table("audit_rules").select("rule", "meaning").unique("rule", maintain_order=True)
    return {
        "reference": rules[0]["reference"] if rules else "consensus",
        "caveat": CAVEAT if any(rule["figures"].get("thresholded_fpr") for rule in rules) else "",
        "advice": str(run.manifest.get("advice") or ""),
        "table": table(("rule", *(rate.name for rate in metrics.values())), rows),
        "meanings": [(rate.name, f"{rate.meaning} ({rate.formal or 'disagreement'})") for rate in metrics.values()],
        "by_question": table_of(by_question.iter_rows(named=True), heads, 3, "By question"),
        "words": table(("rule", "says yes when"), meanings.rows(), 2, "Rules in words"),
        "ratings": rating_tables(run) if run.has("scores") else [],
    }


def rating_tables(run: Run) -> list[dict[str, Any]]:
    """Return the rules on ratings, and the raters, of questions with a scale: those with a role first."""
    grades = run.table("rating_rules", where=pl.col("cut") == "")
    heads = {"question": "question", "rule": "rule", "against": "reference"}
    by_metric = grades.pivot("metric", index=["question", "part", "rule", "reference"], values="value")
    heads |= {metric: f"{metric}:.3f" for metric in by_metric.columns[4:]}
    people = run.table("raters").sort(pl.col("role") == "", maintain_order=True)
    columns = {"question": "question", "rater": "annotator", "role": "role", "votes": "n_votes:,", "bias": "bias:.2f",
               "spread": "spread:.2f", "slope": "slope:.2f"}  # fmt: skip
    return [
        table_of(by_metric.iter_rows(named=True), heads, 3, "Rules on ratings, in points of the scale"),
        table_of(people.iter_rows(named=True), columns, 3, "Raters, in points of the scale"),
    ]


def method_section(run: Run) -> dict[str, Any]:
    """Return what a reader needs to repeat the run; no times, so that the same run has the same report."""
    facts = {name: run.manifest.get(name) for name in FACTS}
    fits = [
        fit | {"shares": ", ".join(f"{label} {share:.1%}" for label, share in fit["prevalence"].items()),
               "part": fit["part"] or NOTHING, "converged": "yes" if fit["converged"] else "NO"}
        for fit in run.manifest["questions"]
    ]  # fmt: skip
    heads = {"question": "question", "part": "part", "positive": "positive", "share of each label": "shares"}
    heads |= {"items": "items:,", "annotators": "annotators:,", "votes": "votes:,"}
    heads |= {"log posterior": "log_posterior:,.2f", "converged": "converged"}
    return {"facts": facts, "is_mixed": run.model == "mixed", "fits": table_of(fits, heads, 4, "The fits")}
