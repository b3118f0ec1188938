"""A judge as annotator of pairs: which of two dialogues it prefers, asked in both orders.

The prompt shows two dialogues, and the answer is the number of the better one. Each pair is asked about in both orders. If the
same dialogue is chosen both times, that is a preference; if the same position is, it is a tie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.challenge.pairs import Dialogue, chosen, read_questions
from comperdial.core.errors import SchemaError
from comperdial.core.files import check_columns, read_table
from comperdial.judges.asking import Report
from comperdial.judges.items import Item, message, sampled
from comperdial.judges.judging import judge_items
from comperdial.judges.prompting import load
from comperdial.judges.services.rules import PAIRS_VERSION
from comperdial.judges.tasks import Judge, Judging, Task, Variant
from comperdial.stats.proportions import Share, share

SIDES = ("first", "second")
PAIR = ("pair_id", "first_dialogue_id", "first_system_id", "second_dialogue_id", "second_system_id")
"""The columns that name a pair."""
Dialogues = Mapping[tuple[str, str], Dialogue]
"""By dialogue and system."""
_EMPTY = dict.fromkeys(("left", "control", "reason", "seconds"))


@dataclass(frozen=True)
class Pairs:
    """Pairs to judge, and human votes on them."""

    dataset: str
    pairs: pd.DataFrame  # one row per pair, with the columns PAIR
    votes: pd.DataFrame | None = None  # table ``preferences``, if the file contains it


def read_pairs(path: str | Path) -> Pairs:
    """Read pairs from a CSV, JSONL or Parquet file: table ``preferences``, or only the columns :data:`PAIR`.

    Without a column ``dataset``, the data set is named after the file. Raises :class:`SchemaError` if a column is missing, a
    record is invalid, there are several data sets, or two pairs share a name.
    """
    path = Path(path)
    frame = read_table(path)
    if "choice" in frame:
        return of_votes(schema.read(path, "preferences"), str(path))
    known = schema.table("preferences").columns
    frame = check_columns(frame, known, path)
    if lacking := [name for name in PAIR if name not in frame]:
        expected = f"{', '.join(PAIR)}: which are compared"
        raise SchemaError(f"no column {', '.join(map(repr, lacking))}", where=str(path), expected=expected)
    # Dummy votes, so that the table's constraints are checked here too.
    nobody = {"annotator_id": [str(number) for number in range(1, len(frame) + 1)], "question": "-", "source": "-"}
    votes = frame[list(PAIR)].assign(dataset=frame.get("dataset", path.stem), choice="first", **nobody, **_EMPTY)
    return replace(of_votes(schema.validate(votes[known], "preferences", where=str(path)), str(path)), votes=None)


def of_votes(votes: pd.DataFrame, where: str = "preferences") -> Pairs:
    """Return the distinct pairs of a table ``preferences`` of one data set; raises like :func:`read_pairs`."""
    names = list(votes["dataset"].unique())
    if len(names) != 1:
        problem = f"{len(names)} data sets{', ' if names else ''}{', '.join(names[:2])}"
        raise SchemaError(problem, where=where, expected="one")
    pairs = votes[list(PAIR)].drop_duplicates().reset_index(drop=True)
    if (again := pairs["pair_id"].duplicated()).any():
        problem = f"pair {pairs['pair_id'][again].iloc[0]!r} is of different dialogues, or the other way round"
        expected = "the same first and second dialogue wherever a pair is named"
        raise SchemaError(problem, where=where, expected=expected)
    return Pairs(str(names[0]), pairs, votes)


@dataclass(frozen=True)
class Choices:
    """A judge's preferences, and statistics on its answers."""

    preferences: pd.DataFrame  # table ``preferences``: one row per pair answered in both orders
    pairs: int  # number of pairs asked about
    flipped: int  # ties because the choice depended on the position
    same: Share  # share of pairs with the same choice in both orders
    chose_first: Share  # share of choices for the dialogue shown first, over fully readable pairs
    failures: Counter[str] = field(default_factory=Counter)  # reasons for unreadable answers
    report: Report | None = None  # report of the run; None if no request was needed

    @property
    def unread(self) -> int:
        """Return the number of pairs without a preference because of an unreadable answer."""
        return self.pairs - len(self.preferences)


def combine(pairs: Pairs, answers: pd.DataFrame, *, judge: str, question: str) -> Choices:
    """Combine a judge's answers into one preference per pair.

    Conflicting answers are a tie. A pair with an unreadable answer has no preference.

    Parameters
    ----------
    answers
        One row per answer: ``pair_id``, which dialogue was ``shown`` first, and the ``choice``: the better dialogue (``first``
        or ``second`` of the pair, wherever it was shown), a tie, or missing if the answer is unreadable.
    """
    choices = answers.pivot(index="pair_id", columns="shown", values="choice").dropna()
    same, both_orders = choices.nunique(axis=1) == 1, choices.shape[1] == len(SIDES)
    rows = pairs.pairs[pairs.pairs["pair_id"].isin(choices.index)]
    # Pairs shown in both orders have no left side.
    left = answers[:0] if both_orders else answers
    frame = rows.assign(**_EMPTY, dataset=pairs.dataset, annotator_id=judge, question=question, source=judge).assign(
        choice=rows["pair_id"].map(choices.iloc[:, 0].where(same, "tie")),
        left=rows["pair_id"].map(left.drop_duplicates("pair_id").set_index("pair_id")["shown"]),
    )
    columns = schema.table("preferences").columns
    strict = answers[answers["choice"].isin(SIDES) & answers["pair_id"].isin(choices.index)]
    twice = same if both_orders else same[:0]
    return Choices(
        schema.validate(frame[columns], "preferences") if len(frame) else schema.empty("preferences"),
        pairs=answers["pair_id"].nunique(),
        flipped=int((~same).sum()),
        same=share(twice.to_numpy(dtype=bool), twice.index.to_numpy()),
        chose_first=share((strict["choice"] == strict["shown"]).to_numpy(dtype=bool), strict["pair_id"].to_numpy()),
    )


def judge_pairs(
    judging: Judging, judge: Judge, dialogues: Dialogues, pairs: Pairs, question: str, *, ask_again: bool = False
) -> Choices:
    """Ask a judge which dialogue of each pair is better, in both orders; stored answers are reused.

    A judge with ``items`` is asked about that many pairs: those with the smallest hash of their names.

    Parameters
    ----------
    question
        A name from :func:`comperdial.challenge.pairs.read_questions`, or your own text, recognized by its spaces. The table
        contains it as given.
    ask_again
        As in :func:`comperdial.judges.judging.judge_items`, whose errors this raises too.

    Raises
    ------
    UnknownNameError
        If the question does not exist.
    SchemaError
        If a dialogue of a pair does not exist.
    """
    text = question if len(question.split()) > 1 else chosen(read_questions(), [question])[0].text
    task = _task(judging, judge)
    places = sampled(list(pairs.pairs["pair_id"]), judge.items)
    pairs = replace(pairs, pairs=pairs.pairs.iloc[places].reset_index(drop=True))
    judged = judge_items(task, list(_items(pairs, dialogues, text)), dataset=pairs.dataset, ask_again=ask_again)
    judgements, failures = judged.judgements, judged.failures
    values = judgements["value"].astype(float)
    if not task.variant.labels:
        between = values.notna() & ~values.isin([1, 2])
        failures += Counter({"a number between 1 and 2": int(between.sum())})
        values = values.mask(between)
    # An answer is the position of the better dialogue; equal probabilities are a tie.
    other = judgements["system_id"].map(dict(zip(SIDES, reversed(SIDES), strict=True)))
    choice = judgements["system_id"].where(values < 1.5, other).mask(values == 1.5, "tie").mask(values.isna(), None)
    answers = pd.DataFrame({"pair_id": judgements["item_id"], "shown": judgements["system_id"], "choice": choice})
    combined = combine(pairs, answers, judge=judge.name, question=question)
    return replace(combined, failures=failures, report=judged.report)


def _task(judging: Judging, judge: Judge) -> Task:
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
    # Answers depend on the version of the rules.
    parameters = judge.parameters | ({"rules_pairs": PAIRS_VERSION} if judge.service == "rules" else {})
    changes = {"parameters": parameters, "items": None, "explain": None}
    return Task(judging, judge.model_copy(update=changes), variant, 1)


def _items(pairs: Pairs, dialogues: Dialogues, question: str) -> Iterator[Item]:
    """Yield the items: each pair twice, named by the dialogue shown first."""
    prompt = load("pair")
    for pair, *names in pairs.pairs[list(PAIR)].itertuples(index=False, name=None):
        keys = [(names[0], names[1]), (names[2], names[3])]
        if missing := [key for key in keys if key not in dialogues]:
            problem = f"there is no dialogue {missing[0][0]!r} in which {missing[0][1]!r} is judged"
            raise SchemaError(
                problem, where=f"pair {pair!r}", expected=f"one of the {len(dialogues):,} dialogues given"
            )
        for shown, order in zip(SIDES, (keys, keys[::-1]), strict=True):
            first, second = (_lines(dialogues[key], place) for place, key in enumerate(order, start=1))
            text = prompt.render({"first": first, "second": second, "question": [question]})
            yield Item(pairs.dataset, pair, shown, message(text))


def _lines(dialogue: Dialogue, place: int) -> list[str]:
    names = {dialogue.judged: f"Speaker {place}"}
    return [f"{names.get(speaker, 'Other')}: {text}" for speaker, text in dialogue.utterances]


def agreement(preferences: pd.DataFrame, votes: pd.DataFrame) -> Share:
    """Return how often a judge agrees with human votes; its ties count half.

    Both are tables ``preferences`` of one question. All votes except ties count, on pairs with a preference of the judge; the
    interval treats votes on a pair as a cluster. ``n`` counts votes.
    """
    strict = votes.loc[votes["choice"].isin(SIDES), [*PAIR, "choice"]]
    both = strict.merge(preferences[[*PAIR, "choice"]], on=list(PAIR), suffixes=("", "_judge"))
    # Count each vote twice, so that a tie agrees once and disagrees once.
    tie, right = both["choice_judge"] == "tie", both["choice_judge"] == both["choice"]
    hits = pd.concat([right | tie, right]).to_numpy(dtype=bool)
    return share(hits, pd.concat([both["pair_id"]] * 2).to_numpy())._replace(n=len(both))


def majority(votes: pd.DataFrame) -> pd.DataFrame:
    """Return the majority choice of each pair, ignoring ties; pairs with equal votes are left out."""
    strict = votes[votes["choice"].isin(SIDES)]
    lean = strict.assign(lean=(strict["choice"] == "first") * 2 - 1).groupby("pair_id")["lean"].sum()
    pairs = strict[list(PAIR)].drop_duplicates("pair_id")
    lean = pairs["pair_id"].map(lean)
    return pairs.assign(choice=lean.gt(0).map({True: "first", False: "second"}))[lean != 0]
