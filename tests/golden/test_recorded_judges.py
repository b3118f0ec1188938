"""Recorded answers of real judges: through our parser, beside what their owners publish."""

import json
import re

import numpy as np
import pytest
from scipy import stats

from comperdial.data.recorded import DIMENSIONS, Rated
from comperdial.judges.parsing import parse
from comperdial.judges.recorded import FORMATS, Recorded

PROMPTS = ("geval", "geval_no_auto_cot", "rate_explain", "analyze_rate")
QUALITIES = ("naturalness", "coherence", "engagingness", "groundedness")
# Of every file: its answers, those without a rating, and Pearson with people's mean, over all items pooled.
FOUND = {
    ("geval", "naturalness"): (7160, 2, 0.3915),
    ("geval", "coherence"): (7180, 0, 0.4684),
    ("geval", "engagingness"): (7120, 0, 0.5505),
    ("geval", "groundedness"): (7140, 9, 0.3195),
    ("geval_no_auto_cot", "naturalness"): (7060, 2, 0.4107),
    ("geval_no_auto_cot", "coherence"): (7100, 1, 0.4429),
    ("geval_no_auto_cot", "engagingness"): (7080, 4, 0.5636),
    ("geval_no_auto_cot", "groundedness"): (7140, 1, 0.3488),
    ("rate_explain", "naturalness"): (7160, 1, 0.5686),
    ("rate_explain", "coherence"): (7180, 0, 0.5045),
    ("rate_explain", "engagingness"): (7180, 1, 0.5641),
    ("rate_explain", "groundedness"): (7200, 2, 0.5610),
    ("analyze_rate", "naturalness"): (7200, 41, 0.5238),
    ("analyze_rate", "coherence"): (7200, 10, 0.4773),
    ("analyze_rate", "engagingness"): (7200, 16, 0.5671),
    ("analyze_rate", "groundedness"): (7160, 8, 0.5885),
}
# Published of the prompts that ask for the score only: Pearson pooled, Kendall averaged over contexts.
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
# Where a number read as it was meant is more than 0.003 from the published one. There, the first digit was taken: 0 of
# 0.5, 2 of 2.5, 1 of a list's "1.", and 8 of an echoed fact about "84 per cent" on a scale from 0 to 1.
MISREAD = {("geval", "groundedness"), ("geval_no_auto_cot", "engagingness"), ("geval_no_auto_cot", "groundedness")}


@pytest.fixture(scope="module")
def rated(usr_tables):
    tables = usr_tables["usr_topical"]
    return Rated(tables["contexts"], tables["responses"], tables["systems"], tables["ratings"].query("level == 'turn'"))


@pytest.fixture(scope="module")
def paths(root, real_file):
    """Return each prompt's files by quality."""
    return {
        prompt: {quality: real_file(f"chiang2023_{prompt}_{quality}") for quality in QUALITIES} for prompt in PROMPTS
    }


@pytest.fixture(scope="module")
def read(paths, rated):
    """Return for every prompt its answers, read."""
    return {prompt: Recorded.read(f"gpt-3.5-turbo_{prompt}", "chiang2023", paths[prompt], rated) for prompt in PROMPTS}


@pytest.fixture(scope="module")
def files(paths):
    return {prompt: {q: json.loads(path.read_text()) for q, path in of.items()} for prompt, of in paths.items()}


def people(rated, quality):
    result = rated.ratings[(rated.ratings["source"] == "human") & (rated.ratings["dimension"] == DIMENSIONS[quality])]
    return result.groupby(["item_id", "system_id"])["rating"].mean().to_dict()


def test_every_answer_is_taken(read):
    assert sum(len(result.answers) for result in read.values()) == 114_460


@pytest.mark.parametrize(("prompt", "quality"), [*FOUND])
def test_coverage_and_correlation(read, rated, prompt, quality):
    answers, unread, pearson = FOUND[prompt, quality]
    values = read[prompt].means.query("dimension == @quality")
    failures = read[prompt].answers.query("dimension == @quality")["failure"].dropna()
    assert (values["answers"].sum(), len(failures)) == (answers, unread)
    assert values["value"].notna().all()
    human = people(rated, quality)
    theirs = [human[key] for key in zip(values["item_id"], values["system_id"], strict=True)]
    result = stats.pearsonr(values["value"], theirs)[0]
    assert result == pytest.approx(pearson, abs=5e-5)
    if (prompt, quality) in PUBLISHED:
        close = abs(result - PUBLISHED[prompt, quality][0]) <= 0.003
        assert close == ((prompt, quality) not in MISREAD)


def first_digit(answer):
    """Read an answer as its owners did: the first digit of what follows the last "rating:", or nothing."""
    result = FORMATS["chiang2023"].owners_reading(answer)
    return np.nan if result is None else result


def correlations(items, quality, read):
    """Return Pearson pooled and Kendall averaged over contexts, of a file's own human means."""
    means = [np.nanmean([read(answer) for answer in item["all_responses"]]) for item in items]
    human = [item["scores"][quality] for item in items]
    contexts = {}
    for place, item in enumerate(items):
        contexts.setdefault(item["source"], []).append(place)
    taus = []
    for places in contexts.values():
        a, b = [means[place] for place in places], [human[place] for place in places]
        if len(set(a)) > 1 and len(set(b)) > 1:
            taus.append(stats.kendalltau(a, b)[0])
    return stats.pearsonr(means, human)[0], np.mean(taus)


@pytest.mark.parametrize(("prompt", "quality"), [*PUBLISHED])
def test_the_published_numbers_come_of_the_first_digit(files, prompt, quality):
    """So the files are the ones of the paper, and what is left between it and us is how an answer is read."""
    result = correlations(files[prompt][quality], quality, first_digit)
    assert result == pytest.approx(PUBLISHED[prompt, quality], abs=0.001)


@pytest.mark.parametrize(
    ("prompt", "quality", "differing"),
    [
        ("geval", "groundedness", 66),
        ("geval_no_auto_cot", "engagingness", 71),
        ("geval_no_auto_cot", "groundedness", 539),
    ],
)
def test_what_the_first_digit_misreads(files, read, prompt, quality, differing):
    """Every answer that is read otherwise has a fraction, a list's number, a number elsewhere, or no rating at all."""
    form = FORMATS["chiang2023"].forms[quality]
    result = 0
    for item in files[prompt][quality]:
        for answer in item["all_responses"]:
            ours = parse(answer, form).values.get(quality)
            if ours is not None and ours == first_digit(answer):
                continue
            result += 1
            fraction = ours is not None and ours != int(ours)
            assert fraction or len(re.findall(r"\d", answer)) != 1 or ours is None, answer[:20]
    assert result == differing


def test_nobody_could_read_what_is_left(files, read):
    """An answer without a rating holds no number of the scale outside an echo or a list, or holds several ratings."""
    kinds = {"several": 0, "out of scale": 0, "echo or list": 0, "no number": 0}
    for prompt, result in read.items():
        # The answers of a file are in its order, 20 an item.
        place = result.answers.groupby("dimension").cumcount() // 20
        unread = result.answers.assign(place=place).dropna(subset="failure")
        for place, dimension, sample, failure in unread[["place", "dimension", "sample", "failure"]].to_numpy():
            item = files[prompt][dimension][place]
            answer = item["all_responses"][sample % 20]
            form = FORMATS["chiang2023"].forms[dimension]
            inside = [n for n in re.findall(r"(?<![\w.,])\d(?![\w%])", answer) if form.low <= float(n) <= form.high]
            if failure.startswith("different ratings"):
                kinds["several"] += 1
            elif failure.startswith("out of scale"):
                assert not inside
                kinds["out of scale"] += 1
            elif inside:
                echo = r"Responses?( 1)?:|1\. |Evaluation Steps|Fact:|Conversation History"
                assert re.search(echo, answer), (prompt, place, sample)
                kinds["echo or list"] += 1
            else:
                kinds["no number"] += 1
    assert kinds == {"several": 4, "out of scale": 1, "echo or list": 5, "no number": 88}


def test_scores_of_the_responses_that_are_evaluated(read):
    result = read["geval"].scores("s")
    assert set(result["output"]) == set(QUALITIES)
    assert "Original Ground Truth" not in set(result["system_id"])
    assert result.groupby("output").size().between(290, 300).all()
