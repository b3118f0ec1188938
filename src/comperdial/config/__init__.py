"""YAML files, read safely, and the line of each setting; :mod:`comperdial.config.checking` checks what they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from comperdial.core.errors import FileError
from comperdial.core.files import read_text

# What files of ours hold: what JSON has, and dates. Any other tag (!!binary, !!set, !!python/…) is refused.
_TAGS = {
    f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge")
}
# A few lines of aliases of aliases spell out billions of values.
_MOST_VALUES = 1_000_000


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which refuses what it would let pass, and names the line of what it cannot read."""

    def construct_document(self, node: yaml.Node) -> Any:  # noqa: ANN401
        if self._size(node, {}) > _MOST_VALUES:
            raise _problem(node, f"its aliases spell out more than {_MOST_VALUES:,} values")
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            # 2024-02-30, a number of 5,000 digits, !!bool maybe.
            kind = node.tag.rpartition(":")[2]
            kind = {"timestamp": "date", "int": "whole number", "float": "number"}.get(kind, kind)
            raise _problem(node, f"{node.value!r:.60} is no {kind}") from error

    def _size(self, node: yaml.Node, known: dict[yaml.Node, int]) -> int:
        """Check a node and all in it; return how many values it spells out."""
        if node in known:
            if not known[node]:
                raise _problem(node, "a value that contains itself")
            return known[node]
        known[node] = 0
        if node.tag not in _TAGS:
            raise _problem(node, f"the tag {node.tag!r:.60}, which is not read here")
        inside: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)
            inside = [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            inside = node.value
        else:
            value = self.construct_object(node)
            if value != value:
                raise _problem(node, "not a number (.nan)")
            if isinstance(value, str) and (bad := re.search("[\0\ud800-\udfff]", value)):
                # Escaped in quotes: no name of a file can hold the one, no file the other.
                raise _problem(node, f"the character U+{ord(bad[0]):04X}")
        known[node] = 1 + sum(self._size(part, known) for part in inside)
        return known[node]

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.tag != "tag:yaml.org,2002:str":
                # Without quotes, YAML reads yes, no, on and off as true and false.
                raise _problem(key, f"the key {key.value!r:.60} is no text: put it in quotes")
            if not key.value.isprintable():
                raise _problem(key, f"the key {key.value!r:.60} has a line break or another control character")
            if key.value in seen:
                raise _problem(key, f"the key {key.value!r:.60} is given twice: delete one of them")
            seen.add(key.value)


def _problem(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def load_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises
    ------
    FileError
        Names the line of a syntax error, a key that is given twice or is no text, a date or number that cannot be.
    """
    content = parse_yaml(read_text(path), str(path))
    if not isinstance(content, dict):
        raise FileError(f"holds {type(content).__name__}", where=str(path), expected="one YAML mapping")
    return content


def parse_yaml(text: str, where: str) -> Any:  # noqa: ANN401
    """Parse YAML.

    Raises
    ------
    FileError
        As :func:`load_yaml`.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise FileError(f"not valid YAML ({error.problem})", where=f"{where}{line}") from error
    except yaml.reader.ReaderError as error:
        number = text.count("\n", 0, error.position) + 1
        raise FileError(
            f"not valid YAML (the character U+{ord(text[error.position]):04X})", where=f"{where}, line {number}"
        ) from error
    except (ValueError, OverflowError) as error:
        # Such as "\\UFFFFFFFF", which is beyond what Unicode has.
        raise FileError(f"not valid YAML ({error})", where=where) from error
    except RecursionError as error:
        raise FileError("not valid YAML (nested too deeply)", where=where) from error


def line_of(path: str | Path, keys: Sequence[str | int]) -> int:
    """Return the line of a setting in a YAML file, or of the nearest mapping or list around it that is there.

    Parameters
    ----------
    path
        A file that :func:`load_yaml` reads.
    keys
        The way to the setting: names of keys, and numbers of entries, which count from 0.
    """
    node = yaml.compose(read_text(path), yaml.SafeLoader)
    line = 1
    for key in keys:
        found = _child(node, key)
        if found is None:
            break
        at, node = found
        line = at.start_mark.line + 1
    return line


def _child(node: yaml.Node | None, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return where a key or an entry stands, and its value; of a mapping, its own keys before merged ones."""
    if isinstance(node, yaml.SequenceNode):
        return (node.value[key], node.value[key]) if isinstance(key, int) and key < len(node.value) else None
    if not isinstance(node, yaml.MappingNode):
        return None
    merged: list[yaml.Node] = []
    for name, value in node.value:
        if name.tag == "tag:yaml.org,2002:merge":
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        elif name.value == key:
            return name, value
    return next((found for other in merged if (found := _child(other, key))), None)
