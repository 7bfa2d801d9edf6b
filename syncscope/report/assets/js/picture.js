// One rank's lanes, laid out: where each item lies from top to bottom (pixels), and what is in view.

const ROW = { annotation: 15, op: 17, call: 22, stream: 26, idle: 18, gap: 9 };
const ON_ROW = { annotation: "annotation", op: "op" };

class Picture {
  constructor(lanes) {
    this.lanes = lanes;
    this.names = lanes.names;
    this.items = [];
    lanes.lanes.forEach((lane, l) =>
      lane.items.forEach(([ts, dur, kind, name, size, memory, spot, link, merged, busy]) => {
        this.items.push({
          ts,
          dur,
          kind: lanes.kinds[kind],
          name,
          bytes: size,
          memory,
          spot,
          link,
          merged,
          busy,
          lane: l,
          n: this.items.length,
        });
      }),
    );
    this.from = new Map();
    this.items.forEach((item) => {
      if (item.link !== null && !this.from.has(item.link)) this.from.set(item.link, item.n);
    });
    this.layOut();
    const last = lanes.steps[lanes.steps.length - 1];
    this.start = Math.min(0, ...lanes.steps.map((step) => step.ts));
    this.end = Math.max(lanes.dur, last ? last.ts + last.dur : 0);
  }

  /** Host threads first, then each device: a strip of its idle time over its streams. */
  layOut() {
    let y = 4;
    this.labels = [];
    this.rows = []; // per lane: kind of row → {y, h}
    this.devices = [];
    const byLane = this.lanes.lanes.map(() => []);
    this.items.forEach((item) => byLane[item.lane].push(item));
    this.byLane = byLane;
    const take = (height) => {
      const row = { y: y + height / 2, h: height };
      y += height + 1;
      return row;
    };
    this.lanes.lanes.forEach((lane, l) => {
      if (lane.place !== "host") return;
      const kinds = new Set(byLane[l].map((item) => ON_ROW[item.kind] || "call"));
      const top = y;
      this.rows[l] = Object.fromEntries(
        ["annotation", "op", "call"].filter((kind) => kinds.has(kind)).map((kind) => [kind, take(ROW[kind])]),
      );
      this.labels.push({ y: (top + y) / 2, text: lane.label });
      y += ROW.gap;
    });
    const devices = [
      ...new Set([
        ...this.lanes.lanes.filter((lane) => lane.place === "stream").map((lane) => lane.device),
        ...this.lanes.bubbles.map((bubble) => bubble.device),
      ]),
    ];
    devices.forEach((device) => {
      const bubbles = this.lanes.bubbles.filter((bubble) => bubble.device === device);
      const top = y;
      const strip = bubbles.length ? take(ROW.idle) : null;
      if (strip) this.labels.push({ y: strip.y, text: devices.length > 1 ? `idle, GPU ${device}` : "idle" });
      this.lanes.lanes.forEach((lane, l) => {
        if (lane.place !== "stream" || lane.device !== device) return;
        this.rows[l] = { stream: take(ROW.stream) };
        this.labels.push({
          y: this.rows[l].stream.y,
          text: devices.length > 1 ? `${lane.label}, GPU ${device}` : lane.label,
        });
      });
      this.devices.push({ device, bubbles, strip, y: (top + y) / 2, h: y - top });
      y += ROW.gap;
    });
    this.height = y;
  }

  row(item) {
    const rows = this.rows[item.lane];
    return rows.stream || rows[ON_ROW[item.kind] || "call"];
  }

  name(item) {
    return this.names[item.name];
  }

  /**
   * The bars between two times. Neighbours of one kind, lane and place that lie within one pixel become one bar,
   * so that their number is bounded by the screen and not by the trace.
   */
  bars(from, to, pixel) {
    const bars = [];
    this.byLane.forEach((items) => {
      const open = new Map();
      for (const item of items) {
        const end = item.ts + item.dur;
        if (end < from || item.ts > to) continue;
        const key = `${item.kind} ${item.spot}`;
        const last = open.get(key);
        if (last && item.dur < pixel && item.ts - last.end < pixel && last.small) {
          last.end = Math.max(last.end, end);
          last.events += item.merged;
          if (item.dur > this.items[last.item].dur) last.item = item.n;
        } else {
          const bar = { item: item.n, ts: item.ts, end, events: item.merged, small: item.dur < pixel, kind: item.kind };
          bars.push(bar);
          open.set(key, bar);
        }
      }
    });
    return bars;
  }

  step(ts) {
    return this.lanes.steps.find((step) => ts >= step.ts && ts < step.ts + step.dur) || null;
  }
}
