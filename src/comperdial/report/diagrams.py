"""Two drawn figures: how ComperDial was collected, and three ways to evaluate a dialogue system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comperdial.report.canvas import GOLD, PERSON, PLAIN, SCORE, SYSTEM, Canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 8.6


def pipeline_figure(
    *,
    workers: int,
    dialogues: int,
    turns: int,
    agents: int,
    humans: int,
    annotators: int,
    systems: int,
    rated_turns: int,
    rated_dialogues: int,
    note: str = "",
) -> Figure:
    """Draw how ComperDial was collected (the paper's Figure 1, restated from its sections 3, 3.1, 3.2 and 5).

    The numbers come from :func:`comperdial.report.comperdial.pipeline_numbers`, or from counts of other tables; then
    ``note`` says so under the figure.
    """
    height, base = (4.12, 0.3) if note else (3.87, 0.05)
    canvas = Canvas(_WIDTH, height)
    step, w, top = 1.7, 1.59, height - 0.45
    colours = [PLAIN[0], GOLD[0], SYSTEM[0], SCORE[0], "#333333"]
    steps = ["1  Personas", "2  Dialogues", "3  Responses", "4  Ratings", "5  ComperDial"]
    lefts = [0.08 + step * n for n in range(len(steps))]
    for x, title, colour in zip(lefts, steps, colours, strict=True):
        canvas.panel(x, base, w, top - base - 0.08)
        canvas.chevron(x - 0.02, top, step + 0.01, 0.36, title, colour)

    def box(column: int, y: float, h: float, *texts: str, **style: Any) -> None:  # noqa: ANN401
        canvas.box(lefts[column] + 0.1, base + y, w - 0.2, h, *texts, **style)

    def down(column: int, start: float, end: float) -> None:
        x = lefts[column] + w / 2
        canvas.arrow((x, base + start), (x, base + end))

    box(0, 2.4, 0.8, "Persona graph", "head personas and\ntheir attributes")
    canvas.label(lefts[0] + w / 2, base + 2.26, "+", fontsize=11, fontweight="bold")
    box(0, 1.32, 0.8, "Fictional personal\ninformation", "name, age, family")
    down(0, 1.32, 1.02)
    box(0, 0.12, 0.9, "Persona profile", "personal information\nand 2 personas from\nthe graph", colour=GOLD)

    box(1, 2.4, 0.8, f"{workers} workers", "in pairs, a persona\neach, unknown to\nthe other")
    down(1, 2.4, 2.13)
    for n, speaker in enumerate("ABAB"):
        canvas.bubble(
            lefts[1] + (0.1 if speaker == "A" else 0.55), base + 1.82 - 0.37 * n + 0.02, 0.95, speaker, GOLD,
            "role play" if n == 0 else "…",
        )  # fmt: skip
    box(1, 0.12, 0.46, "Gold dialogues", f"{dialogues}, {turns} turns each", size=7.5, colour=GOLD)

    box(2, 2.4, 0.8, "Gold history", f"up to each of the\n{turns} turns", colour=GOLD)
    x, half = lefts[2] + 0.1, (w - 0.2) / 2
    for n, (count, what) in enumerate(((agents, "dialogue\nagents"), (humans, "humans"))):
        left = x + n * (half + 0.04)
        middle = left + (half - 0.04) / 2
        canvas.arrow((middle, base + 2.4), (middle, base + 2.12))
        canvas.box(left, base + 1.32, half - 0.04, 0.8, str(count), what, colour=(SYSTEM, PERSON)[n], size=7.5, big=12)
        canvas.arrow((middle, base + 1.32), (middle, base + 1.02))
    box(2, 0.12, 0.9, "Responses", f"{systems} to each\ngold history", colour=SYSTEM)

    box(3, 2.4, 0.8, f"{annotators} annotators", "one overall score,\n1 to 5")
    down(3, 2.4, 2.12)
    box(3, 1.32, 0.8, "Turn level", "each response\nwith its history", colour=SCORE)
    canvas.label(lefts[3] + w / 2, base + 1.16, "+", fontsize=11, fontweight="bold")
    box(3, 0.12, 0.9, "Dialogue level", f"all {turns} responses\nof a system to\na dialogue", colour=SCORE)

    box(4, 2.4, 0.8, f"{rated_turns:,}", "rated turns", colour=SCORE, big=15)
    box(4, 1.32, 0.8, f"{rated_dialogues:,}", "rated dialogues", colour=SCORE, big=15)
    box(4, 0.12, 0.9, f"{systems:,}", "systems", colour=SYSTEM, big=15)
    if note:
        canvas.label(_WIDTH / 2, 0.14, note, fontsize=7.5)
    return canvas.figure


def techniques_figure(turns: int = 7) -> Figure:
    """Draw three ways to evaluate a dialogue system (the paper's Figure 2, restated from its section C.1.1)."""
    height = 4.3
    canvas = Canvas(_WIDTH, height)
    w, base, top = 2.76, 0.42, 3.83
    lefts = [0.08 + 2.84 * n for n in range(3)]
    titles = ["(a) Static, single turn", "(b) Interactive, dialogue level", "(c) Static, dialogue level"]
    says = [
        "The history is given. One response\nto it is rated on its own.",
        "A person and the system talk.\nThe whole talk gets one rating.",
        f"{turns} histories are given, as in (a). The {turns}\nresponses together get one rating.",
    ]
    for x, title, text in zip(lefts, titles, says, strict=True):
        canvas.panel(x, base, w, height - base - 0.06)
        canvas.label(x + w / 2, top + 0.2, title, fontsize=9, fontweight="bold")
        canvas.label(x + w / 2, base + 0.26, text)

    x = lefts[0]
    for n, speaker in enumerate("ABA"):
        canvas.bubble(x + (0.12 if speaker == "A" else 0.5), 3.1 - 0.47 * n, 1.28, speaker, GOLD, "gold")
    canvas.bubble(x + 0.5, 1.69, 1.28, "B", SYSTEM, "response")
    canvas.arrow((x + 1.8, 1.825), (x + 2.05, 1.825), SCORE[0])
    canvas.box(x + 2.06, 1.565, 0.62, 0.52, "score", "turn", colour=SCORE, size=7.5)

    x = lefts[1]
    for n, speaker in enumerate("ABABAB"):
        left, colour, text = (0.12, PERSON, "person") if speaker == "A" else (0.5, SYSTEM, "system")
        canvas.bubble(x + left, 3.4 - 0.42 * n, 1.28, speaker, colour, text)
    canvas.bracket(x + 1.9, 1.22, 3.72, SCORE[0])
    canvas.arrow((x + 1.9, 2.47), (x + 2.05, 2.47), SCORE[0])
    canvas.box(x + 2.06, 2.21, 0.62, 0.52, "score", "dialogue", colour=SCORE, size=7.5)

    x = lefts[2]
    for number, high in ((1, 3.6), (2, 3.32), (turns, 2.56)):
        _turn(canvas, x, high, number)
    canvas.label(x + 0.78, 2.8, "⋮", fontsize=12)
    canvas.bracket(x + 1.9, 1.22, 3.72, SCORE[0])
    canvas.arrow((x + 1.9, 2.47), (x + 2.05, 2.47), SCORE[0])
    canvas.box(x + 2.06, 2.21, 0.62, 0.52, "score", "dialogue", colour=SCORE, size=7.5)

    legend = [
        (GOLD, "fixed (gold) utterance"),
        (PERSON, "person, live"),
        (SYSTEM, "system under evaluation"),
        (SCORE, "rating"),
    ]
    for (colour, text), at in zip(legend, (0.95, 3.05, 4.65, 7.0), strict=True):
        canvas.box(at, 0.12, 0.24, 0.16, colour=colour)
        canvas.label(at + 0.32, 0.2, text, ha="left")
    return canvas.figure


def _turn(canvas: Canvas, x: float, top: float, number: int) -> None:
    """Draw one turn of panel (c): a stack of gold utterances that grows with the turns, and the response to it."""
    count = 2 * number - 1
    height = min(0.066, 0.9 / count)
    low = top - count * height * 1.35
    for n in range(count):
        left = x + (0.46 if n % 2 == 0 else 0.6)
        canvas.bar(left, top - (n + 1) * height * 1.35, 0.5, height, GOLD)
    middle = low + height / 2
    canvas.label(x + 0.42, middle, f"turn {number}", fontsize=7.5, ha="right")
    canvas.arrow((x + 1.03, middle), (x + 1.23, middle))
    canvas.bubble(x + 1.24, middle - 0.135, 0.54, "B", SYSTEM)
