"""English verbs as far as negation and inflection by rule need them."""

from __future__ import annotations

from comperdial.perturbations._text import word_set

# Base, past, and participle where it differs from the past.
_FORMS = """
become became become, begin began begun, bite bit bitten, blow blew blown, break broke broken, bring brought,
build built, buy bought, catch caught, choose chose chosen, come came come, cost cost, cut cut, deal dealt, do did done,
draw drew drawn, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt,
fight fought, find found, fly flew flown, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen,
get got gotten, give gave given, go went gone, grow grew grown, hang hung, have had, hear heard, hide hid hidden,
hit hit, hold held, hurt hurt, keep kept, know knew known, lead led, learn learnt, leave left, lend lent, let let,
lose lost, make made, mean meant, meet met, pay paid, put put, quit quit, read read, ride rode ridden, ring rang rung,
rise rose risen, run ran run, say said, see saw seen, sell sold, send sent, set set, shake shook shaken, shoot shot,
show showed shown, shut shut, sing sang sung, sit sat, sleep slept, speak spoke spoken, spend spent, stand stood,
steal stole stolen, stick stuck, swim swam swum, take took taken, teach taught, tear tore torn, tell told,
think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn, win won, write wrote written
"""
_ROWS = [row.split() for row in _FORMS.replace("\n", " ").split(",")]
PAST = {row[0]: row[1] for row in _ROWS}
BASE_OF_PAST = {row[1]: row[0] for row in _ROWS if row[1] not in {"read", "cut", "put", "hit", "cost", "let", "set"}}
PARTICIPLES = frozenset({row[-1] for row in _ROWS} | {"been", "got", "had", "done"})
_NOT_PAST = word_set("need feed speed exceed proceed succeed bleed breed embed")
_VOWELS = "aeiou"
# Ends of verbs of several syllables that take no "e": opened, offered, visited, traveled, developed.
_UNSTRESSED = ("en", "er", "or", "on", "el", "it", "op", "et", "ow", "ay", "ey", "oy", "ix", "ax", "om", "in", "ain")
_WITH_E = (
    "v",
    "c",
    "z",
    "u",
    "ng",
    "rg",
    "dg",
    "bl",
    "pl",
    "tl",
    "dl",
    "gl",
    "fl",
    "kl",
    "ths",
    "rs",
    "ns",
    "ls",
    "ps",
)
# Verbs of several syllables that double their last letter: permitted, preferred; and their like that do not.
_STRESSED_END = ("mit", "fer", "cur", "gret", "trol")
_UNSTRESSED_END = word_set("limit vomit offer differ suffer")
_NO_E = word_set("""
    belong long hang sing bring ring bang focus miss guess dress pass press cross discuss kiss toss chat hit waltz
    """)
_NEEDS_E = word_set("""
    use close cause please raise choose lose excuse accuse abuse advise amuse confuse refuse suppose purchase promise
    practise exercise realise surprise release increase decrease tease appease taste waste paste invite unite excite
    write ignite hope note vote quote devote promote type smile like hike bike bake make take love move live give have
    hate create relate state skate date rate celebrate appreciate graduate educate decorate communicate participate
    translate operate donate decide provide divide hide ride slide guide include conclude exclude fade trade shade
    persuade explore ignore store restore score adore bore admire hire fire retire tire wire inspire require desire
    care share scare prepare compare stare dare declare assure measure injure cure endure smoke joke provoke tune
    phone postpone define imagine combine examine determine decline shine line mine dine time name blame game tame
    shame become welcome assume consume costume hype shape escape tape hope cope wipe adopt
    """) - {"adopt"}


def is_past(word: str) -> bool:
    """Say whether a lower-case word looks like a past tense."""
    return word in BASE_OF_PAST or (len(word) > 3 and word.endswith("ed") and word not in _NOT_PAST)


def is_participle(word: str) -> bool:
    """Say whether a lower-case word looks like a past participle."""
    return word in PARTICIPLES or (len(word) > 3 and word.endswith("ed") and word not in _NOT_PAST)


def base_of_past(word: str) -> str:
    """Return the base of a past tense: by list, else by the rules of spelling, which have exceptions."""
    if word in BASE_OF_PAST:
        return BASE_OF_PAST[word]
    stem = word.removesuffix("ed")
    if stem.endswith("i"):
        return stem[:-1] + "y" if len(stem) > 2 else stem + "e"
    if stem + "e" in _NEEDS_E:
        return stem + "e"
    if stem in _NO_E:
        return stem
    if len(stem) > 2 and stem[-1] == stem[-2]:
        return stem if stem[-1] in "lsfz" else stem[:-1]
    if stem.endswith((*_WITH_E, "e")):
        return stem + "e"
    syllables = sum(
        letter in _VOWELS + "y" and (place == 0 or stem[place - 1] not in _VOWELS) for place, letter in enumerate(stem)
    )
    short_end = len(stem) > 2 and stem[-1] not in _VOWELS + "wxy" and stem[-2] in _VOWELS and stem[-3] not in _VOWELS
    if short_end and not (syllables > 1 and stem.endswith(_UNSTRESSED)):
        return stem + "e"
    return stem


def base_of_third(word: str) -> str:
    """Return the base of a third person singular: "goes" -> "go"."""
    if word == "has":
        return "have"
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-1] if word[:-1] in _NEEDS_E or word.endswith(("uses", "ases", "oses", "ises")) else word[:-2]
    return word[:-1]


def _doubles(base: str) -> bool:
    if base.endswith(_STRESSED_END) and base not in _UNSTRESSED_END:
        return True
    vowels = sum(letter in _VOWELS for letter in base)
    return (
        len(base) > 2
        and vowels == 1
        and base[-1] not in _VOWELS + "wxy"
        and base[-2] in _VOWELS
        and base[-3] not in _VOWELS
    )


def past_of(base: str) -> str:
    """Return the past tense of a base."""
    if base in PAST:
        return PAST[base]
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        return base[:-1] + "ied"
    return base + base[-1] + "ed" if _doubles(base) else base + "ed"


def ing_of(base: str) -> str:
    """Return the form in -ing of a base."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) and base != "be":
        return base[:-1] + "ing"
    return base + base[-1] + "ing" if _doubles(base) else base + "ing"


def with_s(base: str) -> str:
    """Return the third person singular of a verb, which is spelled as the plural of a noun."""
    if base.endswith(("s", "sh", "ch", "x", "z")):
        return base + "es"
    if base.endswith("y") and len(base) > 1 and base[-2] not in _VOWELS:
        return base[:-1] + "ies"
    return base + "s"
