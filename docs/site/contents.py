"""The pages of the site, in the order of its navigation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""


@dataclass(frozen=True)
class Page:
    """One page of the site."""

    title: str
    """In the navigation."""
    path: str
    """In the site, with the ending ``.md``."""
    source: str | None = None
    """The file of the repository that it shows, ``None`` for a page that is made."""


@dataclass(frozen=True)
class Section:
    title: str
    pages: tuple[Page, ...]


def _of_docs(title: str, name: str) -> Page:
    return Page(title, f"{name}.md", f"docs/{name}.md")


SECTIONS = (
    Section("Home", (Page("syncscope", "index.md", "README.md"),)),
    Section(
        "Guides",
        (
            _of_docs("Your first trace", "first-trace"),
            _of_docs("Phases of a run", "phases"),
            _of_docs("When torch.compile is the cause", "compile"),
            _of_docs("Many ranks", "many-ranks"),
            _of_docs("In a notebook", "notebooks"),
            _of_docs("The gate in CI", "ci"),
            _of_docs("Expected waits, and a guard", "guard"),
            _of_docs("Leave it on", "watch"),
        ),
    ),
    Section("A report", (Page("A report", "example.md"),)),
    Section("Rules", (_of_docs("All rules", "rules"),)),  # and a page for each rule
    Section(
        "Reference",
        (
            _of_docs("Commands and outputs", "outputs"),
            Page("Options of the commands", "reference/commands.md"),
            Page("Python", "reference/python.md"),
            _of_docs("Configuration", "configuration"),
            Page("Keys of the configuration", "reference/configuration.md"),
            _of_docs("Does it wait?", "does-it-wait"),
            _of_docs("What is recorded", "recording"),
            _of_docs("A trace as tables", "tables"),
            _of_docs("HTA", "hta"),
        ),
    ),
    Section(
        "Evidence",
        (
            _of_docs("Savings", "savings"),
            _of_docs("Overhead", "overhead"),
            _of_docs("Reading", "reading"),
            _of_docs("Public programs", "evidence"),
            Page("The list of programs", "public-programs.md", "benchmarks/public/README.md"),
            Page("Traces of others", "foreign-traces.md", "benchmarks/foreign/README.md"),
            Page("Pinned memory", "notebooks/pinned_memory.md", "notebooks/pinned_memory.ipynb"),
            Page("A generation loop", "notebooks/generation_waits.md", "notebooks/generation_waits.ipynb"),
            Page("From finding to saving", "notebooks/finding_to_saving.md", "notebooks/finding_to_saving.ipynb"),
        ),
    ),
    Section(
        "How it works",
        (
            _of_docs("Architecture", "architecture"),
            _of_docs("Promises", "promises"),
            _of_docs("What is used of PyTorch", "pytorch"),
            Page("Contributing", "contributing.md", "CONTRIBUTING.md"),
            Page("Changelog", "changelog.md", "CHANGELOG.md"),
            Page("Security", "security.md", "SECURITY.md"),
        ),
    ),
)


def pages() -> Iterator[Page]:
    """All pages, but for those of single rules."""
    for section in SECTIONS:
        yield from section.pages
