"""Loops as ONNX's Scan."""

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from export_cases import RANDOM, check, computed, filled, run  # noqa: E402

import picograd  # noqa: E402
import picograd.onnx  # noqa: E402
from picograd import nn  # noqa: E402


class Tagger(nn.Module):
    """A class for each word: embedding, LSTM, linear."""

    def __init__(self) -> None:
        self.words = nn.Embedding(11, 4)
        self.lstm = nn.LSTM(4, 6, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, words: Any) -> Any:
        return self.out(self.lstm(self.words(words))[0])


def test_a_loop_is_a_scan_over_any_number_of_steps() -> None:
    words, other = RANDOM.integers(0, 11, (2, 5)), RANDOM.integers(0, 11, (3, 8))
    exported = check(filled(Tagger()), (words,), (other,), {"words": {0: "batch", 1: "time"}})
    assert "Scan" in [node.op_type for node in exported.graph.node]
    loaded, _ = computed(picograd.onnx.load(exported), (other,))
    np.testing.assert_allclose(loaded[0], run(exported, (other,))[0], 2e-4, 2e-5)


class Sorter(nn.Module):
    """One class for a text: of the last layer only the states after all steps are read."""

    def __init__(self) -> None:
        self.words = nn.Embedding(11, 4)
        self.lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(12, 3)

    def forward(self, words: Any) -> Any:
        states = self.lstm(self.words(words))[1][0]
        return self.out(picograd.cat([states[-2], states[-1]], 1))


def test_a_loop_of_which_only_the_last_states_are_read() -> None:
    words, other = RANDOM.integers(0, 11, (2, 5)), RANDOM.integers(0, 11, (3, 5))
    check(filled(Sorter()), (words,), (other,), {"words": {0: "batch"}})
