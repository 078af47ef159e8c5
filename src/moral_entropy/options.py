"""The options of every stage, declared once: the flags, the keywords of Python, the manifest and settings files follow.

`option_fields` says how. Knows no data, and loads nothing that takes time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from moral_entropy.errors import FitError, UsageError
from moral_entropy.option_fields import StageOptions, option

# --- Reading -------------------------------------------------------------------------------------------------------

Layout = Literal["auto", "long", "wide", "respondents"]
TABLES: tuple[Layout, ...] = ("long", "wide", "respondents")
Format = Literal[
    "auto", "long", "wide", "respondents", "label-studio", "argilla", "prodigy", "mturk", "lewidi",
    "mftc", "mfrc", "emfd", "hf-datasets", "inspect", "promptfoo", "langfuse", "openai-evals", "deepeval",
    "lm-eval", "mlflow", "judges",
]  # fmt: skip
VOTE_COLUMNS = ("question", "item", "annotator", "label")
"""Columns of votes.parquet."""

OnRepeat = Literal["error", "first", "last", "count"]


COLUMNS, LAYOUT = "Columns (guessed when not named)", "Layout of the votes"


@dataclass(frozen=True)
class ReadOptions(StageOptions):
    """How to read votes: the options of `read_votes`, which explains them."""

    item: str | None = option(None, "Column of the items: what was voted on.", panel=COLUMNS, everyday=True)
    annotator: str | None = option(None, "Column of the annotators: who voted.", panel=COLUMNS, everyday=True)
    label: str | None = option(None, "Column of the labels: the votes.", panel=COLUMNS, everyday=True)
    question: str | None = option(None, "Column that says which question a vote answers.", panel=COLUMNS, everyday=True)
    domain: str | None = option(
        None, "Column of the items' domains: where they come from.", panel=COLUMNS, everyday=True
    )
    text: str | None = option(None, "Column of the items' texts.", panel=COLUMNS, everyday=True)
    gold: str | None = option(None, "Column of the true labels, where they are known.", panel=COLUMNS, everyday=True)
    published: str | None = option(None, "Column of labels that somebody has already published.", panel=COLUMNS)
    count: str | None = option(
        None,
        "Column of how many items a row of the wide layout stands for, or how many anonymous votes a row of the long "
        "one does.",
        panel=COLUMNS,
        rare=True,
    )
    format: Format | str = option(
        "auto",
        f"Tool that wrote the file, or the layout of a plain table: {', '.join(get_args(Format))}.",
        metavar="TOOL",
        panel=LAYOUT,
        everyday=True,
    )
    layout: Layout = option(
        "auto",
        "long: one row per vote; wide: one row per item and one column per annotator; respondents: one row per person "
        "and one column per item; auto tells from the columns.",
        panel=LAYOUT,
        rare=True,
    )
    positive: str | None = option(
        None,
        "The positive label of two; by default 1, true, yes, positive, y or t, else the one that is no negation "
        "(non-…, not …, none, other), else the one that sorts last.",
        metavar="LABEL",
        panel=LAYOUT,
    )
    multilabel: str | None = option(
        None,
        "Separator of cells that name several labels, such as care,harm, where it is not guessed; every label is a "
        "yes/no question. Empty: combinations are labels.",
        metavar="SEPARATOR",
        panel=LAYOUT,
    )
    questions: tuple[str, ...] = option((), "Columns of answers, each a question of its own.", panel=LAYOUT)
    labels: str | Path | Mapping[str, str | bool] | None = option(
        None,
        'TOML file that merges and drops labels, with lines such as harm = "care" and nm = ""; in Python also a '
        "mapping.",
        metavar="FILE",
        panel=LAYOUT,
    )
    missing: tuple[str, ...] | None = option(
        None,
        "Labels that mean no answer, instead of NA, N/A, null, -, ? and no answer (and none, where all other labels "
        "are yes and no or numbers); empty for none.",
        panel=LAYOUT,
        rare=True,
    )
    keep_case: bool = option(
        False,
        "Keep labels apart that differ only in case, or that all say yes or no, such as y and 1.",
        panel=LAYOUT,
        rare=True,
    )
    on_repeat: OnRepeat = option(
        "error",
        "When an annotator voted twice on an item: error stops, first and last keep that vote, count keeps each as a "
        "vote of its own.",
        metavar="NAME",
        panel=LAYOUT,
    )
    exclude: tuple[str, ...] = option((), "Annotators whose votes are not read at all.", panel=LAYOUT)
    anonymous: bool = option(False, "Votes without annotators: all share one confusion matrix.", panel=LAYOUT)
    counts: tuple[str, ...] = option((), "Columns, one per label, that hold how many chose it.", panel=LAYOUT)
    of: int | str | None = option(
        None,
        "How many voted, a number or a column, when the columns of questions hold how many said yes.",
        metavar="N|COLUMN",
        panel=LAYOUT,
        rare=True,
    )
    gold_file: str | Path | Any = option(
        None,
        "File of true labels (in Python also a dataframe): columns item, gold and, if there are several, question.",
        metavar="FILE",
        panel=LAYOUT,
    )
    classes: int | tuple[Any, ...] | None = option(
        None, "All labels, or how many there are, when some may not occur.", metavar="N|A,B,…", panel=LAYOUT, rare=True
    )
    sheet: str | None = option(None, "Sheet of an Excel workbook; needed where several sheets have data.", panel=LAYOUT)
    encoding: str | None = option(
        None,
        "Encoding of a text file, such as cp1250; told from its bytes where it is not named.",
        panel=LAYOUT,
        rare=True,
    )
    keep: tuple[str, ...] = option(
        (),
        "Further columns to write into votes.parquet: what annotators are, when a vote was given, how sure it is.",
        panel=COLUMNS,
    )
    facts: tuple[str, ...] = option((), "Further columns about items to carry along.", flag="")

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        self._check_format()
        if wrong := [problem for is_wrong, problem in self._contradictions() if is_wrong]:
            raise UsageError(wrong[0])

    def _check_format(self) -> None:
        """Refuse the name of a tool that neither this package nor a plugin reads."""
        if self.format in get_args(Format):
            return
        # Late: looking through the installed packages takes time.
        from moral_entropy.plugins import FORMATS, plugin_names

        offered = plugin_names(FORMATS)
        if self.format not in offered:
            choices = ", ".join([*get_args(Format), *offered])
            msg = f"{self.called('format')} is {self.format!r}; choose one of {choices}."
            raise UsageError(msg)

    def asked(self, role: str) -> str | None:
        """Return the column named for a role; empty where the user wants none."""
        name = getattr(self, role)
        return None if name is None else str(name)

    @property
    def table_layout(self) -> Layout:
        """How a table is laid out, as `layout` or `format` says."""
        layouts = [layout for layout in TABLES if layout == self.format]
        return layouts[0] if layouts else self.layout

    def _contradictions(self) -> list[tuple[bool, str]]:
        """List what options could contradict each other: whether they do, and what to do about it."""
        kinds = [name for name in ("multilabel", "questions", "counts") if getattr(self, name)]
        reserved = [name for name in self.keep if name in VOTE_COLUMNS]
        kind, name_of = "".join(map(self.called, kinds[:1])), self.called
        conflicting = " and ".join(map(self.called, kinds))
        return [
            (len(kinds) > 1, f"{conflicting} are two ways to say where the labels are. Choose one."),
            (
                bool(self.counts) and not self.anonymous,
                f"counts have no annotators. Add {name_of('anonymous', True)}.",
            ),
            (
                bool(self.exclude) and self.anonymous,
                "anonymous votes have no annotators to exclude. "
                f"Leave out {name_of('exclude')} or {name_of('anonymous')}.",
            ),
            (
                self.of is not None and not (self.anonymous and self.questions),
                f"{name_of('of')} says how many voted on each of several counted questions. "
                f"It needs {name_of('anonymous', True)} and {name_of('questions')}.",
            ),
            (
                self.format != "auto" and self.layout not in ("auto", self.format),
                f"{name_of('format', self.format)} and {name_of('layout', self.layout)} exclude each other. "
                "Give one of them.",
            ),
            (
                self.layout in ("wide", "respondents") and bool(self.questions or self.counts),
                f"{kind} and the layout {self.layout} exclude each other. "
                "In it every column is an annotator, or an item.",
            ),
            (
                bool(reserved),
                f"{name_of('keep')} names {''.join(reserved[:1])!r}, which votes.parquet has already. "
                "Rename the column.",
            ),
            (
                self.layout == "respondents" and self.anonymous,
                "respondents are annotators. Leave out layout (--layout) or anonymous (--anonymous).",
            ),
            (
                self.classes is not None and bool(self.multilabel or self.questions),
                f"{name_of('classes')} is for questions with one label per vote. "
                f"{name_of('multilabel')} and {name_of('questions')} make yes/no questions.",
            ),
        ]


# --- Priors and fit ------------------------------------------------------------------------------------------------

Model = Literal["mixed", "paper"]
PRIORS, FIT = "Priors", "Fit"


@dataclass(frozen=True)
class PriorOptions(StageOptions):
    """What is believed before the first vote; `Priors` once the questions and their labels are known."""

    prevalence: tuple[float, ...] | None = option(
        None,
        "Dirichlet prior of the prevalence: one value for all labels, or one per label (of two: negative, positive), "
        "as 80,20; flat when not given.",
        flag="--prior-prevalence",
        metavar="X[,Y,…]",
        panel=PRIORS,
    )
    confusion: tuple[float, float] | None = option(
        None,
        "Dirichlet prior of every confusion row: of the right label and of each wrong one; 1.8,1.2 when not given, and "
        "in the mixed model at most 3 for all wrong labels together.",
        flag="--prior-confusion",
        metavar="RIGHT,WRONG",
        panel=PRIORS,
        rare=True,
    )
    annotators: str | Path | None = option(
        None,
        "CSV file of what is known of annotators from elsewhere: annotator, true, voted, pseudo_votes.",
        flag="--prior-annotators",
        metavar="FILE",
        panel=PRIORS,
    )
    preset: Literal["mft"] | None = option(
        None,
        "Prevalence priors for moral foundations, from an earlier notebook of the paper's author (the paper "
        'prints none): mft is 80,20, and 500,500 for a question called "any" or "any foundation".',
        panel=PRIORS,
    )

    def __post_init__(self) -> None:
        """Refuse two priors of the prevalence."""
        super().__post_init__()
        if self.preset and self.prevalence:
            msg = f"--preset {self.preset} sets the prevalence prior, and so does --prior-prevalence. Give one of them."
            raise UsageError(msg)


@dataclass(frozen=True)
class FitOptions(StageOptions):
    """How to fit: the options of `fit`, which explains them."""

    error = FitError

    model: Model = option(
        "mixed",
        "mixed: items may lie between labels, and the published p is pooled with the vote share; paper: one true label "
        "per item, as the paper has it.",
        panel=FIT,
        everyday=True,
    )
    domain_prevalence: Literal["on", "off"] = option(
        "on",
        "Whether the prevalence may differ between domains; the paper's model has one for all.",
        metavar="on|off",
        panel=FIT,
        rare=True,
    )
    draws: int = option(1_000, "Posterior draws; 0 finds the mode alone.", panel=FIT, everyday=True)
    seed: int = option(
        0,
        "Seed of everything random: on one machine same votes, same seed, same bytes.",
        panel=FIT,
        least=0,
    )
    solver: Literal["em", "adam"] = option(
        "em", "How to find the mode: em, or adam as the paper does, which needs PyTorch.", panel=FIT
    )
    steps: int = option(200, "Steps of adam.", panel=FIT, least=1)
    interval: float = option(0.9, "Probability mass inside every interval.", panel=FIT, rare=True)
    use_gold: bool = option(
        False, "Take known labels as evidence: their items have that label for certain.",
        flag="--gold-as-evidence", panel=FIT,
    )  # fmt: skip
    merge: tuple[str, ...] = option(
        (),
        "Annotators to count as one, as anna+bert; several groups with a comma between them. Identical annotators "
        "always count as one, but in the paper's model.",
        metavar="A+B[,C+D]",
        panel=FIT,
    )
    threads: int | None = option(
        None, "Use at most this many threads; the result does not depend on it.", panel=FIT, least=1, rare=True
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        super().__post_init__()
        if self.draws < 0 or self.draws == 1:
            msg = f"{self.called('draws')} is {self.draws}; use 0 for the mode alone, or at least 2."
            raise FitError(msg)
        if not 0.0 < self.interval < 1.0:
            name = self.called("interval")
            msg = f"{name} is {self.interval:g}; it is the mass of a central interval, between 0 and 1."
            raise FitError(msg)
        if self.mixed and self.solver == "adam":
            msg = (
                f"{self.called('solver', 'adam')} is the paper's solver. Add {self.called('model', 'paper')}, "
                f"or use {self.called('solver', 'em')}."
            )
            raise FitError(msg)

    @property
    def mixed(self) -> bool:
        """Whether items may lie between labels."""
        return self.model == "mixed"

    @property
    def by_domain(self) -> bool:
        """Whether items of different domains are told apart."""
        return self.mixed and self.domain_prevalence == "on"


# --- Rules ---------------------------------------------------------------------------------------------------------

RULES_PANEL = "Audit of consensus rules"

HIGHEST_COST = 1e100
"""Sums over any number of items stay finite."""


@dataclass(frozen=True)
class GradeOptions(StageOptions):
    """How to grade consensus rules: the options of `audit_rules`, which explains them."""

    rules: tuple[Any, ...] | None = option(
        None,
        "Rules to grade, as any,majority,two-vote; in Python also rules and functions of vote counts. By default all "
        "that make sense, with published labels where the data has them.",
        panel=RULES_PANEL,
        everyday=True,
    )
    cost_fp: float = option(1.0, "Cost of a wrong yes, for the advice.", panel=RULES_PANEL, rare=True)
    cost_fn: float = option(1.0, "Cost of a wrong no, for the advice.", panel=RULES_PANEL, rare=True)
    smoothing: float = option(
        0.5, "Pseudo-votes for each side in the smoothed cross-entropy.", panel=RULES_PANEL, rare=True
    )

    def __post_init__(self) -> None:
        """Raise a `UsageError` for negative or infinite costs, and if both are 0."""
        super().__post_init__()
        for name, cost in (("a false positive", self.cost_fp), ("a false negative", self.cost_fn)):
            if not 0 <= cost <= HIGHEST_COST or self.cost_fp + self.cost_fn == 0:
                msg = f"{name} costs {cost:g}. Costs are 0 or more, at most {HIGHEST_COST:g}, and not both 0."
                raise UsageError(msg)

    @property
    def costs(self) -> tuple[float, float]:
        """Costs of a wrong yes and of a wrong no."""
        return self.cost_fp, self.cost_fn


# --- Verdict -------------------------------------------------------------------------------------------------------

VERDICT = "Verdict"

TOLERANCE = 0.10
"""Share of wrong labels that is tolerated unless the user says otherwise."""


@dataclass(frozen=True)
class VerdictOptions(StageOptions):
    """What is checked, and what is tolerated."""

    spot_check: tuple[Any, ...] = option(
        (),
        "Filled-in sheets of checked labels (spot-check.csv of an earlier run); in Python also dataframes.",
        metavar="FILE",
        panel=VERDICT,
        everyday=True,
    )
    tolerance: float = option(TOLERANCE, "Share of wrong labels that is tolerated.", panel=VERDICT, rare=True)
    ignore: tuple[str, ...] = option((), "Mute findings by their code, such as ME012.", metavar="CODE", panel=VERDICT)

    def __post_init__(self) -> None:
        """Check that the tolerance is a share."""
        super().__post_init__()
        if not 0.0 < self.tolerance < 1.0:
            msg = f"tolerance is {self.tolerance:g}; it is a share between 0 and 1, such as 0.1."
            raise UsageError(msg)


# --- Groups of annotators ------------------------------------------------------------------------------------------

GROUPS = "Groups of annotators"


@dataclass(frozen=True)
class GroupOptions(StageOptions):
    """Which groups of annotators to compare, and for whom the consensus shall be."""

    annotator_group: tuple[str, ...] = option(
        (),
        "Columns that say which group an annotator belongs to; gender+age for groups by both.",
        metavar="COLUMN[,COLUMN]",
        panel=GROUPS,
    )
    annotators: Any = option(
        None,
        "File of annotators, one row each: annotator, and the columns of groups; without it they are columns of the "
        "votes. In Python also a dataframe.",
        metavar="FILE",
        panel=GROUPS,
    )
    target: Any = option(
        None,
        "File of the population that the consensus shall be for: column, group, share. In Python also a dataframe.",
        metavar="FILE",
        panel=GROUPS,
    )

    def __post_init__(self) -> None:
        """Refuse options that need another one."""
        super().__post_init__()
        for name, purpose in (("annotators", "describes annotators"), ("target", "has shares of groups")):
            if getattr(self, name) is not None and not self.annotator_group:
                msg = f"{self.called(name)} {purpose}. Say which columns to look at: {self.called('annotator_group')}."
                raise UsageError(msg)

        reserved = [name for name in self.annotator_group if name in VOTE_COLUMNS and self.annotators is None]
        if reserved:
            msg = f"{self.called('annotator_group')} names {reserved[0]!r}, a part of the votes. Rename the column."
            raise UsageError(msg)

    def named(self, name: str) -> str:
        """Return what an error about the data calls an option: its name and its flag."""
        keyword, flag = self.called(name), f"--{name.replace('_', '-')}"
        return keyword if keyword == flag else f"{keyword} (CLI: {flag})"

    @property
    def asked(self) -> bool:
        """Whether groups are asked for."""
        return bool(self.annotator_group)


# --- Judges --------------------------------------------------------------------------------------------------------

FILE_ENDINGS = frozenset({".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".xlsx", ".gz"})
"""How names of files end: a name that ends so is no column."""


@dataclass(frozen=True)
class PanelOptions(StageOptions):
    """What an audit is told of judges."""

    roles: Any = option(
        None,
        "Who the judges are: a CSV file with the columns judge and role (person or llm); a column of the votes with "
        "the role; or anna=person,gpt=llm. By default guessed from their names.",
        metavar="FILE|COLUMN|NAME=ROLE,…",
        panel="Judges",
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the votes that the reader has to keep: that of the role, if it is no file's name."""
        is_column = isinstance(self.roles, str) and not {",", "="} & {*self.roles} and not Path(self.roles).is_file()
        return (self.roles,) if is_column and Path(self.roles).suffix.casefold() not in FILE_ENDINGS else ()


@dataclass(frozen=True)
class JudgeOptions(PanelOptions):
    """What is scored, for whom and against which limit, and what is said of judges."""

    by: str | None = option(
        None,
        "One score per value of a column: domain, or a column that the audit was told to keep. A column system is "
        "taken by default, else domains.",
        metavar="COLUMN",
    )
    cluster_column: str | None = option(
        None,
        "Items that share a value of this column are no independent sample: prompt, conversation, sample. By default a "
        "column prompt, prompt_id, sample, conversation or cluster.",
        metavar="COLUMN",
    )
    question: str | None = option(None, "Only this question.")
    at_least: float | None = option(
        None, "The score must be at least this, as 0.7 or 70: exit code 0 if trusted, 1 if untrusted, 3 if undecided."
    )
    interval: float | None = option(None, "Probability mass inside every interval; that of the run by default.")
    labels: Any = option(None, "Write labels that weigh judges by known answers into this CSV file.", metavar="FILE")
    values: tuple[str, ...] = option(
        (),
        "What each label counts, as A=1,B=0,tie=0.5. By default the positive label counts 1, numbers count themselves, "
        "and of A, B and tie a win of A counts 1 and a tie a half.",
        metavar="LABEL=X,…",
    )
    epsilon: float = option(
        0.2,
        "By how much a person may agree better with the others before a language model may not take the place: 0.2 for "
        "experts, 0.15 for trained people, 0.1 for crowds.",
        least=0.0,
    )

    def value_of(self) -> dict[str, float]:
        """Return what each label counts, as told; empty where nothing was told."""
        return values_by_label(self.values, self.called("values"))


def values_by_label(values: Sequence[str], name: str = "values") -> dict[str, float]:
    """Read what each label counts.

    Examples
    --------
    >>> values_by_label(["A=1", "tie=0.5"])
    {'A': 1.0, 'tie': 0.5}
    """
    value_by_label: dict[str, float] = {}
    for text in values:
        label, _, number = text.rpartition("=")
        try:
            value_by_label[label.strip()] = float(number)
        except ValueError:
            label = ""
        if not label.strip():
            msg = f"{name} has {text!r}; write what each label counts as A=1,B=0,tie=0.5."
            raise UsageError(msg)
    return value_by_label


# --- A whole run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditOptions(StageOptions):
    """All options of a run.

    Parameters
    ----------
    read, priors, fit, grade, verdict, groups, judges
        How to read votes, what to believe before them, how to fit, how to grade rules, what was checked, which groups
        of annotators to compare, what is known of judges.
    fit_by
        Column of the votes; each of its values is fitted on its own.
    use_text
        Which model's reading of the items' texts counts as votes, if any.
    report
        Whether to write `report.html`.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    priors: PriorOptions = field(default_factory=PriorOptions)
    fit: FitOptions = field(default_factory=FitOptions)
    grade: GradeOptions = field(default_factory=GradeOptions)
    verdict: VerdictOptions = field(default_factory=VerdictOptions)
    groups: GroupOptions = field(default_factory=GroupOptions)
    judges: PanelOptions = field(default_factory=PanelOptions)
    fit_by: str | None = option(
        None, "Fit the items of each value of this column on their own.", metavar="COLUMN", panel=FIT
    )
    use_text: str | None = option(
        None,
        "Let the items' texts count as votes: tfidf, minilm, or the folder of another encoder; off: do not even "
        "measure what they are worth, which is done with tfidf when not given.",
        metavar="tfidf|minilm|PATH|off",
        panel=FIT,
    )
    report: bool = option(True, "Write report.html.")


# --- validate ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ValidationOptions(StageOptions):
    """What to check of a consensus, and for how long."""

    checks: tuple[str, ...] | None = option(None, "Only these checks, as laplace,priors,gold; all when not given.")
    seed: int = option(0, "Seed of everything random: same seed, same figures.", least=0)
    chains: int = option(4, "Chains of NUTS.", least=1)
    tune: int | None = option(None, "Steps in which each chain of NUTS settles.", least=10)
    draws: int | None = option(None, "Draws of each chain of NUTS.", least=10)
    members: int = option(20, "Fits of the ensemble.", least=2)


# --- train ---------------------------------------------------------------------------------------------------------

TFIDF = "tfidf"
LEARN, TRAIN = "What to learn", "How to train"


@dataclass(frozen=True)
class TrainOptions(StageOptions):
    """One training: targets, model and hyperparameters, which `tfidf` does not use."""

    labels: str = option(
        "soft",
        "Kind of target: soft (p), hard (the consensus label), gold, published, or a rule of the audit such as "
        "majority, any, strict-majority, two-vote or share.",
        panel=LEARN,
    )
    compare: bool = option(
        False,
        "Train on soft, majority, any and strict-majority labels too, with the same split and seeds, and score all of "
        "them on the same unseen texts.",
        panel=LEARN,
    )
    model: str = option(
        "minilm", "Model to train: minilm, tfidf, or the folder of one.", metavar="NAME|PATH", panel=TRAIN
    )
    epochs: int = option(3, "Passes over the texts.", panel=TRAIN, least=1)
    batch_size: int = option(32, "Texts per step.", panel=TRAIN, least=1)
    learning_rate: float = option(5e-5, "Learning rate at its highest.", panel=TRAIN, least=1e-9)
    max_length: int = option(128, "Tokens per text, at most.", panel=TRAIN, least=3)
    seed: int = option(
        0, "Seed of the tested texts, the start, the order and dropout; same seed, same model on a CPU.",
        panel=TRAIN, least=0,
    )  # fmt: skip


# --- reproduce -----------------------------------------------------------------------------------------------------

CORPORA, TWINS = "The corpora", "Simulated twins"


@dataclass(frozen=True)
class Inputs(StageOptions):
    """The data of the study: files of the corpora, or simulated twins of all three."""

    mftc: str | Path | None = option(
        None,
        "File of MFTC, as published, or a table of votes with a column for the foundation.",
        metavar="FILE",
        panel=CORPORA,
    )
    mfrc: str | Path | None = option(None, "File of MFRC, likewise.", metavar="FILE", panel=CORPORA)
    emfd: str | Path | None = option(None, "File of eMFD, likewise.", metavar="FILE", panel=CORPORA)
    gold: str | Path | None = option(
        None, "File of eMFD's known labels: item, question, gold.", metavar="FILE", panel=CORPORA
    )
    themes: str | Path | None = option(
        None,
        "File of eMFD's GDELT themes (document_id, themes), from which its domains follow; with the published file.",
        metavar="FILE",
        panel=CORPORA,
    )
    twins: bool = option(False, "Simulate all three corpora instead of reading files.", panel=TWINS)
    scale: float = option(1.0, "Size of the twins; 1 is that of the corpora.", panel=TWINS)

    def __post_init__(self) -> None:
        """Raise a `UsageError` for options that contradict each other."""
        super().__post_init__()
        rules = [
            (
                not self.twins and not self.files,
                "name at least one corpus (--mftc FILE, …), or simulate them: --twins.",
            ),
            (self.twins and bool(self.files), "twins are simulated, so no file is read. Give --twins, or files."),
            (self.gold is not None and self.emfd is None, "gold labels (--gold) are eMFD's. Add --emfd FILE."),
            (self.themes is not None and self.emfd is None, "themes (--themes) are eMFD's. Add --emfd FILE."),
            (not self.twins and self.scale != 1, "scale (--scale) is the size of the twins. Add --twins."),
        ]
        for wrong, msg in rules:
            if wrong:
                raise UsageError(msg)

    @property
    def files(self) -> dict[str, str | Path]:
        """The files that are given, by short name of the corpus."""
        file_by_corpus = {"mftc": self.mftc, "mfrc": self.mfrc, "emfd": self.emfd}
        return {name: file for name, file in file_by_corpus.items() if file is not None}


@dataclass(frozen=True)
class ReproduceOptions(StageOptions):
    """How to fit the corpora; everything else is as in the paper."""

    draws: int = option(1_000, "Posterior draws.", panel=FIT, least=2)
    seed: int = option(0, "Seed of the draws and of the twins.", panel=FIT, least=0)
    steps: int | None = option(
        None, "Take this many steps of Adam, 200 in the paper's listing, instead of going to the mode.", panel=FIT,
        least=1,
    )  # fmt: skip
    preset: Literal["mft"] | None = option(
        None, "Prevalence priors of the author's earlier notebook, 80,20; flat when not given.", panel=FIT
    )
    classifier: str = option(
        "tfidf", "Model that is trained on soft and hard labels: tfidf, minilm, a folder, or none.",
        metavar="NAME|PATH", panel=FIT,
    )  # fmt: skip
