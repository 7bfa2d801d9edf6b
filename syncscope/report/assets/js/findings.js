// The findings in the report's order, with a filter over them.

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
    finding.annotation,
    finding.fingerprint,
    finding.phase,
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
      key: alikeKey(finding),
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
    this.fillPhases(tally("phase"));
    byId("filters").hidden = this.rows.length === 0;
  }

  /** A choice of phases, where findings are in several. */
  fillPhases(tally) {
    this.phases = [...tally.keys()].filter((name) => name !== null);
    byId("phase-label").hidden = this.phases.length < 2;
    fill(
      "phase",
      el("option", { value: "" }, "All"),
      this.phases.map((name, i) => el("option", { value: String(i) }, `${clean(name)} (${tally.get(name)})`)),
    );
  }

  apply() {
    const needles = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rule = byId("rule").value;
    const trace = byId("trace").value;
    const phase = byId("phase").value;
    const statuses = new Set([...document.querySelectorAll("input[name=status]:checked")].map((box) => box.value));
    let shown = 0;
    const seen = new Set();
    let alike = 0;
    for (const { finding, text, key, card: node } of this.rows) {
      let fits =
        statuses.has(finding.status) &&
        (!rule || finding.rule === rule) &&
        (!trace || finding.trace === Number(trace)) &&
        (!phase || finding.phase === this.phases[Number(phase)]) &&
        needles.every((needle) => text.includes(needle));
      // Show the heaviest of the findings that several ranks share, until the reader chooses one of the others.
      if (fits && !trace && seen.has(key)) [fits, alike] = [false, alike + 1];
      if (fits) seen.add(key);
      node.hidden = !fits;
      shown += fits;
    }
    byId("cards").classList.toggle("one-trace", trace !== "");
    const distinct = trace ? this.rows.length : new Set(this.rows.map((row) => row.key)).size;
    byId("count").textContent =
      (shown + alike === this.rows.length ? count(shown, "finding") : `${shown} of ${count(distinct, "finding")}`) +
      (alike ? `, and ${alike} alike on other ranks` : "");
    this.none.hidden = shown > 0;
    this.none.textContent = this.rows.length ? "Nothing matches the filter." : "No findings.";
  }

  /** Opens what the address points at, even if a filter hides it. */
  open() {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target || target.tagName !== "DETAILS") return;
    if (target.hidden) {
      byId("filters").reset();
      const row = this.rows.find((one) => one.card === target);
      byId("trace").value = row && this.data.page.views.length > 1 ? String(row.finding.trace) : "";
      this.apply();
    }
    if (target.make) unfold(target);
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
    if (shown.length && !shown.some((row) => row.card.open)) unfold(shown[0].card);
  }

  /** Opens all that are shown, for paper. Returns those that were folded. */
  unfold() {
    const folded = this.rows.map((row) => row.card).filter((node) => !node.hidden && !node.open);
    folded.forEach(unfold);
    return folded;
  }

  mark(index) {
    this.rows.forEach((row, i) => row.card.classList.toggle("shown", i === index));
  }
}
