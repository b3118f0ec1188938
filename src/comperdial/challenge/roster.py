"""A roster: a YAML file that lists agents to run, and the language model for those of the API track."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comperdial.challenge.api import Api, SimulatedApi
from comperdial.challenge.limits import TRACKS
from comperdial.config import load_yaml
from comperdial.errors import ConfigError

MakeApi = Callable[[Mapping[str, Any], str], Api]
"""Makes the language model of an entry ``api`` that names a service; is told where the entry stands."""

_ENTRY = {"id", "kind", "file", "class", "track", "skill", "description", "options"}


@dataclass(frozen=True)
class Roster:
    """What a roster says.

    Attributes
    ----------
    agents
        Entries with ``id`` and either ``kind`` (of :mod:`comperdial.challenge.agents`) or ``file`` (a Python file) with
        ``class``; maybe ``track``, ``description``, ``options``, and ``skill`` (0 to 1), an input of simulated raters.
    model
        The language model of the API track; None if there is none, or nobody made it.
    unmade
        Where the entry of a service stands that nobody made; None if there is none.
    """

    agents: list[dict[str, Any]]
    model: Api | None
    unmade: str | None = None

    @property
    def api(self) -> Api | None:
        """Return the language model of the API track, or None.

        Raises
        ------
        ConfigError
            When the roster names a service, and was read without what makes its client.
        """
        if self.unmade:
            raise ConfigError(
                "it names a service, and nothing here can reach one",
                where=self.unmade,
                expected="bank, strength and seed of the simulated model, or `make_api` for read_roster",
            )
        return self.model

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        """Return what table ``systems`` says of each agent."""
        return {
            entry["id"]: {"kind": "agent", "track": entry.get("track"), "description": entry.get("description", "")}
            for entry in self.agents
        }

    @property
    def skills(self) -> dict[str, float]:
        """Return the skill of each agent that has one."""
        return {entry["id"]: float(entry["skill"]) for entry in self.agents if "skill" in entry}


def read_roster(path: str | Path, make_api: MakeApi | None = None) -> Roster:
    """Read and check a roster.

    Parameters
    ----------
    path
        The YAML file.
    make_api
        Makes the language model where the entry ``api`` names a service. Without it such a roster has no model, which
        is an error for who asks for it; who wants the agents only need not reach the service.

    Raises
    ------
    ConfigError
        Names the entry at fault.
    """
    content = load_yaml(path)
    if set(content) - {"agents", "api"} or not isinstance(content.get("agents"), list):
        raise ConfigError(
            f"it has {', '.join(map(str, content))}", where=str(path), expected="a list `agents`, and maybe `api`"
        )
    for number, entry in enumerate(content["agents"], start=1):
        _check(entry, f"{path}, agent {number}")
    names = [entry["id"] for entry in content["agents"]]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"agent {repeated!r} stands there twice", where=str(path), expected="each id once")
    api, where = content.get("api"), f"{path}, api"
    # What names a key may hold one by mistake: nothing here shows it.
    if isinstance(api, Mapping) and {"service", "key"} & set(api):
        return Roster(content["agents"], *((make_api(api, where), None) if make_api else (None, where)))
    return Roster(content["agents"], None if api is None else _simulated(api, where))


def _check(entry: Any, where: str) -> None:  # noqa: ANN401
    if not isinstance(entry, dict) or set(entry) - _ENTRY or ("kind" in entry) == ("file" in entry):
        raise ConfigError(
            f"the entry is {entry!r:.200}",
            where=where,
            expected=f"`kind` or `file`, and some of {', '.join(sorted(_ENTRY))}",
        )
    if not isinstance(entry.get("id"), str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", entry["id"]):
        raise ConfigError(f"id {entry.get('id')!r}", where=where, expected="letters, digits, dots, - and _")
    for key in ("kind", "file", "class", "description"):
        if not isinstance(entry.get(key, ""), str):
            raise ConfigError(f"{key} {entry[key]!r}", where=where, expected="a text")
    if entry.get("track") not in (None, *TRACKS):
        raise ConfigError(f"track {entry['track']!r}", where=where, expected=" or ".join(TRACKS))
    _check_share(entry.get("skill", 0), "skill", where)
    if not isinstance(entry.get("options", {}), dict):
        raise ConfigError(f"options are {entry['options']!r}", where=where, expected="a mapping")


def _check_share(value: Any, name: str, where: str) -> None:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"{name} {value!r}", where=where, expected="a number from 0 to 1")


def _simulated(options: Any, where: str) -> Api:  # noqa: ANN401
    if not isinstance(options, Mapping) or set(options) != {"bank", "strength", "seed"}:
        raise ConfigError(
            f"it is {options!r}", where=where, expected="bank, strength and seed of the simulated model, or a service"
        )
    _check_share(options["strength"], "strength", where)
    seed = options["seed"]
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"seed {seed!r}", where=where, expected="a whole number from 0 up")
    return SimulatedApi(options["bank"], strength=options["strength"], seed=options["seed"])
