"""Commands that cut a large job into shards and put together what these have made."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.errors import ConfigError


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("shards", help="say into how many shards a folder of tables is cut")
    command.add_argument("folder", type=Path, help="holds responses.parquet")
    command.add_argument("--size", type=int, required=True, metavar="N", help="responses that a shard has, about")
    command.add_argument("--output", type=Path, required=True, help="a .json file: responses, size, shards")
    command.set_defaults(run=_shards)

    command = commands.add_parser("merge", help="merge the tables that shards have made into one")
    command.add_argument("shards", type=Path, nargs="+", metavar="SHARD", help="tables, as .parquet files")
    command.add_argument("--output", type=Path, required=True, help="a .parquet file")
    command.set_defaults(run=_merge)


def _shards(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.files import write_json

    if options.size < 1:
        raise ConfigError(f"shards of {options.size} responses", where="--size", expected="1 or more")
    responses = schema.count(options.folder / "responses.parquet", "responses")
    cut = {"responses": responses, "size": options.size, "shards": max(1, -(-responses // options.size))}
    write_json(options.output, cut)


def _merge(options: argparse.Namespace) -> None:
    from comperdial import schema

    if options.output.suffix != ".parquet":
        raise ConfigError(f"{options.output}: unknown kind of file", where="--output", expected=".parquet")
    schema.merge(options.shards, options.output)
