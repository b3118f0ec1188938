"""DEnsity (Park et al. 2023): our values next to the paper's, paired tests, examples, and answers made worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.core.errors import NothingToShowError
from comperdial.core.files import read_json
from comperdial.core.names import PERTURBATIONS, output_name
from comperdial.evaluation.options import Tables
from comperdial.evaluation.samples import Sample
from comperdial.report import correlations, ranking
from comperdial.report.about import About
from comperdial.report.correlations import COEFFICIENTS, LEGEND, Record, over_tests, read_reported
from comperdial.report.render import Section, Table, grouped_notes, interval, number, spread
from comperdial.stats import Coefficient
from comperdial.stats.comparison import holm
from comperdial.stats.correlation import ALPHA, correlate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Inputs = Mapping[str, Sequence[Path]]
Study = Mapping[str, Any]
Floats = npt.NDArray[np.float64]

SHOWN: tuple[Coefficient, ...] = ("pearson", "spearman")
OURS = ("density", "density")
STRATEGIES = {
    "random_response": "Random response",
    "repetition": "Repetition",
    "speaker": "Speaker-sensitiveness",
    "contradiction": "Contradiction",
}
"""The paper's kinds of worse answers, by our names, with its own."""

_CITED = "Paper: Park et al. 2023, DEnsity: Open-domain Dialogue Evaluation Metric using Density Estimation"
_ONE_MODEL = (
    "The paper trains its models on the corpus that a data set is from, one a corpus, all of them BERT. Ours is one model on "
    "MiniLM, trained on all corpora together (docs/density.md): it has rows of its own, without a difference"
)
_INTERVALS = (
    "In brackets the 95 % interval, which takes systems and dialogues as what was sampled; an asterisk marks p >= 0.05, all "
    "responses taken as independent. The paper's asterisks are not in the text that its numbers were taken from"
)
_FEW_SYSTEMS = (
    "USR-Persona has four systems: what holds for other systems, so few can hardly say, and intervals are wide. "
    "GRADE-DailyDialog and GRADE-EmpatheticDialogues have two, FED three, which count as given: intervals and tests are over "
    "contexts, these systems"
)
_REFERENCES = (
    "Reference-based metrics have no score of DailyDialog-Zhao's own human responses, which are their references: they are of "
    "800 of the 900 responses"
)


# Tables 1, 2 and 4: correlations next to the paper's


def responses(inputs: Inputs, study: Study) -> Table:
    """Show how metrics of single responses correlate with ratings (Table 1)."""
    frame = frame_of(inputs, study, study["entry"]["rows"])
    return _table(
        inputs, study, frame,
        title="Table 1. Metrics and people's ratings of responses",
        caption="Pearson's and Spearman's correlation with the mean rating of a response, ours next to what the paper reports.",
        notes=[
            _ONE_MODEL, _INTERVALS, _FEW_SYSTEMS, _REFERENCES,
            "On ConvAI2-GRADE the paper prints the same two numbers for METEOR and BERTScore; one of them is a slip",
            "Difference is ours minus the paper's, where both are of the same metric",
            "GRADE-EmpatheticDialogues is our addition: the paper has no such column",
            _CITED,
        ],
    )  # fmt: skip


def dialogues(inputs: Inputs, study: Study) -> Table:
    """Show how metrics correlate with ratings of dialogues, and how raters agree (Table 4)."""
    frame = frame_of(inputs, study, study["entry"]["rows"])
    single = schema.read(inputs["ceilings"][0], "ceilings")
    of = (
        (single["level"] == "dialogue")
        & (single["against"] == "dialogue")
        & (single["target"] == frame["target"].iloc[0])
    )
    agreed = single[of & (single["grouping"] == "pooled")].groupby("coefficient")["value"].mean()
    known = read_reported(inputs["reported"]).query("metric == 'Human'").set_index("coefficient")["value"]
    people = pd.DataFrame(
        {
            **frame.iloc[0][["dataset", "level", "against", "target"]].to_dict(),
            "section": "People", "label": "One rater and the mean of the others", "coefficient": SHOWN,
            "value": [agreed.get(name) for name in SHOWN], "reported": [known.get(name) for name in SHOWN],
        }
    )  # fmt: skip
    return _table(
        inputs, study, pd.concat([frame, people], ignore_index=True),
        title="Table 4. Metrics and people's ratings of dialogues",
        caption="Correlation with the mean overall rating of the dialogues. The score of a dialogue is the mean over the "
        "chatbot's responses in it.",
        notes=[
            _ONE_MODEL, _INTERVALS,
            "The paper averages over every turn of a dialogue, ours over those of the chatbot, which was rated",
            "People: the paper's 0.830 is cited from Zhang et al. 2021, counted in a way of their own; ours is the mean "
            "over the five columns of raters, and no upper bound",
            _CITED,
        ],
    )  # fmt: skip


def ablation(inputs: Inputs, study: Study) -> Table:
    """Show what the contrastive loss and the distance do (Table 2)."""
    entry, about = study["entry"], About.read(inputs["about"])
    frame = frame_of(inputs, study, entry["rows"]).assign(difference=np.nan)
    gains = _gains(_pairs(inputs, about), entry, study["datasets"])
    shown = gains.assign(title=gains["dataset"].map(about.titles), group=gains["coefficient"].map(COEFFICIENTS))
    cells = {"with minus without": _difference, "p": _p("p")}
    texts = spread(shown, {"title": "Data set", "label": "Score"}, "group", cells) if len(gains) else None
    made = _table(
        inputs, study, frame,
        title="Table 2. Loss and distance",
        caption="Correlation with the mean rating of a response, for a model trained with the contrastive loss and one without, "
        "by Mahalanobis' and Euclidean distance from human responses and by the selection score.",
        notes=[
            "The paper's numbers are of BERT trained on DailyDialog, ours of one MiniLM trained on all corpora: no differences "
            "are given; what to compare is the order of the rows",
            _INTERVALS,
            f"p: the paired test of the two models, without a correction; {ALPHA:.2f} is its level",
            _CITED,
        ],
        more=[] if texts is None else [Section("What the contrastive loss changes", texts)],
    )  # fmt: skip
    tidy = pd.concat([made.frame, gains.assign(section="with minus without")], ignore_index=True)
    return Table(made.title, made.caption, tidy, made.sections, made.notes)


def frame_of(inputs: Inputs, study: Study, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return :func:`comperdial.report.correlations.frame` without ranks.

    Rows about a metric of the paper alone are left out where the paper reports nothing of the data set.
    """
    frame = correlations.frame(inputs, study, rows).assign(rank=np.nan, tests=np.nan)
    printed = frame["reported"].notna().groupby([frame["dataset"], frame["section"], frame["label"]]).transform("any")
    return frame[frame["metric"].notna() | printed].reset_index(drop=True)


def _table(
    inputs: Inputs,
    study: Study,
    frame: pd.DataFrame,
    *,
    title: str,
    caption: str,
    notes: Sequence[str],
    more: Sequence[Section] = (),
) -> Table:
    about = About.read(inputs["about"])
    titles = {name: about.titles[name] for name in study["datasets"]}
    rated = frame.dropna(subset="target").drop_duplicates("dataset").set_index("dataset")["target"]
    text = f"{caption} Rated: {'; '.join(f'{titles[name]} {rated[name]}' for name in rated.index)}."
    there = frame[frame["value"].notna() & (frame["section"] != "People")]
    cells: dict[str, Callable[[Record], str]] = {"ours": _ours, "paper": lambda record: number(record["reported"])}
    if frame["difference"].notna().any():
        cells["difference"] = correlations.difference
    # References are what the reference-based lack, which a note says of all of them.
    partial = there[(there["section"] != "Reference-based") | (there["dataset"] != "dailydialog_zhao")]
    columns = [
        "dataset", "section", "label", "coefficient", "metric", "output", "level", "value", "low", "high", "loso_value",
        "loso_system", "p", "n", "coverage", "cut", "lacking", "signature", "reported", "not_run", "note", "difference",
        "loso_halved",
    ]  # fmt: skip
    return Table(
        title=title,
        caption=f"{text} {LEGEND}" if frame["loso_halved"].eq(True).any() else text,
        frame=frame[columns].rename(columns={"value": "ours"}).assign(level=frame["level"].where(frame["n"].notna())),
        sections=[*map(_filled, correlations.sections(frame, study["entry"], titles, cells)), *more],
        notes=[
            *notes,
            *correlations.left_out_notes(there, titles),
            *correlations.partial_notes(partial),
            *correlations.row_notes(frame[frame["section"] != "People"]),
        ],
    )


def _filled(section: Section) -> Section:
    """Return a section without the columns that have no value: of a data set of which the paper reports nothing."""
    return Section(section.title, section.frame.loc[:, ~(section.frame == "–").all()])


def _ours(record: Record) -> str:
    # What is averaged over raters has neither an interval nor a p.
    return number(record["value"]) if record["section"] == "People" else correlations.with_interval(record)


def _loss(name: str) -> str:
    return f"{name} contrastive loss"


# Paired tests


def tests(inputs: Inputs, study: Study) -> Table:
    """Show DEnsity's differences from other metrics, with paired tests."""
    about = About.read(inputs["about"])
    titles, why = about.titles, about.not_run.get(OURS[0], "it was not run there")
    frame = difference_frame(_pairs(inputs, about), study["entry"]["rows"], study["datasets"])
    if frame.empty:
        raise NothingToShowError(f"there are no scores of DEnsity ({why})")
    counts: dict[str, int] = {}
    for section, of_kind in frame.groupby("section", sort=False):
        tested = of_kind.groupby(["dataset", "coefficient"], sort=False)["p"].count()
        for one in tested.reset_index().to_dict("records"):
            place = f", {titles[one['dataset']]}, {COEFFICIENTS[one['coefficient']]}"
            counts[str(section) if tested.nunique() == 1 else f"{section}{place}"] = int(one["p"])
    cells = {"DEnsity minus this": _difference, "p": _p("p"), "Holm": _p("holm_p"), "PERM-BOTH": _p("perm_both_p")}
    shown = frame.assign(group=frame["coefficient"].map(COEFFICIENTS))
    labels = {"section": "Kind", "label": "Metric"}
    return Table(
        title="Paired tests of DEnsity against each other metric",
        caption="How much higher DEnsity (MiniLM, one model) correlates with the mean rating than another metric does, over "
        "the responses that both have a score of.",
        frame=frame,
        sections=[
            _summary(frame, titles),
            *(
                Section(titles[str(dataset)], spread(of_set, labels, "group", cells))
                for dataset, of_set in shown.groupby("dataset", sort=False)
            ),
        ],
        notes=[
            "In brackets the 95 % interval, which leaves out 0 just where p < 0.05. The test takes systems and dialogues as "
            "what was sampled; two or three systems count as given (docs/meta-evaluation.md)",
            "Holm: p after Holm's correction for the metrics of one kind, on one data set, by one coefficient: "
            + over_tests(counts),
            "Significantly: p < 0.05 after Holm's correction, by our test and by PERM-BOTH",
            "PERM-BOTH: the p of a test that takes all responses as independent, as the literature does; it calls too many "
            "differences significant",
            _FEW_SYSTEMS,
            _REFERENCES,
            *(
                f"{titles[name]} has no scores of DEnsity: {why}"
                for name in study["datasets"]
                if name not in set(frame["dataset"])
            ),
        ],
    )


def _pairs(inputs: Inputs, about: About) -> pd.DataFrame:
    """Return the tests of single responses in the dimension of each data set, by Pearson and Spearman."""
    found = pd.concat([schema.read(path, "pairs") for path in inputs["pairs"]], ignore_index=True)
    found = found[(found["level"] == "turn") & (found["grouping"] == "pooled") & found["coefficient"].isin(SHOWN)]
    chosen = {str(name): about.dimension(str(name), set(of["target"])) for name, of in found.groupby("dataset")}
    return found[found["target"] == found["dataset"].map(chosen)]


def difference_frame(pairs: pd.DataFrame, rows: Sequence[Mapping[str, Any]], datasets: Sequence[str]) -> pd.DataFrame:
    """Return how much higher DEnsity correlates than each other metric of the rows, with the paired test.

    Parameters
    ----------
    pairs
        Table ``pairs``, of one level and dimension each.
    rows
        Of ``study.yaml``, each with its section.
    datasets
        Which, in this order.

    Returns
    -------
    DataFrame
        dataset, section, label, coefficient, difference (DEnsity minus the other), low, high, p, holm_p, perm_both_p,
        perm_both_holm_p, n. Holm's correction is over the metrics of one section, data set and coefficient.
    """
    named = pd.DataFrame([row for row in rows if "metric" in row])[["section", "label", "metric", "output"]]
    named = named.rename(columns={"metric": "metric_b", "output": "output_b"}).assign(place=range(len(named)))
    found = named.merge(ranking.signed(pairs, OURS), on=["metric_b", "output_b"])
    found = found.assign(order=found["dataset"].map(list(datasets).index))
    found["kind"] = found["section"].map([*dict.fromkeys(named["section"])].index)
    found = found.sort_values(["order", "kind", "coefficient", "place"], kind="stable", ignore_index=True)
    found = found.rename(columns={"p_perm_both": "perm_both_p"})
    for p in ("p", "perm_both_p"):
        groups = found.groupby(["dataset", "section", "coefficient"], sort=False)[p]
        name = "holm_p" if p == "p" else "perm_both_holm_p"
        found[name] = groups.transform(lambda one: holm(one.to_numpy(np.float64))) if len(found) else found[p]
    columns = ["dataset", "section", "label", "coefficient", "difference", "low", "high"]
    return found[[*columns, "p", "holm_p", "perm_both_p", "perm_both_holm_p", "n"]]


def _summary(frame: pd.DataFrame, titles: Mapping[str, str]) -> Section:
    """Return a section that counts, of each kind of metrics, how many DEnsity is above."""
    records = []
    for (dataset, section, coefficient), group in frame.groupby(["dataset", "section", "coefficient"], sort=False):
        nearest = group.sort_values("difference").iloc[0]
        above = group[group["difference"] > 0]
        records.append(
            {
                "title": titles[str(dataset)], "section": section, "group": COEFFICIENTS[str(coefficient)],
                "above": f"{len(above)} of {len(group)}", "significant": str(int((above["holm_p"] < ALPHA).sum())),
                "perm_both": str(int((above["perm_both_holm_p"] < ALPHA).sum())),
                "nearest": f"{nearest['label']} ({number(nearest['difference'], sign=True)})",
            }
        )  # fmt: skip
    heads = {
        "above": "above",
        "significant": "significantly",
        "perm_both": "by PERM-BOTH",
        "nearest": "least difference",
    }
    cells = {head: (lambda record, key=key: str(record[key])) for key, head in heads.items()}
    labels = {"title": "Data set", "section": "Kind"}
    return Section("DEnsity above", spread(pd.DataFrame(records), labels, "group", cells))


def _gains(pairs: pd.DataFrame, entry: Mapping[str, Any], datasets: Sequence[str]) -> pd.DataFrame:
    """Return what the model with the contrastive loss correlates more than the one without, by data set and score."""
    with_loss, without = entry["models"]
    scores = {row["label"]: row["output"] for row in entry["rows"]}
    parts = []
    for label, output in scores.items():
        found = ranking.signed(pairs, (with_loss, output))
        parts.append(found[(found["metric_b"] == without) & (found["output_b"] == output)].assign(label=label))
    found = pd.concat(parts, ignore_index=True)
    found = found.sort_values("dataset", key=lambda names: names.map(list(datasets).index), kind="stable")
    return found[["dataset", "label", "coefficient", "difference", "low", "high", "p", "n"]]


def _difference(record: Record) -> str:
    return number(record["difference"], sign=True) + interval(record["low"], record["high"])


def _p(name: str) -> Callable[[Record], str]:
    return lambda record: "< 0.001" if record[name] < 0.001 else number(record[name])


# Table 3 and Figure 4: scores of single responses


def _sample(inputs: Inputs, study: Study, outputs: Sequence[str]) -> Sample:
    """Return some scores of the only data set next to its ratings of responses."""
    (dataset,) = study["datasets"]
    about = About.read(inputs["about"])
    tables = Tables.read(inputs["contexts"][0].parent, inputs["scores"], about[dataset]["source"])
    some = replace(tables, scores=ranking.of_outputs(tables.scores, outputs))
    samples = some.samples(["turn"], allow_missing=True)
    target = about.dimension(dataset, {sample.target for sample in samples})
    return next(sample for sample in samples if sample.target == target)


def _absent(about: About, labels: Mapping[str, str], there: Sequence[str]) -> dict[str, str]:
    """Return why there are no scores of some outputs, by their labels."""
    (one,) = about.sets.values()
    absent = {name: output_name(name)[0] for name in labels if name not in there}
    return {
        labels[name]: about.not_run.get(
            metric, "it was not run there" if metric in one["metrics"] else f"no metric {metric!r} in params.yaml"
        )
        for name, metric in absent.items()
    }


def examples(inputs: Inputs, study: Study) -> Table:
    """Show the scores of the paper's examples (Table 3)."""
    about, rows = About.read(inputs["about"]), study["entry"]["rows"]
    known = read_reported(
        inputs["reported"], ("source", "place", "example", "context_id", "system_id", "metric"), ("score", "rank")
    )
    labels = {f"{row['metric']}:{row['output']}": row["label"] for row in rows if "metric" in row}
    sample = _sample(inputs, study, [*labels])
    ours = dict(zip(map(":".join, sample.names), sample.scores, strict=True))
    absent = _absent(about, labels, [*ours])
    place_of = {unit: place for place, unit in enumerate(sample.units)}
    records = []
    for (example, context, system), group in known.groupby(["example", "context_id", "system_id"], sort=False):
        printed = {row["metric"]: row for row in group.to_dict("records")}
        for row in [{"label": "People", "reported": "Human"}, *rows]:
            values = (
                sample.ratings if row["label"] == "People" else ours.get(f"{row.get('metric')}:{row.get('output')}")
            )
            score, rank = _placed(values, place_of.get((str(context), str(system))))
            theirs = printed.get(row.get("reported", ""), {})
            records.append(
                {
                    "example": f"{example}: {context}, {system}", "label": row["label"], "reported": theirs.get("score"),
                    "reported_rank": theirs.get("rank"), "ours": score, "rank": rank,
                }
            )  # fmt: skip
    frame = pd.DataFrame(records)
    columns = [
        ("Paper", "score", "reported"),
        ("Paper", "rank", "reported_rank"),
        ("Ours", "score", "ours"),
        ("Ours", "rank", "rank"),
    ]

    def section(title: str, of_example: pd.DataFrame) -> Section:
        texts = {
            (group, name): [
                "not run" if group == "Ours" and record["label"] in absent else number(record[column], digits=2)
                for record in of_example.to_dict("records")
            ]
            for group, name, column in columns
        }
        return Section(title, pd.DataFrame(texts, index=pd.Index(of_example["label"], name="Metric")))

    return Table(
        title="Table 3. What metrics say of four responses",
        caption=f"Scores of the paper's four examples, which are responses of {about.only['title']}: normalised to 0 to 1 over "
        "all its responses, with the rank divided by their number; people's ratings likewise.",
        frame=frame,
        sections=[section(f"Example {name}", of) for name, of in frame.groupby("example", sort=False)],
        notes=[
            "The texts are not ours to pass on: the paper prints them, and the data set's tables hold them under these names",
            "Of equal scores ours have the mean rank; what the paper does with them, it does not say",
            "People's ratings of the examples differ between the paper and our file of DailyDialog-Zhao (Zhang et al. 2024: "
            "means of four raters): the paper's correlations are with ratings that are not quite ours",
            *grouped_notes([*absent.items()]),
        ],
    )


def _placed(values: Floats | None, place: int | None) -> tuple[float, float]:
    """Return a value normalised to 0 to 1 over all, and its rank divided by their number."""
    if values is None or place is None or np.isnan(values[place]):
        return float("nan"), float("nan")
    known = pd.Series(values).dropna()
    span = known.max() - known.min()
    normalised = (values[place] - known.min()) / span if span else float("nan")
    return float(normalised), float(known.rank()[place] / len(known))


def scatter(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw scores against ratings, a panel for each metric (Figure 4)."""
    from comperdial.report.plots.style import drawing, figure_and_axes, short, titled

    about, labels = About.read(inputs["about"]), study["entry"]["outputs"]
    sample = _sample(inputs, study, [*labels])
    known = dict(zip(map(":".join, sample.names), sample.scores, strict=True))
    there = {name: label for name, label in labels.items() if name in known}
    if not there:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    absent = [label for name, label in labels.items() if name not in there]
    ratings, noise = _normalised(sample.ratings), 0.03
    noisy = ratings + np.random.default_rng(study["entry"]["seed"]).normal(0.0, noise, len(ratings))
    records = []
    columns = min(4, len(there))
    lines = -(-len(there) // columns)
    with drawing():
        drawn, axes = figure_and_axes(
            lines, columns, (1.75 * columns + 0.5, 1.85 * lines + 0.2), sharex=True, sharey=True
        )
        for ax in axes.flat[len(there) :]:
            ax.set_axis_off()
        for ax, (name, label) in zip(axes.flat, there.items(), strict=False):
            kept = ~np.isnan(known[name])
            x, y = ratings[kept], _normalised(known[name][kept])
            slope, intercept = np.polyfit(x, y, 1)
            pearson, spearman = (correlate(x, y, one).value for one in SHOWN)
            metric, output = output_name(name)
            records.append(
                {"metric": metric, "output": output, "label": label, "n": int(kept.sum()), "pearson": pearson}
                | {"spearman": spearman, "slope": slope, "intercept": intercept}
            )
            # Single responses' ratings are not ours to pass on: an image in the vector forms too.
            ax.plot(noisy[kept], y, ".", ms=2.2, color="#0072b2", alpha=0.35, mew=0, rasterized=True)
            ax.plot([0, 1], [intercept, intercept + slope], color="#c00000", lw=1.3)
            values = f"r = {short(pearson)}, ρ = {short(spearman)}, n = {kept.sum()}"
            ax.set_title(f"{label}\n{values}", loc="left", fontsize=6.5, parse_math=False)
            ax.set_ylim(-0.03, 1.03)
        for ax in axes[:, 0]:
            ax.set_ylabel("Score")
        for column in range(columns):
            last = axes[(len(there) - 1 - column) // columns][column]
            last.set_xlabel(f"Mean rating ({sample.target})")
            last.tick_params(labelbottom=True)
        titled(
            drawn,
            "Figure 4. Scores against ratings",
            about.only["title"],
            f"Each point: a response. Both sides are normalised to 0 to 1; as in the paper, the ratings have noise of {noise} "
            "added so that points do not hide each other. Red: linear regression, without that noise. Reference-based metrics "
            "have no score of the references themselves. " + (f"Not run: {'; '.join(absent)}." if absent else ""),
        )
    return drawn, pd.DataFrame(records)


def _normalised(values: Floats) -> Floats:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


# Table 5: selecting responses


def selection(inputs: Inputs, study: Study) -> Table:
    """Show how well the models select responses (Table 5)."""
    known = read_reported(inputs["reported"], ("source", "place", "corpus", "contrastive", "measure"))
    records = known.assign(source="paper").drop(columns="place").to_dict("records")
    for loss, path in zip(("yes", "no"), inputs["cards"], strict=True):
        for corpus, found in read_json(path)["held-out"].items():
            about = {"source": "ours", "corpus": corpus, "contrastive": loss, "n": found["n"]}
            records += [
                about | {"measure": measure, "value": found[key]}
                for measure, key in (("recall@1", "recall_at_1"), ("MRR", "mrr"))
            ]
    frame = pd.DataFrame(records).reindex(columns=["source", "corpus", "contrastive", "measure", "value", "n"])
    sections = []
    for source, title in (
        ("paper", "The paper: BERT, a model for each corpus, on its test split"),
        ("ours", "Ours: MiniLM, one model, on held-out dialogues of the corpora it was trained on"),
    ):
        part = frame[frame["source"] == source]
        counts = part.dropna(subset="n").drop_duplicates("corpus").set_index("corpus")["n"]
        sizes = part["corpus"].map(lambda name, of=counts: f" (n = {of[name]:.0f})" if name in of else "")
        part = part.assign(
            corpus=part["corpus"].str.replace("_", " ") + sizes,
            trained=part["contrastive"].map({"yes": _loss("with"), "no": _loss("without")}),
            text=part["value"].map(number),
        )
        columns = [(corpus, measure) for corpus in dict.fromkeys(part["corpus"]) for measure in ("recall@1", "MRR")]
        texts = part.pivot(index="trained", columns=["corpus", "measure"], values="text")[columns]
        texts.columns = pd.MultiIndex.from_tuples([*texts.columns])
        sections.append(Section(title, texts.rename_axis(index="Trained")))
    return Table(
        title="Table 5. Selecting the right response",
        caption="The share of contexts whose right response has the highest selection score (recall@1), and the mean reciprocal "
        "rank of the right response (MRR).",
        frame=frame,
        sections=sections,
        notes=[
            "The two parts are not to be compared: other models, other dialogues, and among ours the right response is one of "
            "ten; how many the paper's is one of, its text does not say (it trains with 15 or 19 wrong ones)",
            "Ours are of dialogues by which the best checkpoint was chosen, so that they are somewhat too high",
            _CITED,
        ],
    )


# Figures 3 and 5: answers made worse


def adversarial(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw how often an answer scores higher than a worse version of it (Figure 3)."""
    from comperdial.report.plots.style import drawing, figure_and_axes, lines_behind, titled

    labels = study["entry"]["outputs"]
    frame = adversarial_frame(pd.concat([schema.read(path, "ratios") for path in inputs["ratios"]]), labels)
    if frame.empty:
        raise NothingToShowError("none of the metrics that the figure shows was run")
    names = {PERTURBATIONS[0]: "Khalid and Lee's pairs, of DailyDialog and PersonaChat"}
    panels = list(dict.fromkeys(frame["dataset"]))
    there = {name: label for name, label in labels.items() if label in set(frame["label"])}
    with drawing():
        from matplotlib.lines import Line2D

        drawn, axes = figure_and_axes(1, len(panels), (3.9 * len(panels) + 0.3, 2.7), sharey=True)
        for ax, dataset in zip(axes[0], panels, strict=True):
            of_panel = frame[frame["dataset"] == dataset]
            kinds = [kind for kind in STRATEGIES.values() if kind in set(of_panel["kind"])]
            for place, (name, label) in enumerate(there.items()):
                own = of_panel[of_panel["label"] == label]
                x = own["kind"].map(kinds.index).to_numpy(dtype=float) + (place - (len(there) - 1) / 2) * 0.15
                reach = [own["accuracy"] - own["low"], own["high"] - own["accuracy"]]
                ax.errorbar(x, own["accuracy"], yerr=reach, ls="", elinewidth=1.0, **_style(name))
            ax.axhline(0.5, color="0.6", lw=0.8, zorder=0)
            ax.set_xticks(range(len(kinds)), [kind.replace(" ", "\n").replace("-", "-\n") for kind in kinds])
            ax.set_ylim(0, 1.02)
            sizes = of_panel.groupby("kind")["n"].max()
            most = f" to {sizes.max()}" if sizes.max() > sizes.min() else ""
            ax.set_title(
                f"{names.get(dataset, 'Made here of DailyDialog-Zhao')}\nn = {sizes.min()}{most} a kind", loc="left"
            )
            lines_behind(ax, "y")
            ax.set_xlim(-0.5, len(kinds) - 0.5)
        axes[0][0].set_ylabel("Answer scores higher\n(share of pairs)")
        titled(
            drawn,
            "Figure 3. Answers and worse versions of them",
            "DEnsity",
            "Marks: the share of pairs whose answer scores higher, with the 95 % interval; the line at 0.5 is chance. Left: "
            "pairs of Khalid and Lee (2022), whose data the paper used, as Zhang et al. (2024) published them; which of them the "
            "paper took is not known. Right: pairs that our perturbations made of good responses of DailyDialog-Zhao, without "
            "speaker-sensitiveness (the history's last utterance before the answer). Our model is one on MiniLM, trained on all "
            "corpora; the paper's is BERT on DailyDialog, and its values are in no text.",
            handles=[Line2D([], [], ls="", label=label, **_style(name)) for name, label in there.items()],
            columns=2,
        )
    return drawn, frame


def adversarial_frame(ratios: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Return how often the answer scores higher than a worse version of it, in the order of sets, labels and kinds.

    Parameters
    ----------
    ratios
        Table ``ratios`` of sets of pairs.
    labels
        The outputs to show, as METRIC:OUTPUT, and what to call each.
    """
    names = ratios["metric"] + ":" + ratios["output"]
    found = ratios[(ratios["threshold"] == 0) & names.isin([*labels]) & ratios["perturbation"].isin([*STRATEGIES])]
    named = found["metric"] + ":" + found["output"]
    found = found.assign(
        label=named.map(labels), kind=found["perturbation"].map(STRATEGIES), accuracy=found["ratio"],
        of=pd.factorize(found["dataset"])[0], place=named.map([*labels].index),
        strategy=found["perturbation"].map([*STRATEGIES].index),
    ).sort_values(["of", "place", "strategy"], kind="stable", ignore_index=True)  # fmt: skip
    return found[["dataset", "label", "metric", "output", "kind", "accuracy", "low", "high", "ties", "n"]]


def _style(name: str) -> dict[str, Any]:
    """Return the mark of an output: its form says which score, its filling which loss."""
    metric, output = output_name(name)
    colour, marker = {"density": ("#0072b2", "o"), "classifier": ("#d55e00", "s")}.get(output, ("#000000", "X"))
    return {"color": colour, "marker": marker, "mfc": "white" if metric == "density-selection" else colour, "ms": 4.5}


_LOSSES = {"density": "with the contrastive loss", "density-selection": "without it"}
_SIDES = {"original": ("Answer", "#0072b2", "-"), "perturbed": ("Random response", "#d55e00", "--")}


def histogram_frame(scores: pd.DataFrame, bins: int = 40) -> pd.DataFrame:
    """Count the scores of answers and of random responses in cells, which both sides of a model share.

    Parameters
    ----------
    scores
        Table ``scores`` of pairs: metrics of :data:`_LOSSES`, output ``density``, kind ``random_response``.
    bins
        How many cells a model's range is cut into.

    Returns
    -------
    DataFrame
        metric, side (``original`` or ``perturbed``), low and high (a cell's ends), count, n (of the side), mean, sd, and
        ``overlap``, the share that both sides' histograms have in common.
    """
    chosen = scores[(scores["output"] == "density") & scores["item_id"].str.startswith("random_response-")]
    records = []
    for metric in (name for name in _LOSSES if name in set(chosen["metric"])):
        own = chosen[chosen["metric"] == metric]
        edges = np.histogram_bin_edges(own["value"], bins)
        sides = {side: own.loc[own["system_id"] == side, "value"] for side in _SIDES}
        counts = {side: np.histogram(values, edges)[0] for side, values in sides.items()}
        overlap = float(np.minimum(*(count / max(count.sum(), 1) for count in counts.values())).sum())
        for side, values in sides.items():
            about = {"n": len(values), "mean": values.mean(), "sd": values.std(), "overlap": overlap}
            records += [
                {"metric": metric, "side": side, "low": low, "high": high, "count": int(count), **about}
                for low, high, count in zip(edges[:-1], edges[1:], counts[side], strict=True)
            ]
    columns = ["metric", "side", "low", "high", "count", "n", "mean", "sd", "overlap"]
    return pd.DataFrame(records, columns=columns)


def histograms(inputs: Inputs, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Draw the scores of answers and of random responses (Figure 5)."""
    from comperdial.report.plots.style import drawing, figure_and_axes, lines_behind, short, titled

    frame = histogram_frame(schema.read(inputs["scores"][0], "scores"))
    if frame.empty:
        raise NothingToShowError("there are no scores of DEnsity: its model was not run")
    panels = list(dict.fromkeys(frame["metric"]))
    with drawing():
        from matplotlib.patches import Patch

        drawn, axes = figure_and_axes(1, len(panels), (3.3 * len(panels) + 0.3, 2.3), sharey=True)
        for ax, metric in zip(axes[0], panels, strict=True):
            of_panel = frame[frame["metric"] == metric]
            for side, (_, colour, line) in _SIDES.items():
                own = of_panel[of_panel["side"] == side]
                edges = [*own["low"], own["high"].iloc[-1]]
                shares = own["count"] / own["n"]
                ax.stairs(shares, edges, fill=True, color=colour, alpha=0.35)
                ax.stairs(shares, edges, color=colour, lw=1.2, ls=line)
            ax.set_title(
                f"{_LOSSES[metric].capitalize()}\noverlap {short(float(of_panel['overlap'].iloc[0]))}", loc="left"
            )
            ax.set_xlabel("Score (minus the distance)")
            lines_behind(ax, "y")
        axes[0][0].set_ylabel("Share of responses")
        titled(
            drawn,
            "Figure 5. Answers and random responses",
            "DEnsity",
            f"Scores of {frame.groupby('side')['n'].max()['original']} answers between people and of a random response in the "
            "place of each: Khalid and Lee's pairs of DailyDialog and PersonaChat (the paper: the validation set of "
            "DailyDialog). Scales differ: each model has a space of its own. Overlap: the share that both histograms have in "
            "common.",
            handles=[Patch(color=colour, alpha=0.6, label=label) for label, colour, _ in _SIDES.values()],
        )
    return drawn, frame
