"""Data sets, rounds, perturbations, questions and figures of the study of LLMs as evaluators, from small tables."""

import pandas as pd
import pytest

from comperdial import schema
from comperdial.core.errors import SchemaError, UnknownNameError
from comperdial.evaluation.dimensions import RatedSet
from comperdial.judges.prompting import find_question
from comperdial.perturbations import PERTURBATIONS
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators import data_sets, perturbations, robustness, rounds, sampling
from comperdial.studies.llm_evaluators.figures import interdimensional_figure
from comperdial.studies.llm_evaluators.questions import table_9
from making import make


def rows_of(found, title):
    return next(section.rows for section in found.sections if section.title == title)


def made(name, output, inputs, **settings):
    make(f"studies.llm_evaluators.tables:{name}", output, inputs, **settings)
    return output.with_suffix(".svg" if name == "dimensions" else ".md").read_text()


def round_rows():
    values = {("fed_dial", "gpt-4"): (0.6, 0.7, 0.8), ("fed_dial", "human"): (0.3,), ("persona_see", "gpt-4"): (0.9,)}
    return pd.DataFrame(
        [
            {"dataset": d, "source": s, "dimension": "coherence", "annotator_a": f"a{n}", "annotator_b": f"b{n}"}
            | {"pearson": value, "spearman": 0.1, "n": 5}
            for (d, s), found in values.items()
            for n, value in enumerate(found)
        ]
    )


def test_rounds_by_set_source_and_dimension():
    alphas = pd.DataFrame([{"dataset": "fed_dial", "source": "gpt-4", "dimension": "coherence", "alpha": 0.65}])
    found = rounds.rounds_document(round_rows(), alphas, titles={"persona_see": "Persona-See", "fed_dial": "FED-Dial"})
    pairs, alpha = found.sections
    assert pairs.rows == [
        ["Persona-See", "GPT-4", "0.900 [0.90, 0.90]", *["–"] * 4],
        ["FED-Dial", "people", "0.300 [0.30, 0.30]", *["–"] * 4],
        ["FED-Dial", "GPT-4", "0.700 [0.60, 0.80]", *["–"] * 4],
    ]
    assert alpha.rows == [["FED-Dial", "GPT-4", "0.650", *["–"] * 4]]
    # Of GPT-4 alone: 0.9 and 0.7 are above 0.65.
    assert any("is above 0.65 in 2 of 2 dimensions of sets" in note for note in found.notes)
    less = round_rows().assign(pearson=lambda frame: frame["pearson"] - 0.1)
    found = rounds.rounds_document(less, alphas, titles={}, order=["persona_see", "fed_dial"])
    above = (
        "in 1 of 2 dimensions of sets (fed_dial 0 of 1, persona_see 1 of 1), and the mean over a set's dimensions in 1"
    )
    assert any(above in note for note in found.notes)
    assert [one[0] for one in found.sections[0].rows] == ["persona_see", "fed_dial", "fed_dial"]


def write_set(folder, level="turn"):
    """Write two rated items: a context of five words, answered in two and in four; or a dialogue of four utterances."""
    said = [{"speaker": "A", "text": "Do you like  kites?"}, {"speaker": "B", "text": "Yes."}]
    name = "tiny_dial" if level == "dialogue" else "tiny"
    of = {"dataset": name, "references": [], "facts": []}
    if level == "turn":
        contexts = [of | {"context_id": "c", "dialogue_id": "d", "turn": 1, "history": said}]
        responses = [("c", "s", "Red ones"), ("c", "t", "I like all kites"), ("c", "unrated", "a b c d e f g h")]
    else:
        contexts = [
            of | {"context_id": "c1", "dialogue_id": "d", "turn": 0, "history": said[:1]},
            of | {"context_id": "c3", "dialogue_id": "d", "turn": 1, "history": [*said, said[0]]},
        ]
        responses = [("c1", "s", "Yes."), ("c3", "s", "You asked before")]
    folder.mkdir()
    schema.write(folder / "contexts.parquet", pd.DataFrame(contexts), "contexts")
    names = ["context_id", "system_id", "response"]
    answered = pd.DataFrame(responses, columns=names).assign(dataset=name)
    schema.write(folder / "responses.parquet", answered, "responses")
    item = {"level": level, "item_id": "c" if level == "turn" else "d"}
    rating = item | {"dataset": name, "rating": 2.0, "scale_min": 1.0, "scale_max": 3.0, "position": None}
    rated = [("s", "human", "overall"), ("s", "gpt-4", "coherence" if level == "dialogue" else "specificity")]
    rated += [("t", "human", "overall")] if level == "turn" else []
    ratings = [
        rating | {"system_id": s, "source": by, "dimension": d, "annotator_id": f"{by}-{n}"}
        for s, by, d in rated
        for n in (1, 2)
    ]
    schema.write(folder / "ratings.parquet", pd.DataFrame(ratings), "ratings")
    return folder


def test_table_1_counts_rated_items(tmp_path):
    turn, dialogue = write_set(tmp_path / "tiny"), write_set(tmp_path / "tiny_dial", "dialogue")
    counted = pd.DataFrame([data_sets.count(folder) for folder in (turn, dialogue)])
    assert counted.to_dict("records")[0] == {
        "dataset": "tiny", "level": "turn", "items": 2, "utterances": 3.0, "words_before": 5.0, "words": 3.0,
        "human": "overall", "gpt-4": "specificity",
    }  # fmt: skip
    theirs = pd.DataFrame(
        [
            {
                "dataset": "tiny",
                "items": 3,
                "utterances": 3.5,
                "words_before": 6.0,
                "words": 2.0,
                "human": "overall",
                "gpt-4": "",
            }
        ]
    )
    found = data_sets.table_1(
        counted, round_rows().replace({"dataset": {"fed_dial": "tiny_dial"}}), theirs, titles={"tiny": "Tiny"}
    )
    assert rows_of(found, "Turn level") == [
        ["Tiny", "2", "3", "3.0", "3.5", "5.0", "6.0", "3.0", "2.0", "Ovr", "Ovr", "Spe", "–", "–", "–"]
    ]
    both = {"ieval_dial": "IEval-Dial", "reliable_dial": "Reliable-Dial"}
    many = pd.DataFrame([counted.loc[1].to_dict() | {"dataset": name, "items": 1066} for name in reversed(both)])
    more = data_sets.table_1(many, round_rows(), theirs, titles=both)
    assert [one[:2] for one in rows_of(more, "Dialogue level")] == [["Reliable-Dial", "1,066"], ["IEval-Dial", "1,066"]]
    assert any(note.startswith("IEval-Dial, Reliable-Dial: the reported lengths") for note in more.notes)
    assert not any("<EMPTY>" in note for note in more.notes), "no word on sets that are not there"
    # Four utterances: 4 + 1 + 4 words and the last response's 3.
    assert rows_of(found, "Dialogue level") == [
        ["tiny_dial", "1", "–", "4.0", "–", "12.0", "–", "Ovr", "–", "Coh", "–", "0.30 to 0.30", "0.70 to 0.70"]
    ]


def test_table_7_counts_recorded_and_made_pairs(root):
    theirs = pd.read_csv(root / "src/comperdial/studies/llm_evaluators/perturbations.csv").fillna("")
    columns = ["dataset", "perturbation", "pairs", "originals"]
    recorded = pd.DataFrame([("t", "repetition", 1993, 1900), ("t", "speaker", 920, 900)], columns=columns)
    made = pd.DataFrame([("x_perturbed", "repetition", 200, 180)], columns=columns)
    found = perturbations.table_7(recorded, made, theirs, PERTURBATIONS, titles={"x": "Set X"})
    rows = {one[0]: one for one in rows_of(found, "Recorded, in the paper")}
    assert rows["Repetition"][1:] == ["Rep", "turn", "DD & PC", "Und", "1,993", "1,993", "1,900", "0.2", "0.2"]
    assert rows["Dullness"][1:] == ["Dul", "turn", "DD & PC", "Int, Spe", "–", "2,811", "–", "0.2", "0.2"]
    assert len(rows) == 14
    other = rows_of(found, "Recorded, not in the paper's table")
    assert [(one[5], one[6], one[8]) for one in other] == [("920", "–", "0.2 [ours]")]
    assert rows_of(found, "Made here, pairs: turn level") == [["Set X", "200"]]
    assert found.tidy["pairs_reported"].fillna(0).tolist() == [1993, 0, 0]


def ratio(perturbation, dimension, metric, threshold, value, **changes):
    of = PERTURBATIONS[perturbation]
    found = {"dataset": "t", "perturbation": perturbation, "level": of.level, "dimension": dimension, "metric": metric}
    found |= {"output": "o", "threshold": threshold, "ratio": value, "low": value - 0.05, "high": value + 0.05}
    return found | {"ties": 0.1, "n": 20, "coverage": 1.0, "signature": "s|v:1"} | changes


def ratio_rows():
    rows = []
    for name, of in PERTURBATIONS.items():
        if of.level == "turn" and of.paper:
            for d in of.dimensions:
                rows += [ratio(name, d, "judge-turn", of.threshold, 0.4), ratio(name, d, "judge-turn", 0.0, 0.6)]
    rows += [ratio("repetition", "understandability", "free", 0.0, 0.7, coverage=0.5)]
    return [*rows, ratio("speaker", "relevance", "judge-turn", PERTURBATIONS["speaker"].threshold, 0.3)]


def test_table_8_has_the_paper_s_threshold_and_any_drop(root):
    theirs = pd.read_csv(root / "src/comperdial/studies/llm_evaluators/robustness.csv").fillna({"dimension": ""})
    frame = pd.DataFrame(ratio_rows())
    frame.loc[(frame["perturbation"] == "repetition") & (frame["threshold"] > 0), ["ratio", "low", "high"]] = (
        0.8,
        0.7,
        0.9,
    )
    found = robustness.table_8(
        frame, theirs, PERTURBATIONS, outputs=[], labels={"judge-turn": "Judge"}, not_run={"big": "no weights"}
    )
    section = next(one for one in found.sections if one.title == "Turn level, ours: a drop above δ")
    at = [name for _, name in section.columns].index("Rep (Und)")
    assert section.rows == [
        ["Pairs", *["20"] * (len(section.columns) - 2), "–"],
        ["Judge", *(["0.400 [0.35, 0.45]"] * (at - 1)), "0.800 [0.70, 0.90]", *["0.400 [0.35, 0.45]"] * 3, "0.450"],
    ]
    drops = {one[0]: one for one in rows_of(found, "Turn level, ours: any drop")}
    assert drops["Judge"][-1] == "0.600"
    assert [drops["free"][at], drops["free"][-1]] == ["0.700 [0.65, 0.75]", "–"]
    printed = {one[0]: one for one in rows_of(found, "Turn level, reported: a drop above δ")}
    assert [printed["Palm-2"][at], printed["Palm-2"][-1]] == ["0.127", "0.401"]
    other = rows_of(found, "Turn level, suites that the paper lacks: a drop above δ [ours]")
    assert other == [["Pairs", "20"], ["Judge", "0.300 [0.25, 0.35]"]]
    assert any(
        note.startswith("Scores of 50% or more of the pairs of each perturbation: free;") for note in found.notes
    )
    ours = found.tidy[found.tidy["origin"] == "ours"].set_index("evaluator")
    assert ours.loc["Judge", "repetition_understandability_above_delta"] == 0.8
    assert ours.loc["Judge", "repetition_understandability_above_delta_low"] == 0.7
    assert ours.loc["free", "repetition_understandability_any_drop"] == 0.7
    assert pd.isna(ours.loc["free", "repetition_understandability_above_delta"])
    theirs = found.tidy[found.tidy["origin"] == "reported"].set_index("evaluator")
    assert theirs.loc["Palm-2", "repetition_understandability_above_delta"] == 0.127
    assert not {"label", "repetition_understandability"} & set(found.tidy.columns)


def test_notes_of_robustness_are_true_of_the_rows():
    def coverage(metric, share):
        return [
            ratio("repetition", "understandability", metric, threshold, 0.5, coverage=share, n=n)
            for threshold, n in ((0.0, 12), (0.2, 12))
        ]

    rows = [*coverage("a", 0.8976), *coverage("b", 0.8976), *coverage("c", 0.695), *coverage("d", 1.0)]
    rows.append(ratio("order_shuffle", "coherence", "d", 0.2, 0.5, n=7))
    frame = pd.DataFrame(rows).assign(dataset="x_perturbed")
    frame.loc[frame["metric"] == "d", "signature"] = "cpdscore|service:rules|v:1"
    found = robustness.robustness_document(
        frame,
        PERTURBATIONS,
        outputs=[("a", "o"), ("lost", "o")],
        labels={"d": "Rules"},
        titles={"x": "Set X"},
        bounds={("a", "o"): (-1.0, 1.0), ("b", "o"): (-1.0, 1.0), ("d", "o"): (1.0, 5.0)},
        needs={"a": ["histories"], "b": ["histories"], "lost": ["references"]},
    )
    notes = "\n".join(found.notes)
    assert "Scores of 89% or more of the pairs of each perturbation: a, b; the others have no text before" in notes
    assert "Scores of 69% or more of the pairs of each perturbation: c; the others lack what these need" in notes
    assert "d; the" not in notes
    assert "Lowest and highest possible score. -1 to 1: a, b; 1 to 5: Rules" in found.notes
    assert "Ratios for any drop do not depend on it" in notes
    assert "no reproduction of the paper's Table 8" in notes
    assert "Rules: it counts words by fixed rules" in notes
    lost = "no row, as the texts lack what is needed"
    assert f"Set X: Turn level, {lost}: lost (references)" in found.notes
    assert f"Set X: Dialogue level, {lost}: a (text before the response); lost (references)" in found.notes
    assert found.sections[0].rows[0] == ["Pairs", "12", "7"]
    plain = robustness.robustness_document(frame, PERTURBATIONS, outputs=[], labels={}, titles={})
    assert not any("Lowest and highest possible" in note or "no row" in note for note in plain.notes)


def test_table_8_takes_one_ratio_a_cell():
    frame = pd.DataFrame(ratio_rows())
    twice = pd.concat([frame, frame.assign(dataset="u")])
    empty = pd.DataFrame(columns=robustness.RATIO_COLUMNS)
    with pytest.raises(SchemaError, match="two ratios of 'judge-turn'"):
        robustness.table_8(twice, empty, PERTURBATIONS, outputs=[], labels={}, not_run={})
    with pytest.raises(UnknownNameError, match="perturbation 'new'"):
        robustness.table_8(frame.assign(perturbation="new"), empty, PERTURBATIONS, outputs=[], labels={}, not_run={})


def test_robustness_of_any_sets_in_the_order_of_titles():
    frame = pd.concat([pd.DataFrame(ratio_rows()).assign(dataset=name) for name in ("b_perturbed", "a_perturbed")])
    found = robustness.robustness_document(
        frame, PERTURBATIONS, outputs=[], labels={}, titles={"b": "Set B", "a": "Set A"}
    )
    assert [section.title for section in found.sections] == [
        f"Set {name}: {drop}" for name in "BA" for drop in ("a drop above δ", "any drop")
    ]
    assert [one[0] for one in found.sections[1].rows] == ["Pairs", "free", "judge-turn"]


def test_table_9_is_in_our_words():
    asked = {
        f"implicit-{level}": {"prompt": f"implicit_{level}", "fields": fields, "labels": {"Yes": 1, "No": 0}, **more}
        for level, fields, more in (
            ("turn", ["history", "response"], {"question": "relevance", "dimensions": ["relevance"]}),
            ("dialogue", ["dialogue"], {"question": "Was it fun, all of it?", "dimensions": ["engagingness"]}),
        )
    }
    plain = {
        "prompt": "cpds_simple",
        "fields": ["history", "response"],
        "dimensions": ["overall"],
        "main": "overall",
        "scale": [1, 5],
    }
    found = table_9(asked | {"plain": plain}, ["anyone: no judge gives probabilities"])
    assert "Not asked: anyone: no judge gives probabilities" in found.notes
    rows = rows_of(found, "Turn level")
    assert [one[:2] for one in rows[:2]] == [["relevance", "implicit-turn"], ["specificity", "–"]]
    assert rows[0][2] == find_question("relevance", "turn")
    own = rows_of(found, "Dialogue level")
    assert own[1] == ["engagingness", "implicit-dialogue", "Was it fun, all of it?"]
    assert "plain" not in set(found.tidy["variant"])


def together(dataset, *who):
    names = DIMENSIONS["dialogue"]
    return pd.DataFrame(
        [
            (dataset, one, a, b, 1.0 if a == b else (i + j + 10 * w) / 40, 12)
            for w, one in enumerate(who)
            for i, a in enumerate(names)
            for j, b in enumerate(names)
        ],
        columns=["dataset", "who", "dimension_a", "dimension_b", "value", "n"],
    )


def test_figures_have_a_panel_for_each_who_rates():
    figure = interdimensional_figure(
        together("d", "rules", "gpt-4", "human"), title="FED-Dial", labels={"rules": "Rules"}
    )
    panels = [ax for ax in figure.axes if ax.get_title(loc="left")]
    assert [ax.get_title(loc="left") for ax in panels] == [
        "People\nn = 12",
        "GPT-4 (recorded)\nn = 12",
        "Rules\nn = 12",
    ]
    texts = [[one.get_text() for one in ax.texts] for ax in panels]
    # The lower triangle, row by row: pairs (1, 0), (2, 0), (2, 1), …
    pairs = [(i, j) for i in range(1, 5) for j in range(i)]
    assert texts[2] == [f"{(i + j) / 40:.2f}"[1:] for i, j in pairs]
    assert texts[0] == [f"{(i + j + 20) / 40:.2f}"[1:] for i, j in pairs]
    with pytest.raises(SchemaError, match="nobody rated all dimensions"):
        interdimensional_figure(together("d"), title="FED-Dial", labels={})


def test_a_figure_speaks_of_its_own_panels():
    alone = interdimensional_figure(
        together("d", "rules", "human"), title="T", labels={"rules": "Rules"}, programs=["rules"], name="Figure 4"
    )
    assert alone.get_suptitle() == "Figure 4. How dimensions go together: T"
    assert "GPT-4's recorded rounds" not in alone.get_label()
    assert "Ratings are means over people." in alone.get_label()
    assert "Rules: fixed rules that count words" in alone.get_label()
    assert "in Zhang et al. 2024's Figure 4 are not here" in alone.get_label()
    both = interdimensional_figure(together("d", "gpt-4", "human"), title="T", labels={})
    assert "means over people or GPT-4's recorded rounds." in both.get_label()
    assert "fixed rules" not in both.get_label()


def test_what_intervals_resample_is_said_of_each_set(tmp_path):
    turn, dialogue = write_set(tmp_path / "tiny"), write_set(tmp_path / "tiny_dial", "dialogue")
    responses = pd.read_parquet(turn / "responses.parquet")
    responses.loc[responses["system_id"].isin(["s", "unrated"]), "response"] = sampling.EMPTY
    responses.to_parquet(turn / "responses.parquet")
    notes = sampling.sampling_notes([turn, dialogue], {"tiny": "Tiny"})
    assert notes[0].startswith("An interval resamples dialogues, in Tiny, tiny_dial (fewer than four systems")
    assert [note.split(",")[0] for note in notes[1:]] == ["Tiny: 1 of the 2 rated responses are the mark <EMPTY>"]
    assert sampling.sampling_notes([], {}) == []
    contexts = pd.DataFrame(
        [("t", f"c{n}", f"d{n}") for n in range(4)], columns=["dataset", "context_id", "dialogue_id"]
    )
    pairs = [(f"c{n}", f"s{m}") for n in range(4) for m in range(4)]
    whole = pd.DataFrame(pairs, columns=["item_id", "system_id"]).assign(
        dataset="t", level="turn", annotator_id="a", position=None, dimension="overall", rating=1.0, scale_min=1.0, scale_max=5.0,
        source="human",
    )  # fmt: skip
    for kept, expected in (
        (whole, "systems and dialogues"),
        (whole[whole["item_id"].str[1:] == whole["system_id"].str[1:]], "systems"),
        (whole[whole["system_id"] < "s3"], "dialogues"),
    ):
        ratings = schema.validate(kept[list(schema.table("ratings").columns)], "ratings")
        assert sampling.resampled(RatedSet("t", "turn", ratings, contexts), "human") == expected


def test_data_sets_and_rounds_are_made(root, tmp_path):
    folders = [write_set(tmp_path / "tiny"), write_set(tmp_path / "tiny_dial", "dialogue")]
    table = tmp_path / "rounds.parquet"
    schema.write(table, round_rows(), "rounds")
    inputs, said = {"tables": [], "rounds": table}, {"folders": [*map(str, folders)], "titles": {}}
    reported = root / "src/comperdial/studies/llm_evaluators/data_sets.csv"
    assert "| tiny | 2 | – |" in made("table_1", tmp_path / "one", inputs | {"reported": reported}, **said)
    assert "0.700 [0.60, 0.80]" in made("rounds", tmp_path / "rounds", inputs, **said)


def write_pairs(folder):
    """Write two pairs of a perturbation: one text each."""
    folder.mkdir()
    of = {"dataset": "t", "turn": 0, "history": [{"speaker": "A", "text": "Hi."}], "references": [], "facts": []}
    rows = [(f"repetition-{n}", s, f"text {n} {s}") for n in ("0001", "0002") for s in ("original", "perturbed")]
    contexts = [of | {"context_id": f"{d}-{s}-0", "dialogue_id": d} for d, s, _ in rows]
    responses = [
        {"dataset": "t", "context_id": f"{d}-{s}-0", "system_id": s, "response": response} for d, s, response in rows
    ]
    schema.write(folder / "contexts.parquet", pd.DataFrame(contexts), "contexts")
    schema.write(folder / "responses.parquet", pd.DataFrame(responses), "responses")
    return folder


def test_tables_of_perturbations_are_made(root, tmp_path):
    stem, pairs, paper = (
        tmp_path / "made",
        str(write_pairs(tmp_path / "t")),
        root / "src/comperdial/studies/llm_evaluators",
    )
    said = {"recorded": [pairs], "made": [pairs], "titles": {}}
    shown = made("table_7", stem, {"tables": [], "reported": paper / "perturbations.csv"}, **said)
    assert "| Repetition | Rep | turn | DD & PC | Und | 2 | 1,993 | 2 |" in shown
    table = tmp_path / "ratios.parquet"
    schema.write(table, pd.DataFrame(ratio_rows()), "ratios")
    said = {"outputs": ["f1:f1"], "labels": {"judge-turn": "Judge"}, "needs": {"f1": ["references"]}}
    said["bounds"] = {"judge-turn": {"o": [1, 5]}}
    inputs = {"ratios": [table]}
    shown = made("table_8", stem, inputs | {"reported": paper / "robustness.csv"}, not_run={}, **said)
    assert "| Judge | 0.400 [0.35, 0.45] |" in shown
    assert "Lowest and highest possible score. 1 to 5: Judge" in shown
    assert "what is needed: f1 (references)" in shown
    shown = made("robustness_of_dataset", stem, inputs, titles={"t": "Set T"}, source="simulated", **said)
    assert "## Set T: a drop above δ" in shown
    assert "SIMULATED" in stem.with_suffix(".html").read_text()
    questions = {"questions": root / "src/comperdial/judges/prompts/questions.yaml"}
    shown = made("table_9", stem, questions, variants={}, not_asked=["implicit scoring: nobody"])
    assert "Not asked: implicit scoring: nobody" in shown
    assert "| relevance | – | – |" in shown


def test_a_figure_of_dimensions_is_made(tmp_path):
    folder = write_set(tmp_path / "tiny_dial", "dialogue")
    ratings, scores = [], []
    for n, numbers in enumerate([(1, 2, 1, 3, 2), (2, 2, 3, 1, 3), (3, 1, 2, 2, 2)]):
        of = {"dataset": "tiny_dial", "level": "dialogue", "item_id": f"d{n}", "system_id": "s"}
        of |= {"source": "human", "annotator_id": "a"}
        for d, value in zip(DIMENSIONS["dialogue"], numbers, strict=True):
            rating = {"dimension": d, "rating": float(value), "scale_min": 1.0, "scale_max": 3.0, "position": None}
            ratings.append(of | rating)
            score = {"dataset": "tiny_dial", "level": "dialogue", "item_id": f"d{n}", "system_id": "s", "metric": "j"}
            scores.append(
                score | {"output": d, "value": float(value % 3), "cut": 0, "signature": "j|service:rules|v:1"}
            )
    schema.write(folder / "ratings.parquet", pd.DataFrame(ratings), "ratings")
    schema.write(tmp_path / "scores.parquet", pd.DataFrame(scores), "scores")
    inputs = {"tables": [folder / "ratings.parquet"], "scores": [tmp_path / "scores.parquet"]}
    said = {"number": "3", "title": "Tiny", "labels": {"j": "Judge"}, "judges": ["j"], "missing": []}
    drawn = made("dimensions", tmp_path / "figure", inputs, **said)
    shown = pd.read_csv(tmp_path / "figure.csv")
    assert shown.groupby("who").size().to_dict() == {"human": 10, "j": 10}
    # Ratings 1 2 3 of coherence and 2 2 1 of engagingness.
    first = shown[(shown["who"] == "human") & (shown["dimension_a"] == "engagingness")]
    assert first["value"].tolist() == [pytest.approx(-0.866, abs=1e-4)]
    assert "Figure 3. How dimensions go together: Tiny" in drawn
    assert "Judge: fixed rules" in drawn
