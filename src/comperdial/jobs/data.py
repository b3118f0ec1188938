"""What makes tables: public files, personas, a challenge's agents and submissions, ratings, perturbed pairs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.core.artifact import TABLES, files

if TYPE_CHECKING:
    from comperdial.jobs.plan import Plan

_TABLES = {name: f"data/tables/{{dataset}}/{name}.parquet" for name in TABLES}
_CHALLENGE = {name: _TABLES[name] for name in ("systems", "contexts", "personas", "responses")}
_RATINGS = {name: _TABLES[name] for name in ("turn_ratings", "dialogue_ratings")}


def _folder(outputs: Mapping[str, Path]) -> Path:
    return next(iter(outputs.values())).parent


@files(
    {"file": "data/raw/{file}"},
    of=lambda plan: [path.removeprefix("data/raw/") for path in plan.raw],
    settings=lambda plan, file: {
        "name": plan.raw[f"data/raw/{file}"].name,
        "sha256": plan.raw[f"data/raw/{file}"].sha256,
        "catalogue": plan.config["catalogue"],
    },
)
def fetch(*, outputs: Mapping[str, Path], name: str, sha256: str, catalogue: str) -> None:
    """Fetch one public file from the mirror or over HTTPS, checked."""
    from comperdial.data import sources
    from comperdial.data.catalogue import load_catalogue

    sources.fetch(load_catalogue(catalogue).file(name), outputs["file"])


def _read_from(plan: Plan, dataset: str) -> dict[str, Any]:
    """Return what a data set is read from: files by the role that the reader knows them by."""
    if dataset in plan.read:
        from comperdial.data.sources import raw_path

        return {role: str(raw_path(source)) for role, source in plan.read[dataset].files.items()}
    if dataset in plan.own:
        return {"table": plan.own[dataset]["file"]}
    from comperdial.data.export import published_files

    return {role: str(path) for role, path in published_files(plan.challenges[dataset]["comperdial"]).items()}


def _read_how(plan: Plan, dataset: str) -> dict[str, Any]:
    said: dict[str, Any] = {"dataset": dataset, "roles": list(_read_from(plan, dataset))}
    if dataset in plan.read:
        entry = plan.read[dataset]
        sources = {role: source.name for role, source in entry.files.items()}
        return said | {
            "reader": entry.reader,
            "options": plan.reader_options(dataset),
            "catalogue": plan.config["catalogue"],
            "sources": sources,
            "sha256": [source.sha256 for source in entry.files.values()],
        }
    if dataset in plan.own:
        return said | {"reader": "table", "options": plan.own_options(dataset)}
    return said | {"reader": "comperdial", "options": {"columns": plan.config["comperdial"]["columns"]}}


@files(
    _TABLES,
    of=lambda plan: dict.fromkeys([*plan.read, *plan.own, *plan.imported]),
    inputs=lambda plan, dataset: {"raw": list(_read_from(plan, dataset).values())},
    settings=_read_how,
    code=lambda plan, dataset: [f"data.readers.{_read_how(plan, dataset)['reader']}"],
)
def read_tables(
    *,
    outputs: Mapping[str, Path],
    raw: Sequence[Path],
    dataset: str,
    roles: Sequence[str],
    reader: str,
    options: Mapping[str, Any],
    catalogue: str | None = None,
    sources: Mapping[str, str] | None = None,
    sha256: Sequence[str] = (),
) -> None:
    """Read a data set of the catalogue, a file of the user's, or a folder in ComperDial's form into tables."""
    from comperdial import schema
    from comperdial.data import readers

    if sources:
        from comperdial.data.catalogue import load_catalogue
        from comperdial.data.sources import require

        known = load_catalogue(str(catalogue))
        found = {role: require(known.file(name)) for role, name in sources.items()}
    else:
        found = dict(zip(roles, raw, strict=True))
    # All tables are read and checked before the first is written.
    tables = readers.read(reader, dataset, found, options)
    tables.setdefault("dialogue_ratings", schema.empty("dialogue_ratings"))
    for name, frame in tables.items():
        schema.write(_folder(outputs) / f"{name}.parquet", frame, name)


@files(
    {"personas": "results/personas/personas.json"},
    of=lambda plan: [{}],
    inputs=lambda plan: {
        "graph": plan.config["personas"]["graph"],
        "constraints": [
            f"{plan.config['personas']['constraints']}/{name}.csv"
            for name in ("names", "family", "ages", "negative", "gender_neutral", "opposites")
        ],
    },
    settings=lambda plan: {name: plan.config["personas"][name] for name in ("count", "seed", "default_ages")},
    libraries=("numpy",),
)
def personas(
    *,
    outputs: Mapping[str, Path],
    graph: Path,
    constraints: Sequence[Path],
    count: int,
    seed: int,
    default_ages: Sequence[int],
) -> None:
    """Draw personas from a PeaCoK knowledge graph."""
    from comperdial.challenge import personas

    youngest, oldest = default_ages
    found = personas.read_constraints(constraints[0].parent, default_ages=(youngest, oldest))
    drawn = personas.generate(personas.read_graph(graph), found, count=count, seed=seed)
    personas.write_personas(drawn, outputs["personas"])


@files(
    {"runs": "data/runs/{dataset}/runs.jsonl", "report": "data/runs/{dataset}/report.json"},
    of=lambda plan: plan.with_agents,
    inputs=lambda plan, dataset: {
        "dialogues": plan.challenges[dataset]["dialogues"],
        "roster": plan.challenges[dataset]["agents"],
        "resources": plan.roster_files(dataset),
    },
    code=lambda plan, dataset: ["challenge.worker", *plan.agent_modules()],
    libraries=("numpy",),
)
def run_agents(*, outputs: Mapping[str, Path], dialogues: Path, roster: Path, resources: Sequence[Path]) -> None:
    """Run the agents of a roster, as many at a time as the job has threads."""
    from comperdial.challenge.api import closing
    from comperdial.challenge.dialogues import read_dialogues
    from comperdial.challenge.limits import Limits
    from comperdial.challenge.roster import read_roster
    from comperdial.challenge.runner import run_roster, write_runs
    from comperdial.core.errors import ComperdialError

    def make_api(options: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401 - a judges' class
        from comperdial.judges.chat_api import make_api

        return make_api(options, where, ledger=Path("data/ledger"))

    found = read_roster(roster, make_api)
    jobs = int(os.environ.get("OMP_NUM_THREADS", "1"))
    with closing(found.model):
        runs = run_roster(found.agents, read_dialogues(dialogues), limits=Limits(), api=found.api, jobs=jobs)
        reports = write_runs(runs, outputs["runs"], outputs["report"], named=True)
    if all(report["problem"] is not None for report in reports):
        raise ComperdialError("no agent has answered all dialogues", where=str(roster))


@files(
    {**_CHALLENGE, "report": "data/tables/{dataset}/submissions.json"},
    of=lambda plan: plan.made,
    inputs=lambda plan, dataset: {
        "dialogues": plan.challenges[dataset]["dialogues"],
        "roster": plan.challenges[dataset].get("agents", []),
        "submissions": [*plan.runs(dataset).values(), *plan.submission_files(dataset)],
    },
    settings=lambda plan, dataset: {
        "dataset": dataset,
        "runs": plan.runs(dataset),
        # Folders, so that every file in them is read or reported; by name, so that a new one is noticed.
        "folders": plan.challenges[dataset].get("submissions", []),
        "names": plan.submission_names(dataset),
    },
)
def challenge_tables(
    *,
    outputs: Mapping[str, Path],
    dialogues: Path,
    roster: Path | Sequence[Path],
    submissions: Sequence[Path],
    dataset: str,
    runs: Mapping[str, str],
    folders: Sequence[str],
    names: Sequence[str],
) -> None:
    """Turn dialogues and submissions into tables."""
    from comperdial.challenge import build

    failed = build.build(
        dataset,
        dialogues,
        [*(Path(path) for name, path in runs.items() if name == "runs.jsonl"), *map(Path, folders)],
        _folder(outputs),
        roster=roster if isinstance(roster, Path) else None,
        runs=runs.get("report.json"),
    )
    for system, problem in failed.items():
        print(f"{system}: left out: {problem}")  # noqa: T201 - the job's log


@files(
    {**_RATINGS, "truth": "data/tables/{dataset}/truth.parquet"},
    of=lambda plan: plan.simulated,
    inputs=lambda plan, dataset: {
        **plan.tables(dataset, "contexts", "responses"),
        "raters": plan.challenges[dataset]["simulated"]["raters"],
        "roster": plan.challenges[dataset]["agents"],
    },
    settings=lambda plan, dataset: {"seed": plan.challenges[dataset]["simulated"]["seed"]},
    libraries=("numpy",),
)
def simulated_ratings(
    *, outputs: Mapping[str, Path], contexts: Path, responses: Path, raters: Path, roster: Path, seed: int
) -> None:
    """Rate a challenge with SIMULATED raters, whose truth is kept."""
    from comperdial.challenge import simulation

    simulation.rate_tables(_folder(outputs), raters, roster, seed=seed)


@files(
    _RATINGS,
    of=lambda plan: plan.with_ratings,
    inputs=lambda plan, dataset: {
        **plan.tables(dataset, "contexts", "responses"),
        **plan.challenges[dataset]["ratings"],
    },
)
def challenge_ratings(
    *, outputs: Mapping[str, Path], contexts: Path, responses: Path, turn: Path, dialogue: Path | None = None
) -> None:
    """Check a challenge's ratings against its tables, and put them beside these."""
    from comperdial.evaluation.aggregate import add_ratings

    add_ratings(_folder(outputs), turn=turn, dialogue=dialogue)


@files(
    {
        **{name: f"data/tables/{{dataset}}_perturbed/{name}.parquet" for name in TABLES},
        "pairs": "data/tables/{dataset}_perturbed/pairs.csv",
    },
    of=lambda plan: plan.perturbable,
    inputs=lambda plan, dataset: {"tables": plan.perturbed_inputs(dataset)},
    settings=lambda plan, dataset: {
        "dataset": f"{dataset}_perturbed",
        "strategies": plan.chosen_strategies,
        "sample": plan.study.get("perturbed", {}).get("sample"),
        "seed": plan.study.get("perturbed", {}).get("seed"),
        # Two strategies' words come from there: with another one, or none, they make other pairs.
        "wordnet": plan.wordnet,
    },
    libraries=("lemminflect", "nltk"),
)
def perturb(
    *,
    outputs: Mapping[str, Path],
    tables: Sequence[Path],
    dataset: str,
    strategies: Sequence[str] | None,
    sample: int,
    seed: int,
    wordnet: str | None,
) -> None:
    """Make pairs of an original and a worse version of a data set's responses and dialogues."""
    from comperdial import schema
    from comperdial.core.files import write_table
    from comperdial.perturbations import perturb

    made = perturb(tables[0].parent, dataset, strategies, sample, seed)
    for name, frame in made.tables.items():
        schema.write(_folder(outputs) / f"{name}.parquet", frame, name)
    write_table(outputs["pairs"], made.pairs)
    for name, count in made.counts.items():
        print(f"{name}: {count.pairs} pairs, drawn from {count.items} items; {count.unchanged} cannot be changed")  # noqa: T201
    for name, why in made.left_out.items():
        print(f"{name}: left out: {why}")  # noqa: T201
