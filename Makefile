# Every command a developer needs; each works on a machine with Python 3.11+, git and make.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
TEST_TOOLS := pytest pytest-xdist pytest-timeout pytest-randomly hypothesis coverage
CHECK_TOOLS := ruff mypy import-linter types-PyYAML
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test check bench soak acceptance clean

# What a user gets: uphold itself, installed from this checkout.
$(VENV)/installed: pyproject.toml src/uphold/version.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing uphold into $(VENV) ..."
	@$(PIP) -e . && touch $@

# What the tests and checks need on top.
$(VENV)/tested: $(VENV)/installed constraints.txt
	@echo "installing what tests and checks need ..."
	@$(PIP) -e '.[sql]' $(TEST_TOOLS) $(CHECK_TOOLS) && touch $@

## run: supervise examples/quickstart in the foreground; Ctrl-C stops it
run: $(VENV)/installed
	@$(BIN)/uphold -c examples/quickstart/uphold.toml run --table

## test: everything the tests need, then all of them
test: $(VENV)/tested check
	@tools/provide.sh
	@$(BIN)/python -m pytest -n 4 --dist loadgroup tests

## check: style, types and layers
check: $(VENV)/tested
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

## acceptance: the acceptance ids that no test quotes yet
acceptance: $(VENV)/tested
	@$(BIN)/python tools/acceptance.py

# What the benchmark measures: uphold as a user installs it, and supervisord, with one interpreter.
$(BENCH)/installed: pyproject.toml constraints.txt $(shell find src -name '*.py')
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	@echo "installing uphold and supervisord into $(BENCH) ..."
	@$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt . supervisor
	@$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		--no-deps --force-reinstall . && touch $@

## bench: figures beside supervisord and a floor (quiet machine, six minutes after tests); WRITE=1 keeps them
bench: $(BENCH)/installed $(VENV)/tested
	@$(BENCH)/bin/python tools/bench.py $(if $(WRITE),--write) $(ARGS)
	@$(BENCH)/bin/python tools/bench_health.py
	@$(BENCH)/bin/python tools/bench_journal.py
	@$(BENCH)/bin/python tools/bench_once.py || echo "a single pass takes longer than it may (500 ms)"
	@$(BENCH)/bin/python tools/bench_inbox.py
	@$(BENCH)/bin/python tools/bench_runner.py || echo "the runner adds more than it may (150 ms, 12 MB)"
	@$(BIN)/python tools/bench_store.py || echo "copying to a database is slower than 5,000 rows/s"

## soak: the longer proofs, one line each, on two lanes (about eight hours; ARGS="--scale 0.01": a rehearsal)
soak: $(VENV)/tested
	@tools/provide.sh
	@$(BIN)/python tools/soak.py $(ARGS)

clean:
	rm -rf $(VENV) $(BENCH)
