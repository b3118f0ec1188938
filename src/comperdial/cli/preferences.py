"""The commands that analyse preferences between dialogues, and plan how many are needed."""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from comperdial.cli.common import READ, Commands, add_catalogue, add_command, output_folder, output_table, whole
from comperdial.core.errors import ConfigError, SchemaError
from comperdial.core.files import form_path, write_table, write_text

# What the planner simulates: so many studies, of at most so many times the votes that a fixed number of them needs.
_STUDIES, _LONGEST = 2000, 3
_SHARE = "a share between 0 and 1"


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    about = "who is preferred to whom, how strong each is, how sure that is"
    command = add_command(commands, "preferences", _preferences, about)
    add = command.add_argument
    add("input", type=Path, nargs="?", help="table `preferences` as Parquet, CSV or JSONL")
    add("--data", metavar="NAME", help="a data set of preferences of the catalogue instead of a file")
    add("--question", help="which question's votes, where there are several")
    add("--source", help="whose votes; default: human, or the one that there is")
    what = (
        "whose votes may be alike, for the intervals and ranks of strengths; default: annotators, below ten dialogues"
    )
    add("--by", choices=("annotator", "dialogue"), help=what)
    add("--scores", **READ, nargs="+", default=[], help="tables `scores` of metrics")
    add("--contexts", type=Path, help="which dialogue a context belongs to, for scores of turns")
    add("--resamples", type=int, default=1000, help="for intervals of agreement and of metrics (default: 1000)")
    add("--seed", type=whole(0), default=2024, help="of all that is drawn (default: 2024)")
    add("--output", type=output_folder, metavar="FOLDER", help="write the table, its numbers and figures there")
    add_catalogue(command)

    add = add_command(commands, "plan-preferences", _plan, "how many votes it takes to find a win rate").add_argument
    add("--win-rate", type=float, required=True, help="share of votes for the better one, ties left out")
    add("--power", type=float, default=0.8, help="default: 0.8")
    add("--alpha", type=float, default=0.05, help="level of the two-sided test (default: 0.05)")
    add("--ties", type=float, default=0.0, metavar="SHARE", help="of votes that are ties (default: 0)")
    add("--seconds", type=float, help="that a vote takes, to say what all take")
    add("--seed", type=whole(0), default=2024, help="of the simulated studies (default: 2024)")

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
    from comperdial.evaluation.preferences import votes_of
    from comperdial.report import preferences, render

    if options.resamples < 2:
        raise ConfigError(str(options.resamples), where="--resamples", expected="2 or more")
    if options.contexts and not options.scores:
        raise ConfigError("given without scores", where="--contexts", expected="--scores FILE, too")
    if (options.input is None) == (options.data is None):
        problem = "no preferences" if options.data is None else "a file and --data"
        raise ConfigError(problem, expected="a file, or --data NAME")
    if options.input:
        table, title = schema.read(options.input, "preferences"), options.input.stem
    else:
        table = read_preferences(options.data, catalogue=options.catalogue)
        title = load_catalogue(options.catalogue).dataset(options.data).title
    votes = votes_of(table, question=options.question, source=options.source)
    if votes.strict.empty and (votes.frame["a"] != votes.frame["b"]).any():
        raise SchemaError("all votes are ties", where=title, expected="a vote for one of the two")
    how = {"resamples": options.resamples, "seed": options.seed}
    metrics = _metrics(options, votes, how) if options.scores else None
    document, analysis = preferences.preferences_table(votes, title, by=options.by, metrics=metrics, **how)
    sys.stdout.write(render.text(document))
    if not (folder := options.output):
        return
    from comperdial.report.plots.preferences import matrix_figure, strengths_figure
    from comperdial.report.plots.style import save

    order = list(analysis.strengths["system"])
    write_text(folder / "preferences.md", render.markdown(document))
    if len(order) <= 5 * preferences.MOST_SYSTEMS:
        save(matrix_figure({title: analysis.matrix}, {title: order}), analysis.matrix, folder / "matrix")
    save(strengths_figure({title: analysis.strengths}), analysis.strengths, folder / "strengths")
    if metrics is not None:
        content = metrics.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_text(form_path(folder / "metrics", ".csv"), content)


def _metrics(options: Namespace, votes: Any, how: dict[str, Any]) -> Any:  # noqa: ANN401 - Votes, a table
    from comperdial.evaluation import aggregate, preferences

    contexts = aggregate.read_contexts(options.contexts) if options.contexts else None
    scores = preferences.dialogue_scores(aggregate.read_scores(options.scores), contexts)
    choices = preferences.metric_choices(votes, scores, dominant=preferences.strongest_first(votes)[0], **how)
    if choices.empty or not choices["n"].sum():
        expected = "dialogues and systems as in the votes"
        raise ConfigError("no vote is on two dialogues that have scores", where="--scores", expected=expected)
    return choices


def _plan(options: Namespace) -> None:
    import numpy as np

    from comperdial.stats.win_rate import decided_at, peeked_at, votes_needed

    rate, power, alpha = options.win_rate, options.power, options.alpha
    ties, seconds = options.ties, options.seconds
    for name, value, valid, expected in (
        ("win-rate", rate, 0 < rate < 1, _SHARE),
        ("power", power, 0 < power < 1, _SHARE),
        ("alpha", alpha, 0 < alpha < 1, _SHARE),
        ("ties", ties, 0 <= ties < 1, "a share of 0 or more and below 1"),
        ("seconds", seconds, seconds is None or 0 < seconds < math.inf, "seconds, more than 0"),
        ("win-rate", rate, abs(rate - 0.5) >= 0.01, "0.49 or less, or 0.51 or more"),
    ):
        if not valid:
            raise ConfigError(str(value), where=f"--{name}", expected=expected)
    needed = votes_needed(rate, power_wanted=power, alpha=alpha)
    print(
        f"{needed:,} votes for one of the two: from there on the two-sided binomial test at {alpha:g} finds a win "
        f"rate of {rate:g} with a power of {power:g}, if votes are independent"
    )
    votes = math.ceil(needed / (1 - ties))
    if ties:
        print(f"{votes:,} votes in all, with a share of {ties:g} ties")
    if seconds is not None:
        print(f"{votes * seconds / 3600:,.1f} person-hours, at {seconds:g} seconds a vote")
    rng = np.random.default_rng(options.seed)
    # Of small studies more votes are simulated than a few times what is needed, so that most come to an end.
    longest = max(_LONGEST * needed, 50)
    # A long study is simulated less often.
    studies = max(200, min(_STUDIES, 4_000_000 // longest))
    decided = decided_at(rng.random((studies, longest)) < rate, alpha=alpha)
    times = np.sort(np.where(decided > 0, decided, longest + 1))
    within = int(times[math.ceil(power * studies) - 1])
    null = rng.random((studies, needed)) < 0.5
    safe, peeked = (float((test(null, alpha=alpha) > 0).mean()) for test in (decided_at, peeked_at))
    print(
        f"\nIf you look after every vote ({studies:,} simulated studies):\n"
        f"  e-value test: a share of {power:g} decide within "
        f"{f'{within:,}' if within <= longest else f'more than {longest:,}'} votes, half of them within "
        f"{int(times[studies // 2]):,}; finds a difference where there is none in {safe:.1%} of studies of {needed:,} votes\n"
        f"  binomial test: finds one where there is none in {peeked:.1%}: do not look before the end"
    )
