"""Shards: the parts that a large job is cut into, each of which can be made alone and on another machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from comperdial.core.errors import ConfigError

S = TypeVar("S", bound=Sequence[object])


@dataclass(frozen=True)
class Shard:
    """The ``number``-th, from 1, of ``count`` shards."""

    number: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ConfigError(f"shard {self}", expected="a number from 1 to how many there are, such as 3/16")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``3/16``.

        Raises
        ------
        ConfigError
            When it is no shard.
        """
        if not re.fullmatch(r"[0-9]{1,9}/[0-9]{1,9}", text):
            raise ConfigError(f"shard {text!r}", expected="its number and how many there are, such as 3/16")
        number, count = text.split("/")
        return cls(int(number), int(count))

    def of(self, items: S) -> S:
        """Return this shard's part of a sequence, such as the range of a table's rows.

        All shards together have each item once, in order; their sizes differ by one at most.
        """
        start, stop = (len(items) * number // self.count for number in (self.number - 1, self.number))
        return items[start:stop]  # type: ignore[return-value]

    def holds(self, text: str) -> bool:
        """Say whether something that is found by its text, such as a request to a judge, is this shard's.

        Each text is one shard's, wherever it occurs: no two shards ask the same.
        """
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1


WHOLE = Shard()
"""The one shard of what is not cut."""
