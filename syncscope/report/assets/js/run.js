// The whole run: what was counted, its phases over time, and a table of them that is the figure's legend.

function drawRun(data, current, paperWidth = null) {
  const { runs } = data.page;
  const run = runs.views[runs.of[current]];
  byId("run-section").hidden = !run;
  if (!run) return;
  fill("run-lead", unbroken(run.lead));
  const notes = [...run.lines, ...run.caveats, ...run.differences];
  fill(
    "run-notes",
    notes.map((text) => el("li", {}, breakable(unbroken(text)))),
  );
  byId("run-notes").hidden = notes.length === 0;
  drawRunFigure(run, paperWidth);
  fill("run-phases", phaseHead(), el("tbody", { role: "rowgroup" }, run.phases.map(phaseRow)));
}

// On a phone the rows are no table rows for the style sheet, so the roles are said.
const PHASE_COLUMNS = ["Phase", "Time", "Steps", "Step", "Waits a step", "Recorded steps"];

function phaseHead() {
  const head = (text, i) => el("th", { scope: "col", role: "columnheader", class: i ? "number" : null }, text);
  return el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, PHASE_COLUMNS.map(head)));
}

function phaseRow(phase) {
  const cell = (...content) => el("td", { role: "cell", class: "number" }, ...content);
  return el(
    "tr",
    { role: "row" },
    el(
      "th",
      { scope: "row", role: "rowheader" },
      el(
        "div",
        { class: "phase" },
        swatch({ top: phase.colour }),
        el("span", { class: "name" }, phase.name),
        phase.where ? el("code", { class: "loop" }, phase.where) : null,
      ),
    ),
    cell(phase.share),
    cell(phase.steps ? phase.steps.toLocaleString("en") : NOTHING),
    cell(
      phase.step === null ? NOTHING : phase.step,
      phase.p95 === null ? null : el("span", { class: "more" }, `p95 ${phase.p95}`),
    ),
    cell(phase.waits === "–" ? NOTHING : phase.waits),
    cell(recorded(phase)),
  );
}

/** The steps that windows recorded. */
function recorded(phase) {
  return phase.recorded === "–" ? NOTHING : phase.recorded;
}

function drawRunFigure(run, paperWidth) {
  const plot = byId("run");
  byId("run-key").hidden = run.figure === null || !run.phases.some((phase) => phase.recorded !== "–");
  drawFigure(plot, run.figure, paperWidth);
  plot.setAttribute(
    "aria-label",
    run.phases.map((phase) => [`${phase.name}: ${phase.share} of the time`, phase.spelled].filter(Boolean).join(", ")).join("; "),
  );
}
