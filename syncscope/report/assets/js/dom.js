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

/** Severity has a shape as well as a colour. */
function icon(severity) {
  const shapes = {
    error: "M5.6 1h6.8L17 5.6v6.8L12.4 17H5.6L1 12.4V5.6zM8.1 4.6v5.6h1.8V4.6zM8.1 11.8v1.8h1.8v-1.8z",
    warning: "M9 1.2 17.4 16.6H.6zM8.1 6.4v5h1.8v-5zM8.1 12.7v1.8h1.8v-1.8z",
    note: "M9 1a8 8 0 1 0 0 16A8 8 0 0 0 9 1zM8.1 8v5.4h1.8V8zM8.1 4.8v1.8h1.8V4.8z",
  };
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 18 18");
  svg.setAttribute("class", `icon ${severity in shapes ? severity : "note"}`);
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("fill", "currentColor");
  path.setAttribute("fill-rule", "evenodd");
  path.setAttribute("d", shapes[severity] || shapes.note);
  svg.append(path);
  return svg;
}

/** Colours come from the style sheet, so charts follow light, dark and print as text does. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
