"""A profile, summed up."""

from __future__ import annotations

from support import load_script

hottest = load_script("benchmarks/hottest.py")

PROFILE = """\
thread;run (moral_entropy/a.py:3);work (moral_entropy/b.py:7);exp (numpy.py:1) 6
thread;run (moral_entropy/a.py:3);run (moral_entropy/a.py:9) 2
thread;wait (threading.py:1) 2
"""


def test_samples_count_once_a_function_and_only_under_ours():
    stacks = list(hottest.read_stacks(PROFILE))
    assert sum(samples for _, samples in stacks) == 10
    assert hottest.hottest(stacks) == {"run (moral_entropy/a.py)": 8, "work (moral_entropy/b.py)": 6}
