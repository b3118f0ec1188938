"""Infer what the columns of a user's rating file mean, from their names and then their content; never guess silently."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.data import transcripts
from comperdial.data.files import SHEET, File
from comperdial.data.own_files import RATED, is_missing, listed, number, option, shown
from comperdial.data.votes import FILL_IN, VOTES, are_votes

# Common names for each of our columns, most likely first, in lower case with underscores.
_IN_USE = {
    "source": "source",
    "context_id": "context_id question_id prompt_id item_id example_id sample_id segment_id seg_id conversation_id "
    "passage_id article_id doc_id id item",
    "dialogue_id": "dialogue_id dialog_id conv_id conv dialog_nr dialogue_nr dialog_no dialogue_no conv_no",
    "system_id": "system_id system system_name model model_name model_id model_type generator bot agent engine "
    "architecture chatbot_name which_bot which_model which_system dialog_model dialogue_model llm provider_id provider "
    "système systeme modele sistema modelo modell",
    "annotator_id": "annotator_id annotator rater_id rater worker_id workerid worker evaluator_id evaluator coder "
    f"judge_id evaluateur annotateur evaluador bewerter {SHEET}",
    "response": "response model_response model_answer model_output system_response system_output bot_response "
    "generated_answer generated_response generated_text generated_summary answer output completion generation "
    "prediction hypothesis decoded summary reply translation candidate chatbot assistant "
    "bots_reply bot_said bot_utterance bot_turn system_turn reponse réponse respuesta antwort risposta",
    "references": "references reference gold gold_answer gold_response reference_answer reference_response "
    "reference_summary target_summary human_reference ground_truth ground_truth_solution expected_output expected "
    "target ref",
    "history": "history context conversation_history dialogue_history messages dialogue dialog conversation prompt "
    "question query user_message user_query instruction input source_document document article passage source_text "
    "source user user_said user_utterance user_turn",
    "facts": "facts fact knowledge persona",
    "turn": "turn turn_id turn_ind turn_index",
    "dimension": "dimension criterion aspect",
    "kind": "kind",
    "scale_min": "scale_min",
    "scale_max": "scale_max",
}
NAMES: Mapping[str, tuple[str, ...]] = {ours: tuple(names.split()) for ours, names in _IN_USE.items()}
_SHORT_NAMES = {"references": "reference", "system_id": "system", "annotator_id": "annotator"}
# These roles require one of the names exactly.
_EXACT = {
    *("turn", "dimension", "kind", "scale_min", "scale_max", "dialogue_id"),
    *("source", "context_id", "annotator_id", "system_id"),
}
# Columns that are not human ratings: ids, times, counts, metrics, judges, ranks.
_IDS = re.compile(
    r"(?:^|_)(?:ids?|idx|ind|index|number|no|row|seed|fold|split|epoch|page|order|position|hit|line)(?:_|$)|^unnamed|\*|\[\]"
    r"|(?:^|_)(?:prompt|model|system|question|item|task)(?:_[a-z0-9])?$"
)
_TIMES_AND_COUNTS = re.compile(
    r"time|second|duration|date|latency|created|updated|lifetime|expir|delay|(?:^|_)(?:count|counts|length|len|tokens?|words"
    r"|chars|size|n|num|reward|price|cost|rate|assignments|rank|ranking|temperature|top_p|age|std|sd|stdev|mean|average|avg|median|variance|consent|nr|tstamp|birth|year)(?:_|$)"
    r"|tstamp|identifiant|attention_check"
)
_METRICS = re.compile(
    r"bleu|rouge|meteor|chrf|bert|bart_?score|mover_?score|comet|unieval|simcse|perplexity|cosine|similarity|embedding"
    r"|likelihood|logprob|levenshtein|exact_match|token_f1|(?<![a-z0-9])(?:f1(?:_score)?|usr|fed|ppl|pmi|nll|em|ter|cider"
    r"|spice|distinct|dist_?[12]|mauve|nubia|precision|recall)(?![a-z0-9])"
)
JUDGES = re.compile(
    r"grading|gpt|llm|claude|gemini|llama|qwen|mistral|mixtral|deepseek|gemma|prometheus|(?<![a-z])judge|g_?eval|chatgpt"
    r"|o[134]_mini|(?:^|[_.])pred(?:ict(?:ed|ion|ions)?)?(?:_|$)|(?<![a-z])[a-z]+lm_(?!$)"
)
# Explanations of a rating, not responses.
REASONS = re.compile(r"judg|reason|rationale|comment|explanation|feedback|justification|note")
# A scale in a column name: "(1-5)", "_1_5", "out_of_5".
_SCALE = re.compile(
    r"(?:^|[_\s(\[])+(\d{1,3})\s*(?:-|–|to|_)\s*(\d{1,3})[)\]]*$|[_\s(\[]*out[_\s]?of[_\s]?(\d{1,3})[)\]]?"
)
_WHO = (
    r"annotator|annot|rater|worker|evaluator|coder|expert|human|ann|anno|labell?er|student|user|participant|subject|reviewer"
    r"|assessor|crowd|eval|person|bewerter|annotateur|evaluador"
)
_RATER = re.compile(rf"^(?P<what>.*?)[\s_.(\[-]*(?P<who>(?:{_WHO})[\s_.-]*(?:\d+|[a-h]))[)\]]*$", re.IGNORECASE)
_RATER_FIRST = re.compile(
    rf"^(?P<who>(?:{_WHO})[\s_.-]*(?:\d+|[a-h]))(?![a-z\d])[\s_.:)\]-]+(?P<what>.+)$", re.IGNORECASE
)
# A letter or a rated dimension followed by a number: raters, if several columns share the stem and the values.
_SERIES = re.compile(
    r"^(?:(?P<what>.+?)[\s_.-]+)?(?P<who>[A-PR-Za-pr-z]\d{1,3}|[A-H])$|^(?P<stem>.*?)[\s_.-]*(?P<no>\d{1,3})$"
)
# Parts of names that describe a column's role, so they are not system names.
_WORDS = {*"model generated system bot gold reference target expected human user my the raw final".split()}  # noqa: SIM905
_FEW_LABELS, _LONG, _SHORT = 12, 40, 25
# Ratings not written as plain numbers.
_WRITTEN = (
    re.compile(r"(?P<value>\d+(?:\.\d+)?)\s*(?:/|out of)\s*(?P<top>\d+)"),
    re.compile(r"(?P<value>\d+(?:\.\d+)?)\s*(?P<percent>%|percent)"),
    re.compile(r"(?P<stars>[★⭐]+)☆*"),
    re.compile(r"(?P<value>\d{1,2})\s*(?:[-–—:=]\s*|\()\s*[^\W\d].*"),
)
_MOST_WRITTEN = 101
# A judge that may be a person.
_NUMBERED_JUDGE = re.compile(r"^judge_?(?:\d{1,2}|[a-h])$")
# A column about one of two answers.
_SIDE = re.compile(r"^(answer|response|output|model|system)_?([12ab])(?:_id|_name)?$")
# Common labels, best first.
_ORDERS = tuple(
    tuple(order.split(", "))
    for order in (
        "yes, to some extent, no",
        "yes, partially, no",
        "yes, maybe, no",
        "true, false",
        "pass, fail",
        "excellent, very good, good, fair, poor, very poor, bad, very bad",
        "high, medium, low",
        "good, neutral, bad",
        "correct, partially correct, incorrect",
        "no-error, minor, major",
        "strongly agree, agree, neutral, disagree, strongly disagree",
        "no, minor, major, critical",
        "good, ok, bad",
    )
)


_LOW_IS_GOOD = re.compile(
    r"\b1\s*(?:=|is)\s*(?:the\s*)?(?:best|very good|excellent)|low(?:er)?\s*(?:=|is)\s*(?:better|good)|=\s*worst|^rank(?:ing)?$",
    re.IGNORECASE,
)
# Common codes for "not rated", and the largest real rating with which each is plausible.
_CODES = {-1: 0, -9: 0, -99: 0, -999: 0, 9: 6, 99: 20, 98: 20, 999: 100, 9999: 1000}


class NoRatingsError(SchemaError):
    """No column of a file contains human ratings."""


@dataclass
class Layout:
    """A file's records under our column names.

    Attributes
    ----------
    frame
        One row per record. Known columns are renamed; rating columns and others keep their names.
    dimensions
        The rating columns and the dimension of each; None if the column ``dimension`` gives it.
    scales
        Lowest and highest rating by dimension, if a column name states them.
    judges, unused
        Columns with scores by judges and metrics; and ignored columns.
    columns
        The file's column for each of ours.
    notes
        What was inferred, in sentences for the user.
    lower
        Dimensions in which a low rating is good, judging by column names.
    """

    frame: pd.DataFrame
    dimensions: dict[str, str | None]
    scales: dict[str, tuple[float, float]] = field(default_factory=dict)
    judges: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lower: list[str] = field(default_factory=list)


def plain(name: str) -> str:
    """Return a column's name in lower case with underscores, without its path and a trailing scale."""
    path = r"^(?:input|answer|data|vars|annotation|annotations|reviews)\."
    text = re.sub(path, "", str(name).strip(), flags=re.IGNORECASE)
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", text)
    return re.sub(r"[\s_.#:-]+", "_", _SCALE.sub("", text).lower()).strip("_")


def lay_out(
    file: File,
    path: Path,
    columns: Mapping[str, Any] | None = None,
    labels: Mapping[str, float] | None = None,
    *,
    ratings: bool = True,
) -> Layout:
    """Map a file's columns to ours.

    Parameters
    ----------
    file, path
        The file and its path, which names it in messages and supplies the system's name if no column does.
    columns
        The user's map, our name -> the file's; ``rating`` may be a list of columns, one per dimension.
    labels
        Label -> number, for ratings given as labels.
    ratings
        Whether the file must contain ratings; if False, its responses are only scored.

    Raises
    ------
    SchemaError
        If a column is missing or ambiguous; the message has a ``--columns`` option to paste.
    ConfigError, UnknownNameError
        If ``columns`` refers to something that does not exist.
    """
    given = dict(columns or {})
    if file.frame.empty:
        raise SchemaError("no records", where=str(path), expected="one record per rating, or one per response")
    if ratings and "rating" not in given:
        _check_holds_ratings(file, path)
    frame, notes = file.frame.copy(), list(file.notes)
    if "response" not in given and (wide := _side_by_side(frame, given)):
        frame = wide[0]
        notes.append(wide[1])
    whole = listed(given.pop(transcripts.RATING, []))
    given |= {"rating": [*listed(given.get("rating", [])), *whole]} if whole else {}
    _check_given(given, list(frame.columns), path)
    frame, ends_written = _numbers(frame, notes)
    roles = _roles(frame, given, path)
    in_dialogues: list[str] = []
    if turns := _of_dialogues(frame, file, path, given, roles, whole if ratings else None, notes):
        frame, given, in_dialogues = turns
        roles = _roles(frame, given, path)
    elif whole:
        problem, expected = "no dialogues, with an utterance per row or a dialogue per cell", "ratings of responses"
        raise SchemaError(problem, where=f"{path}, {transcripts.RATING}", expected=expected)
    rated = _rated(frame, roles, given, labels, in_dialogues) if ratings else _Rated()
    if "system_id" not in roles and ratings and (column := _maybe_system(frame, roles, rated)):
        rated.problems.append(f"items have several responses, and it is unclear whether {column!r} names their systems")
        roles["system_id"] = column
    if rated.problems or "response" not in roles:
        raise _proposal(file, path, frame, roles, given, labels, rated)
    frame = _add_implied(frame, roles, path, notes)
    names = {theirs: ours for ours, theirs in roles.items()}
    # Rename unrelated columns that have one of our names.
    others = {name for name in frame.columns if name in NAMES} - {*names, *rated.dimensions}
    frame = frame.rename(columns={name: f"{name} (not as mapped)" for name in others} | names)
    dimensions = {names.get(name, name): dimension for name, dimension in rated.dimensions.items()}
    scales = {
        dimension or name: ends
        for name, dimension in dimensions.items()
        if (ends := _scale(name, frame[name]) or ends_written.get(name))
    }
    by_label = {label.strip().lower(): value for label, value in (labels or {}).items()}
    for name in dimensions if labels else ():
        frame[name] = [cell if is_missing(cell) else by_label.get(_label(cell), cell) for cell in frame[name]]
    lower = [dimension or name for name, dimension in dimensions.items() if _LOW_IS_GOOD.search(name)]
    notes += [f"{name}: low is good, as its name says" for name in lower]
    if rated.raters:
        frame, dimensions = _by_rater(frame, rated.raters)
        if "dimension" in roles and len(dimensions) == 1:
            # The column `dimension` gives each row's dimension.
            dimensions = dict.fromkeys(dimensions)
    known = {*roles, *dimensions, *rated.judges, "annotator_id", "system_id"}
    unused = [name for name in frame.columns if name not in known]
    return Layout(
        frame, dimensions, scales, rated.judges, unused, roles | {"rating": rated.named}, notes + rated.notes, lower
    )


def _numbers(frame: pd.DataFrame, notes: list[str]) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """Convert ratings such as ``4/5``, ``80 %``, ``★★★☆☆`` or ``2 - disagree`` to numbers; return their scales too."""
    scales: dict[str, tuple[float, float]] = {}
    for name in frame.columns:
        filled = [cell for cell in frame[name] if not is_missing(cell)]
        texts = {cell.strip() for cell in filled if isinstance(cell, str)}
        if not 0 < len(texts) <= _MOST_WRITTEN or not all(isinstance(cell, str) for cell in filled):
            continue
        for pattern in _WRITTEN:
            parts = {text: match.groupdict() for text in texts if (match := pattern.fullmatch(text))}
            values = {
                text: len(part["stars"]) if "stars" in part else float(part["value"]) for text, part in parts.items()
            }
            if len(parts) < len(texts) or len({*values.values()}) < len(texts):
                continue
            # The highest rating: of stars, if empty ones are shown.
            tops = {
                len(text) * ("☆" in "".join(texts)) if "stars" in part
                else 100 if "percent" in part else float(part.get("top") or 0)
                for text, part in parts.items()
            }  # fmt: skip
            if len(tops) > 1:
                continue
            if top := tops.pop():
                scales[name] = (0.0 if top == 100 or min(values.values()) < 1 else 1.0, float(top))
            column = frame[name].map(lambda cell, of=values: cell if is_missing(cell) else of[cell.strip()])
            frame, example = frame.assign(**{name: column}), min(texts)
            notes.append(f"{name}: {example!r} and the like are read as numbers, such as {values[example]:g}")
            break
    return frame, scales


def _check_holds_ratings(file: File, path: Path) -> None:
    if file.log:
        hint = f"Pass it as scores with a file of ratings: comperdial compare RATINGS --scores {path}"
        problem = f"a log of {file.log.tool}, whose scores are not human ratings"
        raise SchemaError(problem, where=str(path), expected="ratings", hint=hint)
    if are_votes(file.frame):
        hint = f"Run `comperdial preferences {path}`"
        raise SchemaError(VOTES, where=str(path), expected="ratings of responses", hint=hint)
    sides = {match[2] for name in file.frame if (match := _SIDE.match(plain(str(name))))}
    places = set(file.frame.get("raters[]", ())) - {None}
    if sides in ({"1", "2"}, {"a", "b"}) and places == {1, 2}:
        problem = "each record has two answers and two scores"
        hint = "Write one record per answer, with its text, system and score"
        raise SchemaError(problem, where=str(path), expected="one score per response", hint=hint)


def _check_given(given: Mapping[str, Any], written: Sequence[str], path: Path) -> None:
    seen: Counter[str] = Counter()
    for ours, theirs in given.items():
        if ours != "rating" and ours not in NAMES:
            raise UnknownNameError("column", str(ours), [*NAMES, "rating"], where=f"{path}, `columns`")
        if not (
            isinstance(theirs, str) or (ours in ("rating", "annotator_id") and isinstance(theirs, list) and theirs)
        ):
            expected = "our name -> the file's, such as {response: reply, rating: [warmth, humour]}"
            raise ConfigError(f"columns is {shown(dict(given))}", where=f"options of {path}", expected=expected)
        for name in listed(theirs):
            if name == FILL_IN:
                raise ConfigError(f"{ours} is {FILL_IN}", where="columns", expected=f"a column: {', '.join(written)}")
            if name not in written:
                problem = f"no column {name!r}, which `columns` refers to"
                raise SchemaError(problem, where=str(path), expected=f"columns of the file: {', '.join(written)}")
            seen[name] += 1
    if twice := [name for name, count in seen.items() if count > 1]:
        problem, expected = f"`columns` contains {twice[0]!r} twice", "each column of the file once"
        raise SchemaError(problem, where=str(path), expected=expected)


def _add_implied(frame: pd.DataFrame, roles: dict[str, str], path: Path, notes: list[str]) -> pd.DataFrame:
    """Add a missing system, judges among the raters, and ids of nested items to the frame and to ``roles``."""
    frame = frame.copy()
    if "system_id" not in roles:
        frame["system_id"], roles["system_id"] = path.stem, "system_id"
        notes.append(f"no column names a system: all responses are by one, called {path.stem!r}")
        if not {"context_id", "annotator_id", "dimension"} & {*roles}:
            # Nothing links rows to a common item.
            frame["row"], roles["context_id"] = range(1, len(frame) + 1), "row"
    if "source" not in roles and "annotator_id" in roles:
        raters = [str(cell) for cell in frame[roles["annotator_id"]]]
        sources = [name if _is_judge(name) else "human" for name in raters]
        if len(set(sources)) > 1:
            frame["source"], roles["source"] = sources, "source"
            notes.append(f"ratings by judges, as the names of raters say: {', '.join(sorted({*sources} - {'human'}))}")
    if "annotator_id" in roles and "context_id" not in roles:
        parts = ("history", "references", "system_id", "response", "dimension")
        shown_to = [roles[ours] for ours in parts if ours in roles]
        copies = frame.astype(str).groupby([*shown_to, roles["annotator_id"]]).cumcount()
        if copies.any():
            item = [name for name in shown_to if name not in (roles["system_id"], roles.get("dimension"))]
            items = pd.MultiIndex.from_frame(frame[item].astype(str).assign(copy=copies))
            frame["item"], roles["context_id"] = [str(code + 1) for code in pd.factorize(items)[0]], "item"
            notes.append(f"{int((copies > 0).sum())} rows repeat a response and its rater: they count as further items")
    # Keys of the maps that hold the records, except those that duplicate another column.
    others = {tuple(frame[name].map(str)) for name in frame.columns if not name.endswith(".*")}
    keys = [name for name in frame.columns if name.endswith(".*") and tuple(frame[name].map(str)) not in others]
    if "context_id" in roles and (keys := [name for name in keys if name not in roles.values()]):
        # The id of a nested item joins all keys on its path.
        frame["item"] = frame[[roles["context_id"], *keys]].astype(str).agg("/".join, axis=1)
        roles["context_id"] = "item"
    return frame


# Roles


def _roles(frame: pd.DataFrame, given: Mapping[str, Any], path: Path) -> dict[str, str]:
    """Return the file's column for each of ours: the best-matching name whose content fits."""
    used = {name for theirs in given.values() for name in listed(theirs)}
    free = [name for name in frame.columns if name not in used]
    roles: dict[str, str] = {}
    for ours in NAMES:
        if ours in given:
            continue
        exact = [name for name in free if plain(name) in {ours, _SHORT_NAMES.get(ours)}]
        if len(exact) > 1:
            problem = f"columns {' and '.join(map(repr, sorted(exact)))}"
            raise SchemaError(problem, where=str(path), expected="one of the two")
        # An exact match is intended even if its content is invalid; its records then produce the error.
        best = exact[0] if exact and (ours != "source" or _fits(frame[exact[0]], ours)) else None
        if best is None:
            ranks = [(rank, place, name) for place, name in enumerate(free) if (rank := _rank(name, ours)) is not None]
            # A partial match of the name must also fit by content.
            fits = [
                one for one in sorted(ranks)
                if _fits(frame[one[2]], ours) and (one[0] < len(NAMES[ours]) or is_text(frame[one[2]]))
            ]  # fmt: skip
            best = fits[0][2] if fits else None
        if best is not None:
            roles[ours] = best
            free.remove(best)
    if "context_id" in roles and not _is_context(frame, roles):
        del roles["context_id"]
    if "source" in roles and "system_id" not in {*roles, *given} and _has_own_texts(frame, roles):
        roles["system_id"] = roles.pop("source")
    if "source" in roles and not _is_who_rated(frame, roles):
        del roles["source"]
    source = [name for name in free if plain(name) == "source" and is_text(frame[name])]
    if source and "facts" not in roles and plain(roles.get("history", "")) == "context":
        # In UniEval-like files `source` is the dialogue and `context` a fact.
        roles["facts"], roles["history"] = roles["history"], source[0]
        free.remove(source[0])
    known = {*roles, *given}
    keys, lists = ([name for name in free if name.endswith(end)] for end in (".*", "[]"))
    if "annotator_id" not in known and keys and re.fullmatch(rf"(?:{_WHO})s?", plain(keys[-1].removesuffix(".*"))):
        # The keys of a map of human ratings are the raters.
        roles["annotator_id"] = keys.pop()
    if "system_id" not in known and keys and "response" in roles:
        # The keys of a map of answers are the systems.
        roles["system_id"] = keys[-1]
    response = roles.get("response") or given.get("response")
    if (
        "dimension" not in known
        and keys
        and keys[-1] != roles.get("system_id")
        and all(RATED.search(plain(str(cell))) for cell in frame[keys[-1]])
    ):
        # The keys of a map of ratings are the dimensions.
        roles["dimension"] = keys[-1]
    if "annotator_id" not in known and lists and isinstance(response, str) and response in frame:
        # List positions are raters if they rate one response, but not if each entry has its own response.
        again = (frame[lists[-1]].map(str) != "1").to_numpy()
        if (frame[response].map(str) == frame[response].map(str).shift())[again].mean() > 0.5:
            roles["annotator_id"] = lists[-1]
    if "turn" not in known and "dialogue_id" in known and (places := [name for name in lists if "turn" in plain(name)]):
        roles["turn"] = places[0]
    if "response" not in known and "system_id" in roles and (name := roles.get("references")):
        # A text that differs between systems is not a reference.
        context = [frame[roles[ours]].map(str) for ours in ("context_id", "history") if ours in roles]
        if context and (frame[name].map(str).groupby(context).nunique() > 1).any():
            roles["response"] = roles.pop("references")
    return roles | {ours: theirs for ours, theirs in given.items() if isinstance(theirs, str)}


def _has_own_texts(frame: pd.DataFrame, roles: Mapping[str, str]) -> bool:
    """Return whether each source has its own responses, so that it is their author and not their rater."""
    if "response" not in roles:
        return False
    texts, sources = (frame[roles[ours]].map(str) for ours in ("response", "source"))
    return bool((sources.groupby(texts).nunique() == 1).mean() > 0.8)


def _is_who_rated(frame: pd.DataFrame, roles: Mapping[str, str]) -> bool:
    """Return whether a column ``source`` names the rater, not the origin of the items."""
    sources = frame[roles["source"]].map(str)
    if any(_is_judge(name) or name.strip().lower() in ("human", "simulated") for name in sources.unique()):
        return True
    if "response" in roles and (sources.groupby(frame[roles["response"]].map(str)).nunique() > 1).any():
        return True
    # In a file with our column names, it is ours.
    return all(name in (ours, _SHORT_NAMES.get(ours)) for ours, name in roles.items())


def _rank(name: str, ours: str) -> int | None:
    """Return how well a column name matches one of ours, 0 being best; None if it does not."""
    text, names = plain(name), NAMES[ours]
    if name == ours:
        return -1
    if text in names:
        return names.index(text)
    if ours in _EXACT or _IDS.search(text):
        return None
    # "generated_answer_bn": a common name as whole words within a longer one.
    within = [place for place, one in enumerate(names) if f"_{one}_" in f"_{text}_"]
    return len(names) + within[0] if within else None


def _fits(cells: pd.Series, ours: str) -> bool:
    """Return whether a column's content suits its role: names are short and few, texts are not numbers."""
    there = [cell for cell in cells if not is_missing(cell)]
    texts = [cell for cell in there if isinstance(cell, str)]
    longest = sum(map(len, texts)) / len(texts) if texts else 0
    if not there:
        return False
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
    """Return the few-valued column that distinguishes responses to an item, if no rater column does."""
    if "context_id" not in roles or "annotator_id" in roles or frame[roles["context_id"]].map(str).is_unique:
        return None
    item = frame[roles["context_id"]].map(str)
    for name in frame.columns.drop(list({*roles.values(), *rated.dimensions, *rated.judges} & {*frame.columns})):
        cells = frame[name].map(str)
        few = 1 < cells.nunique() <= 30 and cells.str.len().max() <= _LONG and not _is_number(frame[name])
        if few and not pd.DataFrame({"item": item, "name": cells}).duplicated().any():
            return str(name)
    return None


def is_text(cells: pd.Series) -> bool:
    """Return whether a column contains texts of several words."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    if any(isinstance(cell, list) and cell for cell in cells):
        return True
    return sum(len(cell.split()) + len(cell) // 12 for cell in texts) > 1.5 * len(texts) > 0


def _is_context(frame: pd.DataFrame, roles: Mapping[str, str]) -> bool:
    """Return whether an id identifies the context: it repeats, or no other column could identify it."""
    if plain(roles["context_id"]) != "id":
        return True
    ids = frame[roles["context_id"]].map(str)
    if "history" not in roles:
        return not ids.is_unique
    return bool(frame[roles["history"]].map(str).groupby(ids).nunique().max() == 1 and not ids.is_unique)


# Ratings


@dataclass
class _Rated:
    """The rating columns: their dimensions, raters if each column is one, and reasons for doubt."""

    dimensions: dict[str, str | None] = field(default_factory=dict)
    raters: dict[str, tuple[str, str]] = field(default_factory=dict)
    judges: list[str] = field(default_factory=list)
    named: Any = None
    labels: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, names: Sequence[str], has_dimension: bool, raters: Mapping[str, tuple[str, str]]) -> None:
        """Add rating columns; ``raters`` maps columns of a single rater to dimension and rater."""
        by_rater = {name: one for name, one in raters.items() if name in names}
        self.named = names[0] if len(names) == 1 else list(names)
        if len(by_rater) == len(names):
            self.raters, self.dimensions = by_rater, {name: dimension for name, (dimension, _) in by_rater.items()}
        else:
            short = [_dimension(name) for name in names]
            whole = {name for name, dimension in zip(names, short, strict=True) if short.count(dimension) > 1}
            self.dimensions = {
                name: None if has_dimension else name if name in whole else dimension
                for name, dimension in zip(names, short, strict=True)
            }

    def doubt(self, names: Sequence[str], problem: str) -> None:
        """Record columns as candidates, with the reason for doubt."""
        self.named = names[0] if len(names) == 1 else list(names)
        self.problems.append(problem + ", ".join(names))


def _rated(
    frame: pd.DataFrame,
    roles: Mapping[str, str],
    given: Mapping[str, Any],
    labels: Mapping[str, float] | None,
    in_dialogues: Sequence[str] = (),
) -> _Rated:
    """Find the rating columns; those ``in_dialogues`` are filled only on the rows they rate."""
    result, has_dimension = _Rated(), "dimension" in roles
    raters = given["annotator_id"] if isinstance(given.get("annotator_id"), list) else []
    names = listed(given.get("rating", raters))
    free = [name for name in frame.columns if name not in {*roles.values(), *names}]
    numeric = [name for name in free if _is_number(frame[name])]
    result.judges = [name for name in numeric if _is_judge(name)]
    if "rating" in given:
        if has_dimension and isinstance(given["rating"], list):
            columns = ", ".join(map(repr, names))
            result.problems.append(f"a column {roles['dimension']!r} beside the columns {columns} of ratings")
        result.add(names, has_dimension, _raters(frame, names))
        result.named = given["rating"]
        _check_labels(frame, result, names, labels)
        _check_codes(frame, result, names, labels)
        return result
    if raters:
        result.add(raters, has_dimension, {name: ("rating", name) for name in raters})
        return result
    if labels:
        # A column whose labels are mapped to numbers is a rating.
        known = {label.strip().lower() for label in labels}
        cells = {name: {str(cell).strip().lower() for cell in frame[name] if not is_missing(cell)} for name in free}
        if labelled := [name for name in free if cells[name] and cells[name] <= known]:
            result.add(labelled, has_dimension, _raters(frame, labelled))
            result.judges = [name for name in result.judges if name not in labelled]
            return result
    if numbered := [name for name in result.judges if _NUMBERED_JUDGE.match(plain(name))]:
        line = option("columns", {**given, "annotator_id": numbered})
        unsure = f"{', '.join(numbered)}: counted as judges that are programs; if they are people, add {line}"
        result.notes.append(unsure)
    people = [name for name in numeric if not _is_machine(name) and name not in result.judges]
    constant = _conditions(frame, roles, people)
    if constant and len(constant) < len(people):
        result.notes.append(f"the same for all raters of a response, so no ratings: {', '.join(constant)}")
        people = [name for name in people if name not in constant]
    by_rater = _raters(frame, people)
    exact = [name for name in free if plain(name) == "rating" and name not in _categories(frame, [name])]
    sure = exact or [name for name in people if RATED.search(plain(name)) or _scale(name) or name in by_rater]
    named = [name for name in free if RATED.search(plain(name)) or rater_of(name)]
    empty = [name for name in named if frame[name].map(is_missing).all()]
    if sure and (exact or not set(people) - set(sure)):
        result.add(sure, has_dimension, by_rater)
    elif people:
        result.doubt(people, "it is unclear which columns are human ratings: ")
    elif not empty and (
        categories := _categories(
            frame.dropna(subset=list(in_dialogues), how="all") if in_dialogues else frame,
            [name for name in free if not _is_machine(name)],
        )
    ):
        result.doubt(categories, "no numeric column; these contain labels, which need numbers: ")
        _check_labels(frame, result, categories, None)
    else:
        result.named = FILL_IN
        more = f"; empty, so not rated yet: {', '.join(empty)}" if empty else ""
        more += f"; scores by judges or metrics: {', '.join(result.judges)}" if result.judges else ""
        more += f"; {unsure}" if numbered else ""
        result.problems.append("no column contains human ratings" + more)
        return result
    _check_codes(frame, result, listed(result.named), labels)
    if empty:
        result.notes.append(f"columns of ratings that are empty: {', '.join(empty)}")
    return result


def _check_codes(frame: pd.DataFrame, result: _Rated, names: Sequence[str], labels: Mapping[str, Any] | None) -> None:
    """Note numbers among the ratings that look like codes for "not rated"."""
    codes = Counter[str]()
    for name in names:
        codes.update(_codes(frame[name]))
    if unknown := {
        code: count for code, count in codes.items() if code not in {label.strip() for label in labels or ()}
    }:
        counts = ", ".join(f"{code} ({count} times)" for code, count in unknown.items())
        result.problems.append(f"among the ratings are numbers that look like codes for none: {counts}")
        result.labels = {**(labels or {}), **result.labels, **dict.fromkeys(unknown)}


def _label(cell: Any) -> str:  # noqa: ANN401
    return f"{value:g}" if isinstance(value := number(cell), float) else str(cell).strip().lower()


def _codes(cells: pd.Series) -> dict[str, int]:
    """Count the numbers among ratings that look like codes for "not rated"."""
    values = Counter(value for cell in cells if isinstance(value := number(cell), float))
    codes = {}
    for code, bound in _CODES.items():
        others = [value for value in values if value not in _CODES]
        apart = others and (min(others) > bound if code < 0 else max(others) < bound)
        if code in values and apart and len(values) <= 2 * _FEW_LABELS:
            codes[f"{code:g}"] = values[code]
    return codes


def _dimension(name: str) -> str:
    """Return the dimension of a rating column in the file's words, without its path and scale."""
    return "rating" if plain(name) == "rating" else _SCALE.sub("", name.rpartition(".")[2]).strip(" _-.(") or name


def rater_of(name: str) -> tuple[str, str] | None:
    """Return the dimension and the rater of a column such as ``annotator1``, ``fluency_rater2`` or ``Worker A rating (1-5)``."""
    text = (
        _SCALE.sub("", name.strip()).strip() if _SCALE.search(name) and not _RATER.match(name.strip()) else name.strip()
    )
    if (match := _RATER.match(text) or _RATER_FIRST.match(text)) is None:
        return None
    what = match["what"].strip(" _-.(")
    return ("rating" if not what or plain(what) in ("rating", "score", "value") else _dimension(what)), match[
        "who"
    ].strip()


def _raters(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return dimension and rater of columns that are raters, by name or as a series such as ``R1, R2, R3``."""
    raters = {name: one for name in names if (one := rater_of(name))}
    series: dict[str, dict[str, str]] = {}
    for name in names:
        if name not in raters and (match := _SERIES.match(_SCALE.sub("", name).strip())):
            stem, who = plain(match["what"] or match["stem"] or ""), match["who"] or match["no"]
            if not stem or RATED.fullmatch(stem) or stem in ("rating", "score", "label", "annotation", "value"):
                series.setdefault(stem, {})[name] = who
    for stem, columns in series.items():
        cells = [{value for cell in frame[name] if isinstance(value := number(cell), float)} for name in columns]
        if len(columns) > 1 and all(one & other for one in cells for other in cells):
            what = "rating" if stem in ("", "rating", "score", "value") else stem
            raters |= {name: (what, who) for name, who in columns.items()}
    return raters


def _scale(name: str, cells: Iterable[Any] = ()) -> tuple[float, float] | None:
    """Return the scale stated in a column's name."""
    if (match := _SCALE.search(name.lower())) is None:
        return None
    if match[3]:
        lowest = min((value for cell in cells if isinstance(value := number(cell), float)), default=1.0)
        return (0.0 if lowest < 1 else 1.0), float(match[3])
    low, high = float(match[1]), float(match[2])
    return (low, high) if low < high else None


def _is_number(cells: pd.Series) -> bool:
    values = [number(cell) for cell in cells if not is_missing(cell)]
    return {type(value) for value in values} in ({float}, {float, type(None)})


def _is_judge(name: str) -> bool:
    return bool(JUDGES.search(plain(name)))


def scores_in(frame: pd.DataFrame) -> list[str]:
    """Return the numeric columns named like scores of judges or metrics."""
    named = [name for name in map(str, frame) if _is_judge(name) or _METRICS.search(plain(name))]
    return [name for name in named if _is_number(frame[name])]


def _is_machine(name: str) -> bool:
    """Return whether a numeric column is named like something that people do not rate."""
    last = name.rpartition(".")[2]
    raw = re.sub(r"[\s_-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", last).lower())
    spellings = {plain(last or name), raw}
    patterns = (re.compile("rank"), _IDS, _TIMES_AND_COUNTS, _METRICS, JUDGES)
    return any(pattern.search(text) for pattern in patterns for text in spellings)


def _conditions(frame: pd.DataFrame, roles: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the columns that are constant across a response's raters: they describe the response."""
    keys = [frame[roles[ours]].map(str) for ours in ("response", "system_id", "context_id") if ours in roles]
    if "response" not in roles or (frame.groupby(keys).size() > 1).sum() < 2:
        return []
    return [name for name in names if (frame[name].map(str).groupby(keys).nunique() <= 1).all()]


def _categories(frame: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return columns of few short texts: those with common labels, otherwise those named like ratings."""
    result = {}
    for name in names:
        texts = [str(cell).strip().lower() for cell in frame[name] if not is_missing(cell)]
        values = set(texts)
        few = 2 <= len(values) <= _FEW_LABELS and len(values) < len(texts) and max(map(len, values)) <= _LONG
        if few and len(texts) >= len(frame) / 2 and not _IDS.search(plain(name)):
            result[name] = values
    usual = [name for name, values in result.items() if any(values <= set(order) for order in _ORDERS)]
    return usual or [name for name in result if RATED.search(plain(name))]


def _check_labels(
    frame: pd.DataFrame, result: _Rated, names: Sequence[str], labels: Mapping[str, float] | None
) -> None:
    """Note labels in rating columns that have no number."""
    known = {label.strip().lower() for label in labels or ()}
    texts = (cell for name in names for cell in frame[name] if not is_missing(cell) and isinstance(number(cell), str))
    cells = dict.fromkeys(text for cell in texts if (text := str(cell).strip()).lower() not in known)
    if not cells or max(map(len, cells)) > _LONG or len(cells) > 3 * _FEW_LABELS:
        return
    order = max(_ORDERS, key=lambda one: (len(set(one) & {label.lower() for label in cells}), -len(one)))
    there = [label for label in order if label in {cell.lower() for cell in cells}]
    place = {label: len(there) - 1 - rank for rank, label in enumerate(there)}
    result.labels = {**(labels or {}), **{label: place.get(label.lower(), FILL_IN) for label in cells}}
    if labels is not None or not result.problems:
        result.problems.append(f"labels without a number: {', '.join(map(repr, cells))}")


# Dialogues


def _of_dialogues(
    frame: pd.DataFrame,
    file: File,
    path: Path,
    given: Mapping[str, Any],
    roles: Mapping[str, str],
    whole: Sequence[str] | None,
    notes: list[str],
) -> tuple[pd.DataFrame, dict[str, Any], list[str]] | None:
    """Convert dialogues to one row per response with its history; None if the file contains no dialogues.

    ``whole`` lists the columns that the user declared as dialogue ratings; None if ratings are irrelevant. The last item
    returned lists the candidate rating columns.
    """
    named = {*listed(given.get("rating", [])), *listed(given.get("annotator_id", []))}
    split = None
    if "response" not in roles:
        used = {*named, *(name for ours, name in roles.items() if ours != "history")}
        texts = [name for name in frame.columns if is_text(frame[name]) and not REASONS.search(plain(name))]
        split = transcripts.expand(frame, used, texts, path)
    if split:
        frame = split[0]
        given = {ours: name for ours, name in given.items() if ours != "history"}
        roles = _roles(frame, given, path)
    dialogues = transcripts.find(frame, path, given, roles)
    if dialogues is None and transcripts.place_of(frame) and len(file.rows) == len(frame):
        # Each record is a dialogue.
        dialogues = transcripts.find(frame.assign(dialogue_id=[str(row) for row in file.rows]), path, given, roles)
    if dialogues is None:
        return None
    used = {
        dialogues.dialogue,
        dialogues.speaker,
        dialogues.utterance,
        dialogues.turn,
        dialogues.system,
        *dialogues.asked,
    }
    free = [name for name in frame.columns if name not in used]
    scores = scores_in(frame[free])
    if not named:
        people = [
            name for name in free if not _is_machine(name) and (_is_number(frame[name]) or _categories(frame, [name]))
        ]
        named = {name for name in people if RATED.search(plain(name)) or _scale(name) or rater_of(name)} or {*people}
    rated = [name for name in free if name in named]
    for name in (name for name in rated if _is_number(frame[name])):
        dialogues.frame[name] = dialogues.frame[name].map(number).astype(object)
    dialogues.prepare(rated)
    levels = {} if whole is None else dialogues.levels(rated, whole, of_utterances="response" in given)
    made = dialogues.rows(levels, scores)
    notes += [split[1]] if split else []
    speakers = ", ".join(sorted({*dialogues.frame[dialogues.speaker][dialogues.by_system].map(str)}))
    notes.append(f"one utterance a row: those of {speakers} are responses, with the utterances before each as history")
    if of_dialogues := [name for name, level in levels.items() if level == "dialogue"]:
        notes.append(f"ratings of whole dialogues: {', '.join(of_dialogues)}")
    kept = {ours: name for ours, name in given.items() if ours not in ("response", "context_id", "turn", "history")}
    by = (
        {}
        if isinstance(given.get("annotator_id"), list) or not dialogues.annotator
        else {"annotator_id": dialogues.annotator}
    )
    return made, kept | by | {"dialogue_id": dialogues.dialogue}, rated


# Wide forms


def _side_by_side(frame: pd.DataFrame, given: Mapping[str, Any]) -> tuple[pd.DataFrame, str] | None:
    """Reshape columns ``answer_a, score_a, answer_b, score_b`` to one row per response; None if there are none."""
    groups: dict[str, dict[str, str]] = {}
    for name in frame.columns:
        tokens = re.split(r"([\s_.-]+)", name)
        for place in (0, len(tokens) - 1):
            word, stem = tokens[place], "".join([*tokens[:place], *tokens[place + 1 :]]).strip(" _.-")
            if len(tokens) > 1 and word and stem and word.lower() not in _WORDS:
                groups.setdefault(stem, {})[word] = name
    texts = [
        stem
        for stem, columns in groups.items()
        if len(columns) > 1
        and _rank(stem, "response") is not None
        and plain(stem) not in NAMES["references"]
        and all(_fits(frame[name], "response") for name in columns.values())
    ]
    # Two text columns with one stem that are not just two names for the response: each system has its own.
    named = any(plain(name) in NAMES["system_id"] for name in frame.columns)
    if len(texts) != 1 or "system_id" in given or named:
        return None
    systems = list(groups[texts[0]])
    shared = {stem: columns for stem, columns in groups.items() if set(columns) >= set(systems)}
    own = {columns[system] for columns in shared.values() for system in systems}
    parts = []
    for system in systems:
        part = frame.drop(columns=list(own)).assign(response=frame[groups[texts[0]][system]])
        for stem, columns in shared.items():
            if stem != texts[0]:
                part[stem] = frame[columns[system]]
        spellings = {f"{word}_{system.lower()}" for word in ("model", "system", "generator")}
        names = [name for name in frame.columns if plain(name) in spellings]
        parts.append(part.assign(system_id=frame[names[0]] if names else system))
    result = pd.concat(parts, ignore_index=True)
    note = f"{len(systems)} systems side by side, one row a response made of each: {', '.join(systems)}"
    return result[~result["response"].map(is_missing).astype(bool)].reset_index(drop=True), note


def _by_rater(frame: pd.DataFrame, raters: Mapping[str, tuple[str, str]]) -> tuple[pd.DataFrame, dict[str, str | None]]:
    """Reshape one column per rater to one row per rating, with ``annotator_id`` and the dimension."""
    others = [name for name in frame.columns if name not in raters]
    dimensions = list(dict.fromkeys(dimension for dimension, _ in raters.values()))
    columns = {one: name for name, one in reversed([*raters.items()])}
    parts = []
    for rater in dict.fromkeys(rater for _, rater in raters.values()):
        part = frame[others].copy()
        for dimension in dimensions:
            column = columns.get((dimension, rater))
            part[dimension] = None if column is None else frame[column]
        parts.append(part.assign(annotator_id=rater))
    return pd.concat(parts, ignore_index=True), {name: name for name in dimensions}


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
    """Return an error whose hint is a command to paste, with FILL_IN for unknown parts."""
    written, problems, roles = list(file.frame.columns), list(rated.problems), dict(roles)
    if "response" not in roles:
        problems.insert(0, "no column is clearly the response")
        used = {*roles.values(), *rated.dimensions, *listed(rated.named)}
        no_response = (_IDS, JUDGES, REASONS)
        texts = [
            name for name in frame.columns
            if name not in used and is_text(frame[name]) and not any(one.search(plain(name)) for one in no_response)
        ]  # fmt: skip
        if len(texts) == 1:
            roles["response"] = texts[0]
            # Ratings are easier to recognize once the response column is known.
            rated = rated if "rating" in given or rated.named is None else _rated(frame, roles, given, labels)
    # Rows reshaped from side-by-side systems can be reshaped again from the file's own columns.
    is_long = set(frame.columns) <= set(written)
    columns: dict[str, Any] = {"response": roles.get("response", FILL_IN)} if is_long else {}
    columns |= {"rating": rated.named} if rated.named is not None else {}
    columns |= {ours: name for ours, name in roles.items() if name in written and ours != name and ours not in columns}
    line = option("columns", columns) + (f" {option('labels', rated.labels)}" if rated.labels else "")
    fill = f", with a column in place of {FILL_IN}" if FILL_IN in line else ""
    expected = "columns with responses, systems (if there are several) and ratings"
    if (
        isinstance(rated.named, list)
        and not rated.raters
        and "annotator_id" not in roles
        and not any(RATED.search(plain(name)) for name in rated.named)
    ):
        raters = {"annotator_id" if ours == "rating" else ours: name for ours, name in columns.items()}
        line += f". If these are raters, not what is rated: {option('columns', raters)}"
    if columns.get("response") == FILL_IN and rated.judges:
        line += f". If it has no responses, only labels: comperdial audit {path}"
    error = NoRatingsError if rated.named == FILL_IN else SchemaError
    return error(
        "; ".join(problems),
        where=str(path),
        expected=f"{expected}; the file has: {', '.join(written)}",
        hint=f"If this is correct, add{fill}: {line}",
    )


# Markup

_MARKS = {
    "HTML tags": re.compile(r"</?(?!v>)(?:[a-z][a-z0-9]{0,10})(?:\s[^<>]*)?/?>", re.IGNORECASE),
    "error marks": re.compile(r"</?v>"),
    "HTML entities": re.compile(r"&(?:[a-z]{2,8}|#\d{1,5}|#x[0-9a-f]{1,4});", re.IGNORECASE),
    "wrongly decoded characters": re.compile(r"[Ãâ][\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œžŸ]"),
    "control characters": re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"),
}


def markup(layout: Layout) -> list[str]:
    """Return a sentence for each kind of markup in a file's texts, since nothing is removed silently."""
    names = [name for name in ("response", "references", "history") if name in layout.frame]
    cells = {str(cell) for name in names for cell in layout.frame[name] if not is_missing(cell)}
    counts = {kind: sum(bool(mark.search(cell)) for cell in cells) for kind, mark in _MARKS.items()}
    return [f"{count} texts with {kind}; --strip-markup removes them" for kind, count in counts.items() if count]


def strip_markup(layout: Layout) -> None:
    """Remove markup from plain-text responses, references and histories."""
    for name in ("response", "references", "history"):
        if name in layout.frame:
            layout.frame[name] = [_stripped(cell) if isinstance(cell, str) else cell for cell in layout.frame[name]]


def _stripped(text: str) -> str:
    if _MARKS["wrongly decoded characters"].search(text):
        with suppress(UnicodeError):
            text = text.encode("cp1252").decode("utf-8")
    text = html.unescape(_MARKS["HTML tags"].sub(" ", _MARKS["error marks"].sub("", text)))
    return re.sub(r"[ \t]{2,}", " ", _MARKS["control characters"].sub("", text)).strip()
