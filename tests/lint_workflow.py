"""Run `snakemake --lint` and fail on anything but its wish for a conda or container directive in every rule.

The environment of all rules is the one that `make setup` makes from requirements.lock, so that wish is set aside.
"""

import subprocess
import sys

WISH = "Specify a conda environment or container for each rule"
done = subprocess.run(["snakemake", "--lint"], capture_output=True, text=True)
if "Error" in done.stderr or "Lints for" not in done.stdout + done.stderr:
    sys.exit(f"snakemake --lint did not run:\n{done.stdout}{done.stderr}")
found = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip().startswith("* ")]
other = [line for line in found if WISH not in line]
print(f"snakemake --lint: {len(other)} findings beside {len(found) - len(other)} wishes for a conda directive")
sys.exit("\n".join(other) or 0)
