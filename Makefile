# `make help` lists what there is. Needs Python >= 3.11 and make, nothing else: .venv is made on first use and holds the runtime alone
# until a target for contributors (test, check, bench, ...) adds its tools.
# An optimised build of Python is preferred; PYTHON=/path/to/python chooses another interpreter, ARGS="--port 9000" passes arguments on.

.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
VENV_DOCS := .venv-docs
VENV_AUDIT := .venv-audit
VENV_BUILD := .venv-build
VENV_RUNTIME := .venv-runtime
READY_RUNTIME := $(VENV_RUNTIME)/.ready
READY_DOCS := $(VENV_DOCS)/.ready
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
ARGS :=

# tests start hundreds of processes, which would compile everything anew; an empty value is as none
test test-core test-fast soak fuzz: export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install run demo test test-core test-fast check bench soak fuzz wheel dist licences audit clean client docs pictures findings

help: ## what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

install: $(READY) ## the environment of the service alone

run: $(READY) ## the service, on DATABASE_URL or on the embedded database
	@exec $(BIN)/statesvc up $(ARGS)

demo: $(READY) ## the service, with sample carriers posting and a sample subscriber listening
	@exec $(BIN)/statesvc up --demo $(ARGS)

test: $(READY_DEV) ## all tests; ARGS="-n 0 -k name" for a few
	@$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)

test-fast: $(READY_DEV) ## pure and database tests, without those marked slow
	@STATESVC_HYPOTHESIS=fast $(BIN)/python -m pytest -n 4 --dist worksteal -m 'not soak and not slow' $(ARGS)

test-core: $(READY_DEV) ## the tests of the core: without add-ons, carriers' payloads, whole installations and what is marked slow
	@STATESVC_HYPOTHESIS=fast $(BIN)/python -m pytest -n 4 --dist worksteal -m 'not soak and not slow' tests/projections tests/statesvc tests/migrations tests/test_*.py $(ARGS)

check: $(READY_DEV) ## lint, format, types, import rules, the schema only grew, public code lists are covered
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.schema_check
	$(BIN)/python -m tests.code_lists
	@if [ -d tests/node/node_modules ]; then npm --prefix tests/node run --silent openapi-lint; \
	elif [ -n "$$CI" ]; then echo 'npm ci --prefix tests/node first' >&2; exit 1; \
	else echo 'OpenAPI is not linted: `npm ci --prefix tests/node` brings Spectral and Redocly'; fi
	$(BIN)/python -m pytest -n 0 tests/events/test_schema.py

client: $(READY_DEV) ## the OpenAPI document for the clients, and the generated parts of the Python client
	@$(BIN)/python -m tests.openapi_document clients/openapi.json
	@$(BIN)/python clients/python/generate.py

bench: $(READY_DEV) ## the numbers, side by side with peers and limits; ARGS=--help says more
	@exec $(BIN)/python -m tests.bench $(ARGS)

soak: $(READY_DEV) ## long runs under load and failures (tests marked soak)
	@$(BIN)/python -m pytest -m soak -s $(ARGS)

fuzz: $(READY_DEV) ## 60 s of mutated messages for each carrier, then the property tests; ARGS="ups --seconds 10" for one
	@$(BIN)/python -m tests.fuzz $(ARGS)
	@[ -n "$(ARGS)" ] || STATESVC_HYPOTHESIS=fuzz $(BIN)/python -m pytest -m hypothesis -n 2 --timeout 0

findings: ## check that surprises of other libraries are still there (installs packages; minutes)
	@for script in findings/*.sh; do "$$script" || { echo "$$script" >&2; exit 1; }; done

pictures: $(READY_DEV) ## the pictures of the pages, of a demo; needs Chromium and pdftoppm
	@$(BIN)/python -m tests.pictures

wheel: ## dist/statesvc-....whl and the source distribution; needs neither the service's packages nor the tools
	@[ -x $(VENV_BUILD)/bin/hatchling ] || { $(or $(PYTHON),python3) -m venv --clear $(VENV_BUILD) && $(VENV_BUILD)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling; }
	@$(VENV_BUILD)/bin/hatchling build

dist: $(READY_DEV) $(READY_RUNTIME) ## the files of a release in dist/, from the last commit: packages, clients, installation files, bill of materials, checksums
	@[ -d tests/node/node_modules/openapi-typescript ] || npm ci --silent --prefix tests/node
	@$(BIN)/python -m deploy.packaging.artefacts

licences: $(READY_DEV) $(READY_RUNTIME) ## the table of licences in docs/dependencies.md
	@{ sed '/^<!-- make licences/q' docs/dependencies.md; $(BIN)/pip-licenses --python $(VENV_RUNTIME)/bin/python --from=mixed --format=markdown --no-version; echo '<!-- end -->'; } >$(VENV_RUNTIME)/page.md
	@mv $(VENV_RUNTIME)/page.md docs/dependencies.md

audit: $(READY_DEV) $(READY_RUNTIME) ## known faults of the packages that it runs with, by a public database
	@[ -x $(VENV_AUDIT)/bin/pip-audit ] || { $(BIN)/python -m venv --clear $(VENV_AUDIT) && $(VENV_AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; }
	@$(VENV_AUDIT)/bin/pip-audit --path $(VENV_RUNTIME)/lib/python*/site-packages --strict $(ARGS)

docs: $(READY_DOCS) ## the pages as a site in site/, to be read from there or served; fetches nothing
	@NO_MKDOCS_2_WARNING=1 $(VENV_DOCS)/bin/mkdocs build --quiet --strict --config-file deploy/site/mkdocs.yml
	@echo 'site/index.html'

clean: ## removes the environment and caches, never data
	rm -rf $(VENV) $(VENV_DOCS) $(VENV_AUDIT) $(VENV_BUILD) $(VENV_RUNTIME) site .venv-bench .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(READY): pyproject.toml constraints.txt
	@set -e; \
	usable() { "$$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }; \
	optimised() { "$$1" -c 'import sys, sysconfig; sys.exit(sys.base_prefix != "/usr" and "--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""))'; }; \
	if ! usable $(BIN)/python; then \
		found=; \
		for candidate in "$(PYTHON)" python3.13 python3.12 python3.11 python3 /usr/bin/python3 python3.14; do \
			if [ -n "$$candidate" ] && usable "$$candidate"; then \
				found=$${found:-$$candidate}; \
				if [ -n "$(PYTHON)" ] || optimised "$$candidate"; then found=$$candidate; break; fi; \
			fi; \
		done; \
		if [ -z "$$found" ]; then \
			echo 'statesvc needs Python 3.11 or later with venv (Debian: python3-venv); say where it is with PYTHON=...' >&2; exit 2; \
		fi; \
		"$$found" -m venv --clear $(VENV); \
	fi; \
	echo 'Installing into $(VENV) (pinned in constraints.txt) ...'; \
	$(PIP_INSTALL) -e '.[all]'; \
	touch $@

$(READY_DEV): $(READY)
	@echo 'Adding the tools of tests and checks to $(VENV) ...'
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $@

# the packages that a user may choose, without statesvc and without tools: bill of materials, licences, audit
# without spark: 450 MB for two packages
$(READY_RUNTIME): $(READY) pyproject.toml constraints.txt
	@echo 'Installing into $(VENV_RUNTIME) ...'
	@$(BIN)/python -m venv --clear --without-pip $(VENV_RUNTIME)
	@extras=$$($(BIN)/python -c 'import tomllib; print(*(set(tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]) - {"dev", "spark"}), sep=",")') && \
	$(BIN)/python -m pip --python $(VENV_RUNTIME)/bin/python install --quiet --disable-pip-version-check -c constraints.txt ".[$$extras]"
	@$(BIN)/python -m pip --python $(VENV_RUNTIME)/bin/python uninstall --quiet --yes statesvc
	@touch $@

$(READY_DOCS): $(READY) deploy/site/requirements.txt
	@echo 'Installing into $(VENV_DOCS) ...'
	@$(BIN)/python -m venv --clear $(VENV_DOCS)
	@$(VENV_DOCS)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r deploy/site/requirements.txt
	@touch $@
