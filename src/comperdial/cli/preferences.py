"""Commands that analyse preferences between dialogues, and plan the number of votes."""

from __future__ import annotations

import logging
import math
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from comperdial.cli import options as o
from comperdial.core.errors import ConfigError
from comperdial.core.files import form_path, write_table, write_text

log = logging.getLogger(__name__)

# A larger matrix is unreadable.
_MOST_DRAWN = 60
_EXAMPLE = "Use the bundled example: PandaLM's votes, with two judges."


@o.command("preferences")
def preferences_(
    input: Annotated[
        o.File, Argument(metavar="[FILE]", help="Votes in any common format, or table `preferences`.")
    ] = None,
    example: Annotated[bool, Option("--example", help=_EXAMPLE)] = False,
    data: Annotated[o.Name, Option(help="A data set of the catalogue instead of a file.")] = None,
    question: Annotated[o.Name, Option(help="The question, if there are several.")] = None,
    source: Annotated[o.Name, Option(help="Source of the votes; default: human, or the only one.")] = None,
    columns: o.Columns = None,
    labels: Annotated[dict | None, o.a_json("Map from the file's values to first, second or tie.")] = None,
    sheet: o.Sheet = None,
    scores: Annotated[o.Files, o.option("FILE", "Tables `scores` of metrics.")] = None,
    contexts: Annotated[o.File, o.option("FILE", "Dialogue of each context, for scores of turns.")] = None,
    resamples: Annotated[int, Option(min=2, help="Resamples for intervals of agreement and metrics.")] = 1000,
    seed: o.Seed = 2024,
    output: Annotated[o.File, o.written("Also write tables and figures to this folder.", o.output_folder)] = None,
) -> None:
    """Rank systems by votes, with strengths and intervals, and compare judges with people."""
    from comperdial.data import catalogue as catalogues
    from comperdial.data.files import read_file
    from comperdial.data.preferences import read_preferences
    from comperdial.data.votes import read_votes
    from comperdial.evaluation import aggregate, preferences
    from comperdial.report import render
    from comperdial.report.preferences import preferences_table

    if (input is not None) + (data is not None) + example != 1:
        raise ConfigError("no input, or several inputs", expected="one of: a file, --data NAME, --example")
    if example:
        input = Path(str(files("comperdial") / "examples/pandalm.csv"))
    if contexts and not scores:
        raise ConfigError("given without scores", where="--contexts", expected="--scores FILE as well")
    if input:
        table, notes = read_votes(read_file(input, sheet), input, labels, columns)
        title = input.stem
        for note in notes:
            log.info("%s: %s", input, note)
    else:
        table = read_preferences(str(data), catalogue=o.CATALOGUE)
        title = catalogues.load_catalogue(o.CATALOGUE).dataset(str(data)).title
    votes = preferences.votes_of(table, question=question, source=source)
    analyses = preferences.analyses(votes, resamples=resamples, seed=seed)
    judges = preferences.agreement_with_people(table, question=question, resamples=resamples, seed=seed)
    whole, metrics = analyses["All"], None
    if scores:
        of_dialogues = preferences.dialogue_scores(
            aggregate.read_scores(scores), aggregate.read_contexts(contexts) if contexts else None
        )
        metrics = preferences.metric_choices(
            votes, of_dialogues, dominant=whole.dominant, resamples=resamples, seed=seed
        )
        if metrics.empty or not metrics["n"].sum():
            expected = "the dialogues and systems in the votes"
            raise ConfigError("no vote compares two dialogues with scores", where="--scores", expected=expected)
    document = preferences_table(title, analyses, metrics, judges)
    sys.stdout.write(render.text(document))
    if output is None:
        return
    from comperdial.report.plots.preferences import matrix_figure, strengths_figure
    from comperdial.report.plots.style import save

    order = list(whole.strengths["system"])
    write_text(output / "preferences.md", render.markdown(document))
    if len(order) <= _MOST_DRAWN:
        save(matrix_figure({title: whole.matrix}, {title: order}), whole.matrix, output / "matrix")
    save(strengths_figure({title: whole.strengths}), whole.strengths, output / "strengths")
    for name, frame in (("metrics", metrics), ("judges", judges)):
        if frame is not None and len(frame):
            content = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            write_text(form_path(output / name, ".csv"), content)


@o.command("plan-preferences")
def plan(
    win_rate: Annotated[float, Option(help="Share of votes for the better one, without ties.")],
    power: float = 0.8,
    alpha: Annotated[float, Option(help="Level of the two-sided test.")] = 0.05,
    ties: Annotated[float, o.option("SHARE", "Share of ties.")] = 0.0,
) -> None:
    """Compute the number of votes needed to detect a win rate."""
    from comperdial.stats.win_rate import votes_needed

    not_even = "a share between 0 and 1, not within 0.01 of one half"
    for name, value, valid, expected in (
        ("win-rate", win_rate, 0.01 <= abs(win_rate - 0.5) < 0.5, not_even),
        ("power", power, 0 < power < 1, "a share between 0 and 1"),
        ("alpha", alpha, 0 < alpha < 1, "a share between 0 and 1"),
        ("ties", ties, 0 <= ties < 1, "a share of 0 or more and below 1"),
    ):
        if not valid:
            raise ConfigError(str(value), where=f"--{name}", expected=expected)
    needed = votes_needed(win_rate, power_wanted=power, alpha=alpha)
    print(
        f"{needed:,} votes for one of the two: from there on the two-sided binomial test at {alpha:g} finds a win "
        f"rate of {win_rate:g} with a power of {power:g}, if votes are independent"
    )
    if ties:
        print(f"{math.ceil(needed / (1 - ties)):,} votes in all, with a share of {ties:g} ties")


@o.command()
def recorded_pairs(
    dataset: Annotated[str, Argument(help="llmbar_natural, llmbar_mt_bench or llmfao.")],
    output: o.Output,
) -> None:
    """Write judges' recorded choices between two answers."""
    from comperdial.judges.recorded_pairs import judged_pairs

    write_table(output, judged_pairs(dataset, catalogue=o.CATALOGUE)[1])


@o.command()
def rated_dialogues(dataset: Literal["ieval"], output: o.Output) -> None:
    """Write the participants' ratings of iEval's dialogues, and properties of the bots' utterances."""
    import pandas as pd

    from comperdial.data import catalogue as catalogues
    from comperdial.data import sources
    from comperdial.data.readers import ieval
    from comperdial.evaluation.preferences import properties

    files = sources.require_all(catalogues.load_catalogue(o.CATALOGUE).dataset(dataset).files)
    key = ["dialogue_id", "system_id"]
    counts = [{name: getattr(one, name) for name in key} | properties(one) for one in ieval.dialogues(files)]
    rated = ieval.ratings(files)[[*key, "annotator_id", "seconds", "likert"]]
    write_table(output, rated.merge(pd.DataFrame(counts), on=key, validate="one_to_one"))
