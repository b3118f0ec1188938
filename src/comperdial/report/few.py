"""How tables show a correlation of a few points: two digits, how many there are, and the exact p where it can be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from comperdial import schema
from comperdial.stats import COEFFICIENTS
from comperdial.stats.exact import MOST, exact_p

if TYPE_CHECKING:
    from comperdial.evaluation.samples import Sample
    from comperdial.jobs.plan import Plan

FEW = 10
"""A value of so many points or fewer is shown with two digits, and says of how many it is."""
NOTE = (
    f"A value of {FEW} systems or fewer has two digits and says how many there are (n). Its p is exact where it stands: "
    "the share of all orders of the systems that would correlate as strongly or more. Of four systems no ranking has a p "
    "below 0.08, of five none below 0.02"
)
_KEY = ["dataset", "level", "against", "target", "metric", "output", "coefficient"]


def is_few(record: Mapping[Any, Any]) -> bool:
    """Say whether a correlation is of so few points that it must say so."""
    n = record.get("n")
    return n is not None and not pd.isna(n) and n <= FEW


def size(record: Mapping[Any, Any]) -> str:
    """Write what follows the value of a few points: `` (n 5, p 0.08)``."""
    p = record.get("p_exact")
    return f" (n {record['n']:.0f})" if p is None or pd.isna(p) else f" (n {record['n']:.0f}, p {_written(p)})"


def _written(p: float) -> str:
    return f"{p:.2f}" if p >= 0.095 else f"{p:.1g}"


def inputs(plan: Plan, datasets: Sequence[str]) -> dict[str, list[str]]:
    """Return the files that exact p-values are computed from: scores, and ratings with what they are of."""
    return {
        "scores": [path for name in datasets for path in plan.scores(name)],
        "rated": [path for name in datasets for path in plan.tables(name, "contexts", "systems", "ratings").values()],
    }


def with_exact_p(
    correlations: pd.DataFrame, scores: Sequence[Path], rated: Sequence[Path], *, source: str
) -> pd.DataFrame:
    """Add column ``p_exact`` to table ``correlations``: of pooled coefficients over a few systems, missing elsewhere.

    Parameters
    ----------
    correlations
        The table, of one dimension or more.
    scores, rated
        The files that :func:`inputs` names: those of a data set in a folder of its name, scores in ``scores`` there.
        They are read only where there is a value of a few systems.
    source
        Whose ratings.
    """
    few = (
        (correlations["level"] == "system")
        & correlations["n"].between(2, MOST)
        & (correlations["grouping"] == "pooled")
        & correlations["coefficient"].isin(list(COEFFICIENTS))
        & correlations["value"].notna()
    )
    found: dict[tuple[str, ...], float] = {}
    for (dataset, target), _ in correlations[few].groupby(["dataset", "target"], observed=True):
        files = {path.stem: path for path in rated if path.parent.name == dataset}
        own = [path for path in scores if dataset in (path.parent.name, path.parent.parent.name)]
        found |= _of_dataset(own, files, str(target), source)
    return with_p(correlations, found)


def with_p(correlations: pd.DataFrame, found: Mapping[tuple[str, ...], float]) -> pd.DataFrame:
    """Add column ``p_exact``: what :func:`exact_of` returned, of pooled coefficients, missing elsewhere."""
    keys = correlations[_KEY].astype(str).itertuples(index=False, name=None)
    pooled = correlations["grouping"] == "pooled"
    values = [found.get(key) if one else None for key, one in zip(keys, pooled, strict=True)]
    return correlations.assign(p_exact=pd.array(values, dtype="Float64").to_numpy("float64", na_value=float("nan")))


def _of_dataset(
    scores: Sequence[Path], files: Mapping[str, Path], target: str, source: str
) -> dict[tuple[str, ...], float]:
    from comperdial.evaluation import samples
    from comperdial.evaluation.aggregate import read_scores

    return exact_of(
        samples(
            read_scores(scores),
            schema.read(files["ratings"], "ratings"),
            contexts=schema.read(files["contexts"], "contexts"),
            systems=schema.read(files["systems"], "systems"),
            source=source,
            levels=["system"],
            targets=[target],
            allow_missing=True,
        )
    )


def exact_of(samples: Iterable[Sample]) -> dict[tuple[str, ...], float]:
    """Return the exact p of each coefficient of each output over at most :data:`comperdial.stats.exact.MOST` systems.

    Keys: dataset, level, against, target, metric, output, coefficient.
    """
    from comperdial.evaluation.correlations import paired

    found = {}
    for sample in samples:
        for row, name in enumerate(sample.names):
            x, y = paired(sample, row)
            if 2 <= len(x) <= MOST:
                for coefficient in COEFFICIENTS:
                    found[(*sample.key.values(), *name, coefficient)] = exact_p(x, y, coefficient)
    return found
