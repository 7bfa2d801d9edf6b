"""What the text of an expression calls, and the ops that wait in it. Light enough for the collector: no pandas."""

import ast
import re
from collections.abc import Iterable
from functools import lru_cache

from syncscope.patterns import compile_later

TO_HOST = frozenset({"item", "tolist", "cpu", "numpy", "__bool__", "__int__", "__float__"})
"""Names of calls that copy from the device to the host."""


Chain = tuple[str, ...]

SCALAR_READS = frozenset({"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal"})
"""Ops that bring one value to the host."""

DYNAMIC_SHAPES = frozenset({
    "aten::nonzero", "aten::nonzero_numpy", "aten::argwhere", "aten::masked_select", "aten::masked_select_backward",
    "aten::unique", "aten::_unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive",
    "aten::unique_dim_consecutive", "aten::repeat_interleave", "aten::bincount",
})  # fmt: skip
"""Ops whose result's size depends on values."""

COPY: Chain = ("aten::to", "aten::copy_")
READ: Chain = ("aten::item",)
BY_METHOD: dict[str, Chain] = {
    **dict.fromkeys(("to", "cuda", "cpu", "copy_", "tolist", "tensor", "as_tensor", "asarray", "new_tensor"), COPY),
    **dict.fromkeys(("item", "float", "int", "bool", "complex"), READ),
    **dict.fromkeys(
        ("all", "any", "isnan", "isinf", "isfinite", "eq", "ne", "gt", "lt", "ge", "le", "logical_and", "logical_or"),
        ("aten::is_nonzero", *READ),
    ),
    **{
        name: (f"aten::{name}", *READ)
        for name in ("equal", "allclose", "one_hot", "bincount", "masked_fill", "masked_fill_")
    },
    **{
        name: (f"aten::{name}",)
        for name in ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "repeat_interleave")
    },
}
"""The ops that a function or method is known to run when it waits, by its name. Those that make truth values wait for
nothing by themselves, so what waits is the condition that they are used as; what fills waits where its value is on the
device."""

_OPERATOR = compile_later(r"(?:\w+\.)*ops\.(\w+)\.(\w+)(?:\.\w+)?")
"""``torch.ops.torchvision.nms``, perhaps with an overload."""


_ESCAPE = compile_later(r"\\(.)", re.DOTALL)
_ESCAPED = "\x1a"
"""Stands for a backslash, and for what would mean something without it."""


@lru_cache(maxsize=4096)
def parse_expression(text: str | None) -> ast.expr | None:
    """The tree of an expression, ``None`` where the text is not one. Its strings have no backslashes."""
    try:
        return ast.parse(_without_escapes(text or ""), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=4096)
def _parse_line(line: str) -> ast.Module | None:
    """The tree of a line of source, ``None`` where it is no whole statement. A head has an empty body."""
    for text in (line.strip(), f"{line.strip()} pass"):
        try:
            return ast.parse(_without_escapes(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _without_escapes(text: str) -> str:
    """The text without backslashes, as long as it was in UTF-8: Python warns on stderr of escapes that it does not
    know, as in ``"\\d"``."""
    return _ESCAPE.sub(lambda match: _ESCAPED + (_ESCAPED if match[1] in "\\'\"" else match[1]), text)


@lru_cache(maxsize=4096)
def without_format(text: str | None) -> str:
    """The text without what formatters and comments change: spaces, quotes, needless brackets and commas."""
    plain = " ".join((text or "").split())
    try:
        return ast.unparse(ast.parse(_without_escapes(plain)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return plain


def add_argument(expression: str | None, argument: str) -> str | None:
    """The expression, a call, with an argument added; ``None`` where it is not a call, or has the argument already or
    may have it: in ``*args`` or ``**options``, or as a last truth value whose name is not there."""
    tree, text = parse_expression(expression), (expression or "").rstrip()
    if not isinstance(tree, ast.Call) or tree.end_col_offset != len(text.encode()) or tree.end_lineno != 1:
        return None
    if any(keyword.arg in (argument.partition("=")[0], None) for keyword in tree.keywords):
        return None
    if any(isinstance(given, (ast.Starred, ast.GeneratorExp)) for given in tree.args):
        return None
    if tree.args and isinstance(last := tree.args[-1], ast.Constant) and isinstance(last.value, (bool, type(None))):
        return None
    inside = text[:-1].rstrip().rstrip(",")
    return f"{inside}, {argument})" if tree.args or tree.keywords else f"{inside}{argument})"


def called_name(expression: str | None) -> str:
    """The name of the function or method that an expression calls, ``[]`` where it takes a part, else ``""``."""
    tree = parse_expression(expression)
    if isinstance(tree, ast.Subscript):
        return "[]"
    function = tree.func if isinstance(tree, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def begins_loader(expression: str | None) -> bool:
    """Whether an expression makes an iterator of what is called a loader: ``enumerate(test_loader)``."""
    return called_name(expression) in ("iter", "enumerate") and "load" in (expression or "").lower()


def loops_over_loader(expression: str | None) -> bool:
    """Whether it is the head of a loop over what is called a loader: ``for x in train_loader:``."""
    text = expression or ""
    return text.startswith("for ") and "load" in text.partition(" in ")[2].lower()


def makes_step(expression: str | None) -> bool:
    """Whether an expression runs a backward pass or the step of an optimizer."""
    return called_name(expression) in ("backward", "step")


def shorten(expression: str, most: int) -> str:
    """An expression in one line of at most so many characters, without the colon that ends a statement."""
    text = " ".join(expression.split()).removesuffix(":")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def works_on_gradients(expression: str | None) -> bool:
    """Whether an expression runs a backward pass, or calls a method of a gradient: ``p.grad.detach()``."""
    tree = parse_expression(expression)
    if called_name(expression) == "backward":
        return True
    while isinstance(tree, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(tree, ast.Attribute) and tree.attr == "grad":
            return True
        tree = tree.func if isinstance(tree, ast.Call) else tree.value
    return False


def ops_of_subscript(text: str | None, line: str | None) -> Chain | None:
    """The ops of a wait in a subscript that the ``line`` of source leaves no doubt of: ``x[:n]`` reads a bound, and
    ``"".join([names[i] for i in row])`` an index of a list. ``None`` of others: an index may be a mask or on the host,
    and what is assigned may be copied."""
    tree = parse_expression(text)
    statement = _parse_line(line) if isinstance(tree, ast.Subscript) and line else None
    if not isinstance(tree, ast.Subscript) or statement is None:
        return None
    shown, nodes = ast.dump(tree), list(ast.walk(statement))
    # One that is assigned to differs by nothing but that.
    same = [ast.dump(node) for node in nodes if isinstance(node, ast.Subscript)]
    if shown not in same or any(one != shown and one.replace("Store()", "Load()") == shown for one in same):
        return None
    joined = {ast.dump(element) for node in nodes for element in _joined_by(node)}
    return READ if _reads_bounds(tree.slice) or shown in joined else None


def _reads_bounds(index: ast.expr) -> bool:
    """Whether nothing of an index can be on the device but a bound of a slice."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    bounds = [
        bound for part in parts if isinstance(part, ast.Slice) for bound in (part.lower, part.upper, part.step)
    ]  # fmt: skip
    fixed = all(isinstance(part, ast.Slice) or _is_fixed(part) for part in parts)
    return fixed and any(bound is not None and not _is_fixed(bound) for bound in bounds)


def _is_fixed(tree: ast.expr) -> bool:
    return isinstance(tree.operand if isinstance(tree, ast.UnaryOp) else tree, ast.Constant)


def _joined_by(tree: ast.AST) -> tuple[ast.expr, ...]:
    """What ``"".join([names[i] for i in row])`` makes a string of: it is one, and so no tensor."""
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Attribute) or tree.func.attr != "join":
        return ()
    of, parts = tree.func.value, tree.args[0] if tree.args else None
    if not isinstance(of, ast.Constant) or not isinstance(of.value, str):
        return ()
    return (parts.elt,) if isinstance(parts, (ast.ListComp, ast.GeneratorExp)) else ()


ANEW = frozenset({
    "arange", "bernoulli", "empty", "eye", "full", "linspace", "logspace", "normal", "ones", "rand", "randint", "randn",
    "randperm", "rsample", "sample", "zeros",
})  # fmt: skip
"""Functions of torch that make a tensor from numbers alone, and methods that draw one."""

DRAWS = frozenset({"rsample", "sample"})
"""Those of them that are methods of a distribution, whose parameters say where the tensor is."""

RANDOM = DRAWS | {
    "bernoulli", "bernoulli_", "exponential_", "normal", "normal_", "rand", "randint", "randn", "random_", "randperm",
    "uniform_",
}  # fmt: skip
"""Those that draw random numbers, and methods that fill a tensor with some."""

LIKE_GIVEN = DRAWS | {"bernoulli", "normal"}
"""Those that draw where their parameters are."""

FILLS = frozenset({"bernoulli_", "exponential_", "fill_", "normal_", "random_", "uniform_", "zero_"})
"""Methods that give each element a new value: what ``torch.FloatTensor(4)`` held before does not matter."""

KEEPS = frozenset({
    "bool", "double", "expand", "flatten", "float", "half", "int", "long", "permute", "repeat", "requires_grad_",
    "reshape", "squeeze", "t", "transpose", "unsqueeze", "view",
})  # fmt: skip
"""Methods that a device carries out as well, of a tensor that is new all the same."""


_TAKES_VALUES = frozenset({"tensor", "as_tensor", "asarray", "new_tensor"})


def takes_given_values(expression: str | None) -> bool:
    """Whether an expression makes a tensor of values that a variable holds: ``torch.tensor(state, device=device)``.
    Those of an attribute (``self.anchors``), of a name in capitals, and of a ``range`` hardly ever change."""
    tree = parse_expression(expression)
    if not isinstance(tree, ast.Call) or called_name(expression) not in _TAKES_VALUES or not tree.args:
        return False
    inside = list(ast.walk(tree.args[0]))
    if any(isinstance(node, ast.Call) and _dotted_name(node.func) == "range" for node in inside):
        return False
    # Of ``np.copy(rows)`` and ``self.anchors`` the first name is no variable that holds values.
    owners = {id(node.value) for node in inside if isinstance(node, ast.Attribute)}
    owners |= {id(node.func) for node in inside if isinstance(node, ast.Call)}
    return any(isinstance(node, ast.Name) and id(node) not in owners and not node.id.isupper() for node in inside)


_LOSS = compile_later(r"loss|criterion|cross_entropy", re.IGNORECASE)
_CHOICES = frozenset({"argmax", "argmin", "multinomial"})
_CHOSEN = compile_later(r"(?:^|[._])actions?$")
_TRUTHS = frozenset({"all", "any", "isfinite", "isinf", "isnan", "logical_and", "logical_not", "logical_or"})


def speaks_of_loss(expression: str) -> bool:
    """Whether the text of an expression names a loss: ``epoch_loss.item()``."""
    return _LOSS.search(expression) is not None


def reads_choice(expression: str | None) -> bool:
    """Whether an expression reads which value is the greatest, or one that was drawn: ``q.argmax(1).item()``,
    ``int(torch.multinomial(p, 1))``, or what is called an action: ``action.item()``. What is worked out of those, such
    as how many are right, is none."""
    read = _read_by(parse_expression(expression), "int")
    function = read.func if isinstance(read, ast.Call) else None
    chooses = isinstance(function, ast.Attribute) and function.attr in _CHOICES
    return chooses or (read is not None and _CHOSEN.search(_dotted_name(read)) is not None)


def reads_truth(expression: str | None) -> bool:
    """Whether an expression reads whether something holds: ``mask.any().item()``, ``bool((a == b).all())``,
    ``(norm > most).item()``. ``(guess == y).item()`` may as well be counted."""
    read = _read_by(parse_expression(expression), "bool")
    function = read.func if isinstance(read, ast.Call) else None
    asks = isinstance(function, ast.Attribute) and function.attr in _TRUTHS
    return asks or (isinstance(read, ast.Compare) and not isinstance(read.ops[0], (ast.Eq, ast.NotEq)))


def _read_by(tree: ast.expr | None, function: str) -> ast.expr | None:
    """What ``.item()`` or this built-in ``function`` reads; ``None`` where the expression does not end in one."""
    read = _called_on(tree, frozenset({"item"}))
    if read is None and isinstance(tree, ast.Call) and _dotted_name(tree.func) == function and len(tree.args) == 1:
        return tree.args[0]
    return read


def moves_new_tensor(expression: str | None) -> bool:
    """Whether an expression makes a tensor and moves it at once: ``torch.randn(4).to(device)``."""
    moved = _called_on(parse_expression(expression), frozenset({"to", "cuda"}))
    return moved is not None and _is_new(_made_before(moved))


def moves_fixed_values(expression: str | None) -> bool:
    """Whether an expression makes a tensor of values that its text holds, and moves it at once:
    ``torch.FloatTensor([0.5]).to(device)``."""
    moved = _called_on(parse_expression(expression), frozenset({"to", "cuda"}))
    made = _made_before(moved) if moved is not None else None
    if not isinstance(made, ast.Call) or not made.args:
        return False
    name, values = _dotted_name(made.func), made.args[0]
    if name == "torch.Tensor" or _OLD_CONSTRUCTOR.fullmatch(name):  # of a number: so many elements
        return isinstance(values, (ast.List, ast.Tuple)) and _is_written_out(values)
    return name in ("torch.tensor", "torch.as_tensor") and _is_written_out(values)


def _is_written_out(tree: ast.expr) -> bool:
    """Whether an expression is a number, or a list of some."""
    if isinstance(tree, (ast.List, ast.Tuple)):
        return all(map(_is_written_out, tree.elts))
    return _is_fixed(tree)


def draws_numbers(expression: str | None) -> bool:
    """Whether a part of an expression draws random numbers: ``torch.randn(4).to(device)``."""
    tree = parse_expression(expression)
    return tree is not None and any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RANDOM
        for node in ast.walk(tree)
    )


def makes_tensor_on_host(expression: str | None) -> bool:
    """Whether an expression makes a tensor from numbers alone, and leaves it on the host as far as its text says:
    ``torch.ones(shape) * -1``."""
    tree = parse_expression(expression)
    made = _made_before(tree) if tree is not None else None
    if not isinstance(made, ast.Call) or any(keyword.arg in ("device", None) for keyword in made.keywords):
        return False
    return isinstance(made.func, ast.Attribute) and made.func.attr not in LIKE_GIVEN and _is_new(made)


def moves_made_before(expression: str | None, before: Iterable[str]) -> bool:
    """Whether an expression moves a tensor that the host made just before and that nothing used since:
    ``targets.cuda()`` behind ``targets = torch.ones(n)``. ``before`` are the lines above it, the nearest first."""
    moved = _called_on(parse_expression(expression), frozenset({"to", "cuda"}))
    if not isinstance(moved, ast.Name):
        return False
    for line in before:
        target, assigns, value = line.partition("=")
        if assigns and target.strip() == moved.id and not value.startswith("="):
            return makes_tensor_on_host(value.strip())
        if re.search(rf"\b{re.escape(moved.id)}\b", line):
            return False
    return False


def _is_new(made: ast.expr) -> bool:
    """Whether a call makes a tensor, or gives each element a new value."""
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
        return False
    if made.func.attr in FILLS:
        of = made.func.value.func if isinstance(made.func.value, ast.Call) else None
        return of is not None and bool(_OLD_CONSTRUCTOR.fullmatch(_dotted_name(of)))
    if made.func.attr not in ANEW:
        return False
    draws = made.func.attr in DRAWS
    return draws == isinstance(made.func.value, ast.Call) and (
        draws or _dotted_name(made.func) == f"torch.{made.func.attr}"
    )


_OLD_CONSTRUCTOR = re.compile(r"torch\.[A-Z][A-Za-z]*Tensor")


def _called_on(tree: ast.expr | None, methods: frozenset[str]) -> ast.expr | None:
    """What one of the ``methods`` is called on; ``None`` where the expression calls none of them."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr in methods:
        return tree.func.value
    return None


def _made_before(tree: ast.expr) -> ast.expr:
    """The first call of ``torch.eye(3).repeat(2, 1)`` or ``torch.ones(3) * -1``."""
    inner: ast.expr | None = tree
    while inner is not None:
        tree = inner
        scaled = isinstance(tree, ast.BinOp) and isinstance(tree.right, (ast.Constant, ast.UnaryOp))
        inner = tree.left if isinstance(tree, ast.BinOp) and scaled else _called_on(tree, KEEPS)
    return tree


def _dotted_name(tree: ast.expr) -> str:
    """``torch.ops.aten.item``, or ``""`` where it is not a name."""
    parts: list[str] = []
    while isinstance(tree, ast.Attribute):
        parts.append(tree.attr)
        tree = tree.value
    return ".".join([tree.id, *reversed(parts)]) if isinstance(tree, ast.Name) else ""


def ops_of_expression(text: str | None) -> Chain | None:
    """The ops of a wait whose expression leaves no doubt, else ``None``.

    A name, a comparison or ``not`` can only wait because it was used as a condition.
    """
    tree = parse_expression(text)
    if isinstance(tree, (ast.Name, ast.Attribute, ast.Compare, ast.UnaryOp)):
        return ("aten::is_nonzero", *READ)
    if not isinstance(tree, ast.Call):
        return None
    if operator := _OPERATOR.fullmatch(_dotted_name(tree.func)):
        return (f"{operator[1]}::{operator[2]}",)
    name = called_name(text)
    if name == "where" and len(tree.args) + isinstance(tree.func, ast.Attribute) <= 2 and not tree.keywords:
        return ("aten::where", "aten::nonzero")
    return BY_METHOD.get(name)
