"""Which targets train the better classifier? A run with texts in; scores, paired differences and a page out.

`compare` trains the same models on every kind of target and scores them on unseen texts, `references` says against
what, `tables` computes the figures (with `train.scores`), `page` writes them up, and `run` does it all for a run
folder; `progress_folder` keeps what a stopped study has trained.
"""
