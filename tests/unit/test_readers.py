"""The catalogue's formats, each in a small file written by hand; the real files: tests/golden."""

import io
import json
import zipfile
from itertools import combinations

import pytest

from comperdial import schema
from comperdial.core.errors import SchemaError
from comperdial.data import readers
from comperdial.data.readers import ieval, llmbar, llmfao, spot_the_bot, topical_chat


def write(folder, **contents):
    """Write files by role: bytes and texts as they are, lists of tuples as lines with tabs, all else as JSON."""
    files = {}
    for role, content in contents.items():
        files[role] = folder / role
        if isinstance(content, list) and content and isinstance(content[0], tuple):
            content = "".join("\t".join(line) + "\n" for line in content)
        if not isinstance(content, bytes | str):
            content = json.dumps(content)
        files[role].write_bytes(content.encode() if isinstance(content, str) else content)
    return files


@pytest.fixture
def read(tmp_path):
    """Return a function: a reader's name and its files' contents -> its tables, which have been written and read."""

    def tables(reader, **contents):
        found = readers.read(reader, "mini", write(tmp_path, **contents))
        for name, frame in found.items():
            schema.write(tmp_path / f"{name}.parquet", frame, name)
            assert len(schema.read(tmp_path / f"{name}.parquet", name)) == len(frame)
        return found

    return tables


def contexts_of(tables):
    return tables["contexts"].set_index("context_id")


def texts_of(history):
    return [(utterance["speaker"], utterance["text"]) for utterance in history]


def ratings_of(tables, **where):
    found = tables["ratings"]
    for column, value in where.items():
        found = found[found[column] == value]
    return found.set_index(["item_id", "system_id", "annotator_id"])["rating"].to_dict()


@pytest.mark.parametrize(
    ("reader", "role", "content"),
    [
        ("usr", "ratings", [{"context": "hello"}]),
        ("hazumi", "one", "no XML"),
        ("spot_the_bot", "convai2", "no archive"),
    ],
)
def test_unexpected_file_gives_one_message(tmp_path, reader, role, content):
    with pytest.raises(SchemaError, match=rf"{role}: .*; expected (files of the format '{reader}'|at least one)"):
        readers.read(reader, "mini", write(tmp_path, **{role: content}))


# Zhang et al. 2024: single responses

DIMENSIONS = ("relevance", "specificity", "interestingness", "understandability", "overall")


def turn_files(lines, key, **values):
    numbers = {dimension: {"other": [1], key: values.get(dimension, [1.0] * len(lines))} for dimension in DIMENSIONS}
    return {"texts": lines, **numbers}


def test_zhao_slots_are_systems_and_truth_is_reference_for_others(read):
    lines = [
        (f"PERSONAZHAO-{6 * number + slot:06d}", "Hello.", f"Topic {number}?", f"Answer {number}.{slot}")
        for number in range(2)
        for slot in range(6)
    ]
    tables = read("comp_turns", **turn_files(lines, "persona-zhao", overall=[1 + place / 4 for place in range(12)]))
    assert tables["systems"]["kind"].tolist() == ["human", *["agent"] * 5]
    assert "negative" in tables["systems"]["description"].iloc[5]
    contexts = contexts_of(tables)
    assert sorted(contexts.index) == ["mini-0000", "mini-0000-truth", "mini-0001", "mini-0001-truth"]
    assert (contexts["references"]["mini-0001"], contexts["references"]["mini-0001-truth"]) == (["Answer 1.0"], [])
    assert texts_of(contexts["history"]["mini-0001"]) == [("B", "Hello."), ("A", "Topic 1?")]
    people, machine = ratings_of(tables, source="human"), tables["ratings"].query("source == 'gpt-4'")
    assert len(people) == 12 and set(machine["dimension"]) == {*DIMENSIONS} - {"overall"}
    assert people["mini-0001-truth", "slot-0", "mean"] == 2.5
    assert people["mini-0001", "slot-5", "mean"] == 3.75


# Zhang et al. 2024: whole dialogues

SHORT = {"coherence": "coh", "diversity": "div", "engagingness": "eng", "informativeness": "inf", "overall": "ovr"}


def rounds(count, **changes):
    """Return five rounds; round r of dialogue d has 1 + (d + r) % 5 of every dimension."""
    made = {f"{s}_{n}": [float(1 + (d + n - 1) % 5) for d in range(count)] for s in SHORT.values() for n in range(1, 6)}
    return made | changes


def test_fed_dialogues(read):
    lines = [
        ("FEDDIAL-000000", "human: Hi!", "model: Hello.", "human: So?", "model: model: it is a label.", "human: Bye."),
        ("FEDDIAL-000001", "human: Hi!", "model: Good day."),
        ("FEDDIAL-000002", "human: Oh", "model: <EMPTY>", "human: What?", "model: Sorry."),
    ]
    names = ("Coherent", "Likeable", "Diverse", "Informative", "Overall")
    people = [
        {"model": model, "annotations": {name: [0, 1, 2, number] for name in names}}
        for number, model in enumerate(("Meena", "Human", "Mitsuku"))
    ]
    tables = read("comp_dialogues", texts=lines, rounds=rounds(3), ratings=people)
    assert tables["responses"][["context_id", "system_id", "response"]].to_numpy().tolist() == [
        ["mini-0000-0", "Meena", "Hello."],
        ["mini-0000-1", "Meena", "model: it is a label."],
        ["mini-0001-0", "Human", "Good day."],
        ["mini-0002-1", "Mitsuku", "Sorry."],
    ]
    assert tables["systems"]["kind"].tolist() == ["agent", "human", "agent"]
    contexts = contexts_of(tables)
    assert texts_of(contexts["history"]["mini-0000-1"]) == [("A", "Hi!"), ("B", "Hello."), ("A", "So?")]
    # An empty turn of the chatbot is neither response nor history, but it counts.
    assert contexts["turn"]["mini-0002-1"] == 1
    assert texts_of(contexts["history"]["mini-0002-1"]) == [("A", "Oh"), ("A", "What?")]
    machine, human = (ratings_of(tables, source=source, dimension="overall") for source in ("gpt-4", "human"))
    assert (len(machine), len(human), machine["mini-0001", "Human", "round-5"]) == (3 * 5, 3 * 4, 1)
    assert [human["mini-0002", "Mitsuku", f"annotator-{number}"] for number in (1, 2, 3, 4)] == [0, 1, 2, 2]
    scales = tables["ratings"].query("source == 'human'").groupby("dimension")["scale_max"].first()
    assert scales.to_dict() == {**dict.fromkeys(SHORT, 2), "overall": 4}


def test_only_rated_dialogues_are_read_and_ieval_colours_are_systems(read):
    lines = [(f"IEVAL-{number:06d}", "B: Hi!", "A: Hi!", f"B: {number}") for number in range(9)]
    tables = read("comp_dialogues", texts=lines, rounds=rounds(3, indices=[6, 8, 1]))
    found = tables["responses"].set_index("context_id").sort_index()
    assert found["response"].tolist() == ["Hi!", "1", "Hi!", "6", "Hi!", "8"]
    assert found["system_id"].tolist()[1::2] == ["Purple", "Green", "Pink"]
    overall = ratings_of(tables, dimension="overall", annotator_id="round-1")
    assert [overall[f"mini-000{line}", system, "round-1"] for line, system in ((6, "Green"), (8, "Pink"))] == [1, 2]
    assert contexts_of(tables)["history"]["mini-0006-0"] == []


def test_hazumi_xml_cannot_include_files(tmp_path):
    (tmp_path / "secret").write_text("secret")
    head = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
    with pytest.raises(SchemaError, match="DTDForbidden"):
        readers.read("hazumi", "mini", write(tmp_path, one=f"{head}<ANNOTATION_DOCUMENT/>"))


def convai(number):
    said = [("Bot", "yo", None), ("Human", "hi", None), ("Bot", "tea?", 1), ("Human", "yes", None), ("Bot", "ok", 0)]
    names = {"Human": "participant1", "Bot": "participant2"}
    return {
        "dialog": [{"sender": names[who], "text": text, "evaluation_score": mark} for who, text, mark in said],
        "start_time": f"2018-07-{number:02d} 10:00:00",
        "bot_profile": ["i am a bot."],
        "user_profile": ["i like tea.", " "],
        "eval_score": 4 if number % 2 else "",
        "participant1_id": {"class": "User", "user_id": f"User secret {number % 2}"},
        "participant2_id": {"class": "Bot", "user_id": "Bot 1"},
    }


def test_only_the_person_continues_a_bot_conversation(read):
    tables = read("convai2", any=[convai(number) for number in range(1, 11)])
    assert tables["continuations"].query("began == 0")["continued"].tolist() == [1, 0]
    assert set(tables["continuations"]["user_id"]) == {"1", "2"}
    assert tables["continuations"]["split"].value_counts().to_dict() == {"train": 14, "test": 4, "validation": 2}
    found = tables["ratings"].groupby("level")["rating"].agg(list)
    assert (found["dialogue"], found["turn"]) == ([4] * 5, [1, 0] * 10)
    personas = tables["personas"].set_index(["dialogue_id", "speaker"])["sentences"]
    assert (personas["mini-0001", "A"], personas["mini-0001", "B"]) == (["i like tea."], ["i am a bot."])
    assert set(tables["annotators"]["role"]) == {"interlocutor"}
    assert "secret" not in "".join(frame.to_json() for frame in tables.values())


def test_topical_chat_messages_are_rated_by_partner(tmp_path):
    messages = [("agent_1", "hi", ""), ("agent_2", "hello", "Good"), ("agent_1", "bye", "Poor")]
    content = [{"agent": who, "message": text, "turn_rating": rating} for who, text, rating in messages]
    files = write(
        tmp_path, one={"x": {"content": content}, "y": {"content": content[:1]}}, two={"z": {"content": content}}
    )
    found = topical_chat.conversations("mini", files)
    assert [(one.id, one.began, one.users["agent_2"]) for one in found] == [
        ("mini-0001", 0, "1-2"),
        ("mini-0002", 1, "2-2"),
    ]
    assert [utterance.rating for utterance in found[0].utterances] == [None, 4, 1]


# Preferences


def votes_of(tables):
    """Return the votes; their names are not of people, which a file may hold."""
    (frame,) = tables.values()
    assert "secret" not in frame.to_json()
    return frame[["pair_id", "first_system_id", "second_system_id", "annotator_id", "choice"]].to_numpy().tolist()


def test_ieval_rankings_are_votes(read, tmp_path):
    log = "- hi\n- hello\nthere\n- \n- bye"
    statements = {name: 2 if name in ieval.REVERSED else 4 for name in ieval.STATEMENTS}
    ranks = dict(zip(ieval.BOTS, (2, 3, 2, 1), strict=True))
    bots = {bot: {"Rating": rank, "chat_log": log, **statements} for bot, rank in ranks.items()}
    tables = read("ieval", ratings=[{"elapsed_sec": 60, "positive": bots, "negative": bots}])
    choices = ("second", "tie", "first", "first", "first", "first")
    assert votes_of(tables)[:6] == [
        [f"1-positive-{first}-{second}", first, second, "1", choice]
        for (first, second), choice in zip(combinations(ieval.BOTS, 2), choices, strict=True)
    ]
    files = {"ratings": tmp_path / "ratings"}
    spoken = (("person", "hi"), ("bot", "hello there"), ("person", "<EMPTY>"), ("bot", "bye"))
    assert ieval.dialogues(files)[0].utterances == spoken
    assert ieval.ratings(files).iloc[0].tolist() == ["1", "1-positive", "Green", 4, 60]


def test_llmbar_labels_are_votes(read, tmp_path):
    pairs = [
        {"input": "add", "output_1": "2", "output_2": "", "label": 1},
        {"input": "", "output_1": "a", "output_2": "b", "label": 2},
    ]
    assert [row[-1] for row in votes_of(read("llmbar", pairs=pairs))] == ["first", "second"]
    made = llmbar.dialogues({"pairs": tmp_path / "pairs"})
    assert [one.utterances for one in made][1:3] == [
        (("user", "add"), ("model", "<EMPTY>")), (("user", "<EMPTY>"), ("model", "a")),
    ]  # fmt: skip


def test_llmfao_workers_are_numbers_and_judges_are_sources(read, tmp_path):
    votes = [("p1", "left", "secret-x"), ("p1", "tie", "secret-y"), ("p2", "right", "secret-x")]
    lines = "".join(f"{prompt},0,{winner},GPT,Llama,{worker},1,2\n" for prompt, winner, worker in votes)
    judge = "id,prompt,winner,left,right\np1,0,left,GPT,Llama\n"
    answer = {"prompt": 0, "text": "Hi", "model_x": 1, "result_x": " yo ", "result_y": ""}
    answers = "".join(json.dumps(answer | {"model_y": other}) + "\n" for other in (2, 3))
    crowd = f"id,prompt,winner,left,right,worker,model_x,model_y\n{lines}"
    tables = read("llmfao", crowd=crowd, gpt3=judge, gpt4=judge, answers=answers)
    assert [[row[0], *row[3:]] for row in votes_of(tables)] == [
        ["p1", "1", "first"], ["p1", "2", "tie"], ["p2", "1", "second"], ["p1", "gpt-3", "first"], ["p1", "gpt-4", "first"],
    ]  # fmt: skip
    assert set(tables["preferences"]["left"]) == {"first"}
    made = llmfao.dialogues({"crowd": tmp_path / "crowd", "answers": tmp_path / "answers"})
    assert [(one.system_id, one.utterances[1][1]) for one in made] == [("GPT", "yo"), ("Llama", "<EMPTY>")]


def test_spot_the_bot_judgements_are_votes_on_four_questions(read, tmp_path):
    names = {"system_type0": "model", "system_name0": "blender_90M", "system_type1": "lost", "system_name1": "lost"}
    said = {"convo": [{"id": "model", "text": "hi"}, {"id": "lost", "text": " "}]}
    chats = [{"_id": {"$oid": name}, "is_human0": name == "c2", **names, **said} for name in ("c1", "c2")]
    values = dict.fromkeys(("fluencyValue", "sensitivenessValue", "specificityValue"), True)
    sides = {
        f"entity{number}_annotation": {"decision_turn": 3, "is_human": is_human, **values}
        for number, is_human in enumerate((None, False))
    }
    judged = [
        {"convo_id": chat, "user_name": "secret", "elapsed_time": seconds, **sides}
        for chat, seconds in (("c1", 2500), ("c2", 1), ("c1", {"$numberLong": "1"}))
    ]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for kind, records in (("sampled", chats), ("annotated", judged)):
            archive.writestr(f"{kind}-dialogues-full-convai2.json", "".join(json.dumps(one) + "\n" for one in records))
    tables = read("spot_the_bot", convai2=packed.getvalue())
    assert votes_of(tables)[:2] == [["c1-3", "blender", "lost", "1", "first"], ["c1-3", "blender", "lost", "1", "tie"]]
    # Judged again; a chat of two people is none of systems.
    assert tables["preferences"]["pair_id"].unique().tolist() == ["c1-3", "c1-3-2"]
    assert tables["preferences"]["seconds"].dropna().tolist() == [2.5] * 4
    first, second = spot_the_bot.dialogues({"convai2": tmp_path / "convai2"})
    assert (first.judged, second.judged) == ("blender", "lost")
    assert first.utterances == (("blender", "hi"), ("lost", "<EMPTY>"))


def test_alt_test_questions_about_one_text_form_a_cluster(read, tmp_path):
    people = {"secret-b": {"t1__food": "yes", "t1__noise": "no"}, "secret-a": {"t2__food": "no"}}
    judged = {"t1__food": "yes", "t1__noise": "n/a", "t2__food": "no"}
    labels = read("alt_test", people=people, judges={"gpt": judged})["labels"]
    assert labels["cluster"].tolist() == ["t1", "t1", "t2"] * 2
    assert labels["annotator_id"].tolist() == ["1", "1", "2", *["gpt"] * 3]
    del judged["t2__food"]
    with pytest.raises(SchemaError, match="judges: judge 'gpt' lacks item 't2__food'"):
        readers.read("alt_test", "mini", write(tmp_path, people=people, judges={"gpt": judged}))
