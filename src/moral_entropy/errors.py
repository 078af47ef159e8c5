"""Every error and warning of the package.

What is wrong, with a count and the first culprit; why it matters, if unclear; the call or flag that fixes it.

::

    ValueError
    └── MoralEntropyError
        ├── VotesError              the votes cannot be read or make no sense
        ├── PriorError              a prior that is not valid
        ├── FitError                the fit cannot be done as asked
        ├── RuleError               a consensus rule that is unknown or misbehaves
        ├── ScoreError              a score that does not exist for these numbers
        ├── RunFolderError          a run folder that cannot be written or read
        ├── FileError               a file that cannot be written
        ├── TrainError              targets, texts or a model that cannot be trained on or with
        ├── ClusterError            a cluster that does not answer, or is gone
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


class MoralEntropyError(ValueError):
    """Base of every error this package raises on purpose."""


class VotesError(MoralEntropyError):
    """The votes cannot be read, or make no sense."""


class PriorError(MoralEntropyError):
    """A prior that is not valid: not positive, of the wrong length, or without a mode."""


class FitError(MoralEntropyError):
    """The fit cannot be done as asked."""


class RuleError(MoralEntropyError):
    """A consensus rule that is unknown, or whose answers are not labels or probabilities."""


class ScoreError(MoralEntropyError):
    """A score that does not exist for these numbers."""


class RunFolderError(MoralEntropyError):
    """A run folder that cannot be written, or that is not one."""


class PluginError(MoralEntropyError):
    """A plugin that cannot be loaded, or that fails at its work."""


class FileError(MoralEntropyError):
    """A file that cannot be written."""


class TrainError(MoralEntropyError):
    """Targets, texts or a model that cannot be trained on, or with."""


class ClusterError(MoralEntropyError):
    """A cluster that does not answer, gives up, or is gone."""


class MissingExtraError(MoralEntropyError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what}. Run: pip install 'moral-entropy[{extra}]'")


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
