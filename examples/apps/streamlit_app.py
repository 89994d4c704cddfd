"""A Streamlit application whose process computes. Orchestrators ask its health endpoint whether it lives."""

from __future__ import annotations

import os

import beside
from streamlit.web import bootstrap

OPTIONS = {
    "server.port": int(os.environ["EXAMPLE_PORT"]),
    "server.address": "127.0.0.1",
    "server.headless": True,
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": False,
    "logger.level": "error",
}
beside.compute()
bootstrap.load_config_options(OPTIONS)
bootstrap.run(__file__, False, [], OPTIONS)
