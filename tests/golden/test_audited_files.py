"""`comperdial audit` on public files as users have them: equal to values computed by others' programs or by hand."""

import json

import pandas as pd
import pytest

import comperdial

WON = {0: "tie", 1: "model_a", 2: "model_b", "1": "model_a", "2": "model_b", "Tie": "tie", "garbage": "tie"}


@pytest.fixture
def pairs(real_file):
    """Return PandaLM's pairs with the votes of people and of two judges side by side."""
    people, gpt, pandalm = (
        json.loads(real_file(name).read_text()) for name in ("pandalm_pairs", "pandalm_gpt35", "pandalm_7b")
    )
    rows = [
        {
            "idx": one["idx"], "instruction": one["instruction"], "input": one["input"],
            **dict(zip(("model_a", "model_b"), one["cmp_key"].split("_"), strict=True)),
            "response_a": str(one["response1"]), "response_b": str(one["response2"]),
            **{f"winner_{n}": WON[one[f"annotator{n}"]] for n in (1, 2, 3)},
            "gpt_winner": WON[first["gpt_result"]], "pandalm_winner": WON[second["pandalm_result"]],
        }
        for one, first, second in zip(people, gpt, pandalm, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def numbers(audit, title):
    return audit.section(title).numbers.set_index("what")["value"]


@pytest.mark.parametrize(
    ("judge", "offset", "length", "longer", "advantage"),
    [("gpt", 0.01885, -0.08815, 0.61162, 0.755), ("pandalm", 0.01385, -0.13843, 0.63863, 0.709)],
)
def test_biases_on_pandalm(pairs, judge, offset, length, longer, advantage):
    audit = comperdial.audit(pairs, judge)
    bias = numbers(audit, "Bias")
    assert bias["share for the first, judge − people"] == pytest.approx(offset, abs=5e-6)
    assert bias["correlation of length with judge − people"] == pytest.approx(length, abs=1e-5)
    assert bias["win rate of the longer, judge"] == pytest.approx(longer, abs=5e-6)
    assert bias["win rate of the longer, people"] == pytest.approx(0.65104, abs=5e-6)
    assert audit.alternative.average_advantage == pytest.approx(advantage, abs=0.01)


def test_whom_faces_judge_favours(real_file):
    people, judged = (json.loads(real_file(name).read_text()) for name in ("face_dialogues", "face_run"))
    rows = [
        {
            "dialogue_id": one["conv_id"], "system": one["conv_id"].rsplit("_", 1)[0],
            "rating": one["dial_level_aggregated"]["dialogue_overall"],
            "judge_score": other.get("dial_level_pred", {}).get("dialogue_overall"),
        }
        for one, other in zip(people, judged, strict=True)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    audit = comperdial.audit(frame)
    offsets = numbers(audit, "Systems")
    known = {
        "barcor_opendialkg": 0.1869, "barcor_redial": 0.1782, "chatgpt_opendialkg": -0.1942, "chatgpt_redial": -0.1391,
        "crbcrs_redial": 0.6228, "kbrd_opendialkg": 0.7629, "kbrd_redial": 0.7565, "unicrs_opendialkg": 0.8533,
        "unicrs_redial": 0.6951,
    }  # fmt: skip
    assert {name: round(offsets[f"offset of {name}"], 4) for name in known} == known
    means = frame.dropna().groupby("system")[["rating", "judge_score"]].mean()
    assert means.corr().iloc[0, 1] == pytest.approx(0.9563, abs=5e-5)
    assert numbers(audit, "Agreement")["Pearson with people's mean"] == pytest.approx(0.73162, abs=5e-6)


@pytest.mark.parametrize(
    ("name", "judge", "raters", "wins", "advantage"),
    [
        ("cebab_stars", "gpt-4o", "crowd", 9, 0.89859), ("cebab_stars", "gemini_flash", "crowd", 6, 0.82147),
        ("cebab_stars", "mistral-v03", "crowd", 5, 0.82907),
        # Labels without an order
        ("wax", "gemini_pro", "crowd", 4, 0.73715), ("wax", "mistral-v03", "crowd", 0, 0.49771),
        ("framing", "gpt-4o", "trained", 4, 0.91787), ("framing", "llama-31", "trained", 2, 0.80148),
    ],
)  # fmt: skip
def test_the_authors_two_files_are_read_as_they_come(real_file, name, judge, raters, wins, advantage):
    people, judges = (real_file(f"alt_test_{name}_{who}") for who in ("people", "judges"))
    audit = comperdial.audit(judges, judge, ratings=people, raters=raters, nominal=name != "cebab_stars")
    assert audit.alternative.rejected.sum() == wins
    assert audit.alternative.average_advantage == pytest.approx(advantage, abs=5e-6)
