"""``python -m fairlead.gil.simulation SPEC``: repeat a simulation and say how it ended. SPEC is JSON, or a
file with it."""

from __future__ import annotations

import sys
from pathlib import Path

from fairlead.errors import FairleadError
from fairlead.gil.simulation.run import replay


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m fairlead.gil.simulation SPEC", file=sys.stderr)
        return 2
    spec = sys.argv[1]
    try:
        run = replay(spec if spec.lstrip().startswith("{") else Path(spec).read_text(encoding="utf-8"))
    except (FairleadError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{run.status} after {run.elapsed_seconds:.6f} s: {run.passes} passes, {run.switches} switches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
