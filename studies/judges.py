"""Do scores by judges hold what they promise? Simulated panels in five worlds, and panels whose majority is wrong.

Usage: python studies/judges.py [--panels 160] [--worlds independent,shared,…] [--wrong-majority 60]
       [--position-bias 60] [--real FOLDER] [--convarg FOLDER]

Four systems answer the same 300 prompts (60 prompts in five epochs in the world of clusters), five judges are right in
90 to 70%, and 150 answers are known, at random. Prints, by world, how often 90% intervals hold the planted share, their
length, how often A - B (6 points) is held and decided, and writes these figures into docs/data/judges.csv in place of
those that the same version had in the same world with the same seeds. The worlds use the public API alone, so that an
earlier version can be run on the same panels (PYTHONPATH); of people's votes 0.2 takes the majority for gold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl
import polars.selectors as cs
from scipy.stats import norm

import moral_entropy as me

SHARES = {"A": 0.76, "B": 0.70, "C": 0.65, "D": 0.80}
JUDGES = {"gpt-4o": 0.9, "claude-3": 0.85, "llama-3": 0.8, "mistral": 0.75, "qwen": 0.7}
WORLDS = ("independent", "shared", "lenient", "people", "epochs")
N_PROMPTS, N_KNOWN, EPOCHS = 300, 150, 5
FIGURES = Path(__file__).resolve().parents[1] / "docs" / "data" / "judges.csv"
PEOPLE_VOTE = not me.__version__.startswith("0.2")


def panel(world: str, seed: int) -> pl.DataFrame:
    """Simulate the votes of one panel.

    Parameters
    ----------
    world
        One of `WORLDS`: errors are independent; all judges are wrong together on 15% of the items; they pass 30% more
        of A's bad answers; answers are known by three people who are right in 85%; every prompt is asked five times.
    seed
        Of the panel.
    """
    rng = np.random.default_rng(seed)
    epochs = EPOCHS if world == "epochs" else 1
    n_prompts = N_PROMPTS // epochs
    names = np.array(list(SHARES))
    system_i, prompt_i = np.divmod(np.arange(len(names) * N_PROMPTS), N_PROMPTS)
    prompt_i = prompt_i // epochs
    shared_p, own_sp = rng.standard_normal(n_prompts), rng.standard_normal((len(names), n_prompts))
    noise_i = rng.standard_normal(len(system_i))
    parts = (0.3, 0.4, 0.3) if epochs > 1 else (0.4, 0.0, 0.6)
    sources = (shared_p[prompt_i], own_sp[system_i, prompt_i], noise_i)
    skill_i = sum(np.sqrt(part) * x_i for part, x_i in zip(parts, sources, strict=True))
    truth_i = skill_i < norm.ppf(list(SHARES.values()))[system_i]
    together_i = (rng.random(len(truth_i)) < 0.15) & (world == "shared")
    known_i = np.isin(np.arange(len(truth_i)), rng.choice(len(truth_i), N_KNOWN, replace=False))
    votes = {}
    for name, right in JUDGES.items():
        chance_i = np.where((world == "lenient") & (system_i == 0) & ~truth_i, right - 0.3, right)
        votes[name] = np.where(together_i, ~truth_i, (rng.random(len(truth_i)) < chance_i) == truth_i)
    columns = {"item": np.arange(len(truth_i)), "system": names[system_i], "prompt": prompt_i}
    gold_i, frames = truth_i, []
    if world == "people":
        people = np.stack([(rng.random(len(truth_i)) < 0.85) == truth_i for _ in range(3)])
        gold_i = people.sum(axis=0) > 1
        if PEOPLE_VOTE:
            frames = [pl.DataFrame(columns | {"annotator": name, "label": cast}).filter(known_i)
                      for name, cast in zip(("Anna", "Ben", "Cem"), people, strict=True)]  # fmt: skip
    frames += [pl.DataFrame(columns | {"annotator": name, "label": cast}) for name, cast in votes.items()]
    gold = pl.Series("gold", gold_i).cast(pl.String)
    known = pl.DataFrame({"item": columns["item"], "gold": gold}).filter(
        known_i & (not PEOPLE_VOTE or world != "people")
    )
    return pl.concat(frames).with_columns(pl.col("label").cast(pl.String)).join(known, on="item", how="left")


def study(worlds: list[str], panels: int, first: int) -> None:
    """Print and write the figures of some worlds, after every ten panels of each."""
    rows: dict[str, list[dict[str, float]]] = {world: [] for world in worlds}
    for n_panels in range(1, panels + 1):
        for world in worlds:
            rows[world].append(grade(panel(world, first + n_panels - 1)))
        if n_panels % 10 and n_panels < panels:
            continue
        means = pl.DataFrame([
            {"version": me.__version__, "world": world, "panels": n_panels, "first_seed": first}
            | pl.DataFrame(rows[world]).mean().row(0, named=True)
            for world in worlds
        ]).with_columns(cs.float().round(4))  # fmt: skip
        replaced = pl.col("world").is_in(worlds)
        for name, value in (("version", me.__version__), ("first_seed", first)):
            replaced &= pl.col(name) == value
        table = pl.concat([pl.read_csv(FIGURES, schema=means.schema).filter(~replaced), means])
        table.sort("world", "first_seed", "version").write_csv(FIGURES)
    for row in means.iter_rows(named=True):
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)


def grade(votes: pl.DataFrame) -> dict[str, float]:
    """Return whether intervals hold what was planted in one panel, and their lengths."""
    run = me.audit(votes, draws=20, domain="system", gold="gold" if votes["gold"].is_not_null().any() else "")
    scores = me.score(run, by="domain")
    held = [row["low"] <= SHARES[row["group"]] <= row["high"] for row in scores.frame.iter_rows(named=True)]
    pairs = scores.differences.filter(pl.concat_list("group", "other").list.sort().list.join("-") == "A-B")
    [pair] = pairs.iter_rows(named=True)
    sign = 1 if pair["group"] == "A" else -1
    low, high = sorted((sign * pair["low"], sign * pair["high"]))
    length = (scores.frame["high"] - scores.frame["low"]).mean()
    gap = {"A-B held": float(low <= 0.06 <= high), "A-B decided": float(low > 0), "A-B length": high - low}
    return {"held": float(np.mean(held)), "length": length} | gap


def wrong_majority(panels: int, first_seed: int) -> None:
    """Print how known answers overrule panels most of whose judges are wrong, together."""
    from moral_entropy.judges.table import describe_judges

    first, gains, slandered = [], [], 0
    for seed in range(panels):
        rng = np.random.default_rng([first_seed, seed])
        n, n_known = 600, 150
        truth_i, shared_i = rng.random(n) < 0.6, rng.random(n) < 0.6
        right = {"gpt-4o": rng.random(n) < 0.9, "claude-3": rng.random(n) < 0.8}
        right |= {name: np.where(rng.random(n) < 0.9, ~shared_i, rng.random(n) < 0.5)
                  for name in ("llama-3", "qwen", "mistral")}  # fmt: skip
        gold = [("no", "yes")[int(truth)] if i < n_known else None for i, truth in enumerate(truth_i)]
        rows = [
            (i, name, ("no", "yes")[int(right_i[i] == truth_i[i])], gold[i])
            for name, right_i in right.items()
            for i in range(n)
        ]
        run = me.audit(pl.DataFrame(rows, schema=["item", "annotator", "label", "gold"], orient="row"), draws=20)
        judges = describe_judges(run)
        first.append(judges.frame["judge"][0] == "gpt-4o")
        unseen = judges.labels.filter(~pl.col("known"))
        item_i = unseen["item"].cast(pl.Int64).to_numpy()
        best = right["gpt-4o"][item_i].mean()
        gains.append(((unseen["label"] == "yes").to_numpy() == truth_i[item_i]).mean() - best)
        roles = run.annotators.filter(pl.col("gold_accuracy") >= 0.7)["role"].to_list()
        slandered += sum("guess" in role for role in roles)
    print(f"{panels} panels with a wrong majority: best judge first in {np.mean(first):.1%}; labels against the best")
    print(f"judge's: {100 * np.mean(gains):+.2f} points ({100 * np.min(gains):.1f} to {100 * np.max(gains):.1f});")
    print(f"{slandered} judges right in 70% of the known answers are called guessing, or worse")


def real(folder: Path, repetitions: int) -> None:
    """Print how often intervals hold the mean of all answers of public panels, with few answers revealed at random."""
    from moral_entropy.judges.estimates import Answers, corrected_means, known_mean
    from moral_entropy.judges.known import known_items
    from moral_entropy.judges.values import quantities

    for name in ("llmbar_natural", "trecrag24_9judges", "bluebird", "rte", "hate_paradigms", "web"):
        run = me.audit(folder / name / "votes.csv", draws=0, gold_file=folder / name / "gold.csv")
        items = known_items(run, run.questions[0])
        [quantity, *_] = quantities(run.questions[0])
        at = np.flatnonzero(items.known_i)
        truth = float((items.truth_ik[at] @ quantity.value_k).mean())
        for n_known in (50, 200):
            held, length = [], []
            for repetition in range(repetitions):
                rng = np.random.default_rng([repetition, n_known])
                rows = rng.choice(at, 1_000)
                answers = Answers(np.zeros(1_000, int), np.arange(1_000), np.arange(1_000) < n_known,
                                  items.truth_ik[rows], items.p_ik[rows], np.ones(1_000))  # fmt: skip
                [estimate], _ = corrected_means(answers, quantity.value_k)
                alone = known_mean(answers.truth_ik[:n_known] @ quantity.value_k)
                held.append(estimate.low <= truth <= estimate.high)
                length.append((estimate.high - estimate.low) / (alone.high - alone.low))
            print(f"{name:18} {quantity.name:20} {n_known:4} known: held {np.mean(held):.3f}, length against known "
                  f"answers alone {np.mean(length):.2f}", flush=True)  # fmt: skip


def convarg(folder: Path) -> None:
    """Print how well arguments are ranked, and left-out comparisons predicted: win rates, Bradley–Terry, and ours."""
    from scipy.stats import spearmanr

    from moral_entropy.judges.pairwise import Comparisons, fit_strengths

    votes = pl.read_csv(folder / "votes.csv")
    name = [pl.concat_str("topic", pl.lit("/"), side).alias(side) for side in ("first", "second")]
    votes = votes.with_columns(name)
    names = pl.concat([votes["first"], votes["second"]]).unique().sort().to_list()
    judges = votes["annotator"].unique().sort().to_list()
    codes = [votes[column].replace_strict(keys, range(len(keys)), return_dtype=pl.Int64).to_numpy()
             for column, keys in (("first", names), ("second", names), ("annotator", judges))]  # fmt: skip
    outcome_v = votes["winner"].replace_strict({"a1": 0, "a2": 1, "equal": 2}).to_numpy()
    every = Comparisons(*codes, np.ones(len(votes)), outcome_v)
    left_out = np.random.default_rng(0).random(len(votes)) < 0.1
    learn, test = (Comparisons(*(column[rows] for column in every)) for rows in (~left_out, left_out))
    fitted = fit_strengths(learn, len(names), len(judges))
    plain = fit_strengths(learn._replace(judge_v=np.zeros_like(learn.judge_v)), len(names), 1)
    score_v = np.array([1.0, 0.0, 0.5])[learn.outcome_v]
    n_n = np.bincount(learn.first_v, minlength=len(names)) + np.bincount(learn.second_v, minlength=len(names))
    won_n = np.bincount(learn.first_v, score_v, len(names)) + np.bincount(learn.second_v, 1 - score_v, len(names))
    rankings = {"win rate": (won_n + 0.5) / (n_n + 1), "one judge": plain.strength_n, "ours": fitted.strength_n}
    losses = {"one judge": plain.outcomes(test._replace(judge_v=np.zeros_like(test.judge_v))),
              "ours": fitted.outcomes(test)}  # fmt: skip
    try:
        import choix

        decided = learn.outcome_v < 2
        pairs = np.where(learn.outcome_v[:, None] == 0, np.stack([learn.first_v, learn.second_v], axis=1),
                         np.stack([learn.second_v, learn.first_v], axis=1))[decided]  # fmt: skip
        rankings["choix"] = choix.ilsr_pairwise(len(names), pairs.tolist(), alpha=0.01)
    except ImportError:
        print("choix is not installed")
    gold = pl.read_csv(folder / "gold.csv").join(votes.unique("item"), on="item").filter(pl.col("gold") != "equal")
    at = {name: n for n, name in enumerate(names)}
    first, second = (gold[side].replace_strict(at).to_numpy() for side in ("first", "second"))
    won = (gold["gold"] == "a1").to_numpy()
    n_gold = np.bincount(first, minlength=len(names)) + np.bincount(second, minlength=len(names))
    share_n = (np.bincount(first, won, len(names)) + np.bincount(second, ~won, len(names))) / np.maximum(n_gold, 1)
    topic = np.array([name.rsplit("/", 1)[0] for name in names])
    for ranking, strength_n in rankings.items():
        rho = np.mean([spearmanr(strength_n[topic == t], share_n[topic == t]).statistic for t in np.unique(topic)])
        gap = strength_n[first] - strength_n[second]
        print(f"{ranking:10} Spearman with wins in published pairs, mean of {len(np.unique(topic))} topics {rho:.4f}, "
              f"published pairs ordered right {np.mean((gap > 0) == won):.4f}")  # fmt: skip
    share_o = np.bincount(learn.outcome_v, minlength=3) / len(learn.outcome_v)
    losses["shares"] = np.tile(share_o, (len(test.outcome_v), 1))
    for model, p_vo in losses.items():
        print(f"{model:10} log loss of {len(p_vo):,} left-out comparisons "
              f"{-np.log(p_vo[np.arange(len(p_vo)), test.outcome_v]).mean():.4f}")  # fmt: skip
    print(f"order effect of all judges {fitted.order_j[0]:.3f}")


def position_bias(panels: int) -> None:
    """Print how often a planted bias of 10 points of one of five judges is held by its interval, and told from none."""
    from moral_entropy.judges.pairwise import Comparisons, _positions, fit_strengths

    held, told = [], []
    for seed in range(panels):
        rng = np.random.default_rng(20_000 + seed)
        strength_n, n = rng.normal(0, 0.7, 8), 1_200
        first, second = np.array([rng.choice(8, 2, replace=False) for _ in range(n)]).T
        judge_v, shown_v = np.repeat(np.arange(5), n), rng.choice([1.0, -1.0], 5 * n)
        first_v, second_v = np.tile(first, 5), np.tile(second, 5)
        chance_v = 1 / (1 + np.exp(-(strength_n[first_v] - strength_n[second_v])))
        # Ten points: the answer shown first wins by 5 points more than it would, the other by 5 less.
        chance_v = np.clip(chance_v + 0.05 * shown_v * (judge_v == 0), 0, 1)
        outcome_v = np.where(rng.random(5 * n) < 0.1, 2, np.where(rng.random(5 * n) < chance_v, 0, 1))
        votes = Comparisons(first_v, second_v, judge_v, shown_v, outcome_v)
        row = _positions("q", votes, list("abcde"), fit_strengths(votes, 8, 5), 0.9).row(0, named=True)
        # A tenth are ties, which no bias moves.
        held.append(row["bias_low"] <= 0.09 <= row["bias_high"])
        told.append(row["bias_low"] > 0)
    print(f"{panels} panels, a position bias of 10 points: held by its 90% interval in {np.mean(held):.1%}, "
          f"told from none in {np.mean(told):.1%}")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", type=int, default=160)
    parser.add_argument("--first", type=int, default=7_000, help="seed of the first panel")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--convarg", type=Path, help="folder of convarg_pairs")
    parser.add_argument("--real", type=Path, help="folder with public panels")
    parser.add_argument("--repetitions", type=int, default=200, help="of each public panel")
    parser.add_argument("--position-bias", type=int, default=0)
    parser.add_argument("--wrong-majority", type=int, default=0)
    chosen = parser.parse_args()
    print(f"moral-entropy {me.__version__}, {chosen.panels} panels in each world, seeds from {chosen.first}")
    if chosen.worlds:
        study(chosen.worlds.split(","), chosen.panels, chosen.first)
    if chosen.wrong_majority:
        wrong_majority(chosen.wrong_majority, chosen.first)
    if chosen.position_bias:
        position_bias(chosen.position_bias)
    if chosen.real:
        real(chosen.real, chosen.repetitions)
    if chosen.convarg:
        convarg(chosen.convarg)
