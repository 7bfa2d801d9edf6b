// What could not be seen, the facts of the trace, and the rules' documentation.

function drawLimits(data, current) {
  const { report } = data;
  const info = report.traces[current];
  const unchecked = report.not_checked.filter((entry) => entry.trace === current);
  const needless = unchecked.filter((entry) => entry.needless).map((entry) => entry.rule);
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
    ...(info.rank === null ? [] : [["Rank", info.rank]]),
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
          `Savings come from a replay that meets the recorded ${steps.count ? "step" : "time"} within ${share(Math.max(Math.abs(replay.misfit), 0.01))}` +
            (replay.bounds_why
              ? `; ${replay.bounds_why}.`
              : replay.host_scale === null
              ? "; how much the profiler slows the host is unknown, so they are ranges."
              : `; the host's work, less the profiler's cost, is scaled by ${digits(replay.host_scale)} to match the step without the profiler.`),
          ...replay.assumptions.map((text) => `Assumed: ${text}.`),
        ];
  fill(
    "limits-body",
    list(
      "Traces that could not be read",
      report.unread.map((entry) => [el("code", {}, entry.path), ` ${entry.why}`]),
    ),
    list(
      "Warnings",
      info.warnings.map((text) => text),
    ),
    list("Savings", savings),
    list("Rules that could not be checked", byReason(unchecked.filter((entry) => !entry.partial && !entry.needless))),
    list("Rules that were checked in part", byReason(unchecked.filter((entry) => entry.partial))),
    needless.length
      ? [el("p", {}, `Not checked either, and nothing in this trace is what they are about: ${needless.join(", ")}.`)]
      : [],
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
  optimizer: "the optimizer's step",
  module: "the outermost module",
  seconds: "a fixed length of time",
  server: "the batches that the server marks",
  kernels: "what the device repeats",
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
      const text = words_.join(" ").trim();
      return [
        text ? el("p", {}, inline(text)) : null,
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
