// The small picture of a step before and after a fix: one row a lane, one bar a bin, as high as it is busy.

const LANE = 12;
const LANE_GAP = 3;
const SKETCH_WIDTH = 300;

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

/** One step; `bin` is the width of a bin in pixels, so that two steps are drawn on one scale. */
function stepSketch(sketch, bin) {
  const high = sketch.lanes.length * (LANE + LANE_GAP);
  const rows = sketch.lanes.flatMap((lane, i) => {
    const top = i * (LANE + LANE_GAP);
    const kind = i === 0 ? "blocked" : "stream";
    return [
      shape("rect", { class: "room", x: 0, y: top, width: lane.busy.length * bin, height: LANE }),
      shape("path", { class: kind, d: laneBars(lane.busy, bin, top) }),
    ];
  });
  return shape("svg", { viewBox: `0 0 ${SKETCH_WIDTH} ${high}`, class: "sketch", "aria-hidden": "true" }, ...rows);
}

/** Before and after, with the length of each; null where the saving was not drawn. */
function sketches(finding, info) {
  const before = info.replay && info.replay.before;
  if (!before || !finding.after || !before.lanes.length || !before.lanes[0].busy.length) return null;
  const bin = SKETCH_WIDTH / before.lanes[0].busy.length;
  const half = (name, sketch) => [
    el("dt", {}, name, el("b", {}, ms(sketch.step_ms))),
    el("dd", {}, stepSketch(sketch, bin)),
  ];
  return el(
    "figure",
    { class: "sketches" },
    el("dl", {}, half("Step as it is", before), half("With this fixed", finding.after)),
    el("figcaption", {}, `Rows: ${before.lanes.map((lane) => lane.label).join(", ")}. Replayed, without the profiler.`),
  );
}
