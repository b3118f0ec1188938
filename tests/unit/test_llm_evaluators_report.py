"""The tables and figures of the study of LLMs as evaluators, from result tables made by hand."""

import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.evaluation.ensembles import Ensembles
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators import correlations, ensembles
from comperdial.studies.llm_evaluators.listing import correlations_document
from making import make

LABELS = {"judge-turn": "Judge", "judge-dial": "Judge", "f1": "Word F1", "gpt-4_fed": "GPT-4 (recorded)"}
OUTPUTS = [("f1", "f1")]
# Who rated which dimensions: three sets of turns, and FED-Dial by both.
RATED = {
    ("persona_usr", "human"): ("relevance", "overall"),
    ("persona_usr", "gpt-4"): ("specificity",),
    ("fed_turn", "human"): DIMENSIONS["turn"],
    ("conture_turn", "gpt-4"): ("relevance", "specificity", "interestingness", "understandability"),
    ("fed_dial", "human"): DIMENSIONS["dialogue"],
    ("fed_dial", "gpt-4"): DIMENSIONS["dialogue"],
}


def row(dataset, source, dimension, metric, output, value, **changes):
    level = "dialogue" if dataset.endswith("_dial") else "turn"
    of = {"dataset": dataset, "source": source, "level": level, "dimension": dimension, "metric": metric}
    of |= {"output": output, "coefficient": "pearson", "value": value, "low": value - 0.1, "high": value + 0.1}
    of |= {"loso_value": None, "loso_system": None}
    return of | {"p": 0.01, "n": 9, "coverage": 1.0, "signature": "s|v:1"} | changes


def value_of(metric, dataset, source, dimension):
    """Give each cell a value of its own: what lands in a wrong cell is seen."""
    metrics, datasets = ["judge-turn", "judge-dial", "f1", "gpt-4_fed"], [d for d, _ in RATED]
    level = "dialogue" if dataset.endswith("_dial") else "turn"
    number = metrics.index(metric) * 200 + datasets.index(dataset) * 20 + DIMENSIONS[level].index(dimension) * 2
    return (number + (source == "human")) / 1000


@pytest.fixture
def frame():
    rows = []
    for (dataset, source), dimensions in RATED.items():
        judge = "judge-dial" if dataset == "fed_dial" else "judge-turn"
        for d in dimensions:
            rows.append(row(dataset, source, d, judge, d, value_of(judge, dataset, source, d)))
            # Another output of the judge, which stands for nothing.
            rows.append(row(dataset, source, d, judge, "other", 0.89))
            # Word F1 has no references on ConTurE.
            if dataset != "conture_turn":
                rows += [row(dataset, source, d, "f1", "f1", value_of("f1", dataset, source, d), coverage=0.8)]
                rows += [row(dataset, source, d, "f1", "precision", 0.88)]
            if dataset == "fed_dial":
                rows.append(row(dataset, source, d, "gpt-4_fed", d, value_of("gpt-4_fed", dataset, source, d)))
    rows += [row("fed_dial", "human", d, "judge-dial", d, 0.5, coefficient="kendall") for d in DIMENSIONS["dialogue"]]
    return schema.validate(pd.DataFrame(rows), "dimension_correlations")


def reported(place, rows):
    return pd.DataFrame(
        [
            {"source": "z", "place": place, "level": level, "metric": m, "score": s, "dimension": d, "value": v}
            for level, m, s, d, v in rows
        ],
        columns=["source", "place", "level", "metric", "score", "dimension", "value"],
    )


THEIRS = [
    ("turn", "Big", "direct", "relevance", 0.611),
    ("turn", "Big", "direct", "average", 0.6),
    ("dialogue", "Big", "direct", "overall", 0.7),
]
AVERAGED = Ensembles.of({"dimensions": ["judge-turn", "judge-dial", "gpt-4_fed"]})
GIVEN = {"outputs": OUTPUTS, "recorded": ["gpt-4_fed"], "labels": LABELS}


def text(*values):
    return f"{sum(values) / len(values):.3f}"


def rows_of(found, title):
    return next(section.rows for section in found.sections if section.title == title)


def test_table_2_keeps_people_and_gpt_4_apart(frame):
    found = correlations.table_2(frame, reported("Table 2", THEIRS), not_run={"big": "no weights"}, **GIVEN)
    people = rows_of(found, "Ours, against ratings by people")
    judge = [value_of("judge-turn", d, "human", "relevance") for d in ("persona_usr", "fed_turn")]
    assert people[0] == ["Sets in the mean", "people", "2", "1", "1", "1", "2", "–", *["1"] * 5, "–"]
    of = {one[0]: one for one in people}
    assert list(of) == ["Sets in the mean", "Judge", "Word F1", "GPT-4 (recorded)"]
    assert of["Judge"][2] == text(*judge)
    assert of["Judge"][3] == text(value_of("judge-turn", "fed_turn", "human", "specificity"))
    dialogue = [value_of("judge-dial", "fed_dial", "human", d) for d in DIMENSIONS["dialogue"]]
    assert of["Judge"][8:] == [*map(text, dialogue), text(*dialogue)], "both variants of a judge are one row"
    assert of["GPT-4 (recorded)"][2:8] == ["–"] * 6
    gpt = {one[0]: one for one in rows_of(found, "Ours, against ratings by GPT-4")}
    assert set(gpt) == {"Sets in the mean", "Judge", "Word F1"}, "GPT-4 is not held against itself"
    assert gpt["Sets in the mean"][2:8] == ["1", "2", "1", "1", "–", "–"]
    assert gpt["Word F1"][2:8] == ["–", f"{value_of('f1', 'persona_usr', 'gpt-4', 'specificity'):.3f} (1)", *["–"] * 4]
    assert gpt["Judge"][7] == "–", "no mean of five where one is missing"
    assert rows_of(found, "Reported") == [
        ["Big", "people or GPT-4", "0.611", *["–"] * 4, "0.600", *["–"] * 4, "0.700", "–"]
    ]
    assert "not run: big: no weights" in found.notes
    assert all(len({one[1] for one in section.rows}) == 1 for section in found.sections), "one source a section"
    tidy = found.tidy.set_index(["origin", "evaluator", "rated_by"])
    assert tidy.loc[("ours", "Judge", "human"), "turn_relevance"] == pytest.approx(sum(judge) / 2)
    assert tidy.loc[("ours", "Word F1", "gpt-4"), ["turn_specificity_sets", "turn_specificity_of"]].tolist() == [1, 2]
    assert tidy.loc[("reported", "Big", "human or gpt-4"), "dialogue_overall"] == 0.7


def test_table_2_changes_with_its_input(frame):
    before = correlations.table_2(frame, reported("Table 2", THEIRS), not_run={}, **GIVEN)
    more = frame.assign(value=frame["value"].where(frame["metric"] != "f1", frame["value"] + 0.1))
    after = correlations.table_2(more, reported("Table 2", THEIRS), not_run={}, **GIVEN)
    changed = {
        one[0] for a, b in zip(before.sections, after.sections, strict=True) for one in b.rows if one not in a.rows
    }
    assert changed == {"Word F1"}


def test_metrics_called_alike_may_not_meet(frame):
    with pytest.raises(SchemaError, match=r"'Judge' is what .*judge-turn.* are called"):
        correlations.table_2(
            frame, reported("Table 2", THEIRS), not_run={}, outputs=OUTPUTS, labels=LABELS | {"f1": "Judge"}
        )


def test_table_3_is_of_people_alone_and_shows_both_rows_of_gpt_4(frame):
    theirs = reported("Table 3", [("dialogue", "GPT-4", "direct", "informativeness", 0.62)])
    found = correlations.table_3(frame, theirs, not_run={}, **GIVEN)
    rows = {(one[0], one[1]): one[2:] for one in rows_of(found, "Dialogue level, rated by people")}
    values = [value_of("gpt-4_fed", "fed_dial", "human", d) for d in DIMENSIONS["dialogue"]]
    assert rows["GPT-4 (recorded)", "ours"] == [*map(text, values), text(*values)]
    assert rows["GPT-4", "reported"] == ["–", "–", "–", "0.620", "–", "–"]
    turn = {one[0]: one for one in rows_of(found, "Turn level, rated by people")}
    assert turn["Sets in the mean"][2:] == ["2", "1", "1", "1", "2", "–"]
    assert "GPT-4 (recorded)" not in turn
    assert any("were not published" in note for note in found.notes)
    assert set(found.tidy["rated_by"]) == {"human"}


def test_table_4_ranks_without_the_recorded_judge(frame):
    extra = [
        row("fed_dial", source, "coherence", name, "x", value)
        for name, both in {"a": (0.1, 0.3), "b": (0.2, 0.1), "c": (0.9, 0.95)}.items()
        for source, value in zip(("human", "gpt-4"), both, strict=True)
    ]
    own = frame[frame["dimension"] != "coherence"]
    theirs = pd.DataFrame(
        [
            {
                "source": "z",
                "place": "Table 4",
                "dataset": dataset,
                "dimension": d,
                "value": 0.9 if d == "overall" else 0.5,
            }
            for dataset, level in (("fed_turn", "turn"), ("fed_dial", "dialogue"))
            for d in DIMENSIONS[level]
        ]
    )
    found = correlations.table_4(
        pd.concat([own, pd.DataFrame(extra)], ignore_index=True), theirs, titles={"fed_dial": "FED-Dial"}, **GIVEN
    )
    turn, dial = found.sections
    # Of FED-Turn nothing is ours, so that there is no such row.
    assert turn.rows == [["reported", "0.500", "0.500", "0.500", "0.500", "0.900"]]
    assert dial.title == "FED-Dial"
    # Ranks 1 2 3 by people and 2 1 3 by GPT-4.
    assert dial.rows[0][1] == "0.500"
    assert len(dial.rows) == 2
    assert "Evaluators ranked, ours: FED-Dial, Coh 3, Eng 2, Div 2, Inf 2, Ovr 2" in found.notes
    assert not any("GPT-4 (recorded)" in note for note in found.notes)


def ensemble_rows():
    rows = []
    for dataset, source in (
        ("persona_usr", "human"),
        ("fed_turn", "human"),
        ("fed_dial", "human"),
        ("fed_dial", "gpt-4"),
    ):
        judge = "judge-dial" if dataset == "fed_dial" else "judge-turn"
        value = 0.8 if source == "human" else 0.3
        rows.append(row(dataset, source, "overall", f"ensemble-dimensions:{judge}", "mean", value))
        rows.append(row(dataset, source, "overall", "ensemble-models:pair", "overall", value - 0.2))
    return rows


def test_table_5_has_the_ensemble_beside_the_score_alone(frame):
    whole = pd.concat([frame, pd.DataFrame(ensemble_rows())], ignore_index=True)
    theirs = reported(
        "Table 5", [("turn", "Big", "dimensions", "overall", 0.5), ("turn", "Big", "direct", "overall", 0.4)]
    )
    found = ensembles.table_5(whole, theirs, ensembles=AVERAGED, **GIVEN)
    turn = text(*(value_of("judge-turn", d, "human", "overall") for d in ("persona_usr", "fed_turn")))
    direct = {s: text(value_of("judge-dial", "fed_dial", s, "overall")) for s in ("human", "gpt-4")}
    assert rows_of(found, "Ours, against ratings by people") == [
        ["Judge", "people", "0.800", turn, "0.800", direct["human"]]
    ]
    assert rows_of(found, "Ours, against ratings by GPT-4") == [["Judge", "GPT-4", "–", "–", "0.300", direct["gpt-4"]]]
    assert rows_of(found, "Reported") == [["Big", "people or GPT-4", "0.500", "0.400", "–", "–"]]


def test_table_6_has_the_members_of_each_ensemble(frame):
    whole = pd.concat([frame, pd.DataFrame(ensemble_rows())], ignore_index=True)
    theirs = reported("Table 6", [("dialogue", "Top 3", "models", "overall", 0.686)])
    of = Ensembles.of({"models": {"pair": ["judge-dial", "f1:f1"]}})
    found = ensembles.table_6(whole, theirs, ensembles=of, **GIVEN)
    rows = rows_of(found, "Dialogue level, ours, against ratings by GPT-4")
    assert [one[:3] for one in rows] == [["pair", name, "GPT-4"] for name in ("Judge", "Word F1", "their mean")]
    # Where the ensemble has no value its members have none either.
    assert rows[0][3:] == ["–", "–", "–", "–", text(value_of("judge-dial", "fed_dial", "gpt-4", "overall")), "–"]
    assert rows[1][7] == text(value_of("f1", "fed_dial", "gpt-4", "overall"))
    assert rows[2][3:] == ["–", "–", "–", "–", "0.100", "–"]
    assert rows_of(found, "Dialogue level, reported")[0][-2] == "0.686"
    assert any("pair: the mean of Judge, Word F1, each standardised" in note for note in found.notes)


def test_table_6_compares_on_the_same_sets_and_says_what_is_lacking(frame):
    whole = pd.DataFrame(
        [
            row("persona_usr", "human", "overall", "a", "x", 0.1),
            row("fed_turn", "human", "overall", "a", "x", 0.9),
            row("persona_usr", "human", "overall", "b", "x", 0.2),
            row("persona_usr", "human", "overall", "ensemble-models:both", "mean", 0.3),
        ]
    )
    of = Ensembles.of({"models": {"both": ["a:x", "b:x"], "other": ["a:x", "c:x"]}})
    found = ensembles.table_6(whole, reported("Table 6", []), ensembles=of, outputs=[], labels={"c": "Big C"})
    rows = {one[1]: one[7] for one in rows_of(found, "Turn level, ours, against ratings by people")}
    assert rows == {"a": "0.100 (1)", "b": "0.200 (1)", "their mean": "0.300 (1)"}
    assert "other has no value, and no row, on any set: at turn level there are no scores of Big C" in found.notes
    assert not any(note.startswith("both has no value") for note in found.notes)


def signed(frame, **signatures):
    """Give metrics signatures that say what they are."""
    own = frame["metric"].map(signatures.get)
    return frame.assign(signature=own.where(own.notna(), frame["signature"]))


RULES = {"judge-turn": "cpdscore|service:rules|v:1", "judge-dial": "cpdscore|service:rules|v:1"}
IS_RULES = "Judge: it counts words by fixed rules and is no language model"


def test_programs_distinct_and_what_was_not_scored_are_named(frame):
    plain = correlations.table_2(frame, reported("Table 2", THEIRS), not_run={}, **GIVEN)
    assert not any("fixed rules" in note or "measure of length" in note for note in plain.notes)
    assert not any("no row" in note or "Not asked" in note for note in plain.notes)
    more = frame.assign(output=frame["output"].where(frame["output"] != "f1", "distinct-2"))
    more = signed(more, **RULES, f1="distinct|text:normalised|over:words|v:1")
    outputs = [("f1", "distinct-2"), ("bleu", "bleu-4"), ("grounded", "sum"), ("judge-dial", "other")]
    given = GIVEN | {"outputs": outputs, "not_asked": ["implicit scoring: nobody"], "needs": {"bleu": ["references"]}}
    for table in (correlations.table_2, correlations.table_3):
        notes = table(more, reported("Table 3", THEIRS), not_run={}, **given).notes
        assert sum(note.startswith(IS_RULES) for note in notes) == 1, "two variants of a judge are one note"
        assert sum("n different words have (n - 1) / n" in note for note in notes) == 1
        lack = "no row, as the texts lack what is needed"
        assert f"Turn level and dialogue level, {lack}: bleu (references); grounded" in notes
        assert "Not asked: implicit scoring: nobody" in notes
    by_pairs = signed(more, f1="distinct|over:ngrams|v:1")
    notes = correlations.table_2(by_pairs, reported("Table 2", THEIRS), not_run={}, **given).notes
    assert not any("measure of length" in note for note in notes)


def test_table_4_says_how_many_are_of_one_kind(frame):
    theirs = pd.DataFrame([{"dataset": "fed_dial", "dimension": d, "value": 0.5} for d in DIMENSIONS["dialogue"]])
    copies = [frame.assign(metric=frame["metric"].replace("f1", f"f1_{n}")).query(f"metric == 'f1_{n}'") for n in "ab"]
    whole = pd.concat([frame, *copies], ignore_index=True)
    whole = signed(whole, f1_a="with_context|metric:(f1|v:1)|v:1", f1_b="with_context|metric:(f1|v:1)|v:1")
    given = GIVEN | {"outputs": [*OUTPUTS, ("f1_a", "f1"), ("f1_b", "f1")]}
    notes = correlations.table_4(whole, theirs, titles={}, **given).notes
    assert any(note.startswith("2 of the 4 are of one kind") for note in notes)
    assert not any("of one kind" in note for note in correlations.table_4(frame, theirs, titles={}, **GIVEN).notes)


def test_table_5_says_that_a_program_s_overall_is_the_mean_by_construction(frame):
    recorded = [row("fed_dial", s, "overall", "ensemble-dimensions:gpt-4_fed", "mean", 0.4) for s in ("human", "gpt-4")]
    whole = pd.concat([frame, pd.DataFrame(ensemble_rows() + recorded)], ignore_index=True)
    found = ensembles.table_5(signed(whole, **RULES), reported("Table 5", []), ensembles=AVERAGED, **GIVEN)
    assert sum("as the mean of its other four ratings" in note for note in found.notes) == 1
    people = {one[0]: one[2:] for one in rows_of(found, "Ours, against ratings by people")}
    direct = text(value_of("gpt-4_fed", "fed_dial", "human", "overall"))
    assert people["GPT-4 (recorded)"] == ["–", "–", "0.400", direct]
    assert [one[0] for one in rows_of(found, "Ours, against ratings by GPT-4")] == ["Judge"]
    assert not any(
        "other four" in note
        for note in ensembles.table_5(whole, reported("Table 5", []), ensembles=AVERAGED, **GIVEN).notes
    )
    listed = correlations_document(signed(whole, **RULES), titles={}, not_run={}, **GIVEN)
    names = {one[0] for one in rows_of(listed, "fed_dial, rated by GPT-4")}
    assert "mean of the dimensions of Judge" in names
    assert "mean of the dimensions of GPT-4 (recorded)" not in names, "no mean of its own ratings against themselves"
    assert any(note.startswith(IS_RULES) for note in listed.notes)


def test_every_correlation_says_who_rated(frame):
    found = correlations_document(frame, titles={"fed_turn": "FED-Turn"}, not_run={}, **GIVEN)
    assert [section.title for section in found.sections] == [
        "FED-Turn, rated by people", "conture_turn, rated by GPT-4", "fed_dial, rated by people",
        "fed_dial, rated by GPT-4", "persona_usr, rated by people", "persona_usr, rated by GPT-4",
    ]  # fmt: skip
    value = value_of("judge-turn", "persona_usr", "gpt-4", "specificity")
    rows = rows_of(found, "persona_usr, rated by GPT-4")
    assert ["Judge", f"{value:.3f} [{value - 0.1:.2f}, {value + 0.1:.2f}]"] in rows
    assert "persona_usr, FED-Turn, fed_dial, scores of 80.0% of the rated items: Word F1" in found.notes
    more = correlations_document(
        frame, titles={}, not_run={}, order=["persona_usr", "fed_dial"], sampling=["Drawn"],
        needs={"f1": ["references"]}, **GIVEN,
    )  # fmt: skip
    assert [section.title.split(",")[0] for section in more.sections] == [
        "persona_usr", "persona_usr", "fed_dial", "fed_dial", "conture_turn", "fed_turn",
    ]  # fmt: skip
    assert "Drawn" in more.notes
    assert any(note.endswith("Word F1 (the others have no references)") for note in more.notes)
    tidy = found.tidy.set_index(["dataset", "source", "metric"])
    assert tidy.loc[("fed_dial", "human", "judge-dial"), "ovr_kendall"] == 0.5
    assert pd.isna(tidy.loc[("fed_dial", "gpt-4", "judge-dial"), "ovr_kendall"])
    assert tidy.loc[("persona_usr", "gpt-4", "judge-turn"), "spe"] == pytest.approx(value)
    assert pd.isna(tidy.loc[("persona_usr", "gpt-4", "judge-turn"), "rel"])


@pytest.mark.parametrize("number", ["2", "3", "4", "5", "6"])
def test_numbered_tables_are_made_beside_the_reported_values(frame, root, tmp_path, number):
    table, stem = tmp_path / "correlations.parquet", tmp_path / "made"
    schema.write(table, frame, "dimension_correlations")
    reported = root / f"src/comperdial/studies/llm_evaluators/{'rankings' if number == '4' else 'correlations'}.csv"
    said = {"not_run": {}, "not_asked": [], "needs": {}, "titles": {}, "number": number}
    said |= {"outputs": ["f1:f1"], "labels": LABELS, "recorded": ["gpt-4_fed"]}
    said["ensembles"] = {"models": {"pair": ["judge-dial", "f1:f1"]}}
    make("studies.llm_evaluators.tables:numbered", stem, {"correlations": table, "reported": reported}, **said)
    for suffix in (".md", ".tex", ".html", ".csv"):
        assert stem.with_suffix(suffix).stat().st_size > 0, suffix
    if number == "3":
        text = stem.with_suffix(".md").read_text()
        assert "| GPT-4 | reported | 0.760 | 0.689 | 0.534 | 0.620 | 0.744 | 0.669 |" in text
        assert "is the Spearman of its recorded rounds" in text
        schema.write(table, frame.iloc[:0], "dimension_correlations")
        with pytest.raises(SchemaError, match="the table is empty"):
            make("studies.llm_evaluators.tables:numbered", stem, {"correlations": table, "reported": reported}, **said)
