"""Loops are found in bytecode, with the lines of their ``for`` and ``while``, on this Python and on others."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest

from syncscope.collect.phases import loops
from syncscope.collect.phases.loops import loops_of

HERE = Path(__file__)
OTHERS = sorted((Path.home() / ".pyenv" / "versions").glob("3.1[0-3].*/bin/python"))

CASES = {
    "for": ("for x in xs:\n    HERE\n", [1]),
    "nested": ("for x in xs:\n    for y in x:\n        HERE\n", [2, 1]),
    "beside": ("for x in xs:\n    pass\nHERE\n", []),
    "between": ("while a:\n    for x in xs:\n        f(x)\n    HERE\n", [1]),
    "while": ("while a():\n    HERE\n", [1]),
    "while true": ("while True:\n    HERE\n    if a:\n        break\n", [1]),
    "test of while": ("b()\nwhile HERE():\n    a()\n", [2]),
    "continue": ("while a():\n    if b:\n        continue\n    HERE\n", [1]),
    "continue before": ("while a():\n    HERE\n    if b:\n        continue\n    c()\n", [1]),
    "try": ("for x in xs:\n    try:\n        HERE\n    except E:\n        pass\n    a()\n", [1]),
    "handler": ("for x in xs:\n    try:\n        a()\n    except E:\n        HERE\n    b()\n", [1]),
    "after a handler": ("try:\n    a()\nexcept E:\n    b()\nHERE\nc()\n", []),
    "in a handler, no loop": ("try:\n    a()\nexcept E:\n    HERE\nb()\nc()\n", []),
    "handler that retries": ("while True:\n    try:\n        HERE\n        break\n    except E:\n        b()\n", [1]),
    "with": ("for x in xs:\n    with a() as b:\n        HERE\n", [1]),
    "with that ends": ("with a() as b:\n    c()\nHERE\n", []),
    "else": ("for x in xs:\n    a()\nelse:\n    HERE\n", []),
    "if and else": ("for x in xs:\n    if a:\n        HERE\n    else:\n        b()\n", [1]),
    "comprehension": ("[HERE for x in xs]\n", [1]),
    "long": ("for x in xs:\n" + "    a(b, c, d)\n" * 300 + "    HERE\n", [1]),
}


def codes(code: CodeType) -> list[CodeType]:
    inside = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [code, *(inner for one in inside for inner in codes(one))]


def lines_around(source: str) -> list[list[int]]:
    """The lines of the loops around each instruction that loads ``HERE``."""
    import dis

    found = []
    for code in codes(compile("def function():\n" + textwrap.indent(source, " "), "program.py", "exec")):
        for instruction in dis.get_instructions(code):
            if instruction.argval == "HERE":
                found.append([loop.line - 1 for loop in loops_of(code) if loop.holds(instruction.offset)])
    return found


def wrong() -> list[str]:
    """The cases that this Python gets wrong. Run in a subprocess too, which has no pytest."""
    wrong = []
    for name, (source, expected) in CASES.items():
        found = lines_around(source)
        if not found or any(lines != expected for lines in found):
            wrong.append(f"{name}: {found}, not {expected}")
    return wrong


def test_the_lines_of_the_loops_around() -> None:
    assert wrong() == []


@pytest.mark.parametrize("python", OTHERS, ids=lambda path: path.parts[-3])
def test_the_lines_of_the_loops_around_on_other_pythons(python: Path) -> None:
    program = f"""
import ast, sys
sys.path.insert(0, {str(Path(loops.__file__).parent)!r})
from loops import loops_of
import textwrap
from types import CodeType
source = open({str(HERE)!r}).read()
wanted = [node for node in ast.parse(source).body
          if isinstance(node, ast.FunctionDef) and node.name in ("codes", "lines_around", "wrong")
          or isinstance(node, ast.Assign) and node.targets[0].id == "CASES"]
exec(compile("from __future__ import annotations\\n" + "\\n".join(ast.unparse(node) for node in wanted), "t", "exec"))
print("\\n".join(wrong()))
"""
    run = subprocess.run([python, "-"], input=program, capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == ("", "")


def test_waiting_for_a_coroutine_is_no_loop() -> None:
    async def function(a: object) -> object:
        return await a  # type: ignore[misc]

    def delegate(a: list[int]) -> object:
        yield from a

    assert loops_of(function.__code__) == ()
    assert loops_of(delegate.__code__) == ()


def test_the_same_loop_each_time() -> None:
    def function() -> None:
        while True:
            pass

    assert loops_of(function.__code__)[0] is loops_of(function.__code__)[0]


def test_keeps_so_many_functions_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_known", {})
    monkeypatch.setattr(loops, "MAX_CODES", 4)
    for number in range(10):
        loops_of(compile(f"for x in {number}: pass", "program.py", "exec"))
    assert len(loops._known) <= 4


def test_finds_the_loops_of_a_module_of_the_standard_library() -> None:
    import ast
    import inspect
    import mailbox

    source = inspect.getsource(mailbox)
    wanted = {node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.For, ast.While))}
    found = {loop.line for code in codes(compile(source, "mailbox.py", "exec")) for loop in loops_of(code)}
    missing = wanted - found
    assert len(wanted) > 50
    assert len(missing) <= 1  # a loop whose body always returns is none


def test_loops_whose_handlers_are_behind_other_loops_are_told_apart() -> None:
    """Python 3.12 jumps back right from a handler, which is at the end of the function."""
    seen: dict[str, int] = {}

    def here(name: str) -> None:
        seen[name] = sys._getframe(1).f_lasti

    def work(fails: bool) -> None:
        for _ in range(2):
            try:
                here("first")
                if fails:
                    raise ValueError
            except ValueError:
                here("handler")
                continue
        here("between")
        for _ in range(2):
            try:
                here("second")
            except ValueError:
                continue
        here("behind")

    work(True)
    second, first = loops_of(work.__code__)
    held = {name: [loop.holds(lasti) for loop in (first, second)] for name, lasti in seen.items()}
    assert held == {
        "first": [True, False],
        "handler": [True, False],
        "between": [False, False],
        "second": [False, True],
        "behind": [False, False],
    }


def test_reading_a_long_function_takes_little_more_than_its_instructions_alone() -> None:
    """Trainers have functions of a thousand lines, which a run of ten seconds pays for."""
    import dis

    loop = "for x in xs:\n  try:\n" + "    a(x)\n" * 60 + "  except E:\n    continue\n"
    code = compile(loop * 40, "program.py", "exec")

    def least(read: Callable[[], object]) -> float:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            read()
            times.append(time.perf_counter() - begin)
        return min(times)

    assert len(loops._find(code)) == 40
    assert least(lambda: loops._find(code)) < 2 * least(lambda: list(dis.get_instructions(code)))


def test_a_function_without_a_loop_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_read", lambda _: pytest.fail("it was read"))
    if sys.version_info >= (3, 11):
        assert loops._find(compile("with a:\n  b(c) if d else e\n", "program.py", "exec")) == ()


def test_bytecode_is_read_once_for_two_places_that_may_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop may call a module at five lines in turn, hundreds of times a second."""
    read, original = list[CodeType](), loops._read

    def note(code: CodeType) -> tuple[dict[int, str], dict[int, int]]:
        read.append(code)
        return original(code)

    monkeypatch.setattr(loops, "_read", note)
    code = compile("a()\nb()", "two_calls", "exec")
    for _ in range(3):
        assert loops.may_follow(code, 2, len(code.co_code) - 4)
    assert read == [code]
