# One command to try (make demo), one to test (make test).
# Needs Python >= 3.11 and make; everything else is installed below, into .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
RUNS   := $(VENV)/.runs
# In a terminal, what is downloaded is shown.
QUIETLY  := $(if $(MAKE_TERMOUT),,--quiet)
# uv installs in a fifth of pip's time, and pip knows an index of its own settings. The lock names every package, so
# nothing is to be resolved.
PACKAGES := pip install $(QUIETLY) --no-deps --require-hashes -r requirements-dev.txt
installed = VIRTUAL_ENV=$(VENV) $(BIN)/uv $(subst requirements-dev.txt,$(1),$(PACKAGES)) || $(BIN)/python -m $(subst requirements-dev.txt,$(1),$(PACKAGES))
# Collected once, then forked. A file of tests stays in one process, as do the kernels that it compiles.
PARALLEL := -p tests.side_by_side --side-by-side auto

# What needs no machine of its own: no data, no hours, no Kafka.
QUICK    := not data and not soak and not kafka
# Studies of the methods: they guard no promise, and take a tenth of the time.
STUDIES  := tests/experiments
# What is decoded, read from files and restored is proved where it is used.
CORE     := tests/algorithms tests/codecs tests/domain tests/files tests/pipeline/positions/decode \
            tests/pipeline/positions/tick/test_fleet_state.py tests/pipeline/positions/tick/test_flow.py \
            tests/pipeline/positions/counts
MEMORY   := tests/algorithms tests/codecs tests/pipeline tests/cluster/positions tests/cluster/records
# Kernels raise beyond an array, and memory is full of 0xCB before they write it (glibc fills in the complement of 52).
CHECKED  := NUMBA_BOUNDSCHECK=1 MALLOC_PERTURB_=52 GLIBC_TUNABLES=glibc.malloc.tcache_count=0

# Hundreds of tests start a program of their own. Compiled once, its modules load in two thirds of the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo programs test test-all search coverage test-experiments test-data test-cluster test-spark test-kafka test-brokers test-readers test-maps test-judge check check-types check-others audit docs bench soak screenshot wheel lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make .venv from the pinned, hashed requirements

# What takes longer than a second says so each second, for as long as the shell of its line lives.
waiting = echo "$(1) ..."; while sleep 1 && kill -0 $$$$ 2>/dev/null; do echo "$(1)"; done &
INSTALLING = $(call waiting,installing $$(grep -c '^[^ ]*==' $<) packages)

# What the demo needs is a quarter of all, and comes in a fifth of the time.
$(RUNS): requirements-demo.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: Python 3.11 or newer is needed (set PYTHON=python3.11)")'
	@$(call waiting,making $(VENV)) $(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/^[^ ]*==/p' requirements-dev.txt | sed '/^[^ ]*==/{/^uv==/!d;}' > $(VENV)/uv.txt
	@$(call waiting,installing uv) $(BIN)/python -m pip install $(QUIETLY) --require-hashes -r $(VENV)/uv.txt
	@$(INSTALLING) $(call installed,$<)
	@touch $@

$(STAMP): requirements-dev.txt pyproject.toml | $(RUNS)
	@$(INSTALLING) $(call installed,$<)
	@$(call waiting,installing this project) $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(RUNS)  ## watch raw positions go in and cloaked regions come out
	$(BIN)/python -m anonymizer demo $(ARGS)

# While types are checked and tests are collected, the other core compiles the kernels that take longest: of searches,
# of attacks that track, and of cells. Nobody waits for that, and the run itself says what is wrong.
COMPILED  := $(VENV)/.compiled
COMPILING := tests/algorithms/records/test_local_search.py tests/algorithms/cells/test_pruning.py \
	tests/audit/test_modes_under_attack.py::test_session_keeps_its_promise_over_epochs_under_both_adversaries

$(COMPILED): $(STAMP)
	@$(BIN)/python -m pytest -m "$(QUICK)" -p no:cacheprovider -n0 -qq $(COMPILING) > /dev/null 2>&1 &
	@touch $@

HAS_JAVA = java -version >/dev/null 2>&1 && mvn -version >/dev/null 2>&1
HAS_DATA = @test -d "$$ANONYMIZER_DATA" || { echo "make: set ANONYMIZER_DATA to the folder with the real data" >&2; exit 2; }
PROGRAMS = @for each in mosquitto chromium deploy.programs; do $(BIN)/python -m tests.$$each || exit; done

# .ci/run has them fetched, and kernels compiled, while one core checks types.
programs: $(COMPILED)
	$(PROGRAMS)
	@if $(HAS_JAVA); then $(MAKE) --no-print-directory $(SPARK_STAMP) $(KAFKA_STAMP); fi

test: $(COMPILED)  ## the tests that need no data but their own (Mosquitto, Chromium and Prometheus are found or installed)
	$(PROGRAMS)
	$(BIN)/python -m pytest -m "$(QUICK)" --ignore=$(STUDIES) $(PARALLEL) $(ARGS)

# What .ci/run tries, collected once: no core waits for the last test of each of the three.
test-all: $(COMPILED)  ## test, test-experiments and test-data in one run
	$(HAS_DATA)
	$(PROGRAMS)
	$(BIN)/python -m pytest -m "not soak and not kafka" $(PARALLEL) $(ARGS)

# `make test` tries the same few examples every time, so that no run fails by chance; here are five times as many.
search: $(STAMP)  ## the property tests, with new random examples (make soak has them, too)
	$(BIN)/python -m pytest -m "hypothesis and $(QUICK)" --hypothesis-profile=search $(PARALLEL) $(ARGS)

coverage: $(STAMP)  ## branches of the pure core that no test takes; kernels run as plain Python, so minutes
	@rm -f .coverage .coverage.*
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -m "$(QUICK) and not compiled" $(PARALLEL) $(CORE) $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --show-missing --precision=2 --fail-under=98

test-experiments: $(STAMP)  ## the tests of the experiments with the published methods, and with attacks on them
	$(BIN)/python -m pytest -m "$(QUICK)" $(PARALLEL) $(STUDIES) $(ARGS)

test-data: $(STAMP)  ## the tests on the real data in $$ANONYMIZER_DATA
	$(HAS_DATA)
	@$(BIN)/python -m tests.mosquitto
	$(BIN)/python -m pytest -m "data and not soak and not kafka" $(PARALLEL) $(ARGS)

# pyspark is 450 MB and needs an older pandas than the other tests: it has an environment of its own.
SPARK       := $(VENV)-spark
SPARK_STAMP := $(SPARK)/.installed
KAFKA       := $(VENV)/kafka
KAFKA_STAMP := $(KAFKA)/.installed
# Most of the time they wait. Each worker has a Kafka; one that has no more to do takes from another.
BESIDE      := -n 3 --dist worksteal

test-cluster:  ## the tests on Apache Spark and Apache Kafka (one line says so where there is no Java or Maven)
	@if $(HAS_JAVA); then \
	$(MAKE) --no-print-directory $(SPARK_STAMP) $(KAFKA_STAMP) && $(BIN)/python -m tests.mosquitto && \
	$(MAKE) --no-print-directory test-spark && $(MAKE) --no-print-directory test-kafka && \
	$(MAKE) --no-print-directory test-brokers; \
	else echo "make: test-cluster is skipped: there is no Java, or no Maven"; fi

# The environment of Spark alone has pyarrow.
OF_PYARROW  := tests/estimators/test_frame_types.py::test_columns_of_pyarrow_beside_others_are_what_the_command_reads

test-spark: $(SPARK_STAMP)
	$(SPARK)/bin/python -m pytest -m "not soak" $(ARGS) tests/spark $(OF_PYARROW)

test-kafka: $(KAFKA_STAMP)
	$(BIN)/python -m pytest -m "kafka and not soak" $(BESIDE) $(ARGS) tests/cluster tests/benchmarks

# MQTT brokers that nobody here wrote: aedes (npm), Moquette and HiveMQ (Maven).
BROKERS       := $(VENV)-brokers
BROKERS_STAMP := $(BROKERS)/.installed
OTHER_BROKERS := tests/other_brokers
HAS_BROKERS   := npm --version && java -version && mvn -version

test-brokers:  ## the gateway with aedes, Moquette and HiveMQ; test-cluster runs it (one line says so where there is no npm or Maven)
	@if ($(HAS_BROKERS)) >/dev/null 2>&1; then \
	$(MAKE) --no-print-directory $(STAMP) $(BROKERS_STAMP) && \
	ANONYMIZER_BROKERS=$(CURDIR)/$(BROKERS) $(BIN)/python -m pytest $(ARGS) $(OTHER_BROKERS)/brokering.py; \
	else echo "make: test-brokers is skipped: there is no npm, no Java or no Maven"; fi

$(BROKERS_STAMP): $(OTHER_BROKERS)/package-lock.json $(OTHER_BROKERS)/package.json $(OTHER_BROKERS)/pom.xml $(OTHER_BROKERS)/hivemq.xml | $(STAMP)
	mkdir -p $(BROKERS)/aedes
	cp $(OTHER_BROKERS)/package.json $(OTHER_BROKERS)/package-lock.json $(BROKERS)/aedes
	cd $(BROKERS)/aedes && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	mvn --quiet --batch-mode --file $(OTHER_BROKERS)/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(BROKERS)/moquette
	mvn --quiet --batch-mode --file $(OTHER_BROKERS)/hivemq.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(BROKERS)/hivemq
	@touch $@

# Readers that nobody here wrote, of the contract and of echoes (npm; Python in an environment of its own). With
# HOME_ASSISTANT=FOLDER, see test-maps, also its trackers of OwnTracks and JSON.
READERS       := $(VENV)-readers
READERS_STAMP := $(READERS)/.installed
OTHER_READERS := tests/other_readers

test-readers:  ## what the gateway writes, read by parsers of AsyncAPI, CAM, CloudEvents, GeoJSON, GTFS-realtime, Meshtastic, MessagePack, NGSI-LD, SenML and Traccar (one line says so where there is no npm)
	@if npm --version >/dev/null 2>&1; then \
	$(MAKE) --no-print-directory $(STAMP) $(READERS_STAMP) && \
	ANONYMIZER_READERS=$(CURDIR)/$(READERS) ANONYMIZER_HOME_ASSISTANT="$(HOME_ASSISTANT)" \
	$(BIN)/python -m pytest $(ARGS) $(OTHER_READERS)/reading.py; \
	else echo "make: test-readers is skipped: there is no npm"; fi

$(READERS_STAMP): $(OTHER_READERS)/package-lock.json $(OTHER_READERS)/package.json $(OTHER_READERS)/echoes.txt | $(STAMP)
	mkdir -p $(READERS)
	cp $(OTHER_READERS)/package.json $(OTHER_READERS)/package-lock.json $(READERS)
	cd $(READERS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(PYTHON) -m venv $(READERS)/python
	VIRTUAL_ENV=$(CURDIR)/$(READERS)/python $(BIN)/uv $(subst requirements-dev.txt,$(OTHER_READERS)/echoes.txt,$(PACKAGES)) || $(READERS)/python/bin/python -m $(subst requirements-dev.txt,$(OTHER_READERS)/echoes.txt,$(PACKAGES))
	@touch $@

# Maps that nobody here wrote. OWNTRACKS=FOLDER: `npm ci && npx vite build` in a clone of owntracks/frontend makes it (dist).
# OSMNX=FOLDER: `pip install --no-deps --target FOLDER osmnx`; ROADS=FOLDER: road files of others, besides the hundred here.
# HOME_ASSISTANT=FOLDER: an environment of Python with tests/other_readers/home-assistant.txt. PICTURES=FOLDER keeps the pictures.
test-maps: $(STAMP)  ## road files beside OSMnx ($$OSMNX); echoes on the maps of OwnTracks ($$OWNTRACKS) and Home Assistant ($$HOME_ASSISTANT)
	ANONYMIZER_OSMNX="$(OSMNX)" ANONYMIZER_ROADS="$(ROADS)" $(BIN)/python -m pytest -W ignore $(ARGS) $(OTHER_READERS)/roads.py
	ANONYMIZER_OWNTRACKS="$(OWNTRACKS)" ANONYMIZER_HOME_ASSISTANT=$(HOME_ASSISTANT) ANONYMIZER_PICTURES=$(PICTURES) \
	$(BIN)/python -m pytest $(ARGS) $(OTHER_READERS)/maps.py

# pycanon needs an older numpy and pandas than the project: it judges files, in an environment of its own.
JUDGE       := $(VENV)-judge
JUDGE_STAMP := $(JUDGE)/.installed

test-judge: $(STAMP) $(JUDGE_STAMP)  ## releases of every method, judged by pycanon (with Adult where $$ANONYMIZER_DATA is set); others', by ARX=CLASSPATH, too
	ANONYMIZER_JUDGE=$(JUDGE)/bin/python ANONYMIZER_ARX="$(ARX)" $(BIN)/python -m pytest -m "not soak$(if $(ANONYMIZER_DATA),, and not data)" $(ARGS) tests/judge/judging.py tests/judge/judging_others.py

$(JUDGE_STAMP): requirements-judge.txt | $(STAMP)
	$(PYTHON) -m venv $(JUDGE)
	@echo "installing $$(grep -c '^[^ ]*==' requirements-judge.txt) packages"
	VIRTUAL_ENV=$(JUDGE) $(BIN)/uv $(subst -dev,-judge,$(PACKAGES)) || $(JUDGE)/bin/python -m $(subst -dev,-judge,$(PACKAGES))
	@touch $@

$(KAFKA_STAMP): tests/cluster/pom.xml | $(STAMP)
	mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(KAFKA)
	@touch $@

$(SPARK_STAMP): requirements-spark.txt pyproject.toml | $(STAMP)
	$(PYTHON) -m venv $(SPARK)
	@echo "installing $$(grep -c '^[^ ]*==' requirements-spark.txt) packages"
	VIRTUAL_ENV=$(SPARK) $(BIN)/uv $(subst -dev,-spark,$(PACKAGES)) || $(SPARK)/bin/python -m $(subst -dev,-spark,$(PACKAGES))
	echo "$(CURDIR)" > "$$($(SPARK)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/anonymizer.pth"
	@touch $@

# Then once with bounds checked and memory filled before kernels write it, and once with kernels as plain Python. Machine
# code with checks is kept apart from the usual one (anonymizer/kernel_stamps.py).
soak: $(STAMP)  ## the slow proofs (with aedes, too, where there is npm, Java and Maven), and memory that is read wrongly
	@$(BIN)/python -m tests.mosquitto
	@if ($(HAS_BROKERS)) >/dev/null 2>&1; then $(MAKE) --no-print-directory $(BROKERS_STAMP); fi
	ANONYMIZER_BROKERS=$$(test -e $(BROKERS_STAMP) && echo $(CURDIR)/$(BROKERS)) $(BIN)/python -m pytest -m "soak and not kafka" --timeout=3600 $(ARGS)
	@$(MAKE) --no-print-directory search coverage
	$(CHECKED) $(BIN)/python -m pytest -m "$(QUICK)" $(PARALLEL) $(MEMORY) $(ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -p tests.poison -m "$(QUICK) and not compiled" $(PARALLEL) $(MEMORY) $(ARGS)

# What a change forgets most often: pages that are generated, bounds, quoted lines, lists of names.
FORGOTTEN := tests/test_figures.py tests/test_published_items.py \
	tests/mutation/test_mutants.py::test_every_change_can_be_made \
	tests/test_docs.py::test_what_is_generated_is_what_the_code_says \
	tests/test_docs.py::test_every_link_of_the_repository_leads_to_a_file_of_it

# Types take four times as long as all else, which has the other core meanwhile.
check: $(STAMP)  ## format, lint, types, layers, dependencies, dead code, documentation, what is generated or bounded
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=line check-types check-others

check-types:
	$(BIN)/mypy

check-others:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m tools.dependencies
	$(BIN)/deptry anonymizer experiments simulator
	@echo "$(BIN)/vulture, without variables"; found=$$($(BIN)/vulture); case $$? in 0|3) ! printf '%s' "$$found" | grep -v 'unused variable';; *) false;; esac
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m pytest -m "$(QUICK)" -n0 -qq $(FORGOTTEN)

audit: $(STAMP)  ## ask which requirements have known vulnerabilities (needs pip-audit and the network)
	pip-audit --require-hashes --disable-pip --requirement requirements-dev.txt

docs: $(STAMP)  ## the documentation as a site, in out/site
	$(BIN)/python -m tools.manual docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(STAMP)  ## benchmarks, at three sizes that show growth
	$(BIN)/python -m benchmarks $(ARGS)

screenshot: $(STAMP)  ## the picture of the live map for the README
	@$(BIN)/python -m tests.chromium
	@mkdir -p docs/images
	$(BIN)/python -m tests.web.browsing docs/images/live-map.png

LOCK  := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml
# What the gateway's image has beyond the core; other extras: name them here, lock, build.
IMAGE := --extra kafka --extra learn --extra osm

wheel: $(STAMP)  ## a wheel in out/, with machine code for this Python and x86-64-v3
	NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES= $(BIN)/python -m tools.machine_code out/machine_code
	ANONYMIZER_MACHINE_CODE=out/machine_code $(BIN)/python -m hatchling build --target wheel --directory out

lock: $(STAMP)  ## pin the requirements anew: of the images, of everything, and of the demo
	$(LOCK) $(IMAGE) --output-file requirements.txt
	$(LOCK) --extra all --group dev --constraints requirements.txt --output-file requirements-dev.txt
	$(LOCK) --extra demo --extra learn --constraints requirements-dev.txt --output-file requirements-demo.txt
	$(LOCK) --extra learn --extra tables --extra spark --group spark --constraints requirements.txt --output-file requirements-spark.txt
	$(subst pyproject.toml,,$(LOCK)) --group judge --output-file requirements-judge.txt

clean:  ## remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
