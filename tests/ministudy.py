"""Small invented data in the files' formats of Zhang et al. 2024: nobody said or rated any of this."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from workdir import STUDY, Workdir

REPOSITORY, COMMIT = "invented/study", "1" * 40
TURN_DIMENSIONS = ("relevance", "specificity", "interestingness", "understandability", "overall")
DIALOGUE_DIMENSIONS = {
    "coherence": ("coh", "Coherent"),
    "engagingness": ("eng", "Likeable"),
    "diversity": ("div", "Diverse"),
    "informativeness": ("inf", "Informative"),
    "overall": ("ovr", "Overall"),
}
ROUNDS = 5
TOPICS = ("tea", "trains", "gardens", "chess", "maps", "bells")
MODELS = ("Meena", "Mitsuku", "Human")


def turn_lines() -> list[tuple[str, ...]]:
    """Three contexts with nine responses each, the ground truth first, and all of different lengths."""
    lines = []
    for topic in TOPICS[:3]:
        truth = f"Yes, I like {topic} when it is a cold day in August."
        words = truth.removesuffix(".").split()
        answers = [truth, *(" ".join(words[:count]) + "." for count in range(3, 10)), "My two cats sleep."]
        for answer in answers:
            lines.append((f"DAILYDZHAO-{len(lines):06d}", "Hello.", f"Do you like {topic} when it is cold?", answer))
    return lines


def turn_ratings(dimension: str) -> list[float]:
    """One mean a line, from 1 to 5: relevance and overall are people's, the others GPT-4's."""
    shift = TURN_DIMENSIONS.index(dimension)
    return [1 + (3 * place + place * place + shift) % 9 / 2 for place in range(len(turn_lines()))]


def dialogues() -> list[list[tuple[str, str]]]:
    """Six dialogues of five utterances, two of the chatbot's."""
    return [
        [
            ("human", "Hi!"),
            ("model", f"Hello, do you like {topic}?" if number % 2 else "Hello."),
            ("human", f"I like {topic} and the sea in August."),
            ("model", (f"I like {topic} and the sea too.", "I do not know.", f"Tell me about {topic}.")[number % 3]),
            ("human", "Bye."),
        ]
        for number, topic in enumerate(TOPICS)
    ]


def dialogue_lines() -> list[tuple[str, ...]]:
    return [
        (f"FEDDIAL-{number:06d}", *(f"{speaker}: {text}" for speaker, text in dialogue))
        for number, dialogue in enumerate(dialogues())
    ]


def people() -> list[dict[str, Any]]:
    """What five people rated, from 0 to 2, and from 0 to 4 overall."""
    return [
        {
            "model": MODELS[number % len(MODELS)],
            "dialog": [{"speaker": speaker, "text": text} for speaker, text in dialogue],
            "annotations": {
                name: [(number * 2 + person // 2 + shift) % (5 if name == "Overall" else 3) for person in range(5)]
                for shift, (_, name) in enumerate(DIALOGUE_DIMENSIONS.values())
            },
        }
        for number, dialogue in enumerate(dialogues())
    ]


def rounds() -> dict[str, list[float]]:
    """Five rounds of GPT-4, from 1 to 5; no round is like people's ratings."""
    return {
        f"{short}_{number + 1}": [float(1 + (place * place + shift + number // 3) % 5) for place in range(len(TOPICS))]
        for shift, (short, _) in enumerate(DIALOGUE_DIMENSIONS.values())
        for number in range(ROUNDS)
    }


ORIGINALS = [[text for _, text in dialogue] for dialogue in dialogues()[:2]]


def text(lines: list[tuple[str, ...]]) -> bytes:
    """Return lines as a text file has them: fields after tabs."""
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def pairs(name: str, worse: list[str]) -> dict[str, bytes]:
    """Return the two files of a perturbation of single responses."""
    history = ("Good morning.", "Where do we meet?")
    good = ["We meet where she lives.", "She meets us at noon.", "Where do you meet her?"]
    return {
        role: text([(f"{name}-{place:04d}", *history, answer) for place, answer in enumerate(answers)])
        for role, answers in ((f"{name}_original", good), (name, worse))
    }


def shuffled() -> bytes:
    """Return one reordered version of each original."""
    return text(
        [
            (
                f"order_shuffle_{place:02d}",
                *(f"{('human', 'model')[at % 2]}: {said}" for at, said in enumerate(texts[::-1])),
            )
            for place, texts in enumerate(ORIGINALS)
        ]
    )


def data_sets() -> dict[str, tuple[dict[str, Any], dict[str, bytes]]]:
    """Return each data set's entry in the catalogue, without its files, and the files by role."""
    by_dimension = {
        dimension: json.dumps({"dailydialog-zhao": turn_ratings(dimension)}).encode() for dimension in TURN_DIMENSIONS
    }
    worse = {"pronouns": ["You meet where he lives.", "He meets them.", "Where do I meet it?"], "dullness": ["Ok."] * 3}
    recorded = {role: content for name, said in worse.items() for role, content in pairs(name, said).items()}
    return {
        "dailydialog_zhao": (
            {"reader": "comp_turns", "title": "Mini turns", "levels": ["turn"]},
            {"texts": text(turn_lines()), **by_dimension},
        ),
        "fed_dial": (
            {"reader": "comp_dialogues", "title": "Mini dialogues", "levels": ["dialogue"]},
            {
                "texts": text(dialogue_lines()),
                "rounds": json.dumps(rounds()).encode(),
                "ratings": json.dumps(people()).encode(),
            },
        ),
        "turn_perturbations": ({"reader": "comp_perturbations", "title": "Mini turn pairs", "levels": []}, recorded),
        "dialogue_perturbations": (
            {"reader": "comp_perturbations", "title": "Mini dialogue pairs", "levels": []},
            {"originals": json.dumps(ORIGINALS).encode(), "order_shuffle": shuffled()},
        ),
    }


def pinned(workdir: Workdir, name: str, content: bytes) -> dict[str, Any]:
    """Put a file into a copy's mirror; return its entry in the catalogue."""
    path = f"data/{name}"
    place = workdir.path / "mirror" / REPOSITORY / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return {
        "repository": REPOSITORY,
        "commit": COMMIT,
        "path": path,
        "url": f"https://example.invalid/{COMMIT}/{path}",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "licence": "invented for tests",
        "citation": "none",
    }


def replaced(workdir: Workdir, name: str, content: bytes) -> None:
    """Put another file into a copy's mirror and its checksum into the catalogue."""
    path = workdir.path / "data/sources.yaml"
    catalogue = yaml.safe_load(path.read_text())
    catalogue["files"][name] = pinned(workdir, name, content)
    path.write_text(yaml.safe_dump(catalogue))


def write_study(workdir: Workdir, root: Path) -> None:
    """Add the study, its files and their catalogue to a copy of the repository, and put its params.yaml in."""
    shutil.copytree(root / STUDY, workdir.path / STUDY, ignore=shutil.ignore_patterns("__pycache__"))
    path = workdir.path / "data/sources.yaml"
    catalogue = yaml.safe_load(path.read_text())
    for dataset, (entry, files) in data_sets().items():
        names = {role: f"mini_{dataset}_{role}" for role in files}
        catalogue["datasets"][dataset] = entry | {"files": names}
        for role, name in names.items():
            catalogue["files"][name] = pinned(workdir, name, files[role])
    path.write_text(yaml.safe_dump(catalogue))
    shutil.copy2(root / "tests/configs/llm_evaluators.yaml", workdir.path / "params.yaml")
