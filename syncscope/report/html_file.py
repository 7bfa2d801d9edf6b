"""One HTML file that opens from disk and requests nothing: a template, the style, plotly, and scripts that read data.

Names in the data are untrusted: they travel as JSON in a data block with every character escaped that could end the
block, and the scripts insert them as text only. The page's policy lets no script run but the ones made here, by their
hashes, and no request leave.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def assemble(template: str, title: str, data: object, scripts: Sequence[str]) -> str:
    """The file. ``template`` and ``scripts`` are names of assets; ``data`` is what the scripts read.

    Write it as UTF-8 with ``\\n`` line ends.
    """
    plotly, script = read_asset("vendor/plotly-basic.min.js"), "\n".join(read_asset(f"js/{name}") for name in scripts)
    script = f'"use strict";\n{script}'
    policy = (
        f"default-src 'none'; script-src {_hash(plotly)} {_hash(script)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "csp": policy,
        "title": html.escape(title),
        "css": read_asset("page.css"),
        "data": embed(data),
        "plotly": plotly,
        "script": script,
    }
    return re.sub(r"@@(\w+)@@", lambda slot: parts[slot[1]], read_asset(template))


def embed(data: object) -> str:
    """JSON in which no text can end the data block: ``</script>``, ``<!--`` and line separators are escaped."""
    text = msgspec.json.encode(data).decode()
    return re.sub("[<>&\u2028\u2029]", lambda match: _ESCAPES[match[0]], text)


@cache
def read_asset(name: str) -> str:
    """The text of a file of ``assets``."""
    return files("syncscope.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
