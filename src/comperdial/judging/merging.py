"""Make the two tables of a judge's shards one each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from comperdial import schema
from comperdial.core.errors import ComperdialError, SchemaError

# Judgements that are read at once.
_ROWS = 65_536


def merge_judged(
    scores: Sequence[str | Path], judgements: Sequence[str | Path], output: str | Path, output_judgements: str | Path
) -> None:
    """Merge the shards' tables as :func:`comperdial.schema.merge` does.

    Parameters
    ----------
    scores, judgements
        The shards' Parquet files, as :func:`comperdial.judging.running.write_judged` made them.
    output, output_judgements
        The files to write.

    Raises
    ------
    ComperdialError
        When none of all shards' answers can be read: one shard cannot tell that.
    SchemaError
        When a table breaks its rules, two shards are of the same requests, or scores and judgements are of different
        shards.
    """
    asked = sum(schema.count(path, "judgements") for path in judgements)
    if asked and not sum(schema.count(path, "scores") for path in scores):
        parts = (part for path in judgements for part in schema.read_parts(path, "judgements", _ROWS))
        failures = Counter(reason for part in parts for reason in part["failure"].dropna())
        if not failures:
            raise SchemaError(
                "no scores, and judgements with ratings", where=str(scores[0]), expected="both of the same shards"
            )
        raise ComperdialError(
            unread(asked, failures),
            where=str(Path(judgements[0]).parent),
            expected="a rating in each",
            hint="The shards' warnings show an answer",
        )
    schema.merge(judgements, output_judgements)
    schema.merge(scores, output)


def unread(judgements: int, failures: Counter[str]) -> str:
    """Say that no answer at all could be read, and what is wrong with most."""
    reason = failures.most_common(1)[0][0]
    return f"none of {judgements} answers can be read, most of them for this reason: {reason}"
