from __future__ import annotations

import pytest

from syncscope.schema.expressions import called_name


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("torch.tensor([1, 2])", "tensor"),
        ("x[:n]", "[]"),
        ("one_hot(x)", "one_hot"),
        ("f()()", ""),
        ("loss", ""),
        ("not valid(", ""),
        (None, ""),
    ],
)
def test_what_an_expression_calls(expression: str | None, name: str):
    assert called_name(expression) == name
