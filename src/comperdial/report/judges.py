"""The table of judges: what was asked, what came back, what could not be read, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.report.captions import with_suffix
from comperdial.report.document import Column, Document, count_of, listed, value_of
from comperdial.report.labels import metrics_not_run

# The most kinds of failure that a note names.
_KINDS = 5


def judges_frame(paths: Sequence[str | Path]) -> pd.DataFrame:
    """Count tables ``judgements``: one row a metric.

    Returns
    -------
    DataFrame
        Columns dataset, level, metric; judgements; answers (distinct ones: what two systems said alike is judged
        once); failed (judgements that could not be read, fresh samples included); fresh (judgements that a first
        answer did not give); items, scored (those with at least one judgement); rationales; input_tokens,
        output_tokens and cost of the distinct answers (US dollars; missing where it is not known).
    """
    rows = []
    for path in paths:
        content = schema.read(path, "judgements")
        if content.empty:
            continue
        once = content.drop_duplicates("key")
        items = content.groupby(["item_id", "system_id"])["value"].count()
        rows.append(
            {
                "dataset": content["dataset"].iloc[0],
                "level": content["level"].iloc[0],
                "metric": content["metric"].iloc[0],
                "judgements": len(content),
                "answers": len(once),
                "failed": int(content["failure"].notna().sum()),
                "fresh": int((content["tries"] > 1).sum()),
                "items": len(items),
                "scored": int((items > 0).sum()),
                "rationales": int(content["rationale"].notna().sum()),
                "input_tokens": _total(once["input_tokens"]),
                "output_tokens": _total(once["output_tokens"]),
                "cost": _total(once["cost"]),
                "failures": "; ".join(content["failure"].value_counts().head(_KINDS).index),
            }
        )
    return pd.DataFrame(
        rows,
        columns=[
            "dataset", "level", "metric", "judgements", "answers", "failed", "fresh", "items", "scored", "rationales",
            "input_tokens", "output_tokens", "cost", "failures",
        ],
    )  # fmt: skip


def _total(values: pd.Series) -> float | None:
    """Return the sum, or None if a value is not known: a sum of what is known would look like the whole."""
    return None if values.isna().any() else float(values.sum())


def judges_document(
    frame: pd.DataFrame,
    title: str,
    labels: Mapping[str, str],
    not_run: Mapping[str, str],
    *,
    suffix: str = "",
) -> Document:
    """Render the frame of :func:`judges_frame`.

    Parameters
    ----------
    title
        The data set's title.
    labels
        What each metric is called: the variant, and who judged.
    not_run
        Metrics of judges that could not run, and why.
    suffix
        Ends the caption.
    """
    columns = [
        Column("", "Variant", lambda row: labels.get(row["metric"], row["metric"])),
        Column("judgements", "all", count_of("judgements")),
        Column("judgements", "distinct", count_of("answers")),
        Column("judgements", "not readable", count_of("failed")),
        Column("judgements", "by fresh samples", count_of("fresh")),
        Column("items", "without a score", lambda row: f"{row['items'] - row['scored']:,}"),
        Column("tokens", "in", count_of("input_tokens")),
        Column("tokens", "out", count_of("output_tokens")),
        Column("cost", "US dollars", value_of("cost", digits=2)),
    ]
    return Document(
        title=f"Judges on {title}",
        caption=with_suffix(
            f"What judges were asked on {title}, and what came back. A judgement is one rating of one response, or of "
            "one dialogue of one system; what several systems said alike was asked once.",
            suffix,
        ),
        sections=[listed(title, frame, columns)],
        tidy=frame,
        notes=[
            "The judge `rules` is a program that counts words, no language model: its scores are no LLM's",
            "A judgement that could not be read after the fresh samples is left out; an item without any has no score",
            "Tokens of `rules` are words and marks",
            *(
                f"{labels.get(row['metric'], row['metric'])}: not readable: {row['failures']}"
                for row in frame.to_dict("records")
                if row["failures"]
            ),
            *metrics_not_run(not_run, labels),
        ],
    )
