"""Tables of correlations: the rows that a study names, with intervals, ranks and the values that papers report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
NOT_RUN, NOT_RECORDED = "not run", "not recorded"
_ROW = ("section", "label", "metric", "output", "reported", "source", "not_run", "note")
_KEY = ["dataset", "level", "against", "coefficient"]
_THEIRS = ["reported", "reported_starred", "reported_of", "source", "place", "difference"]
_OURS = [
    "value", "low", "high", "p", "p_exact", "rank", "tests", "loso_value", "loso_system", "n", "coverage", "cut", "lacking",
    "signature",
]  # fmt: skip


def correlations(inputs: Inputs, study: Study) -> Table:
    """Return the table of correlations that a ``study.yaml`` describes; the function of a table that names none.

    Settings of the table: ``title``; ``rows``, each with ``label`` and either ``metric`` and ``output`` or ``not_run``,
    and maybe ``section``, ``reported`` (what the paper calls the metric), ``source`` and ``note``; ``levels``, each with the
    level of its ratings; ``coefficients``; ``source``, of rows that name none; ``reported_of``, the data set whose reported
    values are shown beside a data set that has none; ``section_by`` (level, dataset or coefficient); ``sort``, a coefficient;
    ``notes``.

    Inputs: ``correlations``, ``pairs`` and ``about`` of each data set; maybe ``reported`` and ``sources``.
    """
    result = frame(inputs, study, study["entry"]["rows"])
    sources = None
    if inputs.get("sources"):
        sources = read_reported(inputs["sources"], ("source", "short", "citation"), ()).set_index("source")
    return table(result, study, About.read(inputs["about"]), sources=sources)


# Results


def results(inputs: Inputs, about: About, name: str = "correlations") -> pd.DataFrame:
    """Return a results table of several data sets, in the dimension that the tables of each show.

    Correlations get ranks here: of the main outputs of each data set, with Holm's correction over all pairs of these.
    """
    result = pd.concat([schema.read(path, name) for path in inputs[name]], ignore_index=True)
    if result.empty and name == "correlations":
        raise NothingToShowError("there are no ratings that scores could be correlated with")
    chosen = {str(dataset): about.dimension(str(dataset), of["target"]) for dataset, of in result.groupby("dataset")}
    for dataset, target in chosen.items():
        if target not in (rated := set(result.loc[result["dataset"] == dataset, "target"])):
            raise UnknownNameError("dimension", target, rated)
    result = result[result["target"] == result["dataset"].map(chosen)]
    if name != "correlations" or "pairs" not in inputs:
        return result
    pairs = pd.concat([schema.read(path, "pairs") for path in inputs["pairs"]], ignore_index=True)
    main = pd.concat([of_outputs(of, about[str(dataset)]["outputs"]) for dataset, of in result.groupby("dataset")])
    ranks = with_ranks(main, pairs)
    return result.assign(rank=ranks["rank"], tests=ranks["tests"])


def pooled(result: pd.DataFrame) -> pd.DataFrame:
    """Return the correlations over all units together, by the three coefficients of the papers' tables."""
    return result[result["coefficient"].isin([*COEFFICIENTS]) & (result["grouping"] == "pooled")]


def level_pairs(result: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of a level and the level of its ratings, in the order of turn to system."""
    pairs = {*zip(result["level"].astype(str), result["against"].astype(str), strict=True)}
    return sorted(pairs, key=lambda pair: tuple(map([*LEVELS].index, pair)))


def level_title(level: str, against: str) -> str:
    """Return the heading of a pair of levels: ``System level, ratings of turns``."""
    return f"{LEVELS[level]}, ratings of {against}s"


def frame(inputs: Inputs, study: Study, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one record per row, level, data set and coefficient: ours, what is reported, and why there is no value.

    ``rows`` are those of ``study.yaml``, in order. Raises ConfigError if a row lacks a key or has an unknown one, and
    UnknownNameError if there are no correlations of a data set.
    """
    entry, about = study["entry"], About.read(inputs["about"])
    result = pooled(results(inputs, about))
    if missing := [name for name in study["datasets"] if name not in set(result["dataset"])]:
        raise UnknownNameError("dataset", missing[0], result["dataset"].unique())
    levels = entry.get("levels") or dict(level_pairs(result))
    cells = [
        {"dataset": dataset, "level": level, "against": against, "coefficient": coefficient}
        for level, against in levels.items()
        for dataset in study["datasets"]
        for coefficient in entry.get("coefficients", ["pearson", "spearman"])
    ]
    named = _named(rows, study["name"])
    if entry.get("source"):
        named["source"] = named["source"].fillna(entry["source"])
    made = named.merge(pd.DataFrame(cells), how="cross")
    made = made.merge(result[[*_KEY, "metric", "output", *_OURS]], on=[*_KEY, "metric", "output"], how="left")
    made["target"] = made["dataset"].map(result.groupby("dataset")["target"].first())
    made = _with_reported(made, inputs.get("reported", ()), entry.get("reported_of"))
    recorded = {name: of for one in about.sets.values() for name, of in one["recorded_of"].items()}
    reasons = {
        (row["order"], dataset): _why_not(row, result, about, dataset, recorded)
        for row in named.to_dict("records")
        for dataset in study["datasets"]
    }
    made["recorded"] = made["metric"].isin([*recorded])
    made["not_run"] = [reasons[key] for key in zip(made["order"], made["dataset"], strict=True)]
    made["loso_halved"] = halved(made)
    columns = ["section", "label", "target", *_KEY, "metric", "output", *_OURS, "loso_halved", *_THEIRS]
    made = made.sort_values("order", kind="stable")[[*columns, "recorded", "not_run", "note", "order"]]
    return made.reset_index(drop=True).astype({"n": "Int32", "rank": "Int32", "tests": "Int32"})


def _named(rows: Sequence[Mapping[str, Any]], study: str) -> pd.DataFrame:
    """Return the rows of a ``study.yaml`` as a frame, after a check of their keys."""
    for row in rows:
        incomplete = ("metric" in row) == ("not_run" in row) or ("metric" in row) != ("output" in row)
        if "label" not in row or incomplete or not set(row) <= set(_ROW):
            expected = f"`label`, and `metric` and `output` or `not_run`; known keys: {', '.join(_ROW)}"
            raise ConfigError(f"the row is {dict(row)!r}", where=f"study {study}, rows", expected=expected)
    named = pd.DataFrame(list(rows)).reindex(columns=list(_ROW)).astype(object).replace({np.nan: None})
    return named.rename(columns={"reported": "named"}).assign(order=range(len(rows)))


def _with_reported(made: pd.DataFrame, paths: Sequence[Path], other: str | None) -> pd.DataFrame:
    """Add the values that papers report: of the data set, or of the data set ``other`` if there are none of it."""
    if not paths:
        return made.assign(source=None).reindex(columns=[*dict.fromkeys([*made.columns, *_THEIRS])])
    key = ["reported_of", "level", "against", "coefficient", "named", "source", "target"]
    known = read_reported(paths, ("source", "dataset", "level", "dimension", "metric", "coefficient"))
    names = {"dataset": "reported_of", "metric": "named", "dimension": "target", "value": "reported"}
    known = known.rename(columns=names | {"starred": "reported_starred"})
    if "against" not in known:
        known["against"] = ""
    # Values are of ratings of turns, unless a column names another level.
    known["against"] = known["against"].replace("", "turn").fillna("turn")
    known = known.reindex(columns=[*dict.fromkeys([*key, *_THEIRS])])
    if known.duplicated(key).any():
        raise SchemaError("two reported values of one thing", where=str(paths[0]), expected="each once")
    of = made["dataset"]
    made["reported_of"] = of if other is None else of.where(of.isin(known["reported_of"]), other)
    made = made.merge(known.drop(columns="difference"), on=key, how="left")
    made["difference"] = (made["value"] - made["reported"]).where(made["reported_of"] == made["dataset"])
    made.loc[made["reported"].isna(), ["source", "reported_of"]] = None
    return made


def read_reported(
    paths: Iterable[str | Path], texts: Sequence[str] = (), numbers: Sequence[str] = ("value",)
) -> pd.DataFrame:
    """Read values that a paper reports from CSV files, which must have columns of ``texts`` and of ``numbers``.

    An empty number is missing; a column ``starred`` becomes True, False or missing. Raises FileError or SchemaError if it is no
    CSV, a column is missing, a cell is no number, or a row is there twice.
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


def _why_not(row: Record, result: pd.DataFrame, about: About, dataset: str, recorded: Mapping[str, str]) -> str | None:
    """Return why a row has no value of a data set; None if it may have one."""
    metric = row["metric"]
    if metric is None:
        return str(row["not_run"])
    present = result[(result["metric"] == metric) & (result["dataset"] == dataset)]
    if present.empty:
        if recorded.get(metric, dataset) != dataset:
            return f"there are recorded scores of {recorded[metric]} only"
        known = metric in set(result["metric"]) or metric in about[dataset]["metrics"]
        none = f"no scores of {dataset}" if known else f"no metric {metric!r} in params.yaml"
        if judge := about[dataset]["judges"].get(metric):
            none = f"{judge['judge']} is no judge of {dataset} (params.yaml, judging.judges)"
        return about.not_run.get(metric, none)
    if row["output"] not in set(present["output"]):
        return f"metric {metric!r} has no output {row['output']!r}"
    return why_no_scores(present[present["output"] == row["output"]])


def why_no_scores(rows: pd.DataFrame) -> str | None:
    """Return why correlations of one output have no value; None if any of them covers something."""
    if rows.empty or (rows["coverage"] != 0).any():
        return None
    row = rows.iloc[0]
    if isinstance(row["lacking"], str):
        return f"{row['dataset']} has no {row['lacking'].replace(' and ', ' and no ')} where {row['target']} was rated"
    return f"no rated response of {row['dataset']} has a score"


# Cells


def is_halved(record: Record) -> bool | None:
    """Return whether a correlation falls by more than half without some system; None if none could be left out."""
    if not isinstance(record.get("loso_system"), str):
        return None
    full: float = record["value"]
    left: float = record["loso_value"]
    # Towards 0 and beyond, whatever the sign.
    return bool(pd.isna(left) or (left < full / 2 if full > 0 else left > full / 2))


def halved(result: pd.DataFrame) -> pd.Series:
    """Return :func:`is_halved` of each record."""
    return pd.Series([is_halved(one) for one in result.to_dict("records")], index=result.index, dtype="boolean")


def is_few(record: Record) -> bool:
    """Return whether a correlation is of so few points that it must say so."""
    return pd.notna(record.get("n")) and record["n"] <= FEW


def coefficient_of(record: Record, *, starred: bool = True) -> str:
    """Write a coefficient with its marks: ``0.397*‡``, and of a few systems ``0.80‡ (n 5, p 0.08)``."""
    few, p = is_few(record), record.get("p_exact")
    # An exact p replaces the asterisk, which is of an approximate one.
    exact = few and p is not None and pd.notna(p)
    text = with_star(record["value"], starred and not exact and is_starred(record["p"]), digits=2 if few else 3)
    if text == "–":
        return text
    written = "" if not exact else f", p {p:.2f}" if p >= 0.095 else f", p {p:.1g}"
    return text + (MARK if is_halved(record) else "") + (f" (n {record['n']:.0f}{written})" if few else "")


def with_star(value: float, marked: bool, *, digits: int = 3) -> str:
    """Write a value and, if it is marked, an asterisk; a dash if it is missing."""
    text = number(value, digits=digits)
    return f"{text}*" if marked and text != "–" else text


def with_interval(record: Record, *, starred: bool = True) -> str:
    """Write a correlation: ``0.397*‡ [0.36, 0.43] #2``, without what it does not have."""
    if isinstance(record.get("not_run"), str):
        return NOT_RECORDED if record.get("recorded") else NOT_RUN
    rank: float = record["rank"]
    if math.isnan(record["value"]):
        return NOT_RUN if record["coverage"] == 0 else "–"
    text = coefficient_of(record, starred=starred) + interval(record["low"], record["high"])
    return text if pd.isna(rank) else render.Ranked(f"{text} #{rank:.0f}", int(rank))


def lowest(record: Record) -> str:
    """Write the lowest value without a system, and which system: ``0.213 (New Human Generated)``."""
    if not isinstance(record.get("loso_system"), str):
        return "–"
    left, digits = record["loso_value"], 2 if is_few(record) else 3
    return f"{'none' if pd.isna(left) else number(left, digits=digits)} ({record['loso_system']})"


def reported(record: Record) -> str:
    """Write a reported value with its asterisk."""
    return with_star(record["reported"], record.get("reported_starred") is True)


# The table


def table(
    frame: pd.DataFrame,
    study: Study,
    about: About,
    *,
    sources: pd.DataFrame | None = None,
    ours: Callable[[Record], str] = with_interval,
) -> Table:
    """Return the table of a :func:`frame`; beside simulated ratings without reported values.

    ``sources`` has the papers that values are reported in, by their key: short, citation, read_from. ``ours`` writes our
    values.
    """
    entry, simulated = study["entry"], about.simulated
    if simulated:
        frame, sources = frame.drop(columns=_THEIRS), None
    compares = not simulated and bool(frame["reported"].notna().any())
    cells: dict[str, Callable[[Record], str]] = {"ours" if compares else "value": ours}
    if compares:
        cells |= {"reported": reported} | (
            {"difference": render.as_number("difference", sign=True)} if frame["difference"].notna().any() else {}
        )
    if sources is not None and (unknown := sorted({*frame["source"].dropna()} - {*sources.index})):
        expected = "a row for each source of a number"
        raise SchemaError(f"no source {unknown[0]!r}", where="sources.csv", expected=expected)
    titles = dict(zip(frame["dataset"], frame["dataset"].map(about.titles).fillna(frame["dataset"]), strict=True))
    targets = dict(zip(frame["dataset"], frame["target"], strict=True))
    several = len({*targets.values()}) > 1
    rated = "; ".join(dict.fromkeys(f"{titles[name]} {of}" if several else of for name, of in targets.items()))
    caption = [entry["caption"], f"Rated: {rated}. {'; '.join(sizes(frame, titles))}."]
    caption += [LEGEND] if frame["loso_halved"].fillna(False).any() else []
    caption += [render.SIMULATED] if simulated else []
    notes = [*READING, *reading_notes(frame, titles)]
    if compares:
        notes.append("Difference is ours minus reported, before rounding; a dash: there is no such value")
    if not simulated:
        notes += [*_elsewhere_notes(frame, titles), *_source_notes(frame, sources)]
    names = {"value": "ours"} if "reported" in entry.get("inputs", ()) else {}
    return Table(
        title=entry.get("title") or study["title"],
        caption=" ".join(caption),
        frame=frame.drop(columns="order").rename(columns=names),
        sections=sections(frame, entry, titles, cells, sources),
        notes=[*notes, *entry.get("notes", []), *row_notes(frame)],
    )


def sections(
    frame: pd.DataFrame,
    entry: Mapping[str, Any],
    titles: Mapping[str, str],
    cells: Mapping[str, Any],
    sources: pd.DataFrame | None = None,
) -> list[Section]:
    """Return a section per level, data set or coefficient (``section_by``), with groups of columns of the others.

    Rows without any value in a section are left out. With ``sort``, a coefficient, the rows of a section are sorted by our
    values, on the first data set, then on the next.
    """
    by, made = entry.get("section_by", "level"), []
    headings = {
        "dataset": frame["dataset"].map(titles),
        "coefficient": frame["coefficient"].map(COEFFICIENTS),
        "level": pd.Series(map(level_title, frame["level"], frame["against"]), index=frame.index),
    }
    others = [headings[name] for name in headings if name != by and headings[name].nunique() > 1]
    group = [" ".join(texts) for texts in zip(*others, strict=True)] if others else ""
    shown = frame.assign(heading=headings[by], group=group)
    labels = {"section": "Part"} if frame["section"].nunique() > 1 else {}
    labels |= {"label": "Metric"}
    if "source" in frame and frame["source"].nunique() > 1:
        first = shown["label"].map(frame.groupby("label")["source"].first())
        shown["source"] = (first if sources is None else first.map(sources["short"])).fillna("–")
        labels |= {"source": "Reported by"}
    for (heading,), part in groups(shown, "heading"):
        if entry.get("sort"):
            wide = part[part["coefficient"] == entry["sort"]].drop_duplicates(["label", "dataset"])
            wide = wide.pivot(index="label", columns="dataset", values="value")
            wide = wide.reindex(part["label"].unique())[list(dict.fromkeys(part["dataset"]))]
            order = [*wide.sort_values([*wide], ascending=False, kind="stable").index]
            part = part.assign(place=part["label"].map(order.index)).sort_values("place", kind="stable")
        texts = render.spread(part, labels, "group", cells)
        if len(cells) == 1:
            texts.columns = texts.columns.get_level_values(0)
        empty = texts.isin(["–", NOT_RUN, NOT_RECORDED]) | texts.isna()
        made.append(Section(heading, texts[~empty.all(axis=1)]))
    return made


def groups(frame: pd.DataFrame, *names: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Iterate over the records that share the texts of some columns, in order."""
    for key, group in frame.groupby(list(names), sort=False, observed=True):
        yield tuple(map(str, key)), group


# Notes


def sizes(frame: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Return of how many units the correlations of each data set are: ``USR-Topical: 300 responses, 5 systems``."""
    nouns = {"turn": "response", "dialogue": "dialogue", "system": "system"}
    texts: dict[str, list[str]] = {}
    for (dataset, level), group in groups(frame[frame["n"].notna()], "dataset", "level"):
        texts.setdefault(titles.get(dataset, dataset), []).append(render.count(group["n"].max(), nouns[level]))
    return [f"{title}: {', '.join(parts)}" for title, parts in texts.items()]


def reading_notes(frame: pd.DataFrame, titles: Mapping[str, str] | None) -> list[str]:
    """Return how to read a frame's values: corrections, few systems, systems left out, partial and cut scores."""
    shown = frame[frame["value"].notna() & frame["coverage"].notna()]
    few = [FEW_NOTE] if (shown["n"] <= FEW).any() else []
    return [*corrected_over(shown, titles), *few, *left_out_notes(shown, titles), *partial_notes(shown)]


def row_notes(frame: pd.DataFrame) -> list[str]:
    """Return the notes of rows, the models that they use, and why some were not run."""
    texts = frame.dropna(subset="note").drop_duplicates(["label", "note"])
    once = frame.dropna(subset="signature").drop_duplicates("label")
    models = once["signature"].str.extract(r"\|model:([^|]+)", expand=False)
    absent = frame.dropna(subset="not_run").drop_duplicates(["label", "not_run"])
    recorded = absent["recorded"].astype(bool)
    return [
        *render.grouped_notes(zip(texts["label"], texts["note"], strict=True), start=""),
        *(f"Computed with the model {name}: {'; '.join(of)}" for name, of in once["label"].groupby(models, sort=False)),
        *render.grouped_notes(
            absent.loc[recorded, ["label", "not_run"]].itertuples(index=False), start="Not recorded: "
        ),
        *render.grouped_notes(absent.loc[~recorded, ["label", "not_run"]].itertuples(index=False)),
    ]


def _elsewhere_notes(frame: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Return notes on reported values that are shown beside another data set than theirs."""
    other = frame[frame["reported_of"].notna() & (frame["reported_of"] != frame["dataset"])]
    return [
        f"What is reported beside {titles.get(dataset, dataset)} is of {of}: no difference is given"
        for (dataset, of), _ in groups(other, "dataset", "reported_of")
    ]


def _source_notes(frame: pd.DataFrame, sources: pd.DataFrame | None) -> list[str]:
    """Return the papers of the reported values, and of which no asterisks are known."""
    if sources is None:
        return []
    starred = frame.dropna(subset="source").groupby("source")["reported_starred"].count()
    used = [name for name in sources.index if name in starred.index]
    unmarked = [sources["short"][name] for name in used if not starred[name]]
    return [
        *([f"No asterisks are known of the values by {' and '.join(unmarked)}"] if unmarked else []),
        *(f"{sources['short'][s]}: {sources['citation'][s]}; {sources['read_from'][s]}" for s in used),
    ]


def over_tests(counts: Mapping[str, int]) -> str:
    """Return over how many tests several things were corrected: ``253 (one; other), 190 (third) tests``."""
    named: dict[int, list[str]] = {}
    for name, tests in counts.items():
        named.setdefault(tests, []).append(name)
    if len(named) < 2:
        return render.count(next(iter(named), 0), "test")
    return ", ".join(f"{tests:,} ({'; '.join(names)})" for tests, names in named.items()) + " tests"


def corrected_over(frame: pd.DataFrame, titles: Mapping[str, str] | None) -> list[str]:
    """Return the note that says over how many tests ranks were corrected; none without ranks."""
    ranked = frame[frame["tests"].notna()]
    counts: dict[str, int] = {}
    several = {name for name in ("dataset", "level") if ranked[name].nunique() > 1}
    for (dataset, level, against), group in groups(ranked, "dataset", "level", "against"):
        parts = [(titles or {}).get(dataset, dataset)] if "dataset" in several else []
        parts += [level_title(level, against)] if "level" in several else []
        measures = group["coefficient"].map(lambda name: COEFFICIENTS.get(name, name))
        if "grouping" in group:
            measures += group["grouping"].map(lambda of: "" if of == "pooled" else f" by {of}")
        tests = group.groupby(measures, sort=False)["tests"].max()
        if tests.nunique() == 1:
            counts[", ".join(parts)] = int(tests.iloc[0])
        else:
            counts |= {", ".join([*parts, str(name)]): int(one) for name, one in tests.items()}
    start = "Ranks are corrected over all pairs of main outputs of a data set, shown here or not"
    return [f"{start}: {over_tests(counts)}"] if counts else []


def left_out_notes(frame: pd.DataFrame, titles: Mapping[str, str] | None) -> list[str]:
    """Return notes on systems that were left out, and why none was; without titles, data sets are not named."""
    without: dict[str, list[str]] = {}
    for (dataset, level), group in groups(frame, "dataset", "level"):
        if group["loso_system"].isna().all():
            few = "five systems" if level == "system" else "three systems, or it is not known which is which"
            name = "" if titles is None else f"{titles.get(dataset, dataset)}, "
            without.setdefault(few, []).append(f"{name}{level} level")
    result = [LEFT_OUT] if frame["loso_system"].notna().any() else []
    return result + [f"No system is left out of {'; '.join(where)}: fewer than {few}" for few, where in without.items()]


# What a correlation counts, by level and level of ratings, from the finest to the coarsest.
_COUNTED = {
    ("turn", "turn"): "responses", ("dialogue", "dialogue"): "dialogues", ("dialogue", "turn"): "dialogues",
    ("system", "dialogue"): "dialogues", ("system", "turn"): "responses",
}  # fmt: skip


def partial_notes(frame: pd.DataFrame) -> list[str]:
    """Return notes on rows with scores of a part of what was rated, or of cut inputs, each counted at its finest level."""
    order = [*_COUNTED]
    finest = frame.assign(finest=[order.index(pair) for pair in zip(frame["level"], frame["against"], strict=True)])
    finest = finest.reset_index(drop=True).sort_values("finest", kind="stable")
    shares, cuts = [], []
    for one in finest.drop_duplicates(["dataset", "label"]).sort_index().to_dict("records"):
        units = _COUNTED[order[one["finest"]]]
        if 0 < one["coverage"] < 1:
            others = f"; the others lack {one['lacking']}" if isinstance(one["lacking"], str) else ""
            # Rounded down: what lacks one score is not whole.
            share = f"{math.floor(one['coverage'] * 1000 + 1e-9) / 10:.1f}%"
            text = f"{share} of the rated responses of {one['dataset']} have a score{others}"
            if units == "dialogues":
                text = f"of the rated dialogues of {one['dataset']}, {share} is scored, on average{others}"
            shares.append((one["label"], text))
        if one["cut"] > 0:
            text = f"the input of {one['cut']:.0f} {units} of {one['dataset']} did not fit the model and was cut"
            cuts.append((one["label"], text + (", in one turn or more" if units == "dialogues" else "")))
    return [*render.grouped_notes(shares, start=""), *render.grouped_notes(cuts, start="")]
