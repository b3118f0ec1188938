"""DEnsity: the distance of a response to human responses in the feature space of a response-selection model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from comperdial.metrics.base import Batch, Metric, Scores, check_choice
from comperdial.models import runtime
from comperdial.training.trained import Trained, label, load, missing

if TYPE_CHECKING:
    from comperdial.training.selection import Group, SelectionModel

# Number of responses to one context that are packed into one row after it.
_ROW = 12
# Tokens per batch on a CPU, about one row, which fits its caches. 4,096 tokens take 1.6 times the CPU time.
_CPU_TOKENS = 256


@dataclass(frozen=True, kw_only=True)
class Density(Metric):
    """DEnsity of Park et al. 2023, without references; higher is better in all outputs.

    A model trained to distinguish a dialogue's next utterance from other utterances encodes history and response
    (:mod:`comperdial.training`). ``density`` is the negative Mahalanobis distance (the square root of equation 3, as in
    section 4.3) of its feature from the features of human responses, ``euclidean`` the negative Euclidean distance, and
    ``classifier`` the model's selection score f(c, r).

    ``trained`` is a model made by ``comperdial train`` (docs/density.md). As in training, the last 72 tokens of the
    history, the first 56 of the facts and the first 40 of the response are used. With ``facts: true`` the facts come
    before the history, and a response without facts has no score.
    """

    kind: ClassVar[str] = "density"
    needs: ClassVar[tuple[str, ...]] = ("histories",)
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers")

    trained: str = "density"
    """A model that ``comperdial train`` made: its name, below ``data/models``, or its folder."""
    facts: bool = False
    """Whether the model reads the facts too; the Gaussian is then that of pairs with facts."""
    dtype: Literal["fp32", "bf16"] = "fp32"

    def __post_init__(self) -> None:
        check_choice(self, "dtype", runtime.DTYPES)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of the two negative distances and the selection score."""
        return ("density", "euclidean", "classifier")

    def needed_by(self, output: str) -> tuple[str, ...]:
        """Add the facts if the model uses them."""
        return ("histories", "facts") if self.facts else ("histories",)

    @property
    def runs_model(self) -> bool:
        """Return True."""
        return True

    def unavailable(self) -> str | None:
        """Return why the package, the trained model or its encoder is unavailable, or None."""
        return runtime.missing_packages() or missing(self.trained, facts=self.facts)

    def signed(self, option: str) -> object:
        """Return the checksum of the trained model, and its encoder."""
        return label(self.trained) if option == "trained" else super().signed(option)

    @cached_property
    def _model(self) -> Trained:
        return load(self.trained, self.dtype)

    def compute(self, batch: Batch) -> Scores:
        """Score each distinct response to a context once; responses to the same context are encoded together."""
        from tqdm import tqdm

        model = self._model
        gaussian = model.gaussians["facts" if self.facts else "plain"]
        values = np.full((len(batch), 3), np.nan)
        cut = np.zeros(len(batch), dtype=np.int32)
        groups, places = self._groups(batch, cut)
        bar = tqdm(total=len(groups), desc=self.kind, delay=2, disable=None)
        for items, features, scores in _read(model.network, groups):
            found = np.stack([-gaussian.mahalanobis(features), -gaussian.euclidean(features), scores], axis=1)
            owners = [indices for item in items for indices in places[item]]
            for row, indices in zip(found, owners, strict=True):
                values[indices] = row
            bar.update(len(items))
        bar.close()
        return Scores({name: values[:, column] for column, name in enumerate(self.outputs)}, cut)

    def _groups(self, batch: Batch, cut: np.ndarray) -> tuple[list[Group], list[list[list[int]]]]:
        """Return the contexts with their responses, and each response's positions in the batch; update ``cut``."""
        from comperdial.training.selection import Group

        reader = self._model.reader
        texts = {utterance["text"] for history in batch.histories for utterance in history}
        texts |= {*batch.responses, *(fact for facts in batch.facts if self.facts for fact in facts)}
        distinct = sorted(texts)
        tokens = dict(zip(distinct, reader.encode(distinct), strict=True))
        asked: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        for index in range(len(batch)):
            told = batch.facts[index] if self.facts else ()
            if self.facts and not told:
                continue
            history = [tokens[utterance["text"]] for utterance in batch.histories[index]]
            context, of_context = reader.context(history, [tokens[fact] for fact in told])
            response, of_response = reader.response(tokens[batch.responses[index]])
            cut[index] = of_context + of_response
            asked.setdefault(tuple(context), {}).setdefault(tuple(response), []).append(index)
        groups, places = [], []
        for asking, responses in asked.items():
            rows = list(responses)
            for start in range(0, len(rows), _ROW):
                chosen = rows[start : start + _ROW]
                groups.append(Group(asking, chosen))
                places.append([responses[row] for row in chosen])
        return groups, places


def _read(model: SelectionModel, groups: list[Group]) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Yield, for each batch, the indices of its groups, and the features and scores of their candidates, in order.

    On a CPU, batches run in parallel, one thread each, with as many threads as torch would use.
    """
    import torch

    def read(items: list[int]) -> tuple[list[int], np.ndarray, np.ndarray]:
        with torch.inference_mode():
            features, scores = model([groups[item] for item in items])
        return items, features.float().cpu().numpy(), scores.float().cpu().numpy()

    model.eval()
    batches = list(runtime.batches([group.tokens for group in groups], runtime.batch_tokens(cpu=_CPU_TOKENS)))
    if runtime.device().type != "cpu":
        yield from map(read, batches)
        return
    count = torch.get_num_threads()
    # New threads, including those of the pool, start with this setting.
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(count, "density", initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from pool.map(read, batches)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(count)
