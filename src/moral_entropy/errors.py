"""Every error and warning of the package.

What is wrong, with a count and the first culprit; why it matters, if unclear; the call or flag that fixes it.

::

    ValueError
    └── MoralEntropyError
        ├── VotesError              the votes cannot be read or make no sense
        ├── PriorError              a prior that is not valid
        ├── FitError                the fit cannot be done as asked
        ├── RuleError               a consensus rule that is unknown or misbehaves
        ├── RunFolderError          a run folder that cannot be written or read
        ├── FileError               a file that cannot be written
        ├── TrainError              targets, texts or a model that cannot be trained on or with
        ├── PluginError             a plugin that cannot be loaded, or fails
        ├── MissingExtraError       an optional dependency is not installed
        └── UsageError              options that contradict each other (exit code 2)

    UserWarning
    └── MoralEntropyWarning
        ├── ConvergenceWarning      the search ended before the best fit
        ├── CurvatureWarning        the mode is flat or a saddle in some direction
        ├── IdentifiabilityWarning  the data cannot tell what was asked of it
        └── ThinDataWarning         so few votes that the prior decides
"""

from __future__ import annotations

import os
import re

LONGEST_WORD, LONGEST_ERROR = 300, 2_000
"""Characters of a word, and of a whole error: files may hold names of any length."""

DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")
"""Characters that move the cursor, change colours, turn the text around or cannot be printed at all."""

COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)
"""What logs of continuous integration take for a command."""


def harmless(text: str) -> str:
    r"""Return a text that does nothing to a terminal but to be read: control characters are spelt out.

    Examples
    --------
    >>> harmless("red \x1b[31m alert, two\nlines")
    'red \\x1b[31m alert, two\nlines'

    Nor is it a command to the log of a continuous integration:

    >>> harmless("  ::error::x"), harmless("a ##[error]x")
    ('  : :error::x', 'a ## [error]x')
    """
    plain = DANGEROUS.sub(lambda match: repr(match[0])[1:-1], text)
    return COMMAND.sub(lambda match: f"{match[0][:-1]} {match[0][-1]}", plain)


def shortened(text: str) -> str:
    """Shorten words that no one would read to their end, then the middle of what is still too long.

    Examples
    --------
    >>> shortened("no column " + "9" * 400 + " here.") == "no column " + "9" * 300 + "… here."
    True
    """
    text = re.sub(rf"(\S{{{LONGEST_WORD}}})\S+", r"\1…", text)
    if len(text) <= LONGEST_ERROR:
        return text
    # The end says what to do.
    return f"{text[: LONGEST_ERROR * 2 // 3]} … {text[-LONGEST_ERROR // 3 :]}"


THREADED: list[int] = []
"""The process in which libraries have begun threads, once there is one."""


def refuse_forked() -> None:
    """Raise an error in a process that was forked after an audit: Polars would wait there for threads it has not."""
    process = os.getpid()
    if not THREADED:
        THREADED.append(process)
    if THREADED[0] != process:
        msg = (
            "this process was forked from one that has read votes, and would wait for ever. Start it afresh: "
            'multiprocessing.get_context("spawn").'
        )
        raise UsageError(msg)


class MoralEntropyError(ValueError):
    """Base of every error this package raises on purpose."""

    def __str__(self) -> str:
        """Say what is wrong, however long the names in it are."""
        return shortened(super().__str__())


class VotesError(MoralEntropyError):
    """The votes cannot be read, or make no sense."""


class PriorError(MoralEntropyError):
    """A prior that is not valid: not positive, of the wrong length, or without a mode."""


class FitError(MoralEntropyError):
    """The fit cannot be done as asked."""


class RuleError(MoralEntropyError):
    """A consensus rule that is unknown, or whose answers are not labels or probabilities."""


class RunFolderError(MoralEntropyError):
    """A run folder that cannot be written, or that is not one."""


class PluginError(MoralEntropyError):
    """A plugin that cannot be loaded, or that fails at its work."""


class FileError(MoralEntropyError):
    """A file that cannot be written."""


class TrainError(MoralEntropyError):
    """Targets, texts or a model that cannot be trained on, or with."""


class MissingExtraError(MoralEntropyError):
    """An optional dependency is not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose}. Run: pip install 'moral-entropy[{extra}]'")


class UsageError(MoralEntropyError):
    """Options that contradict each other; the command line exits with 2."""


class MoralEntropyWarning(UserWarning):
    """Base of every warning this package issues."""


class ConvergenceWarning(MoralEntropyWarning):
    """The search ended before the best fit was found."""


class CurvatureWarning(MoralEntropyWarning):
    """The mode is flat, or a saddle, in some direction."""


class IdentifiabilityWarning(MoralEntropyWarning):
    """The data cannot tell what was asked of it."""


class ThinDataWarning(MoralEntropyWarning):
    """So few votes that the prior decides."""
