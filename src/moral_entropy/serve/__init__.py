"""A local web app on a run folder: check labels, settle conflicts, look at items; never changes the run."""
