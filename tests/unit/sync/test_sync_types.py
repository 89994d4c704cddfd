"""What a typed program sees of fairlead.sync: `make lint` has mypy check the one that runs here."""

from __future__ import annotations

from pathlib import Path

import pytest
import sync_user

from fairlead import sync

pytestmark = pytest.mark.ends_and_free


def test_typed_program_runs() -> None:
    sync_user.main()


def test_typed_program_uses_every_public_name() -> None:
    text = Path(sync_user.__file__).read_text()
    assert [name for name in sync.__all__ if f"sync.{name}" not in text] == []
