"""The command that checks tables, and says what is understood of a file of rated responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from comperdial.cli.options import Columns, Labels, LowerIsBetter, Scale, Sheet, StripMarkup, command, given
from comperdial.core.scripts import Writing

if TYPE_CHECKING:
    from comperdial.data.readers.table import Content
    from comperdial.metrics import Metric

# Fields of a context, and what metrics call them.
_FIELDS = {"references": "references", "history": "histories", "facts": ""}
_ORIGINS = {
    "option": "as the option says",
    "columns": "as the file says",
    "data": "found in the data; say --scale LOW HIGH if it is another",
}
_SHOWN = 10


@command()
def validate(
    files: Annotated[list[Path], Argument(help="Tables by their names, or files of rated responses.")],
    table: Annotated[str | None, Option(help="The table's name; default: the file's name without its suffix.")] = None,
    columns: Columns = None,
    scale: Scale = None,
    labels: Labels = None,
    lower_is_better: LowerIsBetter = None,
    sheet: Sheet = None,
    strip_markup: StripMarkup = False,
    params: Annotated[Path, Option(metavar="FILE", help="The metrics that may lack something.")] = Path("params.yaml"),
) -> None:
    """Check tables, or say what is understood of a file of ratings."""
    from comperdial import schema
    from comperdial.data.readers.table import read_content
    from comperdial.metrics import kinds
    from comperdial.metrics.named import metric_named, read_entries

    how = given(
        columns=columns, scale=scale, labels=labels, lower_is_better=lower_is_better, sheet=sheet, strip_markup=strip_markup
    )  # fmt: skip
    for path in files:
        name = table or path.stem
        if table or name in schema.TABLES:
            frame = schema.validate(schema.read(path, name), name, where=str(path))
            print(f"{path}: {len(frame)} records of table {name!r}, all valid")
            continue
        file = _File(read_content(name, path, how))
        print(f"{path}: a file of rated responses")
        for about, text in file.understood():
            print(fill(text, 100, initial_indent=f"  {about:<12}", subsequent_indent=" " * 14, break_on_hyphens=False))
        entries = read_entries(params) if params.is_file() else {}
        if missing := list(file.missing({name: metric_named(name, entries) for name in entries or kinds()})):
            print("What there will not be:")
        for line in missing:
            print(fill(line, 100, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False))


class _File:
    """What is understood of a file's content."""

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
        """Yield what is understood: a name and a text each."""
        from comperdial.data.readers.table import with_hint

        content, contexts, ratings = self.content, self.contexts, self.ratings
        counts = self.tables["responses"]["system_id"].value_counts().reindex([*self.kinds], fill_value=0)
        kinds = {name: "" if kind == "agent" else f" ({kind})" for name, kind in self.kinds.items()}
        systems = [f"{name} {n}{kinds[name]}" for name, n in counts.items()]
        by = "" if "context_id" in content.named else "; no column context_id: told apart by what they hold"
        split = "; metrics of words split scripts without spaces into characters" if self.writing.without_spaces else ""
        levels, raters = ratings["level"].value_counts(), sorted({*ratings["annotator_id"]})
        of_raters = _listed(raters) if "annotator_id" in content.named else "no column annotator_id"
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
        if content.ignored:
            yield "not used", f"columns {_listed([with_hint(name) for name in content.ignored])}"

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


def _listed(names: Sequence[object]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more
