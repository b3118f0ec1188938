"""Read a user's file of votes between two systems or answers as table ``preferences``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.core.names import plain_name
from comperdial.data.files import File
from comperdial.data.own_files import RATED, is_missing, listed, number, option

VOTES = "votes between two, no ratings"
FILL_IN = "FILL_IN"
_ROW = "row"
SHARE = "first_share"
"""Extra column of table ``preferences``: the first side's share of a weighted vote, 0 to 1."""
LONGER = "first_longer"
"""Extra column of table ``preferences``, if the file has the answers: how many characters longer the first is."""
COLUMNS = (
    "pair_id", "first_system_id", "second_system_id", "first_dialogue_id", "second_dialogue_id", "choice",
    "annotator_id", "question", "source",
)  # fmt: skip
"""Our column names that a user may map."""
_SIDES = (("first", "second"), ("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"))
# Pairs of names that state the preferred side.
_DECIDED = (("chosen", "rejected"), ("winner", "loser"), ("winning", "losing"), ("better", "worse"))
_SYSTEM = (
    "system_id", "system", "system_name", "model", "model_name", "model_id", "generator", "bot", "agent", "player",
    "llm", "provider", "policy",
)  # fmt: skip
_ANSWER = (
    "response", "answer", "output", "completion", "reply", "conversation", "dialogue", "text", "summary", "translation",
    "dialogue_id", "candidate", "option",
)  # fmt: skip
_CHOICE = re.compile(
    r"^(?:(.+)_)?(?:winner|preference|preferred|pref|choice|vote|verdict|better|label|judge?ment|winners|won|best|decision)_?(.+)?$"
)
_TIES = frozenset({
    "tie", "ties", "tied", "both", "equal", "equally", "same", "neither", "draw", "none", "bothbad", "tie_bothbad",
    "both_good", "both_bad", "both_are_good", "both_are_bad", "no_preference", "about_the_same", "similar",
    "unentschieden", "egalite", "égalité", "empate", "pareggio", "平局", "引き分け",
})  # fmt: skip
# Columns about sides that are not votes but how things were shown.
_NO_VOTES = re.compile(
    r"order|position|swap|variant|condition|group|side|turn|lang|shown|source|split|set$|type|version|better_is|^(?:a|b|left|right)$"
)
_ITEM = (
    "pair_id", "question_id", "item_id", "prompt_id", "context_id", "example_id", "instance_id", "task_id", "id",
    "idx", "question", "prompt", "instruction", "input", "query", "context", "history",
)  # fmt: skip
# The prompt, next to an id of each pair: answers to the same prompt belong together.
_PROMPTS = (
    "question_id", "prompt_id", "prompt_number", "context_id", "question", "prompt", "instruction", "input", "query", "context",
    "history",
)  # fmt: skip
_RATERS = (
    "annotator_id", "annotator", "rater", "rater_id", "worker", "worker_id", "workerid", "judge", "judge_id", "judge_name",
    "evaluator", "evaluator_id", "voter", "user_id",
)  # fmt: skip
_ASKED = ("dimension", "criterion", "aspect")
_JUDGE = re.compile(
    r"gpt|llm|claude|gemini|llama|qwen|mistral|mixtral|deepseek|gemma|prometheus|alpaca_eval|automatic|[a-z]lm(?:_|$)|(?:^|_)\d+b$"
)
SHARES = {"first": 1.0, "tie": 0.5, "second": 0.0}
"""The first answer's share of a vote."""
_PERSON = re.compile(r"(?:(?:annotator|rater|worker|evaluator|expert|human|person|coder|voter|judge)_?)?(?:\d+|[a-h])")
_PEOPLE = frozenset({
    "human", "humans", "who", "people", "person", "user", "crowd", "final", "overall", "majority", "gold", "id", "response",
    "response_id", "model", "side",
})  # fmt: skip
_ORDER = re.compile(r"^\W*(\w+?)\s*(>+|<+|=+)\s*(\w+?)\W*$")
# A column with more distinct values is not a vote column.
_MOST_WORDS = 100
# A further column counts as votes if this fraction of its cells can be parsed.
_READABLE = 0.5


class _Column(NamedTuple):
    """Rater and question of a vote column, as far as its name gives them."""

    rater: str = ""
    question: str = ""
    judge: str = ""


def _plain(name: object) -> str:
    return re.sub(r"[\s_.-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name).strip()).lower()).strip("_")


def _pair(
    names: Sequence[str], stems: Sequence[str], sides: Sequence[tuple[str, str]] = _SIDES
) -> tuple[str, str, tuple[str, str]] | None:
    """Return two columns that are the two sides of something, and the names of the sides."""
    by_name = {_plain(name): name for name in names}
    for stem in stems:
        for ends in sides:
            for form in ("{stem}_{side}", "{side}_{stem}", "{stem}{side}") if stem else ("{side}",):
                one, other = (by_name.get(form.format(stem=stem, side=side)) for side in ends)
                if one and other:
                    return one, other, ends
    return None


class _Form(NamedTuple):
    """The columns of a file's two systems or two answers, and of its votes."""

    frame: pd.DataFrame
    sides: tuple[str, str, tuple[str, str]] | None
    has_systems: bool
    choices: dict[str, _Column]


def _form(frame: pd.DataFrame, columns: Mapping[str, Any]) -> _Form:
    names = list(frame.columns)
    systems, answers = _pair(names, _SYSTEM), _pair(names, _ANSWER)
    if systems is None and answers and (key := _key_of_two(frame)):
        frame, systems = key
    if "choice" in columns:
        given = listed(columns["choice"])
        choices = {name: _named(_plain(name)) if len(given) > 1 else _Column() for name in given}
    else:
        used = {name for pair in (systems, answers) if pair for name in pair[:2]}
        free = [name for name in names if name not in used and not frame[name].map(is_missing).all()]
        frame, choices = _choices(frame, free)
    if systems is None and choices:
        systems = _pair(names, ("",))
    decided = _pair(names, ("", *_SYSTEM), _DECIDED)
    if systems is None and decided and _are_names(frame, decided[:2]):
        frame, systems, choices = frame.assign(choice="first"), decided, {"choice": _Column()}
    return _Form(frame, systems or answers, systems is not None, choices)


def _key_of_two(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, str, tuple[str, str]]] | None:
    """Split a column that names two systems, as ``bloom-7b_llama-7b`` or ``bloom-7b vs llama-7b``."""
    for name in (one for one in frame.columns if re.search("pair|cmp|models|systems|match", _plain(one))):
        for mark in (r"\s+vs\.?\s+", r"_vs_", r"\|", "_"):
            parts = [re.split(mark, str(cell)) for cell in frame[name]]
            both = pd.DataFrame(parts) if {*map(len, parts)} == {2} else None
            if both is not None and _are_names(both, [0, 1]) and not (both[0] == both[1]).any():
                made = frame.assign(first_system=list(both[0]), second_system=list(both[1]))
                return made, ("first_system", "second_system", ("first", "second"))
    return None


def _are_names(frame: pd.DataFrame, columns: Sequence[Any]) -> bool:
    """Return whether columns contain repeated names, such as systems, rather than texts."""
    cells = [str(cell) for name in columns for cell in frame[name] if not is_missing(cell)]
    return (
        bool(cells)
        and max(map(len, cells)) <= 80
        and len(set(cells)) <= max(len(cells) / 2, len(cells) - 1 if len(cells) < 8 else 0)
    )


def _choices(frame: pd.DataFrame, free: Sequence[str]) -> tuple[pd.DataFrame, dict[str, _Column]]:
    """Return the vote columns; 0/1 columns that together encode the choice are merged into ``choice``."""
    choices: dict[str, _Column] = {}
    ones: dict[str, str] = {}
    for name in free:
        if (match := _CHOICE.match(_plain(name))) is None:
            if column := _by_content(frame, name):
                choices[name] = column
            continue
        before, after = match[1] or "", match[2] or ""
        side = "tie" if after in _TIES else _side_of(after)
        if side and not (after.isdigit() and "label" not in _plain(name)):
            ones[side] = name
        else:
            choices[name] = _named(before, after)
    said = any(column == _Column() for column in choices.values())
    if not said and {"first", "second"} <= {*ones} and all(_is_one_hot(frame[name]) for name in ones.values()):
        flags = {
            side: [str(cell).strip().lower() in ("1", "1.0", "true") for cell in frame[name]]
            for side, name in ones.items()
        }
        cells = [next((side for side in flags if flags[side][place]), None) for place in range(len(frame))]
        return frame.assign(choice=pd.Series(cells, dtype=object, index=frame.index)), {"choice": _Column()} | choices
    return frame, choices


def _by_content(frame: pd.DataFrame, name: str) -> _Column | None:
    """Return the vote column with a nondescript name, if each of its cells is a side or a tie."""
    word = _plain(name)
    cells = {str(cell) for cell in frame[name] if not is_missing(cell)}
    if len(cells) > _MOST_WORDS:
        return None
    values = {_plain(re.sub(r"[\[\](){}]", "", cell)) for cell in cells}
    is_rater = bool(_PERSON.fullmatch(word) or re.fullmatch(r"[a-z]\d{1,3}", word))
    digits = values <= {"0", "1", "2"} and is_rater
    sides = all(value in _TIES or (_side_of(value) and not value.isdigit()) for value in values)
    if not values or _NO_VOTES.search(word) or not (digits or sides):
        return None
    named = _named(word)
    return named if named.rater or named.judge or RATED.search(word) else _Column(rater=name)


def _side_of(word: str) -> str:
    """Return the side that a word names, whatever the sides are called; empty if neither."""
    for place, side in enumerate(("first", "second")):
        ends = {ends[place] for ends in _SIDES[:3] + _SIDES[4:]}
        if word in ends or any(
            word in (f"{stem}_{end}", f"{end}_{stem}") for stem in (*_SYSTEM, *_ANSWER) for end in ends
        ):
            return side
    return ""


def _named(*words: str) -> _Column:
    """Interpret the words around ``choice`` in a column's name."""
    rater = question = judge = ""
    for word in words:
        if not word or word in _PEOPLE:
            continue
        if _PERSON.fullmatch(word):
            rater = word
        elif _JUDGE.search(word) or re.search(r"(?:^|_)(?:judge|model|auto|ai)(?:_|$)", word):
            judge = word
        else:
            question = word
    return _Column(rater, question, judge)


def _is_one_hot(cells: pd.Series) -> bool:
    ones = {"0", "1", "0.0", "1.0", "true", "false"}
    return {str(cell).strip().lower() for cell in cells if not is_missing(cell)} <= ones


def are_votes(frame: pd.DataFrame) -> bool:
    """Return whether a file contains votes: two systems or answers side by side, and which was better."""
    form = _form(frame, {})
    return form.sides is not None and bool(form.choices)


def read_votes(
    file: File, path: Path, labels: Mapping[str, Any] | None = None, columns: Mapping[str, Any] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Read a file's votes as table ``preferences``; return notes on how it was read.

    Parameters
    ----------
    labels
        Map from the file's values to ``first``, ``second`` or ``tie``, where unclear.
    columns
        Our name (:data:`COLUMNS`) -> the file's; ``choice`` may be a list of columns, one per rater or question.

    Returns
    -------
    DataFrame
        The table, with the column :data:`SHARE` if votes are weighted.

    Raises
    ------
    SchemaError
        If there are no votes, or one cannot be parsed; gives the record, and a ``--labels`` option to paste.
    ConfigError, UnknownNameError
        If ``labels`` or ``columns`` are invalid.
    """
    frame = file.frame
    columns, notes, spec = dict(columns or {}), list(file.notes), schema.table("preferences")
    who = columns.pop("annotator_id") if isinstance(columns.get("annotator_id"), list) else []
    columns |= {"choice": who} if who else {}
    if not columns and not labels and {field.name for field in spec.fields if not field.nullable} <= {*frame}:
        frame = frame[[name for name in spec.columns if name in frame]]
        return schema.validate(schema.parse_cells(frame, spec.name, path), spec.name, where=str(path)), notes
    frame, sides, has_systems, choices = _form(_renamed(frame, columns, path), columns)
    if sides is None or not choices:
        raise _no_votes(frame, path, sides is not None)
    given = _given(labels)
    numbers = {str(cell).strip() for name in choices for cell in frame[name] if not is_missing(cell)}
    if numbers == {"0", "1", "2"}:
        given.setdefault("0", "tie")

    @cache
    def read(text: str, one: str, other: str) -> tuple[str, float] | None:
        own = given.get(text.strip().lower())
        return (own, SHARES[own]) if own else _choice(text, (*sides[2], *map(_plain, sides[:2])), (one, other))

    one_name, other_name, ends = sides
    systems = [
        [_name(cell) for cell in frame[name]] if has_systems else [end] * len(frame)
        for name, end in zip((one_name, other_name), ends, strict=True)
    ]
    plain = {_plain(name): name for name in reversed(frame.columns)}
    items = [plain[name] for name in _ITEM if name in plain and plain[name] not in sides[:2]][:1]
    items += [plain["turn"]] if items and "turn" in plain else []
    item = frame[items].map(str).agg("/".join, axis=1).tolist() if items else list(map(str, file.rows))
    asked_of = _same_prompts(
        frame[[plain[name] for name in _PROMPTS if name in plain and plain[name] not in items]], item
    )
    if not items:
        notes.append("no column names what was answered: each row is a pair of its own")

    def column(ours: str, names: Sequence[str] = ()) -> list[str]:
        name = ours if ours in columns else next((plain[one] for one in names if one in plain), None)
        return [""] * len(frame) if name is None else [_name(cell) for cell in frame[name]]

    raters, asked = column("annotator_id", _RATERS), column("question", _ASKED)
    if "annotator_id" not in columns:
        # Human and judge columns may name raters differently.
        columns_of = [[_name(cell) for cell in frame[plain[one]]] for one in _RATERS if one in plain]
        raters = [next((name for name in names if name), "") for names in zip(*columns_of, strict=True)] or raters
    source = column("source", ("source",) if "source" in plain and _are_sources(frame[plain["source"]]) else ())
    dialogues = _pair(list(frame.columns), ("dialogue_id", "conversation_id"))
    answers = _pair(list(frame.columns), _ANSWER)
    longer = [None] * len(frame)
    if answers and all(frame[name].map(lambda cell: isinstance(cell, str)).any() for name in answers[:2]):
        lengths = [frame[name].map(_name).map(len) for name in answers[:2]]
        longer = (lengths[0] - lengths[1]).tolist()
    rows: list[dict[str, Any]] = []
    left_out = 0
    voted = _readable(frame, choices, systems, read)
    if who and "choice" in columns:
        voted = {name: one if one.judge else _Column(rater=name) for name, one in voted.items()}
    elif by_rater := _raters(voted):
        voted = by_rater
        notes.append(f"columns of one rater each: {', '.join(one.rater for one in voted.values() if one.rater)}")
    if len(unnamed := [name for name, column in voted.items() if not any(column)]) > 1 and "choice" not in columns:
        line = option("columns", {"choice": FILL_IN})
        raise SchemaError(
            f"several columns contain votes by unknown raters: {', '.join(unnamed)}",
            where=str(path),
            expected="one column of votes, or column names with the rater (winner_ann, gpt4_winner)",
            hint=f"Put the one to use in place of {FILL_IN}, or a list of raters' columns: {line}",
        )
    # A file without a rater column may name the judge itself: gpt4-votes.csv.
    judge_file = (
        path.stem if _JUDGE.search(_plain(path.stem)) and not any([*raters, *source, *map(any, voted.values())]) else ""
    )
    if judge_file:
        notes.append(
            f"votes of a judge, as the file's name says: {judge_file}; --columns '{{\"source\": …}}' says otherwise"
        )
    for place, row in enumerate(frame[[*voted]].itertuples(index=False, name=None)):
        one, other = systems[0][place], systems[1][place]
        for (name, (rater, question, judge)), cell in zip(voted.items(), row, strict=True):
            if is_missing(cell):
                continue
            if not one or not other or one == other:
                left_out += 1
                continue
            if (vote := read(str(cell), one, other)) is None:
                raise _unreadable(path, place + 1, name, frame[name], systems, read)
            who = judge or rater or raters[place] or judge_file or "1"
            if not (whose := source[place]):
                whose = who if judge or judge_file or (not rater and _JUDGE.search(_plain(who))) else "human"
            if dialogues:
                both = [_name(frame[dialogues[side]].iloc[place]) for side in (0, 1)]
            else:
                both = [f"{asked_of[place]}:{system}" for system in (one, other)]
            rows.append(
                {
                    "dataset": path.stem, "pair_id": f"{item[place]}|{one}|{other}", "annotator_id": who,
                    "question": question or asked[place] or "overall", "first_dialogue_id": both[0], "first_system_id": one,
                    "second_dialogue_id": both[1], "second_system_id": other, "choice": vote[0], _ROW: file.rows[place],
                    "source": "human" if whose.lower() in _PEOPLE else whose, SHARE: vote[1],
                    LONGER: longer[place],
                }
            )  # fmt: skip
    if not rows:
        raise _no_votes(frame, path, True)
    return _checked(pd.DataFrame(rows), notes, left_out)


def _raters(voted: Mapping[str, _Column]) -> dict[str, _Column] | None:
    """Reinterpret columns taken for questions as raters if no name is a known question: ``ann_vote, bob_vote``."""
    asked = [column for column in voted.values() if column.question]
    if (
        len(asked) < 2
        or any(column.rater for column in asked)
        or any(RATED.search(column.question) for column in asked)
    ):
        return None
    return {name: _Column(rater=one.question) if one.question else one for name, one in voted.items()}


def _same_prompts(prompts: pd.DataFrame, items: list[str]) -> list[str]:
    """Return for each row the first item with the same prompt, or its own item without a separate prompt column."""
    if not prompts.shape[1]:
        return items
    codes = prompts.map(str).groupby(list(prompts), sort=False).ngroup().to_numpy()
    by_prompt = pd.Series(items).groupby(codes)
    # An id shared by several prompts identifies something else, and a single prompt for all rows is not one.
    shared = pd.Series(codes).groupby(items).nunique().max() > 1
    return items if shared or len(by_prompt) < 2 else by_prompt.transform("first").tolist()


def _checked(made: pd.DataFrame, notes: list[str], left_out: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the table with one row per vote, and notes on it."""
    if left_out:
        notes.append(f"{left_out} votes left out: their two systems are the same, or one has no name")
    weighted = ~made[SHARE].isin(list(SHARES.values()))
    if weighted.any():
        notes.append(
            f"{int(weighted.sum())} votes are weighted: strengths and shares use the weights, counts and tests the side "
            "with more of it"
        )
    else:
        made = made.drop(columns=SHARE)
    judges = sorted({*made["source"]} - {"human"})
    notes += [f"votes of judges, not of people: {', '.join(judges)}"] if judges else []
    key = ["pair_id", "annotator_id", "question"]
    # Nested records may repeat a vote.
    made = made.drop_duplicates([*key, "choice", _ROW], ignore_index=True)
    for judge in judges if "human" in {*made["source"]} else []:
        # A judge's vote is repeated in the row of each person who voted on the pair.
        votes = made[made["source"] == judge]
        if votes.duplicated(key).any() and (votes.groupby(key)["choice"].nunique() == 1).all():
            notes.append(f"votes of {judge} repeat in the rows of one pair, always the same: each counts once")
            made = made.drop(votes.index[votes.duplicated(key)])
    if both := int(made.duplicated(key).sum()):
        notes.append(f"{both} votes repeat a pair and rater: each counts as a pair of its own")
        number_of = made.groupby(key).cumcount()
        made["pair_id"] += number_of.map(lambda place: f"|{place + 1}" if place else "")
    more = [name for name in (SHARE, LONGER) if name in made and made[name].notna().any()]
    return made.reindex(columns=[*schema.table("preferences").columns, *more]), notes


def _name(cell: Any) -> str:  # noqa: ANN401
    if isinstance(cell, list | tuple):
        return "/".join(map(str, cell))
    return "" if is_missing(cell) else str(plain_name(cell)).strip()


def _renamed(frame: pd.DataFrame, columns: Mapping[str, Any], path: Path) -> pd.DataFrame:
    """Rename the mapped columns; those of choices keep their names."""
    for ours, theirs in columns.items():
        if ours not in COLUMNS:
            raise UnknownNameError("column", ours, COLUMNS, where="--columns")
        for name in listed(theirs) if ours == "choice" else [theirs]:
            if name not in frame:
                expected = f"a column of the file: {', '.join(map(str, frame))}"
                raise SchemaError(f"no column {name!r}, which --columns refers to", where=str(path), expected=expected)
    names = {theirs: ours for ours, theirs in columns.items() if ours != "choice"}
    return frame.rename(columns=names)


def _are_sources(cells: pd.Series) -> bool:
    """Return whether a column ``source`` names the voters: people or a judge."""
    values = {_name(cell).lower() for cell in cells} - {""}
    return bool(values) and all(value in _PEOPLE or _JUDGE.search(value) for value in values)


def _given(labels: Mapping[str, Any] | None) -> dict[str, str]:
    given = {str(label).strip().lower(): str(side).strip().lower() for label, side in (labels or {}).items()}
    for label, side in given.items():
        if side not in SHARES:
            raise ConfigError(f"{label!r} is {side!r}", where="--labels", expected="first, second or tie")
    return given


Read = Callable[[str, str, str], tuple[str, float] | None]


def _readable(
    frame: pd.DataFrame, choices: Mapping[str, _Column], systems: Sequence[Sequence[str]], read: Read
) -> dict[str, _Column]:
    """Drop vote-like columns that cannot be parsed, unless that would drop all."""
    kept = {}
    for name, column in choices.items():
        cells = [(str(cell), place) for place, cell in enumerate(frame[name]) if not is_missing(cell)]
        good = sum(read(text, systems[0][place], systems[1][place]) is not None for text, place in cells)
        if good >= max(1, _READABLE * len(cells)):
            kept[name] = column
    plain = {name: column for name, column in choices.items() if not column.question}
    return kept or plain or dict(choices)


def _choice(text: str, sides: Sequence[str], systems: tuple[str, str]) -> tuple[str, float] | None:
    """Return the preferred side and the first side's share of a cell; None if unclear."""
    if order := _ORDER.match(text):
        first, sign, second = _side_of(_plain(order[1])), order[2][0], _side_of(_plain(order[3]))
        if not first or not second or first == second:
            return None
        choice = "tie" if sign == "=" else first if sign == ">" else second
        return choice, SHARES[choice]
    word, value = _plain(re.sub(r"[\[\](){}\"']+", " ", text)), number(text)
    word = re.sub(
        r"^(?:the_)?|_(?:is_)?(?:clearly_|much_|slightly_)?(?:better|best|wins?|winner|preferred)$|^winner_(?:is_)?",
        "",
        word,
    )
    if word in _TIES or word.startswith("tie_"):
        return "tie", 0.5
    names = list(map(_plain, systems))
    if word in names and names[0] != names[1]:
        choice = ("first", "second")[names.index(word)]
        return choice, SHARES[choice]
    if word in sides:
        choice = ("first", "second")[sides.index(word) % 2]
        return choice, SHARES[choice]
    if isinstance(value, float):
        if not 1 <= value <= 2:
            return None
        return ("tie" if value == 1.5 else "first" if value < 1.5 else "second"), 2 - value
    side = _side_of(word)
    return (side, SHARES[side]) if side else None


def _unreadable(
    path: Path, row: int, column: str, cells: pd.Series, systems: Sequence[Sequence[str]], read: Read
) -> SchemaError:
    values = Counter(
        str(cell).strip()
        for place, cell in enumerate(cells)
        if not is_missing(cell) and read(str(cell), systems[0][place], systems[1][place]) is None
    )
    known = {str(cell).strip() for cell in cells if not is_missing(cell)} - {*values}
    if any(isinstance(number(value), float) for value in values):
        # A number alone is ambiguous if other numbers in its column are not weights.
        values.update(value for value in known if isinstance(number(value), float))
    labels = dict.fromkeys(sorted(values)[:12], FILL_IN)
    return SchemaError(
        f"column {column!r} has unclear votes: {', '.join(labels)}",
        where=f"{path}, record {row}",
        expected="the name of a system, or a, b, first, second, tie, or a weight from 1 (first) to 2 (second)",
        hint=f"Map each to first, second or tie: {option('labels', labels)}",
    )


def _no_votes(frame: pd.DataFrame, path: Path, sides: bool) -> SchemaError:
    names = list(frame.columns)
    problem, expected = "no votes between two", "columns such as model_a, model_b and winner"
    if not sides and _pair(names, ("", *_ANSWER), _DECIDED):
        problem, expected = "answers chosen and rejected, without their systems", "columns of the two systems"
    columns = {"first_system_id": FILL_IN, "second_system_id": FILL_IN, "choice": FILL_IN}
    hint = f"It has: {', '.join(names)}. With these columns in place of FILL_IN: {option('columns', columns)}"
    return SchemaError(problem, where=str(path), expected=expected, hint=hint)
