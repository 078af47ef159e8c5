"""The paper, reproduced: the three corpora, or their twins, in; every published figure beside ours out.

`published` knows the paper's figures, `sources` reads the corpora, `together` asks whether a text carries any
foundation at all, `grading` and `figures` compute ours, `beside` compares, `pages` writes Markdown and HTML, and
`study` runs it all.
"""
