"""What 1,000 responses cost by each metric of the study `local_metrics`: processor seconds measured here, dollars estimated.

Writes the CSV that the study's table reads; rows of metrics that are not measured now stay as they are.

    python benchmarks/metric_costs.py --metrics f1 pmi
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
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
# Of a judge that is asked for one rating of one response: characters of its instructions beside the dialogue, and tokens that it
# answers. About four characters are a token.
ASKED = {
    "gpt-3.5-turbo_analyze_rate": ("gpt-3.5-turbo-0125", 1600, 150),
    "gpt-4_recorded": ("gpt-4-turbo-2024-04-09", 800, 5),
}
PER_TOKEN = 4


def sample(tables: Path, datasets: Sequence[str], count: int) -> Iterator[Batch]:
    """Yield the first responses of each data set, so that contexts are shared as they are in use."""
    for name in datasets:
        if (tables / name).is_dir():
            batch = next(batches(tables / name))[1]
            yield batch.only(np.arange(len(batch)) < count)


def seconds(metric: Metric, parts: Sequence[Batch]) -> tuple[float, int]:
    """Return the processor seconds, threads together, and how many responses had what the metric needs."""
    needs = metric.needed_by(metric.outputs[0])
    able = [
        batch.only(np.logical_and.reduce([np.ones(len(batch), bool), *(batch.has(need) for need in needs)]))
        for batch in parts
    ]
    able = [batch for batch in able if len(batch)]
    # Loads the model, which is no cost of a response.
    metric.compute(able[0].only(np.arange(len(able[0])) < 1))
    start = time.process_time()
    for batch in able:
        metric.compute(batch)
    return time.process_time() - start, sum(map(len, able))


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", nargs="*", metavar="NAME", help="default: all of the study's rows")
    parser.add_argument("--tables", type=Path, default=Path("data/tables"), help="default: data/tables")
    parser.add_argument("--responses", type=int, default=20, help="of each data set; default: 20")
    parser.add_argument("--output", type=Path, default=Path("src/comperdial/metrics/local_costs.csv"))
    options = parser.parse_args()

    study = read_study("local_metrics")
    rows = study["tables"]["local_metrics"]["rows"]
    entries = with_studies(load_yaml("params.yaml"))["metrics"]
    parts = list(sample(options.tables, study["datasets"], options.responses))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    result = []
    for name in options.metrics or dict.fromkeys(row["metric"] for row in rows):
        if name in ASKED:
            model, instructions, answer = ASKED[name]
            price = load_yaml("data/prices.yaml")[model][-1]
            texts = [
                sum(len(said["text"]) for said in history) + sum(map(len, facts)) + len(response)
                for batch in parts
                for response, history, facts in zip(batch.responses, batch.histories, batch.facts, strict=True)
            ]
            tokens = (np.mean(texts) + instructions) / PER_TOKEN
            usd = 1000 * (tokens * price["input"] + answer * price["output"]) / 1e6
            how = f"estimated of one rating: {tokens:.0f} tokens in, {answer} out, {model}"
            result.append([name, np.nan, round(usd, 2), how, f"prices from {price['from']}", today])
        elif name in entries and not (metric := metric_named(name, entries)).unavailable():
            # Vectors that another metric has kept are no vectors for free.
            with tempfile.TemporaryDirectory() as kept_vectors:
                os.environ[STORE_VARIABLE] = kept_vectors
                taken, count = seconds(metric, parts)
            result.append(
                [name, float(f"{1000 * taken / count:.3g}"), 0.0, "processor seconds, measured", machine, today]
            )
            print(f"{name}: {1000 * taken / count:.3g} s for 1,000 ({count} responses)", flush=True)
    known = pd.read_csv(options.output) if options.output.is_file() else pd.DataFrame(columns=COLUMNS)
    kept = known[~known["metric"].isin([row[0] for row in result])]
    whole = pd.concat([frame for frame in (kept, pd.DataFrame(result, columns=COLUMNS)) if len(frame)])
    write_text(options.output, whole.to_csv(index=False, lineterminator="\n"))


if __name__ == "__main__":
    main()
