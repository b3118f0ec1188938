"""Recorded judges, audited, and the statistics of the audit next to what others publish or compute (docs/judge-audit.md).

:func:`compute` writes a file of numbers for each table. Data that cannot be had are a row with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.config.registry import registered
from comperdial.config.studies import params_file, read_study, with_studies
from comperdial.core.errors import ComperdialError, NothingToShowError
from comperdial.core.files import write_table
from comperdial.data import readers, sources
from comperdial.data.catalogue import load_catalogue
from comperdial.data.labels import Labels, read_labels
from comperdial.data.preferences import read_preferences
from comperdial.data.recorded import DIMENSIONS, Rated
from comperdial.data.recorded import FORMATS as SCORES
from comperdial.evaluation.audit import AGREEMENT, BIAS, SYSTEMS, Audit, audit
from comperdial.evaluation.judged import Judged, from_ratings, from_votes
from comperdial.evaluation.rated_data import NOTHING, Data
from comperdial.judges.recorded import FORMATS as ANSWERS
from comperdial.judges.recorded import Recorded
from comperdial.judges.recorded_pairs import DATASETS as WITH_JUDGES
from comperdial.judges.recorded_pairs import judged_pairs
from comperdial.report.about import Inputs, Study
from comperdial.report.correlations import read_reported
from comperdial.report.render import Section, Table, count, described, interval, number, rows_frame
from comperdial.stats.agreement import krippendorff_alpha
from comperdial.stats.alternative_test import EPSILONS, AlternativeTest
from comperdial.stats.alternative_test import alternative_test as test_judge
from comperdial.stats.chance_agreement import gwet_ac, weighted_kappa
from comperdial.stats.corrected_means import Estimate, classical, corrected_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
Read = Callable[[str], Any]
FACE = "face"
_PAIRS = {"first": 1.0, "tie": 0.5, "second": 0.0}
# Scales of recorded scores, where they are not people's.
_SCALES = {"unieval": (0.0, 1.0)}
_COUNTS = (100, 200)


def compute(folder: str | Path, *, catalogue: str | Path) -> None:
    """Write the numbers of all tables to a folder; files that are missing are fetched, as the catalogue says."""
    sets = read_study("judge_audit")["tables"]["alternative_test"]["sets"]
    params = params_file()
    known = with_studies(load_yaml(params)) if params.is_file() else {}

    @cache
    def labels(name: str) -> Labels:
        return read_labels(name, catalogue=catalogue)

    @cache
    def tables(name: str) -> Mapping[str, pd.DataFrame]:
        entry = load_catalogue(catalogue).dataset(name)
        return readers.read(entry.reader, name, sources.require_all(entry.files))

    def file(name: str) -> Path:
        return sources.require(load_catalogue(catalogue).file(name))

    def votes(name: str) -> pd.DataFrame:
        made = read_preferences(name, catalogue=catalogue)
        return made if {*made["source"]} != {"human"} else pd.concat([made, judged_pairs(name, catalogue=catalogue)[0]])

    recordings = {**registered("recorded"), **(known.get("recorded_judges") or {})}
    made = {
        "alternative_test": alternative_tests(sets, labels),
        "agreement": agreements(labels, lambda name: face_overall(tables, file)),
        "audits": audits(recordings, tables, file, votes),
        "corrected": corrections(labels, lambda name: face_overall(tables, file)),
    }
    for name, rows in made.items():
        write_table(Path(folder) / f"{name}.csv", pd.DataFrame(rows))


def _missing(error: ComperdialError) -> str:
    return f"not here: {error.problem}"


# The alternative annotator test


def alternative_tests(sets: Mapping[str, Mapping[str, Any]], read: Read) -> Rows:
    """Return a row for each set and judge, and for judges that always give people's commonest label, or their mean."""
    rows: Rows = []
    for name, how in sets.items():
        try:
            people, judges = read(f"alt_test_{how.get('data', name)}")
        except ComperdialError as error:
            rows.append({"set": name, "note": _missing(error)})
            continue
        if asked := how.get("question"):
            people, judges = (part[part["item"].str.endswith(f"__{asked}")] for part in (people, judges))
        both = pd.concat([people, judges.rename(columns={"judge": "rater"})], ignore_index=True)
        common = people["label"].mode().iloc[0]
        both["code"] = both["label"] if both["label"].dtype.kind in "if" else pd.factorize(both["label"])[0]
        wide = both.pivot(index="rater", columns="item", values="code").astype(np.float64)
        annotators = {rater: wide.loc[rater].to_numpy() for rater in people["rater"].unique()}
        always = np.full(wide.shape[1], both.loc[both["label"] == common, "code"].iloc[0], dtype=np.float64)
        labels = {judge: wide.loc[judge].to_numpy() for judge in judges["judge"].unique()} | {f"always {common}": always}
        if how["scoring"] == "rmse":
            labels["always the mean"] = np.full(wide.shape[1], people["label"].mean())
        for judge, own in labels.items():
            test = test_judge(own, annotators, epsilon=how["epsilon"], scoring=how["scoring"])
            rows.append(
                {"set": name, "judge": judge, "wins": int(test.rejected.sum()), "annotators": len(test.annotators),
                 "rho": test.average_advantage, "passed": test.passed}
            )  # fmt: skip
    return rows


# Agreement


def measures(ratings: Any, categories: Sequence[float]) -> dict[str, float]:  # noqa: ANN401
    """Return kappa (of two raters), Gwet's AC and Krippendorff's alpha of ratings, (raters, items), NaN where missing.

    Of two raters, the items that both rated count.
    """
    table = np.asarray(ratings, dtype=np.float64)
    table = table[:, ~np.isnan(table).any(axis=0)] if len(table) == 2 else table
    made = {}
    for weighting, name in (("identity", ""), ("linear", "_linear"), ("quadratic", "_quadratic")):
        if len(table) == 2:
            made[f"kappa{name}"] = weighted_kappa(*table, categories, weighting)  # type: ignore[arg-type]
        made[f"ac{name}"] = gwet_ac(table, categories, weighting)  # type: ignore[arg-type]
    return made | {f"alpha_{level}": krippendorff_alpha(table.T, level) for level in ("nominal", "ordinal", "interval")}  # type: ignore[arg-type]


def _wide(labels: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return labels as a frame of numbers: a row a rater, a column an item, in the order of the file."""
    values = labels["label"].map(_PAIRS) if labels["label"].dtype.kind not in "if" else labels["label"]
    wide = labels.assign(value=values).pivot(index=by, columns="item", values="value").astype(np.float64)
    return wide[labels["item"].drop_duplicates()]


def agreements(read: Read, overall: Read) -> Rows:
    """Return a row for each pair of raters or judges, or group of people, of the public sets."""
    rows: Rows = []

    def add(dataset: str, who: str, values: Any, categories: Sequence[float], **more: Any) -> None:  # noqa: ANN401
        table = np.asarray(values, dtype=np.float64)
        n = int((~np.isnan(table)).all(axis=0).sum()) if len(table) == 2 else table.shape[1]
        rows.append({"dataset": dataset, "who": who, "n": n, **measures(table, categories), **more})

    stars, three = [1.0, 2, 3, 4, 5], [0.0, 0.5, 1.0]
    try:
        people, judges = (_wide(part, by) for part, by in zip(read("pandalm"), ("rater", "judge"), strict=True))
        for one, other in (("1", "2"), ("1", "3"), ("2", "3")):
            add("PandaLM", f"raters {one} and {other}", people.loc[[one, other]], three)
        for judge in judges.index:
            add("PandaLM", f"rater 1 and {judge}", [people.loc["1"], judges.loc[judge].reindex(people.columns)], three)
        add("PandaLM", "3 raters", people, three)
        majority = people.mode().iloc[0].value_counts()
        rows += [{"dataset": "PandaLM", "who": "majority", "label": name, "n": int(majority[at])} for name, at in _PAIRS.items()]
    except ComperdialError as error:
        rows.append({"dataset": "PandaLM", "note": _missing(error)})
    for title, name, question in (
        ("SummEval", "summeval", ""),
        ("SummEval, coherence", "summeval", "__coherence"),
        ("CEBaB stars", "cebab_stars", ""),
        ("10k prompts", "10k_prompts", ""),
    ):
        try:
            people, judges = (_wide(part, by) for part, by in zip(read(f"alt_test_{name}"), ("rater", "judge"), strict=True))
        except ComperdialError as error:
            rows.append({"dataset": title, "note": _missing(error)})
            continue
        chosen = [item for item in people if str(item).endswith(question)]
        if name != "10k_prompts":
            add(title, "rater 1 and gpt-4o", [people.loc["1", chosen], judges.loc["gpt-4o", chosen]], stars)
        if name != "summeval":
            add(title, f"{len(people)} raters", people, stars)
    try:
        made = overall(FACE)
        both = np.array([made["people"], np.floor(made["judge"] + 0.5)])
        add("FACE, overall", "people and judge, rounded", both, [0.0, 1, 2, 3, 4])
        exact = krippendorff_alpha(made[["people", "judge"]].to_numpy(), "interval")
        rows.append({"dataset": "FACE, overall", "who": "people and judge", "n": len(made), "alpha_interval": exact})
    except ComperdialError as error:
        rows.append({"dataset": "FACE, overall", "note": _missing(error)})
    return rows


def face_overall(tables: Read, file: Callable[[str], Path]) -> pd.DataFrame:
    """Return FACE's dialogues that have a score, in the order of the file: ``people``, ``judge``, ``cluster`` (the session)."""
    key = ["item_id", "system_id"]
    scores = _scores(registered("recorded")["face_recorded"], _rated(tables(FACE)), file)
    given = tables(FACE)["ratings"].query("dimension == 'dialogue_overall'").set_index(key)["rating"]
    judge = scores[scores["output"] == "dialogue_overall"].set_index(key)["value"]
    made = pd.DataFrame({"people": given, "judge": judge.reindex(given.index)}).dropna().reset_index()
    return made.assign(cluster=made["item_id"].str.rpartition("-")[2])


# Audits


def _rated(tables: Mapping[str, pd.DataFrame]) -> Rated:
    return Rated(*(tables[name] for name in ("contexts", "responses", "systems", "ratings")))


def _scores(entry: Mapping[str, Any], rated: Rated, file: Callable[[str], Path]) -> pd.DataFrame:
    """Return level, item, system, output and value of recorded scores, or of the means of recorded answers."""
    if entry["format"] in SCORES:
        made = SCORES[entry["format"]](file(entry["source"]), rated)
    else:
        read = Recorded.read("", entry["format"], {name: file(one) for name, one in entry["sources"].items()}, rated)
        made = read.means.rename(columns={"dimension": "output"}).assign(level=read.format.level)
    return made[~made["system_id"].isin(rated.references) & made["value"].notna()].assign(cut=0)


def judged_by(name: str, entry: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], file: Callable[[str], Path]) -> Iterator[Judged]:
    """Yield a recorded judge with each level and dimension that people rated, too."""
    ratings = tables["ratings"][tables["ratings"]["source"] == "human"]
    if ratings.empty:
        return
    scores = _scores(entry, _rated(tables), file)
    form = ANSWERS.get(entry["format"])
    targets = DIMENSIONS if entry["format"] == "unieval" else (form and form.targets) or {}
    for (level, output), own in scores.groupby(["level", "output"], sort=False):
        target = targets.get(output, output)
        if target not in {*ratings.loc[ratings["level"] == level, "dimension"]}:
            continue
        scale = (form.forms[output].low, form.forms[output].high) if form else _SCALES.get(entry["format"])
        table = own.assign(dataset=entry["dataset"], metric=name, output=target, signature="recorded")
        part = schema.validate(table[list(schema.table("scores").columns)], "scores")
        data = Data(tables["responses"], ratings, tables["contexts"], None, part, None, (), NOTHING.batch)
        yield from from_ratings(data, "human", target=target, level=str(level), judge_scale=scale)


def audits(recordings: Mapping[str, Mapping[str, Any]], tables: Read, file: Callable[[str], Path], votes: Read) -> Rows:
    """Return a row for each recorded judge and dimension."""
    rows: Rows = []
    for name in ("pandalm", *WITH_JUDGES):
        try:
            rows += [_audited(name, "votes", one) for one in from_votes(votes(name))]
        except ComperdialError as error:
            rows.append({"dataset": name, "note": _missing(error)})
    for name, entry in recordings.items():
        try:
            made = [_audited(entry["dataset"], "", one) for one in judged_by(name, entry, tables(entry["dataset"]), file)]
            rows += made or [{"dataset": entry["dataset"], "judge": name, "note": "no ratings by people of what it rated"}]
        except ComperdialError as error:
            rows.append({"dataset": entry["dataset"], "judge": name, "note": _missing(error)})
    return rows


def _audited(dataset: str, level: str, judged: Judged) -> dict[str, Any]:
    row: dict[str, Any] = {
        "dataset": dataset, "judge": judged.judge_name, "dimension": judged.dimension, "level": level or judged.noun,
        "n": int(judged.labelled.sum()), "raters": judged.people.shape[1],
    }  # fmt: skip
    try:
        made = audit(judged)
    except ComperdialError as error:
        return row | {"note": error.problem}
    row |= verdict(made) | {"verdict_experts": verdict(audit(judged, raters="experts"))["verdict"]}
    if made.alternative:
        row |= {"wins": int(made.alternative.rejected.sum()), "annotators": len(made.alternative.annotators)}
        row |= {"winning_rate": made.alternative.winning_rate, "rho": made.alternative.average_advantage}
        constant = _always_the_mean(judged)
        row |= {"mean_wins": int(constant.rejected.sum()), "mean_rho": constant.average_advantage}
        if row["verdict"] == "passes" and constant.passed:
            row["note"] = f"so does a judge that always gives people's mean, against {row['mean_wins']} of {row['annotators']}"
    for name, section, what in (
        ("pearson", AGREEMENT, "Pearson with people's mean"),
        ("kappa", AGREEMENT, "Weighted kappa of the judge with a rater"),
        ("length", BIAS, "rank correlation of length with judge − people"),
        ("order", SYSTEMS, "pairs of systems in people's order"),
    ):
        found = made.section(section).number(what)
        row |= {name: found["value"], f"{name}_low": found["low"], f"{name}_high": found["high"]}
        row |= {"pairs": found["n"]} if name == "order" else {}
    numbers = made.section(SYSTEMS).numbers
    if numbers is not None:
        own = numbers[numbers["what"].str.startswith("offset of ") & ~numbers["what"].str.endswith(" beside the others")]
        far = own.loc[own["value"].abs().idxmax()]
        row |= {"system": far["what"][10:], "offset": far["value"], "offset_low": far["low"], "offset_high": far["high"]}
    return row


def _always_the_mean(judged: Judged) -> AlternativeTest:
    """Return the test of a judge that always gives people's mean: where labels are numbers it is near everybody."""
    people = {str(name): judged.people[name].to_numpy(np.float64) for name in judged.people}
    own = np.where(judged.labelled, np.nanmean(judged.people.to_numpy(np.float64)), np.nan)
    of_two = judged.of_pairs or (judged.categories is not None and len(judged.categories) == 2)
    return test_judge(own, people, epsilon=EPSILONS["crowd"], scoring="accuracy" if of_two else "rmse")


def verdict(made: Audit) -> dict[str, str]:
    """Return the verdict in a few words, and the reason."""
    text = made.sections[0].sentences[0].removesuffix(".")
    if text.startswith("Yes"):
        return {"verdict": "passes"}
    if "cannot be tested" in text:
        return {"verdict": "cannot be tested", "note": text.partition(": ")[2].partition(": --")[0]}
    return {"verdict": "not shown", "note": text.partition(", but ")[2]}


# Corrected means


def corrections(read: Read, overall: Read) -> Rows:
    """Return the means of PandaLM and FACE by the labels of their first items: plain, and with intervals that allow for more."""
    rows: Rows = []
    try:
        people, judges = read("pandalm")
        given, judged = _wide(people, "rater"), _wide(judges, "judge")
        clusters = people.drop_duplicates("item").set_index("item")["cluster"].reindex(given.columns)
        for name in judged.index:
            made = {"people": given.mean(), "judge": judged.loc[name].reindex(given.columns).fillna(0.5), "cluster": clusters}
            rows += _corrected("PandaLM", str(name), pd.DataFrame(made), alone=name == judged.index[0])
    except ComperdialError as error:
        rows.append({"dataset": "PandaLM", "note": _missing(error)})
    try:
        rows += _corrected("FACE", "face_recorded", overall(FACE), alone=True)
    except ComperdialError as error:
        rows.append({"dataset": "FACE", "note": _missing(error)})
    return rows


def _corrected(dataset: str, judge: str, items: pd.DataFrame, *, alone: bool) -> Iterator[dict[str, Any]]:
    y, f, codes = (items[name].to_numpy() for name in ("people", "judge", "cluster"))

    def row(who: str, n: int, method: str, how: str, made: Estimate) -> dict[str, Any]:
        ends = {"value": made.value, "low": made.low, "high": made.high, "weight": made.weight}
        return {"dataset": dataset, "judge": who, "labelled": n, "method": method, "interval": how, **ends, "all": y.mean()}

    for n in _COUNTS:
        parts = y[:n], f[:n], f[n:]
        groups = codes[:n], codes[n:]
        if alone:
            yield row("labels alone", n, "classical", "plain", corrected_mean(*parts, weight=0.0, normal=True))
            yield row("labels alone", n, "classical", "t", classical(y[:n]))
            yield row("labels alone", n, "classical", "clusters", classical(y[:n], codes[:n]))
        for method, weight in (("PPI", 1.0), ("PPI++", None)):
            yield row(judge, n, method, "plain", corrected_mean(*parts, weight=weight, normal=True))
            yield row(judge, n, method, "t", corrected_mean(*parts, weight=weight))
            yield row(judge, n, method, "clusters", corrected_mean(*parts, *groups, weight=weight))


# Tables and the figure


def _read(inputs: Inputs, *columns: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows with numbers, and notes on what is missing; NothingToShowError if everything is."""
    frame = pd.read_csv(inputs["result"][0], dtype={"note": str})
    frame = frame.reindex(columns=list(dict.fromkeys([*frame, *columns, "note"])))
    lost = frame[frame[columns[0]].isna()]
    texts = lost.reindex(columns=["set", "dataset", "judge", "note"]).astype(object).fillna("").to_dict("records")
    notes = [f"{' '.join(filter(None, (one['set'], one['dataset'], one['judge'])))}: {one['note']}" for one in texts]
    if len(lost) == len(frame):
        raise NothingToShowError("; ".join(notes))
    return frame.drop(index=lost.index), notes


def _reported(inputs: Inputs, table: str) -> dict[tuple[str, str, str], float]:
    known = read_reported(inputs["reported"], ("source", "place", "table", "dataset", "subject", "measure"))
    known = known[known["table"] == table]
    return dict(zip(zip(known["dataset"], known["subject"], known["measure"], strict=True), known["value"], strict=True))


def alternative_test(inputs: Inputs, study: Study) -> Table:
    """Show the alternative annotator test of six judges, next to the authors'."""
    frame, notes = _read(inputs, "wins", "annotators", "judge", "rho", "passed")
    known, sets = _reported(inputs, "alternative_test"), study["entry"]["sets"]
    for measure in ("wins", "rho"):
        frame[f"reported_{measure}"] = [known.get((*key, measure), np.nan) for key in zip(frame["set"], frame["judge"], strict=True)]
    sections = []
    for name, own in frame.groupby("set", sort=False):
        how, rows = sets[name], []
        for one in own.to_dict("records"):
            wins = [number(one[column], digits=0) for column in ("wins", "reported_wins")]
            of = f"{one['annotators']:.0f}"
            theirs = [f"{wins[1]} of {of}" if wins[1] != "–" else "–", number(one["reported_rho"], digits=5)]
            rows.append([one["judge"], f"{wins[0]} of {of}", theirs[0], number(one["rho"], digits=5), theirs[1],
                         "yes" if one["passed"] else "no"])  # fmt: skip
        columns = [("", "Judge"), ("Wins", "ours"), ("Wins", "authors'"), ("ρ", "ours"), ("ρ", "authors'"), ("", "Passes")]
        sections.append(Section(f"{how['title']} ({how['scoring']}, ε = {how['epsilon']:g})", rows_frame(columns, rows)))
    both = frame.dropna(subset="reported_rho")
    equal = (both["wins"] == both["reported_wins"]) & ((both["rho"] - both["reported_rho"]).abs() < 1e-5)
    constant = frame[frame["judge"].str.startswith("always") & frame["passed"].astype(bool)]
    passing = "; ".join(f"{sets[name]['title']} ({judge})" for name, judge in zip(constant["set"], constant["judge"], strict=True))
    text = f"Equal to the authors' function in {equal.sum()} of {len(both)} cells. Judges that always give one label and pass"
    return _headed(described(study, frame, sections, *notes), f"{text}: {passing or 'none'}.")


def agreement(inputs: Inputs, study: Study) -> Table:
    """Show agreement beyond chance of raters and judges, and the majority labels of PandaLM."""
    frame, notes = _read(inputs, "n", "who", "label")
    known = _reported(inputs, "agreement")
    measure = frame["label"].fillna("kappa")
    frame["reported"] = [known.get(key, np.nan) for key in zip(frame["dataset"], frame["who"], measure, strict=True)]
    pairs, counts = frame[frame["label"].isna()], frame[frame["label"].notna()]
    columns = {"kappa": ("κ", "plain"), "reported": ("κ", "published"), "kappa_linear": ("κ", "linear"), "kappa_quadratic": ("κ", "quadratic"),
               "ac": ("AC1", ""), "ac_linear": ("AC2", "linear"), "ac_quadratic": ("AC2", "quadratic"),
               "alpha_nominal": ("α", "nominal"), "alpha_ordinal": ("α", "ordinal"), "alpha_interval": ("α", "interval")}  # fmt: skip
    cells = [
        [one["dataset"], one["who"], count(one["n"]), *(number(one.get(name), digits=2 if name == "reported" else 3) for name in columns)]
        for one in pairs.to_dict("records")
    ]
    sections = [Section("Pairs and groups", rows_frame([("", "Data"), ("", "Who"), ("", "n"), *columns.values()], cells))]
    if len(counts):
        rows = [[one["label"], count(one["n"]), count(one["reported"])] for one in counts.to_dict("records")]
        sections.append(Section("PandaLM's majority labels", rows_frame(["Label", "ours", "published"], rows)))
    return described(study, frame, sections, *notes)


def audits_table(inputs: Inputs, study: Study) -> Table:
    """Show what the audit says of each recorded judge."""
    frame, notes = _read(inputs, "n", "judge", "verdict", "level")
    sections, titles = [], study["entry"]["titles"]
    for name, own in frame.groupby("dataset", sort=False):
        rows = []
        for one in own.to_dict("records"):
            said = one["verdict"] if pd.notna(one["verdict"]) else "no audit"
            said += f": {one['note']}" if pd.notna(one["note"]) else ""
            wins, constant = ("–" if pd.isna(one[name]) else f"{one[name]:.0f} of {one['annotators']:.0f}" for name in ("wins", "mean_wins"))
            order = "–" if pd.isna(one["order"]) else f"{one['order']:.0f} of {one['pairs']:.0f}"
            offset = "–" if pd.isna(one["offset"]) else f"{one['system']} {_with_ends(one, 'offset', sign=True)}"
            rows.append([one["judge"], one["dimension"], count(one["n"]), said, one["verdict_experts"], wins, number(one["rho"], digits=2), constant, _with_ends(one, "pearson"),
                         _with_ends(one, "kappa"), order, offset, _with_ends(one, "length", sign=True)])  # fmt: skip
        columns = ["Judge", "Dimension", "Items", "Verdict", "With ε = 0.2", "Wins", "ρ", "Always the mean wins", "Pearson", "κ", "Systems in order", "Largest offset", "Length"]
        sections.append(Section(f"{titles.get(name, name)} ({', '.join(own['level'].unique())})", rows_frame(columns, rows)))
    verdicts = frame["verdict"].value_counts()
    words = {"passes": "passed", "not shown": "did not", "cannot be tested": "could not be tested"}
    text = ", ".join(f"{verdicts.get(name, 0)} {word}" for name, word in words.items())
    return _headed(described(study, frame, sections, *notes), f"Of {len(frame)} pairs of a judge and a dimension {text}.")


def _with_ends(row: Mapping[Any, Any], name: str, *, sign: bool = False) -> str:
    return number(row[name], digits=2, sign=sign) + interval(row[f"{name}_low"], row[f"{name}_high"])


def _headed(table: Table, headline: str) -> Table:
    return Table(table.title, table.caption, table.frame, table.sections, table.notes, headline)


def corrected(inputs: Inputs, study: Study) -> Table:
    """Show corrected means, next to ppi-python's."""
    frame, notes = _read(inputs, "value", "judge")
    known = _reported(inputs, "corrected")
    for what in ("weight", "value", "low", "high"):
        keys = (frame["method"] + " " + frame["labelled"].map("{:.0f}".format) + f" {what}").where(frame["interval"] == "plain", "")
        frame[f"reported_{what}"] = [known.get(key, np.nan) for key in zip(frame["dataset"], frame["judge"], keys, strict=True)]
    sections = []
    for name, own in frame.groupby("dataset", sort=False):
        rows = []
        for (n, judge, method), group in own.groupby(["labelled", "judge", "method"], sort=False):
            by = {one["interval"]: one for one in group.to_dict("records")}
            plain, ends = by["plain"], [interval(one["low"], one["high"], digits=3).strip() for one in by.values()]
            theirs = interval(plain["reported_low"], plain["reported_high"], digits=3).strip() or "–"
            rows.append([f"{n:.0f}", judge, method, number(plain["weight"]), number(plain["value"], digits=4), number(plain["reported_value"], digits=4),
                         ends[0], theirs, *ends[1:]])  # fmt: skip
        columns = [("", "Labels"), ("", "Judge"), ("", "Method"), ("", "Weight"), ("Mean", "ours"), ("Mean", "ppi-python"),
                   ("Plain", "ours"), ("Plain", "ppi-python"), ("Ours", "t"), ("Ours", "clusters")]  # fmt: skip
        sections.append(Section(f"{name}; all items: {own['all'].iloc[0]:.4f}", rows_frame(columns, rows)))
    return described(study, frame, sections, *notes)


def figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw Pearson's correlation of each judge with people's mean, with its interval."""
    from comperdial.report.plots import style

    frame, _ = _read(inputs, "pearson", "judge")
    frame = frame.rename(columns={"pearson": "value", "pearson_low": "low", "pearson_high": "high"})
    titles = study["entry"]["titles"]
    frame["label"] = frame["dataset"].map(lambda name: titles.get(name, name)) + ", " + frame["judge"] + ": " + frame["dimension"]
    frame["style"] = (frame["verdict"] == "passes").astype(int)
    entry = study["entry"]
    with style.drawing():
        drawn, axes = style.figure_and_axes(1, 1, (7.0, 0.2 * len(frame) + 1.4))
        style.forest(axes[0, 0], frame, list(frame["label"]))
        axes[0, 0].set_xlabel("Pearson")
        handles = [style.handle(text, **style.SERIES[place]) for place, text in enumerate(("Not shown, or cannot be tested", "Passes"))]
        style.titled(drawn, entry["title"], study["title"], entry["notes"], handles=handles)
    return drawn, frame
