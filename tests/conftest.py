"""What all tests share."""

from __future__ import annotations

import os
import signal
import sys

from hypothesis import settings

from fairlead.gil.observe import tested

# A shell without job control starts what it puts into the background with Ctrl-C ignored, nohup what it runs
# with the hang-up ignored, and the programs that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A release is tested by running these.
os.environ[tested.VARIABLE] = ".".join(str(number) for number in sys.version_info[:3])

# A deadline measures the machine's load. A failure prints the blob that replays it.
settings.register_profile("fairlead", deadline=None, print_blob=True)
settings.load_profile("fairlead")
