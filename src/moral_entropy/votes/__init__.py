"""Votes in: files and dataframes → `Votes`."""
