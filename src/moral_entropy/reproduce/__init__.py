"""The paper, reproduced: the three corpora, or their twins, in; every published figure next to ours out.

`published` has the paper's figures, `sources` reads the corpora, `any_foundation` asks whether a text carries any
foundation at all, `grading` and `figures` compute ours, `comparison` compares, `pages` writes Markdown and HTML, and
`study` runs it all.
"""
