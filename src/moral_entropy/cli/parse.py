"""Words a user typed → values, or an error that says which flag and how it should look."""

from __future__ import annotations

from moral_entropy.errors import UsageError


def names(flag: str, given: str | None) -> tuple[str, ...]:
    """Read names separated by commas.

    Examples
    --------
    >>> names("--questions", "care, fairness")
    ('care', 'fairness')
    """
    if given is None:
        return ()
    found = tuple(name.strip() for name in given.split(","))
    if not all(found):
        msg = f"{flag} {given!r} names nothing at one place. Separate names with single commas, as care,fairness."
        raise UsageError(msg)
    return found


def numbers(flag: str, given: str | None, *, exactly: int | None = None) -> tuple[float, ...] | None:
    """Read numbers separated by commas.

    Examples
    --------
    >>> numbers("--prior-prevalence", "80,20")
    (80.0, 20.0)
    """
    if given is None:
        return None
    try:
        found = tuple(float(number) for number in given.split(","))
    except ValueError:
        msg = f"{flag} {given!r} is not a list of numbers. Write it as 80,20."
        raise UsageError(msg) from None
    if exactly is not None and len(found) != exactly:
        msg = f"{flag} {given!r} has {len(found)} numbers, not {exactly}. Write it as 1.8,1.2."
        raise UsageError(msg)
    return found


def number_or_name(given: str | None) -> int | str | None:
    """Read a whole number, or else a name.

    Examples
    --------
    >>> number_or_name("3"), number_or_name("n_voters")
    (3, 'n_voters')
    """
    return int(given) if given is not None and given.isdecimal() else given


def number_or_names(flag: str, given: str | None) -> int | tuple[str, ...] | None:
    """Read a whole number, or else names separated by commas."""
    if given is None:
        return None
    return int(given) if given.isdecimal() else names(flag, given)
