from __future__ import annotations

import pytest

from syncscope.schema.expressions import called_name, ops_of_expression


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


@pytest.mark.parametrize("expression", ["torch.isfinite(x).all()", "mask.any()", "torch.isnan(loss)", "a.eq(b)"])
def test_what_makes_truth_values_waits_only_as_a_condition(expression: str) -> None:
    assert ops_of_expression(expression) == ("aten::is_nonzero", "aten::item")
