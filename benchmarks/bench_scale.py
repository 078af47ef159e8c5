"""Votes from Parquet to run folder, ten thousand to a hundred million: time by stage, peak memory, and how they grow.

Also a hundred thousand annotators, and how far the curvature that is used there is from the exact one where both can
be had. Takes minutes and gigabytes of disk, hence a target of its own: `make bench-scale`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import data
import numpy as np
from measure import ROOT, Measurement, cli, run_child, say

from moral_entropy.consensus.em import maximise
from moral_entropy.consensus.laplace import information, krylov_gaussian
from moral_entropy.consensus.starts import paper_start
from moral_entropy.corpora.simulate import simulate_votes

DRAWS = 100
SMALLEST_ITEMS = 2_000
VOTES_AN_ANNOTATOR = 10_000
CHART = ROOT / "docs" / "figures" / "cost.svg"


@dataclass(frozen=True)
class Audited:
    """What an audit of simulated votes took.

    Parameters
    ----------
    n_votes, n_annotators
        Of the votes.
    seconds, peak_gb
        Of the whole command.
    stage_s
        Seconds by stage, as the manifest has them.
    read_gb, written_gb
        Sizes of the votes' file and of the run folder.
    """

    n_votes: int
    n_annotators: int
    seconds: float
    peak_gb: float
    stage_s: dict[str, float]
    read_gb: float
    written_gb: float


def measure(sizes: data.Sizes) -> Iterator[Measurement]:
    """Simulate and audit ever more votes, then ever more annotators; each in a process of its own."""
    ladder = list(_ladder(sizes.scale_items))
    _audit(ladder[0], _team(ladder[0]))
    runs = [_audit(n_items, _team(n_items)) for n_items in ladder]
    yield from _largest(runs[-1])
    yield _paper(_audit(ladder[-1], _team(ladder[-1]), "--model", "paper"))
    yield from _each(runs)
    yield from _slopes(runs)
    if sizes == data.FULL:
        _draw_chart(runs, CHART)
    yield from _many_annotators(sizes.items)
    yield from _krylov_error(max(20, min(2_000, sizes.items // 50)))


def _ladder(most_items: int) -> Iterator[int]:
    n_items = SMALLEST_ITEMS
    while n_items < most_items:
        yield n_items
        n_items *= 10
    yield most_items


def _team(n_items: int) -> int:
    """Annotators of 10,000 votes each, ten at least."""
    return max(10, n_items * data.LARGE_VOTES_PER_ITEM // VOTES_AN_ANNOTATOR)


def _audit(n_items: int, n_annotators: int, *flags: str) -> Audited:
    n_votes = n_items * data.LARGE_VOTES_PER_ITEM
    shape = {"--items": n_items, "--annotators": n_annotators, "--votes-per-item": data.LARGE_VOTES_PER_ITEM}
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "votes.parquet", Path(folder) / "run"
        say(f"auditing {n_votes:,} votes of {n_annotators:,} annotators with {DRAWS} draws")
        run_child(cli("simulate", *(str(part) for pair in shape.items() for part in pair), "-o", str(source)))
        run = run_child(cli("audit", str(source), "-o", str(out), "--draws", str(DRAWS), "-q", *flags))
        stage_s = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["seconds"]
        written = sum(file.stat().st_size for file in out.iterdir()) / 1e9
        read = source.stat().st_size / 1e9
    return Audited(n_votes, n_annotators, run.seconds, run.peak_gb, stage_s, read, written)


def _named(n_votes: int) -> str:
    return f"{n_votes / 1e6:g}M votes" if n_votes >= 1e6 else f"{n_votes / 1e3:g}k votes"


def _stages(run: Audited) -> str:
    return ", ".join(f"{stage} {spent:.3g}" for stage, spent in run.stage_s.items())


def _largest(run: Audited) -> Iterator[Measurement]:
    what = f"{_named(run.n_votes)} to run folder"
    items = run.n_votes // data.LARGE_VOTES_PER_ITEM
    how = (
        f"{items:,} items, {run.n_annotators:,} annotators; {run.read_gb:.2g} GB read, {run.written_gb:.2g} GB written"
    )
    yield Measurement(f"{what}: peak memory", run.peak_gb, "GB", how, at_most=8.0)
    yield Measurement(f"{what}: time", run.seconds, "s", "the whole command, report included", at_most=360.0)
    fit = "mode, curvature, draws and every item's sums over them"
    yield Measurement(f"{what}: fit", run.stage_s["fit"], "s", fit, at_most=60.0)


def _paper(run: Audited) -> Measurement:
    how = f"{run.peak_gb:.3g} GB; {_stages(run)}; version 0.1, which had no other model: 299 s, 7.43 GB"
    return Measurement(f"{_named(run.n_votes)} under the paper's model", run.seconds, "s", how)


def _each(runs: list[Audited]) -> Iterator[Measurement]:
    for run in runs:
        how = f"{run.n_annotators:,} annotators, {run.peak_gb:.3g} GB; {_stages(run)}"
        yield Measurement(f"{_named(run.n_votes)} to run folder", run.seconds, "s", how)


def _slopes(runs: list[Audited]) -> Iterator[Measurement]:
    votes = np.log([run.n_votes for run in runs])
    reach = f"{_named(runs[0].n_votes)} to {_named(runs[-1].n_votes)}"
    for what, cost in (
        ("the whole command", np.log([run.seconds for run in runs])),
        ("its stages, the report aside", np.log([_work(run) for run in runs])),
    ):
        slope = float(np.polyfit(votes, cost, 1)[0])
        yield Measurement(f"slope of {what}", slope, "", f"log seconds on log votes, {reach}", at_most=1.05)
        last = float((cost[-1] - cost[-2]) / (votes[-1] - votes[-2]))
        yield Measurement(f"slope of {what}, last step", last, "", f"from {_named(runs[-2].n_votes)}", at_most=1.05)


def _work(run: Audited) -> float:
    """Seconds without starting Python and the report, which do not grow with the votes."""
    return sum(spent for stage, spent in run.stage_s.items() if stage != "report")


def _many_annotators(n_items: int) -> Iterator[Measurement]:
    run = _audit(n_items, n_items // 10)
    how = f"{_named(run.n_votes)}, {run.peak_gb:.3g} GB; {_stages(run)}"
    yield Measurement(f"{run.n_annotators:,} annotators to run folder", run.seconds, "s", how)


def _krylov_error(n_annotators: int) -> Iterator[Measurement]:
    """Compare standard errors by blocks and Krylov space with those by the whole matrix."""
    for votes_each in (20, 200):
        n_items = n_annotators * votes_each // data.LARGE_VOTES_PER_ITEM
        say(f"standard errors of {n_annotators:,} annotators of {votes_each} votes, both ways")
        votes = simulate_votes(n_items=n_items, n_annotators=n_annotators, votes_per_item=5, seed=0).votes
        model = data.log_posterior(votes.ballots[0], data.FLAT, collapsed=True)
        inside = data.with_half(model)
        at = maximise(inside, paper_start(n_annotators, 2)).at
        exact_p = np.sqrt(np.diag(np.linalg.inv(information(inside, at))))
        found_p = np.linalg.norm(krylov_gaussian(inside, at).step(np.eye(inside.n_parameters)), axis=1)
        how = f"by Krylov space over dense, {n_annotators:,} annotators of {votes_each} votes"
        ratio_p = found_p / exact_p
        yield Measurement("standard errors, mean ratio", float(ratio_p.mean()), "", how)
        yield Measurement("standard errors, least ratio", float(ratio_p.min()), "", how)
        yield Measurement("standard error of the prevalence, ratio", float(ratio_p[0]), "", how)


def _draw_chart(runs: list[Audited], path: Path) -> None:
    """Draw seconds against votes, both by powers of ten: the whole command, and each stage."""
    import altair as alt
    import vl_convert

    rows = [
        {"votes": run.n_votes, "seconds": max(spent, 1e-3), "what": stage}
        for run in runs
        for stage, spent in {"the whole command": run.seconds, **run.stage_s}.items()
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "votes:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", values=[10**n for n in range(4, 9)])
            ),
            y=alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds", axis=alt.Axis(format="~g")),
            color=alt.Color("what:N", title=None, sort=None),
        )
        .properties(width=560, height=360)
    )
    config = {"background": "white", "font": "DejaVu Sans, Arial, sans-serif"}
    path.write_text(vl_convert.vegalite_to_svg(chart.to_dict(), config=config), encoding="utf-8")
