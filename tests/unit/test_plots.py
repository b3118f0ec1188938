"""Our own figures: their numbers against plain computations, and that they can be drawn, the same on every run."""

import dataclasses
import warnings
import xml.etree.ElementTree as xml

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from comperdial import schema
from comperdial.core.errors import ComperdialError, ConfigError, NothingToShowError, SchemaError, UnknownNameError
from comperdial.evaluation import Sample
from comperdial.report.about import label
from comperdial.report.plots import curves, heatmap, judge_agreement, length_bias, scatter, slope, style
from comperdial.stats.agreement import krippendorff_alpha
from comperdial.stats.design import Design

SYSTEMS, DIALOGUES = 6, 5


def sample(seed=1, level="turn", missing=0, target="Overall"):
    """Six systems, five dialogues; ``bleu`` follows the ratings, ``f1`` follows the length, ``j`` is a judge."""
    rng = np.random.default_rng(seed)
    n = SYSTEMS * DIALOGUES
    single = rng.integers(1, 6, size=(3, n)).astype(float)
    ratings = single.mean(axis=0)
    length = rng.integers(1, 20, size=n).astype(float)
    names = (("bleu", "bleu-4"), ("f1", "f1"), ("j", "overall"), ("words", "count"))
    scores = np.stack([ratings + rng.normal(size=n), length + rng.normal(size=n), rng.normal(size=n), length])
    scores[0, :missing] = np.nan
    design = Design(np.tile(np.arange(SYSTEMS), DIALOGUES), np.repeat(np.arange(DIALOGUES), SYSTEMS), level == "system")
    return Sample(
        dataset="d", level=level, against="turn", target=target, names=names, scores=scores,
        annotators=("a", "b", "c"), single=single, ratings=ratings, design=design, items=design.dialogues,
        systems=tuple(f"s{code}" for code in range(SYSTEMS)), coverage=(1.0,) * 4, cut=(0,) * 4, signatures=("x",) * 4,
        units=tuple((f"i{n // SYSTEMS}", f"s{n % SYSTEMS}") for n in range(n)),
    )  # fmt: skip


def correlations(levels=(("turn", "turn"), ("dialogue", "dialogue"))):
    rows = [
        {
            "level": level, "against": against, "target": target, "metric": metric, "output": output,
            "grouping": grouping, "coefficient": coefficient, "value": value + shift, "low": value - 0.1,
            "high": value + 0.2, "loso_value": None, "loso_system": None, "n": 30,
        }
        for level, against in levels
        for target in ("Overall", "Other")
        for grouping in ("pooled", "item")
        for coefficient, shift in (("pearson", 0.0), ("spearman", 0.05), ("kendall", -0.1), ("spa", 0.3))
        for metric, output, value in (("bleu", "bleu-4", 0.3), ("f1", "f1", 0.5))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def ceilings(values=(0.6, 0.8)):
    row = {"level": "turn", "against": "turn", "target": "Overall", "grouping": "pooled", "coefficient": "spearman"}
    return pd.DataFrame([row | {"annotator_id": str(n), "value": value, "n": 9} for n, value in enumerate(values)])


def curve_tables():
    of = {"level": "turn", "against": "turn", "target": "Overall", "coefficient": "spearman"}
    points = pd.DataFrame(
        [
            of
            | {"varied": "systems", "size": size, "metric": metric, "output": metric, "value": value}
            | {"low": value - 1 / size, "high": value + 1 / size, "agreement": 1 - 1 / size, "repeats": 20}
            for size in (2, 6)
            for metric, value in (("bleu", 0.3), ("f1", 0.5))
        ]
    )
    power = pd.DataFrame(
        [
            of
            | {
                "grouping": "pooled",
                "varied": "dialogues",
                "size": size,
                "metric_a": "a",
                "output_a": "o",
                "metric_b": b,
                "output_b": "o",
            }
            | {"difference": difference, "power": min(1.0, size * difference)}
            for size in (5, 10)
            for b, difference in (("b", 0.01), ("c", -0.02), ("d", 0.2))
        ]
    )
    power["power"] = power["power"].abs()
    return points, power


def answers(samples=4):
    rng = np.random.default_rng(5)
    rows = [
        {"metric": "j", "output": "overall", "item_id": f"i{item}", "system_id": "s0", "cluster": f"i{item}"}
        | {"sample": n, "value": float(rng.integers(1, 4))}
        for item in range(8)
        for n in range(samples)
    ]
    return pd.DataFrame(rows)


def agreement():
    one = [sample()]
    frame = judge_agreement.judge_agreement_frame(one, judges=[("j", "overall")], metrics=[("bleu", "bleu-4")])
    return frame, judge_agreement.alpha_frame(one, answers(), judges=[("j", "overall")], resamples=50, seed=1)


def draw(kind, **options):
    """Return a figure with the frame of its numbers."""
    options = {"title": "Set D", "labels": {"f1": "F1"}} | options
    if kind == "heatmap":
        frame = heatmap.heatmap_frame(correlations(), ceilings(), target="Overall")
        return heatmap.heatmap_figure(frame, target="Overall", **options), frame
    if kind == "scatter":
        frame = scatter.scatter_frame(sample(missing=3), correlations(), human={"s1"})
        return scatter.scatter_figure(frame, sample(missing=3), **options), frame
    if kind == "slope":
        frame = slope.slope_frame(sample(level="system"), human={"s1"}, count=2)
        return slope.slope_figure(frame, target="Overall", against="turn", **options), frame
    if kind == "length_bias":
        frame = length_bias.length_bias_frame(sample(missing=3), resamples=40, seed=1)
        return length_bias.length_bias_figure(frame, target="Overall", **options), frame
    if kind == "judge_agreement":
        frame, alphas = agreement()
        return judge_agreement.judge_agreement_figure(frame, alphas, **options), judge_agreement.joined(frame, alphas)
    frame = curves.curves_frame(*curve_tables(), target="Overall")
    return curves.curves_figure(frame, target="Overall", **options), frame


KINDS = ["heatmap", "scatter", "slope", "length_bias", "judge_agreement", "curves"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_drawn_without_warnings_says_simulated_and_has_the_same_bytes_twice(tmp_path, kind):
    for run in ("one", "two"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figure, frame = draw(kind, simulated=True)
            texts = [text.get_text() for text in figure.texts]
            assert "Set D (SIMULATED)" in figure.get_suptitle()
            assert any("nothing here is a finding" in text.replace("\n", " ") for text in texts)
            assert "SIMULATED" in figure.get_label()
            style.finish(figure, frame, tmp_path / run, simulated=True)
    for suffix in ("pdf", "png", "svg", "csv"):
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes(), suffix
    assert b"Type3" not in (tmp_path / "one.pdf").read_bytes()
    described = xml.parse(tmp_path / "one.svg").getroot()[0]
    assert described.tag.endswith("desc") and "SIMULATED: the systems" in described.text
    written = pd.read_csv(tmp_path / "one.csv")
    assert len(written) == len(frame) and written["simulated"].all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_an_axis_lies_on_another_and_what_is_not_simulated_does_not_say_so(kind):
    figure, _ = draw(kind)
    assert "SIMULATED" not in figure.get_label()
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for ax in figure.axes:
        for labels in (ax.get_yticklabels(), ax.get_xticklabels(), ax.texts):
            boxes = [text.get_window_extent(renderer) for text in labels if text.get_text() and text.get_visible()]
            boxes = [box for box in boxes if ax.get_window_extent(renderer).padded(400).overlaps(box)]
            for n, box in enumerate(boxes):
                assert not any(box.shrunk(0.8, 0.8).overlaps(other.shrunk(0.8, 0.8)) for other in boxes[n + 1 :]), kind


class TestHeatmap:
    def test_ceiling_first_then_by_the_main_column(self):
        frame = heatmap.heatmap_frame(correlations(), ceilings(), target="Overall")
        assert list(dict.fromkeys(frame["metric"])) == ["ceiling", "f1", "bleu"]
        first = frame.iloc[0]
        assert (first["value"], first["n"], first["coefficient"]) == (pytest.approx(0.7), 2, "spearman")
        assert set(frame["coefficient"]) == {"pearson", "spearman", "kendall"}
        assert len(frame) == 1 + 2 * 2 * 3

    def test_order_and_outputs_can_be_chosen(self):
        changed = correlations()
        changed.loc[(changed["coefficient"] == "kendall") & (changed["metric"] == "bleu"), "value"] = 0.9
        frame = heatmap.heatmap_frame(changed, None, target="Overall", order=("turn", "turn", "kendall"))
        assert frame["metric"].iloc[0] == "bleu"
        one = heatmap.heatmap_frame(changed, target="Overall", outputs=[("f1", "f1"), ("none", "x")])
        assert set(one["metric"]) == {"f1"}

    def test_what_is_not_there_is_said(self):
        with pytest.raises(UnknownNameError, match=r"unknown dimension 'Overal'.*Did you mean"):
            heatmap.heatmap_frame(correlations(), target="Overal")
        everything = heatmap.heatmap_frame(correlations(), target="Overall")
        pd.testing.assert_frame_equal(
            heatmap.heatmap_frame(correlations(), target="Overall", outputs=[("x", "y")]), everything
        )
        with pytest.raises(NothingToShowError, match="no output has numbers"):
            heatmap.heatmap_frame(correlations().assign(value=np.nan), target="Overall")
        with pytest.raises(SchemaError, match=r"no correlations system:turn:pearson.*turn:turn:pearson"):
            heatmap.heatmap_frame(correlations(), target="Overall", order=("system", "turn", "pearson"))


class TestScatter:
    def test_means_of_complete_pairs(self):
        given = sample(missing=7)
        frame = scatter.scatter_frame(given, correlations(), outputs=[("bleu", "bleu-4")], human={"s2"})
        units = pd.DataFrame({"s": given.design.systems, "score": given.scores[0], "rating": given.ratings}).dropna()
        means = units.groupby("s").mean()
        rows = frame[frame["kind"] != "all"]
        np.testing.assert_allclose(rows[["score", "rating"]].to_numpy(), means.to_numpy(), rtol=1e-12)
        assert rows.set_index("system_id").loc["s2", "kind"] == "human"
        whole = frame[frame["kind"] == "all"].iloc[0]
        assert whole["n"] == len(units) == rows["n"].sum()
        assert (whole["value"], whole["low"], whole["high"]) == pytest.approx((0.35, 0.2, 0.5))

    def test_density_counts_each_response_once_at_its_rating(self):
        given = sample()
        x, y, counts = scatter.density(given.scores[0], given.ratings)
        assert counts.sum() == len(given.ratings)
        middle = (y[1:] + y[:-1]) / 2
        for value, count in zip(*np.unique(given.ratings.round(9), return_counts=True), strict=True):
            assert counts[np.abs(middle - value).argmin()].sum() == count
        assert x[0] == given.scores[0].min() and x[-1] == given.scores[0].max()

    def test_density_of_scores_that_do_not_vary(self):
        assert scatter.density(np.ones(4), np.array([1.0, 1.0, 1.0, 1.0]))[2].sum() == 4


class TestSlope:
    def test_ranks_are_those_of_the_means(self):
        given = sample(level="system")
        frame = slope.slope_frame(given, outputs=[("bleu", "bleu-4")], human={"s1"}, count=2)
        units = pd.DataFrame({"s": given.design.systems, "score": given.scores[0], "rating": given.ratings})
        means = units.groupby("s").mean()
        found = frame.set_index("system_id")
        for column in ("score", "rating"):
            expected = stats.rankdata(-means[column].round(12))
            assert found.loc[[f"s{code}" for code in means.index], f"{column}_rank"].tolist() == expected.tolist()
        assert frame["tau"].iloc[0] == pytest.approx(stats.kendalltau(means["score"], means["rating"]).statistic)
        assert found.loc["s1", "marked"] == "human"
        moved = (found["rating_rank"] - found["score_rank"]).drop("s1")
        marked = found["marked"].drop("s1")
        assert (marked != "").sum() == 2
        assert moved[marked != ""].abs().min() >= moved[marked == ""].abs().max()
        assert all((moved[name] > 0) == (marked[name] == "higher") for name in marked.index if marked[name])

    @pytest.mark.parametrize("places", [[1, 1, 1, 1], [99, 98.5, 99, 1], [5], [], [50, 51, 52, 97, 98, 99]])
    def test_labels_are_moved_apart_within_the_axis(self, places):
        moved = slope.spread(places, gap=3, low=1, high=99)
        assert len(moved) == len(places)
        ordered = np.sort(moved)
        assert (np.diff(ordered) >= 3 - 1e-9).all()
        assert not len(ordered) or (ordered[0] >= 1 - 1e-9 and ordered[-1] <= 99 + 1e-9)
        assert np.argsort(moved, kind="stable").tolist() == np.argsort(places, kind="stable").tolist()


class TestLengthBias:
    def test_values_are_scipys_and_the_partial_one_is_the_formula_s(self):
        given = sample(missing=4)
        frame = length_bias.length_bias_frame(given, resamples=40, seed=1).set_index(["metric", "measure"])["value"]
        length = given.scores[3]
        assert frame["people", "length"] == pytest.approx(stats.spearmanr(given.ratings, length).statistic, abs=1e-12)
        for n, metric in enumerate(("bleu", "f1", "j")):
            there = ~np.isnan(given.scores[n])
            score, rating, words = given.scores[n][there], given.ratings[there], length[there]
            sl, sr, rl = (
                stats.spearmanr(a, b).statistic for a, b in ((score, words), (score, rating), (rating, words))
            )
            assert frame[metric, "length"] == pytest.approx(sl, abs=1e-12)
            assert frame[metric, "ratings"] == pytest.approx(sr, abs=1e-12)
            partial = (sr - sl * rl) / np.sqrt((1 - sl**2) * (1 - rl**2))
            assert frame[metric, "ratings given length"] == pytest.approx(partial, abs=1e-12)

    def test_most_dependent_first_and_a_metric_that_is_the_length_has_no_partial_value(self):
        given = sample()
        given.scores[2] = given.scores[3]
        frame = length_bias.length_bias_frame(given, resamples=40, seed=1)
        assert list(dict.fromkeys(frame["metric"])) == ["people", "j", "f1", "bleu"]
        assert np.isnan(frame.set_index(["metric", "measure"]).loc[("j", "ratings given length"), "value"])

    def test_words_are_parted_by_white_space(self):
        scores = pd.DataFrame(
            {
                "dataset": "d", "level": "turn", "item_id": ["c"], "system_id": ["s"], "metric": "f1", "output": "f1",
                "value": 1.0, "cut": 0, "signature": "f1",
            }
        )  # fmt: skip
        responses = pd.DataFrame(
            {"dataset": "d", "context_id": "c", "system_id": ["s", "r"], "response": ["a  b,\tc", "not scored"]}
        )
        found = length_bias.with_lengths(scores, responses)
        assert found.loc[found["metric"] == "words", ["system_id", "value"]].to_numpy().tolist() == [["s", 3.0]]


class TestJudgeAgreement:
    def test_each_pair_once_with_scipys_value(self):
        given = [sample(target="Overall"), sample(seed=2, target="Natural")]
        given[1] = sample(seed=1, target="Natural")
        frame = judge_agreement.judge_agreement_frame(
            given, judges=[("j", "overall"), ("absent", "x")], metrics=[("bleu", "bleu-4"), ("j", "overall")]
        )
        assert len(frame) == 4 * 3 // 2
        row = frame[(frame["metric_a"] == "j") & (frame["metric_b"] == "bleu")].iloc[0]
        assert row["value"] == pytest.approx(stats.spearmanr(given[0].scores[2], given[0].scores[0]).statistic)
        assert frame["group_a"].iloc[0] == "people" and frame["output_b"].iloc[0] == "Natural"

    def test_dimensions_may_be_rated_of_different_turns(self):
        whole = sample()

        def of(kept, target):
            dialogues = np.unique(whole.items[kept], return_inverse=True)[1]
            design = Design(whole.design.systems[kept], dialogues, whole.design.average)
            return dataclasses.replace(
                whole, target=target, scores=whole.scores[:, kept], single=whole.single[:, kept],
                ratings=whole.ratings[kept], design=design, items=dialogues,
                units=tuple(whole.units[n] for n in kept),
            )  # fmt: skip

        uneven = [of(np.arange(0, 24), "A"), of(np.arange(6, 30), "B")]
        frame = judge_agreement.judge_agreement_frame(uneven, judges=[("j", "overall")], metrics=[("bleu", "bleu-4")])
        found = frame.set_index(["output_a", "output_b"])
        assert tuple(found.loc[("A", "B"), ["value", "n"]]) == (pytest.approx(1.0), 18)
        expected = stats.spearmanr(whole.ratings[6:], whole.scores[2, 6:]).statistic
        assert tuple(found.loc[("B", "overall"), ["value", "n"]]) == (pytest.approx(expected), 24)
        assert found.loc[("overall", "bleu-4"), "n"] == 30
        assert judge_agreement.judge_agreement_figure(frame, agreement()[1], title="D").axes

    def test_alpha_of_people_and_of_answers(self):
        _, alphas = agreement()
        people, judge = alphas.to_dict("records")
        assert people["value"] == pytest.approx(krippendorff_alpha(sample().single.T))
        table = answers().pivot(index="item_id", columns="sample", values="value")
        assert judge["value"] == pytest.approx(krippendorff_alpha(table.to_numpy()))
        assert (judge["raters"], judge["items"]) == (4, 8)
        assert judge["low"] <= judge["value"] <= judge["high"]

    def test_a_judge_asked_once_has_no_alpha_and_the_figure_says_so(self):
        frame, _ = agreement()
        alphas = judge_agreement.alpha_frame(
            [sample()], answers(samples=1), judges=[("j", "overall")], resamples=20, seed=1
        )
        assert alphas["group"].tolist() == ["people"]
        figure = judge_agreement.judge_agreement_figure(frame, alphas, title="D")
        assert "asked once" in figure.get_label()

    def test_no_judge_is_an_error(self):
        with pytest.raises(SchemaError, match="no judge has scores"):
            judge_agreement.judge_agreement_frame([sample()], judges=[("absent", "x")])


class TestCurves:
    def test_parts(self):
        frame = curves.curves_frame(*curve_tables(), target="Overall").set_index(["part", "series", "size"])
        assert frame.loc[("value", "f1:f1", 2), ["value", "low", "high"]].tolist() == pytest.approx([0.5, 0.0, 1.0])
        agreed = frame.loc[("agreement", "turns against ratings of turns", 6), "value"]
        assert agreed == pytest.approx(5 / 6)
        near = frame.loc[("power", "0 to 0.025", 10)]
        assert (near["value"], near["n"]) == (pytest.approx(np.median([0.1, 0.2])), 2)
        assert frame.loc[("power", "above 0.1", 10), "value"] == pytest.approx(1.0)

    def test_the_best_first_and_no_more_than_fit(self):
        points, power = curve_tables()
        frame = curves.curves_frame(points, power, target="Overall")
        assert list(dict.fromkeys(frame.loc[frame["part"] == "value", "series"])) == ["f1:f1", "bleu:bleu"]

    def test_without_power_there_are_two_rows(self):
        frame = curves.curves_frame(curve_tables()[0], target="Overall")
        figure = curves.curves_figure(frame, target="Overall", title="D")
        assert [bool(ax.get_ylabel()) for ax in figure.axes if ax.axison] == [True, True]

    def test_nothing_computed_is_drawn_as_such(self, tmp_path):
        nothing, no_power = schema.empty("curves"), schema.empty("power")
        for power in (None, no_power):
            frame = curves.curves_frame(nothing, power, target="Overall")
            assert frame.empty and list(frame.columns) == list(
                curves.curves_frame(*curve_tables(), target="Overall").columns
            )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figure = curves.curves_figure(frame, target="Overall", title="D", simulated=True)
            style.finish(figure, frame, tmp_path / "none", simulated=True)
        assert {text.get_text() for ax in figure.axes for text in ax.texts} == {"not computed"}
        assert len(pd.read_csv(tmp_path / "none.csv")) == 0
        powered = curves.curves_frame(nothing, curve_tables()[1], target="Overall")
        assert set(powered["part"]) == {"power"}
        assert curves.curves_figure(powered, target="Overall", title="D").axes

    def test_a_level_without_curves_is_an_error(self):
        with pytest.raises(SchemaError, match=r"no curves of system.*turn:turn"):
            curves.curves_frame(*curve_tables(), target="Overall", level="system")
        with pytest.raises(UnknownNameError, match="unknown dimension"):
            curves.curves_frame(*curve_tables(), target="Other")


class TestStyle:
    @pytest.mark.parametrize("name", ["bleu", ":x", "bleu:", ""])
    def test_an_output_needs_both_names(self, name):
        with pytest.raises(ConfigError, match="METRIC:OUTPUT"):
            style.parse_outputs([name])
        assert issubclass(ConfigError, ComperdialError)

    def test_labels(self):
        assert label(("f1", "f1"), {}) == "f1"
        assert label(("bleu", "bleu-4"), {}) == "bleu-4"
        assert label(("chrf_raw", "chrf"), {}) == "chrf_raw"
        assert label(("bleu", "bleu-4"), {"bleu": "BLEU"}) == "BLEU, bleu-4"
        assert label(("bleu", "bleu-4"), {"bleu:bleu-4": "BLEU-4"}) == "BLEU-4"

    @pytest.mark.parametrize(
        ("value", "text"),
        [(0.3456, ".35"), (-0.001, ".00"), (-0.25, "−.25"), (1.0, "1.00"), (np.nan, "–"), (0.0, ".00")],
    )
    def test_short_numbers(self, value, text):
        assert style.short(value) == text

    def test_lightness_keeps_the_order_and_text_stands_out(self):
        colours = (found := style.sequential())(np.arange(found.N))[:, :3]
        linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
        luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
        assert (np.diff(luminance) > 0).all()
        for colour, light in zip(colours, luminance, strict=True):
            ink = {"#000000": 0.0, "#ffffff": 1.0}[style.ink_on(colour)]
            assert (max(ink, light) + 0.05) / (min(ink, light) + 0.05) >= 4.5

    def test_series_differ_in_more_than_colour(self):
        assert len({mark for _, mark, _ in style.SERIES}) == len(style.SERIES)
        assert len({str(line) for _, _, line in style.SERIES}) == len(style.SERIES)
