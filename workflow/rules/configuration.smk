# Files of configuration are read with our own loader before Snakemake reads them: it names the line of what is wrong, and refuses
# a key that is given twice, of which Snakemake takes the last.

import os

from snakemake.exceptions import WorkflowError

from comperdial.config import load_yaml
from comperdial.core.errors import ComperdialError

try:
    for path in filter(os.path.exists, ["profiles/resources.yaml", "params.yaml", *workflow.configfiles]):
        load_yaml(path)
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None
