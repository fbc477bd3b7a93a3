"""The stack machine, given pickles that torch.save would never write."""

import collections
import pickle

import numpy as np
import pytest

from picograd.dtype import float32
from picograd.errors import StateError
from picograd.nn.torch_pickle import Machine, PickleProblem, Storage, check_place, load_pickle

ELEMENTS = np.arange(8, dtype=np.float32).view(np.uint8)


def run(content):
    return load_pickle(content, Machine(lambda storage: ELEMENTS, "cpu"), "file")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_objects(protocol):
    value = {"a": [1, -(2**40), 2.5], ("b"): (True, None, ()), 3: {"x": {"y": (1, 2, 3, 4)}}}
    value["again"] = value["a"]
    found = run(pickle.dumps(value, protocol))
    assert found == value and found["again"] is found["a"]
    ordered = collections.OrderedDict(b=1, a=2)
    assert list(run(pickle.dumps(ordered, protocol)).items()) == [("b", 1), ("a", 2)]


@pytest.mark.parametrize(
    "text, message",
    [
        ("cos\nsystem\n", "the global os.system is refused"),
        ("c__builtin__\neval\n", "the global __builtin__.eval is refused"),
        ("ctorch\nload\n", "the global torch.load is refused"),
        ("(S'ls'\nios\nsystem\n", "opcode STRING is refused"),
        ("(ios\nsystem\n", "opcode INST is refused"),
        ("ctorch\nFloatStorage\n)R", "a call of torch FloatStorage is refused"),
        ("ctorch\nfloat32\n)R", "a call of picograd.float32 is refused"),
        ("ccollections\nOrderedDict\n}b", "attributes are set on something that is no dict"),
        ("ccollections\nOrderedDict\n)\x81", "an object of collections OrderedDict is refused"),
        ("}(I1\nI2\ntI3\ns", "a tuple as the key of a dict"),
        ("]I1\nI2\ns", "items are stored in something that is no dict"),
        ("}I1\na", "items are appended to something that is no list"),
        ("I1\nQ", "a persistent id is no storage"),
        ("Pname\n", "opcode PERSID is refused"),
        ("(Vstorage\nctorch\nQUInt8Storage\nV0\nVcpu\nI4\ntQ", "no dtype for QUInt8Storage"),
        ("ctorch\nfloat8_e8m0fnu\n", "picograd has no dtype for torch.float8_e8m0fnu"),
        ("ctorch._utils\n_rebuild_tensor_v2\n(I1\nI2\nI3\nI4\nI00\nNtR", "a tensor has no storage"),
        ("c__builtin__\nbytearray\n(I9\ntR", "a bytearray of something else than bytes"),
        ("\x85", "a tuple of more than there is"),
        ("h\x07", "the pickle in it is damaged"),
        ("R", "the pickle in it is damaged"),
        ("", "the pickle in it is damaged"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(StateError, match=message):
        run(text.encode("latin1") + b".")


@pytest.mark.parametrize(
    "place, message",
    [
        ((0, (9,), (1,)), "ends at element 8 of a storage of 8"),
        ((4, (2, 3), (2, 1)), "ends at element 8"),
        ((0, (-1,), (1,)), "a negative size"),
        ((0, (2,), (-1,)), "a negative size"),
        ((-1, (2,), (1,)), "a negative size"),
        ((9, (0,), (1,)), "does not fit a storage of 8"),
        ((0, (1 << 40,), (0,)), "does not fit a storage of 8"),
        ((0, (2, 2), (1,)), "do not fit each other"),
    ],
)
def test_tensors_stay_inside_their_storage(place, message):
    with pytest.raises(PickleProblem, match=message):
        check_place(Storage("0", float32, 8), place, float32)
