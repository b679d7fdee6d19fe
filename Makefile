# Everything runs in .venv, made here from python3 and the package index. `make demo` and `make test` are all a newcomer needs.
# PIP_ARGS is added to every pip install, for a mirror or a processor-only torch index, say.

PYTHON ?= python3
PIP_ARGS ?=
BIN := .venv/bin
PROJECTS := pyproject.toml babelserve/pyproject.toml constraints.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt $(PIP_ARGS)

# A text may hold quotes, dollars, anything: it goes to the demo by environment, never through a shell or make's expansion.
MAKEOVERRIDES :=
unexport TEXT
export DEMO_TEXT := $(value TEXT)

RECIPE ?= model/configs/general.toml
DATA ?= data
RUN ?= runs/en-de
CHECKPOINT ?= server/builtin/en-de
OUT ?= runs/bundle
DEV ?= tests/data/general_dev.en.gz tests/data/general_dev.de.gz

TARGET ?= cpu
BUILD ?= docker build
VERSION := $(shell sed -n 's/^version = "\([^"]*\)".*/\1/p' pyproject.toml)
IMAGE ?= babelserve:$(VERSION)$(if $(filter cuda,$(TARGET)),-cuda)

.PHONY: help demo serve install test test-without-torch check docs wheels reference protos check-protos train export bench networks fuzz chaos observe image check-imports check-cuda-placement gpu clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 22

demo: .venv/installed-cpu  ## translate sample sentences, or TEXT="...", with the built-in model
	@$(BIN)/python deploy/demo.py

serve: .venv/installed-cpu  ## start the server with the built-in model; ARGS="--port 50051 ..."
	$(BIN)/babelserve $(ARGS)

install: .venv/installed-dev  ## install all of it into .venv, for training, export and development

test: check  ## make check, then the tests: with make docs, everything that CI runs
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test-without-torch: .venv-other/installed  ## the tests of server and client that need no PyTorch, for another PYTHON=python3.13
	.venv-other/bin/python -m pytest -n 3 --dist loadfile --max-worker-restart 0 -rfE -p tests.without_torch --confcutdir tests/server \
		tests/server tests/babelserve tests/protos tests/test_commands.py tests/test_distributions.py tests/e2e/test_builtin_models.py

check: .venv/installed-dev check-protos  ## format, lint, types, import walls, generated code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-docs wheels  ## build the documentation into site/, strictly, and the wheels
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

wheels: .venv/installed-docs  ## build both wheels into dist/, and check what an index would show of them
	@rm -rf dist
	@$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./babelserve .
	@$(BIN)/python -m twine check --strict dist/*.whl

reference: .venv/installed-dev  ## write the pages in docs/reference anew, of the source
	@$(BIN)/python -m docs.generate

protos: .venv/installed-dev  ## generate the code in babelserve/v1/ and server/fronts/v1/ anew
	$(call protoc,.)

check-protos: .venv/installed-dev
	@rm -rf .venv/protos && mkdir -p .venv/protos/server
	@$(call protoc,.venv/protos)
	@cd .venv/protos && for file in babelserve/v1/* server/fronts/v1/*; do diff -u ../../$$file $$file || { echo "run 'make protos'" >&2; exit 1; }; done

train: .venv/installed-dev  ## train RECIPE into RUN on your text in DATA (docs/guides/train.md); an interrupted run goes on
	$(BIN)/babelserve-train $(RECIPE) --data $(DATA) --out $(RUN) $(ARGS)

export: .venv/installed-dev  ## write and prove a bundle from CHECKPOINT, or another bundle, to OUT, calibrated and proven on DEV
	$(BIN)/babelserve-export "$(CHECKPOINT)" "$(OUT)" --dev $(DEV) $(ARGS)

bench: .venv/installed-bench  ## compare with CTranslate2 on this machine; ARGS="offline --model base ..." (tests/bench/README.md)
	$(BIN)/python -m tests.bench $(ARGS)

networks: .venv/installed-dev  ## train networks and compare them; ARGS="--data people --runs runs/people --domain news=news.tsv" (docs/explanations/networks.md)
	$(BIN)/python -m tests.bench.train_networks $(ARGS)

fuzz: .venv/installed-fuzz  ## feed the readers of foreign bytes with mutated ones; ARGS="split --seconds 600" (tests/fuzz/README.md)
	$(BIN)/python -m tests.fuzz $(ARGS)

chaos: .venv/installed-dev  ## put the promise "nothing lost" to the test, for hours; ARGS="R2 R8 --quick" (tests/chaos)
	$(BIN)/python -m tests.chaos --report $(ARGS)

observe: .venv/installed-dev  ## make each alert fire by a real fault, and run all queries of the dashboards (docs/guides/alerts.md)
	$(BIN)/python -m tests.chaos O1 O2 --report $(ARGS)

image:  ## build babelserve:VERSION; TARGET=cuda for GPUs, BASE=..., BUILD="buildah bud --format docker" (deploy/Dockerfile)
	$(BUILD) --file deploy/Dockerfile --target $(TARGET) $(if $(BASE),--build-arg BASE=$(BASE)) --tag $(IMAGE) \
		--label org.opencontainers.image.version=$(VERSION) \
		--label org.opencontainers.image.revision=$(shell git rev-parse HEAD) .

check-imports: .venv-imports/installed  ## compare with `transformers`, in a venv of its own (1.5 GB); ARGS="nllb" for one model
	@.venv-imports/bin/python -m tests.imports.check $(ARGS)

check-cuda-placement: .venv-gpu/installed  ## check, without a GPU, whether the CUDA variant is all on the GPU, and in how much memory; needs a C compiler and 250 MB of wheels
	@for command in placement memory; do ORT_DISABLE_TELEMETRY=1 .venv-gpu/bin/python -m tests.acceptance.cuda_$$command $(ARGS) || failed=1; done; exit $${failed:-0}

gpu: .venv-cuda/installed  ## on a machine with a GPU: prove the CUDA provider and measure it; ARGS="--quick" (tests/gpu/README.md)
	@for command in graphs live faults; do .venv-cuda/bin/python -m tests.gpu.$$command $(ARGS) || failed=1; done; exit $${failed:-0}

clean:  ## remove the virtual environments and caches; data and runs stay
	rm -rf .venv .venv-gpu .venv-cuda .venv-imports .venv-other build dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define protoc
$(BIN)/python -m grpc_tools.protoc -Iprotos --python_out=$(1) --pyi_out=$(1) --grpc_python_out=$(1) \
	$(wildcard protos/babelserve/v1/*.proto) && \
$(BIN)/python -m grpc_tools.protoc -Iprotos/babelserve --python_out=$(1)/server --pyi_out=$(1)/server \
	$(wildcard protos/babelserve/fronts/v1/*.proto)
endef

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed-cpu: $(PROJECTS) | .venv/bin/python
	$(PIP) --editable ./babelserve --editable '.[cpu,web]'
	@touch $@

# pip itself first: installing a dependency group needs 25.1 or newer.
.venv/installed-dev: $(PROJECTS) | .venv/bin/python
	$(PIP) --upgrade pip
	$(PIP) --editable ./babelserve --editable '.[cpu,web,bulk,train,export,otel,moses,detect]' --group dev
	@touch $@ .venv/installed-cpu

.venv/installed-bench: .venv/installed-dev
	$(PIP) --group bench
	@touch $@

.venv/installed-docs: .venv/installed-dev
	$(PIP) --group docs
	@touch $@

.venv/installed-fuzz: .venv/installed-dev
	$(PIP) --group fuzz
	@touch $@

.venv-other/installed: $(PROJECTS)
	$(PYTHON) -m venv --clear .venv-other
	$(subst $(BIN),.venv-other/bin,$(PIP)) --upgrade pip
	$(subst $(BIN),.venv-other/bin,$(PIP)) --editable ./babelserve --editable '.[cpu,web,bulk,otel,moses,detect]' --group dev
	@touch $@

# onnxruntime and onnxruntime-gpu overwrite each other. Without its extras the latter brings no CUDA.
.venv-gpu/installed: constraints.txt
	$(PYTHON) -m venv .venv-gpu
	$(subst $(BIN),.venv-gpu/bin,$(PIP)) onnxruntime-gpu onnx tabulate langcodes prometheus-client
	@touch $@

.venv-cuda/installed: $(PROJECTS)
	$(PYTHON) -m venv .venv-cuda
	$(subst $(BIN),.venv-cuda/bin,$(PIP)) --upgrade pip
	$(subst $(BIN),.venv-cuda/bin,$(PIP)) --editable ./babelserve --editable '.[gpu,train,export,moses,detect]' --group dev
	@touch $@

.venv-imports/installed: $(PROJECTS)
	$(PYTHON) -m venv .venv-imports
	$(subst $(BIN),.venv-imports/bin,$(PIP)) --upgrade pip
	$(subst $(BIN),.venv-imports/bin,$(PIP)) --editable ./babelserve --editable '.[cpu,export,moses]' --group imports
	@touch $@
