"""Detect secret keys among a judge's parameters, which would end up in the ledger, signatures and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Must not match max_tokens, stop_token_ids or bos_token, which are server parameters.
_NAME = re.compile(
    r"api.?key|private.?key|authori[sz]ation|secret|passw|\bpwd\b|bearer|credential|cookie|headers?$|^key$|^auth$"
    r"|(?:^|auth|access|api|refresh|session)[ _.-]?token$",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\b(?:sk|pk|rk|xai|nvapi|glpat|pplx)-[\w-]{3,}"  # OpenAI, Anthropic and similar
    r"|\b(?:hf|gsk|gh[a-z]|github_pat|r8|xox[a-z])[_-]\w{10,}"  # Hugging Face, Groq, GitHub, Replicate, Slack
    r"|\bAIza[\w-]{20,}|\bAKIA[A-Z\d]{12,}"  # Google, Amazon
    r"|\beyJ[\w-]{8,}\.[\w-]+"  # JSON web tokens
    r"|\b(?:bearer|basic)\s+[\w+/=.-]{6,}"
    r"|://[^/\s@]+:[^/\s@]+@"
    r"|-----BEGIN ",
    re.IGNORECASE,
)


def secret_in(parameters: Mapping[str, Any]) -> str | None:
    """Return the name of the first parameter, at any depth, that is or contains a secret key; None if there is none."""
    for name, value in parameters.items():
        if _NAME.search(str(name)) or is_secret(value):
            return str(name)
        for entry in value if isinstance(value, list | tuple) else [value]:
            if isinstance(entry, Mapping) and (inner := secret_in(entry)):
                return inner
    return None


def is_secret(value: object) -> bool:
    """Return whether a text, or one in a list, looks like a secret key."""
    if isinstance(value, list | tuple):
        return any(map(is_secret, value))
    return isinstance(value, str) and _VALUE.search(value) is not None
