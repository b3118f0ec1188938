"""What fits nearly anywhere and says nearly nothing, and words that carry little; all written for this project."""

from __future__ import annotations

import numpy as np

from comperdial.perturbations._text import word_set

REMARKS = (
    "I see.",
    "That's nice.",
    "Oh, okay.",
    "That sounds good.",
    "Good to know.",
    "Right, fair enough.",
    "That makes sense.",
    "Well, that's life.",
    "Sure, why not.",
    "Things are like that sometimes.",
    "That's one way to put it.",
    "Fine by me.",
)
ANSWERS = (
    "I don't know.",
    "Maybe.",
    "It depends.",
    "I'm not really sure.",
    "Hard to say.",
    "I guess so.",
    "Could be, I never thought about it.",
    "More or less.",
    "Not much to say about that.",
    "A bit of everything, I suppose.",
)

STOP_WORDS = word_set("""
    a an the this that these those some any no none every each all both either neither few many much more most several
    such other another own same i me my mine myself we us our ours ourselves you your yours yourself yourselves he him
    his himself she her hers herself it its itself they them their theirs themselves who whom whose which what when
    where why how and or but nor so yet if because although though while until unless since than as of at by for with
    about against between into through during before after above below to from up down in out on off over under again
    further then once here there not only too very just also even still already ever never always maybe perhaps quite
    rather really am is are was were be been being have has had having do does did doing done can could will would
    shall should may might must ought cannot dont cant wont didnt doesnt isnt im ive id youre thats lol yes yeah yep no
    nope oh ah wow hey hi hello bye goodbye okay ok well please thanks thank sorry haha hmm um uh like let lets get got
    go going went gone one two three first last etc mr mrs ms dr gonna wanna hope true something anything nothing
    everything someone anyone everyone somebody anybody nobody ca wo sha ai
    """)


def generic(last: str | None, random: np.random.Generator, leave_out: frozenset[str] = frozenset()) -> str:
    """Return a generic answer when the last utterance asks something, else a generic remark.

    What stands in ``leave_out`` is not taken while there is anything else.
    """
    texts = ANSWERS if last is not None and last.rstrip().endswith("?") else REMARKS
    fresh = [text for text in texts if text not in leave_out] or list(texts)
    return fresh[random.integers(len(fresh))]
