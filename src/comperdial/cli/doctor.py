"""The command that lists what is installed and what is missing."""

from __future__ import annotations

import os
import platform
import re
from collections import defaultdict

from comperdial import __version__
from comperdial.cli import options as o

# Extras for users; the others are for development.
_EXTRAS = {
    "neural": "metrics that run a model",
    "judge": "judges behind OpenAI's protocol",
    "workflow": "Snakemake, DVC and the notebooks",
}
_REQUIREMENT = re.compile(r"^([\w.-]+)")


def packages_of(extra: str) -> list[str]:
    """Return the packages in an extra of this package."""
    from importlib.metadata import requires

    wanted = [text for text in requires("comperdial") or () if f'extra == "{extra}"' in text.replace("'", '"')]
    return [match[1] for text in wanted if (match := _REQUIREMENT.match(text))]


def how_to_install(module: str) -> str:
    """Return the command that installs a missing module: an extra, or a single package."""
    package = {"sklearn": "scikit-learn", "bert_score": "bert-score"}.get(module, module)
    extra = next((extra for extra in _EXTRAS if package in packages_of(extra)), None)
    return f"pip install 'comperdial[{extra}]'" if extra else f"pip install {package}"


@o.command()
def doctor() -> None:
    """List what is installed, which metrics can run here, and how to install the rest."""
    from comperdial.core.versions import installed
    from comperdial.data import sources
    from comperdial.metrics.named import metric_named, read_entries

    print(f"comperdial {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for extra, about in _EXTRAS.items():
        versions = {package: installed(package) for package in packages_of(extra)}
        missing = [package for package, version in versions.items() if version == "absent"]
        print(f"\n[{extra}] {about}: {'missing' if missing else 'installed'}")
        if here := [f"{package} {version}" for package, version in versions.items() if version != "absent"]:
            print(f"  installed: {', '.join(here)}")
        if missing:
            print(f"  not installed: {', '.join(missing)}\n  to install: pip install 'comperdial[{extra}]'")
        if extra == "judge":
            keys = [name for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY") if os.environ.get(name)]
            print(f"  keys in the environment: {', '.join(keys) or 'none; set OPENAI_API_KEY for OpenAI'}")
    entries = read_entries()
    reasons = {name: metric_named(name, entries).unavailable() for name in entries}
    print(f"\nmetrics that run here: {', '.join(name for name, reason in reasons.items() if not reason)}")
    lacking = defaultdict(list)
    for name, reason in reasons.items():
        if reason:
            lacking[reason].append(name)
    for reason, names in lacking.items():
        print(f"  not run here: {', '.join(names)}\n    {reason}")
    if any("is not present" in reason for reason in lacking):
        print("  to get a model: comperdial models fetch NAME (`comperdial models` lists them)")
    mirror = os.environ.get(sources.MIRROR_VARIABLE)
    print(f"\npublic data: {f'from the folder {mirror}' if mirror else 'downloaded over HTTPS (`comperdial fetch`)'}")
