"""How large the HTML report is, how fast it opens and how smoothly it moves: ``python -m benchmarks.page``.

A recorded trace is repeated to ``--events`` events. Its page is opened and dragged in headless Chromium; so is the
same page with every time changed at random (what is repeated compresses better than what is not), a page of the
figures that HTA makes of the trace (``--hta-python`` names a Python that has it), and plotly pages with a trace, and
with a bar, for each event. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.browse import PATIENCE_S, Browser, Measured
from fixtures import repeat
from syncscope import rules
from syncscope.analysis.analyze import analyze_timelines
from syncscope.report import html, html_file
from syncscope.report.picture.draw import draw_lanes
from syncscope.report.picture.lanes import Lanes
from syncscope.report.picture.pack import packed, unpacked
from syncscope.timeline import Timeline
from syncscope.trace import load

BASE = Path(__file__).parents[1] / "fixtures" / "traces" / "generate" / "full.json.gz"
NAIVE = (1_000, 5_000)
"""Events of the pages with a plotly trace each."""

HTA_PATIENCE_S = 1200

HTA = """
import sys, time
import plotly.graph_objects as go
from hta.trace_analysis import TraceAnalysis
shown = []
go.Figure.show = lambda self, *args, **named: shown.append(self)
begin = time.perf_counter()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]})
analysis.get_temporal_breakdown()
analysis.get_idle_time_breakdown()
analysis.get_gpu_kernel_breakdown()
analysis.get_comm_comp_overlap()
took = time.perf_counter() - begin
with open(sys.argv[2], "w") as file:
    for number, figure in enumerate(shown):
        file.write(figure.to_html(full_html=False, include_plotlyjs=number == 0))
print("made", len(shown), took)
"""


def changed(picture: Lanes) -> Lanes:
    """With every time drawn anew, in no order that could be guessed: lengths halved at most, starts within the gap."""
    chance = np.random.default_rng(0)
    ts, dur = unpacked(picture.bars["ts"]), unpacked(picture.bars["dur"])
    shorter = (dur * chance.uniform(0.5, 1.0, len(dur))).astype(np.int64)
    later = ts + (chance.uniform(0, 1, len(dur)) * (dur - shorter)).astype(np.int64)
    bars = {**picture.bars, "ts": packed(later, steps=True), "dur": packed(shorter), "gaps": packed(np.zeros_like(dur))}
    return msgspec.structs.replace(picture, bars=bars)


def naive(picture: Lanes, most: int, apart: bool) -> str:
    """A page as one writes it first: a plotly bar for each of the ``most`` first bars, each a trace of its own if
    ``apart``."""
    ts, dur, name = (unpacked(picture.bars[column])[:most].tolist() for column in ("ts", "dur", "name"))
    lane = [picture.lanes[one.lane].label for one in picture.series for _ in range(one.count)][:most]
    names = [picture.names[number] for number in name]
    rows = zip(ts, dur, lane, names, strict=True)
    bar = {"type": "bar", "orientation": "h"}
    traces = (
        [{**bar, "base": [a], "x": [b], "y": [y], "text": [text]} for a, b, y, text in rows]
        if apart
        else [{**bar, "base": ts, "x": dur, "y": lane, "text": names, "textposition": "none"}]
    )
    layout = {"barmode": "overlay", "dragmode": "pan", "showlegend": False, "height": 500}
    library = html_file.read_asset("vendor/plotly-basic.min.js")
    drawn = f"Plotly.newPlot('plot', {json.dumps(traces)}, {json.dumps(layout)})"
    return f"<!doctype html><meta charset=utf-8><div id=plot></div><script>{library}</script><script>{drawn}</script>"


def with_hta(python: Path, trace: Path, out: Path) -> str | None:
    """Writes the page of HTA's figures. Returns what it said, ``None`` when it failed."""
    try:
        ran = subprocess.run(
            [python, "-c", HTA, trace, out], capture_output=True, text=True, check=False, timeout=HTA_PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        print(f"HTA: no figures in {HTA_PATIENCE_S} s")
        return None
    made = [line for line in ran.stdout.splitlines() if line.startswith("made")]
    if not made:
        print(f"HTA: skipped, {python} failed: {(ran.stderr.strip().splitlines() or ['no message'])[-1]}")
        return None
    return made[0]


def print_line(name: str, measured: Measured, seconds: float | None = None) -> None:
    took = "" if seconds is None else f"{seconds:7.1f} s"
    opened = f"not in {PATIENCE_S} s" if measured.open_ms is None else f"{measured.open_ms / 1000:.2f} s"
    cpu = "" if measured.cpu_ms is None else f"{measured.cpu_ms / 1000:.2f} s"
    moved = "–" if measured.fps is None else f"{measured.fps:.0f} fps, worst frame {measured.worst_ms:.0f} ms"
    print(f"{name:44} {took:>9} {measured.megabytes:8.2f} MB  {opened:>12} {cpu:>9}   {moved}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--trace", type=Path, default=BASE, help="what is repeated")
    parser.add_argument("--times", type=int, default=5, help="how often each page is opened")
    parser.add_argument("--hta-python", type=Path, help="a Python with HolisticTraceAnalysis")
    parser.add_argument("--keep", type=Path, help="a folder for the pages")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = args.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        run(args, folder)


def run(args: argparse.Namespace, folder: Path) -> None:
    trace = folder / "trace.json.gz"
    events = repeat.write(trace, base=args.trace, events=args.events)
    begin = time.perf_counter()
    timeline = Timeline(load(trace))
    report = analyze_timelines([timeline])
    read = time.perf_counter() - begin
    hits = rules.find_hits(timeline)
    begin = time.perf_counter()
    picture = draw_lanes(timeline, hits)
    page = html.render(report, [picture])
    drawn = time.perf_counter() - begin
    print(f"{events:,} events, {picture.bars['ts'].count:,} bars; read and analysed in {read:.1f} s")
    print(f"{'':44} {'made in':>9} {'size':>11}  {'opens in':>12} {'of CPU':>9}   a drag moves it at")
    with Browser() as browser:
        for name, text, seconds in (
            ("our page", page, drawn),
            ("our page, every time changed at random", html.render(report, [changed(picture)]), None),
        ):
            file = folder / f"{name.replace(' ', '-')}.html"
            file.write_text(text, encoding="utf-8")
            for where, keys in (("the whole trace", "f"), ("a step", "0"), ("a hundredth of it", "0wwwwwwwwwww")):
                times = args.times if keys == "f" else 1
                measured = browser.measure(file, times, keys, "#timeline")
                print_line(f"{name}: {where}", measured, seconds if keys == "f" else None)
        peers(args, folder, trace, picture, browser)


def peers(args: argparse.Namespace, folder: Path, trace: Path, picture: Lanes, browser: Browser) -> None:
    page = folder / "hta.html"
    if args.hta_python is None:
        print("HTA: skipped, no --hta-python")
    elif said := with_hta(args.hta_python, trace, page):
        _, figures, seconds = said.split()
        measured = browser.measure(page, args.times, drag=".plot-container .nsewdrag" if int(figures) else None)
        print_line(f"HTA, {figures} figures (sums, no timeline)", measured, float(seconds))
    for most in NAIVE:
        page = folder / f"naive-{most}.html"
        page.write_text(naive(picture, most, apart=True), encoding="utf-8")
        print_line(f"plotly, a trace an event: the first {most:,}", browser.measure(page, 1, drag=".nsewdrag"))
    page = folder / "naive.html"
    page.write_text(naive(picture, picture.bars["ts"].count, apart=False), encoding="utf-8")
    print_line("plotly, a bar an event: all", browser.measure(page, 1, drag=".nsewdrag"))


if __name__ == "__main__":
    main()
