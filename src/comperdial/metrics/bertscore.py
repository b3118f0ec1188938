"""BERTScore: greedy matching of contextual token vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from comperdial.core import versions
from comperdial.core.errors import ConfigError
from comperdial.metrics._embedding import cosines
from comperdial.metrics._pairs import PairMetric
from comperdial.metrics.base import Batch, Bounds, Scores
from comperdial.models.encoder import Encoder, Vectors
from comperdial.models.vectors import Encoded

_Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BertScore(PairMetric):
    """Precision, recall and F1 of the best cosines between the tokens of a response and of its reference.

    Source: Zhang et al. 2020, without idf weights. Precision is the mean, over the response's tokens, of the best cosine
    with a token of the reference, recall the same from the reference, F1 = 2 P R / (P + R). A token may match the other
    text's [CLS] and [SEP]; these themselves are not matched. ``rescale: true`` maps b, bert-score's value of unrelated
    English texts, to 0: (score - b) / (1 - b); b is known for some models and layers. A text of which normalisation leaves
    nothing has no score.

    Equal, to 1e-5, to the package bert-score 0.3.13 given one pair at a time. Given many pairs, the package counts
    padding as a token with cosine 0, which moves its scores by up to 0.006. Of several references, the one with the best
    F1 counts; the package takes the maximum of P, R and F1 separately. ``prefix_space: true`` encodes the first word as
    bert-score did when the papers were written; ``false`` is its behaviour under transformers 5.

    On ``all-MiniLM-L6-v2`` (``bertscore-minilm``) this is not the papers' BERTScore.
    """

    kind: ClassVar[str] = "bertscore"

    model: str = "roberta-large"
    layer: int = 17
    prefix_space: bool = True
    """Let RoBERTa's tokeniser see a first word like any other, as the package asks and transformers 5 ignores."""
    rescale: bool = False
    """Subtract the package's baseline of unrelated English texts, as Yeh et al. 2021 do; known models have one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rescale and find_spec("bert_score"):
            self._baseline()

    def unavailable(self) -> str | None:
        """Say so when the model, or the package that has the baseline, is not on this machine."""
        lacking = self.rescale and not find_spec("bert_score")
        return "not installed: bert-score, which has the baseline" if lacking else super().unavailable()

    def signature(self) -> str:
        """Add the version of the package, where its baseline counts."""
        package = f"|bert-score:{versions.installed('bert-score')}" if self.rescale else ""
        return super().signature() + package

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return F1, precision, recall."""
        return ("f1", "precision", "recall")

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return -1 to 1, and what becomes of these when they are rescaled.

        In theory an F1 can lie below, when precision and recall have different signs: a mean of best cosines below 0
        takes texts most of whose tokens point away from every token of the other, [CLS] and [SEP] included.
        """
        if not self.rescale:
            return dict.fromkeys(self.outputs, (-1.0, 1.0))
        baseline = dict(zip(self.outputs, self._baseline().tolist(), strict=True))
        return {name: ((-1 - value) / (1 - value), 1.0) for name, value in baseline.items()}

    @property
    def encoder(self) -> Encoder:
        """Return what makes the vectors."""
        return replace(super().encoder, prefix_space=self.prefix_space)

    def pair(self, hypothesis: Encoded, reference: Encoded) -> tuple[float, ...]:
        """Return F1, precision and recall of two texts; NaN when one of them has no tokens of its own."""
        if hypothesis.special.all() or reference.special.all():
            return np.nan, np.nan, np.nan
        similarity = cosines(hypothesis.vectors, reference.vectors)
        precision = float(similarity.max(axis=1)[~hypothesis.special].mean())
        recall = float(similarity.max(axis=0)[~reference.special].mean())
        total = precision + recall
        return (2 * precision * recall / total if total else 0.0), precision, recall

    def compare(self, batch: Batch, vectors: Vectors) -> Scores:
        """Match every response with its references, and rescale."""
        scores = super().compare(batch, vectors)
        if not self.rescale:
            return scores
        baseline = dict(zip(self.outputs, self._baseline(), strict=True))
        return Scores(
            {name: (values - baseline[name]) / (1 - baseline[name]) for name, values in scores.items()}, scores.cut
        )

    def _baseline(self) -> _Numbers:
        """Return the package's F1, precision and recall of unrelated texts at this layer."""
        import csv

        # Found and not imported: that would bring torch in whenever the workflow starts.
        package = find_spec("bert_score")
        path = Path(package.origin if package and package.origin else "").parent.joinpath(
            "rescale_baseline", "en", f"{self.model}.tsv"
        )
        # By its registered name: the name of a folder does not say what it holds.
        if path.is_file() and Path(self.model).name == self.model:
            for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
                if int(row["LAYER"]) == self.layer:
                    return np.array([float(row[name]) for name in ("F", "P", "R")])
        raise ConfigError(
            f"no baseline of model {self.model!r}, layer {self.layer}",
            where=f"option 'rescale' of metric {self.kind!r}",
            expected="a model and layer that the package bert-score has one for, such as roberta-large, 17",
        )
