// The page of a comparison: everything said is text from the data, drawn once and again when colours or width change.

const KINDS = { new: "New", more: "More often", unclear: "Unclear", fewer: "Less often", fixed: "Fixed" };
const MARKS = { new: "worse", more: "worse", unclear: "unclear", fewer: "better", fixed: "better" };

function drawLines(data) {
  const [[, step], ...rest] = data.lines;
  fill("verdict", el("span", { class: "label" }, "Step"), " ", el("span", {}, unbroken(step)));
  fill(
    "lines",
    rest.map(([name, text]) => el("div", {}, el("dt", {}, words(name)), el("dd", {}, unbroken(text)))),
  );
  fill("details", data.doubts.join(" "));
  fill("where", data.sides.map((side) => side.path.split(/[\\/]/).slice(-2).join("/")).join("  →  "));
}

/** One side: what it is, its bar, and the list that is the bar's legend. */
function sideColumn(side, i) {
  return el(
    "div",
    { class: "side" },
    el("h3", {}, side.name, el("span", {}, side.path)),
    side.device ? el("p", { class: "lead" }, side.device) : null,
    side.split
      ? el("div", { class: "chart", id: `split-${i}`, role: "img", "aria-label": side.parts.map((part) => `${part.label} ${ms(part.ms)}`).join("; ") })
      : el("p", { class: "notice" }, "The trace holds no device activity."),
    el("ul", { class: "parts", "aria-label": `Parts of the step, ${side.name.toLowerCase()}` }, partRows(styled(side.parts))),
  );
}

function drawAmounts(amounts) {
  const head = (text, i) => el("th", { scope: "col", class: i ? "number" : null }, text);
  const row = (one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, one.label),
      el("td", { class: "number" }, one.before),
      el("td", { class: "number" }, one.after),
      el("td", { class: `number ${one.better === null ? "" : one.better ? "better" : "worse"}` }, one.change),
    );
  fill(
    "amounts",
    el("thead", {}, el("tr", {}, ["A step", "Before", "After", "Change"].map(head))),
    el("tbody", {}, amounts.map(row)),
  );
}

function timelineOf(side, i) {
  return [
    el("h3", {}, side.name, el("span", {}, side.window || "")),
    side.timeline
      ? el("div", { class: "chart", id: `timeline-${i}`, role: "img", "aria-label": `${side.name}: ${side.window} over time` })
      : el("p", { class: "notice" }, "The trace is not at hand, and the timeline is drawn from it."),
  ];
}

function changeRow(change) {
  return el(
    "li",
    { class: MARKS[change.kind] },
    el("p", { class: "kind" }, KINDS[change.kind]),
    el(
      "div",
      { class: "what" },
      el("p", {}, el("b", {}, words(change.name)), " ", el("span", { class: "tag" }, change.rule), " ", change.counts),
      el("p", { class: "line" }, el("code", {}, change.place), change.function ? ` in ${change.function}` : null),
      change.expression ? el("p", { class: "line" }, el("code", {}, change.expression)) : null,
      change.said.map((text) => el("p", { class: "said" }, text)),
    ),
  );
}

function drawChanges(data) {
  fill("changes", data.changes.map(changeRow));
  const left = data.left_out ? `${count(data.left_out, "more change")} in the JSON output.` : "";
  fill("changes-lead", data.changes.length ? left : "No finding came, went, or occurs more or less often.");
  byId("changes-lead").hidden = data.changes.length > 0 && !left;
  byId("limits").hidden = data.not_compared.length === 0;
  fill("limits-lead", `${data.not_compared.join(", ")}: not checked on both sides.`);
}

function drawFigures(data, width = null) {
  drawFigure(byId("saving"), data.saving, width);
  data.sides.forEach((side, i) => {
    if (side.split) drawFigure(byId(`split-${i}`), side.split, width);
    if (side.timeline) drawFigure(byId(`timeline-${i}`), side.timeline, width);
  });
}

function start() {
  const data = JSON.parse(byId("data").textContent);
  drawLines(data);
  byId("saving").setAttribute("aria-label", data.saving_words);
  fill("sides", data.sides.map(sideColumn));
  drawAmounts(data.amounts);
  fill("timelines", data.sides.flatMap(timelineOf));
  byId("timeline-section").hidden = data.sides.every((side) => side.timeline === null);
  fill(
    "legend",
    data.kinds.map(([kind, name]) => el("li", {}, swatch(kind === "exposed" ? { top: "HtoD", hatched: true } : { top: kind }), name)),
  );
  drawChanges(data);
  drawFigures(data);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawFigures(data));
  window.addEventListener("resize", () => requestAnimationFrame(() => drawFigures(data)));
  const paper = (on) => {
    document.documentElement.toggleAttribute("data-paper", on);
    drawFigures(data, on ? 690 : null);
  };
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
  document.documentElement.dataset.ready = "true";
}

start();
