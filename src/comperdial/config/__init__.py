"""YAML files, read safely, and the line of each setting; :mod:`comperdial.config.checking` checks what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from comperdial.core.errors import FileError
from comperdial.core.files import read_text

_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which also refuses keys that are given twice or are no text, and names the line of a bad value."""

    def construct_document(self, node: yaml.Node) -> Any:  # noqa: ANN401
        # Before merged keys are joined with a mapping's own.
        _check_keys(node, (), set())
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            # 2024-02-30, a number of 5,000 digits, !!bool maybe.
            kind = node.tag.rpartition(":")[2]
            raise _problem(node, f"{node.value!r:.60} cannot be read as {kind}") from error


def _check_keys(node: yaml.Node, outer: tuple[yaml.Node, ...], checked: set[yaml.Node]) -> None:
    if node in outer:
        raise _problem(node, "a value that contains itself")
    if node in checked:
        return
    checked.add(node)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    seen = set()
    for key, _ in pairs:
        if key.tag not in (_TEXT, _MERGE):
            # Without quotes, YAML reads yes, no, on and off as true and false.
            raise _problem(key, f"the key {key.value!r:.60} is no text: put it in quotes")
        if key.value in seen and key.tag != _MERGE:
            raise _problem(key, f"the key {key.value!r:.60} is given twice: delete one of them")
        seen.add(key.value)
    inside = node.value if isinstance(node, yaml.SequenceNode) else [value for _, value in pairs]
    for value in inside:
        _check_keys(value, (*outer, node), checked)


def _problem(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def load_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises
    ------
    FileError
        Names the line of a syntax error, a key that is given twice or is no text, a date or number that cannot be.
    """
    text = read_text(path)
    try:
        content = yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise FileError(f"not valid YAML ({error.problem})", where=f"{path}{line}") from error
    except yaml.reader.ReaderError as error:
        number = text.count("\n", 0, error.position) + 1
        problem = f"not valid YAML (the character U+{ord(text[error.position]):04X})"
        raise FileError(problem, where=f"{path}, line {number}") from error
    except (ValueError, OverflowError, RecursionError) as error:
        # Such as "\\UFFFFFFFF", which is beyond what Unicode has.
        raise FileError(f"not valid YAML ({error})", where=str(path)) from error
    if not isinstance(content, dict):
        raise FileError(f"holds {type(content).__name__}", where=str(path), expected="one YAML mapping")
    return content


def line_of(path: str | Path, keys: Sequence[str | int]) -> int:
    """Return the line of a setting in a YAML file, or of the nearest mapping or list around it that is there.

    Parameters
    ----------
    path
        A file that :func:`load_yaml` reads.
    keys
        The path of the setting: names of keys, and numbers of entries, which count from 0.
    """
    node = yaml.compose(read_text(path), yaml.SafeLoader)
    line = 1
    for key in keys:
        child = _child(node, key)
        if child is None:
            break
        line, node = child[0].start_mark.line + 1, child[1]
    return line


def _child(node: yaml.Node | None, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node of a key or an entry, and its value; of a mapping, its own keys before merged ones."""
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    merged = [value for name, value in pairs if name.tag == _MERGE]
    merged = [one for value in merged for one in (value.value if isinstance(value, yaml.SequenceNode) else [value])]
    own = ((name, value) for name, value in pairs if name.tag != _MERGE and name.value == key)
    return next(own, None) or next((child for other in merged if (child := _child(other, key))), None)
