"""Write users' files for tests and read them."""

import json

from comperdial.data import readers


def write(folder, name, content):
    """Write bytes and texts as they are, lists as JSON or as one record a line, by the name's ending."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif name.lower().endswith(("jsonl", "ndjson")):
        path.write_text("".join(json.dumps(record) + "\n" for record in content))
    else:
        path.write_text(json.dumps(content))
    return path


def tables(path, **options):
    return readers.read("table", "mine", {"table": path}, options)


def ratings(path, **options):
    """Return {"item system annotator dimension": rating} of a file."""
    frame = tables(path, **options)["ratings"]
    keys = frame[["item_id", "system_id", "annotator_id", "dimension"]].itertuples(index=False, name=None)
    return dict(zip(map(" ".join, keys), frame["rating"], strict=True))


def rows(frame, *columns):
    return list(frame[list(columns)].itertuples(index=False, name=None))
