"""The jobs of dialogue continuity prediction (docs/continuity-prediction.md): `snakemake dcp`.

Conversations are read when a job needs them; what jobs write are numbers.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial import models
from comperdial.core.artifact import files

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from comperdial.data.continuations import Conversation, Sample
    from comperdial.jobs.plan import Plan

log = logging.getLogger(__name__)

RESULTS = "results/studies/continuity"
SPLITS = {"chitchat": ("time", "waves"), "convai2": ("time",)}
PERSONAL = {
    "chitchat": ("none", "token", "history", "token+history"),
    "convai2": ("none", "token", "profile", "token+profile", "history", "token+history"),
}
RATED = "topical_chat"
"""Human replies with the partner's ratings, of the files that ``RATED_FILES`` names."""
RATED_FILES = ("topical_chat_valid_freq", "topical_chat_valid_rare")
MOST_RATED = 3_000
ENCODERS = {"minilm": "all-MiniLM-L6-v2", "smollm2": "smollm2-135m-instruct"}
BASELINES = {"selection": ("density", "classifier", {}), "likelihood": ("pmi", "likelihood-mean", {"dtype": "bf16"})}
"""Metric, output and options of what stands for RUBER and for Deep-FM."""
MOST_LIKELY = {"validation": 200, "test": 500}
"""Samples of the first split whose likelihood under a language model is computed."""
NOT_RUN = {
    "BERT-NSP": "not run: no such model on this machine",
    "FED": "not run: cost, 28 follow-up utterances per sample under a language model",
}
RESAMPLES = 1_000
NOT_THERE = "not run: package chitchat-dataset is not installed"


# What there is


def _installed() -> bool:
    from comperdial.data.readers.chitchat import located

    return located() is not None


def sets(plan: Plan) -> list[str]:
    """Return the data sets of conversations that are here, or can be fetched."""
    there = ["convai2"] if "convai2" in plan.catalogue.datasets else []
    return ["chitchat", *there] if there and _installed() else there


def _encoders(plan: Plan) -> list[str]:
    return [name for name, model in ENCODERS.items() if models.missing(model) is None]


def _sources(plan: Plan, dataset: str) -> dict[str, Any]:
    """Return the files that a data set is read from, by role."""
    if dataset == "convai2":
        return dict(plan.catalogue.dataset(dataset).files)
    return {name: plan.catalogue.file(name) for name in RATED_FILES} if dataset == RATED else {}


def _raw(plan: Plan, dataset: str) -> list[str]:
    from comperdial.data.sources import raw_path

    return [str(raw_path(source)) for source in _sources(plan, dataset).values()]


def _read(plan: Plan, dataset: str) -> dict[str, Any]:
    """Return what a job is told of a data set: its files' roles and what they are held to."""
    from comperdial.data.readers import chitchat

    found = _sources(plan, dataset)
    pins = [source.sha256 for source in found.values()] or [chitchat.SHA256]
    return {"dataset": dataset, "roles": list(found), "sha256": pins}


def conversations(dataset: str, roles: Sequence[str], raw: Sequence[Path]) -> list[Conversation]:
    """Read the conversations of a data set."""
    from comperdial.core.plugins import load_class
    from comperdial.data.continuations import ConversationReader

    kind: type[ConversationReader] = ConversationReader  # type: ignore[type-abstract]
    found = load_class("comperdial.data.readers", dataset, kind, kind="reader", helpers=frozenset({"base"}))
    return found(dataset, dict(zip(roles, raw, strict=True))).conversations()


def rated_replies(found: Sequence[Conversation]) -> list[Sample]:
    """Return some of the replies that were rated, drawn at random."""
    from comperdial.data.continuations import samples
    from comperdial.training.continuity_tasks import some

    return some([sample for sample in samples(found) if sample.reply.rating is not None], MOST_RATED)


def _texts(dataset: str, found: Sequence[Conversation], encoder: str) -> Iterable[str]:
    from comperdial.data.continuations import samples
    from comperdial.training import continuity_tasks

    if dataset == RATED:
        return chain.from_iterable((one.reply.text, continuity_tasks.before(one)) for one in rated_replies(found))
    # What costs most is done for the first split.
    names = SPLITS[dataset][:1] if encoder == "smollm2" else SPLITS[dataset]
    of_tasks = chain.from_iterable(task.texts(encoder) for task in continuity_tasks.tasks(found, names))
    if dataset != "convai2" or encoder != "minilm":
        return of_tasks
    # Of all, for cross-fitting.
    every = list(samples(found))
    parts = (lambda one: one.reply.text, continuity_tasks.before, continuity_tasks.profile)
    more = (text for one in every for part in parts if (text := part(one)))
    return chain(of_tasks, more, (text for _, text in continuity_tasks.remembered(every)))


# Vectors


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _Known(dict[str, "npt.NDArray[np.float32]"]):
    """Vectors by text, of a file that holds hashes of texts and no text."""

    def __init__(self, path: Path) -> None:
        from safetensors.numpy import load_file

        held = load_file(path)
        super().__init__({key.tobytes().hex(): row for key, row in zip(held["keys"], held["vectors"], strict=True)})

    def __getitem__(self, text: str) -> npt.NDArray[np.float32]:
        return super().__getitem__(_key(text).hex())

    def __contains__(self, text: object) -> bool:
        return super().__contains__(_key(str(text)).hex())


_VECTORS = "data/training/continuity/{dataset}_{encoder}.safetensors"


def _vectors(plan: Plan, *datasets: str) -> list[str]:
    made = {(names["dataset"], names["encoder"]) for names in _embedded(plan)}
    return [_VECTORS.format(dataset=d, encoder=e) for d in datasets for e in ENCODERS if (d, e) in made]


def _embedded(plan: Plan) -> list[dict[str, str]]:
    found = [{"dataset": dataset, "encoder": encoder} for dataset in sets(plan) for encoder in _encoders(plan)]
    if {*RATED_FILES} <= plan.catalogue.files.keys() and "minilm" in _encoders(plan):
        found.append({"dataset": RATED, "encoder": "minilm"})
    return found


def _loaded(vectors: Sequence[Path]) -> dict[str, dict[str, _Known]]:
    """Return vectors by data set and encoder."""
    found: dict[str, dict[str, _Known]] = {}
    for path in vectors:
        dataset, _, encoder = path.stem.rpartition("_")
        found.setdefault(dataset, {})[encoder] = _Known(path)
    return found


@files(
    {"vectors": _VECTORS},
    of=_embedded,
    inputs=lambda plan, dataset, encoder: {"raw": _raw(plan, dataset)},
    settings=lambda plan, dataset, encoder: {
        **_read(plan, dataset),
        "encoder": encoder,
        "model": models.label(ENCODERS[encoder]),
    },
    code=lambda plan, dataset, encoder: [f"data.readers.{dataset}"],
    libraries=("torch", "transformers"),
)
def dcp_vectors(
    *,
    outputs: Mapping[str, Path],
    raw: Sequence[Path],
    dataset: str,
    roles: Sequence[str],
    encoder: str,
    model: str,
    sha256: Sequence[str],
) -> None:
    """Encode the texts that continuity prediction reads; the file holds vectors and no text."""
    import numpy as np
    from safetensors.numpy import save_file

    from comperdial.core.files import replacing
    from comperdial.training import continuity_tasks

    found = continuity_tasks.embed(encoder, _texts(dataset, conversations(dataset, roles, raw), encoder))
    log.info("%s: %d texts by %s", dataset, len(found), model)
    keys = np.frombuffer(b"".join(map(_key, found)), dtype=np.uint8).reshape(-1, 16)
    outputs["vectors"].parent.mkdir(parents=True, exist_ok=True)
    with replacing(outputs["vectors"]) as path:
        save_file({"keys": keys.copy(), "vectors": np.stack(list(found.values()))}, path)


# Baselines


def _possible(plan: Plan) -> dict[str, str]:
    """Return the baselines of this machine, with their signatures."""
    from comperdial.metrics import create

    made = {name: create(kind, **options) for name, (kind, _, options) in BASELINES.items()}
    return {name: metric.signature() for name, metric in made.items() if metric.unavailable() is None}


@files(
    {"scores": f"{RESULTS}/dcp_{{dataset}}_baselines.parquet"},
    of=lambda plan: sets(plan) if _possible(plan) else [],
    inputs=lambda plan, dataset: {"raw": _raw(plan, dataset)},
    settings=lambda plan, dataset: {**_read(plan, dataset), "baselines": _possible(plan)},
    code=lambda plan, dataset: [
        f"data.readers.{dataset}",
        *(f"metrics.{BASELINES[name][0]}" for name in _possible(plan)),
    ],
)
def dcp_baselines(
    *,
    outputs: Mapping[str, Path],
    raw: Sequence[Path],
    dataset: str,
    roles: Sequence[str],
    baselines: Mapping[str, str],
    sha256: Sequence[str],
) -> None:
    """Score the balanced samples by metrics that know nothing of continuing: selection and likelihood."""
    import pandas as pd

    from comperdial.core.files import write_table
    from comperdial.metrics import create
    from comperdial.training.continuity_tasks import some, tasks

    rows = []
    for name in baselines:
        kind, output, options = BASELINES[name]
        asked: dict[str, Sample] = {}
        few = name == "likelihood"
        for task in tasks(conversations(dataset, roles, raw), SPLITS[dataset][:1] if few else SPLITS[dataset]):
            for part, drawn in (("validation", task.validation), ("test", task.test)):
                chosen = some(drawn, MOST_LIKELY[part]) if few else drawn
                asked |= {sample.id: sample for sample in chosen}
        texts = [sample.reply.text for sample in asked.values()]
        found = create(kind, **options).score(texts, histories=[_history(sample) for sample in asked.values()])
        rows.append(pd.DataFrame({"item_id": list(asked), "baseline": name, "value": found[output]}))
    write_table(outputs["scores"], pd.concat(rows, ignore_index=True))


def _history(sample: Sample) -> list[dict[str, str]]:
    said = sample.conversation.utterances[max(0, sample.turn - 6) : sample.turn]
    return [{"speaker": "B" if one.speaker == sample.reply.speaker else "A", "text": one.text} for one in said]


# Models


def _measured(plan: Plan, dataset: str) -> list[str]:
    return [f"{RESULTS}/dcp_{dataset}_baselines.parquet"] if _possible(plan) else []


@files(
    {
        "measures": f"{RESULTS}/dcp_{{dataset}}.parquet",
        "scores": f"{RESULTS}/dcp_{{dataset}}_scores.parquet",
        "continuations": f"{RESULTS}/dcp_{{dataset}}_continuations.parquet",
    },
    of=sets,
    inputs=lambda plan, dataset: {
        "raw": _raw(plan, dataset),
        "vectors": _vectors(plan, dataset),
        "baselines": _measured(plan, dataset),
    },
    settings=lambda plan, dataset: {**_read(plan, dataset), "resamples": RESAMPLES},
    code=lambda plan, dataset: [f"data.readers.{dataset}"],
    libraries=("scikit-learn", "scipy"),
)
def dcp_models(
    *,
    outputs: Mapping[str, Path],
    raw: Sequence[Path],
    vectors: Sequence[Path],
    baselines: Sequence[Path],
    dataset: str,
    roles: Sequence[str],
    sha256: Sequence[str],
    resamples: int,
) -> None:
    """Train the predictors of a data set and evaluate them next to baselines."""
    from comperdial import schema
    from comperdial.core.files import read_table, write_table
    from comperdial.evaluation import continuing

    found = conversations(dataset, roles, raw)
    known = _loaded(vectors).get(dataset, {})
    read = [read_table(path) for path in baselines]
    scored = {
        str(name): dict(zip(part["item_id"], part["value"], strict=True))
        for frame in read
        for name, part in frame.groupby("baseline")
    }
    measures, scores, _ = continuing.evaluate(
        dataset,
        found,
        SPLITS[dataset],
        contexts=[context for context in ("form", "tfidf", *ENCODERS) if context not in ENCODERS or context in known],
        # Profiles are read by MiniLM; a history without it is its numbers alone.
        personal=[name for name in PERSONAL[dataset] if "minilm" in known or "profile" not in name],
        vectors=known,
        baselines=scored,
        resamples=resamples,
    )
    write_table(outputs["measures"], measures)
    write_table(outputs["scores"], scores)
    schema.write(outputs["continuations"], _continuations(dataset, found), "continuations")


def _continuations(dataset: str, found: Sequence[Conversation]) -> pd.DataFrame:
    import pandas as pd

    from comperdial import schema
    from comperdial.data.continuations import samples, splits

    split = splits(found)
    rows = [
        {
            "dataset": dataset,
            "context_id": sample.id,
            "system_id": sample.conversation.systems[sample.reply.speaker],
            "user_id": sample.user_id,
            "continued": int(sample.continued),
            "seconds": sample.seconds,
            "began": sample.conversation.began,
            "split": split[sample.conversation.id],
        }
        for sample in samples(found)
    ]
    return schema.validate(pd.DataFrame(rows), "continuations", where=dataset)


@files(
    {
        "measures": f"{RESULTS}/dcp.csv",
        "liking": f"{RESULTS}/dcp_liking.csv",
        "scores": f"{RESULTS}/dcp_liking_scores.parquet",
    },
    of=lambda plan: [{}] if "convai2" in sets(plan) else [],
    inputs=lambda plan: {
        "measures": [f"{RESULTS}/dcp_{dataset}.parquet" for dataset in sets(plan)],
        "vectors": _vectors(plan, *sets(plan), RATED),
        "chitchat": [],
        "convai2": _raw(plan, "convai2"),
        "topical_chat": _raw(plan, RATED) if _vectors(plan, RATED) else [],
    },
    settings=lambda plan: {
        "roles": {dataset: _read(plan, dataset)["roles"] for dataset in (*sets(plan), RATED)},
        "resamples": RESAMPLES,
    },
    code=lambda plan: [f"data.readers.{dataset}" for dataset in ("chitchat", "convai2", RATED)],
    libraries=("scikit-learn", "scipy"),
)
def dcp(
    *,
    outputs: Mapping[str, Path],
    measures: Sequence[Path],
    vectors: Sequence[Path],
    chitchat: Sequence[Path],
    convai2: Sequence[Path],
    topical_chat: Sequence[Path],
    roles: Mapping[str, Sequence[str]],
    resamples: int,
) -> None:
    """Join what was measured, and compare predicted continuing with what users said that they liked."""
    import pandas as pd

    from comperdial.core.files import read_table, write_table
    from comperdial.studies.continuity.liking import compared

    found = pd.concat([read_table(path) for path in measures], ignore_index=True)
    raw = {"chitchat": chitchat, "convai2": convai2, RATED: topical_chat}
    there = {
        dataset: conversations(dataset, roles[dataset], raw[dataset])
        for dataset in roles
        if dataset in SPLITS or raw[dataset]
    }
    liking, scores = compared(there, rated_replies(there.get(RATED, [])), _loaded(vectors), found, resamples)
    write_table(outputs["measures"], with_not_run(found))
    write_table(outputs["liking"], liking)
    write_table(outputs["scores"], scores)


def with_not_run(found: pd.DataFrame) -> pd.DataFrame:
    """Add a row for each model and data set that was not run, with the reason in ``note``."""
    import pandas as pd

    made = found.assign(note="")
    rows = [{"dataset": "chitchat", "note": NOT_THERE}] if "chitchat" not in set(found["dataset"]) else []
    rows += [
        {
            "dataset": dataset,
            "split": "time",
            "rate": "balanced",
            "group": "all",
            "model": name,
            "user": "none",
            "note": why,
        }
        for dataset in found["dataset"].unique()
        for name, why in {**NOT_RUN, **_absent(set(found.loc[found["dataset"] == dataset, "model"]))}.items()
    ]
    return pd.concat([made, pd.DataFrame(rows)], ignore_index=True) if rows else made


def _absent(there: set[str]) -> dict[str, str]:
    wanted = (*ENCODERS, *BASELINES)
    return {name: "not run: its model is not on this machine" for name in wanted if name not in there}
