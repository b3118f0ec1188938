"""Real conversations: counts that were taken from the files by other means."""

import pytest

from comperdial.data.continuations import samples, splits
from comperdial.data.readers import chitchat


def test_convai2(real_tables):
    tables = real_tables("convai2")
    # 891 of 1,402 dialogues hold messages of both; 524 of these have a mark.
    assert tables["contexts"]["dialogue_id"].nunique() == 891
    assert len(tables["ratings"].query("level == 'dialogue'")) == 524
    assert set(tables["systems"]["kind"]) == {"agent"}
    went = tables["continuations"]
    # At most one negative a conversation: the last reply, unless the person had the last word.
    lost = went.loc[went["continued"] == 0].merge(tables["contexts"][["context_id", "dialogue_id"]])
    assert lost["dialogue_id"].is_unique
    of = went.merge(tables["contexts"][["context_id", "dialogue_id"]]).groupby("dialogue_id")["split"].nunique()
    assert (of == 1).all()
    assert not went["user_id"].str.contains("User").any()


def test_chitchat():
    if chitchat.located() is None:
        pytest.skip("package chitchat-dataset is not installed")
    found = chitchat.conversations("chitchat", {})
    assert len(found) == 4_018
    assert len({user for conversation in found for user in conversation.users.values()}) == 1_196
    assert set(splits(found).values()) == {"train", "validation", "test"}
    asked = list(samples(found))
    # Each conversation's last reply, and those whose answer took longer than half an hour.
    late = [sample for sample in asked if sample.seconds is not None and sample.seconds > 1_800]
    assert sum(not sample.continued for sample in asked) == len(late) + sum(len(c.utterances) > 1 for c in found)
