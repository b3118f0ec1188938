"""The commands that analyse preferences between dialogues, and plan how many are needed."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_catalogue, output_folder, output_table, whole
from comperdial.core.errors import ConfigError, SchemaError

if TYPE_CHECKING:
    import pandas as pd

    from comperdial.evaluation.preferences import Votes

# What the planner simulates: so many studies, of at most so many times the votes that a fixed number of them needs.
_STUDIES, _LONGEST = 2000, 3


def add_commands(commands: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's commands."""
    command = commands.add_parser("preferences", help="who is preferred to whom, how strong each is, how sure that is")
    add = command.add_argument
    add("input", type=Path, nargs="?", help="table `preferences` as Parquet, CSV or JSONL")
    add("--data", metavar="NAME", help="a data set of preferences of the catalogue instead of a file")
    add("--question", help="which question's votes, where there are several")
    add("--source", help="whose votes; default: human, or the one that there is")
    alike = (
        "whose votes may be alike, for the intervals and ranks of strengths; default: annotators, below ten dialogues"
    )
    add("--by", choices=("annotator", "dialogue"), help=alike)
    add("--scores", type=Path, nargs="+", default=[], metavar="FILE", help="tables `scores` of metrics")
    add("--contexts", type=Path, help="which dialogue a context belongs to, for scores of turns")
    add("--resamples", type=int, default=1000, help="for intervals of agreement and of metrics (default: 1000)")
    add("--seed", type=whole(0), default=2024, help="of all that is drawn (default: 2024)")
    add("--output", type=output_folder, metavar="FOLDER", help="write the table, its numbers and figures there")
    add_catalogue(command)
    command.set_defaults(run=_preferences)

    command = commands.add_parser("plan-preferences", help="how many votes it takes to find a win rate")
    add = command.add_argument
    add("--win-rate", type=float, required=True, help="share of votes for the better one, ties left out")
    add("--power", type=float, default=0.8, help="default: 0.8")
    add("--alpha", type=float, default=0.05, help="level of the two-sided test (default: 0.05)")
    add("--ties", type=float, default=0.0, metavar="SHARE", help="of votes that are ties (default: 0)")
    add("--seconds", type=float, help="that a vote takes, to say what all take")
    add("--seed", type=whole(0), default=2024, help="of the simulated studies (default: 2024)")
    command.set_defaults(run=_plan)

    recorded = commands.add_parser(
        "recorded-pairs", help="how judges chose between two, of choices that others recorded"
    )
    recorded.add_argument("dataset", help="a data set of the catalogue: llmbar_natural, llmbar_mt_bench or llmfao")
    rated = commands.add_parser(
        "rated-dialogues", help="how the people in iEval's dialogues rated them, and what the bots wrote"
    )
    rated.add_argument("dataset", choices=["ieval"])
    for command, run in ((recorded, _recorded_pairs), (rated, _rated_dialogues)):
        command.add_argument("--output", type=output_table, required=True, help="a .csv, .jsonl or .parquet file")
        add_catalogue(command)
        command.set_defaults(run=run)


def _recorded_pairs(options: argparse.Namespace) -> None:
    from comperdial.core.files import write_table
    from comperdial.judges.recorded_pairs import judged_pairs

    write_table(options.output, judged_pairs(options.dataset, catalogue=options.catalogue)[1])


def _rated_dialogues(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial.core.files import write_table
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.readers import ieval
    from comperdial.data.sources import require_all
    from comperdial.evaluation.preferences import properties

    files = require_all(load_catalogue(options.catalogue).dataset(options.dataset).files)
    key = ["dialogue_id", "system_id"]
    counted = pd.DataFrame(
        {"dialogue_id": one.dialogue_id, "system_id": one.system_id} | properties(one) for one in ieval.dialogues(files)
    )
    rated = ieval.ratings(files)[[*key, "annotator_id", "seconds", "likert"]]
    write_table(options.output, rated.merge(counted, on=key, validate="one_to_one"))


def _preferences(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.core.files import form_path, write_text
    from comperdial.data.catalogue import load_catalogue
    from comperdial.data.preferences import read_preferences
    from comperdial.evaluation.preferences import votes_of
    from comperdial.report.preferences import MOST_SYSTEMS, preferences_table
    from comperdial.report.render import markdown, text

    if options.resamples < 2:
        raise ConfigError(str(options.resamples), where="--resamples", expected="2 or more")
    if options.contexts and not options.scores:
        raise ConfigError("given without scores", where="--contexts", expected="--scores FILE, too")
    if (options.input is None) == (options.data is None):
        raise ConfigError(
            "no preferences" if options.data is None else "a file and --data", expected="a file, or --data NAME"
        )
    if options.input is not None:
        table, title = schema.read(options.input, "preferences"), options.input.stem
    else:
        table = read_preferences(options.data, catalogue=options.catalogue)
        title = load_catalogue(options.catalogue).dataset(options.data).title
    votes = votes_of(table, question=options.question, source=options.source)
    if votes.strict.empty and (votes.frame["a"] != votes.frame["b"]).any():
        raise SchemaError("all votes are ties", where=title, expected="a vote for one of the two")
    metrics = _metrics(options, votes) if options.scores else None
    how = {"resamples": options.resamples, "seed": options.seed}
    document, analysis = preferences_table(votes, title, by=options.by, metrics=metrics, **how)
    sys.stdout.write(text(document))
    if not options.output:
        return
    from comperdial.report.plots.preferences import matrix_figure, strengths_figure
    from comperdial.report.plots.style import save

    order = list(analysis.strengths["system"])
    write_text(options.output / "preferences.md", markdown(document))
    if len(order) <= 5 * MOST_SYSTEMS:
        save(matrix_figure({title: analysis.matrix}, {title: order}), analysis.matrix, options.output / "matrix")
    save(strengths_figure({title: analysis.strengths}), analysis.strengths, options.output / "strengths")
    if metrics is not None:
        content = metrics.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_text(form_path(options.output / "metrics", ".csv"), content)


def _metrics(options: argparse.Namespace, votes: Votes) -> pd.DataFrame:
    from comperdial.evaluation.aggregate import read_contexts, read_scores
    from comperdial.evaluation.preferences import dialogue_scores, metric_choices, strongest_first

    contexts = read_contexts(options.contexts) if options.contexts else None
    scores = dialogue_scores(read_scores(options.scores), contexts)
    how = {"resamples": options.resamples, "seed": options.seed}
    choices = metric_choices(votes, scores, dominant=strongest_first(votes)[0], **how)
    if choices.empty or not choices["n"].sum():
        raise ConfigError(
            "no vote is on two dialogues that have scores",
            where="--scores",
            expected="dialogues and systems as in the votes",
        )
    return choices


def _plan(options: argparse.Namespace) -> None:
    import numpy as np

    from comperdial.stats.win_rate import decided_at, peeked_at, votes_needed

    for name, value in (("win-rate", options.win_rate), ("power", options.power), ("alpha", options.alpha)):
        if not 0 < value < 1:
            raise ConfigError(str(value), where=f"--{name}", expected="a share between 0 and 1")
    if not 0 <= options.ties < 1:
        raise ConfigError(str(options.ties), where="--ties", expected="a share of 0 or more and below 1")
    if options.seconds is not None and not 0 < options.seconds < math.inf:
        raise ConfigError(str(options.seconds), where="--seconds", expected="seconds, more than 0")
    if abs(options.win_rate - 0.5) < 0.01:
        raise ConfigError(str(options.win_rate), where="--win-rate", expected="0.49 or less, or 0.51 or more")
    needed = votes_needed(options.win_rate, power_wanted=options.power, alpha=options.alpha)
    print(
        f"{needed:,} votes for one of the two: from there on the two-sided binomial test at {options.alpha:g} finds a win "
        f"rate of {options.win_rate:g} with a power of {options.power:g}, if votes are independent"
    )
    whole = math.ceil(needed / (1 - options.ties))
    if options.ties:
        print(f"{whole:,} votes in all, with a share of {options.ties:g} ties")
    if options.seconds is not None:
        print(f"{whole * options.seconds / 3600:,.1f} person-hours, at {options.seconds:g} seconds a vote")
    rng = np.random.default_rng(options.seed)
    # Of small studies more votes are simulated than a few times what is needed, so that most come to an end.
    longest = max(_LONGEST * needed, 50)
    # A long study is simulated less often.
    studies = max(200, min(_STUDIES, 4_000_000 // longest))
    decided = decided_at(rng.random((studies, longest)) < options.win_rate, alpha=options.alpha)
    times = np.sort(np.where(decided > 0, decided, longest + 1))
    within = int(times[math.ceil(options.power * studies) - 1])
    null = rng.random((studies, needed)) < 0.5
    safe, peeked = (float((test(null, alpha=options.alpha) > 0).mean()) for test in (decided_at, peeked_at))
    print(
        f"\nIf you look after every vote ({studies:,} simulated studies):\n"
        f"  e-value test: a share of {options.power:g} decide within "
        f"{f'{within:,}' if within <= longest else f'more than {longest:,}'} votes, half of them within "
        f"{int(times[studies // 2]):,}; finds a difference where there is none in {safe:.1%} of studies of {needed:,} votes\n"
        f"  binomial test: finds one where there is none in {peeked:.1%}: do not look before the end"
    )
