// The report's page: reads the JSON in #data, fills controls and tables, draws charts.
// What comes from the data becomes text nodes only; nothing of it is ever parsed as HTML or run.
const D = JSON.parse(document.getElementById("data").textContent);
const ALL = "(all)";
const PAGE = 25;
const MOST_ELLIPSES = 80;
const RATE_NAMES = {
  fpr: "false positive rate", fnr: "false negative rate", fdr: "false discovery rate", for: "false omission rate",
  disagreement: "disagreement",
};
const $ = (id) => document.getElementById(id);

// --- small things -------------------------------------------------------------------------------------------------

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
const range = (low, high, show) => (low == null || high == null ? "" : `${show(low)} – ${show(high)}`);
const distinct = (values) => [...new Set(values)];

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

/** Fill a select with [value, text] pairs. */
function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
  if (chosen !== undefined) select.value = chosen;
}

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

/** Put a table into a box. Columns: [heading, how to show a row (text or node), is it a number?]. */
function table(box, name, list, columns, most = 200) {
  const kind = (number) => (number ? "number" : "");
  const head = make("tr", {}, ...columns.map(([title, , number]) => make("th", { scope: "col", class: kind(number) }, title)));
  const body = list.slice(0, most).map((row) =>
    make("tr", {}, ...columns.map(([, show, number]) => make("td", { class: kind(number) }, show(row)))));
  const button = make("button", { type: "button", class: "csv" }, `Download as CSV (${whole(list.length)} rows)`);
  button.addEventListener("click", () => download(name, list));
  const cut = list.length > most;
  const note = cut ? make("p", { class: "muted" }, `The first ${most} of ${whole(list.length)} rows; the CSV has all.`) : "";
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": name.replaceAll("-", " ") };
  box.replaceChildren(make("div", region, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))), note, button);
}

const rateColumns = [
  ["question", (r) => r.target], ["domain", (r) => r.domain], ["rule", (r) => r.rule], ["against", (r) => r.reference],
  ["figure", (r) => RATE_NAMES[r.metric]], ["value", (r) => percent(r.value), 1], ["interval", (r) => range(r.low, r.high, percent), 1],
  ["of items", (r) => whole(r.n), 1],
];

// --- charts -------------------------------------------------------------------------------------------------------

const drawn = new Map();
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function chartConfig(width) {
  const ink = colour("--ink"), muted = colour("--muted"), grid = colour("--grid");
  const words = { labelColor: ink, titleColor: muted, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400 };
  return {
    background: null, font: 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif', view: { stroke: grid },
    axis: { ...words, gridColor: grid, domainColor: grid, tickColor: grid, labelLimit: 150 },
    legend: { ...words, labelLimit: 240, columns: Math.max(1, Math.floor(width / 170)) },
    header: { labelColor: ink, labelFontSize: 13, labelFontWeight: 600, labelAnchor: "start" },
  };
}

/** Fit a chart to the width it has: panels go below each other where there is little. */
function fitted(spec, width) {
  const wanted = spec.usermeta?.columns || 1;
  const panels = spec.facet ? Math.max(1, Math.min(wanted, Math.floor(width / 300))) : 1;
  const inner = spec.spec || spec;
  if (spec.facet) spec.columns = panels;
  // Names of rules and domains stand left of the first panel only; the menu stands on the right.
  inner.width = Math.max(150, Math.floor((width - (spec.facet ? 150 : 100)) / panels) - (spec.facet ? 22 : 0));
  if (!spec.facet && wanted === 2) inner.width = inner.height = Math.max(220, Math.min(440, width - 80));
  return spec;
}

async function draw(name, tables, place = name) {
  drawn.set(place, [name, tables]);
  const box = $(`chart-${place}`), width = box.clientWidth || 640;
  const spec = fitted(structuredClone(D.charts[name]), width);
  spec.datasets = tables;
  const actions = { export: true, source: false, compiled: false, editor: false };
  // ast: expressions are interpreted, not compiled, so the page needs no eval.
  const how = { ast: true, renderer: "svg", config: chartConfig(width), actions, downloadFileName: name };
  return (await window.vegaEmbed(box, spec, how)).view;
}

function redraw() {
  for (const [place, [name, tables]] of drawn) if (place !== "annotators") draw(name, tables, place);
  drawPeople();
}

// --- rules --------------------------------------------------------------------------------------------------------

const audit = rows(D.audit);
const targets = D.targets.map((target) => target.name);
const several = D.questions.some((question) => question.positive == null);
const hard = D.rules.filter((rule) => !["share", "smoothed-share"].includes(rule.rule)).map((rule) => rule.rule);
const named = (row) => ({ ...row, metric: RATE_NAMES[row.metric] });

function drawRules() {
  const reference = $("reference").value, pair = $("pair").value.split(",");
  const order = reference === "gold" ? [...hard, "consensus"] : hard;
  const kept = audit.filter((r) => r.reference === reference && r.value != null && targets.includes(r.target) && order.includes(r.rule));
  const sorted = order.flatMap((rule) => kept.filter((r) => r.rule === rule));
  draw("rules", { rules: sorted.filter((r) => r.domain === ALL && pair.includes(r.metric)).map(named) });
  if (D.domains.length) {
    const chosen = sorted.filter((r) => r.domain !== ALL && r.rule === $("rule").value && pair.includes(r.metric));
    draw("by_domain", { by_domain: chosen.map(named) });
  }
  const shown = sorted.filter((r) => r.metric === $("metric").value && (D.domains.length ? r.domain !== ALL : r.domain === ALL));
  draw("heat", { heat: shown.map(named) });
}

function startRules() {
  const references = distinct(audit.map((r) => r.reference));
  options($("reference"), references.map((r) => [r, r === "gold" ? "gold labels" : "the Bayesian consensus"]));
  options($("rule"), hard.map((r) => [r, r]), D.main_rule);
  options($("metric"), Object.entries(RATE_NAMES), "fdr");
  for (const id of ["reference", "pair", "rule", "metric"]) $(id).addEventListener("change", drawRules);
  table($("table-rates"), "rates", audit, rateColumns);
  table($("table-meanings"), "rules", D.rules, [["rule", (r) => r.rule], ["says yes when", (r) => r.meaning]]);
  drawRules();
}

// --- try a rule ---------------------------------------------------------------------------------------------------

const cells = rows(D.cells);
const TRY_NOTES = {
  fpr: "of the consensus' no, called yes", fnr: "of the consensus' yes, missed", fdr: "of this rule's yes, consensus no",
  for: "of this rule's no, consensus yes",
};
const upTo = (most) => [...Array(most).keys()].map((k) => k + 1);
const share = (part, all) => (all > 0 ? part / all : null);

/** Rates of a threshold over some cells; whole numbers throughout, so that 2 of 3 is two thirds. */
function ratesOf(some, kind, at) {
  let fp = 0, tn = 0, fn = 0, tp = 0;
  for (const cell of some) {
    const says = kind === "votes" ? cell.positive >= at : cell.positive * 100 >= at * cell.votes;
    if (says) { fp += cell.no; tp += cell.yes; } else { tn += cell.no; fn += cell.yes; }
  }
  return { fpr: share(fp, fp + tn), fnr: share(fn, fn + tp), fdr: share(fp, fp + tp), for: share(fn, fn + tn),
    disagreement: share(fp + fn, fp + tn + fn + tp), flagged: fp + tp, items: fp + tn + fn + tp };
}

const cellsOf = (target, domain) => cells.filter((cell) => (
  (target === ALL || cell.target === target) && (domain === ALL || cell.domain === domain)));

function tryRule() {
  const target = $("try-target").value, domain = $("try-domain").value || ALL, kind = $("try-kind").value;
  const some = cellsOf(target, domain), at = Number($("try-at").value);
  $("try-said").textContent = kind === "votes" ? `${at} positive vote${at === 1 ? "" : "s"}` : `${at}% of the votes`;
  const rates = ratesOf(some, kind, at);
  $("try-figures").replaceChildren(...Object.entries(TRY_NOTES).map(([metric, note]) => make("div", {},
    make("dt", { class: "name" }, RATE_NAMES[metric]),
    make("dd", {}, make("strong", { id: `try-${metric}`, "data-value": rates[metric] ?? "" }, percent(rates[metric]))),
    make("dd", { class: "note" }, note))));
  const steps = kind === "votes" ? upTo(Number($("try-at").max)) : upTo(20).map((k) => 5 * k);
  const curve = steps.flatMap((step) => {
    const there = ratesOf(some, kind, step);
    return ["fpr", "fnr", "fdr"].map((metric) => ({ threshold: step, metric: RATE_NAMES[metric], value: there[metric] }));
  });
  draw("explorer", { explorer: curve.filter((point) => point.value != null), chosen: [{ threshold: at }] });
  const byTarget = distinct(cells.map((cell) => cell.target)).map((name) => (
    { target: name, domain, kind, at, ...ratesOf(cellsOf(name, domain), kind, at) }));
  table($("table-try"), "rule-by-question", byTarget, [
    ["question", (r) => r.target],
    ...Object.keys(RATE_NAMES).map((metric) => [RATE_NAMES[metric], (r) => percent(r[metric]), 1]),
    ["says yes to", (r) => whole(r.flagged), 1], ["of items", (r) => whole(r.items), 1],
  ]);
}

function startTry() {
  const names = distinct(cells.map((cell) => cell.target));
  options($("try-target"), [[ALL, "all, pooled"], ...names.map((name) => [name, name])]);
  options($("try-domain"), [[ALL, "all, pooled"], ...distinct(cells.map((cell) => cell.domain)).filter((d) => d !== ALL).map((d) => [d, d])]);
  const most = Math.max(1, Math.min(30, cells.reduce((top, cell) => Math.max(top, cell.positive), 1)));
  const kind = () => {
    const votes = $("try-kind").value === "votes";
    Object.assign($("try-at"), { min: votes ? 1 : 5, max: votes ? most : 100, step: 1, value: votes ? 1 : 50 });
    tryRule();
  };
  $("try-kind").addEventListener("change", kind);
  for (const id of ["try-target", "try-domain"]) $(id).addEventListener("change", tryRule);
  $("try-at").addEventListener("input", tryRule);
  kind();
}

// --- entropy and reliability --------------------------------------------------------------------------------------

function startEntropy() {
  const list = rows(D.entropy), labels = Math.max(...D.questions.map((q) => q.labels.length));
  $("most").textContent = Math.log(2).toFixed(3) + (labels > 2 ? ` (${Math.log(labels).toFixed(3)} with ${labels} labels)` : "");
  // Without draws all that is known is the total.
  const parts = (r) => (r.doubt_votes == null ? [["not split", r.total]] : D.parts.map((one) => [one.name, r[one.column]]));
  $("entropy-parts").append(...D.parts.map((one) => make("li", {}, make("b", {}, one.name), `: ${one.cure}`)));
  $("entropy-note").textContent = D.parts_note;
  draw("entropy", { entropy: list.flatMap((r) => parts(r).map(([part, nats], at) => (
    { question: r.question, domain: r.domain, n: r.n_items, part, at, nats, share: share(nats, r.total) }))) });
  const figures = [
    ["total, nats", (r) => fixed(r.total), 1], ...D.parts.map((one) => [one.name, (r) => fixed(r[one.column], 4), 1]),
  ];
  table($("table-entropy"), "entropy", list, [
    ["question", (r) => r.question], ["domain", (r) => r.domain], ["items", (r) => whole(r.n_items), 1], ...figures,
  ]);
  const byVotes = rows(D.by_votes);
  draw("by_votes", { by_votes: byVotes.filter((r) => r.votes > 0) });
  table($("table-by_votes"), "entropy-by-votes", byVotes,
    [["question", (r) => r.question], ["votes", (r) => r.votes, 1], ["items", (r) => whole(r.n), 1], ...figures]);
  const bins = rows(D.reliability);
  if (!bins.length) return;
  draw("reliability", { reliability: bins });
  table($("table-reliability"), "reliability", bins, [
    ["question", (r) => r.target], ["p", (r) => fixed(r.p), 1], ["positive in gold", (r) => fixed(r.gold), 1],
    ["interval", (r) => range(r.low, r.high, fixed), 1], ["items", (r) => whole(r.n), 1],
  ]);
}

// --- annotators ---------------------------------------------------------------------------------------------------

const people = rows(D.people).map((r) => (
  { ...r, role: r.role || "ordinary", false_positive: r.specificity == null ? null : 1 - r.specificity }));
const confusion = groupBy(rows(D.confusion), (r) => `${r.question}\n${r.part}\n${r.annotator}`);

/** An ellipse whose half axes are half the intervals: sensitivity and specificity are nearly independent. */
function ellipse(r) {
  const rx = (r.specificity_high - r.specificity_low) / 2, ry = (r.sensitivity_high - r.sensitivity_low) / 2;
  const x = 1 - (r.specificity_high + r.specificity_low) / 2, y = (r.sensitivity_high + r.sensitivity_low) / 2;
  return [...Array(33).keys()].map((at) => ({ annotator: `${r.part}\n${r.annotator}`, role: r.role, at,
    x: x + rx * Math.cos((at * Math.PI) / 16), y: y + ry * Math.sin((at * Math.PI) / 16) }));
}

function confusionMatrix(r) {
  const list = confusion.get(`${r.question}\n${r.part}\n${r.annotator}`) || [];
  const labels = distinct(list.map((cell) => cell.true));
  const cellOf = (k, v) => {
    const cell = list.find((c) => c.true === k && c.voted === v);
    const bounds = range(cell?.low, cell?.high, (x) => percent(x, 0));
    return make("td", { class: "number" }, percent(cell?.probability), make("br"), make("small", { class: "muted" }, bounds));
  };
  const head = make("tr", {}, make("th", {}, "true ↓  voted →"), ...labels.map((v) => make("th", { class: "number" }, v)));
  const body = labels.map((k) => make("tr", {}, make("th", { scope: "row" }, k), ...labels.map((v) => cellOf(k, v))));
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)));
}

/** A list of names and values. */
const factList = (facts) => make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

function showPerson(r) {
  const facts = [
    ["role", r.role], ["votes", whole(r.n_votes)], ["differs from the others", percent(r.disagreement_others)],
    ["differs from the majority, own vote included", percent(r.disagreement)],
    ["Youden index", `${fixed(r.youden, 2)}  ${range(r.youden_low, r.youden_high, (x) => fixed(x, 2))}`],
    ["chance of being worse than chance", percent(r.below_chance)],
  ];
  const title = `${r.annotator} on ${r.question}${r.part ? ` (${r.part})` : ""}`;
  $("person").replaceChildren(make("h3", {}, title), factList(facts), confusionMatrix(r));
}

async function drawPeople() {
  const list = people.filter((r) => r.question === $("people-question").value);
  if (!list.length) return;
  const two = list.some((r) => r.specificity != null);
  const round = two && list.length <= MOST_ELLIPSES ? list.filter((r) => r.specificity_low != null) : [];
  const tables = { people: list.filter((r) => r.sensitivity != null), ellipses: round.flatMap(ellipse) };
  const view = await draw(two ? "annotators" : "annotators_many", tables, "annotators");
  // Points of an ellipse know no votes; only the dots stand for annotators.
  view.addEventListener("click", (_event, item) => { if (item?.datum?.n_votes !== undefined) showPerson(item.datum); });
}

function showPeople() {
  const list = people.filter((r) => r.question === $("people-question").value);
  const opener = (r) => {
    const button = make("button", { type: "button", class: "open" }, r.annotator);
    button.addEventListener("click", () => showPerson(r));
    return button;
  };
  table($("table-people"), "annotators", list, [
    ["annotator", opener], ...(list.some((r) => r.part) ? [["part", (r) => r.part]] : []), ["votes", (r) => whole(r.n_votes), 1],
    ["sensitivity", (r) => percent(r.sensitivity), 1], ["", (r) => range(r.sensitivity_low, r.sensitivity_high, percent), 1],
    ["specificity", (r) => percent(r.specificity), 1], ["", (r) => range(r.specificity_low, r.specificity_high, percent), 1],
    ["Youden", (r) => fixed(r.youden, 2), 1], ["differs from others", (r) => percent(r.disagreement_others), 1], ["role", (r) => r.role],
  ], 300);
  drawPeople();
}

function startPeople() {
  options($("people-question"), distinct(people.map((r) => r.question)).map((q) => [q, q]));
  $("people-question").addEventListener("change", showPeople);
  const shown = distinct(people.map((r) => r.annotator)).length;
  if (shown < D.people_total) $("people-note").textContent = `The ${whole(shown)} annotators with most votes, of ${whole(D.people_total)}.`;
  table($("table-agreement"), "agreement", rows(D.agreement), [
    ["question", (r) => r.question], ["domain", (r) => r.domain], ["statistic", (r) => r.statistic.replaceAll("_", " ")],
    ["value", (r) => fixed(r.value), 1], ["interval", (r) => range(r.low, r.high, fixed), 1],
    ["items with two votes or more", (r) => whole(r.n), 1],
  ]);
  if (people.length) showPeople();
}

// --- items --------------------------------------------------------------------------------------------------------

const texts = new Map(rows(D.texts).map((r) => [r.item, r]));
const votesOf = groupBy(rows(D.item_votes), (r) => r.row);
const reasonsOf = groupBy(rows(D.reasons), (r) => r.row);
const pushOf = new Map(rows(D.pushes).map((r) => [[r.question, r.part, r.annotator, r.voted, r.class].join("\n"), r]));
const questionOf = new Map(D.questions.map((question) => [question.name, question]));
const items = rows(D.items).map((r, row) => ({ ...r, row, yes: r.p >= 0.5, two: questionOf.get(r.question).positive != null,
  found: `${r.item} ${texts.get(r.item)?.text || ""}`.toLowerCase() }));
const state = { list: [], page: 0, open: null };

/** Whether nobody voted for the consensus label; a single yes that the prior outweighs does not count. */
function overruled(r) {
  if (!r.two) return r.n_votes > 1 && r.n_positive === 0;
  return r.yes ? r.n_votes > 0 && r.n_positive === 0 : r.n_votes > 1 && r.n_positive === r.n_votes;
}

const SHOW = {
  all: ["all items", () => true],
  any: ["any rule and consensus differ", (r) => r.two && r.n_votes > 0 && (r.n_positive >= 1) !== r.yes],
  majority: ["majority and consensus differ", (r) => r.n_votes > 0 && (2 * r.n_positive >= r.n_votes) !== (r.yes || !r.two)],
  twovote: ["two-vote rule and consensus differ", (r) => r.two && r.n_votes > 0 && (r.n_positive >= 2) !== r.yes],
  overruled: ["votes overruled: nobody voted for the consensus", overruled],
  split: ["votes split", (r) => r.n_positive > 0 && r.n_positive < r.n_votes],
};
const SORT = {
  entropy: ["entropy", (r) => -r.entropy],
  ...Object.fromEntries(D.parts.map((one) => [one.column, [`entropy: ${one.name}`, (r) => -(r[one.column] ?? 0)]])),
  high: ["p, high first", (r) => -r.p], low: ["p, low first", (r) => r.p], votes: ["votes, most first", (r) => -r.n_votes],
};

/** A bar from 0 to 1 with the interval and p on it. */
function chanceBar(r) {
  const bar = make("span", { class: "chance", "aria-hidden": "true" }), span = make("i"), mark = make("b");
  if (r.p_low != null) Object.assign(span.style, { left: `${100 * r.p_low}%`, width: `${100 * (r.p_high - r.p_low)}%` });
  mark.style.left = `${100 * r.p}%`;
  bar.append(span, mark);
  return make("span", { class: "nowrap" }, bar, r.p.toFixed(2));
}

/** Steps of an item's log-odds: the prior, then every vote. With more than two labels, of its label against the runner-up. */
function steps(r) {
  const labels = questionOf.get(r.question).labels;
  const given = votesOf.get(r.row) || [];
  if (D.model === "mixed") {
    const list = [{ name: "prior", push: r.prior }, ...given.map((v) => ({ name: `${v.annotator} voted ${v.label}`, push: v.push }))];
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
    return { name: vote === "prior" ? "prior" : `${vote.annotator} voted ${vote.label}`, push: part(own, at) - part(rival, at),
      low: r.two ? base?.low : null, high: r.two ? base?.high : null };
  });
  return { own, rival, list, p: 1 / norm };
}

function waterfall(r) {
  const found = steps(r);
  if (!found) return make("p", { class: "muted" }, "The run folder does not say how each vote pushes; audit again to see it.");
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
  const line = (name, step, kind) => make("tr", {}, make("td", {}, name), number(signed(step.push)), number(bounds(step)),
    number(signed(step.to)), make("td", {}, bar(step.from, step.to, kind)));
  const lines = drawnSteps.map((step) => line(step.name, step, step.push >= 0 ? "plus" : "minus"));
  lines.push(line("together", { push: sum, from: 0, to: sum }, "sum"));
  const heads = ["", "push, nats", "interval", "so far", `${found.rival} ← → ${found.own}`];
  const head = make("tr", {}, ...heads.map((text, at) => make("th", { scope: "col", class: at > 0 && at < 4 ? "number" : "" }, text)));
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

function itemRows(r, columns) {
  const button = make("button", { type: "button", class: "open", "aria-expanded": String(state.open === r.row) }, r.item);
  button.addEventListener("click", () => { state.open = state.open === r.row ? null : r.row; showItems(); });
  const text = texts.get(r.item)?.text || "";
  const short = text.length > 140 ? `${text.slice(0, 140)}…` : text;
  const line = make("tr", { class: state.open === r.row ? "chosen" : "", "data-row": r.row },
    make("td", {}, button), make("td", {}, r.question), ...(D.domains.length ? [make("td", {}, r.domain ?? "–")] : []),
    ...(texts.size ? [make("td", { class: "words", dir: "auto" }, short)] : []),
    make("td", { class: "number" }, `${r.n_positive} of ${r.n_votes}`), make("td", {}, chanceBar(r)),
    make("td", { class: "number" }, r.entropy.toFixed(3)), make("td", {}, r.label));
  return state.open === r.row ? [line, make("tr", {}, make("td", { colspan: columns }, detail(r)))] : [line];
}

function showItems() {
  const heads = ["item", "question", ...(D.domains.length ? ["domain"] : []), ...(texts.size ? ["text"] : []),
    several ? "votes for it" : "positive votes", "p", "entropy", "consensus"];
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const page = state.list.slice(PAGE * state.page, PAGE * (state.page + 1)).flatMap((r) => itemRows(r, heads.length));
  $("table-items").replaceChildren(make("div", { class: "scroll" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...page))));
  $("items-count").textContent = `${whole(state.list.length)} of ${whole(items.length)} rows`;
  $("page").textContent = `page ${state.page + 1} of ${Math.max(1, Math.ceil(state.list.length / PAGE))}`;
  $("before").disabled = state.page === 0;
  $("after").disabled = PAGE * (state.page + 1) >= state.list.length;
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
  const key = SORT[$("item-sort").value][1];
  state.list = kept.map((r) => [key(r), r]).sort((a, b) => a[0] - b[0] || a[1].row - b[1].row).map(([, r]) => r);
  Object.assign(state, { page: 0, open: null });
  showItems();
}

const plainItems = () => state.list.map(({ row, yes, two, found, ...r }) => ({ ...r, text: texts.get(r.item)?.text }));
const plainVotes = () => state.list.flatMap((r) => (votesOf.get(r.row) || [])
  .map(({ annotator, label }) => ({ question: r.question, item: r.item, annotator, label })));

function startItems() {
  $("items-note").textContent = items.length < D.items_total
    ? `${whole(items.length)} of ${whole(D.items_total)} items × questions are in this page: outliers, the most doubtful, `
      + "those on which votes and consensus differ, and a sample of the rest. All are in items.parquet."
    : `All ${whole(D.items_total)} items × questions of the run.`;
  const rankings = distinct(rows(D.reasons).map((r) => r.ranking));
  options($("item-question"), [[ALL, "all"], ...D.questions.map((q) => [q.name, q.name])]);
  options($("item-domain"), [[ALL, "all"], ...distinct(items.map((r) => r.domain)).filter((d) => d != null).map((d) => [d, d])]);
  const named = Object.entries(SHOW).map(([key, [name]]) => [key, name]);
  options($("item-show"), [...named, ...rankings.map((name) => [`ranking:${name}`, `outliers by ${name}`])]);
  options($("item-sort"), Object.entries(SORT).map(([key, [name]]) => [key, name]));
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
  filterItems();
}

// --- method, theme, start -----------------------------------------------------------------------------------------

function startMethod() {
  const m = D.method, said = (value) => (value && typeof value === "object" ? JSON.stringify(value) : String(value ?? "–"));
  const column = ([role, name]) => `${role} = ${name}${m.guessed.includes(role) ? " (guessed)" : ""}`;
  const left = Object.entries(m.dropped).map(([why, n]) => `${why} ${whole(n)}`).join(", ");
  $("method-facts").replaceChildren(factList([
    ["version", m.version], ["command", m.command || "called from Python"], ["input", m.input.source],
    ["SHA-256 of the input", m.input.sha256 || "a dataframe"], ["columns", Object.entries(m.columns).map(column).join(", ")],
    ["read", `${whole(m.rows)} rows, ${whole(m.votes)} votes by ${whole(m.annotators)} annotators on ${whole(m.items)} items`],
    ["left out", left || "nothing"], ["remarks", m.notes.join(" ") || "none"], ["priors", said(m.priors)], ["solver", m.solver],
    ["draws", `${whole(m.draws)}, seed ${m.seed}, coordinates ${m.coordinates}`], ["intervals", percent(m.interval, 0)],
    ["fitted by", m.fit_by || "all together"], ["gold as evidence", m.use_gold ? "yes" : "no"],
    ["converged", m.converged ? "yes, all fits" : "NO"], ["libraries", said(m.versions)],
  ]));
  table($("table-fits"), "fits", m.fits.map((fit) => ({ ...fit, prevalence: said(fit.prevalence) })), [
    ["question", (r) => r.question], ["part", (r) => r.part], ["positive", (r) => r.positive ?? "–"], ["items", (r) => whole(r.items), 1],
    ["annotators", (r) => whole(r.annotators), 1], ["votes", (r) => whole(r.votes), 1], ["log posterior", (r) => fixed(r.log_posterior, 2), 1],
    ["gradient left", (r) => r.gradient_norm?.toExponential(1) ?? "–", 1], ["passes", (r) => whole(r.passes), 1],
    ["converged", (r) => (r.converged ? "yes" : "NO")], ["prevalence", (r) => r.prevalence],
  ]);
}

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").querySelector("span").textContent = dark ? "Light" : "Dark";
}

function startTheme() {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(system.matches);
  system.addEventListener("change", () => { setTheme(system.matches); redraw(); });
  $("theme").addEventListener("click", () => { setTheme(document.documentElement.dataset.theme !== "dark"); redraw(); });
  let before = null;
  window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; setTheme(false); });
  window.addEventListener("afterprint", () => setTheme(before === "dark"));
  let waiting, width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 200);
  });
}

function hideWhatIsMissing() {
  const any = (table) => rows(table).length;
  const has = { domains: D.domains.length, reliability: any(D.reliability), agreement: any(D.agreement), words: any(D.words),
    switching: any(D.switching) };
  for (const element of document.querySelectorAll("[data-with]")) element.hidden = !has[element.dataset.with];
  for (const element of document.querySelectorAll("[data-without]")) element.hidden = Boolean(has[element.dataset.without]);
}

startTheme();
hideWhatIsMissing();
for (const start of [startRules, startTry, startEntropy, startPeople, startItems, startMethod]) start();
document.documentElement.dataset.ready = "yes";
