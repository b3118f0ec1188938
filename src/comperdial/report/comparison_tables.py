"""What correlations are worth: other measures, paired tests, power, and how rankings hold with less data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from comperdial.report import leave_out
from comperdial.report.captions import with_suffix
from comperdial.report.document import Column, Document, Section, number, pivot, records_by
from comperdial.report.labels import label
from comperdial.report.tables import (
    COEFFICIENT_NAMES,
    MEASURE_NAMES,
    READING,
    best_first,
    coefficient_of,
    corrected_over,
    few_notes,
    level_pairs,
    level_title,
    of_target,
    over_tests,
    significant,
    with_interval,
)
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
    for measure, name in MEASURE_NAMES.items()
}
# What is shown of a level; the CSV file has the rest.
_SHOWN = {
    "turn": ("spearman", "acc_eq"),
    "dialogue": ("spearman", "acc_eq"),
    "system": ("kendall", "accuracy", "acc_eq", "spa"),
}
# Sizes that tables show where there are several of them; which size is enough is looked up in all.
_SIZES = (10, 15, 30, 50, 100, 300)
_ESTIMATE = ("value", "low", "high", "rank")
_TESTS = {
    "p": "our test",
    "p_adjusted": "our test, Holm",
    "p_fdr": "our test, FDR",
    "p_wmt": "WMT's, one-sided",
    "p_perm_both": "PERM-BOTH",
    "p_williams": "Williams",
}
_VARIED = {
    "systems": "Fewer systems",
    "dialogues": "Fewer dialogues",
    "annotators": "Fewer raters",
    "samples": "Fewer answers of a judge",
}
_WHAT = ["level", "against", "coefficient"]


def measures_document(
    correlations: pd.DataFrame,
    title: str,
    target: str,
    *,
    labels: Mapping[str, str] | None = None,
    suffix: str = "",
) -> Document:
    """Render pairwise accuracies beside the correlations of systems, and correlations by item beside pooled ones.

    The rows of a level are sorted by its first column.
    """
    chosen = of_target(correlations, target)
    beyond = (chosen["grouping"] != "pooled") | ~chosen["coefficient"].isin(list(COEFFICIENT_NAMES))
    # Only these were looked at in detail; of the others there is nothing here that the table of all metrics lacks.
    detailed = {
        (str(m), str(o)) for m, o in zip(chosen.loc[beyond, "metric"], chosen.loc[beyond, "output"], strict=True)
    }
    sections = []
    marked: list[Mapping[Any, Any]] = []
    for level, against in level_pairs(chosen):
        of_pair = chosen[(chosen["level"] == level) & (chosen["against"] == against)]
        present = set(zip(of_pair["coefficient"], of_pair["grouping"], strict=True))
        measures = [(c, g) for c in _SHOWN[level] for g in _GROUPINGS if (c, g) in present]
        cells = records_by(of_pair, ["metric", "output", "coefficient", "grouping"])
        here = [name for name in detailed if any(key[:2] == name for key in cells)]
        names = best_first(here, cells, *(measures[0] if measures else ()))
        rows = {name: [label(name, labels or {})] for name in names}
        columns = [Column(MEASURE_NAMES[c], _GROUPINGS[g], _measure, (c, g)) for c, g in measures]
        sections.append(pivot(level_title(level, against), cells, rows, ["Metric"], columns))
        marked += [cell for key, cell in cells.items() if key[:2] in rows and key[2:] in measures]
    return Document(
        title=f"Other measures of agreement on {title}",
        caption=with_suffix(
            leave_out.with_legend(
                f"How well metrics agree with the mean rating ({target}) on {title}, by measures newer than the "
                "ComperDial paper, beside the correlations of its tables; sorted by the first column.",
                pd.DataFrame(marked),
            ),
            suffix,
        ),
        sections=sections,
        tidy=chosen.loc[beyond, ["level", "against", "metric", "output", "grouping", "coefficient", *_ESTIMATE, "n"]]
        .round(dict.fromkeys(_ESTIMATE, 4))
        .reset_index(drop=True),
        notes=[
            "acc_eq: the share of pairs of systems that metric and ratings order alike, ties counted, with the "
            "threshold for a metric's ties that serves it best (Deutsch et al. 2023)",
            "SPA: soft pairwise accuracy: how alike the p-values are with which metric and ratings order each pair of "
            "systems (Thompson et al. 2024)",
            "By item: correlated over the systems within each context (of dialogues: within each dialogue), then "
            "averaged: what makes one context harder than another does not count",
            "The metrics are those with `main` in params.yaml, and the judges'",
            "Intervals and ranks of the pooled correlations stand in the table of all metrics, Pearson and Kendall by "
            "item in the CSV file",
            *READING,
            *corrected_over(pd.DataFrame(marked)),
            *few_notes(pd.DataFrame(marked)),
        ],
    )


def _measure(cell: Mapping[Any, Any]) -> str:
    if cell["grouping"] == "pooled" and cell["coefficient"] in COEFFICIENT_NAMES:
        # Its interval stands in the table of all metrics.
        return coefficient_of(cell)
    # A mean over items and a share of pairs have no p of their own.
    return with_interval(cell, starred=pd.notna(cell["p"]))


def comparisons_document(
    comparisons: pd.DataFrame,
    title: str,
    target: str,
    *,
    labels: Mapping[str, str] | None = None,
    suffix: str = "",
) -> Document:
    """Render which metrics the paired tests tell apart: how many pairs, and a matrix for each pair of levels."""
    chosen = _named(_of_target(comparisons, target), labels or {})
    rows = []
    tested: dict[str, int] = {}
    matrices: dict[tuple[str, str], Section] = {}
    for heading, of_sample in _samples(chosen):
        # Where a test is not made, none told apart would be untrue.
        counts = [
            str(int((of_sample[test] < ALPHA).sum())) if of_sample[test].notna().any() else "–" for test in _TESTS
        ]
        rows.append([heading, str(len(of_sample)), *counts])
        tested[heading] = int(of_sample["p"].notna().sum())
        level, against, coefficient = (str(of_sample[name].iloc[0]) for name in _WHAT)
        # One matrix a level: the others look much alike.
        if coefficient in _SHOWN[level] or (level, against) not in matrices:
            matrices[level, against] = _matrix(heading, of_sample)
    columns = [("", "Level and coefficient"), ("Pairs", "all")]
    columns += [(f"Told apart at {ALPHA}", name) for name in _TESTS.values()]
    tests = ", ".join(sorted(set(chosen["test"].astype(str))))
    return Document(
        title=f"Which metrics are told apart on {title}",
        caption=with_suffix(
            f"Paired tests of whether two metrics correlate alike with the mean rating ({target}) on {title}.",
            suffix,
        ),
        sections=[Section("How many pairs are told apart", columns, rows), *matrices.values()],
        tidy=wide_comparisons(chosen, list(_TESTS), [*COEFFICIENT_NAMES, "acc_eq_item", "accuracy", "acc_eq", "spa"]),
        notes=[
            f"Our test: {tests}; Holm and FDR: corrected over the pairs of a row that it was made of, {over_tests(tested)}. "
            "The matrices and the ranks of other tables are by it, after Holm",
            "PERM-BOTH: mt-metrics-eval's permutation of the two metrics' scores; Williams: the test for two "
            "correlations that share a variable. Both stand here to be compared with",
            f"+: the metric of the row agrees better than that of the column, p < {ALPHA} after Holm; −: it agrees "
            "less; o: not told apart; a dash: not compared",
            f"A matrix has the {_MOST} metrics that win most comparisons, by one coefficient a level. The CSV file has "
            "every pair by the main coefficients, a positive difference where a agrees better than b; "
            "comparisons.parquet has them with more digits",
            *_untested(chosen),
        ],
    )


def _untested(pairs: pd.DataFrame) -> list[str]:
    """Say which statistics of pairs of systems have values and no tests."""
    of_systems = pairs[(pairs["level"] == "system") & (pairs["grouping"] == "pooled")]
    missing = [MEASURE_NAMES[name] for name in OF_SYSTEMS if name not in set(of_systems["coefficient"])]
    if of_systems.empty or not missing:
        return []
    return [
        f"Over systems these have values and no tests: {', '.join(missing)}. `evaluation.tests` in params.yaml asks for tests; "
        f"accuracy and SPA have them where there are up to {FEW_SYSTEMS} systems"
    ]


def _matrix(heading: str, pairs: pd.DataFrame) -> Section:
    won = pairs["a"].value_counts()
    names = sorted({*pairs["a"], *pairs["b"]}, key=lambda name: (-int(won.get(name, 0)), name))
    signs: dict[tuple[str, str], str] = {}
    for pair in pairs.to_dict("records"):
        if pd.notna(pair["p_adjusted"]):
            found = pair["p_adjusted"] < ALPHA
            signs[pair["a"], pair["b"]] = "+" if found else "o"
            signs[pair["b"], pair["a"]] = "−" if found else "o"
    shown = names[:_MOST]
    rows = []
    for place, name in enumerate(shown, start=1):
        of_row = [signs.get((name, other), "–") for other in names if other != name]
        against = ["" if other == name else signs.get((name, other), "–") for other in shown]
        rows.append([str(place), name, *(str(of_row.count(sign)) for sign in "+−o"), *against])
    columns = [
        ("", "No."),
        ("", "Metric"),
        *(("Metrics it is", word) for word in ("better than", "worse than", "not told from")),
    ]
    columns += [("Against", str(place)) for place in range(1, len(shown) + 1)]
    return Section(heading, columns, rows)


def power_document(
    power: pd.DataFrame, title: str, target: str, *, labels: Mapping[str, str] | None = None, suffix: str = ""
) -> Document:
    """Render the chance that a paired test tells two metrics apart, by how much data there is."""
    of_rated = _of_target(power, target)
    # Of statistics within items and of pairs of systems, those that decide which metric picks the better one.
    shown = of_rated["coefficient"].isin(["acc_eq", "accuracy", "spa"]) & (of_rated["grouping"] != "system")
    chosen = _named(
        of_rated[shown | of_rated["coefficient"].isin(list(COEFFICIENT_NAMES)) & (of_rated["grouping"] == "pooled")],
        labels or {},
    )
    sections: list[Section] = []
    for heading, of_sample in _samples(chosen):
        for varied, name in _VARIED.items():
            part = of_sample[of_sample["varied"] == varied]
            if len(part):
                sections += _power_sections(f"{heading}, {varied}", part, name)
    return Document(
        title=f"How much data tells two metrics apart on {title}",
        caption=with_suffix(
            f"The chance that a paired test at {ALPHA:.0%} tells two metrics apart whose correlations with the mean "
            f"rating ({target}) on {title} differ as they do here, by the number of systems or of dialogues.",
            suffix,
        ),
        sections=sections,
        tidy=wide_power(chosen),
        notes=[
            f"Enough: the smallest number at which the chance reaches {ENOUGH:.0%}; a dash where none tried does",
            "Numbers above what the data have tell of more data of the same kind",
            "The CSV file has every number and pair that was tried",
            "Single tests, without a correction for many comparisons",
        ],
    )


def _power_sections(heading: str, part: pd.DataFrame, varied: str) -> Iterator[Section]:
    tried = sorted(part["size"].unique())
    shown = [size for size in tried if size in _SIZES]
    sizes = shown if len(shown) > 1 else tried
    wide = part.pivot_table(index=["a", "b", "difference"], columns="size", values="power", dropna=False).reset_index()
    wide = wide.dropna(subset=tried, how="all")
    columns = [(varied.replace("Fewer", "Number of"), str(size)) for size in sizes]
    steps = pd.cut(wide["difference"].abs(), [*_STEPS, 2.1], right=False, labels=_step_names())
    rows = [
        [str(step), str(len(group)), *(number(group[size].mean(), digits=2) for size in sizes)]
        for step, group in wide.groupby(steps, observed=True)
    ]
    yield Section(f"{heading}: by difference", [("", "Difference"), ("", "Pairs"), *columns], rows)
    best = part["a"].value_counts()
    if best.empty:
        return
    first = sorted(best.index, key=lambda name: (-int(best[name]), str(name)))[0]
    of_best = wide[wide["a"] == first].sort_values(["difference", "b"])
    rows = []
    for pair in of_best.to_dict("records"):
        enough = next((str(size) for size in tried if pair[size] >= ENOUGH), "–")
        values = [number(pair[size], digits=2) for size in sizes]
        rows.append([str(pair["b"]), number(pair["difference"]), *values, enough])
    columns = [("", "Metric"), ("", "Difference"), *columns, ("Enough", f"{ENOUGH:.0%}")]
    yield Section(f"{heading}: {first} against the others", columns, rows)


def _step_names() -> list[str]:
    return [*(f"{low:g} to {high:g}" for low, high in pairwise(_STEPS)), f"{_STEPS[-1]:g} and more"]


def curves_document(curves: pd.DataFrame, title: str, target: str, *, suffix: str = "") -> Document:
    """Render how the ranking of metrics on part of the data agrees with that on all of it."""
    chosen = _of_target(curves, target)
    # What is shown; the parquet file has every metric's curve.
    shown = (
        chosen.assign(width=chosen["high"] - chosen["low"])
        .groupby([*_WHAT, "varied", "size"], observed=True)
        .agg(agreement=("agreement", "first"), width=("width", "median"), repeats=("repeats", "max"))
        .reset_index()
    )
    sections = []
    for varied, name in _VARIED.items():
        part = shown[shown["varied"] == varied]
        sizes = sorted(part["size"].unique())
        rows = []
        for heading, of_sample in _samples(part):
            by_size = of_sample.set_index("size")
            values = [by_size[column].get(size) for column in ("agreement", "width") for size in sizes]
            rows.append([heading, *(number(value, digits=2) for value in values)])
        columns = [("", "Level and coefficient")]
        columns += [(group, str(size)) for group in ("Agreement of rankings", "Width of the band") for size in sizes]
        if rows:
            sections.append(Section(name, columns, rows))
    return Document(
        title=f"How the ranking of metrics holds with less data on {title}",
        caption=with_suffix(
            f"Metrics ranked by their correlation with the mean rating ({target}) on parts of {title}: how well the "
            "ranking agrees with that on all of it.",
            suffix,
        ),
        sections=sections,
        tidy=shown.round({"agreement": 4, "width": 4}),
        notes=[
            "Agreement of rankings: Kendall's tau of the metrics' ranking with that on all the data, the mean over the "
            "parts drawn; 1 is the same ranking",
            "Width of the band: from 2.5 % to 97.5 % of the parts drawn, of a metric's correlation; the median over "
            "metrics",
            f"Parts drawn of each size: {_span(chosen['repeats'])}",
        ],
    )


def _of_target(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    """Choose a dimension, where there is anything: a data set of few systems may have nothing to compare."""
    return of_target(frame, target) if len(frame) else frame


def _samples(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Go through levels and coefficients in order, each with its heading."""
    for level, against in level_pairs(frame):
        for coefficient in _GROUPED:
            chosen = (frame["level"] == level) & (frame["against"] == against) & (frame["coefficient"] == coefficient)
            if chosen.any():
                yield f"{level_title(level, against)}, {_GROUPED[coefficient]}", frame[chosen]


def _named(pairs: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Name both metrics of each pair in one column each, and a coefficient with its grouping."""
    grouped = pairs["grouping"] != "pooled"
    kept = pairs.assign(
        coefficient=pairs["coefficient"].where(~grouped, pairs["coefficient"] + "_" + pairs["grouping"])
    )
    sides = {side: list(zip(kept[f"metric_{side}"], kept[f"output_{side}"], strict=True)) for side in "ab"}
    called = {name: label(name, labels) for names in sides.values() for name in names}
    # Whoever labels two alike sees which is which.
    several = Counter(called.values())
    called = {name: f"{text} ({':'.join(name)})" if several[text] > 1 else text for name, text in called.items()}
    return kept.assign(**{side: [called[name] for name in names] for side, names in sides.items()})


def _span(values: Sequence[Any] | pd.Series) -> str:
    found = sorted({int(value) for value in values})
    return " to ".join(dict.fromkeys([str(found[0]), str(found[-1])])) if found else "none"


def wide_comparisons(pairs: pd.DataFrame, tests: Sequence[str], coefficients: Sequence[str]) -> pd.DataFrame:
    """Return one row a pair, its columns once for each coefficient: half the bytes of one row each.

    ``pairs`` has the metrics' names as a and b; in what is returned, a comes first in the alphabet.
    """
    turned = pairs["a"] > pairs["b"]
    found = pairs.assign(
        a=pairs["a"].where(~turned, pairs["b"]),
        b=pairs["b"].where(~turned, pairs["a"]),
        difference=pairs["difference"].where(~turned, -pairs["difference"]).round(3) + 0.0,
        **{test: significant(pairs[test], 2) for test in tests},
    )
    index = ["level", "against", "a", "b"]
    columns = ["difference", *tests]
    wide = found.pivot_table(index=index, columns="coefficient", values=columns, observed=True, dropna=False)
    order = [(column, c) for c in coefficients if c in set(pairs["coefficient"].astype(str)) for column in columns]
    wide = wide.reindex(columns=order).dropna(how="all")
    wide.columns = pd.Index([f"{coefficient}_{column}" for column, coefficient in order])
    return wide.reset_index()


def wide_power(power: pd.DataFrame) -> pd.DataFrame:
    """Return one row a pair, with its power or without, one column a size: a quarter of the bytes of one row each."""
    index = ["level", "against", "coefficient", "varied", "a", "b", "difference"]
    rounded = power.round({"power": 3, "difference": 5})
    # A pivot table would leave out pairs without any power, or have a row of every combination.
    wide = rounded.groupby([*index, "size"], observed=True)["power"].mean().unstack("size")
    return wide.rename(columns="power_{}".format).rename_axis(columns=None).reset_index()
