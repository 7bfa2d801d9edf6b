// One state of the timeline as plotly wants it: what is in view, merged to the screen's resolution.

const DRAW_ORDER = [
  "annotation",
  "op",
  "call",
  "launch",
  "memset",
  "compute",
  "DtoD",
  "copy",
  "collective",
  "HtoD",
  "DtoH",
  "wait",
];
const CHART_CONFIG = { displayModeBar: false, scrollZoom: true, doubleClick: false, responsive: false };
const CLEAR = "rgba(0,0,0,0)";

class Chart {
  /** From a time on, for ``span`` ns, in a chart ``width`` pixels wide. */
  constructor(timeline, from, span, width) {
    this.timeline = timeline;
    this.picture = timeline.picture;
    this.from = from;
    this.to = from + span;
    this.span = span;
    this.width = width;
    this.narrow = width < 560;
    this.left = this.narrow ? 74 : 132;
    this.pixel = span / Math.max(100, width - this.left - 12);
    // One view to either side is there before it is asked for, so that dragging shows no hole.
    this.bars = this.picture.bars(from - span, this.to + span, this.pixel);
  }

  x(time) {
    return (time - this.timeline.zero) / 1e6;
  }

  near(ts, dur) {
    return ts + dur > this.from - this.span && ts < this.to + this.span;
  }

  traces() {
    return [this.idle(), this.kinds(), this.exposed(), this.links(), this.text()].flat().filter(Boolean);
  }

  layout() {
    const { picture, span, narrow } = this;
    const ink = colour("text");
    return {
      width: this.width,
      height: picture.height + 62,
      margin: { l: this.left, r: 12, t: 22, b: 40 },
      barmode: "overlay",
      bargap: 0,
      paper_bgcolor: CLEAR,
      plot_bgcolor: CLEAR,
      showlegend: false,
      hovermode: "closest",
      hoverdistance: 4,
      dragmode: "pan",
      font: { family: colour("sans"), size: 12, color: ink },
      shapes: this.shapes(),
      annotations: this.stepLabels(),
      xaxis: {
        range: [this.x(this.from), this.x(this.to)],
        tickformat: "~r",
        ticksuffix: " ms",
        nticks: narrow ? 4 : 9,
        gridcolor: colour("line"),
        zeroline: false,
        tickcolor: colour("line"),
        ticks: "outside",
        minallowed: this.x(picture.start - 0.2 * span),
        maxallowed: this.x(picture.end + 0.2 * span),
        tickfont: { color: colour("soft") },
      },
      yaxis: {
        range: [picture.height, 0],
        fixedrange: true,
        zeroline: false,
        showgrid: false,
        tickfont: { size: narrow ? 11 : 12, color: ink },
        tickvals: picture.labels.map((entry) => entry.y),
        ticktext: picture.labels.map((entry) => label(shorten(entry.text, narrow ? 11 : 19))),
      },
    };
  }

  kinds() {
    const made = new Map(DRAW_ORDER.map((kind) => [kind, []]));
    this.bars.forEach((bar, i) => made.get(bar.kind).push(i));
    return [...made]
      .filter(([, list]) => list.length)
      .map(([kind, list]) => ({
        type: "bar",
        orientation: "h",
        hoverinfo: "none",
        marker: { color: colour(kind), line: { width: 0 } },
        customdata: list,
        base: list.map((i) => this.x(this.bars[i].ts)),
        x: list.map((i) => Math.max(this.bars[i].end - this.bars[i].ts, (kind === "wait" ? 2 : 1) * this.pixel) / 1e6),
        y: list.map((i) => this.picture.row(this.picture.items[this.bars[i].item]).y),
        width: list.map((i) => this.picture.row(this.picture.items[this.bars[i].item]).h),
      }));
  }

  /** Idle time: a strip in which the cause is readable, and a shade over all streams of the device. */
  idle() {
    const { bubbles } = this.picture.lanes;
    const causes = [...new Set(bubbles.map((bubble) => bubble.cause))];
    const shades = new Map(causes.map((cause, i) => [cause, colour(`idle-${Math.min(4, 2 + i)}`)]));
    const index = new Map(bubbles.map((bubble, i) => [bubble, i]));
    return this.picture.devices
      .map((device) => {
        const shown = device.bubbles.filter(
          (bubble) => this.near(bubble.ts, bubble.dur) && bubble.dur > 0.3 * this.pixel,
        );
        if (!shown.length) return null;
        const common = {
          type: "bar",
          orientation: "h",
          base: shown.map((b) => this.x(b.ts)),
          x: shown.map((b) => b.dur / 1e6),
          hoverinfo: "none",
        };
        return [
          {
            ...common,
            y: shown.map(() => device.y),
            width: device.h,
            marker: { color: colour("idle-shade"), line: { width: 0 } },
            hoverinfo: "skip",
          },
          {
            ...common,
            y: shown.map(() => device.strip.y),
            width: device.strip.h,
            customdata: shown.map((b) => ["idle", index.get(b)]),
            marker: {
              color: shown.map((b) => shades.get(b.cause)),
              line: { width: 0 },
            },
          },
        ];
      })
      .flat();
  }

  exposed() {
    const parts = this.picture.lanes.lanes.flatMap((lane, l) =>
      lane.exposed
        .filter(([ts, dur]) => this.near(ts, dur) && dur > 2 * this.pixel)
        .map(([ts, dur]) => [ts, dur, this.picture.rows[l].stream]),
    );
    if (!parts.length) return null;
    return {
      type: "bar",
      orientation: "h",
      hoverinfo: "skip",
      base: parts.map(([ts]) => this.x(ts)),
      x: parts.map(([, dur]) => dur / 1e6),
      y: parts.map(([, , row]) => row.y),
      width: parts.map(([, , row]) => row.h),
      marker: {
        color: CLEAR,
        line: { width: 0 },
        pattern: { shape: "/", fgcolor: colour("hatch"), bgcolor: CLEAR, size: 7, solidity: 0.22 },
      },
    };
  }

  /** Thin lines from each wait that is wide enough to see to what it waited for. */
  links() {
    const line = { xs: [], ys: [] };
    this.bars
      .filter((bar) => bar.kind === "wait" && bar.end - bar.ts > 3 * this.pixel)
      .slice(0, 200)
      .forEach((bar) => this.link(line, this.picture.items[bar.item]));
    const out = [
      {
        type: "scatter",
        mode: "lines",
        x: line.xs,
        y: line.ys,
        hoverinfo: "skip",
        line: { color: colour("wait"), width: 1.2, dash: "dot" },
      },
    ];
    const chosen = this.timeline.selected === null ? null : this.picture.items[this.timeline.selected];
    if (chosen && chosen.kind !== "wait") {
      const strong = { xs: [], ys: [] };
      this.link(strong, chosen);
      const source = this.picture.from.get(chosen.n);
      if (source !== undefined) this.link(strong, this.picture.items[source]);
      out.push({
        type: "scatter",
        mode: "lines",
        x: strong.xs,
        y: strong.ys,
        hoverinfo: "skip",
        line: { color: colour("accent"), width: 1.5 },
      });
    }
    return out.filter((trace) => trace.x.length);
  }

  link(line, item) {
    if (item.link === null) return;
    const target = this.picture.items[item.link];
    const [a, b] = [this.picture.row(item), this.picture.row(target)];
    const waits = item.kind === "wait";
    const down = b.y > a.y ? 1 : -1;
    line.xs.push(
      this.x(waits ? item.ts + item.dur : item.ts),
      this.x(waits ? target.ts + target.dur : target.ts),
      null,
    );
    line.ys.push(a.y + (down * a.h) / 2, b.y - (down * b.h) / 2, null);
  }

  /** Names inside this.bars that have room for them. */
  text() {
    const out = { x: [], y: [], text: [], color: [] };
    const taken = new Map(); // per row, where its last text ends
    const put = (ts, end, y, text, ink) => {
      const [a, b] = [Math.max(ts, this.from), Math.min(end, this.to)];
      const letters = Math.floor((b - a) / this.pixel / 6.6) - 1;
      if (letters < 4 || out.x.length > 240 || a < (taken.get(y) ?? -Infinity)) return;
      taken.set(y, b);
      out.x.push(this.x((a + b) / 2));
      out.y.push(y);
      out.text.push(label(shorten(text, letters)));
      out.color.push(ink);
    };
    const dark = colour("on-colour");
    const ink = colour("text");
    [...this.bars]
      .sort((a, b) => a.ts - b.ts)
      .forEach((bar) => {
        const item = this.picture.items[bar.item];
        const pale = ["op", "annotation", "call", "launch", "DtoD"].includes(bar.kind);
        const name = bar.kind === "wait" ? this.timeline.waitLabel(item) : this.picture.name(item);
        put(
          bar.ts,
          bar.end,
          this.picture.row(item).y,
          bar.events > 1 ? `${bar.events}× ${name}` : name,
          pale ? ink : dark,
        );
      });
    this.picture.devices.forEach((device) =>
      device.bubbles.forEach((bubble) =>
        put(bubble.ts, bubble.ts + bubble.dur, device.strip.y, bubble.cause.replaceAll("_", " "), ink),
      ),
    );
    if (!out.x.length) return null;
    return {
      type: "scatter",
      mode: "text",
      x: out.x,
      y: out.y,
      text: out.text,
      textfont: { size: 11, color: out.color },
      hoverinfo: "skip",
      cliponaxis: true,
    };
  }

  shapes() {
    const edges = this.picture.lanes.steps.flatMap((step, i, all) =>
      i === all.length - 1 ? [step.ts, step.ts + step.dur] : [step.ts],
    );
    const lines = edges.map((ts) => ({
      type: "line",
      x0: this.x(ts),
      x1: this.x(ts),
      y0: 0,
      y1: 1,
      yref: "paper",
      line: { color: colour("soft"), width: 1, dash: "dash" },
      layer: "below",
    }));
    if (this.timeline.selected === null) return lines;
    const item = this.picture.items[this.timeline.selected];
    const row = this.picture.row(item);
    const least = this.span / 300;
    return [
      ...lines,
      {
        type: "rect",
        x0: this.x(item.ts),
        x1: this.x(item.ts + Math.max(item.dur, least)),
        y0: row.y - row.h / 2 - 1,
        y1: row.y + row.h / 2 + 1,
        line: { color: colour("text"), width: 2 },
        fillcolor: CLEAR,
      },
    ];
  }

  stepLabels() {
    return this.picture.lanes.steps
      .filter((step) => step.ts > this.from - this.span && step.ts < this.to - 0.06 * this.span)
      .map((step) => ({
        x: this.x(step.ts),
        y: 1,
        yref: "paper",
        xanchor: "left",
        yanchor: "bottom",
        text: `step ${step.number}`,
        showarrow: false,
        font: { size: 11, color: colour("soft") },
      }));
  }
}
