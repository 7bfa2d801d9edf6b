"""Where the program compiles, among the frames of the compiler and of what it made."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

from syncscope.collect.compiling.reasons import RESUMED, function_name
from syncscope.collect.paths import OURS

CONVERT = "torch._dynamo.convert_frame"
COMPILERS = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch._compile", "contextlib", "functools")
"""Modules whose innermost frames do not tell where the program compiles."""


def program_frame(frame: FrameType, code: CodeType | None) -> FrameType:
    """The innermost frame that is not the compiler's, nor that of the function whose rest is compiled; without a
    ``code`` that is compiled, the one that calls into compiled code."""
    found: FrameType | None = frame
    made = getattr(sys.modules.get(CONVERT), "output_codes", ()) if code is None else ()
    while found is not None and (_is_compilers(found) or found.f_code in made):
        found = found.f_back
    resumed = RESUMED.match(code.co_name) if code is not None else None
    while found is not None and found.f_back is not None and resumed and _is_part(found, resumed["name"], code):
        found = found.f_back
    return found or frame


def _is_compilers(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    file = frame.f_code.co_filename
    return str(name).startswith(COMPILERS) or file.startswith(OURS) or "torchinductor_" in file


def _is_part(frame: FrameType, name: str, code: CodeType | None) -> bool:
    running = frame.f_code
    return code is not None and running.co_filename == code.co_filename and function_name(running.co_name) == name
