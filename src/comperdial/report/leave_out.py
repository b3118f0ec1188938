"""How tables and figures show what is left of a correlation without one of the systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from comperdial.report.few import is_few

MARK = "‡"
LEGEND = f"{MARK} marks a correlation that falls by more than half when one of the systems is left out."
_COLUMNS = (
    "Each correlation was computed again without each system in turn. The CSV file has the lowest value that is left "
    f"(loso_value), the system that was left out (loso_system), and whether that is a fall by more than half "
    f"(loso_halved, the {MARK}). A system without a value: no correlation is left without it"
)
_FEW = {True: "fewer than five systems", False: "fewer than three systems, or it is not known which is which"}


def is_halved(record: Mapping[Any, Any], value: str = "value") -> bool | None:
    """Say whether a correlation falls by more than half without some system; None where none could be left out.

    Parameters
    ----------
    record
        ``loso_value`` and ``loso_system`` as in table ``correlations``; without these columns it is None.
    value
        The name of the correlation with all systems.
    """
    if not isinstance(record.get("loso_system"), str):
        return None
    full, left = record[value], record["loso_value"]
    # Towards 0 and beyond, whatever the sign.
    return bool(pd.isna(left) or (left < full / 2 if full > 0 else left > full / 2))


def mark(record: Mapping[Any, Any], value: str = "value") -> str:
    """Return the mark of a correlation that falls by more than half, or nothing."""
    return MARK if is_halved(record, value) else ""


def with_halved(frame: pd.DataFrame, value: str = "value") -> pd.DataFrame:
    """Add column ``loso_halved``, missing where no system could be left out."""
    found = [is_halved(record, value) for record in frame.to_dict("records")]
    return frame.assign(loso_halved=pd.array(found, dtype="boolean"))


def lowest(record: Mapping[Any, Any]) -> str:
    """Write the lowest value without a system, and which system: ``0.213 (New Human Generated)``."""
    if not isinstance(record.get("loso_system"), str):
        return "–"
    # Never "-0.000"; what writes tables is not imported here, since figures are drawn with this module too.
    digits = 2 if is_few(record) else 3
    left = "none" if pd.isna(record["loso_value"]) else f"{round(record['loso_value'], digits) + 0.0:.{digits}f}"
    return f"{left} ({record['loso_system']})"


def with_legend(caption: str, frame: pd.DataFrame, value: str = "value") -> str:
    """Append the mark's meaning to the caption of a frame that has one to mark."""
    return f"{caption} {LEGEND}" if any(mark(record, value) for record in frame.to_dict("records")) else caption


def notes(frame: pd.DataFrame, titles: Mapping[str, str] | None = None, value: str = "value") -> list[str]:
    """Return notes on what was left out, and where there was nothing to leave out, why.

    Parameters
    ----------
    frame
        Correlations with ``dataset``, ``level``, ``loso_value`` and ``loso_system``.
    titles
        What data sets are called; None: they need not be named.
    value
        The name of the correlation with all systems.
    """
    shown = frame[frame[value].notna()]
    if shown.empty:
        return []
    without: dict[bool, list[str]] = {}
    for (dataset, level), group in shown.groupby(["dataset", "level"], sort=False, observed=True):
        if group["loso_system"].isna().all():
            place = f"{level} level" if titles is None else f"{titles.get(str(dataset), dataset)}, {level} level"
            without.setdefault(level == "system", []).append(place)
    found = [_COLUMNS] if shown["loso_system"].notna().any() else []
    return found + [f"No system is left out at {'; '.join(where)}: {_FEW[of]}" for of, where in without.items()]
