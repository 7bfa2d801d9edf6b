// A finding as a card: what it costs at a glance, and unfolded the fix, the source and the call chain.

const SITE_SOURCE = {
  hook: "PyTorch's own warning, at the very expression",
  stack: "the trace's Python frames (line of the def)",
  op: "the operation alone; the trace holds no Python frames",
  count: "the count over the run; no window recorded it",
};

function snippet(finding, sources) {
  const lines = finding.site && sources[finding.site.file];
  if (!lines || finding.site.line === null || !(String(finding.site.line) in lines)) return null;
  const numbers = Object.keys(lines)
    .map(Number)
    .filter((n) => Math.abs(n - finding.site.line) <= 3)
    .sort((a, b) => a - b);
  while (!lines[numbers.at(-1)].trim()) numbers.pop();
  return el(
    "div",
    { class: "snippet", tabindex: "0", role: "region", "aria-label": `Source of ${place(finding.site)}` },
    numbers.map((n) =>
      el("div", { class: n === finding.site.line ? "hit" : null }, el("span", {}, String(n)), lines[n] || " "),
    ),
  );
}

/** Why a finding may stay, or what it goes beyond. */
function allowance(finding) {
  if (finding.status === "unexpected")
    return finding.exceeds ? el("p", { class: "reason" }, el("b", {}, finding.exceeds)) : null;
  return el(
    "p",
    { class: "reason" },
    el("b", {}, finding.status === "baseline" ? "In the baseline" : words(finding.status)),
    finding.reason ? `: ${finding.reason}` : null,
  );
}

function callChain(finding) {
  const isSite = (frame) => finding.site && frame.file === finding.site.file && frame.line === finding.site.line;
  const frames = finding.chain.map((frame) =>
    el(
      "li",
      { class: isSite(frame) ? "site" : null },
      el("code", {}, place(frame)),
      el("span", {}, ` in ${frame.function}`),
    ),
  );
  return el(
    "details",
    { class: "chain" },
    el("summary", {}, frames.length > 1 ? `Call chain, ${frames.length} frames` : "Details"),
    frames.length > 1 ? el("ol", {}, frames) : null,
    details(finding),
  );
}

/** What amounts of the recorded steps are per: those of the run have steps of their own. */
const recordedStep = (finding) => (finding.occurrences === null ? "a step" : "a recorded step");

/** What a finding costs: the host blocked, else the device's exposed time, with the words for it. */
function cost(finding) {
  if (finding.run_stall_ms_per_step !== null) return [finding.run_stall_ms_per_step, "blocked a step"];
  const step = recordedStep(finding);
  if (finding.stall_ms_per_step !== null) return [finding.stall_ms_per_step, `blocked ${step}`];
  if (finding.exposed_ms_per_step !== null) return [finding.exposed_ms_per_step, `exposed ${step}`];
  if (finding.idle_ms_per_step !== null) return [finding.idle_ms_per_step, `idle ${step}`];
  return [finding.stall_ms, finding.stall_ms === null ? "blocked" : "blocked in all"];
}

function costs(finding, info, worth) {
  const [time, what] = cost(finding);
  const inRun = finding.run_stall_ms_per_step === null ? null : stepOfPhase(finding, info);
  const step = inRun || info.steps.profiled_ms;
  const overRun = finding.run_saving_ms_per_step !== null;
  const saving = overRun ? finding.run_saving_ms_per_step : finding.saving_ms_per_step;
  const of = overRun ? "a step" : recordedStep(finding);
  const width = (value, whole) => `width: ${Math.min(100, (100 * value) / whole).toFixed(2)}%`;
  const meter =
    step && time !== null && what.endsWith(" step")
      ? el(
          "span",
          { class: "meter", "aria-hidden": "true" },
          el("i", { style: width(time, step) }),
          saving ? el("i", { class: "worth", style: width(saving, inRun || info.steps.bare_ms || step) }) : null,
        )
      : null;
  return el(
    "span",
    { class: "cost" },
    el("span", {}, el("b", {}, ms(time)), what),
    el(
      "span",
      { class: worth ? "worth" : "worth none" },
      el("b", {}, worth ? worth.amount : ms(null)),
      worth ? `worth ${of}${worth.share ? `, ${worth.share}` : ""}` : "worth",
    ),
    meter,
  );
}

/** The median step of a finding's phase over the run, in ms. */
function stepOfPhase(finding, info) {
  const phase = info.run && info.run.phases.find((one) => one.name === finding.phase);
  return phase && phase.step_ms ? phase.step_ms.median : null;
}

/** In which steps a finding occurs, of how many. */
function inSteps(finding) {
  if (finding.occurrences === null) return null;
  const exact = finding.run_per_step_low === finding.run_per_step_high ? "" : "about ";
  const [first, last] = finding.run_steps || [null, null];
  const steps = first === null ? "" : first === last ? `, in step ${first}` : `, in steps ${first} to ${last}`;
  return `${exact}${finding.occurrences.toLocaleString("en")}${steps}`;
}

function mainFacts(finding, data) {
  const range =
    finding.saving_low_ms_per_step !== null && finding.saving_high_ms_per_step !== null
      ? `${between(finding.saving_low_ms_per_step, finding.saving_high_ms_per_step)} ${recordedStep(finding)}`
      : null;
  const info = data.report.traces[finding.trace];
  const perStep = finding.per_step === null ? "" : `, ${digits(finding.per_step)} a step`;
  return factList([
    ["Phase", finding.phase],
    ["In the run", inSteps(finding)],
    ["Operation", finding.op && el("code", {}, finding.op)],
    [finding.occurrences === null ? "Occurrences" : "Recorded", `${finding.count}${info.steps.count ? ` in ${count(info.steps.count, "step")}` : ""}${perStep}`],
    ["Copied", finding.bytes === null ? null : bytes(finding.bytes)],
    ["Exposed", finding.exposed_ms_per_step === null ? null : `${ms(finding.exposed_ms_per_step)} ${recordedStep(finding)}`],
    ["Worth", range],
    [range ? "Only a range" : "Worth unknown", finding.saving_null_why],
    ["Idle time", data.page.causes[data.report.findings.indexOf(finding)]],
    [
      "Waits at",
      finding.at && (!finding.site || place(finding.at) !== place(finding.site))
        ? el("code", {}, place(finding.at))
        : null,
    ],
    ["Trace", data.page.views.length > 1 ? data.page.views[finding.trace].label : null],
  ]);
}

/** What few readers need: folded away with the call chain. */
function details(finding) {
  return factList([
    ["Thread", finding.thread],
    ["Blocked in all", finding.stall_ms === null ? null : ms(finding.stall_ms)],
    ["Line from", SITE_SOURCE[finding.site_source]],
    ["Fingerprint", el("code", {}, finding.fingerprint)],
  ]);
}

function factList(rows) {
  return el(
    "dl",
    { class: "facts" },
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])
      .flat(),
  );
}

function relatedLinks(finding, data) {
  const others = data.report.findings
    .map((other, i) => [other, i + 1])
    .filter(
      ([other]) => other.trace === finding.trace && other !== finding && finding.related.includes(other.fingerprint),
    );
  if (!others.length) return null;
  return el(
    "p",
    { class: "same" },
    "Same cause: ",
    others
      .map(([other, n], i) => [i ? ", " : "", el("a", { href: `#finding-${n}` }, `${n} ${words(other.name)}`)])
      .flat(),
  );
}

/** What to write instead, as a change: in general, and not the reader's own lines. */
function example(pair) {
  if (!pair) return null;
  const lines = (kind, sign, label, code) =>
    code
      .split("\n")
      .map((line) => el("div", { class: kind }, el("i", { role: "img", "aria-label": label }, sign), line || " "));
  return el(
    "div",
    { class: "example", role: "group", "aria-label": "Example of the fix" },
    lines("minus", "−", "instead of", pair.before),
    lines("plus", "+", "write", pair.after),
  );
}

/** What findings of several ranks have in common when they are one cause. */
const alikeKey = (finding) =>
  [finding.rule, finding.fingerprint, finding.at && place(finding.at), finding.status, finding.phase].join(" ");

/** The other ranks that have the same finding. */
function elsewhere(finding, data) {
  data.alike ||= data.report.findings.reduce(
    (map, other) => map.set(alikeKey(other), (map.get(alikeKey(other)) || new Set()).add(other.trace)),
    new Map(),
  );
  const traces = [...data.alike.get(alikeKey(finding))].filter((trace) => trace !== finding.trace);
  if (!traces.length) return null;
  return traces.length > 3
    ? `also on ${traces.length} others of ${data.page.views.length}`
    : `also on ${traces.map((trace) => data.page.views[trace].label).join(", ")}`;
}

function body(finding, n, data, show) {
  const info = data.report.traces[finding.trace];
  const lanes = data.lanes[data.page.views[finding.trace].lanes];
  const rule = data.page.rules.some((one) => one.code === finding.rule)
    ? el("a", { href: `#rule-${finding.rule}` }, `About ${finding.rule}`)
    : null;
  const copied = el("span", { role: "status", class: "lead" });
  return [
    el(
      "div",
      {},
      finding.site ? el("p", {}, finding.message) : null,
      snippet(finding, lanes ? lanes.sources : {}),
      el("p", { class: "fix" }, el("b", {}, "Fix "), finding.fix),
      example(data.page.examples[n - 1]),
      allowance(finding),
      callChain(finding),
      relatedLinks(finding, data),
      el(
        "div",
        { class: "actions" },
        lanes ? el("button", { type: "button", onclick: () => show(n - 1) }, "Show in timeline") : null,
        el("button", { type: "button", onclick: () => copyLink(n, copied) }, "Copy link"),
        rule,
        copied,
      ),
    ),
    el("div", { class: "aside" }, sketches(finding, info), mainFacts(finding, data)),
  ];
}

function summary(finding, n, data) {
  const often = data.page.runs.often[n - 1];
  const site = finding.site;
  const where = site
    ? [el("code", {}, place(site)), ` in ${site.function}`]
    : [
        finding.op ? [el("code", {}, finding.op), ", "] : null,
        finding.annotation ? ["in ", el("code", {}, finding.annotation), ", "] : null,
        "no line in the trace",
      ].flat();
  const many = data.page.views.length > 1;
  const others = many ? elsewhere(finding, data) : null;
  return el(
    "summary",
    {},
    icon(finding.severity),
    el(
      "span",
      { class: "what" },
      el("span", { class: "rule" }, words(finding.name)),
      el("span", { class: "tags" }, `${finding.rule} · ${finding.severity}`),
      finding.status === "unexpected" ? null : el("span", { class: "chip" }, finding.status),
      many ? el("span", { class: "chip of-trace" }, data.page.views[finding.trace].label) : null,
      others ? el("span", { class: "chip" }, others) : null,
      el("span", { class: "line" }, where),
      site && site.expression ? el("code", { class: "expression" }, site.expression) : null,
      site ? null : el("span", { class: "message" }, finding.message),
      often ? el("span", { class: "often" }, often) : null,
    ),
    costs(finding, data.report.traces[finding.trace], data.page.worths[n - 1]),
  );
}

/** Makes a card's details when it is first unfolded, because a run of many ranks has many findings. */
function card(finding, n, data, show) {
  const node = el("details", { class: "finding", id: `finding-${n}` }, summary(finding, n, data));
  node.make = () => {
    node.make = () => {};
    node.append(el("div", { class: "body" }, body(finding, n, data, show)));
  };
  node.addEventListener("toggle", () => node.open && node.make());
  return node;
}

function unfold(node) {
  node.make();
  node.open = true;
}

async function copyLink(n, status) {
  const url = `${location.href.split("#")[0]}#finding-${n}`;
  try {
    await navigator.clipboard.writeText(url);
    status.textContent = "Copied.";
  } catch {
    location.hash = `finding-${n}`;
    status.textContent = "The address bar now holds the link.";
  }
}
