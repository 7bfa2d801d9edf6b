"""The function in which the host is while the device is idle."""

from tests.builders import TraceBuilder
from tests.rules.scenes import findings


def test_places_of_a_library_have_the_innermost_function_in_common() -> None:
    builder = TraceBuilder().frame("<site-packages>/server/run.py", 3, "serve", 0, 9000)
    builder.frame("<site-packages>/server/model.py", 9, "execute", 5, 8000)
    for number in range(4):
        start = 100 + 1500 * number
        builder.frame(f"<site-packages>/server/part{number}.py", 5, f"part{number}", start, 1000)
        builder.launch("k", call=(start + 900, 5), runs=(start + 910, 20))
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "execute"


def test_a_function_that_only_passes_calls_on_is_no_place() -> None:
    builder = TraceBuilder().frame("<site-packages>/server/run.py", 3, "serve", 0, 9000)
    builder.frame("<site-packages>/server/model.py", 9, "encode", 5, 8000)
    for number in range(4):
        start = 100 + 1500 * number
        builder.frame("<site-packages>/transformers/modeling_layers.py", 59, "__call__", start, 1000)
        builder.frame(f"<site-packages>/server/part{number}.py", 5, f"part{number}", start + 1, 990)
        builder.launch("k", call=(start + 900, 5), runs=(start + 910, 20))
    (found,) = findings(builder, "OVL303")
    assert found.site is not None and found.site.function == "encode"
