"""The commands that analyse preferences between dialogues, and plan how many are needed."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from pathlib import Path

from comperdial.cli.common import READ, Commands, add_catalogue, add_command, output_folder, output_table, whole
from comperdial.core.errors import ConfigError
from comperdial.core.files import form_path, write_table, write_text

# A matrix of more systems cannot be read.
_MOST_DRAWN = 60


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    about = "who is preferred to whom, how strong each is, how sure that is"
    command = add_command(commands, "preferences", _preferences, about)
    add = command.add_argument
    add("input", type=Path, nargs="?", help="table `preferences` as Parquet, CSV or JSONL")
    add("--data", metavar="NAME", help="a data set of preferences of the catalogue instead of a file")
    add("--question", help="which question's votes, where there are several")
    add("--source", help="whose votes; default: human, or the one that there is")
    add("--scores", **READ, nargs="+", default=[], help="tables `scores` of metrics")
    add("--contexts", type=Path, help="which dialogue a context belongs to, for scores of turns")
    add("--resamples", type=whole(2), default=1000, help="for intervals of agreement and of metrics (default: 1000)")
    add("--seed", type=whole(0), default=2024, help="of all that is drawn (default: 2024)")
    add("--output", type=output_folder, metavar="FOLDER", help="write the table, its numbers and figures there")
    add_catalogue(command)

    add = add_command(commands, "plan-preferences", _plan, "how many votes it takes to find a win rate").add_argument
    add("--win-rate", type=float, required=True, help="share of votes for the better one, ties left out")
    add("--power", type=float, default=0.8, help="default: 0.8")
    add("--alpha", type=float, default=0.05, help="level of the two-sided test (default: 0.05)")
    add("--ties", type=float, default=0.0, metavar="SHARE", help="of votes that are ties (default: 0)")

    about = "how judges chose between two, of choices that others recorded"
    recorded = add_command(commands, "recorded-pairs", _recorded_pairs, about)
    recorded.add_argument("dataset", help="a data set of the catalogue: llmbar_natural, llmbar_mt_bench or llmfao")
    about = "how the people in iEval's dialogues rated them, and what the bots wrote"
    rated = add_command(commands, "rated-dialogues", _rated_dialogues, about)
    rated.add_argument("dataset", choices=["ieval"])
    for command in (recorded, rated):
        command.add_argument("--output", type=output_table, required=True, help="a .csv, .jsonl or .parquet file")
        add_catalogue(command)


def _recorded_pairs(options: Namespace) -> None:
    from comperdial.judges.recorded_pairs import judged_pairs

    write_table(options.output, judged_pairs(options.dataset, catalogue=options.catalogue)[1])


def _rated_dialogues(options: Namespace) -> None:
    import pandas as pd

    from comperdial.data import catalogue, sources
    from comperdial.data.readers import ieval
    from comperdial.evaluation.preferences import properties

    files = sources.require_all(catalogue.load_catalogue(options.catalogue).dataset(options.dataset).files)
    key = ["dialogue_id", "system_id"]
    counts = [{name: getattr(one, name) for name in key} | properties(one) for one in ieval.dialogues(files)]
    rated = ieval.ratings(files)[[*key, "annotator_id", "seconds", "likert"]]
    write_table(options.output, rated.merge(pd.DataFrame(counts), on=key, validate="one_to_one"))


def _preferences(options: Namespace) -> None:
    from comperdial import schema
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.preferences import read_preferences
    from comperdial.evaluation import aggregate, preferences
    from comperdial.report import render
    from comperdial.report.preferences import preferences_table

    if (options.input is None) == (options.data is None):
        problem = "no preferences" if options.data is None else "a file and --data"
        raise ConfigError(problem, expected="a file, or --data NAME")
    if options.input:
        table, title = schema.read(options.input, "preferences"), options.input.stem
    else:
        table = read_preferences(options.data, catalogue=options.catalogue)
        title = load_catalogue(options.catalogue).dataset(options.data).title
    if options.contexts and not options.scores:
        raise ConfigError("given without scores", where="--contexts", expected="--scores FILE, too")
    votes = preferences.votes_of(table, question=options.question, source=options.source)
    how = {"resamples": options.resamples, "seed": options.seed}
    analyses = preferences.analyses(votes, **how)
    whole, metrics = analyses["All"], None
    if options.scores:
        contexts = aggregate.read_contexts(options.contexts) if options.contexts else None
        scores = preferences.dialogue_scores(aggregate.read_scores(options.scores), contexts)
        metrics = preferences.metric_choices(votes, scores, dominant=whole.dominant, **how)
        if metrics.empty or not metrics["n"].sum():
            expected = "dialogues and systems as in the votes"
            raise ConfigError("no vote is on two dialogues that have scores", where="--scores", expected=expected)
    document = preferences_table(title, analyses, metrics)
    sys.stdout.write(render.text(document))
    if not (folder := options.output):
        return
    from comperdial.report.plots.preferences import matrix_figure, strengths_figure
    from comperdial.report.plots.style import save

    order = list(whole.strengths["system"])
    write_text(folder / "preferences.md", render.markdown(document))
    if len(order) <= _MOST_DRAWN:
        save(matrix_figure({title: whole.matrix}, {title: order}), whole.matrix, folder / "matrix")
    save(strengths_figure({title: whole.strengths}), whole.strengths, folder / "strengths")
    if metrics is not None:
        content = metrics.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_text(form_path(folder / "metrics", ".csv"), content)


def _plan(options: Namespace) -> None:
    from comperdial.stats.win_rate import votes_needed

    rate, power, alpha, ties = options.win_rate, options.power, options.alpha, options.ties
    for name, value, valid, expected in (
        ("win-rate", rate, 0.01 <= abs(rate - 0.5) < 0.5, "a share between 0 and 1, not within 0.01 of one half"),
        ("power", power, 0 < power < 1, "a share between 0 and 1"),
        ("alpha", alpha, 0 < alpha < 1, "a share between 0 and 1"),
        ("ties", ties, 0 <= ties < 1, "a share of 0 or more and below 1"),
    ):
        if not valid:
            raise ConfigError(str(value), where=f"--{name}", expected=expected)
    needed = votes_needed(rate, power_wanted=power, alpha=alpha)
    print(
        f"{needed:,} votes for one of the two: from there on the two-sided binomial test at {alpha:g} finds a win "
        f"rate of {rate:g} with a power of {power:g}, if votes are independent"
    )
    if ties:
        print(f"{math.ceil(needed / (1 - ties)):,} votes in all, with a share of {ties:g} ties")
