// --- items --------------------------------------------------------------------------------------------------------

const texts = new Map(rows(D.texts).map((r) => [r.item, r]));
const votesOf = groupBy(rows(D.item_votes), (r) => r.row);
const reasonsOf = groupBy(rows(D.reasons), (r) => r.row);
const pushOf = new Map(rows(D.pushes).map((r) => [[r.question, r.part, r.annotator, r.voted, r.class].join("\n"), r]));
const items = rows(D.items).map((r, row) => ({ ...r, row, yes: r.p >= 0.5, two: questionOf.get(r.question).positive != null,
  found: `${r.item} ${texts.get(r.item)?.text || ""}`.toLowerCase() }));
const PAGE = 25;
const state = { list: [], page: 0, open: null, sort: null };

/** Whether nobody voted for the consensus label; a single yes that the prior outweighs does not count. */
function nobodyVotedFor(r) {
  if (!r.two) return r.n_votes > 1 && r.n_positive === 0;
  return r.yes ? r.n_votes > 0 && r.n_positive === 0 : r.n_votes > 1 && r.n_positive === r.n_votes;
}

const SHOW = {
  all: ["all items", () => true],
  ...(onlySeveral ? {} : { any: ["one yes and the consensus differ", (r) => r.two && r.n_votes > 0 && (r.n_positive >= 1) !== r.yes] }),
  majority: [onlySeveral ? "fewer than half of the votes are for the consensus" : "majority and consensus differ",
    (r) => r.n_votes > 0 && (2 * r.n_positive >= r.n_votes) !== (r.yes || !r.two)],
  ...(onlySeveral ? {} : { twovote: ["two yes and the consensus differ", (r) => r.two && r.n_votes > 0 && (r.n_positive >= 2) !== r.yes] }),
  unvoted: ["nobody voted for the consensus", nobodyVotedFor],
  split: ["votes differ", (r) => r.n_positive > 0 && r.n_positive < r.n_votes],
};
// Name in the menu, what to sort by, direction.
const SORT = {
  entropy: ["most uncertain first (entropy)", (r) => r.entropy, -1],
  ...Object.fromEntries(D.parts.map((one) => [one.column, [`most uncertain first: ${one.name}`, (r) => r[one.column] ?? 0, -1]])),
  high: ["p, high first", (r) => r.p, -1], low: ["p, low first", (r) => r.p, 1], votes: ["votes, most first", (r) => r.n_votes, -1],
};
const COLUMNS = [
  ["item", (r) => r.item], ["question", (r) => r.question], ...(D.domains.length ? [["domain", (r) => r.domain]] : []),
  ...(texts.size ? [["text", (r) => texts.get(r.item)?.text]] : []),
  [onlySeveral ? "votes for the consensus" : several ? "votes for yes, or the consensus" : "votes for yes", (r) => share(r.n_positive, r.n_votes), 1],
  [onlySeveral ? "p of the consensus" : "p", (r) => r.p], ["entropy", (r) => r.entropy, 1], ["consensus", (r) => r.label],
];

/** A bar from 0 to 1 with the interval and p on it. */
function chanceBar(r) {
  const bar = make("span", { class: "chance", "aria-hidden": "true" }), span = make("i"), mark = make("b");
  if (r.p_low != null) Object.assign(span.style, { left: `${100 * r.p_low}%`, width: `${100 * (r.p_high - r.p_low)}%` });
  mark.style.left = `${100 * r.p}%`;
  bar.append(span, mark);
  return make("span", { class: "nowrap" }, bar, r.p.toFixed(2));
}

const BEFORE = "before any vote (the prior)";
const whoVoted = (vote) => (D.anonymous ? `a vote for ${vote.label}` : `${vote.annotator} voted ${vote.label}`);

/** Steps of an item's log-odds: the prior, then every vote. With more than two labels, of its label against the runner-up. */
function steps(r) {
  const labels = questionOf.get(r.question).labels;
  const given = votesOf.get(r.row) || [];
  if (D.model === "mixed") {
    const list = [{ name: BEFORE, push: r.prior }, ...given.map((v) => ({ name: whoVoted(v), push: v.push }))];
    return { own: r.two ? questionOf.get(r.question).positive : r.label, rival: r.rival, list, p: r.p_map };
  }
  const push = (annotator, voted, label) => pushOf.get([r.question, r.part, annotator, voted, label].join("\n"));
  const known = (label) => push(null, null, label) !== undefined;
  const score = (label) => (known(label) ? [push(null, null, label), ...given.map((v) => push(v.annotator, v.label, label))] : null);
  const scores = new Map(labels.map((label) => [label, score(label)]));
  if (![...scores.values()].some(Boolean) || [...scores.values()].some((list) => list?.includes(undefined))) return null;
  const total = (label) => (scores.get(label) || []).reduce((sum, one) => sum + one.push, 0);
  const own = r.two ? questionOf.get(r.question).positive : r.label;
  const rival = labels.filter((label) => label !== own).sort((a, b) => total(b) - total(a))[0];
  const norm = labels.reduce((sum, label) => sum + Math.exp(total(label) - total(own)), 0);
  const part = (label, at) => (scores.get(label) || [])[at]?.push ?? 0;
  const list = ["prior", ...given].map((vote, at) => {
    const base = scores.get(own)?.[at];
    return { name: vote === "prior" ? BEFORE : whoVoted(vote), push: part(own, at) - part(rival, at),
      low: r.two ? base?.low : null, high: r.two ? base?.high : null };
  });
  return { own, rival, list, p: 1 / norm };
}

function waterfall(r) {
  const found = steps(r);
  if (!found) return make("p", { class: "muted" }, "The run folder does not say what each vote adds; audit again to see it.");
  let sum = 0;
  const drawnSteps = found.list.map((step) => ({ ...step, from: sum, to: (sum += step.push) }));
  const most = Math.max(1, ...drawnSteps.flatMap((step) => [Math.abs(step.from), Math.abs(step.to)]));
  const place = (value) => 50 + (48 * value) / most;
  const bar = (from, to, kind) => {
    const mark = make("i", { class: kind });
    Object.assign(mark.style, { left: `${place(Math.min(from, to))}%`, width: `${(48 * Math.abs(to - from)) / most}%` });
    return make("div", { class: "track", "aria-hidden": "true" }, mark);
  };
  const signed = (value) => `${value > -0.005 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
  const number = (text) => make("td", { class: "number" }, text);
  const bounds = (step) => (step.low == null ? "" : `${signed(step.low)} to ${signed(step.high)}`);
  const known = drawnSteps.some((step) => step.low != null);
  const line = (name, step, kind) => make("tr", {}, make("td", {}, name), number(signed(step.push)),
    ...(known ? [number(bounds(step))] : []), number(signed(step.to)), make("td", {}, bar(step.from, step.to, kind)));
  const lines = drawnSteps.map((step) => line(step.name, step, step.push >= 0 ? "plus" : "minus"));
  lines.push(line("together", { push: sum, from: 0, to: sum }, "sum"));
  const heads = [["", 0], ["adds, nats", 1], ...(known ? [["interval", 1]] : []), ["so far", 1], [`${found.rival} ← → ${found.own}`, 0]];
  const head = make("tr", {}, ...heads.map(([text, figure]) => make("th", { scope: "col", class: figure ? "number" : "" }, text)));
  const facts = { class: "waterfall", "data-p": found.p, "data-p-map": r.p_map, "data-sum": sum };
  return make("div", {}, make("div", { class: "scroll" }, make("table", facts, make("thead", {}, head), make("tbody", {}, ...lines))),
    make("p", {}, `Together ${signed(sum)} nats for ${found.own}: ${inWords(r, found.p)}`));
}

function inWords(r, p) {
  const off = Math.abs(p - r.p_map) > 0.002 ? ` The run says ${r.p_map.toFixed(3)}: a known label was used as evidence.` : "";
  const bounds = r.p_low == null ? "" : ` (${r.p_low.toFixed(3)} – ${r.p_high.toFixed(3)})`;
  if (D.model !== "mixed") return `p = ${p.toFixed(3)} at the mode.${off} Averaged over the draws, p = ${r.p.toFixed(3)}${bounds}.`;
  return `p = ${r.p_map.toFixed(3)} at the mode, ${r.p_model.toFixed(3)} over the draws. Published, pooled with the share of the votes: ` +
    `p = ${r.p.toFixed(3)}${bounds}. What a vote adds depends on those before it, as the item may lie between labels.`;
}

function detail(r) {
  const text = texts.get(r.item);
  const box = make("div", { class: "card detail" });
  if (text) {
    box.append(make("p", { class: "text", tabindex: 0, dir: "auto" }, text.text));
    const note = `Cut at ${whole(D.text_cut)} of ${whole(text.length)} characters.`;
    if (text.length > D.text_cut) box.append(make("p", { class: "muted" }, note));
  }
  const split = D.parts.map((one) => r[one.column] == null ? null : `${r[one.column].toFixed(3)} ${one.name}`);
  const parts = split.includes(null) ? "" : ` = ${split.join(" + ")}`;
  box.append(make("p", {}, `Consensus: ${r.label}. Entropy ${r.entropy.toFixed(3)} nats${parts}.`));
  const reasons = reasonsOf.get(r.row) || [];
  const reasonLines = reasons.map((one) => make("li", {}, `${one.ranking}, rank ${one.rank}: ${one.reason}`));
  if (reasons.length) box.append(make("ul", {}, ...reasonLines));
  box.append(make("h3", {}, "Why p is what it is"), waterfall(r));
  return box;
}

function itemRows(r) {
  const button = make("button", { type: "button", class: "open", "aria-expanded": String(state.open === r.row) }, r.item);
  button.addEventListener("click", () => { state.open = state.open === r.row ? null : r.row; showItems(); });
  const text = texts.get(r.item)?.text || "";
  const short = text.length > 140 ? `${text.slice(0, 140)}…` : text;
  const line = make("tr", { class: state.open === r.row ? "chosen" : "", "data-row": r.row },
    make("td", {}, button), make("td", {}, r.question), ...(D.domains.length ? [make("td", {}, r.domain ?? "–")] : []),
    ...(texts.size ? [make("td", { class: "words", dir: "auto" }, short)] : []),
    make("td", { class: "number" }, `${r.n_positive} of ${r.n_votes}`), make("td", {}, chanceBar(r)),
    make("td", { class: "number" }, r.entropy.toFixed(3)), make("td", {}, r.label));
  return state.open === r.row ? [line, make("tr", {}, make("td", { colspan: COLUMNS.length }, detail(r)))] : [line];
}

/** A heading that sorts; sorting by the menu marks no column. */
function itemHead([title, , number], column) {
  const button = make("button", { type: "button", class: "sort", title: "Sort by this column" }, title);
  button.addEventListener("click", () => {
    const again = state.sort?.column === column;
    state.sort = { column, direction: again ? -state.sort.direction : 1 };
    filterItems();
    $("table-items").querySelectorAll(".sort")[column].focus();
  });
  const sorted = state.sort?.column === column ? { "aria-sort": state.sort.direction > 0 ? "ascending" : "descending" } : {};
  return make("th", { scope: "col", class: number ? "number" : "", "data-title": title, ...sorted }, button);
}

function showItems() {
  const head = make("tr", {}, ...COLUMNS.map(itemHead));
  const first = PAGE * state.page, page = state.list.slice(first, first + PAGE);
  $("table-items").replaceChildren(make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "items" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...page.flatMap(itemRows)))));
  const among = state.list.length < items.length ? ` (of ${whole(items.length)})` : "";
  $("items-count").textContent = state.list.length
    ? `${whole(first + 1)} to ${whole(first + page.length)} of ${many(state.list.length, "row")}${among}` : `No rows${among}`;
  $("page").textContent = `page ${whole(state.page + 1)} of ${whole(Math.max(1, Math.ceil(state.list.length / PAGE)))}`;
  $("before").disabled = state.page === 0;
  $("after").disabled = first + PAGE >= state.list.length;
}

function filterItems() {
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const question = $("item-question").value, domain = $("item-domain").value || ALL;
  const [kind, ...rest] = $("item-show").value.split(":"), ranking = rest.join(":");
  const ranked = (r) => (reasonsOf.get(r.row) || []).some((one) => one.ranking === ranking);
  const wanted = kind === "ranking" ? ranked : SHOW[kind][1];
  const least = (Number($("item-entropy").value) / 100) * Math.log(Math.max(...D.questions.map((q) => q.labels.length)));
  $("item-entropy-said").textContent = least.toFixed(2);
  const kept = items.filter((r) => (question === ALL || r.question === question) && (domain === ALL || r.domain === domain)
    && r.entropy >= least - 1e-9 && wanted(r) && words.every((word) => r.found.includes(word)));
  const [, menuKey, menuDirection] = SORT[$("item-sort").value];
  const key = state.sort ? COLUMNS[state.sort.column][1] : menuKey, direction = state.sort?.direction ?? menuDirection;
  state.list = kept.map((r) => [key(r), r]).sort((a, b) => compareKeys(a[0], b[0], direction) || a[1].row - b[1].row).map(([, r]) => r);
  Object.assign(state, { page: 0, open: null });
  showItems();
}

const plainItems = () => state.list.map(({ row, yes, two, found, ...r }) => ({ ...r, text: texts.get(r.item)?.text }));
const plainVotes = () => state.list.flatMap((r) => (votesOf.get(r.row) || [])
  .map(({ annotator, label }) => ({ question: r.question, item: r.item, annotator, label })));

function startItems() {
  $("items-note").textContent = items.length < D.items_total
    ? `${whole(items.length)} of ${whole(D.items_total)} rows (one per item and question) are in this page: outliers, the most uncertain, `
      + "those on which votes and consensus differ, and a sample of the rest. All are in items.parquet."
    : `All ${whole(D.items_total)} items of the run${D.questions.length > 1 ? ", one row per item and question" : ""}.`;
  const rankings = distinct(rows(D.reasons).map((r) => r.ranking));
  const names = D.questions.map((q) => [q.name, q.name]);
  options($("item-question"), names.length > 1 ? [[ALL, "all"], ...names] : names);
  options($("item-domain"), [[ALL, "all"], ...distinct(items.map((r) => r.domain)).filter((d) => d != null).map((d) => [d, d])]);
  const named = Object.entries(SHOW).map(([key, [name]]) => [key, name]);
  options($("item-show"), [...named, ...rankings.map((name) => [`ranking:${name}`, `outliers by ${name}`])]);
  options($("item-sort"), Object.entries(SORT).map(([key, [name]]) => [key, name]));
  $("item-sort").addEventListener("change", () => { state.sort = null; });
  for (const id of ["item-question", "item-domain", "item-show", "item-sort"]) $(id).addEventListener("change", filterItems);
  for (const id of ["find", "item-entropy"]) $(id).addEventListener("input", filterItems);
  const turn = (by) => () => { state.page += by; state.open = null; showItems(); };
  $("before").addEventListener("click", turn(-1));
  $("after").addEventListener("click", turn(1));
  $("items-csv").addEventListener("click", () => download("items", plainItems()));
  $("votes-csv").addEventListener("click", () => download("votes", plainVotes()));
  table($("table-switching"), "switching", rows(D.switching), [
    ["question", (r) => r.question], ["annotator", (r) => r.annotator], ["with the majority", (r) => whole(r.with_majority), 1],
    ["against", (r) => whole(r.against_majority), 1],
    ["against, share", (r) => percent(r.against_majority / (r.with_majority + r.against_majority)), 1],
  ]);
  table($("table-words"), "words", rows(D.words), [
    ["question", (r) => r.question], ["word", (r) => r.word], ["z-score", (r) => fixed(r.score, 1), 1], ["why", (r) => r.reason],
  ]);
  $("words").open = rows(D.words).length <= ROWS_TO_SEARCH;
  filterItems();
}

