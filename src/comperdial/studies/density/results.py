"""What the study's tables and figures are made of: correlations and paired tests, and scores of answers made worse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.config import load_yaml
from comperdial.core.artifact import files
from comperdial.core.names import output_name, perturbed

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from comperdial.jobs.plan import Plan

FOLDER = "src/comperdial/studies/density"
RESULTS = "results/studies/density"
DIALOGUES = "fed_dial"
SCATTERED = "dailydialog_zhao"
RECORDED = "turn_perturbations"
"""The pairs of Khalid and Lee (2022) on conversations between people, as Zhang et al. (2024) published them."""
STRATEGIES = {
    "random_response": "Random response",
    "repetition": "Repetition",
    "speaker": "Speaker-sensitiveness",
    "contradiction": "Contradiction",
}
"""The paper's kinds of worse answers, by our names, with its own."""
PAIRS = 400
"""The most pairs of a kind that are scored, drawn at random."""


@cache
def rows() -> dict[str, Any]:
    """Return what ``rows.yaml`` says, for the plan."""
    return load_yaml(Path(__file__).with_name("rows.yaml"))


def sets(plan: Plan) -> list[str]:
    """Return the study's data sets; none where the catalogue lacks one."""
    return list(plan.sets_of.get("density", []))


def of_responses(plan: Plan) -> list[str]:
    """Return those whose responses were rated."""
    return [name for name in sets(plan) if name != DIALOGUES]


def paired(plan: Plan) -> list[str]:
    """Return the sets of answers and worse versions of them: those that others made, and our own of DailyDialog-Zhao."""
    wanted = (RECORDED, perturbed(SCATTERED))
    return [name for name in wanted if name in plan.paired] if sets(plan) else []


def shown(dataset: str) -> list[str]:
    """Return the outputs that the tables show of a data set, as METRIC:OUTPUT, each once."""
    sections = rows()["dialogues" if dataset == DIALOGUES else "responses"]
    named = [f"{row['metric']}:{row['output']}" for part in sections for row in part["rows"] if "metric" in row]
    ablation = rows()["ablation"]
    named += [f"{metric}:{output}" for _, metric in ablation["metrics"] for _, output in ablation["outputs"]]
    return list(dict.fromkeys(named))


def scores(plan: Plan, dataset: str, outputs: Iterable[str]) -> list[str]:
    """Return the files of scores of a data set that hold some outputs."""
    metrics = {output_name(name)[0] for name in outputs}
    return [path for name, path in plan.scores_by_metric(dataset, apart=True).items() if name in metrics]


def rated(plan: Plan, dataset: str) -> dict[str, Any]:
    """Return the tables that scores are compared with."""
    return plan.tables(dataset, "contexts", "systems", "ratings")


def samples(
    scores: Sequence[Path],
    outputs: Sequence[str],
    *,
    contexts: Path,
    systems: Path,
    ratings: Path,
    source: str,
    target: str | None = None,
    main_target: str | None = None,
) -> list[Any]:
    """Return some scores of a data set next to its ratings, at the level that was rated."""
    from comperdial import evaluation, schema
    from comperdial.evaluation import aggregate
    from comperdial.schema.dimensions import chosen_dimension

    found = aggregate.read_scores(scores) if scores else schema.empty("scores")
    names = found["metric"].astype(str) + ":" + found["output"].astype(str)
    rated = schema.read(ratings, "ratings")
    dimension = chosen_dimension(target, main_target, aggregate.rated_dimensions(rated, source))
    return list(
        evaluation.samples(
            found[names.isin(list(outputs))],
            rated,
            contexts=aggregate.read_contexts(contexts),
            systems=schema.read(systems, "systems"),
            source=source,
            levels=["turn" if (rated["level"] == "turn").any() else "dialogue"],
            targets=[dimension],
            allow_missing=True,
        )
    )


def _expected(plan: Plan, dataset: str) -> dict[str, Any]:
    """Return what the shown outputs take: by this the tables say why some are missing."""
    wanted = {output_name(name) for name in shown(dataset)}
    metrics = {metric for metric, _ in wanted}
    return {
        metric: {**entry, "outputs": {name: of for name, of in entry["outputs"].items() if (metric, name) in wanted}}
        for metric, entry in plan.expected(dataset).items()
        if metric in metrics
    }


@files(
    {
        "correlations": f"{RESULTS}/{{dataset}}.parquet",
        "differences": f"{RESULTS}/{{dataset}}_differences.parquet",
        "ceilings": f"{RESULTS}/{{dataset}}_ceilings.parquet",
    },
    of=sets,
    inputs=lambda plan, dataset: {**rated(plan, dataset), "scores": scores(plan, dataset, shown(dataset))},
    settings=lambda plan, dataset: {
        **plan.rated_by(dataset),
        **plan.target(dataset),
        "shown": shown(dataset),
        "expected": _expected(plan, dataset),
        "resamples": plan.config["evaluation"]["resamples"],
        "seed": plan.config["evaluation"]["seed"],
    },
    libraries=("scipy",),
)
def density_correlations(
    *,
    outputs: Mapping[str, Path],
    scores: Sequence[Path],
    contexts: Path,
    shown: Sequence[str],
    expected: Mapping[str, Any],
    resamples: int,
    seed: int,
    **about: Any,  # noqa: ANN401 - what samples() takes
) -> None:
    """Correlate the scores that the study of DEnsity shows, and test each pair of them for a difference."""
    from comperdial import evaluation, schema
    from comperdial.core.files import write_table

    found = samples(scores, shown, contexts=contexts, **about)
    detail = evaluation.Detail(resamples=resamples, seed=seed)
    why = evaluation.Expected.of(expected, schema.read(contexts, "contexts"))
    correlations = evaluation.correlations(found, detail=detail, expected=why)
    schema.write(outputs["correlations"], correlations, "correlations")
    schema.write(outputs["ceilings"], evaluation.ceilings(found), "ceilings")
    # A table `comparisons` with the ends of each difference's interval.
    write_table(
        outputs["differences"],
        evaluation.differences(found, detail=detail, coefficients=("pearson", "spearman")),
    )


def _scoring(plan: Plan) -> list[str]:
    """Return the metrics of the figures of worse answers that run here."""
    metrics = dict.fromkeys(output_name(name)[0] for name, _ in rows()["adversarial"])
    return [name for name in metrics if name in plan.here]


@files(
    {"scores": f"{RESULTS}/pairs/{{dataset}}.parquet", "ratios": f"{RESULTS}/pairs/{{dataset}}_ratios.parquet"},
    of=paired,
    inputs=lambda plan, dataset: plan.tables(dataset, "systems", "contexts", "responses"),
    settings=lambda plan, dataset: {
        "metrics": {name: {"kind": plan.metrics[name].kind, **plan.metric_options(name)} for name in _scoring(plan)},
        "signatures": [plan.metrics[name].signature() for name in _scoring(plan)],
        "strategies": list(STRATEGIES),
        "sample": PAIRS,
        "seed": plan.config["evaluation"]["seed"],
    },
    code=lambda plan, dataset: sorted(
        {f"metrics.{module}" for name in _scoring(plan) for module in plan.metrics[name].modules}
    ),
    libraries=("scipy",),
)
def density_pairs(
    *,
    outputs: Mapping[str, Path],
    systems: Path,
    contexts: Path,
    responses: Path,
    metrics: Mapping[str, Mapping[str, Any]],
    signatures: Sequence[str],
    strategies: Sequence[str],
    sample: int,
    seed: int,
) -> None:
    """Score answers and worse versions of them, and say how often the answer's score is higher."""
    import tempfile

    import numpy as np

    from comperdial import schema
    from comperdial.evaluation.ratios import PairSet, ratios
    from comperdial.metrics import create, scoring
    from comperdial.perturbations import PERTURBATIONS

    made = {
        name: create(entry["kind"], **{key: value for key, value in entry.items() if key != "kind"})
        for name, entry in metrics.items()
    }
    tables = {
        name: schema.read(path, name)
        for name, path in (("systems", systems), ("contexts", contexts), ("responses", responses))
    }
    tables["contexts"] = drawn(tables["contexts"], strategies, sample, np.random.default_rng(seed))
    kept = tables["responses"]["context_id"].isin(tables["contexts"]["context_id"])
    tables["responses"] = tables["responses"][kept]
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in tables.items():
            schema.write(Path(folder) / f"{name}.parquet", frame, name)
        scoring.score_all(made, folder, outputs["scores"])
        pairs = PairSet.read(folder)
    scored = schema.read(outputs["scores"], "scores")
    found = ratios([pairs], {pairs.dataset: scored}, PERTURBATIONS) if len(scored) else schema.empty("ratios")
    schema.write(outputs["ratios"], found, "ratios")


def drawn(contexts: pd.DataFrame, strategies: Sequence[str], sample: int, random: np.random.Generator) -> pd.DataFrame:
    """Return the contexts of pairs of some kinds, of each kind no more pairs than ``sample``, in the table's order."""
    kinds = contexts["dialogue_id"].map(lambda name: re.sub(r"-[^-]*$", "", name))
    chosen: set[str] = set()
    for strategy in strategies:
        names = sorted(contexts.loc[kinds == strategy, "dialogue_id"].unique())
        order = random.permutation(len(names))[:sample]
        chosen |= {names[place] for place in order}
    return contexts[contexts["dialogue_id"].isin(chosen)]
