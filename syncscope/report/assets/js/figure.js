// Figures that come as data for plotly, with names of the page's colours in them.

/** The figure with the colours of the style sheet, which it names as `var(--name)`. */
function coloured(value, key = "") {
  if (Array.isArray(value)) return value.map((one) => coloured(one, key));
  if (value !== null && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, name)]));
  const named = typeof value === "string" && key.endsWith("color") && value.match(/^var\(--([\w-]+)\)$/);
  return named ? colour(named[1]) : value;
}

/** Notes at the left edge, cut so that they end before the one at the right edge of the same row. */
function fitNotes(notes, width) {
  const pen = document.createElement("canvas").getContext("2d");
  const wide = (text, { size }) => {
    pen.font = `${text.startsWith("<b>") ? "bold " : ""}${size}px ${colour("sans")}`;
    const shown = text.replace(/<\/?b>/g, "").replace(/&(lt|gt|amp);/g, (_, name) => ({ lt: "<", gt: ">", amp: "&" })[name]);
    return pen.measureText(shown).width;
  };
  const cut = (note) => {
    const other = note.xanchor === "left" && notes.find((one) => one.y === note.y && one.xanchor === "right");
    if (!other) return note;
    const room = width - wide(other.text, other.font) - 16;
    const signs = note.text.match(/&\w+;|[^]/gu) || []; // an entity is one sign
    let last = signs.length;
    const short = () => (last < signs.length ? `${signs.slice(0, last).join("")}…` : note.text);
    while (last > 1 && wide(short(), note.font) > room) last -= 1;
    return { ...note, text: short() };
  };
  return notes.map(cut);
}

/** Draws a figure as wide as its place, or as the paper; hides the place where there is none. */
function drawFigure(plot, figure, paperWidth = null, options = {}) {
  plot.hidden = figure === null;
  if (figure === null) return;
  const { data, layout } = coloured(figure);
  const width = paperWidth || plot.clientWidth;
  const { nticks = 10, ...xaxis } = layout.xaxis;
  Plotly.react(
    plot,
    data,
    {
      ...layout,
      annotations: fitNotes(layout.annotations || [], width),
      width,
      font: { ...layout.font, family: colour("sans") },
      xaxis: { ...xaxis, nticks: width < 560 ? 5 : nticks },
    },
    { displayModeBar: false, responsive: false, ...options },
  );
}
