"""What the workers of a run share from its beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comperdial.judges.base import Completion, Parsed
from comperdial.judges.limits import Throttle
from comperdial.judges.prices import Budget, Price

if TYPE_CHECKING:
    from tqdm import tqdm

    from comperdial.judges.client import Client
    from comperdial.judges.ledger import Shelf


@dataclass(frozen=True)
class Job:
    """What a run has to do, but for the slots; see :func:`~comperdial.judges.running.run_async`."""

    shelf: Shelf
    client: Client
    samples: int
    retries: int
    parse: Callable[[Completion], Parsed]
    parameters: Mapping[str, Any]
    throttle: Throttle
    price: Price | None
    budget: Budget
    bar: tqdm[Any] | None
