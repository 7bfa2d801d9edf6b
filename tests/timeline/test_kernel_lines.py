"""A kernel's lines, as the recording has them."""

from __future__ import annotations

from syncscope.timeline import Timeline
from syncscope.timeline.kernel_lines import inner_frame
from tests.builders import FrameSpec, TraceBuilder

USER: FrameSpec = ("train.py", 9, "step", "model(x)")
FILE = "<site-packages>/transformers/modeling.py"
LIBRARY: FrameSpec = (FILE, 73, "forward", "x.pow(2)")


def recorded() -> TraceBuilder:
    return TraceBuilder().recording(0, 100).phase("train", steps=1).run()


def test_a_kernel_that_two_lines_are_fused_into_has_both() -> None:
    made = (
        recorded().kernel_line("triton_poi_fused_0", USER).kernel_line("triton_poi_fused_0", ("train.py", 3, "f", "y"))
    )
    (name,) = made_lines = Timeline(made.trace()).kernel_lines
    assert name == "triton_poi_fused_0"
    assert [place.site.line for place in made_lines[name] if place.site] == [9, 3]


def test_the_users_line_leads_to_the_line_of_a_library() -> None:
    lines = Timeline(recorded().kernel_line("triton_poi_fused_0", USER, LIBRARY).trace()).kernel_lines
    (place,) = lines["triton_poi_fused_0"]
    assert place.site is not None
    assert (place.site.file, place.site.line) == ("train.py", 9)
    inside = inner_frame(place)
    assert inside is not None
    assert (inside.file, inside.line) == (FILE, 73)


def test_a_recording_of_a_program_that_compiles_nothing_knows_no_lines() -> None:
    assert Timeline(recorded().compiled().trace()).kernel_lines == {}
    assert Timeline(TraceBuilder().kernel("triton_poi_fused_0", 0, 10).trace()).kernel_lines == {}
