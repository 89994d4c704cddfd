"""What a one-file page is put together from: its templates, and text that is safe inside a script element."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def asset(name: str) -> str:
    """A file of ``templates/``."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def digest(script: str) -> str:
    """The hash by which a content policy lets exactly this script run."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def inert_json(data: Any) -> str:
    """JSON that can stand in a script element: no character in it can end the element or open a tag."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def packed(script: str) -> str:
    """A script compressed, as text that can stand in a page; the same for the same script."""
    return base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode()
