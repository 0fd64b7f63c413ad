# Every target that a developer needs. "make" alone lists them.
.DEFAULT_GOAL := help
.PHONY: help run up test lint bench sim fuzz mutants replay generate

LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# Where "make up" keeps its data. Exported, so that recipes are run without a shell between make and script:
# a signal to make then reaches the script, which ends its servers.
RUN_DIR ?= .run
export RUN_DIR

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Run the server with a demo room; needs Go alone, keeps nothing
	QM_DEMO=1 go run ./cmd/qm

up: ## Run the server on a Postgres and a Valkey of its own; data is kept in RUN_DIR (.run)
	@scripts/up.sh

test: ## Run every test against the real parts (Postgres, Valkey, Chromium, nginx, Node …); installs what is missing
	@scripts/test.sh

lint: ## Run the linters
	go run $(LINT) run

bench: ## Measure this machine: joins, polls, checks and streams beside bare baselines
	go run ./cmd/qm-load bench

sim: ## Run the long simulation (CHECKS=5000 random histories with faults)
	@scripts/sim.sh

fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@scripts/fuzz.sh

mutants: ## Check that the tests kill each curated one-edit bug
	go run ./internal/mutants

replay: ## Verify the recorded journals in testdata/journals
	@scripts/replay.sh

generate: ## Make generated code and golden files again
	@scripts/generate.sh
