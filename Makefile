# Every target sets up what it needs, in a virtual environment (.venv): `demo` the package with what it needs to run,
# `test` the test tools, `matrix` and `bench` all functions of engine native, `lint` the linters. Needs Python 3.10+
# with its headers and a C++20 compiler; cmake and ninja, where the machine has none, come from the package index.

SHELL := bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
CXX ?= c++
# Some tests wait for something: one more than there are processors.
JOBS ?= $(shell n=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN); echo $$((n < 2 ? 3 : n + 1)))
CONSTRAINTS ?= constraints.txt
# The oldest supported versions of what the package needs: the lower bounds of pyproject.toml.
OLDEST := $(shell sed -n 's/^dependencies = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '",' | sed 's/>=/==/g')
# Else every worker of every run translates all tests again, wherever the user has switched this off.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup
TESTS := $(VENV)/.setup-test
LINTERS := $(VENV)/.setup-lint
DOCS := $(VENV)/.setup-docs
PACKAGES := $(VENV)/packages
FULL := $(VENV)/.setup-full
# Compiled functions of engine native: those that examples use, or all (native); see CMakeLists.txt.
PACKS ?= $(if $(wildcard $(FULL)),native,usual)
NATIVE := $(shell find native -type f -name '*.[ch]pp' -o -path 'native/include/pto/*.h')
NATIVE_TESTS := $(wildcard tests/native/programs/*.?pp)
SANITIZED := build/sanitize/test_kernels
SANITIZERS := -std=c++20 -O1 -g -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover=all -ffp-contract=off \
  -Inative/include

.PHONY: FORCE help setup setup-test generate demo test smoke mutants fuzz emitted oldest newest matrix lint format bench validate prove-corpus docs sanitize sanitize-asan sanitize-tsan wheel platforms clean
help:
	@echo 'make demo      run the examples'
	@echo 'make test      run the tests (ARGS=... goes to pytest)'
	@echo 'make smoke     a minute of tests: one path through everything'
	@echo 'make lint      format check, linter, type checker'
	@echo 'make setup     environment in $(VENV), package installed for development; setup-test: with the test tools'
	@echo 'make generate  headers and stubs from the instruction table, after a change of it (the build runs it, too)'
	@echo 'make fuzz      property tests with fresh seeds (MINUTES=10), and how to replay what fails'
	@echo 'make mutants   which test files find planted faults (N=300): hours on a small machine'
	@echo 'make emitted   sanitizers of C++: the whole corpus as emitted C++, kernels under 200 schedules'
	@echo 'make oldest    the tests with the oldest supported versions (PYTHON=python3.10); newest: with the newest'
	@echo 'make matrix    the tests with every case of what make test samples: instructions, element types, layouts, codes'
	@echo 'make format    rewrite files in the house format'
	@echo 'make bench     benchmarks, as ratios against peers measured in the same run'
	@echo 'make prove-corpus  verdicts of pto prove on planted faults, examples and mutants: half an hour'
	@echo 'make docs      documentation in site/'
	@echo 'make vscode    the extension of VS Code, dist/pto.vsix'
	@echo 'make edits     random edits in the language server (N=10000)'
	@echo 'make sanitize  native tests under the address, undefined-behaviour and thread sanitizers (SEEDS=1000)'
	@echo 'make wheel     a wheel in dist/, with all functions of engine native: ten minutes'
	@echo 'make platforms make demo on distributions, interpreters and compilers, as root: half an hour (ARGS=--list)'
	@echo 'make clean     remove everything that was made'

# `python -m venv` compiles all modules of pip, which takes longer than all else that is installed: pip is unpacked here
# instead, from the wheel that comes with Python.
define NEW_VENV
import ensurepip, pathlib, sys, venv, zipfile
folders = (getattr(ensurepip, "_WHEEL_PKG_DIR", None), pathlib.Path(ensurepip.__file__).parent / "_bundled")
wheels = [w for f in folders if f for w in sorted(pathlib.Path(f).glob("pip-*.whl"))]
venv.create(sys.argv[1], with_pip=not wheels, symlinks=True)
if wheels:
    (packages,) = pathlib.Path(sys.argv[1]).glob("lib/python*/site-packages")
    zipfile.ZipFile(wheels[0]).extractall(packages)
    script = pathlib.Path(sys.argv[1], "bin/pip")
    script.write_text('#!/bin/sh\nexec "$$(dirname "$$0")/python" -m pip "$$@"\n')
    script.chmod(0o755)
endef
export NEW_VENV

$(BIN)/python:
	@! command -v $(PYTHON) >/dev/null || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "error: expected Python 3.10 or newer, got " + sys.version.split()[0] + "\nhelp: make PYTHON=python3.12 ..")'
	@missing=; \
	  $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing+=' python3-venv'; \
	  $(PYTHON) -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || missing+=' python3-dev'; \
	  command -v $${CXX:-c++ g++ clang++} >/dev/null || missing+=' g++'; \
	  [ -z "$$missing" ] || { echo "error: cannot build pto: missing$$missing" >&2; \
	  echo "help: apt install$$missing (Debian, Ubuntu), or make PYTHON=.. CXX=.. with others; a wheel needs no compiler (README.md)" >&2; exit 1; }
	@echo 'make: creating $(VENV)'
	@$(PYTHON) -c "$$NEW_VENV" $(VENV) || { rm -rf $(VENV); exit 1; }

# pip reads the pins from the environment.
PIP := $(if $(CONSTRAINTS),PIP_CONSTRAINT=$(CONSTRAINTS)) $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Those of the machine, where it has them.
BUILD_TOOLS = $(if $(shell echo 'cmake_minimum_required(VERSION 3.18)' | cmake -P /dev/stdin 2>&1 || echo no),cmake) \
  $(if $(shell ninja --version >/dev/null 2>&1 || echo no),ninja)

# Build the native part with the tools of the environment: pip's own build environments have other paths each time, and
# then everything is compiled again. What is compiled, n of m, is shown; all of it is in setup.log.
# The environment names the pack: pip 22.0 has no --config-settings.
define INSTALL
@echo 'make: building the native part ($(1) functions of engine native)'
@PATH="$(CURDIR)/$(BIN):$$PATH" SKBUILD_CMAKE_DEFINE='PTO_PACKS=$(1);PTO_NANOBIND_BACKEND=ON' \
  $(PIP:--quiet=-v) --no-build-isolation -e $(2) 2>&1 \
  | tee $(VENV)/setup.log | sed -nu -e 's,\([^/]*\)\.dir/Unity/unity_[^/]*\.o$$,/\1,; /Re-checking/d' \
    -e 's,^ *\(\[[1-9][0-9]*/[0-9]*\]\) \([A-Z][a-z]*\).*[/ ]\([^/ ]*\)$$,  \1 \2 \3,p' \
  || { tail -n 40 $(VENV)/setup.log; echo 'error: cannot build pto: $(VENV)/setup.log has all output' >&2; exit 1; }
endef

# The editable installation has a map from modules to files. It is wrong after a change of packages: the build, which
# imports src/pto, must not use it then.
$(PACKAGES): FORCE | $(BIN)/python
	@find src/pto -name __init__.py | sort | cmp -s - $@ || \
	  { rm -f $(VENV)/lib/python*/site-packages/_editable_skbc_pto.*; find src/pto -name __init__.py | sort > $@; }

# Install what an extra of pyproject.toml names, without pto itself.
EXTRA = sed -n '/^$(1) = \[/,/^\]/s/^  "\(.*\)",.*/\1/p' pyproject.toml | $(PIP) -r /dev/stdin

$(SETUP): pyproject.toml CMakeLists.txt $(CONSTRAINTS) $(NATIVE) src/pto/image/every_call.py $(PACKAGES) | $(BIN)/python
	@echo 'make: installing what the package needs into $(VENV)'
	@$(PIP) numpy ml_dtypes & numpy=$$!; \
	  $(PIP) 'scikit-build-core>=0.10' 'nanobind>=3' nanobind-backend $(BUILD_TOOLS) && wait $$numpy
	$(call INSTALL,$(PACKS),.)
	@touch $@

$(TESTS): $(SETUP)
	@echo 'make: installing the test tools into $(VENV)'
	@$(call EXTRA,test)
	@$(BIN)/python -m compileall -q -j 0 src/pto
	@touch $@

$(FULL): $(TESTS)
	$(call INSTALL,native,.)
	@touch $@

$(LINTERS): $(SETUP)
	@echo 'make: installing the linters into $(VENV)'
	@$(call EXTRA,lint)
	@touch $@

$(DOCS): $(SETUP)
	$(PIP) mkdocs mkdocs-material
	@touch $@

setup: $(SETUP)
setup-test: $(TESTS)

# Not after a set-up, which builds from these files.
generate: | $(BIN)/python
	PYTHONPATH=src $(BIN)/python -m pto.codegen
	PYTHONPATH=src $(BIN)/python -m pto.language.stub

demo: $(SETUP)
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: $(TESTS)
	$(BIN)/python -m pytest -n $(JOBS) -q $(ARGS)

# Reading, checking and running on every engine, compiled C++, a graph, the language, ranks, tuning, debugger, pages.
SMOKE := tests/test_layers.py tests/test_no_eval.py tests/test_public_face.py tests/test_driver.py tests/isa/test_table.py tests/golden \
  tests/verify/test_structure.py tests/engine/test_registry.py tests/cli/test_doctor.py::test_this_machine_is_fine \
  tests/cli/test_run.py tests/docs/test_examples.py::test_run 'tests/docs/test_snippets.py::test_page[README.md]' \
  tests/engine/test_ranks.py::test_processes_of_ranks tests/language/test_tasks.py::test_every_way_of_running \
  tests/runtime/test_examples.py::test_the_command_says_so tests/tune/test_tune.py::test_the_tool \
  tests/debug/test_prompt.py::test_commands_from_a_file
smoke: $(TESTS)
	$(BIN)/python -m pytest -n 2 -q $(SMOKE)

N ?= 300
mutants: $(TESTS)
	$(BIN)/python -m tests.mutants baseline
	$(BIN)/python -m tests.mutants run -n $(N)

MINUTES ?= 10
fuzz: $(TESTS)
	$(BIN)/python -m tests.fuzz.rounds --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) -- $(ARGS)

# Reports of all programs of the corpus and of the C++ emitted for them; C++ kernels under 200 schedules each.
emitted: $(TESTS)
	PTO_TEST_EMITTED=1 PTO_TEST_SCHEDULES=200 $(BIN)/python -m pytest -n $(JOBS) -q tests/sanitize/test_emitted.py tests/sanitize/test_cpp.py tests/sanitize/test_removed.py tests/sanitize/test_removed_lines.py tests/engine/cpp/test_record.py

oldest:
	$(MAKE) setup-test VENV=build/oldest PYTHON=$(or $(filter-out python3,$(PYTHON)),python3.10)
	build/oldest/bin/python -m pip install --quiet --disable-pip-version-check $(OLDEST)
	$(MAKE) test VENV=build/oldest

newest:
	rm -rf build/newest
	$(MAKE) setup-test VENV=build/newest CONSTRAINTS=
	@echo 'newer than constraints.txt:'
	@build/newest/bin/python -m pip freeze --exclude-editable | sed 's/-/_/g' | sort > build/newest/versions
	@sed 's/;.*//; s/-/_/g' constraints.txt | grep == | sort | comm -13 - build/newest/versions
	$(MAKE) test VENV=build/newest CONSTRAINTS=

matrix: $(FULL)
	PTO_TEST_MATRIX=1 $(BIN)/python -m pytest -n $(JOBS) -q $(ARGS)

lint: $(LINTERS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.wording
	$(BIN)/basedpyright --pythonpath $(BIN)/python --level error
	@echo clang-format --dry-run; $(BIN)/clang-format --dry-run --Werror $(NATIVE) $(NATIVE_TESTS)

format: $(LINTERS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(NATIVE) $(NATIVE_TESTS)

# ARGS="planted slots --mutants 10" makes it shorter; ARGS=--help lists the options.
prove-corpus: $(TESTS)
	$(BIN)/python -m tests.proof.corpus $(ARGS)

validate: $(TESTS)
	$(BIN)/python -m tests.perf.validate $(ARGS)

bench: export PTO_NATIVE_COMPILE = always
bench: $(FULL)
	@for b in bench/bench_*.py; do echo "== $$b"; $(BIN)/python $$b || exit 1; done

vscode: $(SETUP)
	$(BIN)/python editors/vsix.py dist/pto.vsix

edits: N := 10000
edits: $(TESTS)
	PYTHONPATH=. $(BIN)/python -m tests.lsp.fuzz --edits $(N)

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python docs/check.py site

KERNELS := convert engine
SANITIZED_PARTS := $(KERNELS:%=build/sanitize/%.o)
ifeq ($(shell uname -m),x86_64)
SANITIZERS += -DPTO_HAVE_AVX2
SANITIZED_PARTS += $(KERNELS:%=build/sanitize/%.avx2.o)
endif

build/sanitize/%.o: native/kernels/%.cpp $(NATIVE)
	@mkdir -p $(@D)
	$(CXX) $(SANITIZERS) -c $< -o $@

build/sanitize/%.avx2.o: native/kernels/%.cpp $(NATIVE)
	@mkdir -p $(@D)
	$(CXX) $(SANITIZERS) -DPTO_ISA=avx2 -mavx2 -mfma -c $< -o $@

$(SANITIZED): tests/native/programs/test_kernels.cpp $(SANITIZED_PARTS)
	$(CXX) $(SANITIZERS) $^ -o $@

# The task runtime, all three variants: every test once with the address and once with the thread sanitizer. In
# the second, fences are not understood (-Wno-tsan): what they order is atomic anyway, so no race is missed or
# invented. Orchestrations in shared objects are sanitized too.
RUNTIME_SOURCES := $(shell find native/runtime native/include -type f)
RUNTIME_PARTS := $(patsubst native/runtime/%.cpp,%,$(wildcard native/runtime/*/*.cpp))
RUNTIME_TESTS := stress_parts stress_engine stress_libraries fuzz_runtime fuzz_graph test_runtime
RUNTIME_FLAGS := -std=c++20 -O1 -g -Wall -Wextra -Inative/include -Inative/include/pto2/tensormap_and_ringbuffer \
  -Inative/runtime
# The virtual machine of engine native, in one file with the images that test it.
VM_FLAGS := -std=c++20 -O1 -g -Wall -Wextra -Wno-unused -Inative/include -Inative/vm -DPTO_CPU_OPEN -DPTO_CPU_LIBRARY
RUNTIME_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
RUNTIME_tsan := -fsanitize=thread -Wno-tsan
SEEDS ?= 1000
SEEDS_asan := 10000
SEEDS_tsan := $(SEEDS)
LIBRARIES := host_vector device_vector vector_dag clusters
VARIANT_host_vector := host_build_graph
VARIANT_device_vector := aicpu_build_graph
VARIANT_vector_dag := tensormap_and_ringbuffer
VARIANT_clusters := tensormap_and_ringbuffer

define SANITIZED_RUNTIME
build/sanitize/$(1)/%.o: native/runtime/%.cpp $$(RUNTIME_SOURCES)
	@mkdir -p $$(@D)
	$$(CXX) $$(RUNTIME_FLAGS) $$(RUNTIME_$(1)) -c $$< -o $$@

build/sanitize/$(1)/test_runtime: tests/native/programs/test_runtime_runs.cpp
build/sanitize/$(1)/%: tests/native/programs/%.cpp $$(RUNTIME_PARTS:%=build/sanitize/$(1)/%.o) $$(wildcard tests/native/programs/*.hpp)
	$$(CXX) $$(RUNTIME_FLAGS) $$(RUNTIME_$(1)) $$(filter-out %.hpp,$$^) -o $$@ -pthread -ldl

build/sanitize/$(1)/test_vm: tests/native/programs/test_vm.cpp $$(NATIVE)
	@mkdir -p $$(@D)
	$$(CXX) $$(VM_FLAGS) $$(RUNTIME_$(1)) $$< -o $$@ -pthread

build/sanitize/$(1)/%.so: tests/runtime/headers/%.cpp $$(RUNTIME_SOURCES)
	@mkdir -p $$(@D)
	$$(CXX) -std=c++17 -O1 -g -shared -fPIC -fno-gnu-unique $$(RUNTIME_$(1)) -Inative/include/pto2/$$(VARIANT_$$*) \
	  -Inative/include/pto2/platform $$< -o $$@

sanitize-$(1): build/sanitize/$(1)/test_vm $$(RUNTIME_TESTS:%=build/sanitize/$(1)/%) $$(LIBRARIES:%=build/sanitize/$(1)/%.so)
	./build/sanitize/$(1)/test_vm
	./build/sanitize/$(1)/test_runtime
	./build/sanitize/$(1)/stress_parts
	./build/sanitize/$(1)/stress_engine
	./build/sanitize/$(1)/stress_libraries build/sanitize/$(1)
	./build/sanitize/$(1)/fuzz_runtime 0 $$(SEEDS_$(1))
	./build/sanitize/$(1)/fuzz_graph 0 $$(SEEDS_$(1))
	@set -e; for fuzz in fuzz_runtime fuzz_graph; do for threads in 1 2 4; do \
	  echo "./build/sanitize/$(1)/$$$$fuzz 0 $(SEEDS) $$$$threads"; \
	  ./build/sanitize/$(1)/$$$$fuzz 0 $(SEEDS) $$$$threads; \
	  ./build/sanitize/$(1)/$$$$fuzz 0 $(SEEDS) $$$$threads virtual; done; done

.PRECIOUS: build/sanitize/$(1)/%.o
endef
$(foreach sanitizer,asan tsan,$(eval $(call SANITIZED_RUNTIME,$(sanitizer))))

sanitize: $(SANITIZED) sanitize-asan sanitize-tsan
	./$(SANITIZED)

wheel: | $(BIN)/python
	@$(PIP) build
	$(if $(CONSTRAINTS),PIP_CONSTRAINT=$(CONSTRAINTS)) $(BIN)/python -m build --wheel

# As root, for chroots. Needs debootstrap, and no set-up: a row has one of its own.
platforms:
	$(PYTHON) tests/platforms.py $(ARGS)

clean:
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
