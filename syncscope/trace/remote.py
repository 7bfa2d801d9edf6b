"""Traces behind a URL (``s3://``, ``gs://``, ``https://``, ``memory://`` …), read through fsspec.

Needs the extra ``remote``, and most protocols also need a driver (``s3fs``, ``gcsfs`` …). ``file://`` needs neither: it
is the file itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from syncscope.patterns import compile_later
from syncscope.trace.extras import MissingExtra, require

_URL = compile_later(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # of two letters at least: C:// is a drive
_FILE = compile_later(r"(?i)file://(?:/(?=[A-Za-z]:))?")
BLOCK = 8 << 20
"""Bytes requested at a time."""

_Result = TypeVar("_Result")


class RemoteError(ValueError):
    """What a URL names cannot be read; ``str()`` is the reason."""


def is_url(path: str) -> bool:
    """Whether a path is a URL other than ``file://``."""
    return _URL.match(path) is not None and _FILE.match(path) is None


def on_disk(path: str) -> str:
    """``file:///tmp/x`` as ``/tmp/x``; any other path as it is."""
    return _FILE.sub("", path, count=1) if _FILE.match(path) else path


def shown(path: str) -> str:
    """A path as it is printed and stored: a URL without its user, password and query, which may be secret."""
    if not is_url(path):
        return path
    try:
        scheme, host, rest, _, _ = urlsplit(path)
    except ValueError:
        return path.partition("?")[0]
    return urlunsplit((scheme, host.rpartition("@")[2], rest, "", ""))


class File:
    """A file behind a URL, to be read from beginning to end. Any error of its driver becomes ``OSError``."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def read(self, size: int = -1) -> bytes:
        try:
            return bytes(self._file.read(size))
        except Exception as error:  # drivers raise what their libraries do
            raise OSError(_first_line(error, self._url)) from None

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def open_file(url: str, max_bytes: int) -> File:
    """The file behind a URL, which may hold ``max_bytes`` as it is stored. Raises :class:`RemoteError`."""

    def open_in(files: Any, path: str) -> File:
        info = files.info(path)
        if info.get("type") == "directory":
            raise RemoteError("is a folder, not a trace file")
        size = info.get("size")
        if size is not None and size > max_bytes:
            raise RemoteError(f"holds {size:,} bytes, more than the limit of {max_bytes:,}")
        return File(files.open(path, "rb", block_size=BLOCK), url)

    return _with_files(url, open_in)


def list_folder(url: str) -> list[str] | None:
    """The URLs of all files in a folder and below, ``None`` where ``url`` is no folder. Raises :class:`RemoteError`."""

    def list_in(files: Any, path: str) -> list[str] | None:
        if files.info(path).get("type") != "directory":
            return None
        root, base = path.rstrip("/"), url.rstrip("/")
        return [base + file[len(root) :] for file in files.find(path)]

    return _with_files(url, list_in)


def read_heads(folder: str, urls: Sequence[str], size: int) -> list[bytes | None]:
    """The first ``size`` bytes of each of the files below ``folder``, ``None`` for one that cannot be read.

    Reads all at once where the protocol allows it. Raises :class:`RemoteError`.
    """

    def read_in(files: Any, path: str) -> list[bytes | None]:
        root, base = path.rstrip("/"), folder.rstrip("/")
        paths = [root + url[len(base) :] for url in urls]
        heads = files.cat_ranges(paths, [0] * len(paths), [size] * len(paths), on_error="return")
        return [bytes(head) if isinstance(head, bytes | bytearray | memoryview) else None for head in heads]

    return _with_files(folder, read_in)


def _with_files(url: str, function: Callable[[Any, str], _Result]) -> _Result:
    """Call a function with the URL's file system and the path in it. Raises :class:`RemoteError` for any error of the
    driver."""
    try:
        require("remote")
    except MissingExtra as error:
        raise RemoteError(str(error)) from None
    from fsspec.core import url_to_fs

    scheme = url.partition("://")[0]
    try:
        return function(*url_to_fs(url))
    except RemoteError:
        raise
    except ImportError as error:
        raise RemoteError(f"{scheme}:// needs a driver: {_first_line(error, url)}") from None
    except FileNotFoundError:
        raise RemoteError("does not exist") from None
    except PermissionError:
        raise RemoteError("cannot be read: permission denied") from None
    except Exception as error:  # drivers raise what their libraries do
        raise RemoteError(f"cannot be read: {type(error).__name__}: {_first_line(error, url)}") from None


def _first_line(error: Exception, url: str) -> str:
    lines = str(error).replace(url, shown(url)).strip().splitlines()
    return lines[0] if lines else "no reason given"
