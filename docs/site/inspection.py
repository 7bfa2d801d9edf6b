"""Look at a built site: links and anchors that lead nowhere, pages that nobody reaches, what comes from other hosts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "link": "href", "video": "src"}
"""What a browser loads by itself, and from which attribute."""

NOT_LOADED = {"canonical", "next", "prev", "alternate"}
"""Kinds of ``<link>`` that only name another page."""

CSS_REMOTE = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//[^)"'\s]+""")
START = "index.html"
OUTSIDE = {"404.html"}
"""Pages that a server shows, and no link."""


@dataclass
class Found(HTMLParser):
    """What one page holds."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    """Of ``<a>`` and of what the browser loads."""
    remote: list[str] = field(default_factory=list)
    """Loaded from another host."""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids.update(value for key in ("id", "name") if (value := values.get(key)))
        if tag == "a" and (target := values.get("href")):
            self.links.append(target)
        kinds = set((values.get("rel") or "").split())
        if tag in LOADED and not kinds & NOT_LOADED:
            target = values.get(LOADED[tag]) or ""
            (self.remote if _is_remote(target) else self.links).append(target)
        self.remote += CSS_REMOTE.findall(values.get("style") or "")


def inspect(site: Path) -> list[str]:
    """What is wrong with a site, one sentence each."""
    pages = {file.relative_to(site).as_posix(): _read(file) for file in sorted(site.rglob("*.html"))}
    problems = []
    reached = _reach(site, pages)
    for name, page in pages.items():
        problems += [f"{name}: loads {target}" for target in page.remote]
        problems += [
            f"{name}: {target} leads nowhere" for target in page.links if not _leads(site, pages, name, target)
        ]
        if name not in reached | OUTSIDE:
            problems.append(f"{name}: no page links to it")
    for file in sorted(site.rglob("*.css")):
        found = CSS_REMOTE.findall(file.read_text(encoding="utf-8"))
        problems += [f"{file.relative_to(site)}: loads {target}" for target in found]
    return problems


def _read(file: Path) -> Found:
    page = Found()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _is_remote(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) and parts.scheme in ("", "http", "https")


def _inside(name: str, target: str) -> tuple[str, str] | None:
    """The file and the anchor of a link within the site, ``None`` for one that leads out of it."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    folder = name.rpartition("/")[0]
    steps: list[str] = []
    for step in f"{folder}/{unquote(parts.path)}".split("/") if parts.path else name.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step not in ("", "."):
            steps.append(step)
    return "/".join(steps) or START, unquote(parts.fragment)


def _leads(site: Path, pages: dict[str, Found], name: str, target: str) -> bool:
    inside = _inside(name, target)
    if inside is None:
        return True
    path, anchor = inside
    return (site / path).is_file() and (not anchor or path not in pages or anchor in pages[path].ids)


def _reach(site: Path, pages: dict[str, Found]) -> set[str]:
    """The pages that links lead to from the first one."""
    reached, waiting = set(), [START]
    while waiting:
        name = waiting.pop()
        if name in reached or name not in pages:
            continue
        reached.add(name)
        waiting += [inside[0] for target in pages[name].links if (inside := _inside(name, target))]
    return reached
