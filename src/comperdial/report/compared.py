"""Which of several metrics agrees best with the ratings: a sentence, then tables."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from comperdial.core.names import Output
from comperdial.evaluation.ceilings import ceilings
from comperdial.evaluation.correlations import FEWEST_DIALOGUES
from comperdial.evaluation.samples import Sample
from comperdial.report.correlations import (
    LEGEND,
    MARK,
    MEASURES,
    Record,
    groups,
    halved,
    is_few,
    is_halved,
    level_pairs,
    level_title,
    lowest,
    over_tests,
)
from comperdial.report.headline import headline, not_run
from comperdial.report.ranking import Correction, against, corrected, with_ranks
from comperdial.report.render import (
    NOTES,
    SIMULATED,
    Section,
    Table,
    as_number,
    count,
    interval,
    markdown,
    number,
    p_value,
    rendered,
    rows_frame,
    spread,
    text,
)
from comperdial.schema.dimensions import OVERALL, main_dimension
from comperdial.schema.tables import OVER
from comperdial.stats.correlation import ALPHA
from comperdial.stats.means import system_means

_SAMPLE = ["dataset", "target", "level", "against"]
_COLUMNS = [
    *_SAMPLE, "coefficient", "metric", "minus", "label", "value", "low", "high", "over", "loso_value", "loso_system",
    "loso_halved", "p", "p_adjusted", "correction", "tests", "rank", "n", "coverage", "signature",
]  # fmt: skip
# Column names of corrected p-values; Holm's is the default.
_LEFT_OUT = "Without one system: the correlation nearest to 0 (or beyond it) when one system is left out, and which system it is"
_CORRECTED = {"holm": "Holm", "fdr": "FDR"}
# What fits a screen: systems, metrics whose means are shown next to them, and metrics for all pairs.
_MOST_SYSTEMS, _MOST_MEANS, _MOST_PAIRED = 20, 4, 4


@dataclass(frozen=True)
class Comparison:
    """Agreement of metrics with the ratings, and differences between metrics.

    Attributes
    ----------
    headline
        One sentence that claims no more than the tests support.
    table
        One row per metric, level, dimension and coefficient, best first: value, low, high, p, rank, n, coverage, …
    systems
        One row per system and dimension: its mean rating with interval, and the metrics' means.
    pairs
        One row per pair of metrics: difference (``metric`` minus ``minus``), low, high, p, p_adjusted.
    notes
        How the data were read, what was not run, and how to read the numbers.
    """

    headline: str
    table: pd.DataFrame
    systems: pd.DataFrame
    pairs: pd.DataFrame
    notes: tuple[str, ...]
    document: Table

    def __str__(self) -> str:
        """Return the output of ``comperdial compare``."""
        return text(self.document)

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Return headline, tables and notes as Markdown."""
        return markdown(self.document)

    def rendered(self, form: str) -> str:
        """Return the comparison as ``text``, ``markdown``, ``latex`` or ``csv`` (metrics and pairs)."""
        document = self.document
        if form == "latex":
            document = replace(document, caption=f"{self.headline} {document.caption}")
        return rendered(document, form, label="tab:compared")

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        parts = [f"<p><b>{html.escape(self.headline)}</b></p><p>{html.escape(self.document.caption)}</p>"]
        for section in self.document.sections:
            frame = section.frame if section.frame.index.name else section.frame.set_index(section.frame.columns[0])
            parts.append(f"<p>{html.escape(section.title)}</p>{frame.to_html(na_rep='–')}")
        lines = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return "\n".join([*parts, f"<details><summary>Notes</summary><ul>{lines}</ul></details>"])


def comparison(
    values: pd.DataFrame,
    tests: pd.DataFrame,
    samples: Sequence[Sample],
    labels: Mapping[Output, str],
    coefficients: Sequence[str],
    *,
    source: str = "human",
    correction: Correction = "holm",
    contrasted: Output | None = None,
    reasons: Mapping[str, str] | None = None,
    slow: Mapping[str, str] | None = None,
    named: bool = True,
    scales: Mapping[tuple[str, str], tuple[float, float]] | None = None,
    caption: str = "",
    notes: Sequence[str] = (),
) -> Comparison:
    """Return the comparison.

    Parameters
    ----------
    values, tests, samples
        Tables ``correlations`` and ``pairs``, and the samples they were computed from.
    labels, coefficients
        Labels by (metric, output); and the coefficients, the first of which sorts the table.
    source, correction, contrasted
        Source of the ratings; correction of p-values; and the output that all others are compared with, if any.
    reasons, slow, named
        Why metrics were not run; how long others would take; and whether the user named them.
    scales
        Lowest and highest possible rating by data set and dimension, which limit intervals of mean ratings.
    caption, notes
        Resamples and seed; and how the data were read.
    """
    names = {":".join(name): label for name, label in labels.items()}
    first = main_dimension(OVERALL, values["target"].astype(str))
    levels = level_pairs(values)

    def ordered(frame: pd.DataFrame, by: str) -> pd.DataFrame:
        orders: dict[str, Any] = {
            "target": frame["target"] != first,
            "level": [levels.index(pair) for pair in zip(frame["level"], frame["against"], strict=True)],
            "coefficient": frame["coefficient"].map(list(coefficients).index),
            # Values that differ only by rounding are sorted by name.
            "value": -frame[by].round(12),
        }
        keys = ["dataset", "_target", "target", "_level", "_coefficient", "_value", "metric"]
        frame = frame.assign(**{f"_{name}": order for name, order in orders.items()})
        frame = frame.sort_values(keys, kind="stable", ignore_index=True)
        return frame.drop(columns=[f"_{name}" for name in orders])

    metrics = with_ranks(values, tests.iloc[:0] if contrasted else tests, correction)
    metrics = metrics.assign(metric=metrics["metric"] + ":" + metrics["output"], loso_halved=halved(metrics))
    metrics = ordered(metrics.assign(label=metrics["metric"].map(names)), "value")
    pairs = corrected(against(tests, contrasted) if contrasted else tests, correction)
    sides = {
        name: pairs[f"metric_{side}"] + ":" + pairs[f"output_{side}"]
        for name, side in (("metric", "a"), ("minus", "b"))
    }
    pairs = ordered(pairs.assign(**sides, correction=correction), "difference")
    pairs["tests"] = pairs.groupby([*_SAMPLE, "coefficient"])["p"].transform("count")
    systems = _systems(samples, names, scales or {})
    systems = systems.sort_values(["dataset", "rating"], ascending=[True, False], kind="stable", ignore_index=True)
    against_label = labels[contrasted] if contrasted else None
    answer = _answer(metrics, pairs, names, str(coefficients[0]), source, correction)
    # With fixed systems, claims are limited to these.
    over = {*metrics["over"].dropna(), *(pairs["over"].dropna() if len(pairs) else ())}
    reading = [NOTES["given"]] if OVER[1] in over else []
    if len(names) > 1:
        reading.append(f"The interval of a difference leaves out 0 just where its p is below {ALPHA}")
        reading.append(_corrected(correction, pairs, against_label))
    reading += ["A pair is compared over what both metrics have scored"] if (metrics["coverage"] < 1).any() else []
    constant = metrics.loc[metrics["value"].isna() & (metrics["coverage"] > 0), "label"].unique()
    reading += (
        [f"No correlation, since all scores or all ratings are the same: {', '.join(constant)}"]
        if len(constant)
        else []
    )
    inverse = metrics[(metrics["high"] < 0) & (metrics["coefficient"] == coefficients[0])]["label"].unique()
    reading += (
        [f"Correlates negatively, so that its low scores are the good ones: {', '.join(inverse)}"]
        if len(inverse)
        else []
    )
    left_out = [_LEFT_OUT] if metrics["loso_system"].notna().any() else []
    signatures = dict(zip(metrics["metric"], metrics["signature"], strict=True))
    of_metrics = [
        f"{label}: {name.split(':')[-1]}, {signatures[name]}" for name, label in names.items() if name in signatures
    ]
    every = [*_missing(reasons or {}, slow or {}, named=named), *notes, *reading, *left_out, *of_metrics]
    whose = "mean human rating" if source == "human" else f"mean rating ({source})"
    caption = " ".join([f"Correlations with the {whose}.", caption, *([SIMULATED] if source == "simulated" else [])])
    caption += f" {LEGEND}" if metrics["loso_halved"].fillna(False).any() else ""
    tidy = [metrics, pairs.assign(value=pairs["difference"])]
    document = Table(
        title=answer,
        caption=caption,
        sections=_sections(metrics, pairs, systems, ceilings(samples), names, correction, against_label),
        frame=pd.concat([one.reindex(columns=_COLUMNS[:-1]) for one in tidy if len(one)], ignore_index=True).drop(
            columns="label"
        ),
        notes=every,
    )
    shown = [name for name in pairs if name not in {"metric_a", "metric_b", "output_a", "output_b", "grouping"}]
    table = metrics.reindex(columns=[name for name in _COLUMNS if name not in {"minus", "p_adjusted", "correction"}])
    return Comparison(answer, table, systems, pairs[shown], tuple(every), document)


def sentence(pair: Mapping[Any, Any], a: str, b: str, tests: int, correction: str = "holm") -> str:
    """Describe a pair's difference, where a has the higher coefficient; claims no more than its p supports."""
    difference = number(pair["difference"], digits=2, sign=True) + interval(pair["low"], pair["high"])
    if pd.isna(pair["p"]):
        return f"no test of {a} and {b}: {difference}, n = {pair['n']}"
    result, p = pair["p"] < ALPHA, p_value(pair["p"])
    tested = f"{difference}, p {p if p.startswith('<') else f'= {p}'}"
    if tests > 1 and correction in _CORRECTED:
        lost = ", not significant" if result and not pair["p_adjusted"] < ALPHA else ""
        tested += f" ({_CORRECTED[correction]}: {p_value(pair['p_adjusted'])}{lost})"
    if not result:
        return f"no significant difference between {a} and {b}: {tested}"
    return f"{a} correlates better than {b}: {tested}"


# Tables and notes


def _sections(
    metrics: pd.DataFrame,
    pairs: pd.DataFrame,
    systems: pd.DataFrame,
    raters: pd.DataFrame,
    names: Mapping[str, str],
    correction: str,
    against: str | None,
) -> list[Section]:
    """Return the sections for metrics, systems and pairs."""
    raters = raters[(raters["grouping"] == "pooled") & raters["coefficient"].isin(metrics["coefficient"].unique())]
    raters = raters.groupby([*_SAMPLE, "coefficient"], observed=True)["value"].mean().reset_index()
    rank = f"rank ({_CORRECTED.get(correction, 'not corrected')})" if len(names) > 2 else None
    several = metrics["dataset"].nunique() > 1
    above, below = [], []
    for key, result in groups(metrics, *_SAMPLE):
        dataset, target, level, of = key
        tests, known = (
            frame[(frame[_SAMPLE] == pd.Series(key, index=_SAMPLE)).all(axis=1)] for frame in (pairs, raters)
        )
        title = f"{f'{dataset}, {target}' if several else target}: {level_title(level, of)}"
        given = {*result["over"].dropna(), *tests["over"].dropna()} == {OVER[1]}
        title += f" (over {OVER[1]})" if given else ""
        above.append(Section(title, _block(result, known, rank)))
        if len(names) > 1:
            best, which = result.iloc[0], "pairs"
            if len(names) > _MOST_PAIRED and not against:
                which = f"pairs with {best['label']} (all: --format csv)"
                own = (tests[["metric", "minus"]] == best["metric"]).any(axis=1)
                tests = tests[own & (tests["coefficient"] == best["coefficient"])]
            rows = [
                [
                    MEASURES[one["coefficient"]],
                    sentence(one, names[one["metric"]], names[one["minus"]], one["tests"], correction),
                ]
                for one in tests.to_dict("records")
            ]
            below.append(Section(f"{title}, {which}", rows_frame(["Coefficient", "Pair"], rows)))
    return [*above, *_of_systems(systems, list(metrics["label"].unique())), *below]


def _block(result: pd.DataFrame, raters: pd.DataFrame, rank: str | None) -> pd.DataFrame:
    """Return the rows of metrics, and the agreement of one rater, without empty columns."""
    cells = {"value": _value, "95 % interval": _interval, "without one system": lowest}
    if rank:
        cells[rank] = lambda cell: "–" if pd.isna(cell["rank"]) else f"#{cell['rank']:.0f}"
    both = pd.concat([result, raters.assign(label="(one rater)")])
    both["group"] = both["coefficient"].map(MEASURES)
    made = spread(both, {"label": "Metric"}, "group", cells)
    made = made.loc[:, ~made.isin(["–"]).all()].copy()
    first = both.drop_duplicates("label").set_index("label")
    made["", "n"] = first["n"].map(count)
    if (result["coverage"] < 1).any():
        made["", "scored"] = first["coverage"].map("{:.0%}".format, na_action="ignore")
    return made


def _value(cell: Record) -> str:
    return number(cell["value"], digits=2 if is_few(cell) else 3) + (MARK if is_halved(cell) else "")


def _interval(cell: Record) -> str:
    return interval(cell["low"], cell["high"]).strip() or "–"


def _systems(
    samples: Sequence[Sample], names: Mapping[str, str], scales: Mapping[tuple[str, str], tuple[float, float]]
) -> pd.DataFrame:
    """Return each system's mean rating with interval, at the finest rated level, and its mean scores.

    The interval treats dialogues (or contexts) as sampled, with a common deviation of a dialogue from the system's mean.
    """
    finest: dict[tuple[str, str], Sample] = {}
    for sample in samples:
        if not sample.design.average and sample.level == sample.against:
            finest.setdefault((sample.dataset, sample.target), sample)
    for sample in samples:
        finest.setdefault((sample.dataset, sample.target), sample)
    frames = []
    for (dataset, target), sample in finest.items():
        means, codes = system_means(np.vstack([sample.ratings, sample.scores]), sample.design), sample.design.systems
        ends = np.full((len(sample.systems), 2), np.nan)
        for system in range(len(sample.systems)):
            of = codes == system
            clusters = np.unique(sample.design.dialogues[of], return_inverse=True)[1]
            apart = np.bincount(clusters, sample.ratings[of] - means[0, system])
            if len(apart) >= FEWEST_DIALOGUES:
                error = np.sqrt(len(apart) / (len(apart) - 1) * (apart**2).sum()) / of.sum()
                ends[system] = means[0, system] + stats.t.ppf([0.025, 0.975], len(apart) - 1) * error
        ends = np.clip(ends, *scales.get((dataset, target), (-np.inf, np.inf)))
        columns = {"n": np.bincount(codes), "rating": means[0], "low": ends[:, 0], "high": ends[:, 1]}
        columns |= {names[":".join(name)]: row for name, row in zip(sample.names, means[1:], strict=True)}
        frames.append(pd.DataFrame({"dataset": dataset, "target": target, "system_id": sample.systems, **columns}))
    return pd.concat(frames, ignore_index=True)


def _of_systems(systems: pd.DataFrame, labels: Sequence[str]) -> list[Section]:
    """Return the systems by dimension, best first; with mean scores of some metrics if there is only one dimension."""
    made = []
    for (dataset,), frame in groups(systems, "dataset"):
        cells: dict[str, Callable[[Record], str]] = {"mean rating": _mean, "95 % interval": _interval}
        one = frame["target"].nunique() == 1
        shown = [label for label in labels if label in frame][:_MOST_MEANS] if one else []
        cells |= {f"mean {label}": as_number(label) for label in shown}
        table = spread(frame, {"system_id": "System"}, "target", cells)
        leading = frame["target"].min() if one else table.columns[0][0]
        order = list(dict.fromkeys([*frame.loc[frame["target"] == leading, "system_id"], *frame["system_id"]]))
        table = table.loc[order[:_MOST_SYSTEMS], ~table.isin(["–"]).all()]
        table["", "n"] = frame.groupby("system_id")["n"].max().reindex(table.index).map(count)
        title = "Systems" if systems["dataset"].nunique() == 1 else f"{dataset}: systems"
        more = len(order) - len(table)
        title += ", the best first" if one else f", the best by {leading} first"
        made.append(Section(title + (f" ({more} more: in Python, `.systems`)" if more > 0 else ""), table))
    return made


def _mean(cell: Record) -> str:
    return number(cell["rating"], digits=2)


def _answer(
    metrics: pd.DataFrame,
    pairs: pd.DataFrame,
    names: Mapping[str, str],
    coefficient: str,
    source: str,
    correction: Correction,
) -> str:
    """Return the headline for the first data set and dimension, naming it if there are several."""
    first = metrics.iloc[0][["dataset", "target"]]
    rows, tests = (frame[(frame[first.index] == first).all(axis=1)] for frame in (metrics, pairs))
    rows = rows.assign(metric=rows["metric"].str.rpartition(":")[0], value=rows["value"].round(12))
    return headline(rows, tests, names, source=source, coefficient=coefficient, correction=correction)


def _missing(reasons: Mapping[str, str], slow: Mapping[str, str], *, named: bool) -> list[str]:
    """Return a line on what was not run: each metric that the user named, or else counts by reason."""
    parts = []
    if reasons:
        each = f"Not run: {'; '.join(f'{name}: {why}' for name, why in reasons.items())}"
        parts.append(each if named else f"{not_run(reasons)}; `comperdial doctor` lists what is missing")
    if slow:
        of_each = ", ".join(f"{name} ({time})" for name, time in slow.items())
        parts.append(f"Left out, since all would take over a minute: {of_each}; `--metrics NAME` includes one")
    return [". ".join(parts)] if parts else []


def _corrected(correction: str, pairs: pd.DataFrame, against: str | None) -> str:
    """Describe the number of tests in the correction."""
    if pairs.empty or pairs["tests"].max() < 2:
        return "No p is corrected: no block has more than one tested pair by a coefficient"
    which = f"comparisons with {against}, and no others," if against else "all pairs"
    tests = f"{which} of a block and coefficient: {over_tests(pairs['tests'].to_dict())}"
    return str(NOTES["corrected"][correction].format(tests))
