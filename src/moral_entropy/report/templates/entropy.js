// --- entropy and reliability --------------------------------------------------------------------------------------

function startEntropy() {
  const list = rows(D.entropy), labels = Math.max(...D.questions.map((q) => q.labels.length));
  $("most").textContent = `${Math.log(2).toFixed(2)} nats is a coin toss`
    + (labels > 2 ? `, and ${Math.log(labels).toFixed(2)} nats a blind choice among ${labels} labels` : "");
  // Without draws all that is known is the total.
  const parts = (r) => (r.doubt_votes == null ? [["not split", r.total]] : D.parts.map((one) => [one.name, r[one.column]]));
  $("entropy-parts").append(...D.parts.map((one) => make("li", {}, make("b", {}, one.name), `: ${one.remedy}`)));
  $("entropy-note").textContent = D.parts_note;
  draw("entropy", { entropy: list.flatMap((r) => parts(r).map(([part, nats], at) => (
    { question: r.question, domain: r.domain, n: r.n_items, part, at, nats, share: share(nats, r.total) }))) });
  const figures = [
    ["total, nats", (r) => fixed(r.total), 1], ...D.parts.map((one) => [one.name, (r) => fixed(r[one.column], 4), 1]),
  ];
  table($("table-entropy"), "entropy", list, [
    ["question", (r) => r.question], ["domain", (r) => r.domain], ["items", (r) => whole(r.n_items), 1], ...figures,
  ]);
  const byVotes = rows(D.by_votes), voted = byVotes.filter((r) => r.votes > 0);
  if (D.drawn.by_votes) draw("by_votes", { by_votes: voted });
  else say("by_votes", sameVotes(voted));
  $("said-by_votes").textContent = D.drawn.by_votes ? "Marks grow with the number of items." : "";
  table($("table-by_votes"), "entropy-by-votes", byVotes,
    [["question", (r) => r.question], ["votes", (r) => r.votes, 1], ["items", (r) => whole(r.n), 1], ...figures]);
  startReliability();
}

/** What a chart by votes would show if no question has items with different numbers of votes. */
function sameVotes(voted) {
  const counts = distinct(voted.map((r) => r.votes));
  if (!counts.length) return "No item has a vote.";
  const mean = voted.length === 1 ? ` Their mean entropy is ${fixed(voted[0].total)} nats.` : "";
  // The highest number stands for more as well.
  const same = counts.length > 1 ? "as many votes as the others of their question"
    : counts[0] < D.max_votes ? many(counts[0], "vote") : `${whole(counts[0])} votes or more`;
  return `All items have ${same}, so there is nothing to compare.${mean}`;
}

function startReliability() {
  const bins = rows(D.reliability);
  if (!bins.length) return;
  if (D.drawn.reliability) draw("reliability", { reliability: bins });
  else say("reliability", bins.map((r) => `${r.target}: of ${many(r.n, "item")} with p near ${fixed(r.p, 2)}, ${percent(r.gold)} are yes in gold.`).join(" "));
  table($("table-reliability"), "reliability", bins, [
    [several ? "question or label" : "question", (r) => r.target], ["p", (r) => fixed(r.p), 1], ["yes in gold", (r) => fixed(r.gold), 1],
    ["interval", (r) => range(r.low, r.high, fixed), 1], ["items", (r) => whole(r.n), 1],
  ]);
}
