"""ComperDial's numbered tables: benchmarks, dialogues, personas, counts, and metrics beside the paper's values."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.config.registry import completed
from comperdial.config.studies import read_studies
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.files import read_table
from comperdial.evaluation.ratings import OVERALL, table13_cases
from comperdial.metrics import Metric, create
from comperdial.metrics.named import ABOUT
from comperdial.report import correlations
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import COEFFICIENTS, LEVELS, Record, groups, level_title, read_reported
from comperdial.report.render import Section, Table, arranged, as_number, described, ending, number, rows_frame, spread

NONE, NOT_APPLICABLE = "–", "N/A"
CEILING = "One rater against the mean of the others"
# B is the system under evaluation (docs/data-model.md), so B says what the references hold.
_EVALUATED = "B"
_SHORT = 5
# Longer texts go on in the next row: LaTeX and HTML do not break a line inside a cell.
_WIDTH = {"example": 56, "responses": 90}


# Benchmarks and counts


def benchmarks(inputs: Inputs, study: Study) -> Table:
    """Compare benchmarks of dialogue evaluation (Table 7); with ``only_table``, the rows of that table alone (Table 1)."""
    entry, columns = study["entry"], ("source", "place", "benchmark", "group", "property", "value", "note")
    frame = read_reported(inputs["benchmarks"], columns, ())
    if "only_table" in entry:
        frame = frame[frame["place"].str.match(rf"Tables? {entry['only_table']}\b")].reset_index(drop=True)
    in_table = frame["place"].str.startswith("Table")
    compared, collected = frame[in_table], frame[~in_table]
    wide = compared.pivot(index=["group", "property"], columns="benchmark", values="value")
    wide = wide.reindex(pd.MultiIndex.from_frame(compared[["group", "property"]].drop_duplicates()))
    wide = wide[[*compared["benchmark"].unique()]].rename_axis(index=["Group", "Property"])
    sections = [Section("Benchmarks of dialogue evaluation", wide)]
    if len(collected):
        names = {"property": "Fact", "place": "Source", "value": " and ".join(collected["benchmark"].unique())}
        sections.append(Section("Collection", collected[[*names]].rename(columns=names)))
    return Table(entry["title"], entry["caption"], frame, sections, _noted(frame, ["benchmark", "property"]))


def counts(inputs: Inputs, study: Study) -> Table:
    """Count what of a data set was rated, beside the counts that the paper reports (Table 8)."""
    one, key = About.read(inputs["about"]).only, ["benchmark", "dialogue_dataset", "dataset", "source", "note"]
    reported = read_reported(inputs["reported"], (*key, "place", *LEVELS), ())
    systems, ratings = (schema.read(inputs[name][0], name) for name in ("systems", "ratings"))
    mine, dataset = counted(systems, ratings, one["source"]), one["dataset"]
    own = {"benchmark": one["title"], "dialogue_dataset": NONE, "dataset": dataset, "note": ""}
    more = [] if dataset in set(reported["dataset"]) else [pd.DataFrame([own])]
    frame = pd.concat([reported, *more], ignore_index=True).melt(
        key, [*LEVELS], "level", "reported", ignore_index=False
    )
    frame = frame.sort_index(kind="stable").assign(
        table=lambda rows: np.where(rows["dataset"] == dataset, one["title"], NONE),
        reported=lambda rows: pd.to_numeric(rows["reported"], errors="coerce").astype("Int64"),
        ours=lambda rows: rows["level"].map(mine).where(rows["dataset"] == dataset).astype("Int64"),
        difference=lambda rows: rows["ours"] - rows["reported"],
        group=lambda rows: rows["level"].map(LEVELS),
        place=lambda rows: (rows["benchmark"] + ", " + rows["dialogue_dataset"]).str.removesuffix(f", {NONE}"),
    )
    cells: dict[str, Callable[[Record], str]] = {
        "reported": lambda record: NONE if pd.isna(record["source"]) else _text(record["reported"]),
        "ours": lambda record: NONE if record["table"] == NONE else _text(record["ours"]),
        "difference": as_number("difference", digits=0, sign=True),
    }
    labels = {"benchmark": "Benchmark", "dialogue_dataset": "Dialogue dataset", "table": "Our tables"}
    notes = [
        f"{row['place']}, {row['group'].lower()}: {row['ours']} counted, {row['reported']} reported"
        for row in frame[frame["difference"].fillna(0) != 0].to_dict("records")
    ]
    if mine["references"]:
        place = frame.loc[frame["dataset"] == dataset, "place"].iloc[0]
        notes.append(f"{place}: {mine['references']} rated references are not in our count of turns")
    tidy = frame[[*key[:3], "level", "reported", "ours", "difference", "source", "note"]]
    sections = [Section("Annotation counts", spread(frame, labels, "group", cells))]
    made = described(study, tidy, sections, *notes, *_noted(reported, ["benchmark", "dialogue_dataset"]))
    return replace(made, caption=f"{made.caption} {ending(one['source'])}".strip())


def counted(systems: pd.DataFrame, ratings: pd.DataFrame, source: str) -> dict[str, int]:
    """Count what a data set's tables hold, as Table 8 counts it.

    ``turn``: rated responses; ``dialogue``: rated pairs of a dialogue and a system; ``system``: rated systems; all without
    references, whose rated responses ``references`` counts. A level without ratings is absent.
    """
    rated = ratings.loc[ratings["source"] == source, ["level", "item_id", "system_id"]].drop_duplicates()
    reference = rated["system_id"].isin(systems.loc[systems["kind"] == "reference", "system_id"])
    return {
        **{str(level): int(own) for level, own in (~reference).groupby(rated["level"]).sum().items()},
        "system": int(rated.loc[~reference, "system_id"].nunique()),
        "references": int((reference & (rated["level"] == "turn")).sum()),
    }


def _text(count: int | None) -> str:
    return NOT_APPLICABLE if pd.isna(count) else str(count)


def _noted(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Return each note once, after the row that it is about; a note of several rows stands alone."""
    return [
        f"{', '.join(group[names].iloc[0])}: {note}" if len(group) == 1 else f"{note[0].upper()}{note[1:]}"
        for (note,), group in groups(frame[frame["note"].fillna("") != ""], "note")
    ]


# Dialogues


def example(inputs: Inputs, study: Study) -> Table:
    """Show two personas and their dialogue (Table 12); with ``beginning``, the first sentences alone (Table 2)."""
    entry, one = study["entry"], About.read(inputs["about"]).only
    contexts, personas = (schema.read(inputs[name][0], name) for name in ("contexts", "personas"))
    dialogue = str(contexts["dialogue_id"].min())
    of_dialogue = contexts[contexts["dialogue_id"] == dialogue].to_dict("records")
    last = max(of_dialogue, key=lambda context: len(context["history"]))
    turns = [(str(part["speaker"]), str(part["text"])) for part in last["history"]]
    turns += [(_EVALUATED, text) for text in last["references"][:1]]
    known = personas[personas["dialogue_id"] == dialogue].to_dict("records")
    profiles = {str(row["speaker"]): list(row["sentences"]) for row in known}
    speakers = sorted({*profiles, *(speaker for speaker, _ in turns)})
    records = [("persona", n, s, text) for s in speakers for n, text in enumerate(profiles.get(s, []), start=1)]
    records += [("utterance", n, speaker, text) for n, (speaker, text) in enumerate(turns, start=1)]
    frame = pd.DataFrame(records, columns=["part", "number", "speaker", "text"]).assign(dialogue_id=dialogue)
    heads = ["Part", *(f"Person {speaker}" for speaker in speakers)]
    sections = [
        Section(title, rows_frame(heads, _side_by_side(frame, speakers, most)))
        for title, most in {"Beginning": _SHORT, "In full": len(frame)}.items()
    ]
    notes = ["The last utterance is the reference response"] if last["references"] else []
    if len(last["references"]) > 1:
        notes.append(f"The first of {len(last['references'])} references is shown")
    if entry.get("beginning"):
        frame, sections = frame[frame["number"] <= _SHORT].reset_index(drop=True), sections[:1]
        notes = ["An ellipsis: Table 12 shows more"]
    caption = f"{entry['caption']} Dialogue {dialogue}. {ending(one['source'])}".strip()
    return Table(entry["title"], caption, frame, sections, notes)


def _side_by_side(frame: pd.DataFrame, speakers: Sequence[str], most: int) -> list[list[str]]:
    """Set persona sentences side by side and each utterance under its speaker, the first ``most`` of both."""
    rows = []
    for part, of_part in frame.groupby("part", sort=False):
        texts = of_part.set_index(["number", "speaker"])["text"].to_dict()
        for n in range(1, min(most, of_part["number"].max()) + 1):
            rows += _wrapped([f"{part} {n}", *(texts.get((n, speaker), "") for speaker in speakers)], "example")
        longer = {*of_part.loc[of_part["number"] > most, "speaker"]}
        if longer:
            rows.append(["", *("…" if part == "utterance" or s in longer else "" for s in speakers)])
    return rows


def _wrapped(cells: Sequence[str], width: str) -> list[list[str]]:
    """Return a row as several, so that no text is longer than a line."""
    lines = (textwrap.wrap(cell, _WIDTH[width]) for cell in cells)
    return [list(row) for row in zip_longest(*lines, fillvalue="")]


def level_differences(inputs: Inputs, study: Study) -> Table:
    """Show a dialogue that is rated lower as a whole than turn by turn, its systems side by side (Table 13)."""
    one = About.read(inputs["about"]).only
    contexts, systems, responses, ratings = (
        schema.read(inputs[name][0], name) for name in ("contexts", "systems", "responses", "ratings")
    )
    ratings = ratings[ratings["source"] == one["source"]]
    if ratings["level"].nunique() < 2:
        raise NothingToShowError("it takes ratings of turns and of dialogues")
    cases = table13_cases(ratings, contexts, count=one["level_differences"], systems=systems, source=one["source"])
    dialogue = str(cases["dialogue_id"].iloc[0])
    letters = {str(system): f"({chr(ord('a') + n)})" for n, system in enumerate(cases["system_id"])}
    marks = _marks(ratings[(ratings["level"] == "dialogue") & (ratings["item_id"] == dialogue)])
    people = [str(name) for name in sorted(systems.loc[systems["kind"] == "human", "system_id"]) if name not in letters]
    labels = letters | {name: "Human" if len(people) == 1 else f"Human {n}" for n, name in enumerate(people, 1)}
    transcript = _transcript(contexts[contexts["dialogue_id"] == dialogue], responses, ratings, labels)
    frame = transcript.merge(cases.drop(columns=["turns"]), on=["dataset", "dialogue_id", "system_id"], how="left")
    texts = {
        ("", "Which"): cases["system_id"].map(letters),
        ("", "Dialogue"): dialogue,
        ("", "System"): cases["system_id"],
    }
    for name, column in {"turns": "turn_rating", "dialogue": "dialogue_rating", "difference": "difference"}.items():
        texts["Mean rating", name] = cases[column].map(number, digits=2, sign=name == "difference")
    for axis, result in marks.items():
        frame[f"marks_{axis}"] = (
            frame["system_id"].map({s: result[s][0] for s in result if s in letters}).astype("Int64")
        )
        texts["Marked axes", axis] = cases["system_id"].map({s: f"{n} of {of}" for s, (n, of) in result.items()})
    notes = [
        *study["entry"]["notes"],
        *(["Marked axes: raters of the dialogue who marked the axis as a reason, of those who rated"] if marks else []),
        *(f"{label} is {system}" for system, label in labels.items() if system in people),
    ]
    return Table(
        f"{study['entry']['title']}: {one['title']}",
        f"{study['entry']['caption']} Dialogue {dialogue}, {len(cases)} systems. {ending(one['source'])}".strip(),
        frame,
        [Section("Cases", pd.DataFrame(texts).astype(object)), *_turns(transcript)],
        notes,
    )


def _marks(ratings: pd.DataFrame) -> dict[str, dict[str, tuple[int, int]]]:
    """Return, for each axis and system, how many raters marked it (rating 0 of 0 to 1) and how many rated."""
    axes = ratings[(ratings["dimension"] != OVERALL) & (ratings["scale_min"] == 0) & (ratings["scale_max"] == 1)]
    result: dict[str, dict[str, tuple[int, int]]] = {}
    for (axis, system), group in groups(axes.sort_values(["dimension", "system_id"]), "dimension", "system_id"):
        result.setdefault(axis, {})[system] = (int((group["rating"] == 0).sum()), len(group))
    return result


def _transcript(
    contexts: pd.DataFrame, responses: pd.DataFrame, ratings: pd.DataFrame, labels: Mapping[str, str]
) -> pd.DataFrame:
    """Return one dialogue, one row per utterance: what is new in the history, then the responses and the gold ones."""
    texts = responses.set_index(["context_id", "system_id"])["response"]
    overall = ratings[(ratings["level"] == "turn") & (ratings["dimension"] == OVERALL)]
    means = overall.groupby(["item_id", "system_id"])["rating"].mean()
    rows: list[dict[str, Any]] = []
    before: list[dict[str, str]] = []
    gold: list[str] = []
    for context in contexts.sort_values("turn").to_dict("records"):
        same = {name: context[name] for name in ("dataset", "dialogue_id", "context_id", "turn")}
        history = list(context["history"])
        new = history[len(before) :] if history[: len(before)] == before else history
        if len(new) < len(history) and new and new[0]["text"] in gold:
            # The last turn's gold response is there already.
            new = new[1:]
        rows += [same | {"speaker": part["speaker"], "which": "", "text": part["text"]} for part in new]
        before, gold = history, [str(text) for text in context["references"]]
        answers = [(label, system, texts.get((context["context_id"], system))) for system, label in labels.items()]
        shown = [answer for answer in answers if answer[0].startswith("(")]
        people = [answer for answer in answers if answer not in shown and answer[2] is not None]
        for label, system, text in [*shown, *(("Gold", None, text) for text in gold), *people]:
            rating = means.get((context["context_id"], system))
            rows.append(
                same | {"speaker": _EVALUATED, "which": label, "system_id": system, "text": text, "rating": rating}
            )
    columns = ["dataset", "dialogue_id", "context_id", "turn", "speaker", "which", "system_id", "text", "rating"]
    return pd.DataFrame(rows, columns=columns).astype({"rating": "float64"})


def _turns(transcript: pd.DataFrame) -> Iterator[Section]:
    columns = [("", "Turn"), ("", "Speaker"), ("", "Which"), ("", "Text"), ("Turn rating", "mean")]
    for turn, of_turn in transcript.groupby("turn", sort=True):
        name = str(int(str(turn)) + 1)
        rows = []
        for row in of_turn.to_dict("records"):
            text = " ".join(row["text"].split()) if isinstance(row["text"], str) else NONE
            cells = [name, str(row["speaker"]), str(row["which"]), text or NONE, number(row["rating"], digits=2)]
            rows += _wrapped(cells, "responses")
        yield Section(f"Turn {name}", rows_frame(columns, rows))


# Personas


def constraints(inputs: Inputs, study: Study) -> Table:
    """Show names by decade and gender, or from which to which age sentences may be drawn (Tables 9 to 11)."""
    entry, frame = study["entry"], read_table(inputs["constraints"][0])
    needed = ("decade", "generation", "gender", "name") if "gender" in frame else ("start_age", "end_age")
    if missing := [name for name in needed if name not in frame]:
        raise SchemaError(f"no column {', '.join(missing)}", where=str(inputs["constraints"][0]))
    if "gender" in frame:
        key = ["decade", "generation"]
        lists = frame.groupby([*key, "gender"], sort=False)["name"].agg(", ".join).rename("text").reset_index()
        lists = lists.assign(gender=lists["gender"].str.capitalize())
        labels = {"decade": "Decade", "generation": "Age"}
        texts = arranged(lists.assign(group=""), labels, ["group", "gender"], order=[("", "Male"), ("", "Female")])
        texts.columns = texts.columns.get_level_values(1)
    else:
        texts = frame[[str(frame.columns[0]), "start_age", "end_age"]].astype(str)
        texts.columns = pd.MultiIndex.from_tuples([("", entry["label"]), ("Age", "from"), ("Age", "to")])
    printed = int((frame["source"] == "paper").sum()) if "source" in frame else len(frame)
    notes = [f"The paper prints {printed} of these {len(frame)} rows; the rest is ours"] if printed < len(frame) else []
    return Table(entry["title"], entry["caption"], frame, [Section(entry["title"], texts.astype(object))], notes)


# Metrics


def metric_outputs(inputs: Inputs, study: Study) -> Table:
    """Show what each metric gives and whether it normalises its texts, the paper's beside ours (Table 14)."""
    texts = ("source", "place", "metric", "outputs", "normalised", "ours", "note")
    reported = read_reported(inputs["reported"], texts, ())
    entries = dict(completed(load_yaml(inputs["params"][0]))["metrics"])
    for other in read_studies().values():
        if not other.get("own_metrics_only"):
            entries |= {name: entry for name, entry in other.get("metrics", {}).items() if entry}
    made: dict[str, Metric] = {}
    for name in sorted(entries):
        options = {key: value for key, value in entries[name].items() if key not in ABOUT}
        made[name] = create(options.pop("kind"), **options)
    names = ["metric", "kind", "needs", "outputs", "normalised"]
    rows = [
        [name, of.kind, ", ".join(of.needs) or NONE, ", ".join(of.outputs), _normalises(of)]
        for name, of in made.items()
    ]
    ours = rows_frame(names, rows)
    both = reported.merge(ours.add_suffix("_here"), left_on="ours", right_on="metric_here", how="left")
    columns = {
        "metric": ("", "Metric"), "metric_here": ("", "Ours"), "outputs": ("Outputs", "paper"),
        "outputs_here": ("Outputs", "ours"), "normalised": ("Normalised", "paper"), "normalised_here": ("Normalised", "ours"),
    }  # fmt: skip
    beside = both[[*columns]].set_axis(pd.MultiIndex.from_tuples(columns.values()), axis=1)
    paper = reported[["metric", "outputs", "normalised", "ours"]].rename(columns={"ours": "metric_here"})
    missing = reported[~reported["ours"].isin(list(made))]
    return described(
        study,
        pd.concat([paper.assign(table="paper"), ours.assign(table="ours")], ignore_index=True),
        [
            Section("The paper's metrics", beside),
            Section("All metrics of params.yaml", ours.rename(columns=str.capitalize)),
        ],
        *_noted(reported, ["metric"]),
        *(f"{row['metric']}: params.yaml has no metric {row['ours']!r}" for row in missing.to_dict("records")),
    )


def _normalises(metric: Metric) -> str:
    """Return whether a metric normalises: one without the option takes texts as they are."""
    return "yes" if getattr(metric, "text", "raw") == "normalised" else "no"


def numbered(inputs: Inputs, study: Study) -> Table:
    """Show metrics and judges against ratings, ours beside the paper's values (Tables 3, 4, 5, 6, 15 and 16).

    The table's entry in ``studies/comperdial/study.yaml``, which is the input ``layout``, has ``sections`` in place of
    ``rows``: each with ``rows``; with ``further``, rows that are not in the paper and are shown if there are scores; or with
    ``judged``, which name a variant of the prompts and have a row for each of the paper's ``judges``. Other judges that were
    asked the same follow these. ``once``: rows of judges are of a single answer. ``recorded``: recorded answers have rows.
    """
    layout = load_yaml(inputs["layout"][0])["tables"][study["entry"]["name"]]
    about, number_of_table = About.read(inputs["about"]), int(re.sub(r"\D", "", study["entry"]["name"]))
    results = correlations.pooled(correlations.results(inputs, about))
    rows = list(_rows(layout, results, about))
    shown = ", ".join(about.titles[name] for name in study["datasets"])
    entry = {**layout, "title": f"Table {number_of_table}. {layout['title']}: {shown}"}
    study = {**study, "entry": entry, "name": "comperdial"}
    frame = correlations.frame(inputs, study, [{k: v for k, v in row.items() if k != "optional"} for row in rows])
    optional = pd.Series([bool(row.get("optional")) for row in rows]).reindex(frame["order"]).to_numpy()
    without = frame["not_run"].notna().groupby(frame["order"]).transform("all").to_numpy()
    frame.loc[optional, "not_run"] = None
    frame = frame[~(optional & without)]
    frame = pd.concat([frame, _ceilings(inputs, frame, layout)], ignore_index=True)
    if about.simulated:
        frame = frame[frame["value"].notna() | frame["not_run"].notna()].reset_index(drop=True)
    # Rows with one label show different scores.
    same = frame.groupby("label")["order"].transform("nunique") > 1
    frame.loc[same, "label"] += " (" + frame["metric"] + ":" + frame["output"] + ")"
    made = correlations.table(frame, study, about, ours=_ours)
    return Table(made.title, made.caption, made.frame, made.sections, [*made.notes, *_ceiling_notes(frame, about)])


def _rows(layout: Mapping[str, Any], results: pd.DataFrame, about: About) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, in order: those of other judges follow the last of the paper's."""
    judges = {name: entry for one in about.sets.values() for name, entry in one["judges"].items()}
    wanted, sections = "once" if layout.get("once") else "main", layout["sections"]
    asked = {
        (entry["variant"], entry["judge"]): (name, entry)
        for name, entry in judges.items()
        if "variant" in entry and entry[wanted]
    }
    last = max((place for place, part in enumerate(sections) if "judged" in part), default=-1)
    for place, part in enumerate(sections):
        name = part["section"]
        yield from ({"section": name, **row} for row in part.get("rows", ()))
        yield from ({"section": name, "optional": True, **row} for row in part.get("further", ()))
        for row in part.get("judged", ()):
            for judge in row.get("judges", layout.get("only", layout["judges"])):
                yield {"section": name, **_judged(row, judge, layout["judges"][judge], asked)}
        if place == last:
            yield from _other_judges(layout, asked)
            yield from _recorded(results, judges) if layout.get("recorded") else ()


def _judged(
    row: Mapping[str, Any], judge: str, called: str, asked: Mapping[tuple[str, str], tuple[str, Any]]
) -> dict[str, Any]:
    label = f"{row['label']} ({called})"
    reported = row["reported"].format(judge=called) if "reported" in row else label
    if "name" in row:
        label = reported = f"{label}, {row['name']}"
    if (row["variant"], judge) not in asked:
        why = f"params.yaml has no judge {judge!r} that is asked {row['variant']!r}"
        return {"label": label, "reported": reported, "not_run": why}
    metric, entry = asked[row["variant"], judge]
    return {"label": label, "metric": metric, "output": row.get("output", entry["output"]), "reported": reported}


def _other_judges(
    layout: Mapping[str, Any], asked: Mapping[tuple[str, str], tuple[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield rows of judges that are not the paper's, of the same variants and outputs."""
    rows = [row for part in layout["sections"] for row in part.get("judged", ())]
    for judge in dict.fromkeys(judge for _, judge in asked):
        for variant in dict.fromkeys(row["variant"] for row in rows):
            if judge in layout["judges"] or (variant, judge) not in asked:
                continue
            metric, entry = asked[variant, judge]
            outputs = {row.get("output", entry["output"]): row.get("name") for row in rows if row["variant"] == variant}
            for output, name in outputs.items():
                label = f"{entry['label']}, {name}" if name else entry["label"]
                yield _optional(f"CPDScore, judged by {judge}", label, metric, output)


def _recorded(results: pd.DataFrame, judges: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for metric, entry in judges.items():
        if "variant" not in entry:
            for output in sorted(results.loc[results["metric"] == metric, "output"].unique()):
                text = entry["label"]
                label = text.replace("{output}", output) if "{output}" in text else f"{text}, {output}"
                yield _optional("Recorded answers", label, metric, output)


def _optional(section: str, label: str, metric: str, output: str) -> dict[str, Any]:
    return {"section": section, "label": label, "metric": metric, "output": output, "optional": True}


def _ceilings(inputs: Inputs, frame: pd.DataFrame, layout: Mapping[str, Any]) -> pd.DataFrame:
    """Return how well a rater agrees with the others, the mean over raters; low and high are the lowest and highest."""
    key = ["dataset", "level", "against", "target", "coefficient"]
    result = pd.concat([schema.read(path, "ceilings") for path in inputs["ceilings"]], ignore_index=True)
    result = result[(result["grouping"] == "pooled") & result["value"].notna()]
    cells = frame[key].drop_duplicates()
    of = result.groupby(key, observed=True)["value"].agg(value="mean", low="min", high="max", raters="count")
    return cells.merge(of.reset_index(), on=key).assign(section="Raters", label=CEILING, order=len(frame))


def _ours(record: Record) -> str:
    return number(record["value"]) if record["label"] == CEILING else correlations.with_interval(record)


def _ceiling_notes(frame: pd.DataFrame, about: About) -> list[str]:
    notes = []
    for (dataset, level, against), group in groups(frame[frame["label"] == CEILING], "dataset", "level", "against"):
        ranges = ", ".join(
            f"{COEFFICIENTS[cell['coefficient']]} {number(cell['low'])} to {number(cell['high'])}"
            for cell in group.to_dict("records")
        )
        where = f"{about.titles[dataset]}, {level_title(level, against).lower()}"
        raters = int(group["raters"].max())
        notes.append(f"{CEILING}, {where}: mean of {raters} raters; the lowest and the highest of them: {ranges}")
    return notes
