"""Twins of the three moral corpora: simulated votes with the shape of the published ones.

In: the name of a corpus and a seed. Out: a long table of votes with texts and the truth, as a dataframe or a Parquet
file. The facts it follows, and where they are from, are in `data/corpora.toml`; `twin_parameters` makes them chances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moral_entropy.corpora.facts import CorpusFacts
from moral_entropy.corpora.twin_parameters import BETWEEN, Assignment, TwinParameters, twin_parameters
from moral_entropy.corpora.twin_texts import write_texts
from moral_entropy.votes.table import Floats

if TYPE_CHECKING:
    import polars as pl


def twin(name: str, *, seed: int = 0, scale: float = 1.0) -> pl.DataFrame:
    """Simulate a corpus: its domains, teams, votes per item and flagged texts, with texts and the truth.

    One row per vote. Columns: item, annotator, question (the foundation), label (0 or 1), domain, text, gold (0 or 1).
    Every annotator of an item votes on all five foundations. In every domain the any rule flags each foundation as
    often as in the paper's table: the number of texts on the yes side is fixed, and so is, but for one, the number that
    somebody flags. Given these, the five foundations of an item are independent of each other, and given where it lies
    so are the votes: real ones are not quite.

    A third of the yes texts of a domain and foundation lie between the labels, and as many of its no texts. Their
    places are spread evenly from no (0) to yes (1). An annotator votes on a text at 0.7 as on a clear yes with
    probability 0.7, as on a clear no with 0.3. Gold is the label that a text is nearer to; none lies halfway.

    Parameters
    ----------
    name
        "mftc", "mfrc" or "emfd".
    seed
        Same seed, same table.
    scale
        Share of the items: 0.1 gives a tenth of every domain. Where there is a pool of coders instead of teams
        (eMFD) it shrinks along, so that a coder's workload stays.

    Examples
    --------
    >>> frame = twin("mfrc", scale=0.01)
    >>> frame["item"].n_unique(), frame["annotator"].n_unique(), frame.height
    (180, 6, 2695)
    """
    parameters = twin_parameters(name, seed=seed, scale=scale)
    parts = [_draw_domain(parameters, d, seed) for d in range(len(parameters.facts.domains))]
    return _long_table(name.lower(), parameters.facts, parts)


def twin_places(parameters: TwinParameters, d: int, *, seed: int = 0) -> Floats:
    """Return where each item of a domain lies for each foundation: 0 is clearly no, 1 clearly yes.

    Parameters
    ----------
    parameters
        Of the twin.
    d
        The domain.
    seed
        Of the twin.

    Examples
    --------
    >>> place_if = twin_places(twin_parameters("mfrc", scale=0.01), 1)
    >>> [float((place_if[:, 2] == label).mean().round(2)) for label in (0, 1)]
    [0.78, 0.11]
    """
    return _draw_places(np.random.default_rng([seed, 2, d]), parameters, d)


def write_twin(name: str, path: str | Path, *, seed: int = 0, scale: float = 1.0) -> int:
    """Write a twin to a Parquet file, which appears when it is complete.

    Parameters
    ----------
    name, seed, scale
        As in `twin`.
    path
        The file.

    Returns
    -------
    int
        How many votes were written.

    Examples
    --------
    >>> import tempfile
    >>> write_twin("mfrc", Path(tempfile.mkdtemp()) / "mfrc.parquet", scale=0.01)
    2695
    """
    from moral_entropy.files import whole_file

    with whole_file(path) as partial:
        frame = twin(name, seed=seed, scale=scale)
        frame.write_parquet(partial)
    return frame.height


@dataclass(frozen=True, eq=False)
class _DomainDraw:
    # Every vote has a label for each foundation.
    texts: list[str]
    gold_if: NDArray[np.int8]
    assigned: Assignment
    label_vf: NDArray[np.int8]


def _draw_domain(parameters: TwinParameters, d: int, seed: int) -> _DomainDraw:
    facts, assigned = parameters.facts, parameters.assigned[d]
    place_if = twin_places(parameters, d, seed=seed)
    rng = np.random.default_rng([seed, 3, d])
    label_vf = _draw_labels(rng, assigned, parameters.yes_vf(d, place_if))
    texts = write_texts(rng, facts.domains[d].name, place_if, facts.foundations)
    return _DomainDraw(texts, (place_if > 0.5).astype(np.int8), assigned, label_vf)


def _draw_places(rng: np.random.Generator, parameters: TwinParameters, d: int) -> Floats:
    n_items = parameters.facts.domains[d].items
    columns = []
    for prevalence in parameters.prevalence_df[d].tolist():
        n_yes = round(prevalence * n_items)
        n_side = min(round(BETWEEN * n_yes), n_items - n_yes)
        between = (np.arange(2 * n_side) + 0.5) / (2 * n_side or 1)
        clear = np.repeat([0.0, 1.0], [n_items - n_yes - n_side, n_yes - n_side])
        columns.append(rng.permutation(np.concatenate([clear, between])))
    return np.stack(columns, axis=1)


def _draw_labels(rng: np.random.Generator, assigned: Assignment, yes_vf: Floats) -> NDArray[np.int8]:
    """Draw votes that have the given chances, on a number of flagged items that has no noise."""
    first_i, votes_i = assigned.first_i, assigned.votes_i
    some_vf = _some_yes(assigned, yes_vf)
    flagged_if = _draw_evenly(rng, some_vf[first_i])
    uniform_vf = rng.random(yes_vf.shape)
    label_vf = np.zeros(yes_vf.shape, dtype=np.int8)
    # Flagged items that have no yes yet; to get one has then the chance yes/some, which is 1 for the last vote.
    due_if = flagged_if.copy()
    for t in range(votes_i.max(initial=0)):
        open_i = np.flatnonzero(votes_i > t)
        at_v = first_i[open_i] + t
        chance_vf = np.where(due_if[open_i], yes_vf[at_v] / some_vf[at_v], yes_vf[at_v])
        said_vf = flagged_if[open_i] & (uniform_vf[at_v] < chance_vf)
        label_vf[at_v] = said_vf
        due_if[open_i] &= ~said_vf
    return label_vf


def _some_yes(assigned: Assignment, yes_vf: Floats) -> Floats:
    """Compute the chance that a vote or a later one on the same item is a yes."""
    some_vf = yes_vf.copy()
    for t in range(assigned.votes_i.max(initial=0) - 2, -1, -1):
        at_v = assigned.first_i[assigned.votes_i > t + 1] + t
        some_vf[at_v] = 1 - (1 - yes_vf[at_v]) * (1 - some_vf[at_v + 1])
    return some_vf


def _draw_evenly(rng: np.random.Generator, chance_if: Floats) -> NDArray[np.bool_]:
    # Systematic sampling: every item has its chance, and their number is that of the sum of chances but for one.
    reached_if = np.floor(chance_if.cumsum(axis=0) + rng.random(chance_if.shape[1]))
    return np.diff(reached_if, axis=0, prepend=0.0) > 0


def _long_table(name: str, facts: CorpusFacts, parts: Sequence[_DomainDraw]) -> pl.DataFrame:
    import polars as pl

    n_items = sum(len(part.assigned.votes_i) for part in parts)
    n_foundations = len(facts.foundations)
    width = max(2, len(str(facts.annotators - 1)))
    items = pl.Series([f"{name}-{number:05d}" for number in range(1, n_items + 1)])
    annotators = pl.Series([f"A{number:0{width}d}" for number in range(facts.annotators)])
    domains = pl.Series([domain.name for domain in facts.domains])
    domain_i = np.repeat(np.arange(len(parts)), [len(part.assigned.votes_i) for part in parts])
    item_v = np.repeat(np.arange(n_items), np.concatenate([part.assigned.votes_i for part in parts]))
    item_r = np.repeat(item_v, n_foundations)
    annotator_r = np.repeat(np.concatenate([part.assigned.annotator_v for part in parts]), n_foundations)
    gold_if = np.concatenate([part.gold_if for part in parts])
    return pl.DataFrame(
        {
            "item": items.gather(item_r),
            "annotator": annotators.gather(annotator_r),
            "question": pl.Series(facts.foundations).gather(np.tile(np.arange(n_foundations), len(item_v))),
            "label": np.concatenate([part.label_vf for part in parts]).ravel(),
            "domain": domains.gather(domain_i[item_r]),
            "text": pl.Series([text for part in parts for text in part.texts]).gather(item_r),
            "gold": gold_if[item_v].ravel(),
        }
    )
