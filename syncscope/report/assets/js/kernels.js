// The search for a kernel, an op or a call by a part of its name, or of a line that it comes from.

class Kernels {
  constructor(timeline) {
    this.timeline = timeline;
    this.matches = null; // has(bar), or null while nothing is searched for
    byId("kernel").addEventListener("input", () => this.search());
    byId("kernel-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.next();
    });
  }

  /** Finds the bars with a name and lines that hold every word; counts the events behind them and their time. */
  search() {
    const { picture } = this.timeline;
    const needles = byId("kernel").value.toLowerCase().split(/\s+/).filter(Boolean);
    this.matches = null;
    this.key = needles.join(" ");
    byId("kernel-count").textContent = "";
    if (!picture) return;
    this.timeline.schedule();
    if (!needles.length) return;
    const texts = picture.lanes.names.map((name, n) => [name, ...picture.linesOf(n)].join(" ").toLowerCase());
    const named = texts.map((text) => needles.every((needle) => text.includes(needle)));
    this.series = picture.series.filter(({ kind }) => kind !== "idle" && kind !== "exposed");
    let [events, time] = [0, 0];
    this.series.forEach(({ first, last }) => {
      for (let n = first; n < last; n += 1) {
        if (!named[picture.name[n]]) continue;
        events += picture.merged[n];
        time += picture.dur[n] - picture.gaps[n];
      }
    });
    this.matches = { has: (n) => named[picture.name[n]] };
    byId("kernel-count").textContent = events ? `${count(events, "event")}, ${ns(time)} in all` : "Nothing has this name.";
  }

  /** Chooses the next match after the chosen bar, or in the view; wraps around. */
  next() {
    const { timeline } = this;
    const { picture, chosen } = timeline;
    if (!picture || !this.matches) return;
    const now = chosen !== null && this.matches.has(chosen) ? [picture.ts[chosen], chosen] : [timeline.from, -1];
    const found = this.after(...now) ?? this.after(-Infinity, -1);
    if (found !== null) timeline.focus(found);
  }

  /** The first match that begins after a time, or then and has a greater number. */
  after(now, than) {
    const { picture } = this.timeline;
    let best = null;
    this.series.forEach(({ first, last }) => {
      let n = now === -Infinity ? first : picture.after(picture.ts, now - 1, first, last);
      while (n < last && !(this.matches.has(n) && (picture.ts[n] > now || n > than))) n += 1;
      if (n < last && (best === null || picture.ts[n] < picture.ts[best])) best = n;
    });
    return best;
  }
}
