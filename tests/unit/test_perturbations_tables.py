"""Data sets of pairs made of data sets: which originals, which histories, which rows, and the command."""

from __future__ import annotations

import argparse
import itertools
import re

import pandas as pd
import pytest

from comperdial import schema
from comperdial.cli import perturb as command
from comperdial.core.errors import ConfigError, SchemaError, UnknownNameError
from comperdial.data import wordnet
from comperdial.perturbations import PERTURBATIONS, create, generated, perturb

STRATEGIES = [name for name in generated() if name != "paraphrase"]
USER = ("Hello there.", "Do you fish in May?", "Where do you live?", "I see. Bye!")
SAID = {
    "bot-a": ("Hi, how are you?", "Yes, I often fish in the river.", "I live in Oslo.", "Goodbye, it was nice."),
    "bot-b": ("Good day to you.", "No, I don't like water.", "In Rome, with two cats.", "Thank you, see you soon."),
}


def write(folder, *, own, ratings=True, dialogues=4):
    """Write a data set: of each dialogue, two systems and a reference; histories of their own, or the reference's."""
    contexts, responses, rated = [], [], []
    for number in range(dialogues):
        for system, said in (*SAID.items(), ("gold", tuple(f"Gold {number} says {k}." for k in range(4)))):
            if own and system == "gold":
                continue
            for turn in range(4):
                heard = said if own else tuple(f"Gold {number} says {k}." for k in range(4))
                history = [("U", f"{USER[0]} {number}")]
                for place in range(turn):
                    text = f"{heard[place]} {number}" if own else heard[place]
                    history += [("B", text), ("U", f"{USER[place + 1]} {number}")]
                context = f"d{number}-{system if own else 'all'}-{turn}"
                row = {"dataset": "made", "context_id": context, "dialogue_id": f"d{number}-{system if own else 'all'}"}
                row |= {"turn": turn, "history": [{"speaker": s, "text": t} for s, t in history]}
                contexts.append(row | {"references": [f"Gold {number} says {turn}."], "facts": [f"fact {turn}"]})
                responses.append(
                    {
                        "dataset": "made",
                        "context_id": context,
                        "system_id": system,
                        "response": f"{said[turn]} {number}",
                    }
                )
                rated.append(("made", context, system, number + (system == "bot-a")))
    kinds = {"bot-a": "agent", "bot-b": "human", "gold": "reference"}
    systems = [
        {"dataset": "made", "system_id": s, "kind": k, "track": None, "description": ""} for s, k in kinds.items()
    ]
    personas = [
        {"dataset": "made", "dialogue_id": d, "speaker": "U", "sentences": ["i fish."], "kinds": ["other"]}
        for d in sorted({row["dialogue_id"] for row in contexts})
    ]
    frame = pd.DataFrame(contexts).drop_duplicates("context_id")
    frames = {"systems": pd.DataFrame(systems), "contexts": frame, "responses": pd.DataFrame(responses)}
    frames["personas"] = pd.DataFrame(personas)
    if ratings:
        columns = ["dataset", "item_id", "system_id", "rating"]
        table = pd.DataFrame(rated, columns=columns).assign(
            level="turn",
            annotator_id="a",
            position=None,
            dimension="Overall",
            scale_min=0.0,
            scale_max=9.0,
            source="human",
        )
        frames["ratings"] = table.astype({"rating": float})
    for name, table in frames.items():
        schema.write(folder / f"{name}.parquet", table, name)
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return write(tmp_path_factory.mktemp("own"), own=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return write(tmp_path_factory.mktemp("recorded"), own=False)


def rows(made, pair, system):
    tables = made.tables["contexts"].merge(made.tables["responses"], on=["dataset", "context_id"])
    chosen = tables[(tables["dialogue_id"] == pair) & (tables["system_id"] == system)]
    return chosen.sort_values("turn").to_dict("records")


@pytest.mark.parametrize("folder", ["own", "recorded"])
def test_pairs_differ_and_have_the_contract_s_form(folder, request):
    made = perturb(request.getfixturevalue(folder), "made_perturbed", STRATEGIES, 3, 7, good=False)
    for name, frame in made.tables.items():
        schema.validate(frame, name)
    assert set(made.counts) == set(STRATEGIES)
    assert {name for name, count in made.counts.items() if count.pairs < 3} == set()
    assert made.tables["ratings"].empty
    assert set(made.tables["responses"]["dataset"]) == {"made_perturbed"}
    assert not set(made.pairs["source_system_id"]) & {"gold"}
    for pair in made.pairs.to_dict("records"):
        name = pair["dialogue_id"].rpartition("-")[0]
        assert name == pair["perturbation"] and len(pair["dialogue_id"].rpartition("-")[2]) >= 4
        old, new = rows(made, pair["dialogue_id"], "original"), rows(made, pair["dialogue_id"], "perturbed")
        assert len(old) == len(new) == (1 if PERTURBATIONS[name].level == "turn" else 4)
        assert [row["context_id"] for row in new] == [f"{pair['dialogue_id']}-perturbed-{row['turn']}" for row in new]
        assert any(
            a["response"] != b["response"] or a["history"] != b["history"] for a, b in zip(old, new, strict=True)
        )
        assert [row["facts"] for row in old] == [row["facts"] for row in new]
        # A reference is never on one side alone.
        assert [row["references"] for row in old] == [row["references"] for row in new]
        if folder == "recorded":
            assert [row["history"] for row in old] == [row["history"] for row in new]
            assert all(row["references"] for row in new)
    personas = made.tables["personas"]
    assert sorted(personas["dialogue_id"]) == sorted(made.pairs["dialogue_id"])


def test_histories_of_a_system_s_own_are_rebuilt(own):
    made = perturb(own, "x", ["order_shuffle", "duplication"], 2, 1, good=False)
    for pair in made.pairs["dialogue_id"]:
        old, new = rows(made, pair, "original"), rows(made, pair, "perturbed")
        said = [[*(u["text"] for u in row["history"]), row["response"]] for row in new]
        for shorter, longer in itertools.pairwise(said):
            assert longer[: len(shorter)] == shorter
        speakers = [[u["speaker"] for u in row["history"]] for row in new]
        assert speakers == [[u["speaker"] for u in row["history"]] for row in old]
        if pair.startswith("order"):
            before = [*(u["text"] for u in old[-1]["history"]), old[-1]["response"]]
            assert sorted(said[-1]) == sorted(before) and said[-1] != before
        else:
            # Only the first history holds nothing that the system said.
            assert [bool(row["references"]) for row in new] == [True, False, False, False]


def test_originals_are_the_good_ones(own):
    # Ratings: the dialogue's number, one more for bot-a; the median is 2.
    made = perturb(own, "x", ["repetition", "duplication"], 100, 1)
    assert {pair: count.items for pair, count in made.counts.items()} == {"repetition": 12, "duplication": 3}
    sources = set(made.pairs["source_dialogue_id"])
    assert sources == {"d2-bot-a", "d3-bot-a", "d3-bot-b"}
    assert perturb(own, "x", ["repetition"], 100, 1, good=False).counts["repetition"].items == 32


def test_all_are_drawn_from_where_nobody_rated(tmp_path):
    made = perturb(write(tmp_path, own=True, ratings=False), "x", ["repetition"], 100, 1)
    assert made.counts["repetition"].pairs == 32


def test_an_item_s_text_depends_on_the_seed_alone(own):
    def texts(made, name):
        found = made.pairs[made.pairs["perturbation"] == name]
        keys = zip(found["source_context_id"], found["source_system_id"], strict=True)
        return {
            key: rows(made, pair, "perturbed")[0]["response"]
            for key, pair in zip(keys, found["dialogue_id"], strict=True)
        }

    alone = texts(perturb(own, "x", ["pronouns"], 4, 5), "pronouns")
    together = texts(perturb(own, "x", ["repetition", "pronouns", "entities"], 9, 5), "pronouns")
    assert len(alone) == 4 and alone.items() <= together.items()
    other = texts(perturb(own, "x", ["repetition"], 9, 6), "repetition")
    assert other != texts(perturb(own, "x", ["repetition"], 9, 5), "repetition")


def test_what_cannot_be_changed_gives_no_pair_and_is_counted(tmp_path):
    folder = write(tmp_path, own=True, ratings=False, dialogues=1)
    responses = schema.read(folder / "responses.parquet", "responses")
    responses.loc[responses["system_id"] == "bot-a", "response"] = "Nice!"
    schema.write(folder / "responses.parquet", responses, "responses")
    count = perturb(folder, "x", ["pronouns"], 10, 1).counts["pronouns"]
    assert (count.items, count.pairs + count.unchanged) == (8, 8) and count.unchanged >= 4


def test_mistakes_are_named(own, tmp_path):
    with pytest.raises(UnknownNameError, match="pronouns"):
        perturb(own, "x", ["pronoun"])
    with pytest.raises(ConfigError, match="sample of at least 1"):
        perturb(own, "x", ["pronouns"], 0)
    folder = write(tmp_path, own=True, dialogues=1)
    contexts = schema.read(folder / "contexts.parquet", "contexts")
    schema.write(folder / "contexts.parquet", contexts.iloc[1:], "contexts")
    with pytest.raises(SchemaError, match="'d0-bot-a-0'"):
        perturb(folder, "x", ["pronouns"])


@pytest.mark.parametrize(
    ("name", "returned", "said"),
    [
        (
            "order_shuffle",
            ["one"],
            r"d0-bot-a-0, bot-a: strategy 'order_shuffle' returned 1 texts; expected .*\b8 texts",
        ),
        ("order_shuffle", "one", "strategy 'order_shuffle' returned str; expected"),
        ("order_shuffle", [None] * 8, "strategy 'order_shuffle' returned NoneType"),
        ("repetition", ["one"], "strategy 'repetition' returned list; expected one text or None"),
        ("repetition", 7, "strategy 'repetition' returned int"),
    ],
)
def test_what_a_strategy_must_not_return_is_refused(name, returned, said, tmp_path, monkeypatch):
    folder = write(tmp_path, own=True, ratings=False, dialogues=1)
    responses = schema.read(folder / "responses.parquet", "responses")
    schema.write(folder / "responses.parquet", responses[responses["system_id"] == "bot-a"], "responses")
    kind = type(create(name))
    monkeypatch.setattr(kind, "change", lambda *_: returned)
    if name == "repetition":
        said = f"bot-a: {said}"
    with pytest.raises(ConfigError, match=said):
        perturb(folder, "x", [name], 1, 1)


@pytest.mark.parametrize("name", ["contexts", "responses", "systems"])
def test_empty_tables_are_refused(name, tmp_path):
    folder = write(tmp_path, own=True, dialogues=1)
    path = folder / f"{name}.parquet"
    schema.write(path, schema.empty(name), name)
    with pytest.raises(SchemaError, match=f"{re.escape(str(path))}: the table is empty"):
        perturb(folder, "x", ["pronouns"])


def test_a_data_set_of_references_alone_is_refused(tmp_path):
    folder = write(tmp_path, own=False, dialogues=1)
    responses = schema.read(folder / "responses.parquet", "responses")
    schema.write(folder / "responses.parquet", responses[responses["system_id"] == "gold"], "responses")
    with pytest.raises(SchemaError, match="all responses are of systems of kind 'reference'"):
        perturb(folder, "x", ["pronouns"])


@pytest.mark.parametrize("name", ["a b/c", "", "x.y", "x\n", "é"])
def test_names_that_no_folder_should_have_are_refused(name, own):
    with pytest.raises(ConfigError, match="data set name"):
        perturb(own, name, ["pronouns"], 1)


def test_the_command_names_what_cannot_run_here(own, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(wordnet, "locate", lambda: None)
    parsed("perturb", own, "--dataset", "new-1_a", "--sample", 1, "--output", tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [*STRATEGIES, "paraphrase"]
    assert lines[-1].startswith("paraphrase: left out: WordNet is not on this machine")
    assert "paraphrase" not in set(pd.read_csv(tmp_path / "pairs.csv")["perturbation"])


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    command.add_commands(parser.add_subparsers())
    options = parser.parse_args(list(map(str, arguments)))
    return options.run(options)


def test_commands(own, tmp_path, capsys):
    arguments = ("perturb", own, "--dataset", "new", "--strategy", "repetition", "--sample", 2, "--seed", 3)
    parsed(*arguments, "--output", tmp_path / "a")
    parsed(*arguments, "--output", tmp_path / "b")
    assert "repetition: 2 pairs" in capsys.readouterr().out
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == [
        *("contexts.parquet", "pairs.csv", "personas.parquet", "responses.parquet"),
        *("systems.parquet", "ratings.parquet"),
    ]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert len(schema.read(tmp_path / "a" / "responses.parquet", "responses")) == 4
    parsed("perturbations")
    listed = capsys.readouterr().out
    assert all(f"{name} ({entry.short}" in listed for name, entry in PERTURBATIONS.items())
    assert listed.count("recorded pairs only") == 5


def test_the_command_writes_over_no_other_data_set(own, tmp_path):
    before = (own / "systems.parquet").read_bytes()
    with pytest.raises(ConfigError, match="holds the tables that are perturbed"):
        parsed("perturb", own, "--dataset", "new", "--sample", 1, "--output", own)
    others = tmp_path / "others"
    parsed("perturb", own, "--dataset", "one", "--strategy", "repetition", "--sample", 1, "--output", others)
    with pytest.raises(ConfigError, match="holds the tables of one"):
        parsed("perturb", own, "--dataset", "two", "--strategy", "repetition", "--sample", 1, "--output", others)
    parsed("perturb", own, "--dataset", "one", "--strategy", "repetition", "--sample", 2, "--output", others)
    assert (own / "systems.parquet").read_bytes() == before
