"""Twins of the three moral corpora: simulated votes with the shape of the published ones.

In: the name of a corpus and a seed. Out: a long table of votes with texts and the truth, as a dataframe or a Parquet
file. The facts it follows, and where they are from, are in `data/corpora.toml`; `twin_parameters` makes them chances.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moral_entropy.corpora.twin_parameters import BETWEEN, Assignment, TwinParameters, twin_parameters
from moral_entropy.errors import UsageError
from moral_entropy.votes.table import Floats

if TYPE_CHECKING:
    import polars as pl

CUE_KEPT, CUE_FALSE = 0.8, 0.05
"""Chance that a text carries a cue of a foundation that is clearly in it, and of one that is clearly not."""


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
    return _long_table(name.lower(), parameters, parts)


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


def _draw_domain(parameters: TwinParameters, d: int, seed: int) -> tuple[list[str], NDArray[np.int8], NDArray[np.int8]]:
    """Draw the texts of a domain, their truth, and a label for each foundation of every vote."""
    facts, assigned = parameters.facts, parameters.assigned[d]
    place_if = twin_places(parameters, d, seed=seed)
    rng = np.random.default_rng([seed, 3, d])
    label_vf = _draw_labels(rng, assigned, parameters.yes_vf(d, place_if))
    texts = write_texts(rng, facts.domains[d].name, place_if, facts.foundations)
    return texts, (place_if > 0.5).astype(np.int8), label_vf


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


def _long_table(
    name: str, parameters: TwinParameters, parts: Sequence[tuple[list[str], NDArray[np.int8], NDArray[np.int8]]]
) -> pl.DataFrame:
    import polars as pl

    facts, assigned = parameters.facts, parameters.assigned
    texts_d, gold_d, label_d = zip(*parts, strict=True)
    votes_i = np.concatenate([one.votes_i for one in assigned])
    n_foundations, n_items = len(facts.foundations), len(votes_i)
    width = max(2, len(str(facts.annotators - 1)))
    items = pl.Series([f"{name}-{number:05d}" for number in range(1, n_items + 1)])
    annotators = pl.Series([f"A{number:0{width}d}" for number in range(facts.annotators)])
    domains = pl.Series([domain.name for domain in facts.domains])
    domain_i = np.repeat(np.arange(len(parts)), [len(texts) for texts in texts_d])
    item_v = np.repeat(np.arange(n_items), votes_i)
    item_r = np.repeat(item_v, n_foundations)
    annotator_r = np.repeat(np.concatenate([one.annotator_v for one in assigned]), n_foundations)
    return pl.DataFrame(
        {
            "item": items.gather(item_r),
            "annotator": annotators.gather(annotator_r),
            "question": pl.Series(facts.foundations).gather(np.tile(np.arange(n_foundations), len(item_v))),
            "label": np.concatenate(label_d).ravel(),
            "domain": domains.gather(domain_i[item_r]),
            "text": pl.Series([text for texts in texts_d for text in texts]).gather(item_r),
            "gold": np.concatenate(gold_d)[item_v].ravel(),
        }
    )


@cache
def read_phrases() -> dict[str, Any]:
    """Read what texts are made of: openings by domain, details, closings, cue links, and cues by foundation.

    Examples
    --------
    >>> read_phrases()["cues"]["fairness"][:2]
    ['justice', 'equality']
    """
    source = files("moral_entropy.corpora") / "data" / "twin_phrases.toml"
    return tomllib.loads(source.read_text(encoding="utf-8"))


def write_texts(rng: np.random.Generator, domain: str, place_if: Floats, foundations: Sequence[str]) -> list[str]:
    """Write one text for each item of a domain, all of them different.

    Parameters
    ----------
    rng
        Where the randomness comes from.
    domain
        Name of the domain, which chooses the openings.
    place_if
        Where each item lies for each foundation: 0 is clearly no, 1 clearly yes.
    foundations
        Their names.

    Examples
    --------
    >>> place_if = np.array([[1.0, 0.0], [0.0, 0.0]])
    >>> first, second = write_texts(np.random.default_rng(1), "Sandy", place_if, ("care", "fairness"))
    >>> first
    'by the closed subway markets opened as usual including healing students swapped their notebooks last night'
    >>> second
    'at the petrol queue people compared train tickets one column appeared late as reported'
    """
    phrases = read_phrases()
    # "No second detail" is the last of the choices.
    fillers = (phrases["openings"][domain], phrases["details"], [*phrases["details"], ""], phrases["closings"])
    opening_i, detail_i, second_i, closing_i = _draw_fillers(
        rng, domain, [len(each) for each in fillers], len(place_if)
    )
    cue_if = rng.random(place_if.shape) < CUE_FALSE + place_if * (CUE_KEPT - CUE_FALSE)
    cues_i = _draw_cues(rng, cue_if, [phrases["cues"][name] for name in foundations], phrases["cue_links"])
    columns = zip(opening_i.tolist(), detail_i.tolist(), cues_i, second_i.tolist(), closing_i.tolist(), strict=True)
    return [
        " ".join(filter(None, (fillers[0][a], fillers[1][b], cues, fillers[2][c], fillers[3][d])))
        for a, b, cues, c, d in columns
    ]


def _draw_fillers(
    rng: np.random.Generator, domain: str, sizes: Sequence[int], n_items: int
) -> tuple[NDArray[np.int64], ...]:
    n_choices = int(np.prod(sizes))
    if n_items > n_choices:
        msg = f"there are only {n_choices:,} texts for domain {domain!r}, not {n_items:,}. Choose a smaller scale."
        raise UsageError(msg)
    # Without replacement: no two items of the domain share their filler.
    return np.unravel_index(rng.choice(n_choices, size=n_items, replace=False), sizes)


def _draw_cues(
    rng: np.random.Generator, cue_if: NDArray[np.bool_], words: Sequence[Sequence[str]], links: Sequence[str]
) -> list[str]:
    link_if = rng.integers(len(links), size=cue_if.shape)
    word_if = rng.integers([len(each) for each in words], size=cue_if.shape)
    found: list[list[str]] = [[] for _ in cue_if]
    for i, f in np.argwhere(cue_if).tolist():
        found[i].append(f"{links[link_if[i, f]]} {words[f][word_if[i, f]]}")
    return [" ".join(each) for each in found]
