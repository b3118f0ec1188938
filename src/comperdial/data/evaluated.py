"""What is said in the data that metrics are evaluated on."""

from __future__ import annotations

from comperdial.data import readers, sources
from comperdial.data.catalogue import Catalogue


def evaluation_texts(catalogue: Catalogue) -> tuple[list[list[str]], list[str]]:
    """Return all that is said in the data sets of a catalogue, which no model that is evaluated on them may learn.

    Files that are not here yet are fetched.

    Returns
    -------
    tuple
        Lists of utterances in their order: histories, and the last utterance with each reference or response to it;
        and the data sets that could not be looked at, because nobody has recorded what their files are.
    """
    texts: list[list[str]] = []
    unknown = []
    for name, entry in catalogue.datasets.items():
        if not all(source.pinned for source in entry.files.values()):
            unknown.append(name)
            continue
        files = {role: sources.raw_path(source) for role, source in entry.files.items()}
        for role, source in entry.files.items():
            sources.fetch(source, files[role])
        tables = readers.read(entry.reader, name, files)
        last: dict[str, list[str]] = {}
        contexts = tables["contexts"]
        for context, told, references in zip(
            contexts["context_id"], contexts["history"], contexts["references"], strict=True
        ):
            history = [utterance["text"] for utterance in told]
            last[context] = history[-1:]
            texts += [history, *([*history[-1:], reference] for reference in references)]
        responses = tables["responses"]
        answers = zip(responses["context_id"], responses["response"], strict=True)
        texts += [[*last[context], response] for context, response in answers]
    return texts, unknown
