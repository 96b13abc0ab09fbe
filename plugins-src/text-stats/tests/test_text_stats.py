import pytest
from sallyport import InvalidArguments
from sallyport.testing import call
from text_stats import frequent_words, text_stats


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("One two. Three!", {"words": 3, "sentences": 2, "paragraphs": 1, "lines": 1}),
        ("Dr. Ng paid 3.50 for it, e.g. tea. Good?", {"sentences": 2, "words": 10}),
        ("A heading\n\nA line without end", {"sentences": 1, "paragraphs": 2, "lines": 3}),
        ("“Is it?” he said. … And so on …", {"sentences": 3}),
        ("don't well-known it\u2019s", {"words": 3, "longest_word": "well-known"}),
        ("\u6211\u559c\u6b22\u8336\u3002\u4f60\u5462\uff1f", {"words": 6, "sentences": 2}),
        ("Stra\u00dfe STRASSE", {"words": 2, "different_words": 1}),
        ("\u0395\u03bb\u03bb\u03ac\u03b4\u03b1 \u0440\u0443\u0441\u0441\u043a\u0438\u0439", {"words": 2}),
        ("\U0001f600 \U0001f600", {"words": 0, "sentences": 0, "longest_word": "", "characters": 3}),
        ("...!?", {"words": 0, "sentences": 0, "words_per_sentence": 0.0, "readability": 0.0}),
        (" \n ", {"words": 0, "paragraphs": 0, "characters_without_spaces": 0}),
        ("word " * 238, {"reading_seconds": 60, "speaking_seconds": 95}),
    ],
)
def test_a_text_has_figures(text, want):
    figures = call(text_stats, {"text": text}).data
    assert {key: figures[key] for key in want} == want


def test_a_faster_reader_needs_less_time():
    figures = call(text_stats, {"text": "word " * 100, "words_per_minute": 1000}).data
    assert figures["reading_seconds"] == 6


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ({"text": "Tea, tea and coffee."}, [("tea", 2), ("coffee", 1)]),
        ({"text": "the the tea", "with_common_words": True}, [("the", 2), ("tea", 1)]),
        ({"text": "b a b a c", "limit": 1}, [("b", 2)]),
        ({"text": "tea TEA milk", "ignore": ["Tea"]}, [("milk", 1)]),
        ({"text": "go tea going", "min_letters": 4}, [("going", 1)]),
        ({"text": "state of the art, state of the art", "phrase_words": 4}, [("state of the art", 2)]),
        ({"text": "2026 2026 tea"}, [("tea", 1)]),
        ({"text": "?!"}, []),
    ],
)
def test_the_most_frequent_words_come_first(arguments, want):
    found = call(frequent_words, arguments).data
    assert [(entry["word"], entry["count"]) for entry in found][: len(want)] == want


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        (text_stats, {"text": ""}, "text: it has a length of 0"),
        (text_stats, {}, "text is missing"),
        (text_stats, {"text": "a", "words_per_minute": 0}, "words_per_minute: 0 must be at least 50"),
        (frequent_words, {"text": "a", "limit": 201}, "limit: 201 must be at most 200"),
        (frequent_words, {"text": "tea", "phrase_words": 2}, "the text has 1 words"),
    ],
)
def test_what_makes_no_sense_is_refused(tool, arguments, reason):
    with pytest.raises(InvalidArguments, match=reason):
        call(tool, arguments)


def test_a_long_text_takes_no_time_to_speak_of():
    text = "Word, another-one (and more) e.g. this. " * 25_000
    assert call(text_stats, {"text": text}).data["sentences"] == 25_000
    assert call(text_stats, {"text": "a" * 1_000_000}).data["words"] == 1
    assert call(text_stats, {"text": "." * 1_000_000}).data["words"] == 0
