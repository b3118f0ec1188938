"""The audits of a data set's judges on its page."""

import numpy as np
import pandas as pd
import pytest

import comperdial
from comperdial.auditing.dataset import audits

ABOUT = {"judged": ["llm", "few"], "recorded_judges": ["recorded"], "source": "human", "labels": {"llm": "An LLM"}} | {
    "judges": {
        "llm": {"output": "overall", "scale": [0.0, 10.0]}, "few": {"output": "overall"}, "recorded": {"format": "gpt4"}
    }
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    quality = rng.integers(1, 6, 60)
    raters = {f"rater_{n}": np.clip(quality + rng.integers(-1, 2, 60), 1, 5) for n in (1, 2, 3)}
    columns = {"response": [f"text {n}" for n in range(60)], "system": ["a", "b"] * 30}
    return comperdial.read(pd.DataFrame(columns | raters), scale=[1, 5]), quality


def test_each_judge_is_audited_on_its_own_scale(data):
    read, quality = data
    responses = read.responses[["context_id", "system_id"]].rename(columns={"context_id": "item_id"})
    own = responses.assign(
        level="turn", metric="llm", output="overall", value=(quality - 1) * 2.5, signature="x", cut=0
    )
    others = own.assign(metric="llm", output="fluency")
    scores = pd.concat([own, others, own.head(5).assign(metric="few")], ignore_index=True)
    tables = {"responses": read.responses, "contexts": read.contexts, "ratings": read.ratings}
    about = ABOUT | {"target": read.ratings["dimension"].iloc[0], "main_target": None}
    made = list(audits(tables, scores, about))
    assert [(one["judge"], one["level"]) for one in made] == [("An LLM", "turn"), ("few", "turn")]
    assert made[0]["short"].startswith("yes: wins against 3")
    assert [title for title, _, _ in made[0]["sections"]][:2] == ["Verdict", "Agreement"]
    assert made[1]["short"].startswith("no audit: 5 ") and not made[1]["sections"]
