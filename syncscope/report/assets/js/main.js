// Ties the parts together: which trace is shown, colours that follow the system, and paper.

async function start() {
  const data = JSON.parse(byId("data").textContent);
  const { views } = data.page;
  // The trace that the first lines are about, and the findings of all.
  const usual = data.page.begin;
  let current = usual;

  const timeline = new Timeline(data, {
    mark: (index) => findings.mark(index),
    idOf: (index) => findings.idOf(index),
    moved: (view) => writeAddress({ trace: current === usual ? null : current, view }),
  });
  const show = async (index) => {
    const { trace } = data.report.findings[index];
    if (trace !== current) await choose(trace, false);
    timeline.show(index);
  };
  const findings = new Findings(data, show);

  function draw(width = null) {
    drawRun(data, current, width);
    drawSplit(views[current], data.report.traces[current], data.page.splits[current], width);
    drawSavings(data.page.savings[current], views.length > 1 ? views[current].label : null, width);
    drawWaiting(data, choose, width);
    timeline.redraw();
  }

  function choose(index, filter = true) {
    current = index;
    if (filter) findings.ofTrace(index);
    findings.openFirst();
    byId("view").value = String(index);
    drawHeadline(views[index], data.report.traces[index], views.length > 1 ? views[index].label : null);
    drawRun(data, index);
    drawSplit(views[index], data.report.traces[index], data.page.splits[index]);
    drawSavings(data.page.savings[index], views.length > 1 ? views[index].label : null);
    drawRanks(data, index, choose);
    drawHTA(data.report.traces[index].hta);
    drawLimits(data, index);
    return timeline.open(index);
  }

  fill(
    "view",
    views.map((view, i) => el("option", { value: String(i) }, view.label)),
  );
  byId("view-pick").hidden = views.length < 2;
  byId("view").addEventListener("change", (event) => choose(Number(event.target.value)));
  fill(
    "foot",
    `Made by ${data.report.tool.name} ${data.report.tool.version} from the JSON report, schema ${data.report.schema_version}. Charts by plotly.js (MIT).`,
  );
  drawVerdict(data.page);
  drawRules(data.page.rules);
  drawWaiting(data, choose);
  const asked = readAddress();
  await choose(asked.trace in views ? asked.trace : usual, false);
  if (asked.view) timeline.look(asked.view);
  timeline.draw();
  findings.open();
  window.addEventListener("hashchange", async () => {
    const { trace, view } = readAddress();
    if (trace !== null && trace !== current && trace in views) await choose(trace, false);
    if (view) timeline.look(view);
    findings.open();
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
  let seen = innerWidth;
  window.addEventListener("resize", () =>
    requestAnimationFrame(() => {
      if (innerWidth !== seen) {
        seen = innerWidth;
        draw();
      }
    }),
  );

  // Paper has one width, light colours, and nothing to unfold.
  const folded = [];
  const paper = (on) => {
    if (on === (timeline.paperWidth !== null)) return;
    timeline.paperWidth = on ? 690 : null;
    document.documentElement.toggleAttribute("data-paper", on);
    if (on) folded.push(...findings.unfold());
    else
      folded.splice(0).forEach((node) => {
        node.open = false;
      });
    draw(timeline.paperWidth);
  };
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", (event) => paper(event.matches));
  document.documentElement.dataset.ready = "true";
}

start();
