"""scikit-learn's searches on the joblib backend: the numbers of loky, and a killed worker costs one task.

`make companions` installs scikit-learn; elsewhere this is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from companions import environment, variables

pytestmark = pytest.mark.once

ENVIRONMENT = environment()
ESTIMATOR = """
import os, signal
from sklearn.linear_model import LogisticRegression

class Killed(LogisticRegression):
    def __init__(self, path="", C=1.0):
        super().__init__(C=C)
        self.path = path

    def fit(self, X, y):
        if self.path and not os.path.exists(self.path):
            os.mknod(self.path)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)
"""
PROGRAM = """
import dataclasses, json, os, sys
import joblib
from estimator import Killed
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
import fairlead.pools.joblib
from fairlead.pools import shared_pool

X, y = make_classification(200, 8, random_state=1)

def numbers(backend, path="", **given):
    with joblib.parallel_config(backend=backend, n_jobs=2, **given):
        search = GridSearchCV(Killed(path), {"C": [0.01, 0.1, 1.0]}, cv=4).fit(X, y)
        return search.cv_results_["mean_test_score"].tolist(), cross_val_score(Killed(), X, y, cv=5).tolist()

if __name__ == "__main__":
    path = os.path.abspath("killed")
    told = {"loky": numbers("loky"), "threads": numbers("fairlead", kind="threads")}
    told["processes"] = numbers("fairlead")
    told["killed"] = numbers("fairlead", path)
    assert os.path.exists(path)
    print(json.dumps([told, dataclasses.asdict(shared_pool("processes", 2).statistics())]))
"""


@pytest.mark.long
def test_searches_return_lokys_numbers_and_a_killed_worker_costs_one_task(tmp_path: Path) -> None:
    if not ENVIRONMENT.has(("scikit-learn",)):
        pytest.skip("scikit-learn not installed: make companions")
    (tmp_path / "estimator.py").write_text(ESTIMATOR)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [ENVIRONMENT.python, "program.py"],
        cwd=tmp_path,
        env={**os.environ, **variables()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    numbers, statistics = json.loads(done.stdout)
    assert numbers["threads"] == numbers["processes"] == numbers["killed"] == numbers["loky"]
    assert (statistics["lost"], statistics["retried"], statistics["restarts"]) == (1, 1, 1)
