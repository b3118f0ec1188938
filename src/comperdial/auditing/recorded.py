"""Audits of recorded judges, and the audit's statistics on public labels, for the study ``judge_audit``.

:func:`compute` writes one file per table. Unavailable data get a row with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comperdial import schema
from comperdial.auditing.audit import AGREEMENT, audit, verdict
from comperdial.auditing.judged import Judged, from_ratings, from_votes
from comperdial.auditing.numbers import Section
from comperdial.auditing.systems import BIAS, SYSTEMS
from comperdial.config import load_yaml
from comperdial.config.registry import registered
from comperdial.config.studies import params_file, read_study, with_studies
from comperdial.core.errors import ComperdialError, ConfigError
from comperdial.core.files import write_table
from comperdial.data import readers, sources
from comperdial.data.catalogue import load_catalogue
from comperdial.data.labels import Labels, read_labels
from comperdial.data.preferences import read_preferences
from comperdial.data.recorded import DIMENSIONS, Rated
from comperdial.data.recorded import FORMATS as SCORES
from comperdial.data.votes import SHARES
from comperdial.evaluation.rated_data import NOTHING, Data
from comperdial.judges.recorded import FORMATS as ANSWERS
from comperdial.judges.recorded import Recorded
from comperdial.judges.recorded_pairs import DATASETS as WITH_JUDGES
from comperdial.judges.recorded_pairs import judged_pairs
from comperdial.stats.agreement import Measurement, krippendorff_alpha
from comperdial.stats.alternative_test import alternative_test
from comperdial.stats.chance_agreement import Weighting, gwet_ac, weighted_kappa
from comperdial.stats.corrected_means import Estimate, classical, corrected_mean

Rows = list[dict[str, Any]]
Read = Callable[[str], Any]
FACE = "face"
# Scales of recorded scores that differ from the human scale.
_SCALES = {"unieval": (0.0, 1.0)}
_COUNTS = (100, 200)
_WEIGHTINGS: Mapping[Weighting, str] = {"identity": "", "linear": "_linear", "quadratic": "_quadratic"}
_LEVELS: tuple[Measurement, ...] = ("nominal", "ordinal", "interval")


def compute(folder: str | Path, *, catalogue: str | Path) -> None:
    """Write the numbers of all tables to a folder; download missing files of the catalogue."""
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
    """Return a row per data set and judge, including judges that always give the most common label or the human mean."""
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
        labels = {judge: wide.loc[judge].to_numpy() for judge in judges["judge"].unique()} | {
            f"always {common}": always
        }
        if how["scoring"] == "rmse":
            labels["always the mean"] = np.full(wide.shape[1], people["label"].mean())
        for judge, own in labels.items():
            test = alternative_test(own, annotators, epsilon=how["epsilon"], scoring=how["scoring"])
            rows.append(
                {"set": name, "judge": judge, "wins": int(test.rejected.sum()), "annotators": len(test.annotators),
                 "rho": test.average_advantage, "passed": test.passed}
            )  # fmt: skip
    return rows


# Agreement


def measures(ratings: Any, categories: Sequence[float]) -> dict[str, float]:  # noqa: ANN401
    """Return kappa (two raters only), Gwet's AC and Krippendorff's alpha of ratings, (raters, items), NaN if missing.

    With two raters, only items that both rated count.
    """
    table = np.asarray(ratings, dtype=np.float64)
    table = table[:, ~np.isnan(table).any(axis=0)] if len(table) == 2 else table
    made = {}
    for weighting, name in _WEIGHTINGS.items():
        if len(table) == 2:
            made[f"kappa{name}"] = weighted_kappa(table[0], table[1], categories, weighting)
        made[f"ac{name}"] = gwet_ac(table, categories, weighting)
    return made | {f"alpha_{level}": krippendorff_alpha(table.T, level) for level in _LEVELS}


def _wide(labels: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return labels as a numeric frame with a row per rater and a column per item, in file order."""
    values = labels["label"].map(SHARES) if labels["label"].dtype.kind not in "if" else labels["label"]
    wide = labels.assign(value=values).pivot(index=by, columns="item", values="value").astype(np.float64)
    return wide[labels["item"].drop_duplicates()]


def agreements(read: Read, overall: Read) -> Rows:
    """Return a row per pair of raters or judges, or per group of people, of the public data sets."""
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
        rows += [
            {"dataset": "PandaLM", "who": "majority", "label": name, "n": int(majority[at])}
            for name, at in SHARES.items()
        ]
    except ComperdialError as error:
        rows.append({"dataset": "PandaLM", "note": _missing(error)})
    for title, name, question in (
        ("SummEval", "summeval", ""),
        ("SummEval, coherence", "summeval", "__coherence"),
        ("CEBaB stars", "cebab_stars", ""),
        ("10k prompts", "10k_prompts", ""),
    ):
        try:
            people, judges = (
                _wide(part, by) for part, by in zip(read(f"alt_test_{name}"), ("rater", "judge"), strict=True)
            )
        except ComperdialError as error:
            rows.append({"dataset": title, "note": _missing(error)})
            continue
        chosen = people.columns[people.columns.str.endswith(question)]
        if name != "10k_prompts":
            add(title, "rater 1 and gpt-4o", [people[chosen].loc["1"], judges[chosen].loc["gpt-4o"]], stars)
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
    """Return FACE's scored dialogues in file order: ``people``, ``judge``, ``cluster`` (the session)."""
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
    return made[~made["system_id"].isin(rated.references) & made["value"].notna()]


def judged_by(
    name: str, entry: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], file: Callable[[str], Path]
) -> Iterator[Judged]:
    """Yield a recorded judge with each level and dimension that people rated too."""
    ratings = tables["ratings"][tables["ratings"]["source"] == "human"]
    if ratings.empty:
        return
    scores = _scores(entry, _rated(tables), file)
    for (level, output), own in scores.groupby(["level", "output"], sort=False):
        target, scale = target_and_scale(entry["format"], str(output))
        if target not in {*ratings.loc[ratings["level"] == level, "dimension"]}:
            continue
        yield from judged_scores(own, tables, target=target, level=str(level), source="human", judge=name, scale=scale)


def target_and_scale(form: str, output: str) -> tuple[str, tuple[float, float] | None]:
    """Return the dimension that an output of a recorded format rates, and its scale if it differs from the human one."""
    answers = ANSWERS.get(form)
    targets = DIMENSIONS if form == "unieval" else (answers and answers.targets) or {}
    scale = (answers.forms[output].low, answers.forms[output].high) if answers else _SCALES.get(form)
    return targets.get(output, output), scale


def judged_scores(
    scores: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    *,
    target: str,
    level: str,
    source: str,
    judge: str,
    scale: Sequence[float] | None,
) -> list[Judged]:
    """Combine a judge's scores of one output (item_id, system_id, value) with the ratings of one dimension and source.

    Raises
    ------
    ConfigError
        If nobody rated the items that the judge scored.
    """
    dataset = tables["contexts"]["dataset"].iloc[0]
    table = scores.assign(dataset=dataset, metric=judge, level=level, output=target, cut=0, signature="recorded")
    part = schema.validate(table[list(schema.table("scores").columns)], "scores")
    given = tables["ratings"]
    given = given[(given["source"] == source) & (given["level"] == level) & (given["dimension"] == target)]
    if given.empty:
        raise ConfigError(f"no ratings of {target} of {level}s", expected=f"ratings by {source}")
    data = Data(tables["responses"], given, tables["contexts"], None, part, None, (), NOTHING.batch)
    return from_ratings(data, source, target=target, level=level, judge_scale=scale)


def audits(recordings: Mapping[str, Mapping[str, Any]], tables: Read, file: Callable[[str], Path], votes: Read) -> Rows:
    """Return a row per recorded judge and dimension."""
    rows: Rows = []
    for name in ("pandalm", *WITH_JUDGES):
        try:
            rows += [_audited(name, "votes", one) for one in from_votes(votes(name))]
        except ComperdialError as error:
            rows.append({"dataset": name, "note": _missing(error)})
    for name, entry in recordings.items():
        try:
            made = [
                _audited(entry["dataset"], "", one) for one in judged_by(name, entry, tables(entry["dataset"]), file)
            ]
            rows += made or [
                {"dataset": entry["dataset"], "judge": name, "note": "no ratings by people of what it rated"}
            ]
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
    row |= _in_words(made.sections[0]) | {"verdict_experts": _in_words(verdict(judged, "experts")[0][0])["verdict"]}
    if made.alternative:
        row |= {"wins": int(made.alternative.rejected.sum()), "annotators": len(made.alternative.annotators)}
        row |= {"winning_rate": made.alternative.winning_rate, "rho": made.alternative.average_advantage}
        row["constant_wins"] = made.sections[0].number("winning rate of a constant judge")["value"] * row["annotators"]
    for name, section, what in (
        ("pearson", AGREEMENT, "Pearson with people's mean"),
        ("kappa", AGREEMENT, "Weighted kappa of the judge with a rater"),
        ("length", BIAS, "correlation of length with judge − people"),
        ("order", SYSTEMS, "pairs of systems in people's order"),
    ):
        of = made.section(section).number(what)
        row |= {name: of["value"], f"{name}_low": of["low"], f"{name}_high": of["high"]}
        row |= {"pairs": of["n"]} if name == "order" else {}
    numbers = made.section(SYSTEMS).numbers
    if numbers is not None:
        own = numbers[
            numbers["what"].str.startswith("offset of ") & ~numbers["what"].str.endswith(" beside the others")
        ]
        far = own.iloc[int(own["value"].abs().to_numpy().argmax())]
        row |= {
            "system": far["what"][10:],
            "offset": far["value"],
            "offset_low": far["low"],
            "offset_high": far["high"],
        }
    return row


def _in_words(section: Section) -> dict[str, str]:
    """Return the verdict in a few words, and its reason."""
    text = section.sentences[0].removesuffix(".")
    if text.startswith("Yes"):
        return {"verdict": "passes"}
    if "cannot be tested" in text:
        return {"verdict": "cannot be tested", "note": text.partition(": ")[2].partition(": --")[0]}
    return {"verdict": "not shown", "note": text.partition(", but ")[2]}


# Corrected means


def corrections(read: Read, overall: Read) -> Rows:
    """Estimate the means of PandaLM and FACE from the labels of their first items: plain and corrected, with intervals."""
    rows: Rows = []
    try:
        people, judges = read("pandalm")
        given, judged = _wide(people, "rater"), _wide(judges, "judge")
        clusters = people.drop_duplicates("item").set_index("item")["cluster"].reindex(given.columns)
        for name in judged.index:
            made = {
                "people": given.mean(),
                "judge": judged.loc[name].reindex(given.columns).fillna(0.5),
                "cluster": clusters,
            }
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
        return {
            "dataset": dataset,
            "judge": who,
            "labelled": n,
            "method": method,
            "interval": how,
            **ends,
            "all": y.mean(),
        }

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
