"""The data sets and scorers selected by ``params.yaml``, the catalogue, the registries and the studies.

This module reads configuration and the state of this machine (available models, WordNet, pulled scores) and computes no
results. ``workflow/common.smk`` turns the selection into files; :func:`describe` writes what tables and figures need from it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from comperdial.challenge.dialogues import read_dialogues
from comperdial.challenge.submissions import is_submission
from comperdial.config import load_yaml
from comperdial.config.checking import Lines
from comperdial.config.parameters import read_parameters
from comperdial.config.registry import REGISTRIES, registered
from comperdial.config.studies import params_file, shown_outputs, study_files, with_studies
from comperdial.core.errors import ComperdialError, ConfigError, UnknownNameError
from comperdial.core.files import read_json
from comperdial.core.names import PERTURBATIONS, output_name, perturbed, unperturbed
from comperdial.core.scripts import JAPANESE, Writing
from comperdial.data.catalogue import load_catalogue
from comperdial.data.export import published_files
from comperdial.data.readers.table import rated, texts
from comperdial.data.recorded import read_entries
from comperdial.judges.recorded import FORMATS as ANSWER_FORMATS
from comperdial.judges.tasks import DEFAULT, Task, groups_of, judged_levels, read_judging, slug
from comperdial.metrics import create, kinds
from comperdial.metrics.base import Metric
from comperdial.metrics.named import ABOUT, suited, why_unsuited
from comperdial.metrics.scoring import expected_of
from comperdial.perturbations import generated

# Folders in results/ that are not data sets.
_FOLDERS = {"local", "notebooks", "personas", "studies"}
# Hundreds of jobs query the single selection of a process.
_once = cache


class Selection:
    """The selected data sets and their scorers.

    Parameters
    ----------
    config
        ``params.yaml``, merged with the command line.
    lines
        Line lookup for messages.

    Attributes
    ----------
    chosen
        The data sets in ``datasets`` of ``params.yaml``, which plain ``snakemake`` builds.
    datasets
        These and the data sets of studies, without perturbed ones.
    public, own, challenges
        ``datasets`` by origin. Texts of public ones were downloaded and may not be republished. A challenge is ``made`` or
        ``imported``, and ``simulated`` if its raters are programs.
    metrics, unavailable
        The metrics by name, and why some cannot run here.

    Raises
    ------
    ConfigError
        If names or files do not exist or are inconsistent.
    """

    def __init__(self, config: Mapping[str, Any], lines: Lines | None = None) -> None:
        lines = lines or Lines(option="params.yaml")
        read_parameters(config, lines=lines)
        self._lines = Lines(*REGISTRIES, *study_files(), *lines.paths, option=lines.option)
        self._own_studies = config.get("studies") or {}
        self.config = with_studies(config)
        self.studies: Mapping[str, Any] = self.config["studies"]
        self.catalogue = load_catalogue(config["catalogue"])
        self._read_datasets()
        self._check_files()
        self.levels = {name: self._levels_of(name) for name in self.datasets}
        self.rated = [name for name in self.datasets if self.levels[name]]
        self.metrics = {name: self._made(name, entry) for name, entry in self.config["metrics"].items()}
        self.unavailable = {name: why for name, metric in self.metrics.items() if (why := metric.unavailable())}
        # Metrics computed from other metrics' scores, with those metrics.
        self.combined: dict[str, Mapping[str, Metric]] = {
            name: metric.parts
            for name, metric in self.metrics.items()
            if name not in self.unavailable and hasattr(metric, "parts")
        }
        self._read_scorers()
        self._check_names()

    @classmethod
    def read(cls, path: str | Path | None = None) -> Selection:
        """Return the selection of the local or a given ``params.yaml``."""
        where = params_file(path)
        return cls(load_yaml(where), Lines(where))

    def _check(self, kind: str, name: str, known: Collection[str], *place: str | int) -> None:
        """Raise an error, with its location, if a name does not exist."""
        if name not in known:
            raise UnknownNameError(kind, name, known, where=self._place(*place))

    def _place(self, *keys: str | int) -> str:
        if keys[0] == "studies" and keys[2] not in self._own_studies.get(keys[1], {}):
            return f"study {keys[1]}, {'.'.join(map(str, keys[2:]))}"
        value: Any = self.config
        for key in keys:
            value = value[key]
        return self._lines.place(keys, value)

    # Data sets

    def _read_datasets(self) -> None:
        config, catalogue = self.config, self.catalogue
        own, chosen = dict(config.get("own_data") or {}), list(config["datasets"])
        for place, path in enumerate(map(Path, chosen)):
            # Names of data sets have no dots.
            if path.suffix:
                name = chosen[place] = file_name(path)
                if name in {*own, *config["challenges"], *catalogue.datasets}:
                    raise ConfigError(f"{path}: there is a data set {name!r} already", hint="Rename the file")
                own[name] = {"file": str(path), "title": path.stem}
        self.chosen = chosen
        self.names = [*own, *config["challenges"], *catalogue.datasets]
        for name in self.names:
            if name in _FOLDERS:
                problem = f"{name!r} is a folder of results"
                raise ConfigError(problem, where="params.yaml", expected="another name", hint="Rename it")
            if self.names.count(name) > 1:
                raise ConfigError(f"two data sets are called {name!r}", where="params.yaml and the catalogue")
        for place, name in enumerate(chosen):
            self._check("dataset", name, self.names, "datasets", place)
        for study, entry in self._own_studies.items():
            for name in entry.get("datasets", []):
                self._check("dataset", name, self.names, "studies", study, "datasets")
        self._check("dataset", config["tables"]["benchmark"], self.names, "tables", "benchmark")
        # Skip studies with unknown data sets, which another catalogue may lack.
        self.sets_of = {
            name: list(study["datasets"])
            for name, study in self.studies.items()
            if study.get("datasets") and {*study["datasets"]} <= {*self.names}
        }
        wanted = list(dict.fromkeys([*chosen, *(name for names in self.sets_of.values() for name in names)]))
        self.challenges = {name: config["challenges"][name] for name in wanted if name in config["challenges"]}
        self.own = {name: own[name] for name in wanted if name in own}
        self.public = {name: catalogue.dataset(name) for name in wanted if name not in {**self.challenges, **self.own}}
        self.datasets = [*self.public, *self.challenges, *self.own]
        # A challenge's entry decides how its tables are made.
        self.made, self.imported, self.simulated = (
            [name for name, challenge in self.challenges.items() if key in challenge]
            for key in ("dialogues", "comperdial", "simulated")
        )
        # Pairs of an original and a perturbed version: recorded by others, or generated from any data set.
        pairs = PERTURBATIONS if {*PERTURBATIONS} <= catalogue.datasets.keys() else ()
        self.recorded_pairs = {name: catalogue.dataset(name) for name in pairs}
        self.perturbed = [perturbed(name) for name in wanted]

    def _check_files(self) -> None:
        """Raise an error if a file does not exist: Snakemake would silently use results of an earlier run."""
        named = [self.config["personas"]["graph"], self.config["personas"]["constraints"]]
        named += [entry["file"] for entry in self.own.values()]
        for entry in self.challenges.values():
            named += [entry[key] for key in ("dialogues", "comperdial") if key in entry]
            named += [*map(agent_file, entry.get("agents", {}).values()), *entry.get("submissions", [])]
            named += [*entry.get("ratings", {}).values(), entry.get("simulated", {}).get("raters", ".")]
        for path in named:
            if not Path(path).exists():
                raise ConfigError(f"{path}: no such file or folder", where="params.yaml")
        for name in self.imported:
            published_files(self.challenges[name]["comperdial"])
        for name, dataset in self.public.items():
            if unpinned := [source.name for source in dataset.files.values() if not source.pinned]:
                hint = f"Run `comperdial fetch {name}` once: it downloads the files and records their checksums"
                raise ConfigError(f"{name}: the checksum of {', '.join(unpinned)} is not known", hint=hint)

    def _levels_of(self, dataset: str) -> list[str]:
        """Return the rated levels of a data set; reject a dimension or source that a user's file lacks."""
        if dataset in self.public:
            return list(self.public[dataset].levels)
        if dataset in self.own:
            entry = self.own[dataset]
            known = rated(entry["file"], self.own_options(dataset))
            for key, kind, names in (("target", "dimension", known.dimensions), ("source", "source", known.sources)):
                if names and key in entry:
                    self._check(kind, entry[key], names, "own_data", dataset, key)
            return list(known.levels)
        if dataset in [*self.simulated, *self.imported]:
            return ["turn", "dialogue"]
        return list(self.challenges[dataset].get("ratings", {}))

    def own_options(self, dataset: str) -> dict[str, Any]:
        """Return the column map and scale of a user's file."""
        return {key: self.own[dataset][key] for key in ("columns", "scale") if key in self.own[dataset]}

    def entry(self, dataset: str) -> Mapping[str, Any]:
        """Return the entry of a data set in ``params.yaml`` or the catalogue."""
        if catalogued := self.public.get(dataset) or self.recorded_pairs.get(dataset):
            return vars(catalogued)
        return self.challenges.get(dataset) or self.own.get(dataset) or {}

    @_once
    def title(self, dataset: str) -> str:
        """Return a data set's display name, with its rater if that was not a person."""
        if dataset in self.perturbed and dataset not in self.datasets:
            return self.title(unperturbed(dataset))
        title, source = self.entry(dataset).get("title") or dataset, self.source(dataset)
        return title if source in ("human", "simulated") else f"{title} (rated by {source})"

    @_once
    def source(self, dataset: str) -> str:
        """Return the source of the ratings to evaluate with, from the entry, the files or the configuration."""
        source = None if dataset in self.recorded_pairs else self.entry(dataset).get("source")
        if not source and dataset in self.simulated:
            source = "simulated"
        if not source and dataset in self.imported:
            path = Path(self.challenges[dataset]["comperdial"]) / "ComperDial_systems.json"
            source = read_json(path).get("source") if path.is_file() else None
        return str(source or self.config["evaluation"]["source"])

    @_once
    def writing(self, dataset: str) -> Writing | None:
        """Return the scripts of a data set's texts; None for English data sets of the catalogue."""
        if dataset in self.own:
            return Writing.of(*texts(self.own[dataset]["file"], self.own_options(dataset)))
        if dataset in self.made:
            dialogues = read_dialogues(self.challenges[dataset]["dialogues"])
            return Writing.of(text for dialogue in dialogues for text in dialogue.texts)
        known = self.catalogue.datasets.get(dataset)
        return Writing({JAPANESE: 1.0}, without_spaces=True, beyond_ascii=True) if known and known.script else None

    def submissions(self, challenge: str) -> list[str]:
        """Return the submission files of a challenge, including those in its folders.

        Names that Snakemake would read as wildcards are left out; the command reads whole folders.
        """
        files: list[str] = []
        for path in map(Path, self.challenges[challenge].get("submissions", [])):
            files += map(str, sorted(filter(is_submission, path.iterdir())) if path.is_dir() else [path])
        return [name for name in files if not set("{}") & set(name) and name.isprintable()]

    def has(self, dataset: str, wanted: Iterable[str]) -> bool:
        """Return whether a data set meets all conditions of ``when`` in ``report/dataset.yaml``."""
        judged, recorded = self.judged_by(dataset), self.recorded_judges_of(dataset)
        known = {
            "rated": bool(self.levels[dataset]),
            "turns": "turn" in self.levels[dataset],
            "dialogues": "dialogue" in self.levels[dataset],
            "judges": bool(judged),
            "recorded_judges": bool(recorded),
            "judges_of_turns": bool(self.judge_outputs(dataset)),
            # G-Eval's prompts ask only for a number.
            "judges_with_reasons": bool(judged)
            or not all(self.recorded_judges[name].prompt.startswith("geval") for name in recorded),
            "personas": dataset in [*self.made, *self.imported],
            # Data sets of the study have these as numbered tables.
            "outside_comperdial": dataset not in self.sets_of.get("comperdial", []),
        }
        return all(known[name] for name in wanted)

    # Metrics

    def _made(self, name: str, entry: Mapping[str, Any]) -> Metric:
        try:
            return create(entry["kind"], **{key: value for key, value in entry.items() if key not in ("kind", *ABOUT)})
        except ComperdialError as error:
            where = self._place("metrics", name, "kind").removesuffix(".kind")
            error.where = f"{where}, {error.where}" if error.where else where
            raise

    @_once
    def metric(self, dataset: str, name: str) -> Metric:
        """Return a metric with the settings for a data set; for some scripts its signature includes the word splitting."""
        writing = self.writing(dataset)
        return suited(self.metrics[name], writing) if writing else self.metrics[name]

    @_once
    def metrics_of(self, dataset: str) -> list[str]:
        """Return the metrics to score a data set with, whether or not they can run here.

        These are all metrics except those restricted to other data sets. Data sets used only by studies with
        ``own_metrics_only`` get the metrics that these list; pairs get those of the studies with pairs.
        """
        base, entries = unperturbed(dataset), self.config["metrics"]
        own: list[Mapping[str, Any]] = [self.studies[study] for study, names in self.sets_of.items() if base in names]
        if dataset not in self.datasets:
            own = [study for study in self.studies.values() if study.get("perturbed")]
        elif dataset in self.chosen or not all(study.get("own_metrics_only") for study in own):
            own = [{"metrics": self.metrics}]
        return [
            name
            for name in dict.fromkeys(name for study in own for name in study.get("metrics") or ())
            if (dataset not in self.datasets or base in entries[name].get("datasets", [base]))
            and dataset not in entries[name].get("skip", [])
        ]

    @_once
    def why_not_scored(self, dataset: str, metric: str) -> str | None:
        """Return why a metric cannot score a data set; None if it can run here or matching scores were pulled."""
        writing = self.writing(dataset)
        if writing and (why := why_unsuited(self.metrics[metric], writing)):
            return why
        why = self.unavailable.get(metric)
        return None if why and _fits(score_file(dataset, metric), self.metric(dataset, metric).signature()) else why

    def scored_by(self, dataset: str, metric: str) -> bool:
        """Return whether scores of a data set by a metric exist or can be computed."""
        return metric in self.metrics_of(dataset) and self.why_not_scored(dataset, metric) is None

    @_once
    def parts_of(self, dataset: str, metric: str) -> list[str]:
        """Return the parts of a combined metric that are available for a data set with the same settings."""
        return [
            name
            for name, part in self.combined[metric].items()
            if name in self.metrics
            and self.metric(dataset, name).signature() == part.signature()
            and self.scored_by(dataset, name)
        ]

    @_once
    def expected(self, dataset: str) -> dict[str, Any]:
        """Return the signature of each metric of a data set, and the context fields that each output needs."""
        names = self.metrics_of(dataset)
        return {name: expected_of(self.metric(dataset, name)) for name in names if self.scored_by(dataset, name)}

    # Recorded scores and judges

    def _read_scorers(self) -> None:
        config, pairs = self.config, [*self.recorded_pairs, *self.perturbed]
        sections = [config.get(key) or {} for key in ("recorded_judges", "recorded", "metrics")]
        self.entries = {name: entry for section in sections for name, entry in section.items()}
        self.recorded = read_entries(
            config.get("recorded"), taken={*self.metrics, *kinds()}, datasets=self.names, catalogue=self.catalogue
        )
        for name, entry in self.recorded.items():
            if isinstance(entry.file, Path):
                if not entry.file.is_file():
                    raise ConfigError(f"{entry.file}: no such file", where=self._place("recorded", name, "path"))
            elif not entry.file.pinned and entry.dataset in self.datasets:
                hint = f"Run `comperdial fetch {entry.file.name}` once"
                raise ConfigError(f"{name}: the checksum of {entry.file.name} is not known", hint=hint)
        datasets = [*config["challenges"], *self.catalogue.datasets]
        self.judging = read_judging(
            config.get("judges"),
            config.get("judging"),
            datasets=[*datasets, *pairs],
            groups=groups_of(config),
            lines=self._lines,
        )
        self.tasks: dict[str, dict[str, Task]] = {
            dataset: self.judging.tasks(dataset, **judged_levels(dataset, self.entry(dataset).get("levels")))
            for dataset in dict.fromkeys([*self.datasets, *pairs])
        }
        judged = {name for tasks in self.tasks.values() for name in tasks}
        if both := judged & {*self.metrics, *self.recorded}:
            raise ConfigError(f"{', '.join(sorted(both))}: both a metric and a judge's variant", where="params.yaml")
        self.recorded_judges = read_entries(
            config.get("recorded_judges"),
            key="recorded_judges",
            formats=ANSWER_FORMATS,
            taken={*self.metrics, *self.recorded, *judged},
            datasets=datasets,
            catalogue=self.catalogue,
        )

    @_once
    def why_not_judged(self, dataset: str, name: str) -> str | None:
        """Return why a judge's metric has no scores and cannot get any here; otherwise None."""
        task = self.tasks[dataset][name]
        why = task.unavailable(dataset)
        # The signature of a missing model is unknown, so its scores cannot be verified.
        fits = why and (known := task.known_signature) and _fits(score_file(dataset, name), known)
        return None if fits else why

    def judged_by(self, dataset: str) -> list[Task]:
        """Return the judge tasks of a data set that have scores or can get them."""
        return [task for name, task in self.tasks.get(dataset, {}).items() if not self.why_not_judged(dataset, name)]

    def recorded_judges_of(self, dataset: str) -> list[str]:
        """Return the recorded judges of a data set."""
        return [name for name, entry in self.recorded_judges.items() if entry.dataset == dataset]

    def sampled(self, dataset: str) -> list[str]:
        """Return the judges with several answers per item, for curves over their number."""
        asked = [task.name for task in self.judged_by(dataset) if task.samples > 1]
        return [*asked, *self.recorded_judges_of(dataset)]

    @_once
    def judge_outputs(self, dataset: str) -> list[str]:
        """Return the outputs of turn-level judges: the main one of each prompt asked here, and all recorded ones."""
        asked = [_main_output(task) for task in self.judged_by(dataset) if not task.variant.turns]
        entries = [self.recorded_judges[name] for name in self.recorded_judges_of(dataset)]
        entries = [entry for entry in entries if ANSWER_FORMATS[entry.format].level == "turn"]
        return asked + [f"{entry.name}:{dimension}" for entry in entries for dimension in entry.files]

    # Everything that scores a data set

    @_once
    def scorers(self, dataset: str, *, apart: bool = False) -> list[str]:
        """Return all scorers of a data set: metrics, recorded scores, judges and recorded judges.

        Metrics marked ``apart`` are included only on request, and appear in no general table.
        """
        entries = self.config["metrics"]
        return [
            *(name for name in self.expected(dataset) if apart or not entries[name].get("apart")),
            *(name for name, entry in self.recorded.items() if entry.dataset == dataset),
            *(task.name for task in self.judged_by(dataset)),
            *self.recorded_judges_of(dataset),
        ]

    def not_run(self, dataset: str) -> dict[str, str]:
        """Return the metrics and judges without scores of a data set, with the reason."""
        reasons = {name: self.why_not_scored(dataset, name) for name in self.metrics_of(dataset)}
        reasons |= {name: self.why_not_judged(dataset, name) for name in self.tasks.get(dataset, {})}
        return {name: why for name, why in reasons.items() if why}

    def main_outputs(self, metric: str, dataset: str) -> list[str]:
        """Return the main outputs of a metric or judge, as METRIC:OUTPUT."""
        if task := self.tasks.get(dataset, {}).get(metric):
            return [_main_output(task)]
        return [f"{metric}:{output}" for output in _mains(self.entries.get(metric, {}))]

    def outputs_named(self, names: Iterable[str], dataset: str, *, all_of: bool = False) -> list[str]:
        """Expand names to METRIC:OUTPUT; keep those with scores of the data set, or all of them."""
        there = {*self.scorers(dataset)}
        outputs = [output for name in names for output in ([name] if ":" in name else self.main_outputs(name, dataset))]
        return outputs if all_of else [*dict.fromkeys(one for one in outputs if one.rpartition(":")[0] in there)]

    @_once
    def outputs(self, dataset: str) -> list[str]:
        """Return the main outputs of a data set's scorers, which get intervals and tests; judges come last."""
        judged = [task.name for task in self.judged_by(dataset)]
        return self.outputs_named([*(n for n in self.scorers(dataset) if n not in judged), *judged], dataset)

    @_once
    def labels(self, dataset: str) -> dict[str, str]:
        """Return display labels by METRIC:OUTPUT, or by METRIC for all of its outputs.

        ``label`` of an entry is one text per output, or a single text: the main output's label, used by METRIC for the others,
        which append their own name. In a single text, ``{output}`` stands for the output's name.
        """
        tasks = self.tasks.get(dataset, {}).values()
        labels = {name: task.label for task in tasks for name in (task.name, _main_output(task))}
        recorded = [*self.recorded.values(), *self.recorded_judges.values()]
        for name in [*self.metrics_of(dataset), *(entry.name for entry in recorded if entry.dataset == dataset)]:
            entry = self.entries[name]
            label, outputs = entry.get("label"), [*_mains(entry), *entry.get("sources", ())]
            if isinstance(label, Mapping):
                labels |= {f"{name}:{output}": text for output, text in label.items()}
            elif label and "{output}" in label:
                labels |= {f"{name}:{output}": label.replace("{output}", output) for output in outputs}
            elif label:
                labels |= {name: label} | ({f"{name}:{outputs[0]}": label} if len(outputs) == 1 else {})
        return labels

    def _check_names(self) -> None:
        """Reject score names that nothing produces, so that a typo is not mistaken for a metric that was not run."""
        config, variants = self.config, self.judging.variants
        known = {*self.metrics, *self.recorded, *self.recorded_judges}
        known |= {name for tasks in self.tasks.values() for name in tasks}
        known |= {f"{variant}_{judge}" for variant in variants for judge in self.judging.judges}
        lists = {("figures", key): names for key, names in config["figures"].items() if isinstance(names, list)}
        lists["tables", "systems"] = config["tables"]["systems"]
        for name in self.metrics:
            for output in _mains(config["metrics"][name]):
                self._check(f"output of {name}", output, self.metrics[name].outputs, "metrics", name, "main")
        for keys, names in lists.items():
            for place, name in enumerate(names):
                self._check_output(name, known, *keys, place)
        # A configuration may lack metrics and judges of a study; only names unknown everywhere are typos.
        known |= {name for key in ("metrics", "recorded", "recorded_judges") for name in registered(key)} | {"human"}
        asked = {*variants, *registered("judging", "variants")}
        for study, entry in self.studies.items():
            known_here = known | {f"{one}_recorded" for one in entry.get("raters", ())}
            for output in shown_outputs({kind: entry.get(kind) for kind in ("tables", "figures")}):
                if output_name(output)[0].rpartition("_")[0] not in asked:
                    self._check_output(output, known_here, "studies", study, "tables")
            strategies = (entry.get("perturbed") or {}).get("strategies", "all")
            for name in [] if strategies == "all" else strategies:
                self._check("strategy", name, generated(), "studies", study, "perturbed", "strategies")

    def _check_output(self, text: str, known: Collection[str], *place: str | int) -> None:
        """Reject an unknown METRIC or METRIC:OUTPUT; missing scores in a data set are not an error."""
        metric, output = output_name(text, "")
        self._check("metric", metric, known, *place)
        if metric in self.metrics and output:
            self._check(f"output of {metric}", output, self.metrics[metric].outputs, *place)


def describe(selection: Selection, dataset: str) -> dict[str, Any]:
    """Return the configuration of a data set for tables, figures and pages: ``about.json``."""
    config, judged, outputs = selection.config, selection.judged_by(dataset), selection.outputs(dataset)
    metrics, figures = selection.metrics_of(dataset), config["figures"]
    bounds = {
        **{name: {one: ends for one, ends in selection.metrics[name].bounds.items() if ends} for name in metrics},
        # The judges' scales.
        **{
            task.name: dict.fromkeys(map(slug, form.dimensions), (form.low, form.high))
            for task in judged
            for form in [task.variant.form]
        },
    }
    return {
        "dataset": dataset,
        "title": selection.title(dataset),
        "source": selection.source(dataset),
        "levels": selection.levels.get(dataset, []),
        "target": selection.entry(dataset).get("target") or None,
        "main_target": config["evaluation"]["target"],
        "labels": selection.labels(dataset),
        "outputs": outputs,
        "scorers": selection.scorers(dataset, apart=True),
        "apart": [name for name, entry in config["metrics"].items() if entry.get("apart")],
        "judged": [task.name for task in judged],
        "recorded_judges": selection.recorded_judges_of(dataset),
        "not_run": selection.not_run(dataset),
        "recorded_of": {
            name: entry.dataset for name, entry in [*selection.recorded.items(), *selection.recorded_judges.items()]
        },
        "mains": {name: _mains(selection.entries[name]) for name in metrics},
        "bounds": {name: of for name, of in bounds.items() if of},
        "judges": _judge_metrics(selection, dataset),
        "judge_outputs": selection.judge_outputs(dataset),
        # Includes outputs that the data set has no scores of.
        "systems_outputs": selection.outputs_named(config["tables"]["systems"], dataset, all_of=True),
        # Those in `figures`, otherwise the main ones.
        "figure_outputs": {
            figure: selection.outputs_named(figures.get(figure, []), dataset) or outputs
            for figure in ("heatmap", "scatter", "slope", "length_bias", "judge_agreement", "curves")
        },
        "metrics": metrics,
        "agreement": config["agreement"],
        "resamples": figures["resamples"],
        "seed": config["evaluation"]["seed"],
        "level_differences": config["tables"]["level_differences"],
        "coefficient": config["evaluation"]["curves"]["coefficient"],
    }


def _judge_metrics(selection: Selection, dataset: str) -> dict[str, dict[str, Any]]:
    """Return variant, judge, label and outputs of each judge metric; `asked` if this data set has it."""
    everyone = dataclasses.replace(selection.judging, by_dataset={DEFAULT: tuple(selection.judging.judges)})
    here = selection.tasks.get(dataset, {})
    asked = {
        task.name: {
            "variant": task.variant.name,
            "judge": task.judge.name,
            "service": task.judge.service,
            "label": task.label,
            "output": slug(task.variant.form.main),
            "outputs": [slug(dimension) for dimension in task.variant.form.dimensions],
            "level": task.variant.level,
            "scale": [task.variant.form.low, task.variant.form.high],
            "implicit": task.variant.implicit,
            "main": task.samples == task.wanted[0],
            "once": task.samples == 1,
            "asked": task.name in here,
        }
        for task in [*everyone.tasks(DEFAULT).values(), *here.values()]
    }
    recorded = {
        name: {
            "judge": name,
            "label": str(selection.entries[name].get("label") or name),
            "format": selection.recorded_judges[name].format,
            "model": selection.recorded_judges[name].model,
            "prompt": selection.recorded_judges[name].prompt,
            "asked": True,
        }
        for name in selection.recorded_judges_of(dataset)
    }
    return asked | recorded


def check_targets(selection: Selection, arguments: Iterable[str]) -> None:
    """Reject a target for an unknown or unselected data set: Snakemake's error would name only the file.

    Raises
    ------
    ConfigError
        Lists the data sets, or explains how to select this one.
    """
    selected = {*selection.datasets, *selection.recorded_pairs, *selection.perturbed, *_FOLDERS}
    for argument in arguments:
        folder = re.match(r"(results|data/tables)/([^/]+)/", argument)
        if not folder or folder[2] in selected:
            continue
        name = unperturbed(folder[2])
        if name not in selection.names:
            raise UnknownNameError("dataset", name, selection.names, where=argument)
        # Preference tables also exist for data sets that are not selected.
        if folder[1] == "results":
            hint = f"Run `snakemake --config 'datasets=[{name}]' -- {argument}`"
            expected = "a data set of params.yaml or of a study"
            raise ConfigError(f"{name} is not selected", where=argument, expected=expected, hint=hint)


def score_file(dataset: str, metric: str) -> str:
    """Return the path of a data set's scores by a metric."""
    return f"results/{dataset}/scores/{metric}.parquet"


def file_name(path: str | Path) -> str:
    """Return the data set name for a user's file."""
    return re.sub("[^a-z0-9_]+", "_", Path(path).stem.lower())


def agent_file(agent: str) -> str:
    """Return the file of an agent given as FILE or FILE:CLASS."""
    return agent.partition(":")[0]


def _mains(entry: Mapping[str, Any]) -> list[str]:
    main = entry.get("main", [])
    return [main] if isinstance(main, str) else list(main)


def _main_output(task: Task) -> str:
    return f"{task.name}:{slug(task.variant.form.main)}"


def _fits(path: str, wanted: str) -> bool:
    """Return whether a file contains scores with a signature; pulled scores replace those not computed here."""
    if not Path(path).exists():
        return False
    import pyarrow.parquet

    made = pyarrow.parquet.read_table(path, columns=["signature"])["signature"].unique().to_pylist()
    # The checksum of a missing model is unknown: accept any in the file's signature.
    fitting = re.escape(wanted).replace("@absent", "@[0-9a-f]{12}")
    return len(made) == 1 and re.fullmatch(fitting, made[0]) is not None
