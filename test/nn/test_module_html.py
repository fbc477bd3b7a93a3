"""A module in a notebook."""

from picograd import nn


class Odd(nn.Module):
    def extra_repr(self):
        return "<b>"


def test_the_tree_unfolds_with_the_number_of_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 5)))
    text = model._repr_html_()
    assert text.startswith("<details open><summary>Sequential, 41 parameters")
    assert "0: Linear(" in text and "1: ReLU()" in text and "weight" in text and "[4, 3]" in text
    assert text.count("<details") == text.count("</details>") == 4


def test_a_module_alone():
    assert nn.ReLU()._repr_html_() == "<div>ReLU</div>"
    assert "&lt;b&gt;" in nn.Sequential(Odd())._repr_html_()
