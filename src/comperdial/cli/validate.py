"""The command that checks tables, and says what is understood of a file of rated responses."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_rated_file, rated_file_options

if TYPE_CHECKING:
    from comperdial.core.scripts import Writing
    from comperdial.data.readers.table import Content
    from comperdial.metrics import Metric

_FIELDS = ("references", "history", "facts")
# What metrics call the fields of a context.
_NEEDS = {"references": "references", "history": "histories"}
_ORIGINS = {
    "option": "as the option says",
    "columns": "as the file says",
    "data": "found in the data; say --scale LOW HIGH if it is another",
}
_SHOWN = 10


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command."""
    command = commands.add_parser("validate", help="check tables, or say what is understood of a file of ratings")
    command.add_argument("files", type=Path, nargs="+", help="tables by their names, or files of rated responses")
    command.add_argument("--table", help="the table's name; default: the file's name without its suffix")
    add_rated_file(command)
    command.add_argument(
        "--params",
        type=Path,
        default=Path("params.yaml"),
        help="with the metrics that may lack something (default: params.yaml)",
    )
    command.set_defaults(run=_validate)


def _validate(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.data.readers.table import read_content

    for path in options.files:
        name = options.table or path.stem
        if options.table or name in schema.TABLES:
            frame = schema.validate(schema.read(path, name), name, where=str(path))
            print(f"{path}: {len(frame)} records of table {name!r}, all valid")
            continue
        content = read_content(name, path, rated_file_options(options))
        print(f"{path}: a file of rated responses")
        for about, text in _understood(content):
            print(
                textwrap.fill(
                    text, 100, initial_indent=f"  {about:<12}", subsequent_indent=" " * 14, break_on_hyphens=False
                )
            )
        if missing := list(_missing(content, _metrics(options.params))):
            print("What there will not be:")
        for line in missing:
            print(textwrap.fill(line, 100, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False))


def _understood(content: Content) -> list[tuple[str, str]]:
    """Return what is understood of a file: a name and a text each."""
    from comperdial.data.readers.table import with_hint

    writing = _writing(content)
    split = "; metrics of words split scripts without spaces into characters" if writing.without_spaces else ""
    contexts, responses = content.tables["contexts"], content.tables["responses"]
    ratings = content.tables["ratings"]
    systems = content.tables["systems"]
    counts = responses["system_id"].value_counts().reindex(systems["system_id"], fill_value=0)
    kinds = dict(zip(systems["system_id"], systems["kind"], strict=True))
    names = [f"{name} {n}" + ("" if kinds[name] == "agent" else f" ({kinds[name]})") for name, n in counts.items()]
    held = [f"{field} {int((contexts[field].map(len) > 0).sum())}" for field in _FIELDS]
    by = "" if "context_id" in content.named else "; no column context_id: told apart by what they hold"
    raters = sorted(set(ratings["annotator_id"]))
    rated = ratings["level"].value_counts()
    of_raters = _listed(raters) if "annotator_id" in content.named else "no column annotator_id"
    lines = [
        ("rows", str(len(content.units))),
        ("systems", f"{len(systems)}, with responses each: {_listed(names)}"),
        ("contexts", f"{len(contexts)} in {contexts['dialogue_id'].nunique()} dialogues{by}"),
        ("with", f"{', '.join(held)} of {len(contexts)} contexts"),
        ("scripts", f"of responses: {writing}{split}"),
        ("ratings", f"{rated.get('turn', 0)} of responses, {rated.get('dialogue', 0)} of dialogues"),
        ("annotators", f"{len(raters)} ({of_raters})"),
    ]
    for name, origin in content.scales.items():
        of_it = ratings[ratings["dimension"] == name]
        low, high = of_it["scale_min"].min(), of_it["scale_max"].max()
        lines.append(("dimension", f"{name}: {low:g} to {high:g} ({_ORIGINS[origin]})"))
    lines.append(("levels", ", ".join(_levels(content)) or "none"))
    sources = sorted(set(ratings["source"]) - {"human"})
    if sources:
        lines.append(("sources", f"ratings that are not people's: {_listed(sources)}"))
    if content.ignored:
        lines.append(("not used", f"columns {_listed([with_hint(name) for name in content.ignored])}"))
    return lines


def _levels(content: Content) -> list[str]:
    """Return the levels at which scores and ratings can be correlated."""
    rated = set(content.tables["ratings"]["level"])
    turns = content.tables["contexts"][["dialogue_id", "turn"]].drop_duplicates()
    several = turns["dialogue_id"].duplicated().any()
    levels = ["turn"] if "turn" in rated else []
    levels += ["dialogue"] if "dialogue" in rated or ("turn" in rated and several) else []
    return [*levels, "system"] if len(_rated_systems(content)) > 2 else levels


def _rated_systems(content: Content) -> set[str]:
    """Return the systems with ratings, without references, which are not scored."""
    return set(content.tables["ratings"]["system_id"]) - _references(content)


def _references(content: Content) -> set[str]:
    systems = content.tables["systems"]
    return set(systems.loc[systems["kind"] == "reference", "system_id"])


def _writing(content: Content) -> Writing:
    """Return how a file's responses and references are written."""
    from comperdial.core.scripts import Writing

    responses = content.tables["responses"]
    references = {text for several in content.tables["contexts"]["references"] for text in several}
    return Writing.of(responses.loc[~responses["system_id"].isin(_references(content)), "response"], references)


def _missing(content: Content, metrics: Mapping[str, Metric]) -> Iterator[str]:
    """Yield what an evaluation of a file will lack, and why."""
    from comperdial.metrics.named import why_unsuited

    unsuited = {name: why for name, metric in metrics.items() if (why := why_unsuited(metric, _writing(content)))}
    for why in dict.fromkeys(unsuited.values()):
        yield f"{why}: not run: {', '.join(unsuited)}"
    needs = {name: metric.needs for name, metric in metrics.items() if name not in unsuited}
    contexts = content.tables["contexts"]
    for field in _FIELDS:
        held = int((contexts[field].map(len) > 0).sum())
        lacking = [name for name, needed in needs.items() if _NEEDS.get(field) in needed]
        if field == "facts" and not held:
            yield "no facts: outputs that compare responses with facts are not run"
        elif lacking and not held:
            yield f"no {field}: not run: {', '.join(lacking)}"
        elif lacking and held < len(contexts):
            yield (
                f"{field} in {held} of {len(contexts)} contexts: responses to the others are not scored by "
                + ", ".join(lacking)
            )
    levels = _levels(content)
    rated = len(_rated_systems(content))
    if not rated:
        yield "no ratings: no correlations; responses can be scored, judged and annotated"
        return
    if "turn" not in levels:
        yield "no ratings of responses: no turn level"
    if "dialogue" not in levels:
        yield "no ratings of dialogues, and one context per dialogue: no dialogue level"
    if "system" not in levels:
        yield f"{rated} rated {'system' if rated == 1 else 'systems'}, fewer than three: no system level"
    if not content.tables["ratings"].duplicated(["level", "item_id", "system_id", "dimension"]).any():
        yield "no item with ratings by two annotators: no agreement, and no ceiling"


def _metrics(params: Path) -> dict[str, Metric]:
    """Return the metrics of ``params.yaml``; without such a file, each kind of metric."""
    from comperdial.metrics import kinds
    from comperdial.metrics.named import metric_named, read_entries

    entries = read_entries(params) if params.is_file() else {}
    return {name: metric_named(name, entries) for name in entries or kinds()}


def _listed(names: Sequence[object]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more
