// The pages of `moral-entropy serve`: each asks its own address with .json for data and shows it.
// What comes from the data becomes text nodes only; nothing of it is ever parsed as HTML or run.
const view = document.body.dataset.view, box = document.getElementById("view");
let keys = {}, busy = false, steps = 0;

/** Make an element with text or children; never with HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child != null) element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return element;
}

const count = (value) => Math.round(value).toLocaleString("en");
const many = (value, noun) => `${count(value)} ${noun}${Math.round(value) === 1 ? "" : "s"}`;
const percent = (value) => (value == null ? "–" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)}%`);
const signed = (value) => `${value > -0.005 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;
const link = (path, query, ...children) => make("a", { href: address(path, query) }, ...children);

function address(path, query = {}) {
  const words = Object.entries(query).filter(([, value]) => value != null && value !== "");
  return words.length ? `${path}?${new URLSearchParams(words)}` : path;
}

function say(text, bad = false) {
  const line = document.getElementById("said");
  line.textContent = text;
  line.className = bad ? "bad" : "";
}

async function ask(path, body) {
  let answer;
  try {
    answer = await fetch(path, body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer; what it has confirmed is kept. Start it again, open its new address, and repeat the last step.");
  }
  const text = await answer.text();
  let data;
  try { data = JSON.parse(text); } catch { data = { error: text }; }
  if (!answer.ok) throw new Error(data.error || `The server answers ${answer.status}.`);
  return data;
}

/** Do one thing at a time, and say what went wrong. */
async function once(act) {
  if (busy) return;
  busy = true;
  try { await act(); } catch (error) { say(error.message, true); } finally { busy = false; }
}

function grid(table, cell = (text) => text) {
  const heads = table.heads.map((head, at) => make("th", { scope: "col", class: at >= table.words ? "number" : null }, head));
  const rows = table.rows.map((row) => make("tr", {}, row.map((text, at) => make("td", { "data-title": table.heads[at], class: at >= table.words ? "number" : null }, cell(text, at, row)))));
  return make("table", { class: "grid" }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows));
}

const select = (title, pairs, value, change) => make("label", { hidden: pairs.length < 2 }, title,
  make("select", { change: (event) => change(event.target.value) }, pairs.map(([key, text]) => make("option", { value: key, selected: key === (value ?? "") }, text))));

/** Open the same page with other words in its address. */
function go(changes) {
  const query = Object.fromEntries(new URLSearchParams(location.search));
  location.search = new URLSearchParams(Object.entries({ ...query, ...changes }).filter(([, value]) => value !== "" && value != null)).toString();
}

// --- one item ------------------------------------------------------------------------------------------------------

// Each name is isolated: one that runs from right to left turns no other around.
const bdi = (text) => make("bdi", {}, text);
const names = (item) => [item.question, item.item, item.domain].filter((name) => name != null).flatMap((name, at) => [at ? " · " : "", bdi(name)]);
const words = (item) => make("div", { class: "text", dir: "auto", tabindex: "0" }, item.text ?? "(no text: the run was made without texts)");

function choice(key, text, act, chosen = false) {
  return make("button", { type: "button", class: chosen ? "chosen" : null, click: () => once(act) }, key ? make("kbd", {}, key) : null, make("span", {}, text));
}

/** What the prior and every vote add to the log-odds, and their sum. */
function waterfall(explained) {
  const steps = explained.steps.map((step) => [step.annotator == null ? "before any vote (the prior)" : [bdi(step.annotator), " voted ", bdi(step.voted)], step.contribution, step.total - step.contribution, step.total]);
  const sum = explained.steps.at(-1).total, reach = Math.max(1, ...steps.flatMap((step) => [Math.abs(step[2]), Math.abs(step[3])]));
  const line = (name, contribution, from, to, kind) => {
    const mark = make("i", { class: kind });
    Object.assign(mark.style, { left: `${50 + (48 * Math.min(from, to)) / reach}%`, width: `${(48 * Math.abs(to - from)) / reach}%` });
    return make("li", {}, make("span", {}, name), make("span", { class: "contribution" }, signed(contribution)), make("span", { class: "fall", "aria-hidden": "true" }, mark));
  };
  const bounds = explained.p_low == null ? "" : ` (${explained.p_low.toFixed(2)}–${explained.p_high.toFixed(2)})`;
  return make("div", {}, make("p", { class: "muted" }, `What each vote adds, in nats: to the left for ${explained.against}, to the right for ${explained.towards}.`),
    make("ul", { class: "waterfall" }, steps.map((step) => line(...step, step[1] >= 0 ? "plus" : "minus")), line("together", sum, 0, sum, "sum")),
    make("p", {}, "Consensus: ", make("b", {}, explained.label), `; p of ${explained.towards} is ${explained.p.toFixed(2)}${bounds}.`));
}

function changes(changed) {
  const alike = changed.was === changed.now;
  const list = (title, people) => (people.length ? make("li", {}, `${title}: `, people.slice(0, 12).flatMap((name, at) => [at ? ", " : "", bdi(name)]), people.length > 12 ? ` and ${count(people.length - 12)} more` : null) : null);
  return make("section", { class: "result", id: "result" },
    make("p", {}, "Decided: ", make("b", {}, changed.now), alike ? ", as the consensus had it." : ["; the consensus said ", make("b", {}, changed.was), "."]),
    make("ul", {}, list("Votes borne out", changed.right), list("Votes overruled", changed.wrong),
      make("li", {}, `The label was wrong with probability ${changed.risk.toFixed(2)}; of the labels left, ${changed.expected_wrong.toFixed(1)} are expected wrong.`),
      make("li", {}, `The consensus was right on ${changed.consensus_right} of ${many(changed.settled, "settled item")}.`)),
    waterfall(changed.explanation));
}

// --- check and settle ------------------------------------------------------------------------------------------------

async function undo() {
  const { undone } = await ask("/undo", {});
  if (!undone) return say("There is nothing to undo.");
  const page = undone.kind === "check" ? "/check" : "/settle";
  if (undone.kind !== "skip" && page !== location.pathname) { location.href = address(page, { question: undone.question, item: undone.item }); return; }
  await show({ question: undone.question, item: undone.item });
  say("Undone.");
}

function caseFrame(data, children) {
  const done = data.progress.done, all = done + data.progress.left;
  return make("section", { class: "case" }, make("progress", { max: Math.max(all, 1), value: done, "aria-label": "progress" }),
    make("p", { class: "muted", id: "progress" }, data.kind === "check" ? `${count(done)} of ${count(data.progress.rows)} checked` : `${count(done)} settled; ${count(data.progress.left)} offered; ${data.progress.expected_wrong.toFixed(1)} labels expected wrong`),
    children);
}

const minor = (...buttons) => make("div", { class: "choices minor" }, buttons, choice("z", "undo", undo));

function showCheck(data) {
  if (!data.item) {
    keys = { z: undo };
    const more = () => ask("/more-checks", {}).then(() => show());
    return caseFrame(data, [verdictBox(data.verdict), make("div", { class: "choices" }, choice("", "Check 50 more", more)), minor(),
      make("p", {}, "Next: ", link("/settle", {}, "settle conflicts"), " or ", link("/moved", {}, "make a new run"), " that learns from your answers.")]);
  }
  const { item } = data, showing = crypto.randomUUID();
  const decide = (kind, label) => async () => {
    await ask("/decide", { id: `${showing}:${kind}:${item.labels.indexOf(label)}`, kind, question: item.question, item: item.item, label });
    say("");
    await show();
  };
  keys = { u: decide("check", null), s: decide("skip", null), z: undo };
  item.labels.slice(0, 9).forEach((label, at) => { keys[at + 1] = decide("check", label); });
  return caseFrame(data, [make("p", { class: "names" }, names(item)), words(item),
    make("div", { class: "choices", id: "labels" }, item.labels.map((label, at) => choice(at < 9 ? String(at + 1) : "", label, decide("check", label)))),
    minor(choice("u", "unsure", keys.u), choice("s", "skip", keys.s)), make("p", { class: "muted" }, "Votes and the consensus are hidden, so that your answer is your own.")]);
}

function showSettle(data) {
  const controls = make("div", { class: "controls" },
    select("Order", Object.entries(data.orders), data.order, (order) => go({ order, item: "" })),
    select("Question", [["", "all"], ...data.questions.map((name) => [name, name])], data.question, (question) => go({ question, item: "" })));
  if (!data.item) {
    keys = { z: undo };
    return [controls, caseFrame(data, [make("p", { class: "lead" }, "Nothing is left to settle in this order."), minor(),
      make("p", {}, link("/bulk", {}, "Confirm sure items"), ", ", link("/moved", {}, "make a new run"), ", or see ", link("/confused", {}, "what was confused with what"), ".")])];
  }
  const { item } = data, showing = crypto.randomUUID(), state = { label: null };
  const note = make("textarea", { rows: "1", placeholder: "why (optional; w)", "aria-label": "why", maxlength: "2000" });
  const send = async (kind, label, cause) => {
    const body = { id: `${showing}:${kind}:${item.labels.indexOf(label)}:${cause?.[0]}`, kind, question: item.question, item: item.item, label, cause, why: note.value, final: data.final };
    const answer = await ask("/decide", body);
    say("");
    if (!answer.changed) return show();
    const next = () => show();
    keys = { Enter: next, n: next, z: undo };
    const after = make("div", { class: "choices" }, choice("Enter", "next", next), choice("z", "undo", undo));
    labels.replaceWith(changes(answer.changed), after);
    rest.remove();
    after.querySelector("button").focus();
    document.documentElement.dataset.ready = ++steps;
  };
  const labels = make("div", {}), rest = make("div", {});
  const draw = () => {
    const pick = (label) => async () => { state.label = label; draw(); };
    keys = { u: () => send("settle", null, "ambiguous"), s: () => send("skip", null, null), z: undo, w: async () => note.focus(), v: votes };
    item.labels.slice(0, 9).forEach((label, at) => { keys[at + 1] = pick(label); });
    const causes = data.causes.map((cause) => [cause === "annotator error" ? "e" : cause[0], cause]);
    if (state.label !== null) for (const [key, cause] of causes) keys[key] = () => send("settle", state.label, cause);
    labels.replaceChildren(make("div", { class: "choices", id: "labels" }, item.labels.map((label, at) => choice(at < 9 ? String(at + 1) : "", label, pick(label), label === state.label))),
      ...(state.label === null ? [] : [make("p", { class: "muted" }, "Why were votes not enough?"), make("div", { class: "choices", id: "causes" }, causes.map(([key, cause]) => choice(key, cause, keys[key])))]));
  };
  const votes = async () => {
    const { explanation } = await ask(address("/item.json", { question: item.question, item: item.item }));
    if (!rest.querySelector(".waterfall")) rest.append(waterfall(explanation));
  };
  rest.append(note, minor(choice("v", "show votes", votes), choice("u", "unsure", () => keys.u()), choice("s", "skip", () => keys.s())));
  draw();
  return [controls, caseFrame(data, [make("p", { class: "names" }, names(item)), item.own ? make("p", { class: "notice" }, "You voted on this item yourself.") : null,
    data.final ? make("p", { class: "notice" }, "People differ on this item: your decision settles it.") : null, words(item), labels, rest])];
}

function showBulk(data) {
  if (!data.items.length) return make("p", { class: "lead" }, "No item is left that is unanimous and sure.");
  const left = new Set(data.items.keys()), sum = make("p", { class: "lead", id: "expected" });
  const tell = () => { const wrong = [...left].reduce((total, at) => total + data.items[at].wrong, 0); sum.textContent = `${many(left.size, "label")}, of which ${wrong.toFixed(2)} are expected wrong if annotators err independently.`; };
  const confirm = async () => {
    const { confirmed } = await ask("/confirm", { items: [...left].map((at) => ({ question: data.items[at].question, item: data.items[at].item })) });
    await show();
    say(`${many(confirmed, "label")} confirmed.`);
  };
  keys = { c: confirm, z: undo };
  const row = (item, at) => {
    const tick = make("input", { type: "checkbox", checked: true, id: `pick-${at}`, change: () => { if (tick.checked) left.add(at); else left.delete(at); tell(); } });
    return make("li", {}, make("label", { class: "pick", for: `pick-${at}` }, tick, make("span", {}, make("b", {}, item.label), make("span", { class: "names" }, " ", names(item)),
      make("div", { class: "words", dir: "auto" }, item.text ?? ""))));
  };
  tell();
  return [make("p", {}, `Every vote agrees, and the consensus is at least ${percent(data.sure)} sure: ${many(data.left, "item")}. Read these, untick what looks wrong, confirm the rest.`), sum,
    make("div", { class: "choices" }, make("button", { type: "button", class: "lead-button", click: () => once(confirm) }, "Confirm (c)")),
    make("ul", { class: "items" }, data.items.map(row))];
}

// --- look ------------------------------------------------------------------------------------------------------------

function verdictBox(verdict) {
  return make("section", { class: `answer ${verdict.status}`, id: "answer" }, make("p", { class: "kicker" }, "Can I ship these labels?"), make("h2", {}, verdict.title), make("p", { class: "lead" }, verdict.text));
}

function showStart(data) {
  const door = (path, title, text) => make("a", { class: "door", href: path }, make("h2", {}, title), make("p", {}, text));
  const wrong = `${data.expected_wrong.toFixed(data.expected_wrong < 10 ? 1 : 0)} labels are expected wrong by p`;
  const people = Object.entries(data.people).map(([name, n]) => `${name} ${count(n)}`).join(", ");
  return [make("p", { class: "muted" }, `${data.title} · ${data.size}`), verdictBox(data.verdict),
    make("div", { class: "doors" }, door("/check", "Check", `${count(data.check.done)} of ${count(data.check.rows)} labels checked, blind. They measure how many labels are wrong.`),
      door("/settle", "Settle", `${many(data.settled, "item")} decided. ${wrong}; the likeliest come first.`),
      door("/items", "Look", "Items, annotators and rules, with search and facets.")),
    data.conflicts ? make("p", { class: "notice" }, `People differ on ${many(data.conflicts, "item")}: `, link("/decisions", {}, "settle them"), ".") : null,
    data.torn ? make("p", { class: "notice" }, `${many(data.torn, "line")} of the log could not be read and was passed over.`) : null,
    grid(data.questions), make("p", { class: "muted" }, people ? `Decisions: ${people}.` : "Nothing was decided yet. Decisions are kept in decisions.jsonl; the run itself never changes.")];
}

const listed = (item) => make("li", {}, make("a", { class: "open", href: address("/item", { question: item.question, item: item.item }) },
  make("span", { class: "names" }, names(item)), item.text ? make("span", { class: "words", dir: "auto" }, item.text) : null,
  make("span", { class: "figures" }, make("b", {}, item.label), make("span", {}, `${item.agree} of ${item.n_votes} votes for it`),
    make("span", { class: "chance" }, `wrong with probability ${item.wrong.toFixed(2)}`), item.decided ? make("span", {}, `decided: ${item.decided}`) : null)));

function showItems(data) {
  const { query } = data, find = make("input", { type: "search", value: query.q, "aria-label": "search" });
  const facet = (name, title) => select(title, [["", "all"], ...data.facets[name].map(([value, n]) => [value, `${value} (${count(n)})`])], query[name], (value) => go({ [name]: value, page: "" }));
  const turn = (by, text) => (data.page + by < 1 || data.page + by > data.pages ? null : make("a", { href: address("/items", { ...query, page: data.page + by }) }, text));
  keys = { "/": async () => find.focus() };
  return [make("form", { class: "controls", submit: (event) => { event.preventDefault(); go({ q: find.value, page: "" }); } }, make("label", { class: "wide" }, "Search ids and texts ( / )", find),
    facet("question", "Question"), facet("domain", "Domain"), facet("label", "Label"),
    select("Show", Object.entries(data.shows), query.show, (value) => go({ show: value, page: "" })), select("Order", Object.entries(data.sorts), query.sort, (value) => go({ sort: value, page: "" }))),
    query.a ? make("p", {}, `${query.a} and ${query.b} differ on these. `, make("button", { type: "button", click: () => go({ a: "", b: "", page: "" }) }, "Show all")) : null,
    make("p", { class: "muted", id: "items-count" }, `${many(data.total, "row")}; page ${count(data.page)} of ${count(data.pages)}`),
    make("ul", { class: "items", id: "item-list" }, data.items.map(listed)), make("p", { class: "pager" }, turn(-1, "← before"), turn(1, "next →"))];
}

function showItem(data) {
  const decision = (row) => make("li", {}, make("b", {}, row.label ?? (row.kind === "skip" ? "passed over" : "unsure")), ` by ${row.who}${row.cause ? `, ${row.cause}` : ""}${row.why ? `: ${row.why}` : ""}`);
  return make("section", { class: "case" }, make("p", { class: "names" }, names(data)), words(data), waterfall(data.explanation),
    data.decisions.length ? make("ul", {}, data.decisions.map(decision)) : null, make("p", {}, link("/settle", { question: data.question, item: data.item }, "Settle this item")));
}

function showAnnotators(data) {
  const cell = new Map(data.pairs.flatMap(([a, b, n, same]) => [[`${a}\n${b}`, [n, same]], [`${b}\n${a}`, [n, same]]]));
  const square = (a, b) => {
    const [n, same] = cell.get(`${a}\n${b}`) || [0, 0];
    if (a === b || !n) return make("td", {}, a === b ? "" : "·");
    const share = same / n, heat = share >= 0.9 ? 0 : share >= 0.75 ? 1 : share >= 0.6 ? 2 : 3;
    return make("td", { class: `heat-${heat}`, title: `${a} and ${b}: ${count(n)} items, agree on ${count(same)}` }, make("a", { href: address("/items", { question: data.question, a, b }) }, `${Math.round(100 * share)}`));
  };
  return [make("div", { class: "controls" }, select("Question", data.questions.map((name) => [name, name]), data.question, (question) => go({ question }))), grid(data.people),
    data.annotators.length > 1 ? [make("h2", {}, "Who agrees with whom"), make("p", { class: "muted" }, "Per cent of shared items on which two annotators gave the same label; a cell opens the items on which they differ."),
      make("div", { class: "scroll", tabindex: "0" }, make("table", { class: "matrix" }, make("thead", {}, make("tr", {}, make("th"), data.annotators.map((name) => make("th", { scope: "col", title: name }, name)))),
        make("tbody", {}, data.annotators.map((a) => make("tr", {}, make("th", { scope: "row", title: a }, a), data.annotators.map((b) => square(a, b)))))))] : null].flat();
}

const showRules = (data) => [data.advice ? make("p", { class: "lead" }, data.advice) : null, make("p", { class: "muted" }, `Against the ${data.reference}.`), grid(data.table),
  make("p", {}, link("/items", { show: "differs" }, many(data.n_differ, "item")), " on which most votes and the consensus differ."), grid(data.words)];

function showDecisions(data) {
  const settle = (rows) => make("li", {}, link("/settle", { question: rows[0].question, item: rows[0].item }, `${rows[0].question} · ${rows[0].item}`), ": ", rows.map((row) => `${row.who} says ${row.label ?? "unsure"}`).join("; "));
  const rows = data.decisions.map((row) => [row.time.slice(0, 19).replace("T", " "), row.who, row.kind, `${row.question} · ${row.item}`, row.label ?? "–", [row.cause, row.why].filter(Boolean).join(": ") || "–"]);
  const table = grid({ heads: ["when (UTC)", "who", "kind", "item", "label", "why"], rows, words: 6 });
  [...table.tBodies[0].rows].forEach((line, at) => { if (data.decisions[at].undone) line.className = "undone"; });
  return [data.conflicts.length ? [make("h2", {}, "People differ"), make("ul", { id: "conflicts" }, data.conflicts.map(settle))] : null,
    make("h2", {}, "Export"), make("p", {}, link("/export/gold.csv", {}, "gold file (CSV)"), data.tools.map((tool) => [" · ", link(`/export/${tool}.${/doccano|prodigy/.test(tool) ? "jsonl" : "json"}`, {}, tool)]).flat()),
    make("h2", {}, "Decisions"), make("p", { class: "muted" }, `${many(data.total, "line")} in the log; the last ones first.`), table].flat();
}

function showConfused(data) {
  const list = (counts) => Object.entries(counts).map(([name, n]) => `${name} ${n}`).join(", ");
  const example = (row, entry) => make("li", {}, link("/item", { question: row.question, item: entry.item }, entry.item), entry.text ? make("span", { dir: "auto" }, ` ${entry.text}`) : null, entry.why ? ` (${entry.why})` : null);
  return [make("p", { class: "lead" }, `The consensus was right on ${count(data.consensus_right)} of ${many(data.decided, "decided item")}.`), Object.keys(data.causes).length ? make("p", {}, `Causes: ${list(data.causes)}.`) : null,
    make("p", { class: "muted" }, "What annotators said where something else was decided; the pairs with most votes are those that a codebook should tell apart."),
    make("ul", { class: "cells" }, data.cells.map((row) => make("li", {}, make("b", {}, row.label), " said where it is ", make("b", {}, row.truth),
      `: ${many(row.votes, "vote")} on ${many(row.items, "item")} (${row.question})${Object.keys(row.causes).length ? `; ${list(row.causes)}` : ""}`, make("ul", {}, row.examples.map((entry) => example(row, entry))))))];
}

function showMoved(data) {
  const begin = async () => { await ask("/new-run", {}); await show(); };
  const button = make("button", { type: "button", class: "lead-button", disabled: data.status === "running" || !data.decided, click: () => once(begin) }, "Make a new run");
  const left = data.left_out ? ` ${many(data.left_out, "item")} on which people differ are left out.` : "";
  const parts = [make("p", {}, `A new run beside ${data.folder} takes your ${many(data.decided, "decision")} as known labels; the others learn from them.${left}`), make("div", { class: "choices" }, button)];
  if (data.status === "running") { parts.push(make("p", { id: "stage" }, `${data.stage} …`), make("progress", { max: 1, value: data.share })); setTimeout(() => show(), 700); }
  if (data.status === "failed") parts.push(make("p", { class: "notice" }, data.error));
  if (data.status === "done") {
    const rows = data.items.map((row) => [`${row.question} · ${row.item}`, row.label_a, row.label_b, row.p_a.toFixed(2), row.p_b.toFixed(2)]);
    parts.push(make("section", { class: "result", id: "moved" }, make("h2", {}, "What moved"), make("p", {}, "Written to ", make("b", {}, data.path), "."), make("ul", {},
      make("li", {}, `${many(data.labels_changed, "label")} changed, ${count(data.labels_changed_undecided)} of them on items that nobody decided.`),
      make("li", {}, `Labels expected wrong by p: ${percent(data.before)} before, ${percent(data.after)} after.`))),
    rows.length ? grid({ heads: ["item", "before", "after", "p before", "p after"], rows, words: 3 }) : make("p", {}, "No other item moved."));
    parts.push(make("p", {}, "See ", link("/confused", {}, "what was confused with what"), ", or look at the new run: ", make("code", {}, `moral-entropy serve ${data.path}`)));
  }
  return parts;
}

// --- start -----------------------------------------------------------------------------------------------------------

const VIEWS = { start: showStart, check: showCheck, settle: showSettle, bulk: showBulk, items: showItems, item: showItem, annotators: showAnnotators,
  rules: showRules, decisions: showDecisions, confused: showConfused, moved: showMoved };

function sitDown(name) {
  document.cookie = `moral_entropy_who=${encodeURIComponent(name)}; path=/; samesite=strict`;
  location.reload();
}

/** Ask for the data of this page and show it; `first` is the item to begin with. */
async function show(first) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(first ?? {})) query.set(name, value);
  // An item that the address names is shown once: then the next one is due.
  if (steps && !first && query.has("item") && view !== "item") {
    query.delete("item");
    query.delete("question");
    history.replaceState(null, "", address(location.pathname, Object.fromEntries(query)));
  }
  const data = await ask(address(`/${view}.json`, Object.fromEntries(query)));
  keys = {};
  if (data.names.length > 1) {
    const choose = document.querySelector("#who select");
    choose.replaceChildren(...[...(data.who ? [] : [""]), ...data.names].map((name) => make("option", { value: name, selected: name === data.who }, name)));
    choose.onchange = () => sitDown(choose.value);
    document.getElementById("who").hidden = false;
  }
  if (!data.who && (view === "check" || view === "settle")) {
    data.names.slice(0, 9).forEach((name, at) => { keys[at + 1] = async () => sitDown(name); });
    box.replaceChildren(make("h2", {}, "Who are you?"), make("div", { class: "choices" }, data.names.map((name, at) => choice(at < 9 ? String(at + 1) : "", name, async () => sitDown(name)))));
  } else box.replaceChildren(...[VIEWS[view](data)].flat().filter(Boolean));
  document.documentElement.dataset.ready = ++steps;
}

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey || (field && event.key !== "Escape")) return;
  if (field) { field.blur(); return; }
  const act = keys[event.key];
  if (!act || (event.key === "Enter" && event.target.closest("a, button"))) return;
  event.preventDefault();
  once(act);
});

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").setAttribute("aria-pressed", String(dark));
  document.querySelector("#theme span").textContent = dark ? "Light" : "Dark";
}

const system = window.matchMedia("(prefers-color-scheme: dark)");
setTheme((localStorage.getItem("theme") ?? (system.matches ? "dark" : "light")) === "dark");
document.getElementById("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme !== "dark";
  localStorage.setItem("theme", dark ? "dark" : "light");
  setTheme(dark);
});
document.querySelector(`nav a[href="/${view}"]`)?.setAttribute("aria-current", "page");
if (view in VIEWS) once(() => show());
else { box.replaceChildren(make("p", { class: "lead" }, "There is no such page. "), link("/start", {}, "Start")); document.documentElement.dataset.ready = ++steps; }
