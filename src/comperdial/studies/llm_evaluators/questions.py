"""Table 9: what implicit scoring asks for each dimension, in our words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from comperdial.judges.prompting import find_question
from comperdial.judges.tasks import DEFAULT, read_judging
from comperdial.report.document import Document, Section
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators.common import LEVELS, PAPER
from comperdial.studies.llm_evaluators.notes import not_asked_notes


def table_9(variants: Mapping[str, Any], not_asked: Sequence[str] = ()) -> Document:
    """Render Table 9.

    Parameters
    ----------
    variants
        ``judging.variants`` of ``params.yaml``: those with a ``question`` are shown, each with our question for its
        dimension or, where it has words of its own, with these.
    not_asked
        Whom or what was not asked, and why.
    """
    records = []
    judging = read_judging(None, {"judges": {DEFAULT: []}, "variants": dict(variants)})
    for name, variant in judging.variants.items():
        if not variant.question:
            continue
        text = find_question(variant.question, variant.level)
        record = {"level": variant.level, "variant": name, "question": text}
        records += [record | {"dimension": dimension} for dimension in variant.form.dimensions]
    frame = pd.DataFrame(records, columns=["level", "dimension", "variant", "question"])
    sections = []
    columns = [("", "Dimension"), ("", "Variant"), ("", "Question as asked here")]
    for level, title in LEVELS.items():
        of_level = frame[frame["level"] == level]
        order = [*DIMENSIONS[level], *sorted(set(of_level["dimension"]) - set(DIMENSIONS[level]))]
        rows = []
        for dimension in order:
            of_dimension = of_level[of_level["dimension"] == dimension].to_dict("records")
            rows += [[dimension, row["variant"], row["question"]] for row in of_dimension] or [[dimension, "–", "–"]]
        sections.append(Section(title, columns, rows))
    return Document(
        title="Table 9. What is asked for each dimension",
        caption="The question that implicit scoring asks for each dimension, in our words; the score is the "
        "probability of the label Yes among Yes and No.",
        sections=sections,
        tidy=frame,
        notes=[
            f"The wording of {PAPER} (their Table 9) is not repeated here; with `prompts: FOLDER` judges are asked in it",
            "A dash: no variant of params.yaml asks for this dimension",
            *not_asked_notes(not_asked),
        ],
    )
