"""The study of recorded judges: their audits, and our statistics next to published ones (docs/judge-audit.md).

The numbers come from :mod:`comperdial.auditing.recorded`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from comperdial.core.errors import NothingToShowError
from comperdial.report.about import Inputs, Study
from comperdial.report.correlations import read_reported
from comperdial.report.render import Section, Table, count, described, interval, number, rows_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COEFFICIENTS = {
    "κ": {"kappa": "plain", "reported": "published", "kappa_linear": "linear", "kappa_quadratic": "quadratic"},
    "AC1": {"ac": ""},
    "AC2": {"ac_linear": "linear", "ac_quadratic": "quadratic"},
    "α": {f"alpha_{level}": level for level in ("nominal", "ordinal", "interval")},
}
_WITH_ENDS = ("pearson", "kappa", "offset", "length")
_AUDITED = [
    *(
        "judge",
        "dimension",
        "level",
        "verdict",
        "verdict_experts",
        "wins",
        "constant_wins",
        "annotators",
        "rho",
        "order",
        "pairs",
        "system",
    ),
    *(f"{name}{end}" for name in _WITH_ENDS for end in ("", "_low", "_high")),
]
_HEADS = [
    *("Judge", "Dimension", "Items", "Verdict", "With ε = 0.2", "Wins", "ρ", "A constant judge wins"),
    *("Pearson", "κ", "Systems in order", "Largest offset", "Length"),
]


def _read(inputs: Inputs, *columns: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows with numbers, and notes on missing ones; raise NothingToShowError if all are missing."""
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
    return dict(
        zip(zip(known["dataset"], known["subject"], known["measure"], strict=True), known["value"], strict=True)
    )


def alternative_test(inputs: Inputs, study: Study) -> Table:
    """Return the alternative annotator test of six judges, next to the authors'."""
    frame, notes = _read(inputs, "wins", "annotators", "judge", "rho", "passed")
    known, sets = _reported(inputs, "alternative_test"), study["entry"]["sets"]
    for measure in ("wins", "rho"):
        frame[f"reported_{measure}"] = [
            known.get((*key, measure), np.nan) for key in zip(frame["set"], frame["judge"], strict=True)
        ]
    sections = []
    for name, own in frame.groupby("set", sort=False):
        how, rows = sets[name], []
        for one in own.to_dict("records"):
            wins = [number(one[column], digits=0) for column in ("wins", "reported_wins")]
            of = f"{one['annotators']:.0f}"
            theirs = [f"{wins[1]} of {of}" if wins[1] != "–" else "–", number(one["reported_rho"], digits=5)]
            rows.append([one["judge"], f"{wins[0]} of {of}", theirs[0], number(one["rho"], digits=5), theirs[1],
                         "yes" if one["passed"] else "no"])  # fmt: skip
        columns = [
            ("", "Judge"),
            ("Wins", "ours"),
            ("Wins", "authors'"),
            ("ρ", "ours"),
            ("ρ", "authors'"),
            ("", "Passes"),
        ]
        sections.append(
            Section(f"{how['title']} ({how['scoring']}, ε = {how['epsilon']:g})", rows_frame(columns, rows))
        )
    both = frame.dropna(subset="reported_rho")
    equal = (both["wins"] == both["reported_wins"]) & ((both["rho"] - both["reported_rho"]).abs() < 1e-5)
    constant = frame[frame["judge"].str.startswith("always") & frame["passed"].astype(bool)]
    passing = "; ".join(
        f"{sets[name]['title']} ({judge})" for name, judge in zip(constant["set"], constant["judge"], strict=True)
    )
    text = f"Equal to the authors' function in {equal.sum()} of {len(both)} cells. Judges that always give one label and pass"
    return _headed(described(study, frame, sections, *notes), f"{text}: {passing or 'none'}.")


def agreement(inputs: Inputs, study: Study) -> Table:
    """Return chance-corrected agreement of raters and judges, and the majority labels of PandaLM."""
    frame, notes = _read(inputs, "n", "who", "label", *(name for heads in _COEFFICIENTS.values() for name in heads))
    known = _reported(inputs, "agreement")
    measure = frame["label"].fillna("kappa")
    frame["reported"] = [known.get(key, np.nan) for key in zip(frame["dataset"], frame["who"], measure, strict=True)]
    pairs, counts = frame[frame["label"].isna()], frame[frame["label"].notna()]
    columns = {name: (group, head) for group, heads in _COEFFICIENTS.items() for name, head in heads.items()}
    cells = []
    for one in pairs.to_dict("records"):
        values = [number(one[name], digits=2 if name == "reported" else 3) for name in columns]
        cells.append([str(one["dataset"]), str(one["who"]), count(one["n"]), *values])
    heads = [("", "Data"), ("", "Who"), ("", "n"), *columns.values()]
    sections = [Section("Pairs and groups", rows_frame(heads, cells))]
    if len(counts):
        rows = [[one["label"], count(one["n"]), count(one["reported"])] for one in counts.to_dict("records")]
        sections.append(Section("PandaLM's majority labels", rows_frame(["Label", "ours", "published"], rows)))
    return described(study, frame, sections, *notes)


def audits(inputs: Inputs, study: Study) -> Table:
    """Return the audit of each recorded judge."""
    frame, notes = _read(inputs, "n", *_AUDITED)
    sections, titles = [], study["entry"]["titles"]
    for name, own in frame.groupby("dataset", sort=False):
        rows = []
        for one in own.to_dict("records"):
            verdict = one["verdict"] if pd.notna(one["verdict"]) else "no audit"
            verdict += f": {one['note']}" if pd.notna(one["note"]) else ""
            wins, constant = (
                "–" if pd.isna(one[name]) else f"{one[name]:.0f} of {one['annotators']:.0f}"
                for name in ("wins", "constant_wins")
            )
            order = "–" if pd.isna(one["order"]) else f"{one['order']:.0f} of {one['pairs']:.0f}"
            offset = "–" if pd.isna(one["offset"]) else f"{one['system']} {_with_ends(one, 'offset', sign=True)}"
            values = [
                wins,
                number(one["rho"], digits=2),
                constant,
                _with_ends(one, "pearson"),
                _with_ends(one, "kappa"),
            ]
            values += [order, offset, _with_ends(one, "length", sign=True)]
            rows.append([one["judge"], one["dimension"], count(one["n"]), verdict, one["verdict_experts"], *values])
        sections.append(
            Section(f"{titles.get(name, name)} ({', '.join(own['level'].unique())})", rows_frame(_HEADS, rows))
        )
    verdicts = frame["verdict"].value_counts()
    words = {"passes": "passed", "not shown": "did not", "cannot be tested": "could not be tested"}
    text = ", ".join(f"{verdicts.get(name, 0)} {word}" for name, word in words.items())
    return _headed(
        described(study, frame, sections, *notes), f"Of {len(frame)} pairs of a judge and a dimension {text}."
    )


def _with_ends(row: Mapping[Any, Any], name: str, *, sign: bool = False) -> str:
    return number(row[name], digits=2, sign=sign) + interval(row[f"{name}_low"], row[f"{name}_high"])


def _headed(table: Table, headline: str) -> Table:
    return Table(table.title, table.caption, table.frame, table.sections, table.notes, headline)


def corrected(inputs: Inputs, study: Study) -> Table:
    """Return corrected means, next to ppi-python's."""
    frame, notes = _read(inputs, "value", "judge")
    known = _reported(inputs, "corrected")
    for what in ("weight", "value", "low", "high"):
        keys = (frame["method"] + " " + frame["labelled"].map("{:.0f}".format) + f" {what}").where(
            frame["interval"] == "plain", ""
        )
        frame[f"reported_{what}"] = [
            known.get(key, np.nan) for key in zip(frame["dataset"], frame["judge"], keys, strict=True)
        ]
    sections = []
    for name, own in frame.groupby("dataset", sort=False):
        rows = []
        for (n, judge, method), group in own.groupby(["labelled", "judge", "method"], sort=False):
            by = {one["interval"]: one for one in group.to_dict("records")}
            plain, ends = by["plain"], [interval(one["low"], one["high"], digits=3).strip() for one in by.values()]
            theirs = interval(plain["reported_low"], plain["reported_high"], digits=3).strip() or "–"
            means: list[str] = [number(plain[name], digits=4) for name in ("value", "reported_value")]
            who = [f"{n:.0f}", str(judge), str(method), number(plain["weight"])]
            rows.append([*who, *means, ends[0], theirs, *ends[1:]])
        columns = [("", name) for name in ("Labels", "Judge", "Method", "Weight")]
        columns += [(group, who) for group in ("Mean", "Plain") for who in ("ours", "ppi-python")]
        columns += [("Ours", "t"), ("Ours", "clusters")]
        sections.append(Section(f"{name}; all items: {own['all'].iloc[0]:.4f}", rows_frame(columns, rows)))
    return described(study, frame, sections, *notes)


def figure(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw Pearson's correlation of each judge with the human mean, with its interval."""
    from comperdial.report.plots import style

    frame, _ = _read(inputs, "pearson", "judge")
    frame = frame.rename(columns={"pearson": "value", "pearson_low": "low", "pearson_high": "high"})
    titles = study["entry"]["titles"]
    frame["label"] = (
        frame["dataset"].map(lambda name: titles.get(name, name)) + ", " + frame["judge"] + ": " + frame["dimension"]
    )
    frame["style"] = (frame["verdict"] == "passes").astype(int)
    entry = study["entry"]
    with style.drawing():
        drawn, axes = style.figure_and_axes(1, 1, (7.0, 0.2 * len(frame) + 1.4))
        style.forest(axes[0, 0], frame, list(frame["label"]))
        axes[0, 0].set_xlabel("Pearson")
        handles = [
            style.handle(text, **style.SERIES[place])
            for place, text in enumerate(("Not shown, or cannot be tested", "Passes"))
            if (frame["style"] == place).any()
        ]
        style.titled(drawn, entry["title"], study["title"], entry["notes"], handles=handles)
    return drawn, frame
