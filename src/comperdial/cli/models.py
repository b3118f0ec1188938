"""Commands about models: list, fetch, verify, convert."""

from __future__ import annotations

import argparse
from pathlib import Path

from comperdial.cli.common import Commands, add_command


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    group = add_command(commands, "models", _list, "list, fetch and verify the models that metrics run")
    parts = group.add_subparsers(title="commands", metavar="COMMAND")

    add_command(parts, "list", _list, "list the models and say which are here (the default)")

    add = add_command(parts, "fetch", _fetch, "fetch models from the Hugging Face hub or a mirror").add_argument
    add("names", nargs="+", metavar="NAME")
    add("--allow-pickle", action="store_true", help="read a pickle's tensors, and nothing else of it")

    add = add_command(parts, "verify", _verify, "compare every byte of models with what was recorded").add_argument
    add("names", nargs="*", metavar="NAME", help="names or folders; default: all that are here")

    add = add_command(parts, "convert", _convert, "write a folder's pickle of weights as safetensors").add_argument
    add("folder", type=Path)
    add("--allow-pickle", action="store_true", required=True, help="read its tensors, and nothing else")


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
