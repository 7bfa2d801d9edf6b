// Figures that come as data for plotly, with names of the page's colours in them.

/** The figure with the colours of the style sheet, which it names as `var(--name)`. */
function coloured(value, key = "") {
  if (Array.isArray(value)) return value.map((one) => coloured(one, key));
  if (value !== null && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one, name)]));
  const named = typeof value === "string" && key.endsWith("color") && value.match(/^var\(--([\w-]+)\)$/);
  return named ? colour(named[1]) : value;
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
      width,
      font: { ...layout.font, family: colour("sans") },
      xaxis: { ...xaxis, nticks: width < 560 ? 5 : nticks },
    },
    { displayModeBar: false, responsive: false, ...options },
  );
}
