"""One rank: its trace read, judged and drawn. What every engine runs, wherever it does.

What goes from one process to another is JSON of these structures: nothing that could run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from syncscope import __version__, rules
from syncscope.analysis.merge import merge
from syncscope.estimate import MOST_PEERS, Peer, Prepared, prepare, worth
from syncscope.report.picture.lanes import Lanes, draw_lanes
from syncscope.rules import Hit
from syncscope.schema.findings import Finding
from syncscope.schema.hta import HTA
from syncscope.schema.ranks import Unread
from syncscope.schema.report import NotChecked, Report, Tool, TraceInfo
from syncscope.timeline import Timeline
from syncscope.trace import TraceError, load, remote
from syncscope.trace.source import Reading

TOOL = Tool(name="syncscope", version=__version__)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of each rank."""

    codes: frozenset[str] = frozenset()
    """Rules whose savings are told."""
    bare_ms: float | None = None
    hta: bool = False
    """Whether HTA's tables are wanted."""
    judge: bool = True
    """Whether there is to be a report; without one, only a picture."""
    peers: tuple[Peer, ...] = ()
    """The ranks of the run, where what a finding is worth depends on them."""
    bars: int = 0
    """Of its picture, 0 for none."""
    reading: Reading = Reading()
    forgiving: bool = False
    """Whether a rank at which we fail ourselves counts as one that cannot be read; else the error is raised."""
    version: str = __version__


class Studied(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rank, or of several."""

    report: Report
    pictures: tuple[Lanes, ...] = ()
    peers: tuple[Peer, ...] = ()
    """What the ranks need to know of each other; of too many to compare, the first ones and one more."""


def study(path: str, job: bytes, shown: str | None = None) -> bytes:
    """The ``Studied`` of one trace, for the ``Job``, both as JSON. One that cannot be read is in ``Report.unread``.

    ``shown`` is what the trace is called where that is not the path it is read from. Raises ``RuntimeError`` where
    client and worker are of different versions.
    """
    asked = msgspec.json.decode(job, type=Job)
    if asked.version != __version__:
        raise RuntimeError(f"asked by syncscope {asked.version}, and this is {__version__}")
    try:
        found = _study(path, asked, shown)
    except TraceError as error:
        found = unread(shown or error.path, error.reason)
    except MemoryError:
        found = unread(shown or path, "does not fit into memory")
    except Exception as error:
        if not asked.forgiving:
            raise
        found = unread(shown or path, f"internal error: {type(error).__name__}: {error}")
    return msgspec.json.encode(found)


def _study(path: str, job: Job, shown: str | None) -> Studied:
    timeline = Timeline(load(path, **msgspec.structs.asdict(job.reading)))
    judged = judge(timeline, job.codes, job.bare_ms, job.hta) if job.judge else None
    report, peers = judged.told(job.peers) if judged else (nothing(), ())
    hits = judged.hits if judged else rules.hits(timeline)[0] if job.bars else ()
    pictures = [draw_lanes(timeline, hits, job.bars)] if job.bars else []
    if shown is not None and shown != timeline.trace.path:
        report = msgspec.structs.replace(
            report, traces=tuple(msgspec.structs.replace(info, path=shown) for info in report.traces)
        )
        pictures = [msgspec.structs.replace(picture, path=shown) for picture in pictures]
    return Studied(report=report, pictures=tuple(pictures), peers=peers)


@dataclass(frozen=True)
class Judged:
    """A trace with its findings, before what they are worth is told."""

    info: TraceInfo
    hits: tuple[Hit, ...]
    """What all rules found."""
    asked: Prepared
    others: tuple[Finding, ...]
    """Findings whose savings are not asked for."""
    not_checked: tuple[NotChecked, ...]

    def report(self, peers: Sequence[Peer] = ()) -> Report:
        """The report on it, knowing the ranks of its run or not."""
        told = worth(self.asked, peers)
        return Report(
            tool=TOOL,
            traces=(msgspec.structs.replace(self.info, replay=told.replay),),
            findings=(*told.findings, *self.others),
            saving_all_ms_per_step=told.every.ms,
            saving_all_low_ms_per_step=told.every.low,
            saving_all_high_ms_per_step=told.every.high,
            not_checked=self.not_checked,
        )

    def told(self, peers: Sequence[Peer] = ()) -> tuple[Report, tuple[Peer, ...]]:
        """``report``, and what the others need to know of this rank."""
        report, peer = self.report(peers), self.asked.peer
        replay = report.traces[0].replay
        fits = replay is None or replay.null_why is None
        return report, (msgspec.structs.replace(peer, fits=fits),) if peer else ()


def judge(timeline: Timeline, codes: frozenset[str], bare_ms: float | None, hta: bool = False) -> Judged:
    """What there is to say of a trace. Savings are told of the rules with these codes alone, and of them together."""
    hits, not_checked = rules.hits(timeline)
    asked = prepare(timeline, [hit for hit in hits if hit.finding.rule in codes], bare_ms)
    others = tuple(hit.finding for hit in hits if hit.finding.rule not in codes)
    info = msgspec.structs.replace(timeline.info(), hta=_hta(timeline) if hta else None)
    return Judged(info, tuple(hits), asked, others, tuple(not_checked))


def _hta(timeline: Timeline) -> HTA:
    from syncscope.hta import analyses  # nothing else needs it

    return analyses(timeline.trace)


def nothing() -> Report:
    return Report(tool=TOOL, traces=(), findings=())


def unread(path: str, why: str) -> Studied:
    """A rank that could not be read."""
    entry = Unread(path=remote.shown(path).encode(errors="replace").decode(), why=why)
    return Studied(report=msgspec.structs.replace(nothing(), unread=(entry,)))


def join(parts: Iterable[bytes]) -> bytes:
    """Several ``Studied`` as one, all as JSON: the same in whatever grouping they are joined."""
    return msgspec.json.encode(joined(parts))


def joined(parts: Iterable[bytes]) -> Studied:
    studied = [msgspec.json.decode(part, type=Studied) for part in parts]
    return Studied(
        report=merge(one.report for one in studied),
        pictures=tuple(picture for one in studied for picture in one.pictures),
        peers=tuple(peer for one in studied for peer in one.peers)[: MOST_PEERS + 1],
    )
