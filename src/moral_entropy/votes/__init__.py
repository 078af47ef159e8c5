"""Votes in: files and dataframes → `Votes`."""

from __future__ import annotations

from moral_entropy.votes.read import read_votes
from moral_entropy.votes.table import Ballot, Votes

__all__ = ["Ballot", "Votes", "read_votes"]
