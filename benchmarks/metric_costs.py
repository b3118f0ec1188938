"""Supports docs/local-metric.md: the cost of each metric in the study `local_metrics` for 1,000 responses.

`python benchmarks/metric_costs.py --metrics f1 pmi` measures CPU seconds (summed over threads, models loaded) on the first
responses of each of the study's data sets in data/tables, and estimates dollars of recorded judges from data/prices.yaml. It
writes src/comperdial/metrics/local_costs.csv, which the study's table reads, and keeps the rows of other metrics.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from comperdial.config import load_yaml
from comperdial.config.studies import read_study, with_studies
from comperdial.core.files import write_text
from comperdial.metrics import Batch, Metric
from comperdial.metrics.named import metric_named
from comperdial.metrics.scoring import batches
from comperdial.models.encoder import STORE_VARIABLE

COLUMNS = ["metric", "seconds", "usd", "how", "machine", "date"]
# The model of a judge, characters of its instructions, and tokens of its answer to one response. A token is four characters.
ASKED = {
    "gpt-3.5-turbo_analyze_rate": ("gpt-3.5-turbo-0125", 1600, 150),
    "gpt-4_recorded": ("gpt-4-turbo-2024-04-09", 800, 5),
}


def seconds(metric: Metric, parts: Sequence[Batch]) -> tuple[float, int]:
    """Return the CPU seconds, summed over threads, and how many responses had what the metric needs."""
    needs = metric.needed_by(metric.outputs[0])
    usable = [np.logical_and.reduce([np.ones(len(batch), bool), *map(batch.has, needs)]) for batch in parts]
    able = [batch.only(rows) for batch, rows in zip(parts, usable, strict=True) if rows.any()]
    # Loads the model, which does not count.
    metric.compute(able[0].only(np.arange(len(able[0])) < 1))
    start = time.process_time()
    for batch in able:
        metric.compute(batch)
    return time.process_time() - start, sum(map(len, able))


def priced(name: str, parts: Sequence[Batch], today: str) -> list[object]:
    """Return the row of a judge that rates each response once."""
    model, instructions, answer = ASKED[name]
    price = load_yaml("data/prices.yaml")[model][-1]
    texts = [
        sum(len(turn["text"]) for turn in history) + sum(map(len, facts)) + len(response)
        for batch in parts
        for response, history, facts in zip(batch.responses, batch.histories, batch.facts, strict=True)
    ]
    tokens = (np.mean(texts) + instructions) / 4
    usd = 1000 * (tokens * price["input"] + answer * price["output"]) / 1e6
    how = f"estimated of one rating: {tokens:.0f} tokens in, {answer} out, {model}"
    return [name, np.nan, round(usd, 2), how, f"prices from {price['from']}", today]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", nargs="*", metavar="NAME", help="default: all of the study's rows")
    parser.add_argument("--tables", type=Path, default=Path("data/tables"), help="default: data/tables")
    parser.add_argument("--responses", type=int, default=20, help="of each data set; default: 20")
    parser.add_argument("--output", type=Path, default=Path("src/comperdial/metrics/local_costs.csv"))
    options = parser.parse_args()
    study = read_study("local_metrics")
    entries = with_studies(load_yaml("params.yaml"))["metrics"]
    folders = [options.tables / name for name in study["datasets"] if (options.tables / name).is_dir()]
    parts = [
        batch.only(np.arange(len(batch)) < options.responses) for batch in (next(batches(of))[1] for of in folders)
    ]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    rows = []
    for name in options.metrics or dict.fromkeys(row["metric"] for row in study["tables"]["local_metrics"]["rows"]):
        if name in ASKED:
            rows.append(priced(name, parts, today))
        elif name in entries and not (metric := metric_named(name, entries)).unavailable():
            # Without the vectors that another metric has cached.
            with tempfile.TemporaryDirectory() as vectors:
                os.environ[STORE_VARIABLE] = vectors
                taken, count = seconds(metric, parts)
            each = f"{1000 * taken / count:.3g}"
            rows.append([name, float(each), 0.0, "processor seconds, measured", machine, today])
            print(f"{name}: {each} s for 1,000 ({count} responses)", flush=True)
    known = pd.read_csv(options.output) if options.output.is_file() else pd.DataFrame(columns=COLUMNS)
    kept = known[~known["metric"].isin([row[0] for row in rows])]
    whole = pd.concat([frame for frame in (kept, pd.DataFrame(rows, columns=COLUMNS)) if len(frame)])
    write_text(options.output, whole.to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()
