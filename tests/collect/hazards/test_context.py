"""``with hazards() as found:``."""

from __future__ import annotations

import io

import pytest

torch = pytest.importorskip("torch", reason="races are looked for in PyTorch programs")

from syncscope.collect.hazards import hazards, window  # noqa: E402
from syncscope.rules.base.race_rule import UNSEEN  # noqa: E402
from tests.collect.hazards.fake import FakeRuntime  # noqa: E402

RULES = ["HAZ401", "HAZ402", "HAZ403"]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    fake = FakeRuntime()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(window, "CudaRuntime", lambda torch: fake)
    return fake


def test_findings_name_both_lines(runtime: FakeRuntime) -> None:
    x = runtime.on_device(torch.ones(8))
    with hazards() as found:
        host = x.to("cpu", non_blocking=True, copy=True)
        print(host, file=io.StringIO())
    (finding,) = found.findings
    assert finding.site is not None
    assert finding.at is not None
    assert (finding.rule, finding.site.expression) == ("HAZ401", "print(host, file=io.StringIO())")
    assert [site.expression for site in finding.earlier] == ['x.to("cpu", non_blocking=True, copy=True)']
    assert finding.site.line == finding.at.line == (finding.earlier[0].line or 0) + 1
    assert finding.site.file.endswith("tests/collect/hazards/test_context.py")
    assert finding.thread == "MainThread"
    assert (finding.count, finding.per_step) == (1, None)


def test_a_clean_block_has_none_and_says_what_it_cannot_see(runtime: FakeRuntime) -> None:
    with hazards() as found:
        torch.ones(8).sum()
    assert found.findings == ()
    assert [(entry.rule, entry.why, entry.partial) for entry in found.not_checked] == [
        (rule, UNSEEN, True) for rule in RULES
    ]


def test_an_error_passes_and_what_was_found_until_then_is_kept(runtime: FakeRuntime) -> None:
    def fail(host: object) -> None:
        host / 0  # type: ignore[operator]
        raise ZeroDivisionError

    found = hazards()
    with pytest.raises(ZeroDivisionError), found:
        fail(runtime.on_device(torch.ones(8)).to("cpu", non_blocking=True, copy=True))
    assert [finding.rule for finding in found.findings] == ["HAZ401"]


def test_what_could_not_be_followed_is_said(runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tensor: object) -> None:
        raise RuntimeError("no such memory")

    with hazards() as found:
        monkeypatch.setattr(runtime, "side", fail)
        torch.ones(8).sum()
    assert any("aten.sum.default was not followed" in entry.why for entry in found.not_checked)


def test_without_a_gpu_nothing_is_called_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with hazards() as found:
        torch.ones(8).sum()
    assert found.findings == ()
    assert [(entry.rule, entry.partial) for entry in found.not_checked] == [(rule, False) for rule in RULES]
    assert all("no GPU" in entry.why for entry in found.not_checked)
