// One place as a card: what changing it means at a glance, and unfolded the fix, the source and the call chain.

/** The findings of a card, one for each rule: those of a trace and a phase, or the heaviest where these are null. */
function shownOn(view, data, trace, phase) {
  const { findings } = data.report;
  const fits = (one) => (trace === null || one.trace === trace) && (phase === null || one.phase === phase);
  return view.groups.map((group) => group.find((n) => fits(findings[n]))).filter((n) => n !== undefined);
}

function costs(finding, info, impact, step) {
  const [time, what] = cost(finding, info);
  const inRun = finding.run_stall_ms_per_step === null ? null : stepOfPhase(finding, info);
  const paced = isPaced(finding);
  const whole = / step(, at most)?$/.test(what) ? inRun || (paced ? info.steps.bare_ms : info.steps.profiled_ms) : null;
  const saving = finding.run_saving_ms_per_step ?? finding.saving_ms_per_step ?? finding.likely_saving_ms_per_step;
  const width = (value, of) => `width: ${Math.min(100, (100 * value) / of).toFixed(2)}%`;
  const meter =
    whole && time !== null
      ? el(
          "span",
          { class: "meter", "aria-hidden": "true" },
          el("i", { style: width(time, whole) }),
          saving ? el("i", { class: "saves", style: width(saving, inRun || step || whole) }) : null,
        )
      : null;
  const of = whole && time !== null ? `, ${share(time / whole)}${inRun ? "" : "\u00a0of\u00a0it"}${paced ? " without the profiler" : ""}` : "";
  return el(
    "span",
    { class: "cost" },
    time === null ? el("span", {}) : el("span", {}, el("b", {}, ms(time)), unbroken(`${what}${of}`)),
    el(
      "span",
      { class: `impact ${impact.level}` },
      el("b", {}, impact.words),
      impact.amount === null ? null : unbroken(impact.amount.includes(" step") ? impact.amount : `${impact.amount} ${info.steps.count ? "a step" : "in all"}`),
    ),
    meter,
  );
}

/** What the line of a card does in other phases. */
function inOtherPhases(view, finding) {
  const others = view.phases.filter(([phase]) => phase !== finding.phase).map(([, said]) => said);
  const more = others.length - 3;
  return others.length ? `also ${others.slice(0, 3).join("; ")}${more > 0 ? `; in ${more} more` : ""}` : null;
}

/** The other traces of its phase that have what a card shows. */
function elsewhere(view, finding, data) {
  const { findings } = data.report;
  const alike = view.groups.flat().filter((n) => findings[n].phase === finding.phase);
  const all = new Set(alike.map((n) => findings[n].trace));
  const traces = [...all].filter((trace) => trace !== finding.trace).sort((one, other) => one - other);
  if (!traces.length) return null;
  return traces.length > 3
    ? `also on ${traces.length} others of ${data.page.views.length}`
    : `also on ${joined(traces.map((trace) => data.page.views[trace].label))}`;
}

/** Labels of traces in a row: `ranks 0, 1, 3`. */
function joined(labels) {
  const ranks = labels.length > 1 && labels.every((label) => /^rank \d+$/.test(label));
  return ranks ? `ranks ${labels.map((label) => label.slice("rank ".length)).join(", ")}` : labels.join(", ");
}

/** Other cards about the same cause. */
function relatedLinks(view, shown, data) {
  const { findings } = data.report;
  const prints = new Set(shown.flatMap((n) => findings[n].related));
  const others = data.page.cards.filter(
    (other) => other !== view && other.groups.flat().some((n) => prints.has(findings[n].fingerprint)),
  );
  if (!others.length) return null;
  const name = (other) => {
    const lead = findings[other.groups[0][0]];
    return `${words(lead.name)}${lead.site ? `, ${place(lead.site)}` : ""}`;
  };
  return el(
    "p",
    { class: "same" },
    "Same cause: ",
    others.map((other, i) => [i ? "; " : "", el("a", { href: `#${other.id}` }, name(other))]).flat(),
  );
}

/** What the other rules of a card say of the place. */
function otherRules(shown, data) {
  const rest = shown.slice(1).map((n) => data.report.findings[n]);
  if (!rest.length) return null;
  return el(
    "ul",
    { class: "others", "aria-label": "What other rules say of this place" },
    rest.map((one) => el("li", {}, el("b", {}, `${one.rule} ${words(one.name)}`), ` ${one.message}`)),
  );
}

function actions(view, n, data, show) {
  const copied = el("span", { role: "status", class: "lead" });
  const copy = (name, text) => el("button", { type: "button", onclick: () => copyText(text(), copied) }, name);
  const lanes = data.page.views[data.report.findings[n].trace].lanes;
  const rules = [...new Set(view.groups.map((group) => data.report.findings[group[0]].rule))];
  return el(
    "div",
    { class: "actions" },
    lanes === null ? null : el("button", { type: "button", onclick: () => show(n) }, "Show in timeline"),
    copy("Copy as Markdown", () => view.markdown),
    copy("Copy as prompt", () => view.prompt),
    copy("Copy link", () => `${location.href.split("#")[0]}#${view.id}`),
    rules
      .filter((rule) => data.page.rules.some((one) => one.code === rule))
      .map((rule) => el("a", { href: `#rule-${rule}` }, `About ${rule}`)),
    copied,
  );
}

function body(view, shown, data, show) {
  const finding = data.report.findings[shown[0]];
  const info = data.report.traces[finding.trace];
  const lanes = data.lanes[data.page.views[finding.trace].lanes];
  return [
    el(
      "div",
      {},
      finding.site ? el("p", {}, sentence(finding.message)) : null,
      otherRules(shown, data),
      snippet(finding, lanes ? lanes.sources : {}),
      data.page.fixes[shown[0]].map(([cause, fix]) =>
        el("p", { class: "fix" }, el("b", {}, cause ? `Fix (${cause}) ` : "Fix "), fix),
      ),
      example(data.page.examples[shown[0]], finding),
      allowance(finding),
      callChain(finding),
      relatedLinks(view, shown, data),
      actions(view, shown[0], data, show),
    ),
    el("div", { class: "aside" }, sketches(finding, info, data.page.steps[finding.trace]), mainFacts(finding, data)),
  ];
}

/** The loop of the steps that a finding is about as a whole, where it is known. */
function loopOf(finding, info) {
  const phase = info.run && info.run.phases.find((one) => one.name === finding.phase);
  if (!phase || !phase.where) return null;
  return ["the loop of ", el("code", {}, breakable(phase.where.slice(0, phase.where.lastIndexOf(" "))))];
}

/** An expression as a closed card has room for it; the open one has all of it in its first sentence. */
function shortened(expression, most = 120) {
  return expression.length > most ? `${expression.slice(0, most - 1)}…` : expression;
}

function summary(view, shown, data) {
  const finding = data.report.findings[shown[0]];
  const often = data.page.runs.often[shown[0]];
  const { site } = finding;
  const where = site
    ? [finding.work_ends_at.length ? "before " : null, el("code", {}, breakable(place(site))), ` in ${site.function}`]
    : [
        finding.op ? el("code", {}, finding.op) : null,
        finding.annotation ? [finding.op ? " in " : "in ", el("code", {}, finding.annotation)] : null,
        finding.op || finding.annotation ? null : loopOf(finding, data.report.traces[finding.trace]),
      ].flat();
  const many = data.page.views.length > 1;
  const others = many ? elsewhere(view, finding, data) : null;
  const phases = inOtherPhases(view, finding);
  const tags = shown.map((n) => data.report.findings[n]);
  const impact = data.page.impacts[shown[0]];
  return el(
    "summary",
    {},
    icon(impact.level),
    el(
      "span",
      { class: "what" },
      el("span", { class: "rule" }, words(finding.name)),
      el(
        "span",
        { class: "tags" },
        tags.map((one) => el("span", { class: "tag", title: words(one.name) }, one.rule)),
      ),
      view.sums_up ? el("span", { class: "chip" }, "sums up the others") : null,
      finding.status === "unexpected" ? null : el("span", { class: "chip" }, finding.status),
      many ? el("span", { class: "chip of-trace" }, data.page.views[finding.trace].label) : null,
      others ? el("span", { class: "chip" }, others) : null,
      // With spaces between: in a row that is narrow, a word would be broken else.
      where.some(Boolean) ? [el("span", { class: "line" }, where), " "] : null,
      site && site.expression ? [el("code", { class: "expression" }, shortened(site.expression)), " "] : null,
      site ? null : el("span", { class: "message" }, sentence(finding.message)),
      often ? [el("span", { class: "often" }, often), " "] : null,
      phases ? el("span", { class: "often" }, phases) : null,
    ),
    costs(finding, data.report.traces[finding.trace], impact, data.page.steps[finding.trace]),
  );
}

/** A card; `node.showOf(trace, phase)` makes it that of one of each. Its details are made when it is first unfolded. */
function card(view, data, show) {
  const node = el("details", { class: "finding", id: view.id });
  let of = null;
  node.showOf = (trace, phase) => {
    const shown = shownOn(view, data, trace, phase);
    if (!shown.length || shown.join() === of) return;
    of = shown.join();
    node.replaceChildren(summary(view, shown, data));
    node.make = () => {
      node.make = () => {};
      node.append(el("div", { class: "body" }, body(view, shown, data, show)));
    };
    if (node.open) node.make();
  };
  node.showOf(null, null);
  node.addEventListener("toggle", () => node.open && node.make());
  return node;
}

function unfold(node) {
  node.make();
  node.open = true;
}
