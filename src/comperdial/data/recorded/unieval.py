"""The file in which UniEval's authors keep what their evaluator gave for USR-TopicalChat (Zhong et al. 2022)."""

from __future__ import annotations

import logging

import pandas as pd

from comperdial.core.errors import SchemaError
from comperdial.data.readers.base import get
from comperdial.data.recorded._usr_items import DIMENSIONS, finite, human_means, read_items
from comperdial.data.recorded.base import Format, Row, frame

log = logging.getLogger(__name__)

MAIN = "overall"


class UniEval(Format):
    """A JSON list of ``{source, system_id, system_output, context, scores, predict_scores}``.

    ``source`` is the dialogue before the response, an utterance a line; ``context`` is the fact, which is not needed.
    An item is of the response that has the same dialogue, system and text: its place in the list does not count. Its
    ``scores`` are means of the human ratings, and must be what the data set's own ratings give. ``predict_scores`` are
    the evaluator's: one output a dimension.
    """

    def read(self) -> pd.DataFrame:
        """Return the ``predict_scores``, overall first, named by item (counted from 0)."""
        if human_means(self.rated) is None:
            log.warning("%s: no human ratings of %s to check the items with", self.path.name, self.rated.dataset)
        rows: list[Row] = []
        outputs: list[str] = []
        for item in read_items(self.path, self.rated):
            scores = get(item.content, "predict_scores", dict, item.where)
            outputs = outputs or sorted(scores, key=lambda output: output != MAIN)
            if not scores or set(scores) != set(outputs):
                expected = ", ".join(outputs or DIMENSIONS)
                raise SchemaError(
                    f"`predict_scores` is of {', '.join(scores) or 'nothing'}", where=item.where, expected=expected
                )
            of = (f"item {item.number}", "turn", item.context_id, item.system_id)
            rows += [(*of, output, finite(scores, output, item.where)) for output in outputs]
        return frame(rows)
