"""The language of functions that Python calls: what its words compute, and what is refused."""

import ast
import ctypes
import gc
import sys

import pytest

from picograd.code import Code
from picograd.errors import InternalError
from picograd.runtime.compiler import Compiler
from picograd.runtime.llvm import host
from picograd.runtime.python_code import Translator, parsed
from picograd.runtime.python_layout import (
    FASTCALL,
    Table,
    callable_of,
    defined,
    is_possible,
    keep_for_ever,
    offsets,
    place_of,
)

pytestmark = pytest.mark.skipif(not is_possible(), reason="another interpreter")


class Box:
    __slots__ = ("other", "value")


@pytest.fixture(scope="module")
def compiler():
    return Compiler(host())


def library_of(compiler, text, names):
    """Compile a text whose world is None, False, True, the class Box, TypeError and a function."""
    world = [None, False, True, Box, TypeError, failing]
    named = ("None", "False", "True", "Box", "TypeError", "failing")
    places = {f"world.{name}": 8 * number for number, name in enumerate(named)}
    places |= offsets(Box(), "value", "other") | {"object.type": place_of(Box(), Box)}
    text += "\n@public\ndef begin(place, object):\n    table = start()\n    table[place] = object\n"
    code = Translator(places, {"THREE": 3})
    code.translate(text)
    source = Code("test", "llvm", "begin", code.text(len(world)), 1)
    library = compiler.load(compiler.compile(source), ("begin", *names))
    keep_for_ever(library, Box, failing)
    begin = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64)(library["begin"])
    for number, value in enumerate(world):
        begin(number, id(value))
    return library


def failing():
    raise KeyError("of Python")


def words(compiler, text, name, *arguments):
    """Call a function of words."""
    address = library_of(compiler, text, (name,))[name]
    kinds = [ctypes.c_int64] * (len(arguments) + 1)
    return ctypes.CFUNCTYPE(*kinds)(address)(*arguments)


ARITHMETIC = """
@public
def compute(a, b):
    "of two words"
    total = 0
    for number in range(a):
        if number == 2 or (number > 4 and not number == 6):
            total = total + number * b
        else:
            total = total - 1
    if total != 0 and b < 0:
        return 0 - total
    return (total & 1023) | (b >> 1)

@public
def needed(a, b):
    need(a and not b or a > 5)
    for number in range(b):
        need(number < 3)
    return a + b

@public
def nested(count):
    sums = room(3)
    for at in range(THREE):
        sums[at] = 0
        for each in range(at):
            sums[at] = sums[at] + each * count
    return sums[0] + sums[1] * 10 + sums[2]
"""


@pytest.mark.parametrize(("a", "b"), [(0, 4), (3, 2), (8, 5), (9, -3)])
def test_statements_compute_what_python_does(compiler, a, b):
    total = 0
    for number in range(a):
        total += number * b if number == 2 or (number > 4 and number != 6) else -1
    wanted = -total if total and b < 0 else (total & 1023) | ((b % (1 << 64)) >> 1)
    found = words(compiler, ARITHMETIC, "compute", a, b)
    assert found % (1 << 64) == wanted % (1 << 64)


@pytest.mark.parametrize(
    ("a", "b", "found"), [(2, 0, 2), (2, 1, 0), (6, 3, 9), (6, 4, 0), (0, 0, 0)]
)
def test_what_is_needed(compiler, a, b, found):
    assert words(compiler, ARITHMETIC, "needed", a, b) == found


def test_loops_nest(compiler):
    assert words(compiler, ARITHMETIC, "nested", 7) == 7


SHARED = """
def added(table: shared, more):
    while table.first < more:
        atomic_add(table.first, 3)
    return table.first

@public
def use(table: shared, more):
    "what is there before and after"
    atomic_write(table.second, added(table, more) << 4)
    before = atomic_and(table.second, 4095)
    if atomic_swap(table.first, 0, 1) or not atomic_swap(table.second, before & 4095, 7):
        return 0 - 1
    table.third = before // more
    return atomic_read(table.second) + (table.third << 8)
"""


def test_words_of_several_threads():
    places = {f"shared.{name}": 8 * at for at, name in enumerate(("first", "second", "third"))}
    code = Translator(places, {}, shared="shared")
    code.translate(SHARED)
    compiler = Compiler(host())
    library = compiler.load(compiler.compile(Code("test", "llvm", "use", code.text(), 1)), ("use",))
    table = (ctypes.c_int64 * 3)()
    use = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(library["use"])
    assert use(ctypes.addressof(table), 10) == 7 + (19 << 8)
    assert list(table) == [12, 7, 19]


CALLED = """
def value_of(box: Box):
    return own(box.value)

@python
def swap(self, arguments, count):
    if count != 2:
        refuse("swap takes a box and a value")
    box: Box = arguments[0]
    if type_of(box) != world.Box:
        refuse("swap takes a box")
    before = value_of(box)
    replace(box.value, own(arguments[1]))
    return before

@python
def fails(self, arguments, count):
    found = PyObject_CallObject(world.failing, 0)
    if found == 0:
        return own(None)
    return found

@python
def calls(self, arguments, count):
    need(count == 3)
    pair = PyTuple_Pack(2, arguments[1], arguments[2])
    need(pair)
    found = PyObject_CallFunctionObjArgs(arguments[0], arguments[1], pair, arguments[2], 0)
    Py_DecRef(pair)
    return found
"""


@pytest.fixture(scope="module")
def called(compiler):
    names = ("swap", "fails", "calls")
    library = library_of(compiler, CALLED, names)
    return {name: callable_of(defined(name, library[name], FASTCALL), None) for name in names}


def test_slots_are_read_and_written(called):
    box, first, second = Box(), object(), object()
    box.value, box.other = first, "other"
    assert called["swap"](box, second) is first
    assert box.value is second
    assert box.other == "other"


def test_a_slot_that_was_never_set_is_nothing(called):
    box = Box()
    assert called["swap"](box, 1) is None  # 0 without an error
    assert box.value == 1


def test_references_are_kept_count_of(called):
    box, swap = Box(), called["swap"]
    box.value, one, two = object(), object(), object()
    swap(box, one)
    counts = [sys.getrefcount(each) for each in (one, two)]
    for _ in range(100_000):
        swap(box, two)
        swap(box, one)
    assert [sys.getrefcount(each) for each in (one, two)] == counts


@pytest.mark.parametrize("given", [(), (1,), (1, 2), (Box, 2), ("box", None), (None, None, None)])
def test_wrong_arguments_are_a_type_error(called, given):
    with pytest.raises(TypeError, match="swap takes a box"):
        called["swap"](*given)


def test_functions_are_called_with_several_objects(called):
    one, two = object(), object()
    counts = [sys.getrefcount(each) for each in (one, two)]
    assert called["calls"](lambda *given: given == (one, (one, two), two), one, two) is True
    assert [sys.getrefcount(each) for each in (one, two)] == counts
    with pytest.raises(ZeroDivisionError):
        called["calls"](lambda *given: 1 // 0, one, two)


def test_errors_of_python_are_raised(called):
    with pytest.raises(KeyError, match="of Python"):
        called["fails"]()
    assert gc.isenabled()


def test_garbage_stays_off_where_it_was(called):
    gc.disable()
    try:
        with pytest.raises(KeyError):
            called["fails"]()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "def f(a):\n    with a:\n        a = 0",
        "def f(a):\n    return [a]",
        "def f(a):\n    return a.b(1)",
        "def f(a):\n    for x in a:\n        a = 0",
        "def f(a):\n    a: Box",
    ],
)
def test_what_the_language_lacks_is_an_error(text):
    with pytest.raises(InternalError):
        Translator({}, {}).translate(text)


@pytest.mark.parametrize("text", ["def f(a):\n    return b", "def f(a):\n    return a.slot"])
def test_unknown_names_are_errors(text):
    with pytest.raises(KeyError):
        Translator({}, {}).translate(text)


def test_a_table_keeps_what_it_names():
    table, value = Table(), object()
    count = sys.getrefcount(value)
    table.fill([table.name(value), table.part([1, 2, 3])])
    assert sys.getrefcount(value) == count + 1
    assert list((ctypes.c_int64 * 3).from_address(table.words[1])) == [1, 2, 3]
    assert (ctypes.c_uint64 * 2).from_address(table.address)[0] == id(value)


def test_a_text_that_another_thread_disturbs_is_parsed_again(monkeypatch):
    parse, failures = ast.parse, [SystemError("recursion depth mismatch")] * 2

    def disturbed(text):
        if failures:
            raise failures.pop()
        return parse(text)

    with monkeypatch.context() as patch:  # what tells of a failure parses, too
        patch.setattr(ast, "parse", disturbed)
        found = parsed("a = 1")
    assert ast.unparse(found) == "a = 1" and not failures
