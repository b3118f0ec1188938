"""Commands that still use argparse; goes with the last of them."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from comperdial import __version__
from comperdial.cli.common import named_path
from comperdial.core.errors import UnknownNameError, shown
from comperdial.core.files import printable

_MODULES = (
    "evaluate", "continuity", "steps", "dimensions", "challenge", "annotate",
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """A parser, also of each command, that suggests the nearest known name for a wrong one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*arguments, **options)
        self.register("type", Path, named_path)

    def parse_known_args(self, *arguments: Any) -> tuple[argparse.Namespace, list[str]]:  # type: ignore[override]  # noqa: ANN401
        options, unknown = super().parse_known_args(*arguments)
        if unknown:
            near = get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, 1)
            hint = f". Did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(map(printable, unknown))}{hint}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        if action.choices is not None and value not in action.choices:
            kind = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
            raise argparse.ArgumentError(action, str(UnknownNameError(kind, str(value), map(str, action.choices))))

    def error(self, message: str) -> NoReturn:
        super().error(shown(message, at_most=3000))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of ``comperdial`` with all its commands."""
    parser = _Parser(prog="comperdial", description="Which automatic metric of dialogue quality agrees with people?")
    parser.add_argument("--version", action="version", version=f"comperdial {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name in _MODULES:
        import_module(f"comperdial.cli.{name}").add_commands(commands)
    return parser
