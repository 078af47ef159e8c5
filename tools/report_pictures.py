"""Take pictures of a report in headless Chromium: python tools/report_pictures.py RUN FOLDER."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]


def main(run: str, folder: str) -> int:
    """Write the first screen, light and dark, and an item's votes; give 1 without a browser."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("error: no Chromium. On Debian: apt-get install chromium", file=sys.stderr)
        return 1
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        for name, scheme in (("report", "light"), ("report-dark", "dark")):
            page = browser.new_page(viewport={"width": 1200, "height": 775}, color_scheme=scheme)
            page.goto((Path(run) / "report.html").resolve().as_uri())
            page.wait_for_function("document.querySelectorAll('.chart svg.marks').length >= 6")
            page.screenshot(path=out / f"{name}.png")
            if scheme == "light":
                page.locator("#table-items .open").nth(1).click()
                page.locator(".detail").screenshot(path=out / "report-item.png")
        browser.close()
    for file in sorted(out.glob("report*.png")):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
