"""`serve` as people use it: checks and settlements by keyboard, undo, reload, a killed server, hostile texts."""

from __future__ import annotations

import shutil

import pytest
from report_support import make_run, vote_frame
from serve_support import decisions_of, serving, serving_here

pytest.importorskip("starlette", reason="the extra [serve] is not installed")
pytest.importorskip("uvicorn", reason="the extra [serve] is not installed")

PAGES = ("start", "check", "settle", "bulk", "items", "annotators", "rules", "decisions", "confused", "moved")
PATIENCE = 120_000
"""Milliseconds to wait for a page, however loaded the machine is."""


class Visitor:
    """A browser at a server: presses keys, and keeps all that the pages said and asked for elsewhere."""

    def __init__(self, chromium, server, *, width=1280, dark=False):
        self.server, self.said, self.asked = server, [], []
        viewport = {"width": width, "height": 900}
        self.context = chromium.new_context(viewport=viewport, color_scheme="dark" if dark else "light")
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", self._note)
        self.page.goto(server.address)
        self.page.wait_for_selector("html[data-ready]")

    def _note(self, request):
        if not request.url.startswith(f"{self.server.origin}/"):
            self.asked.append(request.url)

    def open(self, path):
        self.page.goto(f"{self.server.origin}/{path}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def step(self, key):
        """Press a key, and wait until the page has followed."""
        n = int(self.page.get_attribute("html", "data-ready"))
        self.page.keyboard.press(key)
        self.page.wait_for_selector(f'html[data-ready="{n + 1}"]')

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def close(self):
        self.context.close()
        assert self.said == []
        assert self.asked == []


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return make_run(
        vote_frame(n_items=70, gold=False), tmp_path_factory.mktemp("plain") / "run", report=False, draws=30
    )


@pytest.fixture
def run(plain, tmp_path):
    return shutil.copytree(plain, tmp_path / "run")


def test_fifty_checks_by_keyboard(run, chromium):
    with serving_here(run) as server:
        visitor = Visitor(chromium, server)
        visitor.open("check")
        assert visitor.text("#progress") == "0 of 50 checked"
        for n in range(20):
            visitor.step("12"[n % 2])
        before = visitor.text(".names")
        visitor.step("u")
        visitor.step("z")
        assert visitor.text(".names") == before
        visitor.step("s")
        assert visitor.text(".names") != before
        visitor.open("check")
        assert visitor.text("#progress") == "20 of 50 checked"
        for n in range(29):
            visitor.step("12"[n % 2])
        # What was passed over comes last.
        assert visitor.text(".names") == before
        visitor.step("1")
        assert visitor.text("#progress") == "50 of 50 checked"
        assert "50 labels checked are wrong" in visitor.text("#answer") and "interval" in visitor.text("#answer")
        visitor.close()
    labels = [entry for entry in decisions_of(run) if entry["kind"] == "check"]
    assert len({(entry["question"], entry["item"]) for entry in labels}) == 50


@pytest.mark.parametrize("arrived", [True, False], ids=["on-the-disk", "on-its-way"])
def test_twenty_settlements_by_keyboard_and_a_killed_server(run, chromium, arrived):
    with serving(run, "--who", "anna,bert") as server:
        visitor = Visitor(chromium, server)
        visitor.open("settle")
        assert "Who are you?" in visitor.text("main")
        visitor.page.keyboard.press("2")
        visitor.page.wait_for_selector("#labels")
        assert visitor.page.locator(".waterfall").count() == 0
        for n in range(10):
            visitor.page.keyboard.press("12"[n % 2])
            visitor.page.wait_for_selector("#causes")
            visitor.step("ageo"[n % 4])
            assert visitor.page.locator("#result .waterfall li").count() > 2
            visitor.step("Enter")
        visitor.page.keyboard.press("1")
        visitor.page.wait_for_selector("#causes")

        def cut(route):
            if arrived:
                route.fetch()
            server.kill()
            route.abort()

        visitor.page.route("**/decide", cut)
        visitor.page.keyboard.press("e")
        visitor.page.wait_for_selector("#said.bad")
        assert "does not answer" in visitor.text("#said")
        visitor.context.close()
    n_kept = 10 + arrived
    with serving_here(run, "anna", "bert") as server:
        visitor = Visitor(chromium, server)
        visitor.open("settle")
        visitor.page.keyboard.press("2")
        visitor.page.wait_for_selector("#labels")
        assert visitor.text("#progress").startswith(f"{n_kept} settled")
        for _ in range(20 - n_kept):
            visitor.page.keyboard.press("2")
            visitor.page.wait_for_selector("#causes")
            visitor.step("o")
            visitor.step("Enter")
        assert visitor.text("#progress").startswith("20 settled")
        visitor.step("z")
        assert visitor.text("#progress").startswith("19 settled")
        visitor.close()
    entries = decisions_of(run)
    assert [entry["kind"] for entry in entries] == ["settle"] * 20 + ["undo"]
    assert {entry["who"] for entry in entries} == {"bert"}
    assert {entry["cause"] for entry in entries[:4]} == {"ambiguous", "guideline gap", "annotator error", "other"}


@pytest.fixture(scope="module")
def hostile_server(hostile_run, tmp_path_factory):
    with serving_here(shutil.copytree(hostile_run, tmp_path_factory.mktemp("served") / "run")) as server:
        for _ in range(30):
            item = server.view("settle")["item"]
            body = {name: item[name] for name in ("question", "item")} | {"why": (item["text"] or "")[:1000]}
            server.json("/decide", {**body, "kind": "settle", "label": item["labels"][0], "cause": "other"})
        yield server


@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_texts_do_nothing_and_stay_on_the_page(hostile_server, chromium, width):
    visitor = Visitor(chromium, hostile_server, width=width, dark=width == 390)
    for path in PAGES:
        page = visitor.open(path)
        if path == "settle":
            page.keyboard.press("v")
            page.wait_for_selector(".waterfall")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main script, main img, main iframe, main style").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
    visitor.close()


def test_the_way_from_a_pair_of_annotators_to_a_new_run(run, chromium):
    with serving(run) as server:
        visitor = Visitor(chromium, server)
        page = visitor.open("annotators")
        page.locator(".matrix td a").first.click()
        page.wait_for_selector("#item-list li")
        assert "differ on these" in visitor.text("main")
        page.locator("#item-list li a").first.click()
        page.wait_for_selector(".waterfall")
        page.get_by_text("Settle this item").click()
        page.wait_for_selector("#labels")
        page.keyboard.press("1")
        page.wait_for_selector("#causes")
        visitor.step("g")
        visitor.open("bulk").keyboard.press("c")
        page.wait_for_selector("#said:not(:empty)")
        assert "confirmed" in visitor.text("#said")
        visitor.open("moved").get_by_role("button", name="Make a new run").click()
        page.wait_for_selector("#moved")
        assert "run-2" in visitor.text("#moved")
        assert "guideline gap" in visitor.open("confused").inner_text("main") or visitor.page.locator(".cells").count()
        assert visitor.open("decisions").locator("tbody tr").count() > 2
        visitor.close()
