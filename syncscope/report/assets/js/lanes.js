// Lanes fold into one thin row: by a click on their name, or by a button.

/** The number of the lane whose name is under the pointer, or null. */
function laneOf({ picture, paint }, { offsetX, offsetY }) {
  if (offsetX >= paint.left) return null;
  return picture.labels.find((label) => offsetY >= label.top && offsetY < label.bottom)?.lane ?? null;
}

function listLanes(timeline) {
  fill(
    "lane-buttons",
    timeline.picture.labels.map(({ text, lane, folded }) =>
      el("button", { type: "button", "aria-pressed": String(!folded), onclick: () => refold(timeline, lane) }, text),
    ),
  );
}

/** The buttons are made anew, so the focus goes to the one that was pressed. */
function refold(timeline, lane) {
  timeline.fold(lane);
  byId("lane-buttons").children[timeline.picture.labels.findIndex((label) => label.lane === lane)].focus();
}
