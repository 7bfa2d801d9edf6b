// What a bar is, in words: the tip under the pointer and the panel under the timeline.

const COPIES = ["HtoD", "DtoH", "DtoD", "copy"];

class Inspector {
  constructor(timeline) {
    this.timeline = timeline;
  }

  /** The bar under the pointer, and how many its pixel holds; null where there is none. */
  under({ offsetX, offsetY }) {
    const { picture, paint } = this.timeline;
    const row = picture.rows.find((one) => offsetY >= one.y && offsetY < one.y + one.h);
    if (!row || offsetX < paint.left) return null;
    const moment = time(this.timeline, { offsetX });
    const n = picture.at(row, moment, 2 * paint.pixel);
    if (n < 0) return null;
    const { first, last } = picture.seriesOf(n);
    const from = picture.after(picture.ts, moment - paint.pixel, first, last);
    const events =
      picture.dur[n] < paint.pixel ? picture.after(picture.ts, moment + paint.pixel, from, last) - from : 1;
    return { n, events };
  }

  lines(item, events = 1) {
    const { lane } = item;
    const found = this.found(item);
    const { zero } = this.timeline;
    const idle = item.kind === "idle";
    return [
      idle ? null : ["Kind", KIND_LABEL[item.kind]],
      [
        "On",
        lane.place === "host"
          ? lane.label
          : lane.place === "idle"
            ? `GPU ${lane.device}`
            : `GPU ${lane.device}, ${lane.label}`,
      ],
      ["Start", ns(item.ts - zero)],
      ["Length", ns(item.dur)],
      item.merged > 1 ? ["Events", `${item.merged.toLocaleString("en")} in this bar, the longest is named`] : null,
      item.merged > 1 ? ["In use", ns(item.busy)] : null,
      events > 1 ? ["Here", `${events.toLocaleString("en")} bars within two pixels: zoom in`] : null,
      item.bytes === null ? null : ["Bytes", bytes(item.bytes)],
      item.bytes > 4096 && item.dur > 0 && item.merged === 1 && COPIES.includes(item.kind)
        ? ["Rate", `${digits(item.bytes / item.dur)} GB/s`]
        : null,
      item.memory ? ["Host memory", item.memory] : null,
      this.line(item) ? ["Line", this.line(item)] : null,
      item.lines.length ? [item.lines.length === 1 ? "Line" : "Lines", item.lines.join("; ")] : null,
      found ? ["Finding", words(found.name)] : null,
    ].filter(Boolean);
  }

  found(item) {
    const at = this.timeline.findingOf(item);
    return at === null ? null : this.timeline.data.report.findings[at];
  }

  line(item) {
    const spot = item.spot === null ? null : this.timeline.picture.lanes.spots[item.spot];
    return spot && spot.file ? place(spot) : null;
  }

  title(item) {
    return item.kind === "idle" ? `Idle: ${item.name.replaceAll("_", " ")}` : item.name;
  }

  describe() {
    const { picture, chosen } = this.timeline;
    if (chosen === null) {
      fill("selected", el("p", { class: "idle" }, "Click a bar to see what it is and what it waited for."));
      return;
    }
    const item = picture.item(chosen);
    const at = this.timeline.findingOf(item);
    const go = (text, n) =>
      n < 0 ? null : el("button", { type: "button", onclick: () => this.timeline.focus(n) }, text);
    const to = { wait: "Go to what it waited for", idle: "Go to the wait behind it" }[item.kind];
    fill(
      "selected",
      el("p", { class: "title" }, this.title(item)),
      el(
        "dl",
        { class: "facts" },
        this.lines(item).map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))),
      ),
      el(
        "div",
        { class: "actions" },
        go(to || "Go to what it launched", item.link),
        go("Go to its launch", item.launcher),
        go(item.kind === "wait" ? "Go to the idle time behind it" : "Go to who waited for it", item.waiter),
        at === null ? null : el("a", { href: `#${this.timeline.tell.idOf(at)}` }, "Go to the finding"),
      ),
    );
  }

  /** The tip, for where the pointer is. */
  point(event) {
    const tip = byId("tip");
    const here = this.under(event);
    byId("timeline").classList.toggle("over", here !== null);
    tip.hidden = here === null;
    if (here === null) return;
    const key = [here.n, here.events, this.timeline.zero, this.timeline.view].join(" ");
    if (tip.dataset.bar !== key) {
      const item = this.timeline.picture.item(here.n);
      tip.dataset.bar = key;
      tip.replaceChildren(
        el("b", {}, shorten(this.title(item), 160)),
        ...this.lines(item, here.events).map(([key, value]) => el("span", {}, `${key}: ${value}`)),
      );
    }
    const { clientX, clientY } = event;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${clientY + 18 + box.height > innerHeight ? Math.max(8, clientY - box.height - 12) : clientY + 18}px`;
  }
}
