"""Studies: what papers want measured, what they reported, and how their tables and figures look. A folder each.

``study.yaml`` says what a study needs: its data sets and, where it has them, its metrics, judges, variants and recorded judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.config import load_yaml
from comperdial.config.checking import checked, read_checked
from comperdial.config.parameters import Study
from comperdial.config.registry import completed
from comperdial.config.studies import study_files
from comperdial.core.errors import ConfigError, UnknownNameError
from comperdial.judges.tasks import DEFAULT
from comperdial.metrics.named import ABOUT

FOLDER = Path(__file__).parent
ALONE = "llm_evaluators"
"""The study that scores its data sets by itself, with ensembles and perturbations; metrics of another are scored as all are."""

CONTRASTED = "local_metrics"
"""The study whose table shows planned contrasts."""


def with_studies(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with all studies in ``studies``, and what they ask of judges where ``params.yaml`` has its own.

    Parameters
    ----------
    config
        As ``params.yaml`` has it; what its ``studies`` says of one goes before the study's own file.

    Raises
    ------
    UnknownNameError
        When there is no such study, or it has no such setting.
    ConfigError
        When two things have one name.
    """
    config = completed(config)
    own = config.get("studies") or {}
    found = {}
    for path in study_files():
        read_checked(Study, path)
        found[path.parent.name] = load_yaml(path)
    for name, said in own.items():
        if name not in found:
            raise UnknownNameError("study", name, found, where="params.yaml, studies")
        found[name] = {**found[name], **said}
        checked(Study, found[name], where=f"study {name}, with what params.yaml says of it")
    merged = {**config, "studies": found}
    judging = dict(config.get("judging") or {})
    if judging:
        # What a study asks, other data sets are asked only where they say so.
        judging["asks"] = {DEFAULT: list(judging.get("variants") or ()), **(judging.get("asks") or {})}
    for name, study in found.items():
        if name != ALONE:
            if wrong := [key for key in ("ensembles", "perturbed") if study.get(key)]:
                raise ConfigError(f"`{wrong[0]}`", where=f"study {name}", expected=f"it in {ALONE} alone")
            merged["metrics"] = _with_metrics(merged.get("metrics") or {}, study, name)
        if study.get("planned_contrasts") and name != CONTRASTED:
            raise ConfigError("`planned_contrasts`", where=f"study {name}", expected=f"it in {CONTRASTED} alone")
        merged["recorded_judges"] = _joined(merged, study, "recorded_judges", name)
        if judging:
            judging["variants"] = _joined(judging, study, "variants", name)
            judges = study.get("judges") or []
            if name not in own:
                # A configuration need not have the judges that a study would ask.
                judges = [judge for judge in judges if judge in (config.get("judges") or {})]
            for key, said in (("judges", judges), ("asks", list(study.get("variants") or ()))):
                if said and name not in judging.get(key, {}):
                    judging[key] = {**judging.get(key, {}), name: said}
    if judging:
        merged["judging"] = judging
    return merged


def _with_metrics(known: Mapping[str, Any], study: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the metrics with those of a study, which score its data sets: its own, and those that it takes as they are.

    A metric that the configuration has too, with the same kind and options, is one metric: what the configuration says of
    its data sets and labels holds.
    """
    said, datasets = study.get("metrics") or {}, study.get("datasets") or []
    own = {
        metric: {"datasets": datasets, **entry}
        for metric, entry in said.items()
        if entry and not (metric in known and _made_of(entry) == _made_of(known[metric]))
    }
    found = _joined({"metrics": known}, {"metrics": own}, "metrics", name)
    for metric in said.keys() - own:
        if metric not in known:
            raise UnknownNameError("metric", metric, known, where=f"study {name}, metrics")
        if "datasets" in known[metric]:
            found[metric] = {**known[metric], "datasets": list(dict.fromkeys([*known[metric]["datasets"], *datasets]))}
    return found


def _made_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in ABOUT}


def _joined(there: Mapping[str, Any], study: Mapping[str, Any], key: str, name: str) -> dict[str, Any]:
    known, more = there.get(key) or {}, study.get(key) or {}
    if both := sorted(known.keys() & more.keys()):
        raise ConfigError(
            f"{both[0]!r} is the name of another one", where=f"study {name}, {key}", expected="its own name"
        )
    return {**known, **more}
