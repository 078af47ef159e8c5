"""Small corpora in the layouts of the published ones, written by code, and the votes they must give.

Every annotation is planned as the set of foundations it means; the cell that says so is spelt in one of many ways.
"""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import dataclass
from hashlib import blake2b

FOUNDATIONS = ("authority", "care", "fairness", "loyalty", "sanctity")

# What labels mean, typed apart from the package.
WORDS = {
    "mftc": {
        "authority": ("authority", "subversion"),
        "care": ("care", "harm"),
        "fairness": ("fairness", "cheating"),
        "loyalty": ("loyalty", "betrayal"),
        "sanctity": ("purity", "degradation"),
        None: ("non-moral", "nm", "nh"),
    },
    "mfrc": {
        "authority": ("Authority",),
        "care": ("Care",),
        "fairness": ("Proportionality", "Equality"),
        "loyalty": ("Loyalty",),
        "sanctity": ("Purity",),
        None: ("Thin Morality", "Non-Moral"),
    },
}
DOMAINS = {
    "mftc": ("ALM", "BLM", "Baltimore", "Davidson", "Election", "MeToo", "Sandy"),
    "mfrc": ("Everyday Morality", "US Politics", "French Politics"),
}


@dataclass(frozen=True)
class Planned:
    """An annotation: on what, where, by whom, how it is spelt, and what it means."""

    text: str | None
    tweet_id: str | None
    domain: str | None
    annotator: str
    cell: str
    means: frozenset[str]


def plan(name, *, n_items=40, seed=5):
    """Plan a corpus of some dozens of items, each labelled once by two to four of six annotators."""
    draw = random.Random(seed)
    planned = []
    for number in range(n_items):
        domain = DOMAINS[name][number % len(DOMAINS[name])]
        text = awkward_text(number)
        for annotator in draw.sample([f"annotator{a:02}" for a in range(6)], draw.randint(2, 4)):
            means = frozenset(name for name in FOUNDATIONS if draw.random() < 0.25)
            planned.append(Planned(text, str(9_000 + number), domain, annotator, spelt(draw, name, means), means))
    return planned


def awkward_text(number):
    endings = ("", ' "quoted", and more', " — déjà vu 🙂", "\nsecond line", "  blanks  ", "; semicolon\ttab")
    return f"Text {number} of ours{endings[number % len(endings)]}"


def spelt(draw, name, means):
    """Spell a set of foundations: some of their labels, in any case, with blanks, in any order."""
    words = WORDS[name]
    labels = [label for one in means for label in draw.sample(words[one], draw.randint(1, len(words[one])))]
    labels = labels or [draw.choice(words[None])]
    draw.shuffle(labels)
    change = (str, str.upper, str.lower, str.title, lambda label: f"  {label} ")
    return ",".join(draw.choice(change)(label) for label in labels)


def mftc_json(planned, *, texts=True):
    """Lay annotations out as MFTC does; without texts, as MFTC_V4.json."""
    corpora = {}
    for one in planned:
        tweets = corpora.setdefault(one.domain, {})
        tweet = tweets.setdefault((one.tweet_id, one.text), {"tweet_id": one.tweet_id, "annotations": []})
        if texts:
            tweet["tweet_text"] = "no tweet text available" if one.text is None else one.text
        tweet["annotations"].append({"annotator": one.annotator, "annotation": one.cell})
    listed = [{"Corpus": name, "Tweets": list(tweets.values())} for name, tweets in corpora.items()]
    return json.dumps(listed, indent=1)


def mfrc_csv(planned, *, newline="\n"):
    rows = [(p.text, "europe", p.domain, p.annotator, p.cell, "Confident") for p in planned]
    return csv_text(("text", "subreddit", "bucket", "annotator", "annotation", "confidence"), rows, newline)


def emfd_csv(highlights, *, newline="\n"):
    """Lay highlights (text, foundation, coder, document) out as eMFD does, with its unnamed index."""
    rows = [(at, *highlight, 2700.5) for at, highlight in enumerate(highlights)]
    return csv_text(("", "content", "assigned_domain", "coder_id", "document_id", "focus_duration"), rows, newline)


def csv_text(header, rows, newline="\n"):
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=newline)
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()


def item_of(name, text, tweet_id=None, domain=None):
    hashed = f"tweet-{tweet_id}" if text is None else blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{name}-{hashed}" + (f"@{domain}" if domain else "")


def expected_votes(name, planned):
    """All votes that annotations without repeats must give, sorted."""
    votes = []
    for one in planned:
        item = item_of(name, one.text, one.tweet_id, one.domain)
        votes += [(item, one.annotator, q, str(int(q in one.means)), one.domain, one.text) for q in FOUNDATIONS]
    return sorted(votes)
