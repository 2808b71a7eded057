# The only commands a fresh checkout needs: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two test processes of one BLAS thread each: the suites run side by side, not on top of each other.
WORKERS ?= 2
test test-all test-nightly: export OPENBLAS_NUM_THREADS = 1

.PHONY: install demo test test-all test-browser test-nightly test-pythons lint bench audit tutorials docs wheel clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dpregress needs Python 3.11 or newer")'
	@echo "Installing into $(VENV): one to two minutes the first time."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: install
	$(BIN)/dpregress experiment rand-health --out demo-out --overwrite

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The same every time: one fixed seed (DPREGRESS_TEST_SEED=N for another), and nothing that draws fresh noise.
test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow and not nightly'

# The collector's pages in the Chromium of the system; needs node, npm and chromium. test-all runs these tests as well
# where playwright-core is installed.
test-browser: install tests/browser/node_modules
	DPREGRESS_REQUIRE_ALL=1 $(BIN)/python -m pytest tests/collector/test_browser_noise.py tests/collector/test_browser_pages.py

tests/browser/node_modules: tests/browser/package.json
	npm install --prefix tests/browser --no-audit --no-fund
	touch $@

# With the long statistical tests, at the same seed.
test-all: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not nightly'

# Everything; what takes a seed at 20 fresh ones, each printed. About an hour and a half on two idle cores.
test-nightly: lint
	$(BIN)/python -m tests.nightly -n $(WORKERS)

# The suite without its long tests on every other Python that is there, each in an environment of its own in build/pythons.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
PIECES ?= tests
test-pythons:
	@for each in $(PYTHONS); do \
	  $$each -c '' 2>/dev/null || { echo "$$each is not here: left out"; continue; }; \
	  place=build/pythons/$$($$each -c 'import platform; print(platform.python_version())'); \
	  echo "$$each: $$place"; \
	  $$each -m venv $$place && \
	  $$place/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' && \
	  PATH=$$PWD/$$place/bin:$$PATH $$place/bin/python -m pytest -m 'not slow and not nightly' $(PIECES) || exit 1; \
	done

bench: install
	$(BIN)/python -m benchmarks.one_shot
	$(BIN)/python -m benchmarks.utility
	$(BIN)/python -m benchmarks.glm
	$(BIN)/python -m benchmarks.grid --jobs $(WORKERS)
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.engines
	$(BIN)/python -m benchmarks.databases
	$(BIN)/python -m benchmarks.cost_model
	$(BIN)/python -m benchmarks.local
	$(BIN)/python -m benchmarks.collector
	$(BIN)/python -m benchmarks.vertical
	$(BIN)/python -m benchmarks.marginals speed
	$(BIN)/python -m benchmarks.marginals accuracy
	$(BIN)/python -m benchmarks.multinomial
	$(BIN)/python -m benchmarks.exposure
	$(BIN)/python -m benchmarks.release
	$(BIN)/python -m benchmarks.float_sums
	$(BIN)/python -m benchmarks.other_libraries
	$(BIN)/python -m benchmarks.trust_models

# Attacks on whole fits: hours on an idle core. It goes on where it stopped; ANEW=--anew forgets earlier runs.
RUNS ?= 10000
audit: install
	$(BIN)/python -m benchmarks.audit --runs $(RUNS) $(ANEW)
	$(BIN)/python -m benchmarks.audit --page docs/privacy/audit.md

# Every tutorial is run as a notebook, with its checks: two to three minutes on two idle cores.
tutorials: install
	$(BIN)/python -m website.tutorials

# The site in build/site; a warning is an error. MkDocs' notice about its next version is not one.
docs: tutorials
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "Wrote build/site: open build/site/index.html, or run python3 -m http.server --directory build/site."

wheel: install
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) build dist demo-out .pytest_cache .mypy_cache .ruff_cache
