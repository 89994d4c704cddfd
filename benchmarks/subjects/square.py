"""Runs one of the lab's experiments in this process. Settings: path, n."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import subject

subject.set_switch_interval()
subject.say()
path = Path(subject.SETTINGS["path"])
sys.path.insert(0, str(path.parent))
sys.argv = [str(path), json.dumps({"n": subject.SETTINGS["n"], "timeout_s": 300})]  # stock may need it
runpy.run_path(str(path), run_name="__main__")
