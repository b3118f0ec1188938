"""A judge as annotator of pairs: which of two dialogues it prefers, asked in both orders.

The prompt shows two whole dialogues, and the answer is the number of the one that is better. Each pair is asked about twice,
either dialogue first. A choice that stays with the dialogue is a preference; one that stays with the place is a tie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.challenge.pairs import Dialogue, chosen, read_questions
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.core.files import check_columns, read_table
from comperdial.judges.asking import Report
from comperdial.judges.items import Item, message, sampled
from comperdial.judges.judging import judge_items
from comperdial.judges.prompting import load
from comperdial.judges.tasks import Judging, Task, Variant
from comperdial.stats.proportions import Share, share

SIDES = ("first", "second")
PAIR = ("pair_id", "first_dialogue_id", "first_system_id", "second_dialogue_id", "second_system_id")
"""The columns that name a pair."""

Dialogues = Mapping[tuple[str, str], Dialogue]

# Services whose answers to a pair another one gives.
_OF_PAIRS = {"rules": "rules_pairs"}


@dataclass(frozen=True)
class Pairs:
    """Pairs to judge, and what people chose.

    Attributes
    ----------
    dataset
        The data set's name: its part of the answers.
    pairs
        One row a pair, with the columns of :data:`PAIR`.
    votes
        Table ``preferences``, if that is what was read; None where it was pairs alone.
    """

    dataset: str
    pairs: pd.DataFrame
    votes: pd.DataFrame | None = None


def read_pairs(path: str | Path) -> Pairs:
    """Read pairs from a CSV, JSONL or Parquet file: table ``preferences``, or the columns of :data:`PAIR` alone.

    Without a column ``dataset`` the data set is called like the file.

    Raises
    ------
    SchemaError
        When a column is missing, a record breaks a rule, there are several data sets, or two pairs have one name.
    """
    path = Path(path)
    frame = read_table(path)
    known = schema.table("preferences").columns
    if "choice" in frame:
        return of_votes(schema.read(path, "preferences"), str(path))
    frame = check_columns(frame, known, path)
    if lacking := [name for name in PAIR if name not in frame]:
        raise SchemaError(
            f"no column {', '.join(map(repr, lacking))}",
            where=str(path),
            expected=f"{', '.join(PAIR)}: which are compared",
        )
    names = frame["dataset"] if "dataset" in frame else pd.Series(path.stem, index=frame.index)
    # As votes of nobody, so that the rules of the table hold here too.
    numbers = [str(number) for number in range(1, len(frame) + 1)]
    filled = frame[list(PAIR)].assign(dataset=names, annotator_id=numbers, question="-", choice="first", source="-")
    empty = dict.fromkeys(name for name in known if name not in filled)
    checked = schema.validate(filled.assign(**empty), "preferences", where=str(path))
    return replace(of_votes(checked, str(path)), votes=None)


def of_votes(votes: pd.DataFrame, where: str = "preferences") -> Pairs:
    """Return the pairs of a table ``preferences``, each once.

    Raises
    ------
    SchemaError
        When there are several data sets, or two pairs have one name.
    """
    names = list(votes["dataset"].unique())
    if len(names) > 1:
        raise SchemaError(
            f"{len(names)} data sets, among them {names[0]!r} and {names[1]!r}",
            where=f"{where}, column 'dataset'",
            expected="one: a data set has its own part of the answers",
        )
    pairs = votes[list(PAIR)].drop_duplicates().reset_index(drop=True)
    if (again := pairs["pair_id"].duplicated()).any():
        name = pairs["pair_id"][again].iloc[0]
        raise SchemaError(
            f"pair {name!r} is of different dialogues, or the other way round",
            where=where,
            expected="the same first and second dialogue wherever a pair is named",
        )
    if pairs.empty:
        raise SchemaError("holds no pair", where=where, expected="a record each")
    return Pairs(str(names[0]), pairs, votes)


# --- asking ----------------------------------------------------------------------------------------------------------


@dataclass
class Choices:
    """What a judge prefers, and how it got there.

    Attributes
    ----------
    preferences
        Table ``preferences``: one row a pair with an answer in each order.
    answers
        One row an answer: the pair, which dialogue was ``shown`` first, and the ``choice``: the dialogue that is better
        (``first`` or ``second`` of the pair, wherever it was shown), a tie, or missing if the answer cannot be read.
    failures
        Why answers could not be read, with their number.
    report
        Of the run; None if nothing was asked.
    """

    preferences: pd.DataFrame
    answers: pd.DataFrame
    failures: Counter[str] = field(default_factory=Counter)
    report: Report | None = None

    @property
    def pairs(self) -> int:
        """Return of how many pairs the judge was asked."""
        return int(self.answers["pair_id"].nunique())

    @property
    def unread(self) -> int:
        """Return how many pairs have no preference, since an answer about them cannot be read."""
        return self.pairs - len(self.preferences)

    @property
    def flipped(self) -> int:
        """Return how many pairs are ties since the choice stayed with the place, not with the dialogue."""
        return int((_by_order(self.answers).nunique(axis=1) > 1).sum())

    @property
    def same(self) -> Share:
        """Return of how many pairs asked in both orders the choice was the same; of none if there is one order."""
        choices = _by_order(self.answers)
        both = choices.nunique(axis=1) == 1 if choices.shape[1] == len(SIDES) else pd.Series(dtype=bool)
        return share(both.to_numpy(dtype=bool), both.index.to_numpy())

    @property
    def chose_first(self) -> Share:
        """Return how often the dialogue shown first was chosen, of the pairs whose answers can all be read."""
        strict = self.answers[self.answers["choice"].isin(SIDES)]
        strict = strict[strict["pair_id"].isin(self.preferences["pair_id"])]
        return share((strict["choice"] == strict["shown"]).to_numpy(dtype=bool), strict["pair_id"].to_numpy())


def judge_pairs(
    judging: Judging,
    judge: str,
    dialogues: Dialogues,
    pairs: Pairs,
    question: str,
    **asking: Any,  # noqa: ANN401
) -> Choices:
    """Ask a judge which dialogue of each pair is better, either one first; what has an answer is not asked again.

    A judge with ``items`` is asked about so many pairs: those with the smallest hash of their names.

    Parameters
    ----------
    judge
        The judge's name.
    question
        The name of one of :func:`comperdial.challenge.pairs.read_questions`, or a text of your own, known by its
        spaces. The table has it as it is given.
    asking
        Options of :func:`comperdial.judges.judging.judge_items`.

    Raises
    ------
    UnknownNameError
        When there is no such judge or question.
    SchemaError
        When a pair names a dialogue that there is not.
    ComperdialError
        As in :func:`comperdial.judges.judging.judge_items`.
    """
    text = question if len(question.split()) > 1 else chosen(read_questions(), [question])[0].text
    task = _task(judging, judge)
    chosen_pairs = sampled(list(pairs.pairs["pair_id"]), judging.judges[judge].items)
    wanted = pairs.pairs.iloc[chosen_pairs].reset_index(drop=True)
    items = list(_items(pairs.dataset, wanted, dialogues, text))
    judged = judge_items(task, items, dataset=pairs.dataset, **asking)
    judgements, failures = judged.judgements, Counter(judged.failures)
    values = judgements["value"].astype(float)
    if not task.variant.labels:
        between = values.notna() & ~values.isin([1, 2])
        failures += Counter({"a number between 1 and 2": int(between.sum())})
        values = values.mask(between)
    # An answer is the place of the better dialogue; probabilities that are equal make a tie.
    other = judgements["system_id"].map(dict(zip(SIDES, reversed(SIDES), strict=True)))
    choice = judgements["system_id"].where(values < 1.5, other).mask(values == 1.5, "tie").mask(values.isna(), None)
    answers = pd.DataFrame({"pair_id": judgements["item_id"], "shown": judgements["system_id"], "choice": choice})
    combined = combine(pairs.dataset, wanted, answers, judge=judge, question=question)
    return replace(combined, failures=failures, report=judged.report)


def combine(dataset: str, pairs: pd.DataFrame, answers: pd.DataFrame, *, judge: str, question: str) -> Choices:
    """Return one preference a pair of a judge's answers about it.

    Answers that differ are a tie. A pair with an answer that cannot be read has no preference.

    Parameters
    ----------
    pairs
        The columns of :data:`PAIR`, each pair once.
    answers
        As :class:`Choices` has them.
    """
    choices = _by_order(answers)
    agreed = choices.iloc[:, 0].where(choices.nunique(axis=1) == 1, "tie")
    rows = pairs[pairs["pair_id"].isin(agreed.index)]
    given: dict[str, Any] = {"dataset": dataset, "annotator_id": judge, "question": question, "source": judge}
    # Of both orders there is no side that was shown left.
    one = answers if choices.shape[1] == 1 else answers[:0]
    left = one.drop_duplicates("pair_id").set_index("pair_id")["shown"]
    frame = rows.assign(
        choice=rows["pair_id"].map(agreed),
        left=rows["pair_id"].map(left),
        **given,
        **dict.fromkeys(("control", "reason", "seconds")),
    )
    columns = schema.table("preferences").columns
    table = schema.validate(frame[columns], "preferences") if len(frame) else schema.empty("preferences")
    return Choices(table, answers)


def _by_order(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the choice in each order, a row a pair; of those pairs alone whose answers can all be read."""
    return answers.pivot(index="pair_id", columns="shown", values="choice").dropna()


def _task(judging: Judging, name: str) -> Task:
    if name not in judging.judges:
        raise UnknownNameError("judge", name, judging.judges, where="--judge")
    judge = judging.judges[name]
    variant = Variant.model_construct(
        name="pair",
        label="Pair",
        prompt="pair",
        fields=["first", "second", "question"],
        dimensions=["choice"],
        scale=[1, 2],
        aliases={"choice": ["speaker", "conversation"]},
        labels={"1": 1, "2": 2} if judge.mode == "probabilities" else None,
    )
    service = _OF_PAIRS.get(judge.service, judge.service)
    return Task(judging, judge.model_copy(update={"service": service, "items": None, "explain": None}), variant, 1)


def _items(dataset: str, pairs: pd.DataFrame, dialogues: Dialogues, question: str) -> Iterator[Item]:
    """Yield what is asked: each pair twice, named by the dialogue that is shown first."""
    prompt = load("pair")
    for pair, *names in pairs[list(PAIR)].itertuples(index=False, name=None):
        keys = [(names[0], names[1]), (names[2], names[3])]
        for key in keys:
            if key not in dialogues:
                raise SchemaError(
                    f"there is no dialogue {key[0]!r} in which {key[1]!r} is judged",
                    where=f"pair {pair!r}",
                    expected=f"one of the {len(dialogues):,} dialogues given",
                )
        for shown, (one, other) in zip(SIDES, (keys, keys[::-1]), strict=True):
            values = {"first": _lines(dialogues[one], 1), "second": _lines(dialogues[other], 2), "question": [question]}
            yield Item(dataset, pair, shown, message(prompt.render(values)))


def _lines(dialogue: Dialogue, place: int) -> list[str]:
    names = {dialogue.judged: f"Speaker {place}"}
    return [f"{names.get(speaker, 'Other')}: {text}" for speaker, text in dialogue.utterances]


# --- compared with people --------------------------------------------------------------------------------------------


def agreement(preferences: pd.DataFrame, votes: pd.DataFrame) -> Share:
    """Return how often a judge prefers what people chose, a judge's tie counted as half.

    Both are tables ``preferences``, of one question each. Each vote that is no tie counts, of pairs that the judge has a
    preference for; the interval knows that votes on one pair belong together. ``n`` counts votes.
    """
    strict = votes.loc[votes["choice"].isin(SIDES), [*PAIR, "choice"]]
    both = strict.merge(preferences[[*PAIR, "choice"]], on=list(PAIR), suffixes=("", "_judge"))
    # Each vote is looked at twice, so that a tie is right once and wrong once.
    tie, right = both["choice_judge"] == "tie", both["choice_judge"] == both["choice"]
    hits = pd.concat([right | tie, right]).to_numpy(dtype=bool)
    agreed = share(hits, pd.concat([both["pair_id"]] * 2).to_numpy())
    return replace(agreed, n=len(both))


def majority(votes: pd.DataFrame) -> pd.DataFrame:
    """Return one row a pair with what most people chose, ties left out; pairs on which as many chose either are missing."""
    strict = votes[votes["choice"].isin(SIDES)]
    lean = strict.assign(lean=(strict["choice"] == "first") * 2 - 1).groupby("pair_id")["lean"].sum()
    lean = lean[lean != 0]
    pairs = strict[list(PAIR)].drop_duplicates("pair_id")
    pairs = pairs[pairs["pair_id"].isin(lean.index)]
    return pairs.assign(choice=["first" if lean[name] > 0 else "second" for name in pairs["pair_id"]])
