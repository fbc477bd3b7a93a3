"""Index: quasi-affine integer expressions with known bounds.

    Index = const + sum(coefficient * atom)
    atom  = Axis | Div(Index, n) | Mod(Index, n) | Dynamic(expr, lo, hi)

`Div` and `Mod` floor. Every Index knows its inclusive bounds `lo..hi`. Smart constructors simplify
where that terminates by structure: nothing here rewrites until a fixed point. A `Dynamic` atom is
a value read at run time (a gathered row number) whose bounds are promised by the caller.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from math import gcd
from typing import Any, Union

AXIS_NUMBERS = count()


class Axis:
    """One loop variable running over 0..size-1. Compared by identity; `name` is for people."""

    __slots__ = ("bounds", "name", "number", "size")

    def __init__(self, name: str, size: int) -> None:
        self.name: str = name
        self.size: int = size
        self.number: int = next(AXIS_NUMBERS)
        self.bounds: tuple[int, int] = 0, max(size - 1, 0)

    def __repr__(self) -> str:
        return f"{self.name}:{self.size}"


class Div:
    """Floor division of an index by a positive constant."""

    __slots__ = ("bounds", "hash", "index", "n")

    def __init__(self, index: "Index", n: int) -> None:
        self.index: Index = index
        self.n: int = n
        self.bounds: tuple[int, int] = index.lo // n, index.hi // n
        self.hash: int = hash(("div", index, n))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Div) and self.n == other.n and self.hash == other.hash
        return same and self.index == other.index  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"({self.index})//{self.n}"


class Mod:
    """Remainder (never negative) of an index by a positive constant."""

    __slots__ = ("bounds", "hash", "index", "n")

    def __init__(self, index: "Index", n: int) -> None:
        self.index: Index = index
        self.n: int = n
        self.bounds = 0, n - 1
        self.hash: int = hash(("mod", index, n))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Mod) and self.n == other.n and self.hash == other.hash
        return same and self.index == other.index  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"({self.index})%{self.n}"


class Dynamic:
    """An integer computed at run time by a loop `Expr`, promised to lie in lo..hi."""

    __slots__ = ("bounds", "expr")

    def __init__(self, expr: Any, lo: int, hi: int) -> None:
        self.expr: Any = expr
        self.bounds: tuple[int, int] = (lo, hi)

    def __hash__(self) -> int:
        return hash(("dynamic", self.expr, self.bounds))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dynamic) and self.expr == other.expr

    def __repr__(self) -> str:
        return f"[{self.expr}]"


Atom = Union[Axis, Div, Mod, Dynamic]
Indices = tuple["Index", ...]  # one per dimension of an array
Axes = tuple[Axis, ...]
Bindings = Mapping[Axis, "Index"]  # what axes stand for


class Index:
    """const + sum of coefficient * atom, canonical: no zero coefficient, atoms distinct."""

    __slots__ = ("const", "hash", "hi", "lo", "terms")

    def __init__(self, terms: tuple[tuple[Atom, int], ...], const: int) -> None:
        self.terms: tuple[tuple[Atom, int], ...] = terms
        self.const: int = const
        lo = hi = const
        for atom, c in terms:
            low, high = atom.bounds if c > 0 else atom.bounds[::-1]
            lo += c * low
            hi += c * high
        self.lo: int = lo
        self.hi: int = hi
        self.hash: int = hash((frozenset(terms), const))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Index) or self.hash != other.hash or self.const != other.const:
            return False
        return self.terms == other.terms or dict(self.terms) == dict(other.terms)

    def __add__(self, other: Union["Index", int]) -> "Index":
        if isinstance(other, int):
            return Index(self.terms, self.const + other) if other else self
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        return build([*self.terms, *other.terms], self.const + other.const)

    def __sub__(self, other: Union["Index", int]) -> "Index":
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> "Index":
        if factor == 1:
            return self
        if factor == 0:
            return constant(0)
        return Index(tuple((atom, c * factor) for atom, c in self.terms), self.const * factor)

    def __floordiv__(self, n: int) -> "Index":
        if n == 1:
            return self
        whole, rest = split_multiples(self, n)
        if rest.lo >= 0 and rest.hi < n:
            return whole
        return whole + divide(rest, n)

    def __mod__(self, n: int) -> "Index":
        if n == 1:
            return constant(0)
        _, rest = split_multiples(self, n)
        if rest.lo >= 0 and rest.hi < n:
            return rest
        return remainder(rest, n)

    def __repr__(self) -> str:
        parts = [f"{c}*{name(atom)}" if c != 1 else name(atom) for atom, c in self.terms]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts)


def name(atom: Atom) -> str:
    """Print one atom."""
    return atom.name if isinstance(atom, Axis) else repr(atom)


ZERO = Index((), 0)


def constant(value: int) -> Index:
    """Make a constant index."""
    return ZERO if type(value) is int and not value else Index((), value)


def axis_index(axis: Axis) -> Index:
    """Make the index that is an axis; the constant 0 for an axis of size 1."""
    return Index(((axis, 1),), 0) if axis.size != 1 else constant(0)


def atom_index(atom: Atom) -> Index:
    """Make the index that is one atom."""
    return Index(((atom, 1),), 0)


def build(terms: Iterable[tuple[Atom, int]], const: int) -> Index:
    """Sum terms, merging equal atoms and joining n*(x//n) + x%n into x."""
    merged: dict[Atom, int] = {}
    for atom, c in terms:
        merged[atom] = merged.get(atom, 0) + c
    for atom in [a for a in merged if isinstance(a, Mod)]:
        c, partner = merged.get(atom, 0), quotient(atom)
        if c and merged.get(partner) == c * atom.n:
            del merged[atom], merged[partner]
            joined = atom.index * c
            kept = [(a, k) for a, k in merged.items() if k]
            return build([*kept, *joined.terms], const + joined.const)
    return Index(tuple((a, c) for a, c in merged.items() if c), const)


def quotient(atom: Mod) -> Div:
    """Find the atom that belongs to a remainder: x//n for x%n, as `divide` would write it."""
    terms = atom.index.terms
    if len(terms) == 1 and atom.index.const == 0 and terms[0][1] == 1:
        inner = terms[0][0]
        if isinstance(inner, Div):
            return Div(inner.index, inner.n * atom.n)
    return Div(atom.index, atom.n)


def split_multiples(x: Index, n: int) -> tuple[Index, Index]:
    """Write x = n * whole + rest, moving every multiple of n out of `rest`."""
    whole = tuple((a, c // n) for a, c in x.terms if c % n == 0)
    rest = tuple((a, c) for a, c in x.terms if c % n)
    return Index(whole, x.const // n), Index(rest, x.const % n)


def common_factor(x: Index, n: int) -> int:
    """Largest g dividing n and every coefficient of x."""
    g = n
    for _, c in x.terms:
        g = gcd(g, c)
    return g


def separate(x: Index, n: int) -> tuple[int, Index, Index] | None:
    """Write x = g * y + rest with g > 1 dividing n and rest within 0..g-1, if some term allows."""
    for g in sorted({gcd(n, c) for _, c in x.terms}, reverse=True):
        if g > 1:
            whole, rest = split_multiples(x, g)
            if rest.lo >= 0 and rest.hi < g:
                return g, whole, rest
    return None


def divide(x: Index, n: int) -> Index:
    """x // n where no term of x is a multiple of n and x may leave 0..n-1."""
    g = common_factor(x, n)
    if g > 1:  # (g*y + c) // n == (y + c//g) // (n//g), since 0 <= c % g < g
        y = Index(tuple((a, c // g) for a, c in x.terms), x.const // g)
        return y // (n // g)
    apart = separate(x, n)
    if apart:  # (g*y + rest) // n == y // (n//g)
        return apart[1] // (n // apart[0])
    if len(x.terms) == 1 and x.const == 0 and x.terms[0][1] == 1:
        atom = x.terms[0][0]
        if isinstance(atom, Div):
            return atom.index // (atom.n * n)
    return atom_index(Div(x, n))


def remainder(x: Index, n: int) -> Index:
    """x % n where no term of x is a multiple of n and x may leave 0..n-1."""
    g = common_factor(x, n)
    if g > 1:
        y = Index(tuple((a, c // g) for a, c in x.terms), x.const // g)
        return (y % (n // g)) * g + x.const % g
    apart = separate(x, n)
    if apart:
        return apart[1] % (n // apart[0]) * apart[0] + apart[2]
    if len(x.terms) == 1 and x.const == 0 and x.terms[0][1] == 1:
        atom = x.terms[0][0]
        if isinstance(atom, Mod) and atom.n % n == 0:
            return atom.index % n
    return atom_index(Mod(x, n))


def substitute(
    x: Index,
    axes: Mapping[Axis, Index],
    rewrite_expr: Callable[[Any], Any] = lambda expr: expr,
    known: dict[Any, Index] | None = None,
) -> Index:
    """Replace axes by indices; `rewrite_expr` does the same inside Dynamic atoms.

    An index in which nothing is replaced stays itself. `known` keeps what quotients and remainders
    became, for other indices over the same axes.
    """
    for atom, _ in x.terms:
        if atom in axes or type(atom) is not Axis:
            break
    else:
        return x
    known = {} if known is None else known
    moved: list[tuple[Atom, int]] = []
    plain: list[tuple[Atom, int]] = []
    const = x.const
    for atom, c in x.terms:
        if isinstance(atom, Axis):
            if atom not in axes:
                plain.append((atom, c))
                continue
            new = axes[atom]
        elif isinstance(atom, Dynamic):
            expr = rewrite_expr(atom.expr)
            plain.append((atom if expr is atom.expr else Dynamic(expr, *atom.bounds), c))
            continue
        else:
            found = known.get(atom)
            if found is None:
                found = known[atom] = substitute_inside(atom, axes, rewrite_expr, known)
            new = found
        moved += [(each, factor * c) for each, factor in new.terms]
        const += new.const * c
    if const == x.const and moved + plain == list(x.terms):
        return x
    return build(moved + plain, const)


def substitute_inside(
    atom: Div | Mod,
    axes: Mapping[Axis, Index],
    rewrite_expr: Callable[[Any], Any],
    known: dict[Any, Index],
) -> Index:
    """Replace axes in what is divided."""
    inner = substitute(atom.index, axes, rewrite_expr, known)
    if inner is atom.index:
        return atom_index(atom)
    return inner // atom.n if isinstance(atom, Div) else inner % atom.n


def flatten(indices: Iterable[Index], shape: Iterable[int]) -> Index:
    """Row-major position of one element of an array of `shape`."""
    flat = constant(0)
    for index, size in zip(indices, shape, strict=True):
        flat = flat * size + index
    return flat


def position_over(axes: Iterable[Axis]) -> Index:
    """Row-major position of one point of the space spanned by `axes`."""
    axes = tuple(axes)
    return flatten([axis_index(axis) for axis in axes], [axis.size for axis in axes])


def unflatten(flat: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """Coordinates, in an array of `shape`, of the element at row-major position `flat`."""
    result: list[Index] = []
    for number, size in enumerate(reversed(shape)):
        is_first = number == len(shape) - 1
        result.append(flat if is_first else flat % size)
        flat = flat if is_first else flat // size
    return tuple(reversed(result))


def axes_of(x: Index) -> set[Axis]:
    """Every axis an index mentions, inside div and mod too (not inside Dynamic)."""
    found: set[Axis] = set()
    for atom, _ in x.terms:
        if isinstance(atom, Axis):
            found.add(atom)
        elif not isinstance(atom, Dynamic):
            found |= axes_of(atom.index)
    return found


def evaluate(x: Index, values: Mapping[Axis, Any], read: Callable[[Any], Any]) -> Any:
    """Compute an index with NumPy; `read` evaluates the Expr of a Dynamic atom."""
    total: Any = x.const
    for atom, c in x.terms:
        if isinstance(atom, Axis):
            value = values[atom]
        elif isinstance(atom, Dynamic):
            value = read(atom.expr)
        elif isinstance(atom, Div):
            value = evaluate(atom.index, values, read) // atom.n
        else:
            value = evaluate(atom.index, values, read) % atom.n
        total = total + c * value
    return total
