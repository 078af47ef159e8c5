"""The page of `reproduce` in headless Chromium, offline: every table and every figure of the paper is on it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def page(chromium, study):
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    messages = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("requestfailed", lambda request: messages.append(request.url))
    page.goto((study.path / "index.html").as_uri())
    yield page
    context.close()
    assert messages == []


def test_every_table_and_figure_is_on_the_page(page):
    assert page.locator("img").count() == 4
    assert all(width > 300 for width in page.evaluate("[...document.images].map((image) => image.naturalWidth)"))
    titles = page.locator("h2").all_inner_texts()
    for title in ("Corpora", "Rules, by domain", "Supplement", "Soft-label fine-tuning", "Moral Entropy, split",
                  "Annotators who switch", "Dissent", "Uncertain items", "Words", "Sampling", "MFTC", "MFRC", "eMFD",
                  "Three regimes"):  # fmt: skip
        assert any(found.startswith(title) for found in titles), title
    files = page.evaluate("[...document.links].map((link) => link.href)")
    assert len(files) > 20 and all(file.startswith("file://") for file in files)


def test_it_opens_with_the_paper_beside_ours_and_is_not_wider_than_the_window(page):
    heads = page.locator("table").first.locator("th").all_inner_texts()
    assert heads == ["figure", "paper", "ours", "distance", "ours, expected", "known truth"]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
