"""Commands about models: list, fetch, verify, convert."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

_LOCK = Path("data/models.lock.yaml")


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    group = commands.add_parser("models", help="list, fetch and verify the models that metrics run")
    group.set_defaults(run=_list)
    parts = group.add_subparsers(title="commands", metavar="COMMAND")

    command = parts.add_parser("list", help="list the models and say which are here (the default)")
    command.set_defaults(run=_list)

    command = parts.add_parser("fetch", help="fetch models from the Hugging Face hub or a mirror, checked")
    command.add_argument("names", nargs="+", metavar="NAME")
    _allow_pickle(command)
    command.add_argument(
        "--lock",
        type=Path,
        help=f"what everybody's files are; default: {_LOCK} where a data/sources.yaml is, else none",
    )
    command.set_defaults(run=_fetch)

    command = parts.add_parser("verify", help="read every byte of models and compare it with what was recorded")
    command.add_argument("names", nargs="*", metavar="NAME", help="names or folders; default: all that are here")
    command.set_defaults(run=_verify)

    command = parts.add_parser("convert", help="write a folder's pickle of weights as safetensors")
    command.add_argument("folder", type=Path)
    _allow_pickle(command)
    command.set_defaults(run=_convert)


def _allow_pickle(command: argparse.ArgumentParser) -> None:
    command.add_argument("--allow-pickle", action="store_true", help="read a pickle's tensors, and nothing else of it")


def _list(_: argparse.Namespace) -> int:
    from comperdial.models import registry, store

    states = {}
    for name in registry.names():
        entry = registry.entry(name)
        states[name], detail = store.status(name)
        size = _short(store.size(name)) if states[name] == "present" else getattr(entry, "size", None)
        print(f"{states[name]:11}  {size or '?':>7}  {name}: {entry.about} ({entry.origin})")
        if states[name] == "altered":
            print(f"{'':20}  {detail}. {entry.remedy}")
    return int("altered" in states.values())


def _short(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _fetch(options: argparse.Namespace) -> None:
    from comperdial.models import fetch

    lock = options.lock or (_LOCK if Path("data/sources.yaml").is_file() else None)
    # All are looked at before the first is fetched.
    for name in options.names:
        fetch.check(name, allow_pickle=options.allow_pickle)
    for name in options.names:
        model = fetch.fetch(name, lock_file=lock, allow_pickle=options.allow_pickle)
        print(f"{name}@{model.digest} in {model.path}")


def _verify(options: argparse.Namespace) -> int:
    from comperdial.models import registry, store

    here = [name for name in registry.names() if store.status(name)[0] != "not present"]
    failed = False
    for name in options.names or here:
        state, detail = store.audit(name)
        failed |= state != "present"
        print(f"{state:11}  {name}" + (f"@{detail}" if state == "present" else f": {detail}" if detail else ""))
    return int(failed)


def _convert(options: argparse.Namespace) -> None:
    from comperdial.core.errors import ConfigError
    from comperdial.models import convert

    if not options.allow_pickle:
        raise ConfigError(
            "a pickle can run code when it is read",
            where=str(options.folder),
            expected="--allow-pickle",
            hint="With it, nothing but tensors is read of it, and they are written as safetensors",
        )
    made = convert.convert_folder(options.folder)
    for part in (made.converted, made.files):
        for name, found in part.items():
            print(f"{name}: sha256 {found.sha256} ({found.bytes:,} bytes)")
    print(f"{', '.join(made.converted)} can be deleted: nothing here reads it again")
