"""What visits a server that a public program starts, and ends it: a server does not end by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def make_visitor(folder: Path) -> None:
    """``serve.py SERVER PORT REQUESTS ROUNDS`` runs the server; ``visit.py`` runs LitServe's own benchmark on it."""
    folder.mkdir()
    (folder / "serve.py").write_text(
        "import os\nimport runpy\nimport subprocess\nimport sys\n\n"
        'if __name__ == "__main__":\n    server, *others = sys.argv[1:]\n'
        '    client = subprocess.Popen([sys.executable, "visit.py", *others, str(os.getpid())])\n'
        "    sys.argv = [server]\n"
        '    runpy.run_path(server, run_name="__main__")\n'
        "    sys.exit(client.wait())\n"
    )
    (folder / "visit.py").write_text(
        "import os\nimport signal\nimport sys\nimport time\n\nimport requests\n\n"
        'sys.path.insert(0, "tests/parity_fastapi")\nfrom benchmark import benchmark\n\n'
        "port, count, rounds, server = map(int, sys.argv[1:])\n"
        "try:\n    for _ in range(300):\n        try:\n"
        '            if requests.get(f"http://127.0.0.1:{port}/health").status_code == 200:\n                break\n'
        "        except requests.ConnectionError:\n            pass\n        time.sleep(0.2)\n"
        "    for _ in range(rounds):\n        benchmark(count, count, port)\n"
        "finally:\n    os.kill(server, signal.SIGINT)\n"
    )


VISITS: dict[str, Callable[[Path], None]] = {"visitor": make_visitor}
