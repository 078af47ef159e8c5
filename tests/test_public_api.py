"""What `import moral_entropy` gives, pinned: changing it is a decision, not an accident."""

from __future__ import annotations

import inspect
from importlib.metadata import version

import pytest

import moral_entropy as me

NAMES = [
    "AuditTable",
    "Ballot",
    "Consensus",
    "EntropyParts",
    "MoralEntropyError",
    "Priors",
    "Rule",
    "Votes",
    "__version__",
    "audit_rules",
    "decompose_entropy",
    "fit",
    "read_votes",
    "simulate_votes",
]


def test_the_names_are_these_and_sorted():
    assert me.__all__ == NAMES == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there_and_documented(name):
    value = getattr(me, name)
    assert name == "__version__" or inspect.getdoc(value)
    assert name in dir(me)


def test_fit_is_the_function_also_after_its_package_was_imported():
    import moral_entropy.consensus.fit as module

    assert me.fit is module.fit


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'predict'"):
        _ = me.predict


def test_options_come_after_the_star():
    for function in (me.read_votes, me.fit, me.simulate_votes):
        parameters = inspect.signature(function).parameters
        kinds = [p.kind for name, p in parameters.items() if name != "options"]
        assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) <= 1


def test_the_version_is_that_of_the_distribution():
    try:
        installed = version("moral-entropy")
    except ModuleNotFoundError:
        pytest.skip("the package is not installed, only on the path")
    assert installed == me.__version__
