"""What a typed program sees of fairlead.sync: `make lint` has mypy check the one that runs here."""

from __future__ import annotations

from pathlib import Path

import pytest
import sync_user

from fairlead import sync
from fairlead.sync import extra

pytestmark = pytest.mark.ends_and_free


def test_typed_program_runs() -> None:
    sync_user.main()


def test_typed_program_uses_every_public_name() -> None:
    text = Path(sync_user.__file__).read_text()
    for module, prefix in (sync, "sync"), (extra, "extra"):
        assert [name for name in module.__all__ if f"{prefix}.{name}" not in text] == []
