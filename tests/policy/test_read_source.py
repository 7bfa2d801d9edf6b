"""Source is read only from regular files inside the root, whatever a trace calls them."""

import os
from pathlib import Path

import pytest

from syncscope.policy.comments import MOST_BYTES, read_source

TEXT = b"x = 1\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one file, and a secret beside it."""
    (tmp_path / "project" / "pkg").mkdir(parents=True)
    (tmp_path / "project" / "pkg" / "train.py").write_bytes(TEXT)
    (tmp_path / "project-secret.py").write_bytes(b"secret")
    return tmp_path / "project"


def test_a_file_of_the_project_is_read(root: Path) -> None:
    assert read_source("pkg/train.py", [root]) == TEXT


def test_a_file_is_looked_for_in_each_folder_in_order(root: Path) -> None:
    assert read_source("train.py", [root, root / "pkg"]) == TEXT
    (root / "train.py").write_bytes(b"nearer")
    assert read_source("train.py", [root, root / "pkg"]) == b"nearer"


@pytest.mark.parametrize(
    "name", ["../project-secret.py", "pkg/../../project-secret.py", "missing.py", "pkg", "", "a\0b"]
)
def test_what_is_outside_or_no_file_is_not_read(name: str, root: Path) -> None:
    assert read_source(name, [root]) is None


def test_an_absolute_name_is_read_only_inside(root: Path) -> None:
    assert read_source(str(root.parent / "project-secret.py"), [root]) is None
    assert read_source(str(root / "pkg" / "train.py"), [root]) == TEXT


def test_a_folder_outside_the_first_is_not_read_from(root: Path) -> None:
    assert read_source("project-secret.py", [root, root.parent]) is None


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_links_are_resolved_before_they_are_compared_with_the_root(root: Path) -> None:
    (root / "out.py").symlink_to(root.parent / "project-secret.py")
    (root / "up").symlink_to(root.parent, target_is_directory=True)
    (root / "in.py").symlink_to(root / "pkg" / "train.py")
    assert read_source("out.py", [root]) is None
    assert read_source("up/project-secret.py", [root]) is None
    assert read_source("in.py", [root]) == TEXT
    (root.parent / "linked").symlink_to(root, target_is_directory=True)
    assert read_source("pkg/train.py", [root.parent / "linked"]) == TEXT


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX pipes")
def test_a_pipe_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe.py")
    assert read_source("pipe.py", [root]) is None


@pytest.mark.parametrize(("size", "read"), [(MOST_BYTES, True), (MOST_BYTES + 1, False)])
def test_at_most_a_megabyte_is_read(size: int, read: bool, root: Path) -> None:
    (root / "large.py").write_bytes(b"#" * size)
    assert (read_source("large.py", [root]) is not None) == read


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_may_not_be_read_is_passed_over(root: Path) -> None:
    (root / "pkg" / "train.py").chmod(0)
    assert read_source("pkg/train.py", [root]) is None
