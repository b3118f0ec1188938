"""Commands that render the report, one page that opens offline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from comperdial.cli.common import add_kind, add_not_run, add_simulated, add_target, json_object, read_target
from comperdial.cli.data_set import read_ratings, suffix_of, table_of


def add_kinds(kinds: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's kinds."""
    kind = add_kind(
        kinds, "site", _site, "a page of results and dialogues that opens offline", "the HTML file", inputs="scores"
    )
    kind.add_argument("--tables", type=Path, required=True, help="the data set's folder of tables")
    kind.add_argument("--rated", nargs="*", choices=["turn", "dialogue"], default=[], help="the levels with ratings")
    kind.add_argument("--title", required=True, help="the data set's title")
    kind.add_argument("--source", default="human", help="whose ratings (default: human)")
    for name in ("correlations", "ceilings", "comparisons"):
        kind.add_argument(f"--{name}", type=Path, help=f"table {name}")
    kind.add_argument("--judgements", type=Path, nargs="*", default=[], metavar="FILE", help="tables judgements")
    kind.add_argument("--labels", type=json_object, default={}, metavar="JSON", help="a name for each judge's metric")
    kind.add_argument("--alpha", type=Path, help="the CSV of `render alpha`")
    kind.add_argument("--figures", type=Path, nargs="*", default=[], metavar="PNG", help="figures to link to")
    kind.add_argument("--main", nargs="*", default=[], metavar="METRIC:OUTPUT", help="scores of the table of systems")
    kind.add_argument("--outputs", nargs="*", metavar="METRIC:OUTPUT", help="scores of the browser (default: all)")
    for add in (add_target, add_not_run, add_simulated):
        add(kind)


def _site(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import aggregate, schema
    from comperdial.files import write_text
    from comperdial.report.site import contents
    from comperdial.report.site.page import page

    # Each file is checked by itself; that no score stands twice was checked when they were correlated.
    scores = pd.concat([schema.read(path, "scores") for path in options.inputs], ignore_index=True)
    results = {
        name: schema.read(path, name)
        for name in ("correlations", "ceilings", "comparisons")
        if (path := getattr(options, name))
    }
    tables = contents.Tables(
        **{name: table_of(options, name) for name in ("systems", "contexts", "responses")},
        personas=table_of(options, "personas") if (options.tables / "personas.parquet").is_file() else None,
        **{f"{level}_ratings": read_ratings(options, level) for level in ("turn", "dialogue")},
        **results,
        scores=scores,
        judgements=[schema.read(path, "judgements") for path in options.judgements],
    )
    note = suffix_of(options)
    rated = aggregate.rated_dimensions((tables.turn_ratings, tables.dialogue_ratings), options.source)
    settings = contents.Settings(
        title=options.title,
        target=read_target(options, rated),
        source=options.source,
        main=options.main,
        outputs=options.outputs,
        not_run=options.not_run,
        labels=options.labels,
        figures=[contents.relative(path, options.output) for path in options.figures],
        alpha=options.alpha,
        note=note,
    )
    write_text(options.output, page(options.title, contents.pack(tables, settings), note=note))
