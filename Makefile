# Two commands are enough: `make demo` and `make test`. Each sets up what it needs and finds it done the next time.
# Variables: TESTS="tests/unit -k lineage" (some tests instead of the fast tier), STACK=containers (on which Kafka and
# Postgres), ARGS="--set processor.linger_ms=5" (for the demo), PYTHON=python3.12.

BIN := .venv/bin
TESTS ?=
STACK ?= embedded
ARGS ?=
PLUGIN := connect-configs/plugin
CLASSES := .waitreg/spark-classes.jsa
# The order of the tests is tests/conftest.py's.
WORKERS := -n 4 --no-loadscope-reorder
VERDICT := $(BIN)/python -m tests.verdict
# Not $(MAKE) in a recipe: make -n would run its whole line.
SUBMAKE := $(MAKE) -s

# $(call step,name,command): a failing step says which one it was.
step = printf '\n== %s\n' '$(1)' && $(2) || { printf '\nmake check: the step "%s" failed (%s)\n' '$(1)' '$(2)' >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help setup jars gate-tools release-tools tier-tests flaky release-tests release-check connect plugin prometheus grpc-node oidc-provider schema-registry browser pgbouncer screenshots demo test check coverage chaos incident compose-test mutants mutation simulate bench bench-peers fuzz audit lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## the virtual environment, exactly as locked
	@sh setup/environment.sh

jars: setup ## the jars of Spark's Kafka source and of the embedded broker, verified
	@$(BIN)/python -m wait_registry.java.fetching fetch

# Starts of Spark take the tests half the time with it; made once, in a quarter of a minute.
$(CLASSES): requirements.txt tests/support/class_archive.py | jars
	@$(BIN)/python -m tests.support.class_archive $@

connect: jars plugin ## a Kafka Connect worker with this project's plugin, for its tests
	@$(BIN)/python -m wait_registry.java.fetching fetch connect debezium-jdbc debezium-postgres

plugin: $(PLUGIN)/target/verified ## the jar with the Connect converter and transforms, built and tested by Maven

$(PLUGIN)/target/verified: $(PLUGIN)/pom.xml $(PLUGIN)/checkstyle.xml $(shell find $(PLUGIN)/src -type f) $(wildcard tests/vectors/*.json)
	@command -v mvn >/dev/null || { echo 'make plugin: saw no mvn, expected Apache Maven 3.8 or newer. Install it' >&2; exit 1; }
	@mvn -B -q -f $(PLUGIN)/pom.xml verify
	@touch $@

prometheus: ## Prometheus and promtool for the tests of alerts and dashboard
	@sh setup/prometheus.sh

grpc-node: ## gRPC for Node, for the tests of the gRPC handler with a service that isn't Python
	@sh setup/node_packages.sh grpc_node

oidc-provider: ## an OpenID provider on Node, for the tests of logins to the console
	@sh setup/node_packages.sh oidc_provider

schema-registry: ## a schema registry for the tests of typed handlers
	@sh setup/schema_registry.sh

pgbouncer: ## a pooler for the tests of connections behind one
	@sh setup/pgbouncer.sh

browser: ## Chromium for the tests of the console in a browser
	@sh setup/browser.sh

screenshots: jars browser ## the pictures of the console in docs/img, taken again
	@$(BIN)/pytest -q --screenshots tests/integration/console/test_screenshots.py

demo: jars ## watch it work: real Kafka, Spark and Postgres, a crash, and the reconciliation
	@$(BIN)/waitreg demo $(ARGS)

test: ## the fast tier on 2 cores: real Kafka, Postgres and Spark; TESTS= runs those instead, STACK=containers in Docker
ifeq ($(TESTS),)
	@python=$$(sh setup/prerequisites.sh) && "$$python" setup/phases.py \
		downloads 'sh setup/environment.sh download' set-up 'sh setup/environment.sh' \
		downloads '$(SUBMAKE) jars' set-up '$(SUBMAKE) $(CLASSES)' \
		tests '$(VERDICT) $(WORKERS) --stack=$(STACK) --tier fast tests'
else
	@$(SUBMAKE) jars $(CLASSES)
	@$(BIN)/pytest --stack=$(STACK) $(TESTS)
endif

check: setup ## the gate: format, lint, types, import contracts, audit, `make test`, the tests of the gate tier
	@$(call step,format,$(BIN)/ruff format --check .)
	@$(call step,lint,$(BIN)/ruff check .)
	@$(call step,types,$(BIN)/mypy)
	@$(call step,import contracts,$(BIN)/lint-imports)
	@$(call step,audit,$(BIN)/python setup/audit.py)
	@$(SUBMAKE) jars
	@mkdir -p .waitreg; $(SUBMAKE) gate-tools >.waitreg/gate-tools.log 2>&1 & tools=$$!; \
		$(SUBMAKE) test TESTS=; status=$$?; \
		wait $$tools || { cat .waitreg/gate-tools.log >&2; exit 1; }; exit $$status
	@$(call step,tests of the gate,$(VERDICT) $(WORKERS) --tier gate tests)

# What tests need beyond Python and Java; without it they are skipped, or fail with CI=true.
gate-tools: connect prometheus
release-tools: gate-tools grpc-node oidc-provider schema-registry browser pgbouncer bench-peers

tier-tests: jars $(CLASSES) release-tools
	@CI=true $(VERDICT) $(WORKERS) --tier $(TIER) $(TESTS)

flaky: jars $(CLASSES) release-tools
	@CI=true $(VERDICT) --flaky 20

release-tests: setup ## everything else in parts, resumed where they stopped; PART=soak one part, ARGS=--list all parts
	@$(BIN)/python -m tests.release $(PART) $(ARGS)

release-check: setup ## whether every part of the release tests has passed for HEAD
	@$(BIN)/python -m tests.release --check

coverage: jars $(CLASSES) ## line coverage of the core and of each service, at least 90 % (takes longer than the tests)
	@sh setup/coverage.sh "$(BIN)" $(WORKERS) $(or $(TESTS),tests)

chaos: jars $(CLASSES) ## random faults by seed, judged from outside: SEED=1 MINUTES=10 RUNS= JOBS=; SCENARIO=outage, soak, storm or redrive
	@$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(RUNS),--runs $(RUNS)) $(if $(JOBS),--jobs $(JOBS)) $(if $(SCENARIO),--scenario $(SCENARIO)) \
		$(if $(RECORDS),--records $(RECORDS)) $(if $(RATE),--rate $(RATE)) $(ARGS)

incident: jars ## play an incident for real and replace the queries' outputs in docs/incident.md
	@$(BIN)/python -m tests.acceptance.incident

compose-test: ## docker-compose.yml for real, with a kill under load; needs nothing but Docker, and says so without
	@python3 tests/compose/run.py $(ARGS)

mutants: jars release-tools ## each removed safeguard must make a test of its clause fail; ARGS="--part 1/3", "--only NAME", --list
	@$(BIN)/python -m tests.safeguards.run $(ARGS)

simulate: setup ## the real code in simulated worlds: SEEDS=10000 FIRST= JOBS=2, SEED=17 alone, or ARGS=--exhaustive
	@$(BIN)/python -m tests.simulation $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)) $(if $(JOBS),--jobs $(JOBS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

mutation: jars $(CLASSES) ## ten generated faults of an area, each against a tier; AREA=sink SEED=1, ARGS="--tier gate", ARGS=--list
	@sh setup/mutation.sh
	@$(BIN)/python -m tests.generated_faults --area $(AREA) --seed $(SEED) $(ARGS)

# The program has bench-peers made, once it knows that there is something to measure.
bench: setup ## measures the product and what others would pick, one round; ROW=2 one row, FULL=1 three rounds for RESULTS.md, ARGS="--against ../other" two checkouts
	@$(BIN)/python -m bench --fetch $(addprefix --row ,$(ROW)) $(if $(FULL),--full) $(ARGS)

bench-peers: connect ## what the benchmark compares this project with: Parallel Consumer, the Python peers
	@$(BIN)/python -m bench.contenders.java_programs
	@sh setup/bench_peers.sh >/dev/null

fuzz: setup ## atheris on every reader of what others write, and the corpus kept; MINUTES=5 TARGET=headers_json
	@sh setup/fuzz.sh >/dev/null
	@PYTHONPATH=.waitreg/tools/atheris $(BIN)/python -m tests.fuzz $(if $(MINUTES),--minutes $(MINUTES)) \
		$(addprefix --target ,$(TARGET)) $(ARGS)

audit: setup ## the locked Python packages looked up among known vulnerabilities, where that can be done
	@$(BIN)/python setup/audit.py

lock: setup ## requirements*.txt again from pyproject.toml (minutes: every file of every package is hashed)
	@sh setup/lock.sh

clean: ## remove what the other targets made
	rm -rf .venv jvm/jars $(CLASSES) $(PLUGIN)/target build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
