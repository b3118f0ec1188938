"""Artifacts: what the DAG makes, each declared once, next to the function that makes it.

A declaration says which files there are (a pattern, and the names that fill it), what each is made of, which settings it reads
and its caption. :mod:`comperdial.jobs` asks it on Snakemake's behalf; ``comperdial do`` calls the function with the inputs,
the settings and the outputs as keyword arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Maker = TypeVar("Maker", bound=Callable[..., Any])

TABLES = ("systems", "contexts", "personas", "responses", "ratings")
"""The tables that a data set is read into."""


def _nothing(*_: Any, **__: Any) -> dict[str, Any]:  # noqa: ANN401
    return {}


@dataclass(frozen=True)
class Artifact:
    """One kind of files that the DAG makes.

    Attributes
    ----------
    make
        The function that makes it. A table's returns a :class:`~comperdial.report.document.Document`, a figure's the figure
        and the frame that it shows, a page's its HTML; one of ``files`` writes its outputs itself.
    kind
        ``table``, ``figure``, ``page`` or ``files``.
    outputs
        The files by name, with ``{wildcards}``; of a table, figure or page one pattern, ``stem``, without suffix.
    of
        Given the plan, the wildcards of each file that can be made; only these are targets.
    inputs, settings
        Given the plan and the wildcards: the files by name (a path, or a list), and all else that the result depends on, as
        JSON has it. What a job of a study or a data set does not use has no place in it: a change of it would make it stale.
    code
        Given the plan and the wildcards: modules beside those that the function itself runs, or package files by path.
    libraries
        Those whose version the result depends on.
    told
        A dataclass of inputs and settings that several functions take alike: the function's first argument.
    caption
        Given the plan and the wildcards, what the report says of it.
    category
        Its place in the report.
    datasets
        Given the plan and the wildcards: the data sets that it shows. `snakemake` alone makes what shows chosen ones only.
        Default: the wildcard ``dataset``, or else all of the study's.
    temporary
        Whether its files go once they were used.
    on_request
        Given the plan and the wildcards: whether it is part of no target, and made when it is asked for by name.
    """

    make: Callable[..., Any]
    kind: str
    outputs: Mapping[str, str]
    of: Callable[[Any], Iterable[Mapping[str, str]]]
    inputs: Callable[..., Mapping[str, Any]] = _nothing
    settings: Callable[..., Mapping[str, Any]] = _nothing
    code: Callable[..., Iterable[str]] = _nothing
    libraries: tuple[str, ...] = ()
    told: type | None = None
    caption: Callable[..., str] = field(default=lambda *_, **__: "")
    category: str = ""
    datasets: Callable[..., Iterable[str]] | None = None
    temporary: bool = False
    on_request: Callable[..., bool] = field(default=lambda *_, **__: False)

    @property
    def name(self) -> str:
        """Return ``module:function``, the module below the package."""
        return f"{self.make.__module__.removeprefix('comperdial.')}:{self.make.__name__}"

    @property
    def rule(self) -> str:
        """Return the name of the function, which is the rule's."""
        return self.make.__name__

    @property
    def about(self) -> str:
        """Return the first line of the function's documentation, without the full stop."""
        return (self.make.__doc__ or self.rule).partition("\n")[0].rstrip(".")

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Return what :meth:`run` takes, by name."""
        own = dict(inspect.signature(self.make).parameters)
        if self.told is None:
            return own
        return dict(list(own.items())[1:]) | dict(inspect.signature(self.told).parameters)

    def run(self, **said: Any) -> Any:  # noqa: ANN401
        """Call the function with inputs and settings by name, and outputs where it writes them itself."""
        if self.told is None:
            return self.make(**said)
        alike = {name: said.pop(name) for name in inspect.signature(self.told).parameters if name in said}
        return self.make(self.told(**alike), **said)

    @property
    def study(self) -> str | None:
        """Return the study in whose folder it is declared; None if it is of any data set."""
        parts = self.make.__module__.split(".")
        return parts[2] if parts[1] == "studies" else None

    @property
    def log(self) -> str:
        """Return the pattern of its jobs' logs."""
        return "/".join(["logs", self.rule, *(f"{{{wildcard}}}" for wildcard in self.wildcards)]) + ".log"

    @property
    def suffix(self) -> str:
        """Return the suffix of the form that stands for all forms of a table, figure or page."""
        return ".png" if self.kind == "figure" else ".html"

    @property
    def wildcards(self) -> tuple[str, ...]:
        """Return the names in the patterns."""
        return tuple(dict.fromkeys(re.findall(r"{(\w+)}", " ".join(self.outputs.values()))))


ARTIFACTS: dict[str, Artifact] = {}
"""Every artifact whose module was imported, by its name."""


def files(outputs: Mapping[str, str], *, of: Callable[[Any], Iterable[Any]], **said: Any) -> Callable[[Maker], Maker]:  # noqa: ANN401
    """Declare files that the decorated function writes; ``of`` may give plain names where there is one wildcard."""
    return _declare("files", outputs, of, said)


def table(stem: str, *, of: Callable[[Any], Iterable[Any]] | None = None, **said: Any) -> Callable[[Maker], Maker]:  # noqa: ANN401
    """Declare a table: ``results/<stem>`` in all forms, made of the document that the function returns."""
    return _declare("table", {"stem": f"results/{stem}"}, of, said)


def figure(stem: str, *, of: Callable[[Any], Iterable[Any]] | None = None, **said: Any) -> Callable[[Maker], Maker]:  # noqa: ANN401
    """Declare a figure: ``results/<stem>`` in all forms, made of the figure and the frame that the function returns."""
    return _declare("figure", {"stem": f"results/{stem}"}, of, said)


def page(stem: str, *, of: Callable[[Any], Iterable[Any]] | None = None, **said: Any) -> Callable[[Maker], Maker]:  # noqa: ANN401
    """Declare a page: ``results/<stem>.html``, made of the HTML that the function returns."""
    return _declare("page", {"stem": f"results/{stem}"}, of, said)


def _declare(
    kind: str, outputs: Mapping[str, str], of: Callable[[Any], Iterable[Any]] | None, said: dict[str, Any]
) -> Callable[[Maker], Maker]:
    if isinstance(caption := said.get("caption"), str):
        said["caption"] = lambda *_, **__: caption

    def declare(make: Maker) -> Maker:
        def instances(plan: Any) -> list[Mapping[str, str]]:  # noqa: ANN401
            names = list(of(plan)) if of else [{}]
            return [{made.wildcards[0]: name} if isinstance(name, str) else name for name in names]

        made = Artifact(make, kind, outputs, instances, **said)
        ARTIFACTS[made.name] = made
        return make

    return declare
