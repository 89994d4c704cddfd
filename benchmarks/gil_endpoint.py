"""How soon does the endpoint answer while the program has no time?

    python benchmarks/gil_endpoint.py [--rounds 15] [--foreign 4] [--seconds 30]

A client asks for /metrics ten times a second while a C call keeps the GIL, in a convoy, among threads that
drop the GIL all the time, beside a thousand threads, and in a process that forks or starts programs all the
time. What the endpoint costs is own_observed.py's question.
"""

from __future__ import annotations

import json
import subprocess
import sys

from harness import FIGURES, SUBJECTS, Row, Target, arguments, run

ANSWER_MS = 50


def main() -> None:
    parser = arguments(__doc__ or "", rounds=15)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each sample")
    options = parser.parse_args()
    seconds = 0.3 if options.quick else options.seconds

    def take(mode: str) -> FIGURES:
        command = [sys.executable, str(SUBJECTS / "endpoint.py"), mode, str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        figures: FIGURES = json.loads(done.stdout)
        return figures

    situations = ["C call", "convoy", "quick", "1,000 threads", "fork", "exec"]
    targets = [Target("worst ms", mode, at_most=ANSWER_MS, how="every") for mode in situations]
    rows = [Row("answers, 10 a second", take, situations, targets)]
    run("How soon does the endpoint answer?", rows, options)


if __name__ == "__main__":
    main()
