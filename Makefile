# make compare   install, then compare every model on scikit-learn's digits: a table, and report.html
# make studio    install, and open the studio on the digits
# make test      all tests, doctests included, on two cores
# make coverage  the same, with the share of lines and branches that ran; fails under 92% of lines
# make test-studio  the studio in a real browser; screenshots in build/studio; needs chromium and chromium-driver
# make audit     every answer against independent oracles, all tests with other seeds; writes docs/honesty.md; hours
# make campaign  kills, full disks, hostile files, extreme inputs; writes docs/reliability.md; an hour
# make lint      style, format, types, direction of imports;  make format  mends the first two
# make bench     every benchmark, or one: make bench BENCH=rbm
# make gallery   every picture of the documentation
# make docs      the documentation as a site, build/site/index.html, with a reference of every public name
# make dist      wheel and source archive in dist/, tried in an empty environment
# make clean     remove the environment, the caches and the report

PYTHON ?= python3
BENCH ?=
SEEDS ?= 0-19
BIN := .venv/bin
INSTALLED := .venv/.installed
DOCS := .venv-docs/.installed
GET_BROWSER := apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null 2>&1

.DELETE_ON_ERROR:
.PHONY: compare studio test test-studio coverage audit campaign lint format bench gallery docs dist clean

compare: $(INSTALLED)
	$(BIN)/likely compare digits

studio: $(INSTALLED)
	$(BIN)/likely studio digits

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q  # a file on one core: what it fits and compiles, it does once

# A machine that lets us gets the browser installed; others are told what is missing.
test-studio: $(INSTALLED)
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
	  { test "$$(id -u)" = 0 && { $(GET_BROWSER) || { apt-get update -qq && $(GET_BROWSER); }; }; } || \
	  { echo "make test-studio needs a browser: apt-get install chromium chromium-driver" >&2; exit 1; }
	$(BIN)/python -m tests.studio.browser

coverage: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q --cov --cov-report=json:.cache/coverage/report.json
	$(BIN)/python -m tests.coverage_table .cache/coverage/report.json

# What the models say, with three seeds; then all tests of the project with SEEDS, of which at most 1 in 1,000 may fail.
audit: $(INSTALLED)
	$(BIN)/python -m tests.audit --suite $(SEEDS)

campaign: $(INSTALLED)
	$(BIN)/python -m tests.campaign

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --cache-dir .cache/import-linter

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks $(BENCH)

gallery: $(INSTALLED)
	set -e; for script in docs/gallery/*.py; do echo "$$script"; $(BIN)/python "$$script"; done

# Nothing is fetched, and any warning (a broken link, a public name without its place) is an error; --quiet would hide it.
docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/.venv-docs/bin:$$PATH" mkdocs build --strict
	@echo "build/site/index.html"

dist: $(INSTALLED)
	.ci/dist $(CURDIR)/$(BIN)/python

# The site reads likely's source without importing it, so its environment has neither JAX nor likely.
$(DOCS): requirements-docs.lock
	@echo "Installing into .venv-docs (only when requirements-docs.lock changes) ..."
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install -qq --disable-pip-version-check -r requirements-docs.lock
	@touch $@

# The build back end is in the lock as well, so that the last step fetches nothing. -qq leaves only errors.
$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "likely needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.11" >&2; exit 1; }
	@echo "Installing into .venv (a minute or two, only when requirements.lock or pyproject.toml change) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

clean:
	rm -rf .venv .venv-docs benchmarks/.venv .cache .hypothesis build dist report.html
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
