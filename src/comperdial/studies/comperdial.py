"""ComperDial's numbered tables: benchmarks, dialogues, personas, counts, and metrics next to the paper's values."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.config.registry import completed
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import read_table
from comperdial.evaluation.ratings import OVERALL, table13_cases
from comperdial.metrics import create
from comperdial.metrics.named import ABOUT
from comperdial.report import correlations
from comperdial.report.about import About, Inputs, Study
from comperdial.report.correlations import LEVELS, Record, groups, read_reported
from comperdial.report.render import Section, Table, arranged, as_number, described, ending, number, rows_frame, spread

NONE, NOT_APPLICABLE = "–", "N/A"
CEILING = "One rater against the mean of the others"
# B is the evaluated system (docs/data-model.md), so B speaks the references.
_EVALUATED = "B"


# Benchmarks and counts


def benchmarks(inputs: Inputs, study: Study) -> Table:
    """Compare benchmarks of dialogue evaluation (Table 7); with ``only_table``, only the rows of that table (Table 1)."""
    columns = ("source", "place", "benchmark", "group", "property", "value", "note")
    frame = read_reported(inputs["benchmarks"], columns, ())
    if only := study["entry"].get("only_table"):
        frame = frame[frame["place"].str.match(rf"Tables? {only}\b")].reset_index(drop=True)
    in_table = frame["place"].str.startswith("Table")
    compared, collected = frame[in_table], frame[~in_table].rename(columns={"property": "Fact", "place": "Source"})
    wide = arranged(
        compared.assign(text=compared["value"], every=""),
        {"group": "Group", "property": "Property"},
        ["every", "benchmark"],
    )
    sections = [Section("Benchmarks of dialogue evaluation", wide.droplevel(0, axis=1))]
    if len(collected):
        names = {"value": " and ".join(collected["benchmark"].unique())}
        sections.append(Section("Collection", collected[["Fact", "Source", "value"]].rename(columns=names)))
    return described(study, frame, sections, *_noted(frame, ["benchmark", "property"]))


def counts(inputs: Inputs, study: Study) -> Table:
    """Count the rated parts of a data set, next to the paper's counts (Table 8)."""
    one, key = About.read(inputs["about"]).only, ["benchmark", "dialogue_dataset", "dataset", "source", "note"]
    reported = read_reported(inputs["reported"], (*key, "place", *LEVELS), ())
    systems, ratings = (schema.read(inputs[name][0], name) for name in ("systems", "ratings"))
    mine, dataset = counted(systems, ratings, one["source"]), one["dataset"]
    frame = reported[[*key, *LEVELS]]
    if dataset not in set(frame["dataset"]):
        own = {"benchmark": one["title"], "dialogue_dataset": NONE, "dataset": dataset, "note": ""}
        frame = pd.concat([frame, pd.DataFrame([own])], ignore_index=True)
    frame = frame.melt(key, [*LEVELS], "level", "printed", ignore_index=False).sort_index(kind="stable")
    ours = frame["dataset"] == dataset
    frame = frame.assign(
        table=ours.map({True: one["title"], False: NONE}),
        group=frame["level"].map(LEVELS),
        reported=pd.to_numeric(frame["printed"], errors="coerce").astype("Int64"),
        ours=frame["level"].map(mine).where(ours).astype("Int64"),
        counted=frame["level"].map(mine).map("{:.0f}".format, na_action="ignore").fillna(NOT_APPLICABLE).where(ours),
    )
    frame["difference"] = frame["ours"] - frame["reported"]
    cells = {
        "reported": lambda record: record["printed"],
        "ours": lambda record: record["counted"],
        "difference": as_number("difference", digits=0, sign=True),
    }
    labels = {"benchmark": "Benchmark", "dialogue_dataset": "Dialogue dataset", "table": "Our tables"}
    notes = _noted(reported, ["benchmark", "dialogue_dataset"])
    if mine["references"]:
        notes.insert(0, f"{one['title']}: {mine['references']} rated references are not in our count of turns")
    tidy = frame[[*key[:3], "level", "reported", "ours", "difference", "source", "note"]]
    made = described(study, tidy, [Section("Annotation counts", spread(frame, labels, "group", cells))], *notes)
    return replace(made, caption=f"{made.caption} {ending(one['source'])}".strip())


def counted(systems: pd.DataFrame, ratings: pd.DataFrame, source: str) -> dict[str, int]:
    """Count the content of a data set's tables, as in Table 8.

    ``turn``: rated responses; ``dialogue``: rated pairs of a dialogue and a system; ``system``: rated systems; all without
    references, whose rated responses ``references`` counts. Unrated levels are absent.
    """
    rated = ratings.loc[ratings["source"] == source, ["level", "item_id", "system_id"]].drop_duplicates()
    reference = rated["system_id"].isin(systems.loc[systems["kind"] == "reference", "system_id"])
    return {
        **{str(level): int(own) for level, own in (~reference).groupby(rated["level"]).sum().items()},
        "system": int(rated.loc[~reference, "system_id"].nunique()),
        "references": int((reference & (rated["level"] == "turn")).sum()),
    }


def _noted(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Return each note once, after the name of its row, or without a name if several rows share it."""
    return [
        f"{', '.join(group[names].iloc[0])}: {note}" if len(group) == 1 else f"{note[0].upper()}{note[1:]}"
        for (note,), group in groups(frame[frame["note"].fillna("") != ""], "note")
    ]


# Dialogues


def example(inputs: Inputs, study: Study) -> Table:
    """Return two personas and their dialogue (Table 12); with ``beginning``, that many sentences and utterances (Table 2)."""
    entry, one = study["entry"], About.read(inputs["about"]).only
    contexts, personas = (schema.read(inputs[name][0], name) for name in ("contexts", "personas"))
    dialogue = str(contexts["dialogue_id"].min())
    last = max(contexts[contexts["dialogue_id"] == dialogue].to_dict("records"), key=lambda row: len(row["history"]))
    turns = [(str(part["speaker"]), str(part["text"])) for part in last["history"]]
    turns += [(_EVALUATED, text) for text in last["references"][:1]]
    known = personas[personas["dialogue_id"] == dialogue]
    profiles = dict(zip(known["speaker"], known["sentences"], strict=True))
    speakers = sorted({*profiles, *(speaker for speaker, _ in turns)})
    records = [("persona", n, s, text) for s in speakers for n, text in enumerate(profiles.get(s, []), start=1)]
    records += [("utterance", n, speaker, text) for n, (speaker, text) in enumerate(turns, start=1)]
    frame = pd.DataFrame(records, columns=["part", "number", "speaker", "text"]).assign(dialogue_id=dialogue)
    notes = ["The last utterance is the reference response"] if last["references"] else []
    if len(last["references"]) > 1:
        notes.append(f"The first of {len(last['references'])} references is shown")
    if most := entry.get("beginning"):
        frame, notes = frame[frame["number"] <= most].reset_index(drop=True), ["Table 12 shows more"]
    rows = []
    for (part, n), of in frame.groupby(["part", "number"], sort=False):
        texts = of.set_index("speaker")["text"]
        rows += _wrapped([f"{part} {n}", *(texts.get(speaker, "") for speaker in speakers)], 56)
    made = rows_frame(["Part", *(f"Person {speaker}" for speaker in speakers)], rows)
    caption = f"{entry['caption']} Dialogue {dialogue}. {ending(one['source'])}".strip()
    return Table(entry["title"], caption, frame, [Section("Beginning" if most else "In full", made)], notes)


def _wrapped(cells: Sequence[str], width: int) -> list[list[str]]:
    """Split a row into several: LaTeX and HTML do not break lines inside a cell."""
    return [list(row) for row in zip_longest(*(textwrap.wrap(cell, width) for cell in cells), fillvalue="")]


def level_differences(inputs: Inputs, study: Study) -> Table:
    """Return a dialogue rated lower as a whole than turn by turn, its systems side by side (Table 13)."""
    entry, one = study["entry"], About.read(inputs["about"]).only
    contexts, systems, responses, ratings = (
        schema.read(inputs[name][0], name) for name in ("contexts", "systems", "responses", "ratings")
    )
    ratings = ratings[ratings["source"] == one["source"]]
    if ratings["level"].nunique() < 2:
        raise NothingToShowError("this needs ratings of turns and of dialogues")
    cases = table13_cases(ratings, contexts, count=one["level_differences"], systems=systems, source=one["source"])
    dialogue = str(cases["dialogue_id"].iloc[0])
    letters = {str(system): f"({chr(ord('a') + n)})" for n, system in enumerate(cases["system_id"])}
    people = [str(name) for name in sorted(systems.loc[systems["kind"] == "human", "system_id"]) if name not in letters]
    labels = letters | {name: "Human" if len(people) == 1 else f"Human {n}" for n, name in enumerate(people, 1)}
    transcript = _transcript(contexts[contexts["dialogue_id"] == dialogue], responses, ratings, labels)
    frame = transcript.merge(cases.drop(columns="turns"), on=["dataset", "dialogue_id", "system_id"], how="left")
    texts = {
        ("", "Which"): cases["system_id"].map(letters),
        ("", "Dialogue"): dialogue,
        ("", "System"): cases["system_id"],
        ("Mean rating", "turns"): cases["turn_rating"].map(number, digits=2),
        ("Mean rating", "dialogue"): cases["dialogue_rating"].map(number, digits=2),
        ("Mean rating", "difference"): cases["difference"].map(number, digits=2, sign=True),
    }
    # A marked axis has rating 0 on a scale from 0 to 1.
    axes = ratings[(ratings["level"] == "dialogue") & (ratings["item_id"] == dialogue) & (ratings["scale_min"] == 0)]
    axes = axes[(axes["dimension"] != OVERALL) & (axes["scale_max"] == 1)]
    for axis, of in axes[axes["system_id"].isin([*letters])].groupby("dimension"):
        marked = of["rating"].eq(0).groupby(of["system_id"]).agg(["sum", "size"]).astype("Int64")
        frame[f"marks_{axis}"] = frame["system_id"].map(marked["sum"])
        shares = marked["sum"].astype(str) + " of " + marked["size"].astype(str)
        texts["Marked axes", str(axis)] = cases["system_id"].map(shares)
    marks = ["Marked axes: raters of the dialogue who marked the axis as a reason, of those who rated"]
    columns, rows = ["Turn", "Speaker", "Which", "Text", "Mean rating"], []
    for row in transcript.to_dict("records"):
        text = " ".join(row["text"].split()) if isinstance(row["text"], str) else ""
        cells = [f"{row['turn'] + 1}", row["speaker"], row["which"], text or NONE, number(row["rating"], digits=2)]
        rows += _wrapped(cells, 90)
    sections = [Section("Cases", pd.DataFrame(texts).astype(object)), Section("Dialogue", rows_frame(columns, rows))]
    return Table(
        f"{entry['title']}: {one['title']}",
        f"{entry['caption']} Dialogue {dialogue}, {len(cases)} systems. {ending(one['source'])}".strip(),
        frame,
        sections,
        [*entry["notes"], *(marks if len(texts) > 6 else []), *(f"{labels[name]} is {name}" for name in people)],
    )


def _transcript(
    contexts: pd.DataFrame, responses: pd.DataFrame, ratings: pd.DataFrame, labels: Mapping[str, str]
) -> pd.DataFrame:
    """Return one dialogue, one row per utterance: new parts of the history, then the responses and the gold ones."""
    texts = responses.set_index(["context_id", "system_id"])["response"]
    overall = ratings[(ratings["level"] == "turn") & (ratings["dimension"] == OVERALL)]
    means = overall.groupby(["item_id", "system_id"])["rating"].mean()
    rows: list[dict[str, Any]] = []
    before: list[dict[str, str]] = []
    gold: list[str] = []
    for context in contexts.sort_values("turn").to_dict("records"):
        same = {name: context[name] for name in ("dataset", "dialogue_id", "context_id", "turn")}
        history = list(context["history"])
        # The last turn's gold response is already included.
        new = [part for part in history[len(before) :] if part["text"] not in gold]
        rows += [same | {"speaker": part["speaker"], "which": "", "text": part["text"]} for part in new]
        before, gold = history, [str(text) for text in context["references"]]
        answers = [(label, name, texts.get((context["context_id"], name))) for name, label in labels.items()]
        shown = [answer for answer in answers if answer[0].startswith("(")]
        people = [answer for answer in answers if answer not in shown and answer[2] is not None]
        for label, name, text in [*shown, *(("Gold", None, text) for text in gold), *people]:
            rating = means.get((context["context_id"], name))
            rows.append(
                same | {"speaker": _EVALUATED, "which": label, "system_id": name, "text": text, "rating": rating}
            )
    columns = ["dataset", "dialogue_id", "context_id", "turn", "speaker", "which", "system_id", "text", "rating"]
    return pd.DataFrame(rows, columns=columns).astype({"rating": "float64"})


# Personas and metrics


def constraints(inputs: Inputs, study: Study) -> Table:
    """Return names by decade and gender, or age ranges of sentences (Tables 9 to 11)."""
    entry, frame = study["entry"], read_table(inputs["constraints"][0])
    if "gender" in frame:
        lists = frame.groupby(["decade", "generation", "gender"], sort=False)["name"].agg(", ".join)
        texts = lists.unstack("gender").rename(columns=str.capitalize)[["Male", "Female"]]
        texts = texts.sort_index(ascending=False).rename_axis(index=["Decade", "Age"])
    else:
        texts = frame[[str(frame.columns[0]), "start_age", "end_age"]].astype(str)
        texts.columns = pd.MultiIndex.from_tuples([("", entry["label"]), ("Age", "from"), ("Age", "to")])
    printed = int((frame["source"] == "paper").sum()) if "source" in frame else len(frame)
    notes = [f"The paper prints {printed} of these {len(frame)} rows; the rest is ours"] if printed < len(frame) else []
    return described(study, frame, [Section(entry["title"], texts.astype(object))], *notes)


def metric_outputs(inputs: Inputs, study: Study) -> Table:
    """Return each metric's outputs and whether it normalizes texts, the paper's next to ours (Table 14)."""
    texts = ("source", "place", "metric", "outputs", "normalised", "ours", "note")
    reported = read_reported(inputs["reported"], texts, ())
    rows = []
    for name, entry in sorted(completed(load_yaml(inputs["params"][0]))["metrics"].items()):
        options = {key: value for key, value in entry.items() if key not in {*ABOUT, "kind"}}
        metric = create(entry["kind"], **options)
        # Metrics without the option do not normalize.
        normalises = "yes" if getattr(metric, "text", "raw") == "normalised" else "no"
        rows.append((name, metric.kind, ", ".join(metric.needs) or NONE, ", ".join(metric.outputs), normalises))
    ours = rows_frame(["metric", "kind", "needs", "outputs", "normalised"], rows)
    both = reported.merge(ours.add_suffix("_here"), left_on="ours", right_on="metric_here", how="left")
    columns = {
        "metric": ("", "Metric"), "metric_here": ("", "Ours"), "outputs": ("Outputs", "paper"),
        "outputs_here": ("Outputs", "ours"), "normalised": ("Normalised", "paper"), "normalised_here": ("Normalised", "ours"),
    }  # fmt: skip
    beside = both[[*columns]].set_axis(pd.MultiIndex.from_tuples(columns.values()), axis=1)
    paper = reported[["metric", "outputs", "normalised", "ours"]].rename(columns={"ours": "metric_here"})
    tidy = pd.concat([paper.assign(table="paper"), ours.assign(table="ours")], ignore_index=True)
    every = Section("All metrics of params.yaml", ours.rename(columns=str.capitalize))
    missing = both.loc[both["metric_here"].isna(), ["metric", "ours"]].itertuples(index=False)
    notes = [f"{metric}: params.yaml has no metric {here!r}" for metric, here in missing]
    return described(
        study, tidy, [Section("The paper's metrics", beside), every], *_noted(reported, ["metric"]), *notes
    )


# Tables of correlations


def numbered(inputs: Inputs, study: Study) -> Table:
    """Return metrics and judges against ratings, ours next to the paper's values (Tables 3, 4, 5, 6, 15 and 16).

    The table's entry in ``studies/comperdial/study.yaml``, which is the input ``layout``, has ``sections`` instead of ``rows``:
    each with ``rows``; with ``further``, rows that are not in the paper and are shown if there are scores; or with ``judged``,
    which names prompt variants and has a row for each of the paper's ``judges``, followed by other judges with the same
    prompts. ``once``: rows of judges use a single answer. ``recorded``: recorded answers have rows.
    """
    layout, about = load_yaml(inputs["layout"][0])["tables"][study["entry"]["name"]], About.read(inputs["about"])
    shown = ", ".join(about.titles[name] for name in study["datasets"])
    study = {**study, "entry": {**layout, "title": f"{layout['title']}: {shown}"}, "name": "comperdial"}
    rows = list(_rows(layout, correlations.pooled(correlations.results(inputs, about)), about))
    optional = [row.pop("optional", False) for row in rows]
    frame = correlations.frame(inputs, study, rows)
    further = frame["order"].map(optional.__getitem__)
    frame["not_run"] = frame["not_run"].mask(further & frame["not_run"].isna().groupby(frame["order"]).transform("any"))
    frame = frame[~further | frame["not_run"].isna()]
    if about.simulated:
        frame = frame[frame["value"].notna() | frame["not_run"].notna()].reset_index(drop=True)
    # Rows with the same label show different scores.
    same = frame.groupby("label")["order"].transform("nunique") > 1
    frame.loc[same, "label"] += " (" + frame["metric"] + ":" + frame["output"] + ")"
    return _with_ceilings(inputs, study, frame)


def _rows(layout: Mapping[str, Any], results: pd.DataFrame, about: About) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, in order: other judges and recorded answers follow the paper's last one."""
    judges = {name: entry for one in about.sets.values() for name, entry in one["judges"].items()}
    wanted = "once" if layout.get("once") else "main"
    asked = {(of["variant"], of["judge"]): (name, of) for name, of in judges.items() if "variant" in of and of[wanted]}
    theirs, sections = layout.get("judges", {}), layout["sections"]
    judged = [(place, row) for place, part in enumerate(sections) for row in part.get("judged", ())]
    named = {id(row): f", {row['name']}" if "name" in row else "" for _, row in judged}
    for place, part in enumerate(sections):
        section = {"section": part["section"]}
        yield from (section | row for row in part.get("rows", ()))
        yield from (section | {"optional": True} | row for row in part.get("further", ()))
        for row in part.get("judged", ()):
            for judge in row.get("judges", layout.get("only", theirs)):
                label = f"{row['label']} ({theirs[judge]}){named[id(row)]}"
                made = section | {"label": label}
                made["reported"] = row["reported"].format(judge=theirs[judge]) if "reported" in row else label
                if (row["variant"], judge) in asked:
                    metric, entry = asked[row["variant"], judge]
                    yield made | {"metric": metric, "output": row.get("output", entry["output"])}
                else:
                    yield made | {"not_run": f"params.yaml has no judge {judge!r} with the variant {row['variant']!r}"}
        if not judged or place != judged[-1][0]:
            continue
        for judge in dict.fromkeys(judge for _, judge in asked if judge not in theirs):
            for _, row in judged:
                if (row["variant"], judge) in asked:
                    metric, entry = asked[row["variant"], judge]
                    made = {"section": f"CPDScore, judged by {judge}", "label": entry["label"] + named[id(row)]}
                    yield made | {"metric": metric, "output": row.get("output", entry["output"]), "optional": True}
        for metric, entry in judges.items() if layout.get("recorded") else ():
            outputs = results.loc[results["metric"] == metric, "output"].unique() if "variant" not in entry else ()
            for output in sorted(outputs):
                label = entry["label"] if "{output}" in entry["label"] else entry["label"] + ", {output}"
                made = {"section": "Recorded answers", "label": label.replace("{output}", output), "optional": True}
                yield made | {"metric": metric, "output": output}


def with_raters(inputs: Inputs, study: Study) -> Table:
    """Return a table of correlations with the agreement between raters below the metrics."""
    return _with_ceilings(inputs, study, correlations.frame(inputs, study, study["entry"]["rows"]))


def _with_ceilings(inputs: Inputs, study: Study, frame: pd.DataFrame) -> Table:
    """Add the agreement of a rater with the others: the mean over raters, with low and high as the extremes."""
    key = ["dataset", "level", "against", "target", "coefficient"]
    result = pd.concat([schema.read(path, "ceilings") for path in inputs["ceilings"]], ignore_index=True)
    result = result[(result["grouping"] == "pooled") & result["value"].notna()]
    of = result.groupby(key, observed=True)["value"].agg(value="mean", low="min", high="max", raters="count")
    raters = frame[key].drop_duplicates().merge(of.reset_index(), on=key)
    both = pd.concat([frame, raters.assign(section="Raters", label=CEILING, order=len(frame))], ignore_index=True)
    made = correlations.table(both, study, About.read(inputs["about"]), ours=_ours)
    note = f"{CEILING}: the mean over raters; the CSV file has the lowest and the highest of them (low, high)"
    return replace(made, notes=[*made.notes, *([note] if len(raters) else [])])


def _ours(record: Record) -> str:
    return number(record["value"]) if record["label"] == CEILING else correlations.with_interval(record)
