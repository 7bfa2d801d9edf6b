// The parts of a step as a list, which is the legend of its bar.

// What a part looks like in the list of parts: a plain colour; two colours one above the other for what is hidden behind compute; hatching
// for what is exposed.
const PART_STYLE = {
  compute: { top: "compute" },
  copy_hidden: { top: "compute", under: "HtoD" },
  comm_hidden: { top: "compute", under: "collective" },
  copy_exposed: { top: "HtoD", hatched: true },
  comm_exposed: { top: "collective", hatched: true },
  other: { top: "memset" },
};
function styled(parts) {
  let idle = 0;
  return parts.map((part) => ({ ...part, ...(PART_STYLE[part.key] || { top: `idle-${Math.min(4, ++idle)}` }) }));
}

function swatch({ top, under = null, hatched = false }) {
  return el("span", {
    class: `swatch${under ? " double" : ""}${hatched ? " hatched" : ""}`,
    "aria-hidden": "true",
    style: `--fill: var(--${top}); --ink: var(--${under || "hatch"})`,
  });
}

/** A number stays on the line of its unit. */
const unbroken = (text) =>
  text.replace(/(\d) (?=%|(?:ns|µs|ms|s|min|h|W|MHz)\b)/g, "$1\u00a0").replace(/\bunder 1\u00a0%/g, "under\u00a01\u00a0%");

/** A message as a sentence of its own; one that begins with code stays as it is. */
const sentence = (text) => unbroken(text.replace(/^(?:an?|the|no) /, (word) => words(word)));

/** A path may be broken behind its slashes. */
const breakable = (text) => text.split(/(?<=\/)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));

const partRows = (parts) =>
  parts.map((part) =>
    el(
      "li",
      {},
      swatch(part),
      el("span", { class: "name" }, part.label),
      el("b", {}, ms(part.ms)),
      el("span", { class: "share" }, share(part.share)),
    ),
  );
