"""YAML files: read, and checked against a JSON schema with one message for the first thing wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from comperdial.errors import ConfigError, FileError
from comperdial.files import read_text


def load_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping; a syntax error is named by line."""
    try:
        content = yaml.safe_load(read_text(path))
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise FileError(f"not valid YAML ({error.problem})", where=f"{path}{line}") from error
    if not isinstance(content, dict):
        raise FileError(f"holds {type(content).__name__}", where=str(path), expected="one YAML mapping")
    return content


def check(config: dict[str, Any], schema: str | Path, *, where: str = "params.yaml") -> None:
    """Check a configuration against a JSON schema.

    Raises
    ------
    ConfigError
        Names the setting at fault, what it holds and what was expected.
    """
    import jsonschema

    validator = jsonschema.Draft202012Validator(load_yaml(schema))
    error = jsonschema.exceptions.best_match(validator.iter_errors(config))
    if error is None:
        return
    setting = ".".join(str(part) for part in error.absolute_path) or "(top level)"
    expected = None
    if error.validator == "enum":
        expected = "one of " + ", ".join(map(str, error.validator_value))
    elif error.validator == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        expected = "one of " + ", ".join(known) if known else None
    raise ConfigError(
        f"setting {setting}: {error.message}", where=where, expected=expected or error.schema.get("description")
    )
