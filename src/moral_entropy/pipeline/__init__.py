"""The stages one after the other: a file of votes in, a run folder out.

`audit` calls the stages, `facts` makes the manifest of the run, `validate` examines an earlier run. No mathematics
here, and no printing.
"""
