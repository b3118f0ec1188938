"""Every data set of the catalogue whose files can be had, through the whole workflow: exit status and time of each.

Run it in the repository's root, with the network or COMPERDIAL_MIRROR. Results are made here, in results/; what an
earlier run made is not made again. Prints a Markdown table; exit status 1 when a data set did not run through.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from comperdial.core.errors import SourceError
from comperdial.data import sources
from comperdial.data.catalogue import Dataset, load_catalogue


def lacking(dataset: Dataset) -> str | None:
    """Say which file of a data set cannot be had here."""
    for source in dataset.files.values():
        try:
            if not source.pinned:
                return f"the checksum of {source.name} is not known"
            sources.in_mirror(source)
        except SourceError:
            return f"the mirror lacks {source.name}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="data sets; default: all of the catalogue")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    datasets = load_catalogue().datasets
    failed = 0
    print("| data set | exit status | seconds |\n|:--|--:|--:|")
    for name in options.names or datasets:
        if why := lacking(datasets[name]):
            print(f"| {name} | not run: {why} | |", flush=True)
            continue
        begun = time.monotonic()
        command = ["snakemake", "--cores", str(options.cores), "--quiet", "all", "--config", f"datasets=[{name}]"]
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        failed += status != 0
        print(f"| {name} | {status} | {time.monotonic() - begun:.0f} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
