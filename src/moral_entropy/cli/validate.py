"""`moral-entropy validate`: how far the posterior of a run can be trusted."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from moral_entropy.cli.parse import names

Run = Annotated[str, Argument(metavar="RUN", help="A run folder, as audit wrote it.")]
Sides = Annotated[str | None, Option(metavar="A,B,…", help="Only these: laplace,priors,gold,nuts,…; all if not given.")]
Seed = Annotated[int, Option(min=0, help="Of whatever is random: same seed, same figures.")]
Chains = Annotated[int, Option(min=1, help="Chains of NUTS.")]
Tune = Annotated[int | None, Option(min=10, help="Steps of NUTS to settle in.")]
Draws = Annotated[int | None, Option(min=10, help="Draws of NUTS, each chain.")]
Members = Annotated[int, Option(min=2, help="Fits of the ensemble, of each kind.")]
Folds = Annotated[int, Option(min=2, help="Of the held-out votes.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only the verdict.")]
Debug = Annotated[bool, Option("--debug", help="Show the traceback of an error.")]


def validate(
    run: Run,
    sides: Sides = None,
    seed: Seed = 0,
    chains: Chains = 4,
    tune: Tune = None,
    draws: Draws = None,
    members: Members = 20,
    folds: Folds = 5,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Examine a run's posterior: NUTS, ensembles, priors, held-out votes, dependence, identifiability, gold.

    Example: moral-entropy validate run/
    """
    # Late, so that --help answers at once.
    from moral_entropy.cli.show import Bars
    from moral_entropy.cli.show_validation import print_validation
    from moral_entropy.pipeline.validate import ValidationOptions, run_validation

    asked = names("--sides", sides) or None
    options = ValidationOptions(asked, seed, chains, tune, draws, members, folds)
    with Bars(hidden=quiet) as progress:
        validation = run_validation(run, options, progress=progress)
    print_validation(validation, quiet=quiet)
