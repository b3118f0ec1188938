# Which of the paper's numbered tables there are for the chosen data sets, and what they are told; functions only.

import dataclasses

from comperdial.judging.base import DEFAULT

# The data set whose tables go by the paper's numbers alone; another one's have its name before.
BENCHMARK = config["tables"]["benchmark"]

# The tables of what the correlations are worth, and the file that each is made of.
WORTH = {"measures": "", "comparisons": "_comparisons", "power": "_power", "curves": "_curves"}


def before_number(dataset):
    return "" if dataset == BENCHMARK else f"{dataset}_"


def numbered_dataset(wildcards):
    return wildcards.before.removesuffix("_") or BENCHMARK


def before_numbers():
    """A constraint of a wildcard: what can stand before a table's number."""
    return f"({one_of(before_number(name) for name in DATASETS if name != BENCHMARK)})?"


def numbered_tables(wildcards, *names):
    """Some of the tables that a numbered table is made of, and the ratings."""
    dataset = numbered_dataset(wildcards)
    return expand("data/tables/{dataset}/{table}.parquet", dataset=dataset, table=names) + rating_files(dataset)


def worth(dataset, kind):
    return f"results/correlations/{dataset}{WORTH[kind]}.parquet"


def judge_metrics(datasets):
    """What each metric of a judge is, as JSON: of all judges in params.yaml, and of the data sets' recorded answers."""
    everyone = dataclasses.replace(JUDGING, by_dataset={DEFAULT: tuple(JUDGING.judges)})
    asked = {
        task.name: {
            "variant": task.variant.name,
            "judge": task.judge.name,
            "label": task.label,
            "output": slug(task.variant.form.main),
            "main": task.samples == task.wanted[0],
            "once": task.samples == 1,
        }
        for task in everyone.tasks(DEFAULT).values()
    }
    heard = {
        entry.name: {"judge": entry.name, "label": entry.name}
        for entry in ENTRIES.values()
        if entry.dataset in datasets
    }
    return json.dumps(asked | heard)


def numbered(dataset):
    """The numbers of the paper's tables that a data set has all of."""
    return [
        "08",
        *(["02", "12"] if dataset in {*CHALLENGES, *BY_DIALOGUE} else []),
        *(["03", "15"] if dataset in BY_TURN and judged_by(dataset) else []),
        *(["04"] if dataset in BY_TURN else []),
        *(["05"] if dataset in BY_DIALOGUE else []),
        *(["13"] if dataset in BY_TURN and dataset in BY_DIALOGUE else []),
    ]


def paper_table_files():
    of_datasets = [f"{before_number(name)}table_{number}" for name in DATASETS for number in numbered(name)]
    # Of both sets or none: a table of one alone would be another file under the same name.
    of_usr = ["table_06", "table_16"] if USR == config["tables"]["usr"]["datasets"] else []
    return [f"results/tables/{stem}.html" for stem in ["table_01", "table_14", *of_datasets, *of_usr]]
