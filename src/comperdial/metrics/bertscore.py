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
    """Precision, recall and F1 of greedy cosine matches between the tokens of a response and its reference.

    Source: Zhang et al. 2020, without idf weights. Precision is the mean, over the response's tokens, of the best cosine
    with a token of the reference; recall swaps the two texts; F1 = 2 P R / (P + R). A token may match the other text's
    [CLS] and [SEP], which are not matched themselves. ``rescale: true`` maps b, bert-score's baseline of unrelated
    English texts, to 0: (score - b) / (1 - b); baselines exist for some models and layers. A text that is empty after
    normalisation has no score.

    Scores agree within 1e-5 with the package bert-score 0.3.13 when it scores one pair at a time. When it scores many
    pairs, it counts padding as a token with cosine 0, which changes its scores by up to 0.006. With several references,
    the best F1 counts; the package takes the maximum of P, R and F1 separately. ``prefix_space: true`` encodes the first
    word as bert-score did when the papers were written; ``false`` is its behaviour under transformers 5.

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
        """Return why the model, or the package with the baseline, is unavailable, or None."""
        lacking = self.rescale and not find_spec("bert_score")
        return "not installed: bert-score, which has the baseline" if lacking else super().unavailable()

    def signature(self) -> str:
        """Add the version of bert-score if its baseline is used."""
        package = f"|bert-score:{versions.installed('bert-score')}" if self.rescale else ""
        return super().signature() + package

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names of F1, precision and recall."""
        return ("f1", "precision", "recall")

    @property
    def bounds(self) -> Mapping[str, Bounds | None]:
        """Return -1 to 1, or these bounds rescaled.

        In theory an F1 can be lower, if precision and recall have opposite signs. That requires a negative mean of best
        cosines: most tokens of a text would point away from every token of the other, [CLS] and [SEP] included.
        """
        if not self.rescale:
            return dict.fromkeys(self.outputs, (-1.0, 1.0))
        baseline = dict(zip(self.outputs, self._baseline().tolist(), strict=True))
        return {name: ((-1 - value) / (1 - value), 1.0) for name, value in baseline.items()}

    @property
    def encoder(self) -> Encoder:
        """Return the encoder of the texts."""
        return replace(super().encoder, prefix_space=self.prefix_space)

    def pair(self, hypothesis: Encoded, reference: Encoded) -> tuple[float, ...]:
        """Return F1, precision and recall of two texts; NaN if one of them has no tokens except special ones."""
        if hypothesis.special.all() or reference.special.all():
            return np.nan, np.nan, np.nan
        similarity = cosines(hypothesis.vectors, reference.vectors)
        precision = float(similarity.max(axis=1)[~hypothesis.special].mean())
        recall = float(similarity.max(axis=0)[~reference.special].mean())
        total = precision + recall
        return (2 * precision * recall / total if total else 0.0), precision, recall

    def compare(self, batch: Batch, vectors: Vectors) -> Scores:
        """Compare every response with its references, and rescale."""
        scores = super().compare(batch, vectors)
        if not self.rescale:
            return scores
        baseline = dict(zip(self.outputs, self._baseline(), strict=True))
        return Scores(
            {name: (values - baseline[name]) / (1 - baseline[name]) for name, values in scores.items()}, scores.cut
        )

    def _baseline(self) -> _Numbers:
        """Return the package's baseline F1, precision and recall at this layer."""
        import csv

        # Located without importing it, which would load torch whenever the workflow starts.
        package = find_spec("bert_score")
        path = Path(package.origin if package and package.origin else "").parent.joinpath(
            "rescale_baseline", "en", f"{self.model}.tsv"
        )
        # Only for a registered name: the name of a local folder does not identify the model.
        if path.is_file() and Path(self.model).name == self.model:
            for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
                if int(row["LAYER"]) == self.layer:
                    return np.array([float(row[name]) for name in ("F", "P", "R")])
        raise ConfigError(
            f"no baseline of model {self.model!r}, layer {self.layer}",
            where=f"option 'rescale' of metric {self.kind!r}",
            expected="a model and layer that the package bert-score has one for, such as roberta-large, 17",
        )
