"""The table of recorded judges: how many of their answers can be read, and how they agree with people."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

import pandas as pd

from comperdial.report.document import Column, Document, count_of, listed, value_of
from comperdial.report.labels import label


def recorded_judges_frame(coverage: pd.DataFrame, reported: pd.DataFrame, prompts: Mapping[str, str]) -> pd.DataFrame:
    """Put the counts and correlations of recorded judges beside the reported ones.

    Parameters
    ----------
    coverage
        What :func:`comperdial.judges.recorded.taking.coverage` counts, of one or more judges.
    reported
        ``src/comperdial/judges/recorded/chiang2023_reported.csv``.
    prompts
        Which prompt each judge was given.

    Returns
    -------
    DataFrame
        The rows of ``coverage`` with ``prompt``, ``reported_pearson`` and ``reported_kendall``; missing where nothing
        is reported.
    """
    frame = coverage.assign(prompt=coverage["metric"].map(prompts))
    for coefficient in ("pearson", "kendall"):
        known = reported[reported["coefficient"] == coefficient].set_index(["prompt", "dimension"])["value"]
        keys = pd.MultiIndex.from_frame(frame[["prompt", "dimension"]])
        frame[f"reported_{coefficient}"] = known.reindex(keys).to_numpy()
    return frame


def recorded_judges_document(
    frame: pd.DataFrame, title: str, models: Mapping[str, str], labels: Mapping[str, str]
) -> Document:
    """Render the frame of :func:`recorded_judges_frame`; ``labels`` are what outputs are called."""
    counts = {"items": "items", "all": "answers", "not readable": "unread"}
    values = {"ours": "", "read as theirs": "owners_", "reported": "reported_"}
    columns = [
        Column("", "Judge", lambda row: label((row["metric"], row["dimension"]), labels)),
        Column("", "Dimension", itemgetter("dimension")),
        *(Column("answers", name, count_of(of)) for name, of in counts.items()),
        *(
            Column(coefficient.title(), name, value_of(whose + coefficient))
            for coefficient in ("pearson", "kendall")
            for name, whose in values.items()
        ),
    ]
    named = "; ".join(f"{name}: {model}" for name, model in models.items())
    targets = frame.drop_duplicates("dimension")
    return Document(
        title=f"Answers of language models recorded by others, on {title}",
        caption=(
            "Raw answers that others published, read by our parser: how many there are, how many hold no rating, and "
            "the correlation of their means with the mean human ratings. All items count, the original responses too, "
            "as in the study that published them: the tables of metrics leave those out."
        ),
        sections=[listed(title, frame, columns)],
        tidy=frame,
        notes=[
            "Pearson pools all items; Kendall is tau-b within each context, averaged over contexts",
            "Held against: " + ", ".join(f"{r['dimension']} with {r['target']}" for r in targets.to_dict("records")),
            f"The model of each, as the source names it: {named}",
            "Reported: Chiang and Lee 2023, where the files are those of a reported row",
            'Read as theirs: the first digit after the last "rating:", which gives the reported values. It takes 0 of '
            "0.5 and 2 of 2.5, the number of a list's item, and numbers outside the scale; ours does not",
            *(
                f"{label((row['metric'], row['dimension']), labels)}: not readable: {row['why']}"
                for row in frame.to_dict("records")
                if isinstance(row["why"], str) and row["why"]
            ),
        ],
    )
