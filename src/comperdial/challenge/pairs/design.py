"""Which pair of dialogues is shown to whom, and on which side each is (Li, Weston and Roller 2019, ACUTE-Eval).

The rules, by priority: no annotator sees a dialogue twice (always); comparisons of systems are shown equally often; a pair of
dialogues is shown once, and a dialogue is, while there are enough of them; of each comparison and for each annotator, each
system is left as often as right, to within one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from comperdial.challenge.pairs.dialogues import Dialogue, Key, Pair, Utterances, pair_of
from comperdial.challenge.pairs.questions import Question
from comperdial.core.errors import ConfigError, UnknownNameError

Systems = tuple[str, str]
"""Two systems, in alphabetical order; the same twice for a comparison of a system with itself."""


@dataclass(frozen=True)
class Task:
    """One pair that one annotator is to judge.

    ``left`` is ``first`` or ``second``: which of the pair is on the left.
    """

    annotator: str
    question: Question
    pair: Pair
    left: str

    @property
    def is_control(self) -> bool:
        """Return whether the answer is known."""
        return self.pair.answer is not None


@dataclass(frozen=True)
class Design:
    """The tasks, those of each annotator in their order, and notes on the rules that could not be kept."""

    tasks: list[Task]
    notes: list[str]


def make_design(
    dialogues: Mapping[Key, Dialogue],
    questions: Sequence[Question],
    *,
    annotators: int,
    pairs_each: int,
    controls: Sequence[Pair] = (),
    compare: Sequence[Systems] = (),
    seed: int = 0,
) -> Design:
    """Share out pairs of dialogues among annotators.

    Each annotator is asked one question, and each question is asked of the same pairs, as in the paper, where a question is
    an experiment of its own.

    Parameters
    ----------
    dialogues
        By dialogue and system.
    questions
        What is asked.
    annotators
        How many for each question.
    pairs_each
        How many pairs each of them gets, besides the control.
    controls
        Pairs with known answers: each annotator's first task is one.
    compare
        Which systems are compared; a system may be compared with itself. Default: each with each.
    seed
        Determines everything that is drawn.

    Raises
    ------
    ConfigError
        When there is nothing to compare, or an annotator would have to see a dialogue twice.
    """
    rng = np.random.default_rng(seed)
    board = _Board(dialogues, compare)
    shown: list[list[Pair]] = []
    for number in range(annotators):
        control = [controls[number % len(controls)]] if controls else []
        shown.append(control + board.draw(pairs_each, control, rng))
    edges: list[tuple[Hashable, Hashable]] = [
        (number, pair.id if pair.answer else (pair.first.system_id, pair.second.system_id))
        for number, pairs in enumerate(shown)
        for pair in pairs
    ]
    sides = iter(split_evenly(edges, rng))
    placed = [[(pair, "first" if next(sides) else "second") for pair in pairs] for pairs in shown]
    width = max(2, len(str(annotators * len(questions))))
    tasks = [
        Task(f"a{asked * annotators + number:0{width}d}", question, pair, left)
        for asked, question in enumerate(questions)
        for number, pairs in enumerate(placed, start=1)
        for pair, left in pairs
    ]
    return Design(tasks, board.notes())


class _Board:
    """The dialogues, what may be compared, and how often each was shown so far."""

    def __init__(self, dialogues: Mapping[Key, Dialogue], compare: Sequence[Systems]) -> None:
        # Dialogues of equal words are one dialogue to readers, whatever their names and whoever is judged.
        self.texts: dict[Utterances, int] = {}
        self.by_system: dict[str, list[Dialogue]] = defaultdict(list)
        for dialogue in dialogues.values():
            self.texts.setdefault(dialogue.utterances, len(self.texts))
            self.by_system[dialogue.system_id].append(dialogue)
        for name in {name for systems in compare for name in systems} - {*self.by_system}:
            raise UnknownNameError("system", name, self.by_system)
        self.text_of = {s: np.array([self.texts[d.utterances] for d in ds]) for s, ds in self.by_system.items()}
        self.uses = np.zeros(len(self.texts), dtype=np.int64)
        # By systems, how often each pair of their dialogues was shown; infinite for pairs that may not be.
        self.pair_uses: dict[Systems, npt.NDArray[np.float64]] = {}
        chosen = [(min(systems), max(systems)) for systems in compare] or combinations(sorted(self.by_system), 2)
        for one, other in dict.fromkeys(chosen):
            excluded = np.equal.outer(self.text_of[one], self.text_of[other])
            if one == other:
                excluded |= np.tri(len(excluded), dtype=np.bool_)
            self.pair_uses[one, other] = np.where(excluded, np.inf, 0)
        if not any(np.isfinite(uses).any() for uses in self.pair_uses.values()):
            systems = ", ".join(sorted(self.by_system)) or "none"
            expected = "dialogues of two systems or more"
            raise ConfigError(f"no two dialogues to compare; the systems are {systems}", expected=expected)
        self.counts = Counter(dict.fromkeys(self.pair_uses, 0))

    def draw(self, count: int, controls: Sequence[Pair], rng: np.random.Generator) -> list[Pair]:
        """Return one annotator's pairs in random order; those least shown so far come first."""
        seen = np.zeros(len(self.uses), dtype=np.bool_)
        for dialogue in (side for control in controls for side in (control.first, control.second)):
            if dialogue.utterances in self.texts:
                seen[self.texts[dialogue.utterances]] = True
        mine: Counter[Systems] = Counter()
        pairs = []
        for number in range(count):
            for systems in sorted(self.pair_uses, key=lambda two: (self.counts[two], mine[two], rng.random())):
                costs = self._costs(systems, seen)
                if np.isfinite(least := costs.min()):
                    break
            else:
                raise ConfigError(
                    f"after {number} pairs, an annotator has seen a dialogue of every pair that is left",
                    expected=f"at most {number} pairs each, or more dialogues" if number else "more dialogues",
                )
            places = divmod(int(rng.choice(np.flatnonzero(costs == least))), costs.shape[1])
            self.counts[systems] += 1
            mine[systems] += 1
            self.pair_uses[systems][places] += 1
            drawn = [self.by_system[system][place] for system, place in zip(systems, places, strict=True)]
            for dialogue in drawn:
                self.uses[self.texts[dialogue.utterances]] += 1
                seen[self.texts[dialogue.utterances]] = True
            pairs.append(pair_of(*drawn))
        return [pairs[i] for i in rng.permutation(count)]

    def _costs(self, systems: Systems, seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return a cost of each pair: how often it was shown, then how often its dialogues were; infinite if seen."""
        rows, columns = (self.text_of[system] for system in systems)
        uses = np.add.outer(self.uses[rows], self.uses[columns])
        costs = self.pair_uses[systems] * (uses.max() + 1) + uses
        costs[np.logical_or.outer(seen[rows], seen[columns])] = np.inf
        return costs

    def notes(self) -> list[str]:
        """Return which of the rules that may be broken were."""
        notes = []
        pairs = np.concatenate([uses[np.isfinite(uses)] for uses in self.pair_uses.values()])
        if again := int((pairs > 1).sum()):
            total, most = int((pairs > 0).sum()), int(pairs.max())
            notes.append(f"{again} of {total} pairs are shown more than once, at most {most} times")
        for system, texts in sorted(self.text_of.items()):
            uses = self.uses[texts]
            if uses.max() > 1:
                notes.append(
                    f"{int((uses > 1).sum())} of {len(texts)} dialogues of {system} are shown more than once, at "
                    f"most {int(uses.max())} times: {int(uses.sum())} are needed"
                )
        ranked = self.counts.most_common()
        (most_of, at_most), (least_of, at_least) = ranked[0], ranked[-1]
        if at_most > at_least + 1:
            notes.append(
                f"comparisons are not shown equally often: {' and '.join(most_of)} {at_most} times, "
                f"{' and '.join(least_of)} {at_least}"
            )
        return notes


def split_evenly(edges: Sequence[tuple[Hashable, Hashable]], rng: np.random.Generator) -> list[bool]:
    """Split the edges of a bipartite graph so that each end has as many of one half as of the other, to within one.

    Ends of odd degree are joined to an extra one on the other side; then every degree is even, each walk ends where it
    began, and an edge's half is the direction in which it is walked (Euler). ``rng`` draws where walks begin.
    """
    walked: list[tuple[Hashable, Hashable]] = [(("left", one), ("right", other)) for one, other in edges]
    lefts, rights = (Counter(edge[side] for edge in walked) for side in (0, 1))
    odd = [end for end, degree in lefts.items() if degree % 2]
    walked += [(end, "extra right") for end in odd]
    walked += [("extra left", end) for end, degree in rights.items() if degree % 2]
    # Both sides have as many edges, so the extra ends are odd together.
    if len(odd) % 2:
        walked.append(("extra left", "extra right"))
    at: dict[Hashable, list[int]] = defaultdict(list)
    for number in rng.permutation(len(walked)).tolist():
        for end in walked[number]:
            at[end].append(number)
    halves: dict[int, bool] = {}
    for start in list(at):
        here = start
        while True:
            while at[here] and at[here][-1] in halves:
                at[here].pop()
            if not at[here]:
                break
            number = at[here].pop()
            halves[number] = walked[number][0] == here
            here = walked[number][1] if halves[number] else walked[number][0]
    return [halves[number] for number in range(len(edges))]
