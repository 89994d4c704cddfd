"""The ``fairlead`` command: one file per sub-command; the only place that maps errors to exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NoReturn

# Ctrl-C ends the command without a traceback, also while it is loading: there is nothing yet to be ended
with ExitStack() as _loading:
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _loading.callback(signal.signal, signal.SIGINT, signal.default_int_handler)
    import click
    from click.core import ParameterSource

    from fairlead.cli.root import root
    from fairlead.errors import FairleadError, RunInterruptedError, UsageError

__all__ = ["main"]

_CTRL_C = 130


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit.

    Exit status: 0 fine; 1 something failed; 2 the command line is wrong; 128 + the number of the signal
    that stopped it (130 Ctrl-C, 143 SIGTERM). A program that was run to its end and died by a signal hands
    that on: this process dies by the same. An error is one line on standard error. A reader of the output
    that went away early (``| head``) is no error worth a word.
    """
    _stand_in_for_closed_streams()
    try:
        status = _run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # what is left in the buffer must go somewhere, or the interpreter complains on its way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except OSError as error:
        if error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = _complain(f"the output cannot be written: {error.strerror or error}", 1)
        else:
            status = _complain(f"{os.fsdecode(error.filename)}: {error.strerror}", 1)
    if status < 0:
        _die_by(-status)
    sys.exit(status)


def _die_by(signum: int) -> NoReturn:
    """As the program did. The one who started us sees that: subprocess, make, a shell and its Ctrl-C."""
    import resource

    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if signum not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})
    os.kill(os.getpid(), signum)
    os._exit(128 + signum)  # the first process of a container, whom no signal of its own kills


def _run(args: Sequence[str] | None) -> int:
    try:
        status = root.main(args=args, prog_name="fairlead", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        return _complain(_explained(error), error.exit_code)
    except click.Abort:
        return _complain("interrupted", _CTRL_C)
    except RunInterruptedError as stopped:
        return _complain(str(stopped), 128 + stopped.signum)
    except UsageError as error:
        return _complain(str(error), 2)
    except FairleadError as error:
        return _complain(str(error), 1)
    return int(status or 0)


def _explained(error: click.ClickException) -> str:
    """What is wrong, where the value comes from if it is not on the command line, and where to read more."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return error.format_message()
    if isinstance(error, click.BadParameter) and error.param is not None and error.param.name is not None:
        source = context.get_parameter_source(error.param.name)
        if source is ParameterSource.ENVIRONMENT:
            error.param_hint = f"{error.param.envvar}, in the environment"
    return f"{error.format_message().rstrip('.')} (see: {context.command_path} --help)"


def _stand_in_for_closed_streams() -> None:
    """Fill the places of an output that was closed (``>&-``), or the next file opened would get them.

    What is printed to standard output then fails as to a full disk: it must not seem to have been shown.
    What is said on standard error is lost.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _complain(message: str, status: int) -> int:
    from fairlead.report.common.names import clean  # a command that starts a program does not wait for it

    click.echo(f"fairlead: {clean(message)}", err=True)
    return status
