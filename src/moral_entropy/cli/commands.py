"""The commands by name: listed at once, loaded when one is run.

A command's module costs time that the list of commands and the other commands need not wait for. So the list has its
sentences here; each is the first of the command's own help, which a test compares.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from moral_entropy import __version__
from moral_entropy.errors import UsageError

GROUPS = {
    "Start here": {
        "audit": "Check votes: which labels are safe, who agrees, which rule is best; write a report and tables.",
        "report": "Write the report of a run: one offline HTML file; on request what a paper needs, and a card.",
    },
    "Look closer": {
        "explain": "Explain an item's label: what each vote adds to its probability.",
        "next": "Say how many more votes help, and list the items on which they put most labels right.",
        "plan": "Plan a study from a pilot: items, votes, annotators and checks for intervals of plus or minus X.",
        "judges": "Score systems by their judges and known answers, then say which judges to keep, and the best panel.",
    },
    "Decide": {
        "serve": "Check labels blind, settle conflicts and look at items, in a browser on this machine.",
        "spot-check": "Write a sheet of labels to check by hand, or read the answers and say how many are wrong.",
        "check": "Check figures of an audit against limits; exit with 0 if all hold, with 1 if one fails.",
        "compare": "Compare two runs: two batches of items, or the same items with other votes or settings.",
    },
    "Hand on": {
        "export": "Write the items of a run with votes, probabilities and soft labels, for other programs.",
        "train": "Train a text classifier on the labels of a run.",
        "predict": "Predict p and its entropy for every text and question.",
    },
    "The paper": {
        "reproduce": "Run the paper's study: its tables and figures with ours beside them, on a page to open.",
        "simulate": "Draw votes from a known truth, which is in the column gold.",
        "validate": "Can the consensus of a run be trusted? Priors, held-out votes, copies, gold, sampling and more.",
        "verify": "Compute a run again from its votes and settings, compare every file; exit with 1 if any differs.",
    },
}
"""Every command with what it does, in the groups that `--help` shows."""

SENTENCES = {name: sentence for group in GROUPS.values() for name, sentence in group.items()}

GONE = {
    "corpus": "audit reads the published files: moral-entropy audit MFTC_V4_text.json -o run/.",
    "refine": "texts count in the audit: moral-entropy audit FILE --use-text tfidf -o run/.",
    "study": "train compares the targets: moral-entropy train RUN --compare -o model/.",
    "--camps": "name the groups: --annotator-group COLUMN.",
    "--dependence": "identical annotators count as one; --merge A+B counts others as one.",
    "--layout": "it is a format: --format wide, long or respondents.",
    "--pooling": "annotators with few votes are always drawn to the common row.",
    "--voters": "all annotators vote; leave some out with --exclude A,B.",
    **dict.fromkeys(("--bootstrap", "--confidence", "--constrain", "--coordinates", "--device"), ""),
    **dict.fromkeys(("--fit-tolerance", "--max-passes", "--refine", "--temper"), ""),
}
"""Commands of 0.2 and options of its audit, with what to do instead, if anything."""

PLACES = {"next": "next.next_items", "plan": "next.plan", "export": "report.export"}
"""Module and function of commands whose module is not called as they are, or whose name Python has already."""

COMPLETION = "_MORAL_ENTROPY_COMPLETE"
"""Environment variable that a shell sets to ask for completions, which need every command."""


def make_app(typed: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """Return the program with all its commands listed and the one that was typed loaded, and the line it is to read."""
    command, line = next((word for word in typed if not word.startswith("-")), ""), list(typed)
    # Typer has Pydantic, which takes long to load, convert whatever has no default: its own flags are switches.
    off = dict.fromkeys(("help", "install_completion", "show_completion"), False)
    settings = {"help_option_names": ["-h", "--help"], "default_map": {**off, command: off}}
    app = typer.Typer(pretty_exceptions_enable=False, context_settings=settings)
    app.callback(invoke_without_command=True)(start)
    if command == "score":
        # Its name in 0.2.
        line[line.index(command)] = command = "judges"
    for word in (command, *(word.partition("=")[0] for word in typed if word.startswith("--"))):
        if word in GONE:
            msg = f"{word} went with version 0.3{': ' * bool(GONE[word])}{GONE[word] or '.'}"
            raise UsageError(msg)
    for group, sentences in GROUPS.items():
        for name, sentence in sentences.items():
            function: Callable[..., None] = start
            if is_loaded := name == command or COMPLETION in os.environ:
                from moral_entropy.cli.flags import with_flags

                function, line = with_flags(load_function(name), line)
            app.command(name, help=None if is_loaded else sentence, rich_help_panel=group)(function)
    return app, line


def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, with any command.")] = False,
) -> None:
    """Check annotations: who agrees, which labels are safe, what to ask next."""
    if version:
        typer.echo(f"moral-entropy {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit(0)


def load_function(name: str) -> Callable[..., None]:
    """Load the function of a command, which takes options."""
    plain = name.replace("-", "_")
    module, _, function = PLACES.get(name, f"{plain}.{plain}").partition(".")
    loaded: Callable[..., None] = getattr(import_module(f"moral_entropy.cli.{module}"), function)
    return loaded


def load_command(name: str) -> Any:
    """Load a command with its flags and its help, as Click has it.

    Examples
    --------
    >>> load_command("next").help.splitlines()[0] == SENTENCES["next"]
    True
    """
    return vars(typer.main.get_command(make_app([name])[0]))["commands"][name]
