"""How the workflow hands a job what ``params.yaml`` says: what decides scores as a parameter, else by environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from comperdial.judging.base import Judging, Task
from comperdial.judging.config import CONNECTION, SETTINGS, read_judging
from comperdial.judging.groups import DEFAULT

SETTINGS_VARIABLE = "COMPERDIAL_JUDGING"
"""The environment variable in which the workflow says how judges are reached, and what they may cost."""


def sections_of(task: Task, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the sections say of one task: all that decides what is asked and how it is read."""
    names = [name for name in (task.variant.turns, task.variant.name) if name]
    judge = {key: value for key, value in config["judges"][task.judge.name].items() if key not in (*CONNECTION, "role")}
    judging = {
        "judges": {DEFAULT: [task.judge.name]},
        # Roles say who asks a variant, which is settled here; labels are the tables'.
        "variants": {
            name: {
                key: value
                for key, value in config["judging"]["variants"][name].items()
                if key not in ("roles", "label")
            }
            for name in names
        },
        "prompts": config["judging"].get("prompts", "ours"),
    }
    return {"judges": {task.judge.name: judge}, "judging": judging}


def connections(judges: Mapping[str, Any] | None, judging: Mapping[str, Any] | None) -> str:
    """Return, as JSON, what the sections say beside that, for :data:`SETTINGS_VARIABLE`."""
    reached = {name: {key: entry[key] for key in CONNECTION if key in entry} for name, entry in (judges or {}).items()}
    settings = {key: judging[key] for key in SETTINGS if judging and key in judging}
    return json.dumps({"judges": reached, "judging": settings}, sort_keys=True)


def read_sections(sections: Mapping[str, Any]) -> Judging:
    """Put together what :func:`sections_of` and the environment's :func:`connections` say."""
    reached = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
    judges = {name: {**entry, **reached.get("judges", {}).get(name, {})} for name, entry in sections["judges"].items()}
    return read_judging(judges, {**sections["judging"], **reached.get("judging", {})})
