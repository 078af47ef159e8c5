// --- rules --------------------------------------------------------------------------------------------------------

const RATES = D.rates;
const audit = rows(D.audit);
const targets = D.targets.map((target) => target.name);
const several = D.questions.some((question) => question.positive == null);
const onlySeveral = D.questions.every((question) => question.positive == null);
const hard = D.rules.filter((rule) => !["share", "smoothed-share"].includes(rule.rule)).map((rule) => rule.rule);
// Without an interval the line of a mark has no length.
const named = (row) => ({ ...row, low: row.low ?? row.value, high: row.high ?? row.value, metric: RATES[row.metric].title });
const rateName = (metric) => RATES[metric].name;
const withInterval = (r) => `${percent(r.value)}${r.low == null ? "" : ` (${range(r.low, r.high, percent)})`}`;

const rateColumns = [
  [several ? "question or label" : "question", (r) => r.target], ["domain", (r) => r.domain], ["rule", (r) => r.rule],
  ["against", (r) => r.reference], ["figure", (r) => rateName(r.metric)], ["value", (r) => percent(r.value), 1],
  ["interval", (r) => range(r.low, r.high, percent), 1], ["of items", (r) => whole(r.n), 1],
];

function drawRules() {
  const reference = $("reference").value, pair = $("pair").value.split(",");
  const order = reference === "gold" ? [...hard, "consensus"] : hard;
  const kept = audit.filter((r) => r.reference === reference && r.value != null && targets.includes(r.target) && order.includes(r.rule));
  const sorted = order.flatMap((rule) => kept.filter((r) => r.rule === rule));
  const against = reference === "gold" ? "gold" : "the consensus";
  const both = pair.map(rateName).join(" and ");
  const pooled = sorted.filter((r) => r.domain === ALL && pair.includes(r.metric));
  if (D.drawn.rules) draw("rules", { rules: pooled.map(named) });
  else say("rules", pooled.map((r) => `${r.rule}: ${rateName(r.metric)} ${withInterval(r)}.`).join(" "));
  const what = several ? "label" : "question";
  $("said-rules").textContent = `${capital(both)} of every rule, against ${against}${D.domains.length ? ", all domains together" : ""}. `
    + (D.drawn.rules ? `One mark per ${what}${pooled.some((r) => r.low != null) ? "; its line is the interval" : ""}.` : "");
  if (D.drawn.by_domain) {
    const rule = $("rule").value;
    draw("by_domain", { by_domain: sorted.filter((r) => r.domain !== ALL && r.rule === rule && pair.includes(r.metric)).map(named) });
    $("said-by_domain").textContent = `The rule ${rule} in every domain: ${both}, against ${against}.`;
  }
  if (!D.drawn.heat) return;
  const metric = $("metric").value;
  const heat = sorted.filter((r) => r.metric === metric && (D.domains.length ? r.domain !== ALL : r.domain === ALL));
  draw("heat", { heat: heat.map(named) });
  const full = distinct(heat.map((r) => r.rule)).length * distinct(heat.map((r) => r.target)).length * distinct(heat.map((r) => r.domain)).length;
  $("said-heat").textContent = `${capital(RATES[metric].title)}, against ${against}: ${RATES[metric].meaning}. Rules down, ${
    D.domains.length ? `domains across, one panel per ${what}` : `${what}s across`}.${heat.length < full ? " Empty: there is nothing to take a share of." : ""}`;
}

function startRules() {
  const references = distinct(audit.map((r) => r.reference));
  options($("reference"), references.map((r) => [r, r === "gold" ? "gold labels" : "the consensus"]));
  options($("pair"), [["fpr,fnr", "wrong and missed yes"], ["fdr,for", "wrong among yes and among no"]]);
  options($("rule"), hard.map((r) => [r, r]), D.main_rule);
  options($("metric"), Object.keys(RATES).map((metric) => [metric, rateName(metric)]), "fdr");
  for (const id of ["reference", "pair", "rule", "metric"]) $(id).addEventListener("change", drawRules);
  table($("table-rates"), "rates", audit, rateColumns);
  table($("table-meanings"), "rules", D.rules, [["rule", (r) => r.rule], ["says yes when", (r) => r.meaning]]);
  drawRules();
}

// --- try a rule ---------------------------------------------------------------------------------------------------

const cells = rows(D.cells);
const upTo = (most) => [...Array(most).keys()].map((k) => k + 1);
const share = (part, all) => (all > 0 ? part / all : null);
const votesFor = onlySeveral ? "for the label" : several ? "for yes (or for the label)" : "for yes";

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
  const threshold = kind === "votes" ? `${many(at, "vote")} ${votesFor}` : `${at}% of the votes ${votesFor}`;
  $("try-said").textContent = threshold;
  const rates = ratesOf(some, kind, at);
  $("try-figures").replaceChildren(...["fpr", "fnr", "fdr", "for"].map((metric) => make("div", {},
    make("dt", { class: "name" }, rateName(metric)),
    make("dd", {}, make("strong", { id: `try-${metric}`, "data-value": rates[metric] ?? "" }, percent(rates[metric]))),
    make("dd", { class: "note" }, RATES[metric].meaning))));
  const most = Number($("try-at").max);
  const steps = kind === "votes" ? upTo(most) : upTo(20).map((k) => 5 * k);
  const curve = steps.flatMap((step) => {
    const there = ratesOf(some, kind, step);
    return ["fpr", "fnr", "fdr"].map((metric) => ({ threshold: step, metric: rateName(metric), value: there[metric] }));
  });
  const title = kind === "votes" ? `at least this many votes ${votesFor}` : `at least this share of the votes ${votesFor}, %`;
  if (steps.length > 1) {
    draw("explorer", { explorer: curve.filter((point) => point.value != null), chosen: [{ threshold: at }] }, "explorer",
      (spec) => { for (const encoding of encodingsOf(spec)) encoding.x.title = title; });
  } else say("explorer", `No item has more than one vote ${votesFor}: there is no other threshold to compare with.`);
  $("said-explorer").textContent = steps.length > 1 ? `The same for every threshold; the vertical line is the one chosen: ${threshold}.` : "";
  const byTarget = distinct(cells.map((cell) => cell.target)).map((name) => (
    { target: name, domain, kind, at, ...ratesOf(cellsOf(name, domain), kind, at) }));
  table($("table-try"), "rule-by-question", byTarget, [
    [several ? "question or label" : "question", (r) => r.target],
    ...Object.keys(RATES).map((metric) => [rateName(metric), (r) => percent(r[metric]), 1]),
    ["says yes to", (r) => whole(r.flagged), 1], ["of items", (r) => whole(r.items), 1],
  ]);
}

function startTry() {
  const names = distinct(cells.map((cell) => cell.target));
  options($("try-target"), names.length > 1 ? [[ALL, "all together"], ...names.map((name) => [name, name])] : names.map((name) => [name, name]));
  const domains = D.domains.length ? distinct(cells.map((cell) => cell.domain)).filter((d) => d !== ALL) : [];
  options($("try-domain"), [[ALL, "all together"], ...domains.map((d) => [d, d])]);
  options($("try-kind"), [["votes", `number of votes ${votesFor}`], ["share", `share of votes ${votesFor}`]]);
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
