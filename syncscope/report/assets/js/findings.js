// The cards in the report's order, with a filter over them. What is one card is decided where the page is made.

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

/** The lines of cards of one file, each once: `lines 208, 214 and 6 more`. */
function linesOf(rows) {
  const lines = [...new Set(rows.map((row) => row.findings[0].site.line).filter((line) => line !== null))];
  lines.sort((one, other) => one - other);
  const more = lines.length - 8;
  const named = more > 1 ? [...lines.slice(0, 8), `${more} more`] : lines;
  const last = named.length > 1 ? ` and ${named.at(-1)}` : "";
  return `${named.length > 1 ? "lines" : "line"} ${last ? named.slice(0, -1).join(", ") + last : named.join("")}`;
}

class Findings {
  constructor(data, show) {
    this.data = data;
    this.rows = data.page.cards.map((view) => {
      const found = view.groups.map((group) => group.map((n) => data.report.findings[n]));
      return {
        view,
        findings: found.flat(),
        text: [...found.map((group) => haystack(group[0])), ...view.phases.flat()].join("\n").toLowerCase(),
        card: card(view, data, show),
      };
    });
    const none = el("p", { class: "empty", id: "none" }, "");
    byId("lines-lead").hidden = data.page.without_lines === null;
    const { without_lines: missing } = data.page;
    fill("lines-lead", missing ? inline(`${missing.charAt(0).toUpperCase()}${missing.slice(1)}.`) : "");
    this.headings = [];
    this.folds = [];
    fill("cards", this.arrange(), none);
    this.none = none;
    this.fillFilters();
    byId("filters").addEventListener("input", () => this.apply());
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    this.apply();
  }

  /** The cards in their order, under headings; those that are the change of the one before are folded behind it. */
  arrange() {
    const nodes = [];
    const several = new Set(this.rows.map((row) => row.view.heading)).size > 1;
    let heading = "";
    this.rows.forEach((row) => {
      if (several && row.view.heading !== heading) {
        heading = row.view.heading;
        this.headings.push({ rows: [], node: el("h3", { class: "kind" }, heading) });
        nodes.push(this.headings.at(-1).node);
      }
      if (several && heading) this.headings.at(-1).rows.push(row);
      if (!row.view.follows) {
        nodes.push(row.card);
        return;
      }
      if (!nodes.length || nodes.at(-1).tagName !== "DETAILS" || !nodes.at(-1).classList.contains("alike")) {
        const fold = { rows: [], node: el("details", { class: "alike" }, el("summary", {}, "")) };
        this.folds.push(fold);
        nodes.push(fold.node);
      }
      const fold = this.folds.at(-1);
      fold.rows.push(row);
      fold.node.append(row.card);
    });
    return nodes;
  }

  /** Shows headings and folds of what is shown; a fold whose first card a filter hides is open. */
  arrangeShown() {
    this.headings.forEach(({ rows, node }) => {
      node.hidden = rows.every((row) => row.card.hidden);
    });
    this.folds.forEach(({ rows, node }) => {
      const shown = rows.filter((row) => !row.card.hidden);
      node.hidden = !shown.length;
      node.firstChild.textContent = `The same fix at ${count(shown.length, "more place")}: ${linesOf(shown)}`;
      if (shown.length && node.previousSibling.hidden) node.open = true;
    });
  }

  fillFilters() {
    const { report, page } = this.data;
    const tally = (key) => {
      const found = this.rows.flatMap((row) => [...new Set(row.findings.map((one) => one[key]))]);
      return found.reduce((map, value) => map.set(value, (map.get(value) || 0) + 1), new Map());
    };
    const rules = [...tally("rule")].sort(([a], [b]) => (a < b ? -1 : 1));
    const name = (code) => report.findings.find((finding) => finding.rule === code).name;
    fill(
      "rule",
      el("option", { value: "" }, "All"),
      rules.map(([code, n]) => el("option", { value: code }, `${code} ${words(name(code))} (${n})`)),
    );
    const statuses = tally("status");
    // Without a gate all are unexpected, and there is nothing to choose.
    byId("statuses").hidden = statuses.size < 2;
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
    byId("filters").hidden = this.rows.length < 2; // one needs no search
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
    const trace = byId("trace").value === "" ? null : Number(byId("trace").value);
    const phase = byId("phase").value === "" ? null : this.phases[Number(byId("phase").value)];
    const statuses = new Set([...document.querySelectorAll("input[name=status]:checked")].map((box) => box.value));
    let shown = 0;
    for (const { findings, text, card: node } of this.rows) {
      const fits =
        statuses.has(findings[0].status) &&
        (!rule || findings.some((one) => one.rule === rule)) &&
        findings.some((one) => (trace === null || one.trace === trace) && (phase === null || one.phase === phase)) &&
        needles.every((needle) => text.includes(needle));
      node.hidden = !fits;
      if (fits) node.showOf(trace, phase);
      shown += fits;
    }
    this.arrangeShown();
    byId("cards").classList.toggle("one-trace", trace !== null);
    byId("count").textContent = this.tell(shown);
    this.none.hidden = shown > 0;
    this.none.textContent = this.rows.length ? "Nothing matches the filter." : "No findings.";
  }

  /** How many are shown: findings where each has a card, else cards, and how many findings these are. */
  tell(shown) {
    const all = this.data.report.findings.length;
    const cards = this.rows.length;
    if (all === cards) return shown === all ? count(all, "finding") : `${shown} of ${count(all, "finding")}`;
    const ranks = this.data.page.views.length;
    const of = ranks > 1 ? ` of ${count(ranks, "trace")}` : "";
    return shown === cards ? `${count(cards, "card")} for ${count(all, "finding")}${of}` : `${shown} of ${count(cards, "card")}`;
  }

  /** The card that the address names: by its own address, else by the fingerprint of any finding on it. */
  named() {
    const { id } = readAddress();
    const print = id.replace(/^finding-/, "");
    return (
      this.rows.find((row) => row.view.id === id) ||
      this.rows.find((row) => row.findings.some((one) => one.fingerprint === print))
    );
  }

  /** Opens what the address points at, even if a filter hides it. */
  open() {
    const { id } = readAddress();
    const row = id.startsWith("finding-") ? this.named() : null;
    const target = row ? row.card : byId(id);
    this.rows.forEach((one) => one.card.classList.toggle("named", one === row));
    if (!target || target.tagName !== "DETAILS") return;
    if (target.hidden) {
      byId("filters").reset();
      this.apply();
    }
    if (target.make) unfold(target);
    const fold = target.closest(".alike");
    if (fold) fold.open = true;
    target.open = true;
    target.scrollIntoView({ block: "start" });
  }

  /** Shows the findings of one trace. */
  ofTrace(index) {
    if (this.data.page.views.length < 2) return;
    byId("trace").value = String(index);
    this.apply();
  }

  /** So that a reader sees what a card holds: that of the first change, where it is shown. */
  openFirst() {
    const shown = this.rows.filter((row) => !row.card.hidden && row.findings[0].status === "unexpected");
    const first = shown.find((row) => row.view.id === this.data.page.first) || shown[0];
    if (first && !shown.some((row) => row.card.open)) unfold(first.card);
  }

  /** Opens all that are shown, for paper. Returns those that were folded. */
  unfold() {
    const folded = this.rows.map((row) => row.card).filter((node) => !node.hidden && !node.open);
    const closed = this.folds.map((fold) => fold.node).filter((node) => !node.open);
    folded.forEach(unfold);
    closed.forEach((node) => {
      node.open = true;
    });
    return [...folded, ...closed];
  }

  /** Marks the card of a finding. */
  mark(index) {
    this.rows.forEach((row) => row.card.classList.toggle("shown", row.view.groups.flat().includes(index)));
  }

  /** The address of the card of a finding. */
  idOf(index) {
    return this.rows.find((row) => row.view.groups.flat().includes(index)).view.id;
  }
}
