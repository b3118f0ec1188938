"""The texts of the evaluation data, which must stay out of training."""

from __future__ import annotations

from comperdial.data import readers, sources
from comperdial.data.catalogue import Catalogue
from comperdial.data.labels import label_sets
from comperdial.data.preferences import preference_sets

# Excluded because the published models were trained before this reader existed: a bot in its data quotes a training dialogue
# (docs/density.md), and removing that dialogue would change the models.
_NOT_SEARCHED = "dbdc3"


def evaluation_texts(catalogue: Catalogue) -> tuple[list[list[str]], list[str]]:
    """Return the texts of a catalogue's data sets, on which no evaluated model may be trained.

    DBDC3 is excluded. Missing files are downloaded.

    Returns
    -------
    tuple
        Lists of consecutive utterances: histories, and the last utterance with each reference or response to it; and the data
        sets that were skipped because their files have no known checksum.
    """
    texts: list[list[str]] = []
    unknown = []
    for name, entry in catalogue.datasets.items():
        if not all(source.pinned for source in entry.files.values()):
            unknown.append(name)
        elif entry.reader != _NOT_SEARCHED and name not in {*preference_sets(catalogue), *label_sets(catalogue)}:
            tables = readers.read(entry.reader, name, sources.require_all(entry.files))
            last: dict[str, list[str]] = {}
            for row in tables["contexts"].to_dict("records"):
                history = [utterance["text"] for utterance in row["history"]]
                last[row["context_id"]] = history[-1:]
                texts += [history, *([*history[-1:], reference] for reference in row["references"])]
            responses = zip(tables["responses"]["context_id"], tables["responses"]["response"], strict=True)
            texts += [[*last[context], response] for context, response in responses]
    return texts, unknown
