"""``fairlead ctl``."""

from __future__ import annotations

import click

from fairlead.errors import UsageError
from fairlead.gil.observe.programs.target import ended
from fairlead.gil.schedule.outside import ORDERS, Answer, Order, scheduled_family, send, send_all


def _order(context: click.Context, argument: click.Parameter, value: str) -> Order:
    if value.isdecimal():
        raise UsageError(f"name the process by its option: fairlead ctl --pid {value} status")
    return click.Choice(ORDERS).convert(value, argument, context)


@click.command()
@click.option("--pid", type=int, required=True, help="The process.")
@click.option(
    "--children",
    is_flag=True,
    help="Also every scheduled process that it started, and every one that these started.",
)
@click.argument("order", metavar=f"{{{'|'.join(ORDERS)}}}", callback=_order)
def ctl(pid: int, children: bool, order: Order) -> None:
    """Look at the scheduler of a running program, or switch it, from outside.

    status: the policy in force, and what the watchdog did. stock: the interpreter's own scheduling.
    interactive: the scheduler again. off: stock, whatever the program itself asks for, until another order.

    The program was started by fairlead run, or calls fairlead.gil.schedule(). The order takes effect when a
    thread next takes the GIL or waits for it, also while another thread keeps the GIL in C code. Children
    that the program forks later begin with the state that it has then.
    """
    family = scheduled_family(pid)
    if not children or not family:
        others = len(set(family) - {pid})
        hint = f"--children gives the order to {others} more, which process {pid} started"
        try:
            _report(pid, order, send(pid, order))  # or it says why it takes none
        except UsageError as error:
            raise UsageError(f"{error}; {hint}" if others else str(error)) from error
        if others:
            click.echo(hint, err=True)
        return
    refused = 0
    for one, outcome in send_all(family, order).items():
        if isinstance(outcome, Answer):
            _report(one, order, outcome)
        elif not ended(one):
            refused += 1
            click.echo(outcome, err=True)
    if refused:
        raise UsageError(f"{refused} of {len(family)} processes took no order, see above")


def _report(pid: int, order: Order, answer: Answer) -> None:
    if answer.hooks == "out":
        click.echo(f"process {pid}: policy stock: the hooks could not be put in when a thread first waited")
        return
    if answer.hooks == "bypassed":
        click.echo(f"process {pid}: policy stock: threads wait for the GIL, and the hooks do not see them")
        return
    if answer.hooks == "resting":
        then = "it is scheduled from then on" if answer.order == "status" else f"it obeys: {answer.order}"
        click.echo(f"process {pid}: no thread has waited for the GIL yet; when one does, {then}")
        return
    if not answer.fresh and order != "status":
        click.echo(f"process {pid}: no thread has taken the GIL for a second; the first to do so obeys")
        return
    if not answer.fresh:  # the counts are those of the last order that a thread obeyed, or of the start
        before = f"before: {_policy(answer)}"
        click.echo(f"process {pid}: no thread has taken the GIL for a second; {before}")
        return
    click.echo(f"process {pid}: {_described(answer)}")


def _policy(answer: Answer) -> str:
    policy = f"policy {answer.policy}"
    if answer.off:
        policy += " (switched off by fairlead ctl)"
    elif answer.canary == "tries":
        policy += " (for now: a canary tries it and the other in turns)"
    elif (answer.canary, answer.policy) in {("kept", "interactive"), ("rejected", "stock")}:
        policy += " (chosen by the canary)"
    return policy


def _described(answer: Answer) -> str:
    trips = f"the watchdog tripped {answer.trips} times" if answer.trips else "the watchdog never tripped"
    waiting = "1 thread waits" if answer.waiting == 1 else f"{answer.waiting} threads wait"
    scheduled = f"{answer.acquisitions:,} acquisitions scheduled and {answer.waits:,} waits"
    return f"{_policy(answer)}, {waiting} for the GIL, {scheduled}, {trips}"
