# Two commands are enough on a fresh machine: `make demo` and `make test`. Everything installs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

# Tests start many processes, and each compiles the whole package again where the environment forbids to keep byte code.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test slow lint e2e installed oracle faults mutants bench bench-peers bench-scale bench-cluster soak churn generate manifests clean

setup: $(STAMP)

# pip refuses an editable install with hashes, so the pinned dependencies and the project install separately.
$(STAMP): .ci/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r .ci/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: setup
	$(BIN)/foreslice demo

test: setup
	$(BIN)/pytest -q -n 2 -m "not slow" --ignore=tests/e2e --ignore=tests/installed

# What is marked slow: a death before every write of a life, random cases by the hundred, searches against brute force.
slow: setup
	$(BIN)/pytest -q -n 2 -m slow --ignore=tests/e2e --ignore=tests/installed

# What needs more than Python: a real control plane and Kueue, built once from Go modules (4 to 10 and 3 to 5 minutes on
# two cores, then cached), a C compiler for the fake NVML, and a browser (Debian's package chromium) for the status page.
e2e: setup
	$(BIN)/pytest -q tests/e2e

# The built wheel in empty environments, without extras and with each: every command works or names the extra to install.
# Installs from the package index; some two minutes.
installed: setup
	$(BIN)/pytest -q tests/installed

# Random cases to the simulator and to Kubernetes' own Go code, built once (2 to 4 minutes, and the control plane of e2e).
# N cases of each kind and release; fails if SECONDS do not suffice for nearly all of them, and in any case below 100.
N ?= 2000
SECONDS ?= 1200
SEED ?=
KINDS ?=
oracle: setup
	$(BIN)/python -m tests.oracle.run --cases $(N) --seconds $(SECONDS) --seed "$(SEED)" $(and $(KINDS),--kinds $(KINDS))
	$(BIN)/python -m tests.oracle.explore --cases $$(($(N) / 40)) --seed "$(SEED)" $(and $(KINDS),--kinds $(KINDS))

# Random schedules of work and trouble, and random lives of Capacity Blocks, over the production loop, the adapters of
# AWS and Google Cloud and their fakes, in virtual time; about three quarters of an hour on two cores.
SCHEDULES ?= 10000
LIVES ?= 1000
# Schedules over Google Cloud of all kinds; by default a quarter of the others. GOOGLE=10000 SCHEDULES=0 LIVES=0: only those.
GOOGLE ?=
# Random sequences of Cluster Autoscaler's calls over gRPC; some three minutes.
CALLS ?= 1000
faults: setup
	$(BIN)/python -m tests.unit.externalgrpc.random_calls --sequences $(CALLS)
	$(BIN)/python -m tests.faults.run --schedules $(SCHEDULES) --lives $(LIVES) $(if $(GOOGLE),--google $(GOOGLE)) --seed "$(or $(SEED),0)"

# Small changes to safety-critical code, each of which a test of its room must notice; some three minutes on two cores.
# DRAW=12: only so many, drawn by the commit. ID=…: only that one.
DRAW ?=
ID ?=
mutants: setup
	$(BIN)/python -m tests.mutants.run $(if $(DRAW),--draw $(DRAW)) $(if $(ID),--id $(ID))

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.generated --check

bench: setup
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.catalog
	$(BIN)/python -m benchmarks.packing
	$(BIN)/python -m benchmarks.tenants
	$(BIN)/python -m benchmarks.aws
	$(BIN)/python -m benchmarks.gcp
	$(BIN)/python -m benchmarks.external_grpc
	$(BIN)/python -m benchmarks.upstream

# Foreslice and Karpenter's scheduler on the same pods; builds Karpenter once with Go, some 6 minutes, then two minutes.
bench-peers: setup
	$(BIN)/python -m benchmarks.peers.run

# The loop at 5,000 nodes of eight devices, filled to 90 %, with churn, and how its time grows; a quarter of an hour.
NODES ?= 5000
bench-scale: setup
	$(BIN)/python -m benchmarks.first_read --nodes $(NODES)
	$(BIN)/python -m benchmarks.scale --nodes $(NODES)

# The installed controller on the control plane of `make e2e`: memory, CPU and time to act at 1,000 nodes; ten minutes.
bench-cluster: setup
	$(BIN)/python -m benchmarks.controller

# Hours of pods that come and go on the same control plane: nothing may be left of them, and memory must not grow.
MINUTES ?= 60
soak: setup
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES)

# Ten minutes of pods that come and go: the controller's memory at minute 2 and at minute 10, and their ratio.
churn: setup
	$(BIN)/python -m benchmarks.soak --churn

# Everything that is derived from code: JSON schemas, CRDs, the command reference, state diagrams.
generate: setup
	$(BIN)/python -m tests.generated

# The plain manifests, rendered from the chart; needs Go, for Helm.
manifests: setup
	$(BIN)/python -m tests.e2e.harness.manifests

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
