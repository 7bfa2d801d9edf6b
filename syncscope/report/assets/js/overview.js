// The sentence, the figures, the bar that splits a step, the table of traces, and what could not be seen.

// What a part looks like: a plain colour; two colours one above the other for what is hidden behind compute; hatching
// for what is exposed.
const PART_STYLE = {
  compute: { top: "compute" },
  copy_hidden: { top: "compute", under: "HtoD" },
  comm_hidden: { top: "compute", under: "collective" },
  copy_exposed: { top: "HtoD", hatched: true },
  comm_exposed: { top: "collective", hatched: true },
  other: { top: "memset" },
};
const UNDER = 0.34;

function styled(parts) {
  let idle = 0;
  return parts.map((part) => ({ ...part, ...(PART_STYLE[part.key] || { top: `idle-${Math.min(4, ++idle)}` }) }));
}

function swatch({ top, under = null, hatched = false }) {
  return el("span", {
    class: `swatch${under ? " double" : ""}${hatched ? " hatched" : ""}`,
    "aria-hidden": "true",
    style: `--fill: var(--${top}); --ink: var(--${under || "hatch"})`,
  });
}

/** A number stays on the line of its unit. */
const unbroken = (text) => text.replace(/(\d) (ms|µs|%)/g, "$1\u00a0$2");

function drawHeadline(view, info) {
  fill("verdict", unbroken(view.verdict));
  fill("details", unbroken(view.details.join(" ")));
  fill(
    "where",
    [info.path.split(/[\\/]/).slice(-2).join("/"), info.device, info.torch && `torch ${info.torch}`]
      .filter(Boolean)
      .map(clean)
      .join("  ·  "),
  );
  fill(
    "figures",
    view.figures.map((figure) => {
      const [number, unit] = ms(figure.ms).split(" ");
      const more = [figure.share === null ? null : share(figure.share), figure.note].filter(Boolean).join(" · ");
      return el(
        "div",
        {},
        el("dt", {}, figure.label),
        el("dd", { class: "value" }, number, unit ? el("span", {}, ` ${unit}`) : null),
        el("dd", { class: "more" }, more),
      );
    }),
  );
}

function drawSplit(view, info, frozenWidth = null) {
  const parts = styled(view.parts);
  byId("split-section").hidden = parts.length === 0;
  if (parts.length === 0) return;
  const total = parts.reduce((sum, part) => sum + part.ms, 0);
  fill("split-title", info.steps.count ? "Where a step goes" : "Where the time goes");
  fill(
    "split-lead",
    info.steps.count
      ? `Device time of a recorded step, ${ms(total)} under the profiler, mean of ${count(info.steps.count, "step")}.`
      : `Device time over the whole trace, ${ms(total)}; it has no steps.`,
  );
  byId("split").setAttribute(
    "aria-label",
    parts.map((part) => `${part.label} ${ms(part.ms)}, ${share(part.share)}`).join("; "),
  );
  const across = frozenWidth || byId("split").clientWidth;
  let from = 0;
  const traces = parts.flatMap((part) => {
    const piece = (name, y, width, text = "") => ({
      type: "bar",
      orientation: "h",
      base: [from],
      x: [part.ms],
      y: [y],
      width,
      hoverinfo: "skip",
      text: [text],
      textposition: "inside",
      insidetextanchor: "middle",
      textangle: 0,
      constraintext: "none",
      textfont: { color: colour(part.key === "idle" ? "text" : "on-colour"), size: 13 },
      marker: {
        color: colour(name),
        line: { width: 1, color: colour("bg") },
        pattern: part.hatched
          ? {
              shape: "/",
              fgcolor: colour("hatch"),
              bgcolor: colour(name),
              size: 7,
              solidity: 0.25,
              fillmode: "overlay",
            }
          : {},
      },
    });
    // Text on hatching cannot be read, and a narrow piece has no room: the table under the bar has every figure.
    const text = part.hatched || part.under || part.share * across < 38 ? "" : share(part.share);
    const pieces = part.under
      ? [piece(part.top, UNDER / 2, 1 - UNDER), piece(part.under, UNDER / 2 - 0.5, UNDER)]
      : [piece(part.top, 0, 1, text)];
    from += part.ms;
    return pieces;
  });
  Plotly.react(
    "split",
    traces,
    {
      barmode: "overlay",
      height: 58,
      width: frozenWidth || undefined,
      autosize: !frozenWidth,
      margin: { l: 0, r: 0, t: 4, b: 4 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      showlegend: false,
      bargap: 0,
      dragmode: false,
      font: { family: colour("sans"), color: colour("text") },
      xaxis: { visible: false, range: [0, total], fixedrange: true },
      yaxis: { visible: false, fixedrange: true, range: [-0.5, 0.5] },
    },
    { displayModeBar: false, staticPlot: true, responsive: !frozenWidth },
  );
  fill(
    "parts",
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Part"),
        el("th", { scope: "col", class: "number" }, "Time"),
        el("th", { scope: "col", class: "number" }, "Share"),
      ),
    ),
    el(
      "tbody",
      {},
      parts.map((part) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, swatch(part), part.label),
          el("td", { class: "number" }, ms(part.ms)),
          el("td", { class: "number" }, share(part.share)),
        ),
      ),
    ),
  );
}

function drawRanks(data, current, choose) {
  const { views } = data.page;
  byId("ranks-section").hidden = views.length < 2;
  if (views.length < 2) return;
  const head = [
    "Trace",
    "Step, bare",
    "Step, profiled",
    "Host blocked",
    "Copies exposed",
    "Collectives exposed",
    "Device idle",
    "Findings",
  ];
  fill(
    "ranks",
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        head.map((text, i) => el("th", { scope: "col", class: i ? "number" : null }, text)),
      ),
    ),
    el(
      "tbody",
      {},
      views.map((view, i) => {
        const found = data.report.findings.filter(
          (finding) => finding.trace === i && finding.status === "unexpected",
        ).length;
        return el(
          "tr",
          { "aria-current": i === current ? "true" : null },
          el("th", { scope: "row" }, el("button", { type: "button", onclick: () => choose(i) }, view.label)),
          view.figures.map((figure) => el("td", { class: "number" }, ms(figure.ms))),
          el("td", { class: "number" }, String(found)),
        );
      }),
    ),
  );
}

function drawLimits(data, current) {
  const { report } = data;
  const info = report.traces[current];
  const unchecked = report.not_checked.filter((entry) => entry.trace === current);
  const list = (title, entries) =>
    entries.length
      ? [
          el("h3", {}, title),
          el(
            "ul",
            {},
            entries.map((entry) => el("li", {}, entry)),
          ),
        ]
      : [];
  const { coverage, steps } = info;
  const facts = [
    ["File", info.path],
    ["Rank", info.rank],
    ["Device", info.device],
    ["torch", info.torch],
    ["Steps", steps.count ? `${steps.count}, from ${STEP_SOURCE[steps.source] || steps.source}` : "none in the trace"],
    ["Holds", info.has.join(", ") || null],
    [
      "Lines",
      coverage.waits
        ? `${coverage.with_line} of ${count(coverage.waits, "wait")} ${coverage.with_line === 1 ? "has" : "have"} an exact line`
        : "no waits inside steps",
    ],
  ];
  const replay = info.replay;
  const savings = !replay
    ? []
    : replay.null_why
      ? [`No savings: ${replay.null_why}.`]
      : [
          `Savings come from a replay that misses the traced step by ${(100 * Math.abs(replay.misfit)).toFixed(1)} %` +
            (replay.host_scale === null
              ? "; how far the profiler slows the host is not known, so they are ranges."
              : `; the host's work, without the profiler's, is taken ${digits(replay.host_scale)} times to meet the bare step.`),
          ...replay.assumptions.map((text) => `Assumed: ${text}.`),
        ];
  fill(
    "limits-body",
    list(
      "Warnings",
      info.warnings.map((text) => text),
    ),
    list("Savings", savings),
    list("Rules that could not be checked", byReason(unchecked.filter((entry) => !entry.partial))),
    list("Rules that were checked in part", byReason(unchecked.filter((entry) => entry.partial))),
    list(
      "Expectations that match nothing",
      report.stale.map((entry) => [
        el("code", {}, entry.rule),
        ` at ${entry.where}`,
        entry.reason ? `: ${entry.reason}` : "",
      ]),
    ),
    el("h3", {}, "The trace"),
    el(
      "dl",
      { class: "tracefacts" },
      facts.map(([key, value]) => [el("dt", {}, key), el("dd", {}, value ?? NOTHING)]).flat(),
    ),
  );
}

/** One line a reason, with the codes of all the rules it holds for. */
function byReason(entries) {
  const reasons = new Map();
  for (const { rule, why } of entries) reasons.set(why, [...(reasons.get(why) || []), rule]);
  return [...reasons].map(([why, rules]) => [el("code", {}, rules.join(", ")), ` ${why}`]);
}

const STEP_SOURCE = {
  profiler: "the profiler's own step marks",
  user: "syncscope.step()",
  optimizer: "the optimiser's step",
  module: "the outermost module",
  seconds: "a fixed length of time",
};

/** A rule's documentation is plain text: indented lines are code, and so is what stands between backticks. */
function prose(text) {
  return text
    .split(/\n\s*\n/)
    .filter((block) => block.trim())
    .flatMap((block) => {
      const lines = block.split("\n");
      const first = lines.findIndex((line) => /^\s{2,}\S/.test(line));
      const [words_, code] = first < 0 ? [lines, []] : [lines.slice(0, first), lines.slice(first)];
      const said = words_.join(" ").trim();
      return [
        said ? el("p", {}, inline(said)) : null,
        code.length ? el("pre", { tabindex: "0" }, dedent(code.join("\n"))) : null,
      ];
    })
    .filter(Boolean);
}

const inline = (text) => text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));

function dedent(block) {
  const lines = block.replace(/\s+$/, "").split("\n");
  const indent = Math.min(...lines.filter((line) => line.trim()).map((line) => line.search(/\S/)));
  return lines.map((line) => line.slice(indent)).join("\n");
}

function drawRules(rules) {
  byId("rules").hidden = rules.length === 0;
  fill(
    "rules-body",
    rules.map((rule) =>
      el(
        "details",
        { class: "plain", id: `rule-${rule.code}` },
        el("summary", {}, el("code", {}, rule.code), ` ${words(rule.name)}: `, inline(rule.summary)),
        el("div", { class: "doc" }, prose(rule.doc)),
      ),
    ),
  );
}
