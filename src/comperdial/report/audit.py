"""Render the audit of a judge as text for a terminal and as a table for a page."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from comperdial.auditing.audit import Result
from comperdial.report import render
from comperdial.report.render import Section, Table

_WIDTH, _MOST_OTHERS = 110, 12


@dataclass(frozen=True)
class Audit(Result):
    """An audit of a judge that can be rendered.

    Attributes
    ----------
    others
        Short verdicts on other judges and dimensions of the same data, by name.
    notes
        How the data were read.
    """

    others: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, result: Result, others: Sequence[Result], notes: Sequence[str]) -> Audit:
        """Combine a result with short verdicts on other judges and dimensions."""
        short = {f"{one.judged.judge_name}, {one.judged.dimension}": one.in_short for one in others}
        return cls(result.judged, result.sections, result.alternative, short, notes)

    def to_json(self) -> str:
        """Return the audit as JSON."""
        test = self.alternative
        made = {
            "judge": self.judged.judge_name, "dimension": self.judged.dimension, "verdict": self.verdict,
            "alternative_test": None if test is None else {
                "passed": test.passed, "winning_rate": test.winning_rate, "average_advantage": test.average_advantage,
                "epsilon": test.epsilon, "raters": len(test.annotators), "left_out": len(test.left_out),
            },
            "sections": [
                {"title": one.title, "sentences": list(one.sentences), "reason": one.reason or None,
                 "numbers": [] if one.numbers is None else json.loads(one.numbers.to_json(orient="records"))}
                for one in self.sections
            ],
            "others": dict(self.others), "notes": list(self.notes),
        }  # fmt: skip
        return json.dumps(made, indent=1, ensure_ascii=False) + "\n"

    def to_html(self) -> str:
        """Return the audit as a self-contained HTML page."""
        return render.page(document(self))

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        """Return the audit as text that fits a screen."""
        return text(self)


def text(audit: Audit) -> str:
    """Return an audit as text: the sentences, without their tables."""
    lines = [f"{audit.title}: {_counts(audit)}"]
    for section in audit.sections:
        if section.sentences:
            lines += ["", section.title]
            first, *rest = section.sentences
            lines += [part for one in [first, *section.lines, *rest] for part in _wrapped(one)]
    if audit.others:
        lines += ["", "Others in these data (--judge NAME --target DIMENSION for all of it)"]
        lines += [part for name, one in [*audit.others.items()][:_MOST_OTHERS] for part in _wrapped(f"{name}: {one}")]
        lines += [f"  … and {more} more"] if (more := len(audit.others) - _MOST_OTHERS) > 0 else []
    notes = [f"{one.title.lower()}: {one.reason}" for one in audit.sections if one.reason]
    if notes:
        lines += ["", *_wrapped(f"Left out: {'; '.join(notes)}.", "")]
    if audit.notes:
        lines += ["", "As read", *(part for one in audit.notes for part in _wrapped(one))]
    return "\n".join(lines) + "\n"


def _counts(audit: Audit) -> str:
    judged = audit.judged
    people, judge = (int((~np.isnan(labels)).sum()) for labels in (judged.mean, judged.scores))
    both = int(judged.labelled.sum())
    return f"{len(judged.people):,} {judged.noun}; people labelled {people:,}, the judge {judge:,}, both {both:,}"


def _wrapped(sentence: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(sentence, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  " * bool(indent))


def document(audit: Audit) -> Table:
    """Return an audit as a table with a section of sentences and numbers for each part."""
    sections = []
    for part in audit.sections[1:]:
        if part.reason:
            sections.append(Section(part.title, pd.DataFrame(), text=[f"Left out: {part.reason}."]))
            continue
        sections.append(Section(part.title, pd.DataFrame(), text=part.sentences))
        sections += [
            Section(title, (frame.reset_index() if frame.index.name else frame).astype(str))
            for title, frame in part.frames.items()
        ]
    if audit.others:
        lines = [f"{name}: {one}" for name, one in audit.others.items()]
        sections.append(Section("Other judges and dimensions", pd.DataFrame(), text=lines))
    judged = audit.judged
    counts = _counts(audit)
    how = (
        "Intervals are 95 %, by a jackknife over clusters (dialogues or contexts)"
        if judged.clusters is not None
        else "Intervals are 95 %"
    )
    first, *more = audit.sections[0].sentences
    caption = f"{' '.join(more)} {counts}; people's scale is {judged.scale[0]:g} to {judged.scale[1]:g}. {how}."
    return Table(f"Audit: {audit.title}", caption, audit.table, sections, list(audit.notes), headline=first)
