"""The demo at many times its size, for `scale.py`: k times the systems and k times the dialogues. SIMULATED.

A copy's texts are texts of their own, of the same number of letters and words: each word becomes another that is as
long and about as frequent. What a dialogue's copy says follows one such map, its responses, references and facts alike,
so that they overlap as they did; a system's copy says it with a quarter of the words changed again. Texts that were the
same stay the same within a copy, so the share of distinct texts stays what it is. In place of rare words others are
invented, so that the vocabulary grows too, as it does in text that people write.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from comperdial import schema
from comperdial.challenge.dialogues import Dialogue, dialogues_of, to_data
from comperdial.challenge.simulation import read_raters

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "data/tables/demo"
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
# Words that trade places: as long, and next to each other by frequency.
_RUN = 32
Map = dict[str, str]


class Texts:
    """The demo's words, and the texts that copies make of texts."""

    def __init__(self, counts: Counter[str], copies: int, seed: int) -> None:
        self.counts, self.copies, self.seed = counts, copies, seed
        by_length = sorted(counts, key=lambda word: (len(word), -counts[word], word))
        self.groups = [list(group) for _, group in groupby(by_length, len)]
        self.rarest = sorted(counts, key=lambda word: (counts[word], word))

    def dialogue_map(self, dialogue: int) -> Map:
        """Return what the words of a dialogue's copy become; copy 0 is the demo itself."""
        if not dialogue:
            return {}
        rng = np.random.default_rng([self.seed, 1, dialogue])
        return self._permuted(rng) | self._invented(rng, dialogue * self.copies)

    def system_map(self, dialogue: int, system: int) -> Map:
        """Return what a system's copy makes of the words of a dialogue's copy: a quarter of them are others."""
        rng = np.random.default_rng([self.seed, 2, dialogue, system])
        chosen = {word: other for word, other in self._permuted(rng).items() if rng.random() < 0.25}
        return chosen | self._invented(rng, dialogue * self.copies + system)

    def any_map(self, dialogue: int, system: int) -> Map:
        """Return a map for a word of a text that the system's map leaves as it is."""
        return self._permuted(np.random.default_rng([self.seed, 3, dialogue, system]))

    def _permuted(self, rng: np.random.Generator) -> Map:
        result: Map = {}
        for group in self.groups:
            for first in range(0, len(group), _RUN):
                run = group[first : first + _RUN]
                # Around a random ring: no word stays what it is.
                order = rng.permutation(len(run))
                result |= {run[a]: run[b] for a, b in zip(order, np.roll(order, 1), strict=True)}
        return result

    def _invented(self, rng: np.random.Generator, copy: int) -> Map:
        """Return new words in place of the rarest: by Heaps' law, sqrt(copies) times the words in all."""
        count = round(len(self.rarest) * (math.sqrt(copy + 1) - math.sqrt(copy)))
        by_length = {len(group[0]): group for group in self.groups}
        result = {}
        for word in self.rarest[:count]:
            others = by_length[len(word)]
            front, back = (others[int(rng.integers(len(others)))] for _ in range(2))
            result[word] = front[: len(word) // 2] + back[len(word) // 2 :]
        return result


def told(text: str, words: Map) -> str:
    """Return a text with its words replaced, capitals kept."""

    def other(match: re.Match[str]) -> str:
        word = match[0]
        result = words.get(word.lower(), word.lower())
        return result.capitalize() if word[0].isupper() else result

    return _WORD.sub(other, text) if words else text


def retold(text: str, words: Map, otherwise: Map) -> str:
    """As :func:`told`, but never the same text: where it would be, the longest word is replaced by the other map."""
    result = told(text, words)
    if result != text:
        return result
    longest = max(_WORD.findall(text), key=len, default="").lower()
    return told(text, {longest: otherwise.get(longest, longest)})


def grow(folder: Path, times: int, *, seed: int = 2024, demo: Path = DEMO) -> dict[str, float]:
    """Write dialogues, submissions and raters of the demo at so many times its size; return what to print of it.

    ``times`` is a square, or 0: two dialogues of three systems, by which the cost of starting is told.
    """
    copies = math.isqrt(times) or 1
    if times and copies**2 != times:
        raise SystemExit(f"{times} times: no square number")
    tables = {name: schema.read(demo / f"{name}.parquet", name) for name in ("contexts", "personas", "responses")}
    systems = schema.read(demo / "systems.parquet", "systems")
    dialogues = dialogues_of(tables["contexts"], tables["personas"])
    if not times:
        systems, dialogues = systems.head(3), dialogues[:2]
    kept = tables["contexts"][["context_id", "dialogue_id", "turn"]]
    responses = tables["responses"].merge(kept, on="context_id")
    of_dialogues = responses["dialogue_id"].isin([d.dialogue_id for d in dialogues])
    responses = responses[of_dialogues & responses["system_id"].isin(systems["system_id"])]
    counts = Counter(
        word.lower()
        for text in [*responses["response"], *(t for d in dialogues for t in _said(d))]
        for word in _WORD.findall(text)
    )
    texts = Texts(counts, copies, seed)
    maps = [texts.dialogue_map(copy) for copy in range(copies)]
    folder.mkdir(parents=True, exist_ok=True)
    grown = [to_data(_dialogue(d, maps[copy], copy)) for copy in range(copies) for d in dialogues]
    (folder / "dialogues.json").write_text(json.dumps(grown, ensure_ascii=False), encoding="utf-8")
    _write_systems(folder, systems, copies, seed)
    return _write_submissions(folder / "submissions", responses, texts, maps) | {"dialogues": len(grown)}


def _said(dialogue: Dialogue) -> list[str]:
    return [*dialogue.texts, *(s for persona in dialogue.personas.values() for s in persona)]


def _dialogue(dialogue: Dialogue, words: Map, copy: int) -> Dialogue:
    personas = {who: [told(s, words) for s in sentences] for who, sentences in dialogue.personas.items()}
    return Dialogue(_name(dialogue.dialogue_id, copy), personas, tuple(told(text, words) for text in dialogue.texts))


def _name(name: str, copy: int) -> str:
    return f"{name}-x{copy}" if copy else name


def _write_submissions(folder: Path, responses: pd.DataFrame, texts: Texts, maps: list[Map]) -> dict[str, float]:
    """Write a file a system, and count what there is."""
    folder.mkdir(exist_ok=True)
    own = list(dict.fromkeys(responses["response"]))
    distinct: set[str] = set()
    words: set[str] = set()
    total = length = letters = 0
    for system in range(texts.copies):
        said: list[dict[str, str]] = []
        for dialogue, words_of in enumerate(maps):
            copy = {text: told(text, words_of) for text in own}
            if system:
                pair = texts.system_map(dialogue, system), texts.any_map(dialogue, system)
                copy = {text: retold(result, *pair) for text, result in copy.items()}
            said.append(copy)
            distinct |= set(copy.values())
            words |= {word.lower() for text in copy.values() for word in _WORD.findall(text)}
        for name, rows in responses.groupby("system_id"):
            lines = []
            for dialogue, copy in enumerate(said):
                for dialogue_id, turn, text in zip(rows["dialogue_id"], rows["turn"], rows["response"], strict=True):
                    record = {"dialogue_id": _name(dialogue_id, dialogue), "turn": int(turn), "response": copy[text]}
                    lines.append(json.dumps(record, ensure_ascii=False) + "\n")
                    total, letters = total + 1, letters + len(copy[text])
                    length += len(copy[text].split())
            (folder / f"{_name(str(name), system)}.jsonl").write_text("".join(lines), encoding="utf-8")
    return {
        "responses": total,
        "distinct": len(distinct) / total,
        "words": length / total,
        "letters": letters / total,
        "vocabulary": len(words),
    }


def _write_systems(folder: Path, systems: pd.DataFrame, copies: int, seed: int) -> None:
    """Write what kind the systems are, and the raters, to whom a copy is about as good as the system itself."""
    (folder / "submissions").mkdir(exist_ok=True)
    model = read_raters(ROOT / "data/demo/raters.yaml").model_dump()
    skills = model["skill"]
    rng = np.random.default_rng([seed, 4])
    grown: dict[str, float] = {}
    with (folder / "submissions/systems.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["system_id", "kind", "track", "description"])
        for copy in range(copies):
            for name, kind, track, about in systems[["system_id", "kind", "track", "description"]].itertuples(
                index=False, name=None
            ):
                writer.writerow([_name(name, copy), kind, "" if pd.isna(track) else track, about])
                noise = rng.normal(0, 0.05) if copy else 0.0
                grown[_name(name, copy)] = float(np.clip(skills[name] + noise, 0, 1))
    text = yaml.safe_dump(model | {"skill": grown}, sort_keys=False)
    (folder / "raters.yaml").write_text(text, encoding="utf-8")
