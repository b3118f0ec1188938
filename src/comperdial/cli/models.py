"""Commands about models: list, fetch, verify, convert."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("models", help="list, fetch and verify the models that metrics run")
    group.set_defaults(run=_list)
    parts = group.add_subparsers(title="commands", metavar="COMMAND")

    command = parts.add_parser("list", help="list the models and say which are here (the default)")
    command.set_defaults(run=_list)

    command = parts.add_parser("fetch", help="fetch models from the Hugging Face hub or a mirror, checked")
    command.add_argument("names", nargs="+", metavar="NAME")
    command.add_argument("--allow-pickle", action="store_true", help="read a pickle's tensors, and nothing else of it")
    command.set_defaults(run=_fetch)

    command = parts.add_parser("verify", help="read every byte of models and compare it with what was recorded")
    command.add_argument("names", nargs="*", metavar="NAME", help="names or folders; default: all that are here")
    command.set_defaults(run=_verify)

    command = parts.add_parser("convert", help="write a folder's pickle of weights as safetensors")
    command.add_argument("folder", type=Path)
    command.add_argument(
        "--allow-pickle", action="store_true", required=True, help="read its tensors, and nothing else"
    )
    command.set_defaults(run=_convert)


def _list(_: argparse.Namespace) -> int:
    from comperdial.models import registry, store

    altered = False
    for name in registry.names():
        entry, state, detail = registry.entry(name), "present", ""
        size = entry.size
        try:
            size = f"{sum(pin.bytes for pin in store.find(name).files.values()) / 1e6:,.0f} MB"
        except store.AlteredError as error:
            altered, state, detail = True, "altered", f"\n{'':20}  {error}"
        except store.MissingResourceError:
            state = "not present"
        print(f"{state:11}  {size:>8}  {name}: {entry.about} ({entry.origin}){detail}")
    return int(altered)


def _fetch(options: argparse.Namespace) -> None:
    from comperdial.models import fetch

    for name in options.names:
        model = fetch.fetch(name, allow_pickle=options.allow_pickle)
        print(f"{name}@{model.digest} in {model.path}")


def _verify(options: argparse.Namespace) -> int:
    from comperdial.models import registry, store

    failed = False
    for name in options.names or registry.names():
        try:
            print(f"present      {name}@{store.verified(name).digest}")
        except store.MissingResourceError as error:
            if options.names or isinstance(error, store.AlteredError):
                failed = True
                print(error)
    return int(failed)


def _convert(options: argparse.Namespace) -> None:
    from comperdial.models import convert

    pickles = convert.convert_pickles(options.folder)
    print(f"{', '.join(path.name for path in pickles)} can be deleted: nothing here reads it again")
