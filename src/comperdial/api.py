"""The Python API: read rated responses, score them, and correlate the scores with the ratings, using pandas frames.

Parameters have the same names and meaning as the command-line options (docs/command-line.md).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from comperdial import evaluation, schema
from comperdial.auditing import audit as audits
from comperdial.auditing.judged import (
    Judged,
    from_ratings,
    from_votes,
    has_labels,
    human_labels,
    numbered,
    one_file,
    with_names_for_texts,
    with_ratings_of,
)
from comperdial.core.errors import ConfigError, MissingResourceError, SchemaError, UnknownNameError
from comperdial.core.names import LEVELS, Output, output_name, plain_name
from comperdial.data.columns import JUDGES, plain
from comperdial.data.files import File, read_file
from comperdial.data.votes import are_votes, read_votes
from comperdial.evaluation import aggregate, results
from comperdial.evaluation.correlations import FEWEST_DIALOGUES, is_narrow
from comperdial.evaluation.options import Options, analysed, parsed_subset
from comperdial.evaluation.rated_data import (
    NOTHING,
    UNIT,
    Data,
    column_scores,
    judge_scores,
    of_judge,
    read_data,
)
from comperdial.evaluation.samples import HUMAN, Sample, Tables
from comperdial.metrics import Metric, create, kinds
from comperdial.metrics.named import Entries, metric_named, read_entries, suited_to
from comperdial.metrics.scoring import score_many
from comperdial.models.encoder import STORE_VARIABLE
from comperdial.report.audit import Audit
from comperdial.report.compared import Comparison, comparison
from comperdial.report.headline import not_run as folded
from comperdial.report.ranking import Correction
from comperdial.stats import OF_SYSTEMS, Measure
from comperdial.stats.design import FEWEST_SAMPLED

log = logging.getLogger(__name__)

Paths = str | Path | Sequence[str | Path]
Source = Data | str | Path | pd.DataFrame

COSTS = Path(__file__).with_name("metrics") / "local_costs.csv"
# Seconds of processor time: the limit for all metrics together if none is named, and the time to load a model.
_MOST_SECONDS, _LOADING = 60, 3


def read(
    source: str | Path | pd.DataFrame,
    columns: Mapping[str, Any] | None = None,
    scale: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
    labels: Mapping[str, float] | None = None,
    lower_is_better: Sequence[str] = (),
    sheet: str | None = None,
    strip_markup: bool = False,
) -> Data:
    """Read responses with human and judge ratings.

    Parameters
    ----------
    source
        A CSV, TSV, JSON, JSONL, Parquet or Excel file, a data frame with the same columns, or a folder of tables.
    columns
        Map from our column names to those of the file: ``{"response": "reply", "rating": ["warmth", "humour"]}``.
    scale
        The lowest and highest possible rating, for all dimensions or for each.
    labels
        Numbers for text labels: ``{"Yes": 1, "No": 0}``.
    lower_is_better
        Dimensions in which a low rating is good.
    sheet
        Sheet of a workbook; default: all sheets that share the same columns.
    strip_markup
        Remove HTML tags, entities and error marks from texts.

    Returns
    -------
    Data
        The tables ``responses``, ``ratings``, ``contexts`` and ``systems``, the ``scores`` in columns of the file, and
        ``notes`` on how it was read.

    Raises
    ------
    ComperdialError
        If a column is missing or ambiguous; the message contains a column map to paste.

    Examples
    --------
    >>> import comperdial, pandas as pd
    >>> frame = pd.DataFrame({"model": ["a", "b"], "answer": ["I like tea.", "No."], "rating": [5, 1]})
    >>> comperdial.read(frame, scale=[1, 5])
    2 responses, 2 ratings, 2 systems
    """
    options = {
        "columns": columns, "scale": scale, "labels": labels, "lower_is_better": list(lower_is_better), "sheet": sheet,
        "strip_markup": strip_markup,
    }  # fmt: skip
    return read_data(source, {name: value for name, value in options.items() if value})


def score(
    data: Source,
    metrics: str | Sequence[str] | Mapping[str, Metric],
    *,
    params: str | Path | None = None,
    embeddings: str | Path | None = None,
) -> pd.DataFrame:
    """Score responses, with or without ratings.

    Parameters
    ----------
    data
        The result of :func:`read`, or a file or frame with the column ``response`` and those of ``references``, ``history``
        and ``facts`` that the metrics need.
    metrics
        Metric names or entries of ``params.yaml``, with optional settings, as in ``bleu,text=raw``; or a dict of your own
        metrics by name.
    params, embeddings
        A configuration file to use instead of ``params.yaml``; and a folder for cached embeddings.

    Returns
    -------
    DataFrame
        Table ``scores``: dataset, level, item_id, system_id, metric, output, value, cut, signature. Responses that lack an
        input of a metric are left out; the log reports how many, and which metrics cannot run here.

    Raises
    ------
    MissingResourceError
        If no metric can run.

    Examples
    --------
    >>> import comperdial, pandas as pd
    >>> frame = pd.DataFrame({"response": ["i like green tea", "no"], "reference": ["i like tea", "yes"]})
    >>> comperdial.score(frame, "chrf")[["item_id", "output", "value"]].round(2)
      item_id output  value
    0       1   chrf   0.46
    1       2   chrf   0.00
    """
    if isinstance(metrics, Mapping):
        chosen = dict(metrics)
    else:
        entries = read_entries(params)
        chosen = {name: metric_named(name, entries) for name in ([metrics] if isinstance(metrics, str) else metrics)}
    data = data if isinstance(data, Data) else read_data(data, rated=False)
    scores, not_run, unsuited = _score(chosen, data, embeddings)
    name_not_run(not_run, chosen.keys() - unsuited)
    name_not_run(unsuited)
    return scores


def correlate(
    scores: pd.DataFrame | Paths,
    ratings: Data | pd.DataFrame | Paths,
    *,
    contexts: str | Path | None = None,
    source: str | None = None,
    level: Sequence[str] = LEVELS,
    subset: Sequence[str] = (),
    missing: Literal["left-out", "worst"] = "left-out",
    resamples: int = 1000,
    seed: int = 2024,
) -> pd.DataFrame:
    """Correlate scores with ratings at each level and for each dimension.

    Parameters
    ----------
    scores, ratings
        The tables ``scores`` and ``ratings``, or frames or files with context_id (or dialogue_id), system_id and ``value``
        or ``rating``; ``ratings`` may also be the result of :func:`read`.
    contexts
        Table that maps contexts to dialogues; without it, each context is its own dialogue.
    source
        Whose ratings to use; default: human ratings, or the only source.
    level, subset, missing
        Levels; only units with ``COLUMN=VALUE``; whether units without a score are left out or get the lowest score.
    resamples, seed
        For intervals; with 0 resamples no intervals are computed.

    Returns
    -------
    DataFrame
        Table ``correlations``: value, interval, p and n by level, dimension, grouping, metric, output and coefficient.

    Examples
    --------
    >>> import comperdial, pandas as pd
    >>> names = {"context_id": [1, 1, 2, 2], "system_id": ["a", "b"] * 2}
    >>> scores = pd.DataFrame({**names, "value": [0.9, 0.2, 0.8, 0.4]})
    >>> ratings = pd.DataFrame({**names, "rating": [5, 1, 4, 3]})
    >>> result = comperdial.correlate(scores, ratings)
    >>> result.query("grouping == 'pooled'")[["level", "coefficient", "value", "n"]].round(2)
      level coefficient  value  n
    0  turn     pearson   0.96  4
    1  turn    spearman   1.00  4
    2  turn     kendall   1.00  4
    """
    made = _scores(scores)
    data = _rated(ratings if isinstance(ratings, Data) else None, ratings, contexts, made)
    made = _named(made, data.ratings)
    tables = data.tables(made, _source(data, source))
    options = Options(parsed_subset(subset), missing)
    return results.correlate(tables, levels=level, options=options, resamples=resamples, seed=seed).correlations


def compare(
    data: Source | None = None,
    metrics: str | Sequence[str] | None = None,
    scores: pd.DataFrame | Paths | None = None,
    *,
    against: str | None = None,
    params: str | Path | None = None,
    ratings: pd.DataFrame | Paths | None = None,
    contexts: str | Path | None = None,
    source: str | None = None,
    level: Sequence[str] = (),
    target: Sequence[str] = (),
    coefficient: Sequence[Measure] = ("spearman", "pearson"),
    subset: Sequence[str] = (),
    missing: Literal["left-out", "worst"] = "left-out",
    correction: Correction = "holm",
    systems: Literal["sampled", "fixed"] = "sampled",
    resamples: int = 1000,
    seed: int = 2024,
    embeddings: str | Path | None = None,
) -> Comparison:
    """Find the metric or judge that agrees best with the ratings, and test whether others are significantly worse.

    Judges in the data (columns such as ``gpt4_score``, or ratings from another ``source``) are always included.

    Parameters
    ----------
    data
        The result of :func:`read`, or anything it accepts; only the responses if ``ratings`` is given.
    metrics
        Metric names, entries of ``params.yaml`` or columns of the file, each with an optional output (``bleu:bleu-1``).
        Default, without ``scores``: all metrics with a main output that can run here within a minute in total.
    scores
        Scores from any program: table ``scores``, or frames or files with context_id, system_id and value.
    against
        Compare every other metric with this one only.
    params, embeddings
        As in :func:`score`.
    ratings, contexts, source, level, subset, missing, resamples, seed
        As in :func:`correlate`.
    target, coefficient
        Rated dimensions (default: all), and coefficients, the first of which sorts the table.
    correction, systems
        Correction of p-values over all pairs of a level, dimension and coefficient; ``fixed`` if the systems are not a
        sample of a larger population.

    Returns
    -------
    Comparison
        ``headline``, a sentence that claims no more than the tests support; the frames ``table``, ``systems`` and ``pairs``;
        and ``notes``.

    Raises
    ------
    ComperdialError
        If there are no ratings, a name is unknown, or no metric has scores.

    Examples
    --------
    >>> import comperdial, pandas as pd
    >>> frame = pd.DataFrame({
    ...     "context_id": [n for n in range(8) for _ in "abc"],
    ...     "system": list("abc") * 8,
    ...     "response": ["i like green tea", "tea", "what"] * 8,
    ...     "reference": "i like tea",
    ...     "rating": [5, 3, 1, 4, 2, 2, 5, 4, 1, 4, 3, 2] * 2,
    ... })
    >>> result = comperdial.compare(frame, ["f1", "chrf"])
    >>> print(result.headline.partition(":")[0])
    Over 24 responses, chrf (like f1) has the highest correlation with people's ratings of turns (rating)
    >>> result.table.query("coefficient == 'spearman'")[["metric", "value", "low", "high"]].round(2)
          metric  value   low  high
    0  chrf:chrf    0.9  0.78  0.96
    1      f1:f1    0.9  0.78  0.96
    """
    ready = schema.empty("scores") if scores is None else _scores(scores)
    data = _rated(data, ratings, contexts, ready)
    whose = _source(data, source)
    judged, not_run = judge_scores(data, whose)
    judges = sorted({*data.scores["metric"], *judged["metric"]})
    entries, slow = read_entries(params), dict[str, str]()
    texts = [metrics] if isinstance(metrics, str) else list(metrics or ())
    if not texts and scores is None and len(data.responses):
        texts, apart, slow = default_metrics(entries, len(data.responses))
        not_run |= apart
    choice = _Choice(data, ready, judges, entries)
    if against:
        choice.add(against)
    contrasted = next(iter(choice.labels), None)
    named = {choice.add(text) for text in texts}
    # If no existing score is named, include them all.
    for name in () if named & {*ready["metric"]} else ready["metric"].unique():
        choice.add(str(name))
    choice.labels |= {(name, "score"): name for name in judges}
    scored, more, unsuited = _score(choice.metrics, data, embeddings)
    not_run |= more | unsuited
    columns, lines = column_scores(data.attributes, choice.columns, "the file")
    frames = [one for one in (_named(ready, data.ratings), data.scores, judged, columns, scored) if len(one)]
    if not frames:
        each = "; ".join(f"{name}: {why}" for name, why in not_run.items())
        why = (each if metrics else folded(not_run).removeprefix("Not run: ")) or "none was named"
        raise ConfigError(f"no metric could be run: {why}", expected="metrics for these responses, a judge, or scores")
    tables = data.tables(pd.concat(frames, ignore_index=True), whose)
    options = Options(parsed_subset(subset), missing, systems)
    samples, notes = _samples(tables, options, level, target, coefficient, judges, [*choice.labels])
    there = {name for sample in samples for name in sample.names}
    without = {name: label for name, label in choice.labels.items() if name not in there and name[0] not in not_run}
    not_run |= dict.fromkeys(without.values(), "no rated response has a score")
    if contrasted and (contrasted not in there or len(there) < 2):
        why = not_run.get(str(against)) or not_run.get(contrasted[0]) or f"only {against} has scores"
        raise ConfigError(f"{against}: {why}", where="--against", expected="a metric that has scores, and others")
    detail = evaluation.Detail.named(None, None, resamples, seed, only=list(coefficient))
    values, tests = evaluation.evaluate(samples, detail=detail)
    return comparison(
        values,
        tests,
        samples,
        {name: label for name, label in choice.labels.items() if name in there},
        list(coefficient),
        source=whose,
        correction=correction,
        contrasted=contrasted,
        reasons=not_run,
        slow=slow,
        named=bool(metrics),
        scales={
            (str(dataset), str(dimension)): (of["scale_min"].min(), of["scale_max"].max())
            for (dataset, dimension), of in data.ratings.groupby(["dataset", "dimension"], observed=True)
        },
        caption="".join(f"Only {text}. " for text in subset) + f"{resamples} resamples, seed {seed}.",
        notes=[*data.notes, *lines, *notes],
    )


class _Choice:
    """The metrics to run, the columns of the file, and the user's name for each (metric, output)."""

    def __init__(self, data: Data, ready: pd.DataFrame, judges: Collection[str], entries: Entries) -> None:
        self.metrics: dict[str, Metric] = {}
        self.columns: list[str] = []
        self.labels: dict[Output, str] = {}
        self._ready = {str(name): rows for name, rows in ready.groupby("metric")}
        self._judges = {plain(name): name for name in judges}
        own = [] if data.attributes is None else [str(name) for name in data.attributes.columns.drop(UNIT)]
        self._own = {plain(name): name for name in own}
        self._entries, self._can_score = entries, len(data.responses) > 0

    def add(self, text: str) -> str:
        """Add an existing score, a judge, a metric or a column by name; return its name without the output."""
        name, output = (text, "") if text in self._ready else output_name(text, "")
        if name in self._ready:
            outputs = _outputs(self._ready[name], is_named=bool(output))
        elif judge := self._judges.get(plain(name)):
            name = text = judge
            outputs = ["score"]
        else:
            try:
                metric = metric_named(name, self._entries)
                outputs = list(metric.outputs)
                if not self._can_score:
                    problem, hint = f"nothing to score with {name!r}", f"--scores has: {', '.join(self._ready)}"
                    raise ConfigError(problem, expected="a file or folder of responses", hint=hint)
                self.metrics.setdefault(name, metric)
            except UnknownNameError as error:
                if plain(name) not in self._own:
                    there = {
                        "--scores has": self._ready,
                        "columns of the file that can be compared": self._own.values(),
                    }
                    more = "; ".join(f"{what}: {', '.join(names)}" for what, names in there.items() if names)
                    advice = f"{error.hint or ''} {more}".strip() or None
                    raise ConfigError(error.problem, expected=error.expected, hint=advice) from None
                # Notes refer to a column with its output (gpt4_score:score), so accept that name too.
                name = text = self._own[plain(name)]
                outputs = ["score"]
                self.columns += [] if name in self.columns else [name]
        if output and output not in outputs:
            raise UnknownNameError(f"output of metric {name!r}:", output, outputs)
        self.labels.setdefault((name, output or outputs[0]), text)
        return name


def _outputs(scores: pd.DataFrame, *, is_named: bool) -> list[str]:
    """Return the outputs of a metric in a table of scores; only the main one unless outputs are named."""
    there = sorted(scores["output"].unique())
    if is_named:
        return there
    kind = str(scores["signature"].iloc[0]).partition("|")[0]
    main = list(create(kind).outputs[:1]) if kind in kinds() else there
    if len(main) > 1 or main[0] not in there:
        problem = f"metric {scores['metric'].iloc[0]!r} has the outputs {', '.join(there)}"
        raise ConfigError(problem, where="--scores", expected="the ones to compare, as --metrics METRIC:OUTPUT")
    return main


def audit(
    data: Source,
    judge: str | None = None,
    human: str | None = None,
    *,
    ratings: pd.DataFrame | Paths | None = None,
    baseline: str | Path | pd.DataFrame | None = None,
    target: str | None = None,
    level: Literal["turn", "dialogue"] | None = None,
    raters: Literal["crowd", "trained", "experts"] = "crowd",
    clusters: str = "dialogue",
    judge_scale: Sequence[float] | None = None,
    half_width: float | None = None,
    columns: Mapping[str, Any] | None = None,
    scale: Sequence[float] | None = None,
    labels: Mapping[str, Any] | None = None,
    nominal: bool = False,
    sheet: str | None = None,
) -> Audit:
    """Check whether a judge can replace a human rater and where it errs, and estimate the human means.

    Parameters
    ----------
    data
        The result of :func:`read`, or a file or frame with human ratings and judge scores as columns, or with votes of both
        between two answers. People may label only some of the items; leave the other cells empty.
    judge, human
        The judge's column (``gpt4_score``) if there are several; and the column or ``source`` of the human ratings.
    ratings
        Human ratings in separate files or a frame; ``data`` then holds the judge's scores.
    baseline
        Earlier scores by the same judge for the same items.
    target, level
        The rated dimension, or the question of votes; and ``turn`` or ``dialogue``.
    raters
        Kind of raters, which sets how much worse than one of them a judge may be (0.1, 0.15 or 0.2).
    clusters
        What groups the items: ``dialogue`` (or context), ``system``, ``none``, or a column.
    judge_scale
        The judge's lowest and highest score, if its scale differs from the human one.
    half_width
        Target half-width of the interval around the corrected mean.
    columns, scale, labels, sheet
        As in :func:`read`.
    nominal
        Labels are unordered categories (``PartOf``, ``Location``): report kappa and shares, no means or correlations.

    Returns
    -------
    Audit
        ``verdict``, a sentence or two; ``table``, a frame of all numbers with 95 % intervals; ``to_html()`` and
        ``to_json()``; ``next_labels(n)``; ``failures(["alt-test"])``. ``print`` shows the whole audit as text.

    Raises
    ------
    ComperdialError
        If there is no judge, or fewer than ten items have both human and judge labels.

    Examples
    --------
    >>> import comperdial, pandas as pd
    >>> people = pd.DataFrame({"rater_1": [1, 2, 4, 5, 3, 1, 2, 5] * 6, "rater_2": [1, 3, 4, 5, 3, 2, 2, 5] * 6})
    >>> frame = people.assign(response=[f"text {n}" for n in range(48)], gpt4_score=[1, 2, 4, 5, 3, 1, 3, 5] * 6)
    >>> result = comperdial.audit(frame, scale=[1, 5])
    >>> print(result.verdict.partition(":")[0])
    Yes, gpt4_score may stand in for one of your raters
    >>> result.table.query("section == 'Agreement'")[["what", "value"]].round(2).head(1)
                             what  value
    3  Pearson with people's mean   0.96
    """
    options = {"columns": columns, "scale": scale, "labels": labels, "sheet": sheet}
    options = {name: value for name, value in options.items() if value}
    choice = {"judge": judge, "target": target, "by": clusters}
    of_ratings = {"level": level, "judge_scale": judge_scale, "scale_is_known": scale is not None}
    how: dict[str, Any] = {
        "human": human,
        "ratings": ratings,
        "options": options,
        "of_ratings": of_ratings,
        "nominal": nominal,
    }
    of_judges, notes = _judged(data, choice, **how)
    made, lacking = [], []
    for one in of_judges:
        try:
            made.append(audits.audit(one, raters=raters, half_width=half_width))
        except SchemaError as error:
            lacking.append(error)
    if not made:
        raise lacking[0]
    first = max(made, key=lambda one: one.agreement)
    others = [one for one in made if one is not first]
    if baseline is not None:
        choice |= {"judge": first.judged.judge_name, "target": first.judged.dimension}
        before = _before(baseline, first.judged, choice, how)
        first = audits.audit(first.judged, raters=raters, before=before, half_width=half_width)
    return Audit.of(first, others, notes)


def _judged(
    data: Source,
    choice: Mapping[str, Any],
    *,
    human: str | None,
    ratings: pd.DataFrame | Paths | None,
    options: Mapping[str, Any],
    of_ratings: Mapping[str, Any],
    nominal: bool = False,
) -> tuple[list[Judged], Sequence[str]]:
    """Return the judges in the data, each with the human labels, and notes on how the data were read."""
    named, has_texts, names, dimension = choice["judge"], True, dict[float, str](), ""
    path = Path(data) if isinstance(data, str | Path) else Path("judge")
    file = None if isinstance(data, Data) else _own(data, options.get("sheet"))
    only = ratings if isinstance(ratings, pd.DataFrame | None) else [*_paths(ratings), None][0]
    people = None if file is None or only is None else _own(only, None)
    if file and people and (both := one_file(file, people, choice["judge"] or path.stem)):
        file, ratings = both, None
    elif people and only is not None and (rated := _with_texts(only, people, options)):
        data = with_ratings_of(data if isinstance(data, Data) else read_data(data, rated=False), rated)
        file = ratings = None
    if nominal and (file is None or ratings is not None):
        raise ConfigError(
            "labels without an order", where="--nominal", expected="one file, or two with the same layout"
        )
    if nominal and file:
        human = human or (None if options.get("columns") else human_labels(file, choice["judge"]))
        file, names = numbered(file, choice["judge"])
    if file and ratings is None and not isinstance(data, Data):
        columns, judge = dict(options.get("columns", {})), choice["judge"]
        if human and {*human.split(",")} <= {*file.frame}:
            file, columns = _with_humans(file, columns, human)
            if "," not in human:
                dimension = human
                choice = {**choice, "target": None} if choice["target"] == human else choice
            human = None
        elif "rating" not in columns and are_votes(file.frame):
            votes, notes = read_votes(file, path, options.get("labels"), columns or None)
            return from_votes(votes, judge=judge, question=choice["target"], by=choice["by"]), notes
        if judge in file.frame:
            # Keep the judge's column from being read as human ratings, whatever its name; map its labels like theirs.
            values = {str(label).strip().lower(): value for label, value in options.get("labels", {}).items()}
            cells = [values.get(str(cell).strip().lower(), cell) for cell in file.frame[judge]]
            name = judge if JUDGES.search(plain(judge)) else f"judge {judge}"
            frame = file.frame.assign(**{judge: pd.Series(cells, file.frame.index, dtype=object)})
            file, choice = replace(file, frame=frame.rename(columns={judge: name})), {**choice, "judge": name}
        options = {**options, "columns": columns} if columns else options
        named_items = None if "response" in file.frame or "response" in columns else with_names_for_texts(file)
        try:
            data = read_data(data, options, file=named_items or file)
        except SchemaError as error:
            if has_labels(file):
                hint = "If labels are names without an order: --nominal (in Python nominal=True)"
                error.hint = f"{error.hint}. {hint}" if error.hint else hint
            raise
        has_texts = named_items is None
    rated = _rated(data, ratings, None, schema.empty("scores"))
    if human and human not in rated.sources:
        raise UnknownNameError("column or source of ratings", human, rated.sources, where="--human")
    of_judges = from_ratings(rated, _source(rated, human), **choice, **of_ratings)
    changed: dict[str, Any] = {} if has_texts else {"texts": None, "lengths": None, "noun": "items"}
    if dimension:
        changed["dimension"] = dimension
    if nominal:
        rated = replace(rated, notes=tuple(note for note in rated.notes if "no scale is given" not in note))
        changed["names"] = names
        listed = ", ".join(f"{number:g} {label}" for number, label in names.items())
        rated = replace(rated, notes=(*rated.notes, f"labels without an order, numbered by name: {listed}"))
    return [replace(one, judge_name=named or one.judge_name, **changed) for one in of_judges], rated.notes


def _with_humans(file: File, columns: Mapping[str, Any], human: str) -> tuple[File, dict[str, Any]]:
    """Return a file and a column map in which the named columns are human ratings: one column, or one per rater."""
    names = human.split(",")
    if len(names) > 1:
        return file, {**columns, "annotator_id": names}
    # By our own name: a column such as rater1 or fluency would be read as one rater or dimension of several.
    frame = file.frame if human == "rating" else file.frame.rename(columns={"rating": "rating (not used)"})
    return replace(file, frame=frame.rename(columns={human: "rating"})), {**columns, "rating": "rating"}


def _with_texts(source: str | Path | pd.DataFrame, file: File, options: Mapping[str, Any]) -> Data | None:
    """Return the human ratings from a separate file that includes the responses; None if it lacks them."""
    columns = {ours: name for ours, name in options.get("columns", {}).items() if {*_listed(name)} <= {*file.frame}}
    try:
        return read_data(source, {**options, "columns": columns} if columns else options, file=file)
    except SchemaError:
        return None


def _listed(names: Any) -> list[str]:  # noqa: ANN401
    return [names] if isinstance(names, str) else [*names]


def _before(
    baseline: str | Path | pd.DataFrame, now: Judged, choice: Mapping[str, Any], how: Mapping[str, Any]
) -> Judged:
    """Return the judge's earlier labels, read in the same way; the file need not include the human ones."""
    try:
        return _judged(baseline, choice, **how)[0][0]
    except (SchemaError, ConfigError):
        data = read_data(baseline, rated=False)
        if plain(now.judge_name) not in map(plain, data.scores["metric"].unique()):
            raise
    # Dummy ratings: only the judge's labels are compared.
    rated = data.responses.rename(columns={"context_id": "item_id"}).assign(
        dimension=now.dimension,
        annotator_id="nobody",
        rating=now.scale[0],
        scale_min=now.scale[0],
        scale_max=now.scale[1],
        source=HUMAN[0],
        level="turn",
        position=None,
    )
    rated = schema.validate(rated[schema.table("ratings").columns], "ratings")
    return from_ratings(replace(data, ratings=rated), HUMAN[0], **choice, **how["of_ratings"])[0]


def _own(source: str | Path | pd.DataFrame, sheet: str | None) -> File | None:
    """Return the content of a user's file or frame; None for a folder of tables."""
    if isinstance(source, pd.DataFrame):
        return _file(source)
    return None if Path(source).is_dir() else read_file(Path(source), sheet)


def _file(frame: pd.DataFrame) -> File:
    return File(frame.reset_index(drop=True), range(1, len(frame) + 1))


def default_metrics(entries: Entries, responses: int) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Choose metrics for a number of responses: what can run here, cheapest first, within a minute in total.

    Return METRIC or METRIC:OUTPUT for each main output; why others cannot run; and how long the rest would take. Metrics
    tied to one data set are left out.
    """
    costs = pd.read_csv(COSTS).dropna(subset=["seconds"])
    known = dict(zip(costs["metric"], costs["seconds"] / 1000, strict=True))
    able: dict[str, Metric] = {}
    lacking, slow = {}, {}
    for name, entry in entries.items():
        if not entry.get("main") or entry.get("datasets") or entry.get("apart"):
            continue
        able[name] = metric_named(name, entries)
        if why := able[name].unavailable():
            lacking[name] = why
            del able[name]
        elif name not in known and able[name].runs_model:
            slow[name] = "not measured"
            del able[name]
    uses_model = {name: metric.runs_model or metric.keeps_vectors for name, metric in able.items()}
    seconds = {name: known.get(name, 0.0) * responses + _LOADING * uses_model[name] for name in able}
    names, total = [], 0.0
    for name in sorted(able, key=lambda name: seconds[name]):
        total += seconds[name]
        if total > _MOST_SECONDS:
            slow[name] = f"about {max(1, seconds[name] / 60):,.0f} min"
            continue
        main = entries[name]["main"]
        outputs = [main] if isinstance(main, str) else main
        names += [name if output == able[name].outputs[0] else f"{name}:{output}" for output in outputs]
    return names, lacking, slow


def _score(
    chosen: Mapping[str, Metric], data: Data, embeddings: str | Path | None
) -> tuple[pd.DataFrame, dict[str, str], dict[str, str]]:
    """Return scores, the reasons why applicable metrics were not run, and why the others do not apply."""
    if not chosen:
        return schema.empty("scores"), {}, {}
    if embeddings:
        os.environ[STORE_VARIABLE] = str(embeddings)
    suited, unsuited = suited_to(chosen, [data.batch])
    return *score_many(suited, [(data.responses, data.batch)]), unsuited


def name_not_run(not_run: Mapping[str, str], chosen: Collection[str] = ()) -> None:
    """Log which metrics were not run; raise an error if no chosen metric ran."""
    if not_run and len(not_run) == len(chosen):
        problem = "; ".join(f"{name}: {why}" for name, why in not_run.items())
        raise MissingResourceError(f"no metric could be run: {problem}")
    for name, why in not_run.items():
        log.warning("%s: not run: %s", name, why)


def _samples(
    tables: Tables,
    options: Options,
    level: Sequence[str],
    target: Sequence[str],
    coefficient: Sequence[str],
    judges: Sequence[str],
    names: Sequence[Output],
) -> tuple[list[Sample], list[str]]:
    """Return the samples to compare, with one output per judge, and notes on what was left out."""
    samples, notes = analysed(tables, options, levels=list(level) or LEVELS, targets=list(target) or None)
    made = []
    for sample in samples:
        judged = {name: (judge, "score") for judge in judges if (name := of_judge(sample, judge))}
        part = sample.only([*judged, *(name for name in names if name[0] not in judges)])
        made += [replace(part, names=tuple(judged.get(name, name) for name in part.names))] if part.names else []
    few = [sample for sample in made if sample.level == "system" and len(sample.systems) < FEWEST_SAMPLED]
    if few and len(few) < len(made) and not level:
        made = [sample for sample in made if sample not in few]
        count = f"{len(few[0].systems)} system{'s' * (len(few[0].systems) > 1)}"
        notes.append(f"System level is left out: {count}, and nothing can be tested below {FEWEST_SAMPLED}")
    of_systems = ", ".join(name for name in coefficient if name in OF_SYSTEMS)
    if not {*coefficient} - {*OF_SYSTEMS}:
        made = [sample for sample in made if sample.design.average]
    if of_systems:
        here = any(sample.design.average for sample in made)
        notes.append(f"{of_systems}: of pairs of systems, {'at system level alone' if here else 'which is not here'}")
    if not made:
        problem = f"{of_systems}: no system level" if of_systems else "nothing that was scored was rated"
        expected = "at least three systems, and the level `system`" if of_systems else "scores of rated responses"
        raise ConfigError(problem, where="--coefficient" if of_systems else None, expected=expected)
    if any(map(is_narrow, made)):
        what = f"there are fewer than {FEWEST_DIALOGUES} dialogues or contexts"
        notes.append(f"No interval and no test of a difference where {what}")
    return made, notes


def _rated(data: Source | None, ratings: Any, contexts: str | Path | None, scores: pd.DataFrame) -> Data:  # noqa: ANN401
    """Return data with the given ratings, or with its own."""
    if not isinstance(data, Data):
        data = NOTHING if data is None else read_data(data, rated=ratings is None)
    datasets = {*data.responses["dataset"], *scores["dataset"]} - {aggregate.UNNAMED}
    dataset = datasets.pop() if len(datasets) == 1 else None
    if isinstance(ratings, pd.DataFrame):
        low, high = ratings["rating"].min(), ratings["rating"].max()
        defaults = {"dataset": dataset or "data", "annotator_id": "1", "position": None, "dimension": "rating"}
        defaults |= {"source": "human", "scale_min": low, "scale_max": high}
        data = replace(data, ratings=_completed(ratings, "ratings", defaults))
    elif isinstance(ratings, Data):
        data = ratings
    elif ratings:
        data = replace(data, ratings=aggregate.read_ratings_of(_paths(ratings), dataset=dataset))
    if contexts:
        data = replace(data, contexts=aggregate.read_contexts(contexts, dataset=dataset))
    if data.ratings.empty:
        raise ConfigError("no ratings", expected="a column `rating` next to the responses, or --ratings")
    return data


def _source(data: Data, source: str | None) -> str:
    """Return the source of ratings to use: the requested one, people, or the only source that is not a judge."""
    known = data.sources
    if source and source not in known:
        raise UnknownNameError("source of ratings", source, known, where="--source")
    if source or "human" in known:
        return source or "human"
    people = [name for name in known if not JUDGES.search(plain(name))] if len(known) > 1 else known
    if len(people) != 1:
        raise ConfigError(f"ratings by {', '.join(known)}", where="--source", expected="whose count")
    return people[0]


def _scores(scores: pd.DataFrame | Paths) -> pd.DataFrame:
    if isinstance(scores, pd.DataFrame):
        return aggregate.scores_in(_file(scores), Path("score"), unnamed=True)
    return aggregate.read_scores(_paths(scores), unnamed=True)


def _completed(frame: pd.DataFrame, name: str, defaults: Mapping[str, Any]) -> pd.DataFrame:
    """Return a frame with a few columns as a complete table."""
    level = "dialogue" if "dialogue_id" in frame and "context_id" not in frame else "turn"
    frame = frame.rename(columns={"dialogue_id" if level == "dialogue" else "context_id": "item_id"})
    missing = {column: value for column, value in {**defaults, "level": level}.items() if column not in frame}
    frame = frame.assign(**missing).reindex(columns=schema.table(name).columns)
    names = [column for column in ("dataset", "item_id", "system_id", "annotator_id") if column in frame]
    frame[names] = frame[names].map(plain_name)
    return schema.validate(frame, name, where=f"the frame of {name}")


def _paths(paths: Paths) -> list[str | Path]:
    return [paths] if isinstance(paths, str | Path) else list(paths)


def _named(scores: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Add a missing data set to scores: the only one that was rated."""
    datasets = sorted({*ratings["dataset"]})
    if aggregate.UNNAMED in {*scores["dataset"]} and len(datasets) > 1:
        problem = f"scores without a column 'dataset', and ratings of {', '.join(datasets)}"
        raise ConfigError(problem, where="--scores", expected="the column, since several data sets were rated")
    return scores.assign(dataset=scores["dataset"].replace(aggregate.UNNAMED, datasets[0]))
