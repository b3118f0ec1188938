"""What the notes under a table say is so: each of their numbers is counted from the data."""

import math
from itertools import product

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comperdial import evaluation, schema
from comperdial.report.correlations import partial_notes, pooled

SYSTEMS, CONTEXTS = ("a", "b", "c"), [f"{d}-{t}" for d, t in product(("d1", "d2", "d3"), (1, 2))]
UNITS = {"turn": [*product(CONTEXTS, SYSTEMS)], "dialogue": [*product(("d1", "d2", "d3"), SYSTEMS)]}
LEVEL = {"any": "turn", "reference": "turn", "whole": "dialogue"}


def whole_of(unit):
    return unit[0].partition("-")[0], unit[1]


@st.composite
def tables(draw):
    """Draw scores {metric: {unit: cut tokens}} of turns (one needs references) and of dialogues, and what was rated."""
    references = draw(st.sets(st.sampled_from(CONTEXTS)))
    rated = {level: draw(st.sets(st.sampled_from(units))) for level, units in UNITS.items()}
    scored = {}
    for name, level in LEVEL.items():
        cut = draw(
            st.lists(st.sampled_from([0, 0, 0, 7, None]), min_size=len(UNITS[level]), max_size=len(UNITS[level]))
        )
        values = dict(zip(UNITS[level], cut, strict=True))
        own = {u: n for u, n in values.items() if n is not None and (name != "reference" or u[0] in references)}
        # Scores of nothing that was rated are an error, tested elsewhere.
        if own and (not rated[level] or rated[level] & {*own}):
            scored[name] = own
    return scored, rated


def samples(scored, rated):
    rng = np.random.default_rng(1)
    scores = [
        {"dataset": "d", "level": LEVEL[name], "item_id": unit[0], "system_id": unit[1], "metric": name, "output": "o"}
        | {"value": np.float32(rng.normal()), "cut": cut, "signature": f"{name}|v:1"}
        for name, values in scored.items()
        for unit, cut in values.items()
    ]
    ratings = [
        {"dataset": "d", "level": level, "item_id": unit[0], "system_id": unit[1], "annotator_id": "r", "position": None}
        | {"dimension": "Overall", "rating": float(rng.integers(1, 6)), "scale_min": 1.0, "scale_max": 5.0, "source": "human"}
        for level, units in rated.items()
        for unit in sorted(units)
    ]  # fmt: skip
    contexts = pd.DataFrame([{"dataset": "d", "context_id": c, "dialogue_id": c.partition("-")[0]} for c in CONTEXTS])
    ratings = pd.DataFrame(ratings, columns=schema.table("ratings").columns)
    return evaluation.samples(pd.DataFrame(scores), ratings, contexts=contexts)


def expected(scored, rated):
    """Count from the raw data what the notes have to say."""
    for name, values in scored.items():
        if name != "whole" and rated["turn"]:
            units, average = "responses", ""
            shares = [unit in values for unit in rated["turn"]]
            cut = {unit for unit in rated["turn"] if values.get(unit)}
        else:
            units, average = "dialogues", ", on average"
            wholes = rated["dialogue"] or {whole_of(unit) for unit in rated["turn"]}
            cut = {whole_of(unit) for unit, tokens in values.items() if tokens} & wholes
            of = {other: [whole_of(unit) for unit in scored[other]] for other in scored if LEVEL[other] == LEVEL[name]}
            most = {unit: max(one.count(unit) for one in of.values()) for unit in wholes}
            shares = [of[name].count(unit) / most[unit] if most[unit] else 0 for unit in wholes]
            if name == "whole":
                shares = [unit in values for unit in wholes]
        share = sum(shares) / len(shares)
        if 0 < share < 1 - 1e-12:
            percent = f"{math.floor(share * 1000 + 1e-9) / 10:.1f}%"
            yield f"{name} o: {percent} of the rated {units} of d have a score{average}"
        if share and cut:
            yield f"{name} o: the input of {len(cut)} {units} of d did not fit the model and was cut"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(tables())
def test_notes_count_what_is_missing_and_what_was_cut(drawn):
    scored, rated = drawn
    if not scored or not any(rated.values()):
        return
    result = pooled(evaluation.correlations(samples(scored, rated)))
    result = result[(result["metric"] != "human") & (result["coverage"] > 0)]
    texts = partial_notes(result.assign(label=result["metric"] + " o"))
    # One note is of all the rows with the same words.
    notes = {
        f"{name}: {text}" for names, _, text in (note.partition(": ") for note in texts) for name in names.split("; ")
    }
    assert notes == {note for note in expected(scored, rated) if note.split()[0] in {*result["metric"]}}
