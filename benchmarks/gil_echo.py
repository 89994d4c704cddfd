"""Does a threaded echo server stay quick beside CPU-bound threads, and do those get their share?

    python benchmarks/gil_echo.py [--clients 1,16,64] [--cpu-threads 1,2,4] [--shares 0.1,0.3,0.5]

For each number of clients and CPU-bound threads: stock CPython, the scheduled one at each CPU share, and the
yardstick: the same server with no CPU-bound thread inside but a CPU-bound *process* beside it, which is what
the operating system's own scheduler makes of the same work.
"""

from __future__ import annotations

from harness import FIGURES, Row, Target, arguments, cpu_bound_process, load, run, subject


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def serve(clients: int, cpu_threads: int, share: float | None, seconds: float) -> FIGURES:
    with subject("echo_server", share=share, cpu_threads=cpu_threads) as (_, facts):
        return load(facts, clients=clients, seconds=seconds, warm_up=seconds / 3)


def row(clients: int, cpu_threads: int, shares: list[float], seconds: float) -> Row:
    scheduled = {f"share {share:g}": share for share in shares}

    def take(mode: str) -> FIGURES:
        if mode == "process":
            with cpu_bound_process():
                return serve(clients, 0, None, seconds)
        return serve(clients, cpu_threads, scheduled.get(mode), seconds)

    return Row(
        name=f"{clients} clients + {cpu_threads} CPU threads",
        take=take,
        modes=["stock", *scheduled, "process"],
        targets=[
            target
            for mode, share in scheduled.items()
            for target in targets(clients, cpu_threads, mode, share)
        ],
    )


def targets(clients: int, cpu_threads: int, mode: str, share: float) -> list[Target]:
    """With the share that is the default; others are there for the share."""
    yardstick = Target("requests/s", mode, of="process", at_least=0.6 if clients + cpu_threads == 2 else 0.5)
    if clients > 1:
        kept = Target("CPU share", mode, at_least=share - 0.05, at_most=share + 0.05)
        slow = Target("p99 us", mode, of="stock", at_most=0.1)
        return [yardstick, slow, kept] if share == 0.3 else [kept]
    kept = Target("CPU share", mode, at_least=share)  # what one client leaves idle comes on top
    if share != 0.3:
        return [kept]
    if cpu_threads == 1:
        return [
            Target("requests/s", mode, of="stock", at_least=100),
            yardstick,
            Target("p99 us", mode, at_most=200),
            kept,
        ]
    always = Target("requests/s", mode, of="process", at_least=0.5, how="every")
    return [always, Target("p99 us", mode, at_most=500, how="every"), kept]


def main() -> None:
    parser = arguments(__doc__ or "", rounds=5)
    parser.add_argument("--clients", default="1,16,64")
    parser.add_argument("--cpu-threads", default="1,2,4")
    parser.add_argument("--shares", default="0.1,0.3,0.5")
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    if options.quick:
        options.clients, options.cpu_threads, options.shares, options.seconds = "1,4", "1", "0.3", 0.1
    shares = [float(share) for share in options.shares.split(",")]
    rows = [
        row(clients, cpu_threads, shares, options.seconds)
        for clients in numbers(options.clients)
        for cpu_threads in numbers(options.cpu_threads)
    ]
    run("Does a threaded echo server stay quick beside CPU-bound threads?", rows, options)


if __name__ == "__main__":
    main()
