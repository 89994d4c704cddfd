"""What load generators print, read."""

from __future__ import annotations

import pytest

from fairlead.advice.load_output import Loaded, read

pytestmark = pytest.mark.ends

WRK = """
Running 2s test @ http://127.0.0.1:8000/
  Latency Distribution
     50%  635.00us
     99%    1.10ms
  Socket errors: connect 0, read 3, write 0, timeout 1
  Non-2xx or 3xx responses: 2
Requests/sec:  15104.22
"""
HEY = """
Summary:
  Requests/sec: 2345.6
Latency distribution:
  95% in 0.0100 secs
  99% in 0.0123 secs
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (WRK, Loaded(pytest.approx(1.1e-3), 15104.22, 6)),  # type: ignore[arg-type]
        (HEY, Loaded(0.0123, 2345.6, 0)),
        ('noise\n{"p99_ms": 12, "requests_per_s": 100, "errors": 1}\n', Loaded(0.012, 100.0, 1)),
        ('{"p99_s": 0.5}\n{not json\n', Loaded(0.5, None, 0)),
        ("done\n", Loaded(None, None, 0)),
        ('{"p99_ms": -1, "requests_per_s": true, "errors": "none"}', Loaded(None, None, 0)),
        ('{"p99_s": NaN}', Loaded(None, None, 0)),
    ],
)
def test_summaries_of_known_generators_are_read_and_anything_else_is_nothing(
    text: str, found: Loaded
) -> None:
    assert read(text) == found
