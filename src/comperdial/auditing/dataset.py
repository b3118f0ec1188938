"""Audits of a data set's judges, as a section of its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from comperdial import schema
from comperdial.auditing.audit import audit
from comperdial.auditing.recorded import judged_scores, target_and_scale
from comperdial.core.errors import ComperdialError
from comperdial.core.files import read_json
from comperdial.schema.dimensions import chosen_dimension

Audit = dict[str, Any]


def audits(tables: Mapping[str, pd.DataFrame], scores: pd.DataFrame, about: Mapping[str, Any]) -> Iterator[Audit]:
    """Yield the audit of each judge: a short verdict, and the title, sentences and reason for omission of each section.

    A recorded judge of a dimension other than the main one is compared with ratings of that dimension. If a judge
    cannot be audited, the verdict gives the reason.
    """
    target = chosen_dimension(about["target"], about["main_target"], tables["ratings"]["dimension"])
    for name in [*about["judged"], *about["recorded_judges"]]:
        entry, own = about["judges"][name], scores[scores["metric"] == name]
        for (level, given), rows in own.groupby(["level", "output"], sort=False):
            output, dimension, scale = str(given), target, entry.get("scale")
            if "format" in entry:
                dimension, scale = target_and_scale(entry["format"], output)
            elif output != entry["output"]:
                continue
            known = about["labels"].get(f"{name}:{output}") or about["labels"].get(name, name)
            of: Audit = {"judge": known.replace("{output}", output), "dimension": dimension, "level": str(level)}
            try:
                (judged,) = judged_scores(
                    rows, tables, target=dimension, level=str(level), source=about["source"], judge=name, scale=scale
                )
                result = audit(judged)
                sections = [(one.title, [*one.sentences, *one.lines], one.reason) for one in result.sections]
                yield of | {"short": result.in_short, "sections": sections}
            except ComperdialError as error:
                yield of | {"short": f"no audit: {error.problem}", "sections": []}


def section(dataset: str) -> str:
    """Return the audits of a data set's judges as HTML; empty if no judge scored it or nobody rated it."""
    folder, results = Path("data/tables", dataset), Path("results", dataset)
    about = read_json(results / "about.json")
    judges = [*about["judged"], *about["recorded_judges"]]
    if not judges or not about["levels"]:
        return ""
    tables = {name: schema.read(folder / f"{name}.parquet", name) for name in ("contexts", "responses", "ratings")}
    scores = pd.concat([schema.read(results / "scores" / f"{name}.parquet", "scores") for name in judges])
    who = "simulated raters" if about["source"] == "simulated" else "people"
    parts = [
        '<section id="judges" aria-labelledby="judges-title"><h2 id="judges-title">Can these judges be trusted?</h2>',
        f"<p>Each judge's labels are compared with those of {who}, by the alternative annotator test and other measures; no "
        "single number makes a verdict.</p>",
    ]
    for one in audits(tables, scores, about):
        title = f"{one['judge']}, {one['dimension']} of {one['level']}s: {one['short']}"
        parts.append(f"<details><summary>{escape(title)}</summary>")
        for heading, sentences, reason in one["sections"]:
            lines = [f"Left out: {reason}."] if reason else sentences
            parts += [f"<h3>{escape(heading)}</h3>", *(f"<p>{escape(line)}</p>" for line in lines)]
        parts.append("</details>")
    return "\n".join([*parts, "</section>"])
