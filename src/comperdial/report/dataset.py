"""The tables of any data set: what was rated, what was scored, how both agree (``dataset.yaml`` declares them)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.files import read_json
from comperdial.core.names import RATED_LEVELS, Output, output_name
from comperdial.evaluation import aggregate
from comperdial.evaluation.ratings import OVERALL, alphas, annotator_bias
from comperdial.report import correlations as of_correlations
from comperdial.report.about import About, Inputs, Study, label
from comperdial.report.correlations import (
    COEFFICIENTS,
    FEW,
    FEW_NOTE,
    LEGEND,
    LEVELS,
    MEASURES,
    READING,
    Record,
    coefficient_of,
    corrected_over,
    halved,
    level_pairs,
    level_title,
    lowest,
    over_tests,
    pooled,
    read_reported,
    reading_notes,
    why_no_scores,
    with_interval,
)
from comperdial.report.ranking import corrected, of_outputs, with_ranks
from comperdial.report.render import Section, Table, count, ending, grouped_notes, number, rows_frame, spread
from comperdial.stats import FEW_SYSTEMS, OF_SYSTEMS
from comperdial.stats.correlation import ALPHA

# The power that is taken to be enough.
ENOUGH = 0.8
# A matrix of more metrics cannot be read; the rest is in the CSV file.
_MOST = 30
_STEPS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
_GROUPINGS = {"pooled": "pooled", "item": "by item", "system": "by system"}
# A measure with its grouping, as tests and power have them; over all units or means of systems it is the measure alone.
_GROUPED = {
    measure if grouping == "pooled" else f"{measure}_{grouping}": name if grouping == "pooled" else f"{name} {within}"
    for grouping, within in _GROUPINGS.items()
    for measure, name in MEASURES.items()
}
# What is shown of a level; the CSV file has the rest.
_SHOWN = {
    "turn": ("spearman", "acc_eq"),
    "dialogue": ("spearman", "acc_eq"),
    "system": ("kendall", "accuracy", "acc_eq", "spa"),
}
# Sizes that tables show if there are several of them; which size is enough is looked up in all.
_SIZES = (10, 15, 30, 50, 100, 300)
_TESTS = {
    "p": "our test", "p_adjusted": "our test, Holm", "p_fdr": "our test, FDR", "p_wmt": "WMT's, one-sided",
    "p_williams": "Williams",
}  # fmt: skip
_VARIED = {
    "systems": "Fewer systems", "dialogues": "Fewer dialogues", "annotators": "Fewer raters",
    "samples": "Fewer answers of a judge",
}  # fmt: skip
_WHAT = ["level", "against", "coefficient"]
_ALPHAS = {"ordinal": "Ordinal", "interval": "Interval", "nominal": "Nominal", "ratio": "Ratio"}
_COUNTS = ("items", "clusters", "annotators", "ratings")
_WITHIN = (
    "Within systems: the mean of the coefficients within each system, of metrics with `main`. `local` is weaker there, and "
    "among responses of programs alone, than over all (docs/local-metric.md): `comperdial compare --subset kind=agent` "
    "leaves human systems out"
)


def _table(
    inputs: Inputs, study: Study, frame: pd.DataFrame, sections: Sequence[Section], notes: Sequence[str], *more: str
) -> Table:
    """Return a table with the title and caption of its entry; ``more`` follows the caption."""
    one, entry = About.read(inputs["about"]).only, study["entry"]
    caption = " ".join(text for text in (entry["caption"], *more, ending(one["source"])) if text)
    return Table(f"{entry['title']} {one['title']}", caption, frame, sections, notes)


def _not_run(one: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    return grouped_notes((one["labels"].get(name, name), why) for name, why in sorted(names.items()))


# What was rated and scored


def systems(inputs: Inputs, study: Study) -> Table:
    """Show every system with its ratings and scores."""
    about = About.read(inputs["about"])
    one, outputs = about.only, about.only["systems_outputs"]
    metrics = {output_name(name, "")[0] for name in outputs}
    paths = [path for path in inputs["scores"] if path.stem in metrics]
    scores = aggregate.read_scores(paths) if paths else schema.empty("scores")
    responses = schema.read(inputs["responses"][0], "responses")
    ratings = schema.read(inputs["ratings"][0], "ratings").query("source == @one['source']")
    dimension = about.dimension(one["dataset"], ratings["dimension"])
    table = schema.read(inputs["systems"][0], "systems")
    frame = systems_frame(table, responses, scores, ratings, outputs=outputs, dimension=dimension)
    called = {name: label(output_name(name), one["labels"]) for name in outputs}
    there = [name for name in outputs if name in frame]
    texts = {
        ("", "System"): frame["system_id"],
        ("", "Kind"): frame["kind"],
        ("", "Track"): frame["track"].replace("", None),
        ("", "Responses"): frame["responses"].map(str),
        **{
            ("Mean rating", f"of {level}s"): frame[f"{level}_rating"].map(number).replace("–", "not rated")
            for level in RATED_LEVELS
        },
        **{("Mean score", called[name]): frame[name].map(number) for name in there},
    }
    scored = scores[scores["level"] == "turn"].assign(name=lambda rows: rows["metric"] + ":" + rows["output"])
    counts = scored.groupby("name")["cut"].agg(scored="size", cut=lambda cut: int((cut > 0).sum())).reindex(there)
    total = frame["responses"].sum()
    # Beside the tables of a challenge: the submissions that could not be read.
    submissions = inputs["systems"][0].with_name("submissions.json")
    failed = read_json(submissions)["failed"] if submissions.is_file() else {}
    notes = [
        "The CSV file has a description of each system",
        *(
            f"{text}: no response has a score"
            for name, text in called.items()
            if name not in frame and output_name(name)[0] not in one["not_run"]
        ),
        *(f"{called[n]}: {k} of {total} responses have a score" for n, k in counts["scored"].items() if k < total),
        *(f"{called[n]}: the input of {k} responses was cut to fit the model" for n, k in counts["cut"].items() if k),
        *(f"{system} has no valid submission and was left out: {why}" for system, why in sorted(failed.items())),
        *_not_run(one, one["not_run"]),
    ]
    section = Section(f"{len(responses):,} responses", pd.DataFrame(texts, dtype=object))
    return _table(inputs, study, frame, [section], notes)


def systems_frame(
    systems: pd.DataFrame,
    responses: pd.DataFrame,
    scores: pd.DataFrame,
    ratings: pd.DataFrame,
    *,
    outputs: Sequence[str],
    dimension: str,
) -> pd.DataFrame:
    """Average ratings, of one source, and scores of some outputs over a system's turns and dialogues.

    One row per system, the best rated first, references left out: kind, track, description, responses, ratings of turns and
    dialogues in the dimension, then one column per output (``metric:output``) that has scores.
    """
    frame = systems[systems["kind"] != "reference"].set_index("system_id")[["kind", "track", "description"]]
    if frame.empty:
        raise SchemaError("no systems", expected="at least one that is no reference")
    # Items first, so that one with more raters does not weigh more.
    rated = ratings[ratings["dimension"] == dimension].groupby(["level", "system_id", "item_id"])["rating"].mean()
    rated = rated.groupby(["level", "system_id"]).mean()
    for level in RATED_LEVELS:
        frame[f"{level}_rating"] = rated[rated.index.get_level_values(0) == level].droplevel(0).reindex(frame.index)
    frame.insert(3, "responses", responses.groupby("system_id").size().reindex(frame.index).fillna(0).astype(int))
    of_turns = scores[scores["level"] == "turn"]
    for name in outputs:
        metric, output = output_name(name, where="tables.systems")
        own = of_turns[(of_turns["metric"] == metric) & (of_turns["output"] == output)]
        if len(own):
            frame[name] = own.groupby("system_id")["value"].mean().astype("float64").reindex(frame.index)
    order = ["turn_rating", "dialogue_rating"]
    return frame.sort_index().sort_values(order, ascending=False, kind="stable").reset_index()


def alpha(inputs: Inputs, study: Study) -> Table:
    """Show Krippendorff's alpha with intervals, and each annotator against the others."""
    one = About.read(inputs["about"]).only
    ratings = schema.read(inputs["ratings"][0], "ratings").query("source == @one['source']")
    contexts = schema.read(inputs["contexts"][0], "contexts")
    found = alphas(ratings, contexts, source=one["source"], **one["agreement"])
    if not found["items"].any():
        raise NothingToShowError("nothing was rated by two raters or more: no agreement to measure, no human ceiling")
    bias = annotator_bias(ratings, source=one["source"])
    cells = {
        "value": lambda cell: number(cell["value"]),
        "interval": lambda cell: f"{number(cell['low'])} to {number(cell['high'])}",
    }
    labels = {"level_name": "Level", "dimension": "Dimension"}
    shown = _in_order(found[found["metric"].isin([*_ALPHAS])])
    texts = spread(shown.assign(group=shown["metric"].map(_ALPHAS) + " alpha"), labels, "group", cells)
    first = shown.drop_duplicates(["level", "dimension"])
    for name in _COUNTS:
        texts["Counts", name] = first[name].map(count).to_numpy()
    against = {
        "items": lambda row: count(row["n"]),
        "mean": lambda row: number(row["mean"]),
        "bias": lambda row: number(row["bias"], sign=True),
        "spread": lambda row: number(row["spread"]),
        "Spearman": lambda row: number(row["spearman"]),
    }
    own = _in_order(bias).assign(group="Against the others")
    others = spread(own, {**labels, "annotator_id": "Annotator"}, "group", against)
    simulated = ". The raters here are simulated: no value of theirs can be compared with these"
    notes = [
        "ComperDial reports a Krippendorff's alpha of 0.56 at turn level and 0.62 at dialogue level (section 5), of six "
        "annotators and its own responses; it does not say with which level of measurement"
        + (simulated if one["source"] == "simulated" else ""),
        f"Intervals are percentiles of {found['resamples'].max():,} resamples ({found['confidence'].max():.0%}); at turn level "
        "whole dialogues of one system are resampled, at dialogue level the rated dialogues",
        "Counts are of items with two ratings or more, and their ratings; clusters are what was resampled",
        "Bias is the mean difference from the mean of the other annotators of the same item; spread is the standard deviation "
        "over that of the others; Spearman is the correlation with the mean of the others",
    ]
    key = ["dataset", "level", "dimension", "annotator_id"]
    long = bias.melt([*key, "n"], ["mean", "bias", "spread", "spearman"], "statistic").rename(columns={"n": "items"})
    columns = [*key, "statistic", "value", "low", "high", "confidence", *_COUNTS, "resamples"]
    both = pd.concat([found.assign(statistic="alpha_" + found["metric"]), long], ignore_index=True)
    # Counts stay whole numbers beside the gaps of the other kind.
    both = both.reindex(columns=columns).astype(dict.fromkeys([*_COUNTS, "resamples"], "Int64"))
    return _table(inputs, study, both, [Section("Krippendorff's alpha", texts), Section("Annotators", others)], notes)


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort by level, turns first, and dimension, the overall rating before its parts."""
    order = frame["level"].map([*LEVELS].index)
    made = frame.assign(order=order, part=frame["dimension"] != OVERALL, level_name=frame["level"].map(LEVELS))
    return made.sort_values(["order", "part", "dimension"], kind="stable").drop(columns=["order", "part"])


# How scores and ratings agree


def main_results(folder: Path, about: Mapping[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a data set's correlations, ranked, and the tests of its main outputs, corrected; none of metrics that are apart."""
    found = schema.read(folder / "correlations.parquet", "correlations")
    found = found[~found["metric"].isin(about["apart"])]
    pairs = of_outputs(schema.read(folder / "pairs.parquet", "pairs"), about["outputs"])
    return with_ranks(found, pairs), corrected(pairs)


def _of_target(inputs: Inputs, name: str) -> pd.DataFrame:
    """Return statistics of the rated dimension that tables show."""
    about, frame = About.read(inputs["about"]), schema.read(inputs[name][0], name)
    if frame.empty:
        raise NothingToShowError("it takes two metrics with scores, and three systems or more")
    return frame[frame["target"] == about.dimension(about.only["dataset"], frame["target"])]


def _results(inputs: Inputs) -> pd.DataFrame:
    """Return correlations without metrics that are apart, with what outputs are called."""
    about = About.read(inputs["about"])
    found = of_correlations.results(inputs, about)
    found = found[~found["metric"].isin(about.only["apart"])]
    names = list(zip(found["metric"], found["output"], strict=True))
    called = _called(names, about.labels)
    return found.assign(label=[called[name] for name in names])


def _called(names: Iterable[Output], labels: Mapping[str, str]) -> dict[Output, str]:
    """Return what outputs are called: those with the same label also by their names."""
    called = {name: label(name, labels) for name in names}
    several = Counter(called.values())
    return {name: f"{text} ({':'.join(name)})" if several[text] > 1 else text for name, text in called.items()}


def _best_first(frame: pd.DataFrame, first: pd.Series) -> pd.DataFrame:
    """Sort records by the value that their output has where ``first`` holds, the highest first, those without one last."""
    values = frame[first].drop_duplicates(["metric", "output"]).set_index(["metric", "output"])["value"]
    place = -values.reindex(pd.MultiIndex.from_frame(frame[["metric", "output"]])).to_numpy()
    return frame.assign(place=place).sort_values(["place", "metric", "output"], kind="stable")


def correlations(inputs: Inputs, study: Study) -> Table:
    """Show the correlations of every output of every metric, three coefficients at each level."""
    one, everything = About.read(inputs["about"]).only, _results(inputs)
    found, sections = pooled(everything), []
    has_local = found["signature"].str.startswith("local|").any()
    if has_local:
        # `local` is weaker within systems, which its value over all does not show.
        key = ["level", "against", "metric", "output", "coefficient"]
        within = everything.loc[everything["grouping"] == "system", [*key, "value"]]
        found = found.merge(within.rename(columns={"value": "within_systems"}), on=key, how="left")
    for level, against in level_pairs(found):
        part = found[(found["level"] == level) & (found["against"] == against)]
        cells: dict[str, Any] = {"value": with_interval}
        if part["loso_system"].notna().any():
            cells["without one system"] = lowest
        if has_local and part["within_systems"].notna().any():
            cells["within systems"] = lambda cell: number(cell["within_systems"])
        part = _best_first(part, part["coefficient"] == "spearman")
        wide = spread(part.assign(group=part["coefficient"].map(COEFFICIENTS)), {"label": "Metric"}, "group", cells)
        order = [name for name in COEFFICIENTS.values() if name in set(wide.columns.get_level_values(0))]
        sections.append(Section(level_title(level, against), wide[order]))
    empty = found[found["coverage"] == 0].drop_duplicates(["metric", "output"])
    reasons = [(row["label"].iloc[0], str(why_no_scores(row))) for _, row in empty.groupby(empty.index, sort=False)]
    notes = [
        *READING,
        *reading_notes(found, None),
        *grouped_notes(reasons),
        *([_WITHIN] if has_local else []),
        *_not_run(one, one["not_run"]),
    ]
    for metric, signature in sorted(dict(zip(found["metric"], found["signature"], strict=True)).items()):
        labels = [
            one["labels"].get(metric),
            *(text for name, text in one["labels"].items() if name.startswith(f"{metric}:")),
        ]
        called = next((text for text in labels if text), metric)
        notes.append(f"{metric if called == metric else f'{called} ({metric})'} is {signature}")
    tidy = (
        found.assign(loso_halved=halved(found), p=_significant(found["p"]))
        .drop(columns=["target", "grouping", "signature", "label"])
        .round({"value": 4, "low": 3, "high": 3, "loso_value": 4, "within_systems": 4})
        .sort_values(["metric", "output", "level", "against", "coefficient"], ignore_index=True)
    )
    legend = LEGEND if tidy["loso_halved"].fillna(False).any() else ""
    return _table(inputs, study, tidy, sections, notes, f"Rated: {found['target'].iloc[0]}.", legend)


def _significant(values: pd.Series) -> pd.Series:
    """Round to two significant digits: p-values need no more, and files of many are half as large."""
    return values.map(lambda value: float(f"{value:.2g}"), na_action="ignore")


def measures(inputs: Inputs, study: Study) -> Table:
    """Show pairwise accuracies beside the correlations of systems, and correlations by item beside pooled ones."""
    found = _results(inputs)
    beyond = (found["grouping"] != "pooled") | ~found["coefficient"].isin([*COEFFICIENTS])
    # Only these were looked at in detail; the table of all metrics has the others.
    outputs = pd.MultiIndex.from_frame(found[["metric", "output"]])
    detailed = found[outputs.isin(outputs[beyond])]
    sections, shown = [], [detailed[:0]]
    for level, against in level_pairs(found):
        part = detailed[(detailed["level"] == level) & (detailed["against"] == against)]
        kinds = {
            (c, g): (part["coefficient"] == c) & (part["grouping"] == g) for c in _SHOWN[level] for g in _GROUPINGS
        }
        kinds = {kind: rows for kind, rows in kinds.items() if rows.any()}
        if kinds:
            part = _best_first(part, next(iter(kinds.values())))
            columns = {}
            for (coefficient, grouping), rows in kinds.items():
                own = part[rows.reindex(part.index)]
                cells = pd.Series([*map(_measure, own.to_dict("records"))], index=own["label"], dtype=object)
                columns[MEASURES[coefficient], _GROUPINGS[grouping]] = cells
                shown.append(own)
            texts = pd.DataFrame(columns).reindex(part["label"].unique()).rename_axis(index="Metric")
            sections.append(Section(level_title(level, against), texts))
    marked = pd.concat(shown)
    estimate = ["value", "low", "high", "rank"]
    tidy = found.loc[beyond, ["level", "against", "metric", "output", "grouping", "coefficient", *estimate, "n"]]
    notes = [
        "acc_eq: the share of pairs of systems that metric and ratings order alike, ties counted, with the threshold for a "
        "metric's ties that serves it best (Deutsch et al. 2023)",
        "SPA: soft pairwise accuracy: how alike the p-values are with which metric and ratings order each pair of systems "
        "(Thompson et al. 2024)",
        "By item: correlated over the systems within each context (of dialogues: within each dialogue), then averaged: what "
        "makes one context harder than another does not count",
        "The metrics are those with `main` in params.yaml, and the judges'",
        "Intervals and ranks of the pooled correlations are in the table of all metrics, Pearson and Kendall by item in the "
        "CSV file",
        *READING,
        *corrected_over(marked, None),
        *([FEW_NOTE] if (marked["n"] <= FEW).any() else []),
    ]
    legend = LEGEND if halved(marked).fillna(False).any() else ""
    tidy = tidy.round(dict.fromkeys(estimate, 4)).reset_index(drop=True)
    return _table(inputs, study, tidy, sections, notes, f"Rated: {found['target'].iloc[0]}.", legend)


def _measure(cell: Record) -> str:
    if cell["grouping"] == "pooled" and cell["coefficient"] in COEFFICIENTS:
        # Its interval is in the table of all metrics.
        return coefficient_of(cell)
    # A mean over items and a share of pairs have no p of their own.
    return with_interval(cell, starred=bool(pd.notna(cell["p"])))


# Tests, power, curves


def _samples(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Iterate over levels and coefficients in order, each with its heading."""
    for level, against in level_pairs(frame):
        of_level = frame[(frame["level"] == level) & (frame["against"] == against)]
        for coefficient, name in _GROUPED.items():
            if len(chosen := of_level[of_level["coefficient"] == coefficient]):
                yield f"{level_title(level, against)}, {name}", chosen


def _named(pairs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Name both metrics of each pair in one column each, and a coefficient with its grouping."""
    grouped = pairs["grouping"] != "pooled"
    names = pairs["coefficient"].where(~grouped, pairs["coefficient"] + "_" + pairs["grouping"])
    sides = {side: list(zip(pairs[f"metric_{side}"], pairs[f"output_{side}"], strict=True)) for side in "ab"}
    called = _called([*sides["a"], *sides["b"]], labels)
    return pairs.assign(coefficient=names, **{side: [called[name] for name in of] for side, of in sides.items()})


def comparisons(inputs: Inputs, study: Study) -> Table:
    """Show between which metrics the paired tests find a difference: how many pairs, and a matrix for each pair of levels."""
    one = About.read(inputs["about"]).only
    found = corrected(of_outputs(_of_target(inputs, "pairs"), one["outputs"]))
    if found.empty:
        raise NothingToShowError("it takes two metrics with scores, and three systems or more")
    chosen = _named(found, one["labels"])
    rows, tested, matrices = [], {}, {}
    for heading, of_sample in _samples(chosen):
        counts = [str((of_sample[p] < ALPHA).sum()) if of_sample[p].notna().any() else "–" for p in _TESTS]
        rows.append([heading, str(len(of_sample)), *counts])
        tested[heading] = int(of_sample["p"].notna().sum())
        level, against, coefficient = of_sample[_WHAT].iloc[0]
        # One matrix a level: the others look much alike.
        if coefficient in _SHOWN[level] or (level, against) not in matrices:
            matrices[level, against] = _matrix(heading, of_sample)
    columns = [("", "Level and coefficient"), ("Pairs", "all")]
    columns += [(f"Different at {ALPHA}", name) for name in _TESTS.values()]
    notes = [
        f"Our test: {', '.join(sorted({*chosen['test']}))}; Holm and FDR: corrected over the pairs of a row that it was made of, "
        f"{over_tests(tested)}. The matrices and the ranks of other tables are by it, after Holm",
        "Williams: the test for two correlations that share a variable, for comparison with the literature",
        f"+: the metric of the row agrees better than that of the column, p < {ALPHA} after Holm; −: it agrees less; o: no "
        "difference was found; a dash: not compared",
        f"A matrix has the {_MOST} metrics that win most comparisons, by one coefficient a level. The CSV file has every pair by "
        "the main coefficients, a positive difference where a agrees better than b; pairs.parquet has them with more digits",
    ]
    of_systems = chosen[(chosen["level"] == "system") & (chosen["grouping"] == "pooled")]
    missing = [MEASURES[name] for name in OF_SYSTEMS if name not in {*of_systems["coefficient"]}]
    if len(of_systems) and missing:
        notes.append(
            f"Over systems these have values and no tests: {', '.join(missing)}. `evaluation.tests` in params.yaml asks for "
            f"tests; accuracy and SPA have them where there are up to {FEW_SYSTEMS} systems"
        )
    tidy = _wide_comparisons(chosen, [*COEFFICIENTS, "acc_eq_item", "accuracy", "acc_eq", "spa"])
    sections = [Section("How many pairs differ", rows_frame(columns, rows)), *matrices.values()]
    return _table(inputs, study, tidy, sections, notes, f"Rated: {found['target'].iloc[0]}.")


def _matrix(heading: str, pairs: pd.DataFrame) -> Section:
    won = Counter(pairs["a"])
    names = sorted({*pairs["a"], *pairs["b"]}, key=lambda name: (-won[name], name))
    signs: dict[tuple[str, str], str] = {}
    for pair in pairs[pairs["p_adjusted"].notna()].to_dict("records"):
        found = pair["p_adjusted"] < ALPHA
        signs[pair["a"], pair["b"]], signs[pair["b"], pair["a"]] = ("+", "−") if found else ("o", "o")
    rows = []
    for place, name in enumerate(names[:_MOST], start=1):
        of_row = [signs.get((name, other), "" if name == other else "–") for other in names]
        rows.append([str(place), name, *(str(of_row.count(sign)) for sign in "+−o"), *of_row[:_MOST]])
    columns = [
        ("", "No."),
        ("", "Metric"),
        *(("Metrics it is", text) for text in ("better than", "worse than", "like")),
    ]
    columns += [("Against", str(place)) for place in range(1, len(rows) + 1)]
    return Section(heading, rows_frame(columns, rows))


def _wide_comparisons(pairs: pd.DataFrame, coefficients: Sequence[str]) -> pd.DataFrame:
    """Return one row per pair, a before b in the alphabet, its columns once for each coefficient: half the bytes."""
    turned, tests = pairs["a"] > pairs["b"], [*_TESTS]
    found = pairs.assign(
        a=pairs["a"].where(~turned, pairs["b"]),
        b=pairs["b"].where(~turned, pairs["a"]),
        difference=pairs["difference"].where(~turned, -pairs["difference"]).round(3) + 0.0,
        **{test: _significant(pairs[test]) for test in tests},
    )
    index, columns = ["level", "against", "a", "b"], ["difference", *tests]
    wide = found.pivot_table(index=index, columns="coefficient", values=columns, observed=True, dropna=False)
    order = [(column, c) for c in coefficients if c in {*pairs["coefficient"]} for column in columns]
    wide = wide.reindex(columns=order).dropna(how="all")
    wide.columns = pd.Index([f"{coefficient}_{column}" for column, coefficient in order])
    return wide.reset_index()


def power(inputs: Inputs, study: Study) -> Table:
    """Show the chance that a paired test finds a difference between two metrics, by how much data there is."""
    found = _of_target(inputs, "power")
    # Of statistics within items and of pairs of systems, those that decide which metric picks the better one.
    shown = found["coefficient"].isin(["acc_eq", "accuracy", "spa"]) & (found["grouping"] != "system")
    shown |= found["coefficient"].isin([*COEFFICIENTS]) & (found["grouping"] == "pooled")
    chosen = _named(found[shown], About.read(inputs["about"]).labels)
    sections: list[Section] = []
    for heading, of_sample in _samples(chosen):
        for varied, name in _VARIED.items():
            part = of_sample[of_sample["varied"] == varied]
            if len(part):
                sections += _power_sections(f"{heading}, {varied}", part, name.replace("Fewer", "Number of"))
    notes = [
        f"Enough: the smallest number at which the chance reaches {ENOUGH:.0%}; a dash where none tried does",
        "Numbers above what the data have are of more data of the same kind",
        "The CSV file has every number and pair that was tried",
        "Single tests, without a correction for many comparisons",
    ]
    # One row per pair, with its power or without, one column per size: a quarter of the bytes of one row each. A pivot table
    # would leave out pairs without any power, or have a row of every combination.
    index = [*_WHAT, "varied", "a", "b", "difference"]
    rounded = chosen.round({"power": 3, "difference": 5}).groupby([*index, "size"], observed=True)["power"].mean()
    wide = rounded.unstack("size").rename(columns="power_{}".format).rename_axis(columns=None).reset_index()
    return _table(inputs, study, wide, sections, notes, f"Rated: {found['target'].iloc[0]}.")


def _power_sections(heading: str, part: pd.DataFrame, varied: str) -> Iterator[Section]:
    tried = sorted(part["size"].unique())
    shown = [size for size in tried if size in _SIZES]
    sizes = shown if len(shown) > 1 else tried
    wide = part.pivot_table(index=["a", "b", "difference"], columns="size", values="power", dropna=False).reset_index()
    wide = wide.dropna(subset=tried, how="all")
    names = [*(f"{low:g} to {high:g}" for low, high in pairwise(_STEPS)), f"{_STEPS[-1]:g} and more"]
    steps = pd.cut(wide["difference"].abs(), [*_STEPS, 2.1], right=False, labels=names)
    rows = [
        [str(step), str(len(group)), *(number(group[size].mean(), digits=2) for size in sizes)]
        for step, group in wide.groupby(steps, observed=True)
    ]
    columns = [(varied, str(size)) for size in sizes]
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
    """Show how the ranking of metrics on part of the data agrees with that on all of it."""
    found = _of_target(inputs, "curves")
    groups = found.assign(width=found["high"] - found["low"]).groupby([*_WHAT, "varied", "size"], observed=True)
    shown = groups.agg(
        agreement=("agreement", "first"), width=("width", "median"), repeats=("repeats", "max")
    ).reset_index()
    sections = []
    for varied, name in _VARIED.items():
        part = shown[shown["varied"] == varied]
        sizes, rows = sorted(part["size"].unique()), []
        for heading, of_sample in _samples(part):
            by_size = of_sample.set_index("size").reindex(sizes)
            rows.append([heading, *(number(value, digits=2) for value in [*by_size["agreement"], *by_size["width"]])])
        columns = [("", "Level and coefficient")]
        columns += [(group, str(size)) for group in ("Agreement of rankings", "Width of the band") for size in sizes]
        if rows:
            sections.append(Section(name, rows_frame(columns, rows)))
    repeats = dict.fromkeys(str(int(value)) for value in (found["repeats"].min(), found["repeats"].max()))
    notes = [
        "Agreement of rankings: Kendall's tau of the metrics' ranking with that on all the data, the mean over the parts drawn; "
        "1 is the same ranking",
        "Width of the band: from 2.5 % to 97.5 % of the parts drawn, of a metric's correlation; the median over metrics",
        f"Parts drawn of each size: {' to '.join(repeats)}",
    ]
    tidy = shown.round({"agreement": 4, "width": 4})
    return _table(inputs, study, tidy, sections, notes, f"Rated: {found['target'].iloc[0]}.")


# Judges


def judges(inputs: Inputs, study: Study) -> Table:
    """Show what judges were asked, what came back, what could not be read, and what it cost."""
    one = About.read(inputs["about"]).only
    labels = {name: entry["label"] for name, entry in one["judges"].items()}
    tables = (schema.read(path, "judgements") for path in inputs["judgements"])
    frame = pd.DataFrame([judged(table) for table in tables if len(table)])
    if frame.empty:
        raise NothingToShowError("nothing was asked")
    names = frame["metric"].map(lambda name: labels.get(name, name))
    texts = {
        ("", "Variant"): names,
        ("judgements", "all"): frame["judgements"].map(count),
        ("judgements", "distinct"): frame["answers"].map(count),
        ("judgements", "not readable"): frame["failed"].map(count),
        ("judgements", "by fresh samples"): frame["fresh"].map(count),
        ("items", "without a score"): (frame["items"] - frame["scored"]).map(count),
        ("tokens", "in"): frame["input_tokens"].map(count),
        ("tokens", "out"): frame["output_tokens"].map(count),
        ("cost", "US dollars"): frame["cost"].map(lambda cost: number(cost, digits=2)),
    }
    unread = zip(names, frame["failures"], strict=True)
    notes = [
        "The judge `rules` is a program that counts words, no language model: its scores are no LLM's",
        "A judgement that could not be read after the fresh samples is left out; an item without any has no score",
        "Tokens of `rules` are words and marks",
        *(f"{name}: not readable: {failures}" for name, failures in unread if failures),
        *_not_run(one, {name: why for name, why in one["not_run"].items() if name in labels}),
    ]
    return _table(inputs, study, frame, [Section(one["title"], pd.DataFrame(texts, dtype=object))], notes)


def judged(table: pd.DataFrame) -> dict[str, Any]:
    """Count a table ``judgements`` of one metric.

    answers: distinct ones, as equal responses of two systems are judged once; failed: judgements that could not be read, fresh
    samples included; fresh: judgements that a first answer did not give; scored: items with at least one judgement; tokens and
    cost of the distinct answers (US dollars; missing if it is not known); failures: the five most frequent kinds.
    """
    once, items = table.drop_duplicates("key"), table.groupby(["item_id", "system_id"])["value"].count()
    # A sum of what is known would look like the whole.
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
    """Show how many recorded answers of judges can be read, and how they agree with people, beside the reported figures."""
    one = About.read(inputs["about"]).only
    known = {name: one["judges"][name] for name in one["recorded_judges"]}
    counts, values = ("items", "answers", "unread"), ("pearson", "kendall", "owners_pearson", "owners_kendall")
    frame = read_reported(inputs["coverage"], ("metric", "dimension", "target", "why"), (*counts, *values))
    reported = read_reported(inputs["reported"], ("prompt", "dimension", "coefficient"))
    frame = frame.assign(prompt=frame["metric"].map({name: entry["prompt"] for name, entry in known.items()}))
    names = [label(name, one["labels"]) for name in zip(frame["metric"], frame["dimension"], strict=True)]
    texts: dict[tuple[str, str], Any] = {("", "Judge"): names, ("", "Dimension"): frame["dimension"]}
    for name, column in {"items": "items", "all": "answers", "not readable": "unread"}.items():
        texts["answers", name] = frame[column].map(count)
    keys = pd.MultiIndex.from_frame(frame[["prompt", "dimension"]])
    for coefficient in ("pearson", "kendall"):
        of = reported[reported["coefficient"] == coefficient].set_index(["prompt", "dimension"])["value"]
        frame[f"reported_{coefficient}"] = of.reindex(keys).to_numpy()
        for name, whose in {"ours": "", "read as theirs": "owners_", "reported": "reported_"}.items():
            texts[coefficient.title(), name] = frame[whose + coefficient].map(number)
    compared = frame.drop_duplicates("dimension")[["dimension", "target"]]
    models = "; ".join(f"{name}: {of['model']}" for name, of in known.items())
    notes = [
        "Pearson pools all items; Kendall is tau-b within each context, averaged over contexts",
        "Compared: " + ", ".join(f"{dimension} with {target}" for dimension, target in compared.to_numpy()),
        f"The model of each, as the source names it: {models}",
        "Reported: Chiang and Lee 2023, where the files are those of a reported row",
        'Read as theirs: the first digit after the last "rating:", which gives the reported values. It takes 0 of 0.5 and 2 of '
        "2.5, the number of a list's item, and numbers outside the scale; ours does not",
        *(f"{name}: not readable: {why}" for name, why in zip(names, frame["why"], strict=True) if why),
    ]
    return _table(inputs, study, frame, [Section(one["title"], pd.DataFrame(texts, dtype=object))], notes)
