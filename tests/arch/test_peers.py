"""docs/reference/peers.md says of other libraries' tests what tools/peer_suites says."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.once

TOOLS = Path(__file__).parents[2] / "tools"


def test_page_lists_each_difference_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    import peers

    page = " ".join(peers.PAGE.read_text().split())
    written = [line for suite in peers.suites().values() for line in peers.explained(suite)]
    assert [line for line in written if line not in page] == []
