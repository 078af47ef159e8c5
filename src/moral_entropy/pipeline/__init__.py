"""The stages one after the other: a file of votes in, a run folder out.

`audit` is the orchestrator, `frames` and `annotators` turn results into the tables of the run folder, `facts`
into its manifest. No mathematics here, and no printing.
"""
