"""Search of the site without a server: what does the work of a worker on file:// hands over copies, in order."""

from __future__ import annotations

import shutil
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "tools"

PAGE = """<!doctype html><script src="file_worker.js"></script><script>
  const worker = new Worker("work.js"), told = { word: "first" }, heard = []
  worker.onmessage = event => {
    heard.push(event.data.words.join(" "))
    event.data.words.push("changed by the page")
    if (heard.length === 2) { document.title = heard.join("; "); worker.terminate() }
  }
  worker.postMessage(told)
  told.word = "changed after it was sent"
  worker.postMessage({ word: "second" })
</script>"""

WORK = "const words = []; self.onmessage = event => { words.push(event.data.word); self.postMessage({ words }) }"


def test_messages_are_copies_and_keep_their_order(chromium, tmp_path):
    shutil.copy(TOOLS / "file_worker.js", tmp_path)
    (tmp_path / "page.html").write_text(PAGE)
    (tmp_path / "work.js").write_text(WORK)
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("document.title !== ''")
    assert page.title() == "first; first second"
    assert page.locator("iframe").count() == 0
    page.close()
