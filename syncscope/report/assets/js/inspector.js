// What an item is, in words: the tip under the pointer and the panel under the timeline.

class Inspector {
  constructor(timeline) {
    this.timeline = timeline;
  }

  get picture() {
    return this.timeline.picture;
  }

  lines(item, events = item.merged) {
    const lane = this.picture.lanes.lanes[item.lane];
    const found = this.timeline.finding(item);
    return [
      ["Kind", KIND_LABEL[item.kind]],
      ["On", lane.device === null ? lane.label : `GPU ${lane.device}, ${lane.label}`],
      ["Start", ns(item.ts - this.timeline.zero)],
      ["Length", ns(item.dur)],
      events > 1 ? ["Events", `${events} merged, the longest is named`] : null,
      item.merged > 1 ? ["In use", ns(item.busy)] : null,
      item.bytes === null ? null : ["Bytes", bytes(item.bytes)],
      item.bytes > 4096 && item.dur > 0 && item.merged === 1 && ["HtoD", "DtoH", "DtoD", "copy"].includes(item.kind)
        ? ["Rate", `${digits(item.bytes / item.dur)} GB/s`]
        : null,
      item.memory ? ["Host memory", item.memory] : null,
      found ? ["Finding", `${words(found.name)}${found.site ? ` at ${place(found.site)}` : ""}`] : null,
    ].filter(Boolean);
  }

  describe() {
    if (this.timeline.selected === null) {
      fill("selected", el("p", { class: "idle" }, "Click a bar to see what it is and what it waited for."));
      return;
    }
    const item = this.picture.items[this.timeline.selected];
    const source = this.picture.from.get(item.n);
    const at = this.timeline.findingOf(item);
    const go = (text, n) =>
      el("button", { type: "button", onclick: () => this.timeline.focus(this.picture.items[n]) }, text);
    fill(
      "selected",
      el("p", { class: "title" }, this.picture.name(item)),
      el(
        "dl",
        { class: "facts" },
        this.lines(item).map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))),
      ),
      el(
        "div",
        { class: "actions" },
        item.link === null
          ? null
          : go(item.kind === "wait" ? "Go to what it waited for" : "Go to what it launched", item.link),
        source === undefined
          ? null
          : go(this.picture.items[source].kind === "wait" ? "Go to who waited for it" : "Go to its launch", source),
        at === null ? null : el("a", { href: `#finding-${at + 1}` }, "Go to the finding"),
      ),
    );
  }

  tip(point, event) {
    const tip = byId("tip");
    const data = point.customdata;
    let title;
    let rows;
    if (Array.isArray(data)) {
      const bubble = this.picture.lanes.bubbles[data[1]];
      [title, rows] = [
        `Idle: ${bubble.cause.replaceAll("_", " ")}`,
        [
          ["Length", ns(bubble.dur)],
          ["Start", ns(bubble.ts - this.timeline.zero)],
        ],
      ];
    } else if (data !== undefined) {
      const bar = this.timeline.chart.bars[data];
      const item = this.picture.items[bar.item];
      [title, rows] = [this.picture.name(item), this.lines(item, bar.events)];
    } else return;
    tip.replaceChildren(
      el("b", {}, title.length > 160 ? `${title.slice(0, 160)}…` : title),
      ...rows.map(([key, value]) => el("span", {}, `${key}: ${value}`)),
    );
    tip.hidden = false;
    const { clientX, clientY } = event;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${clientY + 18 + box.height > innerHeight ? Math.max(8, clientY - box.height - 12) : clientY + 18}px`;
  }
}
