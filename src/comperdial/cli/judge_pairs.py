"""Commands about pairs of dialogues that judges compare: here, or as others recorded it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.common import add_catalogue, output_table
from comperdial.cli.judge_choice import refusals
from comperdial.cli.judge_file import add_who, chosen_judge
from comperdial.core.terminal import harmless

if TYPE_CHECKING:
    from comperdial.judges.pairs import Dialogues, Judged, Pairs
    from comperdial.stats.proportions import Share


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command below ``judge``."""
    kind = what.add_parser("preferences", help="have pairs of dialogues compared, each in both orders")
    kind.add_argument("dialogues", type=Path, nargs="?", help="a file of dialogues (JSON Lines)")
    kind.add_argument("pairs", type=Path, nargs="?", help="CSV, JSONL or Parquet: pairs, or table `preferences`")
    kind.add_argument(
        "--data", metavar="NAME", help="instead of files: public preferences of the catalogue, such as llmfao"
    )
    kind.add_argument("--question", required=True, help="what is asked: in your own words, or the name of a question")
    add_who(kind)
    kind.add_argument(
        "--output", type=output_table, required=True, help="table `preferences`: a .jsonl, .csv or .parquet file"
    )
    add_catalogue(kind)
    kind.set_defaults(run=_preferences)
    kind = what.add_parser("recorded-preferences", help="replay what judges chose elsewhere, and how well they did")
    kind.add_argument("datasets", nargs="*", metavar="NAME", help="default: all that have recorded judges")
    kind.add_argument("--output", type=output_table, help="table `preferences`: a .jsonl, .csv or .parquet file")
    add_catalogue(kind)
    kind.set_defaults(run=_recorded)


def _preferences(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.judges.pairs import judge_pairs

    judging, judge = chosen_judge(options)
    dialogues, pairs = _read(options)
    judged = judge_pairs(judging, judge, dialogues, pairs, options.question, refusals=refusals(options))
    schema.write(options.output, judged.preferences, "preferences")
    done = judged.report or "all from the ledger; nothing was asked"
    print(harmless(f"{options.data or options.pairs}  {judge}: {done}"))
    print(harmless("\n".join(_outcome(judged, pairs, options.question))))
    print(f"preferences: {options.output}, answers: {judging.ledger}")


def _read(options: argparse.Namespace) -> tuple[Dialogues, Pairs]:
    """Return the dialogues and the pairs that the options name."""
    from comperdial.challenge.pairs.dialogues import read_dialogues
    from comperdial.core.errors import ConfigError
    from comperdial.judges.pairs import of_votes, read_pairs

    if (options.data is None) != (options.pairs is not None):
        raise ConfigError(
            "--data and files" if options.data else "no pairs to compare",
            where="judge preferences",
            expected="either a file of dialogues and one of pairs, or --data NAME",
        )
    if options.data is None:
        return read_dialogues(options.dialogues), read_pairs(options.pairs)
    from comperdial.data.preferences import preference_reader

    reader = preference_reader(options.data, catalogue=options.catalogue)
    return {one.key: one for one in reader.dialogues()}, of_votes(reader.preferences(), options.data)


def _recorded(options: argparse.Namespace) -> None:
    import pandas as pd

    from comperdial import schema
    from comperdial.judges.recorded_pairs import DATASETS, judged_pairs

    found = [judged_pairs(name, catalogue=options.catalogue) for name in options.datasets or DATASETS]
    if options.output:
        schema.write(options.output, pd.concat([made for made, _ in found], ignore_index=True), "preferences")
    summary = pd.concat([made for _, made in found], ignore_index=True)
    shares = {
        name: [
            "" if pd.isna(row[name]) else f"{row[name]:.1%} [{row[f'{name}_low']:.1%}, {row[f'{name}_high']:.1%}]"
            for _, row in summary.iterrows()
        ]
        for name in ("accuracy", "same", "chose_first")
    }
    columns = ["dataset", "judge", "against", "pairs", "unread", "ties", "n"]
    print(summary[columns].assign(**shares).to_string(index=False))


def _outcome(judged: Judged, pairs: Pairs, question: str) -> list[str]:
    """Say what came of it."""
    from comperdial.judges.pairs import agreement

    lines = [
        f"{judged.pairs:,} pairs, each asked about in both orders",
        f"    with a preference: {len(judged.preferences) - judged.flipped:,}",
        f"    ties, because the choice flipped with the order: {judged.flipped:,}",
        f"    left out, because an answer cannot be read: {judged.unread:,}",
    ]
    lines += [f"        {count:,} answers: {why}" for why, count in judged.failures.most_common()]
    lines.append(f"the same choice in both orders: {_spelled(judged.same)} of pairs")
    lines.append(f"the one shown first was chosen: {_spelled(judged.chose_first)} of answers")
    if pairs.votes is not None:
        for (asked, source), votes in pairs.votes.groupby(["question", "source"]):
            if asked == question or pairs.votes["question"].nunique() == 1:
                found = agreement(judged.preferences, votes)
                lines.append(
                    f"agreement with {source} on {asked!r}, a tie of the judge counted as half: {_spelled(found)} of {found.n:,} "
                    "choices"
                )
    return lines


def _spelled(found: Share) -> str:
    return f"{found.value:.1%} [{found.low:.1%}, {found.high:.1%}]" if found.n else "not known"
