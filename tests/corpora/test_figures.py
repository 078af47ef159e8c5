"""Our figures: every reading of a rate, the supplement, the corpora's table, entropies and dissent, computed again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from moral_entropy import audit
from moral_entropy.corpora.figures import RULES, dissent_rates, our_figures, uncertain_items
from moral_entropy.corpora.twins import twin
from moral_entropy.model.entropy import decompose_entropy

ANSWERS = {
    "any": lambda yes, votes: yes >= 1,
    "majority": lambda yes, votes: 2 * yes >= votes,
    "two-vote": lambda yes, votes: yes >= 2,
}
NAMES = ("mftc", "mfrc", "emfd")


@pytest.fixture(scope="module")
def figures(runs):
    return our_figures(runs, {})


@pytest.fixture(scope="module")
def items(runs):
    """A row for every text and foundation: where it is, what the rules say, p and gold."""
    rows = []
    for corpus, run in runs.items():
        votes = run.consensus.votes
        for fit in run.consensus.fits:
            for at in range(fit.ballot.n_items):
                yes, n_votes = int(fit.ballot.counts_ik[at, 1]), int(fit.ballot.votes_i[at])
                row = {"corpus": corpus, "foundation": fit.question, "p": float(fit.p_ik[at, 1]), "votes": n_votes}
                row["domain"] = votes.domains[votes.domain_i[fit.ballot.item_i[at]]]
                row |= {rule: answer(yes, n_votes) for rule, answer in ANSWERS.items()}
                rows.append(row | {"gold": bool(fit.ballot.gold_i[at] == 1)})
    return rows


WEIGHTS = {
    "consensus": lambda row: float(row["p"] >= 0.5),
    "expected": lambda row: row["p"],
    "gold": lambda row: float(row["gold"]),
}


def rate(rows, rule, metric, weight):
    """Weigh every item by the chance that it is a yes, or a no, and compute the share that the rule gets wrong."""
    chance = [weight(row) if metric == "fnr" else 1 - weight(row) for row in rows]
    wrong = sum(c for c, row in zip(chance, rows, strict=True) if row[rule] == (metric == "fpr"))
    return wrong / sum(chance) if sum(chance) else None


def mean_rate(rows, names, *how):
    parts = {}
    for row in rows:
        parts.setdefault(tuple(row[name] for name in names), []).append(row)
    rates = [found for part in parts.values() if (found := rate(part, *how)) is not None]
    return sum(rates) / len(rates)


def get(figures, **where):
    rows = figures.filter(**where)
    assert rows.height == 1, where
    return rows["value"][0]


@pytest.mark.parametrize("corpus", [*NAMES, "(all)"])
@pytest.mark.parametrize("against", WEIGHTS)
def test_every_reading_of_every_rate(figures, items, corpus, against):
    own, weight = [row for row in items if corpus in (row["corpus"], "(all)")], WEIGHTS[against]
    for rule in RULES:
        for metric in ("fpr", "fnr"):
            at = {"corpus": corpus, "rule": rule, "reference": "gold" if against == "gold" else "consensus"}
            at["metric"] = f"expected_{metric}" if against == "expected" else metric
            how = (rule, metric, weight)
            pooled = get(figures, **at, domain="(all)", foundation="(all)")
            # Expected denominators are kept as whole numbers where corpora are pooled.
            near = {"abs": 1e-3} if corpus == "(all)" and against == "expected" else {"rel": 1e-9}
            assert pooled == pytest.approx(rate(own, *how), **near)
            mean = get(figures, **at, domain="(all)", foundation="(mean)")
            assert mean == pytest.approx(mean_rate(own, ["foundation"], *how), **near)
            cells = get(figures, **at, domain="(mean)", foundation="(mean)")
            assert cells == pytest.approx(mean_rate(own, ["corpus", "domain", "foundation"], *how))


def test_a_domain_and_the_share_of_wrong_flags(figures, items):
    blm = [row for row in items if row["domain"] == "BLM"]
    at = {"corpus": "mftc", "domain": "BLM", "rule": "any", "reference": "consensus"}
    mean = get(figures, **at, metric="fpr", foundation="(mean)")
    assert mean == pytest.approx(mean_rate(blm, ["foundation"], "any", "fpr", WEIGHTS["consensus"]))
    flagged = [row for row in blm if row["any"]]
    wrong = sum(row["p"] < 0.5 for row in flagged) / len(flagged)
    assert get(figures, **at, metric="fdr", foundation="(all)") == pytest.approx(wrong)


def test_the_supplement(figures, items):
    own = [row for row in items if row["corpus"] == "mfrc"]
    p_i = np.array([row["p"] for row in own])
    for rule in RULES:
        g_i, votes_i = np.array([float(row[rule]) for row in own]), np.array([row["votes"] for row in own])
        at = {"corpus": "mfrc", "domain": "(all)", "foundation": "(all)", "rule": rule, "reference": "consensus"}
        assert get(figures, **at, metric="brier") == pytest.approx(((g_i - p_i) ** 2).mean())
        means = {g: p_i[g_i == g].mean() for g in (0.0, 1.0)}
        share = {g: (g_i == g).mean() for g in (0.0, 1.0)}
        reliability = sum(share[g] * (g - means[g]) ** 2 for g in means)
        resolution = sum(share[g] * (means[g] - p_i.mean()) ** 2 for g in means)
        assert get(figures, **at, metric="brier_reliability") == pytest.approx(reliability)
        assert get(figures, **at, metric="brier_resolution") == pytest.approx(resolution)
        assert get(figures, **at, metric="ece") == pytest.approx(sum(share[g] * abs(g - means[g]) for g in means))
        smooth_i = (g_i * votes_i + 0.5) / (votes_i + 1)
        cross = -(p_i * np.log(smooth_i) + (1 - p_i) * np.log(1 - smooth_i)).mean()
        assert get(figures, **at, metric="cross_entropy_smoothed") == pytest.approx(cross)
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = -np.nan_to_num(p_i * np.log(p_i) + (1 - p_i) * np.log(1 - p_i)).mean()
        assert get(figures, **at, metric="kl_smoothed") == pytest.approx(cross - entropy)


def test_the_corpora_table(figures):
    total = 0
    for name in NAMES:
        table = twin(name, scale=0.02)
        for domain, part in [("(all)", table), *((key[0], part) for key, part in table.group_by("domain"))]:
            texts, pairs = part["item"].n_unique(), part.select("item", "annotator").unique().height
            at = {"corpus": name, "domain": domain}
            assert get(figures, **at, metric="texts") == texts
            assert get(figures, **at, metric="annotations_per_text") == pytest.approx(pairs / texts)
            flagged = part.filter(label=1, question="loyalty")["item"].n_unique()
            assert get(figures, **at, metric="flagged", foundation="loyalty") == pytest.approx(flagged / texts)
        assert get(figures, corpus=name, metric="annotators") == table["annotator"].n_unique()
        total += table["item"].n_unique()
    assert get(figures, corpus="(all)", metric="texts") == total


def test_entropies(figures, runs):
    consensus, shares = runs["mftc"].consensus, []
    for fit in consensus.fits:
        parts, domain_i = decompose_entropy(fit), consensus.votes.domain_i[fit.ballot.item_i]
        for code, domain in enumerate(consensus.votes.domains):
            inside = domain_i == code
            for metric, value_i in (("aleatoric", parts.aleatoric_i), ("epistemic", parts.epistemic_i)):
                value = get(figures, corpus="mftc", domain=domain, foundation=fit.question, metric=metric)
                assert value == pytest.approx(value_i[inside].mean())
            shares.append(parts.epistemic_i[inside].mean() / parts.total_i[inside].mean())
    at = {"corpus": "mftc", "metric": "epistemic_share"}
    assert get(figures, **at, domain="(mean)") == pytest.approx(sum(shares) / 35)
    assert get(figures, **at, domain="(largest)") == pytest.approx(max(shares))


def test_dissent(figures, runs):
    table = twin("mftc", scale=0.02).filter(question="care", domain="BLM")
    yes, n_votes = Counter(), Counter()
    for item, label in table.select("item", "label").iter_rows():
        yes[item] += label
        n_votes[item] += 1
    wrong, own = Counter(), Counter()
    for item, annotator, label in table.select("item", "annotator", "label").iter_rows():
        wrong[annotator] += label != (2 * yes[item] >= n_votes[item])
        own[annotator] += 1
    rates = dissent_rates(runs["mftc"]).filter(domain="BLM", foundation="care")
    assert dict(rates.select("annotator", "votes").iter_rows()) == own
    for annotator, rate_of in rates.select("annotator", "dissent").iter_rows():
        assert rate_of == pytest.approx(wrong[annotator] / own[annotator])
    busy = [wrong[annotator] / n for annotator, n in own.items() if n >= 0.01 * len(yes)]
    at = {"corpus": "mftc", "domain": "BLM", "foundation": "care"}
    assert get(figures, **at, metric="lowest_dissent") == pytest.approx(min(busy))
    assert get(figures, **at, metric="highest_dissent") == pytest.approx(max(busy))


def test_counts(figures, items):
    def equal(cell):
        rates = [rate(cell, rule, "fnr", WEIGHTS["consensus"]) for rule in ("majority", "two-vote")]
        return None not in rates and abs(rates[0] - rates[1]) < 0.005

    cells, domains = {}, {}
    for row in items:
        if row["corpus"] == "mfrc":
            cells.setdefault((row["domain"], row["foundation"]), []).append(row)
            domains.setdefault(row["domain"], []).append(row)
    assert get(figures, corpus="mfrc", metric="equal_fnr_cells") == sum(map(equal, cells.values()))
    above = 0
    for rows in domains.values():
        fpr, fnr = (mean_rate(rows, ["foundation"], "any", m, WEIGHTS["consensus"]) for m in ("fpr", "fnr"))
        above += fpr > fnr
    assert get(figures, corpus="mfrc", metric="domains_fpr_above_fnr") == above


def test_a_hundred_uncertain_items_of_every_domain(runs):
    listed = uncertain_items(runs["mfrc"]).filter(domain="US Politics", question="care")
    table = runs["mfrc"].table("items").filter(domain="US Politics", question="care")
    assert listed.height == 100 and (listed["entropy"].diff().drop_nulls() <= 0).all()
    assert listed["entropy"].min() >= table["entropy"].sort(descending=True)[100]
    assert listed["text"].null_count() == 0


def test_every_place_is_there_once(figures):
    assert not figures.select("corpus", "domain", "foundation", "rule", "reference", "metric").is_duplicated().any()
    named = figures.filter(
        ~pl.col("domain").str.starts_with("("), ~pl.col("foundation").str.starts_with("("), metric="aleatoric"
    )
    assert named.height == 75


def test_real_counts_of_mfrc_are_those_of_the_page():
    """The row of care in docs/data/mfrc-counts.csv, and the same rates from the fitted parameters alone."""
    root = Path(__file__).parents[2]
    path = root / ".." / "shared" / "data" / "mfrc_counts" / "counts_with_text.csv"
    if not path.is_file():
        pytest.skip("the counts of MFRC's votes are not beside the project")
    yes = pl.read_csv(path)["Care"].clip(0, 3)
    table = pl.DataFrame({"item": np.arange(len(yes)), "no": 3 - yes, "yes": yes})
    run = audit(table, counts=["no", "yes"], anonymous=True, model="paper", rules=["any", "majority"], draws=200)
    [fit] = run.consensus.fits
    prevalence_k, rate_kv = fit.prevalence_k, fit.confusion_akv[0]
    score_kn = prevalence_k[:, None] * rate_kv[:, :1] ** (3 - np.arange(4)) * rate_kv[:, 1:] ** np.arange(4)
    p_n = score_kn[1] / score_kn.sum(axis=0)
    items_n = np.bincount(yes.to_numpy(), minlength=4)
    rates = {
        "any FPR": (items_n[1:] @ (1 - p_n[1:])) / (items_n @ (1 - p_n)),
        "any FNR": items_n[0] * p_n[0] / (items_n @ p_n),
        "majority FNR": (items_n[:2] @ p_n[:2]) / (items_n @ p_n),
    }
    page = pl.read_csv(root / "docs" / "data" / "mfrc-counts.csv", infer_schema=False)
    row = page.row(by_predicate=pl.col("foundation") == "care", named=True)
    for name, rate_of in rates.items():
        printed = float(row[name].split("/")[1])
        assert 100 * rate_of == pytest.approx(printed, abs=0.15)
