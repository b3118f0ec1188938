"""The arguments of commands that make data, models, tables, figures and pages: steps of the workflow, and single ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from comperdial.cli import common
from comperdial.cli.common import READ, WRITE, Commands, add_command

_HTML: Any = {"type": common.output_file, "required": True, "help": "a .html file"}
_FOLDER: Any = {"type": common.output_folder, "metavar": "FOLDER"}
_TABLES: Any = {"type": Path, "default": Path("data/tables"), "help": "default: data/tables"}


def add_commands(commands: Commands) -> None:
    """Add this module's commands."""
    for add_some in (_add_data, _add_perturbing, _add_models, _add_fitting, _add_making, _add_leaderboard):
        add_some(commands)


def _add_data(commands: Commands) -> None:
    about = "list the public files: present, missing or altered"
    common.add_catalogue(add_command(commands, "sources", "data:list_sources", about))

    command = add_command(commands, "fetch", "data:fetch", "fetch public files from the mirror or over HTTPS, checked")
    command.add_argument("names", nargs="*", help="names of sources or datasets; default: all that are pinned")
    common.add_catalogue(command)

    add_command(commands, "wordnet", "data:set_up_wordnet", "find WordNet for METEOR, or set it up")

    command = add_command(commands, "read", "data:read", "read a data set, or one file of your own, into tables")
    add = command.add_argument
    add("dataset", help="a name of params.yaml or the catalogue, or a CSV, JSONL or Parquet file")
    add("--name", help="what to call the data set of a file; default: the file's name without suffix")
    add("--output", **_FOLDER, help="default: data/tables/NAME")
    common.add_rated_file(command)

    about = "take scores of responses or dialogues that were computed elsewhere"
    command = add_command(commands, "recorded", "data:take_scores", about)
    add, add_scores = command.add_argument, command.add_mutually_exclusive_group(required=True).add_argument
    add("folder", type=Path, help="the data set's folder of tables")
    add("--name", required=True, help="what to call the metric in the table")
    add("--format", required=True, help="`table`, or the name of a project's own (unieval)")
    add_scores("--source", help="the scores: a fetched file of the catalogue, by name")
    add_scores("--path", type=Path, help="the scores: a local file")
    add("--about", required=True, help="who computed them, with what: part of the signature")
    add("--ratings", type=Path, help="table `ratings`: what was rated, to check the scores by")
    add("--output", type=common.output_table, required=True, help="a .jsonl, .csv or .parquet file")
    common.add_catalogue(command)


def _add_perturbing(commands: Commands) -> None:
    about = "list the perturbations and what each should lower"
    add_command(commands, "perturbations", "perturb:list_perturbations", about)

    about = "make a data set of pairs, original and perturbed, of another's"
    add = add_command(commands, "perturb", "perturb:make_pairs", about).add_argument
    add("folder", type=Path, help="holds systems, contexts, responses (and ratings) as Parquet")
    add("--dataset", required=True, metavar="NAME", help="what to call the new data set")
    add("--output", **_FOLDER, required=True, help="gets its tables")
    add("--strategy", action="append", metavar="STRATEGY", help="see `comperdial perturbations`; may be repeated")
    add("--sample", type=common.whole(1), default=200, metavar="N", help="pairs for each strategy; default: 200")
    add("--seed", type=common.whole(0), default=0, metavar="N", help="of the draw and the changes; default: 0")
    add("--all-items", action="store_true", help="draw among all items, and not only those rated above the median")

    about = "score a sample of pairs, and how often the original's score is higher"
    add = add_command(commands, "score-pairs", "perturb:score_sample", about).add_argument
    add("tables", type=Path, help="a folder of pairs, as `comperdial perturb` makes one")
    what = "names of params.yaml or kinds; those that run here"
    add("--metrics", nargs="+", required=True, metavar="NAME", help=what)
    add("--kinds", nargs="+", required=True, metavar="PERTURBATION", help="which kinds of pairs")
    add("--sample", type=common.whole(1), default=400, help="the most pairs of a kind (default: 400)")
    add("--seed", type=common.whole(0), default=2024, help="of the draw (default: 2024)")
    add("--output", **WRITE, required=True, help="table `scores`, .parquet")
    add("--ratios", **WRITE, required=True, help="table `ratios`")


def _add_models(commands: Commands) -> None:
    group = add_command(commands, "models", "models:list_models", "list and fetch the models that metrics run")
    parts = group.add_subparsers(title="commands", metavar="COMMAND")
    add_command(parts, "list", "models:list_models", "list the models and say which are here (the default)")

    add = add_command(parts, "fetch", "models:fetch_models", "fetch models from the Hugging Face hub").add_argument
    add("names", nargs="+", metavar="NAME")

    about = "train a model of a learned metric (docs/density.md)"
    add = add_command(commands, "train", "models:train", about).add_argument
    add("name", help="an entry of `training` in params.yaml")
    add("--params", type=Path, default=Path("params.yaml"), help="default: params.yaml")
    add("--output", type=common.output_folder, help="the trained model's folder; default: data/models/NAME")
    what = "keeps checkpoints, from which an interrupted training is resumed; default: data/training"
    add("--working", type=Path, default=Path("data/training"), help=what)


def _add_fitting(commands: Commands) -> None:
    fit = add_command(commands, "fit", "fit:fit", "fit the learned metric `local` to people's ratings")
    fit.description = (
        "Fits the coefficients of `local` (docs/local-metric.md) to the scores that `snakemake local_metrics` made."
    )
    about = "correlate `local` without each of its parts and with each alone, held out, with people's ratings"
    ablate = add_command(commands, "ablate", "fit:ablate", about)
    for add in (fit.add_argument, ablate.add_argument):
        add("--features", type=Path, help="features and data sets; default: the package's local_features.yaml")
        add("--tables", **_TABLES)
        what = "holds DATASET/scores/METRIC.parquet; default: results"
        add("--scores", type=Path, default=Path("results"), help=what)
    fit.add_argument("--leave-out", action="append", default=[], metavar="PART", help="omit a part; may be repeated")
    fit.add_argument("--output", type=common.output_file, help="a .json file; default: the one that the package ships")
    add = ablate.add_argument
    add("--resamples", type=int, default=1000, help="for intervals and tests (default: 1000)")
    add("--seed", type=int, default=2024, help="of all that is drawn (default: 2024)")
    add("--output", type=common.output_table, required=True, help="table `correlations` to write")
    add("--pairs", type=common.output_table, required=True, help="table `pairs` to write")


def _add_making(commands: Commands) -> None:
    for kind in ("table", "figure"):
        command = add_command(commands, kind, "pages:make", f"make a {kind} of a study, from results that are here")
        command.set_defaults(kind=kind)
        add = command.add_argument
        add("study", help="a folder of studies/; `dataset`: what every data set has")
        add("name", help=f"a {kind} in its study.yaml")
        add("--dataset", help="with `dataset`: which one")
        add("--output", type=common.output_stem, required=True, help="the files' common name; a suffix is not needed")

    about = "write a data set's configuration, for its tables"
    add = add_command(commands, "describe", "pages:describe", about).add_argument
    add("dataset")
    add("--params", **READ, help="default: params.yaml")
    add("--output", type=common.output_file, required=True, help="a .json file")

    add = add_command(commands, "notebook", "pages:notebook", "execute a notebook, and write its page").add_argument
    add("notebook", type=Path, help="a jupytext file of notebooks/")
    add("--dataset", required=True)
    add("--source", default="human", help="whose ratings (default: human)")
    add("--target", default="Overall", help="the rated dimension (default: Overall)")
    add("--output", **_HTML)

    about = "make the page of a data set, from results that are here"
    add = add_command(commands, "page", "pages:page", about).add_argument
    add("dataset")
    add("--output", **_HTML)

    about = "write the numbers that DVC compares between commits"
    add = add_command(commands, "summary", "pages:summary", about).add_argument
    add("dataset")
    add("--output", **_FOLDER, required=True)

    add_command(commands, "pack-records", "pages:pack", "pack Snakemake's records for DVC (`make publish` does it)")


def _add_leaderboard(commands: Commands) -> None:
    about = "rank your metric's scores among the metrics here, over all data sets"
    command = add_command(commands, "leaderboard", "leaderboard:leaderboard", about)
    add = command.add_argument
    add("files", type=Path, nargs="*", metavar="FILE", help="scores: dataset, level, item_id, system_id, value")
    add("--board", default="responses", help="responses, references or dialogues (default: responses)")
    add("--template", action="store_true", help="print the file to fill in, and do nothing else")
    add("--texts", **READ, help="with --template: write the texts to score as JSONL")
    add("--output", type=common.output_file, help="write the ranking, too: .html, .md, .csv, .tex")
    what = "swaps of WMT's test (default: 1000; 0: without that test)"
    add("--resamples", type=common.whole(0), default=1000, help=what)
    common.add_catalogue(command)
