"""Models by name: find, fetch and run them."""

from __future__ import annotations

from comperdial.models.store import Model, find, label, missing, pinned, verified

__all__ = ["Model", "find", "label", "missing", "pinned", "verified"]
