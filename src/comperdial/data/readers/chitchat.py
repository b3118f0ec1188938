"""The Chit-Chat challenge's conversations between people, from the package ``chitchat-dataset``, or from its file.

The package is found and never imported. What it holds is of one version, pinned here by its checksum: the catalogue of files
knows none that are fetched by pip. Conversations of exactly two speakers count; people are numbered as they first appear.
"""

from __future__ import annotations

from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from comperdial.core.errors import MissingResourceError, SchemaError
from comperdial.core.files import read_json, sha256
from comperdial.data.continuations import Conversation, ConversationReader, Message, merged
from comperdial.data.readers.base import get

PACKAGE = "chitchat-dataset"
VERSION = "0.9.0"
SHA256 = "d2a5d0bf6acf354fef51f3af39cbece2220d3b8f6086b658c3d335105798312a"
_REMEDY = f"Run `pip install --no-deps {PACKAGE}=={VERSION}`"


def located() -> Path | None:
    """Return where the package's conversations lie; None where it is not installed."""
    spec = find_spec(PACKAGE.replace("-", "_"))
    path = Path(spec.origin).with_name("dataset.json") if spec and spec.origin else None
    return path if path and path.is_file() else None


class ChitChat(ConversationReader):
    """Reader of ``conversations``; without a file of that role, of what the package holds."""

    # Whole histories of conversations of up to 564 utterances would be most of the table.
    history: ClassVar[int | None] = 20

    def conversations(self) -> list[Conversation]:
        """Return the conversations of two speakers in the order of their beginning.

        Raises
        ------
        MissingResourceError
            When there is no file, and the package is not installed or of another version.
        SchemaError
            When the file is not what the package holds: names the conversation and the message.
        """
        path = self.files.get("conversations") or _packaged()
        content = read_json(path)
        if not isinstance(content, dict) or not content:
            raise SchemaError("no conversations", where=str(path), expected="a JSON object of conversations")
        found = []
        for number, record in enumerate(content.values(), start=1):
            messages = _messages(record, f"{path}, conversation {number}")
            if len({message.speaker for message in messages}) == 2:
                found.append((messages[0].seconds or 0.0, number, messages))
        found.sort(key=lambda entry: entry[:2])
        numbers: dict[str, str] = {}
        for _, _, messages in found:
            for message in messages:
                numbers.setdefault(message.speaker, str(len(numbers) + 1))
        return [
            Conversation(
                f"{self.dataset}-{place:04d}",
                began - found[0][0],
                merged(messages),
                users={message.speaker: numbers[message.speaker] for message in messages},
                systems=dict.fromkeys((message.speaker for message in messages), "person"),
            )
            for place, (began, _, messages) in enumerate(found, start=1)
        ]


def _packaged() -> Path:
    path = located()
    if path is None:
        raise MissingResourceError(f"package {PACKAGE!r} is not installed", hint=_REMEDY)
    if (found := sha256(path)) != SHA256:
        raise MissingResourceError(
            f"the conversations of package {PACKAGE!r} have sha256 {found}",
            where=str(path),
            expected=f"{SHA256}, of version {VERSION}",
            hint=_REMEDY,
        )
    return path


def _messages(record: Any, where: str) -> list[Message]:  # noqa: ANN401
    found: list[Message] = []
    for group in get(record, "messages", list, where):
        for message in group if isinstance(group, list) else [group]:
            at = f"{where}, message {len(found) + 1}"
            stamp = get(message, "timestamp", str, at)
            try:
                seconds = datetime.fromisoformat(stamp).timestamp()
            except ValueError as error:
                raise SchemaError(f"timestamp is {stamp!r}", where=at, expected="a date and a time") from error
            found.append(Message(get(message, "sender", str, at), get(message, "text", str, at), seconds))
    if not found:
        raise SchemaError("no messages", where=where, expected="one message or more")
    return found
