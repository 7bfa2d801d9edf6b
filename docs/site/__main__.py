"""``python -m docs.site`` builds the site into ``build/docs/site`` and checks it; ``--serve`` then shows it."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from docs.site.build import BuildError, build
from docs.site.contents import ROOT
from docs.site.inspection import inspect


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m docs.site", description="Build the documentation, and check its links."
    )
    parser.add_argument("--serve", action="store_true", help="show it afterwards, until Ctrl-C")
    parser.add_argument("--port", type=int, default=8000, help="where it is shown; default: 8000")
    given = parser.parse_args()
    try:
        site = build(ROOT / "build" / "docs")
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    problems = inspect(site)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{site.relative_to(ROOT)}: {len(list(site.rglob('*.html')))} pages, {len(problems)} problems")
    if given.serve:
        handler = partial(SimpleHTTPRequestHandler, directory=str(site))
        with ThreadingHTTPServer(("127.0.0.1", given.port), handler) as server:
            print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                return 0
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
