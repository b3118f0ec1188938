"""A roster: a YAML file that lists agents to run, and the language model for those of the API track."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from comperdial.challenge.api import Api, SimulatedApi
from comperdial.config import load_yaml
from comperdial.config.checking import Expected, Lines, Maybe, Seed, Share, Strict, Text, checked, read_checked, rule
from comperdial.core.errors import ConfigError

MakeApi = Callable[[Mapping[str, Any], str], Api]
"""Makes the language model of an entry ``api`` that names a service; is told where the entry stands."""


class _Agent(Strict):
    id: Annotated[
        str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]*$"), Expected("letters, digits, dots, hyphens and underscores")
    ]
    kind: Maybe[Text] = None
    file: Maybe[Text] = None
    class_: Annotated[Maybe[Text], Field(alias="class")] = None
    track: Literal["gpu", "api"] | None = None
    skill: Maybe[Share] = None
    description: Maybe[Annotated[str, Expected("a text")]] = None
    options: Maybe[dict[str, Any]] = None

    @model_validator(mode="after")
    def _is_of_one_make(self) -> _Agent:
        if (self.kind is None) == (self.file is None):
            raise rule("both `kind` and `file`" if self.kind else "no `kind` and no `file`", "one of the two")
        return self


class _RosterFile(Strict):
    agents: list[_Agent]
    api: Maybe[dict[str, Any]] = None

    @model_validator(mode="after")
    def _have_names(self) -> _RosterFile:
        names: set[str] = set()
        for number, agent in enumerate(self.agents):
            if agent.id in names:
                raise rule(f"agent {agent.id!r} is there already", "each id once", "agents", number, "id")
            names.add(agent.id)
        return self


class _SimulatedModel(Strict):
    bank: Text
    strength: Share
    seed: Seed


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
    content = read_checked(_RosterFile, path)
    agents = [entry.model_dump(exclude_unset=True) for entry in content.agents]
    api, where = content.api, f"{path}, api"
    if api is None:
        return Roster(agents, None)
    # What names a key may hold one by mistake: nothing here shows it.
    if {"service", "key"} & set(api):
        return Roster(agents, *((make_api(api, where), None) if make_api else (None, where)))
    simulated = checked(_SimulatedModel, api, path, lines=Lines(path), under=["api"])
    return Roster(agents, SimulatedApi(simulated.bank, strength=simulated.strength, seed=simulated.seed))


def files_of(path: str | Path) -> list[str]:
    """Return the files that a roster's entries name: agents, and what they read."""
    roster = load_yaml(path)
    entries = [roster.get("api") or {}, *roster["agents"], *(agent.get("options", {}) for agent in roster["agents"])]
    # An agent that wraps another has the other's options inside its own.
    entries += [entry["options"] for entry in entries if isinstance(entry.get("options"), dict)]
    named = [value for entry in entries for value in entry.values() if isinstance(value, str)]
    # What is beside an agent's own file can be imported by it.
    beside = [file for agent in roster["agents"] if "file" in agent for file in Path(agent["file"]).parent.glob("*.py")]
    return sorted({*map(str, beside), *(value for value in named if Path(value).is_file())})
