"""``--format`` and ``--output [FORMAT=]PATH``: check them before any work, and write each file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from syncscope.cli.errors import USAGE, CommandError

if TYPE_CHECKING:
    from syncscope.report.picture.lanes import Lanes
    from syncscope.report.view import View
    from syncscope.schema.report import Report
    from syncscope.schema.verdict import Verdict

STDOUT = Path("-")
SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable of GitHub Actions: the file to which a job's summary is appended."""


class Target(msgspec.Struct, frozen=True):
    """One file to write, or standard output."""

    format: str
    path: Path


class Content(msgspec.Struct, frozen=True):
    """The input of every renderer."""

    report: Report
    lanes: Sequence[Lanes] = ()
    verdict: Verdict | None = None
    view: View | None = None
    """``None`` for the usual one."""

    @property
    def top(self) -> int | None:
        return self.view.top if self.view else None


def _text(content: Content) -> str:
    from syncscope.report.text import to_text

    return to_text(content.report, content.verdict, _in_file(content))


def _concise(content: Content) -> str:
    from syncscope.report.concise import render

    return render(content.report, content.verdict, top=content.top)


def _json(content: Content) -> str:
    from syncscope.report.escape import json_text

    return json_text(content.report.to_json()) + "\n"


def _html(content: Content) -> str:
    from syncscope.report.html import render

    return render(content.report, content.lanes)


def _sarif(content: Content) -> str:
    from syncscope.report.sarif import render

    return render(content.report, content.verdict, base=folder_in_repository(Path.cwd()))


def _junit(content: Content) -> str:
    from syncscope.report.junit import render

    return render(content.report, content.verdict)


def _github(content: Content) -> str:
    from syncscope.report.github import render

    return render(content.report, content.verdict, base=folder_in_repository(Path.cwd()))


def _markdown(content: Content) -> str:
    from syncscope.report.markdown import render

    return render(content.report, content.verdict, top=content.top)


RENDERERS: dict[str, Callable[[Content], str]] = {
    "text": _text,
    "concise": _concise,
    "json": _json,
    "html": _html,
    "sarif": _sarif,
    "junit": _junit,
    "github": _github,
    "markdown": _markdown,
}
ENDINGS = {
    ".txt": "text",
    ".sarif.json": "sarif",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".sarif": "sarif",
    ".xml": "junit",
    ".md": "markdown",
}
"""The format of a file that is named without one: the first ending that matches."""
PICTURED = frozenset({"html"})
"""Formats that show the timeline."""


def with_stdout(values: Iterable[str] | None, format: str | None) -> list[str]:
    """The outputs with one for standard output: ``--format``, else what is written to the path ``-``, else text."""
    listed = list(values or ())
    if format is None and any(_parsed(value).path == STDOUT for value in listed):
        return listed
    return [*listed, f"{format or 'text'}={STDOUT}"]


def targets(
    values: Iterable[str] | None, inputs: Iterable[str | Path], formats: Collection[str] = RENDERERS.keys()
) -> list[Target]:
    """The outputs that ``--output`` names, in one of the ``formats``. Raises ``CommandError`` for one that cannot or
    must not be written."""
    taken = {os.path.realpath(path): "would overwrite its input" for path in inputs}
    outputs = []
    for value in values or ():
        target = _parsed(value, formats)
        claim(target.path, taken)
        outputs.append(target)
    return outputs


def claim(path: Path, taken: dict[str, str]) -> None:
    """Reserve a path for an output. ``taken`` holds the paths that are not available, each with the reason.

    Raises ``CommandError`` for one that cannot or must not be written.
    """
    place = str(STDOUT) if path == STDOUT else os.path.realpath(path)
    reason = taken.get(place)
    if path != STDOUT and os.path.isdir(path):
        reason = "is a folder"
    elif path != STDOUT and not os.path.isdir(os.path.dirname(place)):
        reason = "its folder does not exist"
    if reason:
        raise CommandError(f"{path}: {reason}", USAGE)
    taken[place] = "is named twice"


def _parsed(value: str, formats: Collection[str] = RENDERERS.keys()) -> Target:
    prefix, equals, rest = value.partition("=")
    if equals and prefix in RENDERERS and rest:
        kind, path = prefix, rest
    else:
        kind, path = next((kind for ending, kind in ENDINGS.items() if value.lower().endswith(ending)), ""), value
    if kind not in formats:
        known = ", ".join(ending for ending, kind in ENDINGS.items() if kind in formats)
        names = ", ".join(formats)
        raise CommandError(
            f"{value}: unknown format: end the name in {known}, or write FORMAT=PATH with one of {names}", USAGE
        )
    return Target(kind, Path(path))


def needs_picture(wanted: Iterable[Target]) -> bool:
    return any(target.format in PICTURED for target in wanted)


def write_outputs(wanted: Iterable[Target], content: Content) -> None:
    """Write or print every target. Raises ``CommandError`` when the system refuses."""
    printed = [target.format for target in wanted if target.path == STDOUT]
    for target in wanted:
        if target.path != STDOUT:
            write(target.path, [RENDERERS[target.format](content).encode("utf-8", errors="replace")])
            say_written(target.path)
    for format in printed:
        _print(format, content)
    if "github" in printed and os.environ.get(SUMMARY):
        _append(Path(os.environ[SUMMARY]), RENDERERS["markdown"](content))


def view(verbose: bool, top: int | None) -> View:
    """How much a terminal shows, with links where it opens them."""
    from syncscope.cli.links import terminal_links
    from syncscope.report.view import View

    return View(verbose=verbose, top=top, link=terminal_links(Path.cwd()))


def _in_file(content: Content) -> View:
    """The same for a file, in which nothing can be clicked."""
    from syncscope.report.view import WHOLE

    return replace(content.view or WHOLE, link=None)


def with_page(values: Sequence[str], wanted: bool) -> list[str]:
    """The outputs with an HTML page among them where one is to be opened: in the folder for temporary files, unless
    one is named."""
    pages = any(_parsed(value).format == "html" and _parsed(value).path != STDOUT for value in values)
    if not wanted or pages:
        return list(values)
    from tempfile import mkdtemp  # nothing else needs it

    return [*values, f"html={Path(mkdtemp(prefix='syncscope-')) / 'report.html'}"]


def open_pages(written: Iterable[Target], wanted: bool) -> None:
    """Open the HTML pages that were written in the browser, where that was asked for."""
    if wanted:
        import webbrowser

        for target in written:
            if target.format == "html" and target.path != STDOUT:
                webbrowser.open(target.path.resolve().as_uri())


def say_written(path: Path) -> None:
    """Name a file that was written, on stderr."""
    from syncscope.cli.console import stderr
    from syncscope.report.escape import terminal

    stderr().print(f"wrote {terminal(str(path))}", soft_wrap=True)


def _print(format: str, content: Content) -> None:
    from syncscope.cli.console import stdout, write_stdout

    if format == "text":
        from syncscope.report.text import show
        from syncscope.report.view import WHOLE

        show(content.report, content.verdict, stdout(), content.view or WHOLE)
    else:
        write_stdout(RENDERERS[format](content))


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.write(f"{text}\n")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", USAGE) from None


def folder_in_repository(start: Path) -> str:
    """The folder of the project of ``start`` inside its repository, ``""`` at the repository's root.

    Findings name files relative to the project's root; a code host needs them relative to the repository's.
    """
    from syncscope.collect.paths import project_root

    project = project_root(start.resolve())
    repository = next((folder for folder in (project, *project.parents) if (folder / ".git").exists()), project)
    folder = project.relative_to(repository).as_posix()
    return "" if folder == "." else folder


def write(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file whole or not at all. Raises ``CommandError`` when the system refuses."""
    from syncscope.trace.writing import write_atomically

    try:
        write_atomically(path, pieces)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", USAGE) from None
