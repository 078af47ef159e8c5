// --- judges -------------------------------------------------------------------------------------------------------

/** The best panel for every price; their table stands below. */
function startJudges() {
  if (D.judges?.panels.length) draw("panels", { panels: D.judges.panels });
}
