"""Which data sets, judges and variants a command of judges is about."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from comperdial.core.errors import ConfigError
from comperdial.core.sharding import WHOLE, Shard

if TYPE_CHECKING:
    from comperdial.judges.scores import Refusals
    from comperdial.judges.tasks import Judging, Task


def add_choice(kind: argparse.ArgumentParser) -> None:
    """Add the options that choose data sets, judges and variants."""
    kind.add_argument("--params", type=Path, default=Path("params.yaml"), help="default: params.yaml")
    kind.add_argument("--datasets", nargs="+", help="default: those of params.yaml")
    kind.add_argument("--judges", nargs="+", help="default: all that judge these data sets")
    kind.add_argument("--variants", nargs="+", help="default: all")
    kind.add_argument("--tables", type=Path, default=Path("data/tables"), help="default: data/tables")


def add_paying(kind: argparse.ArgumentParser) -> None:
    """Add what may be spent, and what is done about requests that are refused."""
    kind.add_argument(
        "--budget", type=float, help="US dollars that all answers in the ledger may cost; default: params.yaml's"
    )
    kind.add_argument(
        "--retry-refused", action="store_true", help="ask again what the service refused for good in an earlier run"
    )
    kind.add_argument(
        "--accept-refused", action="store_true", help="keep refusals however many there are, instead of stopping"
    )


def refusals(options: argparse.Namespace) -> Refusals:
    """Return what the options say about refusals."""
    from comperdial.judges.scores import Refusals

    return Refusals(options.retry_refused, options.accept_refused)


def add_shard(kind: argparse.ArgumentParser) -> None:
    """Add ``--shard``."""
    kind.add_argument(
        "--shard",
        type=_shard,
        default=WHOLE,
        metavar="I/N",
        help="of all requests, the I-th of N parts, such as 3/16; default: all",
    )


def _shard(text: str) -> Shard:
    try:
        return Shard.parse(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def read_choice(options: argparse.Namespace) -> tuple[Judging, list[str]]:
    """Return what the configuration says of judges, and the data sets that are chosen."""
    import dataclasses

    from comperdial.config import load_yaml
    from comperdial.config.checking import Lines
    from comperdial.core.errors import UnknownNameError
    from comperdial.judges.tasks import groups_of, read_judging
    from comperdial.studies import with_studies

    config = with_studies(load_yaml(options.params))
    judging = read_judging(
        config.get("judges"), config.get("judging"), groups=groups_of(config), lines=Lines(options.params)
    )
    if (budget := getattr(options, "budget", None)) is not None and budget < 0:
        raise ConfigError(f"the budget is {budget:g}", where="--budget", expected="US dollars, 0 or more")
    for chosen, known, what in (
        (options.judges, judging.judges, "judge"),
        (options.variants, judging.variants, "variant"),
    ):
        for name in chosen or ():
            if name not in known:
                raise UnknownNameError(what, name, known, where=str(options.params))
    datasets = options.datasets or config.get("datasets") or []
    if not datasets:
        raise ConfigError("no data set is named", where=str(options.params), expected="`datasets`, or --datasets")
    if options.judges:
        # A judge that is named judges the data sets that are named, whatever the configuration says of them.
        named = dict.fromkeys(datasets, tuple(options.judges))
        judging = dataclasses.replace(judging, by_dataset={**judging.by_dataset, **named})
    if options.variants:
        # Likewise a variant that is named.
        named = dict.fromkeys(datasets, tuple(options.variants))
        judging = dataclasses.replace(judging, asks={**judging.asks, **named})
    if getattr(options, "budget", None) is not None:
        judging = dataclasses.replace(judging, budget=options.budget)
    return judging, list(datasets)


def chosen_tasks(options: argparse.Namespace, judging: Judging, dataset: str) -> Iterator[tuple[Path, Task]]:
    """Yield the tasks that ask: scores from fewer samples of the same answers ask nothing of their own."""
    from comperdial.core.errors import FileError, UnknownNameError
    from comperdial.core.names import unperturbed

    folder = options.tables / dataset
    if not (folder / "responses.parquet").is_file():
        known = _known(options)
        if known and unperturbed(dataset) not in known:
            raise UnknownNameError("data set", dataset, known, where=str(options.params))
        raise FileError(
            "no tables of this data set",
            where=str(folder),
            expected="responses.parquet and others",
            hint=f"Make them: snakemake {folder}/responses.parquet --config 'datasets=[{dataset}]'",
        )
    tasks = judging.tasks(dataset, **levels_of(options, dataset)).values()
    # Dialogues after their turns.
    for task in sorted(tasks, key=lambda task: task.variant.level == "dialogue"):
        chosen = not options.variants or task.variant.name in options.variants
        if chosen and task.samples == task.wanted[0]:
            yield folder, task


def levels_of(options: argparse.Namespace, dataset: str) -> dict[str, bool]:
    """Return at which levels a data set is judged, as the workflow has it; for variants that are named, all it has."""
    from comperdial.judges.tasks import judged_levels

    levels = _catalogued(options.params, Path.cwd()).get(dataset)
    judged = judged_levels(dataset, levels)
    if options.variants or levels is None:
        whole = _has_dialogues(options.tables / dataset)
        return {"turns": True, "dialogues": whole} if options.variants else judged | {"dialogues": whole}
    return judged


def _known(options: argparse.Namespace) -> set[str]:
    """Return the data sets that there are or that can be made; none where there is no catalogue to say so."""
    from comperdial.config import load_yaml
    from comperdial.judges.tasks import groups_of
    from comperdial.studies import with_studies

    config = with_studies(load_yaml(options.params))
    if not (catalogued := _catalogued(options.params, Path.cwd())):
        return set()
    groups = {name for names in groups_of(config).values() for name in names}
    named = [*(config.get("challenges") or {}), *(config.get("own_data") or {})]
    return {*catalogued, *named, *(path.name for path in options.tables.glob("*/")), *groups}


@functools.cache
def _catalogued(params: Path, folder: Path) -> Mapping[str, tuple[str, ...]]:
    """Return which levels the catalogue says are rated, by data set; nothing where there is no catalogue."""
    from comperdial.config import load_yaml
    from comperdial.data.catalogue import load_catalogue

    path = load_yaml(params).get("catalogue")
    if not path or not Path(path).is_file():
        return {}
    return {name: entry.levels for name, entry in load_catalogue(path).datasets.items()}


def _has_dialogues(folder: Path) -> bool:
    from comperdial import schema

    return bool(schema.read(folder / "contexts.parquet", "contexts")["dialogue_id"].duplicated().any())
