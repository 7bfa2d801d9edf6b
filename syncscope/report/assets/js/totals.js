// What ran on the devices between two times, summed up by name.

const ON_DEVICE = new Set(["compute", "collective", "HtoD", "DtoH", "DtoD", "copy", "memset"]);
const MOST_TOTALS = 50;

/** For each name that ran on a device between two times: its kind, how many events, their time in ns. */
function sumUp(picture, from, to) {
  const sums = new Map();
  picture.series
    .filter((series) => ON_DEVICE.has(series.kind))
    .forEach(({ kind, first, last }) => {
      for (let n = picture.after(picture.reach, from, first, last); n < last && picture.ts[n] < to; n += 1) {
        const inside = Math.min(picture.end[n], to) - Math.max(picture.ts[n], from);
        if (inside <= 0) continue;
        const key = `${kind} ${picture.name[n]}`;
        const sum = sums.get(key) || { name: picture.name[n], kind, events: 0, time: 0, merged: false };
        sum.events += picture.merged[n];
        sum.time += inside * (picture.dur[n] ? 1 - picture.gaps[n] / picture.dur[n] : 1);
        sum.merged ||= picture.merged[n] > 1;
        sums.set(key, sum);
      }
    });
  return [...sums.values()].sort((a, b) => b.time - a.time);
}

/** Idle time of each device between two times, in ns. */
function idleIn(picture, from, to) {
  return picture.series
    .filter((series) => series.kind === "idle")
    .map(({ lane, first, last }) => {
      let idle = 0;
      for (let n = picture.after(picture.reach, from, first, last); n < last && picture.ts[n] < to; n += 1)
        idle += Math.max(0, Math.min(picture.end[n], to) - Math.max(picture.ts[n], from));
      return { device: picture.lanes.lanes[lane].device, idle };
    });
}

/** The measured span in words. */
function describeMeasured({ measured: { from, to }, picture, zero }) {
  const idle = new Map();
  idleIn(picture, from, to).forEach((one) => idle.set(one.device, (idle.get(one.device) || 0) + one.idle));
  const devices = [...idle].map(
    ([device, time]) => `GPU ${device} idle ${ns(time)} (${share(time / (to - from))})`,
  );
  return [`Measured ${ns(to - from)}, from ${ns(from - zero)} to ${ns(to - zero)}.`, ...devices].join(" ");
}

const MOST_LINES = 3;

class Totals {
  constructor(timeline) {
    this.timeline = timeline;
    byId("totals").addEventListener("toggle", () => this.draw());
  }

  /** The lines that a kernel comes from. */
  lines(picture, name) {
    const lines = picture.linesOf(name);
    const more = lines.length > MOST_LINES ? [`and ${lines.length - MOST_LINES} more`] : [];
    return [...lines.slice(0, MOST_LINES), ...more].map((line) => el("div", { class: "kernel-line" }, shorten(line, 160)));
  }

  draw() {
    const { picture, measured } = this.timeline;
    if (!byId("totals").open || !picture) return;
    const { from, to } = measured || this.timeline;
    const sums = sumUp(picture, from, to);
    const merged = sums.some((sum) => sum.merged) ? " Where events share a bar, the longest names them all." : "";
    const rest = sums.length > MOST_TOTALS ? ` The ${MOST_TOTALS} longest of ${sums.length} names.` : "";
    fill(
      "totals-lead",
      `${measured ? "Of the measured" : "Of the"} ${ns(to - from)}${measured ? "" : " in view"}; streams run side by side, so shares may add up to more.${rest}${merged}`,
    );
    const head = (text, number) => el("th", { scope: "col", class: number ? "number" : null }, text);
    fill(
      "totals-table",
      el("thead", {}, el("tr", {}, head("Name"), head("Kind"), head("Events", true), head("Time", true), head("Share", true))),
      el(
        "tbody",
        {},
        sums.slice(0, MOST_TOTALS).map((sum) =>
          el(
            "tr",
            {},
            el("td", { class: "kernel-name" }, el("code", {}, shorten(picture.lanes.names[sum.name], 160)), this.lines(picture, sum.name)),
            el("td", {}, KIND_LABEL[sum.kind]),
            el("td", { class: "number" }, sum.events.toLocaleString("en")),
            el("td", { class: "number" }, ns(sum.time)),
            el("td", { class: "number" }, share(sum.time / (to - from))),
          ),
        ),
      ),
    );
  }
}
