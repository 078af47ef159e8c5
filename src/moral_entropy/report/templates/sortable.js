// Tables that are sorted by their headings, searched where they are long, and paged; on paper they are whole.
// Needs nothing else: the report and the page of a comparison both use it.
const ROWS_AT_ONCE = 100;
const ROWS_TO_SEARCH = 30;
const ROWS_ON_PAPER = 1000;
const inOrder = new Intl.Collator("en", { numeric: true });

/** Read the number that a cell begins with, as "1,200", "12.5% (11.0–14.0)" or "−0.3"; null without one. */
function asNumber(text) {
  const found = /^[+\-−]?[\d,]*\.?\d+(e[+-]?\d+)?/i.exec(text.trim());
  return found ? Number(found[0].replaceAll(",", "").replace("−", "-")) : null;
}

/** Compare two keys, missing ones last whatever the direction. */
function compareKeys(a, b, direction) {
  if (a == null || b == null) return (a == null) - (b == null);
  return direction * (typeof a === "number" && typeof b === "number" ? a - b : inOrder.compare(a, b));
}

function element(tag, attributes, text = "") {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

/**
 * Let a table be sorted, searched and paged. `line` makes the row of one of the list, `keys` tell what each column
 * sorts by, `words` what a search looks through.
 */
function makeSortable(grid, list, { line, keys, words }) {
  const body = grid.tBodies[0], heads = [...grid.tHead.rows[0].cells];
  const state = { list, page: 0, column: null, direction: 1 };
  const pages = () => Math.max(1, Math.ceil(state.list.length / ROWS_AT_ONCE));
  const pager = element("div", { class: "pager" });
  const said = element("span", { "aria-live": "polite" });

  const show = (all = false) => {
    const first = all ? 0 : state.page * ROWS_AT_ONCE, last = all ? ROWS_ON_PAPER : first + ROWS_AT_ONCE;
    const shown = state.list.slice(first, last);
    body.replaceChildren(...shown.map(line));
    const count = (n) => n.toLocaleString("en");
    said.textContent = state.list.length > shown.length
      ? `rows ${count(first + 1)} to ${count(first + shown.length)} of ${count(state.list.length)}`
      : `${count(state.list.length)} rows`;
  };
  const arrange = () => {
    const typed = search ? search.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    const kept = typed.length ? list.filter((one) => typed.every((word) => words(one).toLowerCase().includes(word))) : list;
    state.page = 0;
    state.list = kept;
    if (state.column !== null) {
      const keyed = kept.map((one, at) => [keys[state.column](one), at, one]);
      state.list = keyed.sort((a, b) => compareKeys(a[0], b[0], state.direction) || a[1] - b[1]).map((three) => three[2]);
    }
    show();
    turns.forEach((button) => { button.hidden = pages() < 2; });
    turned();
  };
  const turned = () => { turns[0].disabled = state.page === 0; turns[1].disabled = state.page >= pages() - 1; };
  const turns = [["← Before", -1], ["Next →", 1]].map(([text, by]) => {
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", () => { state.page += by; show(); turned(); });
    return button;
  });
  const sortBy = (column) => {
    state.direction = state.column === column ? -state.direction : 1;
    state.column = column;
    heads.forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", state.direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    arrange();
  };
  heads.forEach((head, column) => {
    if (list.length < 2) return;
    const button = element("button", { type: "button", class: "sort", title: "Sort by this column" }, head.textContent);
    button.addEventListener("click", () => sortBy(column));
    head.dataset.title = head.textContent;
    head.replaceChildren(button);
  });
  const box = grid.closest(".scroll") || grid;
  let search = null;
  if (list.length > ROWS_TO_SEARCH) {
    const label = element("label", { class: "filter" }, "Filter ");
    search = element("input", { type: "search", placeholder: `among ${list.length.toLocaleString("en")} rows`, autocomplete: "off" });
    search.addEventListener("input", arrange);
    label.append(search);
    box.before(label);
    pager.append(turns[0], said, turns[1]);
    box.after(pager);
  }
  grid.showRows = show;
  arrange();
}

/** Show as many rows as paper takes, or one page again. */
function showRowsOfAll(onPaper) {
  for (const grid of document.querySelectorAll("table")) grid.showRows?.(onPaper);
}
window.addEventListener("beforeprint", () => showRowsOfAll(true));
window.addEventListener("afterprint", () => showRowsOfAll(false));

/** Make sortable the tables that the page has already. */
function makeSortableAsTheyAre(tables) {
  for (const grid of tables) {
    const list = [...grid.tBodies[0].rows];
    const text = (row, at) => row.cells[at].textContent.trim();
    makeSortable(grid, list, {
      line: (row) => row,
      keys: [...grid.tHead.rows[0].cells].map((head, at) => (
        head.classList.contains("number") ? (row) => asNumber(text(row, at)) : (row) => text(row, at))),
      words: (row) => row.textContent,
    });
  }
}
