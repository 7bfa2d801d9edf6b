// One rank's timeline: its bars in columns, where each lies from top to bottom (pixels), and how to find one.

const ROW = { annotation: 15, op: 17, call: 22, idle: 18, stream: 26, folded: 12, gap: 9, top: 30 };
const ON_ROW = { annotation: "annotation", op: "op", idle: "idle", exposed: "stream" };

class Picture {
  static async of(lanes) {
    const [bars, from, to] = await Promise.all([unpackAll(lanes.bars), unpack(lanes.links[0]), unpack(lanes.links[1])]);
    return new Picture(lanes, bars, from, to);
  }

  constructor(lanes, bars, from, to) {
    Object.assign(this, bars);
    this.lanes = lanes;
    this.count = this.ts.length;
    this.end = this.ts.map((ts, i) => ts + this.dur[i]);
    // For each bar the latest end in its series so far, and the time in use before it.
    this.reach = this.end.slice();
    this.before = new Float64Array(this.count + 1);
    this.series = lanes.series.map((one) => ({ ...one, kind: lanes.kinds[one.kind], last: one.first + one.count }));
    this.series.forEach(({ first, last }) => {
      for (let i = first + 1; i < last; i += 1) this.reach[i] = Math.max(this.reach[i], this.reach[i - 1]);
    });
    for (let i = 0; i < this.count; i += 1) this.before[i + 1] = this.before[i] + this.dur[i] - this.gaps[i];
    this.link = new Int32Array(this.count).fill(-1);
    this.launcher = new Int32Array(this.count).fill(-1);
    this.waiter = new Int32Array(this.count).fill(-1);
    const waiting = new Set(["wait", "idle"]);
    for (let i = from.length - 1; i >= 0; i -= 1) {
      this.link[from[i]] = to[i];
      (waiting.has(this.seriesOf(from[i]).kind) ? this.waiter : this.launcher)[to[i]] = from[i];
    }
    this.start = Math.min(0, ...lanes.steps.slice(0, 1).map((step) => step.ts));
    const last = lanes.steps.at(-1);
    this.stop = Math.max(lanes.dur, last ? last.ts + last.dur : 0, 1);
    this.folded = new Set(); // numbers of lanes
    this.layOut();
  }

  /** Host threads first, then each device: its idle time over its streams. */
  layOut() {
    let y = ROW.top;
    this.labels = [];
    this.devices = [];
    this.rows = [];
    const take = (height) => {
      const row = { y, h: height, series: [] };
      this.rows.push(row);
      y += height + 1;
      return row;
    };
    const several = new Set(this.lanes.lanes.map((lane) => lane.device).filter((device) => device !== null)).size > 1;
    let before = null;
    this.lanes.lanes.forEach((lane, l) => {
      const mine = this.series.filter((series) => series.lane === l);
      if (before !== null && (lane.place === "host" || lane.device !== before.device)) y += ROW.gap;
      before = lane;
      const host = lane.place === "host";
      const top = y;
      const folded = this.folded.has(l);
      (folded ? ["folded"] : host ? ["annotation", "op", "call"] : [lane.place]).forEach((kind) => {
        const here = mine.filter((series) => folded || (ON_ROW[series.kind] || (host ? "call" : "stream")) === kind);
        if (!here.length) return;
        const row = take(ROW[kind]);
        row.series = here;
        here.forEach((series) => Object.assign(series, { row }));
      });
      const text = several && !host ? `${lane.label}, GPU ${lane.device}` : lane.label;
      this.labels.push({ y: (top + y - 1) / 2, text, lane: l, top, bottom: y, folded });
      if (host) return;
      const device = this.devices.find((one) => one.device === lane.device) || { device: lane.device, y: top };
      if (!this.devices.includes(device)) this.devices.push(device);
      device.h = y - device.y;
    });
    this.height = y + 6;
  }

  seriesOf(n) {
    let [low, high] = [0, this.series.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.series[middle].first <= n) low = middle;
      else high = middle - 1;
    }
    return this.series[low];
  }

  /** The lines that the kernel of a name comes from, as texts; most names have none. */
  linesOf(name) {
    this.kernelLines ||= new Map(this.lanes.kernel_lines.map((one) => [one.name, one.lines.map(kernelLine)]));
    return this.kernelLines.get(name) || [];
  }

  /** What is known of one bar. */
  item(n) {
    const series = this.seriesOf(n);
    return {
      n,
      series,
      kind: series.kind,
      lane: this.lanes.lanes[series.lane],
      ts: this.ts[n],
      dur: this.dur[n],
      name: this.lanes.names[this.name[n]],
      lines: this.linesOf(this.name[n]),
      bytes: this.bytes[n] < 0 ? null : this.bytes[n],
      memory: this.lanes.memory[this.memory[n]],
      spot: this.spot[n] < 0 ? null : this.spot[n],
      merged: this.merged[n],
      busy: this.dur[n] - this.gaps[n],
      link: this.link[n],
      launcher: this.launcher[n],
      waiter: this.waiter[n],
    };
  }

  /** The first bar of a series, from `low` on, at which a column is greater than a value; its end if there is none. */
  after(column, value, low, high) {
    while (low < high) {
      const middle = (low + high) >> 1;
      if (column[middle] > value) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /**
   * What of a series is to be drawn between two times, as `visit(bar, count, from, to, share)`: bars wider than a pixel
   * one by one; all others of one pixel together, with how much of it is in use. So the work is bounded by the screen
   * and not by the trace.
   */
  visible(series, from, to, pixel, visit) {
    const { ts, end, before, gaps, dur } = this;
    let i = this.after(this.reach, from, series.first, series.last);
    while (i < series.last && ts[i] < to) {
      if (end[i] - ts[i] >= pixel) {
        if (end[i] > from) visit(i, 1, ts[i], end[i], dur[i] ? 1 - gaps[i] / dur[i] : 1);
        i += 1;
        continue;
      }
      const column = Math.floor(ts[i] / pixel);
      let next = i + 1;
      // Double the stride: most pixels hold few bars or very many.
      let jump = 1;
      const edge = (column + 1) * pixel;
      while (next + jump < series.last && ts[next + jump] < edge) {
        next += jump;
        jump *= 2;
      }
      next = this.after(ts, Math.ceil(edge) - 1, next, Math.min(series.last, next + jump + 1));
      if (next - 1 > i && end[next - 1] - ts[next - 1] >= pixel) next -= 1;
      const share = (before[next] - before[i]) / pixel;
      visit(i, next - i, column * pixel, edge, Math.min(1, share));
      i = next;
    }
  }

  /** The bar of a row under a time; neighbours within `slack` count. The uppermost kind wins. */
  at(row, time, slack) {
    for (const series of [...row.series].reverse()) {
      if (series.kind === "exposed") continue;
      const next = this.after(this.ts, time + slack, series.first, series.last);
      let best = -1;
      for (let i = next - 1; i >= series.first && i > next - 64; i -= 1) {
        if (this.end[i] < time - slack) continue;
        if (this.ts[i] <= time && this.end[i] >= time) return i;
        const gap = (n) => Math.max(this.ts[n] - time, time - this.end[n]);
        if (best < 0 || gap(i) < gap(best)) best = i;
      }
      if (best >= 0) return best;
    }
    return -1;
  }

  /** The bar that begins at a time, such as a finding's first occurrence. */
  beginning(time) {
    let best = null;
    this.series.forEach((series) => {
      if (series.kind === "exposed" || series.kind === "op" || series.kind === "annotation") return;
      const i = this.after(this.ts, time - 2, series.first, series.last);
      if (i >= series.last || this.ts[i] > time + 2) return;
      const rank = ["launch", "call"].includes(series.kind) ? 1 : series.kind === "wait" ? 2 : 0;
      if (best === null || rank > best.rank) best = { n: i, rank };
    });
    return best === null ? null : best.n;
  }

  /** The waits in order of time. */
  waits() {
    if (this.ordered) return this.ordered;
    const found = this.series
      .filter((series) => series.kind === "wait")
      .flatMap((series) => Array.from({ length: series.count }, (_, i) => series.first + i));
    this.ordered = found.sort((a, b) => this.ts[a] - this.ts[b]);
    return this.ordered;
  }

  has(kind) {
    return this.series.some((series) => series.kind === kind);
  }

  /** Number of the step that holds a time, -1 for none. */
  stepAt(time) {
    const { steps } = this.lanes;
    let [low, high] = [0, steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle].ts > time) high = middle;
      else low = middle + 1;
    }
    return low > 0 && time < steps[low - 1].ts + steps[low - 1].dur ? low - 1 : -1;
  }
}
