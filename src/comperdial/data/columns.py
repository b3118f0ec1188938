"""What the columns of a user's file of ratings mean: by their names, then by what they hold; never a silent guess."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.data.files import SHEET, File
from comperdial.data.own_files import is_missing, number, shown
from comperdial.data.votes import VOTES, are_votes

FILL_IN = "FILL_IN"
# Names in use for each of our columns, the likeliest first. A name is compared in small letters, with underscores.
NAMES: Mapping[str, tuple[str, ...]] = {
    "source": ("source",),
    "context_id": (
        "context_id", "question_id", "prompt_id", "item_id", "example_id", "sample_id", "segment_id", "seg_id",
        "conversation_id", "passage_id", "article_id", "doc_id", "id", "item",
    ),
    "dialogue_id": ("dialogue_id",),
    "system_id": (
        "system_id", "system", "system_name", "model", "model_name", "model_id", "model_type", "generator", "bot", "agent",
        "engine", "architecture", "llm", "provider_id", "provider",
    ),
    "annotator_id": (
        "annotator_id", "annotator", "rater_id", "rater", "worker_id", "workerid", "worker", "evaluator_id", "evaluator",
        "coder", "judge_id", SHEET,
    ),
    "response": (
        "response", "model_response", "model_answer", "model_output", "system_response", "system_output", "bot_response",
        "generated_answer", "generated_response", "generated_text", "generated_summary", "answer", "output", "completion",
        "generation", "prediction", "hypothesis", "summary", "reply", "translation", "candidate",
    ),
    "references": (
        "references", "reference", "gold", "gold_answer", "gold_response", "reference_answer", "reference_response",
        "reference_summary", "target_summary", "human_reference", "ground_truth", "ground_truth_solution",
        "expected_output", "expected", "target", "ref",
    ),
    "history": (
        "history", "context", "conversation_history", "dialogue_history", "messages", "dialogue", "dialog", "conversation",
        "prompt", "question", "query", "user_message", "user_query", "instruction", "input", "source_document", "document",
        "article", "passage", "source_text", "source",
    ),
    "facts": ("facts", "fact", "knowledge", "persona"),
    "turn": ("turn", "turn_id"),
    "dimension": ("dimension", "criterion", "aspect"),
    "kind": ("kind",),
    "scale_min": ("scale_min",),
    "scale_max": ("scale_max",),
}  # fmt: skip
_NEEDED = ("response", "system_id", "rating")
_SHORT_NAMES = {"references": "reference", "system_id": "system", "annotator_id": "annotator"}
_ALWAYS = {"turn", "dimension", "kind", "scale_min", "scale_max", "dialogue_id"}
_RATED = re.compile(
    r"rating|score|severity|label|grade|quality|overall|likert|fluen|coher|relevan|consisten|informat|faithful|factual|helpful|harmless"
    r"|safety|empath|engag|human_?like|natural|correct|ground|adequa|appropriate|interest|specific|sensib|understand|succinct"
    r"|maintain|uses_knowledge|preference|satisf|warmth|humou?r|tone|accura|complet|concis"
)
# What is no rating by a person: names and numbers of things, times, counts, metrics, judges, ranks.
_IDS = re.compile(
    r"(?:^|_)(?:ids?|idx|index|number|no|row|seed|fold|split|epoch|page|order|position|hit|line)(?:_|$)|^unnamed|\*|\[\]"
)
_TIMES = re.compile(r"time|second|duration|date|latency|created|updated|lifetime|expir|delay")
_COUNTS = re.compile(
    r"(?:^|_)(?:count|counts|length|len|tokens?|words|chars|size|n|num|reward|price|cost|rate|assignments|rank|ranking|temperature|top_p)(?:_|$)"
)
_METRICS = re.compile(
    r"bleu|rouge|meteor|chrf|bert|bart_?score|mover_?score|comet|unieval|simcse|perplexity|cosine|similarity|embedding|likelihood"
    r"|logprob|levenshtein|exact_match|token_f1|(?<![a-z0-9])(?:f1(?:_score)?|usr|fed|ppl|pmi|nll|em|ter|cider|spice|distinct"
    r"|dist_?[12]|mauve|nubia|precision|recall)(?![a-z0-9])"
)
JUDGES = re.compile(
    r"grading|gpt|llm|claude|gemini|llama|qwen|mistral|mixtral|deepseek|gemma|prometheus|(?<![a-z])judge|g_?eval|chatgpt|o[134]_mini"
)
# A scale in a column's name: "(1-5)", "_1_5", "out_of_5".
_SCALE = re.compile(
    r"(?:^|[_\s(\[])+(\d{1,3})\s*(?:-|–|to|_)\s*(\d{1,3})[)\]]*$|[_\s(\[]*out[_\s]?of[_\s]?(\d{1,3})[)\]]?"
)
_RATER = re.compile(
    r"^(.*?)[\s_.(\[-]*((?:annotator|rater|worker|evaluator|coder|expert|human|ann|anno)[\s_-]?(?:\d+|[a-h]))[)\]]*$",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^(rating|score|label|annotation)[\s_-]?(\d+)$", re.IGNORECASE)
# Parts of names that say what a column is, and so are no names of systems.
_WORDS = frozenset(
    {
        "model",
        "generated",
        "system",
        "bot",
        "gold",
        "reference",
        "target",
        "expected",
        "human",
        "user",
        "my",
        "the",
        "raw",
        "final",
    }
)
_FEW_LABELS, _LONG, _SHORT = 12, 40, 25


@dataclass
class Layout:
    """A file's records under our names.

    Attributes
    ----------
    frame
        One row a record. Our columns have our names; columns of ratings and the others keep theirs.
    dimensions
        The columns of ratings, and the dimension of each; None: what the column ``dimension`` says.
    scales
        The lowest and highest rating of dimensions, as far as a column's name says them.
    judges, unused
        Columns of scores by judges and metrics; and all others that are read as nothing.
    columns
        Which column of the file each of ours is.
    notes
        What was concluded, in sentences for the user.
    """

    frame: pd.DataFrame
    dimensions: dict[str, str | None]
    scales: dict[str, tuple[float, float]] = field(default_factory=dict)
    judges: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def plain(name: str) -> str:
    """Return a column's name in small letters, with underscores, without its path and a scale at its end."""
    text = re.sub(
        r"^(?:input|answer|data|vars|annotation|annotations|reviews)\.", "", str(name).strip(), flags=re.IGNORECASE
    )
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", text)
    return re.sub(r"[\s_.-]+", "_", _SCALE.sub("", text).lower()).strip("_")


def lay_out(
    file: File,
    path: Path,
    columns: Mapping[str, Any] | None = None,
    labels: Mapping[str, float] | None = None,
    *,
    ratings: bool = True,
) -> Layout:
    """Give a file's columns our names.

    Parameters
    ----------
    file, path
        The file, and where it is, for messages and as the name of a system that none of the columns names.
    columns
        Our name -> the file's, as a user says; ``rating`` may be a list of columns, one a dimension.
    labels
        Label -> number, where ratings are labels.
    ratings
        Whether the file has to hold ratings; False: its responses are scored, and nothing else is asked of it.

    Raises
    ------
    SchemaError
        When a column is missing or several may be meant: the message has a ``--columns`` to paste.
    ConfigError, UnknownNameError
        When ``columns`` names what is not there.
    """
    given = dict(columns or {})
    if file.frame.empty:
        raise SchemaError("no records", where=str(path), expected="one record a rating, or one a response")
    if ratings and "rating" not in given:
        _check_holds_ratings(file, path)
    frame, notes = _made_long(file, given)
    _check_given(given, list(frame.columns), path)
    roles = _roles(frame, given, path)
    roles |= {ours: theirs for ours, theirs in given.items() if isinstance(theirs, str)}
    rated = _rated(frame, roles, given, labels) if ratings else _Rated()
    if "system_id" not in roles and ratings and (column := _maybe_system(frame, roles, rated)):
        rated.problems.append(f"items have several responses, and it is not sure that {column!r} says whose each is")
        roles["system_id"] = column
    if rated.problems or "response" not in roles:
        raise _proposal(file, path, frame, roles, given, labels, rated)
    frame, roles = _with_what_is_implied(frame, roles, path, notes)
    names = {theirs: ours for ours, theirs in roles.items()}
    # A column with one of our names that is something else keeps out of the way.
    others = {name for name in frame.columns if name in NAMES} - {*names, *rated.dimensions}
    frame = frame.rename(columns={name: f"{name} (not as mapped)" for name in others} | names)
    dimensions = {names.get(name, name): dimension for name, dimension in rated.dimensions.items()}
    scales = {dimension or name: ends for name, dimension in dimensions.items() if (ends := _scale(name, frame[name]))}
    for name in dimensions if labels else ():
        frame[name] = [_labelled(cell, labels or {}) for cell in frame[name]]
    if rated.raters:
        frame, dimensions = _by_rater(frame, rated.raters)
    known = {*roles, *dimensions, *rated.judges, "annotator_id", "system_id"}
    unused = [name for name in frame.columns if name not in known]
    return Layout(frame, dimensions, scales, rated.judges, unused, roles | {"rating": rated.named}, notes + rated.notes)


def _check_holds_ratings(file: File, path: Path) -> None:
    if file.log:
        hint = f"Give it as scores beside a file of ratings: comperdial compare RATINGS --scores {path}"
        problem = f"a log of {file.log}: its scores are no ratings by people"
        raise SchemaError(problem, where=str(path), expected="ratings", hint=hint)
    if are_votes(file.frame):
        hint = f"Run `comperdial preferences {path}`"
        raise SchemaError(VOTES, where=str(path), expected="ratings of responses", hint=hint)


def _made_long(file: File, given: Mapping[str, Any]) -> tuple[pd.DataFrame, list[str]]:
    """Return a file's records, one a response where it has systems side by side, and notes on them."""
    frame = file.frame.copy()
    frame.columns = frame.columns.map(str)
    if "response" in given or (wide := _side_by_side(frame, given)) is None:
        return frame, list(file.notes)
    return wide[0], [*file.notes, wide[1]]


def _with_what_is_implied(
    frame: pd.DataFrame, roles: dict[str, str], path: Path, notes: list[str]
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Add the system that no column names, judges among raters, and names of nested items."""
    roles = dict(roles)
    if "system_id" not in roles:
        frame["system_id"], roles["system_id"] = path.stem, "system_id"
        notes.append(f"no column names a system: all responses are by one, called {path.stem!r}")
        if not {"context_id", "annotator_id", "dimension"} & {*roles}:
            # Nothing says that two rows are about the same item.
            frame["row"], roles["context_id"] = range(1, len(frame) + 1), "row"
    if "source" not in roles and "annotator_id" in roles:
        raters = [str(cell) for cell in frame[roles["annotator_id"]]]
        sources = [name if JUDGES.search(plain(name)) else "human" for name in raters]
        if len(set(sources)) > 1:
            frame["source"], roles["source"] = sources, "source"
            notes.append(f"ratings by judges, as the names of raters say: {', '.join(sorted({*sources} - {'human'}))}")
    if "annotator_id" in roles and "context_id" not in roles:
        shown = [
            roles[ours] for ours in ("history", "references", "system_id", "response", "dimension") if ours in roles
        ]
        copies = frame.astype(str).groupby([*shown, roles["annotator_id"]]).cumcount()
        if copies.any():
            items = frame[[name for name in shown if name not in (roles["system_id"], roles.get("dimension"))]].astype(
                str
            )
            frame["item"] = [
                str(code + 1) for code in pd.factorize(pd.MultiIndex.from_frame(items.assign(copy=copies)))[0]
            ]
            roles["context_id"] = "item"
            notes.append(f"{int((copies > 0).sum())} rows repeat a response and its rater: they count as further items")
    keys = [name for name in _keys(frame) if name not in roles.values()]
    if keys and "context_id" in roles:
        # Of nested records an item is named by all the names on the way to it.
        frame["item"] = frame[[roles["context_id"], *keys]].astype(str).agg("/".join, axis=1)
        roles["context_id"] = "item"
    return frame, roles


def _check_given(given: Mapping[str, Any], written: Sequence[str], path: Path) -> None:
    seen: Counter[str] = Counter()
    for ours, theirs in given.items():
        if ours != "rating" and ours not in NAMES:
            raise UnknownNameError("column", str(ours), [*NAMES, "rating"], where=f"{path}, `columns`")
        if not (isinstance(theirs, str) or (ours == "rating" and isinstance(theirs, list) and theirs)):
            raise ConfigError(
                f"columns is {shown(dict(given))}",
                where=f"options of {path}",
                expected="our name -> the file's, such as {response: reply, rating: [warmth, humour]}",
            )
        for name in [theirs] if isinstance(theirs, str) else theirs:
            if name == FILL_IN:
                raise ConfigError(f"{ours} is {FILL_IN}", where="columns", expected=f"a column: {', '.join(written)}")
            if name not in written:
                problem = f"no column {name!r}, which `columns` names"
                raise SchemaError(problem, where=str(path), expected=f"columns of the file: {', '.join(written)}")
            seen[name] += 1
    if twice := [name for name, count in seen.items() if count > 1]:
        raise SchemaError(
            f"`columns` names {twice[0]!r} twice", where=str(path), expected="each column of the file once"
        )


# Roles


def _roles(frame: pd.DataFrame, given: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Return the file's column for each of ours that is there: the best name, if what it holds fits."""
    used = {name for theirs in given.values() for name in ([theirs] if isinstance(theirs, str) else theirs)}
    free = [name for name in frame.columns if name not in used]
    roles: dict[str, str] = {}
    for ours, names in NAMES.items():
        if ours in given:
            continue
        exact = [name for name in free if plain(name) in {ours, _SHORT_NAMES.get(ours)}]
        if len(exact) > 1:
            problem = f"columns {' and '.join(map(repr, sorted(exact)))}"
            raise SchemaError(problem, where=str(path), expected="one of the two")
        if exact and (ours != "source" or _fits(frame[exact[0]], ours)):
            # Our own names are meant, whatever the column holds: its records say what is wrong.
            roles[ours] = exact[0]
            free.remove(exact[0])
            continue
        fits = [
            (rank, name)
            for name in free
            if (rank := _rank(name, ours, names)) is not None
            and _fits(frame[name], ours)
            # A name that only holds one in use needs content that fits.
            and (rank < len(names) or _is_text(frame[name]))
        ]
        best = min(fits, default=None, key=lambda one: (one[0], free.index(one[1])))
        if best:
            roles[ours] = best[1]
            free.remove(best[1])
    if "context_id" in roles and "context_id" not in given and not _is_context(frame, roles):
        del roles["context_id"]
    keys = [name for name in free if name.endswith(".*")]
    if "system_id" not in roles and "system_id" not in given and keys and "response" in roles:
        # The names of a map of answers are who gave them.
        roles["system_id"] = keys[-1]
    if (
        "annotator_id" not in roles
        and "annotator_id" not in given
        and (lists := [name for name in free if name.endswith("[]")])
    ):
        roles["annotator_id"] = lists[-1]
    if "response" not in {*roles, *given} and "system_id" in roles and (name := roles.get("references")):
        # What differs between systems is no reference.
        context = [frame[roles[ours]].map(str) for ours in ("context_id", "history") if ours in roles]
        if context and (frame[name].map(str).groupby(context).nunique() > 1).any():
            roles["response"] = roles.pop("references")
    return roles


def _rank(name: str, ours: str, names: Sequence[str]) -> int | None:
    """Return how well a column's name fits one of ours, 0 being best; None if it does not."""
    text = plain(name)
    if name == ours:
        return -1
    if text in names:
        return names.index(text)
    if ours in _ALWAYS | {"source", "context_id", "annotator_id", "system_id"}:
        return None
    tokens = text.split("_")
    if _IDS.search(text):
        return None
    # "generated_answer_bn": a longer name that holds one in use, as whole words.
    within = [
        place
        for place, one in enumerate(names)
        if any(
            tokens[start : start + len(parts)] == parts for parts in [one.split("_")] for start in range(len(tokens))
        )
    ]
    return len(names) + within[0] if within else None


def _fits(cells: pd.Series, ours: str) -> bool:
    """Return whether a column can hold what its name says: names are short and few, texts are no numbers."""
    there = [cell for cell in cells if not is_missing(cell)]
    if not there:
        return False
    texts = [cell for cell in there if isinstance(cell, str)]
    longest = sum(map(len, texts)) / len(texts) if texts else 0
    if ours == "source":
        return longest <= _SHORT and len(set(texts)) <= max(5, len(there) // 20)
    if ours in ("system_id", "annotator_id"):
        return len(there) <= 3 or (longest <= 2 * _LONG and len({str(cell) for cell in there}) < len(there))
    if ours == "turn":
        return all(isinstance(number(cell), float) for cell in there)
    if ours in ("response", "history", "references", "facts"):
        return any(not isinstance(number(cell), float) for cell in there)
    return True


def _maybe_system(frame: pd.DataFrame, roles: Mapping[str, str], rated: _Rated) -> str | None:
    """Return the column of few names that tells the responses to one item apart, where items have several and no rater does."""
    if "context_id" not in roles or "annotator_id" in roles:
        return None
    item = frame[roles["context_id"]].map(str)
    if item.is_unique:
        return None
    used = {*roles.values(), *rated.dimensions, *rated.judges}
    for name in frame.columns.drop(list(used & {*frame.columns})):
        cells = frame[name].map(str)
        few = 1 < cells.nunique() <= 30 and cells.str.len().max() <= _LONG and not _is_number(frame[name])
        if few and not pd.DataFrame({"item": item, "name": cells}).duplicated().any():
            return str(name)
    return None


def _is_text(cells: pd.Series) -> bool:
    """Return whether a column holds texts of several words."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    if any(isinstance(cell, list) and cell for cell in cells):
        return True
    return sum(len(cell.split()) + len(cell) // 12 for cell in texts) > 1.5 * len(texts) > 0


def _is_context(frame: pd.DataFrame, roles: Mapping[str, str]) -> bool:
    """Return whether an id names what was answered: it occurs several times, or nothing else could say it."""
    ids = frame[roles["context_id"]].map(str)
    if plain(roles["context_id"]) != "id" or "history" not in roles:
        return not ids.is_unique or plain(roles["context_id"]) != "id"
    histories = frame[roles["history"]].map(str)
    return bool(histories.groupby(ids).nunique().max() == 1 and not ids.is_unique)


def _keys(frame: pd.DataFrame) -> list[str]:
    """Return the columns of a map's names, but for those that another column repeats."""
    others = {tuple(frame[name].map(str)) for name in frame.columns if not name.endswith(".*")}
    return [name for name in frame.columns if name.endswith(".*") and tuple(frame[name].map(str)) not in others]


# Ratings


@dataclass
class _Rated:
    """The columns of ratings: their dimensions, their raters if these are columns, and why there is doubt."""

    dimensions: dict[str, str | None] = field(default_factory=dict)
    raters: dict[str, tuple[str, str]] = field(default_factory=dict)
    judges: list[str] = field(default_factory=list)
    named: Any = None
    labels: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _rated(
    frame: pd.DataFrame, roles: Mapping[str, str], given: Mapping[str, Any], labels: Mapping[str, float] | None
) -> _Rated:
    result = _Rated()
    used = {*roles.values()}
    has_dimension = "dimension" in roles
    if "rating" in given:
        chosen = given["rating"]
        result.named = chosen
        names = [chosen] if isinstance(chosen, str) else list(chosen)
        if has_dimension and not isinstance(chosen, str):
            problem = f"a column {roles['dimension']!r} beside the columns {', '.join(map(repr, names))} of ratings"
            result.problems.append(problem)
        result.judges = [
            name
            for name in frame
            if name not in used and name not in names and _is_number(frame[name]) and _is_judge(name)
        ]
        _add(result, names, has_dimension)
        _check_labels(frame, result, names, labels)
        return result
    free = [name for name in frame.columns if name not in used]
    numeric = [name for name in free if _is_number(frame[name])]
    result.judges = [name for name in numeric if _is_judge(name)]
    people = [name for name in numeric if not _is_machine(name)]
    constant = _conditions(frame, roles, people)
    if constant and len(constant) < len(people):
        result.notes.append(f"the same for all raters of a response, so no ratings: {', '.join(constant)}")
        people = [name for name in people if name not in constant]
    exact = [name for name in free if plain(name) == "rating" and name not in _categories(frame, [name])]
    sure = exact or [name for name in people if _RATED.search(plain(name)) or _scale(name) or _rater_of(name)]
    left = [name for name in people if name not in sure]
    empty = [
        name for name in free if frame[name].map(is_missing).all() and (_RATED.search(plain(name)) or _rater_of(name))
    ]
    if sure and (exact or not left):
        _add(result, sure, has_dimension)
        result.named = sure[0] if len(sure) == 1 else sure
    elif people:
        result.named = people[0] if len(people) == 1 else people
        result.problems.append("which columns are ratings by people is not sure: " + ", ".join(people))
    elif not empty and (categories := _categories(frame, [name for name in free if not _is_machine(name)])):
        result.named = categories[0] if len(categories) == 1 else categories
        result.problems.append("no column of numbers; these hold labels, which need numbers: " + ", ".join(categories))
        _check_labels(frame, result, categories, None)
    else:
        result.named = FILL_IN
        more = f"; empty, so not rated yet: {', '.join(empty)}" if empty else ""
        more += f"; scores by judges or metrics: {', '.join(result.judges)}" if result.judges else ""
        result.problems.append("no column holds ratings by people" + more)
    return result


def _add(result: _Rated, names: Sequence[str], has_dimension: bool) -> None:
    by_rater = {name: one for name in names if (one := _rater_of(name))}
    if len(by_rater) == len(names):
        result.raters = by_rater
        result.dimensions = {name: dimension for name, (dimension, _) in by_rater.items()}
    else:
        result.dimensions = {name: None if has_dimension else _dimension(name) for name in names}


def _dimension(name: str) -> str:
    """Return what a column of ratings rates, in the file's words, without its path and a scale."""
    return "rating" if plain(name) == "rating" else _SCALE.sub("", name.rpartition(".")[2]).strip(" _-.(") or name


def _rater_of(name: str) -> tuple[str, str] | None:
    """Return the dimension and the rater of a column such as ``annotator1`` or ``fluency_rater2``."""
    if numbered := _NUMBERED.match(name.strip()):
        return numbered[1], numbered[2]
    if (match := _RATER.match(name.strip())) is None:
        return None
    return _dimension(match[1]) if match[1].strip(" _-.(") else "rating", match[2]


def _scale(name: str, cells: pd.Series | None = None) -> tuple[float, float] | None:
    """Return the scale that a column's name states."""
    if (match := _SCALE.search(name.lower())) is None:
        return None
    if match[3]:
        values = [value for cell in (cells if cells is not None else ()) if isinstance(value := number(cell), float)]
        return (0.0 if min(values, default=1.0) < 1 else 1.0), float(match[3])
    low, high = float(match[1]), float(match[2])
    return (low, high) if low < high else None


def _is_number(cells: pd.Series) -> bool:
    there = [number(cell) for cell in cells if not is_missing(cell)]
    return (
        bool(there)
        and all(isinstance(value, float) or value is None for value in there)
        and any(value is not None for value in there)
    )


def _is_judge(name: str) -> bool:
    return bool(JUDGES.search(plain(name)))


def scores_in(frame: pd.DataFrame) -> list[str]:
    """Return the columns of numbers that judges or metrics gave, as their names say."""
    named = [name for name in frame if _is_judge(name) or _METRICS.search(plain(name))]
    return [name for name in named if _is_number(frame[name])]


def _is_machine(name: str) -> bool:
    """Return whether a column of numbers is named like something that no person rates."""
    text = plain(name.rpartition(".")[2] or name)
    raw = re.sub(r"[\s_-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name).rpartition(".")[2]).lower())
    if "rank" in text or "ranking" in text:
        return True
    return any(pattern.search(part) for pattern in (_IDS, _TIMES, _COUNTS, _METRICS, JUDGES) for part in {text, raw})


def _conditions(frame: pd.DataFrame, roles: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the columns that all raters of a response have alike, where there are several raters: they describe it."""
    if "response" not in roles:
        return []
    keys = [frame[roles[ours]].map(str) for ours in ("response", "system_id", "context_id") if ours in roles]
    sizes = frame.groupby(keys).size()
    if (sizes > 1).sum() < 2:
        return []
    return [name for name in names if (frame[name].map(str).groupby(keys).nunique() <= 1).all()]


def _categories(frame: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return columns of few short texts: those of labels in common use, or else those with a name of ratings."""
    result = {}
    for name in names:
        texts = [str(cell).strip().lower() for cell in frame[name] if not is_missing(cell)]
        values = set(texts)
        few = 2 <= len(values) <= _FEW_LABELS and len(values) < len(texts) and max(map(len, values)) <= _LONG
        if few and len(texts) >= len(frame) / 2 and not _IDS.search(plain(name)):
            result[name] = values
    usual = [name for name, values in result.items() if any(values <= set(order) for order in _ORDERS)]
    return usual or [name for name in result if _RATED.search(plain(name))]


# Labels in common use, from the best to the worst.
_ORDERS = (
    ("yes", "to some extent", "no"),
    ("yes", "partially", "no"),
    ("yes", "maybe", "no"),
    ("true", "false"),
    ("pass", "fail"),
    ("excellent", "good", "fair", "poor", "bad"),
    ("high", "medium", "low"),
    ("good", "neutral", "bad"),
    ("correct", "partially correct", "incorrect"),
    ("no-error", "minor", "major"),
    ("strongly agree", "agree", "neutral", "disagree", "strongly disagree"),
    ("no", "minor", "major", "critical"),
    ("good", "ok", "bad"),
)


def _check_labels(
    frame: pd.DataFrame, result: _Rated, names: Sequence[str], labels: Mapping[str, float] | None
) -> None:
    """Note the labels in columns of ratings that no number is given for."""
    known = {label.strip().lower() for label in labels or ()}
    cells = Counter(
        str(cell).strip()
        for name in names
        for cell in frame[name]
        if not is_missing(cell) and isinstance(number(cell), str) and str(cell).strip().lower() not in known
    )
    if not cells or any(len(cell) > _LONG for cell in cells) or len(cells) > 3 * _FEW_LABELS:
        return
    lower = {label.lower(): label for label in cells}
    order = max(_ORDERS, key=lambda one: (len(set(one) & set(lower)), -len(one)))
    place = {label: len(order) - 1 - order.index(label) for label in order}
    values: dict[str, Any] = {label: place.get(label.lower(), FILL_IN) for label in cells}
    result.labels = {**(labels or {}), **values}
    if labels is not None or not result.problems:
        result.problems.append(f"labels without a number: {', '.join(map(repr, cells))}")


def _labelled(cell: Any, labels: Mapping[str, float]) -> Any:  # noqa: ANN401
    if is_missing(cell):
        return cell
    by_name = {label.strip().lower(): value for label, value in labels.items()}
    return by_name.get(str(cell).strip().lower(), cell)


# Wide forms


def _side_by_side(frame: pd.DataFrame, given: Mapping[str, Any]) -> tuple[pd.DataFrame, str] | None:
    """Make one row a response of columns ``answer_a, score_a, answer_b, score_b``; None if there are no such."""
    groups: dict[str, dict[str, str]] = {}
    for name in frame.columns:
        tokens = re.split(r"([\s_.-]+)", name)
        for place in (0, len(tokens) - 1):
            word = tokens[place]
            stem = "".join([*tokens[:place], *tokens[place + 1 :]]).strip(" _.-")
            if len(tokens) > 1 and word and stem and word.lower() not in _WORDS:
                groups.setdefault(stem, {})[word] = name
    texts = {
        stem: columns
        for stem, columns in groups.items()
        if len(columns) > 1
        and _rank(stem, "response", NAMES["response"]) is not None
        and all(_fits(frame[name], "response") for name in columns.values())
        and plain(stem) not in NAMES["references"]
    }
    # Two columns of one stem that are more than two ways of naming the response: each system has its own text.
    if len(texts) != 1 or "system_id" in given:
        return None
    stem, answers = next(iter(texts.items()))
    systems = list(answers)
    if any(plain(name) in NAMES["system_id"] for name in frame.columns):
        return None
    shared = {one: columns for one, columns in groups.items() if one != stem and set(columns) >= set(systems)}
    own = {name for columns in [answers, *shared.values()] for system, name in columns.items() if system in answers}
    parts = []
    for system in systems:
        part = frame.drop(columns=list(own)).copy()
        part["response"] = frame[answers[system]]
        for one, columns in shared.items():
            part[one] = frame[columns[system]]
        named = [
            name
            for name in frame.columns
            if plain(name) in {f"model_{system.lower()}", f"system_{system.lower()}", f"generator_{system.lower()}"}
        ]
        part["system_id"] = frame[named[0]] if named else system
        parts.append(part)
    result = (
        pd.concat(parts, ignore_index=True).loc[lambda table: ~table["response"].map(is_missing)].reset_index(drop=True)
    )
    note = f"{len(systems)} systems side by side, one row a response made of each: {', '.join(map(str, systems))}"
    return result, note


def _by_rater(frame: pd.DataFrame, raters: Mapping[str, tuple[str, str]]) -> tuple[pd.DataFrame, dict[str, str | None]]:
    """Make one row a rating of columns that are raters, named ``annotator_id`` and by dimension."""
    others = [name for name in frame.columns if name not in raters]
    dimensions = list(dict.fromkeys(dimension for dimension, _ in raters.values()))
    parts = []
    for rater in dict.fromkeys(rater for _, rater in raters.values()):
        part = frame[others].copy()
        for dimension in dimensions:
            column = next((name for name, one in raters.items() if one == (dimension, rater)), None)
            part[dimension] = None if column is None else frame[column]
        parts.append(part.assign(annotator_id=rater))
    return pd.concat(parts, ignore_index=True), dict.fromkeys(dimensions) | {name: name for name in dimensions}


# Messages


def _proposal(
    file: File,
    path: Path,
    frame: pd.DataFrame,
    roles: Mapping[str, str],
    given: Mapping[str, Any],
    labels: Mapping[str, float] | None,
    rated: _Rated,
) -> SchemaError:
    """Return an error whose hint is a command line to paste, with FILL_IN for what is not known."""
    written, problems, roles = list(map(str, file.frame.columns)), list(rated.problems), dict(roles)
    if "response" not in roles:
        problems.insert(0, "no column is surely the response")
        used = {*roles.values(), *rated.dimensions, *(rated.named if isinstance(rated.named, list) else [rated.named])}
        texts = [name for name in frame.columns if name not in used and _is_text(frame[name])]
        if len(texts) == 1:
            roles["response"] = texts[0]
            # What is a rating shows better once the response is known.
            rated = rated if "rating" in given or rated.named is None else _rated(frame, roles, given, labels)
    # What was made of systems side by side is made again from the file's own columns.
    is_long = set(frame.columns) <= set(written)
    columns: dict[str, Any] = {"response": roles.get("response", FILL_IN)} if is_long else {}
    if rated.named is not None or rated.dimensions:
        columns["rating"] = rated.named if rated.named is not None else list(rated.dimensions)
    columns |= {ours: name for ours, name in roles.items() if name in written and ours != name and ours not in columns}
    line = f"--columns {shlex.quote(json.dumps(columns, ensure_ascii=False))}"
    if rated.labels:
        line += f" --labels {shlex.quote(json.dumps(rated.labels, ensure_ascii=False))}"
    fill = f", with a column in place of {FILL_IN}" if FILL_IN in line else ""
    expected = "columns of the response, of the system (if there are several) and of ratings"
    return SchemaError(
        "; ".join(problems),
        where=str(path),
        expected=f"{expected}; the file has: {', '.join(written)}",
        hint=f"If this is what they mean, add{fill}: {line}",
    )


# Markup

_MARKS = {
    "HTML tags": re.compile(r"</?(?:[a-z][a-z0-9]{0,10})(?:\s[^<>]*)?/?>", re.IGNORECASE),
    "HTML entities": re.compile(r"&(?:[a-z]{2,8}|#\d{1,5}|#x[0-9a-f]{1,4});", re.IGNORECASE),
    "wrongly decoded characters": re.compile(r"[Ãâ][\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œžŸ]"),
    "control characters": re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"),
}


def markup(layout: Layout) -> list[str]:
    """Return a sentence for each kind of markup in a file's responses and references: nothing is removed silently."""
    cells = [str(cell) for name in ("response", "references") if name in layout.frame for cell in layout.frame[name]]
    counts = {kind: sum(bool(mark.search(cell)) for cell in cells) for kind, mark in _MARKS.items()}
    return [f"{count} texts with {kind}; --strip-markup removes them" for kind, count in counts.items() if count]


def strip_markup(layout: Layout) -> None:
    """Remove markup from a file's responses, references and histories, where these are plain texts."""
    for name in ("response", "references", "history"):
        if name in layout.frame:
            layout.frame[name] = [_stripped(cell) if isinstance(cell, str) else cell for cell in layout.frame[name]]


def _stripped(text: str) -> str:
    if _MARKS["wrongly decoded characters"].search(text):
        with suppress(UnicodeError):
            text = text.encode("cp1252").decode("utf-8")
    text = html.unescape(_MARKS["HTML tags"].sub(" ", text))
    return re.sub(r"[ \t]{2,}", " ", _MARKS["control characters"].sub("", text)).strip()
