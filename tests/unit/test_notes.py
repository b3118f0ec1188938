"""What the notes under a table say is so: each of their numbers is counted from the data."""

import math
from itertools import product

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comperdial import evaluation, schema
from comperdial.report.correlations import partial_notes, pooled

SYSTEMS, DIALOGUES, TURNS = ("a", "b", "c"), ("d1", "d2", "d3"), (1, 2)
UNITS = [(f"{d}-{t}", s) for d, t, s in product(DIALOGUES, TURNS, SYSTEMS)]
WHOLES = list(product(DIALOGUES, SYSTEMS))
LEVELS = ("turn", "dialogue")


def dialogue_of(context):
    return context.partition("-")[0]


@st.composite
def tables(draw):
    """Draw scores {metric: {unit: cut tokens}} of turns (one needs references) and of dialogues, and what was rated."""
    some = st.lists(st.sampled_from([0, 0, 0, 7, None]), min_size=len(UNITS), max_size=len(UNITS))
    with_references = draw(st.sets(st.sampled_from([context for context, _ in UNITS])))
    scored = {name: dict(zip(UNITS, draw(some), strict=True)) for name in ("any", "reference")}
    scored["reference"] = {unit: cut for unit, cut in scored["reference"].items() if unit[0] in with_references}
    scored["whole"] = dict(zip(WHOLES, draw(some), strict=False))
    scored = {name: {unit: cut for unit, cut in values.items() if cut is not None} for name, values in scored.items()}
    rated = {
        "turn": set(draw(st.lists(st.sampled_from(UNITS), unique=True, max_size=len(UNITS)))),
        "dialogue": set(draw(st.lists(st.sampled_from(WHOLES), unique=True, max_size=len(WHOLES)))),
    }
    # Scores of nothing that was rated are an error, tested elsewhere.
    for name in list(scored):
        level = "dialogue" if name == "whole" else "turn"
        if not scored[name] or (rated[level] and not rated[level] & set(scored[name])):
            del scored[name]
    return scored, rated


def frames(scored, rated):
    rng = np.random.default_rng(1)
    scores = pd.DataFrame(
        [
            {"dataset": "d", "level": "dialogue" if name == "whole" else "turn", "item_id": unit[0]}
            | {"system_id": unit[1], "metric": name, "output": "o", "value": np.float32(rng.normal()), "cut": cut}
            | {"signature": f"{name}|v:1"}
            for name, values in scored.items()
            for unit, cut in values.items()
        ]
    )

    def ratings(level):
        rows = [
            {
                "dataset": "d",
                "level": level,
                "item_id": unit[0],
                "system_id": unit[1],
                "annotator_id": "r",
                "position": None,
            }
            | {"dimension": "Overall", "rating": float(rng.integers(1, 6)), "scale_min": 1.0, "scale_max": 5.0}
            | {"source": "human"}
            for unit in sorted(rated[level])
        ]
        return pd.DataFrame(rows, columns=schema.table("ratings").columns)

    contexts = pd.DataFrame(
        [{"dataset": "d", "context_id": c, "dialogue_id": dialogue_of(c)} for c in dict.fromkeys(c for c, _ in UNITS)]
    )
    return scores, ratings("turn"), contexts, ratings("dialogue")


def floored(share):
    return f"{math.floor(share * 1000 + 1e-9) / 10:.1f}%"


def expected(scored, rated):
    """Count from the raw data what the notes have to say."""
    found = set()
    of_turns = {(dialogue_of(context), system) for context, system in rated["turn"]}
    for name, values in scored.items():
        if name != "whole" and rated["turn"]:
            have = rated["turn"] & set(values)
            if len(have) < len(rated["turn"]):
                share = floored(len(have) / len(rated["turn"]))
                found.add(f"{name} o: {share} of the rated responses of d have a score")
            if cut := sum(values[unit] > 0 for unit in have):
                found.add(f"{name} o: the input of {cut} responses of d did not fit the model and was cut")
            continue
        wholes = rated["dialogue"] or of_turns
        if name == "whole":
            shares = [unit in values for unit in wholes]
            cut = sum(values.get(unit, 0) > 0 for unit in wholes)
        else:
            turns = {n: [(dialogue_of(c), s) for c, s in scored[n]] for n in scored if n != "whole"}
            most = {unit: max(of.count(unit) for of in turns.values()) for unit in wholes}
            shares = [turns[name].count(unit) / most[unit] if most[unit] else 0 for unit in wholes]
            cut = len({(dialogue_of(c), s) for (c, s), tokens in values.items() if tokens} & wholes)
        if not any(shares):
            continue
        if (share := sum(shares) / len(shares)) < 1 - 1e-12:
            share = floored(share)
            found.add(f"{name} o: {share} of the rated dialogues of d have a score, on average")
        if cut:
            found.add(f"{name} o: the input of {cut} dialogues of d did not fit the model and was cut")
    return found


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tables())
def test_notes_count_what_is_missing_and_what_was_cut(drawn):
    scored, rated = drawn
    if not any(scored.values()) or not any(rated.values()):
        return
    scores, turn, contexts, dialogue = frames(scored, rated)
    samples = evaluation.samples(scores, pd.concat([turn, dialogue]), contexts=contexts)
    found = evaluation.correlations(samples)
    found = found[found["metric"] != "human"]
    labelled = pooled(found).assign(label=found["metric"] + " o")
    texts = set(partial_notes(labelled[labelled["coverage"] > 0]))
    # One note is of all the rows with the same words.
    notes = {
        f"{name}: {text}" for names, _, text in (note.partition(": ") for note in texts) for name in names.split("; ")
    }
    shown = {note for note in expected(scored, rated) if note.split()[0] in set(found["metric"])}
    assert notes == {note for note in shown if not note.startswith("not run")}
