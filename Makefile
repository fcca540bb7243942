# Every target sets up what it needs: a private environment in .venv with the package installed in
# it. Python files under src/ are used in place; the native core is rebuilt when it has changed.

PYTHON ?= python3
# Warnings in the binding stop the build under CI only, so that a newer compiler stops no user.
WERROR ?= $(if $(CI),ON,OFF)

BIN := .venv/bin
MINIMUM := .venv-minimum/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
EDITABLE := --no-build-isolation --config-settings=cmake.define.MARGINWISE_WERROR=$(WERROR) -e
CORE := $(shell find cpp/include cpp/simd cpp/bind -type f 2>/dev/null)
PACKAGE := $(shell find src -name '*.py' 2>/dev/null)
STUB = $(wildcard .venv/lib/python3*/site-packages/marginwise/_core.pyi)

unexport PYTHONHOME PYTHONPATH
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs linkcheck quick test lint bench stubs clean stress tsan
.PHONY: test-browser test-minimum test-asreview

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: .venv/.plot ## run the demonstration
	@$(BIN)/python examples/demo.py

# Tests start many processes: what Python and pytest compile is stored.
PYTEST = $(BIN)/python -m compileall -q src && \
    PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --dist worksteal

quick: .venv/.dev ## run the quick tests of the package, in a minute or two
	@$(PYTEST) -m 'not (slow or browser or cluster or docs or stress)'

test: .venv/.dev ## test the core under sanitizers, then the package, without a browser
	@$(BIN)/cmake -S . -B build/sanitize -G Ninja --log-level=WARNING \
	    -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DMARGINWISE_TESTS=ON -DMARGINWISE_WERROR=ON >/dev/null
	@$(BIN)/ninja --quiet -C build/sanitize
	@$(BIN)/ctest --test-dir build/sanitize --output-on-failure --no-tests=error
	@$(PYTEST) -m 'not browser'

test-browser: .venv/.dev ## test the labelling page and the built documentation in Chromium
	@$(PYTEST) -m browser

# Warnings are errors, and so are references to names that do not exist.
SPHINX = $(BIN)/python -m sphinx -q -n -W --keep-going -j auto -d build/doctrees docs
docs: .venv/.docs ## build the documentation into build/docs
	@MPLBACKEND=Agg $(SPHINX) -b html build/docs
	@echo 'The documentation is in build/docs/index.html'

linkcheck: .venv/.docs ## check the links of the documentation to other sites; needs a network
	@$(SPHINX) -b linkcheck -D plot_gallery=0 build/linkcheck

# Pages, examples and attacks are tested with current versions only.
test-minimum: .venv-minimum/.built ## test the package with the minimum versions it declares
	@PYTHONDONTWRITEBYTECODE= $(MINIMUM)/python -m pytest -q -n auto --dist worksteal \
	    -m 'not (browser or docs or stress)' --ignore=tests/docs

# ASReview requires an older pandas than the other tests use.
test-asreview: .venv-asreview/.built ## test the classifier for ASReview in ASReview
	@.venv-asreview/bin/python -m pytest -q -n 0 tests/estimator/test_asreview.py

# SCALE=0.1 runs a tenth of the cases, ONLY=threads one attack; see python -m tests.stress --help.
SCALE ?= 1
stress: .venv/.dev ## attack the package: threads, interrupts, kills, files, problems (minutes)
	@$(BIN)/python -m tests.stress --scale $(SCALE) $(addprefix --only ,$(ONLY)) --json build/stress.json

# The interpreter is not instrumented: its runtime is loaded first, and address space is not
# randomised, as the runtime requires. Option -S leaves out the editable installation, so that the
# instrumented package is imported.
TSAN := build/tsan
TSAN_SITE = $(CURDIR)/$(TSAN)/site:$(wildcard $(CURDIR)/.venv/lib/python3*/site-packages)
TSAN_RUN = TSAN_OPTIONS="suppressions=$(CURDIR)/tests/stress/tsan.supp history_size=4 $(1)" \
    setarch -R
tsan: .venv/.dev ## look for data races: the core's tests and the thread attack
	@$(BIN)/cmake -S . -B $(TSAN)/tests -G Ninja --log-level=WARNING -DMARGINWISE_TESTS=ON \
	    -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DMARGINWISE_SANITIZE=thread \
	    -DCMAKE_CXX_FLAGS=-Wno-mismatched-new-delete >/dev/null
	@$(BIN)/ninja --quiet -C $(TSAN)/tests
	@$(call TSAN_RUN,halt_on_error=1) $(BIN)/ctest --test-dir $(TSAN)/tests --output-on-failure \
	    --no-tests=error
	@$(PIP) --no-build-isolation --no-deps --upgrade --target $(TSAN)/site \
	    --config-settings=build-dir=$(TSAN)/extension \
	    --config-settings=cmake.define.MARGINWISE_SANITIZE=thread \
	    --config-settings=install.strip=false .
	@rm -f $(TSAN)/race.*
	@PYTHONPATH=$(TSAN_SITE) LD_PRELOAD=$$($${CXX:-c++} -print-file-name=libtsan.so) \
	    $(call TSAN_RUN,log_path=$(CURDIR)/$(TSAN)/race exitcode=0) $(BIN)/python -S -m tests.stress \
	    --only threads --scale 0.1 --thread-seconds 3 --jobs 1
	@! cat $(TSAN)/race.* 2>/dev/null

lint: .venv/.dev ## check style, types, imports and spelling
	$(BIN)/ruff check -q
	$(BIN)/ruff format -q --check
	$(BIN)/mypy --no-error-summary
	find cpp -name '*.[ch]pp' -exec $(BIN)/clang-format --dry-run -Werror {} +
	$(BIN)/clang-tidy -p build/editable --quiet --extra-arg=-Wno-error cpp/bind/*.cpp cpp/simd/*.cpp
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/codespell

bench: .venv/.bench ## compare speed with other libraries
	@$(BIN)/python benchmarks/speed.py

stubs: .venv/.built ## accept the current interface of the native core as the reference
	cp $(STUB) tests/golden/_core.pyi.ref

clean: ## remove everything that was made here, the environment too
	rm -rf .venv .venv-minimum .venv-asreview build src/marginwise/_core.* .hypothesis .*_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    { echo 'marginwise needs Python 3.11 or newer; name one with make PYTHON=...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	    { echo 'marginwise needs the venv module of $(PYTHON) (on Debian: python3-venv)' >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv

# The interface stub goes beside the sources too, where mypy and editors look for it.
.venv/.built: .venv/pyvenv.cfg pyproject.toml CMakeLists.txt $(CORE)
	@for cxx in "$$CXX" c++ g++ clang++; do \
	    echo 'int main() { if (int i = 0; i) return i; }' | \
	        $$cxx -std=c++17 -x c++ -fsyntax-only - 2>/dev/null && exit 0; \
	done; echo 'marginwise needs a C++17 compiler; name one with CXX=...' >&2; exit 1
	@echo 'Building marginwise...'
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], "cmake", "ninja", sep="\n")' > .venv/build-requires.txt
	@$(PIP) -r .venv/build-requires.txt
	@$(PIP) $(EDITABLE) .
	@cp .venv/lib/python3*/site-packages/marginwise/_core.pyi src/marginwise/
	@touch $@

# An environment of its own, with the package as a user would install it.
.venv-minimum/.built: .venv/.built pyproject.toml CMakeLists.txt tests/minimum.py $(CORE) $(PACKAGE)
	@echo 'Installing the minimum versions...'
	@$(PYTHON) -m venv .venv-minimum
	@$(BIN)/python tests/minimum.py > .venv-minimum/minimum.txt
	@$(MINIMUM)/python -m pip install -qq --disable-pip-version-check -r .venv/build-requires.txt \
	    -r .venv-minimum/minimum.txt
	@$(MINIMUM)/python -m pip install -qq --disable-pip-version-check --no-build-isolation \
	    --config-settings=build-dir=build/minimum .
	@touch $@

# The packages of .venv, behind those that ASReview requires.
.venv-asreview/.built: .venv/.dev
	@echo 'Installing ASReview...'
	@$(PYTHON) -m venv .venv-asreview
	@for site in .venv-asreview/lib/python3*/site-packages; do \
	    echo "import site; site.addsitedir('$(CURDIR)/.venv$${site#.venv-asreview}')" > $$site/dev.pth; \
	done
	@.venv-asreview/bin/python -m pip install -qq --disable-pip-version-check 'asreview>=3.0,<4'
	@touch $@

# Without the package itself, which pip would build a second time.
.venv/.%: .venv/.built pyproject.toml
	@echo 'Installing the tools of [$*]...'
	@$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*p["dependencies"], *p["optional-dependencies"]["$*"], sep="\n")' > .venv/$*-requires.txt
	@$(PIP) -r .venv/$*-requires.txt
	@touch $@
