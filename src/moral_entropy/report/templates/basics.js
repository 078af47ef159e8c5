// The report's page: reads the JSON in #data, fills controls and tables, draws charts.
// What comes from the data becomes text nodes only; nothing of it is ever parsed as HTML or run.
const D = JSON.parse(document.getElementById("data").textContent);
const ALL = "(all)";
const $ = (id) => document.getElementById(id);

/** Unpack a table of columns into rows. */
function rows(table) {
  const names = Object.keys(table);
  const columns = names.map((name) => {
    const column = table[name];
    return Array.isArray(column) ? column : column.at.map((at) => column.of[at]);
  });
  return (columns[0] || []).map((_, i) => Object.fromEntries(names.map((name, j) => [name, columns[j][i]])));
}

/** Make an element with text or children; never with HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return element;
}

// What rounds to nothing has no sign.
const rounded = (value, digits) => value.toFixed(digits).replace(/^-(?=[0.]+$)/, "");
const percent = (value, digits = 1) => (value == null ? "–" : `${rounded(100 * value, digits)}%`);
const fixed = (value, digits = 3) => (value == null ? "–" : rounded(value, digits));
const whole = (value) => (value == null ? "–" : Math.round(value).toLocaleString("en"));
const range = (low, high, show) => {
  if (low == null || high == null) return "";
  const [from, to] = [show(low), show(high)];
  return from.endsWith("%") ? `${from.slice(0, -1)}–${to}` : `${from} – ${to}`;
};
const distinct = (values) => [...new Set(values)];
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const many = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Sort rows into lists by a key. */
function groupBy(list, key) {
  const groups = new Map();
  for (const one of list) {
    const group = groups.get(key(one));
    if (group) group.push(one);
    else groups.set(key(one), [one]);
  }
  return groups;
}

/** Fill a select with [value, text] pairs; one that offers no choice is not shown. */
function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
  if (chosen !== undefined) select.value = chosen;
  select.closest("label").hidden = pairs.length < 2;
}

/** A list of names and values. */
const factList = (facts) => make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

// --- CSV ----------------------------------------------------------------------------------------------------------

/** A cell of a CSV file; one that a spreadsheet would take for a formula gets an apostrophe before it. */
function csvCell(value) {
  if (value == null) return "";
  if (typeof value === "number") return String(value);
  const text = String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

function csvText(list) {
  const names = distinct(list.flatMap((row) => Object.keys(row)));
  return [names, ...list.map((row) => names.map((name) => row[name]))].map((line) => line.map(csvCell).join(",")).join("\r\n");
}

function download(name, list) {
  const url = URL.createObjectURL(new Blob(["\ufeff", csvText(list), "\r\n"], { type: "text/csv" }));
  make("a", { href: url, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// --- tables -------------------------------------------------------------------------------------------------------

/**
 * Put a table into a box: complete, sorted by its headings, searched where it is long, downloaded as CSV.
 * Columns: [heading, how to show a row (text or node), is it a number?, what to sort by (if not what is shown)].
 */
function table(box, name, list, columns) {
  const kind = (number) => (number ? "number" : "");
  const head = make("tr", {}, ...columns.map(([title, , number]) => make("th", { scope: "col", class: kind(number) }, title)));
  const grid = make("table", {}, make("thead", {}, head), make("tbody"));
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": name.replaceAll("-", " ") };
  const button = make("button", { type: "button", class: "csv" }, `Download as CSV (${many(list.length, "row")})`);
  button.addEventListener("click", () => download(name, list));
  box.replaceChildren(make("div", region, grid), button);
  const text = (cell) => (cell instanceof Node ? cell.textContent : String(cell));
  makeSortable(grid, list, {
    line: (row) => make("tr", {}, ...columns.map(([, show, number]) => make("td", { class: kind(number) }, show(row)))),
    keys: columns.map(([, show, number, key]) => key || ((row) => (number ? asNumber(text(show(row))) : text(show(row))))),
    words: (row) => columns.map(([, show]) => text(show(row))).join(" "),
  });
}
