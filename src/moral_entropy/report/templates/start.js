// --- method, theme, start -----------------------------------------------------------------------------------------

function startMethod() {
  const m = D.method, said = (value) => (value && typeof value === "object" ? JSON.stringify(value) : String(value ?? "–"));
  const column = ([role, name]) => `${role} = ${name}${m.guessed.includes(role) ? " (guessed)" : ""}`;
  const shares = (of) => (of == null ? "–" : Object.entries(of).map(([label, value]) => `${label} ${percent(value)}`).join(", "));
  const left = Object.entries(m.dropped).map(([why, n]) => `${why} ${whole(n)}`).join(", ");
  $("method-facts").replaceChildren(factList([
    ["version", m.version], ["command", m.command || "called from Python"], ["input", m.input.source],
    ["SHA-256 of the input", m.input.sha256 || "a dataframe"], ["columns", Object.entries(m.columns).map(column).join(", ")],
    ["read", `${whole(m.rows)} rows: ${D.size}`],
    ["left out", left || "nothing"], ["remarks", m.notes.join(" ") || "none"], ["priors", said(m.priors)], ["solver", m.solver],
    ["draws", `${whole(m.draws)}, seed ${m.seed}, coordinates ${m.coordinates}`], ["intervals", percent(m.interval, 0)],
    ["fitted by", m.fit_by || "all together"], ["gold as evidence", m.use_gold ? "yes" : "no"],
    ["converged", m.converged ? "yes, all fits" : "NO"], ["libraries", said(m.versions)],
  ]));
  table($("table-fits"), "fits", m.fits.map((fit) => ({ ...fit, prevalence: shares(fit.prevalence) })), [
    ["question", (r) => r.question], ["part", (r) => r.part], ["positive", (r) => r.positive ?? "–"], ["items", (r) => whole(r.items), 1],
    ["annotators", (r) => whole(r.annotators), 1], ["votes", (r) => whole(r.votes), 1], ["log posterior", (r) => fixed(r.log_posterior, 2), 1],
    ["gradient left", (r) => r.gradient_norm?.toExponential(1) ?? "–", 1], ["passes", (r) => whole(r.passes), 1],
    ["converged", (r) => (r.converged ? "yes" : "NO")], ["share of each label", (r) => r.prevalence],
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
  const has = { domains: D.domains.length, "by-domain": D.drawn.by_domain, heat: D.drawn.heat, reliability: any(D.reliability),
    agreement: any(D.agreement), words: any(D.words), switching: any(D.switching), names: !D.anonymous };
  for (const element of document.querySelectorAll("[data-with]")) element.hidden = !has[element.dataset.with];
  for (const element of document.querySelectorAll("[data-without]")) element.hidden = Boolean(has[element.dataset.without]);
}

/** On paper every warning is open. */
function openForPaper() {
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".cautions details:not([open])")];
    for (const one of opened) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
}

startTheme();
openForPaper();
hideWhatIsMissing();
for (const start of [startRules, startTry, startEntropy, startPeople, startJudges, startItems, startMethod]) start();
makeSortableAsTheyAre(document.querySelectorAll("table.sortable"));
document.documentElement.dataset.ready = "yes";
