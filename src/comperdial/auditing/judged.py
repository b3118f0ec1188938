"""Labels of the same items by people and by one judge, from ratings or votes: the input of an audit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.data.columns import JUDGES, REASONS, plain
from comperdial.data.files import File
from comperdial.data.votes import SHARES
from comperdial.evaluation.rated_data import UNIT, Data, column_scores, judge_scores
from comperdial.evaluation.samples import HUMAN

Floats = npt.NDArray[np.float64]
FEWEST = 10
MOST_CATEGORIES = 11
MOST_LABELS = 30
_TIMES = re.compile(
    r"(?:judged|scored|created|rated)?_?(?:time|timestamp|date|datetime|at|tstamp|version|run|batch|judge_version)"
)
_IDS = re.compile(r"(?:.+_)?(?:id|idx|index|item|instance)")
_RATERS = re.compile(r"(?:annotator|rater|worker|evaluator|judge|expert|coder|voter|user)(?:_?(?:id|name))?")
_NO_LABELS = re.compile(
    rf"{_IDS.pattern}|{_RATERS.pattern}|{_TIMES.pattern}|(?:.*_)?(?:system|model|source|dataset|split|language)(?:_(?:id|name))?"
)
# A cell with more words is a text, not a name or id.
_FEW_WORDS = 3


@dataclass(frozen=True)
class Judged:
    """Human labels and one judge's labels of the same items.

    Attributes
    ----------
    people
        One row per item, one column per rater; NaN if missing. For a pair of answers the label is 1 if the first is better, 0
        if the second is, 0.5 for a tie.
    judge
        The judge's label of each item; NaN if missing.
    judge_name, dimension
        Names of the judge and of the rated dimension (or the question of votes).
    scale
        Lowest and highest possible label.
    sides
        The system of each item; for pairs two columns, first and second answer; None if unknown.
    clusters
        Group of each item, such as its dialogue; intervals allow for similar items within a group.
    texts
        The responses; None without texts.
    lengths
        Characters of each response, or how many more the first answer has than the second; None without texts.
    time
        Timestamps as numbers, or names of versions; None if the file has neither.
    names
        Names of unordered labels, by the arbitrary number that encodes each.
    """

    people: pd.DataFrame
    judge: pd.Series
    judge_name: str
    dimension: str
    scale: tuple[float, float]
    sides: pd.DataFrame | None = None
    clusters: pd.Series | None = None
    texts: pd.Series | None = None
    lengths: pd.Series | None = None
    time: pd.Series | None = None
    noun: str = "responses"
    names: Mapping[float, str] | None = None

    @property
    def of_pairs(self) -> bool:
        """Return whether the items are pairs of answers."""
        return self.sides is not None and self.sides.shape[1] == 2

    @property
    def mean(self) -> Floats:
        """Return the mean human label of each item; NaN if nobody labelled it."""
        return self.people.mean(axis=1).to_numpy(np.float64)

    @property
    def scores(self) -> Floats:
        """Return the judge's labels."""
        return self.judge.to_numpy(np.float64)

    @property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Return which items both people and the judge labelled."""
        return np.asarray(~np.isnan(self.mean) & ~np.isnan(self.scores))

    @property
    def cluster_codes(self) -> npt.NDArray[np.intp]:
        """Return the cluster number of each item; each item is its own cluster if none are known."""
        if self.clusters is None:
            return np.arange(len(self.people))
        return np.unique(self.clusters.astype(str).to_numpy(), return_inverse=True)[1].reshape(-1)

    @property
    def categories(self) -> Floats | None:
        """Return the labels of the scale if people use only a few whole numbers; otherwise None."""
        if self.names is not None:
            return np.array(sorted(self.names))
        if self.of_pairs:
            return np.array([0.0, 0.5, 1.0])
        low, high = self.scale
        values = self.people.to_numpy(np.float64)
        values = values[~np.isnan(values)]
        whole = (values == np.round(values)).all() and float(low).is_integer() and float(high).is_integer()
        return np.arange(low, high + 1) if whole and 1 <= high - low < MOST_CATEGORIES else None

    @property
    def is_on_scale(self) -> bool:
        """Return whether the judge's labels lie within the human scale, so that both can be compared."""
        return bool(self.judge.min() >= self.scale[0] and self.judge.max() <= self.scale[1])

    def groups(self, each_pair: bool = False) -> Iterator[tuple[str, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
        """Yield each system, a mask of its items, and a mask of the labels to reverse.

        For pairs, labels count wins of the system; with ``each_pair``, wins of one system over one other.
        """
        if self.sides is None:
            return
        sides = self.sides.astype(str).to_numpy()
        names = np.unique(sides)
        if not each_pair:
            for name in names:
                yield (
                    str(name),
                    (sides == name).any(axis=1),
                    sides[:, -1] == name if self.of_pairs else np.zeros(len(sides), bool),
                )
            return
        for one, other in {tuple(sorted(map(str, row))): None for row in sides}:
            turned = (sides[:, 0] == other) & (sides[:, 1] == one)
            yield f"{one} against {other}", turned | ((sides[:, 0] == one) & (sides[:, 1] == other)), turned

    def check(self) -> Judged:
        """Return self; raise a SchemaError if too few items are labelled."""
        if (count := int(self.labelled.sum())) < FEWEST:
            problem = f"{count} {self.noun} with a label by people and one by {self.judge_name}"
            raise SchemaError(problem, expected=f"{FEWEST} or more; better 100, drawn at random")
        if self.scores[self.labelled].std() == 0:
            problem = f"{self.judge_name} has the same label for all {count} {self.noun} that people labelled"
            raise SchemaError(problem, expected="labels that differ")
        return self


def with_names_for_texts(file: File) -> File | None:
    """Add a column ``response`` that names each item to a file without texts; None if it has texts."""
    for name in file.frame:
        if _IDS.fullmatch(plain(str(name))):
            continue
        words = file.frame[name].dropna().map(str).str.split().map(len)
        if len(words) and not REASONS.search(plain(str(name))) and (words >= _FEW_WORDS).mean() > 0.5:
            return None
    ids = [name for name in file.frame if _IDS.fullmatch(plain(str(name)))]
    names = file.frame[ids[0]].map(str) if ids else pd.Series(file.rows, index=file.frame.index).map(str)
    return replace(file, frame=file.frame.assign(response="item " + names))


def one_file(judged: File, people: File, name: str) -> File | None:
    """Merge a judge's and people's labels from two files of the same layout into one; None if the layouts differ.

    Either both have the same columns except the raters' names, or both list the same items once in an id column.
    """
    ours, theirs = judged.frame, people.frame
    apart = [column for column in theirs if column not in ours]
    if set(ours) <= set(theirs) and all(_RATERS.fullmatch(plain(str(column))) for column in apart):
        judge = name if JUDGES.search(plain(name)) else f"judge {name}"
        frame = pd.concat([theirs, ours.assign(**{str(column): judge for column in apart})], ignore_index=True)
        return File(frame, [*people.rows, *judged.rows], [*people.notes, *judged.notes])
    ids = [column for column in ours if column in theirs and _IDS.fullmatch(plain(str(column)))]
    if not ids or not (ours[ids[0]].is_unique and theirs[ids[0]].is_unique):
        return None
    more = ours[[ids[0], *(column for column in ours if column not in theirs)]]
    frame = theirs.merge(more, on=ids[0], how="outer", sort=False)
    return File(frame, range(1, len(frame) + 1), [*people.notes, *judged.notes])


def _label_columns(frame: pd.DataFrame, judge: str | None) -> dict[str, set[str]]:
    """Return labels by column, for columns that share labels with each other or the judge, else all with few labels."""
    columns: dict[str, set[str]] = {}
    for name in frame:
        cells = frame[name].dropna().map(lambda cell: str(cell).strip())
        cells = cells[cells != ""]
        kinds = {*cells}
        few = 1 < len(kinds) <= min(MOST_LABELS, len(cells) / 2) and not _NO_LABELS.fullmatch(plain(str(name)))
        if few or str(name) == judge:
            columns[str(name)] = kinds
    if judge in columns:
        return {name: kinds for name, kinds in columns.items() if kinds & columns[judge]}
    pairs = [(one, other) for one in columns for other in columns if one != other and columns[one] & columns[other]]
    return {one: columns[one] for one, _ in pairs} or columns


def has_labels(file: File) -> bool:
    """Return whether several columns share the same few non-numeric labels."""
    columns = _label_columns(file.frame, None)
    return any(not re.fullmatch(r"[\d.,+-]+", label) for labels in columns.values() for label in labels)


def human_labels(file: File, judge: str | None) -> str | None:
    """Return the columns of human labels without an order, separated by commas; None if there is a column of raters' names.

    Columns that share labels answer the same question: several are raters.
    """
    if any(_RATERS.fullmatch(plain(str(name))) for name in file.frame):
        return None
    names = [name for name in _label_columns(file.frame, judge) if name != judge and not JUDGES.search(plain(name))]
    return ",".join(names) or None


def numbered(file: File, judge: str | None) -> tuple[File, dict[float, str]]:
    """Replace unordered labels by numbers; return the file and the label of each number.

    Raises
    ------
    SchemaError
        If no column contains labels.
    """
    columns = _label_columns(file.frame, judge)
    if not columns:
        expected = f"a column of at most {MOST_LABELS} labels for people, and one for the judge"
        raise SchemaError("no column of labels", where="--nominal", expected=expected)
    number = {label: float(place) for place, label in enumerate(sorted(set().union(*columns.values())), start=1)}
    cells = {name: [number.get(str(cell).strip(), cell) for cell in file.frame[name]] for name in columns}
    return replace(file, frame=file.frame.assign(**cells)), {value: label for label, value in number.items()}


def places_of(ours: pd.DataFrame, theirs: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return the row in ``theirs`` of each response in ``ours``, or -1: columns item, system, response.

    Responses match by text and system, since item names may just number the rows of a file. If a system wrote the same text
    several times, the item's name must match too.
    """
    result = np.full(len(ours), -1, dtype=np.intp)
    for key in (["item", "system", "response"], ["system", "response"], ["response"]):
        if key == ["response"] and {*ours["system"]} & {*theirs["system"]}:
            break
        one = theirs.assign(row=range(len(theirs))).drop_duplicates(key, keep=False)
        rows = ours[key].merge(one[[*key, "row"]], on=key, how="left")["row"].fillna(-1).to_numpy(np.intp)
        again = ours.duplicated(key, keep=False).to_numpy()
        result = np.where((result < 0) & ~again, rows, result)
    return result


def _names(data: Data) -> pd.DataFrame:
    return (
        data.responses[["context_id", "system_id", "response"]]
        .set_axis(["item", "system", "response"], axis=1)
        .astype(str)
    )


def with_ratings_of(data: Data, people: Data) -> Data:
    """Add human ratings from a separate file of the same responses to a judge's responses.

    Raises
    ------
    SchemaError
        If no rated response is among the judged ones.
    """
    theirs, ours = _names(people), data.responses.reset_index(drop=True)
    place = places_of(theirs, _names(data))
    there = place >= 0
    if not there.any():
        raise SchemaError(
            "none of the rated responses is among the judged ones", expected="the same texts in both files"
        )
    new = ours.loc[place[there], ["context_id", "system_id"]].reset_index(drop=True)
    old = theirs.loc[there, ["item", "system"]].reset_index(drop=True)
    new = new.set_axis(["item_id_new", "system_id_new"], axis=1)
    ratings = people.ratings[people.ratings["level"] == "turn"].astype({"item_id": str, "system_id": str})
    joined = ratings.merge(old.join(new), left_on=["item_id", "system_id"], right_on=["item", "system"])
    joined = joined.assign(
        item_id=joined["item_id_new"], system_id=joined["system_id_new"], dataset=ours["dataset"].iloc[0]
    )
    lost = int((~there).sum())
    notes = [f"{lost} of {len(there)} rated responses are not among the judged ones"] if lost else []
    return replace(data, ratings=joined[[*people.ratings.columns]], notes=(*data.notes, *people.notes, *notes))


def from_ratings(
    data: Data,
    source: str,
    *,
    judge: str | None = None,
    target: str | None = None,
    level: str | None = None,
    by: str = "dialogue",
    judge_scale: Sequence[float] | None = None,
    scale_is_known: bool = True,
) -> list[Judged]:
    """Return the judges of rated responses, once per dimension that both they and people rated.

    Parameters
    ----------
    source
        The source of the human ratings.
    judge, target, level
        One judge (or column of the file), one dimension, ``turn`` or ``dialogue``; default: all, and turns if there are any.
    by
        What groups the items: ``dialogue``, ``system``, ``none``, or a column of the file.
    judge_scale
        The judge's lowest and highest score, rescaled to the human scale.
    scale_is_known
        If False, the human scale is the range of the ratings, extended by a judge's scores on a similar scale.
    """
    of_people = data.ratings[data.ratings["source"] == source]
    levels = [name for name in ("turn", "dialogue") if name in of_people["level"].unique()]
    if level and level not in levels:
        raise ConfigError(f"no ratings of level {level}", where="--level", expected=" or ".join(levels))
    of_people = of_people[of_people["level"] == (level or levels[0])]
    judged, _ = judge_scores(data, source)
    scores = pd.concat([one for one in (data.scores, judged) if len(one)] or [data.scores], ignore_index=True)
    own = [] if data.attributes is None else [str(name) for name in data.attributes.columns.drop(UNIT)]
    if judge and plain(judge) not in map(plain, scores["metric"].unique()):
        cells = pd.DataFrame(data.attributes)
        columns = {plain(name): name for name in own if pd.to_numeric(cells[name], errors="coerce").notna().any()}
        if plain(judge) not in columns:
            known = dict.fromkeys([*map(str, scores["metric"].unique()), *columns.values()])
            raise UnknownNameError("judge", judge, known, where="--judge")
        scores, _ = column_scores(data.attributes, [columns[plain(judge)]], "the file")
    if judge:
        scores = scores[scores["metric"].map(plain) == plain(judge)]
    if scores.empty:
        given = ", ".join(map(str, of_people["dimension"].unique()))
        expected = "a column such as gpt4_score, --judge COLUMN, or ratings by another source"
        expected += f"; read as people's ratings: {given}"
        raise ConfigError("no judge beside people's ratings", expected=expected)
    dimensions = [str(name) for name in of_people["dimension"].unique()]
    if target and target not in dimensions:
        raise UnknownNameError("dimension", target, dimensions, where="--target")
    made = []
    for name in scores["metric"].unique():
        for dimension in [target] if target else dimensions:
            part = _of_dimension(scores[scores["metric"] == name], dimension, single=len(dimensions) == 1)
            part = part[part["level"] == (level or levels[0])]
            rated = of_people[of_people["dimension"] == dimension]
            # Drop items that people rated only in other dimensions.
            key = ["item_id", "system_id"]
            elsewhere = pd.MultiIndex.from_frame(of_people[key]).difference(pd.MultiIndex.from_frame(rated[key]))
            part = part[~pd.MultiIndex.from_frame(part[key]).isin(elsewhere)]
            one = (
                _from_tables(data, rated, part, str(name), by, judge_scale, elsewhere, scale_is_known)
                if len(part)
                else None
            )
            if one is not None:
                made.append(one)
    if not made:
        what = f"{', '.join(scores['metric'].unique())}: its scores are of other items than people's ratings"
        raise ConfigError(what, expected="the same context (or dialogue) and system in both")
    return made


def _of_dimension(scores: pd.DataFrame, dimension: str, *, single: bool) -> pd.DataFrame:
    """Return a judge's scores of one dimension, or its overall scores."""
    outputs = scores["output"].str.removesuffix(" (dialogues)")
    if (own := scores[outputs == dimension]).size:
        return own
    whole = scores[outputs.isin(["score", "mean"])]
    return scores if whole.empty and single and outputs.nunique() == 1 else whole


def _from_tables(
    data: Data,
    rated: pd.DataFrame,
    scores: pd.DataFrame,
    name: str,
    by: str,
    judge_scale: Sequence[float] | None,
    elsewhere: pd.MultiIndex,
    scale_is_known: bool,
) -> Judged | None:
    key = ["item_id", "system_id"]
    people = rated.groupby([*key, "annotator_id"], observed=True)["rating"].mean().unstack("annotator_id")
    judge = scores.groupby(key, observed=True)["value"].mean()
    if not len(people.index.intersection(judge.index)):
        return None
    index, attributes = judge.index, None
    if data.attributes is not None:
        # The mean covers every item that was to be judged, including those where the judge failed.
        of_level = data.attributes[data.attributes["level"] == rated["level"].iloc[0]]
        attributes = of_level.drop_duplicates(key).set_index(key)
        attributes = attributes[~attributes.index.isin(elsewhere)]
        index = attributes.index
    people, judge = people.reindex(index), judge.reindex(index)
    scale = float(rated["scale_min"].min()), float(rated["scale_max"].max())
    ends, span = (float(judge.min()), float(judge.max())), max(scale[1] - scale[0], 4.0)
    if not scale_is_known and not judge_scale and scale[0] - span < ends[0] and ends[1] < scale[1] + span:
        scale = min(scale[0], ends[0]), max(scale[1], ends[1])
    if judge_scale:
        low, high = map(float, judge_scale)
        judge = scale[0] + (judge - low) / (high - low) * (scale[1] - scale[0])
    items, systems = index.get_level_values(0).astype(str), index.get_level_values(1).astype(str)
    of_dialogues = (rated["level"] == "dialogue").all()
    texts = lengths = None
    if len(data.responses) and not of_dialogues:
        texts = data.responses.drop_duplicates(["context_id", "system_id"]).set_index(["context_id", "system_id"])[
            "response"
        ]
        texts = texts.reindex(index)
        lengths = texts.str.len().astype(np.float64)
    return Judged(
        people=people, judge=judge, judge_name=name, dimension=str(rated["dimension"].iloc[0]), scale=scale,
        sides=pd.DataFrame({"system": systems}, index=index) if systems.nunique() > 1 else None,
        clusters=_clusters(data, attributes, items, systems, by, index), texts=texts, lengths=lengths, time=_time(attributes),
        noun="dialogues" if of_dialogues else "responses",
    )  # fmt: skip


def _clusters(
    data: Data, attributes: pd.DataFrame | None, items: pd.Index, systems: pd.Index, by: str, index: pd.Index
) -> pd.Series | None:
    if by == "none":
        return None
    if by == "system":
        return pd.Series(systems, index=index)
    if by != "dialogue":
        if attributes is None or by not in attributes:
            known = [] if attributes is None else [str(name) for name in attributes]
            raise UnknownNameError("column", by, ["dialogue", "system", "none", *known], where="--clusters")
        return attributes[by]
    dialogues = pd.Series(items, index=items)
    if data.contexts is not None:
        dialogue_of = data.contexts.drop_duplicates("context_id").set_index("context_id")["dialogue_id"].astype(str)
        dialogues = dialogue_of.reindex(items).fillna(dialogues[~dialogues.index.duplicated()])
    return pd.Series(dialogues.to_numpy(), index=index)


def _time(attributes: pd.DataFrame | None) -> pd.Series | None:
    if attributes is None:
        return None
    for name in attributes.columns:
        if not _TIMES.fullmatch(plain(str(name))) or attributes[name].nunique() < 2:
            continue
        values = attributes[name]
        numbers = pd.to_numeric(values, errors="coerce")
        if numbers.notna().all():
            return numbers.astype(np.float64)
        times = pd.to_datetime(values, errors="coerce", format="mixed", utc=True)
        if times.notna().all():
            return pd.Series(times.astype("int64").to_numpy(np.float64), index=values.index)
        if values.nunique() <= MOST_CATEGORIES:
            return values.fillna("").astype(str)
    return None


def from_votes(
    votes: pd.DataFrame, *, judge: str | None = None, question: str | None = None, by: str = "dialogue"
) -> list[Judged]:
    """Return the judges among pairwise votes, once per question."""
    judges = [str(name) for name in votes["source"].unique() if name != HUMAN[0]]
    if not judges or len(judges) == votes["source"].nunique():
        expected = "votes of people and of a judge (winner_human, gpt4_winner)"
        raise ConfigError(f"votes by {', '.join(votes['source'].unique())} alone", expected=expected)
    if judge and plain(judge) not in map(plain, judges):
        raise UnknownNameError("judge", judge, judges, where="--judge")
    if by not in ("dialogue", "none"):
        raise UnknownNameError("clusters of votes", by, ["dialogue", "none"], where="--clusters")
    questions = [str(name) for name in votes["question"].unique()]
    if question and question not in questions:
        raise UnknownNameError("question", question, questions, where="--target")
    sides = ["first_system_id", "second_system_id"]
    values = votes.get("first_share", votes["choice"].map(SHARES)).astype(np.float64)
    made: list[Judged] = []
    for asked in [question] if question else questions:
        own = votes.assign(value=values)[votes["question"] == asked]
        pairs = own.drop_duplicates("pair_id").set_index("pair_id")
        people = own[own["source"] == HUMAN[0]].pivot_table("value", "pair_id", "annotator_id", observed=True)
        people = people.reindex(pairs.index)
        names = pairs["first_dialogue_id"].astype(str)
        item = pd.Series(
            [text.removesuffix(f":{system}") for text, system in zip(names, pairs[sides[0]].astype(str), strict=True)],
            index=pairs.index,
        )
        for name in judges:
            if judge and plain(name) != plain(judge):
                continue
            labels = own[own["source"] == name].groupby("pair_id")["value"].mean().reindex(pairs.index)
            if labels.notna().any():
                lengths = pairs["first_longer"].astype(np.float64) if "first_longer" in pairs else None
                made.append(Judged(
                    people=people, judge=labels, judge_name=name, dimension=asked, scale=(0.0, 1.0),
                    sides=pairs[sides].set_axis(["first", "second"], axis=1), clusters=item if by == "dialogue" else None,
                    noun="pairs", lengths=lengths,
                ))  # fmt: skip
    if not made:
        raise ConfigError(
            f"no votes of {judge or ' or '.join(judges)} on {question}", expected="a question that both voted on"
        )
    return made
