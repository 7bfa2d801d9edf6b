"""The program's import of torch is noticed, not made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from syncscope.collect.imports import ImportWatch
watch = ImportWatch("fake_torch", lambda module: print("seen", module.__name__, module.READY))
watch.open()
print("fake_torch" in sys.modules)
import json
import fake_torch
import fake_torch.inner
print(watch in sys.meta_path)
"""


def test_it_is_called_once_after_the_import(tmp_path: Path) -> None:
    package = tmp_path / "fake_torch"
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner\nREADY = inner.VALUE\n")
    (package / "inner.py").write_text("VALUE = 1\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:-1] == ["False", "seen fake_torch 1", "False"]


def test_opening_the_collector_imports_neither_torch_nor_numpy() -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom syncscope.collect.collector import Collector\n"
        "from syncscope.collect.files import FileNames\n"
        "from syncscope.collect.paths import Paths\nfrom syncscope.collect.plan import Plan\n"
        "collector = Collector(FileNames(Path('.')), Plan(), Paths(Path('.')))\ncollector.open()\n"
        "print([name for name in ('torch', 'numpy', 'pandas', 'plotly') if name in sys.modules])\n"
        "collector.close()\nprint(collector.notes)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['The program never imported torch.']"]


def test_two_watches_of_one_module_are_both_called(tmp_path: Path) -> None:
    (tmp_path / "fake_torch.py").write_text("READY = 1\n")
    program = PROGRAM.format(folder=str(tmp_path)).replace("    import fake_torch.inner\n", "")
    program = program.replace("import fake_torch.inner\n", "")
    second = 'ImportWatch("fake_torch", lambda module: print("second", module.READY)).open()\nimport fake_torch\n'
    program = program.replace("import fake_torch\n", second + "print('exec_module' in vars(fake_torch.__loader__))\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "seen fake_torch 1", "second 1", "False", "False"]


def test_a_library_that_asks_whether_it_is_there_first_does_not_hide_the_import(tmp_path: Path) -> None:
    """transformers, datasets and others do, before they import torch."""
    (tmp_path / "fake_torch.py").write_text("READY = 1\n")
    asks = "import importlib.util\nprint(importlib.util.find_spec('fake_torch').name)\n"
    program = PROGRAM.format(folder=str(tmp_path)).replace("import fake_torch.inner\n", "")
    program = program.replace("import json\n", asks * 2)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False", "fake_torch", "fake_torch", "seen fake_torch 1", "False"]


def test_each_of_several_modules_is_told_of_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"fake_{name}.py").write_text("READY = 1\n")
    program = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport fake_one\n"
        "from syncscope.collect.imports import ImportWatch\n"
        "watch = ImportWatch(('fake_one', 'fake_two'), lambda module: print('seen', module.__name__))\n"
        "watch.open()\nprint(watch in sys.meta_path)\nimport fake_two\nprint(watch in sys.meta_path)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["seen fake_one", "True", "seen fake_two", "False"]
