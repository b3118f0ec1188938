"""Read YAML files safely and look up the line of each setting; :mod:`comperdial.config.checking` validates the content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from comperdial.core.errors import FileError
from comperdial.core.files import read_text

_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader, which also rejects duplicate keys and keys that are not text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.checked: set[yaml.Node] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        # Called first for each mapping, and again when others merge it, by then including the merged keys.
        if node not in self.checked:
            self.checked.add(node)
            seen = set()
            for key, _ in node.value:
                # Unquoted, YAML reads yes, no, on and off as booleans.
                wrong = "is not text: put it in quotes" if key.tag not in (_TEXT, _MERGE) else ""
                if wrong or key.value in seen:
                    problem = f"the key {key.value!r:.60} {wrong or 'is given twice: delete one of them'}"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        super().flatten_mapping(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401
        try:
            return super().construct_object(node, deep)
        except ValueError as error:
            # For example 2024-02-30.
            problem = f"{node.value!r:.60}: {error}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def load_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that contains a single mapping.

    Raises
    ------
    FileError
        For a syntax error, a duplicate or non-text key, or an impossible date or number; the message gives the line.
    """
    text = read_text(path)
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise FileError(f"not valid YAML ({error.problem})", where=f"{path}{line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise FileError(f"not valid YAML ({error})", where=str(path)) from error
    if not isinstance(content, dict):
        raise FileError(f"holds {type(content).__name__}", where=str(path), expected="one YAML mapping")
    return content


def line_of(path: str | Path, keys: Sequence[str | int]) -> int:
    """Return the line of a setting in a YAML file, or of its nearest enclosing mapping or list; list indices start at 0."""
    node = yaml.compose(read_text(path), yaml.CSafeLoader)
    line = 1
    for key in keys:
        children: list[Any] = node.value if isinstance(node, yaml.CollectionNode) else []
        if isinstance(node, yaml.SequenceNode):
            named = {number: (value, value) for number, value in enumerate(children)}
        else:
            named = {name.value: (name, value) for name, value in children}
        if key not in named:
            break
        line, node = named[key][0].start_mark.line + 1, named[key][1]
    return line
