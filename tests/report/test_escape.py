import html
import re

import pytest
from markdown_it import MarkdownIt

from syncscope.report.escape import code, command, command_property, log_line, markdown, sarif, terminal


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


def test_terminal_leaves_what_xml_can_hold_and_a_log_does_not_obey() -> None:
    assert terminal("a\ufffe\uffffb ##[error]x \U000e0041") == "ab ## [error]x "


@pytest.mark.parametrize(
    ("line", "shown"),
    [("::error::x", ": :error::x"), ("   ::debug::x", "   : :debug::x"), ("at::native::add", "at::native::add")],
)
def test_a_line_of_a_log_begins_no_command(line: str, shown: str) -> None:
    assert log_line(line) == shown


def test_commands_keep_their_data_and_properties_apart() -> None:
    assert command("100%\r\nx: y, z") == "100%25%0D%0Ax: y, z"
    assert command_property("100%\r\nx: y, z") == "100%25%0D%0Ax%3A y%2C z"


@pytest.mark.parametrize("text", ["*a* _b_ <i> [x](y) `c` | # 1. https://x.y www.x.y me@x.y #1 @me", "a\\|b", "  x "])
def test_markdown_reads_as_the_text(text: str) -> None:
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"|{markdown(text)}|\n|---|\n")
    assert html.unescape(re.sub(r"<[^>]+>", "", page)).replace("\u200b", "").strip() == text.strip()
    assert "://" not in markdown(text) and "www." not in markdown(text)


@pytest.mark.parametrize("text", ["a", "`", "a`b``c", "``` ", "x | y", "<b>@me</b>", "[a](b)", "\\"])
def test_code_shows_the_text_as_it_is(text: str) -> None:
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(f"|{code(text)}|x|\n|---|---|\n")
    assert re.findall(r"<th><code>(.*?)</code></th>\n<th>x", page) == [html.escape(text.strip())]


def test_a_sarif_message_holds_no_link_and_no_placeholder() -> None:
    assert sarif("[x](1) {0} {name} f[i](y)") == "[x] (1) { 0} {name} f[i] (y)"
