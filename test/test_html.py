"""Pieces of HTML: texts are escaped, markup is not."""

from picograd.html import Markup, details, heading, preformatted, table


def test_texts_are_escaped():
    wrong = "<script>alert('x')</script>"
    made = heading(wrong), table([wrong], [[wrong]]), details(wrong, wrong), preformatted(wrong)
    for text in made:
        assert "<script>" not in text and "&lt;script&gt;" in text


def test_markup_goes_inside_other_markup():
    inner = table([], [[1, 2.5]])
    assert inner.count("<tr>") == 1 and inner in details("a", inner, is_open=True)
    assert "<details open>" in details("a", inner, is_open=True)
    assert isinstance(inner, Markup)
