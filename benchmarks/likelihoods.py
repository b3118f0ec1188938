"""PMI: tokens through the model and time, shared prompts beside one text at a time; agreement of both, and of bf16.

python benchmarks/likelihoods.py                     two real sets, a sample for the plain loop
python benchmarks/likelihoods.py --tables data/tables/demo --sample 0
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial.metrics import Batch, create
from comperdial.metrics.pmi import prompt
from comperdial.metrics.scoring import parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables", type=Path, nargs="+", default=[Path("data/tables/usr_persona"), Path("data/tables/usr_topical")]
    )
    parser.add_argument(
        "--sample", type=int, default=60, help="so many responses, the first ones, for the plain loop; 0: none"
    )
    parser.add_argument("--dtype", default="bf16")
    options = parser.parse_args()
    for tables in options.tables:
        measure(tables, options.sample, options.dtype)


def measure(tables: Path, sample: int, dtype: str) -> None:
    batch = read(tables)
    metric = create("pmi", dtype=dtype)
    counted = Counted(metric._network)
    start = time.perf_counter()
    shared = metric.compute(batch)
    seconds = time.perf_counter() - start
    total, alone = counted.tokens, plain_tokens(metric, batch)
    print(f"{tables.name}: {len(batch):,} responses, {dtype}: {seconds:.0f} s, {len(batch) / seconds:.1f} a second")
    print(
        f"  tokens through the model, padding included: {total:,}; one text at a time: {alone:,}; saved {1 - total / alone:.0%}"
    )
    if not sample:
        return
    some = batch.only(np.arange(len(batch)) < sample)
    exact = create("pmi", dtype="fp32")
    found = exact.compute(some)
    start = time.perf_counter()
    expected = np.array([plain(exact, some, row) for row in range(len(some))])
    print(f"  plain loop, fp32: {(time.perf_counter() - start) / len(some):.2f} s a response")
    print(f"  largest difference of pmi, fp32: {np.abs(found['pmi'] - expected).max():.1e} nats")
    print(f"  r of {dtype} and fp32: {np.corrcoef(shared['pmi'][: len(some)], found['pmi'])[0, 1]:.6f}")


def read(tables: Path) -> Batch:
    frames = [pd.concat([r.reset_index(drop=True), c.reset_index(drop=True)], axis=1) for r, c in parts(tables)]
    frame = pd.concat(frames, ignore_index=True)
    return Batch(*(list(frame[name]) for name in ("response", "references", "history", "facts")))


class Counted:
    """Counts the tokens that go through a network."""

    def __init__(self, network: Any) -> None:
        self.tokens = 0
        network.base_model.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, _: Any, __: Any, options: dict[str, Any]) -> None:
        self.tokens += options["input_ids"].numel()


def texts(metric: Any, batch: Batch, row: int) -> list[tuple[str, str]]:
    """Return the prompts of a response, with and without history and facts, and the response."""
    response = " " + batch.responses[row].strip()
    history, facts = batch.histories[row][-metric.utterances :], list(batch.facts[row])
    return [(prompt(history, facts), response), (prompt(history, []), response), (prompt([], []), response)]


def plain_tokens(metric: Any, batch: Batch) -> int:
    pairs = {pair for row in range(len(batch)) for pair in texts(metric, batch, row)}
    sizes = {text: len(metric._tokenizer(text)["input_ids"]) for pair in pairs for text in pair}
    # Without facts, two of the three are one; a text that comes twice is still counted once a response.
    return sum(
        sizes[first] + sizes[then] for row in range(len(batch)) for first, then in set(texts(metric, batch, row))
    )


def plain(metric: Any, batch: Batch, row: int) -> float:
    """Return PMI, each text alone in the model."""
    import torch

    (whole, response), _, (alone, _) = texts(metric, batch, row)
    values = []
    for start in (whole, alone):
        first, then = (metric._tokenizer(text)["input_ids"] for text in (start, response))
        first = first[-(metric.max_length - len(then)) :]
        with torch.inference_mode():
            logs = metric._network(input_ids=torch.tensor([first + then])).logits[0].log_softmax(-1)
        values.append(sum(float(logs[len(first) - 1 + place, token]) for place, token in enumerate(then)))
    return values[0] - values[1]


if __name__ == "__main__":
    main()
