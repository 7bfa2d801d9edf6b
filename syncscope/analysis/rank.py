"""Analyse one rank: read its trace, find, estimate the savings, and draw its picture. Every engine runs this.

There are two phases. ``analyze_rank`` reads a trace. Where the trace may be one rank of several, it also keeps what an
estimate needs. ``compare_rank`` estimates the savings again, with what is known of the other ranks. It reads no trace,
only what was kept.

Processes exchange these structures as JSON, and ``Prepared.to_bytes``. Neither can run code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from syncscope import __version__, rules
from syncscope.analysis.job import Job as Job
from syncscope.analysis.judged import judged_of
from syncscope.analysis.merge import merge
from syncscope.estimate import (
    MOST_PEERS,
    Estimate,
    Peer,
    Prepared,
    Program,
    compile_program,
    estimate_savings,
    find_misfit,
    lower_severity,
    peers_to_compare,
    prepare,
)
from syncscope.report.picture.lanes import Lanes
from syncscope.rules import Hit
from syncscope.rules.base.meetings import link_meetings
from syncscope.schema.findings import Finding
from syncscope.schema.ranks import Unread
from syncscope.schema.report import HTATrace, NotChecked, Report, Tool
from syncscope.timeline import Timeline
from syncscope.trace import Trace, TraceError, load, remote
from syncscope.trace.beside import Beside
from syncscope.trace.reader import load_ranks

TOOL = Tool(name="syncscope", version=__version__)
OF_WAIT = 1.5
"""A saving of up to so many times what the host waits is that wait. What is more than that comes of something else that
the fix does, such as a loader that hands batches over from another thread."""

EMPTY_REPORT = Report(tool=TOOL, traces=(), findings=())

NOTHING_KEPT = b""

Rank = tuple[bytes, bytes]
"""The result of one rank: its own ``Results`` as JSON, and ``Prepared.to_bytes`` or ``NOTHING_KEPT``."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one rank, or of several that were merged."""

    report: Report
    pictures: tuple[Lanes, ...] = ()
    hta: tuple[HTATrace, ...] = ()
    """HTA's tables, where only those were wanted."""
    peers: tuple[Peer, ...] = ()
    """What the ranks need to know of each other. Where there are too many to compare, these are the first ones and one
    more."""


Found = tuple[Results, bytes]
"""As ``Rank``, but not as JSON yet."""


def analyze_rank(path: str, job: bytes, shown: str | None = None) -> Rank:
    """The first phase, for the ``Job`` as JSON. A trace that cannot be read is in ``Report.unread``.

    ``shown`` is what the trace is called where that is not the path it is read from. Raises ``RuntimeError`` where
    client and worker are of different versions.
    """
    wanted = msgspec.json.decode(job, type=Job)
    if wanted.version != __version__:
        raise RuntimeError(f"the client runs syncscope {wanted.version}, and this worker runs {__version__}")
    return _encoded(_analyze_any(path, wanted, shown))


def analyze_alone(path: str, job: Job) -> Results:
    """The results of the only trace, which stay in this process."""
    return merge_results([_analyze_any(path, job, None)[0]])


def _analyze_any(path: str, job: Job, shown: str | None) -> Found:
    work: Callable[[str, Job, str | None], Found]
    work = _analyze_once if job.reading.cache and not job.hta else _analyze
    work = _run_hta if job.only_hta else work
    return _or_unread(shown or path, job.several, lambda: work(path, job, shown))


def compare_rank(rank: Rank, peers: bytes) -> Rank:
    """The second phase: estimate the savings of the same rank again, among ``peers`` (a tuple of ``Peer`` as JSON)."""
    results, kept = rank
    if kept == NOTHING_KEPT:
        return rank
    first = msgspec.json.decode(results, type=Results)

    def compare() -> Found:
        others = msgspec.json.decode(peers, type=tuple[Peer, ...])
        report = estimate_report(first.report, Prepared.from_bytes(kept), others)
        return msgspec.structs.replace(first, report=report), NOTHING_KEPT

    return _encoded(_or_unread(first.report.traces[0].path, True, compare))


def results_of(rank: Rank) -> bytes:
    """The ``Results`` of a rank as JSON, without what was kept."""
    return rank[0]


def _encoded(found: Found) -> Rank:
    results, kept = found
    return msgspec.json.encode(results), kept


def _or_unread(path: str, several: bool, work: Callable[[], Found]) -> Found:
    """What ``work`` returns. If it fails, the trace counts as one that could not be read."""
    try:
        return work()
    except TraceError as error:
        return _unread(path, error.reason)
    except MemoryError:
        return _unread(path, "does not fit into memory")
    except Exception as error:
        if not several:
            raise
        return _unread(path, f"internal error: {type(error).__name__}: {error}")


def _run_hta(path: str, job: Job, shown: str | None) -> Found:
    from syncscope.hta import run_analyses  # nothing else needs it

    trace = load(path, **msgspec.structs.asdict(job.reading))
    tables = run_analyses(trace, include_last_profiler_step=job.last_step)
    found = HTATrace(path=shown or trace.path, rank=trace.rank, hta=tables)
    return Results(report=EMPTY_REPORT, hta=(found,)), NOTHING_KEPT


def _analyze_once(path: str, job: Job, shown: str | None) -> Found:
    """``_analyze``, or what it returned for the same file and job before. HTA's part is HTA's code, and not kept."""
    judged = judged_of(path, job, shown)
    known = judged.load()
    if known is not None:
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(known[0], type=Results), known[1]
    results, kept = _analyze(path, job, shown)
    judged.store(msgspec.json.encode(merge_results([results])), kept)
    return results, kept


def _analyze(path: str, job: Job, shown: str | None) -> Found:
    traces = load_ranks(path, **msgspec.structs.asdict(job.reading))
    analyzed = _analyze_merged(traces, job) if len(traces) > 1 else _analyze_trace(traces[0], job)
    results, kept = analyzed
    if shown is not None and shown != traces[0].path:
        found = results.report
        infos = tuple(msgspec.structs.replace(info, path=shown) for info in found.traces)
        pictures = tuple(msgspec.structs.replace(picture, path=shown) for picture in results.pictures)
        report = msgspec.structs.replace(found, traces=infos)
        results = msgspec.structs.replace(results, report=report, pictures=pictures)
    return results, kept


def _analyze_trace(trace: Trace, job: Job) -> Found:
    timeline = Timeline(trace)
    report, kept = EMPTY_REPORT, NOTHING_KEPT
    peers: tuple[Peer, ...] = ()
    with Beside.of(timeline.trace, job.reading) as beside:
        _build(timeline, beside)
        # In the order in which this thread waits for it.
        _ = beside.begin(lambda: timeline.launching) if beside.threaded else None
        program = beside.begin(lambda: compile_program(timeline)) if job.report and beside.threaded else None
        misfit = beside.begin(lambda: _misfit_of(program())) if program else None
        not_checked = beside.begin(lambda: rules.find_unchecked(timeline) if job.report else [])
        _ = beside.begin(timeline.info) if beside.threaded else None
        hits = rules.find_hits(timeline)
        # Without a thread, before the replay takes memory.
        drawn = beside.begin(lambda: _draw(timeline, hits, job.max_bars))
        if job.report:
            prepared = prepare_savings(timeline, hits, job, program)
            prepared = replace(prepared, misfit=misfit()) if misfit and prepared.program else prepared
            estimate = estimate_savings(prepared)
            report = give_savings(make_report(timeline, hits, not_checked(), job, prepared), prepared, estimate)
            peers = find_peer(report, prepared)
            kept = prepared.to_bytes() if peers and job.several else NOTHING_KEPT
        pictures = drawn()
    return Results(report=report, pictures=tuple(pictures), peers=peers), kept


def _draw(timeline: Timeline, hits: Sequence[Hit], max_bars: int) -> list[Lanes]:
    """A picture, where it may have bars."""
    if not max_bars:
        return []
    from syncscope.report.picture.draw import draw_lanes  # a report without pictures does without

    return [draw_lanes(timeline, hits, max_bars)]


def _analyze_merged(traces: Sequence[Trace], job: Job) -> Found:
    """The ranks of one file, compared with each other, and not with those of other files."""
    pairs: list[tuple[Report, Prepared]] = []
    pictures: list[Lanes] = []
    for trace in traces:
        timeline = Timeline(trace)
        hits, not_checked = rules.find(timeline)
        pictures += _draw(timeline, hits, job.max_bars // len(traces))
        if job.report:
            pairs.append(begin_report(timeline, hits, not_checked, job))
    reports = estimate_together(pairs)
    report = merge(reports) if reports else EMPTY_REPORT
    return Results(report=report, pictures=tuple(pictures)), NOTHING_KEPT


def estimate_together(pairs: Sequence[tuple[Report, Prepared]]) -> list[Report]:
    """The reports on all ranks with their savings, estimated again among each other where that makes a difference."""
    reports = [estimate_report(report, prepared) for report, prepared in pairs]
    known = [peer for report, (_, prepared) in zip(reports, pairs, strict=True) for peer in find_peer(report, prepared)]
    peers = peers_to_compare(known)
    return [estimate_report(report, prepared, peers) for report, prepared in pairs] if peers else reports


def _build(timeline: Timeline, beside: Beside) -> None:
    """Build the tables that the rules, the picture and the replay share, so that these need not wait for each other."""
    stacks = beside.begin(lambda: timeline.stacks)
    _ = timeline.activities, timeline.ops.nesting
    stacks()
    warm_ups = beside.begin(lambda: timeline.warm_ups)
    _ = timeline.places
    warm_ups()


def _misfit_of(program: Program | None) -> float | None:
    return None if program is None else find_misfit(program)


def begin_report(
    timeline: Timeline, hits: Sequence[Hit], not_checked: Sequence[NotChecked], job: Job
) -> tuple[Report, Prepared]:
    """The report on one trace, still without savings, and what estimating them needs."""
    prepared = prepare_savings(timeline, hits, job)
    return make_report(timeline, hits, not_checked, job, prepared), prepared


def prepare_savings(
    timeline: Timeline, hits: Sequence[Hit], job: Job, program: Callable[[], Program | None] | None = None
) -> Prepared:
    """What estimating the savings that are wanted needs. ``program`` returns the trace's, where it is compiled
    already."""
    wanted = [hit for hit in hits if hit.finding.rule in job.codes and hit.finding.site_source != "count"]
    return prepare(timeline, wanted, job.bare_ms, program)


def make_report(
    timeline: Timeline, hits: Sequence[Hit], not_checked: Sequence[NotChecked], job: Job, prepared: Prepared
) -> Report:
    """The report on one trace, still without savings. The findings that are ``prepared`` come first in it."""
    estimated = {finding.number for finding in prepared.findings}
    others = tuple(hit.finding for hit in hits if hit.finding.number not in estimated)
    info = link_meetings(timeline.info(), timeline, hits)
    if job.hta and not timeline.only_counted:
        from syncscope.hta import run_analyses  # nothing else needs it

        info = msgspec.structs.replace(info, hta=run_analyses(timeline.trace))
    findings = (*prepared.findings, *others)
    return Report(tool=TOOL, traces=(info,), findings=findings, not_checked=tuple(not_checked))


def estimate_report(report: Report, prepared: Prepared, peers: Sequence[Peer] = ()) -> Report:
    """The report on one trace with its savings, estimated among ``peers``, or alone."""
    return give_savings(report, prepared, estimate_savings(prepared, peers))


def give_savings(report: Report, prepared: Prepared, estimate: Estimate) -> Report:
    """The report on one trace with what was estimated."""
    (info,) = report.traces
    return msgspec.structs.replace(
        report,
        traces=(msgspec.structs.replace(info, replay=estimate.replay),),
        findings=(
            *(with_run_saving(finding, info.steps.bare_ms) for finding in estimate.findings),
            *report.findings[len(prepared.findings) :],
        ),
        saving_all_ms_per_step=estimate.together.ms,
        saving_all_low_ms_per_step=estimate.together.low,
        saving_all_high_ms_per_step=estimate.together.high,
        likely_saving_all_ms_per_step=estimate.together.likely,
        likely_saving_all_high_ms_per_step=estimate.together.likely_high,
        saving_all_below_drift=estimate.together.below_drift,
    )


def with_run_saving(finding: Finding, step_ms: float | None) -> Finding:
    """The finding with what it saves over the run: as much an occurrence as in the recorded steps, and where that is
    the wait itself as much less as it blocks less there. An error that saves little of a step of ``step_ms`` there is a
    warning."""
    saving, recorded, run = finding.saving_ms_per_step, finding.per_step, finding.run_per_step
    if saving is None or run is None or not recorded:
        return finding
    of_run, held, of_wait = saving / recorded * run, finding.stall_ms_per_step, finding.run_stall_ms_per_step
    if held and of_wait is not None and saving <= OF_WAIT * held:
        of_run = min(of_run, saving * of_wait / held)
    of_run = round(of_run, 6)
    return msgspec.structs.replace(
        finding, run_saving_ms_per_step=of_run, severity=lower_severity(finding.severity, of_run, step_ms)
    )


def find_peer(report: Report, prepared: Prepared) -> tuple[Peer, ...]:
    """What the other ranks need to know of this one; nothing where it meets no other. ``report`` has its savings."""
    replay, peer = report.traces[0].replay, prepared.peer
    fits = replay is None or (replay.null_why is None and not replay.doubt)
    return (msgspec.structs.replace(peer, fits=fits),) if peer else ()


def unread(path: str, why: str) -> Rank:
    """A rank that could not be read."""
    return _encoded(_unread(path, why))


def _unread(path: str, why: str) -> Found:
    return Results(report=unread_report(path, why)), NOTHING_KEPT


def unread_report(path: str, why: str) -> Report:
    """The report on a trace that could not be read."""
    entry = Unread(path=remote.shown(path).encode(errors="replace").decode(), why=why)
    return msgspec.structs.replace(EMPTY_REPORT, unread=(entry,))


def merge_encoded(parts: Iterable[bytes]) -> bytes:
    """Merge several ``Results``, all as JSON. The grouping in which they are merged makes no difference."""
    return msgspec.json.encode(merge_results(parts))


def merge_results(parts: Iterable[bytes | Results]) -> Results:
    """Merge several ``Results``, given as they are or as JSON."""
    results = [part if isinstance(part, Results) else msgspec.json.decode(part, type=Results) for part in parts]
    return Results(
        report=merge(one.report for one in results),
        pictures=tuple(picture for one in results for picture in one.pictures),
        hta=tuple(found for one in results for found in one.hta),
        peers=tuple(peer for one in results for peer in one.peers)[: MOST_PEERS + 1],
    )
