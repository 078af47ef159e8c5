"""Reports in headless Chromium, offline; the tests skip where there is no Chromium or no Playwright."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from report_support import make_run, vote_frame
from support import real_data

from moral_entropy import audit

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Report:
    """An open report, with all it said and all it asked for."""

    def __init__(self, page, run):
        self.page, self.run, self.said, self.asked = page, Path(run), [], []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.route("**/*", self._only_the_file)
        page.goto((self.run / "report.html").resolve().as_uri())
        page.wait_for_function("document.documentElement.dataset.ready === 'yes'")

    def _only_the_file(self, route):
        if route.request.url.startswith("file://") and route.request.url.endswith("/report.html"):
            route.continue_()
        else:
            self.asked.append(route.request.url)
            route.abort()

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def item_rows(self):
        return self.page.locator("#item-list > li").count()

    def count_text(self):
        return self.text("#items-count")

    def n_items(self):
        """How many rows the filters leave."""
        found = re.search(r"of ([\d,]+) row", self.text("#items-count"))
        return int(found.group(1).replace(",", "")) if found else 0

    def reset_items(self):
        """Show all items again."""
        self.page.fill("#find", "")
        for select in ("#item-question", "#item-domain"):
            if self.page.locator(select).is_visible():
                self.page.select_option(select, "(all)")
        self.page.select_option("#item-sort", "entropy")
        self.page.select_option("#item-show", "all")


@pytest.fixture(scope="session")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium: on Debian, apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_report(chromium):
    """Open the report of a run, each way once; at the end none must have complained or asked for anything."""
    opened = {}

    def open_report(run, *, width=1280, dark=False):
        if (run, width, dark) not in opened:
            scheme = "dark" if dark else "light"
            viewport = {"width": width, "height": 900}
            context = chromium.new_context(viewport=viewport, color_scheme=scheme, offline=True)
            opened[run, width, dark] = Report(context.new_page(), run)
        return opened[run, width, dark]

    yield open_report
    for report in opened.values():
        report.page.context.close()
        assert report.said == []
        assert report.asked == []


@pytest.fixture(scope="session")
def twin_run(tmp_path_factory):
    from moral_entropy.corpora.twins import write_twin

    folder = tmp_path_factory.mktemp("twin")
    write_twin("mftc", folder / "votes.parquet", seed=0, scale=0.03)
    return make_run(folder / "votes.parquet", folder / "run")


@pytest.fixture(scope="session")
def real_run(tmp_path_factory):
    data = real_data("rte")
    return make_run(data / "votes.csv", tmp_path_factory.mktemp("real") / "run", gold_file=data / "gold.csv")


@pytest.fixture(scope="session")
def named_run(tmp_path_factory):
    """Questions, annotators, domains and labels that have the names of what every object of JavaScript has."""
    names = ["constructor", "toString", "__proto__", "valueOf", "hasOwnProperty", "isPrototypeOf"]
    frame = vote_frame(n_items=60, questions=names[:3], gold=False)
    frame = frame.with_columns(
        annotator=pl.col("annotator").replace(dict(zip("abcdef", names, strict=True))),
        label=pl.col("label").replace({"0": "toString", "1": "valueOf"}),
        domain=pl.col("domain").replace({"BLM": "constructor", "Sandy": "__proto__"}),
    )
    return make_run(frame, tmp_path_factory.mktemp("named") / "run", draws=30, positive="valueOf")


@pytest.fixture(scope="session")
def crowd_run(tmp_path_factory):
    """More annotators than a page of a table holds; every item has two votes."""
    frame = vote_frame(n_items=400, questions=("q",), gold=False, annotators="abcd").drop("domain", "text").sort("item")
    frame = frame.filter(pl.len().over("item") > 1, pl.int_range(pl.len()).over("item") < 2)
    name = pl.format("worker {}", (pl.int_range(pl.len()) * 7) % 353)
    return make_run(frame.with_columns(annotator=name), tmp_path_factory.mktemp("crowd") / "run", draws=30)


@pytest.fixture(scope="session")
def messy_run(tmp_path_factory):
    """Long names without a blank, forty questions, ids as long as a sentence, a label nobody can spell, groups."""
    long_name = "an-annotator-with-a-very-long-name-and-no-blank-" * 2
    frame = vote_frame(
        n_items=40, questions=[f"question_{at:02}_" + "x" * (at % 4) * 12 for at in range(40)], gold=False
    )
    frame = frame.with_columns(
        annotator=pl.col("annotator").replace({"a": long_name, "b": "gpt-4o/strict"}),
        label=pl.col("label").replace({"1": "Donaudampfschifffahrtsgesellschaftskapitän", "0": "no"}),
        item=pl.format(
            "https://example.org/a/very/long/address/without/blanks/{}/{}", pl.col("item"), pl.lit("q" * 60)
        ),
        team=pl.when(pl.col("annotator").is_in(list("abc")))
        .then(pl.lit("the first of the two teams"))
        .otherwise(pl.lit("second")),
    )
    out = tmp_path_factory.mktemp("messy") / "run"
    return audit(frame, out, draws=20, annotator_group=("team",)).path


@pytest.fixture(scope="session")
def panel_run(tmp_path_factory):
    """Language models as judges, with known answers."""
    frame = vote_frame(
        n_items=80, questions=("is it safe",), annotators=["gpt-4o/strict", "llama-3-70b-instruct", "ann", "bob"]
    )
    return make_run(frame, tmp_path_factory.mktemp("panel") / "run", draws=30)
