"""Which pair of dialogues is shown to whom, and on which side each is (Li, Weston and Roller 2019, ACUTE-Eval).

The rules, by priority: no annotator sees a dialogue twice (always); comparisons of systems are shown
equally often; a pair of dialogues is shown once, and a dialogue is, while there are enough of them; of each comparison
and for each annotator, each system is left as often as right, to within one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from comperdial.challenge.pairs.dialogues import Dialogue, Utterances
from comperdial.challenge.pairs.questions import Question
from comperdial.challenge.pairs.reading import Material, Pair, pair_of
from comperdial.core.errors import ConfigError, UnknownNameError

Comparison = tuple[str, str]
"""Two systems, in alphabetical order; the same twice for a comparison of a system with itself."""


@dataclass(frozen=True)
class Task:
    """One pair that one annotator is to judge.

    Attributes
    ----------
    annotator
        Who.
    question
        What is asked.
    pair
        The dialogues; a control if ``is_control``.
    left
        ``first`` or ``second``: which of the pair is on the left.
    """

    annotator: str
    question: Question
    pair: Pair
    left: str
    is_control: bool = False

    @property
    def control(self) -> str | None:
        """Return the known answer of a control; None of any other pair."""
        return self.pair.answer if self.is_control else None


@dataclass
class Design:
    """The tasks of all annotators, in the order in which each gets them, and the rules that could not be kept.

    Attributes
    ----------
    tasks
        Those of one annotator follow each other.
    broken
        Sentences for people: what had to be shown more than once, and how often.
    """

    tasks: list[Task]
    broken: list[str] = field(default_factory=list)

    def annotators(self) -> dict[str, list[Task]]:
        """Return the tasks by annotator."""
        found: dict[str, list[Task]] = {}
        for task in self.tasks:
            found.setdefault(task.annotator, []).append(task)
        return found

    def dialogues(self) -> list[Dialogue]:
        """Return the dialogues that are shown, in the order of their systems and names."""
        shown = {d.key: d for task in self.tasks for d in (task.pair.first, task.pair.second)}
        return [shown[key] for key in sorted(shown, key=lambda key: (key[1], key[0]))]


def make_design(
    material: Material,
    questions: Sequence[Question],
    *,
    annotators: int,
    pairs_each: int,
    compare: Sequence[tuple[str, str]] = (),
    seed: int = 0,
) -> Design:
    """Share out pairs of dialogues among annotators.

    Each annotator is asked one question, and each question is asked of the same pairs, as in the paper, where a
    question is an experiment of its own.

    Parameters
    ----------
    material
        Dialogues, pairs of them if only these are to be shown, and controls: each annotator's first task is one.
    questions
        What is asked.
    annotators
        How many for each question.
    pairs_each
        How many pairs each of them gets, besides the control.
    compare
        Which systems are compared; a system may be compared with itself. Default: each with each, or what the given
        pairs compare.
    seed
        Determines everything that is drawn.

    Raises
    ------
    ConfigError
        When there is nothing to compare, or an annotator would have to see a dialogue twice.
    """
    for name, value in (("annotators", annotators), ("pairs each", pairs_each)):
        if value < 1:
            raise ConfigError(f"{value} {name}", expected="a whole number of 1 or more")
    rng = np.random.default_rng(seed)
    board = _Board(material, compare)
    width = max(2, len(str(annotators * len(questions))))
    shown: list[list[tuple[Pair, bool]]] = []
    for number in range(annotators):
        control = [material.controls[number % len(material.controls)]] if material.controls else []
        shown.append([(pair, True) for pair in control])
        shown[-1] += [(pair, False) for pair in board.draw(pairs_each, control, rng)]
    edges = [
        (number, ("control", pair.id) if is_control else ("compared", *pair.systems))
        for number, tasks in enumerate(shown)
        for pair, is_control in tasks
    ]
    sides = iter(split_evenly(edges, rng))
    lefts = [["first" if next(sides) else "second" for _ in tasks] for tasks in shown]
    tasks = [
        Task(f"a{asked * annotators + number + 1:0{width}d}", question, pair, left, is_control)
        for asked, question in enumerate(questions)
        for number in range(annotators)
        for (pair, is_control), left in zip(shown[number], lefts[number], strict=True)
    ]
    return Design(tasks, board.broken())


class _Board:
    """The dialogues, what may be compared, and how often each was shown so far."""

    def __init__(self, material: Material, compare: Sequence[tuple[str, str]]) -> None:
        self.dialogues = list(material.dialogues.values())
        # Dialogues of equal words are one dialogue to readers, whatever their names and whoever is judged.
        self.texts: dict[Utterances, int] = {}
        self.text_of = np.array([self.texts.setdefault(one.utterances, len(self.texts)) for one in self.dialogues])
        self.uses = np.zeros(len(self.texts), dtype=np.int64)
        by_system: dict[str, list[int]] = defaultdict(list)
        for number, dialogue in enumerate(self.dialogues):
            by_system[dialogue.system_id].append(number)
        self.by_system = {system: np.array(numbers) for system, numbers in by_system.items()}
        comparisons = [_comparison(one, other, self.by_system) for one, other in compare]
        comparisons = comparisons or sorted({pair.systems for pair in material.pairs})
        comparisons = comparisons or list(combinations(sorted(self.by_system), 2))
        self.pair_uses: dict[Comparison, npt.NDArray[np.int64]] = {}
        self.allowed: dict[Comparison, npt.NDArray[np.bool_]] = {}
        places = {self.dialogues[n].key: place for ns in by_system.values() for place, n in enumerate(ns)}
        for one, other in dict.fromkeys(comparisons):
            rows, columns = (self.text_of[self.by_system[system]] for system in (one, other))
            self.pair_uses[one, other] = np.zeros((len(rows), len(columns)), dtype=np.int64)
            allowed = np.not_equal.outer(rows, columns)
            if one == other:
                allowed = np.triu(allowed, 1)
            if material.pairs:
                named = np.zeros_like(allowed)
                for pair in material.pairs:
                    if pair.systems == (one, other):
                        named[places[pair.first.key], places[pair.second.key]] = True
                        named[places[pair.second.key], places[pair.first.key]] |= one == other
                allowed &= named
            self.allowed[one, other] = allowed
        if not any(allowed.any() for allowed in self.allowed.values()):
            systems = ", ".join(sorted(self.by_system)) or "none"
            raise ConfigError(
                f"no two dialogues to compare; the systems are {systems}", expected="dialogues of two systems or more"
            )
        self.counts = Counter(dict.fromkeys(self.allowed, 0))

    def draw(self, count: int, controls: Sequence[Pair], rng: np.random.Generator) -> list[Pair]:
        """Return one annotator's pairs in random order; those least shown so far come first."""
        seen = np.zeros(len(self.uses), dtype=np.bool_)
        for dialogue in (side for pair in controls for side in (pair.first, pair.second)):
            if dialogue.utterances in self.texts:
                seen[self.texts[dialogue.utterances]] = True
        mine: dict[Comparison, list[tuple[int, int]]] = {comparison: [] for comparison in self.allowed}
        for number in range(count):
            order = sorted(self.allowed, key=lambda c: (self.counts[c], len(mine[c]), rng.random()))
            drawn = next(((c, two) for c in order if (two := self._least_shown(c, seen, rng)) is not None), None)
            if drawn is None:
                raise ConfigError(
                    f"after {number} pairs, an annotator has seen a dialogue of every pair that is left",
                    expected=f"at most {number} pairs each, or more dialogues" if number else "more dialogues",
                )
            comparison, places = drawn
            self.counts[comparison] += 1
            mine[comparison].append(places)
            for system, place in zip(comparison, places, strict=True):
                text = self.text_of[self.by_system[system][place]]
                self.uses[text] += 1
                seen[text] = True
        found = []
        for comparison, drawn_places in mine.items():
            one, other = (self.by_system[system] for system in comparison)
            for row, column in self._matched(comparison, drawn_places, rng):
                self.pair_uses[comparison][row, column] += 1
                found.append(pair_of(self.dialogues[one[row]], self.dialogues[other[column]]))
        return [found[i] for i in rng.permutation(count)]

    def _least_shown(
        self, comparison: Comparison, seen: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[int, int] | None:
        """Return an unseen pair: of those that were shown least, one whose dialogues were; None if there is none."""
        rows, columns = (self.text_of[self.by_system[system]] for system in comparison)
        allowed = self.allowed[comparison] & ~seen[rows][:, None] & ~seen[columns][None, :]
        if not allowed.any():
            return None
        uses = self.uses[rows][:, None] + self.uses[columns][None, :]
        cost = self.pair_uses[comparison] * (uses.max() + 1) + uses
        best = np.flatnonzero(allowed & (cost == cost[allowed].min()))
        row, column = divmod(int(rng.choice(best)), len(columns))
        return row, column

    def _matched(
        self, comparison: Comparison, places: Sequence[tuple[int, int]], rng: np.random.Generator
    ) -> list[tuple[int, int]]:
        """Pair the drawn dialogues of two systems anew, so that as few pairs as possible were shown before."""
        if not places:
            return []
        rows, columns = np.array(places).T
        square = np.ix_(rows, columns)
        uses = np.where(self.allowed[comparison][square], self.pair_uses[comparison][square], 1e9)
        # Random numbers below one break ties.
        chosen = linear_sum_assignment(uses + rng.random(uses.shape) / (len(rows) + 1))
        return [(int(rows[i]), int(columns[j])) for i, j in zip(*chosen, strict=True)]

    def broken(self) -> list[str]:
        """Return which of the rules that may be broken were."""
        notes = []
        pairs = np.concatenate([uses.ravel() for uses in self.pair_uses.values()])
        if again := int((pairs > 1).sum()):
            notes.append(
                f"{again} of {int((pairs > 0).sum())} pairs are shown more than once, at most {int(pairs.max())} times"
            )
        for system, numbers in sorted(self.by_system.items()):
            uses = self.uses[self.text_of[numbers]]
            if uses.max() > 1:
                notes.append(
                    f"{int((uses > 1).sum())} of {len(numbers)} dialogues of {system} are shown more than once, at "
                    f"most {int(uses.max())} times: {int(uses.sum())} are needed"
                )
        ordered = self.counts.most_common()
        (most, at_most), (least, at_least) = ordered[0], ordered[-1]
        if at_most > at_least + 1:
            notes.append(
                f"comparisons are not shown equally often: {' and '.join(most)} {at_most} times, "
                f"{' and '.join(least)} {at_least}"
            )
        return notes


def _comparison(one: str, other: str, systems: Collection[str]) -> Comparison:
    for name in (one, other):
        if name not in systems:
            raise UnknownNameError("system", name, systems)
    return (one, other) if one <= other else (other, one)


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
