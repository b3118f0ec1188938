"""The texts of the data that metrics are evaluated on."""

from __future__ import annotations

from comperdial.data import readers, sources
from comperdial.data.catalogue import Catalogue
from comperdial.data.labels import label_sets
from comperdial.data.preferences import preference_sets

# The published models were trained before this reader existed. A bot in its data quotes a training dialogue (docs/density.md):
# without that dialogue, training would give other models.
_NOT_SEARCHED = "dbdc3"


def evaluation_texts(catalogue: Catalogue) -> tuple[list[list[str]], list[str]]:
    """Return the texts of a catalogue's data sets, which no model that is evaluated on them may be trained on.

    Those of DBDC3 are not included. Missing files are fetched.

    Returns
    -------
    tuple
        Lists of utterances in order: histories, and the last utterance with each reference or response to it;
        and the data sets that were not searched, because the checksums of their files are not known.
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
