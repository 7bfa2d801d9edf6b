// Findings as cards that open, with a filter over them. Order is the report's.

const SITE_SOURCE = {
  hook: "PyTorch's own warning, at the very expression",
  stack: "the trace's Python frames (line of the def)",
  op: "the operation alone; the trace holds no Python frames",
};

function snippet(finding, sources) {
  const lines = finding.site && sources[finding.site.file];
  if (!lines || finding.site.line === null || !(String(finding.site.line) in lines)) return null;
  const numbers = Object.keys(lines)
    .map(Number)
    .filter((n) => Math.abs(n - finding.site.line) <= 3)
    .sort((a, b) => a - b);
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

/** What a finding costs: the host blocked, else the device's exposed time, with the words for it. */
function cost(finding) {
  if (finding.stall_ms_per_step !== null) return [finding.stall_ms_per_step, "blocked a step"];
  if (finding.exposed_ms_per_step !== null) return [finding.exposed_ms_per_step, "exposed a step"];
  return [finding.stall_ms, finding.stall_ms === null ? "blocked" : "blocked in all"];
}

function costs(finding, info) {
  const [time, what] = cost(finding);
  const step = info.steps.profiled_ms;
  const saving = finding.saving_ms_per_step;
  const [low, high] = [finding.saving_low_ms_per_step, finding.saving_high_ms_per_step];
  const range = saving === null && low !== null && high !== null ? between(low, high) : null;
  const width = (value, whole) => `width: ${Math.min(100, (100 * value) / whole).toFixed(2)}%`;
  const meter =
    step && time !== null && what.endsWith("a step")
      ? el(
          "span",
          { class: "meter", "aria-hidden": "true" },
          el("i", { style: width(time, step) }),
          saving ? el("i", { class: "worth", style: width(saving, info.steps.bare_ms || step) }) : null,
        )
      : null;
  return el(
    "span",
    { class: "cost" },
    el("span", {}, el("b", {}, ms(time)), what),
    el(
      "span",
      { class: saving === null && range === null ? "worth none" : "worth" },
      el("b", {}, range || ms(saving)),
      saving === null && range === null ? "worth" : "worth a step",
    ),
    meter,
  );
}

function mainFacts(finding, data) {
  const range =
    finding.saving_low_ms_per_step !== null && finding.saving_high_ms_per_step !== null
      ? `${between(finding.saving_low_ms_per_step, finding.saving_high_ms_per_step)} a step`
      : null;
  const info = data.report.traces[finding.trace];
  const perStep = finding.per_step === null ? "" : `, ${digits(finding.per_step)} a step`;
  return factList([
    ["Operation", finding.op && el("code", {}, finding.op)],
    ["Occurrences", `${finding.count}${info.steps.count ? ` in ${count(info.steps.count, "step")}` : ""}${perStep}`],
    ["Copied", finding.bytes === null ? null : bytes(finding.bytes)],
    ["Exposed", finding.exposed_ms_per_step === null ? null : `${ms(finding.exposed_ms_per_step)} a step`],
    ["Worth", range],
    [range ? "Only a range" : "Worth unknown", finding.saving_null_why],
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

function card(finding, n, data, show) {
  const info = data.report.traces[finding.trace];
  const lanes = data.lanes[data.page.views[finding.trace].lanes];
  const site = finding.site;
  const where = site
    ? [el("code", {}, place(site)), ` in ${site.function}`]
    : [finding.op ? [el("code", {}, finding.op), ", "] : null, "no line in the trace"].flat();
  const rule = data.page.rules.some((one) => one.code === finding.rule)
    ? el("a", { href: `#rule-${finding.rule}` }, `About ${finding.rule}`)
    : null;
  const copied = el("span", { role: "status", class: "lead" });
  return el(
    "details",
    { class: "finding", id: `finding-${n}` },
    el(
      "summary",
      {},
      icon(finding.severity),
      el(
        "span",
        { class: "what" },
        el("span", { class: "rule" }, words(finding.name)),
        el("span", { class: "tags" }, `${finding.rule} · ${finding.severity}`),
        finding.status === "unexpected" ? null : el("span", { class: "chip" }, finding.status),
        data.page.views.length > 1
          ? el("span", { class: "chip of-trace" }, data.page.views[finding.trace].label)
          : null,
        el("span", { class: "line" }, where),
        site && site.expression ? el("code", { class: "expression" }, site.expression) : null,
        site ? null : el("span", { class: "said" }, finding.message),
      ),
      costs(finding, info),
    ),
    el(
      "div",
      { class: "body" },
      el(
        "div",
        {},
        el("p", {}, finding.message),
        el("p", { class: "fix" }, el("b", {}, "Fix "), finding.fix),
        allowance(finding),
        sketches(finding, info),
        snippet(finding, lanes ? lanes.sources : {}),
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
      mainFacts(finding, data),
    ),
  );
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

/** All that a reader may search for, in lower case. */
function haystack(finding) {
  const frames = [finding.site, finding.at, ...finding.chain]
    .filter(Boolean)
    .map((frame) => `${place(frame)} ${frame.function}`);
  return [
    finding.rule,
    finding.name,
    words(finding.name),
    finding.severity,
    finding.op,
    finding.thread,
    finding.message,
    finding.fix,
    finding.reason,
    finding.site && finding.site.expression,
    finding.fingerprint,
    ...frames,
  ]
    .filter(Boolean)
    .join("\n")
    .toLowerCase();
}

class Findings {
  constructor(data, show) {
    this.data = data;
    this.rows = data.report.findings.map((finding, i) => ({
      finding,
      text: haystack(finding),
      card: card(finding, i + 1, data, show),
    }));
    const none = el("p", { class: "empty", id: "none" }, "");
    fill(
      "cards",
      this.rows.map((row) => row.card),
      none,
    );
    this.none = none;
    this.fillFilters();
    byId("filters").addEventListener("input", () => this.apply());
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", () => this.open());
    this.apply();
  }

  fillFilters() {
    const { report, page } = this.data;
    const tally = (key) =>
      this.rows.reduce((map, row) => map.set(row.finding[key], (map.get(row.finding[key]) || 0) + 1), new Map());
    const rules = [...tally("rule")].sort(([a], [b]) => (a < b ? -1 : 1));
    const name = (code) => report.findings.find((finding) => finding.rule === code).name;
    fill(
      "rule",
      el("option", { value: "" }, "All"),
      rules.map(([code, n]) => el("option", { value: code }, `${code} ${words(name(code))} (${n})`)),
    );
    const statuses = tally("status");
    fill(
      "statuses",
      el("legend", {}, "Status"),
      el(
        "div",
        { class: "boxes" },
        ["unexpected", "baseline", "expected"]
          .filter((status) => statuses.has(status))
          .map((status) =>
            el(
              "label",
              {},
              el("input", { type: "checkbox", name: "status", value: status, checked: true }),
              `${words(status)} (${statuses.get(status)})`,
            ),
          ),
      ),
    );
    byId("trace-label").hidden = page.views.length < 2;
    fill(
      "trace",
      el("option", { value: "" }, "All"),
      page.views.map((view, i) => el("option", { value: String(i) }, view.label)),
    );
    byId("filters").hidden = this.rows.length === 0;
  }

  apply() {
    const needles = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rule = byId("rule").value;
    const trace = byId("trace").value;
    const statuses = new Set([...document.querySelectorAll("input[name=status]:checked")].map((box) => box.value));
    let shown = 0;
    for (const { finding, text, card: node } of this.rows) {
      const fits =
        statuses.has(finding.status) &&
        (!rule || finding.rule === rule) &&
        (!trace || finding.trace === Number(trace)) &&
        needles.every((needle) => text.includes(needle));
      node.hidden = !fits;
      shown += fits;
    }
    byId("cards").classList.toggle("one-trace", trace !== "");
    byId("count").textContent =
      shown === this.rows.length ? count(shown, "finding") : `${shown} of ${count(this.rows.length, "finding")}`;
    this.none.hidden = shown > 0;
    this.none.textContent = this.rows.length ? "Nothing matches the filter." : "No findings.";
  }

  /** Opens what the address points at, even if a filter hides it. */
  open() {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target || target.tagName !== "DETAILS") return;
    if (target.hidden) {
      byId("filters").reset();
      byId("trace").value = "";
      this.apply();
    }
    target.open = true;
    target.scrollIntoView({ block: "start" });
  }

  /** Shows the findings of one trace. */
  ofTrace(index) {
    if (this.data.page.views.length < 2) return;
    byId("trace").value = String(index);
    this.apply();
  }

  /** So that a reader sees what a card holds. */
  openFirst() {
    const shown = this.rows.filter((row) => !row.card.hidden && row.finding.status === "unexpected");
    if (shown.length && !shown.some((row) => row.card.open)) shown[0].card.open = true;
  }

  mark(index) {
    this.rows.forEach((row, i) => row.card.classList.toggle("shown", i === index));
  }
}
