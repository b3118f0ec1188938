"""Shards: the parts that a large job is cut into, each of which can be made alone and on another machine."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from comperdial.errors import ConfigError

BLOCK = 256
"""Responses that are always scored together, whatever the shards: a shard is made of whole blocks.

A model's numbers depend, in their last digits, on what stands in a batch with a text. Small enough that even the demo's
10,395 responses make 16 shards, large enough that a batch is worth its start.
"""


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

    def rows(self, total: int) -> range:
        """Return which rows of a table of ``total`` responses are this shard's: a run of whole blocks.

        All shards together have each row once, in order; their sizes differ by one block at most.
        """
        blocks = -(-total // BLOCK)
        start, stop = (blocks * number // self.count * BLOCK for number in (self.number - 1, self.number))
        return range(min(start, total), min(stop, total))

    def holds(self, text: str) -> bool:
        """Say whether something that is found by its text, such as a request to a judge, is this shard's.

        Each text is one shard's, wherever it occurs: no two shards ask the same.
        """
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1


WHOLE = Shard()
"""The one shard of what is not cut."""


def shards(total: int, size: int) -> int:
    """Return into how many shards ``total`` responses are cut so that each has about ``size``; at least 1.

    Raises
    ------
    ConfigError
        When the size is not above 0.
    """
    if size < 1:
        raise ConfigError(f"shards of {size} responses", expected="1 or more")
    return max(1, min(-(-total // size), -(-total // BLOCK)))
