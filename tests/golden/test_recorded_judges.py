"""Recorded answers of real judges and predictions of UniEval: what their owners publish, and what we read."""

import json
import re
from functools import cache

import numpy as np
import pytest
from scipy import stats

from comperdial import evaluation, schema
from comperdial.data.recorded import DIMENSIONS, Rated, import_scores
from comperdial.judges.parsing import parse
from comperdial.judges.recorded import FORMATS, Recorded

# What is published of the prompts that ask for the score only: Pearson with people's mean over all items pooled, Kendall
# averaged over contexts.
PUBLISHED = {
    ("geval", "naturalness"): (0.393, 0.358),
    ("geval", "coherence"): (0.468, 0.391),
    ("geval", "engagingness"): (0.549, 0.513),
    ("geval", "groundedness"): (0.311, 0.566),
    ("geval_no_auto_cot", "naturalness"): (0.408, 0.331),
    ("geval_no_auto_cot", "coherence"): (0.443, 0.404),
    ("geval_no_auto_cot", "engagingness"): (0.557, 0.535),
    ("geval_no_auto_cot", "groundedness"): (0.358, 0.582),
}
# Of five of the sixteen files: the answers, those without a rating, and Pearson as we read them.
FOUND = {
    ("geval", "coherence"): (7180, 0, 0.4684),
    ("geval", "groundedness"): (7140, 9, 0.3195),
    ("geval_no_auto_cot", "groundedness"): (7140, 1, 0.3488),
    ("rate_explain", "groundedness"): (7200, 2, 0.5610),
    ("analyze_rate", "naturalness"): (7200, 41, 0.5238),
}
# Where a number read as it was meant is more than 0.003 from the published one, and how many answers differ. There, the
# first digit was taken: 0 of 0.5, 2 of 2.5, 1 of a list's "1.", and 8 of an echoed fact about "84 per cent".
MISREAD = {("geval", "groundedness"): 66, ("geval_no_auto_cot", "groundedness"): 539}


@pytest.fixture(scope="module")
def rated(usr_tables):
    tables = usr_tables["usr_topical"]
    return Rated(tables["contexts"], tables["responses"], tables["systems"], tables["ratings"].query("level == 'turn'"))


@pytest.fixture(scope="module")
def items(real_file):
    """Return a function: a file's prompt and quality -> its items."""
    return cache(lambda prompt, quality: json.loads(real_file(f"chiang2023_{prompt}_{quality}").read_text()))


def first_digit(answer):
    """Read an answer as its owners did: the first digit of what follows the last "rating:", or nothing."""
    found = FORMATS["chiang2023"].owners_reading(answer)
    return np.nan if found is None else found


@pytest.mark.parametrize(("prompt", "quality"), [*FOUND])
def test_coverage_and_correlation(real_file, rated, prompt, quality):
    answers, unread, pearson = FOUND[prompt, quality]
    files = {quality: real_file(f"chiang2023_{prompt}_{quality}")}
    read = Recorded.read("gpt-3.5-turbo", "chiang2023", files, rated)
    values = read.means
    assert (values["answers"].sum(), len(read.answers["failure"].dropna())) == (answers, unread)
    people = rated.ratings.query("source == 'human'")
    people = people[people["dimension"] == DIMENSIONS[quality]].groupby(["item_id", "system_id"])["rating"].mean()
    theirs = [people[key] for key in zip(values["item_id"], values["system_id"], strict=True)]
    found = stats.pearsonr(values["value"], theirs)[0]
    assert found == pytest.approx(pearson, abs=5e-5)
    published, _ = PUBLISHED.get((prompt, quality), (found, None))
    assert (abs(found - published) <= 0.003) == ((prompt, quality) not in MISREAD)


@pytest.mark.parametrize(("prompt", "quality"), [*PUBLISHED])
def test_published_numbers_come_from_first_digit(items, prompt, quality):
    """The files are those of the paper; the remaining differences come from how answers are read."""
    rated = items(prompt, quality)
    means = np.array([np.nanmean([first_digit(answer) for answer in item["all_responses"]]) for item in rated])
    human = np.array([item["scores"][quality] for item in rated])
    sources = [item["source"] for item in rated]
    taus = []
    for source in dict.fromkeys(sources):
        own = [place for place, other in enumerate(sources) if other == source]
        if len(set(means[own])) > 1 and len(set(human[own])) > 1:
            taus.append(stats.kendalltau(means[own], human[own])[0])
    assert (stats.pearsonr(means, human)[0], np.mean(taus)) == pytest.approx(PUBLISHED[prompt, quality], abs=0.001)


@pytest.mark.parametrize(("prompt", "quality"), [*MISREAD])
def test_first_digit_misreads_some_answers(items, prompt, quality):
    """Every answer that is read differently has a fraction, a list's number, a number elsewhere, or no rating at all."""
    differing = 0
    for answer in (answer for item in items(prompt, quality) for answer in item["all_responses"]):
        ours = parse(answer, FORMATS["chiang2023"].forms[quality]).values.get(quality)
        if ours is None or ours != first_digit(answer):
            differing += 1
            assert ours is None or ours != int(ours) or len(re.findall(r"\d", answer)) != 1, answer[:20]
    assert differing == MISREAD[prompt, quality]


# UniEval: of all 360 responses, the references among them: Pearson, Spearman, Kendall, each with the people's rating of the
# dimension of the same name, as published. Of the 300 that are evaluated here: the same, and with Overall.
UNIEVAL = {
    "naturalness": ((0.443666, 0.513986, 0.373973), (0.4022, 0.4548, 0.3300), (0.3061, 0.4096, 0.2874)),
    "coherence": ((0.595143, 0.612942, 0.465915), (0.5685, 0.6023, 0.4551), (0.4520, 0.4917, 0.3531)),
    "engagingness": ((0.556510, 0.604739, 0.455941), (0.5471, 0.5733, 0.4303), (0.5551, 0.5420, 0.3933)),
    "groundedness": ((0.536209, 0.574954, 0.451533), (0.5195, 0.5769, 0.4533), (0.2723, 0.3988, 0.2811)),
    "understandability": ((0.380038, 0.467807, 0.360741), (0.3254, 0.3778, 0.2888), (0.3093, 0.4203, 0.2958)),
    "overall": ((0.632796, 0.662583, 0.487272), (0.5931, 0.6041, 0.4425), (0.5931, 0.6041, 0.4425)),
}
COEFFICIENTS = ("pearson", "spearman", "kendall")
ORIGIN = "maszhongming/UniEval@d33e7b6/topical_chat_result.json"


def write_tables(folder, tables):
    for name, frame in tables.items():
        schema.write(folder / f"{name}.parquet", frame, name)
    return folder


def take(folder, path):
    how = {"format": "unieval", "origin": ORIGIN, "about": "theirs", "ratings": folder / "ratings.parquet"}
    return import_scores("unieval_recorded", folder, path, **how)


def correlated(scores, tables, **choice):
    found = evaluation.correlations(evaluation.samples(scores, tables["ratings"], systems=tables["systems"], **choice))
    return found[found["level"] == "turn"].set_index(["target", "output", "coefficient"])


def test_unieval_matches_published_correlations(unieval_predictions, usr_tables, tmp_path):
    """Their file alone; and our ratings joined by text, with the references left in as systems."""
    items = json.loads(unieval_predictions.read_text())
    assert len(items) == 360
    tables = usr_tables["usr_topical"]
    everyone = tables | {"systems": tables["systems"].assign(kind="agent")}
    found = correlated(take(write_tables(tmp_path, everyone), unieval_predictions), everyone)
    for output, (published, *_) in UNIEVAL.items():
        theirs, people = ([item[field][output] for item in items] for field in ("predict_scores", "scores"))
        ways = (stats.pearsonr, stats.spearmanr, stats.kendalltau)
        assert [way(theirs, people)[0] for way in ways] == pytest.approx(published, abs=5.1e-7)
        rows = found.loc[[(DIMENSIONS[output], output, c) for c in COEFFICIENTS]]
        assert set(rows["n"]) == {360}
        # Scores are kept as float32, in which a few that differ in the eighth digit are ties.
        assert rows["value"].tolist() == pytest.approx(published, abs=5e-6)


def test_unieval_on_the_evaluated_responses(unieval_predictions, usr_tables, tmp_path):
    scores = take(write_tables(tmp_path, usr_tables["usr_topical"]), unieval_predictions)
    found = correlated(scores, usr_tables["usr_topical"])
    for output, (_, same, overall) in UNIEVAL.items():
        for target, expected in ((DIMENSIONS[output], same), ("Overall", overall)):
            rows = found.loc[[(target, output, c) for c in COEFFICIENTS]]
            assert rows["value"].tolist() == pytest.approx(expected, abs=5.1e-5)
            assert set(rows["n"]) == {300} and set(rows["coverage"]) == {1.0}
    assert len(scores) == 300 * 6 and "Original Ground Truth" not in set(scores["system_id"])
    assert set(scores["signature"]) == {f"recorded|format:unieval|from:{ORIGIN}|sha256:e1c28ffea885|about:theirs|v:1"}
    # People put Argmax first among the models, UniEval last: why Spearman is low at system level.
    means = scores.query("output == 'overall'").groupby("system_id")["value"].mean().sort_values()
    assert [*means.index[[0, -1]]] == ["Argmax Decoding", "New Human Generated"]
