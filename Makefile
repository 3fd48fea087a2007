# Every target sets up .venv first; only Python 3.11+ and make are needed.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
PIP := -m pip --disable-pip-version-check -qq
# pip takes an index out of reach for one without the package, so the message tells both.
OR_SAY_WHY = >$(@D)/pip.log 2>&1 || { \
	echo "$(@D) is not set up. pip: $$(grep -m 1 ERROR $(@D)/pip.log)" >&2; \
	! grep -q Retrying $(@D)/pip.log || echo "The package index did not always answer; try again later." >&2; \
	echo "All that pip said: $(@D)/pip.log" >&2; exit 1; }
# Seconds; pip's own 15 are too few for a slow index.
export PIP_DEFAULT_TIMEOUT ?= 60
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

test-integrations: $(STAMP) ## train with third-party libraries (options: INTEGRATION_ARGS=…)
	@$(MAKE) --no-print-directory -j $(WORKERS) $(INTEGRATIONS)
	@$(RUN) tests/integrations/run.py --workers $(WORKERS) $(INTEGRATION_ARGS)

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

# Third-party libraries do not all agree with each other: an environment for each of two sets. Both
# see what .venv has, and add to it or put another version before it; .venv itself stays as it is.
SITE := import sysconfig; print(sysconfig.get_path("purelib"))
.venv-%/.installed: tests/integrations/%.txt $(STAMP)
	@rm -f $@
	@echo "Setting up $(@D) (a few minutes the first time)"
	@$(RUN) -m venv --clear --without-pip $(@D)
	@$(RUN) -c '$(SITE)' > "$$($(@D)/bin/python -c '$(SITE)')/base.pth"
	@$(@D)/bin/python $(PIP) install --no-deps -r $< $(OR_SAY_WHY)
	@touch $@

# The stamp comes last, so an interrupted set-up is done again.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	@rm -f $@
	@echo "Setting up $(VENV) (a few minutes the first time)"
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(RUN) $(PIP) install -c constraints.txt hatchling $(OR_SAY_WHY)
	@$(RUN) $(PIP) install -c constraints.txt --no-build-isolation -e ".[train,report,parquet,multi-agent,search,dev]" $(OR_SAY_WHY)
	@touch $@
