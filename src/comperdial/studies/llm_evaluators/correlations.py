"""Tables 2, 3 and 4: how well each evaluator agrees with ratings, and how the rankings of evaluators agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from comperdial.core.names import Output
from comperdial.evaluation.dimensions import rank_deviation
from comperdial.evaluation.ensembles import is_ensemble
from comperdial.report.document import Document, Section, number
from comperdial.report.labels import metrics_not_run
from comperdial.schema.evaluated import DIMENSIONS
from comperdial.studies.llm_evaluators.common import (
    BOTH,
    LEVELS,
    NOT_OURS,
    PAPER,
    SHORT,
    UNMIXED,
    by_dimension,
    by_source,
    counts,
    in_order,
    labelled,
    level_means,
    rated_by,
    standing,
    wide,
    with_averages,
    without_itself,
)
from comperdial.studies.llm_evaluators.notes import (
    Needs,
    evaluator_notes,
    is_kind,
    labels_of,
    lacking_notes,
    not_asked_notes,
)

SETS = "Sets in the mean"
MEANING = (
    "Avg is the mean of the five columns, and a dash where one of them has no value. In brackets: of how many sets a "
    "mean is, where an evaluator has no score of some (a metric that needs references, where there are none)"
)
PUBLISHED = (
    "GPT-4's ratings of the responses that people rated were not published: there is no turn-level row of ours for "
    "GPT-4, whose recorded ratings of dialogues are a row of ours"
)
SPEARMAN = (
    "The 0.620 that is reported of GPT-4 on the informativeness of dialogues is the Spearman of its recorded rounds "
    "(0.6197); the other reported values are Pearson, as the column says, and that one would be 0.615"
)


def single(frame: pd.DataFrame, outputs: Sequence[Output], recorded: Sequence[str]) -> pd.DataFrame:
    """Return the correlations of single evaluators, no ensembles, one output a metric and dimension."""
    kept = frame[~frame["metric"].map(is_ensemble).astype(bool)]
    return without_itself(standing(kept, outputs), recorded)


def table_2(
    frame: pd.DataFrame,
    reported: pd.DataFrame,
    *,
    outputs: Sequence[Output],
    recorded: Sequence[str] = (),
    labels: Mapping[str, str],
    not_run: Mapping[str, str],
    not_asked: Sequence[str] = (),
    needs: Needs | None = None,
) -> Document:
    """Render Table 2: mean Pearson over the sets of a level, against people and against GPT-4, beside the paper's.

    Parameters
    ----------
    frame
        Table ``dimension_correlations`` of all sets.
    reported
        ``src/comperdial/studies/llm_evaluators/correlations.csv``.
    outputs, labels
        Which output stands for a metric; what a metric is called.
    recorded
        The metrics that are GPT-4's recorded ratings.
    not_run
        Metrics that could not run here, and why.
    not_asked
        What nobody was asked, and why.
    needs
        What a metric needs of a text, as ``{"f1": ["references"]}``: said of those without a row at a level.
    """
    kept = single(frame, outputs, recorded)
    means = level_means(kept, labels)
    whole, heads = with_averages(means), ["Evaluator", "Rated by"]
    sections = []
    for source in by_source(list(means["source"])):
        name = rated_by(source)
        rows = {(label,): [label, name] for label in in_order(list(means["label"]), labels)}
        first = [[SETS, name, *(text for level in LEVELS for text in counts(means, source, level))]]
        of_source = whole[whole["source"] == source]
        sections.append(by_dimension(f"Ours, against ratings by {name}", of_source, rows, heads, first=first))
    printed = reported[reported["place"] == "Table 2"]
    rows = {(metric,): [metric, BOTH] for metric in dict.fromkeys(printed["metric"])}
    sections.append(by_dimension("Reported", printed, rows, heads, key=["metric"]))
    return Document(
        title="Table 2. Evaluators of dialogue: mean correlation over the sets of a level",
        caption=f"Pearson correlation of scores with mean ratings, averaged over the sets that people rated and over "
        f"those that GPT-4 rated, each apart, beside the averages that {PAPER} report over both.",
        sections=sections,
        tidy=_tidy(means, printed),
        notes=[MEANING, UNMIXED, NOT_OURS, PUBLISHED, *_who(kept, outputs, labels, not_run, not_asked, needs)],
    )


def _who(
    kept: pd.DataFrame,
    outputs: Sequence[Output],
    labels: Mapping[str, str],
    not_run: Mapping[str, str],
    not_asked: Sequence[str],
    needs: Needs | None,
) -> list[str]:
    """Say what the evaluators of the rows are, and which have none."""
    shown = kept[kept["value"].notna()]
    return [
        *evaluator_notes(shown, labels),
        *lacking_notes(shown, outputs, labels, needs=needs or {}),
        *not_asked_notes(not_asked),
        *metrics_not_run(not_run, labels),
    ]


def _tidy(means: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    ours = means[["label", "level", "source", "dimension", "value", "sets", "of"]].assign(origin="ours")
    ours = ours.rename(columns={"label": "evaluator", "source": "rated_by"})
    theirs = printed[["metric", "level", "dimension", "value"]].rename(columns={"metric": "evaluator"})
    by = "human" if (printed["place"] == "Table 3").all() else "human or gpt-4"
    joined = pd.concat([ours, theirs.assign(origin="reported", rated_by=by)], ignore_index=True).round({"value": 4})
    joined = joined.astype({"sets": "Int32", "of": "Int32"})
    return wide(joined, ["origin", "evaluator", "rated_by"], ["level", "dimension"], ["value", "sets", "of"])


def table_3(
    frame: pd.DataFrame,
    reported: pd.DataFrame,
    *,
    outputs: Sequence[Output],
    recorded: Sequence[str] = (),
    labels: Mapping[str, str],
    not_run: Mapping[str, str],
    not_asked: Sequence[str] = (),
    needs: Needs | None = None,
) -> Document:
    """Render Table 3: only what people rated, GPT-4's recorded ratings among the evaluators.

    Parameters are those of :func:`table_2`.
    """
    kept = single(frame, outputs, recorded)
    kept = kept[kept["source"] == "human"]
    means = level_means(kept, labels)
    printed = reported[reported["place"] == "Table 3"]
    theirs = printed.rename(columns={"metric": "label"}).assign(by="reported")
    both = pd.concat([with_averages(means).assign(by="ours"), theirs], ignore_index=True)
    ours = in_order(list(means["label"]), labels)
    key, heads, sections = ["label", "by"], ["Evaluator", "From"], []
    for level, title in LEVELS.items():
        others = dict.fromkeys(theirs.loc[theirs["level"] == level, "label"])
        rows = {name: name for name in [*((one, "ours") for one in ours), *((one, "reported") for one in others)]}
        first = [[SETS, "ours", *counts(means, "human", level)]]
        heading = f"{title}, rated by people"
        sections.append(by_dimension(heading, both, rows, heads, key=key, levels=[level], first=first))
    return Document(
        title="Table 3. Evaluators of dialogue on what people rated",
        caption="Pearson correlation of scores with the mean rating by people, averaged over the sets that people "
        f"rated, beside what {PAPER} report; GPT-4's recorded ratings, held against people's, are one of the "
        "evaluators.",
        sections=sections,
        tidy=_tidy(means, printed),
        notes=[
            MEANING,
            NOT_OURS,
            PUBLISHED,
            "GPT-4's row of ours is computed from its five published rounds, whose mean is held against the mean of "
            "people's ratings",
            *([SPEARMAN] if _is_reported(printed, "dialogue", "GPT-4", "informativeness") else []),
            *_who(kept, outputs, labels, not_run, not_asked, needs),
        ],
    )


def _is_reported(printed: pd.DataFrame, level: str, metric: str, dimension: str) -> bool:
    chosen = (printed["level"] == level) & (printed["metric"] == metric) & (printed["dimension"] == dimension)
    return bool(printed.loc[chosen, "value"].notna().any())


def table_4(
    frame: pd.DataFrame,
    reported: pd.DataFrame,
    *,
    outputs: Sequence[Output],
    recorded: Sequence[str] = (),
    labels: Mapping[str, str],
    titles: Mapping[str, str],
) -> Document:
    """Render Table 4: Spearman between the rankings of evaluators by people's and by GPT-4's ratings.

    ``reported`` is ``src/comperdial/studies/llm_evaluators/rankings.csv``; the others are those of :func:`table_2`. GPT-4's
    recorded ratings are not ranked: half of what they would be ranked by are themselves.
    """
    kept = single(frame, outputs, recorded)
    stand = set(zip(kept["metric"], kept["output"], strict=True))
    sections, records, sizes = [], [], []
    for dataset, of_set in reported.groupby("dataset", sort=False):
        agreement = rank_deviation(kept[kept["dataset"] == dataset], stand, leave_out=recorded)
        of = {row["dimension"]: row for row in agreement.to_dict("records")}
        level = "turn" if set(of_set["dimension"]) == set(DIMENSIONS["turn"]) else "dialogue"
        found = {d: (int(of[d]["n"]), of[d]["value"]) if d in of else (0, None) for d in DIMENSIONS[level]}
        printed = of_set.set_index("dimension")["value"]
        columns = [("", "From"), *(("Spearman", SHORT[d]) for d in DIMENSIONS[level])]
        title = titles.get(str(dataset), str(dataset))
        own = [number(value) for _, value in found.values()]
        rows = [
            *([] if set(own) == {"–"} else [["ours", *own]]),
            ["reported", *(number(printed.get(d)) for d in found)],
        ]
        sections.append(Section(title, columns, rows))
        if any(counted := [n for n, _ in found.values()]):
            every = ", ".join(f"{SHORT[d]} {n}" for d, (n, _) in found.items())
            sizes.append(f"{title}, {counted[0] if len(set(counted)) == 1 else every}")
        records += [
            {"dataset": dataset, "dimension": d, "ours": value, "evaluators": n, "reported": printed.get(d)}
            for d, (n, value) in found.items()
        ]
    here = kept[kept["dataset"].isin(reported["dataset"]) & ~kept["metric"].isin(list(recorded))]
    # What is ranked where there is a ranking of ours: by both sources.
    both = here.groupby("dataset", observed=True)["source"].transform("nunique") > 1
    here = here[both]
    ranked = in_order(list(labelled(here, labels)["label"]), labels)
    alike = labels_of(here, (is_kind(one, "with_context") for one in here["signature"]), labels)
    return Document(
        title="Table 4. How far rankings by GPT-4's ratings are from rankings by people's",
        caption="Spearman correlation between two rankings of the evaluators: by their Pearson correlation with "
        f"people's ratings, and by that with GPT-4's, ours beside what {PAPER} report.",
        sections=sections,
        tidy=pd.DataFrame(records).round({"ours": 4}),
        notes=[
            "Other evaluators are ranked than in the paper, which ranks 32 language models: the values of ours and of "
            "the paper are of the same kind, not of the same ranking",
            f"Ranked here: {', '.join(ranked) or 'none'}",
            *([f"Evaluators ranked, ours: {'; '.join(sizes)}"] if sizes else []),
            *(
                [
                    f"{len(alike)} of the {len(ranked)} are of one kind, the overlap or likeness of a response with "
                    "what it answers: such evaluators keep together in a ranking, and a high correlation is easily had"
                ]
                if len(alike) > 1
                else []
            ),
            *evaluator_notes(here, labels),
            "GPT-4's ratings of the responses of FED-Turn were not published: there is no row of ours",
        ],
    )
