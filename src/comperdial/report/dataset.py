"""The tables of every data set: what was rated, what was scored, how both agree (declared in ``dataset.yaml``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import read_json
from comperdial.core.names import Output, output_name
from comperdial.evaluation import aggregate
from comperdial.evaluation.ratings import OVERALL, alphas, annotator_bias
from comperdial.report import correlations as shared
from comperdial.report import render
from comperdial.report.about import About, Inputs, Study, label
from comperdial.report.correlations import COEFFICIENTS, LEVELS, MEASURES, level_pairs, level_title
from comperdial.report.headline import headline
from comperdial.report.ranking import corrected, of_outputs, with_ranks
from comperdial.report.render import Section, Table, as_number, count, estimate, number, rows_frame, spread
from comperdial.report.systems import systems_frame
from comperdial.stats.correlation import ALPHA

# Power considered sufficient.
ENOUGH = 0.8
# Maximum metrics in a matrix; the CSV file has all.
_MOST = 30
_STEPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
# Sizes shown if there are several of them; all are searched for the sufficient size.
_SIZES = (10, 15, 30, 50, 100, 300)
_GROUPINGS = {"pooled": "pooled", "item": "by item", "system": "by system"}
# Measures with a grouping, as named in tests and power; over all units or system means there is no grouping.
_GROUPED = MEASURES | {
    f"{measure}_{grouping}": f"{name} {_GROUPINGS[grouping]}"
    for grouping in ("item", "system")
    for measure, name in MEASURES.items()
}
# What is shown for each level; the CSV file has everything.
_SHOWN = {
    "turn": ("spearman", "acc_eq"),
    "dialogue": ("spearman", "acc_eq"),
    "system": ("kendall", "accuracy", "acc_eq", "spa"),
}
_TESTS = {"p": "uncorrected", "p_adjusted": "Holm", "p_fdr": "FDR"}
_VARIED = {
    "systems": "Fewer systems", "dialogues": "Fewer dialogues", "annotators": "Fewer raters",
    "samples": "Fewer answers of a judge",
}  # fmt: skip
_WHAT = ["level", "against", "coefficient"]
_NAME = ["metric", "output"]
_COUNTS = ("items", "clusters", "annotators", "ratings")
# Formatters of the columns in an entry, called with a record and the column.
_WRITTEN: Mapping[str, Callable[[Mapping[Any, Any], str], str | None]] = {
    "text": lambda row, name: row[name] or None,
    "count": lambda row, name: count(row[name]),
    "number": lambda row, name: number(row[name]),
    "cents": lambda row, name: number(row[name], digits=2),
    "rating": lambda row, name: estimate(row, name) if pd.notna(row[name]) else "not rated",
}


def _table(
    inputs: Inputs,
    study: Study,
    frame: pd.DataFrame,
    sections: Iterable[Section],
    notes: Iterable[str] = (),
    *,
    rated: str = "",
    legend: bool = False,
    **values: Any,  # noqa: ANN401
) -> Table:
    """Return a table whose caption names what was rated, the marks (``legend``) and the raters, if these are not people."""
    one = About.read(inputs["about"]).only
    more = [f"Rated: {rated}." if rated else "", shared.LEGEND if legend else "", render.ending(one["source"])]
    made = render.described(study, frame, sections, *notes, ending=" ".join(filter(None, more)), **values)
    return replace(made, title=f"{made.title} {one['title']}")


def _section(study: Study, title: str, frame: pd.DataFrame, **more: pd.Series) -> Section:
    """Return a section of the entry's columns: group, heading, column, format."""
    rows = frame.to_dict("records")
    texts: dict[tuple[str, str], Any] = {
        (group, head): [_WRITTEN[how](row, name) for row in rows]
        for group, head, name, how in study["entry"]["columns"]
    }
    return Section(title, pd.DataFrame(texts | {("Mean score", name): of for name, of in more.items()}, dtype=object))


def _not_run(one: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, str]:
    """Return what was not run, by label; only the given metrics or judges, if any."""
    known = sorted(one["not_run"].items())
    return {one["labels"].get(name, name): why for name, why in known if names is None or name in names}


# What was rated and scored


def systems(inputs: Inputs, study: Study) -> Table:
    """Return every system with its ratings and scores."""
    about = About.read(inputs["about"])
    one, outputs = about.only, about.only["systems_outputs"]
    paths = [path for path in inputs["scores"] if path.stem in {output_name(name)[0] for name in outputs}]
    scores = aggregate.read_scores(paths) if paths else schema.empty("scores")
    names = ("systems", "responses", "ratings", "contexts")
    table, responses, ratings, contexts = (schema.read(inputs[name][0], name) for name in names)
    ratings = ratings[ratings["source"] == one["source"]]
    ratings = ratings[ratings["dimension"] == about.dimension(one["dataset"], ratings["dimension"])]
    frame = systems_frame(table, responses, scores, ratings, contexts, outputs=outputs)
    called = {name: label(output_name(name), one["labels"]) for name in outputs}
    scored = scores[scores["level"] == "turn"].assign(name=lambda rows: rows["metric"] + ":" + rows["output"])
    counts = scored.groupby("name")["cut"].agg(scored="size", cut=lambda cut: int((cut > 0).sum()))
    counts, total = counts.reindex([name for name in outputs if name in frame]), frame["responses"].sum()
    # Next to a challenge's tables: the submissions that could not be read.
    submissions = inputs["systems"][0].with_name("submissions.json")
    failed = read_json(submissions)["failed"] if submissions.is_file() else {}
    absent = [name for name in outputs if name not in frame and output_name(name)[0] not in one["not_run"]]
    notes = [
        *(f"{called[name]}: no response has a score" for name in absent),
        *(f"{called[n]}: {k} of {total} responses have a score" for n, k in counts["scored"].items() if k < total),
        *(f"{called[n]}: the input of {k} responses was cut to fit the model" for n, k in counts["cut"].items() if k),
        *(f"{system} has no valid submission and was left out: {why}" for system, why in sorted(failed.items())),
    ]
    means = {called[name]: frame[name].map(number) for name in counts.index}
    made = _table(inputs, study, frame, [_section(study, f"{len(responses):,} responses", frame, **means)], notes)
    return replace(made, not_run=_not_run(one))


def alpha(inputs: Inputs, study: Study) -> Table:
    """Return Krippendorff's alpha with intervals, and each annotator compared with the others."""
    one = About.read(inputs["about"]).only
    ratings, contexts = (schema.read(inputs[name][0], name) for name in ("ratings", "contexts"))
    ratings = ratings[ratings["source"] == one["source"]]
    result = _in_order(alphas(ratings, contexts, source=one["source"], **one["agreement"]))
    if not result["items"].any():
        raise NothingToShowError("no item has two ratings, so there is no agreement and no human ceiling")
    bias = annotator_bias(ratings, source=one["source"])
    cells: dict[str, Any] = {
        "value": as_number("value"),
        "interval": lambda cell: f"{number(cell['low'])} to {number(cell['high'])}",
    }
    labels = {"level_name": "Level", "dimension": "Dimension"}
    texts = spread(result.assign(group=result["metric"].str.title() + " alpha"), labels, "group", cells)
    for name in _COUNTS:
        texts["Counts", name] = result.drop_duplicates(["level", "dimension"])[name].map(count).to_numpy()
    cells = {"items": lambda row: count(row["n"]), "mean": as_number("mean"), "bias": as_number("bias", sign=True)}
    cells |= {"spread": as_number("spread"), "Spearman": as_number("spearman")}
    own = _in_order(bias).assign(group="Against the others")
    others = spread(own, {**labels, "annotator_id": "Annotator"}, "group", cells)
    key = ["dataset", "level", "dimension", "annotator_id"]
    long = bias.melt([*key, "n"], ["mean", "bias", "spread", "spearman"], "statistic").rename(columns={"n": "items"})
    both = pd.concat([result.sort_index().assign(statistic="alpha_" + result["metric"]), long], ignore_index=True)
    columns = [*key, "statistic", "value", "low", "high", "confidence", *_COUNTS, "resamples"]
    # Keep counts as integers next to missing values of the other kind.
    both = both.reindex(columns=columns).astype(dict.fromkeys([*_COUNTS, "resamples"], "Int64"))
    simulated = ". The raters here are simulated and cannot be compared with these"
    values = {name: result[name].max() for name in ("resamples", "confidence")}
    values["simulated"] = simulated if one["source"] == "simulated" else ""
    sections = [Section("Krippendorff's alpha", texts), Section("Annotators", others)]
    return _table(inputs, study, both, sections, **values)


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort by level, turns first, and dimension, overall first."""
    order = frame["level"].map([*LEVELS].index)
    made = frame.assign(order=order, part=frame["dimension"] != OVERALL, level_name=frame["level"].map(LEVELS))
    return made.sort_values(["order", "part", "dimension"], kind="stable")


# How scores and ratings agree


def main_results(folder: Path, about: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a data set's ranked correlations and the corrected tests of its main outputs, without metrics marked ``apart``."""
    result = schema.read(folder / "correlations.parquet", "correlations")
    result = result[~result["metric"].isin(about["apart"])]
    pairs = of_outputs(schema.read(folder / "pairs.parquet", "pairs"), about["outputs"])
    return with_ranks(result, pairs), corrected(pairs)


def _of_target(inputs: Inputs, name: str) -> pd.DataFrame:
    """Return statistics of the rated dimension that tables show."""
    about, frame = About.read(inputs["about"]), schema.read(inputs[name][0], name)
    if frame.empty:
        raise NothingToShowError("this needs two metrics with scores and at least three systems")
    return frame[frame["target"] == about.dimension(about.only["dataset"], frame["target"])]


def _results(inputs: Inputs) -> pd.DataFrame:
    """Return correlations without metrics marked ``apart``, with labels of outputs."""
    about = About.read(inputs["about"])
    result = shared.results(inputs, about)
    result = result[~result["metric"].isin(about.only["apart"])]
    return result.assign(label=_called(zip(result["metric"], result["output"], strict=True), about.labels))


def _called(names: Iterable[Output], labels: Mapping[str, str]) -> list[str]:
    """Return labels of outputs; ambiguous ones include the outputs' names."""
    every = list(names)
    called = {name: label(name, labels) for name in dict.fromkeys(every)}
    several = Counter(called.values())
    return [f"{called[n]} ({':'.join(n)})" if several[called[n]] > 1 else called[n] for n in every]


def _best_first(frame: pd.DataFrame, first: pd.Series) -> pd.DataFrame:
    """Sort records by their output's value where ``first`` holds, highest first, missing last."""
    values = frame[first].drop_duplicates(_NAME).set_index(_NAME)["value"]
    place = -values.reindex(pd.MultiIndex.from_frame(frame[_NAME])).to_numpy()
    return frame.assign(place=place).sort_values(["place", *_NAME], kind="stable")


def _by_level(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Iterate over the levels in order, with headings."""
    for level, against in level_pairs(frame):
        yield level_title(level, against), frame[(frame["level"] == level) & (frame["against"] == against)]


def correlations(inputs: Inputs, study: Study) -> Table:
    """Return the correlations of every output of every metric, three coefficients at each level, best first."""
    one, everything = About.read(inputs["about"]).only, _results(inputs)
    result, sections = shared.pooled(everything), []
    has_local = result["signature"].str.startswith("local|").any()
    if has_local:
        # `local` is weaker within systems, which its overall value does not show.
        key = ["level", "against", *_NAME, "coefficient"]
        within = everything.loc[everything["grouping"] == "system", [*key, "value"]]
        result = result.merge(within.rename(columns={"value": "within_systems"}), on=key, how="left")
    for title, of_level in _by_level(result[result["coverage"] > 0]):
        cells: dict[str, Any] = {"value": shared.with_interval}
        if of_level["loso_system"].notna().any():
            cells["without one system"] = shared.lowest
        if has_local and of_level["within_systems"].notna().any():
            cells["within systems"] = as_number("within_systems")
        part = _best_first(of_level, of_level["coefficient"] == "spearman")
        wide = spread(part.assign(group=part["coefficient"].map(COEFFICIENTS)), {"label": "Metric"}, "group", cells)
        order = [name for name in COEFFICIENTS.values() if name in wide.columns.get_level_values(0)]
        sections.append(Section(title, wide[order]))
    empty = result[result["coverage"] == 0].groupby("label")
    lost = {str(name): why for name, rows in empty if (why := shared.why_no_scores(rows))}
    notes = [*shared.READING, *shared.reading_notes(result), *([render.NOTES["within_systems"]] if has_local else [])]
    for metric, signature in sorted({*zip(result["metric"], result["signature"], strict=True)}):
        texts = (text for name, text in one["labels"].items() if name.startswith(f"{metric}:"))
        called = one["labels"].get(metric) or next(texts, metric)
        notes.append(f"{metric if called == metric else f'{called} ({metric})'} is {signature}")
    tidy = (
        result.assign(loso_halved=shared.halved(result), p=_significant(result["p"]))
        .drop(columns=["target", "grouping", "signature", "label"])
        .round({"value": 4, "low": 3, "high": 3, "loso_value": 4, "within_systems": 4})
        .sort_values([*_NAME, *_WHAT], ignore_index=True)
    )
    target, legend = result["target"].iloc[0], bool(tidy["loso_halved"].fillna(False).any())
    pairs = schema.read(inputs["pairs"][0], "pairs")
    pairs = corrected(of_outputs(pairs[pairs["target"] == target], one["outputs"]))
    answer = headline(everything, pairs, one["labels"], source=one["source"])
    made = _table(inputs, study, tidy, sections, notes, rated=target, legend=legend)
    return replace(made, headline=answer, not_run=lost | _not_run(one))


def _significant(values: pd.Series) -> pd.Series:
    """Round to two significant digits, which suffice for p-values and halve large files."""
    return values.map(lambda value: float(f"{value:.2g}"), na_action="ignore")


def measures(inputs: Inputs, study: Study) -> Table:
    """Return pairwise accuracies next to the correlations of systems, and correlations by item next to pooled ones."""
    result = _results(inputs)
    beyond = (result["grouping"] != "pooled") | ~result["coefficient"].isin([*COEFFICIENTS])
    # Only these have details; the table of all metrics has the others.
    outputs = pd.MultiIndex.from_frame(result[_NAME])
    sections, shown = [], [result[:0]]
    for title, part in _by_level(result[outputs.isin(outputs[beyond])]):
        kinds = pd.MultiIndex.from_product([_SHOWN[part["level"].iloc[0]], _GROUPINGS])
        rows = part.assign(at=kinds.get_indexer(pd.MultiIndex.from_frame(part[["coefficient", "grouping"]])))
        rows = rows[rows["at"] >= 0]
        if len(rows):
            rows = _best_first(rows, rows["at"] == rows["at"].min())
            rows = rows.assign(group=rows["coefficient"].map(MEASURES), name=rows["grouping"].map(_GROUPINGS))
            rows["text"] = pd.Series(map(_measure, rows.to_dict("records")), rows.index, dtype=object)
            order = rows.sort_values("at")[["group", "name"]].drop_duplicates().itertuples(index=False, name=None)
            sections.append(Section(title, render.arranged(rows, {"label": "Metric"}, ["group", "name"], order=order)))
            shown.append(rows[[*result]])
    marked, rounded = pd.concat(shown), ["value", "low", "high", "rank"]
    tidy = result.loc[beyond, ["level", "against", *_NAME, "grouping", "coefficient", *rounded, "n"]]
    tidy = tidy.round(dict.fromkeys(rounded, 4)).reset_index(drop=True)
    notes = [*shared.READING, *shared.reading_notes(marked)]
    legend = bool(shared.halved(marked).fillna(False).any())
    return _table(inputs, study, tidy, sections, notes, rated=result["target"].iloc[0], legend=legend)


def _measure(cell: shared.Record) -> str:
    if cell["grouping"] == "pooled" and cell["coefficient"] in COEFFICIENTS:
        # Its interval is in the table of all metrics.
        return shared.coefficient_of(cell)
    # A mean over items and a share of pairs have no p of their own.
    return shared.with_interval(cell, starred=bool(pd.notna(cell["p"])))


# Tests, power, curves


def _samples(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Iterate over levels and coefficients in order, with headings."""
    for title, of_level in _by_level(frame):
        for coefficient, name in _GROUPED.items():
            if len(chosen := of_level[of_level["coefficient"] == coefficient]):
                yield f"{title}, {name}", chosen


def _named(pairs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Name the two metrics of each pair in one column each, and a coefficient with its grouping."""
    pooled = pairs["grouping"] == "pooled"
    names = pairs["coefficient"].where(pooled, pairs["coefficient"] + "_" + pairs["grouping"])
    sides = [zip(pairs[f"metric_{side}"], pairs[f"output_{side}"], strict=True) for side in "ab"]
    called = _called([*sides[0], *sides[1]], labels)
    return pairs.assign(coefficient=names, a=called[: len(pairs)], b=called[len(pairs) :])


def comparisons(inputs: Inputs, study: Study) -> Table:
    """Return which metrics differ by the paired tests: counts of pairs, and a matrix for each pair of levels."""
    about = About.read(inputs["about"])
    chosen = _named(corrected(of_outputs(_of_target(inputs, "pairs"), about.only["outputs"])), about.labels)
    if chosen.empty:
        raise NothingToShowError("this needs two metrics with scores and at least three systems")
    rows, tested, matrices = [], {}, {}
    for heading, of_sample in _samples(chosen):
        tested[heading] = int(of_sample["p"].notna().sum())
        counts = [str((of_sample[p] < ALPHA).sum()) if tested[heading] else "–" for p in _TESTS]
        rows.append([heading, str(len(of_sample)), *counts])
        level, against, coefficient = of_sample[_WHAT].iloc[0]
        # One matrix per level, since the others are similar.
        if coefficient in _SHOWN[level] or (level, against) not in matrices:
            matrices[level, against] = _matrix(heading, of_sample)
    columns = [("", "Level and coefficient"), ("Pairs", "all")]
    columns += [(f"Different at {ALPHA}", name) for name in _TESTS.values()]
    values: dict[str, Any] = {"alpha": ALPHA, "most": _MOST, "tests": ", ".join(sorted({*chosen["test"]}))}
    values["counts"] = shared.over_tests(tested)
    sections = [Section("How many pairs differ", rows_frame(columns, rows)), *matrices.values()]
    return _table(inputs, study, _wide_comparisons(chosen), sections, rated=chosen["target"].iloc[0], **values)


def _matrix(heading: str, pairs: pd.DataFrame) -> Section:
    won = Counter(pairs["a"])
    names = sorted({*pairs["a"], *pairs["b"]}, key=lambda name: (-won[name], name))
    signs = {(name, name): "" for name in names}
    for a, b, p in pairs.loc[pairs["p_adjusted"].notna(), ["a", "b", "p_adjusted"]].itertuples(index=False):
        signs[a, b], signs[b, a] = ("+", "−") if p < ALPHA else ("o", "o")
    rows = []
    for place, name in enumerate(names[:_MOST], start=1):
        of_row = [signs.get((name, other), "–") for other in names]
        rows.append([str(place), name, *(str(of_row.count(sign)) for sign in "+−o"), *of_row[:_MOST]])
    columns = [("", "No."), ("", "Metric")]
    columns += [("Metrics it is", text) for text in ("better than", "worse than", "like")]
    columns += [("Against", str(place)) for place in range(1, len(rows) + 1)]
    return Section(heading, rows_frame(columns, rows))


def _wide_comparisons(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per pair, sorted alphabetically, with columns for each coefficient: half the bytes."""
    turned = pairs["a"] > pairs["b"]
    result = pairs.assign(
        a=pairs["a"].where(~turned, pairs["b"]),
        b=pairs["b"].where(~turned, pairs["a"]),
        difference=pairs["difference"].where(~turned, -pairs["difference"]).round(3) + 0.0,
        **{test: _significant(pairs[test]) for test in _TESTS},
    )
    index, columns = ["level", "against", "a", "b"], ["difference", *_TESTS]
    wide = result.pivot_table(index=index, columns="coefficient", values=columns, observed=True, dropna=False)
    known = (*COEFFICIENTS, "acc_eq_item", "accuracy", "acc_eq", "spa")
    shown = [(column, name) for name in known if name in {*pairs["coefficient"]} for column in columns]
    wide = wide.reindex(columns=shown).dropna(how="all")
    wide.columns = wide.columns.map("{0[1]}_{0[0]}".format)
    return wide.reset_index()


def power(inputs: Inputs, study: Study) -> Table:
    """Return the power of a paired test of two metrics, by the amount of data."""
    result = _of_target(inputs, "power")
    # Of the statistics within items and of pairs of systems, those about picking the better one.
    shown = result["coefficient"].isin(["acc_eq", "accuracy", "spa"]) & (result["grouping"] != "system")
    shown |= result["coefficient"].isin([*COEFFICIENTS]) & (result["grouping"] == "pooled")
    chosen = _named(result[shown], About.read(inputs["about"]).labels)
    sections: list[Section] = []
    for heading, of_sample in _samples(chosen):
        for varied, name in _VARIED.items():
            part = of_sample[of_sample["varied"] == varied]
            if len(part):
                sections += _power_sections(f"{heading}, {varied}", part, name.replace("Fewer", "Number of"))
    # One row per pair, with or without power, and one column per size: a quarter of the bytes of one row each. A pivot table
    # would drop pairs without power, or include every combination.
    index = [*_WHAT, "varied", "a", "b", "difference"]
    rounded = chosen.round({"power": 3, "difference": 5}).groupby([*index, "size"], observed=True)["power"].mean()
    wide = rounded.unstack("size").rename(columns="power_{}".format).rename_axis(columns=None).reset_index()
    return _table(inputs, study, wide, sections, rated=result["target"].iloc[0], enough=ENOUGH)


def _power_sections(heading: str, part: pd.DataFrame, varied: str) -> Iterator[Section]:
    tried = sorted(part["size"].unique())
    shown = [size for size in tried if size in _SIZES]
    sizes = shown if len(shown) > 1 else tried
    columns = [(varied, str(size)) for size in sizes]
    wide = part.pivot_table(index=["a", "b", "difference"], columns="size", values="power", dropna=False).reset_index()
    wide = wide.dropna(subset=tried, how="all")
    if wide.empty:
        return
    names = [*(f"{low:g} to {high:g}" for low, high in pairwise(_STEPS)), f"{_STEPS[-1]:g} and more"]
    steps = pd.cut(wide["difference"].abs(), [*_STEPS, 2.1], right=False, labels=names)
    rows = [
        [str(step), str(len(group)), *(number(group[size].mean(), digits=2) for size in sizes)]
        for step, group in wide.groupby(steps, observed=True)
    ]
    yield Section(f"{heading}: by difference", rows_frame([("", "Difference"), ("", "Pairs"), *columns], rows))
    won = Counter(part["a"])
    first = min(won, key=lambda name: (-won[name], name))
    rows = []
    for pair in wide[wide["a"] == first].sort_values(["difference", "b"]).to_dict("records"):
        enough = next((str(size) for size in tried if pair[size] >= ENOUGH), "–")
        values = [number(pair[size], digits=2) for size in sizes]
        rows.append([str(pair["b"]), number(pair["difference"]), *values, enough])
    columns = [("", "Metric"), ("", "Difference"), *columns, ("Enough", f"{ENOUGH:.0%}")]
    yield Section(f"{heading}: {first} against the others", rows_frame(columns, rows))


def curves(inputs: Inputs, study: Study) -> Table:
    """Return how the ranking of metrics on part of the data agrees with that on all data."""
    result = _of_target(inputs, "curves")
    groups = result.assign(width=result["high"] - result["low"]).groupby([*_WHAT, "varied", "size"], observed=True)
    columns = {"agreement": ("agreement", "first"), "width": ("width", "median"), "repeats": ("repeats", "max")}
    shown, sections = groups.agg(**columns).reset_index(), []
    for varied, name in _VARIED.items():
        part = shown[shown["varied"] == varied]
        sizes, rows = sorted(part["size"].unique()), []
        for heading, of_sample in _samples(part):
            by_size = of_sample.set_index("size").reindex(sizes)
            rows.append([heading, *(number(value, digits=2) for value in [*by_size["agreement"], *by_size["width"]])])
        groups_of = ("Agreement of rankings", "Width of the band")
        heads = [("", "Level and coefficient"), *((group, str(size)) for group in groups_of for size in sizes)]
        sections += [Section(name, rows_frame(heads, rows))] if rows else []
    repeats = " to ".join(map(str, sorted({int(result["repeats"].min()), int(result["repeats"].max())})))
    tidy = shown.round({"agreement": 4, "width": 4})
    return _table(inputs, study, tidy, sections, rated=result["target"].iloc[0], repeats=repeats)


# Judges


def judges(inputs: Inputs, study: Study) -> Table:
    """Return what judges were asked, their answers, the unreadable ones, and the cost."""
    one = About.read(inputs["about"]).only
    labels = {name: entry["label"] for name, entry in one["judges"].items()}
    tables = (schema.read(path, "judgements") for path in inputs["judgements"])
    frame = pd.DataFrame([judged(table) for table in tables if len(table)])
    if frame.empty:
        raise NothingToShowError("nothing was asked")
    shown = frame.assign(label=frame["metric"].replace(labels), unscored=frame["items"] - frame["scored"])
    unread = zip(shown["label"], frame["failures"], strict=True)
    notes = [f"{name}: not readable: {failures}" for name, failures in unread if failures]
    made = _table(inputs, study, frame, [_section(study, one["title"], shown)], notes)
    return replace(made, not_run=_not_run(one, labels))


def judged(table: pd.DataFrame) -> dict[str, Any]:
    """Summarize a table ``judgements`` of one metric.

    answers: distinct ones, since equal responses of two systems are judged once; failed: unreadable judgements, including fresh
    samples; fresh: judgements that required a fresh sample; scored: items with at least one judgement; tokens and cost of the
    distinct answers (US dollars; missing if unknown); failures: the five most frequent kinds.
    """
    once, items = table.drop_duplicates("key"), table.groupby(["item_id", "system_id"])["value"].count()
    # A partial sum would look complete.
    sums = {name: once[name].astype("float64").sum(skipna=False) for name in ("input_tokens", "output_tokens", "cost")}
    return {
        **{name: table[name].iloc[0] for name in ("dataset", "level", "metric")},
        "judgements": len(table),
        "answers": len(once),
        "failed": int(table["failure"].notna().sum()),
        "fresh": int((table["tries"] > 1).sum()),
        "items": len(items),
        "scored": int((items > 0).sum()),
        "rationales": int(table["rationale"].notna().sum()),
        **sums,
        "failures": "; ".join(table["failure"].value_counts().head(5).index),
    }


def recorded_judges(inputs: Inputs, study: Study) -> Table:
    """Return how many recorded answers of judges are readable, and their agreement with people, next to reported figures."""
    one = About.read(inputs["about"]).only
    known = {name: one["judges"][name] for name in one["recorded_judges"]}
    numbers = ("items", "answers", "unread", "pearson", "kendall", "owners_pearson", "owners_kendall")
    frame = shared.read_reported(inputs["coverage"], ("metric", "dimension", "target", "why"), numbers)
    reported = shared.read_reported(inputs["reported"], ("prompt", "dimension", "coefficient"))
    frame = frame.assign(prompt=frame["metric"].map({name: entry["prompt"] for name, entry in known.items()}))
    key = ["prompt", "dimension"]
    theirs = reported.pivot(index=key, columns="coefficient", values="value").add_prefix("reported_")
    frame = frame.join(theirs[["reported_pearson", "reported_kendall"]], on=key)
    names = [label(name, one["labels"]) for name in zip(frame["metric"], frame["dimension"], strict=True)]
    pairs = frame.drop_duplicates("dimension")[["dimension", "target"]].to_numpy()
    return _table(
        inputs,
        study,
        frame,
        [_section(study, one["title"], frame.assign(label=names))],
        [f"{name}: not readable: {why}" for name, why in zip(names, frame["why"], strict=True) if why],
        compared=", ".join(f"{dimension} with {target}" for dimension, target in pairs),
        models="; ".join(f"{name}: {entry['model']}" for name, entry in known.items()),
    )
