"""Hazumi's form: an ELAN file a dialogue, tiers that share their times, six scores an exchange."""

from xml.sax.saxutils import escape

import pytest

from comperdial.core.errors import FileError, SchemaError
from comperdial.data import readers
from comperdial.data.readers.hazumi import Hazumi

OUTSIDERS = ("UI_F1", "UI_F2", "UI_F3", "UI_F5", "UI_M2")
# Wizard, participant, the participant's own score, the outsiders' scores; in no order of time.
SAID = [
    (" どうですか？", "(F えー)|(D よ)いいです(?)", " 4", ("5", "5", "6", "4", "5")),
    ("はじめます。", None, "E", ("4", "4", "4", "4", "(e)")),
    ("そうですか。", "はい", "7", ("7", "7", "7", "6", " 7")),
]
TIMES = [(2000, 3000), (1000, 2000), (3000, 4000)]


def elan(said=SAID, times=TIMES, without=(), head=""):
    slots, tiers = [], []
    columns = {"sys_utterance": 0, "user_utterance": 1, "UI_self": 2, **dict.fromkeys(OUTSIDERS, 3)}
    columns |= {"TC_F1": 2, "TC_F1_（自由記述）": 0}
    for tier, column in columns.items():
        rows = []
        for row, (start, end) in zip(said, times, strict=True):
            text = row[column][OUTSIDERS.index(tier)] if tier in OUTSIDERS else row[column]
            first = len(slots) + 1
            slots += [
                f'<TIME_SLOT TIME_SLOT_ID="ts{first + n}" TIME_VALUE="{at}"/>' for n, at in enumerate((start, end))
            ]
            value = "<ANNOTATION_VALUE/>" if text is None else f"<ANNOTATION_VALUE>{escape(text)}</ANNOTATION_VALUE>"
            rows.append(
                f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{first}" TIME_SLOT_REF1="ts{first}" '
                f'TIME_SLOT_REF2="ts{first + 1}">{value}</ALIGNABLE_ANNOTATION></ANNOTATION>'
            )
        if tier not in without:
            tiers.append(f'<TIER TIER_ID="{tier}">{"".join(rows)}</TIER>')
    body = f"<TIME_ORDER>{''.join(slots)}</TIME_ORDER>{''.join(tiers)}"
    return f'<?xml version="1.0" encoding="UTF-8"?>{head}<ANNOTATION_DOCUMENT>{body}</ANNOTATION_DOCUMENT>'


def files(folder, *contents):
    found = {}
    for number, content in enumerate(contents):
        path = folder / f"d{number}.eaf"
        path.write_text(content, encoding="utf-8")
        found[path.stem] = path
    return found


def test_exchanges_in_the_order_of_time_with_marks_taken_off(tmp_path):
    tables = readers.read("hazumi", "mini", files(tmp_path, elan(), elan()))
    assert tables["responses"]["response"].tolist()[:3] == ["はじめます。", "どうですか？", "そうですか。"]
    contexts = tables["contexts"].set_index("context_id")
    assert contexts["history"]["mini-1-000"] == []
    # What nobody said is in no history, and a second dialogue begins anew.
    assert contexts["history"]["mini-1-002"] == [
        {"speaker": "B", "text": "はじめます。"},
        {"speaker": "B", "text": "どうですか？"},
        {"speaker": "A", "text": "えーよいいです"},
    ]
    assert contexts["history"]["mini-2-000"] == []
    assert tables["systems"]["kind"].tolist() == ["human"]


def test_a_score_that_is_missing_is_no_rating_and_counted(tmp_path):
    reader = Hazumi("mini", files(tmp_path, elan(), elan()))
    ratings = reader.read()["ratings"]
    of = ratings.groupby("item_id")["annotator_id"].agg(list)
    assert of["mini-1-000"] == [f"outsider-{n}" for n in (1, 2, 3, 4)]
    assert of["mini-2-001"] == ["interlocutor-2", *(f"outsider-{n}" for n in (1, 2, 3, 4, 5))]
    own = ratings[ratings["annotator_id"] == "interlocutor-1"].set_index("item_id")["rating"]
    assert own.to_dict() == {"mini-1-001": 4, "mini-1-002": 7}
    assert [one.lacks for one in reader.exchanges][:3] == [("interlocutor", "outsider"), (), ()]


def test_annotators_have_roles_and_outsiders_are_the_same_in_all_dialogues(tmp_path):
    roles = Hazumi("mini", files(tmp_path, elan(), elan())).annotators().set_index("annotator_id")["role"]
    assert roles.value_counts().to_dict() == {"outsider": 5, "interlocutor": 2}
    assert roles["interlocutor-2"] == "interlocutor"


def changed(place, column, value):
    row = list(SAID[place])
    row[column] = value
    return [*SAID[:place], tuple(row), *SAID[place + 1 :]]


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (elan(changed(0, 2, "8")), SchemaError, r"d0\.eaf, exchange 2, UI_self: the score is '8'.*1 to 7"),
        (elan(changed(2, 3, ("7", "x", "7", "6", "7"))), SchemaError, r"exchange 3, UI_F2: the score is 'x'"),
        (elan(changed(1, 0, "  ")), SchemaError, r"exchange 1: the wizard says nothing"),
        (elan(without=("UI_self",)), SchemaError, r"d0\.eaf: no tier 'UI_self'.*sys_utterance"),
        (elan(without=("UI_M2",)), SchemaError, r"4 outsiders' tiers; expected 5"),
        (elan(times=[(1000, 2000)] * 3), SchemaError, r"annotation 2: a second one from 1000 to 2000 ms"),
        (elan().replace('"3000"/>', '""/>'), SchemaError, r"TIME_SLOT_REF\d is 'ts\d+'.*milliseconds"),
        (elan()[:-30], FileError, r"d0\.eaf: not valid ELAN XML"),
        ("", FileError, r"not valid ELAN XML"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, content, kind, message):
    with pytest.raises(kind, match=message):
        readers.read("hazumi", "mini", files(tmp_path, content))


def test_tiers_that_do_not_share_their_times(tmp_path):
    # The participant's own first score begins with the wizard's second utterance.
    tier = 'TIER_ID="UI_self"><ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a13" TIME_SLOT_REF1="{}"'
    moved = elan().replace(tier.format("ts13"), tier.format("ts3"))
    assert moved != elan()
    with pytest.raises(
        SchemaError, match=r"'sys_utterance' and 'UI_self' do not both have an annotation from 1000 to 3000"
    ):
        readers.read("hazumi", "mini", files(tmp_path, moved))


def test_no_file_is_drawn_in_by_another(tmp_path):
    (tmp_path / "secret").write_text("4")
    head = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
    with pytest.raises(FileError, match="not valid ELAN XML"):
        readers.read("hazumi", "mini", files(tmp_path, elan(head=head).replace("はい", "&e;")))
