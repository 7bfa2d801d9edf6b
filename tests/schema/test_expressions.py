from __future__ import annotations

import pytest

from syncscope.schema.expressions import called_name


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
