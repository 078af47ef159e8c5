"""Take pictures of a report in headless Chromium: python tools/report_pictures.py RUN FOLDER."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]

PICTURES = (("report", 1280, "light"), ("report-dark", 1280, "dark"), ("report-phone", 390, "light"))


def main(run: str, folder: str) -> int:
    """Write the page at two widths and in the dark, an opened item, and a PDF; return 1 without a browser."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("error: no Chromium. On Debian: apt-get install chromium", file=sys.stderr)
        return 1
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        for name, width, scheme in (
            ("report", 1280, "light"),
            ("report-dark", 1280, "dark"),
            ("report-phone", 390, "light"),
        ):
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            page.goto((Path(run) / "report.html").resolve().as_uri())
            page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
            page.screenshot(path=out / f"{name}.png")
            page.locator("#item-list .open").nth(1).click()
            page.screenshot(path=out / f"{name}-all.png", full_page=True)
            page.locator("#item-list li").nth(1).screenshot(path=out / f"{name}-item.png")
            if name == "report":
                page.pdf(path=out / "report.pdf", format="A4")
        browser.close()
    for file in sorted(out.glob("report*")):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
