// --- annotators ---------------------------------------------------------------------------------------------------

const MOST_ELLIPSES = 80;
const MOST_DOTS = 1000;
const people = rows(D.people).map((r, at) => ({ ...r, at, false_positive: r.specificity == null ? null : 1 - r.specificity }));
const confusion = groupBy(rows(D.confusion), (r) => JSON.stringify([r.question, r.part, r.annotator]));
const questionOf = new Map(D.questions.map((question) => [question.name, question]));

/** An ellipse whose half axes are half the intervals: sensitivity and specificity are nearly independent. */
function ellipse(r) {
  const rx = (r.specificity_high - r.specificity_low) / 2, ry = (r.sensitivity_high - r.sensitivity_low) / 2;
  const x = 1 - (r.specificity_high + r.specificity_low) / 2, y = (r.sensitivity_high + r.sensitivity_low) / 2;
  return [...Array(33).keys()].map((at) => ({ annotator: `${r.part}\n${r.annotator}`, role: r.role, at,
    x: x + rx * Math.cos((at * Math.PI) / 16), y: y + ry * Math.sin((at * Math.PI) / 16) }));
}

/** The cells of an annotator's confusion matrix; with two labels they follow from sensitivity and specificity. */
function matrixOf(r) {
  const { labels, positive } = questionOf.get(r.question);
  if (positive == null) return confusion.get(JSON.stringify([r.question, r.part, r.annotator])) || [];
  return labels.flatMap((k) => labels.map((v) => {
    const own = k === positive ? "sensitivity" : "specificity", right = k === v;
    const [value, low, high] = [r[own], r[`${own}_low`], r[`${own}_high`]];
    const turned = (x) => (x == null ? null : 1 - x);
    return { true: k, voted: v, probability: right ? value : turned(value), low: right ? low : turned(high), high: right ? high : turned(low) };
  }));
}

function confusionMatrix(r) {
  const list = matrixOf(r);
  if (!list.length) return make("p", { class: "muted" }, "The confusion matrix is in annotators.parquet of the run folder.");
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

function showPerson(r) {
  const facts = [
    ["in a word", r.role], ["votes", whole(r.n_votes)], ["votes otherwise than the others", percent(r.disagreement_others)],
    ["votes otherwise than the majority, own vote included", percent(r.disagreement)],
    ["better than guessing (Youden index: 0 guessing, 1 never wrong)",
      `${fixed(r.youden, 2)}  ${range(r.youden_low, r.youden_high, (x) => fixed(x, 2))}`],
    ["probability of being worse than guessing", percent(r.below_chance)],
  ];
  const title = `${r.annotator} on ${r.question}${r.part ? ` (${r.part})` : ""}`;
  $("person").hidden = false;
  $("person").replaceChildren(make("h3", {}, title), factList(facts), confusionMatrix(r));
}

const peopleOf = (question) => people.filter((r) => r.question === question);

async function drawPeople() {
  if (D.anonymous || !people.length) return;
  const list = peopleOf($("people-question").value), dots = list.filter((r) => r.sensitivity != null);
  $("people-chart").hidden = dots.length < 2;
  if (dots.length < 2) return;
  const two = list.some((r) => r.specificity != null);
  const round = two && list.length <= MOST_ELLIPSES ? list.filter((r) => r.specificity_low != null) : [];
  $("said-annotators").textContent = [
    two ? "On the dashed line a vote says nothing, below it the opposite." : "Annotators from left to right, the best first.",
    round.length ? "Ellipses are intervals." : two ? "" : "Lines are intervals.", "Marks grow with the number of votes.",
    dots.length > MOST_DOTS ? `The ${whole(MOST_DOTS)} with most votes; the table has all.` : "",
  ].filter(Boolean).join(" ");
  const shown = dots.slice(0, MOST_DOTS);
  const best = two ? shown : shown.toSorted((a, b) => b.sensitivity - a.sensitivity || a.at - b.at).map((r, at) => ({ ...r, rank: at + 1 }));
  const tables = { people: best, ellipses: round.flatMap(ellipse) };
  const view = await draw(two ? "annotators" : "annotators_many", tables, "annotators");
  // Points of an ellipse know no votes; only the dots stand for annotators.
  view.addEventListener("click", (_event, item) => { if (item?.datum?.n_votes !== undefined) showPerson(people[item.datum.at]); });
}

/** Columns about how right votes are: of yes and of no, or of the label where there are more than two. */
function rightColumns(list) {
  const between = (name) => ["interval", (r) => range(r[`${name}_low`], r[`${name}_high`], percent), 1, (r) => r[`${name}_low`]];
  const column = (title, name) => [title, (r) => percent(r[name]), 1, (r) => r[name]];
  const two = list.some((r) => r.specificity != null);
  return [
    column(two ? "sees a yes" : "right label", "sensitivity"), between("sensitivity"),
    ...(two ? [column("sees a no", "specificity"), between("specificity")] : []),
  ];
}

const restColumns = [
  ["better than guessing", (r) => fixed(r.youden, 2), 1, (r) => r.youden],
  ["votes otherwise than others", (r) => percent(r.disagreement_others), 1, (r) => r.disagreement_others],
];

function showPeople() {
  const list = peopleOf($("people-question").value);
  const opener = (r) => {
    const button = make("button", { type: "button", class: "open" }, r.annotator);
    button.addEventListener("click", () => showPerson(r));
    return button;
  };
  const all = D.people_total === people.length ? "All" : "The busiest";
  $("people-title").textContent = `${all} ${many(list.length, "annotator")} of this question`;
  table($("table-people"), "annotators", list, [
    ["annotator", opener, 0, (r) => r.annotator], ...(list.some((r) => r.part) ? [["part", (r) => r.part]] : []),
    ["votes", (r) => whole(r.n_votes), 1, (r) => r.n_votes], ...rightColumns(list), ...restColumns, ["in a word", (r) => r.role],
  ]);
  drawPeople();
}

/** Without annotators' names there is one row per question: how votes err, whoever gave them. */
function showNameless() {
  $("people-title").textContent = "How votes err, by question";
  table($("table-people"), "votes", people, [
    ["question", (r) => r.question], ...(people.some((r) => r.part) ? [["part", (r) => r.part]] : []),
    ["votes", (r) => whole(r.n_votes), 1, (r) => r.n_votes], ...rightColumns(people), restColumns[0],
  ]);
}

function startPeople() {
  const names = distinct(people.map((r) => r.question));
  options($("people-question"), names.map((q) => [q, q]));
  $("people-question").addEventListener("change", showPeople);
  if (people.length < D.people_total) {
    $("people-note").textContent = `The page holds the ${whole(people.length)} rows with most votes, of ${whole(D.people_total)}; all are in annotator_summary.parquet.`;
  }
  table($("table-agreement"), "agreement", rows(D.agreement), [
    ["question", (r) => r.question], ["domain", (r) => r.domain], ["statistic", (r) => r.statistic.replaceAll("_", " ")],
    ["value", (r) => fixed(r.value), 1], ["interval", (r) => range(r.low, r.high, fixed), 1],
    ["items with two votes or more", (r) => whole(r.n), 1],
  ]);
  if (D.anonymous) showNameless();
  else if (people.length) showPeople();
}
