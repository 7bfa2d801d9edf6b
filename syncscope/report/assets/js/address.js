// What the address holds behind the #: a finding by its fingerprint, and which part of which trace is in view.

/** `#finding-1f0e…&trace=1&step=102&from=0.5&to=2.25`; times are ms since the step's begin. */
function readAddress() {
  const [first, ...rest] = location.hash.slice(1).split("&");
  const named = /^[a-z]+=/.test(first) ? [first, ...rest] : rest;
  const found = new Map(named.map((part) => part.split("=", 2)));
  const number = (key) => (/^-?\d+(\.\d+)?$/.test(found.get(key) || "") ? Number(found.get(key)) : null);
  const [step, from, to] = ["step", "from", "to"].map(number);
  return {
    id: named.includes(first) ? "" : first,
    trace: number("trace"),
    view: from === null || to === null || to <= from ? null : { step, from, to },
  };
}

/** Puts the view into the address without a step in the browser's history, beside the finding that it names. */
function writeAddress({ trace, view }) {
  const parts = [readAddress().id];
  if (trace !== null) parts.push(`trace=${trace}`);
  if (view) {
    if (view.step !== null) parts.push(`step=${view.step}`);
    parts.push(`from=${view.from.toFixed(6)}`, `to=${view.to.toFixed(6)}`);
  }
  const hash = parts.filter(Boolean).join("&");
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", `${location.href.split("#")[0]}#${hash}`);
}

/** Copies a text; where the browser refuses, shows it beside the button, ready to be copied by hand. */
async function copyText(text, status) {
  status.parentNode.parentNode.querySelector("textarea.by-hand")?.remove();
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = "Copied.";
  } catch {
    const area = el("textarea", { class: "by-hand", readonly: true, rows: "8", "aria-label": "Text to copy" });
    area.value = text;
    status.parentNode.after(area);
    area.select();
    status.textContent = "The browser does not allow copying: the text is below.";
  }
}
