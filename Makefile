# Everything from a bare clone: `make help` says what there is.
#
# PYTHON   the interpreter that the virtual environment is made with (3.11 or newer)
# VENV     where that environment is put
PYTHON ?= python3
VENV ?= .venv

export PATH := $(abspath $(VENV))/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PIP := $(VENV)/bin/python -m pip --quiet
RUN_TESTS := $(VENV)/bin/meson test --print-errorlogs --num-processes 2

# What `make lab` runs: something of every family. `make lab LAB=` runs the whole catalogue.
LAB ?= square.mutex cured.mutex gil.convoy gil.countdown gil.thread-cost \
  models.io-sequential models.io-threads models.io-async \
  models.cpu-sequential models.cpu-threads models.cpu-process-pool party.fib

.PHONY: help policy truth upstream lab cluster-demo examples companions builds test test-native test-python test-all test-timing test-nightly shake mutants regrtest peers wheels test-wheel site test-site lint sanitize clean
.DELETE_ON_ERROR:

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

lab: build/lab/.installed  ## build and install, measure this machine (quick), end with a line a claim and a report
	build/lab/bin/fairlead lab run $(LAB) --quick --budget 60s

cluster-demo: $(VENV)/.installed $(VENV)/.test  ## a dask scheduler and two workers on loopback, and the lab's pool workloads on them
	$(VENV)/bin/python tools/cluster_demo.py

examples: $(VENV)/.installed $(VENV)/.test  ## install the programs of examples/ into the user's cache, and run each for a moment
	$(VENV)/bin/python examples/run.py --install
	$(VENV)/bin/python -m pytest -m "" tests/e2e/test_examples.py

companions: $(VENV)/.installed $(VENV)/.test  ## install profilers and other tools beside those of examples/, and try fairlead beside each
	$(VENV)/bin/python tests/support/companions.py
	$(VENV)/bin/python -m pytest -m "" tests/e2e/test_companions.py tests/e2e/test_recipes.py tests/e2e/test_pools_sklearn.py tests/e2e/test_pools_servers.py

# BUILDS=debug, clang-lto or shared-now for one of them; CPYTHON=DIRECTORY for a source tree that is there
builds: $(VENV)/.installed  ## CPython built in the ways that people have it, and the GIL's tests on each (half an hour)
	$(VENV)/bin/python tools/builds.py $(BUILDS)

test: test-native test-python  ## the C tests and the Python tests

test-native: build/native/build.ninja
	$(RUN_TESTS) -C build/native

test-python: $(VENV)/.installed $(VENV)/.test
	$(VENV)/bin/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder

test-timing: $(VENV)/.installed $(VENV)/.test  ## the tests that judge real time, one after another; refused where other programs use the machine
	$(VENV)/bin/python -m pytest -m timing

test-nightly: $(VENV)/.installed $(VENV)/.test  ## what takes more than the gate has: clusters, builds of their own, all tests on the versions in the middle
	$(VENV)/bin/python -m pytest -m nightly
	$(VENV)/bin/python tools/test_all.py 3.12 3.13 3.13t 3.14 -- -m "not once and not nightly and not timing"

test-all: $(VENV)/.installed $(VENV)/.test  ## the Python tests on every CPython from 3.11 on that is found, the long ones, and some on PyPy
	$(VENV)/bin/python tools/test_all.py

shake: $(VENV)/.installed $(VENV)/.test  ## make test's Python tests five times: quiet, beside two busy processes, in the background, on one core
	$(VENV)/bin/python tools/shake.py

# MUTANTS="NAME NAME" for some of them; MUTANTS=--all gives those that their tests do not find to all tests
mutants: $(VENV)/.installed $(VENV)/.test build/native/build.ninja  ## plant the faults of tools/mutants.toml, one at a time: the tests must find each (an hour)
	$(VENV)/bin/python tools/mutants.py $(MUTANTS)

# JUDGE="--beside 2" puts two busy processes beside them
judge: $(VENV)/.installed $(VENV)/.test  ## a hundred programs with one trouble each, or none: how often the report names it (eight minutes)
	$(VENV)/bin/python benchmarks/judge.py $(JUDGE)

policy: $(VENV)/.installed  ## the GIL's policy against stock and a short switch interval, in the simulator (minutes)
	$(VENV)/bin/python benchmarks/gil_policy_matrix.py --foreign 0,2

truth: $(VENV)/.installed  ## the lab's verdicts on 5,000 claims of known truth: how often right, how often an interval holds (five minutes)
	$(VENV)/bin/python tools/lab_truth.py $(TRUTH)

# UPSTREAM=--quick is a smoke run; UPSTREAM_BUILD and CPYTHON: see upstream/variants.py
upstream: $(VENV)/.installed  ## CPython with the patches of upstream/: build, measure, predict, test, write the tables (long)
	for step in variants explore measure instructions predict checks table; do \
	  $(VENV)/bin/python upstream/$$step.py $(UPSTREAM) || exit; done

regrtest: $(VENV)/.installed $(VENV)/.test  ## the interpreters' own tests with their GIL observed and scheduled, compared (hours)
	$(VENV)/bin/python tools/regrtest.py

# SUITE="futures pebble" for some of them; PEERS_PYTHON must have come with the standard library's tests
peers: $(VENV)/.installed $(VENV)/.test  ## other libraries' own tests over fairlead's classes; fetches them (half an hour)
	$(VENV)/bin/python tools/peers.py $(SUITE) --python $(or $(PEERS_PYTHON),3.13)

wheels: $(VENV)/.installed $(VENV)/.release  ## the sdist, and a wheel for every CPython that is found, each tried without a compiler
	$(VENV)/bin/python tools/wheels.py

test-wheel: $(VENV)/.installed $(VENV)/.release  ## the Python tests of make test, with a wheel installed where there is no compiler and no source
	$(VENV)/bin/python tools/wheels.py --suite

site: $(VENV)/.installed $(VENV)/.site  ## the documents as a site in build/site, with search and the API; broken links fail
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

test-site: $(VENV)/.installed $(VENV)/.test $(VENV)/.site  ## the site in a browser: search, dark, telephone, no other host
	$(VENV)/bin/python -m pytest -m "" tests/e2e/test_site_browser.py

lint: $(VENV)/.installed $(VENV)/.test build/lint/build.ninja  ## ruff, mypy, mdformat, C warnings as errors, layers, C style, words
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mdformat --check $$(git ls-files '*.md')
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m mypy.stubtest fairlead._native fairlead._probe
	$(VENV)/bin/ninja -C build/lint --quiet
	$(VENV)/bin/python -m pytest -q tests/arch

sanitize: build/tsan/build.ninja build/asan/build.ninja  ## the C tests under TSan, and under ASan and UBSan
	$(RUN_TESTS) --timeout-multiplier 5 -C build/tsan $(WITHOUT_RANDOMISATION)
	$(RUN_TESTS) --timeout-multiplier 5 -C build/asan

clean:  ## remove what was built, and the virtual environment
	rm -rf build $(VENV)

# TSan needs addresses that the address randomisation of some kernels takes; setarch -R switches that off.
WITHOUT_RANDOMISATION = $(if $(shell setarch -R true 2>/dev/null && echo yes),--wrapper 'setarch -R')

build/native/build.ninja: OPTIONS = -Dpython=false
build/lint/build.ninja: OPTIONS = -Dwerror=true
build/tsan/build.ninja: OPTIONS = -Dpython=false -Dbuildtype=debugoptimized -Db_sanitize=thread
build/asan/build.ninja: OPTIONS = -Dpython=false -Dbuildtype=debugoptimized -Db_sanitize=address,undefined
build/%/build.ninja: meson.options | $(VENV)/.tools
	@rm -rf $(@D) && mkdir -p build
	$(VENV)/bin/meson setup -Dtests=true $(OPTIONS) $(@D) > build/$*.log || { cat build/$*.log; exit 1; }

$(VENV)/.tools: | $(VENV)/bin/pip
	$(PIP) install --upgrade 'pip>=25.1'
	$(PIP) install --group build
	@touch $@

# As users have it: an editable install is rebuilt on import, which another user of the machine may not do.
build/lab/.installed: pyproject.toml meson.build meson.options $(shell find src native -name __pycache__ -prune -o -type f -print)
	@mkdir -p build && tools/make_venv.sh $(PYTHON) build/lab
	build/lab/bin/python -m pip --quiet install '.[lab]'
	@touch $@

$(VENV)/.installed: pyproject.toml meson.build meson.options $(VENV)/.tools
	$(PIP) install --no-build-isolation --editable '.[lab]'
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.tools
	$(PIP) install --group test --group lint --group oracle --group browser --group guests --group cluster --group ecosystem
	@touch $@

$(VENV)/.site: pyproject.toml $(VENV)/.tools
	$(PIP) install --group site
	@touch $@

$(VENV)/.release: pyproject.toml $(VENV)/.tools
	$(PIP) install --group release
	@touch $@

$(VENV)/bin/pip:
	@tools/make_venv.sh $(PYTHON) $(VENV)
