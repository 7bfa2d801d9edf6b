// The timeline: plotly draws the bars that are in view; moving and zooming ask for new ones.

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
};
const LEAST_NS = 200;

class Timeline {
  constructor(data, mark) {
    this.data = data;
    this.mark = mark;
    this.pictures = new Map();
    this.armed = false;
    this.selected = null;
    this.frozenWidth = null;
    this.inspector = new Inspector(this);
    this.listen();
  }

  /** Another trace. */
  open(view) {
    const at = this.data.page.views[view].lanes;
    byId("timeline-section").hidden = at === null;
    this.view = view;
    this.picture = null;
    if (at === null) return;
    if (!this.pictures.has(at)) this.pictures.set(at, new Picture(this.data.lanes[at]));
    this.picture = this.pictures.get(at);
    this.selected = null;
    const { steps, steps_recorded: recorded, events, bubbles_left_out: left } = this.picture.lanes;
    byId("step").closest("label").hidden = steps.length < 2;
    fill(
      "step",
      steps.map((step, i) => el("option", { value: String(i) }, String(step.number))),
    );
    const merged = events - this.picture.items.length;
    fill(
      "timeline-lead",
      steps.length && steps.length < recorded ? `The first ${steps.length} of ${recorded} recorded steps. ` : "",
      `${count(events, "event")}${merged > 0 ? `, the smallest neighbours merged into ${count(this.picture.items.length, "bar")}` : ""}. `,
      left ? `${count(left, "gap")} of an idle device too short to draw. ` : "",
      "Hatching marks copies and collectives with no compute beside them; grey behind the streams is an idle device.",
    );
    this.legend();
    this.goTo(0);
  }

  goTo(step) {
    const { steps } = this.picture.lanes;
    this.step = step;
    if (steps.length) byId("step").value = String(step);
    const [from, to] = steps.length
      ? [steps[step].ts, steps[step].ts + steps[step].dur]
      : [this.picture.start, this.picture.end];
    const room = 0.015 * (to - from);
    this.zero = steps.length ? steps[step].ts : this.picture.start;
    this.draw(from - room, to + room);
    this.inspector.describe();
  }

  legend() {
    const kinds = new Set(this.picture.items.map((item) => item.kind));
    fill(
      "legend",
      [...DRAW_ORDER]
        .reverse()
        .filter((kind) => kinds.has(kind))
        .map((kind) => el("li", {}, swatch({ top: kind }), KIND_LABEL[kind])),
      this.picture.lanes.lanes.some((lane) => lane.exposed.length)
        ? el("li", {}, swatch({ top: "HtoD", hatched: true }), "exposed")
        : null,
      this.picture.lanes.bubbles.length ? el("li", {}, swatch({ top: "idle-2" }), "device idle") : null,
    );
  }

  draw(from, to) {
    if (!this.picture || byId("timeline-section").hidden) return;
    const width = this.frozenWidth || byId("timeline-frame").clientWidth;
    const span = Math.max(LEAST_NS, to - from);
    this.range = [from, from + span];
    this.chart = new Chart(this, from, span, width);
    Plotly.react("timeline", this.chart.traces(), this.chart.layout(), CHART_CONFIG);
    if (!this.wired) this.wire();
  }

  waitLabel(item) {
    const found = this.finding(item);
    return found === null ? this.picture.name(item) : (found.site && found.site.expression) || words(found.name);
  }

  /** Index in the report of the finding that a wait or a copy belongs to, or null. */
  findingOf(item) {
    if (item.spot === null) return null;
    const [wait, copy] = this.data.page.views[this.view].spots[item.spot];
    return item.kind === "wait" ? wait : copy;
  }

  finding(item) {
    const at = this.findingOf(item);
    return at === null ? null : this.data.report.findings[at];
  }

  // Moving

  zoom(factor, centre = (this.range[0] + this.range[1]) / 2) {
    const whole = this.picture.end - this.picture.start;
    const span = Math.min(1.2 * whole, Math.max(LEAST_NS, (this.range[1] - this.range[0]) * factor));
    const share_ = (centre - this.range[0]) / (this.range[1] - this.range[0]);
    this.moveTo(centre - share_ * span, span);
  }

  pan(share_) {
    const span = this.range[1] - this.range[0];
    this.moveTo(this.range[0] + share_ * span, span);
  }

  moveTo(from, span) {
    const low = this.picture.start - 0.2 * span;
    const high = this.picture.end + 0.2 * span - span;
    const start = Math.max(Math.min(low, high), Math.min(Math.max(low, high), from));
    this.draw(start, start + span);
  }

  do(action) {
    const actions = {
      left: () => this.pan(-0.25),
      right: () => this.pan(0.25),
      in: () => this.zoom(0.6),
      out: () => this.zoom(1 / 0.6),
      fit: () => this.goTo(this.step),
      wait: () => this.nextWait(),
    };
    if (this.picture && actions[action]) actions[action]();
  }

  nextWait() {
    const waits = this.picture.items.filter((item) => item.kind === "wait").sort((a, b) => a.ts - b.ts);
    if (!waits.length) return;
    const now = this.selected === null ? this.range[0] - 1 : this.picture.items[this.selected].ts;
    this.focus(waits.find((item) => item.ts > now) || waits[0]);
  }

  /** Selects an item and moves it, and what it is linked to, into view. */
  focus(item, room = 0.5) {
    this.selected = item.n;
    const linked = item.link === null ? item : this.picture.items[item.link];
    const from = Math.min(item.ts, linked.ts);
    const to = Math.max(item.ts + item.dur, linked.ts + linked.dur);
    const span = Math.max(60_000, (to - from) * (1 + 2 * room));
    this.enterStep(item.ts);
    this.moveTo((from + to) / 2 - span / 2, span);
    this.inspector.describe();
  }

  /** The first occurrence of a finding. Returns false when it is not in the picture. */
  show(index) {
    const finding = this.data.report.findings[index];
    const own = this.picture.items.filter((item) => this.findingOf(item) === index);
    const item = own.find((one) => one.kind === "wait") || own[0];
    byId("timeline-section").scrollIntoView({ block: "start" });
    byId("timeline-frame").focus({ preventScroll: true });
    this.mark(index);
    if (item) {
      this.focus(item);
      return;
    }
    this.selected = null;
    if (finding.name === "device-starved" && this.picture.lanes.bubbles.length) {
      this.showLongestBubble();
      return;
    }
    const at = finding.first_ns === null ? null : finding.first_ns - this.picture.lanes.start_ns;
    if (at !== null && at >= this.picture.start && at <= this.picture.end) {
      this.enterStep(at);
      this.moveTo(at - 150_000, 1_000_000);
      fill("selected", el("p", {}, `${words(finding.name)} begins at the left of this view.`));
    } else {
      fill("selected", el("p", { class: "idle" }, "Its first occurrence lies outside the steps drawn here."));
    }
  }

  showLongestBubble() {
    const longest = this.picture.lanes.bubbles.reduce((a, b) => (b.dur > a.dur ? b : a));
    this.enterStep(longest.ts);
    this.moveTo(longest.ts - longest.dur, 3 * longest.dur);
    fill("selected", el("p", {}, `The longest time the device is idle here, ${ns(longest.dur)}: ${longest.cause}.`));
  }

  /** Counts time from the step that holds a moment. */
  enterStep(ts) {
    const step = this.picture.step(ts);
    if (!step) return;
    this.step = this.picture.lanes.steps.indexOf(step);
    this.zero = step.ts;
    byId("step").value = String(this.step);
  }

  wire() {
    this.wired = true;
    const plot = byId("timeline");
    plot.on("plotly_hover", (event) => this.inspector.tip(event.points[0], event.event));
    plot.on("plotly_unhover", () => {
      byId("tip").hidden = true;
    });
    plot.on("plotly_click", (event) => {
      const data = event.points[0].customdata;
      if (typeof data !== "number") return;
      this.selected = this.chart.bars[data].item;
      this.draw(...this.range);
      this.inspector.describe();
    });
    let timer = 0;
    plot.on("plotly_relayout", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const [a, b] = plot.layout.xaxis.range;
        this.draw(Number(a) * 1e6 + this.zero, Number(b) * 1e6 + this.zero);
      }, 40);
    });
  }

  listen() {
    const frame = byId("timeline-frame");
    const arm = (on) => {
      this.armed = on;
      frame.classList.toggle("armed", on);
    };
    frame.addEventListener(
      "pointerdown",
      () => {
        frame.focus({ preventScroll: true });
        arm(true);
      },
      true,
    );
    frame.addEventListener("focus", () => arm(true));
    frame.addEventListener("blur", () => arm(false));
    // Until the reader has clicked into it, a wheel over the timeline scrolls the page.
    frame.addEventListener(
      "wheel",
      (event) => {
        if (!this.armed && !event.ctrlKey) event.stopPropagation();
      },
      { capture: true, passive: true },
    );
    frame.addEventListener("mouseleave", () => {
      byId("tip").hidden = true;
    });
    const keys = {
      w: "in",
      ArrowUp: "in",
      s: "out",
      ArrowDown: "out",
      a: "left",
      ArrowLeft: "left",
      d: "right",
      ArrowRight: "right",
      n: "wait",
      0: "fit",
      Home: "fit",
    };
    frame.addEventListener("keydown", (event) => {
      const action = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
      if (!action) return;
      event.preventDefault();
      this.do(action);
    });
    byId("timeline-tools").addEventListener("click", (event) => {
      const button = event.target.closest("button[data-do]");
      if (button) this.do(button.dataset.do);
    });
    byId("step").addEventListener("change", (event) => {
      this.selected = null;
      this.goTo(Number(event.target.value));
    });
  }
}

function shorten(text, letters) {
  const plain = clean(text);
  return plain.length <= letters ? plain : `${plain.slice(0, Math.max(1, letters - 1))}…`;
}
