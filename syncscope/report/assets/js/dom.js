// Everything from the report reaches the page through here: as text, never as markup.

const NOTHING = "—";

/** Makes control characters, and those that turn the reading direction, visible. */
function clean(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

/** Plotly reads a little HTML in every label; entities keep names what they are. */
function label(text) {
  return clean(text)
    .replace(/[\t\n\u2028\u2029]/g, " ")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;");
}

/** An element. Strings among the children become text; attributes are named by this program, never by data. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : clean(value));
  }
  node.append(
    ...children
      .flat()
      .filter((child) => child !== null && child !== undefined)
      .map((child) => (child instanceof Node ? child : clean(child))),
  );
  return node;
}

const byId = (id) => document.getElementById(id);
const fill = (id, ...children) => byId(id).replaceChildren(...children.flat().filter(Boolean));

const digits = (value, n = 3) =>
  value === 0 ? "0" : Number(value.toPrecision(n)).toLocaleString("en", { maximumFractionDigits: 6 });

function ms(value) {
  if (value === null || value === undefined) return NOTHING;
  if (Math.abs(value) >= 9999.5) return `${digits(value / 1000)} s`;
  return Math.abs(value) < 0.1 && value !== 0 ? `${digits(value * 1000)} µs` : `${digits(value)} ms`;
}

/** From one time to another, with the unit once where both have the same. */
function between(low, high) {
  const [from, unit] = ms(low).split(" ");
  return ms(high).endsWith(` ${unit}`) || low === 0 ? `${from} to ${ms(high)}` : `${ms(low)} to ${ms(high)}`;
}

const ns = (value) => ms(value / 1e6);

function share(value) {
  if (value === null || value === undefined) return NOTHING;
  const percent = 100 * value;
  if (percent > 0 && percent < 1) return "under 1 %";
  return percent < 9.95 ? `${Number(percent.toPrecision(2))} %` : `${percent.toFixed(0)} %`;
}

function bytes(value) {
  if (value === null || value === undefined) return NOTHING;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${digits(value)} ${units[unit]}`;
}

const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const words = (name) => {
  const text = name.replaceAll("-", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
};
const place = (frame) => (frame.line === null ? frame.file : `${frame.file}:${frame.line}`);

/** One line that a kernel comes from. */
const kernelLine = (line) =>
  [place(line), line.expression || `in ${line.function}`, line.inside && `(${line.inside})`].filter(Boolean).join("  ");

/** Impact has a shape as well as a colour: a cross for wrong results, then as many bars as it is great. */
function icon(level) {
  const bars = { high: 3, medium: 2, low: 1, unknown: 0 };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 18 18");
  svg.setAttribute("class", `icon ${level === "wrong" || level in bars ? level : "unknown"}`);
  svg.setAttribute("aria-hidden", "true");
  const add = (d, faint) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("fill", "currentColor");
    path.setAttribute("d", d);
    if (faint) path.setAttribute("opacity", ".25");
    svg.append(path);
  };
  if (level === "wrong") add("M5.6 1h6.8L17 5.6v6.8L12.4 17H5.6L1 12.4V5.6zM8.1 4.6v5.6h1.8V4.6zM8.1 11.8v1.8h1.8v-1.8z");
  else ["M2 12h3.4v4H2z", "M7.3 7.5h3.4V16H7.3z", "M12.6 3H16v13h-3.4z"].forEach((d, i) => add(d, i >= (bars[level] || 0)));
  return svg;
}

/** Colours come from the style sheet, so charts follow light, dark and print as text does. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
