"""Agreement of each metric with the ratings: table ``correlations``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.samples import FEWEST_SYSTEMS, HUMAN, Sample
from comperdial.schema.tables import OVER
from comperdial.stats import COEFFICIENTS, FEW_SYSTEMS, OF_SYSTEMS, TESTED_OF_FEW, Coefficient, Measure, PairMeasure
from comperdial.stats.coefficients import without_each
from comperdial.stats.correlation import MOST_EXACT, correlate, exact_p
from comperdial.stats.design import by_units
from comperdial.stats.intervals import intervals
from comperdial.stats.jackknife import Replicates
from comperdial.stats.means import paired, paired_means
from comperdial.stats.pairs import Grouping, replicates

Floats = npt.NDArray[np.float64]

FEWEST_DIALOGUES = 4
"""Below so many dialogues there is no interval and no test: resampling so few gives one without width."""

WITHIN_ITEMS: tuple[Measure, ...] = (*COEFFICIENTS, "tau_c", "tau_23", "pairwise_pearson", "acc_eq")
WITHIN_SYSTEMS: tuple[Measure, ...] = (*COEFFICIENTS, "acc_eq")
# Coefficients with intervals and tests for outputs that only studies show.
SHOWN: tuple[Coefficient, ...] = ("pearson", "spearman")
# Minimum systems left when one is left out. Over units two, since a single one has no differences between systems. Over system
# means four, since three points often correlate by chance.
_FEWEST_LEFT = {False: 2, True: 4}
# Values closer than this count as equally low: the first system is named, whatever the machine's rounding.
_SAME = 1e-12


@dataclass(frozen=True)
class Detail:
    """What to compute beyond values and p-values.

    Attributes
    ----------
    outputs, targets
        (metric, output) of the scores, and the rated dimensions, that get intervals, tests and the measures of pairs and items;
        None: all.
    resamples, seed
        For intervals, tests and soft accuracies.
    tests
        Measures of ``OF_SYSTEMS`` to test whatever the number of systems.
    only
        Compute only these, over units or system means; None: everything.
    also
        Outputs that studies show: at the rated level they get intervals of Pearson and Spearman, and tests of these.
    """

    outputs: Sequence[tuple[str, str]] | None = None
    targets: Sequence[str] | None = None
    resamples: int = 1000
    seed: int = 2024
    tests: Sequence[PairMeasure] = ()
    only: Sequence[Measure] | None = None
    also: Sequence[Output] = ()

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """Return the coefficients to compute over units or system means."""
        return tuple(name for name in COEFFICIENTS if self.only is None or name in self.only)

    @classmethod
    def named(
        cls,
        outputs: Sequence[str] | None,
        targets: Sequence[str] | None,
        resamples: int,
        seed: int,
        tests: Sequence[PairMeasure] = (),
        only: Sequence[Measure] | None = None,
    ) -> Detail:
        """Return the detail for ``metric:output`` names."""
        chosen = None if outputs is None else [output_name(name) for name in outputs]
        if resamples < 2:
            raise ConfigError(f"{resamples} resamples", expected="2 or more")
        if seed < 0:
            raise ConfigError(f"seed {seed}", expected="0 or more")
        return cls(chosen, targets, resamples, seed, tests, only)

    def check(self, samples: Sequence[Sample], *, allow_missing: bool = False) -> None:
        """Reject an output or a dimension that no sample has, so that a typo is not mistaken for a result.

        With ``allow_missing`` outputs may lack scores, and there may be no samples.
        """
        names = {":".join(name) for sample in samples for name in sample.names}
        for output in () if allow_missing else self.outputs or ():
            if ":".join(output) not in names:
                raise UnknownNameError("output", ":".join(output), sorted(names), where="--outputs")
        targets = {sample.target for sample in samples}
        for target in self.targets or ():
            if target not in targets and (samples or not allow_missing):
                raise UnknownNameError("dimension", target, sorted(targets), where="--detail-target")

    def of(self, sample: Sample) -> Sample | None:
        """Return the part of a sample that gets full detail; None if there is none."""
        if self.targets is not None and sample.target not in self.targets:
            return None
        if self.outputs is None:
            return sample if sample.names else None
        part = sample.only([*self.outputs, HUMAN])
        return part if part.names else None

    def shown(self, sample: Sample) -> Sample | None:
        """Return the part of a sample that gets intervals and tests of Pearson and Spearman; None if there is none."""
        if self.outputs is None or not self.also or sample.level != sample.against:
            return self.of(sample)
        return replace(self, outputs=[*self.outputs, *self.also]).of(sample)


# Statistics within items or systems, or of pairs of systems, by grouping.
Grouped = Callable[[Grouping], dict[Measure, Replicates]]


def correlations(
    samples: Iterable[Sample], *, detail: Detail | None = None, expected: Expected | None = None
) -> pd.DataFrame:
    """Correlate every output of every metric with the mean rating.

    With ``detail``: intervals, and statistics within items, within systems and over pairs of systems, for the outputs and
    dimensions it names. With ``expected``: a row for each expected output without scores, and the inputs that unscored units
    lack.

    Returns
    -------
    DataFrame
        Table ``correlations``. ``n`` counts complete pairs: units, or systems at system level, or, for grouping ``item`` or
        ``system``, the items or systems averaged over. ``coverage`` is the share of rated units with a score; ``cut`` counts
        scored units whose input was truncated. p is scipy's, for independent pairs, as in the papers. ``loso_value`` of pooled
        coefficients is the weakest value with one system left out, ``loso_system`` that system: the smallest value if all are
        positive, the largest if all are negative. If leaving out a system leaves no coefficient, it is named, and the value
        missing. Both are missing with fewer than three systems (at system level: five), and if the coefficient is 0 or missing.
    """
    rows = [
        row for sample in samples for row in value_rows(sample, detail, expected, grouped_statistics(sample, detail))
    ]
    return schema.validate(pd.DataFrame(rows, columns=schema.table("correlations").columns), "correlations")


def grouped_statistics(sample: Sample, detail: Detail | None) -> Grouped:
    """Return a function that computes the detailed statistics of a grouping once."""

    @cache
    def grouped(grouping: Grouping) -> dict[Measure, Replicates]:
        part = detail.of(sample) if detail else None
        measures = [measure for of, measure in grouped_measures(part, detail) if of == grouping] if part else []
        if not part or not detail or not measures:
            return {}
        how = {"resamples": detail.resamples, "seed": detail.seed}
        return replicates(part.scores, part.ratings, part.design, part.items, measures, grouping, **how)

    return grouped


def value_rows(
    sample: Sample, detail: Detail | None, expected: Expected | None, grouped: Grouped
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one sample."""
    bounds = _bounds(sample, detail) if detail else {}
    rows = [row | bounds.get((row["metric"], row["output"], row["coefficient"]), {}) for row in _pooled(sample, detail)]
    if detail and (part := detail.of(sample)):
        for grouping in dict.fromkeys(grouping for grouping, _ in grouped_measures(part, detail)):
            for measure, result in grouped(grouping).items():
                few = (result.n < FEWEST_SYSTEMS) & part.design.average
                rows += rows_of(part, grouping, measure, np.where(few, np.nan, result.values), result.n)
    if not expected:
        yield from rows
        return
    lacking = {
        name: expected.lacking(sample, name, np.isnan(scores))
        for name, scores in zip(sample.names, sample.scores, strict=True)
    }
    yield from (row | {"lacking": lacking[row["metric"], row["output"]]} for row in rows)
    everyone = np.ones(len(sample.units), dtype=np.bool_)
    for metric, output in expected.without_scores(sample):
        none = {"value": np.nan, "n": 0, "coverage": 0.0, "cut": 0, "signature": expected.signatures[metric]}
        none |= {"metric": metric, "output": output, "grouping": "pooled"}
        none |= {"lacking": expected.lacking(sample, (metric, output), everyone)}
        yield from (sample.key | none | {"coefficient": name} for name in COEFFICIENTS)


def rows_of(
    sample: Sample,
    grouping: str,
    coefficient: str,
    values: Floats,
    counts: npt.NDArray[np.intp],
    **more: npt.NDArray[Any],
) -> list[dict[str, Any]]:
    """Return a row of table ``correlations`` for each output, with its value and count."""
    same = sample.key | {"grouping": grouping, "coefficient": coefficient}
    columns: dict[str, Any] = {"value": values, "n": counts, "coverage": sample.coverage, "cut": sample.cut} | more
    return [
        same
        | {"metric": metric, "output": output, "signature": sample.signatures[row]}
        | {name: column[row] for name, column in columns.items()}
        for row, (metric, output) in enumerate(sample.names)
    ]


def _pooled(sample: Sample, detail: Detail | None) -> Iterator[dict[str, Any]]:
    sides = paired(sample.scores, sample.ratings, sample.design)
    counts = np.array([len(x) for x, _ in sides], dtype=np.intp)
    # Two systems always correlate perfectly.
    few = (counts < FEWEST_SYSTEMS) & sample.design.average
    exact = sample.level == "system" and detail is not None and sample.target in (detail.targets or [sample.target])
    for name in detail.coefficients if detail else COEFFICIENTS:
        result = [correlate(x, y, name) for x, y in sides]
        values, p = np.where(few, np.nan, [[one.value for one in result], [one.p for one in result]])
        exactly = [exact_p(x, y, name) if exact and len(x) <= MOST_EXACT else np.nan for x, y in sides]
        yield from rows_of(
            sample, "pooled", name, values, counts,
            p=p, p_exact=np.array(exactly), **_without_a_system(sample, name, values),
        )  # fmt: skip


def _without_a_system(sample: Sample, name: Coefficient, values: Floats) -> dict[str, npt.NDArray[Any]]:
    """Return columns ``loso_value`` and ``loso_system``."""
    count = len(sample.systems)
    if sample.design.average:
        scores, ratings = paired_means(sample.scores, sample.ratings, sample.design)
        without = np.full(scores.shape, np.nan)
        # Outputs that scored the same units have the same mean ratings.
        for rows, _ in by_units(sample.scores):
            without[rows] = without_each(scores[rows], ratings[rows[0]], np.arange(count), name)
        scored = ~np.isnan(scores)
    else:
        # By name, since a design may merge systems.
        systems = np.searchsorted(np.asarray(sample.systems), [system for _, system in sample.units])
        without = without_each(sample.scores, sample.ratings, systems, name)
        scored = np.array([np.bincount(systems[~np.isnan(row)], minlength=count) > 0 for row in sample.scores])
    lowest, named = np.full(len(values), np.nan), np.full(len(values), None, dtype=object)
    for row, sign in enumerate(np.sign(values)):
        if abs(sign) == 1 and scored[row].sum() > _FEWEST_LEFT[sample.design.average]:
            towards = np.where(np.isnan(without[row]), -np.inf, without[row] * sign)
            towards = np.where(scored[row], towards, np.inf)
            at = int(np.argmax(towards <= towards.min() + _SAME))
            lowest[row], named[row] = without[row, at], sample.systems[at]
    return {"loso_value": lowest, "loso_system": named}


def is_narrow(sample: Sample) -> bool:
    """Return whether a sample has too few dialogues for an interval or a test (contexts, if each dialogue has only one)."""
    return bool(sample.design.counts[1] < FEWEST_DIALOGUES)


def _bounds(sample: Sample, detail: Detail) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the interval ends and what they are over, by metric, output and coefficient; empty for a narrow sample."""
    if is_narrow(sample):
        return {}
    part, whole = detail.of(sample), detail.shown(sample)
    result = _ends(part, detail.coefficients, detail) if part else {}
    others = whole.only([name for name in whole.names if not part or name not in part.names]) if whole else None
    return result | (_ends(others, SHOWN, detail) if others and others.names else {})


def _ends(sample: Sample, names: Sequence[Coefficient], detail: Detail) -> dict[tuple[str, str, str], dict[str, Any]]:
    how = {"resamples": detail.resamples, "seed": detail.seed}
    result = intervals(sample.scores, sample.ratings, sample.design, names, **how)
    ends: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row, (metric, output) in enumerate(sample.names):
        over = OVER[1] if result.given[row] else OVER[0] if result.systems[row] > 1 else OVER[2]
        for column, name in enumerate(names):
            low, high = result.low[row, column], result.high[row, column]
            ends[metric, output, name] = {"low": low, "high": high, "over": None if np.isnan(low) else over}
    return ends


def grouped_measures(sample: Sample, detail: Detail | None = None) -> list[tuple[Grouping, Measure]]:
    """Return the statistics to compute within items, within systems, or over pairs of systems."""
    only = detail.only if detail else None
    if sample.design.average:
        return [("pooled", measure) for measure in OF_SYSTEMS if only is None or measure in only]
    if only is not None:
        return []
    return [*(("item", measure) for measure in WITHIN_ITEMS), *(("system", measure) for measure in WITHIN_SYSTEMS)]


def tested_measures(sample: Sample, detail: Detail) -> list[tuple[Grouping, Measure]]:
    """Return the measures of :func:`grouped_measures` that get tests and ranks."""
    few = TESTED_OF_FEW if len(sample.systems) <= FEW_SYSTEMS else ()
    return [
        (grouping, measure)
        for grouping, measure in grouped_measures(sample, detail)
        if grouping != "pooled" or detail.only is not None or measure in (*detail.tests, *few)
    ]
