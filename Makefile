# streamnb's commands. `make help` lists them. Everything is installed into .venv, nothing elsewhere but the
# Kafka broker's jars, which are kept in a cache folder between checkouts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KAFKA_PORT ?= 9092

.DEFAULT_GOAL := help
.PHONY: help install demo test check format bench kafka kafka-stop clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

$(VENV)/.installed: pyproject.toml $(wildcard streamnb/_kernel/*.p*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[demo,test]'
	touch $@

install: $(VENV)/.installed  ## make .venv and install streamnb into it

demo: install  ## run the main job on a broker of its own: live scores, then a summary
	$(BIN)/streamnb demo --messages 1200

test: install  ## run the tests; with Java 17 and Maven also against a real broker
	$(BIN)/python -m pytest

check: install  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install  ## mend format and what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## print throughput beside a bare loop on the same broker, and figures beside the peers
	$(BIN)/python tests/bench/throughput.py
	$(BIN)/python tests/bench/streams.py

kafka:  ## assemble Apache Kafka from Maven Central and start it on loopback
	$(PYTHON) deploy/kafka/broker.py start --port $(KAFKA_PORT)

kafka-stop:  ## stop it
	$(PYTHON) deploy/kafka/broker.py stop

clean:  ## remove what was built here
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
