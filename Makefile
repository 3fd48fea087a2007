# Every target sets up .venv first; only Python 3.11+ and make are needed.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PIP := $(RUN) -m pip --disable-pip-version-check -qq
WORKERS ?= 2
INTEGRATIONS := .venv-newest/.installed .venv-rllib/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-integrations lint bench validate case-study headroom clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(STAMP) ## train briefly, compare agent, presets and random (options: DEMO_ARGS=…)
	@$(RUN) -m eval.demo $(DEMO_ARGS)

test: lint ## lint, then all tests, the marked ones also without compilation
	@echo "Tests without compilation"
	@NUMBA_DISABLE_JIT=1 $(RUN) -m pytest -n $(WORKERS) -m nojit
	@echo "All tests"
	@$(RUN) -m pytest -n $(WORKERS) $(TEST_ARGS)

test-integrations: $(INTEGRATIONS) ## train with third-party libraries (options: INTEGRATION_ARGS=…)
	@.venv-newest/bin/python tests/integrations/run.py $(INTEGRATION_ARGS)

lint: $(STAMP) ## style, types, and which part imports which
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy
	@$(VENV)/bin/lint-imports --no-logo

bench: $(STAMP) ## measure speed (options: BENCH_ARGS=…)
	@$(RUN) -m eval.benchmarks $(BENCH_ARGS)

case-study: $(STAMP) ## eight tenants before and after tuning, beside published figures (options: CASE_ARGS=…)
	@$(RUN) -m eval.case_study $(CASE_ARGS)

validate: $(STAMP) ## check the simulator against its references (options: VALIDATE_ARGS=…)
	@$(RUN) -m eval.validate $(VALIDATE_ARGS)

headroom: $(STAMP) ## search settings for every id: what tuning and adapting gain (HEADROOM_ARGS=…)
	@$(RUN) -m eval.headroom $(HEADROOM_ARGS)

clean: ## remove .venv, caches and builds; results in runs/ stay
	@rm -rf $(VENV) $(dir $(INTEGRATIONS)) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Third-party libraries do not all agree with each other: an environment for each of two sets.
.venv-%/.installed: tests/integrations/%.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	@rm -f $@
	@echo "Setting up .venv-$* (several minutes the first time)"
	@.venv-$*/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-$*
	@.venv-$*/bin/python -m pip --disable-pip-version-check -qq install -r $<
	@touch $@

# The stamp comes last, so an interrupted set-up is done again.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	@rm -f $@
	@echo "Setting up $(VENV) (a few minutes the first time)"
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install -c constraints.txt hatchling
	@$(PIP) install -c constraints.txt --no-build-isolation -e ".[train,report,parquet,multi-agent,search,dev]"
	@touch $@
