// What is known of one finding: what it costs, how often, where, and what to write instead.

const NOTHING_MS = 5e-7; // shown as 0

const SITE_SOURCE = {
  hook: "PyTorch's own warning, at the very expression",
  stack: "the trace's Python frames (line of the def)",
  op: "the operation alone; the trace holds no Python frames",
  count: "the count over the run; no window recorded it",
  compile: "torch.compile's own account of it",
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
const recordedStep = (finding, info) =>
  !info.steps.count ? "in all" : finding.occurrences === null ? "a step" : "a recorded step";

/** Whether its idle time is that of a step without the profiler, which makes launches slower. */
const isPaced = (finding) => finding.rule === "LCH501";

/** Whether its rank comes late, so that its exposed time is that of the others. */
const isBetweenRanks = (finding) => finding.rule.startsWith("DST");

/** What a finding costs: the host blocked or compiling, else the device's exposed time, with the words for it. */
function cost(finding, info) {
  const held = finding.site_source === "compile" ? "compiling" : "blocked";
  if (finding.run_stall_ms_per_step !== null) return blockedInRun(finding, info, held);
  const step = recordedStep(finding, info);
  if (finding.stall_ms_per_step !== null) return [finding.stall_ms_per_step, `${held} ${step}`];
  const exposed = isBetweenRanks(finding) ? "holds others" : "exposed";
  if (finding.exposed_ms_per_step !== null) return [finding.exposed_ms_per_step, `${exposed} ${step}`];
  if (finding.idle_ms_per_step !== null) {
    const guessed = isPaced(finding) && !info.steps.bare_ms;
    return [finding.idle_ms_per_step, guessed ? `idle ${step} without the profiler, at a guess` : `idle ${step}`];
  }
  return [finding.stall_ms, finding.stall_ms === null ? "blocked" : "blocked in all"];
}

/** The time blocked over the run: a step; of a phase without steps each time; nothing where the step is shorter. */
function blockedInRun(finding, info, held) {
  const stall = finding.run_stall_ms_per_step;
  const phase = info.run && info.run.phases.find((one) => one.name === finding.phase);
  const most = finding.site_source === "count" ? ", at most" : ""; // the whole call was timed
  if (phase && !phase.steps) return [stall, `${held} ${phase.times > 1 ? "each time" : "in all"}${most}`];
  const step = stepOfPhase(finding, info);
  return step !== null && stall > step ? [null, held] : [stall, `${held} a step${most}`];
}

/** The mean step of a finding's phase over the run, in ms. What is compiled is added to the median one. */
function stepOfPhase(finding, info) {
  const phase = info.run && info.run.phases.find((one) => one.name === finding.phase);
  if (!phase || !phase.step_ms) return null;
  if (finding.site_source !== "compile") return phase.step_ms.mean ?? phase.step_ms.median;
  return phase.step_ms.median + (finding.run_stall_ms_per_step ?? 0);
}

/** An amount of the recorded steps with its share of them, or null. */
function ofStep(value, finding, info) {
  if (value === null) return null;
  const of = info.steps.count && info.steps.profiled_ms ? ` (${share(value / info.steps.profiled_ms)})` : "";
  return `${ms(value)}${of} ${recordedStep(finding, info)}`;
}

/** Whether the innermost frame says more than the line: that of backward, from which all its ops run, does not. */
function tellsMore({ at, site }) {
  const engine = at && site && at.file.startsWith("<") && /^(_engine_)?run_backward$/.test(at.function);
  return at && !engine && (!site || place(at) !== place(site));
}

/** In which steps a finding occurs, of how many. */
function inSteps(finding) {
  if (finding.occurrences === null) return null;
  const exact = finding.run_per_step_low === finding.run_per_step_high ? "" : "about ";
  const [first, last] = finding.run_steps || [null, null];
  const steps = first === null ? "" : first === last ? `, in step ${first}` : `, in steps ${first} to ${last}`;
  const { run_per_step_low: low, run_per_step_high: high } = finding;
  const range = exact && low !== null && high !== null ? `; ${digits(low, 2)} to ${digits(high, 2)} a step` : "";
  return `${exact}${finding.occurrences.toLocaleString("en")}${steps}${range}`;
}

/** Whether the time that the host is blocked in the recorded steps is one more figure: compiling blocks nobody. */
const blockedToo = (finding, info) =>
  finding.site_source !== "compile" && cost(finding, info)[0] !== finding.stall_ms_per_step;

function mainFacts(finding, data) {
  const info = data.report.traces[finding.trace];
  const whole = info.steps.count ? "of the step" : "in all,";
  const isNothing = finding.saving_high_ms_per_step !== null && finding.saving_high_ms_per_step < NOTHING_MS;
  const range =
    !isNothing &&
    finding.saving_low_ms_per_step !== null && finding.saving_high_ms_per_step !== null
      ? `${between(finding.saving_low_ms_per_step, finding.saving_high_ms_per_step)} ${whole} without the profiler`
      : null;
  const known = finding.run_saving_ms_per_step !== null; // over the run, which the card begins with
  const perStep = finding.per_step === null ? "" : `, ${digits(finding.per_step)} a step`;
  const steps = info.steps.count ? ` in ${count(info.steps.count, "step")}` : "";
  // Bubbles are no events of the program, so nobody wants to know how many there are.
  const often = finding.idle_ms_per_step === null ? `${finding.count.toLocaleString("en")}${steps}${perStep}` : null;
  return factList([
    ["Phase", finding.phase],
    ["In the run", inSteps(finding)],
    ["Operation", finding.op && el("code", {}, finding.op)],
    [finding.occurrences === null ? "Occurrences" : "Recorded", often],
    ["Copied", finding.bytes === null ? null : bytes(finding.bytes)],
    [isBetweenRanks(finding) ? "Holds others" : "Exposed", ofStep(finding.exposed_ms_per_step, finding, info)],
    ["Blocked", blockedToo(finding, info) ? ofStep(finding.stall_ms_per_step, finding, info) : null],
    ["Saves", range],
    [range ? "Only a range" : "Saving unknown", isNothing || (known && !range) ? null : finding.saving_null_why],
    ["Idle time", data.page.causes[data.report.findings.indexOf(finding)]],
    [
      "Waits at",
      tellsMore(finding) ? el("code", {}, place(finding.at)) : null,
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

/** What to write instead, as a change: of the reader's own call where that is known, else in general. */
function example(pair, finding) {
  if (!pair) return null;
  const lines = (kind, sign, label, code) =>
    code
      .split("\n")
      .map((line) => el("div", { class: kind }, el("i", { role: "img", "aria-label": label }, sign), line || " "));
  const own = finding.site && finding.site.expression === pair.before;
  const title = own ? "Your call, changed" : "An example, not your code";
  return el(
    "figure",
    { class: "change" },
    el("figcaption", {}, title),
    el(
      "div",
      { class: "example", role: "group", "aria-label": "Example of the fix" },
      lines("minus", "−", "instead of", pair.before),
      lines("plus", "+", "write", pair.after),
    ),
  );
}
