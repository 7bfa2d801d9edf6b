"""HTA's tables in a terminal."""

import pytest

from syncscope.report.text import to_text as summary
from syncscope.report.text_hta import to_text
from syncscope.schema.report import HTAReport, HTATrace, Tool
from tests.report.hostile import HOSTILE, spoiled, unseen
from tests.report.sample import TABLES, report


def test_tables_have_their_heads_and_what_was_not_run_its_reason() -> None:
    trace = HTATrace(path="run/rank3.json.gz", rank=3, hta=TABLES)
    made = HTAReport(tool=Tool(name="syncscope", version="0.1.0"), traces=(trace,))
    assert [line.rstrip() for line in to_text(made).splitlines()] == [
        "HTA · run/rank3.json.gz · rank 3",
        "  traceinsight 0.6.1, the last profiler step left out, times rounded inwards to whole µs",
        "",
        "  idle time breakdown",
        "stream  idle category  idle time  idle time ratio",
        "     7  host_wait         18,669             0.98",
        "     7  other                 68                —",
        "",
        "  critical path: not run: needs CPU ops, which this trace does not hold",
        "",
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_they_hold_is_inert(name: str) -> None:
    assert unseen(summary(spoiled(report(), HOSTILE[name]))) == []
