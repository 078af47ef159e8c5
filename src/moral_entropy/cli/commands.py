"""The commands by name: listed at once, loaded when one is run.

A command's module costs time that the list of commands and the other commands need not wait for. So the list has its
sentences here; each is the first of the command's own help, which a test compares.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from moral_entropy import __version__

SENTENCES = {
    "audit": "Check votes: which labels are safe, who agrees, which rule is best; write a report and tables.",
    "check": "Check figures of an audit against limits; exit with 0 if all hold, with 1 if one fails.",
    "compare": "Compare two runs of the same items: labels, p, entropy and the grades of rules, before and after.",
    "explain": "Explain an item's label: what each vote adds to its probability.",
    "export": "Write the items of a run with votes, probabilities and soft labels, for other programs.",
    "judges": "Describe the judges, worst first: how right, whom they copy, what each adds, who may replace people.",
    "next": "List the items that one more vote would settle most, and whose vote that would be.",
    "predict": "Predict p and its entropy for every text and question.",
    "refine": "Let the texts vote too: p from the votes and from a classifier that has not seen the item.",
    "report": "Write the report of a run: one HTML file that works offline; on request figures and a dataset card.",
    "reproduce": "Run the paper's study and lay every published figure beside ours.",
    "score": "Score systems by their judges and the answers that are known: share, mean or win rate, with an interval.",
    "simulate": "Draw votes from a known truth, which is in the column gold.",
    "spot-check": "Write a sheet of labels to check by hand, or read the answers and say how many labels are wrong.",
    "study": "Train the same models on several kinds of target and score them on the same unseen texts.",
    "train": "Train a text classifier on the labels of a run.",
    "validate": "Can the consensus of a run be trusted? Priors, held-out votes, copies, gold, sampling and more.",
    "verify": "Compute a run again from its votes and settings, compare every file; exit with 1 if it does not stand.",
}
"""Every command, with what it does."""

# A command's function has its name, unless Python has that already.
FUNCTIONS = {"next": "next_items"}


def taken_as_typed(parameters: list[Any]) -> list[Any]:
    """Let parameters of typer take texts, and what is missing, as they are.

    Typer has Pydantic look at every value, and loads it for that: a tenth of a second in each command. Our flags are
    texts, which `cli.flags` converts.
    """
    for one in parameters:
        vars(one)["process_value"] = partial(_process_value, one)
    return parameters


def _process_value(parameter: Any, context: Any, value: Any) -> Any:
    several = parameter.nargs != 1 or getattr(parameter, "multiple", False)
    missing = value is None and not parameter.required and not several
    text = isinstance(value, str) and parameter.type_descriptor.annotation is str
    if not missing and not text:
        return type(parameter).process_value(parameter, context, value)
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


class Command(TyperCommand):
    """A command that takes texts as typed."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` among them."""
        return taken_as_typed(super().get_params(ctx))


def load_command(name: str) -> Any:
    """Load a command with its flags and its help.

    Examples
    --------
    >>> load_command("next").help.splitlines()[0] == SENTENCES["next"]
    True
    """
    from moral_entropy.cli.flags import with_flags

    module = name.replace("-", "_")
    function = getattr(import_module(f"moral_entropy.cli.{module}"), FUNCTIONS.get(name, module))
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=Command)(with_flags(function))
    return typer.main.get_command(alone)


class Listed(TyperCommand):
    """A command as the list shows it, which becomes the command itself when it is run."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Load the command, and let it read what was typed."""
        return load_command(str(self.name)).make_context(info_name, args, parent=parent, **extra)


class Commands(TyperGroup):
    """All commands, none of them loaded."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: Listed(name, help=sentence) for name, sentence in SENTENCES.items()}

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` among them."""
        return taken_as_typed(super().get_params(ctx))


app = typer.Typer(
    name="moral-entropy",
    cls=Commands,
    help="Check annotations: who agrees, which labels are safe, what to ask next.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Check annotations: who agrees, which labels are safe, what to ask next."""
    if version:
        typer.echo(f"moral-entropy {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit(0)
