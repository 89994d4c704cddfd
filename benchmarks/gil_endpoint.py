"""What does the endpoint cost a program, and how soon does it answer while the program has no time?

    python benchmarks/gil_endpoint.py [--rounds 15] [--only echo] [--foreign 4] [--seconds 30]

Four echo clients with nothing observed, with the GIL counted, with an endpoint that nobody asks, and with
one that is asked for /metrics ten times a second; and the answers at that rate while a C call keeps the GIL,
in a convoy, among threads that drop the GIL all the time, beside a thousand threads, and in a process that
forks or starts programs all the time.
"""

from __future__ import annotations

import json
import subprocess
import sys

from harness import FIGURES, SUBJECTS, Row, Target, arguments, cpu_bound_process, run

ANSWER_MS = 50
COST = 0.99


def main() -> None:
    parser = arguments(__doc__ or "", rounds=15)
    parser.add_argument("--only", choices=["echo", "answers"])
    parser.add_argument("--foreign", type=int, default=0, help="busy processes beside, on the same cores")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each sample")
    options = parser.parse_args()
    seconds = 0.3 if options.quick else options.seconds

    def take(mode: str) -> FIGURES:
        command = [sys.executable, str(SUBJECTS / "endpoint.py"), mode, str(seconds)]
        with cpu_bound_process(options.foreign):
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        figures: FIGURES = json.loads(done.stdout)
        return figures

    situations = ["C call", "convoy", "quick", "1,000 threads", "fork", "exec"]
    rows = [
        Row(
            "echo, 4 clients",
            take,
            ["off", "counting", "serving", "scraped"],
            [
                Target("requests/s", mode, at_least=COST, of=base)
                for mode, base in (("scraped", "off"), ("counting", "off"), ("scraped", "counting"))
            ],
        ),
        Row(
            "answers, 10 a second",
            take,
            situations,
            [Target("worst ms", mode, at_most=ANSWER_MS, how="every") for mode in situations],
        ),
    ]
    chosen = [row for row in rows if options.only is None or row.name.startswith(options.only)]
    run("What does the endpoint cost, and how soon does it answer?", chosen, options)


if __name__ == "__main__":
    main()
