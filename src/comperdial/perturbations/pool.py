"""What the other dialogues of a data set say: where random texts and other names come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from comperdial.perturbations.entities import Entity, Finder
from comperdial.perturbations.text import same

_TRIES = 100


class Pool:
    """The texts of a data set by dialogue.

    Parameters
    ----------
    responses
        Responses of each dialogue, those of reference systems left out.
    others
        What else was said in each dialogue: histories and references.
    not_drawn
        What was said in each dialogue too, but is not to be drawn elsewhere.
    """

    def __init__(
        self,
        responses: Mapping[str, Iterable[str]],
        others: Mapping[str, Iterable[str]] | None = None,
        not_drawn: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        own = {dialogue: set(texts) for dialogue, texts in responses.items()}
        rest = {dialogue: set(texts) for dialogue, texts in (others or {}).items()}
        more = {dialogue: set(texts) for dialogue, texts in (not_drawn or {}).items()}
        dialogues = own.keys() | rest.keys() | more.keys()
        self._said = {d: own.get(d, set()) | rest.get(d, set()) | more.get(d, set()) for d in dialogues}
        # Sorted: the order of a set is another in each run.
        self.responses = tuple(sorted(set[str]().union(*own.values())))
        self.utterances = tuple(sorted(set[str]().union(*own.values(), *rest.values())))

    def elsewhere(
        self, dialogue_id: str, random: np.random.Generator, *, than: str, responses: bool = False
    ) -> str | None:
        """Return a random text of another dialogue that nobody said in this one; None when there seems to be none.

        Parameters
        ----------
        dialogue_id
            The dialogue that it must not be of.
        random
            Where chance comes from.
        than
            A text that it must differ from.
        responses
            Take responses only, else all utterances.
        """
        texts = self.responses if responses else self.utterances
        said = self._said.get(dialogue_id, set())
        for _ in range(_TRIES if texts else 0):
            text = texts[random.integers(len(texts))]
            if text not in said and not same(text, than):
                return text
        return None

    @cached_property
    def finder(self) -> Finder:
        """Return what finds the entities in this data set's texts."""
        return Finder(self.utterances)

    @cached_property
    def entities(self) -> Mapping[str, tuple[str, ...]]:
        """Return the data set's entities by kind, each once, sorted."""
        found: dict[str, set[str]] = {}
        for text in self.utterances:
            for entity in self.finder.find(text):
                found.setdefault(entity.kind, set()).add(entity.text)
        return {kind: tuple(sorted(names)) for kind, names in sorted(found.items())}


__all__ = ["Entity", "Pool"]
