"""Op: one row of the op table, its columns, and the dtype rules rows choose from.

A row is everything the front half knows about one op; no other code asks for an op by its name. It
asks for a column: `node.row.role`, or, where that is looked up often, `node.op in ops_of(role)`.

    role       what the schedule makes of it: `Role`
    numpy      the meaning: an elementwise row takes the arrays of its inputs, every other row takes
               `(node, *arrays)`
    shape      `shape(arg, *shapes)` of the result, by the argument and the shapes of the inputs
               (None: the node has a shape of its own)
    data       from which input to which they have the dtype that the rule is about: not conditions,
               indices, starts
    check      `check(node)` says what is wrong with its argument, or its other inputs
    vjp        `vjp(gradient, output, *inputs)` builds the gradients of the inputs out of nodes
               (None: no gradient)
    exact      of a composite: `exact(node)` is a form of it that is differentiated in place of a
               `vjp`, where what is fast to compute has other derivatives at some points
    expand     of a composite: `expand(node)` is the same value out of primitives;
               `expand_on(node, target)` where the target decides how
    batch      the rule of vmap: `batch(batch, node, found)` computes all samples (graph/batch.py)
    batch_arg  where only axes are counted anew: `batch_arg(arg, size)` is the argument of the op
               on a batch of so many samples (graph/batch_rules.py)
    view       how a view shows its input: `View`
    dimensions `dimensions(node)`: the dimension of the input that each of its own runs along,
               whole and in order, or -1; None if that cannot be told
    hero       the template of the kernel that it has to itself, if it has
    stored     `is_stored`: its value is asked to be in memory
    showing    `is_showing`: its elements are those of its input, or there before: no memory of
               its own, however often it shows one
    same_bytes `is_same_bytes`: its elements in row-major order are those of its input
    repeating  `is_repeating`: it shows an element as often as an axis is long
    keeps_value  of a conversion: it gives the numbers of its input, as far as its dtype has them
    reinterpret  `reinterpret(array, dtype, other)`: the meaning of a row that needs both dtypes
    shifting   `is_shifting`: an element is computed of others than those at its place
    sizes      what it does where sizes vary: `Sizes`
    starts     where its argument holds positions that a user gave: `Starts`
    identities the numbers that leave the other operand as it is: on the left, on the right
    simpler    `simpler(a, number)` records the op on a constant otherwise, or gives None
    bounds     of integers: `bounds(node, look)` gives the least and the largest (graph/bounds.py)
    factors    of a sum of its inputs: what each is multiplied by
    linear     the inputs in which it is linear, the others given: a sum over them may come first
    is_exponential  its value at a difference is a quotient of values: e(a - b) = e(a) / e(b)
    is_shiftless  it stays as it is if one number is added all along the axis of its argument
    logarithm  of an exponential: the op that undoes it
    least      of a comparison of numbers: it holds where the second less the first is at least this
               (integers)
    logic      how it combines what holds: "both", "either" or "not"; whether two values are the
               "same", or one is an "other"
    on_bools   the op that it is for two bools, in the arithmetic of users
    operand    how it takes a Python number beside a tensor: in float32 where that has 16 bits
               ("wide"), an integer as code ("code"), or as a value that has to fit ("value")
    of_complex `of_complex(*inputs)`: the value for complex inputs, in real arithmetic
    slopes     `slopes(value, *inputs)`: the derivatives of that, where its arithmetic has corners
    bent       `is_bent`: its slope is constant but for corners, and second derivatives are zeros
    pointwise  `is_pointwise`: a composite that works on each element by itself
    cost       what one element takes, in simple scalar operations: estimates of fusion count it
    domain     where tests sample inputs, and where the derivative is continuous enough to check
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from picograd.dtype import DType, bool_, int64
from picograd.late_methods import Enum, dataclass
from picograd.target import Target


class Role(Enum):
    """What a node is to the schedule; a composite is none of it, as it is expanded before."""

    MEMORY = "contents of memory"
    INPUT = "what is bound to a loop's body at every step"
    PAIR = "complex numbers of real and imaginary parts"
    PARTS = "the parts of complex numbers"
    NUMBER = "one value, known when it is recorded: the argument"
    SCALAR = "a number that is passed to the kernel"
    POSITION = "the position along an axis"
    DRAW = "random bits, a function of a position and a seed"
    ELEMENTWISE = "each element from those at its place"
    VIEW = "each element is one of the input, or the fill value: an index"
    FOLD = "each element adds up those that windows read there"
    REDUCE = "axes combined by a monoid"
    CONTRACT = "a product summed over labels"
    CONV = "a product summed over taps and channels"
    GATHER = "elements read at places that are values"
    SCATTER = "elements written to places that are values, in a copy of the first input"
    SCAN = "running sums along an axis"
    SORT = "the order of an axis, or a step on the way to it"
    BINS = "sums of values by their numbers"
    ELIMINATION = "what is left of small matrices after some columns are eliminated"
    LOOP = "steps of a body: no value of its own"
    RESULT = "one array that a loop computes"
    FLOW = "a cotangent of a loop, while its gradient is taken"
    HOST = "a function that the host computes"
    PASS = "the value of its input"
    COPY = "the value of its input on another device"
    WRITE = "the value of its last input, in the memory of its first"
    PART = "a value written over what a view shows of the first input"
    COMPOSITE = "written as primitives"


@dataclass(frozen=True, slots=True)
class DTypeRule:
    """Which kinds of dtype an op takes, and what it returns: the same dtype, or another.

    That is bool for a predicate, what `gives` says, or what the argument says if that is a dtype.
    """

    kinds: tuple[str, ...]
    is_predicate: bool = False
    wanted: str = "any dtype"
    gives: DType | None = None

    def __post_init__(self) -> None:
        if self.is_predicate:
            object.__setattr__(self, "gives", bool_)

    def result(self, dtype: DType) -> DType:
        """Result dtype for inputs of `dtype`, unless the argument of the node is one."""
        return self.gives or dtype


EVERY_KIND = ("bool", "uint", "int", "float")
COMPLEX_KIND = "complex"
STORED_KIND = (*EVERY_KIND, "float8", COMPLEX_KIND)
ANY = DTypeRule(STORED_KIND)
ORDERED = DTypeRule(EVERY_KIND, wanted="any dtype but an 8-bit float")
FACTOR = DTypeRule(
    ("uint", "int", "float", "float8", "complex"), wanted="an integer or float dtype"
)
SUMMED = DTypeRule((*EVERY_KIND, COMPLEX_KIND), wanted="any dtype but an 8-bit float")
NUMBER = DTypeRule(("uint", "int", "float"), wanted="an integer or float dtype")
FLOAT = DTypeRule(("float",), wanted="a float dtype")
INTEGER = DTypeRule(("uint", "int"), wanted="an integer dtype")
BITS = DTypeRule(("bool", "uint", "int"), wanted="bool or an integer dtype")
LOGICAL = DTypeRule(("bool",), True, "bool")
COMPARE = DTypeRule(EVERY_KIND, True, "any dtype but an 8-bit float")
EQUALITY = DTypeRule(STORED_KIND, True)
FLOAT_TEST = DTypeRule(("float", "float8"), True, "a float dtype")
PLACES = DTypeRule(EVERY_KIND, wanted="any dtype but an 8-bit float", gives=int64)


@dataclass(frozen=True, slots=True)
class View:
    """How a view shows its input.

    strides     `strides(node, strides)` in memory, of those of its input; None for a copy
    offset      `offset(node, strides)`: how far its first element is from that of its input
    show        `show(node, arg)` records it
    back        `back(source, arg, value)` is the source after `value` was written over what is
                shown; None where that may be one element several times
    inverse     `inverse(node)` is the argument of the way back, of the same op: the view shows
                every element once, and two in a row are recorded as one
    """

    strides: Callable[[Any, tuple[int, ...]], tuple[int, ...] | None]
    offset: Callable[[Any, tuple[int, ...]], int] | None = None
    show: Callable[[Any, Any], Any] | None = None
    back: Callable[[Any, Any, Any], Any] | None = None
    inverse: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """What an op does where sizes vary (graph/axes.py, graph/bounded.py, graph/bounded_rules.py).

    link       `link(axes, node)` joins axes of one size
    bounded    `bounded(graph, node)` makes the node laid out for the largest sizes
    derived    `derived(axes, node)` lists axes whose sizes follow from those of an input
    natural    `natural(axes, node, bounds)` gives bounds that follow from those of an input
    note       `note(node)` is what of the argument is compared with later recordings
    compare    `compare(changes, number, node, noted)` adds how that differs
    is_whole   all that is laid out is computed: places, by which others read it
    """

    link: Callable[[Any, Any], None]
    bounded: Callable[[Any, Any], Any] | None = None
    derived: Callable[[Any, Any], list[Any]] | None = None
    natural: Callable[[Any, Any, Any], list[tuple[int, int]]] | None = None
    note: Callable[[Any], Any] | None = None
    compare: Callable[[Any, int, Any, Any], None] | None = None
    is_regrouping: bool = False  # it merges axes, and splits them
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Starts:
    """Positions in an argument (graph/starts.py): which there are, and the argument with others."""

    found: Callable[[Any], list[Any]]
    changed: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Op:
    """One row: see the module docstring. `arity` -1: it takes any number of inputs."""

    name: str
    role: Role
    arity: int
    dtype_rule: DTypeRule
    numpy: Callable[..., Any] | None = None
    vjp: Callable[..., tuple[Any, ...]] | None = None
    expand: Callable[[Any], Any] | None = None
    domain: tuple[float, float] = (-3.0, 3.0)
    expand_on: Callable[[Any, Target], Any] | None = None
    cost: int = 1
    shape: Callable[..., tuple[int, ...]] | None = None
    data: tuple[int, int | None] = (0, None)
    check: Callable[[Any], str] | None = None
    batch: Callable[[Any, Any, Sequence[Any]], Any] | None = None
    batch_arg: Callable[[Any, int], Any] | None = None
    view: View | None = None
    is_shifting: bool = False
    sizes: Sizes | None = None
    starts: Starts | None = None
    bounds: Callable[[Any, Any], tuple[int, int] | None] | None = None
    identities: tuple[int | None, int | None] = (None, None)
    simpler: Callable[[Any, Any], Any] | None = None
    factors: tuple[int, ...] = ()
    linear: tuple[int, ...] = ()
    is_exponential: bool = False
    is_shiftless: bool = False
    logarithm: str = ""
    least: int | None = None
    logic: str = ""
    on_bools: str = ""
    operand: str = ""
    is_pointwise: bool = False
    is_bent: bool = False
    hero: str = ""
    is_stored: bool = False
    is_same_bytes: bool = False
    is_repeating: bool = False
    keeps_value: bool = False
    reinterpret: Callable[[Any, DType, DType], Any] | None = None
    is_showing: bool = False
    dimensions: Callable[[Any], tuple[int, ...] | None] | None = None
    of_complex: Callable[..., Any] | None = None
    slopes: Callable[..., tuple[Any, ...]] | None = None
    exact: Callable[[Any], Any] | None = None

    @property
    def may_expand(self) -> bool:
        """Tell whether the op is written with primitives, at least in some cases."""
        return self.expand is not None or self.expand_on is not None

    def expansion(self, node: Any, target: Target) -> Any:
        """Write a composite as primitives; None if it is one."""
        if self.expand_on is not None:
            return self.expand_on(node, target)
        return None if self.expand is None else self.expand(node)

    @property
    def is_elementwise(self) -> bool:
        """Tell whether the op works on each element by itself."""
        return self.role is Role.ELEMENTWISE

    @property
    def is_differentiable(self) -> bool:
        """Tell whether gradients flow through the op."""
        return self.vjp is not None or self.exact is not None


OPS: dict[str, Op] = {}  # by name; whole once graph/ops.py is imported
BY_ROLE = defaultdict[Role, set[str]](set)
MOVING: set[str] = set()  # ops with starts
MOVES: set[str] = set()  # views of all elements, in another order or shape
SHOWING: set[str] = set()  # views
PASSING: set[str] = set()  # ops that gradients flow through
EXPONENTIALS: set[str] = set()  # whose value at a difference is a quotient of values
EXPANDING: set[str] = set()  # written with primitives, at least in some cases
KEEPING: set[str] = set()  # that give the numbers of their input


def table(*rows: Op) -> dict[str, Op]:
    """Add rows to the op table; gives them by their names."""
    for row in rows:
        OPS[row.name] = row
        BY_ROLE[row.role].add(row.name)
        if row.starts is not None:
            MOVING.add(row.name)
        if row.view is not None:
            SHOWING.add(row.name)
            if row.view.inverse is not None:
                MOVES.add(row.name)
        if row.is_differentiable:
            PASSING.add(row.name)
        if row.is_exponential:
            EXPONENTIALS.add(row.name)
        if row.may_expand:
            EXPANDING.add(row.name)
        if row.keeps_value:
            KEEPING.add(row.name)
    return {row.name: row for row in rows}


def ops_of(role: Role) -> set[str]:
    """Find the ops of a role: the set itself, which grows until the table is whole."""
    return BY_ROLE[role]


NUMBERS, SCALARS, POSITIONS = map(ops_of, (Role.NUMBER, Role.SCALAR, Role.POSITION))
MEMORY, WRITES, VIEWS = map(ops_of, (Role.MEMORY, Role.WRITE, Role.VIEW))
INPUTS, PAIRS = map(ops_of, (Role.INPUT, Role.PAIR))
