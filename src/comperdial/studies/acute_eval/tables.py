"""The study's tables and figures: public preferences, next to what the paper's text prints, and never under one heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from comperdial.core.artifact import figure, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from comperdial.data.readers.ieval import IEval
    from comperdial.evaluation.preferences import Votes
    from comperdial.jobs.plan import Plan
    from comperdial.report.document import Document

_NAME = "acute_eval"
_FOLDER = f"src/comperdial/studies/{_NAME}"
_CATEGORY = "ACUTE-Eval"
# The sets in which dialogues are compared, and the question of each that is nearest to overall quality.
_QUESTIONS = {
    "ieval": "overall",
    "spot_the_bot_convai2": "humanness",
    "spot_the_bot_dailydialog": "humanness",
    "spot_the_bot_empathetic": "humanness",
}
# Those of which judges' choices were recorded.
_JUDGED = ("llmbar_natural", "llmbar_mt_bench", "llmfao")
# The pair of systems of which the paper draws its curve is a close one; these are iEval's closest three.
_CLOSE = (("Green", "Pink"), ("Green", "Yellow"), ("Pink", "Yellow"))


def _sets(plan: Plan) -> list[str]:
    return [name for name in _QUESTIONS if name in plan.catalogue.datasets]


def _judged(plan: Plan) -> list[str]:
    return [name for name in _JUDGED if name in plan.catalogue.datasets]


def _raw(plan: Plan, datasets: Sequence[str]) -> list[str]:
    from comperdial.data.sources import raw_path

    return list(
        dict.fromkeys(str(raw_path(file)) for name in datasets for file in plan.catalogue.dataset(name).files.values())
    )


def _told(plan: Plan, datasets: Sequence[str]) -> dict[str, Any]:
    """Return what a job is told: the sets with their titles, what they are read from, and how to draw."""
    return {
        "titles": {name: plan.catalogue.dataset(name).title for name in datasets},
        "catalogue": plan.config["catalogue"],
        **{key: plan.config["studies"][_NAME][key] for key in ("resamples", "seed")},
    }


def _votes(name: str, catalogue: str, question: str | None = None) -> Votes:
    from comperdial.data.preferences import preference_reader
    from comperdial.evaluation.preferences import votes_of

    made = preference_reader(name, catalogue=catalogue).preferences()
    return votes_of(made, question=question or _QUESTIONS[name])


# What has to be chosen for these to be made with the rest: sets of preferences, hence never.
_SHOWN = (*_QUESTIONS, *_JUDGED)


def _once(plan: Plan) -> list[dict[str, str]]:
    return [{}] if len(_sets(plan)) == len(_QUESTIONS) else []


@table(
    f"studies/{_NAME}/tables/{_NAME}_{{dataset}}",
    of=_sets,
    datasets=lambda plan, dataset: _SHOWN,
    inputs=lambda plan, dataset: {"raw": _raw(plan, [dataset])},
    settings=lambda plan, dataset: {"dataset": dataset, **_told(plan, [dataset])},
    code=lambda plan, dataset: [f"data.readers.{plan.catalogue.dataset(dataset).reader}"],
    libraries=("scipy",),
    caption="Who is preferred to whom, how strong each system is, and whether annotators agree.",
    category=_CATEGORY,
)
def preferences(
    *, raw: Sequence[Path], dataset: str, titles: Mapping[str, str], catalogue: str, resamples: int, seed: int
) -> Document:
    """Show what public preferences say of the systems that they compare."""
    from comperdial.report.preferences import preferences_document

    votes = _votes(dataset, catalogue)
    return preferences_document(votes, titles[dataset], resamples=resamples, seed=seed)[0]


_ALL: dict[str, Any] = {
    "of": _once,
    "datasets": lambda plan: _SHOWN,
    "settings": lambda plan: _told(plan, _sets(plan)),
    "code": lambda plan: ["data.readers.ieval", "data.readers.spot_the_bot"],
    "libraries": ("scipy",),
    "category": _CATEGORY,
}


@table(
    f"studies/{_NAME}/tables/{_NAME}",
    inputs=lambda plan: {"raw": _raw(plan, _sets(plan)), "reported": f"{_FOLDER}/reported.csv"},
    caption="What the paper's text reports of its own annotations, and the same questions asked of public ones.",
    **_ALL,
)
def overview(
    *, raw: Sequence[Path], reported: Path, titles: Mapping[str, str], catalogue: str, resamples: int, seed: int
) -> Document:
    """Show what the paper reports, and apart from it what public preferences say."""
    from comperdial.core.files import read_table
    from comperdial.evaluation.preferences import analyse
    from comperdial.studies.acute_eval.results import overview_document

    found = {title: analyse(_votes(name, catalogue), resamples=resamples, seed=seed) for name, title in titles.items()}
    return overview_document(read_table(reported), found)


@figure(
    f"studies/{_NAME}/figures/{_NAME}_matrix",
    inputs=lambda plan: {"raw": _raw(plan, _sets(plan))},
    caption="How often each system is preferred to each other one, on public preferences.",
    **_ALL,
)
def matrices(
    *, raw: Sequence[Path], titles: Mapping[str, str], catalogue: str, resamples: int, seed: int
) -> tuple[Figure, pd.DataFrame]:
    """Draw the win matrices."""
    import pandas as pd

    from comperdial.evaluation.preferences import strongest_first, win_matrix
    from comperdial.report.plots.preferences import matrix_figure

    votes = {title: _votes(name, catalogue) for name, title in titles.items()}
    found = {title: win_matrix(one) for title, one in votes.items()}
    orders = {title: strongest_first(one) for title, one in votes.items()}
    tidy = pd.concat([frame.assign(data=title) for title, frame in found.items()], ignore_index=True)
    return matrix_figure(found, orders), tidy


@figure(
    f"studies/{_NAME}/figures/{_NAME}_strengths",
    inputs=lambda plan: {"raw": _raw(plan, _sets(plan))},
    caption="Bradley-Terry strengths of the systems, with intervals, on public preferences.",
    **_ALL,
)
def strengths_of_systems(
    *, raw: Sequence[Path], titles: Mapping[str, str], catalogue: str, resamples: int, seed: int
) -> tuple[Figure, pd.DataFrame]:
    """Draw the systems' strengths."""
    import pandas as pd

    from comperdial.evaluation.preferences import strengths
    from comperdial.report.plots.preferences import strengths_figure

    found = {title: strengths(_votes(name, catalogue)) for name, title in titles.items()}
    return strengths_figure(found), pd.concat([one.assign(data=title) for title, one in found.items()])


@figure(
    f"studies/{_NAME}/figures/{_NAME}_hours",
    inputs=lambda plan: {"raw": _raw(plan, _sets(plan))},
    caption="The probability that a study of so many person-hours finds a difference: pairwise next to Likert.",
    **_ALL,
)
def hours(
    *, raw: Sequence[Path], titles: Mapping[str, str], catalogue: str, resamples: int, seed: int
) -> tuple[Figure, pd.DataFrame]:
    """Draw the probability of significance against person-hours, as the paper's figure does."""
    import pandas as pd

    from comperdial.data.preferences import preference_reader
    from comperdial.report.plots.preferences import significance_figure
    from comperdial.studies.acute_eval.results import likert_curves, pairwise_curves

    reader = cast("IEval", preference_reader("ieval", catalogue=catalogue))
    ratings, ranked = reader.ratings(), _votes("ieval", catalogue)
    panels = {f"{titles['ieval']}: {a}, {b}": likert_curves(ranked, ratings, a, b, seed=seed) for a, b in _CLOSE}
    panels |= {
        title: pairwise_curves(_votes(name, catalogue), seed=seed)
        for name, title in titles.items()
        if name.startswith("spot_the_bot")
    }
    curves = pd.concat([frame.assign(panel=title) for title, frame in panels.items()], ignore_index=True)
    notes = (
        "Studies are drawn from the votes that there are. iEval: a worker's whole session counts, which gave the rankings "
        "and the Likert ratings alike (the mean of nine statements); the tests are binomial and paired t. Spot the Bot: the "
        "mean over all pairs of systems."
    )
    return significance_figure(curves, "how likely a study is to find a difference", notes), curves


@table(
    f"studies/{_NAME}/tables/{_NAME}_metrics",
    of=lambda plan: [{}] if "ieval" in _sets(plan) else [],
    datasets=lambda plan: _SHOWN,
    inputs=lambda plan: {"raw": _raw(plan, ["ieval"])},
    settings=lambda plan: _told(plan, ["ieval"]),
    code=lambda plan: ["data.readers.ieval"],
    libraries=("scipy",),
    caption="How often the dialogue with the higher score is the preferred one, next to correlation with ratings.",
    category=_CATEGORY,
)
def metrics(*, raw: Sequence[Path], titles: Mapping[str, str], catalogue: str, resamples: int, seed: int) -> Document:
    """Show which simple properties of a dialogue choose as people do, and whether those that correlate also choose."""
    from comperdial.data.preferences import preference_reader
    from comperdial.studies.acute_eval.results import metrics_document

    reader = cast("IEval", preference_reader("ieval", catalogue=catalogue))
    return metrics_document(
        _votes("ieval", catalogue),
        reader.dialogues(),
        reader.ratings(),
        titles["ieval"],
        resamples=resamples,
        seed=seed,
    )


@table(
    f"studies/{_NAME}/tables/{_NAME}_judges",
    of=lambda plan: [{}] if len(_judged(plan)) == len(_JUDGED) else [],
    datasets=lambda plan: _SHOWN,
    inputs=lambda plan: {
        "raw": [
            *_raw(plan, _judged(plan)),
            *(path for path, file in plan.raw.items() if file.name.startswith("llmbar_")),
        ]
    },
    settings=lambda plan: {"titles": _told(plan, _judged(plan))["titles"], "catalogue": plan.config["catalogue"]},
    code=lambda plan: ["data.readers.llmbar", "data.readers.llmfao"],
    libraries=("scipy",),
    caption="Language models that chose between two: how often they choose as people do, and whether order decides.",
    category=_CATEGORY,
)
def judges(*, raw: Sequence[Path], titles: Mapping[str, str], catalogue: str) -> Document:
    """Show how recorded judges choose."""
    import pandas as pd

    from comperdial.judges.recorded_pairs import judged_pairs
    from comperdial.studies.acute_eval.results import judges_document

    found = [judged_pairs(name, catalogue=catalogue)[1].assign(title=title) for name, title in titles.items()]
    return judges_document(pd.concat(found, ignore_index=True))
