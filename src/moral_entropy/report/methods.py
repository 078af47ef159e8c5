"""Run → a methods paragraph for a paper: LaTeX, and the BibTeX of what it cites.

Everything that comes from the data is escaped, so that the text compiles whatever a question is called.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

from moral_entropy.files import write_text
from moral_entropy.report.data import shown_title
from moral_entropy.runs.manifest import note_files
from moral_entropy.runs.run import Run, as_run
from moral_entropy.verdict.headlines import effective_votes, uncertain_by_kind
from moral_entropy.verdict.rates import main_rule, pooled_rate

METHODS, BIBLIOGRAPHY = "methods.tex", "methods.bib"

YEAR = 2026
"""Year of this version."""

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "^": r"\textasciicircum{}",
    "_": r"\_", "~": r"\textasciitilde{}", "%": r"\%", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    "–": "--", "—": "---", "…": r"\ldots{}", "’": "'", "½": r"$\frac{1}{2}$",
}  # fmt: skip
"""Characters that mean something to LaTeX, or that its old engines do not know."""

SHARED = {
    "none": "every annotator has a confusion matrix, learnt from the votes alone",
    "partial": "annotators' confusion matrices vary around a common one, all learnt from the votes alone",
    "full": "all annotators have one confusion matrix, learnt from the votes alone",
}
"""What is said of annotators, by pooling."""

REFERENCES = {
    "skorski_moral_entropy": (
        "misc",
        {
            "author": "Skorski, Maciej",
            "title": "{Moral Entropy}: Auditing Bias and Uncertainty in Moral Judgment",
            "note": "Preprint",
        },
    ),
    "dawid_skene_1979": (
        "article",
        {
            "author": "Dawid, A. P. and Skene, A. M.",
            "title": "Maximum Likelihood Estimation of Observer Error-Rates Using the {EM} Algorithm",
            "journal": "Journal of the Royal Statistical Society: Series C (Applied Statistics)",
            "volume": "28",
            "number": "1",
            "pages": "20--28",
            "year": "1979",
        },
    ),
}


def write_methods(run: Run | str | Path) -> list[Path]:
    """Write the methods paragraph and its references into a run folder and return their paths."""
    run = as_run(run)
    texts = {METHODS: methods_paragraph(run), BIBLIOGRAPHY: bibliography(run)}
    for name, text in texts.items():
        write_text(run.folder / name, text)
    note_files(run.folder, texts)
    return [run.folder / name for name in texts]


def methods_paragraph(run: Run) -> str:
    """Return how the labels of a run were made, as a paragraph in LaTeX."""
    return "\n".join(_sentences(run)) + "\n"


def bibliography(run: Run) -> str:
    r"""Return the works that the paragraph cites, as BibTeX.

    Examples
    --------
    >>> import moral_entropy as me
    >>> run = me.audit(me.simulate_votes(n_items=30, n_annotators=4, votes_per_item=3, seed=1).votes, draws=20)
    >>> print(bibliography(run).splitlines()[0])
    @software{moral_entropy,
    """
    ours = {
        "author": "{moral-entropy contributors}",
        "title": "moral-entropy",
        "version": latex(str(run.manifest["version"])),
        "year": str(YEAR),
    }
    entries = {"moral_entropy": ("software", ours), **REFERENCES}
    return "\n".join(_entry(kind, key, fields) for key, (kind, fields) in entries.items())


def latex(text: str) -> str:
    r"""Escape a text for LaTeX; what its engines cannot set is named by its number.

    Examples
    --------
    >>> print(latex("care_&_harm 50% \\input{x}"))
    care\_\&\_harm 50\% \textbackslash{}input\{x\}
    >>> print(latex("naïve 中"))
    naïve U+4E2D
    """
    return "".join(SPECIAL.get(letter) or _settable(letter) for letter in " ".join(text.split()))


def _settable(letter: str) -> str:
    if letter.isascii() and letter.isprintable():
        return letter
    if 0xC0 <= ord(letter) < 0x17F and unicodedata.category(letter).startswith("L"):
        return letter
    return "" if unicodedata.category(letter) in ("Cf", "Mn") else f"U+{ord(letter):04X}"


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}", ""])


def _sentences(run: Run) -> Iterator[str]:
    facts = run.manifest
    yield f"% Written by moral-entropy {facts['version']} from {latex(shown_title(run))}. References: {BIBLIOGRAPHY}."
    yield _data(run)
    yield _model(run)
    yield _priors(run)
    yield _uncertainty(run)
    yield from _copies(run)
    yield from _rules(run)
    yield _checks(run)
    digest = facts["input"]["sha256"]
    told = f", from an input with SHA-256 \\texttt{{{digest[:16]}}}\\ldots{{}}" if digest else ""
    yield (
        f"All figures were computed with moral-entropy {latex(str(facts['version']))}~\\cite{{moral_entropy}}, "
        f"seed~{facts['seed']}{told}."
    )


def _data(run: Run) -> str:
    facts, names = run.manifest, [latex(question.name) for question in run.questions]
    who = "anonymous annotators" if facts["anonymous"] else _count(facts["annotators"], "annotator")
    asked = "" if len(names) == 1 else f", on {len(names)} questions ({', '.join(names)})"
    return f"We pooled {_count(facts['votes'], 'vote')} by {who} on {_count(facts['items'], 'item')}{asked}."


def _model(run: Run) -> str:
    shared = SHARED[run.manifest.get("pooling", "none")]
    if run.model == "mixed":
        return (
            f"The consensus is that of a Bayesian mixed-membership model in which {shared}~\\cite{{dawid_skene_1979,"
            "skorski_moral_entropy}, and an item may lie between two labels; the published probability $p$ "
            "pools the posterior probability with the smoothed share of the item's votes."
        )
    return (
        "The consensus is that of a Bayesian Dawid--Skene model~\\cite{dawid_skene_1979,skorski_moral_entropy}: every "
        f"item has one true label, {shared}, and $p$ is the posterior probability of the label."
    )


def _priors(run: Run) -> str:
    priors = run.manifest["priors"]
    alpha = priors["prevalence"]
    weights = ", ".join(f"{one:g}" for one in alpha) if isinstance(alpha, list) else f"{alpha:g} per label"
    wrong = "1.2" if priors["off_diagonal"] is None else f"{priors['off_diagonal']:g}"
    capped = ", at most 3 per row" if priors["off_diagonal"] is None and run.model == "mixed" else ""
    known = len(priors["annotators"])
    told = f" Rows of {_count(known, 'annotator')} had priors of their own." if known else ""
    rows = "rows of the common confusion matrix" if run.manifest.get("pooling") == "partial" else "confusion rows"
    return (
        f"Priors were Dirichlet: prevalence {weights}; {rows} {priors['diagonal']:g} on the diagonal and "
        f"{wrong} off it{capped}.{told}"
    )


def _uncertainty(run: Run) -> str:
    facts = run.manifest
    shares = uncertain_by_kind(run)
    total = f"{_percent(sum(shares.values()))} of the labels are uncertain (entropy above half its maximum)"
    if not facts["draws"]:
        return f"Probabilities are those at the posterior mode; {total}."
    return (
        f"Uncertainty is that of {facts['draws']:,} draws from a Laplace approximation at the posterior mode; "
        f"intervals hold {_percent(run.interval, 0)} of them. By this, {total}."
    )


def _copies(run: Run) -> Iterator[str]:
    votes, worth = effective_votes(run)
    merged = sum(len(group) for fit in run.manifest["questions"] for group in fit["counted_as_one"])
    if merged:
        yield "Annotators whose votes were near-copies of each other counted as one."
    if worth is not None:
        yield f"The {votes:.1f} votes per item are worth {worth:.1f} independent ones."


def _rules(run: Run) -> Iterator[str]:
    rule = main_rule(run)
    row = pooled_rate(run, rule, "disagreement")
    if row is not None:
        bounds = ""
        if row["low"] is not None and row["high"] is not None:
            bounds = f" ({_percent(run.interval, 0)} interval {_percent(row['low'])} to {_percent(row['high'])})"
        yield (
            f"The rule \\emph{{{latex(rule)}}} would have given {_percent(row['value'])} of the items another "
            f"label{bounds}."
        )


def _checks(run: Run) -> str:
    verdict = run.verdict
    if verdict.error is None:
        return "No labels were checked by hand, so that how many of them are wrong is not known."
    error = verdict.error
    by = "in a spot check of random items" if verdict.checked_by == "spot check" else "against known labels"
    bounds = f", {_percent(run.interval, 0)} interval {_percent(error.low)} to {_percent(error.high)}"
    return (
        f"Of {error.checked:,} labels compared {by}, {error.wrong:,.0f} were wrong: an error of {_percent(error.value)}"
        f"{bounds if error.low != error.high else ''}."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:z.{digits}f}\\%"
