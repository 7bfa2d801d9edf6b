// Pointer, wheel and keys of the timeline.

const KEYS = {
  w: "in",
  ArrowUp: "in",
  "+": "in",
  s: "out",
  ArrowDown: "out",
  "-": "out",
  a: "left",
  ArrowLeft: "left",
  d: "right",
  ArrowRight: "right",
  n: "wait",
  p: "back",
  0: "fit",
  Home: "fit",
  f: "whole",
  m: "measure",
};

function listen(timeline) {
  const frame = byId("timeline-frame");
  const canvas = byId("timeline");
  const arm = (on) => frame.classList.toggle("armed", on);
  frame.addEventListener("focus", () => arm(true));
  frame.addEventListener("blur", () => arm(false));
  frame.addEventListener("keydown", (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
    if (action) event.preventDefault();
    if (action) timeline.do(action);
    if (event.key === "Escape" && timeline.picture) {
      timeline.measure(null);
      timeline.choose(null);
    }
  });
  canvas.addEventListener("wheel", (event) => wheel(event, timeline, frame), { passive: false });
  canvas.addEventListener("mouseleave", () => {
    byId("tip").hidden = true;
  });
  byId("timeline-tools").addEventListener("click", (event) => {
    const button = event.target.closest("button[data-do]");
    if (button) timeline.do(button.dataset.do);
  });
  byId("step").addEventListener("change", (event) => {
    if (!timeline.picture) return;
    const { steps } = timeline.picture.lanes;
    const wanted = Number(event.target.value);
    const found = steps.findIndex((step) => step.number >= wanted);
    timeline.chosen = null;
    timeline.goTo(found < 0 ? steps.length - 1 : found);
  });
  drags(timeline, canvas, frame);
  slides(timeline, byId("minimap"));
}

/** Until the reader has clicked into it, a wheel over the timeline scrolls the page. */
function wheel(event, timeline, frame) {
  if (!timeline.picture || !(frame.classList.contains("armed") || event.ctrlKey)) return;
  const lines = event.deltaMode === 1 ? 16 : 1;
  const [x, y] = [event.deltaX * lines, event.deltaY * lines];
  event.preventDefault();
  byId("tip").hidden = true;
  if (event.shiftKey || Math.abs(x) > Math.abs(y)) timeline.pan((x || y) / 900);
  else timeline.zoom(Math.exp(Math.max(-1, Math.min(1, y * (event.ctrlKey ? 0.01 : 0.0025)))), time(timeline, event));
}

function time(timeline, { offsetX }) {
  const { left, width } = timeline.paint;
  return timeline.from + ((offsetX - left) / (width - left)) * (timeline.to - timeline.from);
}

/** One pointer moves, or measures, two zoom; a click chooses, and on the name of a lane folds it. */
function drags(timeline, canvas, frame) {
  const held = new Map();
  let moved = 0;
  let began = null; // where a measurement does
  canvas.addEventListener("pointerdown", (event) => {
    if (!timeline.picture || event.button > 0) return;
    frame.focus({ preventScroll: true });
    held.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    const measures = (event.shiftKey || timeline.measuring) && event.offsetX >= timeline.paint.left;
    began = measures ? time(timeline, event) : null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!timeline.picture) return;
    const before = held.get(event.pointerId);
    if (!before) {
      timeline.inspector.point(event);
      return;
    }
    const span = timeline.to - timeline.from;
    const across = (pixels) => (pixels / (timeline.paint.width - timeline.paint.left)) * span;
    const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
    moved += Math.abs(event.offsetX - before.offsetX) + Math.abs(event.offsetY - before.offsetY);
    if (other) {
      const apart = (one) => Math.max(20, Math.abs(one.offsetX - other.offsetX));
      timeline.zoom(apart(before) / apart(event), time(timeline, other));
    } else if (moved > 3 && began !== null) {
      byId("tip").hidden = true;
      timeline.measure(began, time(timeline, event));
    } else if (moved > 3) {
      byId("tip").hidden = true;
      canvas.classList.add("moving");
      timeline.moveTo(timeline.from - across(event.offsetX - before.offsetX), span);
    }
    held.set(event.pointerId, event);
  });
  const release = (event) => {
    const clicked = held.delete(event.pointerId) && event.type === "pointerup" && moved <= 3;
    canvas.classList.remove("moving");
    if (!clicked || !timeline.picture) return;
    const lane = laneOf(timeline, event);
    if (lane !== null) timeline.fold(lane);
    else timeline.choose(timeline.inspector.under(event)?.n ?? null);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
}

/** The strip of the whole trace: press and slide. */
function slides(timeline, strip) {
  const go = (event) => {
    if (!timeline.picture) return;
    const span = timeline.to - timeline.from;
    timeline.moveTo(timeline.minimap.time(event.offsetX) - span / 2, span);
  };
  strip.addEventListener("pointerdown", (event) => {
    strip.setPointerCapture(event.pointerId);
    go(event);
  });
  strip.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) go(event);
  });
}
