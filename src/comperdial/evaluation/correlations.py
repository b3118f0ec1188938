"""How well each metric agrees with the ratings: table ``correlations``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.core.names import Output, output_name
from comperdial.evaluation.expected import Expected
from comperdial.evaluation.leave_out import leave_one_system_out
from comperdial.evaluation.samples import FEWEST_SYSTEMS, HUMAN, Sample
from comperdial.schema.tables import OVER
from comperdial.stats import COEFFICIENTS, FEW_SYSTEMS, OF_SYSTEMS, TESTED_OF_FEW, Coefficient, Measure, PairMeasure
from comperdial.stats.correlation import MOST_EXACT, correlate, exact_p
from comperdial.stats.intervals import intervals
from comperdial.stats.jackknife import Replicates
from comperdial.stats.means import paired_means
from comperdial.stats.pairs import Grouping, replicates

Floats = npt.NDArray[np.float64]

FEWEST_DIALOGUES = 4
"""Below so many dialogues there is no interval and no test: resampling so few gives one without width."""

WITHIN_ITEMS: tuple[Measure, ...] = (*COEFFICIENTS, "tau_c", "tau_23", "pairwise_pearson", "acc_eq")
# What outputs that only studies show have intervals and tests of.
SHOWN: tuple[Coefficient, ...] = ("pearson", "spearman")
WITHIN_SYSTEMS: tuple[Measure, ...] = (*COEFFICIENTS, "acc_eq")


# Statistics within items or systems, or of pairs of systems, by sample and grouping: of which outputs, and the statistics.
Known = dict[tuple[str, ...], tuple[tuple[Output, ...], dict[Measure, Replicates]]]


@dataclass(frozen=True)
class Detail:
    """What is computed beyond values and p-values, and for what.

    Attributes
    ----------
    outputs
        (metric, output) of the scores that get intervals, tests and the measures of pairs and items; None: all.
    targets
        The rated dimensions for which they get them; None: all.
    resamples, seed
        How many resamples an interval, a test or a soft accuracy is made of, and their seed.
    tests
        Which of ``OF_SYSTEMS`` are tested however many systems there are.
    only
        Nothing but these, over units or the means of systems; None: all that there is.
    also
        Outputs that studies show: at the level that was rated, they get intervals of Pearson and Spearman, and tests of these.
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
        """Return which of Pearson, Spearman and Kendall are looked at over units or the means of systems."""
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
        """Return the detail that ``metric:output`` texts name."""
        chosen = None if outputs is None else [output_name(name) for name in outputs]
        if resamples < 2:
            raise ConfigError(f"{resamples} resamples", expected="2 or more")
        if seed < 0:
            raise ConfigError(f"seed {seed}", expected="0 or more")
        return cls(chosen, targets, resamples, seed, tests, only)

    def check(self, samples: Sequence[Sample], *, allow_missing: bool = False) -> None:
        """Refuse an output or a dimension that no sample has, so that a typing error does not pass for a result.

        With ``allow_missing`` outputs may be without scores, and there may be no samples at all.
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
        """Return the part of a sample that is looked at in detail; None if there is none."""
        if self.targets is not None and sample.target not in self.targets:
            return None
        if self.outputs is None:
            return sample if sample.names else None
        part = sample.only([*self.outputs, HUMAN])
        return part if part.names else None

    def shown(self, sample: Sample) -> Sample | None:
        """Return the part of a sample that has intervals and tests of Pearson and Spearman; None if there is none."""
        if self.outputs is None or not self.also or sample.level != sample.against:
            return self.of(sample)
        return replace(self, outputs=[*self.outputs, *self.also]).of(sample)


def correlations(
    samples: Iterable[Sample],
    *,
    detail: Detail | None = None,
    expected: Expected | None = None,
    known: Known | None = None,
) -> pd.DataFrame:
    """Correlate every output of every metric with the mean rating.

    Parameters
    ----------
    samples
        As :func:`comperdial.evaluation.samples` gives them.
    detail
        With it: intervals, statistics within items and within systems, and of pairs of systems, for what it names.
    expected
        With it: a row for each output that was to have scores and has none, and what those without a score lack.
    known
        An empty mapping, which is filled with what :func:`comperdial.evaluation.comparisons` of the same samples and detail
        need not compute again.

    Returns
    -------
    DataFrame
        Table ``correlations``. ``n`` counts complete pairs: units, or systems at system level, or, where the grouping
        is ``item`` or ``system``, the items or systems averaged over. ``coverage`` is the share of the rated units that
        have a score; ``cut`` counts the scored ones whose input did not fit the metric's model. p is scipy's, for
        independent pairs, as the papers' is. Pooled coefficients have their lowest value without one of the systems
        (:func:`comperdial.evaluation.leave_out.leave_one_system_out`).
    """
    rows: list[dict[str, Any]] = []
    for sample in samples:
        first = len(rows)
        part = detail.of(sample) if detail else None
        bounds = _bounds(sample, detail) if detail else {}
        pooled = _pooled(sample, detail)
        rows += [row | bounds.get((row["metric"], row["output"], row["coefficient"]), {}) for row in pooled]
        if part and detail:
            rows += _grouped(part, detail, known)
        if expected:
            rows[first:] = _explained(rows[first:], sample, expected)
    return schema.validate(pd.DataFrame(rows, columns=schema.table("correlations").columns), "correlations")


def rows_of(
    sample: Sample,
    grouping: str,
    coefficient: str,
    values: Floats,
    counts: npt.NDArray[np.intp],
    **more: npt.NDArray[Any],
) -> list[dict[str, Any]]:
    """Return a row of table ``correlations`` for each output, given a value and a count of each."""
    rows = []
    for row, (metric, output) in enumerate(sample.names):
        rows.append(
            sample.key
            | {"metric": metric, "output": output, "grouping": grouping, "coefficient": coefficient}
            | {"value": values[row], "n": counts[row], "coverage": sample.coverage[row], "cut": sample.cut[row]}
            | {"signature": sample.signatures[row]}
            | {name: column[row] for name, column in more.items()}
        )
    return rows


def _pooled(sample: Sample, detail: Detail | None) -> list[dict[str, Any]]:
    rows = []
    pairs = [paired(sample, row) for row in range(len(sample.names))]
    counts = np.array([len(x) for x, _ in pairs], dtype=np.intp)
    # Two systems always correlate perfectly.
    few = (counts < FEWEST_SYSTEMS) & sample.design.average
    exact = sample.level == "system" and detail is not None and sample.target in (detail.targets or [sample.target])
    for name in detail.coefficients if detail else COEFFICIENTS:
        result = [correlate(x, y, name) for x, y in pairs]
        values = np.where(few, np.nan, [one.value for one in result])
        p = np.where(few, np.nan, [one.p for one in result])
        exactly = [exact_p(x, y, name) if exact and len(x) <= MOST_EXACT else np.nan for x, y in pairs]
        more = {"p": p, "p_exact": np.array(exactly), **leave_one_system_out(sample, name, values)}
        rows += rows_of(sample, "pooled", name, values, counts, **more)
    return rows


def _explained(rows: list[dict[str, Any]], sample: Sample, expected: Expected) -> list[dict[str, Any]]:
    """Add what units without a score lack, and a row without a value for each output that has no score at all."""
    unscored = dict(zip(sample.names, np.isnan(sample.scores), strict=True))
    lacking = {name: expected.lacking(sample, name, missing) for name, missing in unscored.items()}
    result = [row | {"lacking": lacking[row["metric"], row["output"]]} for row in rows]
    everyone = np.ones(len(sample.units), dtype=np.bool_)
    for metric, output in expected.without_scores(sample):
        none = {"value": np.nan, "n": 0, "coverage": 0.0, "cut": 0, "signature": expected.signatures[metric]}
        none["lacking"] = expected.lacking(sample, (metric, output), everyone)
        named = {"metric": metric, "output": output, "grouping": "pooled"}
        result += [sample.key | named | {"coefficient": name} | none for name in COEFFICIENTS]
    return result


def is_narrow(sample: Sample) -> bool:
    """Return whether a sample has too few dialogues, or contexts where a dialogue has one, for an interval or a test."""
    return bool(sample.design.counts[1] < FEWEST_DIALOGUES)


def _bounds(sample: Sample, detail: Detail) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the ends of the intervals, and what they are over, by metric, output and coefficient; none of a narrow sample."""
    if is_narrow(sample):
        return {}
    part, whole = detail.of(sample), detail.shown(sample)
    result = _ends(part, detail.coefficients, detail) if part else {}
    others = whole.only([name for name in whole.names if not part or name not in part.names]) if whole else None
    return result | (_ends(others, SHOWN, detail) if others and others.names else {})


def _ends(sample: Sample, names: Sequence[Coefficient], detail: Detail) -> dict[tuple[str, str, str], dict[str, Any]]:
    result = intervals(
        sample.scores, sample.ratings, sample.design, names, resamples=detail.resamples, seed=detail.seed
    )
    over = [
        OVER[1] if given else OVER[0] if systems > 1 else OVER[2]
        for systems, given in zip(result.systems, result.given, strict=True)
    ]
    return {
        (metric, output, name): {
            "low": result.low[row, column],
            "high": result.high[row, column],
            "over": None if np.isnan(result.low[row, column]) else over[row],
        }
        for row, (metric, output) in enumerate(sample.names)
        for column, name in enumerate(names)
    }


def paired(sample: Sample, row: int) -> tuple[Floats, Floats]:
    """Return the complete pairs of score and rating of one output: of units, or of systems' means at system level."""
    if not sample.design.average:
        kept = ~np.isnan(sample.scores[row])
        return sample.scores[row, kept], sample.ratings[kept]
    x, y = paired_means(sample.scores[row : row + 1], sample.ratings, sample.design)
    there = ~np.isnan(x[0])
    return x[0, there], y[0, there]


def grouped_measures(sample: Sample) -> list[tuple[Grouping, Measure]]:
    """Return what is computed of a sample within items, within systems, or of pairs of systems."""
    if sample.design.average:
        return [("pooled", measure) for measure in OF_SYSTEMS]
    return [*(("item", measure) for measure in WITHIN_ITEMS), *(("system", measure) for measure in WITHIN_SYSTEMS)]


def tested_measures(sample: Sample, detail: Detail) -> list[tuple[Grouping, Measure]]:
    """Return which of these have tests and ranks."""
    few = TESTED_OF_FEW if len(sample.systems) <= FEW_SYSTEMS else ()
    return [
        (grouping, measure)
        for grouping, measure in grouped_measures(sample)
        if grouping != "pooled" or measure in detail.tests or measure in few
    ]


def _grouped(sample: Sample, detail: Detail, known: Known | None) -> list[dict[str, Any]]:
    rows = []
    measures = [
        (grouping, measure)
        for grouping, measure in grouped_measures(sample)
        if detail.only is None or (grouping == "pooled" and measure in detail.only)
    ]
    for grouping in dict.fromkeys(grouping for grouping, _ in measures):
        together = [measure for of, measure in measures if of == grouping]
        result = replicates(
            sample.scores, sample.ratings, sample.design, sample.items, together, grouping,
            resamples=detail.resamples, seed=detail.seed,
        )  # fmt: skip
        if known is not None:
            known[*sample.key.values(), grouping] = sample.names, result
        for measure, one in result.items():
            few = (one.n < FEWEST_SYSTEMS) & sample.design.average
            rows += rows_of(sample, grouping, measure, np.where(few, np.nan, one.values), one.n)
    return rows
