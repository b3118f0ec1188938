"""A learned metric: a linear model of metrics that run on a laptop, fitted to human ratings (docs/local-metric.md)."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from comperdial import schema
from comperdial.config import load_yaml
from comperdial.core.errors import ComperdialError, FileError, MissingResourceError
from comperdial.core.files import read_json, sha256
from comperdial.core.names import output_name
from comperdial.metrics import create
from comperdial.metrics.base import Batch, Metric, Scores, Utterance
from comperdial.metrics.text import normalise

log = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]

FEATURES = Path(__file__).with_name("local_features.yaml")
COEFFICIENTS = Path(__file__).with_name("local_coefficients.json")
# The feature that is not from a metric, and the part whose features need facts.
WORDS, FACTS = "words", "facts"

# Minimum number of words of the last utterances that identify a context.
_KEY_WORDS = 8


@dataclass(frozen=True)
class Features:
    """The inputs of the learned metric: metrics by the names of their scores, and the features of each part."""

    metrics: Mapping[str, Mapping[str, Any]]
    parts: Mapping[str, Sequence[str]]

    @classmethod
    def read(cls, path: Path = FEATURES) -> Features:
        """Read ``local_features.yaml``."""
        said = load_yaml(path)
        return cls(said["metrics"], said["parts"])

    def without(self, *parts: str) -> Features:
        """Return the features without some parts, and without the metrics that only those use."""
        kept = {part: names for part, names in self.parts.items() if part not in parts}
        used = {output_name(name, "")[0] for names in kept.values() for name in names}
        return Features({name: entry for name, entry in self.metrics.items() if name in used}, kept)

    @property
    def names(self) -> list[str]:
        """Return the names of the features in order."""
        return [name for names in self.parts.values() for name in names]

    @property
    def of_facts(self) -> npt.NDArray[np.bool_]:
        """Return for each feature whether it needs facts."""
        return np.array([part == FACTS for part, names in self.parts.items() for _ in names])

    def made(self) -> dict[str, Metric]:
        """Return the metrics; paths in their options are relative to this module's folder."""
        beside = {path.name: str(path) for path in FEATURES.parent.glob("local_*.yaml")}
        return {
            name: create(
                entry["kind"],
                **{
                    key: beside.get(value, value) if isinstance(value, str) else value
                    for key, value in entry.items()
                    if key != "kind"
                },
            )
            for name, entry in self.metrics.items()
        }

    def values(self, batch: Batch, scores: Mapping[str, Mapping[str, Floats]]) -> Floats:
        """Return the features of responses, shape (responses, features); NaN if missing.

        Parameters
        ----------
        batch
            The responses.
        scores
            The outputs of each metric for the responses. They are rounded to single precision, as in tables of model
            scores, so that the result is the same for computed scores and stored ones.
        """
        found = np.empty((len(batch), len(self.names)))
        for column, name in enumerate(self.names):
            if name == WORDS:
                found[:, column] = [np.log1p(len(normalise(text).split())) for text in batch.responses]
            else:
                metric, output = output_name(name)
                found[:, column] = np.asarray(scores[metric][output], dtype=np.float32)
        found[np.ix_(~batch.has("facts"), self.of_facts)] = np.nan
        return found


@dataclass(frozen=True)
class Fit:
    """One set of coefficients: weight, mean and scale (divisor) of each feature."""

    weights: Floats
    means: Floats
    scales: Floats

    def score(self, values: Floats, of_facts: npt.NDArray[np.bool_]) -> Floats:
        """Return a score for each row of features; NaN if a feature that does not depend on facts is missing."""
        standard = (values - self.means) / self.scales
        standard[:, of_facts] = np.nan_to_num(standard[:, of_facts])
        return standard @ self.weights


@dataclass(frozen=True)
class Coefficients:
    """The content of a file written by ``comperdial fit``.

    Attributes
    ----------
    features
        The features of the model.
    signatures
        The signatures of the metrics whose scores it was fitted to.
    fits
        Coefficients by the groups of data held out from the fit; ``""`` if none was.
    left_out
        For the hash of each context in the training data, the key of the fit that held out its groups.
    """

    features: Features
    signatures: Mapping[str, str]
    fits: Mapping[str, Fit]
    left_out: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> Coefficients:
        """Read a file of coefficients.

        Raises
        ------
        FileError
            If the file has the wrong format.
        """
        said = read_json(path)
        try:
            features = Features(said["metrics"], said["parts"])
            fits = {
                left: Fit(
                    *(np.array([fit[name][key] for name in features.names]) for key in ("weight", "mean", "scale"))
                )
                for left, fit in ((left, fit["features"]) for left, fit in said["fits"].items())
            }
            left_out = {key: left for left, keys in said["contexts"].items() for key in keys.split()}
            if not {"", *left_out.values()} <= fits.keys():
                raise KeyError("fits")
            return cls(features, said["signatures"], fits, left_out)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(
                f"no coefficients of `local` ({error!r})",
                where=str(path),
                expected="what `comperdial fit` writes",
            ) from None


@dataclass(frozen=True, kw_only=True)
class Local(Metric):
    """A linear model's prediction of a response's human rating, in standard deviations; higher is better.

    The model combines PMI and likelihoods, follow-ups, DEnsity, cosines and a few counts (:attr:`parts`), which run
    offline, and was fitted to nine public data sets (docs/local-metric.md). If a response's context is in the training
    data (recognised by a hash), it is scored with coefficients whose fit held out the data of that source; all other
    responses are scored with the final coefficients. All parts must use the models that the coefficients were fitted
    with. 1,000 responses take about nine minutes of CPU time. A response without a history has no score.

    ``coefficients`` is a file written by ``comperdial fit``; default: the file in the package.
    """

    kind: ClassVar[str] = "local"
    needs: ClassVar[tuple[str, ...]] = ("histories",)
    libraries: ClassVar[tuple[str, ...]] = ("torch", "transformers")

    coefficients: str = ""
    """A file that ``comperdial fit`` has written; without, the one that this package ships."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the name of the only output."""
        return ("local",)

    @property
    def runs_model(self) -> bool:
        """Return True: most parts run a model."""
        return True

    @property
    def keeps_vectors(self) -> bool:
        """Return True: some parts do."""
        return True

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the names of this module and of its parts' modules."""
        parts = self.parts.values() if self._path.is_file() else ()
        return tuple(dict.fromkeys([*super().modules, *(name for part in parts for name in part.modules)]))

    @property
    def _path(self) -> Path:
        return Path(self.coefficients) if self.coefficients else COEFFICIENTS

    @cached_property
    def _read(self) -> Coefficients:
        return Coefficients.read(self._path)

    @cached_property
    def parts(self) -> Mapping[str, Metric]:
        """Return the metrics that the model combines, by the names of their scores in the workflow."""
        return self._read.features.made()

    def signed(self, option: str) -> object:
        """Return the checksum of the coefficients, whose file contains the signatures of the parts."""
        return f"{self._path.stem}@{sha256(self._path)[:12]}" if self._path.is_file() else "absent"

    def unavailable(self) -> str | None:
        """Return which part cannot run, or has another signature than in the coefficients' file; None if all can run."""
        if not self._path.is_file():
            return f"{self._path.name} is not on this machine; `comperdial fit` writes it"
        try:
            parts = self.parts
        except ComperdialError as error:
            return f"its parts cannot be made: {error}"
        for name, part in parts.items():
            if why := part.unavailable():
                return f"its part {name}: {why}"
            known = self._read.signatures.get(name)
            if known is None:
                return f"its coefficients were fitted without scores of its part {name}; `comperdial fit` fits new ones"
            if _plain(part.signature(), part) != _plain(known, part):
                return (
                    f"its part {name} is {part.signature()}, and the coefficients are of {known}; `comperdial fit` "
                    "fits new ones"
                )
        return None

    def compute(self, batch: Batch) -> Scores:
        """Score with all parts and combine their scores."""
        return self.combine(batch, {name: _score(part, batch) for name, part in self.parts.items()})

    def combine(self, batch: Batch, scores: Mapping[str, Scores]) -> Scores:
        """Score responses from the scores of each part."""
        known = self._read
        values = known.features.values(batch, scores)
        used = np.array([known.left_out.get(context_key(history), "") for history in batch.histories], dtype=object)
        found = np.full(len(batch), np.nan)
        for left in dict.fromkeys(used):
            rows = used == left
            found[rows] = known.fits[left].score(values[rows], known.features.of_facts)
            if left:
                log.info(
                    "local: %d of %d responses answer contexts that the model was fitted on; their coefficients never saw "
                    "the data of %s", rows.sum(), len(batch), left.replace("+", " and "),
                )  # fmt: skip
        cuts = [each.cut for each in scores.values() if each.cut is not None]
        return Scores({"local": found}, np.max(cuts, axis=0) if cuts else None)


def context_key(history: Sequence[Utterance]) -> str:
    """Return a hash of the last utterances, enough to have eight words; only letters and digits count."""
    words: list[str] = []
    for utterance in reversed(history):
        words = re.findall(r"[a-z0-9]+", utterance["text"].lower().replace("'", "").replace("\u2019", "")) + words
        if len(words) >= _KEY_WORDS:
            break
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:8]


def score_from(metric: Local, name: str, folder: str | Path, tables: Mapping[str, Path], output: str | Path) -> None:
    """Score a data set's tables, reusing existing scores of the metric's parts, and write a Parquet file.

    Parameters
    ----------
    metric, name
        The metric, and its name in the table.
    folder
        As in :func:`comperdial.metrics.scoring.score_tables`.
    tables
        Tables ``scores`` of the data set, by part. Parts without a table are run.
    """
    from comperdial.metrics.scoring import Lacking, batches, tidy

    known = {part: read_scores(path) for part, path in tables.items()}
    lacking = Lacking()
    with schema.writing(output, "scores") as add:
        for responses, batch in batches(folder):
            held = lacking.add(name, metric, batch)
            lacking.total += len(batch)
            some, kept = responses[held], batch.only(held)
            scores = {
                part: known[part].of(some, made) if part in known else _score(made, kept)
                for part, made in metric.parts.items()
            }
            add(tidy(some, metric.combine(kept, scores), metric, name))
    lacking.warn()


@dataclass(frozen=True)
class KnownScores:
    """The scores of one metric on a data set: values and cuts by response, and the signature."""

    values: pd.DataFrame
    cut: pd.Series
    signature: str

    def of(self, responses: pd.DataFrame, metric: Metric) -> Scores:
        """Return the scores of the given responses, NaN if missing."""
        keys = pd.MultiIndex.from_frame(responses[["context_id", "system_id"]])
        rows = self.values.reindex(keys)
        cut = self.cut.reindex(keys).fillna(0).to_numpy(np.int32)
        return Scores(
            {
                output: rows[output].to_numpy(np.float64) if output in rows else np.full(len(keys), np.nan)
                for output in metric.outputs
            },
            cut,
        )


def read_scores(path: str | Path) -> KnownScores:
    """Read a table ``scores`` of one metric and one data set.

    Raises
    ------
    MissingResourceError
        If the table does not exist.
    """
    if not Path(path).is_file():
        raise MissingResourceError("no scores", where=str(path), hint="`snakemake local_metrics` makes them")
    frame = schema.read(path, "scores")
    frame = frame[frame["level"] == "turn"]
    keys = ["item_id", "system_id"]
    values = frame.pivot(index=keys, columns="output", values="value")
    signatures = frame["signature"].unique()
    return KnownScores(values, frame.groupby(keys)["cut"].max(), str(signatures[0]) if len(signatures) else "")


def _score(part: Metric, batch: Batch) -> Scores:
    """Score with one metric; NaN for responses that lack what it needs."""
    held = np.logical_and.reduce([np.ones(len(batch), dtype=np.bool_), *(batch.has(need) for need in part.needs)])
    cut = np.zeros(len(batch), dtype=np.int32)
    values = {output: np.full(len(batch), np.nan) for output in part.outputs}
    if held.any():
        found = part.compute(batch.only(held))
        for output, column in found.items():
            values[output][held] = column
        if found.cut is not None:
            cut[held] = found.cut
    return Scores(values, cut)


def _plain(signature: str, part: Metric) -> str:
    """Return a part's signature without library versions, which affect only the last digits of a score."""
    names = "|".join(map(re.escape, part.libraries))
    return re.sub(rf"\|({names}):[^|)]*", "", signature) if names else signature
