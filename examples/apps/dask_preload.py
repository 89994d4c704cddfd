"""Loaded by the Dask worker before it starts."""

from __future__ import annotations

import beside

beside.shorten_switch_interval()
