"""Audits of judges on public files match values computed by other programs or by hand."""

import json

import numpy as np
import pandas as pd
import pytest

import comperdial
from comperdial.auditing import recorded as recorded_audits
from comperdial.config.studies import read_study
from comperdial.data.catalogue import load_catalogue
from comperdial.data.labels import read_labels

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


def test_face_judge_favours_some_systems(real_file):
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
def test_both_published_files_are_read_unchanged(real_file, name, judge, raters, wins, advantage):
    people, judges = (real_file(f"alt_test_{name}_{who}") for who in ("people", "judges"))
    audit = comperdial.audit(judges, judge, ratings=people, raters=raters, nominal=name != "cebab_stars")
    assert audit.alternative.rejected.sum() == wins
    assert audit.alternative.average_advantage == pytest.approx(advantage, abs=5e-6)


pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture
def labels(root, real_file):
    catalogue = root / "data/sources.yaml"

    def read(name):
        files = load_catalogue(catalogue).dataset(name).files
        return read_labels(name, catalogue=catalogue, files={role: real_file(one.name) for role, one in files.items()})

    return read


@pytest.fixture
def overall(real_tables, real_file):
    return lambda name: recorded_audits.face_overall(real_tables, real_file)


@pytest.fixture
def reported(root):
    return pd.read_csv(root / "studies/judge_audit/reported.csv")


def test_alternative_annotator_test_matches_authors_code(labels, reported, root, monkeypatch):
    monkeypatch.chdir(root)
    sets = read_study("judge_audit")["tables"]["alternative_test"]["sets"]
    frame = pd.DataFrame(recorded_audits.alternative_tests(sets, labels)).set_index(["set", "judge"])
    known = reported[reported["table"] == "alternative_test"]
    for measure, digits in (("wins", 0), ("rho", 5)):
        theirs = known[known["measure"] == measure].set_index(["dataset", "subject"])["value"]
        assert len(theirs) == 32
        np.testing.assert_array_equal(frame.loc[theirs.index, measure].astype(float).round(digits), theirs)
    # A judge that need not read anything passes.
    constant = frame.loc[("summeval_consistency", "always 5")]
    assert (constant["wins"], constant["annotators"], constant["passed"]) == (3, 3, True)
    assert [name for name, judge in frame.index[frame["passed"]] if judge.startswith("always")] == [
        "summeval_consistency",
        "10k_prompts",
    ]


# Kappa, AC and alpha: scikit-learn, irrCAC and krippendorff. Each plain, linear, quadratic; alpha nominal, ordinal, interval.
AGREEMENT = """
PandaLM|rater 1 and gpt-3.5-turbo|974|.479371 .533952 .566511|.597281 .566943 .542237|.478661 .566364 .566609
PandaLM|rater 1 and pandalm-7b|999|.419093 .461190 .488697|.518689 .479797 .446602|.419286 .488695 .488884
PandaLM|3 raters|999||.886445 .876026 .867075|.864221 .877464 .877217
SummEval|rater 1 and gpt-4o|6400|.060971 .219120 .366784|.056697 .386615 .628403|-.047711 .183097 .242436
SummEval, coherence|rater 1 and gpt-4o|1600|.080131 .248921 .410110|.114953 .484998 .724715|.021442 .354396 .353144
CEBaB stars|rater 1 and gpt-4o|331|.523038 .742957 .882381|.525314 .746866 .885490|.520259 .875385 .882494
CEBaB stars|10 raters|711||.360731 .567211 .712214|.357196 .678839 .680910
10k prompts|13 raters|1698||.230405 .513550 .692975|.120962 .254590 .262273
FACE, overall|people and judge, rounded|466|.095060 .281342 .470684|.150732 .600698 .838885|-.026661 .401836 .445360
"""


@pytest.mark.ci
def test_agreement_matches_other_libraries(labels, overall, reported):
    frame = pd.DataFrame(recorded_audits.agreements(labels, overall)).set_index(["dataset", "who"])
    for line in AGREEMENT.strip().split("\n"):
        dataset, who, n, *values = line.split("|")
        row = (
            frame.loc[(dataset, who)].iloc[0]
            if isinstance(frame.loc[(dataset, who)], pd.DataFrame)
            else frame.loc[(dataset, who)]
        )
        assert row["n"] == int(n)
        names = [[f"{name}{end}" for end in ("", "_linear", "_quadratic")] for name in ("kappa", "ac")]
        names.append([f"alpha_{level}" for level in ("nominal", "ordinal", "interval")])
        for group, expected in zip(names, values, strict=True):
            if expected:
                assert row[group].astype(float).tolist() == pytest.approx(
                    [float(one) for one in expected.split()], abs=6e-7
                ), line
    assert frame.loc[("FACE, overall", "people and judge"), "alpha_interval"] == pytest.approx(0.449609, abs=6e-7)
    known = reported[reported["table"] == "agreement"]
    for one in known[known["measure"] == "kappa"].to_dict("records"):
        assert round(frame.loc[("PandaLM", one["subject"]), "kappa"], 2) == one["value"]
    majority = frame.loc[("PandaLM", "majority")].set_index("label")["n"].to_dict()
    assert majority == {"tie": 105, "first": 422, "second": 472}


def test_corrected_means_match_ppi_python(labels, overall, reported):
    frame = pd.DataFrame(recorded_audits.corrections(labels, overall))
    plain = frame[frame["interval"] == "plain"].set_index(["dataset", "judge", "method", "labelled"])
    known = reported[reported["table"] == "corrected"]
    assert len(known) == 60
    for one in known.to_dict("records"):
        method, n, what = one["measure"].split(" ")
        assert plain.loc[(one["dataset"], one["subject"], method, int(n)), what] == pytest.approx(
            one["value"], abs=6e-6
        ), one
    assert frame.groupby("dataset")["all"].first().round(6).to_dict() == {"FACE": 1.004292, "PandaLM": 0.47314}
    assert (frame["low"] < frame["high"]).all()


def test_face_judge_cannot_be_tested_with_one_label_per_item(real_tables, real_file):
    from comperdial.config.registry import registered

    entry = {"face_recorded": registered("recorded")["face_recorded"]}

    def no_votes(name):
        return pd.DataFrame({"source": ["human"], "question": ["overall"]})

    frame = pd.DataFrame(recorded_audits.audits(entry, real_tables, real_file, no_votes))
    frame = frame[frame["judge"].notna()].set_index("dimension")
    assert set(frame["verdict"]) == {"cannot be tested"} and len(frame) == 7
    row = frame.loc["dialogue_overall"]
    assert row["pearson"] == pytest.approx(0.73162, abs=6e-6)
    assert (row["system"], round(row["offset"], 4), row["n"]) == ("unicrs_opendialkg", 0.8533, 466)
