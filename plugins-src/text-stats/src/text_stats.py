"""Figures about a text: how long it is, how long it takes to read, and what it is about."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from sallyport import InvalidArguments, schema, tool

# Chinese and Japanese put no spaces between words, so each character counts as one. A word of
# another script keeps its apostrophes and hyphens: "don't", "well-known".
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    r"|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
    r"(?:(?:['\u2019\u2010\u2011-]|(?<=\d)[.,](?=\d))[^\W_\u3040-\u30ff\u3400-\u9fff]+)*"
)
_NUMBER = re.compile(r"[\d.,]+")
_MARKS = ".!?\u2026"
_CLOSING = "\"'\u2019\u201d)]\u00bb"
_OPENING = "\"'\u201c\u2018\u201e([\u00ab"
_WIDE_MARK = re.compile(r"[\u3002\uff01\uff1f]+")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")

_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st jr sr vs etc e.g i.e cf no vol fig al approx inc ltd z.b bzw d.h ca".split()
)
"""Words whose full stop does not end a sentence."""

_COMMON_WORDS = frozenset(
    "a about after all also am an and any are as at be because been before being but by can could "
    "did do does for from had has have he her here him his how i if in into is it its just me more "
    "most my no not now of off on once only or other our out over own she should so some such than "
    "that the their them then there these they this those through to too under until up us very "
    "was we were what when where which while who why will with would you your".split()
)
"""English words that say nothing about the subject."""

_LONG_WORD_LETTERS = 7
"""From here on a word counts as long, as the readability index LIX has it."""

_READING_WORDS_PER_MINUTE = 238
"""What adults read silently, on average over many studies."""
_SPEAKING_WORDS_PER_MINUTE = 150
"""What a calm speaker says."""


@dataclass
class WordCount:
    """How often a word appears."""

    word: str
    count: int


@dataclass
class TextFigures:
    """Figures about a text."""

    characters: int
    """With spaces."""
    characters_without_spaces: int
    words: int
    different_words: int
    sentences: int
    paragraphs: int
    lines: int
    words_per_sentence: float
    letters_per_word: float
    longest_word: str
    reading_seconds: int
    """The time to read it silently."""
    speaking_seconds: int
    """The time to read it aloud."""
    readability: float
    """The index LIX: below 30 is very easy, 40 is ordinary prose, above 55 is difficult."""


Text = Annotated[str, schema(minLength=1)]


@tool(read_only=True, idempotent=True, open_world=False)
def text_stats(
    text: Text,
    words_per_minute: Annotated[int, schema(minimum=50, maximum=1500)] = _READING_WORDS_PER_MINUTE,
) -> TextFigures:
    """Counts the words, sentences and paragraphs of a text and estimates its reading time.

    Use it instead of counting yourself. It works for every language.

    Args:
        text: The whole text.
        words_per_minute: How fast the reader reads.
    """
    words = _words(text)
    letters = sum(map(len, words))
    count = len(words)
    sentences = _count_sentences(text)
    long_words = sum(1 for word in words if len(word) >= _LONG_WORD_LETTERS)
    return TextFigures(
        characters=len(text),
        characters_without_spaces=len("".join(text.split())),
        words=count,
        different_words=len({word.casefold() for word in words}),
        sentences=sentences,
        paragraphs=len([part for part in _PARAGRAPH.split(text) if part.strip()]),
        lines=len(text.splitlines()),
        words_per_sentence=_ratio(count, sentences),
        letters_per_word=_ratio(letters, count),
        longest_word=max(words, key=len, default=""),
        reading_seconds=round(count * 60 / words_per_minute),
        speaking_seconds=round(count * 60 / _SPEAKING_WORDS_PER_MINUTE),
        readability=round(_ratio(count, sentences) + _ratio(100 * long_words, count), 1),
    )


@tool(read_only=True, idempotent=True, open_world=False)
def frequent_words(
    text: Text,
    limit: Annotated[int, schema(minimum=1, maximum=200)] = 10,
    min_letters: Annotated[int, schema(minimum=1, maximum=50)] = 1,
    with_common_words: bool = False,
    ignore: list[str] | None = None,
    phrase_words: Annotated[int, schema(minimum=1, maximum=5)] = 1,
) -> list[WordCount]:
    """Lists the most frequent words or phrases of a text, the most frequent first.

    Upper and lower case are the same.

    Args:
        text: The whole text.
        limit: How many to list.
        min_letters: Words with fewer letters are left out.
        with_common_words: Whether to count English words such as "the" and "and", too.
        ignore: Further words to leave out.
        phrase_words: 2 or more counts phrases of so many neighbouring words.
    """
    left_out = {word.casefold() for word in ignore or []}
    if not with_common_words:
        left_out |= _COMMON_WORDS
    words = [word.casefold() for word in _words(text)]
    if phrase_words > max(1, len(words)):
        raise InvalidArguments(f"the text has {len(words)} words, fewer than phrase_words")

    def counts(word: str) -> bool:
        return len(word) >= min_letters and word not in left_out and not _NUMBER.fullmatch(word)

    if phrase_words == 1:
        found = Counter(filter(counts, words))
    else:
        phrases = zip(*(words[start:] for start in range(phrase_words)), strict=False)
        # A phrase may have common words inside, as "state of the art", but not at its ends.
        found = Counter(" ".join(p) for p in phrases if counts(p[0]) and counts(p[-1]))
    ordered = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
    return [WordCount(word, count) for word, count in ordered[:limit]]


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _count_sentences(text: str) -> int:
    """Counts the ends of sentences, and the rest that has none, such as a heading."""
    count = 0
    has_words = False
    # A mark that no space follows ends a sentence in scripts that have no spaces.
    for token in _WIDE_MARK.sub("! ", text).split():
        has_words = has_words or _WORD.search(token) is not None
        if has_words and _ends_sentence(token):
            count, has_words = count + 1, False
    return count + has_words


def _ends_sentence(token: str) -> bool:
    body = token.rstrip(_CLOSING)
    word = body.rstrip(_MARKS)
    mark = body[len(word) :]
    word = word.lstrip(_OPENING).casefold()
    if mark == ".":
        return word not in _ABBREVIATIONS and not re.fullmatch(r"[a-z]|\d{1,2}", word)
    return mark != ""


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 1) if whole else 0.0
