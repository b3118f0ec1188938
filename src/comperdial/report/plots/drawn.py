"""The figures of any data set that has what they show (``report/dataset.yaml`` declares them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.names import Output
from comperdial.report.about import About
from comperdial.report.plots import data
from comperdial.report.plots.style import parse_outputs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Inputs = Mapping[str, Sequence[Path]]
Study = Mapping[str, Any]


class _Shown:
    """What is drawn of a data set: which outputs, of the ratings by whom in which dimension."""

    def __init__(self, inputs: Inputs, study: Study) -> None:
        self._inputs = inputs
        self._about = About.read(inputs["about"])
        self.about = self._about.only
        self.outputs: list[str] = self.about["figure_outputs"].get(study["entry"]["name"], [])
        self.source: str = self.about["source"]

    @property
    def names(self) -> list[Output] | None:
        """Return the outputs; None for all."""
        return parse_outputs(self.outputs) or None

    @property
    def titled(self) -> dict[str, Any]:
        """Return what each drawing needs."""
        return {
            "title": self.about["title"],
            "labels": self.about["labels"],
            "simulated": self.source == "simulated",
        }

    @property
    def drawn(self) -> dict[str, int]:
        """Return how many resamples the intervals of a figure are made of, and their seed."""
        return {"resamples": self.about["resamples"], "seed": self.about["seed"]}

    def dimension(self, rated: Any) -> str:  # noqa: ANN401 - names in a frame or a set
        """Return the dimension that is drawn, of those that were rated."""
        return self._about.dimension(self.about["dataset"], rated)

    def tables(self) -> data.Tables:
        """Return the data set's tables, read."""
        return data.read_tables(self._inputs["contexts"][0].parent, self.source)

    def scores(self, outputs: Sequence[Output] | None) -> pd.DataFrame:
        """Return the scores of some outputs, or of all."""
        metrics = {metric for metric, _ in outputs or ()}
        paths = [path for path in self._inputs["scores"] if not metrics or path.stem in metrics]
        return data.read_scores_of(paths, outputs)

    def sample(self, level: str) -> tuple[data.Tables, str, Any]:
        """Return the tables, the dimension, and the scores beside the ratings at a level."""
        tables = self.tables()
        wanted = self.dimension(tables.dimensions(self.source))
        return (
            tables,
            wanted,
            data.one_sample(self.scores(self.names), tables, level=level, target=wanted, source=self.source),
        )


def _correlations(inputs: Inputs) -> pd.DataFrame:
    found = schema.read(inputs["correlations"][0], "correlations")
    if found.empty:
        raise NothingToShowError("there are no ratings that scores could be correlated with")
    return found


def heatmap(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw a data set's correlations as a heat map."""
    from comperdial.report.plots import heatmap as drawn

    shown, found = _Shown(inputs, study), _correlations(inputs)
    wanted = shown.dimension(found["target"])
    ceilings = schema.read(inputs["ceilings"][0], "ceilings")
    frame = drawn.heatmap_frame(found, ceilings, target=wanted, outputs=shown.names, order=None)
    return drawn.heatmap_figure(frame, target=wanted, **shown.titled), frame


def scatter(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw scores against ratings."""
    from comperdial.report.plots import scatter as drawn

    shown = _Shown(inputs, study)
    tables, _, sample = shown.sample("turn")
    found, human = _correlations(inputs), data.human_systems(tables.systems)
    frame = drawn.scatter_frame(sample, found, outputs=shown.names, human=human)
    return drawn.scatter_figure(frame, sample, **shown.titled), frame


def slope(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the systems as ranked by people and by metrics."""
    from comperdial.report.plots import slope as drawn

    shown = _Shown(inputs, study)
    tables, wanted, sample = shown.sample("system")
    human = data.human_systems(tables.systems)
    frame = drawn.slope_frame(sample, outputs=shown.names, human=human, count=6)
    return drawn.slope_figure(frame, target=wanted, against=sample.against, **shown.titled), frame


def length_bias(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how scores depend on the length of responses."""
    from comperdial.report.plots import length_bias as drawn

    shown = _Shown(inputs, study)
    tables = shown.tables()
    found = drawn.with_lengths(shown.scores(shown.names), tables.responses)
    wanted = shown.dimension(tables.dimensions(shown.source))
    sample = data.one_sample(found, tables, level="turn", target=wanted, source=shown.source)
    frame = drawn.length_bias_frame(sample, outputs=shown.names, **shown.drawn)
    return drawn.length_bias_figure(frame, target=wanted, **shown.titled), frame


def judge_agreement(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how judges, metrics and people agree."""
    from comperdial.report.plots import judge_agreement as drawn

    shown = _Shown(inputs, study)
    asked = parse_outputs(shown.about["judge_outputs"])
    judges = {metric for metric, _ in asked}
    others = judges | {*shown.about["judged"]}
    metrics = [name for name in parse_outputs(shown.outputs) if name[0] not in others]
    tables = shown.tables()
    samples = data.turn_samples(shown.scores([*asked, *metrics]), tables, source=shown.source)
    frame = drawn.judge_agreement_frame(samples, judges=asked, metrics=metrics)
    answers = data.read_answers([path for path in inputs["judgements"] if path.stem in judges], asked, tables.contexts)
    alphas = drawn.alpha_frame(samples, answers, judges=asked, **shown.drawn)
    return drawn.judge_agreement_figure(frame, alphas, **shown.titled), drawn.joined(frame, alphas)


def curves(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw learning curves, and the power of comparisons."""
    from comperdial.report.plots import curves as drawn

    shown, found = _Shown(inputs, study), schema.read(inputs["curves"][0], "curves")
    wanted, coefficient = shown.dimension(found["target"]), shown.about["coefficient"]
    frame = drawn.curves_frame(
        found,
        schema.read(inputs["power"][0], "power"),
        target=wanted,
        outputs=shown.names,
        level=None,
        against=None,
        coefficient=coefficient,
    )
    return drawn.curves_figure(frame, target=wanted, coefficient=coefficient, **shown.titled), frame
