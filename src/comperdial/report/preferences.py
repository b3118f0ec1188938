"""Tables of preferences: win rates, strengths and their uncertainty, and metrics that predict the choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from comperdial.evaluation.preferences import TESTS, Analysis
from comperdial.report.render import NOTES, Section, Table, count, estimate, number, small_p
from comperdial.stats.correlation import ALPHA
from comperdial.stats.win_rate import votes_needed

# Maximum systems of a matrix and maximum pairs that fit on a page.
MOST_SYSTEMS, MOST_PAIRS = 12, 45
STARS = NOTES["stars"]
_NAMES = {"human": "people, each and the others"}
_JUDGES = (
    "Agreement is with the choice of most people on the same pair (a tie where no choice has most votes), and of each person "
    "with that of the others; intervals are 95 %, over resampled pairs"
)


def section(title: str, records: Sequence[Mapping[tuple[str, str], Any]]) -> Section:
    """Return a section with a row per record: texts by group and column name."""
    frame = pd.DataFrame(records)
    return Section(title, frame.set_axis(pd.MultiIndex.from_tuples([*frame]), axis=1))


def stars(pair: Mapping[Any, Any]) -> str:
    """Return the stars of a row of the win matrix (:data:`STARS`)."""
    marks = [pair["p"] < ALPHA, pair["p_holm"] < ALPHA, pair["p_dialogue_holm"] < ALPHA]
    return "*" * (3 if all(marks) else 2 if all(marks[:2]) else int(marks[0]))


def preferences_table(
    title: str,
    analyses: Mapping[str, Analysis],
    metrics: pd.DataFrame | None = None,
    judges: pd.DataFrame | None = None,
) -> Table:
    """Return the table of :func:`comperdial.evaluation.preferences.analyses`.

    ``title`` is the data set's; ``metrics`` and ``judges`` are the results of ``metric_choices`` and ``agreement_with_people``
    of :mod:`comperdial.evaluation.preferences`.
    """
    whole = analyses["All"]
    matrix, systems, first = whole.matrix, int(whole.summary["systems"]), whole.votes.iloc[0]
    sections = [_matrix(whole)] if systems <= MOST_SYSTEMS else []
    sections += [_pairs(matrix)] if len(matrix) <= MOST_PAIRS else []
    parts = {group: _in_short(one.summary) for group, one in analyses.items()}
    short = pd.DataFrame(parts).rename_axis("").reset_index()
    short.columns = pd.MultiIndex.from_product([[""], short.columns])
    sections += [_strengths(analyses), Section("In short", short)]
    sections += [_judges(judges)] if judges is not None and len(judges) else []
    sections += [metrics_section(metrics, whole.dominant)] if metrics is not None else []
    notes = [STARS] if systems <= MOST_SYSTEMS else []
    notes.append(f"Each p is corrected by Holm's method over all {count(len(matrix), 'pair')}")
    by, prior = whole.strengths.loc[0, ["by", "prior"]]
    notes += [NOTES["win_rates"].format(by=by), planner_sentence(matrix)]
    notes += [NOTES["prior"].format(prior=prior)] if prior else []
    if "group" in whole.strengths:
        notes.append(_groups(whole.strengths))
    if judges is not None and len(judges):
        notes.append(_JUDGES)
    caption = (
        f"{title}: question {first['question']!r}, source {first['source']}; {count(len(whole.votes), 'vote')} of "
        f"{count(whole.votes['annotator_id'].nunique(), 'annotator')} on {count(systems, 'system')}."
    )
    return Table(f"Preferences: {title}", caption, matrix, sections, notes, headline=_headline(whole, judges))


def _headline(whole: Analysis, judges: pd.DataFrame | None) -> str:
    """Return the result in a sentence or two: the leader, the number of pairs that differ, and judges compared with people."""
    ranks, of = whole.strengths, whole.summary
    leading = ranks.loc[ranks["rank"] == 1, "system"]
    differ = (
        f"{of['p_dialogue_holm']} of {count(of['pairs'], 'pair')} of systems differ significantly (by dialogue, Holm)"
    )
    who = f"No system leads: {len(leading)} of {len(ranks)} share the first rank"
    if len(leading) == 1 and "group" not in ranks:
        who = f"{leading.iloc[0]} is preferred, significantly, to each of the others"
    elif "group" in ranks:
        who = "Systems that no vote links have no common rank"
    sentences = [f"{who}; {differ}."]
    if judges is not None and len(judges):
        texts = [
            f"{_NAMES.get(row['source'], row['source'])} {estimate(row, 'accuracy_ties')}"
            for row in judges.to_dict("records")
        ]
        sentences.append(f"Share of votes that agree with most people's, ties included: {'; '.join(texts)}.")
    return " ".join(sentences)


def _matrix(analysis: Analysis) -> Section:
    names, cells = list(analysis.strengths["system"]), {}
    for row in analysis.matrix.to_dict("records"):
        for one, other, rate in (("a", "b", row["win_rate"]), ("b", "a", 1 - row["win_rate"])):
            cells[row[one], row[other]] = number(rate, digits=2) + stars(row)
    records = [{("", "Preferred"): one} | {("to", other): cells.get((one, other)) for other in names} for one in names]
    return section("How often the row is preferred to the column", records)


def _pairs(matrix: pd.DataFrame) -> Section:
    rows = matrix.to_dict("records")
    texts: dict[tuple[str, str], Any] = {("", "A"): matrix["a"], ("", "B"): matrix["b"]}
    for head, name in {"A": "wins", "B": "losses", "tie": "ties"}.items():
        texts["Votes for", head] = matrix[name].map(count)
    texts["Win rate of A", "ties left out"] = [estimate(row, "win_rate") for row in rows]
    for p, test in TESTS.items():
        for head, name in {"plain": p, "Holm": f"{p}_holm"}.items():
            texts[f"p, {test}", head] = list(map(small_p(name), rows))
    return Section("Pairs of systems", pd.DataFrame(texts))


def _strengths(analyses: Mapping[str, Analysis]) -> Section:
    parts = {}
    for group, one in analyses.items():
        frame = one.strengths.set_index("system")
        texts: dict[str, Any] = {}
        if group == "All":
            texts = {"votes": frame["votes"].map(count), "won": frame["won"].map(number)}
        texts |= {"group": frame["group"].map(count)} if "group" in frame else {}
        texts["strength"] = [estimate(row, "strength", sign=True) for row in frame.to_dict("records")]
        texts["rank"] = ["–" if pd.isna(rank) else f"#{rank}" for rank in frame["rank"]]
        parts[group] = pd.DataFrame(texts, frame.index)
    return Section("Bradley-Terry strengths", pd.concat(parts, axis=1).rename_axis("System"))


def _groups(strengths: pd.DataFrame) -> str:
    groups = strengths.groupby("group")["system"]
    listed = "; ".join(f"{number}: {', '.join(names)}" for number, names in groups)
    return f"No vote links these groups, so strengths and ranks only compare systems within a group: {listed}"


def _judges(judges: pd.DataFrame) -> Section:
    rows = judges.to_dict("records")
    texts: dict[tuple[str, str], Any] = {("", "Votes by"): [_NAMES.get(row["source"], row["source"]) for row in rows]}
    for name in ("pairs", "votes"):
        texts["Compared", name] = judges[name].map(count)
    texts["Accuracy", "without ties"] = [estimate(row, "accuracy") for row in rows]
    texts["Accuracy", "n"] = judges["strict"].map(count)
    texts["Accuracy", "with ties"] = [estimate(row, "accuracy_ties") for row in rows]
    texts["Cohen's", "kappa"] = [estimate(row, "kappa", sign=True) for row in rows]
    return Section("Agreement with people", pd.DataFrame(texts))


def _in_short(of: Mapping[str, float]) -> dict[str, str]:
    tests = {
        f"pairs that differ, {test}": f"{of[p]} of {of['pairs']}; after Holm {of[f'{p}_holm']}"
        for p, test in TESTS.items()
    }
    return {
        "votes, of them ties": f"{of['votes']:,}, {of['ties']:,}",
        **tests,
        "circles (A beats B beats C beats A)": count(of["circles"]),
        "left is preferred": estimate(of, "left"),
        "agreement of two annotators": estimate(of, "agreement"),
        "Krippendorff's alpha, nominal": estimate(of, "alpha"),
    }


def metrics_section(choices: pd.DataFrame, dominant: str) -> Section:
    """Return how often each metric's higher score is preferred, next to its correlation with ratings."""
    records = []
    for (metric, output), part in choices.groupby(["metric", "output"], sort=False):
        record = {("", "Metric"): str(metric) if metric == output else f"{metric}:{output}"}
        for of, group in (("all", "All"), ("others", f"Without {dominant}")):
            row = part[part["of"] == of].to_dict("records")[0]
            record |= {(group, "chooses"): estimate(row), (group, "Spearman"): number(row["spearman"], sign=True)}
        pairs = part[part["of"] == "pair"]
        for row in pairs.to_dict("records") if len(pairs) <= MOST_PAIRS // 3 else ():
            record["Chooses, by pair", f"{row['a']}, {row['b']}"] = number(row["value"], digits=2)
        records.append(record)
    return section("How often the higher score is preferred", records)


def planner_sentence(matrix: pd.DataFrame) -> str:
    """Return the votes needed for a win rate of 0.6, at a win matrix's rate of ties, and the votes of its pairs."""
    needed, ties = votes_needed(0.6), matrix["ties"].sum() / matrix["votes"].sum()
    return (
        f"To detect a win rate of 0.60 with a power of 80% takes {needed:,} votes for one of the two, "
        f"{int(np.ceil(needed / (1 - ties))):,} with as many ties as here ({ties:.0%}), if votes are independent; "
        f"the median pair has {int((matrix['wins'] + matrix['losses']).median()):,}"
    )
