"""The parts of the documentation that are generated from the code: ``python docs/reference.py metrics.md`` prints one."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = {"Reports": "report.html", "Tables": "tables/*.html", "Figures": "figures/*.svg", "Notebooks": "*.html"}


def grid(names: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    head = names.split(", ")
    lines = [head, ["---"] * len(head), *([re.sub(r"\s+", " ", str(c)).replace("|", "\\|") for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def code(names: Iterable[object]) -> str:
    """Return names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown, without its sections."""
    text = re.split(r"\n\w+\n-{3,}\n", inspect.cleandoc(docstring or ""))[0]
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`").rstrip()


def entries(docstring: str | None, section: str) -> dict[str, str]:
    """Return the entries of a docstring's section by name."""
    _, _, rest = inspect.cleandoc(docstring or "").partition(f"\n{section}\n{'-' * len(section)}\n")
    own = re.split(r"\n\n\w+\n-{3,}\n", rest)[0]
    return {name: prose(text) for name, text in re.findall(r"^(\S+)\n((?:[ ]+\S.*(?:\n|$))+)", own, flags=re.M)}


def commands() -> str:
    """Describe each command and its options."""
    from typer.main import get_command

    from comperdial.cli import app

    def describe(command: Any, name: str) -> str:  # noqa: ANN401
        with command.make_context(name, [], resilient_parsing=True) as context:
            if inner := getattr(command, "commands", None):
                return "\n".join(describe(one, f"{name} {word}".strip()) for word, one in inner.items())
            rows = [option.get_help_record(context) for option in command.params]
        shown = [(f"`{row[0]}`", row[1].replace("<", "&lt;")) for row in rows if row and not row[0].startswith("--help")]
        return f"### {name}\n\n{prose(command.help)}\n\n" + (grid("option, meaning", shown) if shown else "")

    return "## All commands\n\n" + describe(get_command(app), "")


def metrics() -> str:
    """Describe each kind of metric and the entries of the registry."""
    from comperdial.config.registry import registered
    from comperdial.core.plugins import load_class
    from comperdial.metrics import _HELPERS, Metric, create, kinds

    text = "## Kinds\n"
    for kind in kinds():
        metric, made = create(kind), load_class("comperdial.metrics", kind, Metric, kind="metric", helpers=_HELPERS)
        limits = {output: "none" if b is None else f"{b[0]:g} to {b[1]:g}" for output, b in metric.bounds.items()}
        bounds = next(iter(limits.values())) if len({*limits.values()}) == 1 else "; ".join(map(": ".join, limits.items()))
        options = [f"`{field.name}` ({field.type}, default `{field.default!r}`)" for field in fields(metric)]
        text += f"\n### {kind}\n\n{prose(made.__doc__)}\n\n" + grid(
            "property, value",
            [
                ("outputs, the main one first", code(metric.outputs)),
                ("needs, besides the response", ", ".join(metric.needs) or "nothing"),
                ("bounds", bounds),
                ("options", "; ".join(options) or "none"),
            ],
        )
    rows = []
    for name, entry in registered("metrics").items():
        own = {key: value for key, value in entry.items() if key not in ("kind", "main", "label", "datasets", "skip")}
        limit = [f"only {code(entry['datasets'])}"] if "datasets" in entry else []
        limit += [f"not {code(entry['skip'])}"] if "skip" in entry else []
        options = code(f"{key}: {value}" for key, value in own.items())
        rows.append((f"`{name}`", entry["kind"], options, entry.get("main", ""), "; ".join(limit)))
    return f"{text}\n## Named metrics\n\n" + grid("name, kind, options, main output, data sets", rows)


def tables() -> str:
    """Describe each table and column."""
    from comperdial.schema import TABLES
    from comperdial.schema import tables as module

    rows, columns = entries(module.__doc__, "Tables"), entries(module.__doc__, "Columns")
    text = ""
    for table in TABLES.values():
        text += f"\n### {table.name}\n\nA row is {rows[table.name]}\n\n" + grid(
            "column, meaning, expected",
            (
                (f"`{f.name}`{' (key)' * (f.name in table.key)}{' (optional)' * f.nullable}", columns[f.name], f.expected)
                for f in table.fields
            ),
        )
    return f"## All tables\n{text}"


def configuration() -> str:
    """Describe each key of params.yaml and study.yaml."""
    from comperdial.config.parameters import Parameters, Study

    def kind(schema: Mapping[str, Any]) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"a mapping of names to: {kind(schema['additionalProperties'])}"
        if schema.get("type") == "array" and schema.get("items"):
            return f"a list of: {kind(schema['items'])}"
        words = schema.get("description") or code(schema.get("enum", ())) or schema.get("const")
        several = " or ".join(dict.fromkeys(kind(one) for one in schema.get("anyOf", ()) if one.get("type") != "null"))
        return str(words or several or schema.get("type", "any"))

    models: dict[str, Any] = {}
    for top in (Parameters, Study):
        schema = top.model_json_schema()
        models |= {top.__name__: (schema, top), **{n: (s, None) for n, s in schema["$defs"].items() if n not in models}}
    text = "## All keys\n"
    for name, (schema, _) in models.items():
        meanings, needed = entries(schema.get("description"), "Attributes"), schema.get("required", [])
        rows = [
            (
                f"`{key}`{' (required)' * (key in needed)}",
                meanings.get(key, ""),
                kind(value) + (f"; default `{value['default']}`" if value.get("default") not in (None, {}, []) else ""),
            )
            for key, value in schema.get("properties", {}).items()
        ]
        text += f"\n### {name}\n\n{prose(schema.get('description'))}\n\n" + grid("key, meaning, value", rows)
    return text


def datasets() -> str:
    """List the data sets of the catalogue."""
    from comperdial.data.catalogue import load_catalogue

    rows = [
        (
            f"`{one.name}`",
            one.title,
            ", ".join(one.levels) or "pairs",
            "; ".join(dict.fromkeys(file.citation for file in one.files.values())),
            "; ".join(dict.fromkeys(file.licence for file in one.files.values())),
        )
        for one in load_catalogue(ROOT / "data/sources.yaml").datasets.values()
    ]
    return "## All data sets\n\n" + grid("name, title, rated, from, licence", rows)


def published() -> str:
    """List the rendered results that are here; those in results/local quote texts that may not be published."""
    text = ""
    for folder in sorted({*ROOT.glob("results/*/"), *ROOT.glob("results/studies/*/")}):
        for title, pattern in RESULTS.items():
            found = sorted(folder.glob(pattern)) if folder.name != "local" else []
            if found and (title != "Notebooks" or folder.name == "notebooks"):
                links = [f"- [{path.stem}](../{path.relative_to(ROOT)})" for path in found]
                text += f"\n## {folder.name}: {title.lower()}\n\n" + "\n".join(links) + "\n"
    return text or "\nNo results are here. `dvc pull` fetches those that are published.\n"


PAGES = {
    "command-line.md": commands,
    "metrics.md": metrics,
    "data-model.md": tables,
    "configuration.md": configuration,
    "data-sets.md": datasets,
    "published.md": published,
}


if __name__ == "__main__":
    print(PAGES[sys.argv[1]]())
