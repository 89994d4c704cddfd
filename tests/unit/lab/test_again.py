"""The command on a page measures what the page shows."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from interpreters import PYTHON
from summaries import series as made

from fairlead.cli.lab.run import run
from fairlead.lab.analysis.again import commands
from fairlead.lab.catalogue import registry
from fairlead.lab.run.plan import PlannedSeries, RunOptions, make_plan

pytestmark = pytest.mark.ends

KNOWN = registry.catalogue()
ENVIRONMENT = {"affinity": [2, 3, 5]}
HELP = ["-h", "--help"]
"""As the command has it: click remembers the first."""


def planned(options: RunOptions) -> tuple[PlannedSeries, ...]:
    return make_plan(options, [PYTHON], ENVIRONMENT, None).series


def shown(series: Sequence[PlannedSeries]) -> dict[str, str]:
    """The commands of a page that shows just these."""
    rng = random.Random(1)
    measured = [
        made(rng, one.experiment, PYTHON.as_record(), variant=one.params, sizes=one.sizes) for one in series
    ]
    subjects = [
        KNOWN[name].subject for name in dict.fromkeys(one.experiment for one in series) if name in KNOWN
    ]
    return commands(subjects, measured, KNOWN)


def asked(command: str) -> RunOptions:
    words = shlex.split(command)
    assert words[:3] == ["fairlead", "lab", "run"]
    given: dict[str, Any] = run.make_context("run", words[3:], help_option_names=HELP).params
    assert given["asked"] == (PYTHON.name,)
    return RunOptions(
        ids=given["ids"],
        mode="quick" if given["quick"] else "standard",
        sizes=given["sizes"],
        policy=given["policy"],
        parameters=given["settings"],
        variants=given["variants"],
    )


def parameters(series: Sequence[PlannedSeries]) -> set[str]:
    return {json.dumps([one.experiment, one.params], sort_keys=True, default=str) for one in series}


def sizes(series: Sequence[PlannedSeries]) -> set[int]:
    return {n for one in series for n in one.sizes}


@pytest.mark.parametrize("mode", ["quick", "standard", "full"])
def test_command_of_each_experiment_repeats_what_a_mode_measures(mode: str) -> None:
    for name, experiment in KNOWN.items():
        series = planned(RunOptions(ids=(name,), mode=mode))
        if series:
            command = shown(series)[name]
            again = planned(asked(command))
            assert parameters(again) == parameters(series), (command, experiment.id)
            assert sizes(again) == sizes(series)


def test_command_names_what_was_set_and_the_variant_that_was_chosen() -> None:
    series = planned(
        RunOptions(ids=("square.mutex",), policy="rr", parameters=(("work", "spin"),), variants=("",))
    )
    command = shown(series)["square.mutex"]
    assert "--set work=spin" in command
    assert parameters(planned(asked(command))) == parameters(series)


def test_command_of_a_group_is_for_all_of_them_and_of_the_unknown_is_not_made_up() -> None:
    (one,) = planned(RunOptions(ids=("square.mutex",)))
    assert shown([replace(one, experiment="square.circle")]) == {}
    group = "models.io"
    series = planned(RunOptions(ids=(group,), mode="standard"))
    command = shown(series)[group]
    assert parameters(planned(asked(command))) == parameters(series)
