"""An audit of a judge, written as text for a screen and as a table for a page."""

from __future__ import annotations

import textwrap

import pandas as pd

from comperdial.evaluation.audit import Audit
from comperdial.report.render import Section, Table

_WIDTH, _MOST_OTHERS = 110, 12


def text(audit: Audit) -> str:
    """Return an audit as text: the sentences, without the tables behind them."""
    lines = [f"{audit.title}: {len(audit.judged.people):,} {audit.judged.noun}, {int(audit.judged.labelled.sum()):,} with labels of people"]
    for section in audit.sections:
        if section.sentences:
            lines += ["", section.title]
            first, *more = section.sentences
            lines += [part for one in [first, *section.lines, *more] for part in _wrapped(one)]
    if audit.others:
        lines += ["", "Others in these data (--judge NAME --target DIMENSION for all of it)"]
        lines += [part for name, one in [*audit.others.items()][:_MOST_OTHERS] for part in _wrapped(f"{name}: {one}")]
        lines += [f"  … and {more} more"] if (more := len(audit.others) - _MOST_OTHERS) > 0 else []
    notes = [f"{one.title.lower()}: {one.reason}" for one in audit.sections if one.reason]
    if notes:
        lines += ["", *_wrapped(f"Left out: {'; '.join(notes)}.", "")]
    return "\n".join(lines) + "\n"


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
        sections += [Section(title, (frame.reset_index() if frame.index.name else frame).astype(str)) for title, frame in part.frames.items()]
    if audit.others:
        lines = [f"{name}: {one}" for name, one in audit.others.items()]
        sections.append(Section("Other judges and dimensions", pd.DataFrame(), text=lines))
    judged = audit.judged
    counts = f"{len(judged.people):,} {judged.noun}, {int(judged.labelled.sum()):,} with labels of people"
    how = "Intervals are 95 %, by a jackknife over clusters (dialogues or contexts)" if judged.clusters is not None else "Intervals are 95 %"
    first, *more = audit.sections[0].sentences
    caption = f"{' '.join(more)} {counts}; people's scale is {judged.scale[0]:g} to {judged.scale[1]:g}. {how}."
    return Table(f"Audit: {audit.title}", caption, audit.table, sections, list(audit.notes), headline=first)
