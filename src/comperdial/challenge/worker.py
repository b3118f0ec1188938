"""The process that an agent lives in: JSON lines in, JSON lines out, so that no agent can harm another or the runner.

Run by :mod:`comperdial.challenge.process` as ``python -m comperdial.challenge.worker``. What an agent prints goes to
standard error; the answers have a channel of their own.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from comperdial.challenge.agent import takes_api_responses
from comperdial.core.errors import ConfigError


def load(spec: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any class of a user's
    """Construct an agent.

    Parameters
    ----------
    spec
        ``kind`` (a kind of :mod:`comperdial.challenge.agents`) or ``file`` (a Python file) with ``class``; ``options``.
    """
    options = spec.get("options") or {}
    if "kind" in spec:
        from comperdial.challenge import agents

        return agents.create(spec["kind"], **options)
    path = Path(spec["file"]).resolve()
    if not path.is_file():
        raise ConfigError("no such file", where=str(path), expected="a Python file with the class of an agent")
    if path.suffix != ".py":
        raise ConfigError(f"a name that ends in {path.suffix!r}", where=str(path), expected="a Python file, .py")
    # Next to the file, as the challenge's own starter kit has it: agents import their neighbours.
    sys.path.insert(0, str(path.parent))
    # Registered, as dataclasses and pickle want it, but never in place of a module that is there already.
    module_name = path.stem if path.stem not in sys.modules else f"agent_{path.stem}"
    found = importlib.util.spec_from_file_location(module_name, path)
    assert found is not None and found.loader is not None  # noqa: S101 - a .py file has a loader
    module = importlib.util.module_from_spec(found)
    sys.modules[module_name] = module
    found.loader.exec_module(module)
    name = spec.get("class") or "UserAgent"
    if not hasattr(module, name):
        raise ConfigError(f"no class {name!r}", where=str(path), expected="the agent's class, by default UserAgent")
    return getattr(module, name)(**options)


def _plain(value: Any) -> Any:  # noqa: ANN401
    return {"type": type(value).__name__}


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    agent: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                agent = load(request["load"])
                value: Any = {"api": takes_api_responses(agent)}
            elif "api_responses" in request:
                value = agent.generate_responses(request["test_data"], request["api_responses"])
            else:
                value = agent.generate_responses(request["test_data"])
            text = json.dumps({"value": value}, default=_plain)
        # An agent may raise anything, SystemExit included: whatever it is, it is the agent's answer.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            text = json.dumps({"error": f"{type(error).__name__}: {error}"[:2000]})
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
