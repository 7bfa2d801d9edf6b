"""As much of some libraries as the public programs use of them."""

from __future__ import annotations

from pathlib import Path


def make_byte_tokenizer(folder: Path) -> None:
    """As much of tiktoken as the programs use, one token a byte: its vocabularies would be downloaded."""
    folder.mkdir()
    (folder / "tiktoken.py").write_text(
        "class Encoding:\n"
        "    def encode(self, text, **options):\n        return list(text.encode())\n\n"
        "    def decode(self, tokens):\n"
        "        return bytes(token % 256 for token in tokens).decode(errors='replace')\n\n\n"
        "def get_encoding(name):\n    return Encoding()\n"
    )


def make_one_process(folder: Path) -> None:
    """As much of mpi4py and blobfile as a program of one process on one machine uses."""
    (folder / "mpi4py").mkdir(parents=True)
    (folder / "mpi4py/__init__.py").write_text("")
    (folder / "mpi4py/MPI.py").write_text(
        "class World:\n    rank, size = 0, 1\n\n    def Get_rank(self):\n        return 0\n\n"
        "    def Get_size(self):\n        return 1\n\n"
        "    def bcast(self, value=None, root=0):\n        return value\n\n\nCOMM_WORLD = World()\n"
    )
    (folder / "blobfile.py").write_text(
        "from os import listdir\nfrom os.path import basename, dirname, exists, isdir, join\n\nBlobFile = open\n"
    )


def make_few_polars(folder: Path) -> None:
    """As much of polars as ultralytics reads its own results with: the whole is too large to carry around."""
    folder.mkdir()
    (folder / "polars.py").write_text(
        "class Table:\n    def to_dict(self, **options):\n        return {}\n\n\n"
        "def read_csv(*args, **options):\n    return Table()\n"
    )
