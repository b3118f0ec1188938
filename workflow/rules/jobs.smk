# What there is to make, asked of `comperdial.jobs` once; no rules here.

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from comperdial.config.checking import Lines
from comperdial.core.errors import ComperdialError
from comperdial.jobs.dag import Jobs
from comperdial.judges.tasks import SETTINGS_VARIABLE
from comperdial.jobs import records
from comperdial.data.sources import MIRROR_VARIABLE

# The records that came with pulled results: without them all of these would be made again.
try:
    records.unpack()
except OSError as error:
    print(f"Snakemake's records of pulled results could not be unpacked: {error}", file=sys.stderr)

# Snakemake's own error, which follows where both make or read the same file, takes a paragraph and says less.
if workflow.is_main_process and "--unlock" not in sys.argv and any(Path(".snakemake/locks").glob("*.lock")):
    print(
        "Another run holds this folder: should this one be refused a lock, wait until the other has ended, or, if it "
        "was killed, free the folder with `snakemake --unlock`.",
        file=sys.stderr,
    )

try:
    JOBS = Jobs(config, lines=Lines("profiles/resources.yaml", "params.yaml", *workflow.overwrite_configfiles))
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# A mirror changes where bytes come from, never what they are; how a judge is reached and what it may cost, no score.
if config["mirror"]:
    os.environ.setdefault(MIRROR_VARIABLE, config["mirror"])
# Vectors are kept in a cache, which is no output: Snakemake would remove it before a job.
os.environ.setdefault("COMPERDIAL_EMBEDDINGS", "data/embeddings")
os.environ[SETTINGS_VARIABLE] = JOBS.plan.connections()

DO = "comperdial do {params.job:q} > {log:q} 2>&1"
# A table's forms beside its HTML, a figure's beside its PNG.
TABLE_FORMATS = (".md", ".tex", ".csv")
FIGURE_FORMATS = (".pdf", ".svg", ".csv")


def asked(function):
    """An answer about a table, figure or page, as Snakemake asks for it."""
    return lambda wildcards: function(f"results/{wildcards.name}")
