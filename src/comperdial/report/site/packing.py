"""Columns of numbers and texts in few bytes, which a page can carry and a browser can read.

A number is kept as a whole number of steps of its last digit shown, above the least of its column. The bytes of a
column lie in planes (first all lowest bytes, then all second ones), since that is what deflate makes smallest. A text
is a number too: its place in a list.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from comperdial.core.errors import FileError

FORMAT = 1
# What is written about a column: where it lies, and how to read it.
Spec = dict[str, Any]
_LEVEL = 9
_HEADER = 4
_MOST_DECIMALS = 6


class Packer:
    """Takes columns, and gives them out as one text."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        # Some metrics are others under another name, which deflate does not see: they lie too far apart.
        self._placed: dict[bytes, int] = {}

    def numbers(self, values: npt.ArrayLike, decimals: int | None = None) -> Spec:
        """Add a column of numbers, NaN where missing; ``decimals`` are those shown (default: :func:`decimals_of`).

        Each is rounded as :func:`comperdial.report.render.number` rounds it.
        """
        array = np.asarray(values, dtype=np.float64)
        if decimals is None:
            decimals = decimals_of(array)
        distinct, where = np.unique(array, return_inverse=True)
        steps = [_steps(value, decimals) for value in distinct.tolist()]
        known = [step for step in steps if step is not None]
        least = min(known, default=0)
        # One code more than there are steps: the last one says that the value is missing.
        width = max(1, math.ceil(math.log(max(known, default=0) - least + 2, 256)))
        missing = 256**width - 1
        codes = np.array([missing if step is None else step - least for step in steps], dtype=np.int64)[where]
        return {"decimals": decimals, "least": least, **self._planes(codes.reshape(-1), width)}

    def texts(self, values: Iterable[str | None]) -> Spec:
        """Add a column of texts, None where missing."""
        places: dict[str, int] = {}
        found = [math.nan if value is None else places.setdefault(value, len(places)) for value in values]
        return {"texts": list(places), "of": self.numbers(found, 0)}

    def text(self, content: Mapping[str, Any]) -> str:
        """Return everything as one text (base64), ``content`` first: JSON with what :meth:`numbers` gave in it."""
        head = json.dumps(
            {"format": FORMAT, **content}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
        body = len(head).to_bytes(_HEADER, "little") + head + b"".join(self._parts)
        return base64.b64encode(zlib.compress(body, _LEVEL)).decode("ascii")

    def _planes(self, codes: npt.NDArray[np.int64], width: int) -> Spec:
        content = b"".join((codes >> (8 * plane) & 255).astype(np.uint8).tobytes() for plane in range(width))
        at = self._placed.setdefault(content, self._size)
        if at == self._size:
            self._parts.append(content)
            self._size += len(content)
        return {"at": at, "n": len(codes), "width": width}


class Unpacked:
    """What :meth:`Packer.text` made, read back as the page's own code reads it.

    Raises
    ------
    FileError
        When the text is none of this form.
    """

    def __init__(self, text: str) -> None:
        try:
            body = zlib.decompress(base64.b64decode(text, validate=True))
            end = _HEADER + int.from_bytes(body[:_HEADER], "little")
            self.content: dict[str, Any] = json.loads(body[_HEADER:end])
        except (ValueError, zlib.error) as error:
            raise FileError(f"not packed data ({error})", expected="base64 of deflated columns") from error
        if self.content.get("format") != FORMAT:
            raise FileError("packed data of another form", expected=f"format {FORMAT}")
        self._columns = body[end:]

    def numbers(self, spec: Spec) -> npt.NDArray[np.float64]:
        """Return a column of numbers, NaN where missing."""
        codes = np.zeros(spec["n"], dtype=np.int64)
        for plane in range(spec["width"]):
            start = spec["at"] + plane * spec["n"]
            codes += np.frombuffer(self._columns[start : start + spec["n"]], np.uint8).astype(np.int64) << (8 * plane)
        values = (codes + spec["least"]) / 10 ** spec["decimals"]
        return np.where(codes == 256 ** spec["width"] - 1, np.nan, values)

    def texts(self, spec: Spec) -> list[str | None]:
        """Return a column of texts, None where missing."""
        return [None if math.isnan(place) else spec["texts"][int(place)] for place in self.numbers(spec["of"])]


def decimals_of(values: npt.NDArray[np.float64]) -> int:
    """Return how many decimals show three digits or more of the largest value, and no more than the values have."""
    known = values[~np.isnan(values)]
    largest = float(np.abs(known).max(initial=0.0))
    magnitude = math.floor(math.log10(largest)) if largest else 0
    # Three decimals, as in the tables; fewer for numbers above 10, more for a metric whose values are all tiny.
    most = min(max(3 - max(magnitude, 0), 0) if magnitude >= -1 else 2 - magnitude, _MOST_DECIMALS)
    distinct = np.unique(known)
    for decimals in range(most):
        if np.array_equal(np.round(distinct, decimals), np.round(distinct, _MOST_DECIMALS)):
            return decimals
    return most


def _steps(value: float, decimals: int) -> int | None:
    """Return a number as steps of its last decimal, rounded as a table rounds it."""
    return None if math.isnan(value) else round(round(value, decimals) * 10**decimals)


def table(packer: Packer, columns: Mapping[str, Sequence[Any]], decimals: Mapping[str, int]) -> Spec:
    """Add the columns of a table: those named in ``decimals`` hold numbers, the others texts."""
    return {
        name: packer.numbers(np.asarray(values, dtype=np.float64), decimals[name])
        if name in decimals
        else packer.texts(list(values))
        for name, values in columns.items()
    }
