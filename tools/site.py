"""Build the documentation site, docs/ and the pages at the root → site/, with llms.txt; check every link of it.

Needs Zensical (tools/other-requirements.txt, which `make docs` installs into .venv-other).

Usage: python tools/site.py [--out FOLDER]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

ROOT = Path(__file__).resolve().parents[1]
CONFIG = "mkdocs.yml"
PROJECT = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
"""Pages at the root that the site shows, in the folder project/."""

SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"[^>]*>')
"""What the generator would load from elsewhere, for search without a server."""

WORKER = "assets/javascripts/file_worker.js"
"""What it loads instead: tools/file_worker.js."""


def stage(folder: Path) -> None:
    """Lay out what the generator reads: docs/ with the pages at the root, links between them mended."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / CONFIG, folder)
    (folder / "docs" / "project").mkdir()
    for name in PROJECT:
        text = (ROOT / name).read_text(encoding="utf-8")
        (folder / "docs" / "project" / name).write_text(with_site_links(text), encoding="utf-8")
    index = folder / "docs" / "README.md"
    page = re.sub(r"\]\(\.\./(?=[A-Z_]+\.md)", "](project/", index.read_text(encoding="utf-8"))
    titles = {file: title for _, title, file in pages_of(yaml.safe_load((ROOT / CONFIG).read_text("utf-8"))["nav"])}
    index.write_text(with_titles(page, titles), encoding="utf-8")


def with_titles(page: str, titles: dict[str, str]) -> str:
    """Call pages by their titles where a link calls them by the names of their files.

    Examples
    --------
    >>> with_titles("[a.md](how-to/a.md), [this](how-to/a.md)", {"how-to/a.md": "Do it"})
    '[Do it](how-to/a.md), [this](how-to/a.md)'
    """

    def titled(link: re.Match[str]) -> str:
        return f"[{titles.get(link[2], link[1])}]({link[2]}{link[3]})" if link[1].endswith(".md") else link[0]

    return re.sub(r"\[([^\]]+)\]\(([^)#]+)([^)]*)\)", titled, page)


def with_site_links(text: str) -> str:
    """Mend the links of a page that moved from the root to docs/project.

    Examples
    --------
    >>> with_site_links("[run](docs/reference/run-folder.md), [map](ARCHITECTURE.md)")
    '[run](../reference/run-folder.md), [map](ARCHITECTURE.md)'
    """
    return re.sub(r"\]\(docs/", "](../", text)


def pages_of(nav: list[Any], section: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield section, title and file of every page of the navigation."""
    for entry in nav:
        for title, leads in entry.items():
            if isinstance(leads, str):
                yield section, title, leads
            else:
                yield from pages_of(leads, title)


def llms_text(docs: Path, nav: list[Any]) -> str:
    """Return llms.txt: what the project is, and every page with its first sentence, for language models."""
    facts = yaml.safe_load((ROOT / CONFIG).read_text(encoding="utf-8"))
    lines, last = [f"# {facts['site_name']}", "", f"> {facts['site_description']}"], None
    for section, title, file in pages_of(nav):
        if section != last:
            lines += ["", f"## {section or 'Start'}", ""]
            last = section
        lines.append(f"- [{title}]({file}): {first_sentence((docs / file).read_text(encoding='utf-8'))}")
    return "\n".join(lines) + "\n"


def write_llms(site: Path, docs: Path, nav: list[Any]) -> None:
    """Write llms.txt, and every page as plain Markdown beside the HTML, where llms.txt links to it."""
    (site / "llms.txt").write_text(llms_text(docs, nav), encoding="utf-8")
    for page in docs.rglob("*.md"):
        shutil.copy(page, site / page.relative_to(docs))


def first_sentence(page: str) -> str:
    r"""Return the first sentence of a page, without its markup.

    Examples
    --------
    >>> first_sentence("# Title\n\nVotes [come](in.md) here.\nMore follows.")
    'Votes come here.'
    """
    plain = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    blocks = [block for block in plain.split("\n\n") if block.strip() and block.lstrip()[0] not in "#|!<-"]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(blocks[0].split())) if blocks else ""
    return re.split(r"(?<=[.!])(?<!et al\.) ", re.sub(r"[*`]", "", text))[0]


def with_own_worker(site: Path) -> None:
    """Let every page load our own script for search without a server, instead of one from elsewhere."""
    shutil.copy(ROOT / "tools" / Path(WORKER).name, site / WORKER)
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        made, times = SHIM.subn(f'<script src="{up}{WORKER}">', page.read_text(encoding="utf-8"))
        if times != 1 and page.name != "404.html":
            sys.exit(f"error: {page.name} does not load what search without a server needs; see tools/site.py, SHIM")
        page.write_text(made, encoding="utf-8")


class Links(HTMLParser):
    """Collect what a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Look at one tag."""
        found = {name: value or "" for name, value in attributes}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("script", "img", "source") and "src" in found:
            self.loads.append(found["src"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon") and "href" in found:
            self.loads.append(found["href"])


def read_links(page: Path) -> Links:
    """Read the links of one page."""
    parser = Links()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def broken_links(site: Path) -> list[str]:
    """List links that lead nowhere, and what a page would load from elsewhere."""
    pages = {page.resolve(): read_links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    found = []
    for page, links in pages.items():
        name = page.relative_to(site.resolve())
        found += [f"{name} loads {url}" for url in links.loads if urlsplit(url).netloc]
        for url in (*links.links, *links.loads):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or url.startswith("data:"):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name}: {url} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name}: {url} has no such heading")
    return found


def main() -> int:
    """Build the site, and say what is wrong with it."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "site")
    out = parser.parse_args().out
    nav = yaml.safe_load((ROOT / CONFIG).read_text(encoding="utf-8"))["nav"]
    with tempfile.TemporaryDirectory() as home:
        stage(Path(home))
        program = Path(sys.executable).parent / "zensical"
        built = subprocess.run([str(program), "build", "--strict", "-f", CONFIG], cwd=home, check=False)
        if built.returncode:
            return built.returncode
        site = Path(home) / "site"
        write_llms(site, Path(home) / "docs", nav)
        with_own_worker(site)
        problems = broken_links(site)
        for problem in problems:
            print(f"error: {problem}", file=sys.stderr)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(site, out)
    print(f"{out}: {len(list(out.rglob('*.html')))} pages")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
