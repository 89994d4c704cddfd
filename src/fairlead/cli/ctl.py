"""``fairlead ctl``."""

from __future__ import annotations

import click

from fairlead.gil.schedule.outside import ORDERS, Answer, Order, send


@click.command(short_help="Look at a running program's scheduler, or switch it.")
@click.option("--pid", type=int, required=True, help="The process.")
@click.argument("order", type=click.Choice(ORDERS))
def ctl(pid: int, order: Order) -> None:
    """Look at the scheduler of a running program, or switch it, from outside.

    status: the policy in force, and what the watchdog did. stock: the interpreter's own scheduling.
    interactive: the scheduler again. off: stock, whatever the program itself asks for, until another order.

    The program was started by fairlead run, or calls fairlead.gil.schedule(). The order takes effect when a
    thread next takes the GIL or waits for it, also while another keeps the GIL in C code.
    """
    answer = send(pid, order)
    if not answer.fresh and order != "status":
        click.echo(f"process {pid}: no thread has taken the GIL for a second; the first to do so obeys")
        return
    since = "" if answer.fresh else "no thread has taken the GIL for a second; before: "
    click.echo(f"process {pid}: {since}{_described(answer)}")


def _described(answer: Answer) -> str:
    policy = f"policy {answer.policy}"
    if answer.off:
        policy += " (switched off by fairlead ctl)"
    trips = f"the watchdog tripped {answer.trips} times" if answer.trips else "the watchdog never tripped"
    waiting = "1 thread waits" if answer.waiting == 1 else f"{answer.waiting} threads wait"
    scheduled = f"{answer.acquisitions:,} acquisitions scheduled and {answer.waits:,} waits"
    return f"{policy}, {waiting} for the GIL, {scheduled}, {trips}"
