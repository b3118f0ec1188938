"""The plan: what ``params.yaml``, the catalogue and the studies say there is to make, and what each job is told of it.

It reads configuration and the state of this machine (which models, which WordNet, which pulled scores) and computes nothing.
Declarations of artifacts (:mod:`comperdial.core.artifact`) ask it for files and settings; Snakemake asks :mod:`comperdial.jobs`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from comperdial.challenge.agents import kinds as agent_kinds
from comperdial.challenge.dialogues import read_dialogues
from comperdial.challenge.roster import read_roster
from comperdial.config import load_yaml
from comperdial.config.checking import Lines
from comperdial.config.registry import REGISTRIES
from comperdial.config.studies import study_files
from comperdial.core.artifact import TABLES
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.core.files import TABLE_SUFFIXES, printable, read_json
from comperdial.core.names import PERTURBATIONS, output_name, perturbed, unperturbed
from comperdial.core.scripts import Writing
from comperdial.data.catalogue import Catalogue, load_catalogue
from comperdial.data.export import published_files
from comperdial.data.recorded.entries import read_entries
from comperdial.data.sources import raw_path
from comperdial.judges.recorded import find as answer_format
from comperdial.judges.recorded.entries import read_recorded_judges
from comperdial.judges.scores import slug
from comperdial.judges.tasks import (
    DEFAULT,
    Task,
    as_one,
    connections,
    groups_of,
    judged_levels,
    known_signature,
    read_judging,
    sections_of,
    signature,
    unavailable,
)
from comperdial.metrics import create, kinds
from comperdial.metrics.base import Metric
from comperdial.metrics.named import ABOUT, suited, why_unsuited
from comperdial.metrics.scoring import expected_of
from comperdial.perturbations import generated
from comperdial.studies import ALONE, with_studies

P = ParamSpec("P")
T = TypeVar("T")


# Folders below results/ that belong to no data set.
_FOLDERS = {"local", "notebooks", "personas", "shards", "studies"}


def remembered(method: Callable[Concatenate[Plan, P], T]) -> Callable[Concatenate[Plan, P], T]:
    """Let a method of a plan answer each question once: hundreds of jobs ask the same."""

    @wraps(method)
    def answer(plan: Plan, *arguments: P.args, **named: P.kwargs) -> T:
        key = (method.__name__, arguments, tuple(sorted(named.items())))
        if key not in plan.answers:
            plan.answers[key] = method(plan, *arguments, **named)
        return plan.answers[key]

    return answer


class Plan:
    """What there is to make.

    Parameters
    ----------
    config
        ``params.yaml`` as Snakemake merged it with the command line, checked.

    Raises
    ------
    ConfigError
        When names or files in it do not exist or do not fit together.
    """

    def __init__(self, config: Mapping[str, Any], lines: Lines | None = None) -> None:
        # A study's metrics stand in its own file.
        files = [*REGISTRIES, *study_files(), *(lines.paths if lines else ())]
        self.lines = Lines(*files, option=lines.option) if lines else None
        self.config = with_studies(config)
        self._said = config.get("studies") or {}
        self.answers: dict[Any, Any] = {}
        self.catalogue: Catalogue = load_catalogue(config["catalogue"])
        self._read_datasets()
        self._read_metrics()
        self._read_study()
        self._read_recorded()
        self._read_judging()
        self._check_names()

    def _place(self, *keys: str | int) -> str:
        """Return where a setting stands, for a message; of a study's own file, the study."""
        if keys[0] == "studies" and keys[2] not in self._said.get(keys[1], {}):
            return f"study {keys[1]}, {'.'.join(map(str, keys[2:]))}"
        value: Any = self.config
        for key in keys:
            value = value[key]
        return self.lines.place(keys, value) if self.lines else f"params.yaml, {'.'.join(map(str, keys))}"

    # Data sets

    def _read_datasets(self) -> None:
        config, catalogue = self.config, self.catalogue
        own, wanted = dict(config.get("own_data") or {}), list(config["datasets"])
        for place, path in enumerate(map(Path, wanted)):
            if path.suffix in TABLE_SUFFIXES:
                name = re.sub("[^a-z0-9_]+", "_", path.stem.lower())
                if name in {*own, *config["challenges"], *catalogue.datasets}:
                    raise ConfigError(f"{path}: there is a data set {name!r} already", hint="Rename the file")
                own[name] = {"file": str(path), "title": path.stem}
                wanted[place] = name
        self.names = [*own, *config["challenges"], *catalogue.datasets]
        if taken := sorted(_FOLDERS & {*self.names}):
            raise ConfigError(
                f"{taken[0]!r} is a folder of results", where="params.yaml", expected="another name", hint="Rename it"
            )
        if twice := sorted({name for name in self.names if self.names.count(name) > 1}):
            raise ConfigError(f"two data sets are called {twice[0]!r}", where="params.yaml and the catalogue")
        for place, name in enumerate(wanted):
            if name not in self.names:
                raise UnknownNameError("dataset", name, self.names, where=self._place("datasets", place))
        for study, said in self._said.items():
            for name in said.get("datasets", []):
                if name not in self.names:
                    where = self._place("studies", study, "datasets")
                    raise UnknownNameError("dataset", name, self.names, where=where)
        # What `snakemake` alone makes; the data sets of studies that score as all others do can be asked for.
        self.chosen = list(wanted)
        self.sets_of = {
            name: study["datasets"]
            for name, study in config["studies"].items()
            if name != ALONE and study.get("datasets") and {*study["datasets"]} <= {*self.names}
        }
        wanted = list(dict.fromkeys([*wanted, *(name for names in self.sets_of.values() for name in names)]))
        self.challenges = {name: config["challenges"][name] for name in wanted if name in config["challenges"]}
        self.own = {name: own[name] for name in wanted if name in own}
        self.public = {name: catalogue.dataset(name) for name in wanted if name not in {**self.challenges, **self.own}}
        self.datasets = [*self.public, *self.challenges, *self.own]
        # What a challenge is made of decides which jobs make its tables.
        self.made = [name for name, challenge in self.challenges.items() if "dialogues" in challenge]
        self.imported = [name for name, challenge in self.challenges.items() if "comperdial" in challenge]
        self.simulated = [name for name, challenge in self.challenges.items() if "simulated" in challenge]
        self.with_agents = [name for name in self.made if "agents" in self.challenges[name]]
        self.with_ratings = [name for name in self.made if "ratings" in self.challenges[name]]
        self._check_files()
        self.levels = {name: self._levels_of(name) for name in self.datasets}
        self.rated = [name for name in self.datasets if self.levels[name]]
        self.by_turn = [name for name in self.datasets if "turn" in self.levels[name]]
        self.by_dialogue = [name for name in self.datasets if "dialogue" in self.levels[name]]
        self.raw = {str(raw_path(source)): source for source in catalogue.files.values()}
        self.usr = self.sets_of.get("usr", [])
        self.benchmark = config["tables"]["benchmark"]
        if self.benchmark not in self.names:
            raise UnknownNameError("dataset", self.benchmark, self.names, where=self._place("tables", "benchmark"))

    def _check_files(self) -> None:
        """Refuse a wrong name here: where results of an earlier run lie, nobody else would notice it."""
        personas = self.config["personas"]
        named = [path for challenge in self.challenges.values() for path in _paths(challenge)]
        named += [entry["file"] for entry in self.own.values()]
        for path in [*named, personas["graph"], personas["constraints"]]:
            if not Path(path).exists():
                raise ConfigError(f"{path}: no such file or folder", where="params.yaml")
        for name in self.imported:
            published_files(self.challenges[name]["comperdial"])
        for name in self.with_agents:
            read_roster(self.challenges[name]["agents"])
        for name, dataset in self.public.items():
            if unpinned := [source.name for source in dataset.files.values() if not source.pinned]:
                raise ConfigError(
                    f"{name}: the checksum of {', '.join(unpinned)} is not known",
                    hint=f"Run `comperdial fetch {name}` once: it downloads the files and records what came, which every "
                    "later download is held to",
                )

    def _levels_of(self, dataset: str) -> list[str]:
        """Return the levels at which a data set is rated: as the catalogue, the file or the challenge's entry says."""
        if dataset in self.public:
            return list(self.public[dataset].levels)
        if dataset in self.own:
            return self._levels_of_own(dataset)
        if dataset in [*self.simulated, *self.imported]:
            return ["turn", "dialogue"]
        return list(self.challenges[dataset].get("ratings", {}))

    def _levels_of_own(self, dataset: str) -> list[str]:
        """Return the levels at which a file of the user's is rated, and refuse a dimension or source that it has not."""
        from comperdial.data.readers.table import rated

        entry = self.own[dataset]
        found = rated(entry["file"], self.own_options(dataset))
        for key, kind, known in (("target", "dimension", found.dimensions), ("source", "source", found.sources)):
            if known and key in entry and entry[key] not in known:
                raise UnknownNameError(kind, entry[key], known, where=self._place("own_data", dataset, key))
        return list(found.levels)

    def own_options(self, dataset: str) -> dict[str, Any]:
        """Return how a file of the user's is read."""
        return {key: self.own[dataset][key] for key in ("columns", "scale") if key in self.own[dataset]}

    def reader_options(self, dataset: str) -> dict[str, Any]:
        """Return the settings of a catalogue's reader: the section of params.yaml that has its name."""
        return dict(self.config.get(self.read[dataset].reader, {}))

    def is_public(self, dataset: str) -> bool:
        """Say whether a data set's texts were fetched: they are not ours to pass on."""
        return dataset in self.public

    def _entry(self, dataset: str) -> Mapping[str, Any]:
        """Return what params.yaml says of a data set of the user's; of one of the catalogue nothing."""
        return self.challenges.get(dataset) or self.own.get(dataset) or {}

    def title(self, dataset: str) -> str:
        """Return what a data set is called in tables, with who rated it where that was nobody human."""
        if dataset not in self.datasets:
            raise ConfigError(f"{dataset} is not among `datasets`", hint="Add it in params.yaml, or with --config")
        entry = self.public.get(dataset)
        said = entry.title if entry else self._entry(dataset).get("title", dataset)
        source = self.source(dataset)
        return said if source in ("human", "simulated") else f"{said} (rated by {source})"

    def titles(self, datasets: Iterable[str]) -> dict[str, str]:
        """Return the titles of data sets."""
        return {name: self.title(name) for name in datasets}

    @remembered
    def source(self, dataset: str) -> str:
        """Return whose ratings a data set is evaluated against: as its entry, its files or the configuration says."""
        entry = self.public.get(dataset)
        said = entry.source if entry else self._entry(dataset).get("source")
        if not said and dataset in self.simulated:
            said = "simulated"
        if not said and dataset in self.imported:
            path = Path(self.challenges[dataset]["comperdial"]) / "ComperDial_systems.json"
            said = read_json(path).get("source") if path.is_file() else None
        return str(said or self.config["evaluation"]["source"])

    def rated_by(self, dataset: str) -> dict[str, str]:
        """Return the setting from which captions say whose the ratings are."""
        return {"source": self.source(dataset)}

    def target(self, dataset: str) -> dict[str, str | None]:
        """Return the settings that name the rated dimension: the data set's, or the one that most have."""
        entry = self.public.get(dataset)
        said = entry.target if entry else self._entry(dataset).get("target")
        return {"target": said} if said else {"target": None, "main_target": self.config["evaluation"]["target"]}

    def about(self, dataset: str) -> dict[str, Any]:
        """Return what most tables and figures of a data set are told: its title, whose the ratings are, of which dimension."""
        return {"title": self.title(dataset), **self.target(dataset), **self.rated_by(dataset)}

    def tables(self, dataset: str, *names: str) -> dict[str, str]:
        """Return tables of a data set by name."""
        return {name: f"data/tables/{dataset}/{name}.parquet" for name in names}

    def ratings(self, dataset: str) -> dict[str, str]:
        """Return the ratings of a data set by table, as far as it has any."""
        return self.tables(dataset, *(f"{level}_ratings" for level in self.levels[dataset]))

    # Challenges

    @remembered
    def roster_files(self, challenge: str) -> list[str]:
        """Return the files that a roster's entries name: agents, and what they read."""
        path = self.challenges[challenge]["agents"]
        roster = load_yaml(path)
        parts = [roster.get("api") or {}, *roster["agents"], *(agent.get("options", {}) for agent in roster["agents"])]
        # An agent that wraps another one has that one's options inside its own.
        parts += [part["options"] for part in parts if isinstance(part.get("options"), dict)]
        values = [value for part in parts for value in part.values() if isinstance(value, str)]
        # What lies beside an agent's own file can be imported by it.
        beside = [
            str(path)
            for agent in roster["agents"]
            if "file" in agent
            for path in Path(agent["file"]).parent.glob("*.py")
        ]
        found = sorted({*beside, *(value for value in values if Path(value).is_file())})
        for name in found:
            if set("{}") & set(name):
                raise ConfigError(f"{name}: a name without braces is needed here", where=str(path))
        return found

    def agent_modules(self) -> list[str]:
        """Return the modules of the kinds of agents."""
        return [f"challenge.agents.{kind}" for kind in agent_kinds()]

    @remembered
    def submission_names(self, challenge: str) -> list[str]:
        """Return the submissions that lie in a challenge's folders, and what else there looks like one."""
        found: list[str] = []
        for path in map(Path, self.challenges[challenge].get("submissions", [])):
            inside = [*path.glob("*.jsonl"), *path.glob("systems.csv")] if path.is_dir() else [path]
            found += sorted(map(str, inside))
        return found

    def submission_files(self, challenge: str) -> list[str]:
        """Return the submissions that can be inputs of a rule.

        A name that Snakemake would read as a pattern, or cannot write into its records, is left out here; the job reads
        whole folders and reports it.
        """
        names = self.submission_names(challenge)
        return [name for name in names if not set("{}") & set(name) and printable(name) == name]

    def runs(self, challenge: str) -> dict[str, str]:
        """Return what running a challenge's agents makes."""
        if challenge not in self.with_agents:
            return {}
        return {name: f"data/runs/{challenge}/{name}" for name in ("runs.jsonl", "report.json")}

    # Metrics and scores

    def _read_metrics(self) -> None:
        self.metrics = {name: self._made(entry, "metrics", name) for name, entry in self.config["metrics"].items()}
        self.unavailable = {name: why for name, metric in self.metrics.items() if (why := metric.unavailable())}
        self.here = [name for name in self.metrics if name not in self.unavailable]

    def _made(self, entry: Mapping[str, Any], *keys: str) -> Metric:
        try:
            return create(entry["kind"], **_without(entry, "kind", *ABOUT))
        except ComperdialError as error:
            where = self._place(*keys, "kind").removesuffix(".kind")
            error.where = f"{where}, {error.where}" if error.where else where
            raise

    @remembered
    def writing(self, dataset: str) -> Writing | None:
        """Return how a user's file or a challenge's dialogues are written; None for the catalogue, whose data are English."""
        if dataset in self.own:
            from comperdial.data.readers.table import texts

            return Writing.of(*texts(self.own[dataset]["file"], self.own_options(dataset)))
        if dataset in self.made:
            dialogues = read_dialogues(self.challenges[dataset]["dialogues"])
            return Writing.of(text for dialogue in dialogues for text in dialogue.texts)
        return None

    @remembered
    def unsuited(self, dataset: str) -> dict[str, str]:
        """Return the metrics that are for English alone, where a data set's texts are in other scripts, with the reason."""
        writing = self.writing(dataset)
        if writing is None:
            return {}
        return {name: why for name, metric in self.metrics.items() if (why := why_unsuited(metric, writing))}

    @remembered
    def metric(self, dataset: str, name: str) -> Metric:
        """Return a metric as a data set is scored with it: on texts of some scripts its signature says how it splits them."""
        writing = self.writing(dataset)
        return suited(self.metrics[name], writing) if writing else self.metrics[name]

    @remembered
    def options(self, dataset: str, name: str) -> dict[str, Any]:
        """Return what a metric is made with for a data set."""
        made, plain = self.metric(dataset, name), self.metrics[name]
        changed = {
            field.name: dict(value) if field.name == "options" else value
            for field in dataclasses.fields(made)
            if (value := getattr(made, field.name)) != getattr(plain, field.name)
        }
        return {**self.metric_options(name), **changed}

    def metric_options(self, name: str) -> dict[str, Any]:
        """Return what a metric is made with: the entry, less what says what it is and of which data sets."""
        return _without(self.config["metrics"][name], "kind", *ABOUT)

    def is_wanted(self, dataset: str, metric: str) -> bool:
        """Say whether a data set is scored with a metric: all are, unless the entry names some, or some to skip."""
        entry = self.config["metrics"][metric]
        return dataset in entry.get("datasets", [dataset]) and dataset not in entry.get("skip", [])

    @remembered
    def has_scores(self, dataset: str, metric: str) -> bool:
        """Say whether there are or can be scores: the metric runs here, or fitting scores made elsewhere were pulled."""
        if metric in self.unsuited(dataset):
            return False
        can = metric in self.here or _fits(self.score_file(dataset, metric), self.metric(dataset, metric).signature())
        return can and self.is_wanted(dataset, metric)

    @cached_property
    def combined(self) -> dict[str, Mapping[str, Metric]]:
        """The metrics that are made of other metrics' scores, with these."""
        return {
            name: getattr(self.metrics[name], "parts", {}) for name in self.here if hasattr(self.metrics[name], "parts")
        }

    @remembered
    def parts_of(self, dataset: str, metric: str) -> list[str]:
        """Return the parts of a combined metric that a data set is scored with here, in the same way."""
        return [
            name
            for name, part in self.combined[metric].items()
            if name in self.metrics
            and self.metric(dataset, name).signature() == part.signature()
            and self.has_scores(dataset, name)
        ]

    def shards(self, dataset: str) -> int:
        """Return into how many shards the scoring and judging of a data set is cut."""
        shards = self.config.get("shards") or {}
        return int(shards.get(dataset, shards.get(DEFAULT, 1)))

    @staticmethod
    def score_file(dataset: str, metric: str) -> str:
        """Return where the scores of a data set by a metric lie."""
        return f"results/{dataset}/scores/{metric}.parquet"

    @remembered
    def scores_by_metric(self, dataset: str, *, apart: bool = False) -> dict[str, str]:
        """Return each file of scores of a data set by the metric's name: metrics', recorded ones, judges'.

        Metrics that are ``apart`` are scored for who asks for them by name, and are in no general table.
        """
        entries = self.config["metrics"]
        names = [
            name for name in entries if self.has_scores(dataset, name) and (apart or not entries[name].get("apart"))
        ]
        names += [entry.name for entry in self.recorded_scores.values() if entry.dataset == dataset]
        names += [*self.judged_by(dataset), *self.recorded_judges_of(dataset)]
        return {name: self.score_file(dataset, name) for name in names}

    def scores(self, dataset: str, outputs: Iterable[str] | None = None) -> list[str]:
        """Return the files of scores of a data set, or those that hold some outputs."""
        if outputs is None:
            return list(self.scores_by_metric(dataset).values())
        found = self.scores_by_metric(dataset, apart=True)
        metrics = dict.fromkeys(metric_of(name) for name in outputs)
        return [path for name, path in found.items() if name in metrics]

    def not_run(self, datasets: Collection[str]) -> dict[str, str]:
        """Return the metrics and judges without scores, with the reason."""
        missing = {
            metric: why
            for metric, why in self.unavailable.items()
            if not all(self.has_scores(name, metric) for name in datasets if self.is_wanted(name, metric))
        }
        for dataset in datasets:
            missing |= {name: why for name, why in self.unsuited(dataset).items() if self.is_wanted(dataset, name)}
        return missing | self._judges_not_run(datasets)

    def _judges_not_run(self, datasets: Collection[str]) -> dict[str, str]:
        return {
            task.name: self.not_judged[judged]
            for name in datasets
            for judged, task in self.asked(name).items()
            if not self.is_judged(judged)
        }

    @remembered
    def expected(self, dataset: str) -> dict[str, Any]:
        """Return what a data set's scores take: by this the table of correlations says why some are missing."""
        return {
            name: expected_of(self.metric(dataset, name))
            for name in self.metrics
            if name in self.scores_by_metric(dataset)
        }

    # Scores and answers that others recorded

    def _read_recorded(self) -> None:
        self.recorded = read_entries(
            self.config.get("recorded"),
            taken={*self.metrics, *kinds()},
            datasets=self.names,
            catalogue=self.catalogue,
        )
        # As <data set>/<name>: what was recorded of one data set is of no other.
        self.recorded_scores = {
            f"{entry.dataset}/{name}": entry for name, entry in self.recorded.items() if entry.dataset in self.datasets
        }
        for entry in self.recorded_scores.values():
            if isinstance(entry.file, Path):
                if not entry.file.is_file():
                    raise ConfigError(f"{entry.file}: no such file", where=self._place("recorded", entry.name, "path"))
            elif not entry.file.pinned:
                raise ConfigError(
                    f"{entry.name}: the checksum of {entry.file.name} is not known",
                    hint=f"Run `comperdial fetch {entry.file.name}` once",
                )

    def recorded_of(self) -> dict[str, str]:
        """Return of which data set each recorded metric is."""
        recorded = {name: entry.dataset for name, entry in self.recorded.items()}
        return recorded | {name: entry.dataset for name, entry in self.entries.items()}

    def recorded_judges_of(self, dataset: str) -> list[str]:
        """Return the recorded judges of a data set."""
        return [entry.name for entry in self.recorded_judges.values() if entry.dataset == dataset]

    # Judges

    def _read_judging(self) -> None:
        config = self.config
        datasets = [*config["challenges"], *self.catalogue.datasets, *self.paired]
        self.judging = read_judging(
            config.get("judges"),
            config.get("judging"),
            datasets=datasets,
            groups=groups_of(config),
            lines=self.lines,
        )
        # As <data set>/<metric>: a judge is asked of the data sets that name it.
        self.judged: dict[str, Task] = {}
        for dataset in dict.fromkeys([*self.datasets, *self.studied, *self.paired]):
            known = dataset not in self.challenges and dataset in self.read
            levels = judged_levels(dataset, self.read[dataset].levels if known else None)
            for name, task in self.judging.tasks(dataset, **levels).items():
                self.judged[f"{dataset}/{name}"] = task
        judged = {task.name for task in self.judged.values()}
        if both := judged & {*self.metrics, *self.recorded}:
            raise ConfigError(f"{', '.join(sorted(both))}: both a metric and a judge's variant", where="params.yaml")
        self.not_judged = {
            judged: why
            for judged, task in self.judged.items()
            if (why := unavailable(self.judging, task, judged.split("/")[0]))
        }
        self.entries = read_recorded_judges(
            config.get("recorded_judges"),
            taken={*self.metrics, *self.recorded, *judged},
            datasets=[*config["challenges"], *self.catalogue.datasets],
            catalogue=self.catalogue,
        )
        # As <data set>/<name>.
        self.recorded_judges = {
            f"{entry.dataset}/{name}": entry
            for name, entry in self.entries.items()
            if entry.dataset in [*self.datasets, *self.studied]
        }

    def connections(self) -> str:
        """Return how judges are reached and what they may cost: nothing that a score depends on."""
        return connections(self.config.get("judges"), self.config.get("judging"))

    @remembered
    def asked(self, dataset: str) -> dict[str, Task]:
        """Return what judges are asked of a data set, as <data set>/<metric>."""
        return {judged: task for judged, task in self.judged.items() if judged.split("/")[0] == dataset}

    @remembered
    def is_judged(self, judged: str) -> bool:
        """Say whether there are or can be scores: the judge can answer, or fitting scores made elsewhere were pulled."""
        if judged not in self.not_judged:
            return True
        # Of a model that is not here nothing is known that scores could be held against.
        said = known_signature(self.judging, self.judged[judged])
        return said is not None and _fits(self.score_file(*judged.split("/")), said)

    @remembered
    def judged_tasks(self, dataset: str) -> list[Task]:
        """Return the tasks of judges that a data set has scores of."""
        return [task for judged, task in self.asked(dataset).items() if self.is_judged(judged)]

    def judged_by(self, dataset: str) -> list[str]:
        """Return the metrics of judges that a data set has scores of."""
        return [task.name for task in self.judged_tasks(dataset)]

    def askable(self) -> list[str]:
        """Return what judges can be asked here, as <data set>/<metric>."""
        return [judged for judged in self.judged if judged not in self.not_judged]

    @remembered
    def judge_settings(self, judged: str) -> dict[str, Any]:
        """Return all that decides what is asked and how it is read, a service's version and the prompt's hash included."""
        task = self.judged[judged]
        return {
            "dataset": judged.split("/")[0],
            "metric": task.name,
            "sections": sections_of(task, self.config),
            "signature": signature(self.judging, task),
        }

    @remembered
    def judge_code(self, judged: str) -> list[str]:
        """Return what judging runs; the words that `rules` goes by are no module."""
        service = self.judged[judged].judge.service
        words = [str(path) for path in Path("src/comperdial/judges/services").glob(f"{service}*.yaml")]
        return ["judges.scores", f"judges.services.{service}", *words]

    @remembered
    def judge_labels(self, dataset: str) -> dict[str, str]:
        """Return what tables call the metrics of a data set's judges."""
        return {task.name: task.label for task in self.asked(dataset).values()}

    def judgements(self, dataset: str, names: Iterable[str] | None = None) -> list[str]:
        """Return the judgements of a data set's judges, or of some."""
        names = self.judged_by(dataset) if names is None else names
        return [f"results/{dataset}/judgements/{name}.parquet" for name in names]

    def judge_metrics(self, datasets: Collection[str], also: Collection[str] = ()) -> dict[str, dict[str, Any]]:
        """Return what each metric of a judge is: of those that data sets ask, of others by name, of recorded answers."""
        here = {task.name for name in datasets for task in self.asked(name).values()}
        everyone = dataclasses.replace(self.judging, by_dataset={DEFAULT: tuple(self.judging.judges)})
        asked = {
            task.name: {
                "variant": task.variant.name,
                "judge": task.judge.name,
                "label": task.label,
                "output": slug(task.variant.form.main),
                "main": task.samples == task.wanted[0],
                "once": task.samples == 1,
            }
            for task in everyone.tasks(DEFAULT).values()
            if task.name in here or task.judge.name in also
        }
        recorded = {
            entry.name: {"judge": entry.name, "label": str(self._entry_of(entry.name).get("label") or entry.name)}
            for entry in self.entries.values()
            if entry.dataset in datasets
        }
        return asked | recorded

    # What is evaluated and shown

    def main_outputs(self, metric: str, dataset: str) -> list[str]:
        """Return the outputs that stand for a metric or judge, as METRIC:OUTPUT: its entry's, a judge's main dimension."""
        if (task := self.judged.get(f"{dataset}/{metric}")) is not None:
            return [f"{metric}:{slug(task.variant.form.main)}"]
        return [f"{metric}:{output}" for output in self._main(metric)]

    def _entry_of(self, metric: str) -> Mapping[str, Any]:
        for section in ("metrics", "recorded", "recorded_judges"):
            if entry := (self.config.get(section) or {}).get(metric):
                return dict(entry)
        return {}

    def _main(self, metric: str) -> list[str]:
        return _mains(self._entry_of(metric))

    def outputs_named(self, names: Iterable[str], dataset: str) -> list[str]:
        """Return METRIC:OUTPUT of names that may leave the output out, as far as a data set has scores of the metric."""
        there = self.scores_by_metric(dataset)
        found = [
            output
            for name in names
            for output in ([name] if ":" in name else self.main_outputs(name, dataset))
            if output.rpartition(":")[0] in there
        ]
        return list(dict.fromkeys(found))

    @remembered
    def detailed_outputs(self, dataset: str) -> list[str]:
        """Return the scores of a data set that get intervals, tests and curves, as METRIC:OUTPUT: the main ones."""
        judged = self.judged_by(dataset)
        names = [name for name in self.scores_by_metric(dataset) if name not in judged]
        return self.outputs_named([*names, *judged], dataset)

    def evaluation_settings(self, dataset: str) -> dict[str, Any]:
        """Return what evaluation is told of a data set's ratings, and of which scores it looks at in detail."""
        return {
            **self.rated_by(dataset),
            **self.target(dataset),
            "levels": self.config["evaluation"]["levels"],
            "detailed": self.detailed_outputs(dataset),
            "seed": self.config["evaluation"]["seed"],
            # Only where asked for, so that nothing else is made anew.
            **({"fixed": True} if self.config["evaluation"].get("systems") == "fixed" else {}),
        }

    def sampled_judgements(self, dataset: str) -> list[str]:
        """Return single samples of the judges: of those asked several times, curves by their number can be drawn."""
        asked = [task.name for task in self.judged_tasks(dataset) if task.samples > 1]
        return self.judgements(dataset, [*asked, *self.recorded_judges_of(dataset)])

    def systems_outputs(self, dataset: str) -> list[str]:
        """Return the scores that tables of systems show, those included that the data set has none of: a note names them."""
        names = self.config["tables"]["systems"]
        return [output for name in names for output in ([name] if ":" in name else self.main_outputs(name, dataset))]

    @remembered
    def figure_outputs(self, figure: str, dataset: str) -> list[str]:
        """Return the outputs that a figure shows: those that `figures` names for it, as far as there are scores."""
        named = self.outputs_named(self.config["figures"].get(figure, []), dataset)
        return named or self.detailed_outputs(dataset)

    @remembered
    def judge_outputs(self, dataset: str) -> list[str]:
        """Return outputs of judges of turns: the main one of each prompt asked here, every one that others recorded."""
        tasks = [task for task in self.judged_tasks(dataset) if not task.variant.turns]
        asked = [f"{task.name}:{slug(task.variant.form.main)}" for task in tasks]
        entries = [entry for entry in self.recorded_judges.values() if entry.dataset == dataset]
        recorded = [entry for entry in entries if answer_format(entry.format).level == "turn"]
        return asked + [f"{entry.name}:{dimension}" for entry in recorded for dimension in entry.files]

    @remembered
    def labels(self, dataset: str) -> dict[str, str]:
        """Return what tables and figures call the outputs of a data set: by METRIC:OUTPUT, or by METRIC for all of its."""
        asked = self.asked(dataset).values()
        found = self.judge_labels(dataset) | {f"{one.name}:{slug(one.variant.form.main)}": one.label for one in asked}
        for name in self.scores_by_metric(dataset):
            entry = self._entry_of(name)
            found = found | _labels(name, entry, [*self._main(name), *entry.get("sources", ())])
        return found

    def labels_of(self, dataset: str, outputs: Iterable[str]) -> dict[str, str]:
        """Return what some outputs are called: another one's label makes nothing that shows these stale."""
        names = {*outputs, *map(metric_of, outputs)}
        return {name: label for name, label in self.labels(dataset).items() if name in names}

    def figure_settings(self, dataset: str, outputs: list[str]) -> dict[str, Any]:
        """Return what a drawing of some outputs of a data set is told."""
        return {
            **self.about(dataset),
            "outputs": outputs,
            "labels": self.labels_of(dataset, outputs),
        }

    def drawn(self) -> dict[str, int]:
        """Return how many resamples intervals are made of that only a figure shows, and their seed."""
        return {"resamples": self.config["figures"]["resamples"], "seed": self.config["evaluation"]["seed"]}

    # The study of LLMs as dialogue evaluators

    def _read_study(self) -> None:
        self.study: dict[str, Any] = self.config["studies"].get(ALONE) or {}
        if not {*self.study.get("datasets", []), *PERTURBATIONS} <= self.catalogue.datasets.keys():
            # Another catalogue need not have them.
            self.study = {}
        catalogue = self.catalogue
        self.studied = {name: catalogue.dataset(name) for name in self.study.get("datasets", [])}
        # Pairs of an original and a perturbed version: those that others recorded, and those made here.
        self.recorded_pairs = {name: catalogue.dataset(name) for name in PERTURBATIONS} if self.study else {}
        own = self.study.get("metrics", {})
        entries = {name: entry or self.config["metrics"].get(name) for name, entry in own.items()}
        self.study_entries = {name: entry for name, entry in entries.items() if entry}
        self.study_metrics = {
            name: self._made(entry, *(("studies", ALONE) if own[name] else ()), "metrics", name)
            for name, entry in self.study_entries.items()
        }
        spoiled = self.study.get("perturbed") or {}
        strategies = spoiled.get("strategies", "all")
        # Without names, those that cannot run here are left out.
        self.chosen_strategies = None if strategies == "all" else list(strategies)
        self.strategies = list(generated()) if strategies == "all" else list(strategies)
        for name in self.strategies:
            if name not in generated():
                where = self._place("studies", ALONE, "perturbed", "strategies")
                raise UnknownNameError("strategy", name, generated(), where=where)
        for name in spoiled.get("datasets", []):
            if name not in (known := [*self.datasets, *self.studied]):
                where = self._place("studies", ALONE, "perturbed", "datasets")
                raise UnknownNameError("data set", name, known, where=where)
        # What is read with the catalogue's readers: the data sets that were chosen, and the study's.
        self.read = {**self.public, **self.studied, **self.recorded_pairs}
        self.study_absent = dict.fromkeys(
            own.keys() - self.study_entries.keys(), "it is not among `metrics` in params.yaml"
        )
        self.study_absent |= {name: why for name, metric in self.study_metrics.items() if (why := metric.unavailable())}
        self.study_here = [name for name in self.study_metrics if name not in self.study_absent]
        self.perturbed = [perturbed(name) for name in spoiled.get("datasets", [])]
        # Any data set can be perturbed when it is asked for.
        self.perturbable = list(dict.fromkeys([*self.datasets, *self.studied])) if self.study else []
        self.paired = [*self.recorded_pairs, *map(perturbed, self.perturbable)]

    def study_options(self, name: str) -> dict[str, Any]:
        """Return a metric of the study as it says, or as `metrics` does where the study says nothing."""
        return _without(self.study_entries[name], *ABOUT)

    def study_outputs(self) -> list[str]:
        """Return the outputs that stand for metrics, of those that run here."""
        return list(self._study_labels())

    def _study_labels(self) -> dict[str, str]:
        """Return the main output of each metric that runs here, with what tables call it."""
        found: dict[str, str] = {}
        for name in self.study_here:
            entry = self.study_entries[name]
            for main in _mains(entry)[:1]:
                output = f"{name}:{main}"
                found[output] = _labels(name, entry, [main]).get(output, output)
        return found

    def study_tables(self, *datasets: str, names: Iterable[str] = TABLES) -> list[str]:
        """Return tables of data sets; a catalogue's reader writes all of them."""
        return [path for dataset in datasets for path in self.tables(dataset, *names).values()]

    def perturbed_inputs(self, dataset: str) -> list[str]:
        """Return the tables that are perturbed: all of a public data set, of another one those that it is sure to have."""
        if dataset in self.read:
            return self.study_tables(dataset)
        tables = self.tables(dataset, *(name for name in TABLES if not name.endswith("_ratings")))
        return [*tables.values(), *self.ratings(dataset).values()]

    def study_titles(self, datasets: Iterable[str]) -> dict[str, str]:
        """Return the titles of data sets; perturbed ones have their data set's."""
        bases = {name: unperturbed(name) for name in datasets}
        return {name: self.read[base].title if base in self.read else self.title(base) for name, base in bases.items()}

    @remembered
    def study_judges(self, dataset: str) -> list[Task]:
        """Return the judges of a data set of the study that there are or can be scores of."""
        return self.judged_tasks(dataset)

    def study_scores(self, dataset: str) -> list[str]:
        """Return the scores of a data set of the study: by its metrics, by judges, and as recorded."""
        judges = [task.name for task in self.study_judges(dataset)] + self.recorded_judges_of(dataset)
        return [
            f"results/{dataset}/study_scores.parquet",
            *(self.score_file(dataset, name) for name in judges),
        ]

    @remembered
    def study_bounds(self, *datasets: str) -> dict[str, dict[str, Any]]:
        """Return the lowest and highest score of each output that has them; of judges, their scale."""
        metrics: dict[str, dict[str, Any]] = {
            name: {output: ends for output, ends in self.study_metrics[name].bounds.items() if ends}
            for name in self.study_here
        }
        judges: dict[str, dict[str, Any]] = {
            task.name: {
                slug(dimension): (task.variant.form.low, task.variant.form.high)
                for dimension in task.variant.form.dimensions
            }
            for dataset in datasets
            for task in self.study_judges(dataset)
        }
        return metrics | judges

    @remembered
    def study_groups(self, *datasets: str) -> dict[str, list[str]]:
        """Return the judges that are a metric for each dimension, with these, of some data sets or of all."""
        return as_one([task for dataset in datasets or self.studied for task in self.study_judges(dataset)])

    @remembered
    def study_ensembles(self) -> dict[str, Any]:
        """Return the ensembles whose members there are scores of."""
        there = {*self.study_here, *(task.name for dataset in self.studied for task in self.study_judges(dataset))}
        there |= {name for dataset in self.studied for name in self.recorded_judges_of(dataset)}
        wanted = self.study.get("ensembles") or {}
        return {
            "dimensions": [
                *(name for name in wanted.get("dimensions", []) if name in there),
                *({name: outputs} for name, outputs in self.study_groups().items()),
            ],
            "models": {
                name: members
                for name, members in wanted.get("models", {}).items()
                if {metric_of(member) for member in members} <= there
            },
        }

    @remembered
    def study_needs(self) -> dict[str, list[str]]:
        """Return what each metric needs of a response: where a data set lacks it, there is no row."""
        needs = {name: list(self.study_metrics[name].needs) for name in self.study_here}
        # This one's sum has no value without facts, and its other outputs have.
        return needs | {
            name: ["facts"] for name, metric in self.study_metrics.items() if metric.kind == "grounded_cosine"
        }

    @remembered
    def study_not_asked(self) -> list[str]:
        """Return what no judge of the configuration was asked."""
        asked = any(task.variant.implicit for name in self.studied for task in self.asked(name).values())
        return [] if asked else ["implicit scoring: no judge of params.yaml gives probabilities (mode: probabilities)"]

    def study_not_run(self, datasets: Collection[str]) -> dict[str, str]:
        """Return the metrics and judges without scores, with the reason."""
        return self.study_absent | self._judges_not_run(datasets)

    @remembered
    def recorded_rounds(self) -> list[str]:
        """Return the metrics that are GPT-4's recorded rounds."""
        rounds = (entry for entry in self.entries.values() if entry.format == "gpt4_rounds")
        return [entry.name for entry in rounds if entry.dataset in self.studied]

    @remembered
    def study_labels(self) -> dict[str, str]:
        """Return what the study's tables call metrics and judges."""
        judges = {task.name: task for dataset in self.studied for task in self.study_judges(dataset)}
        programs = {name: f"{task.label}, a program" for name, task in judges.items() if task.judge.service == "rules"}
        groups = {name: f"Implicit by {name.removeprefix('implicit_')}" for name in self.study_groups()}
        # One row a judge, whose questions are a metric each.
        implicit = {name: f"Implicit by {task.judge.name}" for name, task in judges.items() if task.variant.implicit}
        asked = {name: task.label for name, task in judges.items()} | programs | implicit
        recorded = dict.fromkeys(self.recorded_rounds(), "GPT-4 (recorded)")
        return self._study_labels() | asked | recorded | groups

    def study_shared(self) -> dict[str, Any]:
        """Return what the study's tables are told alike."""
        return {"outputs": self.study_outputs(), "labels": self.study_labels()}

    def panel_judges(self, dataset: str) -> list[str]:
        """Return the judges that rate all dimensions of a data set."""
        return [task.name for task in self.study_judges(dataset) if len(task.variant.form.dimensions) > 1]

    # Checks

    def _check_names(self) -> None:
        """Refuse names of scores that nothing makes: a slip must not pass for a metric that was not run."""
        config = self.config
        known = {*self.metrics, *self.recorded, *self.entries, *(task.name for task in self.judged.values())}
        known |= {f"{variant}_{judge}" for variant in self.judging.variants for judge in self.judging.judges}
        named: list[tuple[tuple[str | int, ...], str]] = [
            *(
                (("figures", figure, place), name)
                for figure, names in config["figures"].items()
                if isinstance(names, list)
                for place, name in enumerate(names)
            ),
            *((("tables", "systems", place), name) for place, name in enumerate(config["tables"]["systems"])),
            *((("metrics", name, "main"), f"{name}:{output}") for name in self.metrics for output in self._main(name)),
        ]
        self._refuse_unknown("metric", named, known, self.metrics)
        self._check_study_names()

    def _check_study_names(self) -> None:
        study, metrics = self.study, self.study.get("metrics", {})
        # A configuration need not have the judges and metrics that a study names.
        asked = {*self.judging.judges, *study.get("judges", [])}
        judges = {f"{variant}_{judge}" for variant in self.judging.variants for judge in asked}
        ensembles = study.get("ensembles") or {}
        named = [
            *((("metrics", name, "main"), f"{name}:{output}") for name in metrics for output in _mains(metrics[name])),
            *((("ensembles", "dimensions"), name) for name in ensembles.get("dimensions", [])),
            *(
                (("ensembles", "models", model), name)
                for model, names in ensembles.get("models", {}).items()
                for name in names
            ),
        ]
        places: list[tuple[tuple[str | int, ...], str]] = [(("studies", ALONE, *keys), name) for keys, name in named]
        self._refuse_unknown("metric or judge", places, {*metrics, *judges, *self.entries}, self.study_metrics)
        if both := {*self.study_metrics} & {*judges, *self.entries}:
            raise ConfigError(f"{', '.join(sorted(both))}: both a metric and a judge", where=f"study {ALONE}, metrics")

    def _refuse_unknown(
        self,
        kind: str,
        named: Iterable[tuple[tuple[str | int, ...], str]],
        known: Collection[str],
        metrics: Mapping[str, Metric],
    ) -> None:
        """Refuse a metric or output that does not exist, and name all places: one that was removed may be left in several."""
        wrong: dict[tuple[str, str], list[tuple[str | int, ...]]] = {}
        for keys, name in named:
            metric, output = output_name(name, "")
            # An output that a metric does not have is a slip; one that a data set has no scores of is not.
            if metric not in known:
                wrong.setdefault((metric, ""), []).append(keys)
            elif metric in metrics and output and output not in metrics[metric].outputs:
                wrong.setdefault((metric, output), []).append(keys)
        for (metric, output), places in wrong.items():
            where = "; ".join(self._place(*keys) for keys in places)
            if output:
                raise UnknownNameError(f"output of {metric}", output, metrics[metric].outputs, where=where)
            raise UnknownNameError(kind, metric, known, where=where)

    @cached_property
    def wordnet(self) -> str | None:
        """The WordNet on this machine, which decides what is paraphrased; None if there is none."""
        from comperdial.data.wordnet import locate

        return found.version if (found := locate()) else None


def metric_of(name: str) -> str:
    """Return the metric of METRIC:OUTPUT."""
    return output_name(name, "")[0]


def _mains(entry: Mapping[str, Any] | None) -> list[str]:
    """Return the outputs that stand for a metric, as its entry says."""
    main = (entry or {}).get("main", [])
    return [main] if isinstance(main, str) else list(main)


def _labels(metric: str, entry: Mapping[str, Any], outputs: Iterable[str]) -> dict[str, str]:
    """Return what an entry calls outputs of its metric, by METRIC:OUTPUT.

    ``label`` is a text for each output, or one for all: for the one that stands for the metric, and by METRIC for the
    others, which are called after it. In a text for all, ``{output}`` is the output's name.
    """
    label, outputs = entry.get("label"), list(outputs)
    if label is None:
        return {}
    if isinstance(label, Mapping):
        return {f"{metric}:{name}": text for name, text in label.items()}
    if "{output}" in label:
        return {f"{metric}:{name}": label.replace("{output}", name) for name in outputs}
    return {metric: label} | ({f"{metric}:{outputs[0]}": label} if len(outputs) == 1 else {})


def _without(options: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in keys}


def _paths(challenge: Mapping[str, Any]) -> list[str]:
    """Return the files and folders that a challenge's entry names."""
    return [
        *(challenge[key] for key in ("dialogues", "agents", "comperdial") if key in challenge),
        *challenge.get("submissions", []),
        *challenge.get("ratings", {}).values(),
        *([challenge["simulated"]["raters"]] if "simulated" in challenge else []),
    ]


def _fits(path: str, signature: str) -> bool:
    """Say whether a file holds scores made in the way of a signature: pulled ones can stand for ones not made here."""
    if not Path(path).exists():
        return False
    import pyarrow.parquet

    made = pyarrow.parquet.read_table(path, columns=["signature"])["signature"].unique().to_pylist()
    # Of a model that is not here the checksum is not known: the one that the scores were made with stands in the tables.
    fitting = re.escape(signature).replace("@absent", "@[0-9a-f]{12}")
    return len(made) == 1 and re.fullmatch(fitting, made[0]) is not None
