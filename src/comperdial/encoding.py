"""Encode a dataset's texts for all metrics of embeddings together, before any of them is computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from comperdial.errors import ConfigError
from comperdial.metrics import Batch, Metric
from comperdial.metrics._embedding import EmbeddingMetric
from comperdial.scoring import parts


def encoder_of(metric: Metric) -> str | None:
    """Return the name of what a metric's vectors are kept under; None for a metric without vectors."""
    return metric.encoder.namespace() if isinstance(metric, EmbeddingMetric) else None


def encode_tables(metrics: Sequence[Metric], folder: str | Path) -> int:
    """Encode every text of a dataset that some metrics look at, each once.

    Parameters
    ----------
    metrics
        Metrics that share an encoder.
    folder
        As :func:`comperdial.scoring.score_tables` takes it.

    Returns
    -------
    int
        How many texts were not in the store yet.

    Raises
    ------
    ConfigError
        When the metrics do not share an encoder, or have none.
    """
    embedding = [metric for metric in metrics if isinstance(metric, EmbeddingMetric)]
    if len(embedding) < len(metrics) or len({encoder_of(metric) for metric in metrics}) != 1:
        raise ConfigError(
            f"metrics {', '.join(metric.kind for metric in metrics)}", expected="metrics of one and the same encoder"
        )
    added = 0
    for responses, context in parts(folder):
        columns = (responses["response"], context["references"], context["history"], context["facts"])
        batch = Batch(*map(list, columns))
        added += sum(metric.encoder.vectors().add(metric.texts(batch)) for metric in embedding)
    return added
