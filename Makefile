# streamnb's commands. `make help` lists them. Everything is installed into .venv, nothing elsewhere but the
# Kafka broker's jars, which are kept in a cache folder between checkouts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KAFKA_PORT ?= 9092
RUNS ?= 20000
SEED ?= 0
PLAIN_TESTS ?= tests/naive_bayes tests/oracles tests/laws/test_every_model.py tests/laws/test_traps.py tests/laws/test_traps_of_estimators.py
ASAN_TESTS ?= tests/naive_bayes/kernel tests/naive_bayes/statistics/test_counts.py tests/wire/test_template.py tests/wire/test_fields.py tests/transports/test_rows.py tests/transports/test_kafka_columns.py

# Python may write what it compiled, whatever the environment says: every worker and every command that the
# tests start would otherwise compile the same files again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test test-plain asan fuzz check format bench dist docs kafka kafka-stop clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

# pip's own compiling to bytecode takes longer than its downloads: Python compiles what it imports, and keeps it.
# setuptools warns at every build that its table of extension modules is experimental: that is known.
INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint .ci/constraints.txt

# What the demo needs is installed first, so that it is soon there. An install that was interrupted leaves no mark
# and is repeated.
$(VENV)/.demo: pyproject.toml setup.py .ci/constraints.txt $(wildcard streamnb/naive_bayes/_kernel/*.p[xy]? streamnb/wire/*.p[xy]? streamnb/transports/kafka/*.p[xy]?)
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[demo]'
	touch $@

# Not editable and not from `.`, or the modules would be compiled a second time: only packages are missing.
$(VENV)/.installed: $(VENV)/.demo
	$(INSTALL) 'streamnb[demo,test]'
	touch $@

install: $(VENV)/.installed  ## make .venv and install streamnb into it, with what the tests need

demo: $(VENV)/.demo  ## run the main job on a broker of its own: live scores, then a summary
	$(BIN)/streamnb demo --messages 1200

# `-n auto` is two workers more than there are cores, and the longest files come first: see tests/conftest.py.
SPREAD := -n auto --dist loadfile --no-loadscope-reorder

test: install  ## run the tests; with Java 17 and Maven also against a real broker
	$(BIN)/python -m pytest $(SPREAD)

test-plain: install  ## run the tests of the models again without the compiled kernel
	STREAMNB_PURE=1 $(BIN)/python -m pytest $(SPREAD) -m 'not kafka' $(PLAIN_TESTS)

# Built from a copy, so that nothing here is replaced. Python's own allocator would hide overruns, and the
# sanitizer keeps what was freed and takes terabytes of addresses, so the tests of how much memory is held, or of what
# happens when a limit of addresses is reached, say nothing under it.
asan: install  ## run the kernel's tests with the kernel under AddressSanitizer
	@set -e; at=$$(mktemp -d); trap 'rm -rf "$$at"' EXIT; \
	mkdir "$$at/copy"; cp -r streamnb tests setup.py pyproject.toml README.md LICENSE "$$at/copy"; \
	find "$$at"/copy/streamnb -name '*.so' -delete -o -name '*.c' -delete; \
	CFLAGS="-fsanitize=address -fno-omit-frame-pointer" LDFLAGS=-fsanitize=address \
		$(CURDIR)/$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir "$$at" "$$at/copy"; \
	$(CURDIR)/$(BIN)/python -m zipfile -e "$$at"/*.whl "$$at/copy"; cd "$$at/copy"; \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc $(CURDIR)/$(BIN)/python -m pytest $(ASAN_TESTS) -k 'not keeps_its_memory and not give_their_memory and not memory_runs_out'

fuzz: install  ## feed random messages, record batches and JSON to both twins: make fuzz RUNS=100000 SEED=1
	$(BIN)/python -m tests.fuzz.kernel --runs $(RUNS) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.kafka_batches --runs $(RUNS) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.json_records --runs $(RUNS) --seed $(SEED)

check: install  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install  ## fix the format, and what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## print throughput beside a bare loop on the same broker, speed and figures beside the peers
	$(BIN)/python tests/bench/throughput.py
	$(BIN)/python tests/bench/decoding.py
	$(BIN)/python tests/bench/latency.py
	$(BIN)/python tests/bench/consume.py
	$(BIN)/python tests/bench/produce.py
	$(BIN)/python tests/bench/recovery.py
	$(BIN)/python tests/bench/kernel.py
	$(BIN)/python tests/bench/streams.py
	$(BIN)/python tests/bench/posterior.py
	$(BIN)/python tests/bench/forgetting.py
	$(BIN)/python tests/bench/estimators.py
	$(BIN)/python tests/bench/discriminant.py
	$(BIN)/python tests/bench/stress.py
	$(BIN)/python tests/bench/halves.py
	$(BIN)/python tests/bench/partitions.py
	$(BIN)/python tests/bench/robustness.py
	$(BIN)/python tests/bench/trust_speed.py
	$(BIN)/python tests/bench/metsis2006.py
	$(BIN)/python tests/bench/mccallum_nigam1998.py

# The wheel is built from the sdist, which shows that the sdist is whole.
$(VENV)/.dist: $(VENV)/.demo
	$(INSTALL) build
	touch $@

dist: $(VENV)/.dist  ## build an sdist, and from it a wheel that installs without a compiler, into dist
	rm -rf dist
	PYTHONWARNINGS=ignore $(BIN)/python -m build --outdir dist

# Only what an `__all__` names is public; the compiled parts and the command line are not.
$(VENV)/.docs: $(VENV)/.installed
	$(INSTALL) 'streamnb[docs]'
	touch $@

# A warning is an error, but for named tuples, whose annotations pdoc cannot look up.
PUBLIC := errors base naive_bayes wire storage evaluation engine config transports.memory transports.jsonl transports.kafka
docs: $(VENV)/.docs  ## write the API reference from the docstrings into build/docs
	$(BIN)/python -W error::UserWarning -W "ignore:Error parsing type annotation ForwardRef:UserWarning" \
		-m pdoc --docformat numpy --output-directory build/docs $(addprefix streamnb.,$(PUBLIC))

kafka:  ## assemble Apache Kafka from Maven Central and start it on loopback
	$(PYTHON) deploy/kafka/broker.py start --port $(KAFKA_PORT)

kafka-stop:  ## stop it
	$(PYTHON) deploy/kafka/broker.py stop

clean:  ## remove what was built here
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
