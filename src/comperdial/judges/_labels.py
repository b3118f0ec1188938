"""What the words before a colon mean in an answer: a dimension, a rating, an explanation, or an echo of the prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from comperdial.judges.base import Form

Kind = Literal["dimension", "rating", "response", "rationale", "echo", "other"]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RATING = _set(
    "score scores scoring rating ratings rated grade mark result evaluation assessment verdict judgment judgement "
    "answer value number form "
    "得分 评分 評分 分数 分數 评价 評価 点数 點數 スコア 점수 평점 оценка балл баллы puntuación puntaje calificación "
    "bewertung punktzahl wertung punteggio voto valutazione pontuação nota"
)
_FILLERS = _RATING | _set(
    "the a an my your our this that its of for to in on with and is as it i would give level numeric numerical results "
    "only metric criterion dimension aspect quality scale example candidate potential given response reply impression s"
)
_FINAL = _set("final revised corrected updated adjusted")
_DRAFT = _set("initial preliminary tentative draft first")
_WHOLE = _set("overall total 总体 整体 总分 總體 總分 総合")
_RATIONALE = _set(
    "rationale explanation explanations analysis reason reasons reasoning justification comment comments thought "
    "thoughts feedback"
)
_ECHO = _set(
    "context conversation history dialogue dialog fact facts corresponding reference steps step criteria criterion "
    "instruction instructions task persona personas profile human user system speaker chatbot assistant responses "
    "transcript scale guidelines note interesting evaluation"
)
_QUOTES = _set(
    "injected injection inject quoted quote quotes quotation text says said contains contained claims prompt ends "
    "demands asks asked attack includes reads"
)
_QUALITIES = _set(
    "fluency grammar grammaticality coherence coherency consistency relevance specificity interestingness confidence "
    "understandability engagingness engagement groundedness naturalness humanness informativeness diversity likeability"
)
_INTRODUCTION = _set("here following below sure okay is are")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ON_A_SCALE = re.compile(r"on\s(?:a|the)\sscale\s(?:of|from)\s(\d{1,3})\s?(?:-|to)\s?(\d{1,3})", re.IGNORECASE)
_PARENTHESIS = re.compile(r"\([^()]{0,80}\)|\[[^\[\]]{0,80}\]|\d{1,20}\s?(?:-|to)\s?\d{1,20}$|/\s?\d{1,3}$")


@dataclass(frozen=True, slots=True)
class Label:
    """What a label says.

    Attributes
    ----------
    kind
        What follows it.
    dimension
        The dimension that it names.
    final, draft, whole
        Whether the rating is called the last word, a first one, or one of the whole.
    words
        How many it has.
    quoting
        Whether it says that what follows is a quote.
    """

    kind: Kind
    dimension: str | None = None
    final: bool = False
    draft: bool = False
    whole: bool = False
    words: int = 0
    quoting: bool = False


OTHER = Label("other")


@dataclass(frozen=True)
class Labels:
    """The labels of one form."""

    dimensions: tuple[str, ...]
    main: str
    low: float
    high: float
    names: dict[tuple[str, ...], str]
    pattern: re.Pattern[str]
    seen: dict[str, Label] = field(default_factory=dict)

    def classify(self, text: str) -> Label:
        """Return what a label means."""
        found = self.seen.get(text)
        if found is None:
            found = self._on_a_scale(text) or self._classify(tuple(_words(_PARENTHESIS.sub(" ", text))))
            if len(self.seen) < 10_000:
                self.seen[text] = found
        return found

    def _on_a_scale(self, text: str) -> Label | None:
        scale = _ON_A_SCALE.fullmatch(text.strip())
        if scale is None:
            return None
        return Label("rating" if (float(scale[1]), float(scale[2])) == (self.low, self.high) else "other", words=9)

    def _classify(self, words: tuple[str, ...]) -> Label:
        count = len(words)
        final = not _FINAL.isdisjoint(words)
        draft = not _DRAFT.isdisjoint(words)
        whole = final or not _WHOLE.isdisjoint(words)
        for key in (words, _without(words, _FILLERS), _without(words, _FILLERS | _FINAL | _DRAFT)):
            if key in self.names:
                return Label("dimension", self.names[key], final, draft, whole, count)
        rest = _without(words, _FILLERS | _FINAL | _DRAFT | _WHOLE)
        if not rest and not _RATING.isdisjoint(words):
            return Label("rating", None, final, draft, whole, count)
        if not rest and words and ("response" in words or "reply" in words):
            return Label("response", words=count)
        if not rest and words and whole:
            return Label("rating", None, final, draft, whole, count)
        if any(word in _RATIONALE for word in words[:4]) and count <= 5:
            return Label("rationale", words=count)
        if (
            count <= 6
            and not _ECHO.isdisjoint(words)
            and all(word in _ECHO or word in _FILLERS or word.isdecimal() for word in words)
        ):
            return Label("echo", words=count)
        if self.foreign.search(" ".join(words)):
            return Label("other", words=count)
        if not set(words).isdisjoint(_INTRODUCTION) and not set(words).isdisjoint(_RATING | set(self.dimensions)):
            return Label("rating", words=count)
        return Label("other", words=count, quoting=not _QUOTES.isdisjoint(words))

    @cached_property
    def foreign(self) -> re.Pattern[str]:
        """Qualities that the form does not ask for."""
        others = [name for name in sorted(_QUALITIES) if not self.pattern.fullmatch(name)]
        return re.compile(rf"\b(?:{'|'.join(others)})\b", re.IGNORECASE)

    @cached_property
    def listing(self) -> re.Pattern[str]:
        """A line that lists names, each with its number: ``humanness 5, overall 3``."""
        name = self.pattern.pattern
        return re.compile(rf"(?:{name}\s{{1,3}}\d(?:\.\d{{1,3}}+)?+[\s,;.]{{1,5}}(?:and\s)?){{2,20}}", re.IGNORECASE)

    def stem(self, word: str) -> bool:
        """Return whether a word is a form of a dimension's name: natural, naturalness."""
        return len(word) >= 5 and any(
            name[0][:5] == word[:5].lower() for name in self.names if len(name) == 1 and len(name[0]) >= 5
        )


def labels(form: Form) -> Labels:
    """Return the labels of a form."""
    aliases = tuple((name, tuple(others)) for name, others in form.aliases.items())
    return _labels(form.dimensions, form.main, form.low, form.high, aliases)


@lru_cache(maxsize=64)
def _labels(
    dimensions: tuple[str, ...],
    main: str,
    low: float,
    high: float,
    aliases: tuple[tuple[str, tuple[str, ...]], ...],
) -> Labels:
    written = {name: (name, *dict(aliases).get(name, ())) for name in dimensions}
    names: dict[tuple[str, ...], str] = {}
    # A dimension's own name goes before any other's alias, and whole names before shortened ones.
    for shorten in (False, True):
        for own in (True, False):
            for dimension, texts in written.items():
                for text in texts[:1] if own else texts[1:]:
                    words = tuple(_words(text))
                    key = _without(words, _FILLERS) if shorten else words
                    if key:
                        names.setdefault(key, dimension)
    alternatives = "|".join(
        r"[\s-]{0,3}".join(map(re.escape, words)) for words in sorted(names, key=lambda w: -len(" ".join(w)))
    )
    return Labels(dimensions, main, low, high, names, re.compile(rf"\b(?:{alternatives})\b", re.IGNORECASE))


def _words(text: str) -> list[str]:
    return _WORD.findall(_HUMP.sub(" ", text).lower())


def _without(words: tuple[str, ...], left_out: frozenset[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in left_out)
