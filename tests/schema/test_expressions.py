from __future__ import annotations

import warnings

import pytest

from syncscope.schema.expressions import (
    add_argument,
    called_name,
    makes_tensor_on_host,
    moves_fixed_values,
    moves_made_before,
    moves_new_tensor,
    ops_of_expression,
    ops_of_subscript,
    without_format,
)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("torch.tensor([1, 2])", "tensor"),
        ("loss.item()", "item"),
        ("x[:n]", "[]"),
        ("one_hot(x)", "one_hot"),
        ("f()()", ""),
        ("loss", ""),
        ("y = loss.item()", ""),
        ("not valid(", ""),
        (None, ""),
    ],
)
def test_an_expression_says_what_it_calls(expression: str | None, name: str) -> None:
    assert called_name(expression) == name


@pytest.mark.parametrize(
    ("expression", "anew"),
    [
        ("torch.randn(4, 1024).cuda()", True),
        ("torch.ones(B, K, self.dim).to(device)", True),
        ("Dirichlet(torch.ones(K)).sample(torch.Size([B])).to(device)", True),
        ("torch.FloatTensor(n, classes).zero_().to(device)", True),
        ("torch.eye(3).repeat(n, 1, 1).cuda()", True),
        ("(torch.ones(scores.shape) * -1).cuda()", True),
        ("torch.zeros(4).long().unsqueeze(0).to(device)", True),
        ("torch.from_numpy(mask).to(device)", False),  # its numbers are on the host
        ("torch.LongTensor(lengths).to(device)", False),
        ("scores.zero_().to(device)", False),
        ("(torch.ones(4) * scores).cuda()", False),
        ("x.float().to(device)", False),
        ("noise.cuda()", False),
        ("dataset.sample(4).to(device)", False),
        ("torch.randn(4).cpu()", False),
        ("torch.randn(4)", False),
        (None, False),
    ],
)
def test_an_expression_says_whether_it_moves_what_it_makes(expression: str | None, anew: bool) -> None:
    assert moves_new_tensor(expression) is anew


@pytest.mark.parametrize(
    ("expression", "fixed"),
    [
        ("torch.FloatTensor([0.5]).to(x.device)", True),
        ("torch.tensor(0.5).cuda()", True),
        ("torch.Tensor([[1, -2], [3, 4]]).view(4).to(device)", True),
        ("torch.FloatTensor(4).to(device)", False),
        ("torch.Tensor(4).to(device)", False),
        ("torch.tensor([0.5, rate]).to(device)", False),
        ("torch.tensor(0.5, device=device)", False),
        ("x.to(device)", False),
        (None, False),
    ],
)
def test_an_expression_says_whether_it_moves_values_that_stand_in_it(expression: str | None, fixed: bool) -> None:
    assert moves_fixed_values(expression) is fixed


@pytest.mark.parametrize("expression", ["torch.isfinite(x).all()", "mask.any()", "torch.isnan(loss)", "a.eq(b)"])
def test_what_makes_truth_values_waits_only_as_a_condition(expression: str) -> None:
    assert ops_of_expression(expression) == ("aten::is_nonzero", "aten::item")


def test_an_escape_that_python_does_not_know_is_no_warning_and_hides_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert called_name(r"x[re.match('\d', 'it\'s')].item()") == "item"
        assert add_argument(r"f('\d\é')", "a=1") == r"f('\d\é', a=1)"
        assert without_format(r"f('\d' )") == without_format(r'f("\d")')


@pytest.mark.parametrize(
    "text", ["f" + "()" * 900, "x" + ".a" * 900 + "()", "torch.ops" + ".a" * 900 + "()", "-" * 9000]
)
def test_an_expression_that_is_nested_deeply_is_like_one_that_is_not_known(text: str) -> None:
    assert ops_of_expression(text) is None
    assert without_format(text) == text


@pytest.mark.parametrize(
    "other",
    [
        "torch.where( mask, 'a', x[0], )",
        'torch.where(mask, "a", x[0])',
        "(torch.where((mask), 'a', x[0]))",
        "torch.where(mask, 'a', x[0])  # once an epoch",
    ],
)
def test_what_formatters_and_comments_change_is_not_part_of_an_expression(other: str) -> None:
    assert without_format(other) == without_format("torch.where(mask, 'a', x[0])")
    assert without_format(other) != without_format("torch.where(mask, 'a', x[1])")


@pytest.mark.parametrize("text", ["for x in  loader:", "f(", "", None])
def test_what_is_no_expression_stays_as_it_is(text: str | None) -> None:
    assert without_format(text) == " ".join((text or "").split())


@pytest.mark.parametrize(
    ("text", "line", "reads"),
    [
        ("rows[:lengths[i]]", "return rows[:lengths[i]].tolist()", True),
        ("x[0, ..., n:]", "y = f(x[0, ..., n:])", True),
        ("x[:-n]", "for row in x[:-n]:", True),
        ("x[:n]", "x[:n] = y", False),
        ("x[:n]", "x[:n] += x[:n]", False),
        ("x[:n]", "y = f(", False),
        ("x[:n]", None, False),
        ("x[:3]", "y = x[:3]", False),
        ("x[i, :n]", "y = x[i, :n]", False),
        ("x[i]", "y = x[i]", False),
        ("names[i]", "text = ''.join([names[i] for i in row])", True),
        ("names[i]", "text = ' '.join(names[i] for i in row[0])", True),
        ("boxes[i]", "kept = [boxes[i] for i in masks]", False),
        ("boxes[i]", "kept = os.path.join([boxes[i] for i in masks])", False),
    ],
)
def test_a_subscript_reads_a_value_where_its_line_leaves_no_doubt(text: str, line: str | None, *, reads: bool) -> None:
    assert ops_of_subscript(text, line) == (("aten::item",) if reads else None)
    assert ops_of_expression(text) is None


@pytest.mark.parametrize(
    ("expression", "on_host"),
    [
        ("torch.ones(classification.shape) * -1", True),
        ("torch.FloatTensor(64, 9).fill_(0)", True),
        ("torch.zeros(3, device=device)", False),
        ("torch.zeros(3, **like)", False),
        ("torch.zeros_like(x)", False),
        ("Normal(mean, std).sample()", False),
        ("torch.bernoulli(p)", False),
        ("np.ones(3)", False),
        ("torch.ones(3) * x", False),
        (None, False),
    ],
)
def test_a_tensor_made_from_numbers_alone_is_on_the_host(expression: str | None, *, on_host: bool) -> None:
    assert makes_tensor_on_host(expression) is on_host


@pytest.mark.parametrize(
    ("before", "made"),
    [
        (["    if cuda:", "", "targets = torch.ones(classification.shape) * -1", "x = 1"], True),
        (["targets = torch.ones(3, device=device)"], False),
        (["targets[0] = 1", "targets = torch.ones(3)"], False),
        (["targets = collate(x)", "targets = torch.ones(3)"], False),
        (["other_targets = 2", "targets = torch.ones(3)  # all"], True),
        (["if targets == torch.ones(3):"], False),
        ([], False),
    ],
)
def test_what_is_moved_may_be_made_on_the_lines_before(before: list[str], *, made: bool) -> None:
    assert moves_made_before("targets.cuda()", before) is made
    assert not moves_made_before("targets.sum().cuda()", before)
