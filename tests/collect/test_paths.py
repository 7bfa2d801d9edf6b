"""Paths in a recording say whose code it is and nothing about the machine."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

from syncscope.collect.paths import OURS, Paths, project_root


def test_project_files_are_relative_to_the_root(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "pkg").mkdir()
    paths = Paths(project_root(tmp_path / "pkg"))
    assert paths.normalise(str(tmp_path / "pkg" / "train.py")) == "pkg/train.py"
    assert paths.is_user(str(tmp_path / "pkg" / "train.py"))


def test_cells_of_a_notebook_are_the_users_and_the_same_in_each_kernel(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    assert paths.normalise("/tmp/ipykernel_1931/3321395536.py") == "<notebook>/3321395536.py"
    assert paths.is_user("/tmp/ipykernel_77/3321395536.py")


def test_libraries_and_the_standard_library_are_not_the_users(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    library = os.path.join(sysconfig.get_paths()["purelib"], "msgspec", "__init__.py")
    assert paths.normalise(library) == "<site-packages>/msgspec/__init__.py"
    assert not paths.is_user(library)
    assert paths.normalise(json.__file__) == "<python>/json/__init__.py"
    assert not paths.is_user(json.__file__)
    assert not paths.is_user("<frozen runpy>")
    assert not paths.is_user("<string>")


@pytest.mark.parametrize("folder", ["cluster/lib/site-packages", "project/.env/lib/site-packages", "dist-packages"])
def test_packages_that_python_does_not_list_as_installed_are_not_the_users(tmp_path: Path, folder: str) -> None:
    (tmp_path / "project").mkdir()
    paths = Paths(tmp_path / "project")
    library = str(tmp_path / folder / "torch" / "nn" / "modules" / "module.py")
    assert paths.normalise(library) == "<site-packages>/torch/nn/modules/module.py"
    assert not paths.is_user(library)


def test_a_project_inside_a_folder_of_packages_is_the_users(tmp_path: Path) -> None:
    root = tmp_path / "site-packages" / "project"
    root.mkdir(parents=True)
    assert Paths(root).normalise(str(root / "train.py")) == "train.py"
    assert Paths(root).is_user(str(root / "train.py"))


def test_syncscopes_own_files_are_never_the_users(tmp_path: Path) -> None:
    assert not Paths(tmp_path).is_user(OURS + "collect/sites/wrappers.py")
    assert not Paths(Path(OURS).parent).is_user(OURS + "collect/sites/wrappers.py")


def test_an_own_package_is_the_users_although_installed(tmp_path: Path) -> None:
    library = os.path.join(sysconfig.get_paths()["purelib"], "msgspec", "__init__.py")
    assert Paths(tmp_path, own=("msgspec",)).is_user(library)


def test_a_file_elsewhere_keeps_two_parts_only(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    elsewhere = str(tmp_path / "secret" / "home" / "lib.py")
    assert Paths(tmp_path / "root").normalise(elsewhere) == "home/lib.py"


def test_a_project_inside_a_virtual_environment_folder_is_still_a_project(tmp_path: Path) -> None:
    assert project_root(tmp_path) in (tmp_path, *tmp_path.parents)


def test_a_folder_with_our_configuration_is_a_project(tmp_path: Path) -> None:
    (tmp_path / "syncscope.toml").touch()
    (tmp_path / "pkg").mkdir()
    assert project_root(tmp_path / "pkg") == tmp_path


def test_own_files_are_the_loaded_ones_inside_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, file in enumerate(["root/train.py", "root/pkg/layers.py", "root/fast.so", "elsewhere/lib.py"]):
        module = ModuleType(f"loaded{number}")
        module.__file__ = str(tmp_path / file)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    assert Paths(tmp_path / "root").own_files() == ("pkg/layers.py", "train.py")


def test_own_files_that_are_loaded_later_come_in_and_the_others_are_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> None:
        module = ModuleType(name)
        module.__file__ = str(tmp_path / f"{name}.py")
        monkeypatch.setitem(sys.modules, name, module)

    load("loaded_first")
    paths = Paths(tmp_path)
    assert paths.own_files() == ("loaded_first.py",)
    asked: list[str] = []
    is_user = paths.is_user

    def asking(file: str) -> bool:
        asked.append(file)
        return is_user(file)

    monkeypatch.setattr(paths, "is_user", asking)
    load("loaded_later")
    assert paths.own_files() == ("loaded_first.py", "loaded_later.py")
    assert asked == [str(tmp_path / "loaded_later.py")]
    monkeypatch.delitem(sys.modules, "loaded_first")
    assert paths.own_files() == ("loaded_later.py",)


def test_what_inductor_wrote_is_not_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    paths = Paths(tmp_path)
    for file in ("/tmp/torchinductor_me/2g/c2g.py", str(tmp_path / "torchinductor_me" / "2g" / "c2g.py")):
        assert (paths.normalise(file), paths.is_user(file)) == ("<torchinductor>/2g/c2g.py", False)
    cached = str(tmp_path / "cache" / "2g" / "c2g.py")
    assert (paths.normalise(cached), paths.is_user(cached)) == ("cache/2g/c2g.py", True)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache") + "/")
    assert (paths.normalise(cached), paths.is_user(cached)) == ("<torchinductor>/2g/c2g.py", False)
