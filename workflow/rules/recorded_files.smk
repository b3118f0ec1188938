# Scores computed elsewhere: what params.yaml says of them; no rules here.

from comperdial.metrics import kinds
from comperdial.recorded.entries import read_entries

try:
    RECORDED = read_entries(
        config.get("recorded"),
        taken={*METRICS, *kinds()},
        datasets=[*config["challenges"], *CATALOGUE.datasets],
        catalogue=CATALOGUE,
    )
except ComperdialError as error:
    raise WorkflowError(f"Wrong configuration. {error}") from None

# As <data set>/<name>: what was recorded of one data set is of no other.
TAKEN = {f"{entry.dataset}/{name}": entry for name, entry in RECORDED.items() if entry.dataset in DATASETS}

for entry in TAKEN.values():
    if isinstance(entry.file, Path):
        if not entry.file.is_file():
            raise WorkflowError(f"Wrong configuration. params.yaml, recorded.{entry.name}: {entry.file}: no such file")
    elif not entry.file.pinned:
        raise WorkflowError(
            f"{entry.name}: the checksum of {entry.file.name} is not known. Run `comperdial fetch {entry.file.name}` once"
        )


def recorded_files(dataset):
    return [score_file(dataset, entry.name) for entry in TAKEN.values() if entry.dataset == dataset]


def recorded_of():
    """Of which data set each recorded metric is, as JSON."""
    return json.dumps({name: entry.dataset for name, entry in {**RECORDED, **ENTRIES}.items()}, sort_keys=True)


def recorded_scores(recorded):
    """The file that recorded scores are taken from."""
    file = TAKEN[recorded].file
    return str(file if isinstance(file, Path) else raw_path(file))


def recorded_options(recorded):
    """What `comperdial recorded` is told of a file."""
    entry = TAKEN[recorded]
    if isinstance(entry.file, Path):
        file = [f"--path={entry.file}"]
    else:
        file = [f"--source={entry.file.name}", f"--catalogue={config['catalogue']}"]
    return [f"--name={entry.name}", f"--format={entry.format}", f"--about={entry.about}", *file]


def recorded_tables(recorded, *names):
    return [f"data/tables/{TAKEN[recorded].dataset}/{name}.parquet" for name in names]


def recorded_ratings(recorded):
    """The ratings that check the join, by the option that takes them."""
    dataset = TAKEN[recorded].dataset
    options = {"turn": "ratings", "dialogue": "dialogue-ratings"}
    return {options[level]: f"data/tables/{dataset}/{level}_ratings.parquet" for level in rated_levels(dataset)}
