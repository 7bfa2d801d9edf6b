// All traces of a run: which rank waits for which in collectives, and a table that can be sorted.

const MOST_RANKS = 24;
const LATECOMERS = ["late-1", "late-2", "late-3", "late-4"]; // colours, in the order of who holds the others longest
const LATE_SHAPES = ["", "/", ".", "x"];
const sorting = { column: null, falls: true };

function ofRanks(data) {
  return new Map((data.report.between_ranks?.ranks || []).map((row) => [row.trace, row]));
}

/** One bar a rank: how long it waits for the others, in pieces by the rank it waits for. */
function drawWaiting(data, choose, paperWidth = null) {
  const rows = [...ofRanks(data).values()];
  byId("waiting-section").hidden = rows.length === 0;
  if (!rows.length) return;
  const name = (trace) => data.page.views[trace].label;
  const late = rows
    .filter((row) => row.holds_ms_per_step > 0)
    .sort((a, b) => b.holds_ms_per_step - a.holds_ms_per_step);
  const named = late.slice(0, LATECOMERS.length).map((row) => row.trace);
  const longest = [...rows].sort((a, b) => b.waits_ms_per_step - a.waits_ms_per_step).slice(0, MOST_RANKS);
  const shown = rows.filter((row) => longest.includes(row));
  drawWaitingLead(data, rows, late, shown, name);
  const width = paperWidth || byId("waiting").clientWidth;
  const high = shown.length > 12 ? 16 : 26;
  const rest = (row) =>
    Math.max(
      0,
      row.waits_ms_per_step -
        row.waits_for.filter((one) => named.includes(one.trace)).reduce((sum, one) => sum + one.ms_per_step, 0),
    );
  const piece = (label_, lengths, fill_, shape = "") => ({
    type: "bar",
    orientation: "h",
    name: label(label_),
    y: shown.map((row) => label(name(row.trace))),
    x: lengths,
    customdata: shown.map((row) => row.trace),
    hovertemplate: `%{y} waits %{x:.3~g} ms a step for ${label(label_.replace(/^for /, ""))}<extra></extra>`,
    marker: {
      color: colour(fill_),
      line: { width: 0 },
      pattern: { shape, fgcolor: colour("hatch"), size: 7, solidity: 0.25, fillmode: "overlay" },
    },
  });
  const pieces = named.map((trace, i) =>
    piece(
      `for ${name(trace)}`,
      shown.map((row) => row.waits_for.find((one) => one.trace === trace)?.ms_per_step || 0),
      LATECOMERS[i],
      LATE_SHAPES[i],
    ),
  );
  if (shown.some((row) => rest(row) > 1e-4)) pieces.push(piece("for other ranks", shown.map(rest), "memset"));
  const plot = byId("waiting");
  Plotly.react(
    plot,
    pieces,
    {
      barmode: "stack",
      bargap: 0.28,
      width,
      height: shown.length * high + 74,
      margin: { l: width < 560 ? 64 : 90, r: 16, t: 30, b: 40 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: colour("sans"), size: 12, color: colour("text") },
      dragmode: false,
      hovermode: "closest",
      showlegend: true,
      legend: {
        orientation: "h",
        traceorder: "normal",
        x: 0,
        y: 1,
        yanchor: "bottom",
        xanchor: "left",
        itemclick: false,
        itemdoubleclick: false,
      },
      xaxis: {
        title: { text: "waiting, ms a step", standoff: 6 },
        rangemode: "tozero",
        gridcolor: colour("line"),
        zeroline: false,
        fixedrange: true,
      },
      yaxis: {
        autorange: "reversed",
        fixedrange: true,
        type: "category",
        tickfont: { size: shown.length > 12 ? 11 : 12 },
        nticks: shown.length,
      },
    },
    { displayModeBar: false, responsive: false },
  );
  plot.setAttribute(
    "aria-label",
    shown.map((row) => `${name(row.trace)} waits ${ms(row.waits_ms_per_step)} a step`).join("; "),
  );
  plot.removeAllListeners("plotly_click");
  plot.on("plotly_click", (event) => choose(event.points[0].customdata));
}

function drawWaitingLead(data, rows, late, shown, name) {
  const { steps, collectives } = data.report.between_ranks;
  const first = late[0];
  fill(
    "waiting-lead",
    first
      ? `${words(name(first.trace))} comes last ${first.last} of the ${count(collectives, "time")} that the ranks meet and holds the others for ${ms(first.holds_ms_per_step)} a step. `
      : "No rank holds the others. ",
    `Measured over ${count(steps, "step")}. `,
    shown.length < rows.length
      ? `The chart shows the ${shown.length} of ${rows.length} ranks that wait longest; the table has all. `
      : "",
  );
}

function rankColumns(data) {
  const rows = ofRanks(data);
  const found = data.page.views.map(() => 0);
  for (const finding of data.report.findings) found[finding.trace] += finding.status === "unexpected";
  const labels = [...new Set(data.page.views.flatMap((view) => view.figures.map((figure) => figure.label)))];
  const figures = labels.map((name) => [
    name,
    (t) => data.page.views[t].figures.find((figure) => figure.label === name)?.ms ?? null,
    ms,
  ]);
  const pairs = rows.size
    ? [
        ["Waits for others", (t) => rows.get(t)?.waits_ms_per_step ?? null, ms],
        ["Holds the others", (t) => rows.get(t)?.holds_ms_per_step ?? null, ms],
        ["Clock ahead", (t) => rows.get(t)?.clock_offset_ms ?? null, (value, t) => clock(value, rows.get(t))],
      ]
    : [];
  return [...figures, ...pairs, ["Findings", (t) => found[t], String]];
}

/** By how much a rank's clock is ahead of the first one's. */
function clock(ahead, row) {
  return ahead === null ? NOTHING : `${ahead < 0 ? "−" : ""}${ms(Math.abs(ahead))} ± ${ms(row.clock_spread_ms)}`;
}

function drawRanks(data, current, choose) {
  const { views } = data.page;
  byId("ranks-section").hidden = views.length < 2;
  if (views.length < 2) return;
  const left = data.page.left_out;
  byId("ranks-lead").hidden = !left;
  fill(
    "ranks-lead",
    `${count(left, "trace")} more in the JSON report. This page shows the first, those that hold others, and those with the heaviest findings.`,
  );
  const columns = rankColumns(data);
  const order = views.map((_, i) => i);
  if (sorting.column !== null) {
    const value = columns[sorting.column][1];
    order.sort((a, b) => ((value(a) ?? -1) - (value(b) ?? -1)) * (sorting.falls ? -1 : 1) || a - b);
  }
  const sort = (column) => {
    sorting.falls = sorting.column === column ? !sorting.falls : true;
    sorting.column = column;
    drawRanks(data, current, choose);
    byId("ranks").querySelectorAll("thead button")[column].focus();
  };
  const sorted = (i) => (sorting.column === i ? (sorting.falls ? "descending" : "ascending") : null);
  fill(
    "ranks",
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Trace"),
        columns.map(([head], i) =>
          el(
            "th",
            { scope: "col", class: "number", "aria-sort": sorted(i) },
            el(
              "button",
              { type: "button", onclick: () => sort(i) },
              head,
              { descending: " ↓", ascending: " ↑" }[sorted(i)] || null,
            ),
          ),
        ),
      ),
    ),
    el(
      "tbody",
      {},
      order.map((i) =>
        el(
          "tr",
          { "aria-current": i === current ? "true" : null },
          el("th", { scope: "row" }, el("button", { type: "button", onclick: () => choose(i) }, views[i].label)),
          columns.map(([, value, format]) => el("td", { class: "number" }, format(value(i), i))),
        ),
      ),
    ),
  );
}
