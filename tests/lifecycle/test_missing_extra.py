"""Without the libraries of the lab's extra, its statistics say which to install."""

from __future__ import annotations

from commands import python

PROGRAM = """
import sys
sys.modules["numpy"] = None  # what an import finds that is not installed
from fairlead.errors import MissingExtraError
try:
    import fairlead.lab.analysis.{module}
except MissingExtraError as error:
    print(error)
"""


def test_analysis_without_numpy_names_the_extra() -> None:
    for module in ("summarise", "compare"):
        assert (
            python("-c", PROGRAM.format(module=module)).stdout
            == "the lab's statistics need numpy: pip install 'fairlead[lab]'\n"
        )
