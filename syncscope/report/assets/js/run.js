// The whole run: what was counted, its phases over time, and a table of them that is the figure's legend.

/** The figure with the colours of the style sheet, which it names as `var(--name)`. */
function coloured(value, key = "") {
  if (Array.isArray(value)) return value.map((one) => coloured(one, key));
  if (value !== null && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, name)]));
  const named = typeof value === "string" && key.endsWith("color") && value.match(/^var\(--([\w-]+)\)$/);
  return named ? colour(named[1]) : value;
}

function drawRun(data, current, paperWidth = null) {
  const { runs } = data.page;
  const run = runs.views[runs.of[current]];
  byId("run-section").hidden = !run;
  if (!run) return;
  fill("run-lead", unbroken(run.lead));
  fill(
    "run-notes",
    [...run.caveats, ...run.differences].map((text) => el("li", {}, text)),
  );
  byId("run-notes").hidden = run.caveats.length + run.differences.length === 0;
  drawRunFigure(run, paperWidth);
  fill(
    "run-phases",
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        ["Phase", "Time", "Steps", "Step", "Waits a step", "Recorded steps"].map((head, i) =>
          el("th", { scope: "col", class: i ? "number" : null }, head),
        ),
      ),
    ),
    el("tbody", {}, run.phases.map(phaseRow)),
  );
}

function phaseRow(phase) {
  return el(
    "tr",
    {},
    el(
      "th",
      { scope: "row" },
      el(
        "div",
        { class: "phase" },
        swatch({ top: phase.colour }),
        el("span", { class: "name" }, phase.name),
        phase.where ? el("code", { class: "loop" }, phase.where) : null,
      ),
    ),
    el("td", { class: "number" }, phase.share),
    el("td", { class: "number" }, phase.steps ? phase.steps.toLocaleString("en") : NOTHING),
    el(
      "td",
      { class: "number" },
      phase.median === null ? NOTHING : phase.median,
      phase.p95 === null ? null : el("span", { class: "more" }, `p95 ${phase.p95}`),
    ),
    el("td", { class: "number" }, phase.waits === "–" ? NOTHING : phase.waits),
    el("td", { class: "number" }, recorded(phase)),
  );
}

/** The steps that windows recorded. */
function recorded(phase) {
  return phase.recorded === "–" ? NOTHING : phase.recorded;
}

function drawRunFigure(run, paperWidth) {
  const plot = byId("run");
  plot.hidden = run.figure === null;
  byId("run-key").hidden = run.figure === null || !run.phases.some((phase) => phase.recorded !== "–");
  if (run.figure === null) return;
  const figure = coloured(run.figure);
  const width = paperWidth || plot.clientWidth;
  Plotly.react(
    plot,
    figure.data,
    {
      ...figure.layout,
      width,
      font: { ...figure.layout.font, family: colour("sans") },
      xaxis: { ...figure.layout.xaxis, nticks: width < 560 ? 5 : 10 },
    },
    { displayModeBar: false, responsive: false },
  );
  plot.setAttribute(
    "aria-label",
    run.phases.map((phase) => `${phase.name}: ${phase.share} of the time, ${phase.waits} waits a step`).join("; "),
  );
}
