"""The list of the public programs in ``README.md``: ``python -m benchmarks.public.listing`` writes it again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.public.table import COMMITS, PROGRAMS, Program

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- begin of the list -->\n", "<!-- end of the list -->\n"


def described(program: Program) -> Iterable[str]:
    yield f"- **{program.name}**: {program.kind}" + (", two GPUs" if program.gpus > 1 else "") + "  "
    if program.before:
        yield f"  first `python {program.before}`  "
    where = "" if program.folder == "." else f" in `{program.folder}`"
    yield f"  `python {' '.join(f'{program.launcher} {program.command}'.split())}`{where}" + (
        "  " if program.data else ""
    )
    if program.data:
        yield "  generated: " + ", ".join(f"`{link}` ({target.split('/')[0]})" for link, target in program.data.items())


def markdown() -> str:
    lines = []
    for repository in sorted(COMMITS, key=str.lower):
        lines += [f"### [{repository}](https://github.com/{repository}/tree/{COMMITS[repository]})", ""]
        for program in PROGRAMS:
            if program.repository == repository:
                lines += described(program)
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    before, rest = README.read_text().split(BEGIN)
    _, after = rest.split(END)
    README.write_text(before + BEGIN + "\n" + markdown() + END + after)


if __name__ == "__main__":
    main()
