// The report's page: reads the JSON in #data, fills the lists of items and annotators, sorts tables.
// What comes from the data becomes text nodes only; nothing of it is ever parsed as HTML or run.
const D = JSON.parse(document.getElementById("data").textContent);
const ALL = "(all)", PAGE = 10, ROWS = 100, ROWS_ON_PAPER = 1000;
const $ = (id) => document.getElementById(id);

/** Unpack a table of columns into rows. */
function rows(table) {
  const names = Object.keys(table);
  const columns = names.map((name) => (Array.isArray(table[name]) ? table[name] : table[name].at.map((at) => table[name].of[at])));
  return (columns[0] || []).map((_, i) => Object.fromEntries(names.map((name, j) => [name, columns[j][i]])));
}

/** Make an element with text or children; never with HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return element;
}

const percent = (value) => (value == null ? "–" : `${(100 * value).toFixed(0)}%`);
const count = (value) => Math.round(value).toLocaleString("en");
const many = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
const signed = (value) => `${value > -0.005 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
const distinct = (values) => [...new Set(values)];

function groupBy(list, key) {
  const groups = new Map();
  for (const row of list) groups.set(key(row), [...(groups.get(key(row)) || []), row]);
  return groups;
}

/** Fill a select with [value, text] pairs; a select that offers no choice is not shown. */
function options(select, pairs) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
  select.closest("label").hidden = pairs.length < 2;
}

// --- CSV ----------------------------------------------------------------------------------------------------------

/** A cell of a CSV file; text that a spreadsheet would take for a formula gets an apostrophe before it. */
function csvCell(value) {
  if (value == null) return "";
  if (typeof value === "number") return String(value);
  return `"${(/^[\s;]*[=+\-@]|^[\t\r\n]/.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
}

function download(name, list) {
  const names = distinct(list.flatMap((row) => Object.keys(row)));
  const lines = [names, ...list.map((row) => names.map((column) => row[column]))].map((line) => line.map(csvCell).join(","));
  const url = URL.createObjectURL(new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" }));
  make("a", { href: url, download: `${name}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// --- tables that are sorted by their headings ----------------------------------------------------------------------

const collator = new Intl.Collator("en", { numeric: true });

/** The number that a cell begins with, as in "1,200", "12.5% (11.0–14.0)" or "−0.3"; its text without one. */
function sortKey(text) {
  const number = /^[+\-−]?[\d,]*\.?\d+(e[+-]?\d+)?/i.exec(text.trim());
  return number ? Number(number[0].replaceAll(",", "").replace("−", "-")) : text;
}

function compare(a, b) {
  if (a == null || b == null) return (a == null) - (b == null);
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(a, b);
}

function makeSortable(grid) {
  const body = grid.tBodies[0], heads = [...grid.tHead.rows[0].cells];
  if (body.rows.length < 2) return;
  heads.forEach((head, at) => {
    const button = make("button", { type: "button", class: "sort", title: "Sort by this column" }, head.textContent);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      const keyed = [...body.rows].map((row) => [sortKey(row.cells[at].textContent), row]);
      body.append(...keyed.sort((a, b) => direction * compare(a[0], b[0])).map(([, row]) => row));
    });
    head.replaceChildren(button);
  });
}

function grid(heads, lines) {
  const cell = (child, at) => make("td", { "data-title": heads[at], class: /^[\d,]+$/.test(child) ? "number" : "" }, child);
  return make("table", { class: "grid" }, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...lines.map((line) => make("tr", {}, ...line.map(cell)))));
}

// --- items --------------------------------------------------------------------------------------------------------

const questionOf = new Map(D.questions.map((question) => [question.name, question]));
const texts = new Map(rows(D.texts).map((row) => [row.item, row]));
const votesOf = groupBy(rows(D.item_votes), (row) => row.row);
const reasonsOf = groupBy(rows(D.reasons), (row) => row.row);
const items = rows(D.items).map((item, row) => ({ ...item, row, yes: item.p >= 0.5, two: questionOf.get(item.question).positive != null,
  words: `${item.item} ${texts.get(item.item)?.text || ""}`.toLowerCase() }));
const state = { list: items, page: 0, open: null };

/** Whether nobody voted for the consensus label; a single yes that the prior outweighs does not count. */
function nobodyVotedFor(item) {
  if (!item.two) return item.n_votes > 1 && item.n_positive === 0;
  return item.yes ? item.n_votes > 0 && item.n_positive === 0 : item.n_votes > 1 && item.n_positive === item.n_votes;
}

const SHOW = {
  all: ["all items", () => true],
  majority: ["majority and consensus differ", (item) => item.n_votes > 0 && (2 * item.n_positive >= item.n_votes) !== (item.yes || !item.two)],
  unvoted: ["nobody voted for the consensus", nobodyVotedFor],
  split: ["votes differ", (item) => item.n_positive > 0 && item.n_positive < item.n_votes],
};
const SORT = {
  entropy: ["most uncertain first", (item) => -item.entropy],
  ...Object.fromEntries(D.parts.map(([column, name]) => [column, [`most uncertain first: ${name}`, (item) => -(item[column] ?? 0)]])),
  high: ["p, high first", (item) => -item.p], low: ["p, low first", (item) => item.p], votes: ["votes, most first", (item) => -item.n_votes],
};

/** A bar from 0 to 1 with an interval and a dot on it. */
function track(value, low, high) {
  const bar = make("span", { class: "track", "aria-hidden": "true" }), span = make("i"), mark = make("b");
  if (low != null) Object.assign(span.style, { left: `${100 * low}%`, width: `${100 * (high - low)}%` });
  mark.style.left = `${100 * value}%`;
  bar.append(span, mark);
  return bar;
}

/** What the prior and every vote add to the log-odds, and their sum. */
function waterfall(item) {
  const voted = (vote) => (D.anonymous ? `a vote for ${vote.label}` : `${vote.annotator} voted ${vote.label}`);
  const steps = [["before any vote (the prior)", item.prior], ...(votesOf.get(item.row) || []).map((vote) => [voted(vote), vote.contribution])];
  let sum = 0;
  const list = steps.map(([name, contribution]) => ({ name, contribution, from: sum, to: (sum += contribution) }));
  const reach = Math.max(1, ...list.flatMap((step) => [Math.abs(step.from), Math.abs(step.to)]));
  const line = (name, contribution, from, to, kind) => {
    const mark = make("i", { class: kind });
    Object.assign(mark.style, { left: `${50 + (48 * Math.min(from, to)) / reach}%`, width: `${(48 * Math.abs(to - from)) / reach}%` });
    return make("li", {}, make("span", { class: "who" }, name), make("span", { class: "contribution" }, signed(contribution)), make("span", { class: "fall", "aria-hidden": "true" }, mark));
  };
  const lines = list.map((step) => line(step.name, step.contribution, step.from, step.to, step.contribution >= 0 ? "plus" : "minus"));
  lines.push(line("together", sum, 0, sum, "sum"));
  const p = 1 / (1 + Math.exp(-sum));
  return make("div", {}, make("p", { class: "muted" }, `What each vote adds, in nats: to the left for ${item.alternative}, to the right for ${item.favoured}.`),
    make("ul", { class: "waterfall", "data-p": p, "data-sum": sum }, ...lines), make("p", {}, inWords(item)));
}

function inWords(item) {
  const bounds = item.p_low == null ? "" : ` (${item.p_low.toFixed(2)} – ${item.p_high.toFixed(2)})`;
  if (item.p_votes != null && item.p_text != null) {
    return `By the votes alone p = ${item.p_votes.toFixed(3)}, by the text alone ${item.p_text.toFixed(3)}; published, both together: ${item.p.toFixed(3)}${bounds}.`;
  }
  if (!D.is_mixed) return `p = ${item.p_map.toFixed(3)} at the mode; averaged over the draws ${item.p.toFixed(3)}${bounds}.`;
  return `p = ${item.p_map.toFixed(3)} at the mode, ${item.p_model.toFixed(3)} over the draws; published, pooled with the share of the votes: `
    + `${item.p.toFixed(3)}${bounds}. What a vote adds depends on those before it, as the item may lie between labels.`;
}

function detail(item) {
  const text = texts.get(item.item), box = make("div", { class: "detail" });
  if (text) {
    box.append(make("p", { class: "text", dir: "auto" }, text.text));
    if (text.length > D.text_cut) box.append(make("p", { class: "muted" }, `Cut at ${count(D.text_cut)} of ${count(text.length)} characters.`));
  }
  const parts = D.parts.map(([column, name]) => (item[column] == null ? null : `${item[column].toFixed(3)} ${name}`));
  const split = parts.includes(null) ? "" : ` = ${parts.join(" + ")}`;
  box.append(make("p", {}, `Consensus: ${item.label}. Entropy ${item.entropy.toFixed(3)} nats${split}.`));
  const reasons = (reasonsOf.get(item.row) || []).map((row) => make("li", {}, `${row.ranking}, rank ${row.rank}: ${row.reason}`));
  if (reasons.length) box.append(make("ul", {}, ...reasons));
  box.append(waterfall(item));
  return box;
}

function itemCard(item) {
  const isOpen = state.open === item.row, text = texts.get(item.item)?.text || "";
  const names = [item.item, ...(D.questions.length > 1 ? [item.question] : []), ...(item.domain == null ? [] : [item.domain])];
  const button = make("button", { type: "button", class: "open", "aria-expanded": String(isOpen) },
    make("span", { class: "names" }, names.join(" · ")),
    ...(text && !isOpen ? [make("span", { class: "words", dir: "auto" }, text.length > 160 ? `${text.slice(0, 160)}…` : text)] : []),
    make("span", { class: "figures" }, make("b", {}, item.label),
      make("span", {}, item.two ? `${item.n_positive} of ${item.n_votes} say ${questionOf.get(item.question).positive}` : `${item.n_positive} of ${item.n_votes} votes for it`),
      make("span", { class: "chance" }, track(item.p, item.p_low, item.p_high), `p ${item.p.toFixed(2)}`)));
  button.addEventListener("click", () => { state.open = isOpen ? null : item.row; showItems(); document.querySelector(`[data-row="${item.row}"] .open`).focus(); });
  return make("li", { "data-row": item.row, class: isOpen ? "chosen" : "" }, button, ...(isOpen ? [detail(item)] : []));
}

function showItems() {
  const first = PAGE * state.page, page = state.list.slice(first, first + PAGE), pages = Math.max(1, Math.ceil(state.list.length / PAGE));
  $("item-list").replaceChildren(...page.map(itemCard));
  const among = state.list.length < items.length ? ` (of ${count(items.length)})` : "";
  $("items-count").textContent = state.list.length
    ? `${count(first + 1)} to ${count(first + page.length)} of ${many(state.list.length, "row")}${among}` : `No rows${among}`;
  $("page").textContent = `page ${count(state.page + 1)} of ${count(pages)}`;
  $("before").disabled = state.page === 0;
  $("after").disabled = state.page >= pages - 1;
}

function filterItems() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const question = $("item-question").value, domain = $("item-domain").value || ALL;
  const [kind, ...rest] = $("item-show").value.split(":"), ranking = rest.join(":");
  const isShown = kind === "ranking" ? (item) => (reasonsOf.get(item.row) || []).some((row) => row.ranking === ranking) : SHOW[kind][1];
  const key = SORT[$("item-sort").value][1];
  state.list = items.filter((item) => (question === ALL || item.question === question) && (domain === ALL || item.domain === domain)
    && isShown(item) && words.every((word) => item.words.includes(word)))
    .map((item) => [key(item), item]).sort((a, b) => a[0] - b[0] || a[1].row - b[1].row).map(([, item]) => item);
  Object.assign(state, { page: 0, open: null });
  showItems();
}

function startItems() {
  $("items-note").textContent = items.length < D.items_total
    ? `${count(items.length)} of ${count(D.items_total)} rows (one per item and question) are in this page: outliers, the most uncertain, `
      + "those on which votes and consensus differ, and a sample of the rest. All are in items.parquet."
    : `All ${count(D.items_total)} items of the run${D.questions.length > 1 ? ", one row per item and question" : ""}.`;
  const pairs = (names) => [[ALL, "all"], ...names.map((name) => [name, name])];
  options($("item-question"), D.questions.length > 1 ? pairs(D.questions.map((question) => question.name)) : [[ALL, "all"]]);
  options($("item-domain"), pairs(distinct(items.map((item) => item.domain)).filter((domain) => domain != null)));
  const rankings = distinct(rows(D.reasons).map((row) => row.ranking));
  options($("item-show"), [...Object.entries(SHOW).map(([key, [name]]) => [key, name]), ...rankings.map((name) => [`ranking:${name}`, `outliers by ${name}`])]);
  options($("item-sort"), Object.entries(SORT).map(([key, [name]]) => [key, name]));
  for (const id of ["item-question", "item-domain", "item-show", "item-sort"]) $(id).addEventListener("change", filterItems);
  $("find").addEventListener("input", filterItems);
  const turn = (by) => () => { state.page += by; state.open = null; showItems(); };
  $("before").addEventListener("click", turn(-1));
  $("after").addEventListener("click", turn(1));
  const plain = ({ row, yes, two, words, ...item }) => ({ ...item, text: texts.get(item.item)?.text });
  $("items-csv").addEventListener("click", () => download("items", state.list.map(plain)));
  $("votes-csv").addEventListener("click", () => download("votes", state.list.flatMap((item) => (votesOf.get(item.row) || [])
    .map(({ annotator, label }) => ({ question: item.question, item: item.item, annotator, label })))));
  const words = rows(D.words);
  $("words").hidden = !words.length;
  $("word-table").replaceChildren(grid(["question", "word", "why"], words.map((row) => [row.question, row.word, row.reason])));
  filterItems();
}

// --- annotators ---------------------------------------------------------------------------------------------------

const people = rows(D.people);
const confusion = groupBy(rows(D.confusion), (row) => JSON.stringify([row.question, row.part, row.annotator]));

/** What an annotator says where each label is true: the labels said most. */
function confusionOf(person) {
  const question = questionOf.get(person.question) || { labels: [], positive: null };
  const cells = confusion.get(JSON.stringify([person.question, person.part, person.annotator]))
    || (question.positive == null || person.specificity == null ? [] : question.labels.flatMap((label) => question.labels.map((voted) => {
      const right = label === question.positive ? person.sensitivity : person.specificity;
      return { true: label, voted, probability: label === voted ? right : 1 - right };
    })));
  const said = (label) => cells.filter((cell) => cell.true === label).sort((a, b) => b.probability - a.probability).slice(0, 4)
    .map((cell) => `${cell.voted} ${percent(cell.probability)}`).join(", ");
  return distinct(cells.map((cell) => cell.true)).map((label) => make("li", {}, `Where the label is ${label}, says ${said(label)}`));
}

function right(person, name) {
  if (person[name] == null) return "–";
  return make("span", { class: "chance" }, track(person[name], person[`${name}_low`], person[`${name}_high`]), percent(person[name]));
}

function personCell(person) {
  const lines = confusionOf(person);
  if (!lines.length || D.anonymous) return person.sentence;
  return make("details", {}, make("summary", {}, person.sentence), make("ul", {}, ...lines));
}

function showPeople(all = false) {
  const question = $("people-question").value, words = $("people-find").value.toLowerCase();
  const list = people.filter((row) => row.question === question && (row.annotator || "").toLowerCase().includes(words));
  const shown = list.slice(0, all ? ROWS_ON_PAPER : state.people), two = shown.some((row) => row.specificity != null);
  const columns = [
    ...(D.anonymous ? [] : [["annotator", (row) => row.annotator]]),
    ...(shown.some((row) => row.part) ? [["part", (row) => row.part]] : []), ["votes", (row) => count(row.n_votes)],
    ...(question === ALL ? [] : [[two ? "sees a yes" : "right label", (row) => right(row, "sensitivity")]]), ...(two ? [["sees a no", (row) => right(row, "specificity")]] : []), ["in a sentence", personCell],
  ];
  const made = grid(columns.map(([head]) => head), shown.map((row) => columns.map(([, show]) => show(row))));
  const more = make("button", { type: "button", class: "next" }, `Show more (${count(list.length - shown.length)})`);
  more.addEventListener("click", () => { state.people += ROWS; showPeople(); });
  $("people").replaceChildren(made, ...(list.length > shown.length ? [more] : []));
  makeSortable(made);
}

function startPeople() {
  const names = distinct(people.map((row) => row.question));
  options($("people-question"), names.map((name) => [name, name === ALL ? "all" : name]));
  $("people-find").closest("label").hidden = people.length < 20;
  const again = () => { state.people = ROWS / 4; showPeople(); };
  $("people-question").addEventListener("change", again);
  $("people-find").addEventListener("input", again);
  again();
}

// --- theme, paper, start ------------------------------------------------------------------------------------------

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").querySelector("span").textContent = dark ? "Light" : "Dark";
}

const system = window.matchMedia("(prefers-color-scheme: dark)");
setTheme(system.matches);
system.addEventListener("change", () => setTheme(system.matches));
$("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme !== "dark"));

// On paper every issue is open, and every annotator is there.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll(".issues details:not([open])")];
  for (const each of opened) each.open = true;
  showPeople(true);
});
window.addEventListener("afterprint", () => { for (const each of opened) each.open = false; showPeople(); });

for (const each of document.querySelectorAll("table.grid")) makeSortable(each);
startItems();
startPeople();
document.documentElement.dataset.ready = "yes";
