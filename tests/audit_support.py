"""Votes with everything an audit looks at, and its grades worked out again item by item, with loops."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from moral_entropy.votes.table import UNKNOWN, Votes, ballot_from_codes


def rich_votes(seed=0, *, n_items=120, n_labels=2, questions=("care", "fair"), positive=None, counted=False):
    """Two questions, three domains and none, gold and published labels on most items, some items without a vote."""
    rng = np.random.default_rng(seed)
    n_annotators = 6
    ballots = []
    for question in questions:
        truth_i = rng.choice(n_labels, size=n_items, p=np.arange(n_labels, 0, -1) / (n_labels * (n_labels + 1) / 2))
        rows = []
        for item in range(n_items - 5):
            for annotator in rng.permutation(n_annotators)[: rng.integers(1, 6)]:
                right = rng.random() < 0.72
                rows.append((item, annotator, truth_i[item] if right else rng.integers(n_labels)))
        item_v, annotator_v, label_v = np.array(rows).T
        ballots.append(
            ballot_from_codes(
                question,
                tuple("abcde"[:n_labels]) if n_labels > 2 else ("no", "yes"),
                item_v=item_v,
                annotator_v=annotator_v,
                label_v=label_v,
                item_i=np.arange(n_items, dtype=np.int32),
                positive=positive,
                gold_i=np.where(rng.random(n_items) < 0.8, truth_i, UNKNOWN),
                published_i=np.where(rng.random(n_items) < 0.9, rng.integers(n_labels, size=n_items), UNKNOWN),
                count_i=rng.integers(1, 4, size=n_items).astype(float) if counted else None,
            )
        )
    return Votes(
        items=pl.Series("item", [f"q{i:03}" for i in range(n_items)]),
        annotators=pl.Series("annotator", [f"ann_{a}" for a in range(n_annotators)]),
        ballots=tuple(ballots),
        domains=("blm", "metoo", "sandy"),
        domain_i=rng.integers(-1, 3, size=n_items).astype(np.int32),
    )


def loop_score(name, chosen, votes):
    """What a rule says of an item with some votes, in words turned into arithmetic once more."""
    if votes == 0:
        return math.nan
    return {
        "any": float(chosen > 0),
        "majority": float(chosen / votes >= 0.5),
        "strict-majority": float(chosen / votes > 0.5),
        "two-vote": float(chosen > 1),
        "k-vote-3": float(chosen > 2),
        "unanimous": float(chosen == votes),
        "quorum-2/3": float(3 * chosen >= 2 * votes),
        "share": chosen / votes,
        "smoothed-share": (chosen + 0.5) / (votes + 1),
    }[name]


def loop_entropy(p):
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


def loop_kl(p, g):
    total = 0.0
    for a, b in ((p, g), (1 - p, 1 - g)):
        if a > 0:
            total += math.inf if b == 0 else a * math.log(a / b)
    return total


DIVERGENCES = {
    "brier": lambda p, g: (p - g) ** 2,
    "kl": loop_kl,
    "zero_one": lambda p, g: abs(2 * p - 1) if (p >= 0.5) != (g >= 0.5) else 0.0,
}


def loop_grades(items, *, smoothing=0.5, bins=15):
    """Every metric from a list of items: dicts of score, decision, yes, p, weight, votes. None where it has none."""
    out = {}
    items = [item for item in items if not math.isnan(item["score"])]

    def total(what):
        return sum(item["weight"] * what(item) for item in items)

    def share(part, whole):
        return None if total(whole) == 0 else total(part) / total(whole)

    for prefix, truth in (("", "yes"), ("expected_", "p")):
        wrong_yes = lambda i, t=truth: i["decision"] * (1 - i[t])  # noqa: E731
        wrong_no = lambda i, t=truth: (1 - i["decision"]) * i[t]  # noqa: E731
        out[prefix + "fpr"] = share(wrong_yes, lambda i, t=truth: 1 - i[t])
        out[prefix + "fnr"] = share(wrong_no, lambda i, t=truth: i[t])
        out[prefix + "fdr"] = share(wrong_yes, lambda i: i["decision"])
        out[prefix + "for"] = share(wrong_no, lambda i: 1 - i["decision"])
        out[prefix + "disagreement"] = share(lambda i, y=wrong_yes, n=wrong_no: y(i) + n(i), lambda i: 1)
        both = out[prefix + "fpr"], out[prefix + "fnr"]
        out[prefix + "balanced_error"] = None if None in both else sum(both) / 2
    one = lambda i: 1  # noqa: E731
    mean_p = share(lambda i: i["p"], one)
    for name, divergence in DIVERGENCES.items():
        out[name] = share(lambda i, d=divergence: d(i["p"], i["score"]), one)
        levels = {}
        for item in items:
            levels.setdefault((item["score"], item["decision"]), []).append(item)
        reliability = resolution = 0.0
        for (score, _), members in levels.items():
            weight = sum(item["weight"] for item in members)
            level = sum(item["weight"] * item["p"] for item in members) / weight
            reliability += weight * divergence(level, score)
            resolution += weight * divergence(level, mean_p)
        out[name + "_reliability"] = reliability / total(one)
        out[name + "_resolution"] = resolution / total(one)
        out[name + "_uncertainty"] = share(lambda i, d=divergence: d(i["p"], mean_p), one)
    out["expected_brier"] = share(lambda i: i["p"] * (1 - i["score"]) ** 2 + (1 - i["p"]) * i["score"] ** 2, one)
    smooth = lambda i: (i["score"] * i["votes"] + smoothing) / (i["votes"] + 2 * smoothing)  # noqa: E731
    out["kl_smoothed"] = share(lambda i: loop_kl(i["p"], smooth(i)), one)
    out["cross_entropy_smoothed"] = share(
        lambda i: -i["p"] * math.log(smooth(i)) - (1 - i["p"]) * math.log(1 - smooth(i)), one
    )
    out["cross_entropy"] = share(lambda i: loop_kl(i["p"], i["score"]) + loop_entropy(i["p"]), one)
    out["cross_entropy_reliability"] = out["kl_reliability"]
    out["cross_entropy_resolution"] = out["kl_resolution"]
    out["cross_entropy_uncertainty"] = loop_entropy(mean_p)
    gaps = {}
    for item in items:
        # Bins are open below and closed above; the first takes 0 as well.
        b = max(math.ceil(round(item["score"] * bins, 9)) - 1, 0)
        gaps[b] = gaps.get(b, 0.0) + item["weight"] * (item["p"] - item["score"])
    out["ece"] = sum(map(abs, gaps.values())) / total(one)
    return out


def items_of(votes, consensus, question, target, rule, *, domain=None, posterior_ik=None, gold=False, scores=None):
    """Items of one question as `loop_grades` wants them; `posterior_ik` replaces the mean."""
    fit = next(fit for fit in consensus.fits if fit.question == question)
    ballot, out = fit.ballot, []
    for i in range(ballot.n_items):
        if domain is not None and votes.domain_i[ballot.item_i[i]] != domain:
            continue
        if gold and ballot.gold_i[i] == UNKNOWN:
            continue
        counts = [0] * ballot.n_labels
        for code in ballot.code_v[ballot.start_i[i] : ballot.start_i[i + 1]]:
            counts[code % ballot.n_labels] += 1
        p_k = (fit.p_ik if posterior_ik is None else posterior_ik)[i]
        yes = p_k[target] >= 0.5 if ballot.n_labels == 2 else p_k.argmax() == target
        p = float(p_k[target])
        if gold:
            yes = p = float(ballot.gold_i[i] == target)
        score = scores[i] if scores is not None else loop_score(rule, counts[target], sum(counts))
        soft = rule in ("share", "smoothed-share")
        decision = float(score >= 0.5) if soft and not math.isnan(score) else score
        item = {"score": score, "decision": decision, "yes": float(yes), "p": float(p)}
        out.append({**item, "weight": float(ballot.count_i[i]), "votes": sum(counts)})
    return out


def figures_of(frame, **where):
    """Values by metric of the rows that match."""
    rows = frame.filter(**where)
    assert rows.height == rows["metric"].n_unique()
    return dict(zip(rows["metric"], rows["value"], strict=True))
