"""The paper, reproduced: the three corpora, or their twins, in; every published figure next to ours out.

`sources` reads the corpora, `grading` and `figures` compute our figures, `published` has the paper's and compares,
`pages` writes Markdown, and `study` runs it all.
"""
