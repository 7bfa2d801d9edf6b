// HTA's tables of one trace, as HTA names them.

function drawHTA(hta) {
  byId("hta-section").hidden = !hta;
  if (!hta) return;
  const done = [
    hta.release,
    hta.last_step_left_out ? "the last profiler step left out" : null,
    hta.rounded ? "times rounded inwards to whole µs" : null,
  ];
  fill("hta-lead", done.filter(Boolean).join(", "));
  fill("hta-body", hta.tables.map(htaTable));
}

function htaTable(table) {
  const title = el("h3", {}, words(table.analysis.replaceAll("_", " ")));
  if (table.why !== null) return el("div", {}, title, el("p", {}, `Not run: ${table.why}`));
  const isText = table.columns.map((_, i) => table.rows.some((row) => typeof row[i] === "string"));
  const cell = (value, i) => el("td", { class: isText[i] ? null : "number" }, htaCell(value));
  const head = table.columns.map((name, i) => el("th", { scope: "col", class: isText[i] ? null : "number" }, name));
  const rows = table.rows.map((row) => el("tr", {}, row.map(cell)));
  const grid = el("table", { class: "grid" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
  const name = `HTA: ${table.analysis.replaceAll("_", " ")}`;
  return el("div", {}, title, el("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": name }, grid));
}

function htaCell(value) {
  if (value === null) return NOTHING;
  return typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 2 }) : value;
}
