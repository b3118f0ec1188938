"""Reading what the figures of scores need, and no more: a benchmark has a million scores and a figure shows few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.names import Output
from comperdial.evaluation import aggregate
from comperdial.evaluation.samples import FEWEST_SYSTEMS, Sample, samples


@dataclass(frozen=True)
class Tables:
    """The tables of one data set; ratings of one source, or of all."""

    contexts: pd.DataFrame
    responses: pd.DataFrame
    systems: pd.DataFrame
    ratings: pd.DataFrame

    def dimensions(self, source: str) -> set[str]:
        """Return what was rated by a source, of turns or of dialogues."""
        return aggregate.rated_dimensions(self.ratings, source)


def read_tables(folder: Path, source: str | None = None) -> Tables:
    """Read a data set's folder; of the ratings those by ``source`` (default: all)."""
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "systems")}
    ratings = schema.ratings_in(folder)
    return Tables(**tables, ratings=ratings if source is None else ratings[ratings["source"] == source])


def read_scores_of(paths: Sequence[Path], outputs: Sequence[Output] | None) -> pd.DataFrame:
    """Read tables ``scores`` and keep some outputs, or all where there are none of these.

    Files without any of them are not opened further.

    Raises
    ------
    NothingToShowError
        When there are no scores.
    """
    import pyarrow.parquet

    def is_wanted(path: Path) -> bool:
        if outputs is None or path.suffix != ".parquet":
            return True
        there = pyarrow.parquet.read_table(path, columns=["metric"])["metric"].unique().to_pylist()
        return not {metric for metric, _ in outputs}.isdisjoint(there)

    scores = aggregate.read_scores([path for path in paths if is_wanted(path)] or paths)
    kept = scores if outputs is None else scores[pd.MultiIndex.from_arrays(
        [scores["metric"], scores["output"]]).isin(list(outputs))]  # fmt: skip
    found = kept if len(kept) else scores
    if found.empty:
        raise NothingToShowError("no response has a score")
    return found


def one_sample(
    scores: pd.DataFrame, tables: Tables, *, level: str, target: str, source: str, against: str | None = None
) -> Sample:
    """Pair scores with ratings at one level (:func:`comperdial.evaluation.samples`).

    ``against`` chooses the level of the ratings; default: dialogues where these were rated and the level is not turn.

    Raises
    ------
    NothingToShowError
        When there is no such pairing.
    """
    of_dialogues = (tables.ratings["level"] == "dialogue").any()
    wanted = against or ("dialogue" if level != "turn" and of_dialogues else "turn")
    found = samples(
        scores,
        tables.ratings,
        contexts=tables.contexts,
        systems=tables.systems,
        source=source,
        levels=[level],
        targets=[target] if target in tables.dimensions(source) else [],
        allow_missing=True,
    )
    for sample in found:
        if sample.against == wanted and sample.names:
            return sample
    few = level == "system" and len(scores) and scores["system_id"].nunique() < FEWEST_SYSTEMS
    raise NothingToShowError(
        f"there are fewer than {FEWEST_SYSTEMS} systems"
        if few
        else f"at {level} level no score belongs to a rating of {target} by {source}"
    )


def turn_samples(scores: pd.DataFrame, tables: Tables, *, source: str) -> list[Sample]:
    """Pair scores with ratings of turns, one sample a rated dimension.

    Raises
    ------
    NothingToShowError
        When no turn was rated, or none of those has a score.
    """
    if not (tables.ratings["level"] == "turn").any():
        raise NothingToShowError("no turn was rated")
    found = samples(
        scores[scores["level"] == "turn"], tables.ratings, contexts=tables.contexts, systems=tables.systems,
        source=source, levels=["turn"], allow_missing=True,
    )  # fmt: skip
    if not (scored := [sample for sample in found if sample.names]):
        raise NothingToShowError("no score belongs to a rated turn")
    return scored


def read_answers(paths: Sequence[Path], outputs: Sequence[Output], contexts: pd.DataFrame) -> pd.DataFrame:
    """Read single answers of judges about turns from tables ``judgements``.

    Judges that were asked once are left out unread: one answer agrees with no other.

    Returns
    -------
    DataFrame
        One row an answer: metric, output, item_id, system_id, cluster (its dialogue), sample, value.
    """
    import pyarrow.compute
    import pyarrow.parquet

    columns = ["metric", "output", "item_id", "system_id", "cluster", "sample", "value"]
    frames = []
    for path in paths:
        most = pyarrow.compute.max(pyarrow.parquet.read_table(path, columns=["sample"])["sample"]).as_py()
        if most:
            found = schema.read(path, "judgements")
            found = found[(found["level"] == "turn") & found["value"].notna()]
            frames.append(found[pd.MultiIndex.from_frame(found[["metric", "output"]]).isin(list(outputs))])
    if not frames:
        return pd.DataFrame(columns=columns)
    joined = pd.concat(frames, ignore_index=True)
    dialogues = contexts.set_index("context_id")["dialogue_id"]
    return joined.assign(cluster=joined["item_id"].map(dialogues).fillna(joined["item_id"]))[columns]


def human_systems(systems: pd.DataFrame) -> set[str]:
    """Return the systems that are people."""
    return set(systems.loc[systems["kind"] == "human", "system_id"].astype(str))
