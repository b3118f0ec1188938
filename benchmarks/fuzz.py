"""Malformed inputs for every command that reads files: no traceback, no hang, nothing half-written.

Files of a small challenge are made from the embedded demo, in every form that a command reads. Then, again and again, a
command gets one of them altered (cut off, flipped bits, wrong types, nesting, a folder or pipe in its place, …), in a
process and a copy of the folder of its own. What must hold:

- it ends by itself, with status 0, 1 or 2, and what it says is no traceback;
- no temporary file is left, and each output is the old file or a whole new one.

Prints a Markdown table of commands and lists what did not hold, with the number that makes it again (``--only``).
"""

# Commands and values read best one a line, and what is drawn need not be unforeseeable.
# ruff: noqa: E501, S311

from __future__ import annotations

import argparse
import csv
import importlib
import io
import json
import os
import pkgutil
import random
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import comperdial.cli
from comperdial.core.errors import ComperdialError

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from minidata import mini_items, write_mirror  # noqa: E402

MEMORY = 6 << 30
OLD = b"what was there before\n"
DIALOGUES = 3


@dataclass(frozen=True)
class Command:
    """What is typed."""

    line: str

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.line)

    @property
    def name(self) -> str:
        words = self.arguments
        deep = {"judge", "prompts", "challenge", "annotate", "render", "models"}
        return " ".join(words[: 3 if words[:2] == ["judge", "batch"] else 2 if words[0] in deep else 1])

    def outputs(self) -> list[str]:
        return [word for word in self.arguments if word.startswith("out/") and Path(word).suffix]


COVERAGE = (
    "metric,dimension,target,items,answers,unread,why,n,pearson,kendall,owners_pearson,owners_kendall\n"
    "a,naturalness,Natural,300,6000,1,1 empty,300,0.5,0.4,0.5,0.4\na,coherence,Overall,300,6000,0,,300,,,,\n"
)
CONFIG = yaml.safe_load((ROOT / "tests/configs/challenge.yaml").read_text())
CONFIG["judging"] |= {"ledger": "ledger", "judges": {"default": ["rules"]}}
CONFIG["datasets"] = ["mini"]
COLUMNS = shlex.quote(json.dumps(CONFIG["comperdial"]["columns"]))
SECTIONS = shlex.quote(json.dumps({name: CONFIG[name] for name in ("judges", "judging")}))
CONTEXTS = "contexts=tables/mini/contexts.parquet"
RATED = f"{CONTEXTS} ratings=tables/mini/ratings.parquet title=T source=simulated"

# Made in this order, each of what is there by then: the files that the commands below read.
SEEDS = [
    "challenge run dialogues.json --roster agents.yaml --output runs.jsonl --report report.json",
    "challenge tables dialogues.json --submissions submissions runs.jsonl --roster agents.yaml --runs report.json "
    "--name mini --output tables/mini",
    "simulate tables/mini --raters raters.yaml --roster agents.yaml --seed 1",
    "fetch mini_ratings --catalogue sources.yaml",
    "ingest usr_persona --catalogue sources.yaml --output tables/usr_persona",
    "perturb tables/usr_persona --dataset perturbed --output tables/perturbed --seed 1 --all-items",
    "shards tables/mini --size 256 --output shards.json",
    "score tables/mini --metric f1 --output scores/f1.parquet",
    "score tables/mini --metric bleu --output scores/bleu.parquet",
    "score tables/mini --metric f1 --output scores/f1.csv",
    "score tables/mini --metric f1 --output scores/f1.jsonl",
    "score tables/mini --metric f1 --shard 1/1 --output scores/shard.parquet",
    "score tables/usr_persona --metric f1 --output scores/usr.parquet",
    "score tables/perturbed --metric f1 --output scores/perturbed.parquet",
    "judge run --params params.yaml --datasets mini --tables tables",
    f"judge score tables/mini --metric cpds-d_rules --sections {SECTIONS} --output results/mini/scores/cpds-d_rules.parquet "
    "--judgements results/mini/judgements/cpds-d_rules.parquet",
    "judge file mine.jsonl --params params.yaml --variant cpds-d --judge rules --output scores/rules.parquet "
    "--judgements judgements.parquet",
    "correlate scores/f1.parquet scores/bleu.parquet --ratings tables/mini/ratings.parquet --systems "
    "tables/mini/systems.parquet --contexts tables/mini/contexts.parquet --level turn --level system --source simulated --resamples 20 --ceilings ceilings.parquet "
    "--comparisons comparisons.parquet --output correlations.parquet",
    "robustness scores/f1.parquet --ratings tables/mini/ratings.parquet --systems tables/mini/systems.parquet "
    "--level turn --source simulated --repeats 3 --curves curves.parquet --power power.parquet",
    "dimensions scores/usr.parquet --tables tables/usr_persona --resamples 5 --output dimensions.parquet --rounds rounds.parquet",
    "ratios scores/perturbed.parquet --tables tables/perturbed --output ratios.parquet",
    "annotate export tables/mini --output label --sample 2",
    "export tables/mini --output exported",
    f"render alpha {RATED} seed=1 resamples=5 --output made/alpha",
]  # fmt: skip

COMMANDS = [
    *(Command(f"score mine.{kind} --metric {metric} --output out/s.{to}")
      for kind in ("jsonl", "csv", "parquet") for metric, to in (("f1", "csv"), ("bleu", "parquet"), ("rouge", "jsonl"))),
    Command("score tables/mini --metric f1 --output out/s.parquet"),
    Command("score tables/mini --metric distinct --output out/s.csv"),
    Command("score tables/mini --metrics f1 distinct --output out/s.parquet"),
    Command("merge scores/shard.parquet --output out/s.parquet"),
    *(Command(f"correlate scores/f1.{kind} --ratings ratings.{other} --level turn --source simulated --resamples 0 --output out/c.csv")
      for kind in ("jsonl", "csv", "parquet") for other in ("jsonl", "csv", "parquet")),
    Command("correlate scores/f1.parquet scores/bleu.parquet --ratings tables/mini/ratings.parquet --systems "
            "tables/mini/systems.parquet --contexts tables/mini/contexts.parquet --source simulated --resamples 10 --ceilings out/a.csv --comparisons out/b.csv --output out/c.parquet"),
    Command("robustness scores/f1.parquet --ratings tables/mini/ratings.parquet --systems tables/mini/systems.parquet "
            "--level turn --source simulated --repeats 2 --curves out/a.csv --power out/b.parquet"),
    Command("dimensions scores/usr.parquet --tables tables/usr_persona --resamples 3 --output out/d.csv --rounds out/r.csv"),
    Command("ratios scores/perturbed.parquet --tables tables/perturbed --output out/r.csv"),
    Command("judge list --params params.yaml --tables tables --signatures"),
    Command("judge plan --params params.yaml --tables tables"),
    Command("judge run --params params.yaml --tables tables"),
    Command("judge batch write --params params.yaml --tables tables"),
    Command("judge batch collect --params params.yaml --tables tables"),
    *(Command(f"judge file mine.{kind} --params params.yaml --variant cpds-d --judge rules --output out/s.csv --judgements out/j.jsonl")
      for kind in ("jsonl", "csv", "parquet")),
    Command("judge show echo demo-01 --dataset mini --results results --tables tables"),
    *[
        Command(
            f"judge score tables/mini --metric cpds-d_rules --sections {SECTIONS} --output out/s.parquet "
            "--judgements out/j.parquet"
        )
    ]
    * 2,
    Command("judge merge --scores scores/rules.parquet --judgements judgements.parquet --output out/s.parquet "
            "--output-judgements out/j.parquet"),
    Command("prompts import paper.html --output out"),
    *(Command(f"recorded tables/mini --name mine --format table --path recorded.{kind} --about me --output out/s.csv")
      for kind in ("csv", "jsonl", "parquet")),
    *(Command(f"validate {name}") for name in ("tables/mini/contexts.parquet", "tables/mini/responses.parquet",
      "tables/mini/ratings.parquet", "tables/mini/personas.parquet")),
    *(Command(f"validate scores/f1.{kind} --table scores") for kind in ("csv", "jsonl", "parquet")),
    Command("sources --catalogue sources.yaml"),
    Command("fetch mini_ratings --catalogue sources.yaml"),
    *[Command("ingest usr_persona --catalogue sources.yaml --output out")] * 3,
    Command("personas peacok_kg.json --constraints personas --count 5 --seed 1 --output out/p.json"),
    Command("personas peacok.tsv --constraints personas --count 5 --seed 1 --output out/p.json"),
    *[Command("challenge run dialogues.json --roster one.yaml --output out/r.jsonl --report out/r.json")] * 2,
    *[Command("challenge tables dialogues.json --submissions submissions runs.jsonl --roster agents.yaml --runs report.json "
            "--name mini --output out")] * 2,
    *(Command(f"challenge ratings tables/mini --turn given/turn.{kind} --dialogue given/dialogue.{kind}") for kind in ("csv", "jsonl")),
    Command("simulate tables/mini --raters raters.yaml --roster agents.yaml --seed 1"),
    Command("export tables/mini --output out"),
    *[Command(f"import exported --name mini --columns {COLUMNS} --output out")] * 2,
    Command("perturb tables/usr_persona --dataset p --output out --seed 1 --all-items"),
    Command("annotate export tables/mini --output out --sample 2"),
    *[Command("annotate import turn.json --key turn_key.csv --level turn --output out/r.csv")] * 2,
    *[Command("annotate import dialogue.json --key dialogue_key.csv --level dialogue --output out/r.parquet")] * 2,
    Command("why made/alpha"),
    Command("readme tables.csv --output page.md"),
    Command("render correlations correlations=correlations.parquet --output out/u"),
    Command("render judges judgements=judgements.parquet source=simulated --output out/u"),
    Command("render recorded_judges coverage=coverage.csv reported=chiang2023.csv --output out/u"),
    Command(f"render systems scores=scores/f1.parquet systems=tables/mini/systems.parquet outputs=[f1:f1] "
            f"submissions=tables/mini/submissions.json {RATED.replace(CONTEXTS, '')} --output out/u"),
    Command(f"render alpha {RATED} seed=1 resamples=3 --output out/u"),
    *(Command(f"render statistics found={kind}.parquet kind={name} source=simulated --output out/u")
      for kind, name in (("correlations", "measures"), ("comparisons", "comparisons"), ("power", "power"), ("curves", "curves"))),
    Command("render heatmap correlations=correlations.parquet ceilings=ceilings.parquet source=simulated --output out/u"),
    *(Command(f"render {name} scores=scores/f1.parquet {more} responses=tables/mini/responses.parquet "
              f"systems=tables/mini/systems.parquet {RATED} --output out/u")
      for name, more in (("scatter", "correlations=correlations.parquet"), ("slope", ""), ("length_bias", "seed=1 resamples=3"))),
    Command("render curves curves=curves.parquet power=power.parquet coefficient=spearman source=simulated --output out/u"),
    Command("render llm_evaluators/table_7 tables=tables/perturbed/systems.parquet reported=perturbations.csv "
            "recorded=tables/perturbed --output out/u"),
]  # fmt: skip


def make_seeds(folder: Path) -> None:
    """Make all files that the commands read, by the commands themselves as far as they go."""
    demo = ROOT / "data/demo"
    chosen = json.loads((demo / "dialogues.json").read_text())[:DIALOGUES]
    names = {dialogue["dialogue_id"] for dialogue in chosen}
    (folder / "dialogues.json").write_text(json.dumps(chosen))
    (folder / "submissions").mkdir()
    for human in ("human-1", "human-2"):
        lines = (demo / f"submissions/{human}.jsonl").read_text().splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["dialogue_id"] in names]
        (folder / f"submissions/{human}.jsonl").write_text("".join(kept))
    shutil.copy(demo / "submissions/systems.csv", folder / "submissions")
    agents = [
        {"id": "echo", "kind": "echo", "track": "gpu", "skill": 0.1, "options": {"share": 0.5, "seed": 1}},
        {"id": "generic", "kind": "generic", "track": "gpu", "skill": 0.3, "options": {"variety": 5, "seed": 2}},
        {"id": "template", "kind": "persona_template", "skill": 0.6, "options": {"relevance": 0.9, "seed": 3}},
    ]
    (folder / "agents.yaml").write_text(yaml.safe_dump({"agents": agents}))
    (folder / "one.yaml").write_text(yaml.safe_dump({"agents": agents[:1]}))
    shutil.copy(demo / "raters.yaml", folder)
    graph = json.loads((demo / "peacok_kg.json").read_text())
    (folder / "peacok_kg.json").write_text(json.dumps(graph))
    (folder / "peacok.tsv").write_text(
        "i am a doctor\tcharacteristic\tkind\ni am a cook\troutine or habit\tcook meals\n"
    )
    shutil.copytree(ROOT / "data/personas", folder / "personas")
    shutil.copy(ROOT / "src/comperdial/studies/llm_evaluators/perturbations.csv", folder)
    shutil.copy(ROOT / "src/comperdial/judges/recorded/chiang2023_reported.csv", folder / "chiang2023.csv")
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data/sources.yaml", folder / "data")
    shutil.copy(ROOT / "data/prices.yaml", folder / "data")
    write_mirror(folder, mini_items())
    for kind in ("turn", "dialogue"):
        for of in (".json", "_key.csv"):
            shutil.copy(ROOT / f"tests/fixtures/label_studio_{kind}{of}", folder / f"{kind}{of}")
    (folder / "params.yaml").write_text(yaml.safe_dump(CONFIG))
    (folder / "paper.html").write_text("<html><body><p>Prompt</p><pre>Rate the response.</pre></body></html>")
    mine = [
        {"context_id": f"c{n}", "system_id": s, "response": f"i like {w}", "reference": [f"i like {w} too"],
         "history": ["hello", f"do you like {w}?"], "facts": [f"i like {w}."]}
        for n, w in enumerate(("tea", "trains", "chess")) for s in ("a", "b")
    ]  # fmt: skip
    write_all(folder / "mine", mine)
    for line in SEEDS:
        status, said = forked(lambda words=Command(line).arguments: comperdial.cli.main(words), folder, 300)
        if status:
            raise SystemExit(f"no seed by `comperdial {line}`: status {status}\n{said}")
    ratings = pq.read_table(folder / "tables/mini/ratings.parquet").to_pylist()
    write_all(folder / "ratings", ratings)
    for level in ("turn", "dialogue"):
        write_all(folder / f"given/{level}", [row for row in ratings if row["level"] == level])
    scores = pq.read_table(folder / "scores/f1.parquet").to_pylist()
    write_all(folder / "recorded", [
        {"context_id": row["item_id"], "system_id": row["system_id"], "value": row["value"]}
        for row in scores if row["output"] == "f1"
    ])  # fmt: skip
    (folder / "coverage.csv").write_text(COVERAGE)
    (folder / "page.md").write_text("# A page\n<!-- usr-table -->\n<!-- /usr-table -->\n")
    shutil.copy(folder / "made/usr.csv", folder / "tables.csv")


def write_all(stem: Path, records: list[dict[str, Any]]) -> None:
    """Write records as JSONL, CSV and Parquet."""
    stem.parent.mkdir(exist_ok=True)
    stem.with_suffix(".jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with stem.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(
            {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()} for row in records
        )
    pq.write_table(pa.Table.from_pylist(records), stem.with_suffix(".parquet"))


# --- Altering a file -------------------------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


NASTY: list[Callable[[random.Random], Any]] = [
    lambda r: None, lambda r: True, lambda r: -1, lambda r: 0, lambda r: 10**400, lambda r: 1e308, lambda r: float("nan"),
    lambda r: float("inf"), lambda r: "", lambda r: " ", lambda r: "\0", lambda r: "x" * 300_000, lambda r: "\u202e\x1b[31m",
    lambda r: {}, lambda r: [], lambda r: [None], lambda r: {"a": 1}, lambda r: nested(r.choice((50, 900))), lambda r: "../../x",
    lambda r: "1e5", lambda r: "nan", lambda r: "--help", lambda r: "{x}", lambda r: ["a", 1, None], lambda r: 2**63,
    lambda r: "\ud800", lambda r: "%s%n{0}", lambda r: "a" * 300, lambda r: -(2**63) - 1, lambda r: 0.1,
]  # fmt: skip


def altered(path: Path, rng: random.Random) -> str:
    """Alter a file in place; return how."""
    kinds: list[Callable[[Path, random.Random], str]] = [as_bytes, as_bytes, as_thing]
    typed = {
        ".json": as_json,
        ".jsonl": as_json,
        ".yaml": as_yaml,
        ".csv": as_csv,
        ".tsv": as_csv,
        ".parquet": as_parquet,
    }
    if path.suffix in typed:
        kinds += [typed[path.suffix]] * 5
    kind = rng.choice(kinds)
    try:
        return kind(path, rng)
    except (ValueError, TypeError, OverflowError, pa.ArrowException, RecursionError, csv.Error):
        # What this file cannot hold.
        return as_bytes(path, rng)


def as_thing(path: Path, rng: random.Random) -> str:
    """Put something that is no file in a file's place."""
    path.unlink()
    what = rng.choice(("nothing", "folder", "pipe", "zero", "null", "loop", "dangling"))
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what != "nothing":
        path.symlink_to({"zero": "/dev/zero", "null": "/dev/null", "loop": path.name, "dangling": "nowhere"}[what])
    return what


def as_bytes(path: Path, rng: random.Random) -> str:
    data = bytearray(path.read_bytes())
    place, length = rng.randrange(len(data) + 1), rng.choice((1, 3, 50, 4000))
    what = rng.choice(
        (
            "cut",
            "flip",
            "flips",
            "hole",
            "twice",
            "nul",
            "bom",
            "utf-16",
            "latin",
            "empty",
            "blank",
            "noise",
            "crlf",
            "cr",
        )
    )
    if what == "cut":
        data = data[:place]
    elif what in ("flip", "flips") and data:
        for _ in range(1 if what == "flip" else rng.randrange(2, 40)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif what == "hole":
        del data[place : place + length]
    elif what == "twice":
        data[place:place] = data[place : place + length]
    elif what == "nul":
        data[place:place] = b"\0" * length
    elif what == "bom":
        data[rng.choice((0, place)) : 0] = b"\xef\xbb\xbf"
    elif what == "utf-16":
        data = bytearray(data.decode("utf-8", "replace").encode("utf-16"))
    elif what == "latin":
        data[place:place] = b"\xe9\xff"
    elif what == "empty":
        data = bytearray()
    elif what == "blank":
        data = bytearray(b" \n\n\t\n")
    elif what == "noise":
        data = bytearray(rng.randbytes(length))
    elif what in ("crlf", "cr"):
        data = bytearray(bytes(data).replace(b"\n", b"\r\n" if what == "crlf" else b"\r"))
    path.write_bytes(data)
    return what


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value in a value."""
    yield at
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield from places(part, (*at, key))


def changed(value: Any, rng: random.Random) -> tuple[Any, str]:
    """Return a value with something in it changed."""
    *way, last = rng.choice([place for place in places(value) if place] or [("x",)])
    if last == "x" and not way:
        return rng.choice(NASTY)(rng), "all of it"
    holder = value
    for key in way:
        holder = holder[key]
    what = rng.choice(("value", "value", "value", "gone", "more", "renamed", "twice"))
    if what == "value":
        holder[last] = rng.choice(NASTY)(rng)
    elif what == "gone":
        del holder[last]
    elif what == "twice" and isinstance(holder, list):
        holder.append(holder[last])
    elif isinstance(holder, dict):
        name = rng.choice(("", "x", "\0", "a b", f"{last}x"))
        holder[name] = holder.pop(last) if what == "renamed" else rng.choice(NASTY)(rng)
    else:
        holder[last] = rng.choice(NASTY)(rng)
    return value, f"{what} at {'.'.join(map(str, [*way, last]))[:60]}"


def as_json(path: Path, rng: random.Random) -> str:
    text = path.read_text()
    if rng.random() < 0.15:
        deep = rng.choice((500, 100_000))
        raw = rng.choice(
            ("[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep, "1" * 6000, '{"a":1,"a":2}', "NaN")
        )
        path.write_text(raw if path.suffix == ".json" or rng.random() < 0.5 else f"{text}{raw}\n")
        return "raw"
    if path.suffix == ".json":
        value, how = changed(json.loads(text), rng)
        path.write_text(json.dumps(value))
        return how
    lines = text.splitlines()
    number = rng.randrange(len(lines))
    value, how = changed(json.loads(lines[number]), rng)
    lines[number] = json.dumps(value)
    if rng.random() < 0.2:
        lines.append(lines[number])
    path.write_text("\n".join(lines) + "\n")
    return f"line {number + 1}: {how}"


RAW_YAML = (
    "a: &a [x, x, x]\nb: &b [*a, *a, *a]\n" + "".join(f"c{n}: &c{n} [{'*b' if not n else f'*c{n - 1}'}{', *a' * 8}]\n" for n in range(9)),
    "a: !!python/object/apply:os.system [id]\n", "a: !!binary '!!!'\n", "from: 2024-02-30\n", "a: !!int x\n", "? [a, b]\n: 1\n",
    "<<: 1\n", "a: &a {b: *a}\n", "a: 1\na: 2\n", "\ta: 1\n", "a: [1\n", "- 1\n", "--- a\n--- b\n", "a: !!timestamp x\n",
    "[" * 2000, "a: " + "1" * 6000 + "\n", "null: 1\n.nan: 2\n", "%YAML 9.9\n---\na: 1\n", "a: !!float x\n", "a: 0o9\nb: 1:99:99\n",
)  # fmt: skip


def as_yaml(path: Path, rng: random.Random) -> str:
    text = path.read_text()
    if rng.random() < 0.3:
        raw = rng.choice(RAW_YAML)
        path.write_text(rng.choice((raw, text + raw, raw + text)))
        return f"raw {raw[:20]!r}"
    value, how = changed(yaml.safe_load(text), rng)
    path.write_text(yaml.safe_dump(value, allow_unicode=True))
    return how


def as_csv(path: Path, rng: random.Random) -> str:
    mark = "\t" if path.suffix == ".tsv" else ","
    rows = list(csv.reader(io.StringIO(path.read_text()), delimiter=mark))
    row = rng.choice((0, rng.randrange(len(rows))))
    column = rng.randrange(len(rows[row]))
    what = rng.choice(("cell", "cell", "cell", "shorter", "longer", "gone", "twice", "column", "no rows"))
    if what == "cell":
        value = rng.choice(NASTY)(rng)
        rows[row][column] = value if isinstance(value, str) else json.dumps(value)
    elif what == "shorter":
        del rows[row][column]
    elif what == "longer":
        rows[row].insert(column, "x")
    elif what == "gone":
        del rows[row]
    elif what == "twice":
        rows.append(rows[row])
    elif what == "column":
        for cells in rows:
            del cells[column : column + 1]
    else:
        del rows[1:]
    made = io.StringIO()
    csv.writer(made, delimiter=mark, lineterminator="\n").writerows(rows)
    path.write_text(made.getvalue())
    return f"{what} in row {row + 1}, column {column + 1}"


def as_parquet(path: Path, rng: random.Random) -> str:
    table = pq.read_table(path)
    column = rng.randrange(table.num_columns)
    name, values = table.column_names[column], table.column(column).to_pylist()
    what = rng.choice(
        ("type", "type", "cell", "cell", "cell", "gone", "renamed", "twice", "no rows", "rows twice", "no columns")
    )
    if what == "type":
        kind = rng.choice((pa.null(), pa.binary(), pa.timestamp("ns"), pa.decimal128(5, 2), pa.bool_(), pa.list_(pa.int8()),
                           pa.struct([("a", pa.int8())]), pa.float16(), pa.date32(), pa.uint64(), pa.int8()))  # fmt: skip
        table = table.set_column(column, name, pa.nulls(len(table), kind))
        what = f"nulls of {kind}"
    elif what == "cell" and values:
        values[rng.randrange(len(values))] = rng.choice(NASTY)(rng)
        kinds = (None, table.schema.field(column).type, pa.string())
        table = table.set_column(column, name, pa.array(values, rng.choice(kinds)))
    elif what == "gone":
        table = table.remove_column(column)
    elif what == "renamed":
        table = table.rename_columns(
            [n if n != name else rng.choice(("", "x", table.column_names[0])) for n in table.column_names]
        )
    elif what == "twice":
        table = table.append_column(name, table.column(column))
    elif what == "no columns":
        table = table.select([])
    else:
        table = table[:0] if what == "no rows" else pa.concat_tables([table, table])
    # The marks that a file carries of itself are altered too, at times.
    if rng.random() < 0.2:
        table = table.replace_schema_metadata({b"comperdial": rng.choice((b"", b"{", b"[]", b"{}", rng.randbytes(9)))})
    pq.write_table(table, path)
    return f"{what} in {name}"


# --- Running ---------------------------------------------------------------------------------------------------------


@dataclass
class Job:
    """A command that runs."""

    number: int
    command: Command
    folder: Path
    how: str
    pid: int
    end: float


def start(action: Callable[[], int], folder: Path) -> int:
    """Run an action in a process, a folder and a session of its own; return the process."""
    pid = os.fork()
    if pid:
        return pid
    status = 99
    try:
        os.setsid()
        said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        null = os.open(os.devnull, os.O_RDWR)
        for to, of in ((0, null), (1, null), (2, said)):
            os.dup2(of, to)
        os.chdir(folder)
        os.environ["COMPERDIAL_MIRROR"] = str(folder / "mirror")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            status = action()
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        # With --debug errors come out as they are, so that those that nobody foresaw can be told from the others.
        except (ComperdialError, OSError) as error:
            print(f"comperdial: error: {error}", file=sys.stderr)
            status = 1
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def forked(action: Callable[[], int], folder: Path, limit: float) -> tuple[int, str]:
    pid = start(action, folder)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            said = (folder / "said.txt").read_text(errors="replace")
            (folder / "said.txt").unlink()
            return os.waitstatus_to_exitcode(status), said
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -signal.SIGALRM, "too long"


def read_by(command: Command, seeds: Path, place: Path) -> list[str]:
    """Return the files that a command opens where nothing is altered, of those that are there when it starts."""
    folder = place.resolve() / "run/below/whole"
    shutil.copytree(seeds, folder)
    opened = set()

    def noting() -> int:
        sys.addaudithook(lambda event, about: opened.add(str(about[0])) if event == "open" else None)
        try:
            return comperdial.cli.main(command.arguments)
        finally:
            Path("opened.txt").write_text("\n".join(opened), errors="replace")

    status, said = forked(noting, folder, 300)
    if status and "prompts import" not in command.line:
        raise SystemExit(f"status {status} of `comperdial {command.line}` where nothing is altered\n{said}")
    paths = [(folder / name).resolve() for name in (folder / "opened.txt").read_text().splitlines()]
    # And nothing of Python or the repository, which a command opens too.
    names = {str(path.relative_to(folder)) for path in paths if path.is_relative_to(folder)}
    # Arrow opens its files unseen.
    for word in (word for word in command.arguments[1:] if "{" not in word):
        path = folder / word
        found = path.rglob("*.parquet") if path.is_dir() else [path] if path.suffix == ".parquet" else []
        names.update(str(file.relative_to(folder)) for file in found if not word.startswith("out"))
    shutil.rmtree(folder)
    return sorted(name for name in names if ".." not in Path(name).parts and (seeds / name).is_file())


def begin(number: int, command: Command, inputs: list[str], seed: int, seeds: Path, place: Path, limit: float) -> Job:
    """Copy the seeds, alter one file that a command reads and start it."""
    rng = random.Random(f"{seed}-{number}")
    # Some levels down, so that "../../x" is still inside.
    folder = place / "run/below" / str(number)
    shutil.copytree(seeds, folder)
    name = rng.choice(inputs)
    if not (folder / name).resolve().is_relative_to(place.resolve()):
        raise SystemExit(f"{folder / name} is not in {place}: nothing else may be altered")
    how = f"{name}: {altered(folder / name, rng)}"
    if name.startswith("data/raw") and (folder / name).is_file():
        pin(folder, folder / name)
    for output in command.outputs():
        (folder / output).parent.mkdir(exist_ok=True)
        (folder / output).write_bytes(OLD)
    pid = start(lambda: comperdial.cli.main(["--debug", *command.arguments]), folder)
    return Job(number, command, folder, how, pid, time.monotonic() + limit)


def pin(folder: Path, path: Path) -> None:
    """Have the catalogue say that the altered file is the right one, so that it is read."""
    if path.is_symlink():
        return
    catalogue = yaml.safe_load((folder / "sources.yaml").read_text())
    content = path.read_bytes()
    catalogue["files"]["mini_ratings"] |= {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "sources.yaml").write_text(yaml.safe_dump(catalogue))


def faults(job: Job, status: int) -> Iterator[str]:
    """Yield what a command that has ended did wrong."""
    said = (job.folder / "said.txt").read_text(errors="replace")
    if status == 99 or "Traceback (most recent call last)" in said:
        # What it was about and where: the same fault has the same words.
        lines = [line for line in said.strip().splitlines() if line]
        where = [line.strip() for line in lines if "/comperdial/" in line and line.lstrip().startswith("File")]
        yield f"traceback: {lines[-1][:160]} [{re.sub('.*comperdial/', '', where[-1]) if where else ''}]"
    elif status < 0:
        yield f"ended by signal {-status}"
    elif status not in (0, 1, 2):
        yield f"status {status}: {said[-200:]}"
    elif status == 1:
        errors = [line for line in said.splitlines() if line.startswith("comperdial: error:")]
        rest = said.splitlines()[said.splitlines().index(errors[0]) + 1 :] if errors else []
        if rest:
            yield f"an error of {len(rest) + 1} lines: {said[-300:]!r}"
        if any(len(line) > 4000 for line in errors):
            yield f"an error of {max(map(len, errors)):,} characters"
    for path in job.folder.rglob(".*-*"):
        if re.fullmatch(r"\..*-[0-9a-z_]{8}(\..*)?", path.name):
            yield f"left behind: {path.name}"
    for output in job.command.outputs():
        path = job.folder / output
        if not path.is_file():
            yield f"{output} is gone"
        elif path.read_bytes() != OLD and not whole(path):
            yield f"{output} is half-written"


def whole(path: Path) -> bool:
    try:
        if path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".jsonl":
            [json.loads(line) for line in path.read_text().splitlines()]
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".csv":
            return path.read_bytes().endswith(b"\n")
        elif path.suffix == ".html":
            return path.read_text().rstrip().endswith("</html>")
    except (ValueError, OSError, pa.ArrowException):
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="how many inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a command may take")
    parser.add_argument("--seeds", type=Path, help="a folder to make the files in, or that has them")
    parser.add_argument("--only", type=int, nargs="*", help="these numbers alone, with what they say")
    options = parser.parse_args()
    # Imported before the fork: what takes a command a second is taken once.
    import matplotlib.pyplot  # noqa: F401

    for module in pkgutil.walk_packages(comperdial.__path__, "comperdial."):
        if not module.name.endswith(("__main__", "worker")):
            importlib.import_module(module.name)

    began = time.monotonic()
    runs: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    bad: dict[str, list[str]] = {}
    read: dict[Command, list[str]] = {}
    slowest = 0.0
    with tempfile.TemporaryDirectory(prefix="comperdial-fuzz-") as made:
        seeds = options.seeds or Path(made) / "seeds"
        if not seeds.exists():
            seeds.mkdir()
            make_seeds(seeds)
        ready = time.monotonic() - began
        numbers = iter(options.only or range(options.count))
        running: dict[int, Job] = {}
        while True:
            while len(running) < options.jobs and (number := next(numbers, None)) is not None:
                command = COMMANDS[number % len(COMMANDS)]
                if command not in read:
                    read[command] = read_by(command, seeds, Path(made))
                job = begin(number, command, read[command], options.seed, seeds, Path(made), options.limit)
                running[job.pid] = job
            if not running:
                break
            time.sleep(0.005)
            for pid, job in list(running.items()):
                found, code = os.waitpid(pid, os.WNOHANG)
                late = not found and time.monotonic() > job.end
                if late:
                    os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                if not found and not late:
                    continue
                del running[pid]
                slowest = max(slowest, options.limit - (job.end - time.monotonic()))
                status = os.waitstatus_to_exitcode(code) if found else -signal.SIGKILL
                runs[job.command.name] += 1
                refused[job.command.name] += status in (1, 2)
                wrong = [f"more than {options.limit:g} s"] if late else list(faults(job, status))
                for fault in wrong:
                    bad.setdefault(fault, []).append(f"{job.number} ({job.command.name}; {job.how})")
                if options.only:
                    print(f"{job.number}: comperdial {job.command.line}\n  {job.how}\n  status {status}, {wrong}")
                    print((job.folder / "said.txt").read_text(errors="replace")[-3000:])
                shutil.rmtree(job.folder)
    print("| command | inputs | refused |\n|:--|--:|--:|")
    for name, count in sorted(runs.items()):
        print(f"| {name} | {count} | {refused[name]} |")
    print(f"| all | {sum(runs.values())} | {sum(refused.values())} |\n")
    took = time.monotonic() - began
    print(f"{took:.0f} s, {ready:.0f} of them for the seeds; the slowest command {slowest:.1f} s.")
    print(f"{sum(map(len, bad.values()))} faults of {len(bad)} kinds.")
    for fault, cases in sorted(bad.items(), key=lambda item: -len(item[1])):
        print(f"- {len(cases)} x {fault}")
        for case in cases[:3]:
            print(f"  - {case}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
