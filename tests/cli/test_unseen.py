"""What the gate did not see it does not pass: damaged recordings, and folders that lack a rank."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.labels import TRACES
from fixtures.ranks import RECORDED
from tests.builders import TraceBuilder
from tests.cli import traces
from tests.cli.conftest import Run

Document = dict[str, Any]

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n"


def recorded(case: str = "item_logging") -> Document:
    return dict(json.loads(gzip.decompress((TRACES / case / "trace.json.gz").read_bytes())))


def write(document: Document, path: Path) -> None:
    path.write_text(json.dumps(document))


def keep(document: Document, wanted: Callable[[Document], bool]) -> Document:
    return document | {"traceEvents": [event for event in document["traceEvents"] if wanted(event)]}


def is_call(event: Document, *names: str) -> bool:
    return event.get("cat") in ("cuda_runtime", "cuda_driver") and any(name in event["name"] for name in names)


def is_wait(event: Document) -> bool:
    return is_call(event, "Synchronize") or event.get("cat") == "cuda_sync"


def without_waits(document: Document) -> Document:
    return keep(document, lambda event: not is_wait(event))


def launches_only(document: Document) -> Document:
    return keep(document, lambda event: not is_call(event, "") or is_call(event, "LaunchKernel"))


def launches_and_copies_of_ops(document: Document) -> Document:
    """A foreign trace, without the recording's warnings."""
    document = keep(document, lambda event: not is_call(event, "") or is_call(event, "LaunchKernel", "Memcpy"))
    return {key: value for key, value in document.items() if key != "syncscope"}


def without_device_rows_of_copies(document: Document) -> Document:
    return keep(document, lambda event: event.get("cat") != "gpu_memcpy")


def with_steps_moved(document: Document) -> Document:
    steps = document["syncscope"]["steps"]
    steps["boundaries_ns"] = [time + 10**10 for time in steps["boundaries_ns"]]
    return document


def with_a_name_spoiled(document: Document) -> Document:
    for event in document["traceEvents"]:
        if is_call(event, "StreamSynchronize"):
            event["name"] = "cudaStreamSynchron\ufffdze"
    return document


DAMAGES = [
    without_waits, launches_only, launches_and_copies_of_ops, without_device_rows_of_copies, with_steps_moved,
    with_a_name_spoiled,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_rows_that_contradict_each_other_are_not_clean(run: Run, folder: Path, damage: Any) -> None:
    write(damage(recorded()), folder / "damaged.json")
    done = run("check", "damaged.json", "--select", "SYN,CPY201", "--ignore", "SYN102,SYN109")
    assert done.code == 3, done.out
    assert "not checked" in done.out
    assert "passed" not in done.out


@pytest.mark.parametrize("damage", [without_waits, launches_only, with_steps_moved])
def test_by_default_too(run: Run, folder: Path, damage: Any) -> None:
    write(damage(recorded()), folder / "damaged.json")
    assert run("check", "damaged.json").code == 3


def test_a_synchronize_without_its_wait_is_not_clean(run: Run, folder: Path) -> None:
    write(without_waits(recorded("explicit_sync")), folder / "damaged.json")
    done = run("check", "damaged.json")
    assert done.code == 3
    assert "recorded calls of synchronize()" in " ".join(done.out.split())


def cut(path: Path, share: float = 0.6) -> None:
    """A recording without waits, cut among its events, which come last."""
    document = recorded("clean_loop")
    events = document.pop("traceEvents")
    data = json.dumps(document | {"traceEvents": events}).encode()
    start = data.index(b'"traceEvents"')
    path.write_bytes(data[: start + int((len(data) - start) * share)])


def test_a_file_that_is_cut_is_not_clean(run: Run, folder: Path) -> None:
    cut(folder / "cut.json")
    done = run("check", "cut.json")
    assert done.code == 3
    assert "the file is cut short" in done.out
    assert "passed" not in done.out


def test_skipped_events_are_not_clean(run: Run, folder: Path) -> None:
    trace = traces.clean()
    trace.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "ts": "soon", "dur": {}})
    trace.write(folder / "skipped.json")
    assert run("check", "skipped.json").code == 3


def test_an_expectation_is_not_stale_where_its_wait_may_be_lost(run: Run, folder: Path) -> None:
    (folder / "syncscope.toml").write_text('expect = [{ rule = "SYN102", reason = "logs" }]\n')
    cut(folder / "cut.json")
    assert run("check", "cut.json").code == 3


def test_a_baseline_keeps_what_may_be_lost(run: Run, folder: Path) -> None:
    assert run("check", "waiting.json.gz", "--baseline", "b.json", "--write-baseline").code == 0
    before = (folder / "b.json").read_bytes()
    cut(folder / "cut.json")
    assert run("check", "cut.json", "--baseline", "b.json", "--update", "--allow-partial").code == 0
    assert (folder / "b.json").read_bytes() == before


@pytest.mark.parametrize("how", ["configuration", "option"])
def test_a_policy_may_allow_it(run: Run, folder: Path, how: str) -> None:
    cut(folder / "cut.json")
    (folder / "lfs.json").write_bytes(LFS)
    if how == "configuration":
        (folder / "syncscope.toml").write_text("allow_partial = true\n")
    done = run("check", "cut.json", "lfs.json", *(["--allow-partial"] if how == "option" else []))
    assert done.code == 0
    assert done.out.splitlines()[0].startswith("not all was seen: the file is cut short")
    assert done.out.endswith(" · 1 not read\n")


def test_what_is_lost_does_not_hide_what_is_found(run: Run, folder: Path) -> None:
    (folder / "cut.json").write_bytes(traces.waiting().json() + b"]")
    assert run("check", "cut.json").code == 1


def test_analyze_says_first_what_was_lost(run: Run, folder: Path) -> None:
    cut(folder / "cut.json")
    done = run("analyze", "cut.json", "-o", "page.md")
    assert done.code == 0
    assert done.out.startswith("not all was seen: the file is cut short")
    assert "warning: the file is cut short" not in done.out
    lines = (folder / "page.md").read_text().splitlines()
    assert lines[2].startswith("- not all was seen: the file is cut short")


WHOLE = (RECORDED / "rank1.json.gz").read_bytes()
TEXT = gzip.decompress(WHOLE)
SECONDS: dict[str, tuple[str, bytes]] = {
    "pointer of Git LFS": ("rank1.json.gz", LFS),
    "web page": ("rank1.json", b"<!DOCTYPE html><html><body>Sign in</body></html>"),
    "NUL bytes": ("rank1.json", b"\0" * 200_000),
    "UTF-16": ("rank1.json", TEXT.decode().encode("utf-16")),
    "cut before its first event": ("rank1.json", b'{"sche'),
    "broken gzip": ("rank1.json.gz", WHOLE[:40] + b"\xff" * 500),
    "cut gzip": ("rank1.json.gz", WHOLE[:15]),
}


@pytest.mark.parametrize("second", SECONDS)
def test_a_broken_rank_is_not_left_out(run: Run, folder: Path, second: str) -> None:
    name, data = SECONDS[second]
    both = folder / "run"
    both.mkdir()
    traces.clean(rank=0).write(both / "rank0.json")
    (both / name).write_bytes(data)
    done = run("check", "run")
    assert done.code == 3
    assert f"error: {Path('run') / name}: " in done.err


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_link_to_a_file_that_was_not_downloaded_is_not_left_out(run: Run, folder: Path) -> None:
    both = folder / "run"
    both.mkdir()
    traces.clean(rank=0).write(both / "rank0.json")
    (both / "rank1.json").symlink_to("../annex/objects/rank1.json")
    done = run("check", "run")
    assert (done.code, "rank1.json: does not exist" in done.err) == (3, True)


def rank(number: int, of: int) -> TraceBuilder:
    trace = traces.clean(rank=number)
    trace.top["distributedInfo"]["world_size"] = of
    return trace


def test_a_rank_that_the_folder_lacks_is_not_checked(run: Run, folder: Path) -> None:
    both = folder / "run"
    both.mkdir()
    for number in (0, 2):
        rank(number, 8).write(both / f"rank{number}.json")
    done = run("check", "run")
    assert done.code == 3
    assert done.out.startswith("not all was seen: ranks 1, 3–7 of 8 were not given\n")
    assert run("check", "run", "--allow-partial").code == 0
    lines = run("analyze", "run").out.splitlines()
    assert [line.split()[0] for line in lines if line[:1].isalpha()][:2] == ["step", "first"]
    assert "not all was seen: ranks 1, 3–7 of 8 were not given" in lines[:9]


def test_one_rank_alone_is_a_warning(run: Run, folder: Path) -> None:
    rank(3, 8).write(folder / "rank3.json")
    done = run("check", "rank3.json")
    assert done.code == 0
    assert "warning: ranks 0–2, 4–7 of 8 were not given" in done.out
