"""What a fix saves at best, where its advice has two ways and the likely saving is that of the other, or where the
trace leaves open what goes with a read."""

from __future__ import annotations

from syncscope.advice import NEW_TENSORS
from syncscope.estimate.dispatch import DISPATCH
from syncscope.estimate.edits import NOTHING, Edit, Edits, Question, combine
from syncscope.estimate.picks import count_picks
from syncscope.estimate.questions import remove_read
from syncscope.estimate.study import Study
from syncscope.estimate.waiting import without_call
from syncscope.rules import BY_CODE, Hit
from syncscope.rules.base.question import Intervention


def at_best(study: Study, hit: Hit) -> Question:
    """What is left out at best: of tensors that are made on the host anew, all, since they may be made once; of the
    read of an element the pick, too, which is an op if it is one of a tensor. Nothing for other findings."""
    intervention, site = BY_CODE[hit.finding.rule].question, hit.finding.site
    if intervention is Intervention.COPY_ASYNCHRONOUSLY:
        made = any(entry.gave(hit.finding.fix or "") for entry in NEW_TENSORS)
        return make_once(study, hit) if made else NOTHING
    picks = count_picks(site.expression) if intervention is Intervention.REMOVE_READ and site else 0
    return remove_read(study, hit, picks=picks) if picks else NOTHING


def make_once(study: Study, hit: Hit) -> Question:
    """Neither the copies nor their waits, nor the calls before them that launch nothing."""
    copies, items = study.copies(hit)
    waits = [*study.waits(hit), *study.completing(copies)]
    edits: Edits = {item: Edit(own=0.0, free=True) for item in waits}
    pre = study.program.items.pre
    for item in items.tolist():
        before = study.calls_before(item)
        edits |= {one: Edit(pre=0.0 if pre[one] <= DISPATCH else 1.0, own=0.0) for one in before}
        edits[item] = Edit(pre=0.0 if pre[item] <= DISPATCH else 1.0, own=0.0, free=True, gone=True)
    return combine([edits, without_call(study, [], list(dict.fromkeys(waits)))])
