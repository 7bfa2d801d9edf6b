"""One table says what to write instead: each entry can be reached, and the right one is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscope.analysis.analyze import analyze
from syncscope.rules import RULES
from syncscope.rules.fixes import FIXES, sentence
from tests.builders import FrameSpec, TraceBuilder
from tests.rules.scenes import chain, findings, line, waiting

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"
CODES = [rule.code for rule in RULES if rule.code.startswith(("SYN", "CPY"))]


def torch_frame(file: str, function: str, expression: str) -> FrameSpec:
    return (f"<site-packages>/torch/{file}", 100, function, expression)


@pytest.mark.parametrize("needle", FIXES)
def test_no_entry_hides_a_later_one(needle: str):
    words = [word.split("|") for word in needle.split()]
    longest = max(len(choices) for choices in words)
    for number in range(longest):
        assert sentence([choices[number % len(choices)] for choices in words]) == FIXES[needle]


@pytest.mark.parametrize("code", CODES)
def test_every_rule_about_waits_and_copies_has_an_answer_of_its_own(code: str):
    assert sentence([code]) in [text for needle, text in FIXES.items() if needle.split()[0].split("|")[0] == code]


@pytest.mark.parametrize("text", FIXES.values())
def test_each_is_a_sentence(text: str):
    assert text[0].isupper()
    assert text.endswith(".")


@pytest.mark.parametrize(
    ("frame", "advice"),
    [
        (torch_frame("amp/grad_scaler.py", "GradScaler._maybe_opt_step", "v.item()"), "fused=True"),
        (torch_frame("amp/grad_scaler.py", "GradScaler.get_scale", "scale.item()"), "get_scale()"),
        (torch_frame("nn/utils/clip_grad.py", "_get_total_norm", "x"), "error_if_nonfinite=False"),
        (torch_frame("distributions/distribution.py", "Distribution.__init__", "x"), "validate_args=False"),
        (torch_frame("optim/optimizer.py", "_get_value", "x.item()"), "capturable=True"),
        (torch_frame("optim/lbfgs.py", "LBFGS.step", "float(loss)"), "by design"),
    ],
)
def test_a_read_in_pytorchs_own_python_is_known_by_its_file_and_function(frame: FrameSpec, advice: str):
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, "aten::item").warning(100, line(9, "update()"), frame)
    assert advice in findings(builder, "SYN102")[0].fix


def test_a_library_between_the_program_and_that_file_changes_nothing():
    builder = TraceBuilder().recording(0, 300)
    trainer = ("<site-packages>/lightning/trainer.py", 5, "fit", "clip()")
    inner = torch_frame("nn/utils/clip_grad.py", "_get_total_norm", "x")
    waiting(builder, 10, "aten::is_nonzero", "aten::item").warning(100, line(9, "fit()"), trainer, inner)
    assert "error_if_nonfinite" in findings(builder, "SYN102")[0].fix


@pytest.mark.parametrize(
    ("expression", "ops", "advice"),
    [
        ("x[:n]", ("aten::item",), "slice's bound"),
        ("done[0]", ("aten::is_nonzero", "aten::item"), "torch.where"),
        ("torch.tensor([a, b])", ("aten::item",), "torch.stack"),
        ("unique_losses.item()", ("aten::item",), "loss.detach()"),
        ("not a name", ("aten::item",), "loss.detach()"),
    ],
)
def test_the_expression_tells_where_ops_are_alike(expression: str, ops: tuple[str, ...], advice: str):
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, *ops).warning(100, line(9, expression))
    assert advice in findings(builder, "SYN102")[0].fix


@pytest.mark.parametrize(
    ("ops", "advice"),
    [
        (("aten::index_put_", "aten::_index_put_impl_", "aten::nonzero"), "torch.where(mask, values, x)"),
        (("aten::index", "aten::nonzero"), "instead of x[mask]"),
        (("aten::bincount", "aten::to", "aten::copy_"), "minlength= does not help"),
        (("autograd::engine::evaluate_function: ProdBackward0", "ProdBackward0", "aten::nonzero"), "prod()"),
        (("aten::masked_select_backward", "aten::other"), "mark what counts"),
    ],
)
def test_shapes_from_values(ops: tuple[str, ...], advice: str):
    assert advice in findings(chain(*ops), "SYN103")[0].fix


def test_many_small_copies_are_to_be_stacked():
    builder = TraceBuilder().step(0, 1000)
    for number in range(8):
        waiting(builder, 10 + 100 * number, "aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=1024)
    fixes = {finding.rule: finding.fix for finding in findings(builder, "SYN101", "CPY201")}
    assert len(fixes) == 2
    assert all("Stack them" in fix for fix in fixes.values())


def test_a_list_made_into_a_tensor_on_the_device_is_not_to_be_pinned():
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, "aten::to", "aten::copy_", copy="HtoD", memory="pageable")
    found = findings(builder.warning(100, line(9, "torch.tensor([1, 2], device='cuda')")), "SYN101", "CPY201")
    assert len(found) == 2
    assert all("torch.arange" in finding.fix for finding in found)


ADVICE = {
    "repeat_interleave": "output_size=", "row[mask]": "torch.where(mask, values, x)", "linalg.inv": "inv_ex",
    "cholesky": "cholesky_ex", "one_hot": "num_classes=", "bincount": "scatter_add_", "allclose": "torch.isclose",
    "row[:limit]": "slice's bound", "masked_fill_": "torch.where(mask, value, x)", "Normal": "validate_args=False",
    "row[order]": "Keep the index", "torch.tensor": "torch.arange", "unique": "upper bound",
}  # fmt: skip
"""By a part of the expression in ``fixtures/traces/fixes``; ``fixes_applied`` does what is said here, and waits for
nothing."""


@pytest.mark.parametrize("name", ["trace.json.gz", "full.json.gz"])
def test_recorded_waits_get_the_advice_that_was_tried_on_the_device(name: str):
    found = analyze(TRACES / "fixes" / name, select=["SYN", "CPY"]).findings
    seen = set()
    for finding in found:
        assert finding.site is not None
        part = next(part for part in ADVICE if part in (finding.site.expression or ""))
        assert ADVICE[part] in finding.fix, (part, finding.fix)
        seen.add(part)
    assert seen == set(ADVICE)


@pytest.mark.parametrize("name", ["trace.json.gz", "full.json.gz"])
def test_where_the_advice_was_followed_nothing_waits(name: str):
    report = analyze(TRACES / "fixes_applied" / name)
    assert report.traces[0].coverage.waits == 0
