// The timeline: which part of which trace is in view, which bar is chosen, and how to move.

const KIND_LABEL = {
  wait: "wait",
  launch: "launch",
  call: "other runtime call",
  op: "operation",
  annotation: "annotation",
  compute: "kernel",
  collective: "collective",
  HtoD: "copy host to device",
  DtoH: "copy device to host",
  DtoD: "copy on the device",
  copy: "other copy",
  memset: "memset",
  idle: "device idle",
  exposed: "exposed: no compute beside it",
};
const LEGEND = "wait HtoD DtoH DtoD copy collective compute memset launch call op annotation idle exposed".split(" ");
const LEAST_NS = 100;
const REST_MS = 150; // after which a view that has not moved rests
const ROOM_NS = 60_000; // the shortest span shown around a bar that is in focus

class Timeline {
  /** `tell` has mark(finding), idOf(finding) and moved(view). */
  constructor(data, tell) {
    this.data = data;
    this.tell = tell;
    this.pictures = new Map();
    this.picture = null;
    this.chosen = null;
    this.paperWidth = null;
    this.paint = new Paint(byId("timeline"));
    this.minimap = new Minimap(byId("minimap"));
    this.inspector = new Inspector(this);
    this.measured = null;
    this.kernels = new Kernels(this);
    this.totals = new Totals(this);
    listen(this);
  }

  /** Shows another trace. */
  async open(view) {
    const at = this.data.page.views[view].lanes;
    byId("timeline-section").hidden = at === null;
    this.view = view;
    this.picture = null;
    this.chosen = null;
    this.measured = null;
    if (at === null) return;
    if (!this.pictures.has(at)) this.pictures.set(at, Picture.of(this.data.lanes[at]));
    const picture = await this.pictures.get(at);
    if (this.view !== view) return;
    this.picture = picture;
    const { steps } = picture.lanes;
    byId("step-pick").hidden = steps.length < 2;
    if (steps.length) Object.assign(byId("step"), { min: steps[0].number, max: steps.at(-1).number });
    this.lead();
    this.legend();
    listLanes(this);
    this.kernels.search();
    this.goTo(0);
    this.home = [this.from, this.to];
  }

  lead() {
    const { events, events_merged: merged, steps } = this.picture.lanes;
    fill(
      "timeline-lead",
      `${count(events, "event")}${steps.length ? ` in and around ${count(steps.length, "step")}` : ""}. `,
      merged
        ? `${share(merged / events)} of them share a bar with their neighbours, which says how many they are; the first steps, and the first of each wait and copy, are shown event by event. `
        : "",
      "Dotted lines lead from a wait to what it waited for.",
    );
  }

  legend() {
    fill(
      "legend",
      LEGEND.filter((kind) => this.picture.has(kind)).map((kind) =>
        el("li", {}, swatch(kind === "exposed" ? { top: "HtoD", hatched: true } : { top: kind }), KIND_LABEL[kind]),
      ),
    );
  }

  goTo(step) {
    const { steps } = this.picture.lanes;
    this.step = step;
    if (steps.length) byId("step").value = String(steps[step].number);
    const [from, to] = steps.length ? [steps[step].ts, steps[step].until] : [this.picture.start, this.picture.stop];
    this.zero = from;
    const room = 0.02 * (to - from);
    const left = Math.max(this.picture.start, from - room);
    this.moveTo(left, to + room - left);
    this.inspector.describe();
  }

  // The address

  /** Shows what an address names: `from` and `to` in ms since the begin of a step. */
  look({ step, from, to }) {
    if (!this.picture) return;
    const { steps } = this.picture.lanes;
    const at = steps.findIndex((one) => one.number === step);
    if (at >= 0) this.enterStep(steps[at].ts);
    this.moveTo(this.zero + from * 1e6, (to - from) * 1e6);
    this.inspector.describe();
  }

  /** Once the view rests: tells the address, and sums up what is in view. */
  settle() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      if (!this.picture || this.paperWidth) return;
      const { steps } = this.picture.lanes;
      const moved = this.from !== this.home[0] || this.to !== this.home[1];
      const [from, to] = [this.from - this.zero, this.to - this.zero].map((time) => time / 1e6);
      this.tell.moved(moved ? { step: steps.length ? steps[this.step].number : null, from, to } : null);
      this.totals.draw();
    }, REST_MS);
  }

  // Moving

  /** Draws with the next frame, once, however often it is called before. */
  moveTo(from, span) {
    const whole = this.picture.stop - this.picture.start;
    const wide = Math.min(1.1 * whole, Math.max(LEAST_NS, span));
    const [low, high] = [this.picture.start - 0.3 * wide, this.picture.stop - 0.7 * wide];
    this.from = Math.max(Math.min(low, high), Math.min(Math.max(low, high), from));
    this.to = this.from + wide;
    this.schedule();
  }

  schedule() {
    this.scheduled ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.scheduled);
    this.scheduled = 0;
    if (!this.picture || byId("timeline-section").hidden) return;
    const frame = byId("timeline-frame");
    const width = this.paperWidth || frame.clientWidth;
    if (!width) return;
    const left = width < 560 ? 78 : 136;
    this.paint.size(width, this.picture.height + 20);
    const { picture, from, to, zero, chosen, measured } = this;
    const { matches } = this.kernels;
    this.paint.draw({ picture, from, to, zero, chosen, measured, matches, left, words: (n) => this.words(n) });
    this.minimap.draw(picture, from, to, width, left, this.paint.ink);
    frame.dataset.from = ((from - zero) / 1e6).toFixed(6);
    frame.dataset.to = ((to - zero) / 1e6).toFixed(6);
    this.settle();
    if (this.drawn) return;
    this.drawn = true;
    performance.mark("timeline drawn");
  }

  /** Colours or width have changed. */
  redraw() {
    this.paint.refresh();
    this.draw();
  }

  zoom(factor, centre = (this.from + this.to) / 2) {
    const whole = 1.1 * (this.picture.stop - this.picture.start);
    const span = Math.min(whole, Math.max(LEAST_NS, (this.to - this.from) * factor));
    this.moveTo(centre - ((centre - this.from) / (this.to - this.from)) * span, span);
  }

  pan(part) {
    const span = this.to - this.from;
    this.moveTo(this.from + part * span, span);
  }

  do(action) {
    const actions = {
      left: () => this.pan(-0.2),
      right: () => this.pan(0.2),
      in: () => this.zoom(0.65),
      out: () => this.zoom(1 / 0.65),
      fit: () => this.goTo(this.step),
      whole: () => this.moveTo(this.picture.start, 1.1 * (this.picture.stop - this.picture.start)),
      wait: () => this.nextWait(1),
      back: () => this.nextWait(-1),
      measure: () => this.ruler(!this.measuring),
    };
    if (this.picture && actions[action]) actions[action]();
  }

  /** Goes to the next wait after the chosen bar, or to the one before it. Wraps around. */
  nextWait(way) {
    const waits = this.picture.waits();
    if (!waits.length) return;
    const now = this.chosen === null ? (way > 0 ? this.from - 1 : this.to + 1) : this.picture.ts[this.chosen];
    const { ts } = this.picture;
    const next = way > 0 ? waits.find((n) => ts[n] > now) : waits.findLast((n) => ts[n] < now);
    this.focus(next ?? waits.at(way > 0 ? 0 : -1));
  }

  choose(n) {
    this.chosen = n;
    this.schedule();
    this.inspector.describe();
  }

  /** Chooses a bar and moves it, and what it is linked to, into view. */
  focus(n) {
    const { ts, end, link } = this.picture;
    const linked = link[n] < 0 ? n : link[n];
    const from = Math.min(ts[n], ts[linked]);
    const to = Math.max(end[n], end[linked]);
    const span = Math.max(ROOM_NS, 1.8 * (to - from));
    this.enterStep(ts[n]);
    this.moveTo(Math.max(this.picture.start, (from + to) / 2 - span / 2), span);
    this.choose(n);
  }

  /** Counts time from the step that holds a moment. */
  enterStep(time) {
    const step = this.picture.stepAt(time);
    if (step < 0) return;
    this.step = step;
    this.zero = this.picture.lanes.steps[step].ts;
    byId("step").value = String(this.picture.lanes.steps[step].number);
  }

  // Measuring

  /** Whether a drag measures, and does not move. */
  ruler(on) {
    this.measuring = on;
    byId("timeline").classList.toggle("measuring", on);
    byId("ruler").setAttribute("aria-pressed", String(on));
  }

  /** Measures between two times; null forgets what was measured. */
  measure(a, b = null) {
    this.measured = a === null || a === b ? null : { from: Math.min(a, b), to: Math.max(a, b) };
    fill("measured", this.measured ? describeMeasured(this) : null);
    this.schedule();
  }

  /** Folds a lane into one thin row, or unfolds it. */
  fold(lane) {
    const { folded } = this.picture;
    if (!folded.delete(lane)) folded.add(lane);
    this.picture.layOut();
    listLanes(this);
    this.schedule();
  }

  // Findings

  /** Goes to the first occurrence of a finding. */
  show(index) {
    const [finding, first] = [this.data.report.findings[index], this.data.page.views[this.view].first[String(index)]];
    byId("timeline-section").scrollIntoView({ block: "start" });
    byId("timeline-frame").focus({ preventScroll: true });
    this.tell.mark(index);
    const known = first !== undefined && first >= this.picture.start && first <= this.picture.stop;
    const n = known ? this.picture.beginning(first) : null;
    if (n !== null) {
      this.focus(n);
      return;
    }
    this.choose(null);
    if (known) {
      this.enterStep(first);
      this.moveTo(Math.max(this.picture.start, first - 150_000), 1_000_000);
      fill("selected", el("p", {}, `${words(finding.name)} begins at the left of this view.`));
      return;
    }
    const why =
      first === undefined
        ? "It has no single moment: it is about the whole trace."
        : "Its first occurrence lies outside what is drawn here.";
    fill("selected", el("p", { class: "idle" }, why));
  }

  /** Index in the report of the finding that a wait or a copy belongs to, or null. */
  findingOf(item) {
    return item.spot === null ? null : this.data.page.views[this.view].owners[item.spot];
  }

  /** The text in a bar. */
  words(n) {
    const item = this.picture.item(n);
    const name = item.kind === "idle" ? item.name.replaceAll("_", " ") : item.name;
    if (item.merged > 1) return `${item.merged.toLocaleString("en")}× ${name}`;
    const at = item.kind === "wait" ? this.findingOf(item) : null;
    const found = at === null ? null : this.data.report.findings[at];
    return found === null ? name : (found.site && found.site.expression) || words(found.name);
  }
}
