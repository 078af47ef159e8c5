"""`moral-entropy validate`: how far the posterior of a run can be trusted."""

from __future__ import annotations

from moral_entropy.cli.flags import Quiet, Run
from moral_entropy.validate.options import ValidationOptions


def validate(run: Run, options: ValidationOptions, quiet: Quiet = False) -> None:
    """Examine a run's posterior: NUTS, ensembles, priors, held-out votes, dependence, identifiability, gold.

    Example: moral-entropy validate run/
    """
    # Late, so that --help answers at once.
    from moral_entropy.cli.show import Bars
    from moral_entropy.cli.show_validation import print_validation
    from moral_entropy.pipeline.validate import run_validation

    with Bars(hidden=quiet) as progress:
        validation = run_validation(run, options, progress=progress)
    print_validation(validation, quiet=quiet)
