"""What a page's browser of dialogues shows: contexts, responses, every rating, every score, what judges wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial.report.site.packing import Packer, Spec, decimals_of
from comperdial.schema.dimensions import OVERALL

# Characters of judges' texts that a page carries at most, and what each is cut to when all of them are more.
MOST_CHARACTERS = 1_500_000
_CUTS = (400, 200, 100, 0)
# Samples of a judgement whose texts are shown.
_SAMPLES = 3

Key = list[tuple[str, str]]


def contexts(frame: pd.DataFrame, personas: pd.DataFrame | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the contexts, in the order of dialogues and turns, and the personas by dialogue and speaker."""
    rows = frame.sort_values(["dialogue_id", "turn", "context_id"])
    found = [
        {
            "id": row["context_id"],
            "dialogue": row["dialogue_id"],
            "turn": int(row["turn"]),
            "history": [[said["speaker"], said["text"]] for said in row["history"]],
            "references": list(row["references"]),
            "facts": list(row["facts"]),
        }
        for row in rows.to_dict("records")
    ]
    who: dict[str, Any] = {}
    if personas is not None:
        for row in personas.sort_values(["dialogue_id", "speaker"]).to_dict("records"):
            who.setdefault(row["dialogue_id"], {})[row["speaker"]] = list(row["sentences"])
    return found, who


def ratings(packer: Packer, frame: pd.DataFrame | None, keys: Key, *, source: str) -> list[Spec]:
    """Pack every rating of a level: for each dimension one column an annotator, in the order of ``keys``.

    ``keys`` are (item, system); the overall rating comes first, ratings of another source are left out.
    """
    if frame is None or frame.empty:
        return []
    item = "context_id" if "context_id" in frame else "dialogue_id"
    chosen = frame[frame["source"] == source]
    found = []
    for dimension in sorted(chosen["dimension"].unique(), key=lambda name: (name != OVERALL, name)):
        of_it = chosen[chosen["dimension"] == dimension]
        wide = _wide(of_it, [item, "system_id"], "annotator_id", "rating", keys)
        found.append(
            {
                "dimension": dimension,
                "low": float(of_it["scale_min"].min()),
                "high": float(of_it["scale_max"].max()),
                "annotators": [{"id": str(name), "of": packer.numbers(wide[name])} for name in wide.columns],
            }
        )
    return found


def chosen_outputs(scores: pd.DataFrame, outputs: Sequence[str] | None) -> list[tuple[str, str, str]]:
    """Return (level, metric, output) of the scores to show, sorted; ``outputs`` are ``metric:output``, None for all."""
    columns = scores[["level", "metric", "output"]].drop_duplicates().astype("str")
    known = sorted(columns.itertuples(index=False, name=None))
    if outputs is None:
        return known
    return [(level, metric, output) for level, metric, output in known if f"{metric}:{output}" in outputs]


def of_level(
    scores: pd.DataFrame, shown: Sequence[tuple[str, str, str]], level: str, keys: Key
) -> dict[tuple[str, str], npt.NDArray[np.float64]]:
    """Return the scores of a level by (metric, output), each in the order of ``keys``, NaN where there is none."""
    chosen = scores[scores["level"] == level]
    groups = chosen.groupby(["metric", "output"], observed=True)
    index = pd.MultiIndex.from_tuples(keys, names=["item_id", "system_id"])
    found = {}
    for of_it, metric, output in shown:
        if of_it == level:
            values = groups.get_group((metric, output)).set_index(["item_id", "system_id"])["value"]
            found[metric, output] = values.reindex(index).to_numpy(dtype=np.float64)
    return found


def judgements(frames: Sequence[pd.DataFrame], level: str, keys: Key) -> tuple[list[dict[str, Any]], int | None]:
    """Return what judges wrote of a level: for each output and sample its value, its rationale, why it failed.

    Each is a list in the order of ``keys``. Values are given where there are several samples, since the score says it
    else. The second thing returned is what texts were cut to, None if they were not.
    """
    index = {key: place for place, key in enumerate(keys)}
    found: list[dict[str, Any]] = []
    for frame in frames:
        chosen = frame[frame["level"] == level]
        for (metric, output), rated in chosen.groupby(["metric", "output"], sort=True, observed=True):
            several = rated["sample"].nunique() > 1
            for sample, rows in rated.groupby("sample", sort=True):
                entry: dict[str, Any] = {"metric": str(metric), "output": str(output), "sample": int(str(sample))}
                places = [index.get(key) for key in zip(rows["item_id"], rows["system_id"], strict=True)]
                for name in ("rationale", "failure"):
                    if rows[name].notna().any() and entry["sample"] < _SAMPLES:
                        entry[name] = _put(places, rows[name], None, len(keys))
                if several:
                    entry["value"] = _put(places, rows["value"].astype("float64"), float("nan"), len(keys))
                found.append(entry)
    return found, _cut(found)


def _put(places: Sequence[int | None], values: pd.Series, missing: Any, length: int) -> list[Any]:  # noqa: ANN401
    out = [missing] * length
    for place, value in zip(places, values, strict=True):
        if place is not None and pd.notna(value):
            out[place] = value
    return out


def _cut(entries: list[dict[str, Any]]) -> int | None:
    """Cut the rationales so that all of them together are short enough, and say to what."""
    texts = {text for entry in entries for text in entry.get("rationale", ()) if text}
    if sum(map(len, texts)) <= MOST_CHARACTERS:
        return None
    most = next(most for most in _CUTS if sum(min(len(text), most) for text in texts) <= MOST_CHARACTERS)
    for entry in entries:
        if "rationale" in entry:
            cut = [text and (text if len(text) <= most else text[:most] + "…") for text in entry["rationale"]]
            if most:
                entry["rationale"] = cut
            else:
                del entry["rationale"]
    return most


class Units:
    """What differs between responses: systems that said the same in a context have the same scores, kept once."""

    def __init__(self, keys: Key, columns: Mapping[Any, Sequence[Any]]) -> None:
        """Group ``keys`` (item, system) by item and equal values in all ``columns``."""
        frame = pd.DataFrame({"item": pd.factorize(np.array([item for item, _ in keys], dtype=object))[0]})
        for place, values in enumerate(columns.values()):
            codes = pd.factorize(pd.Series(values, dtype=object), use_na_sentinel=True)[0]
            frame[place] = codes
        groups = frame.groupby(list(frame.columns), sort=True, dropna=False).ngroup().to_numpy()
        # By item first, since the items' codes are the first column: what is alike lies together.
        self.rows = np.unique(groups, return_index=True)[1]
        items = frame["item"].to_numpy()
        self.starts = np.searchsorted(items[self.rows], np.arange(items.max() + 1)).tolist()
        self.of = groups - np.asarray(self.starts)[items]


def pack_scores(packer: Packer, found: Mapping[tuple[str, str], npt.NDArray[np.float64]], rows: Any) -> list[Spec]:  # noqa: ANN401
    """Pack scores, of ``rows`` alone where equal ones are kept once."""
    return [
        {"metric": metric, "output": output, "of": packer.numbers(values[rows], decimals_of(values))}
        for (metric, output), values in found.items()
    ]


def pack_judgements(packer: Packer, entries: Sequence[Mapping[str, Any]], rows: Sequence[int]) -> list[Spec]:
    """Pack what :func:`judgements` returned."""
    out = []
    for entry in entries:
        spec: Spec = {name: entry[name] for name in ("metric", "output", "sample")}
        for name in ("rationale", "failure"):
            if name in entry:
                spec[name] = packer.texts([entry[name][row] for row in rows])
        if "value" in entry:
            spec["value"] = packer.numbers(np.array(entry["value"])[list(rows)])
        out.append(spec)
    return out


def _wide(frame: pd.DataFrame, index: list[str], columns: str, values: str, keys: Key) -> pd.DataFrame:
    wide = frame.pivot(index=index, columns=columns, values=values)
    return wide.reindex(pd.MultiIndex.from_tuples(keys, names=index)).astype("float64")
