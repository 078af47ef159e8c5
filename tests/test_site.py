"""The documentation site: every page is in its navigation and in llms.txt, and links that lead nowhere are found."""

from __future__ import annotations

import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("site_tool", ROOT / "tools" / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def nav():
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]


def test_every_page_is_in_the_navigation_once(site, nav):
    listed = [file for _, _, file in site.pages_of(nav)]
    pages = {str(page.relative_to(ROOT / "docs").as_posix()) for page in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in pages if re.match(r"adr/\d", page)}
    assert sorted(listed) == sorted(pages - decisions | {f"project/{name}" for name in site.PROJECT})
    assert [next(iter(entry)) for entry in nav][1:6] == ["Tutorial", "How to", "Concepts", "Reference", "Evidence"]


def test_language_models_get_a_list_of_all_pages_with_a_sentence_each(site, nav, tmp_path):
    site.stage(tmp_path)
    for folder in (tmp_path / "docs").rglob("*/"):
        (tmp_path / "site" / folder.relative_to(tmp_path / "docs")).mkdir(parents=True)
    site.write_llms(tmp_path / "site", tmp_path / "docs", nav)
    text = (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8")
    rows = re.findall(r"^- \[(.+)\]\((.+\.md)\): (.+)$", text, flags=re.MULTILINE)
    assert [(title, file) for title, file, _ in rows] == [(title, file) for _, title, file in site.pages_of(nav)]
    assert [file for _, file, _ in rows if not (tmp_path / "site" / file).is_file()] == []
    assert all(len(sentence) > 15 and "](" not in sentence for _, _, sentence in rows), rows


def test_links_between_pages_at_the_root_and_docs_are_mended(site, tmp_path):
    site.stage(tmp_path)
    for page in (tmp_path / "docs").rglob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            inside = link.startswith("https://") or (page.parent / link).exists()
            assert inside or page.parent.name == "project", (page.name, link)


def test_the_first_page_calls_pages_by_their_titles(site, tmp_path):
    site.stage(tmp_path)
    page = (tmp_path / "docs" / "README.md").read_text(encoding="utf-8")
    assert "[Your first audit](tutorial/first-audit.md)" in page and not re.search(r"\[[\w/-]+\.md\]", page)
    assert doctest.testmod(site).failed == 0


PAGE = '<html><head>{head}</head><body><h1 id="top">x</h1>{body}</body></html>'


@pytest.mark.parametrize(
    ("body", "head", "told"),
    [
        ('<a href="other.html#top">x</a><a href="#top">x</a><a href="https://example.org">x</a>', "", []),
        ('<a href="gone.html">x</a>', "", ["a.html: gone.html does not exist"]),
        ('<a href="other.html#nowhere">x</a>', "", ["a.html: other.html#nowhere has no such heading"]),
        ('<img src="gone.png">', "", ["a.html: gone.png does not exist"]),
        ("", '<script src="https://cdn.example.org/x.js"></script>', ["a.html loads https://cdn.example.org/x.js"]),
    ],
)
def test_links_that_lead_nowhere_are_found(site, body, head, told, tmp_path):
    (tmp_path / "a.html").write_text(PAGE.format(head=head, body=body))
    (tmp_path / "other.html").write_text(PAGE.format(head="", body=""))
    assert site.broken_links(tmp_path) == told


def test_search_without_a_server_loads_our_own_script(site, tmp_path):
    (tmp_path / "assets" / "javascripts").mkdir(parents=True)
    (tmp_path / "how-to").mkdir()
    shim = '<script src="https://unpkg.com/iframe-worker/shim" type="text/javascript"></script>'
    for name in ("index.html", "how-to/a.html"):
        (tmp_path / name).write_text(PAGE.format(head=shim, body=""))
    site.with_own_worker(tmp_path)
    assert site.broken_links(tmp_path) == []
    assert '"../assets/javascripts/file_worker.js"' in (tmp_path / "how-to" / "a.html").read_text()
    (tmp_path / "index.html").write_text(PAGE.format(head="", body=""))
    with pytest.raises(SystemExit, match=r"index.html does not load what search without a server needs"):
        site.with_own_worker(tmp_path)


@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="Zensical is not installed: see make docs")
def test_the_site_is_built(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "site.py"), "--out", str(tmp_path / "site")], check=False
    )
    assert done.returncode == 0 and (tmp_path / "site" / "llms.txt").is_file()
