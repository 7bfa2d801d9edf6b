"""What to write instead: each entry can be reached, the right one is taken, and its example is Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from syncscope import advice
from syncscope.advice import Advice
from syncscope.analysis.analyze import analyze
from syncscope.report.first_change import shorten_fix
from syncscope.rules import BY_CODE, RULES, Rule
from syncscope.rules.copy_not_overlapped import CopyNotOverlapped
from syncscope.schema.subscripts import takes_fixed_part
from syncscope.timeline.copy_overlap import REQUIREMENTS
from tests.builders import FrameSpec, TraceBuilder
from tests.rules.scenes import chain, findings, line, waiting

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"


def torch_frame(file: str, function: str, expression: str) -> FrameSpec:
    return (f"<site-packages>/torch/{file}", 100, function, expression)


ENTRIES = [
    pytest.param(rule, entry, id=f"{rule.code} {entry.when or 'otherwise'}") for rule in RULES for entry in rule.advice
]
SECTIONS = (advice.PYTORCH_CODE, advice.SHAPES, advice.READS, advice.NEW_TENSORS, advice.COPIES, advice.LIBRARIES)


@pytest.mark.parametrize(("rule", "entry"), ENTRIES)
def test_no_entry_hides_a_later_one(rule: Rule, entry: Advice):
    words = [word.split("|") for word in entry.when.split()]
    for number in range(max((len(choices) for choices in words), default=1)):
        names = [choices[number % len(choices)] for choices in words]
        assert advice.choose(rule.advice, names) is entry


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_some_advice_fits_whatever_is_known(rule: Rule):
    known = [lacking.split() for lacking in REQUIREMENTS] if isinstance(rule, CopyNotOverlapped) else [[]]
    assert all(rule.advise(*names) for names in known)


@pytest.mark.parametrize("entry", {entry.sentence: entry for section in SECTIONS for entry in section}.values())
def test_every_shared_entry_is_some_rules(entry: Advice):
    assert any(entry in rule.advice for rule in RULES)


@pytest.mark.parametrize(("rule", "entry"), ENTRIES)
def test_each_is_a_sentence(rule: Rule, entry: Advice):
    assert entry.sentence[0].isupper()
    assert entry.sentence.endswith(".")


@pytest.mark.parametrize(("rule", "entry"), ENTRIES)
def test_its_example_is_python_and_is_the_one_of_its_sentence(rule: Rule, entry: Advice):
    found = rule.example(entry.sentence)
    if entry.example is None:
        # What is bad and good in general would be about another cause than the entry's.
        assert (found is None) == bool(entry.when)
        return
    assert found == entry.example
    assert not found.before.startswith(" ")
    assert ast.dump(ast.parse(found.before)) != ast.dump(ast.parse(found.after))


@pytest.mark.parametrize(
    ("rule", "expression", "after"),
    [
        ("SYN103", "torch.repeat_interleave(row, counts)", "torch.repeat_interleave(row, counts, output_size=total)"),
        ("SYN102", "one_hot(classes[0], )", "one_hot(classes[0], num_classes=n)"),
        ("SYN101", "pinned.to(device)", "pinned.to(device, non_blocking=True)"),
        ("SYN101", "pinned.to(device, non_blocking=False)", "x = pinned.to('cuda', non_blocking=True)"),
        ("SYN101", "(pinned.to(device))", "x = pinned.to('cuda', non_blocking=True)"),
        ("SYN101", "stage(pinned)", "x = pinned.to('cuda', non_blocking=True)"),
        ("SYN101", None, "x = pinned.to('cuda', non_blocking=True)"),
    ],
)
def test_where_an_argument_is_all_the_change_is_shown_in_the_readers_own_call(
    rule: str, expression: str | None, after: str
):
    words = {"SYN103": "aten::repeat_interleave", "SYN102": "aten::one_hot", "SYN101": "pinned"}[rule]
    example = BY_CODE[rule].example(BY_CODE[rule].advise(words), expression)
    assert example is not None
    assert example.after == after
    assert (example.before == expression) == (expression is not None and not after.startswith("x ="))


def test_a_fix_that_names_an_op_has_the_example_of_its_sentence():
    builder = chain("fbgemm::permute_sparse_features", copy=None)
    (found,) = findings(builder, "SYN109")
    assert "fbgemm" in found.fix
    example = BY_CODE["SYN109"].example(found.fix)
    assert example is not None
    assert "nms" not in example.before + example.after


def test_a_fix_that_goes_on_with_what_belongs_to_the_finding_has_the_example_of_its_advice():
    rule = BY_CODE["OVL303"]
    entry = rule.choose_advice("host", "work")
    example = rule.example(f"{entry.sentence} Of this work: 51 % encode (tokenizer.py:111).")
    assert example == entry.example is not None
    loads = rule.choose_advice("data", "loading")
    assert rule.example(f"{loads.sentence} Of this work: 50 % pad_list (data.py:298).") == loads.example


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_fix_without_an_example_has_what_the_rule_calls_bad_and_good(rule: Rule):
    found = rule.example("a fix that has no example of its own")
    assert found is not None
    assert found.before and found.after and found.before != found.after
    assert not found.before.startswith(" ")


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ("item", "loss.detach()"),
        ("cpu", "to('cpu', non_blocking=True)"),
        ("to", "pinned memory"),
        ("nonzero", "torch.nonzero_static"),
        ("masked_select", "Keep the shape"),
        ("unique", "upper bound"),
        ("repeat_interleave", "output_size="),
        ("one_hot", "num_classes="),
        ("synchronize", "orders its work"),
    ],
)
def test_a_call_is_enough_to_know_a_way_out(call: str, part: str):
    found = advice.for_call(call)
    assert found is not None
    assert part in found.sentence


def test_a_call_that_nobody_knows_has_no_advice():
    assert advice.for_call("train") is None


METRIC = (
    "<site-packages>/torchmetrics/aggregation.py", 93, "BaseAggregator._cast_and_nan_check_input", "nans.any()"
)  # fmt: skip


@pytest.mark.parametrize(
    ("frame", "part"),
    [
        (torch_frame("amp/grad_scaler.py", "GradScaler._maybe_opt_step", "v.item()"), "fused=True"),
        (torch_frame("amp/grad_scaler.py", "GradScaler.get_scale", "scale.item()"), "get_scale()"),
        (torch_frame("nn/utils/clip_grad.py", "_get_total_norm", "x"), "error_if_nonfinite=False"),
        (torch_frame("distributions/distribution.py", "Distribution.__init__", "x"), "validate_args=False"),
        (torch_frame("optim/optimizer.py", "_get_value", "x.item()"), "capturable=True"),
        (torch_frame("optim/lbfgs.py", "LBFGS.step", "float(loss)"), "by design"),
        (torch_frame("_tensor.py", "Tensor.__format__", "self.item()"), "torch.stack(values).tolist()"),
        (METRIC, "nan_strategy='disable'"),
    ],
)
def test_a_read_in_pytorchs_own_python_is_known_by_its_file_and_function(frame: FrameSpec, part: str):
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, "aten::item").warning(100, line(9, "update()"), frame)
    assert part in findings(builder, "SYN102")[0].fix


@pytest.mark.parametrize("inner", ["get_scale", "_get_growth_tracker"])
def test_both_reads_of_a_scalers_state_have_one_advice(inner: str) -> None:
    builder = TraceBuilder().recording(0, 300)
    frames = (torch_frame("amp/grad_scaler.py", f"GradScaler.{name}", "x.item()") for name in ("state_dict", inner))
    waiting(builder, 10, "aten::item").warning(100, line(9, "scaler.state_dict()"), *frames)
    assert "where a checkpoint is written" in findings(builder, "SYN102")[0].fix


def test_a_read_that_an_optimizer_makes_by_design_is_marked() -> None:
    builder = TraceBuilder().recording(0, 400)
    waiting(builder, 10, "aten::item").warning(100, line(9, "step()"), torch_frame("optim/lbfgs.py", "LBFGS.step", "x"))
    waiting(builder, 210, "aten::item").warning(300, line(10, "loss.item()"))
    marked = {finding.site.line: finding.by_design for finding in findings(builder, "SYN102") if finding.site}
    assert marked == {9: True, 10: False}


def test_a_library_between_the_program_and_that_file_changes_nothing():
    builder = TraceBuilder().recording(0, 300)
    trainer = ("<site-packages>/lightning/trainer.py", 5, "fit", "clip()")
    inner = torch_frame("nn/utils/clip_grad.py", "_get_total_norm", "x")
    waiting(builder, 10, "aten::is_nonzero", "aten::item").warning(100, line(9, "fit()"), trainer, inner)
    assert "error_if_nonfinite" in findings(builder, "SYN102")[0].fix


@pytest.mark.parametrize(
    ("expression", "ops", "part"),
    [
        ("x[:n]", ("aten::item",), "slice's bound"),
        ("done[0]", ("aten::is_nonzero", "aten::item"), "torch.where"),
        ("torch.tensor([a, b])", ("aten::item",), "torch.stack"),
        ("unique_losses.item()", ("aten::item",), "loss.detach()"),
        ("torch.eq(guess, y).sum().item()", ("aten::item",), "where it can be added up as well"),
        ("q.sum(2).argmax(1).item()", ("aten::item",), "the action of a game"),
        ("action.item()", ("aten::item",), "the action of a game"),
        ("int(self.next_action)", ("aten::item",), "the action of a game"),
        ("transaction.item()", ("aten::item",), "where it can be added up as well"),
        ("(x.argmax(1) == y).sum().item()", ("aten::item",), "where it can be added up as well"),
        ("mask.any().item()", ("aten::item",), "Decide on the device"),
        ("bool((a == b).all())", ("aten::item",), "Decide on the device"),
        ("(norm > most).item()", ("aten::item",), "Decide on the device"),
        ("(guess == y).item()", ("aten::item",), "where it can be added up as well"),
        ("float((a == b).all().sum())", ("aten::item",), "where it can be added up as well"),
        ("not a name", ("aten::item",), "where it can be added up as well"),
    ],
)
def test_the_expression_tells_where_ops_are_alike(expression: str, ops: tuple[str, ...], part: str):
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, *ops).warning(100, line(9, expression))
    assert part in findings(builder, "SYN102")[0].fix


@pytest.mark.parametrize(
    ("ops", "part"),
    [
        (("aten::index_put_", "aten::_index_put_impl_", "aten::nonzero"), "torch.where(mask, values, x)"),
        (("aten::index", "aten::nonzero"), "instead of x[mask]"),
        (("aten::bincount", "aten::to", "aten::copy_"), "minlength= does not help"),
        (("autograd::engine::evaluate_function: ProdBackward0", "ProdBackward0", "aten::nonzero"), "prod()"),
        (
            (
                "autograd::engine::evaluate_function: IndexBackward0",
                "IndexBackward0",
                "aten::_index_put_impl_",
                "aten::nonzero",
            ),
            "gradient of x[mask]",
        ),
        (("aten::masked_select_backward", "aten::other"), "mark what counts"),
    ],
)
def test_shapes_from_values(ops: tuple[str, ...], part: str):
    assert part in findings(chain(*ops), "SYN103")[0].fix


@pytest.mark.parametrize(
    "ops", [("aten::index", "aten::nonzero"), ("IndexBackward0", "aten::_index_put_impl_", "aten::nonzero")]
)
def test_the_places_of_a_mask_are_to_be_found_once_for_all_that_it_picks_from(ops: tuple[str, ...]):
    fix = findings(chain(*ops), "SYN103")[0].fix
    assert "torch.where(mask, x, 0)" in fix
    assert "once for all tensors that" in fix and "places = mask.nonzero(as_tuple=True)" in fix


def test_the_first_to_do_about_the_gradient_of_a_mask_keeps_what_the_program_computes():
    """To compute with all values instead of few may cost more than the wait."""
    fix = findings(chain("IndexBackward0", "aten::_index_put_impl_", "aten::nonzero"), "SYN103")[0].fix
    assert "x[places]" in shorten_fix(fix) and "torch.where" not in shorten_fix(fix)


def test_a_gradient_that_looks_for_zeros_names_the_op_of_the_forward_pass():
    engine = ("autograd::engine::evaluate_function: CumprodBackward0", "CumprodBackward0", "aten::cumprod_backward")
    fix = findings(chain(*engine, "aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"), "SYN102")[0].fix
    assert "cumprod() looks for zeros" in fix


@pytest.mark.parametrize(("direction", "part"), [("HtoD", "Stack them"), ("DtoH", "join the values on the device")])
def test_many_small_copies_are_to_be_joined_where_they_come_from(direction: str, part: str):
    builder = TraceBuilder().step(0, 1000)
    for number in range(8):
        waiting(builder, 10 + 100 * number, "aten::to", "aten::copy_", copy=direction, memory="pageable", size=1024)
    fixes = {finding.rule: finding.fix for finding in findings(builder, "SYN101", "CPY201")}
    assert part in fixes["SYN101"]


@pytest.mark.parametrize(("reads", "part"), [(8, "values = x.tolist()"), (3, "read it every so many steps")])
def test_values_that_are_read_one_by_one_are_to_be_read_together(reads: int, part: str):
    builder = TraceBuilder().recording(0, 1000)
    for number in range(reads):
        waiting(builder, 10 + 100 * number, "aten::item").warning(100 + 100 * number, line(9, "int(lengths[i])"))
    builder.annotation("Optimizer.step#SGD.step", 900, 50)
    (found,) = findings(builder, "SYN102")
    assert part in found.fix


def test_an_index_of_the_host_that_is_copied_often_is_to_be_moved_once():
    builder = TraceBuilder().recording(0, 1000)
    for number in range(8):
        waiting(builder, 10 + 100 * number, "aten::index", "aten::copy_", copy="HtoD", memory="pageable", size=80)
        builder.warning(100 + 100 * number, line(9, "cache[rows]"))
    (found,) = findings(builder, "CPY203")
    assert "Keep the index" in found.fix


@pytest.mark.parametrize(
    ("expression", "fixed"),
    [("x[0]", True), ("x[:2, -1]", True), ("x[None, ...]", True), ("x[i]", False), ("x[[0, 1]]", False),
     ('batch["x"]', False), ("f(x[0])", False), (None, False)],
)  # fmt: skip
def test_a_part_is_fixed_where_nothing_but_numbers_tells_it(expression: str | None, fixed: bool):
    assert takes_fixed_part(expression) is fixed


def test_what_goes_back_to_the_device_is_best_kept_there():
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, "aten::to", "aten::copy_", copy="DtoH", memory="pageable", size=1024)
    builder.warning(100, line(9, "x.detach().cpu()")).launch("k", call=(150, 5), runs=(160, 20))
    fixes = {finding.rule: finding.fix for finding in findings(builder, "SYN101", "CPY201")}
    assert "is best kept there (x.clone())" in fixes["SYN101"]
    assert fixes["CPY201"] == fixes["SYN101"]


def test_many_tables_that_are_made_and_moved_at_once_are_to_be_made_on_the_device():
    builder = TraceBuilder().recording(0, 1000)
    for number in range(8):
        waiting(builder, 10 + 100 * number, "aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=80)
        builder.warning(100 + 100 * number, line(9, "torch.FloatTensor(n, classes).zero_().to(device)"))
    assert {found.fix.split(",")[0] for found in findings(builder, "CPY203", "SYN101", "CPY201")} == {
        "Make it on the device"
    }


def test_a_gradient_that_backward_takes_to_the_host_is_to_stay_where_the_tensor_should_be():
    builder = TraceBuilder().step(0, 1000)
    backward = ("autograd::engine::evaluate_function: ToCopyBackward0", "ToCopyBackward0")
    for number in range(8):
        ops = (*backward, "aten::to", "aten::copy_")
        waiting(builder, 10 + 100 * number, *ops, copy="DtoH", memory="pageable", size=1024)
    (found,) = findings(builder, "SYN101")
    assert "let the tensor that needs a gradient be one of the device" in found.fix


@pytest.mark.parametrize(
    ("expression", "size", "part"),
    [
        ("torch.tensor(0.5, device='cuda')", 4, "torch.full"),
        ("torch.tensor([1, 2], device='cuda')", 16, "torch.arange"),
        ("torch.tensor(lengths, device='cuda')", 240, "Copy values that change from pinned memory"),
        ("torch.tensor(np.copy(rows['action']), device=d)", 240, "Copy values that change from pinned memory"),
        ("torch.tensor(self.anchors, device=self.device)", 240, "Make it once outside the loop"),
        ("torch.tensor([self.decay**i for i in range(n)], device=d)", 240, "Make it once outside the loop"),
    ],
)
def test_a_tensor_made_on_the_host_is_made_on_the_device_once_or_from_pinned_memory(
    expression: str, size: int, part: str
):
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, "aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=size)
    (found,) = findings(builder.warning(100, line(9, expression)), "SYN101")
    assert part in found.fix


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("torch.randn(4, 1024).to(device)", "Make it on the device, which needs no copy"),
        ("torch.FloatTensor([0.5]).to(x.device)", "Its values stand in the code and never change: make it once"),
        ("cache[rows]", "Keep the index on the device"),
        ("self.position[0]", "What is written there is on the host"),
        ("rows[:2, -1]", "What is written there is on the host"),
    ],
)
def test_a_new_tensor_that_is_moved_and_an_index_of_the_host_are_told_by_the_expression(expression: str, part: str):
    builder = TraceBuilder().recording(0, 1000)
    for number in range(8):
        waiting(builder, 10 + 100 * number, "aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=1024)
        builder.warning(75 + 100 * number, line(9, expression))
    fixes = {finding.rule: finding.fix for finding in findings(builder, "SYN101", "CPY201", "CPY203")}
    assert fixes["SYN101"].startswith(part)
    assert fixes["CPY203"].startswith(part)


@pytest.mark.parametrize(
    ("expression", "drawn"),
    [
        ("torch.randn(4, 1024).to(device)", True),
        ("torch.FloatTensor(4).uniform_(0, 1).cuda()", True),
        ("torch.linspace(0, 1, 256).to(device)", False),
    ],
)
def test_other_random_numbers_of_the_same_seed_are_told_where_some_are_drawn(expression: str, *, drawn: bool):
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, "aten::to", "aten::copy_", copy="HtoD", memory="pageable", size=1024)
    found = findings(builder.warning(100, line(9, expression)), "SYN101", "CPY201")
    assert {one.rule for one in found} == {"SYN101", "CPY201"}
    for one in found:
        assert one.fix.startswith("Make it on the device, which needs no copy")
        assert ("other random numbers" in one.fix) == drawn
        assert ("distribution" in one.fix) == drawn


def test_two_findings_about_the_same_copies_advise_the_same():
    builder = TraceBuilder().recording(0, 300)
    waiting(builder, 10, "aten::to", "aten::copy_", copy="HtoD", memory="pageable")
    found = {one.rule: one for one in findings(builder.warning(100, line(9, "x.to('cuda')")), "SYN101", "CPY201")}
    assert "pinned memory" in found["SYN101"].fix
    assert found["CPY201"].fix == found["SYN101"].fix
    assert found["CPY201"].related == (found["SYN101"].fingerprint,)


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
        refers = finding.rule == "CPY201" and "SYN101" in finding.fix
        assert refers or ADVICE[part] in finding.fix, (part, finding.fix)
        seen.add(part)
    assert seen == set(ADVICE)


@pytest.mark.parametrize("name", ["trace.json.gz", "full.json.gz"])
def test_where_the_advice_was_followed_nothing_waits(name: str):
    report = analyze(TRACES / "fixes_applied" / name)
    assert report.traces[0].coverage.waits == 0
