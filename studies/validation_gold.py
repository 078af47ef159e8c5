"""Are the probabilities right? Every public set with gold labels at hand, and what left-out votes say.

Usage: validation_gold.py [--data ../shared/data] [--draws 400] [--dry]. Writes the parts `heldout` and `gold` of
docs/evidence/validation.md; with --dry only prints. Sets that are not there are left out, with a word.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from gold_sets import ROOT, SETS, asked_for, facts, gold_votes
from page import put
from scipy.sparse import csr_array
from scipy.special import entr, log_softmax

from moral_entropy.checks.density import densities_of
from moral_entropy.checks.gold import GoldItems, gold_exponents, reports, score_reports
from moral_entropy.checks.heldout import BY_VOTES, METHODS, HeldOut, hold_out
from moral_entropy.checks.scores import Scores, score
from moral_entropy.checks.temper import exponent_of
from moral_entropy.consensus.fit import fit
from moral_entropy.consensus.result import Consensus, QuestionFit
from moral_entropy.consensus.tempering import gold_exponent, tempered
from moral_entropy.consensus.vote_share import smoothed_share
from moral_entropy.corpora.twins import twin
from moral_entropy.errors import MoralEntropyWarning
from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Floats, Votes

PAGE = ROOT / "docs" / "evidence" / "validation.md"
TWINS = ("mftc", "mfrc", "emfd")

COLUMNS = {
    "plurality": "plurality",
    "vote share": "vote share",
    "mode": "mode (MAP)",
    "consensus": "posterior mean",
    "partial pooling": "partial pooling",
    "tempered by held-out votes": "tempered, held-out",
    "half tempered, half share": "half tempered, half share",
    "tempered by gold": "tempered, gold",
    "prevalence tempered too": "gold, two exponents",
}
"""Methods by the name they have in the tables, in their order."""

WITHOUT_GOLD = ("partial pooling", "tempered by held-out votes", "half tempered, half share")
FIGURES = {"log_loss": "Log loss (nats per item)", "accuracy": "Accuracy", "brier": "Brier score", "ece": "ECE"}


@dataclass(frozen=True, eq=False)
class GoldSet:
    """One set with gold, scored.

    Parameters
    ----------
    name
        Of its folder.
    n_labels, n_gold
        Labels, and items with gold.
    scores
        By method.
    exponents
        Learnt from held-out votes; from gold; and from gold with one of the prevalence beside it.
    held
        Its held-out votes.
    tried
        Log losses of variants that were not kept.
    """

    name: str
    n_labels: int
    n_gold: int
    scores: dict[str, Scores]
    exponents: tuple[float, float, float, float]
    held: HeldOut
    tried: dict[str, float]


def quiet_fit(votes: Votes, **options: object) -> Consensus:
    """Fit without warnings: what they warn of is what the study measures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        return fit(votes, model="paper", **options)  # type: ignore[arg-type]


def study_set(name: str, votes: Votes, draws: int) -> GoldSet:
    """Fit a set, and score every method against its gold."""
    plain = quiet_fit(votes, draws=draws).fits[0]
    pooled = quiet_fit(votes, draws=draws, pooling="partial").fits[0]
    items = GoldItems.of(plain)
    log_p = reports(items) | {"partial pooling": GoldItems.of(pooled).log_mean_ik(1.0)}
    held = hold_out(plain)
    if held is None:
        msg = f"{name} has too few votes to hold any out"
        raise ValueError(msg)
    exponents = _exponents(plain, items)
    others = {method: scores.log_loss for method, scores in score_reports(items, tried(items, exponents[0])).items()}
    n_labels, n_gold = plain.ballot.n_labels, len(items.item_i)
    return GoldSet(name, n_labels, n_gold, score_reports(items, log_p), exponents, held, others)


def _exponents(plain: QuestionFit, items: GoldItems) -> tuple[float, float, float, float]:
    learn = (items.evidence_ik, items.log_prevalence_k, items.gold_i)
    one = gold_exponent(*learn, weight_i=items.weight_i).value
    return exponent_of(plain).value, one, *gold_exponents(*learn, items.weight_i)


def study_twin(name: str, draws: int = 0) -> list[HeldOut]:
    """Hold out the votes of a twin, question by question."""
    votes = read_votes(twin(name))
    found = [hold_out(one) for one in quiet_fit(votes, draws=draws).fits]
    return [held for held in found if held is not None]


def tried(items: GoldItems, exponent: float) -> dict[str, Floats]:
    """Give the log probabilities of variants that were tried and not kept, all at the mode: `log_p_ik`."""
    one, evidence_ik, log_k = items.fit, items.evidence_ik, items.log_prevalence_k
    plain_ik, held_ik = (log_softmax(log_k + power * evidence_ik, axis=1) for power in (1.0, exponent))
    share_ik = smoothed_share(items.counts_ik)
    votes_i = items.counts_ik.sum(axis=1, keepdims=True).clip(min=1)
    row_kv = np.average(one.confusion_akv, axis=0, weights=one.ballot.votes_a)
    return {
        "half untempered, half share": np.log(0.5 * np.exp(plain_ik) + 0.5 * share_ik),
        "half tempered, half share, in logs": log_softmax(0.5 * held_ik + 0.5 * np.log(share_ik), axis=1),
        "what the next annotator would say": np.log(np.exp(held_ik) @ row_kv),
        "n votes count as √n": log_softmax(log_k + evidence_ik / np.sqrt(votes_i), axis=1),
        "prevalence to the same power": log_softmax(exponent * (log_k + evidence_ik), axis=1),
        "fitted under the exponent": _fitted_under(items, exponent),
        "two subtypes per label": _subtypes(items),
    }


def _fitted_under(items: GoldItems, exponent: float, steps: int = 200) -> Floats:
    """Temper every E-step, not only the last, from the mode on."""
    log_posterior, at = densities_of(items.fit).simplex, items.fit.mode
    for _ in range(steps):
        at = log_posterior.expect(tempered(at, exponent)).maximum()
    posterior_ik = log_posterior.patterns.spread(log_posterior.posterior_rk(tempered(at, exponent)))
    log_p_ik: Floats = np.log(posterior_ik[items.item_i].clip(min=1e-300))
    return log_p_ik


def _subtypes(items: GoldItems, steps: int = 200) -> Floats:
    """Let every label have an easy and a hard kind of item, each with rows of its own: EM from the vote shares."""
    ballot = items.fit.ballot
    n_labels, n_annotators = ballot.n_labels, ballot.n_annotators
    shape = (ballot.n_items, n_annotators * n_labels)
    votes = csr_array((np.ones(ballot.n_votes), ballot.code_v, ballot.start_i), shape=shape)
    share_ik = smoothed_share(ballot.counts_ik)
    hard_i1 = entr(share_ik).sum(axis=1, keepdims=True) / np.log(n_labels)
    posterior_it = np.hstack([share_ik * (1.0 - hard_i1), share_ik * hard_i1])
    prior_vt = np.tile(np.where(np.eye(n_labels) > 0, 0.8, 0.2), 2)
    for _ in range(steps):
        items_t = posterior_it.sum(axis=0) + 0.5
        votes_avt = (votes.T @ posterior_it).reshape(n_annotators, n_labels, -1) + prior_vt
        log_ct = np.log(votes_avt / votes_avt.sum(axis=1, keepdims=True)).reshape(shape[1], -1)
        log_it = log_softmax(np.log(items_t / items_t.sum()) + votes @ log_ct, axis=1)
        posterior_it = np.exp(log_it)
    log_p_ik: Floats = np.logaddexp(log_it[:, :n_labels], log_it[:, n_labels:])[items.item_i]
    return log_p_ik


def _tried_table(sets: Sequence[GoldSet]) -> str:
    head = ["variant, at the mode", *(one.name for one in sets), "median"]
    rows: list[list[str | float]] = []
    for name in sets[0].tried:
        losses = [one.tried[name] for one in sets]
        rows.append([name, *losses, float(np.median(losses))])
    return markdown(head, rows)


def gold_part(sets: Sequence[GoldSet]) -> str:
    """Give the tables against gold, and whether the aims are met."""
    tables = [f"### {title}\n\n{_table(sets, figure)}" for figure, title in FIGURES.items()]
    exponents = f"### Exponents\n\n{_exponent_table(sets)}"
    others = f"### What else was tried\n\n{TRIED_TEXT}\n\n{_tried_table(sets)}"
    return "\n\n".join([GOLD_TEXT, *tables, exponents, others, "### What was aimed for", _aims(sets)])


TRIED_TEXT = (
    "Log losses of variants that look at no gold and were not kept. The first shows where the gain of the half-and-"
    "half average comes from: from averaging with the share, nearly all of it, with an exponent or without."
)

GOLD_TEXT = (
    "Flat prevalence prior, rows 1.8/1.2. *Vote share*: half a vote for every label to begin with. *Partial pooling*: "
    "posterior mean with rows that vary around common ones. *Tempered, held-out*: each item's likelihood to the power "
    "that predicts left-out votes best; no gold is looked at. *Half tempered, half share*: the average of that "
    "posterior and the vote share. *Tempered, gold*: the power is learnt from gold, in five folds; *two exponents*: "
    "the prevalence has one as well. All but mode, plurality and share are averaged over draws. Computed in logs, "
    'no probability is clipped: plurality\'s loss is infinite because it says "never". The Brier score is halved, so '
    "that with two labels it is that of one; the ECE has 15 bins of equal width."
)


def _table(sets: Sequence[GoldSet], figure: str) -> str:
    rows: list[list[str | float]] = [[one.name, *(_value(one, name, figure) for name in COLUMNS)] for one in sets]
    rows.append(["*median*", *(float(np.median([_value(one, name, figure) for one in sets])) for name in COLUMNS)])
    return markdown(["set", *COLUMNS.values()], rows)


def _value(one: GoldSet, name: str, figure: str) -> float:
    return float(getattr(one.scores[name], figure))


def _exponent_table(sets: Sequence[GoldSet]) -> str:
    head = ["set", "labels", "items with gold", "from held-out votes", "from gold", "two: votes", "two: prevalence"]
    return markdown(head, [[one.name, str(one.n_labels), f"{one.n_gold:,}", *one.exponents] for one in sets])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    """Lay out a table; numbers with three decimals."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for row in rows:
        cells = [cell if isinstance(cell, str) else "∞" if np.isinf(cell) else f"{cell:.3f}" for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _aims(sets: Sequence[GoldSet]) -> str:
    loss = {name: np.array([_value(one, name, "log_loss") for one in sets]) for name in COLUMNS}
    middle = {name: float(np.median(values)) for name, values in loss.items()}
    best = min(WITHOUT_GOLD, key=lambda name: middle[name])
    plain = middle["consensus"]
    lines = [
        f"- Without gold the best variant is *{COLUMNS[best]}*: median {middle[best]:.3f}, "
        f"{1 - middle[best] / middle['mode']:.0%} below the mode's {middle['mode']:.3f} and "
        f"{1 - middle[best] / plain:.0%} below the posterior mean's {plain:.3f} (aim: 55%); the vote share's is "
        f"{middle['vote share']:.3f} (aim: no worse): "
        f"{_met(middle[best] <= 0.45 * plain and middle[best] <= middle['vote share'])}.",
        *(_gold_aim(sets, loss, name) for name in ("tempered by gold", "prevalence tempered too")),
        f"- *{COLUMNS[best]}* is still worse than the vote share on: {_names(sets, loss[best] > loss['vote share'])}.",
        _why(sets, loss),
    ]
    return "\n".join(lines)


def _why(sets: Sequence[GoldSet], loss: dict[str, np.ndarray]) -> str:
    """Say where tempering by held-out votes falls short, and what held-out votes say there."""
    short = loss["tempered by held-out votes"] > 1.5 * loss["tempered by gold"]
    better = [one for one in sets if one.held.losses("consensus").mean() < one.held.losses("vote share").mean()]
    return (
        f"- Where an exponent from held-out votes leaves more than 1.5 times the loss of one from gold: "
        f"{_names(sets, short)}. The votes cannot tell: on {len(better)} of {len(sets)} sets the consensus predicts "
        "left-out votes better than the vote share does. It has found what moves the voters, and that need not be what "
        "gold asks. A crowd that is wrong together cannot be calibrated from within; a few dozen "
        "gold labels and `--temper gold` can do what no number of votes can."
    )


def _gold_aim(sets: Sequence[GoldSet], loss: dict[str, np.ndarray], name: str) -> str:
    rivals = ("vote share", "mode", "consensus")
    not_below = np.any([loss[name] >= loss[rival] for rival in rivals], axis=0)
    return (
        f"- *{COLUMNS[name]}*: below vote share, mode and posterior mean on {len(sets) - int(not_below.sum())} of "
        f"{len(sets)} sets (aim: all): {_met(not not_below.any())}. Not on: {_names(sets, not_below)}."
    )


def _met(met: bool) -> str:
    return "met" if met else "**not met**"


def _names(sets: Sequence[GoldSet], where: np.ndarray) -> str:
    return ", ".join(one.name for one, here in zip(sets, where, strict=True) if here) or "none"


def heldout_part(sets: Sequence[GoldSet], twins: dict[str, list[HeldOut]]) -> str:
    """Give the tables of held-out votes."""
    corpora = {one.name: [one.held] for one in sets} | {f"{name} twin": found for name, found in twins.items()}
    head = ["set", "votes", "exponent", *METHODS, *(f"ECE {method}" for method in METHODS)]
    rows = [[name, *_heldout_cells(found)] for name, found in corpora.items()]
    by_votes = [[name, *cells] for name, found in corpora.items() for cells in _cells_by_votes(found)]
    return "\n\n".join(
        [
            HELDOUT_TEXT,
            markdown(head, rows),
            "### By votes on the item (the left-out one included)",
            markdown(["set", "votes on the item", "n", *METHODS], by_votes),
        ]
    )


HELDOUT_TEXT = (
    "A fifth of the votes is left out at a time and predicted from a fit to the others: log loss in nats per vote, and "
    "calibration (ECE) of the chances given to votes. *Consensus* and *tempered* average the annotator's confusion row "
    "over the posterior of the item's other votes, *prevalence* over the prevalence alone; *vote share* is that of the "
    "other votes on the item, half a vote for every label to begin with. Exponents are learnt within the votes fitted "
    "to (mean over folds); figures of the twins are over all their questions."
)


def _heldout_cells(found: Sequence[HeldOut]) -> list[str | float]:
    n = sum(len(held.label_v) for held in found)
    share = [len(held.label_v) / n for held in found]

    def mean(values: Sequence[float]) -> float:
        return float(np.average(values, weights=share))

    # Chances of the last label for two, of every label for more: as the package's own findings.
    labels = found[0].log_p_mvk.shape[2]
    targets = (1,) if labels == 2 else tuple(range(labels))
    loss = [mean([held.losses(method).mean() for held in found]) for method in METHODS]
    ece = [mean([score(held.log_p_mvk[m], held.label_v, targets).ece for held in found]) for m in range(len(METHODS))]
    return [f"{n:,}", mean([held.exponent_f.mean() for held in found]), *loss, *ece]


def _cells_by_votes(found: Sequence[HeldOut]) -> Iterator[list[str | float]]:
    votes_v = np.concatenate([held.votes_v for held in found])
    loss_mv = np.array([np.concatenate([held.losses(method) for held in found]) for method in METHODS])
    for least, most, name in BY_VOTES:
        here_v = (votes_v >= least) & (votes_v <= (most or np.inf))
        if here_v.any():
            yield [name, f"{here_v.sum():,}", *loss_mv[:, here_v].mean(axis=1).tolist()]


def with_part(page: str, name: str, text: str) -> str:
    """Put text between the markers of a part of the page."""
    return put(page, name, "studies/validation_gold.py", text)


def main() -> None:
    """Run the study and write its parts of the page."""
    asked = asked_for(__doc__)
    sets = [study_set(name, votes, asked.draws) for name, votes in gold_votes(asked.data, SETS)]
    twins = {name: study_twin(name) for name in TWINS}
    parts = {"heldout": f"{facts(asked.draws)} {heldout_part(sets, twins)}"}
    if sets:
        parts["gold"] = f"{facts(asked.draws)} {gold_part(sets)}"
    for name, text in parts.items():
        print(text, end="\n\n")
        if not asked.dry:
            PAGE.write_text(with_part(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
