// Ties the parts together: which trace is shown, colours that follow the system, and paper.

(() => {
  const data = JSON.parse(byId("data").textContent);
  const { views } = data.page;
  let current = 0;

  const timeline = new Timeline(data, (index) => findings.mark(index));
  const show = (index) => {
    const { trace } = data.report.findings[index];
    if (trace !== current) choose(trace, false);
    timeline.show(index);
  };
  const findings = new Findings(data, show);

  function draw() {
    drawSplit(views[current], data.report.traces[current]);
    if (timeline.picture) timeline.draw(...timeline.range);
  }

  function choose(index, filter = true) {
    current = index;
    if (filter) findings.ofTrace(index);
    findings.openFirst();
    byId("view").value = String(index);
    drawHeadline(views[index], data.report.traces[index]);
    drawSplit(views[index], data.report.traces[index]);
    drawRanks(data, index, choose);
    drawLimits(data, index);
    timeline.open(index);
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
  drawRules(data.page.rules);
  choose(0);
  findings.open();

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
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
    if (on === (timeline.frozenWidth !== null)) return;
    timeline.frozenWidth = on ? 690 : null;
    document.documentElement.toggleAttribute("data-paper", on);
    if (on)
      document.querySelectorAll("details.finding:not([open])").forEach((node) => {
        folded.push(node);
        node.open = true;
      });
    else
      folded.splice(0).forEach((node) => {
        node.open = false;
      });
    drawSplit(views[current], data.report.traces[current], timeline.frozenWidth);
    if (timeline.picture) timeline.draw(...timeline.range);
  };
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", (event) => paper(event.matches));
  document.documentElement.dataset.ready = "true";
})();
