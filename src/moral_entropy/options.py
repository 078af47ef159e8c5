"""The options of every stage, declared once: the flags, the keywords of Python, the manifest and settings files follow.

`option_fields` says how. Knows no data, and loads nothing that takes time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from moral_entropy.errors import FitError, UsageError
from moral_entropy.option_fields import StageOptions, option

# --- Reading -------------------------------------------------------------------------------------------------------

TABLES = ("long", "wide", "respondents")
"""Layouts of plain tables, which `format` names like the tools."""

Format = Literal[
    "auto", "long", "wide", "respondents", "label-studio", "argilla", "prodigy", "mturk", "lewidi",
    "mftc", "mfrc", "emfd", "hf-datasets", "inspect", "promptfoo", "langfuse", "openai-evals", "deepeval",
    "lm-eval", "mlflow", "judges",
]  # fmt: skip
Layout = Literal[
    "wide", "csv", "xlsx", "jsonl", "parquet", "hf", "release", "lewidi", "label-studio", "argilla", "prodigy",
]  # fmt: skip
"""What `export` writes."""

VOTE_COLUMNS = ("question", "item", "annotator", "label")
"""Columns of votes.parquet."""

OnRepeat = Literal["error", "first", "last", "count"]


COLUMNS = "Columns (guessed when not named)"


@dataclass(frozen=True)
class ReadOptions(StageOptions):
    """How to read votes: the options of `read_votes`, which explains them."""

    panel = "Layout of the votes"
    everyday = ("item", "annotator", "label", "question", "domain", "text", "gold", "format")
    rare = ("count", "counts", "published", "missing", "keep_case", "of", "classes", "encoding")

    item: str | None = option("Column of the items: what was voted on.", panel=COLUMNS)
    annotator: str | None = option("Column of the annotators: who voted.", panel=COLUMNS)
    label: str | None = option("Column of the labels: the votes.", panel=COLUMNS)
    question: str | None = option("Column that says which question a vote answers.", panel=COLUMNS)
    domain: str | None = option("Column of the items' domains: where they come from.", panel=COLUMNS)
    text: str | None = option("Column of the items' texts.", panel=COLUMNS)
    gold: str | None = option("Column of the true labels, where they are known.", panel=COLUMNS)
    published: str | None = option("Column of labels that somebody has already published.", panel=COLUMNS)
    count: str | None = option("Column of how many items or anonymous votes a row stands for.", panel=COLUMNS)
    format: Format | str = option(
        "Layout of a plain table (long: one row per vote; wide: one column per annotator; respondents: one row per "
        f"person), or the tool that wrote the file. One of {', '.join(get_args(Format))}.",
        "auto",
        metavar="TOOL",
    )
    positive: str | None = option("The positive label of two; guessed from words such as yes and 1.", metavar="LABEL")
    multilabel: str | None = option(
        "Separator of cells with several labels, each a yes/no question; empty: combinations are labels.",
        metavar="TEXT",
    )
    questions: tuple[str, ...] = option("Columns of answers, each a question of its own.", ())
    labels: str | Path | Mapping[str, str | bool] | None = option(
        'TOML file that merges and drops labels: harm = "care", nm = ""; in Python also a mapping.'
    )
    missing: tuple[str, ...] | None = option("Labels that mean no answer, instead of NA, -, ? and such; empty: none.")
    scale: Literal["auto", "nominal", "ordinal", "interval"] = option(
        "What labels are: names (nominal), levels in an order (ordinal), scores (interval); auto guesses and says.",
        "auto",
    )
    order: tuple[str, ...] = option("The levels of an ordinal question from low to high, as low,medium,high.", ())
    keep_case: bool = option("Keep labels apart that differ only in case, or all say yes or no, as y and 1.", False)
    on_repeat: OnRepeat = option("If an annotator votes twice on an item: stop, keep first, last or both.", "error")
    exclude: tuple[str, ...] = option("Annotators whose votes are not read at all.", ())
    anonymous: bool = option("Votes without annotators: all share one confusion matrix.", False)
    counts: tuple[str, ...] = option("Columns, one per label, that hold how many chose it.", ())
    of: int | str | None = option("How many voted, where columns count the yes: number or column.", metavar="N|COLUMN")
    gold_file: str | Path | Any = option("File of true labels (item, gold, question if several), or a dataframe.")
    classes: int | tuple[Any, ...] | None = option("All labels, or how many, if some do not occur.", metavar="N|A,B,…")
    sheet: str | None = option("Sheet of an Excel workbook; needed where several sheets have data.")
    encoding: str | None = option("Encoding of a text file, such as cp1250; told from its bytes where it is not named.")
    keep: tuple[str, ...] = option("Further columns for votes.parquet: age, how sure a vote is.", (), panel=COLUMNS)
    facts: tuple[str, ...] = option("Further columns about items to carry along.", (), flag="")

    def problems(self) -> Iterator[str]:
        """Yield the name of a tool that nobody reads, and options that contradict each other."""
        if self.format not in get_args(Format):
            # Late: looking through the installed packages takes time.
            from moral_entropy.plugins import FORMATS, plugin_names

            if self.format not in (offered := plugin_names(FORMATS)):
                choices = ", ".join([*get_args(Format), *offered])
                yield f"{self.called('format')} is {self.format!r}; choose one of {choices}."
        name_of = self.called
        kinds = [name_of(name) for name in ("multilabel", "questions", "counts") if getattr(self, name)]
        if len(kinds) > 1:
            yield f"{' and '.join(kinds)} are two ways to say where the labels are. Choose one."
        if self.counts and not self.anonymous:
            yield f"counts have no annotators. Add {name_of('anonymous', True)}."
        if self.exclude and self.anonymous:
            leave_out = f"Leave out {name_of('exclude')} or {name_of('anonymous')}."
            yield f"anonymous votes have no annotators to exclude. {leave_out}"
        if self.of is not None and not (self.anonymous and self.questions):
            needs = f"It needs {name_of('anonymous', True)} and {name_of('questions')}."
            yield f"{name_of('of')} says how many voted on each of several counted questions. {needs}"
        if self.format in ("wide", "respondents") and (self.questions or self.counts):
            exclusive = f"{kinds[0]} and {name_of('format', self.format)} exclude each other."
            yield f"{exclusive} In it every column is an annotator, or an item."
        for name in self.keep:
            if name in VOTE_COLUMNS:
                yield f"{name_of('keep')} names {name!r}, which votes.parquet has already. Rename the column."
        if self.format == "respondents" and self.anonymous:
            yield f"respondents are annotators. Leave out {name_of('format')} or {name_of('anonymous')}."
        if self.classes is not None and (self.multilabel or self.questions):
            yes_no = f"{name_of('multilabel')} and {name_of('questions')} make yes/no questions."
            yield f"{name_of('classes')} is for questions with one label per vote. {yes_no}"


# --- Priors and fit ------------------------------------------------------------------------------------------------

Model = Literal["mixed", "paper"]
FIT = "Fit"


@dataclass(frozen=True)
class PriorOptions(StageOptions):
    """What is believed before the first vote; `Priors` once the questions and their labels are known."""

    panel = "Priors"
    rare = ("confusion",)

    prevalence: tuple[float, ...] | None = option(
        "Dirichlet prior of the prevalence, for all labels or each (of two: negative, positive), as 80,20; else flat.",
        flag="--prior-prevalence",
        metavar="X[,Y,…]",
    )
    confusion: tuple[float, float] | None = option(
        "Dirichlet prior of confusion rows: of the right and each wrong label; else 1.8,1.2, at most 3 for all wrong.",
        flag="--prior-confusion",
        metavar="RIGHT,WRONG",
    )
    annotators: str | Path | None = option(
        "CSV file of what is known of annotators: annotator, true, voted, pseudo_votes.", flag="--prior-annotators"
    )
    preset: Literal["mft"] | None = option("Prior of the author's earlier notebook: 80,20; any foundation 500,500.")

    def problems(self) -> Iterator[str]:
        """Yield two priors of the prevalence."""
        if self.preset and self.prevalence:
            yield f"--preset {self.preset} sets the prevalence prior, and so does --prior-prevalence. Give one of them."


@dataclass(frozen=True)
class FitOptions(StageOptions):
    """How to fit: the options of `fit`, which explains them."""

    panel = FIT
    everyday = ("model", "draws")
    rare = ("domain_prevalence", "interval", "threads")
    error = FitError

    model: Model = option("mixed: items may lie between labels, shares of votes count; paper: one true label.", "mixed")
    domain_prevalence: Literal["on", "off"] = option("Whether domains may differ in prevalence (mixed model).", "on")
    draws: int = option("Posterior draws; 0 finds the mode alone.", 1_000)
    seed: int = option("Seed of everything random: on one machine same votes, same seed, same bytes.", 0, least=0)
    solver: Literal["em", "adam"] = option("How to find the mode: em, or adam as in the paper (needs PyTorch).", "em")
    steps: int = option("Steps of adam.", 200, least=1)
    interval: float = option("Probability mass inside every interval.", 0.9, share=True)
    use_gold: bool = option("Take known labels as evidence: certain for their items.", False, flag="--gold-as-evidence")
    merge: tuple[str, ...] = option(
        "Annotators to count as one, as anna+bert; identical ones always do (not in paper).", (), metavar="A+B[,C+D]"
    )
    threads: int | None = option("Use at most this many threads; the result does not depend on it.", least=1)

    def problems(self) -> Iterator[str]:
        """Yield what cannot be done."""
        name_of = self.called
        if self.draws < 0 or self.draws == 1:
            yield f"{name_of('draws')} is {self.draws}; use 0 for the mode alone, or at least 2."
        if self.mixed and self.solver == "adam":
            cures = f"Add {name_of('model', 'paper')}, or use {name_of('solver', 'em')}."
            yield f"{name_of('solver', 'adam')} is the paper's solver. {cures}"

    @property
    def mixed(self) -> bool:
        """Whether items may lie between labels."""
        return self.model == "mixed"

    @property
    def by_domain(self) -> bool:
        """Whether items of different domains are told apart."""
        return self.mixed and self.domain_prevalence == "on"


# --- Rules ---------------------------------------------------------------------------------------------------------

HIGHEST_COST = 1e100
"""Sums over any number of items stay finite."""


@dataclass(frozen=True)
class GradeOptions(StageOptions):
    """How to grade consensus rules: the options of `audit_rules`, which explains them."""

    panel = "Audit of consensus rules"
    everyday = ("rules",)
    rare = ("cost_fp", "cost_fn", "smoothing")

    rules: tuple[Any, ...] | None = option(
        "Rules to grade, as any,majority,two-vote; in Python also functions of vote counts. By default all that fit."
    )
    cost_fp: float = option("Cost of a wrong yes, for the advice.", 1.0)
    cost_fn: float = option("Cost of a wrong no, for the advice.", 1.0)
    smoothing: float = option("Pseudo-votes for each side in the smoothed cross-entropy.", 0.5)

    def problems(self) -> Iterator[str]:
        """Yield negative or infinite costs, and two that are 0."""
        for name, cost in (("a false positive", self.cost_fp), ("a false negative", self.cost_fn)):
            if not 0 <= cost <= HIGHEST_COST or self.cost_fp + self.cost_fn == 0:
                yield f"{name} costs {cost:g}. Costs are 0 or more, at most {HIGHEST_COST:g}, and not both 0."

    @property
    def costs(self) -> tuple[float, float]:
        """Costs of a wrong yes and of a wrong no."""
        return self.cost_fp, self.cost_fn


# --- Verdict -------------------------------------------------------------------------------------------------------

TOLERANCE = 0.10
"""Share of wrong labels that is tolerated unless the user says otherwise."""


@dataclass(frozen=True)
class VerdictOptions(StageOptions):
    """What is checked, and what is tolerated."""

    panel = "Verdict"
    everyday = ("spot_check",)
    rare = ("tolerance",)

    spot_check: tuple[Any, ...] = option("Checked labels: filled-in spot-check.csv, or dataframes.", (), metavar="FILE")
    decisions: str | Path | None = option("Decisions made in `serve` (decisions.jsonl of a run): labels as evidence.")
    tolerance: float = option("Share of wrong labels that is tolerated.", TOLERANCE, share=True)
    ignore: tuple[str, ...] = option("Mute findings by their code, such as ME012.", (), metavar="CODE")


# --- Groups of annotators ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupOptions(StageOptions):
    """Which groups of annotators to compare, and for whom the consensus shall be."""

    panel = "Groups of annotators"

    annotator_group: tuple[str, ...] = option(
        "Columns with the group of an annotator; gender+age for both.", (), metavar="COLUMN[,COLUMN]"
    )
    annotators: str | Path | Any = option("File of annotators and groups, or a dataframe; else columns of the votes.")
    target: str | Path | Any = option("File of the population to speak for: column, group, share; or a dataframe.")

    def problems(self) -> Iterator[str]:
        """Yield options that need another one, and groups that are called like a part of the votes."""
        for name, purpose in (("annotators", "describes annotators"), ("target", "has shares of groups")):
            if getattr(self, name) is not None and not self.annotator_group:
                by = self.called("annotator_group")
                yield f"{self.called(name)} {purpose}. Say which columns to look at: {by}."
        for name in self.annotator_group if self.annotators is None else ():
            if name in VOTE_COLUMNS:
                yield f"{self.called('annotator_group')} names {name!r}, a part of the votes. Rename the column."

    def named(self, name: str) -> str:
        """Return what an error about the data calls an option: its name and its flag."""
        keyword, flag = self.called(name), f"--{name.replace('_', '-')}"
        return keyword if keyword == flag else f"{keyword} (CLI: {flag})"


# --- Judges --------------------------------------------------------------------------------------------------------

FILE_ENDINGS = frozenset({".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".xlsx", ".gz"})
"""How names of files end: a name that ends so is no column."""


@dataclass(frozen=True)
class PanelOptions(StageOptions):
    """What an audit is told of judges."""

    panel = "Judges"

    roles: Any = option(
        "Who is person or llm: a CSV file (judge, role), a column, or anna=person,gpt=llm; else guessed from names.",
        metavar="FILE|COLUMN|NAME=ROLE,…",
    )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the votes that the reader has to keep: that of the role, if it is no file's name."""
        is_column = isinstance(self.roles, str) and not {",", "="} & {*self.roles} and not Path(self.roles).is_file()
        return (self.roles,) if is_column and Path(self.roles).suffix.casefold() not in FILE_ENDINGS else ()


@dataclass(frozen=True)
class JudgeOptions(PanelOptions):
    """What is scored, for whom and against which limit, and what is said of judges."""

    rare = ("cluster_column", "strata_column", "interval", "epsilon")

    by: str | None = option("One score per value of a kept column; else by system, or domain.", metavar="COLUMN")
    cluster_column: str | None = option(
        "Column of what items share, so that they are no independent sample: prompt, conversation.", metavar="COLUMN"
    )
    strata_column: str | None = option("Column of the strata that answers were drawn from.", metavar="COLUMN")
    question: str | None = option("Only this question.")
    at_least: float | None = option("The score must be this or more, as 0.7 or 70; exit code 1 if not, 3 if undecided.")
    interval: float | None = option("Probability mass inside every interval; that of the run by default.")
    labels: str | Path | None = option("Write labels that weigh judges by known answers into this CSV file.")
    values: tuple[str, ...] = option(
        "What each label counts, as A=1,B=0,tie=0.5; else 1 for the positive one, numbers themselves.",
        (),
        metavar="LABEL=X,…",
    )
    epsilon: float = option(
        "By how much people may agree better before a model may not replace them: .2 experts, .1 crowds.",
        0.2,
        least=0.0,
    )


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
    fit_by: str | None = option("Fit the items of each value of this column on their own.", metavar="COLUMN", panel=FIT)
    use_text: str | None = option(
        "Let texts count as votes: tfidf, minilm, the folder of an encoder; off: do not measure what they are worth.",
        metavar="tfidf|minilm|PATH|off",
        panel=FIT,
    )
    report: bool = option("Write report.html.", True)


# --- validate ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ValidationOptions(StageOptions):
    """What to check of a consensus, and for how long."""

    rare = ("seed", "chains", "tune", "draws", "members")

    checks: tuple[str, ...] | None = option("Only these checks, as laplace,priors,gold; all when not given.")
    seed: int = option("Seed of everything random: same seed, same figures.", 0, least=0)
    chains: int = option("Chains of NUTS.", 4, least=1)
    tune: int | None = option("Steps in which each chain of NUTS settles.", least=10)
    draws: int | None = option("Draws of each chain of NUTS.", least=10)
    members: int = option("Fits of the ensemble.", 20, least=2)


# --- train ---------------------------------------------------------------------------------------------------------

TFIDF = "tfidf"
LEARN = "What to learn"


@dataclass(frozen=True)
class TrainOptions(StageOptions):
    """One training: targets, model and hyperparameters, which `tfidf` does not use."""

    panel = "How to train"
    rare = ("batch_size", "learning_rate", "max_length", "seed")

    labels: str = option(
        "Kind of target: soft (p), hard (the consensus label), gold, published, or a rule such as majority.",
        "soft",
        panel=LEARN,
    )
    compare: bool = option("Train on soft and on hard labels, and score all on the same texts.", False, panel=LEARN)
    model: str = option("Model to train: minilm, tfidf, or the folder of one.", "minilm", metavar="NAME|PATH")
    epochs: int = option("Passes over the texts.", 3, least=1)
    batch_size: int = option("Texts per step.", 32, least=1)
    learning_rate: float = option("Learning rate at its highest.", 5e-5, least=1e-9)
    max_length: int = option("Tokens per text, at most.", 128, least=3)
    seed: int = option("Seed of split, start, order and dropout: same seed, same model on a CPU.", 0, least=0)


# --- reproduce -----------------------------------------------------------------------------------------------------

TWINS = "Simulated twins"


@dataclass(frozen=True)
class Inputs(StageOptions):
    """The data of the study: files of the corpora, or simulated twins of all three."""

    panel = "The corpora"

    mftc: str | Path | None = option("File of MFTC as published, or a table of votes with a foundation column.")
    mfrc: str | Path | None = option("File of MFRC, likewise.")
    emfd: str | Path | None = option("File of eMFD, likewise.")
    gold: str | Path | None = option("File of eMFD's known labels: item, question, gold.")
    themes: str | Path | None = option("File of eMFD's GDELT themes (document_id, themes), for its domains.")
    twins: bool = option("Simulate all three corpora instead of reading files.", False, panel=TWINS)
    scale: float = option("Size of the twins; 1 is that of the corpora.", 1.0, panel=TWINS)

    def problems(self) -> Iterator[str]:
        """Yield options that contradict each other."""
        if not self.twins and not self.files:
            yield "name at least one corpus (--mftc FILE, …), or simulate them: --twins."
        if self.twins and self.files:
            yield "twins are simulated, so no file is read. Give --twins, or files."
        if self.gold is not None and self.emfd is None:
            yield "gold labels (--gold) are eMFD's. Add --emfd FILE."
        if self.themes is not None and self.emfd is None:
            yield "themes (--themes) are eMFD's. Add --emfd FILE."
        if not self.twins and self.scale != 1:
            yield "scale (--scale) is the size of the twins. Add --twins."

    @property
    def files(self) -> dict[str, str | Path]:
        """The files that are given, by short name of the corpus."""
        file_by_corpus = {"mftc": self.mftc, "mfrc": self.mfrc, "emfd": self.emfd}
        return {name: file for name, file in file_by_corpus.items() if file is not None}


@dataclass(frozen=True)
class ReproduceOptions(StageOptions):
    """How to fit the corpora; everything else is as in the paper."""

    panel = FIT
    rare = ("draws", "seed", "steps", "preset")

    draws: int = option("Posterior draws.", 1_000, least=2)
    seed: int = option("Seed of the draws and of the twins.", 0, least=0)
    steps: int | None = option("Take this many steps of Adam (200 in the paper) instead of going to the mode.", least=1)
    preset: Literal["mft"] | None = option("Prevalence priors of the author's earlier notebook, 80,20; else flat.")
    classifier: str = option("Model to train on labels: tfidf, minilm, a folder, none.", "tfidf", metavar="NAME|PATH")
