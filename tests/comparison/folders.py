"""Run folders written by hand, with just what a comparison reads."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import polars as pl

from moral_entropy.runs.run import SCHEMA
from moral_entropy.schemas import SCHEMAS, with_ids

MANIFEST = {
    **dict.fromkeys(("version", "command", "model", "coordinates", "pooling"), ""),
    **dict.fromkeys(("rows", "items", "items_without_votes", "annotators", "votes", "draws", "seed"), 0),
    **dict.fromkeys(("anonymous", "use_gold"), False),
    **{name: [] for name in ("guessed", "notes", "domains", "warnings")},
    **{name: {} for name in ("columns", "dropped", "versions", "seconds")},
    "fit_by": None,
    "input": {"source": "", "sha256": None},
    "priors": {"prevalence": None, "diagonal": None, "off_diagonal": None, "annotators": {}, "by_question": {}},
    "options": {"read": {"on_repeat": "", "keep_case": False, "missing": None}, "fit": {}},
}
QUESTION = {
    **dict.fromkeys(("part", "solver"), ""),
    **dict.fromkeys(("items_without_votes", "votes", "annotators", "passes", "entropy", "uncertain", "ambiguous"), 0),
    **dict.fromkeys(("ambiguity", "doubt_votes", "doubt_annotators", "aleatoric", "epistemic", "log_posterior",
                     "gradient_norm", "common", "mixture")),
    **dict.fromkeys(("converged", "flat"), False),
    **{name: {} for name in ("modes", "curvature", "exponent")},
    "counted_as_one": [],
}  # fmt: skip


def entropy_of(p_k):
    return -sum(p * math.log(p) for p in p_k if p > 0)


def item(question, name, p_k, labels, *, domain=None, count=1.0, votes=3, draws=True):
    """One row of items.parquet, and its rows of posterior.parquet; the last of two labels is positive."""
    two = len(labels) == 2
    best = int(p_k[1] >= 0.5) if two else int(np.argmax(p_k))
    p = p_k[1] if two else p_k[best]
    total = entropy_of(p_k)
    row = {
        "question": question,
        "item": name,
        "domain": domain,
        "n_votes": votes,
        "n_positive": 1,
        "p_map": p,
        "p_model": p,
        "p": p,
        "p_low": max(p - 0.05, 0.0) if draws else None,
        "p_high": min(p + 0.05, 1.0) if draws else None,
        "label": labels[best],
        "entropy": total,
        "ambiguity": 0.5 * total if draws else None,
        "doubt_votes": 0.3 * total if draws else None,
        "doubt_annotators": 0.2 * total if draws else None,
        "aleatoric": 0.8 * total if draws else None,
        "epistemic": 0.2 * total if draws else None,
        "count": count,
        "part": "",
    }
    more = [] if two else [(question, name, label, p, p, p, None, None) for label, p in zip(labels, p_k, strict=True)]
    return row, more


def write_run(folder, items, labels, *, audit=(), **facts):
    """Write a run folder of rows made by `item`; `labels` by question, the last of two positive."""
    folder.mkdir()
    kind = pl.Int64() if all(isinstance(row["item"], int) for row, _ in items) else pl.String()
    rows = [row for row, _ in items]
    pl.DataFrame(rows, schema=with_ids(SCHEMAS["items"], item=kind)).write_parquet(folder / "items.parquet")
    more = [row for _, rows in items for row in rows]
    if more:
        frame = pl.DataFrame(more, schema=with_ids(SCHEMAS["posterior"], item=kind), orient="row")
        frame.write_parquet(folder / "posterior.parquet")
    audit = [(*row, *[None] * (len(SCHEMAS["audit"]) - len(row))) for row in audit]
    pl.DataFrame(audit, schema=SCHEMAS["audit"], orient="row").write_parquet(folder / "audit.parquet")
    # What the verdict of each run reads: nobody voted, no rule was graded, nothing was found.
    for name in ("annotator_summary", "audit_rules", "findings"):
        pl.DataFrame(schema=SCHEMAS[name]).write_parquet(folder / f"{name}.parquet")
    counted = Counter(row["question"] for row in rows)
    questions = [
        {**QUESTION, "question": question, "labels": sorted(names),
         **dict.fromkeys(("items", "items_counted"), counted[question]),
         "positive": names[-1] if len(names) == 2 else None, "prevalence": dict.fromkeys(names, 1 / len(names))}
        for question, names in labels.items()
    ]  # fmt: skip
    settings = {"schema": SCHEMA, "model": "paper", "interval": 0.9, "converged": True}
    manifest = {**MANIFEST, **settings, "questions": questions, **facts}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def random_items(rng, labels, n_items, *, domains=(None,), first=0, **more):
    """Items of every question with probabilities at random, in an order of their own."""
    items = []
    for question, names in labels.items():
        for n in rng.permutation(n_items).tolist():
            p_k = rng.dirichlet(np.ones(len(names))).tolist()
            domain = domains[n % len(domains)]
            items.append(item(question, f"i{first + n}", p_k, names, domain=domain, **more))
    return items
