// The whole trace in one strip: how busy the device is, where the host waits, and which part is in view.

const MINIMAP = 34;

class Minimap {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
  }

  draw(picture, from, to, width, left, ink) {
    const scale = Math.max(1, Math.min(3, devicePixelRatio || 1));
    this.left = left;
    this.start = picture.start;
    this.pixel = (picture.stop - picture.start) / Math.max(1, width - left - 8);
    const key = [picture.lanes.path, width, scale, ink.compute].join();
    if (this.key !== key) {
      this.key = key;
      this.still = this.background(picture, width, scale, ink);
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(MINIMAP * scale);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${MINIMAP}px`;
    }
    const { pen } = this;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.still, 0, 0);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const [a, b] = [from, to].map((time) =>
      Math.max(left, Math.min(width - 8, left + (time - this.start) / this.pixel)),
    );
    pen.globalAlpha = 0.14;
    pen.fillStyle = ink.accent;
    pen.fillRect(a, 1, Math.max(b - a, 3), MINIMAP - 2);
    pen.globalAlpha = 1;
    pen.strokeStyle = ink.accent;
    pen.lineWidth = 1.5;
    pen.strokeRect(a, 1, Math.max(b - a, 3), MINIMAP - 2);
  }

  /** Drawn once: a column for each pixel, waits above, the device's work below. */
  background(picture, width, scale, ink) {
    const still = document.createElement("canvas");
    still.width = Math.round(width * scale);
    still.height = Math.round(MINIMAP * scale);
    const pen = still.getContext("2d");
    pen.scale(scale, scale);
    pen.fillStyle = ink.sunken;
    pen.fillRect(this.left, 4, width - this.left - 8, MINIMAP - 8);
    const strip = (kinds, top, high, fill_) => {
      pen.fillStyle = fill_;
      picture.series
        .filter((series) => kinds.includes(series.kind))
        .forEach((series) =>
          picture.visible(series, picture.start, picture.stop, this.pixel, (n, count_, from, to, share_) => {
            const x = this.left + (from - this.start) / this.pixel;
            pen.globalAlpha = Math.max(0.25, share_);
            pen.fillRect(x, top, Math.max(1, (to - from) / this.pixel), high);
          }),
        );
    };
    strip(["compute", "memset", "DtoD", "copy"], 18, 12, ink.compute);
    strip(["collective"], 18, 12, ink.collective);
    strip(["HtoD", "DtoH"], 18, 12, ink.HtoD);
    strip(["wait"], 5, 11, ink.wait);
    pen.globalAlpha = 1;
    pen.fillStyle = ink.text;
    pen.font = `11px ${colour("sans")}`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillText("whole trace", this.left - 8, MINIMAP / 2);
    return still;
  }

  time(x) {
    return this.start + (x - this.left) * this.pixel;
  }
}
