"""The site, built once for all tests of a worker."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from docs.site.build import build


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    if sys.version_info < (3, 11):
        pytest.skip("Zensical needs Python 3.11")
    pytest.importorskip("zensical", reason="Zensical is not installed")
    return build(tmp_path_factory.mktemp("docs"))
