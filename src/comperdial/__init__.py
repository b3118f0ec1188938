"""ComperDial Bench: evaluate automatic dialogue metrics against human ratings.

>>> import comperdial
>>> f1 = comperdial.metric("f1")
>>> f1.score(["i like green tea"], references=["i like tea"])["f1"].round(3).tolist()
[0.857]
"""

from typing import TYPE_CHECKING, Any

from comperdial.core.errors import ComperdialError

if TYPE_CHECKING:
    from comperdial.api import Audit, audit, compare, correlate, read, score
    from comperdial.judges.own import judge
    from comperdial.metrics import create as metric

__version__ = "0.14.0"
__all__ = [
    "Audit",
    "ComperdialError",
    "__version__",
    "audit",
    "compare",
    "correlate",
    "judge",
    "metric",
    "read",
    "score",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    # Imported lazily: this imports numpy, which commands must not load before they can handle Ctrl-C.
    if name == "metric":
        from comperdial.metrics import create

        return create
    if name == "judge":
        from comperdial.judges.own import judge

        return judge
    if name in __all__:
        from comperdial import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
