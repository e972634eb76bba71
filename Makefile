# `make run` and `make test` need python3 (3.10 or later) and make; all else they install into .venv by themselves.
PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Stamps: nothing is installed again while the files that say what to install are unchanged.
MADE := $(VENV)/made.stamp
CORE := $(VENV)/core.stamp
TEST := $(VENV)/test.stamp
# All but determinism within one process, which still depends on what isl did before in rare cases (see `polyopt fuzz`).
ORACLES := --only text --only 'judge at sizes' --only 'judge for all sizes' --only forms --only certificates \
	--only variants --only values
PYTEST := $(BIN)/python -m pytest --quiet --numprocesses $(JOBS)

export PIP_ROOT_USER_ACTION := ignore

.NOTPARALLEL:
.PHONY: help run test test-all lint layers types doctests wheel clean distclean

help:
	@echo 'make run        install polyopt into .venv and run its main benchmark: one table'
	@echo 'make test       install what the tests need, then lint, layers, types, doctests and pytest'
	@echo 'make test-all   the same and the tests marked slow'
	@echo 'make lint | layers | types | doctests      one check'
	@echo 'make wheel      build a wheel into dist/'
	@echo 'make clean | distclean                     remove what was built | and .venv too'

run: $(CORE)
	$(BIN)/polyopt bench main

test: lint layers types doctests
	$(PYTEST) -m 'not slow'
	$(BIN)/polyopt fuzz --seconds 60 --out build/fuzz-failures $(ORACLES)

test-all: lint layers types doctests
	$(PYTEST)

lint: $(TEST)
	$(BIN)/python -m ruff check .

layers: $(TEST)
	$(BIN)/python -m tools.check_layers

types: $(TEST)
	$(BIN)/python -m tools.check_types

doctests: $(TEST)
	$(BIN)/python -m tools.run_doctests

wheel: $(TEST)
	rm -rf build/lib build/bdist.*
	$(BIN)/python -m build --wheel .

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo 'polyopt needs Python 3.10 or later: make PYTHON=/path/to/python3 ...' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo 'no virtual environment could be made: on Debian and Ubuntu, apt-get install python3-venv' >&2; exit 1; }
	@touch $@

$(CORE): pyproject.toml setup.py | $(MADE)
	$(PIP) --editable .
	@touch $@

$(TEST): pyproject.toml setup.py constraints.txt | $(MADE)
	$(PIP) --constraint constraints.txt --editable '.[torch,dev]'
	@touch $(CORE) $@

clean:
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
