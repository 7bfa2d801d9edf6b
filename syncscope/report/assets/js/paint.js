// Draws what is in view on a canvas. The work is bounded by the screen, so a million bars move as smoothly as a hundred.

// Names have a colour that is legible on that of their bar.
const ON = {
  wait: "on-colour",
  compute: "on-colour",
  collective: "on-bright",
  HtoD: "on-bright",
  DtoH: "on-colour",
  DtoD: "on-bright",
  copy: "on-colour",
  memset: "on-colour",
};
const HATCHED = new Set(["collective", "HtoD", "DtoH", "copy"]); // a rim keeps the name apart from the hatching
const NARROWEST = 25; // pixels of a bar that has a name
const LEAST_LETTERS = 3; // of a name that is cut short
const MOST_TEXTS = 400;
const MOST_LINKS = 200;
const MOST_HITS = 2000;
const MOST_WIDTHS = 20_000; // texts of which the width is remembered
const LONGEST = 200; // letters of a name that are looked at
const THIN = 1.6; // pixels under which idle time has no shade of its own

class Paint {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.refresh();
  }

  /** Colours come from the style sheet, and change with it. */
  refresh() {
    const kinds = "annotation op call launch wait idle memset compute DtoD copy collective HtoD DtoH";
    const rest = "bg text soft line accent hatch on-colour on-bright idle-shade wait-shade idle-wait sunken";
    this.ink = Object.fromEntries(`${kinds} ${rest}`.split(" ").map((name) => [name, colour(name)]));
    this.sans = colour("sans");
    this.hatch = null;
    this.widths = new Map(); // pixels of texts in this font
  }

  size(width, height) {
    const scale = Math.max(1, Math.min(3, devicePixelRatio || 1));
    if (this.width === width && this.height === height && this.scale === scale) return;
    Object.assign(this, { width, height, scale });
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.hatch = null;
  }

  /**
   * Everything; `view` has picture, from, to, zero (times), left (pixels), chosen (a bar, or null), measured (two times, or null), matches
   * (has(bar), or null) and words(bar).
   */
  draw(view) {
    const { pen } = this;
    Object.assign(this, view);
    this.pixel = (view.to - view.from) / (this.width - view.left);
    pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = `11px ${this.sans}`;
    pen.textBaseline = "middle";
    this.grid();
    this.texts = [];
    this.hits = [];
    this.waits = [];
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width - this.left, this.height);
    pen.clip();
    this.shades();
    this.picture.series.forEach((series) => this.bars(series));
    this.links();
    this.names();
    this.found();
    this.frame();
    this.span();
    pen.restore();
    this.lanes();
  }

  x(time) {
    return this.left + (time - this.from) / this.pixel;
  }

  /** Lines at round times, and where steps begin. */
  grid() {
    const { pen, ink } = this;
    const bottom = this.picture.height;
    pen.fillStyle = ink.line;
    const every = round((this.to - this.from) / Math.max(2, (this.width - this.left) / (this.width < 560 ? 70 : 110)));
    for (let time = this.zero + Math.ceil((this.from - this.zero) / every) * every; time <= this.to; time += every) {
      const x = Math.round(this.x(time));
      pen.fillStyle = ink.line;
      pen.fillRect(x, 22, 1, bottom - 22);
      pen.fillStyle = ink.soft;
      pen.textAlign = "center";
      if (x > this.left + 18 && x < this.width - 20) pen.fillText(at(time - this.zero, every), x, 12);
    }
    const { steps } = this.picture.lanes;
    pen.textAlign = "left";
    let taken = -Infinity;
    for (let i = Math.max(0, this.picture.stepAt(this.from)); i < steps.length; i += 1) {
      const x = Math.round(this.x(steps[i].ts));
      if (x > this.width) break;
      if (x < taken + 3) continue;
      pen.fillStyle = ink.soft;
      if (x >= this.left) for (let y = 22; y < bottom; y += 6) pen.fillRect(x, y, 1, 3);
      const text = `step ${steps[i].number}`;
      const from = Math.max(x, this.left) + 4;
      const room = Math.min(this.width, this.x(steps[i].ts + steps[i].dur)) - from;
      taken = x;
      if (room < this.measure(text)) continue;
      pen.fillText(text, from, bottom + 8);
    }
  }

  /** Idle time over all streams of the device. */
  shades() {
    this.picture.devices.forEach((device) => {
      const series = this.picture.series.find(
        (one) => one.kind === "idle" && this.picture.lanes.lanes[one.lane].device === device.device,
      );
      if (!series) return;
      this.picture.visible(series, this.from, this.to, this.pixel, (n, count, from, to, share) => {
        const wide = (to - from) / this.pixel;
        this.pen.globalAlpha = wide < THIN ? share : 1;
        this.pen.fillStyle = this.ink[this.behindWait(n) ? "wait-shade" : "idle-shade"];
        this.pen.fillRect(this.x(from), device.y, Math.max(wide, 1), device.h);
      });
      this.pen.globalAlpha = 1;
    });
  }

  behindWait(n) {
    return this.picture.lanes.names[this.picture.name[n]] === "wait";
  }

  bars(series) {
    const { pen, ink } = this;
    const { y, h } = series.row;
    const { kind } = series;
    if (kind === "exposed") {
      this.exposed(series);
      return;
    }
    pen.fillStyle = ink[kind];
    this.picture.visible(series, this.from, this.to, this.pixel, (n, count, from, to, share) => {
      if (kind === "idle") pen.fillStyle = ink[this.behindWait(n) ? "idle-wait" : "idle"];
      const x = Math.max(this.x(from), this.left - 2);
      const wide = Math.min(this.x(to), this.width + 2) - x;
      if (wide < 2 || count > 1) {
        // Waits matter most: they stay wide and dark enough to see.
        pen.globalAlpha = kind === "wait" ? 1 : 0.3 + 0.7 * share;
        pen.fillRect(Math.floor(x), y, kind === "wait" ? 2 : 1, h);
        return;
      }
      pen.globalAlpha = 0.3 + 0.7 * share;
      // A hairline of background separates neighbours.
      pen.fillRect(x, y, wide > 3 ? wide - 0.6 : wide, h);
      pen.globalAlpha = 1;
      if (wide > NARROWEST && h > 11 && this.texts.length < MOST_TEXTS) this.texts.push([n, x, wide, y + h / 2]);
      if (this.matches?.has(n) && this.hits.length < MOST_HITS) this.hits.push([x, wide, y, h]);
      if (kind === "wait" && wide > 3 && this.waits.length < MOST_LINKS) this.waits.push(n);
    });
    pen.globalAlpha = 1;
  }

  /** No compute runs beside these: hatched. */
  exposed(series) {
    const { pen } = this;
    this.hatch ||= pen.createPattern(this.stripes(), "repeat");
    this.hatch.setTransform(new DOMMatrix().translate(this.x(0) % 8, 0).scale(1 / this.scale));
    pen.fillStyle = this.hatch;
    this.picture.visible(series, this.from, this.to, this.pixel, (n, count, from, to) => {
      const x = Math.max(this.x(from), this.left - 2);
      const wide = Math.min(this.x(to), this.width + 2) - x;
      if (wide > 2) pen.fillRect(x, series.row.y, wide, series.row.h);
    });
  }

  stripes() {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8 * this.scale;
    const pen = tile.getContext("2d");
    pen.scale(this.scale, this.scale);
    pen.strokeStyle = this.ink.hatch;
    pen.lineWidth = 1.8;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) {
      pen.moveTo(shift - 1, 9);
      pen.lineTo(shift + 9, -1);
    }
    pen.stroke();
    return tile;
  }

  /** From each wait that is wide enough to see to what it waited for; more strongly for the bar that was chosen. */
  links() {
    const { pen, ink } = this;
    pen.setLineDash([2, 3]);
    this.waits.forEach((n) => this.curve(n, this.picture.link[n], ink.wait, 1.3));
    pen.setLineDash([]);
    if (this.chosen === null) return;
    this.curve(this.chosen, this.picture.link[this.chosen], ink.accent, 2);
    const { launcher, waiter } = this.picture;
    for (const from of [launcher[this.chosen], waiter[this.chosen]])
      if (from >= 0) this.curve(from, this.chosen, ink.accent, 2);
  }

  /** A wait and what it waited for end together; a launch comes before what it launched. */
  curve(n, target, stroke, width) {
    if (target < 0) return;
    const { picture, pen } = this;
    const [a, b] = [picture.seriesOf(n), picture.seriesOf(target)];
    const x0 = this.x(a.kind === "wait" ? picture.end[n] : picture.ts[n]);
    const x1 = this.x(["wait", "idle"].includes(a.kind) ? picture.end[target] : picture.ts[target]);
    if (Math.max(x0, x1) < this.left || Math.min(x0, x1) > this.width) return;
    const down = b.row.y > a.row.y;
    const y0 = a.row.y + (down ? a.row.h : 0);
    const y1 = b.row.y + (down ? 0 : b.row.h);
    pen.strokeStyle = stroke;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
    pen.stroke();
    const tip = down ? -5 : 5;
    pen.fillStyle = stroke;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x1 - 3.5, y1 + tip);
    pen.lineTo(x1 + 3.5, y1 + tip);
    pen.fill();
  }

  names() {
    const { pen, ink, picture } = this;
    pen.textAlign = "left";
    pen.lineJoin = "round";
    this.texts.forEach(([n, x, wide, y]) => {
      const from = Math.max(x, this.left) + 4;
      const { kind } = picture.seriesOf(n);
      const text = this.fit(this.words(n), Math.min(x + wide, this.width) - from - 3);
      if (text === null) return;
      if (HATCHED.has(kind)) {
        pen.strokeStyle = ink[kind];
        pen.lineWidth = 4;
        pen.strokeText(text, from, y + 0.5);
      }
      pen.fillStyle = ink[ON[kind] || "text"];
      pen.fillText(text, from, y + 0.5);
    });
  }

  /** Around the bar that was chosen. */
  frame() {
    if (this.chosen === null) return;
    const { row } = this.picture.seriesOf(this.chosen);
    const x = this.x(this.picture.ts[this.chosen]);
    this.pen.strokeStyle = this.ink.text;
    this.pen.lineWidth = 2;
    this.pen.strokeRect(x - 1, row.y - 1, Math.max(4, this.x(this.picture.end[this.chosen]) - x + 2), row.h + 2);
  }

  lanes() {
    const { pen, ink } = this;
    pen.fillStyle = ink.text;
    pen.textAlign = "right";
    this.picture.labels.forEach((label) => {
      const text = this.fit(clean(label.text), this.left - 28);
      if (text !== null) pen.fillText(text, this.left - 8, label.y);
      pen.fillStyle = ink.soft;
      pen.beginPath();
      const [x, y] = [9, label.y];
      const corners = label.folded ? [[-2, -4], [-2, 4], [3, 0]] : [[-4, -2], [4, -2], [0, 3]];
      corners.forEach(([dx, dy], i) => (i ? pen.lineTo(x + dx, y + dy) : pen.moveTo(x + dx, y + dy)));
      pen.fill();
      pen.fillStyle = ink.text;
    });
  }

  /** Pixels that a text takes. */
  measure(text) {
    let wide = this.widths.get(text);
    if (wide === undefined) {
      wide = this.pen.measureText(text).width;
      if (this.widths.size > MOST_WIDTHS) this.widths.clear();
      this.widths.set(text, wide);
    }
    return wide;
  }

  /** As much of a text as fits into so many pixels; null where that says nothing. */
  fit(name, room) {
    const text = clean(name).slice(0, LONGEST);
    if (room <= 0) return null;
    if (this.measure(text) <= room) return text;
    let [low, high] = [0, text.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.measure(`${text.slice(0, middle)}…`) <= room) low = middle;
      else high = middle - 1;
    }
    return low < LEAST_LETTERS ? null : `${text.slice(0, low)}…`;
  }

  /** What a search has found stands in a frame. */
  found() {
    this.pen.strokeStyle = this.ink.accent;
    this.pen.lineWidth = 1.5;
    this.hits.forEach(([x, wide, y, h]) => this.pen.strokeRect(x + 0.5, y + 0.5, Math.max(2, wide - 1.5), h - 1));
  }

  /** The measured span, with its length. */
  span() {
    if (!this.measured) return;
    const { pen, ink } = this;
    const [a, b] = [this.x(this.measured.from), this.x(this.measured.to)];
    pen.fillStyle = ink.accent;
    pen.globalAlpha = 0.12;
    pen.fillRect(a, 22, b - a, this.picture.height - 22);
    pen.globalAlpha = 1;
    pen.fillRect(a, 22, 1, this.picture.height - 22);
    pen.fillRect(b - 1, 22, 1, this.picture.height - 22);
    const text = ns(this.measured.to - this.measured.from);
    const wide = this.measure(text) + 10;
    const x = Math.max(this.left, Math.min(this.width - wide, (a + b - wide) / 2));
    pen.fillRect(x, 20, wide, 15);
    pen.fillStyle = ink.bg;
    pen.textAlign = "left";
    pen.fillText(text, x + 5, 28);
  }
}

/** The next round number of 1, 2, 5, 10, … */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return power * [1, 2, 5, 10].find((times) => power * times >= value);
}

/** A time on the axis, in the unit of its distance to the next. */
function at(time, every) {
  const [unit, name] = every >= 1e8 ? [1e9, "s"] : every >= 1e4 ? [1e6, "ms"] : every >= 10 ? [1e3, "µs"] : [1, "ns"];
  const places = Math.max(0, Math.ceil(Math.log10(unit / every)));
  return `${(time / unit).toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places })} ${name}`;
}

function shorten(text, letters) {
  const plain = clean(text);
  return plain.length <= letters ? plain : `${plain.slice(0, Math.max(1, letters - 1))}…`;
}
