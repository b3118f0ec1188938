"""The generated parts of the documentation: ``python docs/reference.py metrics.md`` prints that of a page."""

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def grid(names: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    lines = [names.split(", "), ["---"] * (names.count(", ") + 1), *(map(cell, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(value: object) -> str:
    """Return a value as a cell: one line, without HTML or bars."""
    text = re.sub(r"\s+", " ", str(value)).replace("|", "\\|")
    return "`".join(part if n % 2 else part.replace("<", "&lt;") for n, part in enumerate(text.split("`")))


def code(names: Iterable[object]) -> str:
    """Return names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown, without its sections."""
    text = re.split(r"\n\w+\n-{3,}\n", inspect.cleandoc(docstring or ""))[0]
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text).replace("``", "`").rstrip()


def entries(docstring: str | None, section: str) -> dict[str, str]:
    """Return the entries of a docstring's section by name."""
    rest = inspect.cleandoc(docstring or "").partition(f"\n{section}\n{'-' * len(section)}\n")[2]
    own = re.split(r"\n\n\w+\n-{3,}\n", rest)[0]
    return {name: prose(text) for name, text in re.findall(r"^(\S+)\n((?:[ ]+\S.*(?:\n|$))+)", own, flags=re.M)}


def commands() -> str:
    """Describe each command and its options."""
    from typer.main import get_command

    from comperdial.cli import app

    def describe(command: Any, name: str) -> str:  # noqa: ANN401
        if inner := getattr(command, "commands", None):
            return "\n".join(describe(one, f"{name} {word}".strip()) for word, one in inner.items())
        with command.make_context(name, [], resilient_parsing=True) as context:
            rows = [row for option in command.params if (row := option.get_help_record(context))]
        options = [(code([names]), meaning) for names, meaning in rows if not names.startswith("--help")]
        return f"### {name}\n\n{prose(command.help)}\n\n" + (grid("option, meaning", options) if options else "")

    return "## All commands\n\n" + describe(get_command(app), "")


def metrics() -> str:
    """Describe each kind of metric, and list the entries of the registry."""
    from comperdial.config.registry import registered
    from comperdial.metrics import create, kinds

    text = "## All kinds\n"
    for kind in kinds():
        metric = create(kind)
        limits = {name: " to ".join(map("{:g}".format, ends or ())) for name, ends in metric.bounds.items()}
        rows = [("outputs, the main one first", code(metric.outputs))]
        rows += [("bounds", "; ".join(f"{name} {ends or 'any'}" for name, ends in limits.items()))]
        rows += [("needs, besides the response", ", ".join(metric.needs) or "nothing")]
        options = {
            f"option `{one.name}`": f"{one.type}; default {getattr(metric, one.name)!r}" for one in fields(metric)
        }
        rows += options.items()
        text += f"\n### {kind}\n\n{prose(type(metric).__doc__)}\n\n" + grid("property, value", rows)
    named = []
    for name, entry in registered("metrics").items():
        own = code(f"{k}: {v}" for k, v in entry.items() if k not in ("kind", "main", "label", "datasets", "skip"))
        where = ", ".join(entry.get("datasets", [])) or ", not ".join(["all", *entry.get("skip", ())])
        named.append((code([name]), entry["kind"], own, str(entry.get("main", "")).strip("[]"), where))
    return f"{text}\n## Named metrics\n\n" + grid("name, kind, options, main output, data sets", named)


def tables() -> str:
    """Describe each table and column."""
    from comperdial.schema import TABLES
    from comperdial.schema import tables as module

    meanings, columns = entries(module.__doc__, "Tables"), entries(module.__doc__, "Columns")
    text = "## All tables\n"
    for table in TABLES.values():
        marks = {one.name: " (key)" if one.name in table.key else " (optional)" * one.nullable for one in table.fields}
        rows = [(code([one.name]) + marks[one.name], columns[one.name], one.expected) for one in table.fields]
        text += f"\n### {table.name}\n\nA row: {meanings[table.name]}\n\n" + grid("column, meaning, expected", rows)
    return text


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return what a key of the configuration may hold, in words."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return f"[{name}](#{name.lower()})"
    inner = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {}).values()), None)
    if isinstance(inner, dict):
        return f"names, each with {kind_of(inner)}"
    if schema.get("items"):
        return f"a list of: {kind_of(schema['items'])}"
    several = dict.fromkeys(kind_of(one) for one in schema.get("anyOf", ()) if one.get("type") != "null")
    words = schema.get("$comment") or code(schema.get("enum", ())) or schema.get("const") or " or ".join(several)
    return str(words or schema.get("type", "anything"))


def configuration() -> str:
    """Describe each key of params.yaml and study.yaml."""
    from comperdial.config.parameters import Parameters, Study

    models: dict[str, Any] = {}
    for top in (Parameters, Study):
        schema = top.model_json_schema()
        models |= {top.__name__: schema} | {name: models.get(name, one) for name, one in schema["$defs"].items()}
    text = "## All keys\n"
    for name, schema in models.items():
        needed = schema.get("required", [])
        rows = [
            (
                code([key]) + " (required)" * (key in needed),
                prose(one.get("description")),
                kind_of(one),
                one.get("default", ""),
            )
            for key, one in schema.get("properties", {}).items()
        ]
        text += f"\n### {name}\n\n{prose(schema.get('description'))}\n\n" + grid("key, meaning, value, default", rows)
    return text


def datasets() -> str:
    """List the data sets of the catalogue."""
    from comperdial.data.catalogue import load_catalogue

    rows = []
    for one in load_catalogue(ROOT / "data/sources.yaml").datasets.values():
        cited, licences = dict.fromkeys(f.citation for f in one.files.values()), {f.licence for f in one.files.values()}
        level = ", ".join(one.levels) or "pairs"
        rows.append((code([one.name]), one.title, level, "; ".join(cited), "; ".join(sorted(licences))))
    return "## All data sets\n\n" + grid("name, title, rated, from, licence", rows)


PAGES = {"command-line.md": commands, "metrics.md": metrics, "data-model.md": tables}
PAGES |= {"configuration.md": configuration, "data-sets.md": datasets}

if __name__ == "__main__":
    sys.stdout.write(PAGES[sys.argv[1]]())
