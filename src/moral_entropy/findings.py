"""Finding: one thing that was looked at, what was found, what it means and what to do about it.

Fits, checks and the audit return findings. Python's warnings, the screen, the report, the dataset card, the manifest
and the verdict are all written from them, so that they say the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from moral_entropy.errors import MoralEntropyWarning, UsageError

Level = Literal["good", "info", "note", "doubt", "bad", "muted"]

Severity = Literal["high", "medium", "low", ""]

RANK: dict[Level, int] = {"bad": 0, "doubt": 1, "note": 2, "info": 3, "good": 4, "muted": 5}
"""Levels, worst first."""

SEVERITIES: dict[Level, Severity] = {"bad": "high", "doubt": "medium", "note": "low"}
"""How grave a warning is for readers of a run, by its level."""

# fmt: off
CODES: dict[str, tuple[str, str]] = {
    "fit": ("ME001", "How the fit ended"),
    "fit.converged": ("ME002", "The fit did not converge"),
    "fit.information_left": ("ME003", "Votes do not settle every error rate"),
    "fit.second_mode": ("ME004", "A second answer fits almost as well"),
    "fit.draws": ("ME005", "No draws, so no intervals"),
    "fit.fewer_draws": ("ME006", "Fewer draws than asked for"),
    "fit.many_labels": ("ME007", "Too many labels to lie between"),
    "votes": ("ME010", "Are there enough votes?"),
    "votes.one_annotator": ("ME011", "All votes are by one annotator"),
    "votes.votes_per_item": ("ME012", "Few votes per item"),
    "votes.near_copies": ("ME013", "Annotators give the same votes"),
    "votes.items_without_votes": ("ME014", "Items without votes"),
    "votes.hardly_known": ("ME016", "Annotators with few votes"),
    "votes.dominant_annotator": ("ME017", "One annotator gave most votes"),
    "votes.priors_without_votes": ("ME018", "Priors for annotators without votes"),
    "identifiability": ("ME020", "Can the votes tell?"),
    "identifiability.below_chance": ("ME021", "Annotators worse than guessing"),
    "identifiability.unsupported_labels": ("ME023", "Labels that most votes are against"),
    "identifiability.groups": ("ME024", "Votes fall into separate groups"),
    "identifiability.vanishing_label": ("ME025", "A label with votes that hardly an item gets"),
    "identifiability.rare_label": ("ME026", "A label of very few items"),
    "laplace": ("ME030", "Are the intervals right?"),
    "gold": ("ME040", "Agreement of p with gold"),
    "gold.p_off": ("ME041", "p is off against gold"),
    "gold.missed_more_than_plain_vote": ("ME042", "Counting votes is closer to gold"),
    "gold.gain_over_vote_share": ("ME043", "Vote shares predict gold better"),
    "gold.recalibration": ("ME044", "What gold teaches about p"),
    "heldout": ("ME050", "Does the consensus predict votes?"),
    "dependence": ("ME060", "Do annotators vote independently?"),
    "dependence.excess_agreement": ("ME061", "Annotators agree more than the model allows"),
    "votes.alike": ("ME062", "Annotators far more alike than the others"),
    "ensemble": ("ME070", "Do other starts agree?"),
    "priors": ("ME080", "Do other assumptions say the same?"),
    "nuts": ("ME090", "Does sampling give the same intervals?"),
    "judges": ("ME100", "The judges of a panel"),
    "judges.one_judge": ("ME101", "One judge gave all votes"),
    "judges.one_label_known": ("ME102", "All known answers are one label"),
    "judges.judge_fails": ("ME103", "A judge without a vote on many items"),
    "judges.always_the_same": ("ME104", "A judge who always says the same"),
    "texts": ("ME110", "What texts say about labels"),
    "ratings": ("ME120", "The raters of ordered questions"),
    "ratings.reversed": ("ME121", "A rater with the scale turned round"),
    "ratings.random": ("ME122", "A rater who rates as if at random"),
    "ratings.severe": ("ME123", "A severe rater"),
    "ratings.lenient": ("ME124", "A lenient rater"),
    "ratings.central": ("ME125", "A rater who stays near the middle"),
    "ratings.extreme": ("ME126", "A rater who goes to the ends"),
}
# fmt: on
"""Code and title of every kind of finding, by check and metric; a metric that is not listed has those of its check."""

GROUPS = ("near_copies", "alike")
"""Metrics about groups of people: each group is a kind of its own."""

ALIASES = {"side": "check", "figure": "metric", "cure": "remedy", "alarms": "is_warning"}
"""Names of attributes and columns of findings in 0.2, and what they are called since; they go in 0.4."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what was found.

    Parameters
    ----------
    check
        Which check found it: a name of `moral_entropy.checks.run.CHECKS`.
    metric
        Machine name of the metric, such as "pareto_k".
    value
        Its value.
    question, part, domain
        Of which question, part and domain; empty for all.
    subject
        Whom or what it concerns: an annotator, a start, a prior; empty for the fit itself.
    low, high
        Its interval, where it has one.
    n
        How many items, votes or draws it rests on.
    level
        "bad" (settle it before you use the labels), "doubt" (say so when you use them), "note" (good to know), "info",
        "good", or "muted" (would be one of the first three, but the user does not want to hear of it).
    text
        What was found, with the figure in it; never empty for notes, doubts and worse.
    meaning, remedy
        Why it matters and what to do, in plain words; never empty for notes, doubts and worse.
    """

    check: str
    metric: str
    value: float
    question: str = ""
    part: str = ""
    domain: str = ""
    subject: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    level: Level = "info"
    text: str = ""
    meaning: str = ""
    remedy: str = ""

    def __getattr__(self, name: str) -> Any:
        """Return what an attribute of 0.2 is called now, with a warning."""
        if name not in ALIASES:
            raise AttributeError(name)
        warnings.warn(f"Finding.{name} is Finding.{ALIASES[name]} since 0.3", DeprecationWarning, stacklevel=2)
        return getattr(self, ALIASES[name])

    @property
    def code(self) -> str:
        """Its kind, such as "ME012": see `CODES`.

        Examples
        --------
        >>> Finding("votes", "votes_per_item", 1.2).code, Finding("heldout", "gain_over_share", 0.1).code
        ('ME012', 'ME050')
        """
        return CODES.get(f"{self.check}.{self.metric}", CODES.get(self.check, ("ME000", "")))[0]

    @property
    def title(self) -> str:
        """Its kind in a few words."""
        return dict(CODES.values()).get(self.code, self.metric.replace("_", " ").capitalize())

    @property
    def is_warning(self) -> bool:
        """Whether it should make a reader doubt."""
        return self.level in ("doubt", "bad")

    @property
    def severity(self) -> Severity:
        """How grave it is as a warning: do not ship before it is settled, say so when you ship, good to know."""
        return SEVERITIES.get(self.level, "")

    @property
    def place(self) -> str:
        """The question, and the part of it where there are several.

        Examples
        --------
        >>> Finding("gold", "ece", 0.1, "care", "twitter").place
        'care / twitter'
        """
        return f"{self.question} / {self.part}" if self.part else self.question


def check_codes(codes: Iterable[str]) -> frozenset[str]:
    """Return codes that shall be muted, in capitals; refuse those that no finding has.

    Examples
    --------
    >>> check_codes(["me012"])
    frozenset({'ME012'})
    """
    valid, muted = {code for code, _ in CODES.values()}, frozenset(code.strip().upper() for code in codes)
    if strange := sorted(muted - valid):
        msg = f"no finding has the code {strange[0]!r}. Codes are ME001 to {max(valid)}: docs/reference/findings.md."
        raise UsageError(msg)
    return muted


def mute(findings: Iterable[Finding], codes: Iterable[str]) -> list[Finding]:
    """Mute the notes, doubts and worse that have one of these codes."""
    muted = check_codes(codes)
    return [
        replace(finding, level="muted") if finding.code in muted and finding.severity else finding
        for finding in findings
    ]


def overview(findings: Iterable[Finding]) -> list[dict[str, str]]:
    """List every kind of finding with what came of it: code, title, page and status.

    The status is the worst level ("bad", "doubt" or "note"), "fine", "muted", "not applicable" (the check was made,
    and had nothing to say about this) or "not checked".

    Examples
    --------
    >>> rows = overview([Finding("votes", "votes_per_item", 1.2, level="doubt"), Finding("fit", "converged", 1)])
    >>> [(row["code"], row["status"]) for row in rows if row["code"] in ("ME002", "ME012", "ME013", "ME050")]
    [('ME002', 'fine'), ('ME012', 'doubt'), ('ME013', 'not applicable'), ('ME050', 'not checked')]
    """
    levels: dict[str, list[Level]] = {}
    checks = set()
    for finding in findings:
        levels.setdefault(finding.code, []).append(finding.level)
        checks.add(finding.check)
    rows = []
    for kind, (code, title) in CODES.items():
        worst = min(levels.get(code, ()), key=RANK.__getitem__, default=None)
        if worst == "info" and "muted" in levels[code]:
            worst = "muted"
        absent = "not applicable" if kind.partition(".")[0] in checks else "not checked"
        status = absent if worst is None else "fine" if worst in ("good", "info") else worst
        rows.append(
            {"code": code, "title": title, "page": f"docs/reference/findings.md#{code.lower()}", "status": status}
        )
    return rows


def level_of(doubted: bool, *, bad: bool = False) -> Level:
    """Return the level of something that is doubted or not, and if so badly or not.

    Examples
    --------
    >>> level_of(False, bad=True), level_of(True), level_of(True, bad=True)
    ('info', 'doubt', 'bad')
    """
    if not doubted:
        return "info"
    return "bad" if bad else "doubt"


def merge_alike(findings: Iterable[Finding]) -> list[tuple[Finding, list[str]]]:
    """Merge notes, doubts and worse of one kind: the worst of them, and where else the same was found.

    Parameters
    ----------
    findings
        Any findings; those that are neither notes nor doubts are left out.

    Returns
    -------
    list
        One pair per kind (check and metric, and who, where it is about a group of people), the worst kinds first: the
        worst finding, the places of the others.
    """
    kinds: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        if RANK[finding.level] <= RANK["note"]:
            group = finding.subject if finding.metric in GROUPS else ""
            kinds.setdefault((finding.check, finding.metric, group), []).append(finding)
    groups = []
    for alike in kinds.values():
        worst = min(alike, key=lambda finding: RANK[finding.level])
        elsewhere = [
            finding.subject if finding.place == worst.place else finding.place
            for finding in alike
            if finding is not worst
        ]
        groups.append((worst, [name for name in dict.fromkeys(elsewhere) if name]))
    return sorted(groups, key=lambda pair: RANK[pair[0].level])


def name_where_needed(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out the question of findings that are all about the same one: its name tells nobody anything.

    Examples
    --------
    >>> [one.place for one in name_where_needed([Finding("gold", "ece", 0.3, "label")])]
    ['']
    """
    entries = list(findings)
    places = {finding.place for finding in entries if finding.place}
    return entries if len(places) > 1 else [replace(finding, question="", part="") for finding in entries]


def headline(worst: Finding, elsewhere: Sequence[str]) -> str:
    """Say what was found, where, and where else the same was found.

    Examples
    --------
    >>> headline(Finding("temper", "exponent", 0.5, "care", level="doubt", text="too sure."), ["harm"])
    'care: too sure. The same in 1 more: harm.'
    """
    text, name = worst.text, worst.subject.split(" · ")[0]
    # A sentence that begins with a name keeps it as it is spelt.
    begun = text if name and text.startswith(name) else f"{text[:1].upper()}{text[1:]}"
    sentence = f"{worst.place}: {text}" if worst.place else begun
    return f"{sentence} The same in {len(elsewhere)} more: {listed(elsewhere)}." if elsewhere else sentence


def sentences_of(worst: Finding, elsewhere: Sequence[str]) -> str:
    """Say what was found, where else the same was found, what it means and what to do."""
    return " ".join(sentence for sentence in (headline(worst, elsewhere), worst.meaning, worst.remedy) if sentence)


def warning_sentences(findings: Iterable[Finding]) -> list[str]:
    """Say every kind of doubt in a few sentences, worst first: what was found, what it means, what to do.

    Examples
    --------
    >>> doubts = [Finding("temper", "exponent", 0.5, name, level="doubt", text="too sure.", remedy="Temper it.")
    ...           for name in ("care", "harm")]
    >>> warning_sentences(doubts)
    ['care: too sure. The same in 1 more: harm. Temper it.']
    """
    groups = merge_alike(name_where_needed(findings))
    return [sentences_of(worst, elsewhere) for worst, elsewhere in groups if worst.is_warning]


def many(count: float, noun: str) -> str:
    """Say how many there are of something.

    Examples
    --------
    >>> many(1, "item"), many(1_200, "item")
    ('1 item', '1,200 items')
    """
    return f"{count:,.0f} {noun}{'s' * (count != 1)}"


def listed(names: Sequence[str], between: str = ", ", most: int = 4) -> str:
    """List names, and say how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    suffix = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + suffix


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silence this package's own warnings while the block runs, where findings say the same or said it before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MoralEntropyWarning)
        yield
