"""Dicts whose keys are objects by identity."""

import copy

import picograd
from picograd.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary


def test_keys_are_the_very_objects_and_may_go() -> None:
    kept, gone = picograd.ones(3), picograd.ones(3)
    table = WeakTensorKeyDictionary({kept: "kept"})
    table[gone] = "gone"
    assert len(table) == 2 and table[kept] == "kept" and table[gone] == "gone"
    assert kept.clone() not in table and 3 not in table
    reference = TensorWeakRef(gone)
    del gone
    assert reference() is None and [key is kept for key in table] == [True]
    assert copy.copy(table)[kept] == copy.deepcopy(table)[kept] == "kept"
    assert (WeakIdKeyDictionary() | table).pop(kept) == "kept" and len(table.keyrefs()) == 1
    del table[kept]
    assert not table and table.get(kept) is None
