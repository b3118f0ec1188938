"""The notebooks, executed and written as pages: which there are, for which data set, and what each reads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.artifact import page
from comperdial.report.captions import rated_by

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan

# What two notebooks score with and compare with, on the demo.
_COMPARED = {
    "04_add_your_system": ["f1", "chrf", "bleu", "rouge"],
    "05_add_your_metric": ["f1", "chrf", "grounded-cosine-minilm", "cpds-d_rules"],
}
# What of the package a notebook runs, beside what all of them run.
_MODULES = {
    "03_where_judges_and_people_disagree": [
        "judges.recorded.chiang2023",
        "judges.recorded.gpt4_rounds",
        "data.sources",
    ],
    "04_add_your_system": [
        "challenge.runner",
        "challenge.submissions",
        "challenge.worker",
        "challenge.tables",
        "metrics.scoring",
        "metrics.f1",
        "metrics.chrf",
        "metrics.bleu",
        "metrics.rouge",
    ],
    "05_add_your_metric": ["evaluation", "metrics.scoring", "stats.comparison", "stats.intervals"],
}
_ABOUT = {
    "01": "What was rated, how far the raters agree, the best and the worst systems, one dialogue, and how the metrics do",
    "02": "Which metrics can be told apart, at which level and cost, against the human ceiling, and how much data it takes",
    "03": "The responses that a judge rates most differently from people, with its reasons, and what they have in common",
    "04": "A new dialogue system from an agent to its place among the others, executed",
    "05": "A new metric from a class to its correlation with intervals and paired tests, executed",
    "06": "Our values on the two USR sets beside the published ones, and how far a number at system level can be trusted",
    "07": "Whether the statistics find what was put into the simulated ratings",
}


def _evaluated(dataset: str, *kinds: str) -> list[str]:
    return [f"results/{dataset}/{kind}.parquet" for kind in ("correlations", *kinds)]


def _reasoning(plan: Plan, dataset: str) -> list[Any]:
    """Return the recorded judges of a data set that say why; G-Eval's prompts ask for a bare number."""
    entries = (entry for entry in plan.recorded_judges.values() if entry.dataset == dataset)
    return [entry for entry in entries if not entry.prompt.startswith("geval")]


def _disagreeing(plan: Plan, dataset: str) -> list[str]:
    """Return the scores and the reasons of a data set's judges."""
    from comperdial.data.sources import raw_path

    recorded = _reasoning(plan, dataset)
    return [
        *(plan.score_file(dataset, name) for name in plan.judged_by(dataset)),
        *plan.judgements(dataset),
        *(plan.score_file(dataset, entry.name) for entry in recorded),
        *(str(raw_path(file)) for entry in recorded for file in entry.files.values()),
    ]


def _scored_on_demo(plan: Plan, notebook: str) -> list[str] | None:
    """Return the scores that a notebook compares with; None where some of these metrics are not run."""
    there = plan.scores_by_metric("demo")
    wanted = _COMPARED[notebook]
    return [there[name] for name in wanted] if there.keys() >= {*wanted} else None


def pages(plan: Plan) -> dict[str, tuple[str, str, list[str]]]:
    """Return each page's name with its notebook, its data set, and what it reads."""
    found: dict[str, tuple[str, str, list[str]]] = {}

    def tables(dataset: str) -> list[str]:
        return [*plan.tables(dataset, "systems", "contexts", "responses", "ratings").values()]

    chosen = [name for name in (plan.benchmark, "usr_topical", "usr_persona") if name in plan.rated]
    # What they tell is about responses and about systems.
    both = {"turn", "system"} <= set(plan.config["evaluation"]["levels"])
    for dataset in dict.fromkeys(chosen if both else []):
        suffix = "" if dataset == plan.benchmark else f"_{dataset}"
        reads = {"02_which_metric_to_trust": _evaluated(dataset, "ceilings", "comparisons", "curves", "power")}
        if dataset == plan.benchmark:
            alpha = f"results/{dataset}/tables/alpha.csv"
            reads["01_the_benchmark_at_a_glance"] = [*_evaluated(dataset, "ceilings"), alpha]
        if plan.judged_by(dataset) or _reasoning(plan, dataset):
            reads["03_where_judges_and_people_disagree"] = _evaluated(dataset) + _disagreeing(plan, dataset)
        found |= {f"{name}{suffix}": (name, dataset, tables(dataset) + files) for name, files in reads.items()}
    if "demo" in plan.simulated:
        demo = plan.challenges["demo"]
        for name in _COMPARED:
            if scores := _scored_on_demo(plan, name):
                found[name] = (name, "demo", [*tables("demo"), *scores, *_evaluated("demo"), demo["dialogues"]])
        reads_of_check = [f"results/demo/tables/{name}.csv" for name in ("systems", "alpha")]
        reads_of_check += [
            "data/tables/demo/truth.parquet",
            "src/comperdial/studies/comperdial/benchmarks.csv",
            demo["simulated"]["raters"],
        ]
        found["07_checking_the_demo"] = ("07_checking_the_demo", "demo", tables("demo") + reads_of_check)
    if plan.usr:
        found["06_reading_the_usr_table"] = (
            "06_reading_the_usr_table",
            plan.usr[0],
            ["results/studies/usr/tables/usr.csv"],
        )
    return found


def _folder(plan: Plan, notebook: str, dataset: str) -> str:
    """Return where a page lies: one that quotes the texts of a fetched data set is not ours to pass on, and stays here."""
    return "local" if notebook.startswith(("01", "03")) and plan.is_public(dataset) else "notebooks"


def _recorded(plan: Plan, name: str) -> dict[str, Any]:
    """Return what a notebook reads in params.yaml: where recorded answers come from."""
    notebook, dataset, _ = pages(plan)[name]
    recorded = _reasoning(plan, dataset) if notebook.startswith("03") else []
    return {entry.name: plan.config["recorded_judges"][entry.name] for entry in recorded}


@page(
    "{folder}/{name}",
    of=lambda plan: [
        {"folder": _folder(plan, notebook, dataset), "name": name}
        for name, (notebook, dataset, _) in pages(plan).items()
    ],
    datasets=lambda plan, folder, name: plan.usr if name.startswith("06") else [pages(plan)[name][1]],
    inputs=lambda plan, folder, name: {
        "notebook": f"notebooks/{pages(plan)[name][0]}.py",
        "reads": pages(plan)[name][2],
    },
    settings=lambda plan, folder, name: {
        "dataset": pages(plan)[name][1],
        "target": plan.config["evaluation"]["target"],
        "recorded": _recorded(plan, name),
        **plan.rated_by(pages(plan)[name][1]),
    },
    code=lambda plan, folder, name: [
        "report.reading",
        "report.showing",
        *_MODULES.get(pages(plan)[name][0], []),
    ],
    caption=lambda plan, folder, name: (
        f"{_ABOUT.get(name[:2], 'An executed notebook')} (data set {pages(plan)[name][1]}). "
        f"{rated_by(plan.source(pages(plan)[name][1]))}".strip()
    ),
    category="Notebooks",
)
def notebook(
    *, notebook: Path, reads: Sequence[Path], dataset: str, target: str, recorded: Mapping[str, Any], source: str
) -> str:
    """Execute a notebook, and return its page."""
    from comperdial.report.notebook import execute

    # Whether ratings are SIMULATED the notebook sees from their source.
    for name, value in (("DATASET", dataset), ("TARGET", target), ("SOURCE", source)):
        os.environ[f"COMPERDIAL_{name}"] = value
    return execute(notebook)
