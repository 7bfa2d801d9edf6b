// The sentence, the figures, and the bar that splits a step.

/** The lines that every output begins with; they are about the whole report. */
function drawVerdict(page) {
  const [[label, headline], ...rest] = page.conclusion;
  fill("verdict", el("span", { class: "label" }, words(label)), " ", el("span", {}, unbroken(headline)));
  fill(
    "lines",
    rest.map(([name, text]) =>
      el(
        "div",
        {},
        el("dt", {}, words(name)),
        el(
          "dd",
          {},
          name === "first" && page.change ? firstChange(page.change, page.first, page.to_card) : breakable(unbroken(text)),
          name === "first" && page.kernels ? [" ", toTotals()] : null,
        ),
      ),
    ),
  );
}

/** Where the first change is, on a line of its own what to do, and the way to its card. */
function firstChange({ place, expression, gain, fix }, card, toCard) {
  return [
    el("code", {}, breakable(place)),
    ...(expression ? [" ", el("code", {}, breakable(expression))] : []),
    gain ? ` (${unbroken(gain)})` : null,
    el("span", { class: "fix" }, breakable(fix), card ? [" ", el("a", { href: `#${card}` }, toCard)] : null),
  ];
}

/** The way to the totals by kernel, which are opened. */
function toTotals() {
  const open = (event) => {
    event.preventDefault();
    byId("totals").open = true;
    byId("totals").scrollIntoView();
  };
  return el("a", { href: "#totals", onclick: open }, "See their totals");
}

/** What begins a text about one trace of several. A file's name stays as it is. */
const lead = (name) => (name ? `${name.replace(/^rank /, "Rank ")}: ` : "");

function drawHeadline(view, info, name) {
  fill("details", lead(name), unbroken(view.details.join(" ")));
  fill(
    "where",
    [info.path.split(/[\\/]/).slice(-2).join("/"), info.device, info.torch && `torch ${info.torch}`]
      .filter(Boolean)
      .map(clean)
      .join("  ·  "),
  );
  // A process that was only counted has none.
  byId("figures").hidden = info.run !== null && view.figures.every((figure) => figure.ms === null);
  fill(
    "figures",
    view.figures.map((figure) => {
      const [number, unit] = ms(figure.ms).split(" ");
      const more = [figure.share === null ? null : share(figure.share), figure.note].filter(Boolean).join(" · ");
      return el(
        "div",
        {},
        el("dt", {}, figure.label),
        el("dd", { class: "value" }, number, unit ? el("span", {}, ` ${unit}`) : null),
        el("dd", { class: "more" }, more),
      );
    }),
  );
}

/** Says so where the device's time is not that of the step on the host. */
function apart(total, info) {
  const step = info.steps.profiled_ms;
  if (!step || Math.abs(total - step) < 0.005 * step) return "";
  return ` The step takes ${ms(step)} on the host: the device ${total < step ? "does not span all of it" : "goes on after it"}.`;
}

function drawSplit(view, info, figure, frozenWidth = null) {
  const parts = styled(view.parts);
  byId("split-section").hidden = parts.length === 0 && byId("figures").hidden;
  for (const id of ["split-lead", "split", "parts"]) byId(id).hidden = parts.length === 0;
  fill("split-title", info.steps.count ? "Where a step goes" : "Where the time goes");
  if (parts.length === 0) return;
  const total = parts.reduce((sum, part) => sum + part.ms, 0);
  fill(
    "split-lead",
    info.steps.count
      ? `The device over ${ms(total)} of a recorded step${info.phase ? ` of ${info.phase}` : ""}, under the profiler${info.steps.count > 1 ? `, mean of ${info.steps.count} steps` : ""}.${apart(total, info)}`
      : `Device time over the whole trace, ${ms(total)}; it has no steps.`,
  );
  byId("split").setAttribute(
    "aria-label",
    parts.map((part) => `${part.label} ${ms(part.ms)}, ${share(part.share)}`).join("; "),
  );
  drawFigure(byId("split"), figure, frozenWidth);
  fill("parts", partRows(parts));
}

/** What each change makes of the step. */
function drawSavings(saving, name, frozenWidth = null) {
  byId("savings-section").hidden = saving === null;
  if (saving === null) return;
  fill("savings-lead", `${lead(name)}${saving.lead}`);
  byId("savings").setAttribute("aria-label", saving.words);
  drawFigure(byId("savings"), saving.figure, frozenWidth);
}
