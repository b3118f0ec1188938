"""The command that has pairs of dialogues compared by a judge."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from comperdial.cli.judge_choice import refusals
from comperdial.cli.judge_file import add_who, chosen_judge

if TYPE_CHECKING:
    from comperdial.judges.pairs import Judged, Pairs
    from comperdial.stats.proportions import Share


def add_kinds(what: Any) -> None:  # noqa: ANN401 - argparse does not export the type
    """Add this module's command below ``judge``."""
    kind = what.add_parser("preferences", help="have pairs of dialogues compared, each in both orders")
    kind.add_argument("dialogues", type=Path, help="a file of dialogues (JSON Lines)")
    kind.add_argument("pairs", type=Path, help="CSV, JSONL or Parquet: which are compared, or table `preferences`")
    kind.add_argument("--question", required=True, help="what is asked, in your own words or by the name of a family")
    add_who(kind)
    kind.add_argument("--output", type=Path, required=True, help="table `preferences`: a .jsonl, .csv or .parquet file")
    kind.set_defaults(run=_preferences)


def _preferences(options: argparse.Namespace) -> None:
    from comperdial import schema
    from comperdial.challenge.pairs.dialogues import read_dialogues
    from comperdial.core.files import check_table_output
    from comperdial.judges.pairs import judge_pairs, read_pairs

    check_table_output(options.output)
    judging, judge = chosen_judge(options)
    dialogues, pairs = read_dialogues(options.dialogues), read_pairs(options.pairs)
    judged = judge_pairs(judging, judge, dialogues, pairs, options.question, refusals=refusals(options))
    schema.write(options.output, judged.preferences, "preferences")
    print(f"{options.pairs}  {judge}: {judged.report or 'all from the ledger; nothing was asked'}")
    print("\n".join(_outcome(judged, pairs, options.question)))
    print(f"preferences: {options.output}, answers: {judging.ledger}")


def _outcome(judged: Judged, pairs: Pairs, question: str) -> list[str]:
    """Say what came of it."""
    from comperdial.judges.pairs import agreement

    lines = [
        f"{judged.pairs:,} pairs, each in both orders: {len(judged.preferences):,} preferences, of which {judged.flipped:,} are "
        f"ties because the choice flipped with the order; {judged.unread:,} pairs left out, an answer about each cannot be read"
    ]
    lines += [f"    {count:,} answers: {why}" for why, count in judged.failures.most_common()]
    lines.append(f"the same choice in both orders: {_spelled(judged.same)} of pairs")
    lines.append(f"the one shown first was chosen: {_spelled(judged.chose_first)} of answers")
    if pairs.votes is not None:
        for asked, votes in pairs.votes.groupby("question"):
            if asked == question or pairs.votes["question"].nunique() == 1:
                found = agreement(judged.preferences, votes)
                lines.append(
                    f"agreement with the choices of the table ({asked!r}), ties of the judge as half: {_spelled(found)} of "
                    f"{found.n:,} votes"
                )
    return lines


def _spelled(found: Share) -> str:
    return f"{found.value:.1%} [{found.low:.1%}, {found.high:.1%}]" if found.n else "not known"
