"""Images: an object file laid out for memory, which is loaded by a copy and a few additions.

A linker takes 0.15 ms for an object, and 45 KB that it keeps. What we compile needs little of it:
sections beside one another, and addresses, all of 64 bits, of places in them and of functions of
the C library or of Python. So an object is laid out once, when it is compiled:

    image {"names": {"kernel": 0}, "inside": [[12, 320]], "outside": [[40, "memcpy", 0]]}\n<bytes>

Word 12 becomes the address of byte 320, word 40 that of `memcpy`. An object that has more to it
stays one, as those of other processors than x86-64, and of other systems than Linux, do.
"""

import ctypes
import json
import mmap
import struct
from functools import cache
from typing import Any

from picograd.helpers import round_up

HEAD = b"image "
BEGIN = b"\x7fELF\x02\x01"  # 64 bits, little endian
X86_64 = 62
SYMBOLS, RELOCATIONS, NO_BYTES, UNWIND = 2, 4, 8, 0x70000001  # kinds of sections
WRITABLE, ALLOCATED, THREADS = 1, 2, 0x400  # flags of sections
WORD = 1  # R_X86_64_64: the address of a symbol, and a number
GLOBAL, UNDEFINED = 1, 0  # of symbols: the binding, the section
PAGE = mmap.PAGESIZE


class Image:
    """This class is machine code in memory of its own; it maps names to addresses."""

    def __init__(self, content: bytes, symbols: tuple[str, ...] = ()) -> None:
        """Load what `image_of` made; RuntimeError if it is damaged, or a function is not there."""
        head, _, code = content.partition(b"\n")
        try:
            facts = json.loads(head.removeprefix(HEAD))
            size = max(len(code), 1)
            memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            memory[: len(code)] = code
            for at, target in facts["inside"]:
                struct.pack_into("<Q", memory, at, base + target)
            for at, name, number in facts["outside"]:
                struct.pack_into("<Q", memory, at, address_of(name) + number)
            self.names: dict[str, int] = {name: base + at for name, at in facts["names"].items()}
        except (ValueError, LookupError, TypeError, AttributeError, OSError, struct.error) as error:
            raise RuntimeError(f"damaged, or made elsewhere: {error}") from None
        if not self.names.keys() >= set(symbols):
            raise RuntimeError(f"it lacks one of {', '.join(symbols)}")
        if process().mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), 5):  # read and execute
            raise RuntimeError("the system refuses to run new code")
        self.memory: mmap.mmap = memory  # goes with the last reference

    def __getitem__(self, name: str) -> int:
        """Give the address of a function."""
        return self.names[name]


@cache
def process() -> Any:
    """Open what this process has loaded."""
    return ctypes.CDLL(None)


@cache
def address_of(name: str) -> int:
    """Find a function of this process."""
    return ctypes.cast(getattr(process(), name), ctypes.c_void_p).value or 0


def image_of(content: bytes) -> bytes:
    """Lay an object file out; gives it back as it is where that cannot be."""
    if content[:6] != BEGIN or struct.unpack_from("<H", content, 18) != (X86_64,):
        return content
    try:
        return laid_out(content)
    except Unusual:
        return content


class Unusual(Exception):
    """This class is raised for an object that has more to it than code, constants and addresses."""


def laid_out(content: bytes) -> bytes:
    """Lay out an object file for x86-64; Unusual if that is not enough."""
    sections, code = read_sections(content), bytearray()
    places: dict[int, int] = {}
    for number, (_, kind, flags, _, start, size, _, _, align, _) in enumerate(sections):
        if not flags & ALLOCATED or kind == UNWIND:
            continue
        if flags & (WRITABLE | THREADS) or align > PAGE:
            raise Unusual
        code += bytes(round_up(len(code), max(align, 1)) - len(code))
        places[number] = len(code)
        code += bytes(size) if kind == NO_BYTES else content[start : start + size]
    inside, outside = [], []
    names: dict[str, int] = {}
    for _, kind, _, _, start, size, linked, target, _, _ in sections:
        if kind != RELOCATIONS or target not in places:
            continue
        for at, info, number in struct.iter_unpack("<QQq", content[start : start + size]):
            name, _, section, value = read_symbol(content, sections, linked, info >> 32)
            kind_of_place = info & 0xFFFFFFFF
            if kind_of_place != WORD:
                raise Unusual
            place = places[target] + at
            if section == UNDEFINED:
                outside.append((place, name, number))
            elif section in places:
                begin = places[section]
                inside.append((place, begin + value + number))
            else:
                raise Unusual
    for table, (_, kind, _, _, _, size, _, _, _, entry) in enumerate(sections):
        if kind == SYMBOLS:
            for number in range(size // entry):
                name, binding, section, value = read_symbol(content, sections, table, number)
                if binding == GLOBAL and section in places:
                    names[name] = places[section] + value
    facts = {"names": names, "inside": inside, "outside": outside}
    return HEAD + json.dumps(facts).encode() + b"\n" + code


def read_sections(content: bytes) -> list[tuple[int, ...]]:
    """List sections: name, kind, flags, address, start, size, link, info, alignment, entry."""
    (start,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    return [struct.unpack_from("<IIQQQQIIQQ", content, start + n * size) for n in range(count)]


def read_symbol(
    content: bytes, sections: list[tuple[int, ...]], table: int, number: int
) -> tuple[str, int, int, int]:
    """Read a symbol: name, binding, section, value."""
    start, texts = sections[table][4], sections[sections[table][6]][4]
    at, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", content, start + 24 * number)
    name = content[texts + at : content.index(b"\0", texts + at)].decode()
    return name, info >> 4, section, value
