"""What ComperDial's personas and dialogues are made of: names, families, ages, and one example in two lengths."""

from __future__ import annotations

import textwrap

import pandas as pd

from comperdial.core.errors import UnknownNameError
from comperdial.report.captions import with_suffix
from comperdial.report.document import Document, Section
from comperdial.report.inputs import need

# B is the system under evaluation (docs/data-model.md), so B says what the references hold.
EVALUATED = "B"
_GENDERS = {"male": "Male", "female": "Female"}
_SHORT = 5
# Longer utterances go on in the next row: LaTeX and HTML do not break a line inside a cell.
_WIDTH = 56


def names_document(names: pd.DataFrame) -> Document:
    """Render names by decade and gender (the paper's Table 9); columns decade, generation, gender, name."""
    need(names, ("decade", "generation", "gender", "name"), "names")
    if unknown := sorted(set(names["gender"]) - set(_GENDERS)):
        raise UnknownNameError("gender", str(unknown[0]), _GENDERS)
    rows = []
    for (decade, generation), group in names.groupby(["decade", "generation"], sort=False):
        lists = [", ".join(group.loc[group["gender"] == gender, "name"]) or "–" for gender in _GENDERS]
        rows.append([str(decade), str(generation), *lists])
    columns = [("", "Decade"), ("", "Age"), *(("", title) for title in _GENDERS.values())]
    return Document(
        title="Names by decade and gender",
        caption="Names that fictional personal information draws on: a person of an age gets a name of that decade.",
        sections=[Section("Names", columns, rows)],
        tidy=names.reset_index(drop=True),
        notes=_origin(names, "names"),
    )


def family_document(family: pd.DataFrame) -> Document:
    """Render family information with ages (the paper's Table 10); columns family_info, start_age, end_age."""
    return _aged(
        family,
        ("family_info", "Family information"),
        title="Family information by age",
        caption="Sentences on family and home, and from which to which age of a persona they may be drawn.",
    )


def ages_document(ages: pd.DataFrame) -> Document:
    """Render head personas with ages (the paper's Table 11); columns head, start_age, end_age."""
    return _aged(
        ages,
        ("head", "Head persona"),
        title="Ages of head personas",
        caption="From which to which age a person may be who has the head persona.",
    )


def _aged(frame: pd.DataFrame, label: tuple[str, str], *, title: str, caption: str) -> Document:
    column, name = label
    need(frame, (column, "start_age", "end_age"), title.lower())
    rows = [[str(r[column]), str(r["start_age"]), str(r["end_age"])] for r in frame.to_dict("records")]
    section = Section(title, [("", name), ("Age", "from"), ("Age", "to")], rows)
    return Document(title, caption, [section], frame.reset_index(drop=True), _origin(frame, "rows"))


def _origin(frame: pd.DataFrame, what: str) -> list[str]:
    """Say how many rows the paper prints, where the file tells: the paper shows excerpts, the rest is ours."""
    printed = int((frame["source"] == "paper").sum()) if "source" in frame else len(frame)
    return (
        [] if printed == len(frame) else [f"The paper prints {printed} of these {len(frame)} {what}; the rest is ours"]
    )


def example_document(contexts: pd.DataFrame, personas: pd.DataFrame, dialogue_id: str, suffix: str = "") -> Document:
    """Render one dialogue with its speakers' personas (the paper's Table 2, and in full its Table 12).

    Parameters
    ----------
    contexts, personas
        The tables of one dataset. The longest history of the dialogue and its first reference make the dialogue.
    dialogue_id
        Which dialogue.
    suffix
        Text appended to the caption, for example that data are simulated.
    """
    of_dialogue = contexts[contexts["dialogue_id"] == dialogue_id]
    if of_dialogue.empty:
        raise UnknownNameError("dialogue", dialogue_id, contexts["dialogue_id"].unique())
    last = max(of_dialogue.to_dict("records"), key=lambda context: len(context["history"]))
    said = [(str(u["speaker"]), str(u["text"])) for u in last["history"]]
    said += [(EVALUATED, text) for text in last["references"][:1]]
    known = personas[personas["dialogue_id"] == dialogue_id]
    profiles = {str(r["speaker"]): list(r["sentences"]) for r in known.to_dict("records")}
    speakers = sorted({*profiles, *(speaker for speaker, _ in said)})
    records = [("persona", n, s, text) for s in speakers for n, text in enumerate(profiles.get(s, []), start=1)]
    records += [("utterance", n, speaker, text) for n, (speaker, text) in enumerate(said, start=1)]
    columns = [("", "Part"), *(("", f"Person {speaker}") for speaker in speakers)]
    notes = ["The last utterance is the reference response"] if last["references"] else []
    if len(last["references"]) > 1:
        notes.append(f"The first of {len(last['references'])} references is shown")
    return Document(
        title="A persona-grounded dialogue",
        caption=with_suffix(f"The personas of both speakers and their dialogue ({dialogue_id}).", suffix),
        sections=[
            Section("Beginning", columns, _example_rows(profiles, said, speakers, _SHORT)),
            Section("In full", columns, _example_rows(profiles, said, speakers, None)),
        ],
        tidy=pd.DataFrame(records, columns=["part", "number", "speaker", "text"]).assign(dialogue_id=dialogue_id),
        notes=notes,
    )


def _example_rows(
    profiles: dict[str, list[str]], said: list[tuple[str, str]], speakers: list[str], most: int | None
) -> list[list[str]]:
    """Set persona sentences side by side and each utterance under its speaker, the first ``most`` of both."""
    longest = max(map(len, profiles.values()), default=0)
    rows = []
    for n in range(longest)[:most]:
        rows += _wrapped(f"persona {n + 1}", [profiles.get(s, [])[n : n + 1] for s in speakers])
    if most is not None and longest > most:
        rows.append(["", *("…" if len(profiles.get(s, [])) > most else "" for s in speakers)])
    for n, (speaker, text) in enumerate(said[:most], start=1):
        rows += _wrapped(f"utterance {n}", [[text] if s == speaker else [] for s in speakers])
    if most is not None and len(said) > most:
        rows.append(["", *("…" for _ in speakers)])
    return rows


def _wrapped(label: str, cells: list[list[str]]) -> list[list[str]]:
    lines = [textwrap.wrap(text[0], _WIDTH) if text else [] for text in cells]
    return [
        [label if n == 0 else "", *(line[n] if n < len(line) else "" for line in lines)]
        for n in range(max(map(len, lines)))
    ]
