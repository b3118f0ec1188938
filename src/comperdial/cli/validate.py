"""The command that validates tables and previews how a file is read: its content, its first item, and the next command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from comperdial.cli import options as o
from comperdial.core.errors import SchemaError
from comperdial.core.scripts import Writing

if TYPE_CHECKING:
    import pandas as pd

    from comperdial.data.columns import Layout
    from comperdial.data.files import File
    from comperdial.data.readers.table import Content
    from comperdial.metrics import Metric

Lines = Iterable[tuple[str, str]]
# Fields of a context, and the metrics' names for them.
_FIELDS = {"references": "references", "history": "histories", "facts": ""}
_ORIGINS = {
    "option": "as the option says",
    "columns": "as the file says",
    "data": "as in the data; if it is another: --scale LOW HIGH",
}
_SHOWN, _WIDTH, _LONGEST = 10, 100, 300


@o.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of any kind.")],
    table: Annotated[o.Name, typer.Option(help="Validate files as this table; default: by file name.")] = None,
    columns: o.Columns = None,
    scale: o.Scale = None,
    labels: o.Labels = None,
    lower_is_better: o.LowerIsBetter = None,
    sheet: o.Sheet = None,
    strip_markup: o.StripMarkup = False,
) -> None:
    """Show how files of ratings, votes, responses or scores are read, and what to run next; validate tables."""
    from comperdial import schema
    from comperdial.data.columns import NoRatingsError
    from comperdial.data.files import read_file
    from comperdial.data.readers.table import read_content
    from comperdial.data.votes import are_votes

    options = o.given(locals(), o.READING)
    for path in files:
        name = table or path.stem
        if table or (name in schema.TABLES and _is_table(path, name)):
            frame = schema.validate(schema.read(path, name), name, where=str(path))
            print(f"{path}: {len(frame)} records of table {name!r}, all valid")
            continue
        file = read_file(path, sheet)
        voted = are_votes(file.frame) and "rating" not in (columns or {})
        if file.log is not None:
            _show_log(path, file)
        elif voted or {"first_system_id", "choice"} & {*(columns or {})}:
            _show_votes(path, file, options)
        else:
            try:
                content = read_content(name, path, options)
            except SchemaError as error:
                shown = isinstance(error, NoRatingsError) and _show_responses(path, file, options, error)
                if not shown and (columns or not _show_scores(path, file)):
                    raise
            else:
                _show_ratings(path, content, options)


def _is_table(path: Path, name: str) -> bool:
    """Return whether a file named like a table has its columns."""
    from comperdial import schema
    from comperdial.data.files import read_file

    needed = {field.name for field in schema.table(name).fields if not field.nullable and field.default is None}
    return needed <= {*(schema.column_names(path) if path.suffix == ".parquet" else read_file(path).frame.columns)}


# What is shown for each kind


def _print(path: Path, what: str, about: Lines, first: Lines, missing: Iterable[str], following: Sequence[str]) -> None:
    print(f"{path}: {what}")
    for heading, lines in (("", about), ("First item:", first), ("Not available:", (("-", line) for line in missing))):
        for place, (name, text) in enumerate(lines):
            if heading and not place:
                print(heading)
            start = "  - " if name == "-" else f"  {name:<12}"
            print(fill(text, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False))
    print("Next: " + "\n      ".join(following))


def _show_ratings(path: Path, content: Content, options: Mapping[str, Any]) -> None:
    from comperdial.metrics import kinds
    from comperdial.metrics.named import metric_named, read_entries

    rated = _Rated(content)
    entries = read_entries() if Path("params.yaml").is_file() else {}
    missing = rated.missing({name: metric_named(name, entries) for name in entries or kinds()})
    following = [f"comperdial compare {path}{_repeated(options)}"]
    if content.layout.judges or len({*content.tables["ratings"]["source"]}) > 1:
        following.append(f"comperdial audit {path}{_repeated(options)}")
    _print(path, "a file of rated responses", rated.understood(), rated.first(), missing, following)


def _show_votes(path: Path, file: File, options: Mapping[str, Any]) -> None:
    from comperdial.data.votes import read_votes
    from comperdial.evaluation.preferences import linked_groups, votes_of

    table, notes = read_votes(file, path, options.get("labels"), options.get("columns"))
    systems = sorted({*table["first_system_id"], *table["second_system_id"]})
    sources = table["source"].value_counts()
    about = [("read as", note) for note in notes]
    about += [
        ("votes", f"{len(table)} on {table['pair_id'].nunique()} pairs: {_listed(_counts(table['choice']))}"),
        ("systems", f"{len(systems)}: {_listed(systems)}"),
        ("annotators", f"{table['annotator_id'].nunique()} ({_listed(sorted(set(table['annotator_id'])))})"),
        ("questions", _listed(_counts(table["question"]))),
        ("votes by", _listed([f"{name} {n}" for name, n in sources.items()])),
    ]
    one = table.iloc[0]
    of_pair = table[table["pair_id"] == one["pair_id"]].to_dict("records")
    names = {"first": one["first_system_id"], "second": one["second_system_id"], "tie": "tie"}
    first = [("pair", _short(one["pair_id"])), ("first", names["first"]), ("second", names["second"])]
    first += [("vote", f"{names[row['choice']]} by {row['annotator_id']} ({row['source']})") for row in of_pair]
    missing = []
    if "human" not in sources:
        missing.append("no votes of people: no agreement of judges with people")
    elif not table[table["source"] == "human"].duplicated("pair_id").any():
        missing.append("no pair with votes of two people: no agreement between people")
    if len(sources) == 1 and table["question"].nunique() == 1 and (table["choice"] != "tie").any():
        groups = linked_groups(votes_of(table))
        missing += [f"no vote links {len(groups)} groups of systems: ranks within each only"] if len(groups) > 1 else []
    following = [f"comperdial preferences {path}{_repeated(options)}"]
    following += [f"comperdial audit {path}{_repeated(options)}"] if len(sources) > 1 else []
    _print(path, "votes between two", about, first, missing, following)


def _show_scores(path: Path, file: File) -> bool:
    """Show a file of scores; return whether it is one."""
    from comperdial.data.columns import plain, rater_of
    from comperdial.evaluation.aggregate import read_scores

    if any(plain(str(name)) == "rating" or rater_of(str(name)) for name in file.frame):
        return False
    try:
        scores = read_scores([path], unnamed=True)
    except SchemaError:
        return False
    about = [("rows", f"{len(scores)} scores"), ("systems", _listed(_counts(scores["system_id"])))]
    about += [
        ("metric", f"{metric}: {output}, {len(part)} scores from {part['value'].min():g} to {part['value'].max():g}")
        for (metric, output), part in scores.groupby(["metric", "output"], sort=False)
    ]
    one = scores.iloc[0]
    first = [(name, str(one[name])) for name in ("item_id", "system_id", "metric")] + [("value", f"{one['value']:g}")]
    missing = ["no responses, and no ratings: give these in a file of their own"]
    _print(path, "scores of responses", about, first, missing, [f"comperdial compare RATINGS --scores {path}"])
    return True


def _show_log(path: Path, file: File) -> None:
    from comperdial.data.own_files import is_missing

    log, frame = file.log, file.frame
    assert log is not None  # noqa: S101
    texts = int((~frame["response"].map(is_missing)).sum())
    about = [("read as", note) for note in file.notes]
    about += [("samples", f"{len(frame)}, {texts} with a response"), ("systems", _listed(_counts(frame["system_id"])))]
    for name in log.scores:
        values = [record["scores"][name] for record in log.records if name in record["scores"]]
        judge = f", by {log.judges[name]}" if name in log.judges else ""
        about.append(("score", f"{name}: {len(values)} from {min(values):g} to {max(values):g}{judge}"))
    one = log.records[0]
    first = [("system", one["system_id"]), ("context", one["context_id"]), *_spoken(one["history"])]
    first += [("response", _short(one["response"]))] + [("reference", _short(text)) for text in one["references"]]
    first += [("score", f"{name} {value:g}") for name, value in one["scores"].items()]
    missing = ["no ratings by people: scores of judges and metrics are none"]
    following = [f"comperdial compare RATINGS --scores {path}"]
    following += [f"comperdial score {path} --metrics NAME"] if texts else []
    _print(path, f"a log of {log.tool}", about, first, missing, following)


def _show_responses(path: Path, file: File, options: Mapping[str, Any], error: Exception) -> bool:
    """Show a file without ratings as responses to score; return whether it has responses."""
    from comperdial.auditing.judged import has_labels
    from comperdial.data.columns import lay_out, markup
    from comperdial.data.own_files import is_missing

    columns = {ours: theirs for ours, theirs in options.get("columns", {}).items() if ours != "rating"}
    try:
        layout = lay_out(file, path, columns, ratings=False)
    except SchemaError:
        return False
    frame = layout.frame
    about = [("read as", note) for note in layout.notes] + _roles(layout)
    about.append(("rows", str(len(frame))))
    if "system_id" in frame:
        about.append(("systems", _listed(_counts(frame["system_id"]))))
    about += [("with", f"{ours} {int((~frame[ours].map(is_missing)).sum())}") for ours in _FIELDS if ours in frame]
    about.append(("scripts", f"of responses: {Writing.of(frame['response'].map(str), set())}"))
    about += [("markup", line) for line in markup(layout)]
    one = frame.iloc[0]
    first = [
        ({"system_id": "system", "context_id": "context"}.get(ours, ours), _short(one[ours]))
        for ours in ("system_id", "context_id", "history", "response", "references", "facts")
        if ours in frame
    ]
    missing = [str(getattr(error, "problem", error)), "no correlations; responses can be scored, judged and annotated"]
    following = [f"comperdial score {path} --metrics NAME"]
    if has_labels(file):
        following.append(
            f"comperdial audit {path} --nominal   # if it has a judge's labels and people's, without an order"
        )
    _print(path, "responses without ratings", about, first, missing, following)
    return True


class _Rated:
    """Summary of a file of rated responses."""

    def __init__(self, content: Content) -> None:
        tables = self.tables = content.tables
        self.content, self.contexts, self.ratings = content, tables["contexts"], tables["ratings"]
        kinds = self.kinds = dict(zip(tables["systems"]["system_id"], tables["systems"]["kind"], strict=True))
        references = {name for name, kind in kinds.items() if kind == "reference"}
        texts = tables["responses"].loc[~tables["responses"]["system_id"].isin(references), "response"]
        self.writing = Writing.of(texts, {text for several in self.contexts["references"] for text in several})
        self.held = {field: int((self.contexts[field].map(len) > 0).sum()) for field in _FIELDS}
        # References are not scored.
        self.rated_systems = len({*self.ratings["system_id"]} - references)
        # Levels at which scores and ratings can be correlated.
        rated = {*self.ratings["level"]}
        turns = self.contexts[["dialogue_id", "turn"]].drop_duplicates()
        several = turns["dialogue_id"].duplicated().any()
        can = {
            "turn": "turn" in rated,
            "dialogue": "dialogue" in rated or ("turn" in rated and several),
            "system": self.rated_systems > 2,
        }
        self.levels = [level for level in can if can[level]]

    def understood(self) -> Iterator[tuple[str, str]]:
        """Yield name and text of each line of the summary."""
        from comperdial.data.columns import markup
        from comperdial.data.readers.table import with_hint

        content, contexts, ratings = self.content, self.contexts, self.ratings
        counts = self.tables["responses"]["system_id"].value_counts().reindex([*self.kinds], fill_value=0)
        kinds = {name: "" if kind == "agent" else f" ({kind})" for name, kind in self.kinds.items()}
        systems = [f"{name} {n}{kinds[name]}" for name, n in counts.items()]
        by = "" if "context_id" in content.named else "; no column context_id: distinguished by their texts"
        split = "; metrics of words split scripts without spaces into characters" if self.writing.without_spaces else ""
        levels, raters = ratings["level"].value_counts(), sorted({*ratings["annotator_id"]})
        of_raters = _listed(raters) if "annotator_id" in content.named else "no column annotator_id"
        yield from (("read as", note) for note in content.layout.notes)
        yield from _roles(content.layout)
        yield "rows", str(len(content.units))
        yield "systems", f"{len(systems)}, with responses each: {_listed(systems)}"
        yield "contexts", f"{len(contexts)} in {contexts['dialogue_id'].nunique()} dialogues{by}"
        yield "with", f"{', '.join(f'{field} {n}' for field, n in self.held.items())} of {len(contexts)} contexts"
        yield "scripts", f"of responses: {self.writing}{split}"
        yield "ratings", f"{levels.get('turn', 0)} of responses, {levels.get('dialogue', 0)} of dialogues"
        yield "annotators", f"{len(raters)} ({of_raters})"
        for name, origin in content.scales.items():
            rated = ratings[ratings["dimension"] == name]
            low, high = rated["scale_min"].min(), rated["scale_max"].max()
            yield "dimension", f"{name}: {low:g} to {high:g} ({_ORIGINS[origin]})"
        yield "levels", ", ".join(self.levels) or "none"
        if sources := sorted({*ratings["source"]} - {"human"}):
            yield "sources", f"ratings that are not people's: {_listed(sources)}"
        yield from (("markup", line) for line in markup(content.layout))
        if content.layout.judges:
            yield "judges", f"columns of scores that are not people's: {_listed(content.layout.judges)}"
        if content.ignored:
            yield "not used", f"columns {_listed([with_hint(name) for name in content.ignored])}"

    def first(self) -> Iterator[tuple[str, str]]:
        """Yield the parts of the first rated response."""
        responses = self.tables["responses"]
        rated = set(self.ratings[["item_id", "system_id"]].itertuples(index=False, name=None))
        units = self.content.units
        turns = units.loc[units["level"] == "turn", ["item_id", "system_id"]]
        keys = list(turns.itertuples(index=False, name=None))
        item, system = next((key for key in keys if key in rated), keys[0])
        context = self.contexts[self.contexts["context_id"] == item].iloc[0]
        is_it = (responses["context_id"] == item) & (responses["system_id"] == system)
        yield "system", system
        yield "context", f"{item} (dialogue {context['dialogue_id']}, turn {context['turn']})"
        yield from _spoken(context["history"])
        yield "response", _short(responses.loc[is_it, "response"].iloc[0])
        yield from (("reference", _short(text)) for text in list(context["references"])[:3])
        yield from (("fact", _short(text)) for text in list(context["facts"])[:3])
        ratings = self.ratings[(self.ratings["item_id"] == item) & (self.ratings["system_id"] == system)]
        for (rater, source), part in ratings.groupby(["annotator_id", "source"], sort=False):
            values = [f"{name} {value:g}" for name, value in zip(part["dimension"], part["rating"], strict=True)]
            yield "rated", f"{', '.join(values)} by {rater}" + ("" if source == "human" else f" ({source})")

    def missing(self, metrics: Mapping[str, Metric]) -> Iterator[str]:
        """Yield what an evaluation will lack, and why."""
        from comperdial.metrics.named import why_unsuited

        unsuited = {name: why for name, metric in metrics.items() if (why := why_unsuited(metric, self.writing))}
        for why in dict.fromkeys(unsuited.values()):
            yield f"{why}: not run: {', '.join(unsuited)}"
        for field, held in self.held.items():
            needing = [name for name in metrics if name not in unsuited and _FIELDS[field] in metrics[name].needs]
            if field == "facts" and not held:
                yield "no facts: outputs that compare responses with facts are not run"
            elif needing and not held:
                yield f"no {field}: not run: {', '.join(needing)}"
            elif needing and held < (n := len(self.contexts)):
                yield f"{field} in {held} of {n} contexts: responses to the others are not scored by {', '.join(needing)}"
        if not (rated := self.rated_systems):
            yield "no ratings: no correlations; responses can be scored, judged and annotated"
            return
        systems = "system" if rated == 1 else "systems"
        for level, why in {
            "turn": "no ratings of responses",
            "dialogue": "no ratings of dialogues, and one context per dialogue",
            "system": f"{rated} rated {systems}, fewer than three",
        }.items():
            if level not in self.levels:
                yield f"{why}: no {level} level"
        if not self.ratings.duplicated(["level", "item_id", "system_id", "dimension"]).any():
            yield "no item with ratings by two annotators: no agreement, and no ceiling"


def _roles(layout: Layout) -> list[tuple[str, str]]:
    """Return the file's column for each of ours with another name."""
    names = {ours: theirs for ours, theirs in layout.columns.items() if isinstance(theirs, str) and ours != theirs}
    return [("columns", _listed([f"{ours} is {theirs!r}" for ours, theirs in names.items()]))] if names else []


def _spoken(history: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the last utterances before a response."""
    for turn in list(history)[-3:]:
        yield "history", _short(turn if isinstance(turn, str) else f"{turn['speaker']}: {turn['text']}")


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _counts(cells: pd.Series) -> list[str]:
    return [f"{name} {n}" for name, n in cells.value_counts(sort=False).items()]


def _listed(names: Sequence[object]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more


def _repeated(options: Mapping[str, Any]) -> str:
    """Format options as typed on the command line."""
    words: list[str] = []
    for name, value in options.items():
        values = value if isinstance(value, list | tuple) else [] if value is True else [value]
        texts = [json.dumps(one, ensure_ascii=False) if isinstance(one, Mapping) else str(one) for one in values]
        words += [f"--{name.replace('_', '-')}", *texts]
    return "".join(f" {shlex.quote(word)}" for word in words)
