"""Tables of correlations: the rows of a study, with intervals, ranks and reported values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, NothingToShowError, SchemaError, UnknownNameError
from comperdial.core.files import read_table
from comperdial.report import render
from comperdial.report.about import About, Inputs, Study
from comperdial.report.ranking import of_outputs, with_ranks
from comperdial.report.render import Section, Table, interval, number
from comperdial.stats.correlation import is_starred

Record = Mapping[Any, Any]

COEFFICIENTS = {"pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall"}
MEASURES = COEFFICIENTS | {
    "tau_c": "tau-c", "tau_23": "tau-23", "pairwise_pearson": "Pearson of differences", "accuracy": "accuracy",
    "acc_eq": "acc_eq", "spa": "SPA",
}  # fmt: skip
LEVELS = {"turn": "Turn level", "dialogue": "Dialogue level", "system": "System level"}
FEW = 10
"""A value of so few systems has two digits and says of how many it is."""
MARK = "‡"
LEGEND, READING, FEW_NOTE, LEFT_OUT = (render.NOTES[name] for name in ("legend", "reading", "few", "left_out"))
NOT_RUN = "not run"
_ROW = ["section", "label", "metric", "output", "reported", "source", "not_run", "note"]
_KEY = ["dataset", "level", "against", "coefficient"]
_THEIRS = ["reported", "reported_starred", "reported_of", "source", "place", "difference"]
_OURS = [
    "value", "low", "high", "p", "p_exact", "rank", "tests", "loso_value", "loso_system", "n", "coverage", "cut", "lacking",
    "signature",
]  # fmt: skip
NOUNS = {"turn": "response", "dialogue": "dialogue", "system": "system"}


def correlations(inputs: Inputs, study: Study) -> Table:
    """Return the table of correlations described in a ``study.yaml``; the default function of a table.

    Settings of the table: ``title``; ``rows``, each with ``label`` and either ``metric`` and ``output`` or ``not_run``, and
    optionally ``section``, ``reported`` (the paper's name of the metric), ``source`` and ``note``; ``levels``, each with the
    level of its ratings; ``coefficients``; ``source``, the default of rows; ``sources``, their labels; ``reported_of``, the
    data set whose reported values are shown, if not each its own; ``section_by`` (level or dataset); ``sort``, a coefficient;
    ``notes``.

    Inputs: ``correlations``, ``pairs`` and ``about`` of each data set; optionally ``reported``.
    """
    return table(frame(inputs, study, study["entry"]["rows"]), study, About.read(inputs["about"]))


# Results


def results(inputs: Inputs, about: About, name: str = "correlations") -> pd.DataFrame:
    """Return a results table of several data sets, in the dimension shown for each.

    Ranks are added to correlations: over the main outputs of each data set, with Holm's correction over all their pairs.
    """
    result = pd.concat([schema.read(path, name) for path in inputs[name]], ignore_index=True)
    if result.empty and name == "correlations":
        raise NothingToShowError("there are no ratings that scores could be correlated with")
    chosen = {str(dataset): about.dimension(str(dataset), of["target"]) for dataset, of in result.groupby("dataset")}
    result = result[result["target"] == result["dataset"].map(chosen)]
    if name != "correlations" or "pairs" not in inputs:
        return result
    pairs = pd.concat([schema.read(path, "pairs") for path in inputs["pairs"]], ignore_index=True)
    main = pd.concat([of_outputs(of, about[str(dataset)]["outputs"]) for dataset, of in result.groupby("dataset")])
    ranks = with_ranks(main, pairs)
    return result.assign(rank=ranks["rank"], tests=ranks["tests"])


def pooled(result: pd.DataFrame) -> pd.DataFrame:
    """Return the correlations over all units, by the three coefficients of the papers' tables."""
    return result[result["coefficient"].isin([*COEFFICIENTS]) & (result["grouping"] == "pooled")]


def level_pairs(result: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of a level and the level of its ratings, from turn to system."""
    pairs = {*zip(result["level"].astype(str), result["against"].astype(str), strict=True)}
    return sorted(pairs, key=lambda pair: tuple(map([*LEVELS].index, pair)))


def level_title(level: str, against: str) -> str:
    """Return the heading of a pair of levels: ``System level, ratings of turns``."""
    return f"{LEVELS[level]}, ratings of {against}s"


def groups(frame: pd.DataFrame, *names: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Iterate over groups of records with equal values of some columns, in order."""
    for key, group in frame.groupby(list(names), sort=False, observed=True):
        yield tuple(map(str, key)), group


def frame(inputs: Inputs, study: Study, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one record per row, level, data set and coefficient: our value, the reported one, and why a value is missing.

    ``rows`` are those of ``study.yaml``, in order. Raises ConfigError if a row lacks a key or has an unknown one, and
    UnknownNameError if it names a reported value that does not exist.
    """
    for row in rows:
        what = {"metric", "output", "not_run"} & {*row}
        if "label" not in row or not {*row} <= {*_ROW} or what not in ({"metric", "output"}, {"not_run"}):
            expected = f"`label`, and `metric` and `output` or `not_run`; known keys: {', '.join(_ROW)}"
            raise ConfigError(f"the row is {dict(row)!r}", where=f"study {study['name']}, rows", expected=expected)
    entry, about = study["entry"], About.read(inputs["about"])
    result = pooled(results(inputs, about))
    named = pd.DataFrame(rows).reindex(columns=_ROW).astype(object).replace({np.nan: None})
    named = named.rename(columns={"reported": "named"}).assign(order=range(len(rows)))
    named["source"] = named["source"].fillna(entry.get("source"))
    levels = (entry.get("levels") or dict(level_pairs(result))).items()
    cells = product(levels, study["datasets"], entry.get("coefficients", ["pearson", "spearman"]))
    places = [(dataset, *level, coefficient) for level, dataset, coefficient in cells]
    made = named.merge(pd.DataFrame(places, columns=_KEY), how="cross")
    made = made.merge(result[[*_KEY, "metric", "output", *_OURS]], on=[*_KEY, "metric", "output"], how="left")
    made["target"] = made["dataset"].map(result.groupby("dataset")["target"].first())
    made = _with_reported(made, inputs.get("reported", ()), entry.get("reported_of"))
    there = dict(iter(result.groupby(["dataset", "metric", "output"], observed=True)))
    why = {
        (row["order"], dataset): _why_not(row, dataset, there, about)
        for row in named.to_dict("records")
        for dataset in study["datasets"]
    }
    made["not_run"] = [why[key] for key in zip(made["order"], made["dataset"], strict=True)]
    made["loso_halved"] = halved(made)
    columns = ["section", "label", "target", *_KEY, "metric", "output", *_OURS, "loso_halved", *_THEIRS]
    made = made.sort_values("order", kind="stable")[[*columns, "not_run", "note", "order"]]
    return made.reset_index(drop=True).astype({"n": "Int32", "rank": "Int32", "tests": "Int32"})


def _with_reported(made: pd.DataFrame, paths: Sequence[Path], other: str | None) -> pd.DataFrame:
    """Add the values that papers report: of the data set itself, or of ``other``."""
    made["reported_of"] = other or made["dataset"]
    if paths:
        known = read_reported(paths, ("source", "dataset", "level", "dimension", "metric", "coefficient"))
        # Values are for ratings of turns, unless a column names another level.
        known["against"] = known["against"].replace("", "turn") if "against" in known else "turn"
        names = {"dataset": "reported_of", "metric": "named", "dimension": "target", "value": "reported"}
        known = known.rename(columns=names | {"starred": "reported_starred"})
        key = ["reported_of", "level", "against", "coefficient", "named", "source", "target"]
        known = known.reindex(columns=[*key, "reported", "reported_starred", "place"])
        _check_names(made, known, ", ".join(map(str, paths)))
        made = made.merge(known, on=key, how="left")
    made = made.reindex(columns=[*dict.fromkeys([*made, *_THEIRS])])
    made["difference"] = (made["value"] - made["reported"]).where(made["reported_of"] == made["dataset"])
    made.loc[made["reported"].isna(), ["source", "reported_of"]] = None
    return made


def _check_names(rows: pd.DataFrame, known: pd.DataFrame, where: str) -> None:
    """Raise UnknownNameError if a row names a reported value that is in no file: a typo would only drop the value."""
    for name, source in rows[["named", "source"]].dropna(subset="named").drop_duplicates().itertuples(index=False):
        names = known.loc[known["source"] == source, "named"].unique()
        if not len(names):
            raise UnknownNameError("source of reported values", str(source), known["source"].unique(), where=where)
        if name not in names:
            raise UnknownNameError(f"metric reported by {source}", name, names, where=where)


def read_reported(
    paths: Iterable[str | Path], texts: Sequence[str] = (), numbers: Sequence[str] = ("value",)
) -> pd.DataFrame:
    """Read reported values from CSV files with columns of ``texts`` and of ``numbers``.

    An empty number is missing; a column ``starred`` becomes True, False or missing. Raises FileError or SchemaError if a file
    is not a CSV, a column is missing, a cell is not a number, or a row is duplicated.
    """
    frames = []
    for path in paths:
        one, needed = read_table(path), [*texts, *numbers]
        if missing := [name for name in needed if name not in one]:
            raise SchemaError(f"no column {', '.join(missing)}", where=str(path), expected=", ".join(needed))
        if (twice := one.drop(columns=list(numbers)).astype(str).duplicated()).any():
            raise SchemaError("the row is there twice", where=f"{path}, line {int(twice.to_numpy().argmax()) + 2}")
        for name in numbers:
            cells = one[name].replace("", None)
            one[name] = pd.to_numeric(cells, errors="coerce")
            if (wrong := one[name].isna() & cells.notna()).any():
                where = f"{path}, line {int(wrong.to_numpy().argmax()) + 2}"
                raise SchemaError(f"{name} is {cells[wrong].iloc[0]!r}", where=where, expected="a number")
        if "starred" in one:
            one["starred"] = one["starred"].astype(str).str.lower().map({"true": True, "false": False})
        frames.append(one)
    return pd.concat(frames, ignore_index=True)


def _why_not(row: Record, dataset: str, there: Mapping[Any, pd.DataFrame], about: About) -> str | None:
    """Return why a row has no value for a data set; None if it may have one."""
    metric = row["metric"]
    if metric is None:
        return str(row["not_run"])
    if (dataset, metric, row["output"]) in there:
        return why_no_scores(there[dataset, metric, row["output"]])
    recorded = {name: of for one in about.sets.values() for name, of in one["recorded_of"].items()}
    if recorded.get(metric, dataset) != dataset:
        return f"there are recorded scores of {recorded[metric]} only"
    judge = about[dataset]["judges"].get(metric)
    none = f"{judge['judge']} is no judge of {dataset} (params.yaml, judging.judges)" if judge else None
    return about.not_run.get(metric, none or f"no scores of {dataset}")


def why_no_scores(rows: pd.DataFrame) -> str | None:
    """Return why correlations of an output have no value; None if any of them has coverage."""
    if rows.empty or (rows["coverage"] != 0).any():
        return None
    row = rows.iloc[0]
    if isinstance(row["lacking"], str):
        return f"{row['dataset']} has no {row['lacking'].replace(' and ', ' and no ')} where {row['target']} was rated"
    return f"no rated response of {row['dataset']} has a score"


# Cells


def is_halved(record: Record) -> bool | None:
    """Return whether a correlation falls by more than half without some system; None if none can be left out."""
    if not isinstance(record.get("loso_system"), str):
        return None
    full: float = record["value"]
    left: float = record["loso_value"]
    # Towards 0 and beyond, for either sign.
    return bool(pd.isna(left) or left * np.sign(full) < abs(full) / 2)


def halved(result: pd.DataFrame) -> pd.Series:
    """Return :func:`is_halved` of each record."""
    return pd.Series([is_halved(one) for one in result.to_dict("records")], index=result.index, dtype="boolean")


def is_few(record: Record) -> bool:
    """Return whether a correlation has so few points that they must be stated."""
    return pd.notna(record.get("n")) and record["n"] <= FEW


def coefficient_of(record: Record, *, starred: bool = True) -> str:
    """Format a coefficient with its marks: ``0.397*‡``, and for few systems ``0.80‡ (n 5, p 0.08)``."""
    few, p = is_few(record), record.get("p_exact")
    # An exact p replaces the asterisk, which marks an approximate one.
    exact = few and p is not None and pd.notna(p)
    text = number(record["value"], digits=2 if few else 3)
    if text == "–":
        return text
    text += "*" if starred and not exact and is_starred(record["p"]) else ""
    text += MARK if is_halved(record) else ""
    written = "" if not exact else f", p {p:.2f}" if p >= 0.095 else f", p {p:.1g}"
    return f"{text} (n {record['n']:.0f}{written})" if few else text


def with_interval(record: Record, *, starred: bool = True) -> str:
    """Format a correlation: ``0.397*‡ [0.36, 0.43] #2``, without missing parts."""
    if isinstance(record.get("not_run"), str) or (math.isnan(record["value"]) and record["coverage"] == 0):
        return NOT_RUN
    text = coefficient_of(record, starred=starred) + interval(record["low"], record["high"])
    return text if pd.isna(record["rank"]) else f"{text} #{record['rank']:.0f}"


def lowest(record: Record) -> str:
    """Format the weakest value without a system, and that system: ``0.213 (New Human Generated)``."""
    if not isinstance(record.get("loso_system"), str):
        return "–"
    left, digits = record["loso_value"], 2 if is_few(record) else 3
    return f"{'none' if pd.isna(left) else number(left, digits=digits)} ({record['loso_system']})"


def reported(record: Record) -> str:
    """Format a reported value with its asterisk."""
    return number(record["reported"]) + ("*" if record.get("reported_starred") is True else "")


# The table


def table(
    frame: pd.DataFrame,
    study: Study,
    about: About,
    *,
    ours: Callable[[Record], str] = with_interval,
) -> Table:
    """Return the table of a :func:`frame`, without reported values if ratings are simulated; ``ours`` formats our values."""
    entry, titles, simulated = study["entry"], about.titles, about.simulated
    if simulated:
        frame = frame.drop(columns=_THEIRS)
    rated = []
    for (dataset, target), of in groups(frame[frame["n"].notna()], "dataset", "target"):
        most = of.groupby("level")["n"].max()
        sizes = [render.count(most[level], noun) for level, noun in NOUNS.items() if level in most]
        rated.append(f"{titles[dataset]}: {target}, {', '.join(sizes)}")
    caption = [entry["caption"], f"Rated: {'; '.join(rated)}." if rated else ""]
    caption += [LEGEND if frame["loso_halved"].fillna(False).any() else "", render.SIMULATED if simulated else ""]
    notes, cells = [*READING, *reading_notes(frame)], {"value": ours}
    if not simulated and frame["reported"].notna().any():
        cells = {"ours": ours, "reported": reported, "difference": render.as_number("difference", sign=True)}
        notes.append("Difference is ours minus reported, before rounding; a dash: there is no such value")
        elsewhere = frame.loc[frame["reported_of"] != frame["dataset"], "reported_of"].dropna().unique()
        notes += [f"The reported values are for {one}, so no differences are shown" for one in elsewhere]
    absent = frame["value"].isna().groupby(frame["order"]).transform("all") & frame["not_run"].notna()
    lost = frame[absent].groupby("label", sort=False)["not_run"].agg(lambda why: "; ".join(dict.fromkeys(why)))
    model = "computed with the model " + frame["signature"].astype("str").str.extract(r"\|model:([^|]+)", expand=False)
    notes += entry.get("notes", [])
    for start, texts in (("", frame["note"]), ("", model), ("Not run: ", frame["not_run"].mask(absent))):
        known = texts.dropna()
        notes += render.grouped_notes(zip(frame["label"][known.index], known, strict=True), start)
    return Table(
        title=entry.get("title") or study["title"],
        caption=" ".join(filter(None, caption)),
        frame=frame.drop(columns="order").rename(columns={"value": "ours"}),
        sections=sections(frame, entry, titles, cells),
        notes=notes,
        not_run={str(name): why for name, why in lost.items()},
    )


def sections(
    frame: pd.DataFrame,
    entry: Mapping[str, Any],
    titles: Mapping[str, str],
    cells: Mapping[str, Any],
) -> list[Section]:
    """Return a section per level or data set (``section_by``), with groups of columns for the others.

    Rows with only reported values are folded; rows and columns without values in a section are left out. ``sort`` names a
    coefficient by which rows are sorted, on the first data set, then the next.
    """
    headings = {
        "dataset": frame["dataset"].map(titles),
        "coefficient": frame["coefficient"].map(COEFFICIENTS),
        "level": pd.Series(map(level_title, frame["level"], frame["against"]), index=frame.index),
    }
    by = headings.pop(entry.get("section_by", "level"))
    others = [texts for texts in headings.values() if texts.nunique() > 1]
    shown = frame.assign(heading=by, group=[" ".join(texts) for texts in zip(*others, strict=True)] if others else "")
    labels = {"section": "Part"} if frame["section"].nunique() > 1 else {}
    labels |= {"label": "Metric"}
    if "source" in frame and frame["source"].nunique() > 1:
        first = shown["label"].map(frame.groupby("label")["source"].first())
        shown["source"] = first.replace(entry.get("sources", {})).fillna("–")
        labels |= {"source": "Reported by"}
    made = []
    for (heading,), part in groups(shown, "heading"):
        if entry.get("sort"):
            wide = part[part["coefficient"] == entry["sort"]].pivot_table("value", "label", "dataset", aggfunc="first")
            wide = wide.reindex(index=part["label"].unique(), columns=part["dataset"].unique())
            order = wide.sort_values([*wide], ascending=False, kind="stable").index
            part = part.sort_values("label", key=order.get_indexer, kind="stable")
        texts = render.spread(part, labels, "group", cells)
        own = texts.columns.get_level_values(1) != "reported"
        if len(cells) == 1:
            texts.columns = texts.columns.get_level_values(0)
        filled = ~(texts.isin(["–", NOT_RUN]) | texts.isna())
        ours = filled.loc[:, own].any(axis=1)
        rest = filled.any(axis=1) & ~ours
        parts = [texts.loc[rows, filled[rows].any()] for rows in (ours, rest) if rows.any()]
        made += [Section(heading, *parts)] if parts else []
    return made


# Notes


def reading_notes(frame: pd.DataFrame) -> list[str]:
    """Return notes on a frame's values: corrections, few systems, systems left out, partial and truncated scores."""
    shown = frame[frame["value"].notna() & frame["coverage"].notna()]
    start, tests = "Ranks are corrected over all pairs of main outputs of a data set, shown here or not", shown["tests"]
    ranked = [f"{start}: {over_tests(tests.dropna().to_dict())}"] if tests.notna().any() else []
    few = [FEW_NOTE] if (shown["n"] <= FEW).any() else []
    return [*ranked, *few, *left_out_notes(shown), *partial_notes(shown)]


def over_tests(counts: Mapping[Any, int]) -> str:
    """Return the number of tests in a correction: ``253 tests``, or ``190 to 253 tests`` if it varies."""
    fewest, most = min(counts.values(), default=0), max(counts.values(), default=0)
    return render.count(most, "test") if fewest == most else f"{fewest:,} to {most:,} tests"


def left_out_notes(frame: pd.DataFrame) -> list[str]:
    """Return the note on systems that were left out; empty if there are none."""
    return [LEFT_OUT] if frame["loso_system"].notna().any() else []


# The unit counted by a correlation, by level and level of ratings, from finest to coarsest.
_COUNTED = {
    ("turn", "turn"): "responses", ("dialogue", "dialogue"): "dialogues", ("dialogue", "turn"): "dialogues",
    ("system", "dialogue"): "dialogues", ("system", "turn"): "responses",
}  # fmt: skip


def partial_notes(frame: pd.DataFrame) -> list[str]:
    """Return notes on rows with partial scores or truncated inputs, each counted at its finest level."""
    pairs = [*zip(frame["level"], frame["against"], strict=True)]
    finest = frame.assign(place=[*map([*_COUNTED].index, pairs)], units=[_COUNTED[pair] for pair in pairs])
    finest = finest.reset_index(drop=True).sort_values("place", kind="stable").drop_duplicates(["dataset", "label"])
    shares, cuts = [], []
    for one in finest.sort_index().to_dict("records"):
        units = f"{one['units']} of {one['dataset']}"
        if 0 < one["coverage"] < 1:
            # Rounded down, so that incomplete is never 100 %. A dialogue counts by its scored responses.
            share = f"{math.floor(one['coverage'] * 1000 + 1e-9) / 10:.1f}%"
            average = ", on average" if one["units"] == "dialogues" else ""
            others = f"; the others lack {one['lacking']}" if isinstance(one["lacking"], str) else ""
            shares.append((one["label"], f"{share} of the rated {units} have a score{average}{others}"))
        if one["cut"] > 0:
            cuts.append((one["label"], f"the input of {one['cut']:.0f} {units} did not fit the model and was cut"))
    return [*render.grouped_notes(shares, start=""), *render.grouped_notes(cuts, start="")]
