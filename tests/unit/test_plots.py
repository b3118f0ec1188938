"""The figures of a data set: their numbers against plain computations, and that they can be drawn, the same on every run."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as xml
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from scipy import stats

from comperdial import schema
from comperdial.config.studies import DATASET, read_study
from comperdial.core.errors import NothingToShowError, SchemaError
from comperdial.core.files import write_json
from comperdial.report.about import label
from comperdial.report.plots import dataset, style
from comperdial.studies.making import write_figure

KINDS = ["heatmap", "scatter", "slope", "length_bias", "judge_agreement", "curves"]
SYSTEMS, DIALOGUES = [f"s{n}" for n in range(6)], [f"d{n}" for n in range(5)]
OF = {"dataset": "d", "level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled"}
OF["coefficient"] = "spearman"
VALUES = {"bleu": 0.3, "f1": 0.5, "j": 0.1}
ABOUT = {
    "dataset": "d", "title": "Set D", "source": "human", "target": None, "main_target": "Overall", "labels": {"f1": "F1"},
    "figure_outputs": {}, "judge_outputs": ["j:o"], "judged": ["j"], "resamples": 40, "seed": 1, "coefficient": "spearman",
}  # fmt: skip


def put(path, rows, name):
    schema.write(path, pd.DataFrame(rows).reindex(columns=list(schema.table(name).columns)), name)


@pytest.fixture
def made(tmp_path):
    """Six systems, five dialogues of one turn; ``bleu`` follows the ratings, ``f1`` the length, ``j`` is a judge."""
    rng = np.random.default_rng(1)
    rated = pd.DataFrame([(d, s) for d in DIALOGUES for s in SYSTEMS], columns=["item_id", "system_id"])
    single = rng.integers(1, 6, size=(3, len(rated))).astype(float)
    rated = rated.assign(dataset="d", level="turn", rating=single.mean(axis=0), words=rng.integers(1, 20, len(rated)))
    noise = rng.normal(size=(3, len(rated))).astype("float32")
    rated = rated.assign(bleu=(rated["rating"] + noise[0]), f1=rated["words"] + noise[1], j=noise[2])
    rated.loc[:2, "bleu"] = np.nan
    rated = rated.astype(dict.fromkeys(VALUES, "float32"))
    system = {"dataset": "d", "kind": "agent", "description": "-"}
    context = {"dataset": "d", "turn": 0, "history": [], "references": [], "facts": []}
    tables = {
        "systems": [system | {"system_id": s} | ({"kind": "human"} if s == "s1" else {}) for s in SYSTEMS],
        "contexts": [context | {"context_id": d, "dialogue_id": d} for d in DIALOGUES],
        "responses": rated.assign(context_id=rated["item_id"], response=[" ".join("w" * n) for n in rated["words"]]),
        "ratings": pd.concat(
            rated.assign(annotator_id=who, dimension="Overall", source="human", rating=values, scale_min=1.0, scale_max=5.0)
            for who, values in zip("abc", single, strict=True)
        ),
        "correlations": [
            OF | {"level": level, "against": level.replace("system", "turn"), "coefficient": coefficient, "metric": metric}
            | {"output": "o", "value": value + shift, "low": value - 0.1, "high": value + 0.2, "p": 0.01, "n": 30}
            | {"coverage": 1.0, "cut": 0, "signature": metric}
            for level in ("turn", "dialogue", "system")
            for coefficient, shift in (("pearson", 0.0), ("spearman", 0.05), ("kendall", -0.1))
            for metric, value in VALUES.items()
        ],
        "ceilings": [OF | {"annotator_id": who, "value": value, "n": 9} for who, value in (("a", 0.6), ("b", 0.8))],
        "curves": [
            OF | {"varied": "systems", "size": size, "metric": metric, "output": "o", "value": value, "repeats": 20}
            | {"low": value - 1 / size, "high": value + 1 / size, "agreement": 1 - 1 / size}
            for size in (2, 6)
            for metric, value in VALUES.items()
        ],
        "power": [
            OF | {"metric_a": "a", "output_a": "o", "metric_b": b, "output_b": "o", "varied": "dialogues", "size": size}
            | {"difference": difference, "power": min(1.0, abs(size * difference))}
            for size in (5, 10)
            for b, difference in (("b", 0.01), ("c", -0.02), ("d", 0.2))
        ],
    }  # fmt: skip
    for name, rows in tables.items():
        put(tmp_path / f"{name}.parquet", rows, name)
    (tmp_path / "scores").mkdir()
    for name in VALUES:
        rows = rated.assign(value=rated[name], metric=name, output="o", cut=0, signature=name)
        put(tmp_path / "scores" / f"{name}.parquet", rows.dropna(subset="value"), "scores")
    write_json(tmp_path / "about.json", ABOUT)
    inputs = {path.stem: [path] for path in tmp_path.glob("*.*")} | {"scores": sorted((tmp_path / "scores").glob("*"))}

    def draw(kind, *outputs, **more):
        write_json(tmp_path / "about.json", ABOUT | {"figure_outputs": {kind: outputs}} | more)
        return getattr(dataset, kind)(inputs, study(kind))

    return SimpleNamespace(folder=tmp_path, inputs=inputs, rated=rated, draw=draw)


def study(kind):
    return {"entry": {"name": kind, **read_study(DATASET)["figures"][kind]}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_says_simulated_and_has_the_same_bytes_twice(made, kind):
    write_json(made.folder / "about.json", ABOUT | {"source": "simulated"})
    ratings = schema.read(made.folder / "ratings.parquet", "ratings").assign(source="simulated")
    schema.write(made.folder / "ratings.parquet", ratings, "ratings")
    for run in ("one", "two"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write_figure(getattr(dataset, kind), made.inputs, study(kind), made.folder / run)
    for suffix in ("pdf", "png", "svg", "csv"):
        assert (made.folder / f"one.{suffix}").read_bytes() == (made.folder / f"two.{suffix}").read_bytes(), suffix
    assert b"Type3" not in (made.folder / "one.pdf").read_bytes()
    title = xml.parse(made.folder / "one.svg").getroot()[0]
    assert title.tag.endswith("title") and "Set D (SIMULATED)" in title.text and "SIMULATED: the systems" in title.text
    with Image.open(made.folder / "one.png") as picture:
        assert picture.mode == "P" and picture.info["dpi"] == pytest.approx((200, 200), abs=0.1)
    assert pd.read_csv(made.folder / "one.csv")["simulated"].all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_an_axis_is_on_another_and_what_is_not_simulated_does_not_say_so(made, kind):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure, _ = made.draw(kind)
    assert "SIMULATED" not in figure.get_label()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    for ax in figure.axes:
        for labels in (ax.get_yticklabels(), ax.get_xticklabels(), ax.texts):
            boxes = [text.get_window_extent(renderer) for text in labels if text.get_text() and text.get_visible()]
            boxes = [box for box in boxes if ax.get_window_extent(renderer).padded(400).overlaps(box)]
            for n, box in enumerate(boxes):
                assert not any(box.shrunk(0.8, 0.8).overlaps(other.shrunk(0.8, 0.8)) for other in boxes[n + 1 :]), kind


def test_heatmap_has_the_ceiling_first_then_the_best_metric(made):
    _, frame = made.draw("heatmap")
    assert list(dict.fromkeys(frame["metric"])) == ["ceiling", "f1", "bleu", "j"]
    first = frame.iloc[0]
    assert (first["value"], first["n"], first["coefficient"]) == (pytest.approx(0.7), 2, "spearman")
    assert len(frame) == 1 + 3 * 3 * 3
    assert {*made.draw("heatmap", "f1:o", "none:x")[1]["metric"]} == {"ceiling", "f1"}
    assert {*made.draw("heatmap", "none:x")[1]["metric"]} == {"ceiling", *VALUES}, "all if none of them is known"


def test_a_figure_of_nothing_says_so(made):
    put(made.folder / "correlations.parquet", [], "correlations")
    write_figure(dataset.heatmap, made.inputs, study("heatmap"), made.folder / "none")
    assert "Nothing to show: there are no ratings" in pd.read_csv(made.folder / "none.csv")["note"][0]
    put(made.folder / "ratings.parquet", [], "ratings")
    with pytest.raises(NothingToShowError, match="at turn level no score belongs to a rating of Overall"):
        made.draw("scatter")


def test_scatter_shows_means_of_complete_pairs(made):
    _, frame = made.draw("scatter", "bleu:o")
    units = made.rated.dropna(subset="bleu")
    means = units.groupby("system_id")[["bleu", "rating"]].mean()
    rows = frame[frame["kind"] != "all"].set_index("system_id")
    np.testing.assert_allclose(rows[["score", "rating"]], means.loc[rows.index], rtol=1e-6)
    assert rows.loc["s1", "kind"] == "human"
    whole = frame[frame["kind"] == "all"].iloc[0]
    assert whole["n"] == len(units) == rows["n"].sum()
    assert (whole["value"], whole["low"], whole["high"]) == pytest.approx((0.35, 0.2, 0.5))


def test_slope_ranks_means_and_marks_what_moves_most(made):
    _, frame = made.draw("slope", "f1:o")
    means, found = made.rated.groupby("system_id")[["f1", "rating"]].mean(), frame.set_index("system_id")
    for column, name in (("score", "f1"), ("rating", "rating")):
        assert found.loc[means.index, f"{column}_rank"].tolist() == stats.rankdata(-means[name].round(12)).tolist()
    assert frame["tau"].iloc[0] == pytest.approx(0.4), "that of the table of correlations"
    assert found.loc["s1", "marked"] == "human"
    ranks = pd.DataFrame({"rating_rank": [1.0, 2, 3, 4, 5], "score_rank": [5.0, 2, 4, 3, 1]}, index=[*"abcde"])
    assert dataset.marked(ranks, {"b"}, count=2) == ["lower", "human", "", "", "higher"]


@pytest.mark.parametrize("places", [[1, 1, 1, 1], [99, 98.5, 99, 1], [5], [], [50, 51, 52, 97, 98, 99]])
def test_labels_are_moved_apart_within_the_axis(places):
    moved = dataset.spread(places, gap=3, low=1, high=99)
    ordered = np.sort(moved)
    assert len(moved) == len(places) and (np.diff(ordered) >= 3 - 1e-9).all()
    assert not len(ordered) or (ordered[0] >= 1 - 1e-9 and ordered[-1] <= 99 + 1e-9)
    assert np.argsort(moved, kind="stable").tolist() == np.argsort(places, kind="stable").tolist()


def test_length_bias_is_scipys_and_the_partial_value_is_the_formulas(made):
    _, frame = made.draw("length_bias")
    found = frame.set_index(["metric", "measure"])["value"]
    of_people = stats.spearmanr(made.rated["rating"], made.rated["words"]).statistic
    assert found["people", "length"] == pytest.approx(of_people)
    assert frame["metric"].iloc[0] == "people" and frame["metric"].iloc[1] == "f1"
    for metric, value in VALUES.items():
        units = made.rated.dropna(subset=metric)
        length, rated, both = (
            stats.spearmanr(units[a], units[b]).statistic
            for a, b in ((metric, "words"), (metric, "rating"), ("rating", "words"))
        )
        partial = (rated - length * both) / np.sqrt((1 - length**2) * (1 - both**2))
        shown = [found[metric, measure] for measure in ("length", "ratings", "ratings given length")]
        assert shown == pytest.approx([length, value + 0.05, partial], abs=1e-12)


def test_judge_agreement_has_each_pair_once(made):
    _, frame = made.draw("judge_agreement", "bleu:o", "f1:o")
    pairs = frame.set_index(["metric_a", "metric_b"])
    assert len(pairs) == 4 * 3 // 2
    for one, other in (("j", "bleu"), ("people", "bleu"), ("people", "j")):
        units = made.rated.rename(columns={"rating": "people"})[[one, other]].dropna()
        assert pairs.loc[(one, other), "value"] == pytest.approx(stats.spearmanr(units[one], units[other]).statistic)
        assert pairs.loc[(one, other), "n"] == len(units)
    with pytest.raises(SchemaError, match="no judge has scores"):
        made.draw("judge_agreement", "bleu:o", judge_outputs=["absent:x"])


def test_curves_show_the_best_outputs_agreement_and_power(made):
    _, frame = made.draw("curves")
    found = frame.set_index(["part", "series", "size"])
    assert found.loc[("value", "f1:o", 2), ["value", "low", "high"]].tolist() == pytest.approx([0.5, 0.0, 1.0])
    assert found.loc[("agreement", "turns against ratings of turns", 6), "value"] == pytest.approx(5 / 6)
    near = found.loc[("power", "0 to 0.025", 10)]
    assert (near["value"], near["n"]) == (pytest.approx(np.median([0.1, 0.2])), 2)
    assert list(dict.fromkeys(frame.loc[frame["part"] == "value", "series"])) == ["f1:o", "bleu:o", "j:o"]
    for name in ("curves", "power"):
        put(made.folder / f"{name}.parquet", [], name)
    figure, frame = made.draw("curves")
    assert frame.empty and {text.get_text() for ax in figure.axes for text in ax.texts} == {"not computed"}


def test_labels():
    cases = {("f1", "f1"): "f1", ("bleu", "bleu-4"): "bleu-4", ("chrf_raw", "chrf"): "chrf_raw", ("a", "b"): "a b"}
    assert {output: label(output, {}) for output in cases} == cases
    assert label(("bleu", "bleu-4"), {"bleu": "BLEU"}) == "BLEU, bleu-4"
    assert label(("bleu", "bleu-4"), {"bleu:bleu-4": "BLEU-4"}) == "BLEU-4"


@pytest.mark.parametrize(
    ("value", "text"), [(0.3456, ".35"), (-0.001, ".00"), (-0.25, "−.25"), (1.0, "1.00"), (np.nan, "–"), (0.0, ".00")]
)
def test_short_numbers(value, text):
    assert style.short(value) == text


def test_lightness_keeps_the_order_and_text_stands_out():
    colours = style.colours_of([0.0, 1.0]).to_rgba(np.linspace(0, 1, 226))[:, :3]
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(luminance) > 0).all()
    for colour, light in zip(colours, luminance, strict=True):
        ink = {"#000000": 0.0, "#ffffff": 1.0}[style.ink_on(colour)]
        assert (max(ink, light) + 0.05) / (min(ink, light) + 0.05) >= 4.5
    assert all(len({str(one[at]) for one in style.SERIES}) == len(style.SERIES) for at in ("color", "marker", "ls"))
