"""ComperDial's descriptive tables: cells typed from the paper, counts of ours that are invented."""

import itertools

import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.errors import ComperdialError
from comperdial.core.files import read_table
from comperdial.report import document
from comperdial.studies.comperdial.benchmarks import benchmarks_document, count_tables, counts_document
from comperdial.studies.comperdial.personas import ages_document, example_document, family_document, names_document


@pytest.fixture(scope="module")
def benchmarks(root):
    return read_table(root / "src/comperdial/studies/comperdial/benchmarks.csv")


@pytest.fixture(scope="module")
def counts(root):
    return read_table(root / "src/comperdial/studies/comperdial/annotation_counts.csv")


def ours(*rows):
    return pd.DataFrame(rows, columns=["dataset", "title", "turn", "dialogue", "system"])


def by_label(section, labels):
    return {tuple(row[:labels]): list(row[labels:]) for row in section.rows}


# Table 1, Table 7


def test_the_benchmarks_of_table_7(benchmarks):
    made = benchmarks_document(benchmarks)
    table, collection = made.sections
    assert [name for _, name in table.columns[2:]] == ["USR", "Zhao et al.", "RADE", "FED", "ComperDial"]
    assert by_label(table, 2) == {
        ("Dialogue dataset", "Persona Chat"): ["yes", "yes", "yes", "–", "–"],
        ("Dialogue dataset", "Topical Chat"): ["yes", "–", "–", "–", "–"],
        ("Dialogue dataset", "Daily Dialogue"): ["–", "yes", "–", "–", "–"],
        ("Dialogue dataset", "Empathetic Dialogue"): ["–", "–", "yes", "–", "–"],
        ("Dialogue dataset", "DSTC-ChitChat"): ["–", "–", "yes", "–", "–"],
        ("Dialogue dataset", "Newly created"): ["–", "–", "–", "yes", "yes"],
        ("Response collection", "Dialogue models"): ["4(3)", "6", "7", "2", "97"],
        ("Response collection", "Humans"): ["–", "–", "–", "2", "2"],
        ("Evaluation technique", "Turn level"): ["yes"] * 5,
        ("Evaluation technique", "Dialogue level, interactive"): ["–", "–", "–", "yes", "–"],
        ("Evaluation technique", "Dialogue level, static"): ["–", "–", "–", "–", "yes"],
    }
    assert by_label(collection, 1)["Human workers who wrote the dialogues, in pairs",] == ["section 3.2.1", "40"]
    notes = "\n".join(made.notes)
    assert "the abstract calls all of them dialogue agents" in notes
    assert "250 dialogues; the dataset card speaks of 100" in notes
    assert len(set(made.notes)) == len(made.notes)


def test_every_fact_has_a_known_source(root, benchmarks, counts):
    known = set(read_table(root / "studies/usr/sources.csv")["source"])
    assert set(benchmarks["source"]) | set(counts["source"]) <= known


# Table 8


def test_the_counts_of_table_8(counts):
    made = counts_document(counts, ours())
    reported = {key: [row[1], row[4], row[7]] for key, row in by_label(made.sections[0], 2).items()}
    assert reported == {
        ("USR", "Persona Chat"): ["300", "N/A", "4"],
        ("USR", "Topical Chat"): ["360", "N/A", "3"],
        ("Zhao et al.", "Persona Chat"): ["900", "N/A", "6"],
        ("Zhao et al.", "Daily Dialogue"): ["900", "N/A", "6"],
        ("RADE", "Persona Chat"): ["4000", "N/A", "7"],
        ("RADE", "Empathetic Dialogue"): ["4022", "N/A", "7"],
        ("RADE", "DSTC-ChitChat"): ["2090", "N/A", "7"],
        ("FED", "Newly created"): ["372", "124", "3"],
        ("ComperDial", "Newly created"): ["10395", "1485", "99"],
    }
    assert all({row[4], row[5], row[7], row[8]} == {"–"} for row in made.sections[0].rows)
    notes = "\n".join(made.notes)
    assert "FED, Newly created: the public file has 375 turns and 125 dialogues" in notes
    assert "may stand in each other's place" in notes


def test_our_counts_stand_beside_the_reported_ones(counts):
    mine = ours(
        ("usr_topical", "USR-Topical", 300, None, 5),
        ("fed", "FED", 375, 125, 3),
        ("comperdial", "ComperDial (simulated)", 10395, 1485, 99),
        ("mine", "My own", 12, 3, 2),
    ).assign(references=[60, 0, 0, 0])
    made = counts_document(counts, mine, "SIMULATED for ComperDial.")
    rows = by_label(made.sections[0], 2)
    assert rows["USR", "Topical Chat"] == ["USR-Topical", "360", "300", "-60", "N/A", "N/A", "–", "3", "5", "+2"]
    assert rows["FED", "Newly created"] == ["FED", "372", "375", "+3", "124", "125", "+1", "3", "3", "0"]
    assert rows["ComperDial", "Newly created"][1:] == ["10395"] * 2 + ["0"] + ["1485"] * 2 + ["0", "99", "99", "0"]
    assert rows["My own", "–"] == ["My own", "–", "12", "–", "–", "3", "–", "–", "2", "–"]
    for note in (
        "USR, Topical Chat, turn level: 300 counted, 360 reported",
        "USR, Topical Chat: 60 rated references are not in our count of turns",
        "FED, Newly created, dialogue level: 125 counted, 124 reported",
    ):
        assert note in made.notes
    assert made.caption.endswith(" SIMULATED for ComperDial.")
    cell = made.tidy.query("dataset == 'usr_topical' and level == 'turn'").iloc[0]
    assert (cell["reported"], cell["ours"], cell["difference"]) == (360, 300, -60)
    assert made.tidy.query("dataset == 'usr_topical' and level == 'dialogue'")["ours"].isna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c, m: (c.assign(turn="many"), m), "the count is 'many'"),
        (lambda c, m: (c, pd.concat([m, m])), "two counts of one dataset"),
    ],
)
def test_wrong_counts(counts, change, message):
    with pytest.raises(ComperdialError, match=message):
        counts_document(*change(counts, ours(("fed", "FED", 375, 125, 3))))


def write_tables(folder, *, dialogues=True, system="agent"):
    rating = {"dataset": "d", "dimension": "Overall", "rating": 3, "scale_min": 1, "scale_max": 5, "position": None}
    kinds = {"agent": "agent", "person": "human", "gold": "reference", "idle": "agent"}
    systems = [{"dataset": "d", "system_id": s, "kind": k, "track": None, "description": ""} for s, k in kinds.items()]
    schema.write(folder / "systems.parquet", pd.DataFrame(systems), "systems")
    turns = [
        rating | {"level": "turn", "item_id": f"c{c}", "system_id": s, "annotator_id": a, "source": source}
        for c, s, (a, source) in itertools.product(
            range(3), (system, "person", "gold"), (("ann", "human"), ("bob", "human"), ("gpt", "judge"))
        )
    ]
    turns.append(
        rating | {"level": "turn", "item_id": "c9", "system_id": "idle", "annotator_id": "gpt", "source": "judge"}
    )
    if dialogues:
        turns += [
            rating | {"level": "dialogue", "item_id": "x", "system_id": s, "annotator_id": a, "source": "human"}
            for s, a in itertools.product((system, "person"), ("ann", "bob"))
        ]
    schema.write(folder / "ratings.parquet", pd.DataFrame(turns), "ratings")


def test_tables_are_counted_without_references_and_without_other_sources(tmp_path):
    write_tables(tmp_path)
    people = {"turn": 6, "dialogue": 2, "system": 2, "agents": 1, "humans": 1, "references": 3}
    assert count_tables(tmp_path) == people
    assert count_tables(tmp_path, source="judge") == people | {"turn": 7, "dialogue": 0, "system": 3, "agents": 2}


def test_a_dataset_without_ratings_of_dialogues(tmp_path):
    write_tables(tmp_path, dialogues=False)
    assert count_tables(tmp_path)["dialogue"] is None


def test_ratings_of_a_system_that_is_not_there(tmp_path):
    write_tables(tmp_path, system="ghost")
    with pytest.raises(ComperdialError, match="ratings of 'ghost'"):
        count_tables(tmp_path)


def test_the_real_usr_files_are_counted(usr_tables, tmp_path):
    expected = {"usr_persona": (240, 4, 60), "usr_topical": (300, 5, 60)}
    for dataset, (turns, systems, references) in expected.items():
        for name in ("systems", "ratings"):
            schema.write(tmp_path / dataset / f"{name}.parquet", usr_tables[dataset][name], name)
        found = count_tables(tmp_path / dataset)
        assert (found["turn"], found["dialogue"], found["system"]) == (turns, None, systems)
        assert found["references"] == references


# Tables 9, 10 and 11


def test_names_by_decade():
    rows = [
        *((2018, 0, "male", name) for name in ("Liam", "Noah", "William")),
        *((2018, 0, "female", name) for name in ("Emma", "Olivia", "Ava")),
        *((1970, 50, "male", name) for name in ("Michael", "James", "David")),
        *((1970, 50, "female", name) for name in ("Jennifer", "Lisa", "Kimberly")),
    ]
    names = pd.DataFrame(rows, columns=["decade", "generation", "gender", "name"])
    assert names_document(names).sections[0].rows == [
        ["2018", "0", "Liam, Noah, William", "Emma, Olivia, Ava"],
        ["1970", "50", "Michael, James, David", "Jennifer, Lisa, Kimberly"],
    ]
    assert names_document(names).notes == []
    mixed = names.assign(source=["paper"] * 10 + ["ours"] * 2)
    assert names_document(mixed).notes == ["The paper prints 10 of these 12 names; the rest is ours"]
    with pytest.raises(ComperdialError, match="unknown gender 'mal'"):
        names_document(names.assign(gender="mal"))


def test_family_and_ages():
    family = pd.DataFrame(
        [("I have <n> sons.", 20, 50), ("My son was recently born.", 20, 40)],
        columns=["family_info", "start_age", "end_age"],
    )
    made = family_document(family)
    assert made.sections[0].rows == [["I have <n> sons.", "20", "50"], ["My son was recently born.", "20", "40"]]
    assert made.sections[0].columns == [("", "Family information"), ("Age", "from"), ("Age", "to")]
    ages = pd.DataFrame([("i am a nurse", "20", "50")], columns=["head", "start_age", "end_age"])
    assert ages_document(ages).sections[0].rows == [["i am a nurse", "20", "50"]]
    with pytest.raises(ComperdialError, match="no column head"):
        ages_document(family)


# Tables 2 and 12


def example(sentences=(7, 3), turns=3):
    said = [{"speaker": "AB"[n % 2], "text": f"utterance number {n + 1}"} for n in range(2 * turns)]
    contexts = [
        {
            "dataset": "d", "context_id": f"x-{t}", "dialogue_id": "x", "turn": t, "history": said[: 2 * t + 1],
            "references": [said[2 * t + 1]["text"]], "facts": [],
        }
        for t in range(turns)
    ]  # fmt: skip
    personas = [
        {"dataset": "d", "dialogue_id": "x", "speaker": s, "sentences": [f"{s} says {n}" for n in range(count)]}
        for s, count in zip("AB", sentences, strict=True)
    ]
    return pd.DataFrame(contexts[::-1]), pd.DataFrame(personas)


def test_a_dialogue_in_two_lengths():
    made = example_document(*example(), "x", "SIMULATED data.")
    short, full = made.sections
    assert [name for _, name in short.columns] == ["Part", "Person A", "Person B"]
    assert short.rows[:6] == [
        ["persona 1", "A says 0", "B says 0"],
        ["persona 2", "A says 1", "B says 1"],
        ["persona 3", "A says 2", "B says 2"],
        ["persona 4", "A says 3", ""],
        ["persona 5", "A says 4", ""],
        ["", "…", ""],
    ]
    assert short.rows[-2:] == [["utterance 5", "utterance number 5", ""], ["", "…", "…"]]
    assert len(full.rows) == 7 + 6
    assert full.rows[-1] == ["utterance 6", "", "utterance number 6"]
    assert made.caption.endswith("(x). SIMULATED data.")
    assert made.tidy["text"].tolist()[-6:] == [f"utterance number {n}" for n in range(1, 7)]


def test_a_long_utterance_goes_on_in_the_next_row():
    contexts, personas = example(turns=1)
    contexts.at[0, "references"] = ["word " * 20, "another"]
    made = example_document(contexts, personas, "x")
    rows = made.sections[1].rows[-2:]
    assert [row[0] for row in rows] == ["utterance 2", ""]
    assert " ".join(row[2] for row in rows) == ("word " * 20).strip()
    assert "The first of 2 references is shown" in made.notes


def test_an_unknown_dialogue():
    with pytest.raises(ComperdialError, match="unknown dialogue 'y'"):
        example_document(*example(), "y")


def test_every_table_can_be_written(tmp_path, benchmarks, counts):
    for name, made in {
        "benchmarks": benchmarks_document(benchmarks),
        "counts": counts_document(counts, ours(("fed", "FED", 375, 125, 3))),
        "example": example_document(*example(), "x"),
    }.items():
        document.write(made, tmp_path / name)
        assert all((tmp_path / name).with_suffix(suffix).stat().st_size for suffix in (".md", ".tex", ".html", ".csv"))
        for section in made.sections:
            assert {len(row) for row in section.rows} == {len(section.columns)}
