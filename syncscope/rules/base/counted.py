"""What was counted over the whole run: how often the findings occur, and the lines that no window recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from syncscope.advice import READ_MANY, SELDOM, WEIGHTS
from syncscope.rules.base.counted_lines import CountedLine, Frequency, find_lines
from syncscope.rules.base.groups import MANY, key_of
from syncscope.rules.base.program import moves_weights, name_inference
from syncscope.rules.base.rule import Hit, RankRule, name_place
from syncscope.schema.counting import MAY_WAIT_NS
from syncscope.schema.expressions import TO_HOST, called_name
from syncscope.schema.findings import UNEXPLAINED, Finding, Severity, fingerprint
from syncscope.schema.order import RARE
from syncscope.timeline import Timeline
from syncscope.timeline.op_chains import known_op, ops_of
from syncscope.timeline.run import turns

NO_WINDOW = "no window recorded it"

PASSED = "it happens before the steps or in the first of them only: the steps after them do not repeat it"
NO_STEPS = (
    "no step of the program could be told: call syncscope.step() at the end of each, or record by time (--seconds)"
)
OTHER_STEPS = "the recorded steps do not hold it: record more of them (--steps), or others (--profile-at)"
BETWEEN = "it happens between the steps, which windows do not record: see how often it does over the run"
OTHER_PHASE = 'no window recorded its phase: record it with --phase "{}"'
"""Why nothing is known of what a line costs, and what to do about it."""


def add_run(hits: Sequence[Hit], timeline: Timeline, rules: Sequence[RankRule]) -> list[Hit]:
    """The hits with how often they occur over the run, and those of the lines that no window recorded."""
    recording = timeline.trace.recording
    if recording is None or (recording.phase is None and recording.run is None):
        return list(hits)
    lines = find_lines(timeline)
    mine: dict[object, list[CountedLine]] = {}
    for one in lines:
        if one.phase.name == recording.phase:
            mine.setdefault((one.place.site, one.place.at, one.place.expected), []).append(one)
    codes = {rule.code for rule in rules}
    several = {rule.code for rule in rules if rule.waits_many_times}
    known: set[int] = set()
    counted = []
    waits: dict[int, set[int]] = {}
    matched = [_match(hit, mine) for hit in hits]
    for hit, line in zip(hits, matched, strict=True):
        if line is not None:
            waits.setdefault(id(line), set()).update(hit.waits)
            if hit.finding.rule in codes:  # a copy that is not overlapped says nothing of the wait there
                known.add(id(line))
    for hit, line in zip(hits, matched, strict=True):
        finding = msgspec.structs.replace(hit.finding, phase=hit.finding.phase or recording.phase)
        if line is not None:
            finding = _with_frequency(hit, finding, line, len(waits[id(line)]), finding.rule in several)
        counted.append(replace(hit, finding=finding))
    unseen = [one for one in lines if id(one) not in known and not _runs_long_without_waiting(one, timeline)]
    explained = _explained(hits)
    return counted + [Hit(finding) for one in unseen for finding in _found_by_all(one, timeline, rules, explained)]


def _runs_long_without_waiting(line: CountedLine, timeline: Timeline) -> bool:
    """Whether a line may wait for no other reason than that its calls took long, and the window of its phase recorded
    calls there that took as long, none of which waited."""
    recording = timeline.trace.recording
    if line.certain or recording is None or recording.phase != line.phase.name or "runtime" not in timeline.has:
        return False
    stacks = {one.wait.stack for one in line.waits}
    calls = (one for one in recording.sites if one.kind == "call" and one.stack in stacks)
    if not any(one.end_ns - one.start_ns >= MAY_WAIT_NS for one in calls):
        return False
    waited = {(timeline.places[place].site, timeline.places[place].at) for place in set(timeline.waits.place.tolist())}
    return (line.place.site, line.place.at) not in waited


def _explained(hits: Sequence[Hit]) -> dict[object, list[Finding]]:
    """What windows found of the waits at each place."""
    explained: dict[object, list[Finding]] = {}
    for hit in hits:
        finding = hit.finding
        if hit.waits and finding.site is not None and finding.site_source == "hook":
            explained.setdefault((finding.site, finding.at, finding.reason), []).append(finding)
    return explained


def _found_by_all(
    line: CountedLine, timeline: Timeline, rules: Sequence[RankRule], explained: Mapping[object, Sequence[Finding]]
) -> list[Finding]:
    """What each rule that claims a line that no window recorded finds of it. All are about the same waits. A line whose
    op is not known has the rules of the same line in a phase that was recorded."""
    claimants = _claimants(line, rules)
    seen = explained.get((line.place.site, line.place.at, line.place.expected), ())
    if seen and [rule.code for rule in claimants] == [UNEXPLAINED]:
        fixes = {finding.rule: finding for finding in seen}
        claimants = [rule for rule in rules if rule.code in fixes and rule.counted] or claimants
        findings = [_as_seen(_found(line, timeline, rule), fixes.get(rule.code)) for rule in claimants]
    else:
        findings = [_found(line, timeline, rule) for rule in claimants]
    fingerprints = [finding.fingerprint for finding in findings]
    return [
        msgspec.structs.replace(finding, related=tuple(one for one in fingerprints if one != finding.fingerprint))
        for finding in findings
    ]


def _as_seen(finding: Finding, seen: Finding | None) -> Finding:
    """A finding of a line that is known from elsewhere, with its op and what to do there."""
    if seen is None:
        return finding
    return msgspec.structs.replace(
        finding, op=seen.op, fix=seen.fix, by_design=seen.by_design, fingerprint=seen.fingerprint
    )


def _claimants(line: CountedLine, rules: Sequence[RankRule]) -> list[RankRule]:
    """The rules of a line that no window recorded: the first that claims it, and those that go with it."""
    if not line.certain:
        return [rules[-1]]
    first, *others = (rule for rule in rules if any(map(rule.claims_counted, line.certain)))
    return [first, *(rule for rule in others if rule.goes_with_others and not first.brings_copy)]


def _match(hit: Hit, lines: Mapping[object, Sequence[CountedLine]]) -> CountedLine | None:
    """The counted line that a hit is at, if it is about waits or copies. ``lines`` are those at each site, frame and
    reason."""
    finding = hit.finding
    if finding.site_source != "hook" or not (hit.waits or hit.copies):
        return None
    at_place = lines.get((finding.site, finding.at, finding.reason), ())
    same = (line for line in at_place if finding.fingerprint == fingerprint(finding.rule, *key_of(line.place)))
    return next(same, None)


def _with_frequency(hit: Hit, finding: Finding, line: CountedLine, waits: int, several: bool) -> Finding:
    """The finding with its frequency over the run. ``waits`` is how many waits all findings at the line recorded,
    ``several`` whether each occurrence waits several times."""
    if not line.certain:
        return finding  # it waits at times: only the window knows when
    frequency = line.frequency(several)
    share = len(hit.waits) / waits if hit.waits and not several else 1.0
    finding = _add(finding, line, frequency and frequency.times(share))
    if finding.run_per_step is None or finding.stall_ms_per_step is None:
        return finding
    stall, as_recorded = line.blocked_ms_per_step, None
    if finding.per_step:
        as_recorded = finding.stall_ms_per_step / finding.per_step * finding.run_per_step
    if stall is None:
        stall = as_recorded
    elif as_recorded is not None and line.is_copy:
        stall = min(stall * share, as_recorded)
    else:
        stall *= share
    return msgspec.structs.replace(finding, run_stall_ms_per_step=None if stall is None else round(stall, 6))


def _add(finding: Finding, line: CountedLine, frequency: Frequency | None) -> Finding:
    if frequency is None:
        return msgspec.structs.replace(finding, run_steps=line.run_steps)
    low, high = frequency.bounds
    return msgspec.structs.replace(
        finding,
        run_per_step=_round(frequency.mean),
        run_per_step_low=_round(low),
        run_per_step_high=_round(high),
        occurrences=round(frequency.mean * turns(line.phase)) + line.before,
        run_steps=line.run_steps,
        run_steps_with=line.steps_with,
    )


def _round(number: float | None) -> float | None:
    return None if number is None else round(number, 9)


def _found(line: CountedLine, timeline: Timeline, rule: RankRule) -> Finding:
    """What a rule finds of a line that no window recorded."""
    place, first, recording = line.place, line.known[0], timeline.trace.recording
    entry = place.entry or first.wait.name
    ops = next((one.ops for one in line.known if one.ops and rule.claims_counted(one)), ())
    advice = rule.choose_advice(*_names(line, ops), *name_inference(timeline, line.phase.kind))
    stepped = recording is not None and line.phase.name == recording.phase and len(timeline.steps) > 0
    finding = Finding(
        rule=rule.code,
        name=rule.name,
        severity=_severity(line, timeline, rule),
        status="unexpected" if place.expected is None else "expected",
        reason=place.expected,
        site=place.site,
        at=place.at,
        chain=place.chain,
        site_source="count",
        rank=timeline.trace.rank,
        thread=first.wait.thread,
        op=known_op(ops, entry) or None,
        count=0,
        per_step=0.0 if stepped else None,
        saving_null_why=_why_no_saving(line, stepped, has_steps(timeline)),
        phase=line.phase.name,
        run_stall_ms_per_step=line.blocked_ms_per_step,
        message="",
        by_design=advice.by_design,
        fix=advice.sentence.replace("{op}", next(iter(ops_of(ops)), entry or "it")),
        fingerprint=fingerprint(rule.code, *key_of(place, ops)),
    )
    finding = _add(finding, line, line.frequency(rule.waits_many_times))
    return msgspec.structs.replace(finding, message=_message(line, finding))


def _why_no_saving(line: CountedLine, recorded: bool, steps_follow: bool) -> str:
    """Why a line that no window recorded has no saving; ``recorded`` is whether steps of its phase were recorded, and
    ``steps_follow`` whether the run has steps."""
    if line.phase.kind == "start" and not steps_follow:
        return NO_STEPS
    if line.only_first_step or line.phase.kind == "start":
        return PASSED
    if line.phase.kind in ("epoch end", "checkpoint"):
        return BETWEEN
    return OTHER_STEPS if recorded else OTHER_PHASE.format(line.phase.name)


def has_steps(timeline: Timeline) -> bool:
    """Whether a phase of the counted run has steps."""
    run = timeline.trace.recording.run if timeline.trace.recording else None
    return run is not None and any(phase.steps for phase in run.phases)


def _severity(line: CountedLine, timeline: Timeline, rule: RankRule) -> Severity:
    """A note where nothing tells whether the line waits, and where it waits to warm up or to move weights once."""
    steps_follow = has_steps(timeline)
    warm_up = line.only_first_step or line.only_prepares or (line.phase.kind == "start" and steps_follow)
    moved_once = line.phase.kind == "start" and moves_weights(line.place)
    return "note" if warm_up or moved_once or not line.certain else rule.severity


def _names(line: CountedLine, ops: tuple[str, ...]) -> Iterator[str]:
    """What is known of a line, for the advice, as in ``RankRule.names``."""
    wait = next((one.wait for one in line.known if one.wait.direction is not None), line.known[0].wait)
    yield from name_place(line.place)
    yield from ops
    if not ops and line.place.site is not None:
        name = called_name(line.place.site.expression)
        yield from (f"aten::{name}", f"aten::linalg_{name}")
    if wait.name.startswith(("Event.", "Stream.")):
        yield wait.name.split(".")[0].lower()
    if wait.direction is not None:
        yield wait.direction
        yield "pageable" if wait.pageable else "pinned"
        if moves_weights(line.place):
            yield WEIGHTS
    elif line.place.site is not None and called_name(line.place.site.expression) in TO_HOST:
        yield "DtoH"
    often = line.frequency(several=False)
    if often is None:
        return
    each = sum(one.wait.count for one in line.known) / line.steps_with if line.steps_with else often.mean
    if line.phase.steps and max(often.mean, each) >= MANY:
        yield READ_MANY
    between = not line.phase.steps and line.phase.kind in ("epoch end", "checkpoint")
    if each < MANY and (between or (line.phase.steps and often.mean < RARE)):
        yield SELDOM


def _message(line: CountedLine, finding: Finding) -> str:
    place, phase = line.place, line.phase
    subject = (place.site.expression if place.site else None) or place.entry or "a line"
    seen = sum(one.wait.count for one in line.known) if finding.occurrences is None else finding.occurrences
    times = f"{seen:,} time{'s' if seen != 1 else ''}"
    if phase.kind == "start":
        where = "before the first phase of the program"
    elif not phase.steps:
        where = f"in {phase.name}, which ran {turns(phase):,} time{'s' if turns(phase) != 1 else ''}"
    elif not phase.counted_steps and finding.occurrences is None:
        return f"{subject} waits for the device: seen in {phase.name}, of whose steps none was counted; {NO_WINDOW}"
    elif not phase.counted_steps:
        where = f"in {phase.name}, by parts of its steps: none was counted whole"
    elif phase.counted_steps < phase.steps:
        where = f"in {phase.steps:,} steps of {phase.name}, by those of {phase.counted_steps:,} of them"
    else:
        where = f"in {phase.steps:,} steps of {phase.name}"
    if phase.counted_steps < phase.steps or any(one.wait.variance for one in line.known):
        times = f"about {times}"
    if not line.certain:
        return f"{subject} may wait for the device, which nothing tells: called {times} {where}"
    warm = ", to compile or to capture" if line.only_prepares else ", only in the first" if line.only_first_step else ""
    return f"{subject} waits for the device: counted {times} {where}{warm}; {NO_WINDOW}"
