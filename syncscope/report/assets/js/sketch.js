// The small picture of a step before and after a fix: one row a lane, one bar a bin, as high as it is busy.

const LANE = 12;
const LANE_GAP = 3;
const SKETCH_WIDTH = 300;
const HATCH = 5;

function shape(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, clean(value));
  node.append(...children);
  return node;
}

/** The bars of a lane as one path; `busy` is one digit a bin, 0 to 9. */
function laneBars(busy, width, top) {
  const parts = [...busy].map((digit, i) => {
    const high = (LANE * Number(digit)) / 9;
    return high > 0
      ? `M${(i * width).toFixed(2)} ${top + LANE}v${-high.toFixed(2)}h${width.toFixed(2)}v${high.toFixed(2)}z`
      : "";
  });
  return parts.join("");
}

/**
 * One step; `bin` is the width of a bin in pixels, so that two steps are drawn on one scale. What is missing of the step
 * before, which was `whole` bins long, is hatched: it is what the change saves.
 */
function stepSketch(sketch, bin, whole = 0) {
  const high = sketch.lanes.length * (LANE + LANE_GAP);
  const rows = sketch.lanes.flatMap((lane, i) => {
    const top = i * (LANE + LANE_GAP);
    const kind = i === 0 ? "blocked" : "stream";
    return [
      shape("rect", { class: "room", x: 0, y: top, width: lane.busy.length * bin, height: LANE }),
      shape("path", { class: kind, d: laneBars(lane.busy, bin, top) }),
    ];
  });
  const end = Math.max(...sketch.lanes.map((lane) => lane.busy.length)) * bin;
  const saved = whole * bin - end;
  if (saved > 1) {
    const deep = high - LANE_GAP;
    const lines = Array.from({ length: Math.ceil((saved + deep) / HATCH) }, (_, i) => {
      const from = end + i * HATCH - deep; // where the line would meet the lower edge; it rises to the right
      const [left, right] = [Math.max(from, end), Math.min(from + deep, whole * bin)];
      return left < right ? `M${left} ${deep - (left - from)}L${right} ${deep - (right - from)}` : "";
    });
    rows.push(shape("path", { class: "saved", d: lines.join("") }));
  }
  return shape("svg", { viewBox: `0 0 ${SKETCH_WIDTH} ${high}`, class: "sketch", "aria-hidden": "true" }, ...rows);
}

/** How far the step of the pictures may be from the mean step, as a share of that. */
const UNLIKE = 0.25;

/**
 * Whether the pictures agree with what is said of the step and of the saving: those that contradict it are not shown.
 * They are of one step, and the saving is the mean of all.
 */
function agrees(finding, before, step) {
  const [low, high] = [finding.saving_low_ms_per_step, finding.saving_high_ms_per_step];
  if (low === null || high === null || Math.abs(before.step_ms - step) > UNLIKE * step) return false;
  const saved = before.step_ms - finding.after.step_ms;
  const slack = 0.01 * before.step_ms;
  return saved >= low - slack && saved <= high + slack;
}

/**
 * Before and after, with the length of each; null where the saving was not drawn. The lengths are those that the saving
 * is a share of, so that they agree with it; the replay behind the pictures may be off by a little.
 */
function sketches(finding, info, step) {
  const before = info.replay && info.replay.before;
  if (!before || !finding.after || !before.lanes.length || !before.lanes[0].busy.length) return null;
  if (step === null || !agrees(finding, before, step)) return null;
  const bin = SKETCH_WIDTH / before.lanes[0].busy.length;
  const { saving_ms_per_step: known, likely_saving_ms_per_step: likely, saving_high_ms_per_step: high } = finding;
  const about = known !== null ? "" : likely !== null ? "about " : "at best ";
  const whole = before.lanes[0].busy.length;
  const half = (name, sketch, text) => [
    el("dt", {}, name, el("b", {}, text)),
    el("dd", {}, stepSketch(sketch, bin, whole)),
  ];
  const [host, ...streams] = before.lanes.map((lane) => lane.label);
  const key = (top, text) => el("span", {}, swatch({ top }), text);
  return el(
    "figure",
    { class: "sketches" },
    el(
      "dl",
      {},
      half("Step without the profiler", before, ms(step)),
      half("With this fixed", finding.after, `${about}${ms(Math.max(0, step - (known ?? likely ?? high)))}`),
    ),
    el(
      "figcaption",
      {},
      key("wait", host),
      streams.length ? key("compute", `busy: ${streams.join(", ")}`) : null,
      el("span", {}, el("span", { class: "swatch saved", "aria-hidden": "true" }), "saved"),
      "Drawn from a replay.",
    ),
  );
}
