"""The question that a rule puts to the replay: which change of the program stands for the fix of its findings."""

from __future__ import annotations

from enum import Enum

import msgspec


class Intervention(Enum):
    """A change of the program that stands for fixing a finding. The replay tries it. The finding's saving is the time
    by which the step gets shorter. The value says what the changed program does."""

    REMOVE_WAIT = "the host does not wait; where the wait read no copy, what is launched next waits on the device"
    REMOVE_READ = "neither the wait nor the small copy of the value read, nor what makes a condition or range for it"
    KEEP_SHAPE = "neither the read of the size of a result, nor what finds a range for it, nor indices of a mask"
    REMOVE_HOST_WORK = "no host work, call or kernel of a print or a pinning"
    REMOVE_ALLOCATION = "no calls that get memory from the driver or give it back"
    COPY_ASYNCHRONOUSLY = "the copies are from and to pinned memory, and the host does not wait for them"
    PREFETCH = "as COPY_ASYNCHRONOUSLY, on a stream of their own and to the device a step early"
    SEPARATE_DIRECTIONS = "copies to the device and copies to the host are on different streams"
    GATHER_COPIES = "one copy a step, with the bytes of all"
    KEEP_ON_DEVICE = "neither the copies nor the waits for them"
    OVERLAP_COLLECTIVES = "the collectives run beside the backward that makes their input, or beside what follows them"
    LAUNCH_ASYNCHRONOUSLY = "every launch returns at once"
    FILL_IDLE = "none of the host's work that the device waits for, of the longest cause that no other finding is about"
    REPLAY_GRAPHS = "each stretch of launches that all steps repeat is launched as one CUDA graph"
    RECORD_NO_GRAPHS = "as REPLAY_GRAPHS, with nothing that the host does while it records graphs"
    JOIN_GRAPHS = "as REPLAY_GRAPHS, with neither the waits at the line that breaks the graph nor Python around them"


class NoQuestion(msgspec.Struct, frozen=True):
    """The replay tries nothing, because no change of one rank's step stands for the fix."""

    why: str
    """The finding's ``saving_null_why``."""
