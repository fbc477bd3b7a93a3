"""Emitter: appends Program instructions for the expressions and indices of a kernel.

Both linearizers use it. A value is the position (int) of an instruction. The emitter memoises what
it computes per scope: leaving a loop or a branch forgets what was computed inside.

8- and 16-bit floats: every value of such a dtype is carried as float32. It is rounded where an
expression says `cast`, and on store, but not after each elementwise operation.

A guard turns into a mask: loads inside it run under the mask and give 0 where it is false.

Vectors: inside `scope(vector=(axis, lanes))` the axis is bound to the coordinate of lane 0, loads
with stride 1 along it become vector loads, values that do not depend on it stay scalars (splatted
where they meet a vector), and whatever cannot be done on vectors is done lane by lane and packed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from picograd.codegen.descend import descend
from picograd.codegen.half_draws import half, half_of_lane
from picograd.codegen.lanes import is_beside, is_uniform, is_unit
from picograd.codegen.program import Instr
from picograd.codegen.value import Value, decode_float8, encode_float8, round_to_odd
from picograd.dtype import DType, bfloat16, bool_, float32, float64, int64
from picograd.errors import check
from picograd.late_methods import dataclass
from picograd.schedule.draws import is_half_drawn
from picograd.schedule.index import Axis, Div, Dynamic, Index, axes_of
from picograd.schedule.loop import (
    DRAWN,
    Condition,
    Expr,
    Kernel,
    dynamic_children,
    dynamics_of,
    indices_of,
)

BOOL_RESULT = {"less", "less_equal", "equal", "not_equal", "isnan", "and", "or", "not"}
PYTHON_INDEX = {  # folding of index arithmetic on constants
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "quotient": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
}
Function = Callable[..., int]  # (emitter, result dtype, *argument positions) -> position


def compute_dtype(dtype: DType) -> DType:
    """Find the dtype in which values of `dtype` are carried: float32 for 8- and 16-bit floats."""
    return float32 if dtype.is_narrow_float else dtype


@dataclass(slots=True)
class Scope:
    """What is known inside one loop, branch or step."""

    axes: dict[Axis, int] = field(default_factory=dict)
    memo: dict[Any, int] = field(default_factory=dict)
    mask: int | None = None
    vector: tuple[Axis, int] | None = None
    known: set[Condition] = field(default_factory=set)  # conditions that hold here
    lanes: dict[Any, "Scope"] = field(default_factory=dict)  # what is known of each of a vector
    lane: int | None = None  # of the vector of the scope around it


class Emitter:
    """Builds the instruction list of one Program.

    `functions` maps an op name, or "cast to <dtype>", to a function that writes it with simpler
    instructions (see `decompose.py`); other ops become one instruction. `read(emitter, expr)`
    resolves `tile` reads (and `ref`, if any is left) to a value.
    """

    scopes: list[Scope]
    slots: list[int]
    scalars: list[int]

    def __init__(
        self,
        kernel: Kernel,
        functions: Mapping[str, Function],
        read: Callable[["Emitter", Expr], int],
        index_dtype: DType = int64,
    ) -> None:
        self.instructions: list[Instr] = []
        self.functions = functions
        self.read = read
        self.index_dtype = index_dtype
        self.scopes = [Scope()]
        self.constants: dict[tuple[str, DType], int] = {}
        self.numbers: dict[int, Any] = {}  # what constants are, in one lane or in all
        self.narrow: dict[int, int] = {}  # what was widened to float32: moving it keeps its bits
        self.slots = [self.add("param", s.dtype, arg=n) for n, s in enumerate(kernel.slots)]
        self.scalars = [self.add("scalar", d, arg=n) for n, d in enumerate(kernel.scalars)]
        # What lanes read one by one is loaded as a vector where it can be.
        self.is_gathering = False
        self.drawn: dict[Expr, tuple[int, Index]] = {}  # ahead: where in which array
        self.axes_of_expr: dict[Expr, set[Axis]] = {}
        self.axes_of_index: dict[Index, set[Axis]] = {}

    # -- instructions -----------------------------------------------------------------------------

    def add(
        self,
        op: str,
        dtype: DType | None,
        args: Iterable[int] = (),
        arg: Any = None,
        lanes: int = 1,
    ) -> int:
        """Append one instruction and return its position."""
        self.instructions.append(Instr(op, dtype, tuple(args), arg, lanes))
        return len(self.instructions) - 1

    def get(self, array: int, place: int) -> int:
        """Read an element of an array of registers."""
        dtype = self.dtype(array)
        return self.add("get", dtype, (array, place))

    def put(self, array: int, place: int, value: int) -> None:
        """Write an element of an array of registers."""
        self.add("set", None, (array, place, value))

    def const(self, value: Any, dtype: DType) -> int:
        """Find or make a constant; constants may be used everywhere after their first use."""
        key = (repr(value), dtype)
        if key not in self.constants:
            self.constants[key] = self.add("const", dtype, arg=value)
            self.numbers[self.constants[key]] = value
        return self.constants[key]

    def constant_of(self, value: int) -> Any:
        """Find the number that a value is in every lane, None if it is not a constant."""
        return self.numbers.get(value)

    def dtype(self, value: int) -> DType:
        """Find the dtype of a value."""
        dtype = self.instructions[value].dtype
        check(dtype is not None, f"%{value} has no dtype")
        return dtype  # type: ignore[return-value]

    def lanes(self, value: int) -> int:
        """Count the lanes of a value."""
        return self.instructions[value].lanes

    def splat(self, value: int, lanes: int) -> int:
        """Repeat a scalar in every lane; a vector is returned as it is."""
        if self.lanes(value) == lanes:
            return value
        result = self.add("splat", self.dtype(value), (value,), lanes=lanes)
        if value in self.numbers:
            self.numbers[result] = self.numbers[value]
        return result

    def apply(self, op: str, *args: int, dtype: DType | None = None) -> int:
        """Append an elementwise operation, decomposed if the target cannot spell it."""
        if dtype is None:
            dtype = bool_ if op in BOOL_RESULT else self.dtype(args[-1])
        lanes = max(self.lanes(a) for a in args)
        if lanes > 1:
            args = tuple(self.splat(a, lanes) for a in args)
        function = self.functions.get(op)
        if function is not None:
            return function(self, dtype, *args)
        return self.add(op, dtype, args, lanes=lanes)

    def raw(self, op: str, dtype: DType, *args: int) -> int:
        """Append an elementwise operation as it is, never decomposed."""
        lanes = max(self.lanes(a) for a in args)
        if lanes > 1:
            args = tuple(self.splat(a, lanes) for a in args)
        return self.add(op, dtype, args, lanes=lanes)

    def cast(self, value: int, dtype: DType) -> int:
        """Convert a value; nothing is emitted when it has the dtype already."""
        source = self.dtype(value)
        if source is dtype:
            return value
        narrow = self.narrow.get(value)
        if narrow is not None and self.dtype(narrow) is dtype:
            return narrow
        if source.kind == "float8":
            wide = decode_float8(Value(self, value)).position
            self.narrow[wide] = value
            return self.cast(wide, dtype)
        if source is bfloat16 and dtype is not float32:
            return self.cast(self.cast(value, float32), dtype)
        if dtype is bool_:
            return self.apply("not_equal", value, self.const(0, source))
        if dtype.kind == "float8":
            single = Value(self, self.cast(value, float32))
            return encode_float8(single, dtype).position
        if dtype.is_narrow_float and source is float64:
            value = round_to_odd(Value(self, value)).position
        elif dtype.is_narrow_float and source is not float32:
            value = self.cast(value, float32)
        function = self.functions.get(f"cast to {dtype.name}")
        if function is not None:
            return function(self, dtype, value)
        result = self.add("cast", dtype, (value,), lanes=self.lanes(value))
        if source.is_narrow_float and dtype is float32:
            self.narrow[result] = value
        return result

    def load(self, pointer: int, index: int, mask: int | None = None, lanes: int = 1) -> int:
        """Load from a pointer and widen 8- and 16-bit floats to float32."""
        args = (pointer, index) if mask is None else (pointer, index, mask)
        value = self.add("load", self.dtype(pointer), args, lanes=lanes)
        return self.cast(value, compute_dtype(self.dtype(pointer)))

    def store(self, pointer: int, index: int, value: int, mask: int | None = None) -> None:
        """Store to a pointer, rounding to its dtype."""
        dtype = self.dtype(pointer)
        value = self.cast(value, dtype)
        args = (pointer, index, value) if mask is None else (pointer, index, value, mask)
        self.add("store", dtype, args, lanes=self.lanes(value))

    def both(self, a: int | None, b: int | None) -> int | None:
        """And two masks; None is true."""
        if a is None or b is None:
            return b if a is None else a
        return self.apply("and", a, b)

    # -- scopes -----------------------------------------------------------------------------------

    @contextmanager
    def scope(
        self, axes: Mapping[Axis, int] | None = None, vector: tuple[Axis, int] | None = None
    ) -> Iterator[None]:
        """Open a scope with more axes bound to values, and optionally one vector axis."""
        inner = Scope(dict(axes or {}), mask=self.scopes[-1].mask)
        inner.vector = vector or self.scopes[-1].vector
        self.scopes.append(inner)
        yield
        self.scopes.pop()

    @contextmanager
    def loop(
        self, start: int, stop: int, step: int = 1, is_unrolled: int | None = False
    ) -> Iterator[int]:
        """Open a loop and its scope; `start` and `stop` are positions of index values.

        `is_unrolled` None forbids unrolling; a number, of rounds, is for GPUs.
        """
        arg = (step, is_unrolled)
        variable = self.add("loop", self.index_dtype, (start, stop), arg)
        with self.scope():
            yield variable
        self.add("end", None)

    @contextmanager
    def axis_loop(self, axis: Axis, is_unrolled: int | None = False) -> Iterator[None]:
        """Open a loop over the whole of an axis, bound to the loop variable."""
        with self.loop(self.integer(0), self.integer(axis.size), 1, is_unrolled) as variable:
            self.scopes[-1].axes[axis] = variable
            yield

    @contextmanager
    def when(self, condition: int | None) -> Iterator[None]:
        """Open a branch taken if a scalar condition holds (None: always) and its scope."""
        if condition is not None:
            self.add("if", None, (condition,))
        with self.scope():
            yield
        if condition is not None:
            self.add("end", None)

    def bind(self, axis: Axis, value: int) -> None:
        """Bind an axis to a value in the innermost scope."""
        self.scopes[-1].axes[axis] = value

    def recall(self, key: Any) -> int | None:
        """Find a memoised value whose scope is still open and whose axes are not rebound since."""
        inner: list[Scope] = []
        for scope in reversed(self.scopes):
            found = scope.memo.get(key)
            if found is not None:
                return found if self.is_seen(key, inner) else None
            if scope.axes:
                inner.append(scope)
        return None

    def is_seen(self, key: Any, inner: Sequence[Scope]) -> bool:
        """Tell whether a value is the same inside of scopes that bind axes."""
        if not inner:
            return True
        first = key
        if isinstance(key, tuple):
            first = key[0]
        if isinstance(first, Index):
            axes = self.index_axes(first)
        else:
            axes = self.axes(first)
        vector = self.scopes[-1].vector
        for scope in inner:
            if scope.vector != vector:
                return False
            if not axes.isdisjoint(scope.axes):
                return False
        return True

    def remember(self, key: Any, value: int) -> int:
        """Memoise a value in the innermost scope."""
        self.scopes[-1].memo[key] = value
        return value

    def forget(self) -> None:
        """Drop every memoised expression: call it before each step, as memory may have changed."""
        for scope in self.scopes:
            scope.memo = {k: v for k, v in scope.memo.items() if not isinstance(k, tuple)}

    def axis_value(self, axis: Axis) -> int:
        """Find what an axis is bound to."""
        for scope in reversed(self.scopes):
            if axis in scope.axes:
                return scope.axes[axis]
        check(axis.size == 1, f"axis {axis!r} is not bound")
        return self.integer(0)

    def assume(self, conditions: Iterable[Condition]) -> None:
        """Note conditions that hold in the innermost scope: guards on them cost nothing."""
        self.scopes[-1].known.update(conditions)

    # -- indices ----------------------------------------------------------------------------------

    def integer(self, value: int) -> int:
        """Make a constant of the index type."""
        return self.const(value, self.index_dtype)

    def arithmetic(self, op: str, a: int, b: int) -> int:
        """Append integer arithmetic that cannot overflow; folds constants."""
        one = self.instructions[a]
        two = self.instructions[b]
        if one.op == two.op == "const":
            return self.integer(PYTHON_INDEX[op](one.arg, two.arg))
        if op == "add" and (one.op, one.arg) == ("const", 0):
            return b
        if op == "add" and (two.op, two.arg) == ("const", 0):
            return a
        if op == "mul" and (two.op, two.arg) == ("const", 1):
            return a
        return self.add(op, self.index_dtype, (a, b), "nowrap")

    def index(self, index: Index) -> int:
        """Append the arithmetic of an index and return its value."""
        key: Any = index
        if any(True for _ in dynamics_of(index)):  # it loads, under the present mask
            key = (index, self.scopes[-1].mask)
        found = self.recall(key)
        if found is not None:
            return found
        total: int | None = None
        for atom, factor in index.terms:
            value = self.atom(atom)
            term = self.arithmetic("mul", value, self.integer(factor))
            total = term if total is None else self.arithmetic("add", total, term)
        if total is None:
            return self.integer(index.const)
        total = self.arithmetic("add", total, self.integer(index.const))
        return self.remember(key, total)

    def atom(self, atom: Any) -> int:
        """Append the arithmetic of one atom of an index."""
        if isinstance(atom, Axis):
            return self.axis_value(atom)
        if isinstance(atom, Dynamic):
            return self.cast(self.value(atom.expr), self.index_dtype)
        # Division truncates at run time: lift a dividend that may be negative by a multiple of n.
        lift = max(0, -(atom.index.lo // atom.n))
        lifted = self.integer(lift * atom.n)
        dividend = self.arithmetic("add", self.index(atom.index), lifted)
        divisor = self.integer(atom.n)
        if isinstance(atom, Div):
            quotient = self.arithmetic("quotient", dividend, divisor)
            return self.arithmetic("add", quotient, self.integer(-lift))
        return self.arithmetic("remainder", dividend, divisor)

    def conditions(self, conditions: Iterable[Condition]) -> int | None:
        """Append the test that every lo <= index <= hi; None if that is known to hold."""
        mask: int | None = None
        for index, lo, hi in conditions:
            if any((index, lo, hi) in scope.known for scope in self.scopes):
                continue
            if index.lo < lo:
                bound = self.integer(lo)
                above = self.raw("less_equal", bool_, bound, self.index(index))
                mask = self.both(mask, above)
            if index.hi > hi:
                bound = self.integer(hi)
                below = self.raw("less_equal", bool_, self.index(index), bound)
                mask = self.both(mask, below)
        return mask

    # -- expressions ------------------------------------------------------------------------------

    def axes(self, root: Expr) -> set[Axis]:
        """Find every axis an expression depends on directly (tile reads count their indices)."""
        known = self.axes_of_expr
        stack = [root]
        while root not in known:
            expr = stack[-1]
            below = (*expr.args, *dynamic_children(expr))
            missing = [each for each in below if each not in known]
            stack += missing
            if not missing:
                found = [self.index_axes(index) for index in indices_of(expr)]
                known[expr] = set().union(*found, *(known[arg] for arg in expr.args))
                stack.pop()
        return known[root]

    def index_axes(self, index: Index) -> set[Axis]:
        """Find every axis of an index, Dynamic atoms included."""
        found = self.axes_of_index.get(index)
        if found is None:
            found = axes_of(index)
            for dynamic in dynamics_of(index):
                found = found | self.axes(dynamic.expr)
            self.axes_of_index[index] = found
        return found

    def value(self, root: Expr) -> int:
        """Append an expression and return its value, in the compute dtype of its dtype."""
        return descend(self, root)

    def known(self, expr: Expr, mask: int | None) -> int | None:
        """Find the value of an expression under a mask, if it was appended where it is seen."""
        if expr.op == "const":
            return self.constants.get((repr(expr.arg), compute_dtype(expr.dtype)))
        return self.recall((expr, mask))

    def evaluate(self, expr: Expr, args: list[int]) -> int:
        """Append one expression (no guard) that is not memoised, given its arguments' values."""
        if expr.op == "const":
            return self.const(expr.arg, compute_dtype(expr.dtype))
        if expr.op == "scalar":
            return self.cast(self.scalars[expr.arg], compute_dtype(expr.dtype))
        if expr.op == "load":
            return self.load_slot(expr)
        if expr.op == "index":
            return self.cast(self.index(expr.arg), compute_dtype(expr.dtype))
        if expr.op in ("tile", "ref"):
            return self.read(self, expr)
        if is_half_drawn(expr):
            return half(self, expr)
        if expr.op == "cast":
            # Through the true dtype: this is where a 16-bit float is rounded.
            return self.cast(self.cast(args[0], expr.dtype), compute_dtype(expr.dtype))
        if expr.op == "bitcast":
            source = self.cast(args[0], expr.args[0].dtype)
            result = self.add("bitcast", expr.dtype, (source,), lanes=self.lanes(source))
            return self.cast(result, compute_dtype(expr.dtype))
        return self.apply(expr.op, *args, dtype=compute_dtype(expr.dtype))

    def is_lanewise(self, expr: Expr) -> bool:
        """Tell whether a node must be computed lane by lane in the present vector scope."""
        vector = self.scopes[-1].vector
        if vector is None or expr.op not in ("load", "index", "guard", DRAWN):
            return False
        axis, lanes = vector
        if expr.op == "guard":
            tests = (c for c in expr.arg if axis in self.index_axes(c[0]))
            return not all(is_uniform(test, axis, lanes) for test in tests)
        varying = [i for i in indices_of(expr) if axis in self.index_axes(i)]
        return bool(varying) and not (expr.op == "load" and is_unit(varying[0], axis))

    def lane_by_lane(self, expr: Expr) -> int:
        """Evaluate an expression once per lane and pack the results."""
        axis, lanes = self.scopes[-1].vector  # type: ignore[misc]
        first = self.axis_value(axis)
        values: list[int] = []
        if expr.op == DRAWN and self.constant_of(first) == 0:
            scope = self.scopes[-1]
            vector, scope.vector = scope.vector, None
            values += (half_of_lane(self, expr, axis, lane) for lane in range(lanes))
            scope.vector = vector
            return self.add("pack", expr.dtype, values, lanes=lanes)
        outer = self.scopes[-1]
        for lane in range(lanes):
            key = axis, first, lane
            inner = outer.lanes.get(key)
            if inner is None:  # reads that go by what others read find it again
                inner = Scope({axis: self.arithmetic("add", first, self.integer(lane))}, lane=lane)
                outer.lanes[key] = inner
            inner.mask = outer.mask
            self.scopes.append(inner)
            values.append(self.value(expr))
            self.scopes.pop()
        return self.add("pack", self.dtype(values[0]), values, lanes=lanes)

    def is_beside(self, index: Index) -> bool:
        """Tell whether what a lane reads is a part of a vector that all of them may read."""
        scope = self.scopes[-1]
        if scope.lane is None:
            return False
        outer = self.scopes[-2]
        if scope.mask != outer.mask:  # a guard of this lane does not keep others in memory
            return False
        return outer.vector is not None and is_beside(index, *outer.vector)

    def load_slot(self, expr: Expr) -> int:
        """Append a load of a kernel slot under the present mask."""
        slot, index = expr.arg
        scope = self.scopes[-1]
        if self.is_gathering and self.is_beside(index):
            self.scopes.pop()
            whole = self.value(expr)
            self.scopes.append(scope)
            return self.add("extract", self.dtype(whole), (whole,), scope.lane)
        vector = scope.vector
        lanes = vector[1] if vector and vector[0] in self.index_axes(index) else 1
        return self.load(self.slots[slot], self.index(index), scope.mask, lanes)
