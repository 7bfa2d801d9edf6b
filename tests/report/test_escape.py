import pytest

from syncscope.report.escape import terminal


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;new title\x07name", "name"),
        ("\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("\x1b]0;never closed", ""),
        ("bell\x07 back\x08 del\x7f", "bell back del"),
        ("two\nlines\r\nand\ttab", "two lines and tab"),
        ("rtl\u202egnp.exe\u202c", "rtlgnp.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("lone \udcff surrogate", "lone  surrogate"),
        ("[red]markup[/red] :smile:", "[red]markup[/red] :smile:"),
        ("at::native::<lambda>(float4 const&)", "at::native::<lambda>(float4 const&)"),
        ("größe × µs 核", "größe × µs 核"),
    ],
)
def test_terminal_leaves_only_what_can_be_seen(hostile: str, shown: str) -> None:
    assert terminal(hostile) == shown
