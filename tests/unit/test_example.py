"""The example that ships: numbers of PandaLM's test set, as they follow from its three files."""

import json
import os
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

EXAMPLE = files("comperdial") / "examples/pandalm.csv"
SOURCE = Path(os.environ.get("COMPERDIAL_MIRROR", "")) / "WeOpenML/PandaLM/data"


def derived():
    pairs, gpt, panda = (
        json.loads((SOURCE / f"{name}testset-v1.json").read_text()) for name in ("", "gpt-3.5-turbo-", "pandalm-7b-")
    )
    winners = {"1": "model_a", "2": "model_b", "0": "tie", "Tie": "tie", "garbage": ""}
    prompts: dict[tuple[str, str], int] = {}
    rows = []
    for pair, by_gpt, by_panda in zip(pairs, gpt, panda, strict=True):
        prompt = prompts.setdefault((str(pair["instruction"]), str(pair["input"])), len(prompts) + 1)
        votes = [*(pair[f"annotator{n}"] for n in (1, 2, 3)), by_gpt["gpt_result"], by_panda["pandalm_result"]]
        rows.append([pair["idx"], prompt, *pair["cmp_key"].split("_"), *(winners[str(vote)] for vote in votes)])
    judges = ["gpt-3.5-turbo_winner", "pandalm-7b_winner"]
    columns = ["pair_id", "prompt_number", "model_a", "model_b", "winner1", "winner2", "winner3", *judges]
    return pd.DataFrame(rows, columns=columns).to_csv(index=False, lineterminator="\n")


@pytest.mark.skipif(not SOURCE.is_dir(), reason="PandaLM's files are not here")
def test_it_is_what_the_source_gives():
    assert EXAMPLE.read_text() == derived()


def test_its_votes_are_those_published():
    frame = pd.read_csv(EXAMPLE, keep_default_na=False)
    assert len(frame) == 999
    majority = frame[["winner1", "winner2", "winner3"]].mode(axis=1)[0].value_counts().to_dict()
    # As the project's README counts them.
    assert majority == {"model_b": 472, "model_a": 422, "tie": 105}
