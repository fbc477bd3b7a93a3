"""Functions of Python's in LLVM IR: what a call through ctypes costs is more than a small kernel.

CPython calls a function of its C interface as `function(self, arguments, count)`; the machine code
that is generated here is one. It is written in a small language with Python's syntax:

    @python
    def picograd_value(self, arguments, count):
        box: Box = arguments[0]
        if type_of(box) != world.Box:
            return own(None)
        return own(box.value)

Every value is one word of 64 bits: an object, an address, a number. `box.value` is the word in a
slot of the class, or table, that the variable was declared to be: 0 where the slot was never set,
or there is no object; `arguments[0]` the word at an address; `world.Box` an object that all
functions know. Functions of the stable interface, and those of the text, are called by their names.
References are counted by hand: `own(value)` takes one, `replace(box.value, other)` puts an object,
whose reference is taken, in the place of another, and an assignment to a slot or an address writes
the word and nothing else. The words of the table that is called `shared` are for several threads:
each is read and written whole, and `atomic_read`, `atomic_write`, `atomic_add`, `atomic_and` and
`atomic_swap` are in one order for all threads. `room(n)` is n words that live as long as the call.
`single(word)` rounds a double to a float32, and `widened(word)` is the double of one.
`need(condition)` ends the function with 0 where it does not hold, `refuse("...")`
raises TypeError. What is not known is an error.

docs/design/0029-native-callables.md says what this rests on, and what not.
"""

import ast
from collections.abc import Mapping

from picograd.errors import check, internal

# Functions of the stable interface, and of the C library, by the kind of the result, and of each
# argument; an i32 is a number in the text.
KINDS: dict[tuple[str, ...], str] = {
    ("double", "i64"): "PyFloat_AsDouble",
    ("i64", "double"): "PyFloat_FromDouble",
    ("i32",): "PyGC_Disable PyGC_Enable sched_yield",
    ("i32", "i64"): "PyList_Reverse PyList_Sort",
    ("i32", "i32"): "usleep",
    ("i32", "i32", "i64"): "clock_gettime",
    ("i32", "i64", "i64"): """
        PyDict_DelItem PyList_Append PySet_Add PySet_Contains
        PyType_IsSubtype""",
    ("i32", "i64", "i64", "i32"): "PyObject_RichCompareBool",
    ("i32", "i64", "i64", "i64"): """
        PyDict_SetItem PyList_SetItem PyObject_SetAttr PyTuple_SetItem""",
    ("i32", "i64", "i64", "i64", "i64"): "PyDict_Next PyList_SetSlice",
    ("i64",): "PyErr_Occurred PyThread_get_thread_ident",
    ("i64", "i64"): """
        PyDict_Size PyList_AsTuple PyList_New PyList_Size PyLong_AsLongLong
        PyLong_AsUnsignedLongLong PyLong_FromLongLong PyLong_FromVoidPtr PyObject_Repr
        PySet_New PySet_Size PyTuple_New PyTuple_Size""",
    ("i64", "i64", "i64"): """
        PyDict_GetItemWithError PyList_GetItem PyObject_CallObject PyObject_GetAttr
        PyObject_GetItem PyTuple_GetItem PyType_GenericAlloc PyWeakref_NewRef""",
    ("i64", "i64", "i64", "i64"): "memcpy PyTuple_GetSlice",
    ("i64", *["i64"] * 7): "syscall",
    ("void",): "PyErr_Clear",
    ("void", "i64"): "Py_IncRef Py_DecRef PyDict_Clear",
    ("void", "i64", "i64"): "PyErr_SetString",
}
INTERFACE = {name: kinds for kinds, names in KINDS.items() for name in names.split()}
# Those that take any number of objects behind the first word: one is told how many, one ends at 0.
VARIADIC = "PyTuple_Pack", "PyObject_CallFunctionObjArgs"
RELATIONS: dict[type, str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip
OPERATIONS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or",
    ast.RShift: "lshr", ast.LShift: "shl", ast.FloorDiv: "udiv",
}  # fmt: skip

TRIES = 3  # of parsing a text beside other threads that parse
FARTHEST = 64  # words of an object, or table, that has slots


def parsed(text: str) -> ast.Module:
    """Parse a text. Until Python 3.11.8 threads that parse share a count of how deep they are.

    One that another overtakes gets a SystemError (gh-106905), and tries again.
    """
    for _ in range(TRIES):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


class Translator:
    """This class writes functions of the language as LLVM IR.

    `places` has the offsets of slots ("Box.value"), of words in tables ("plan.inputs"), and of
    objects in the world ("world.Box"), which is an array of words behind the functions.
    """

    def __init__(
        self, places: Mapping[str, int], constants: Mapping[str, int], shared: str = ""
    ) -> None:
        self.places, self.constants, self.shared = places, constants, shared
        self.heads: dict[str, str] = {}  # what is declared beside functions
        self.lines: list[str] = []
        self.number = self.start = 0
        self.variables: dict[str, str] = {}  # registers with the addresses of variables
        self.classes: dict[str, str] = {}
        self.is_open = False  # the last instruction leads on to the next one

    def text(self, world_size: int = 0) -> str:
        """Give the IR of all functions, and of their world if they have one."""
        world = f"@world = internal global [{world_size} x i64] zeroinitializer"
        zeros = f"@zeros = internal constant [{FARTHEST} x i64] zeroinitializer"
        parts = [*[world] * bool(world_size), zeros, *self.heads.values(), *self.lines]
        return "\n".join(parts) + "\n"

    def translate(self, text: str) -> None:
        """Write all functions of a text."""
        for function in parsed(text).body:
            check(isinstance(function, ast.FunctionDef), "only functions are translated")
            self.function(function)  # type: ignore[arg-type]

    # functions

    def function(self, node: ast.FunctionDef) -> None:
        """Write a function; what Python calls is wrapped, see `wrap`."""
        marks = [each.id for each in node.decorator_list if isinstance(each, ast.Name)]
        parameters = [each.arg for each in node.args.args]
        name = f"{node.name}_inside" if "python" in marks else node.name
        self.begin(name, parameters, is_public="public" in marks)
        self.classes = {
            each.arg: each.annotation.id
            for each in node.args.args
            if isinstance(each.annotation, ast.Name)
        }
        for parameter in parameters:
            self.assign(parameter, f"%{parameter}")
        self.body(node.body)
        self.end()
        if "python" in marks:
            self.wrap(node.name)

    def begin(self, name: str, parameters: list[str], is_public: bool) -> None:
        """Begin a function of words."""
        listed = ", ".join(f"i64 %{each}" for each in parameters)
        self.lines.append(f"define {'' if is_public else 'internal '}i64 @{name}({listed}) {{")
        self.lines.append("entry:")
        self.start, self.variables, self.is_open = len(self.lines), {}, True

    def end(self) -> None:
        """End a function; without a result it gives 0."""
        if self.is_open:
            self.write("ret i64 0")
        self.lines.append("}")

    def wrap(self, name: str) -> None:
        """Write the function that Python calls around another one.

        No garbage is collected meanwhile: nothing runs that drops what is only looked at. An error
        that Python code left, which was called, is raised; 0 without one is None.
        """
        self.begin(name, ["self", "arguments", "count"], is_public=True)
        inside = f"{name}_inside(self, arguments, count)"
        for parameter in "self", "arguments", "count":
            self.assign(parameter, f"%{parameter}")
        text = f"""
was_on = PyGC_Disable()
found = {inside}
if was_on:
    PyGC_Enable()
if PyErr_Occurred():
    Py_DecRef(found)
    return 0
if found == 0:
    return own(None)
return found
"""
        self.body(parsed(text).body)
        self.end()

    # instructions

    def write(self, text: str) -> None:
        """Write an instruction."""
        self.lines.append(f"  {text}")
        if text.startswith(("ret ", "br ")):
            self.is_open = False

    def value(self, text: str) -> str:
        """Write an instruction that has a value."""
        self.number += 1
        self.write(f"%v{self.number} = {text}")
        return f"%v{self.number}"

    def label(self) -> str:
        """Name a place to go to."""
        self.number += 1
        return f"to{self.number}"

    def mark(self, label: str) -> None:
        """Begin what other instructions go to."""
        if self.is_open:
            self.write(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.is_open = True

    def room(self, count: int) -> str:
        """Make room for words at the start of the function."""
        self.number += 1
        name = f"%v{self.number}"
        self.lines.insert(self.start, f"  {name} = alloca [{count} x i64], align 8")
        return name

    def pointer(self, base: str, offset: int) -> str:
        """Turn an address into a pointer."""
        at = self.value(f"add i64 {base}, {offset}") if offset else base
        return self.value(f"inttoptr i64 {at} to ptr")

    def there(self, base: str) -> str:
        """Give the address of an object; of zeros where there is none, as of a slot never set."""
        is_none = self.value(f"icmp eq i64 {base}, 0")
        zeros = self.value("ptrtoint ptr @zeros to i64")
        return self.value(f"select i1 {is_none}, i64 {zeros}, i64 {base}")

    def load(self, base: str, offset: int = 0) -> str:
        """Read a word."""
        return self.value(f"load i64, ptr {self.pointer(base, offset)}, align 8")

    def store(self, value: str, base: str, offset: int = 0) -> None:
        """Write a word."""
        self.write(f"store i64 {value}, ptr {self.pointer(base, offset)}, align 8")

    def assign(self, name: str, value: str) -> None:
        """Give a variable a value."""
        if name not in self.variables:
            self.variables[name] = self.room(1)
        self.write(f"store i64 {value}, ptr {self.variables[name]}, align 8")

    # statements

    def body(self, statements: list[ast.stmt]) -> None:
        """Write statements."""
        for statement in statements:
            write = getattr(self, f"write_{type(statement).__name__}", None)
            if write is None:
                internal("the language has no such statement", ast.unparse(statement))
            write(statement)

    def write_Expr(self, statement: ast.Expr) -> None:
        """Write a call, or a docstring, which is none."""
        if not isinstance(statement.value, ast.Constant):
            self.read(statement.value)

    def write_Return(self, statement: ast.Return) -> None:
        """Write the end of a function."""
        found = "0" if statement.value is None else self.read(statement.value)
        self.write(f"ret i64 {found}")

    def write_AnnAssign(self, statement: ast.AnnAssign) -> None:
        """Write the declaration of a variable: which slots it has."""
        name, kind, value = statement.target, statement.annotation, statement.value
        if not (isinstance(name, ast.Name) and isinstance(kind, ast.Name) and value is not None):
            internal("a declaration names a class, and gives a value", name)
        self.classes[name.id] = kind.id
        self.assign(name.id, self.read(value))

    def write_Assign(self, statement: ast.Assign) -> None:
        """Write an assignment to a variable, a slot, or an address."""
        (target,) = statement.targets
        value = self.read(statement.value)
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, ast.Attribute) and self.is_shared(target):
            self.write(f"store atomic i64 {value}, ptr {self.word(target)} monotonic, align 8")
        elif isinstance(target, ast.Attribute):
            self.store(value, self.read(target.value), self.place(target))
        elif isinstance(target, ast.Subscript):
            self.store(value, *self.element(target))

    def write_If(self, statement: ast.If) -> None:
        """Write a condition: what is not 0 holds."""
        inside, other, after = self.label(), self.label(), self.label()
        self.branch(statement.test, inside, other)
        for label, body in (inside, statement.body), (other, statement.orelse):
            self.mark(label)
            self.body(body)
            if self.is_open:
                self.write(f"br label %{after}")
        self.mark(after)

    def write_For(self, statement: ast.For) -> None:
        """Write a loop over the numbers below another: `for n in range(count)`."""
        target, called = statement.target, statement.iter
        if not (isinstance(target, ast.Name) and isinstance(called, ast.Call)):
            internal("a loop is over a range", ast.unparse(statement.iter))
        count, number = self.read(called.args[0]), self.room(1)
        head, inside, after = self.label(), self.label(), self.label()
        self.write(f"store i64 0, ptr {number}, align 8")
        self.mark(head)
        now = self.value(f"load i64, ptr {number}, align 8")
        is_left = self.value(f"icmp slt i64 {now}, {count}")
        self.write(f"br i1 {is_left}, label %{inside}, label %{after}")
        self.mark(inside)
        self.assign(target.id, now)
        self.body(statement.body)
        if self.is_open:
            following = self.value(f"add i64 {now}, 1")
            self.write(f"store i64 {following}, ptr {number}, align 8")
            self.write(f"br label %{head}")
        self.mark(after)

    def write_While(self, statement: ast.While) -> None:
        """Write a loop that goes on while a condition holds."""
        head, inside, after = self.label(), self.label(), self.label()
        self.mark(head)
        self.branch(statement.test, inside, after)
        self.mark(inside)
        self.body(statement.body)
        if self.is_open:
            self.write(f"br label %{head}")
        self.mark(after)

    def branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Write a jump that a condition decides; `and` and `or` ask no more than they must."""
        if isinstance(test, ast.BoolOp):
            *first, last = test.values
            for each in first:
                label = self.label()
                pair = (label, no) if isinstance(test.op, ast.And) else (yes, label)
                self.branch(each, *pair)
                self.mark(label)
            return self.branch(last, yes, no)
        if isinstance(test, ast.UnaryOp):  # not
            return self.branch(test.operand, no, yes)
        is_so = self.value(f"icmp ne i64 {self.read(test)}, 0")
        self.write(f"br i1 {is_so}, label %{yes}, label %{no}")

    # expressions

    def read(self, node: ast.expr) -> str:
        """Write what computes an expression."""
        read = getattr(self, f"read_{type(node).__name__}", None)
        if read is None:
            return internal("the language has no such expression", ast.unparse(node))
        return read(node)

    def read_Constant(self, node: ast.Constant) -> str:
        """Give a number, None, True or False."""
        return str(node.value) if type(node.value) is int else self.world(str(node.value))

    def read_Name(self, node: ast.Name) -> str:
        """Read a variable, or a number that has a name."""
        if node.id in self.variables:
            return self.value(f"load i64, ptr {self.variables[node.id]}, align 8")
        return str(self.constants[node.id])

    def read_Attribute(self, node: ast.Attribute) -> str:
        """Read an object of the world, or a slot."""
        if isinstance(node.value, ast.Name) and node.value.id == "world":
            return self.world(node.attr)
        if self.is_shared(node):
            return self.value(f"load atomic i64, ptr {self.word(node)} monotonic, align 8")
        return self.load(self.there(self.read(node.value)), self.place(node))

    def read_Subscript(self, node: ast.Subscript) -> str:
        """Read a word at an address."""
        return self.load(*self.element(node))

    def read_BinOp(self, node: ast.BinOp) -> str:
        """Compute of two words."""
        left, right = self.read(node.left), self.read(node.right)
        return self.value(f"{OPERATIONS[type(node.op)]} i64 {left}, {right}")

    def read_Compare(self, node: ast.Compare) -> str:
        """Compare two words: 1 or 0."""
        left, right = self.read(node.left), self.read(node.comparators[0])
        is_so = self.value(f"icmp {RELATIONS[type(node.ops[0])]} i64 {left}, {right}")
        return self.value(f"zext i1 {is_so} to i64")

    def read_Call(self, node: ast.Call) -> str:
        """Call a function, or do what a word of the language says."""
        if not isinstance(node.func, ast.Name):
            return internal("a function is called by its name", ast.unparse(node))
        special = getattr(self, f"call_{node.func.id}", None)
        if special is not None:
            return special(*node.args)
        return self.call(node.func.id, *map(self.read, node.args))

    def place(self, node: ast.Attribute) -> int:
        """Find the offset of a slot, by the class of the variable."""
        check(isinstance(node.value, ast.Name), "a slot is one of a variable", ast.unparse(node))
        kind = self.classes[node.value.id]  # type: ignore[attr-defined]
        return self.places[f"{kind}.{node.attr}"]

    def is_shared(self, node: ast.Attribute) -> bool:
        """Tell whether several threads read and write a slot."""
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return bool(self.shared) and self.classes.get(name) == self.shared

    def word(self, slot: ast.Attribute) -> str:
        """Point at a slot."""
        return self.pointer(self.read(slot.value), self.place(slot))

    def element(self, node: ast.Subscript) -> tuple[str, int]:
        """Find the address of a word, and an offset."""
        base = self.read(node.value)
        if isinstance(node.slice, ast.Constant):
            return base, 8 * int(node.slice.value)  # type: ignore[arg-type]
        offset = self.value(f"mul i64 {self.read(node.slice)}, 8")
        return self.value(f"add i64 {base}, {offset}"), 0

    def world(self, name: str) -> str:
        """Read an object that all functions know."""
        return self.load(self.value("ptrtoint ptr @world to i64"), self.places[f"world.{name}"])

    # calls

    def call(self, name: str, *arguments: str) -> str:
        """Call a function of the interface, or of the text."""
        if name in VARIADIC:
            self.heads[name] = f"declare i64 @{name}(i64, ...)"
            words = ", ".join(f"i64 {each}" for each in arguments)
            return self.value(f"call i64 (i64, ...) @{name}({words})")
        result, *kinds = INTERFACE.get(name, ("i64", *["i64"] * len(arguments)))
        if name in INTERFACE:
            self.heads[name] = f"declare {result} @{name}({', '.join(kinds)})"
        pairs = list(zip(kinds, arguments, strict=True))
        given = [self.value(f"bitcast i64 {x} to double") if k == "double" else x for k, x in pairs]
        listed = ", ".join(f"{kind} {each}" for kind, each in zip(kinds, given))
        if result == "void":
            self.write(f"call void @{name}({listed})")
            return "0"
        found = self.value(f"call {result} @{name}({listed})")
        if result == "i32":
            return self.value(f"sext i32 {found} to i64")
        return self.value(f"bitcast double {found} to i64") if result == "double" else found

    def call_own(self, value: ast.expr) -> str:
        """Take a reference."""
        found = self.read(value)
        self.call("Py_IncRef", found)
        return found

    def call_replace(self, slot: ast.Attribute, value: ast.expr) -> str:
        """Put an object into a slot, and let go what is there."""
        after, owner, place = self.read(value), self.read(slot.value), self.place(slot)
        before = self.load(owner, place)
        self.store(after, owner, place)
        return self.call("Py_DecRef", before)

    def call_single(self, value: ast.expr) -> str:
        """Round the word of a double to the word of a float32."""
        wide = self.value(f"bitcast i64 {self.read(value)} to double")
        narrow = self.value(f"fptrunc double {wide} to float")
        word = self.value(f"bitcast float {narrow} to i32")
        return self.value(f"zext i32 {word} to i64")

    def call_widened(self, value: ast.expr) -> str:
        """Turn the word of a float32 into the word of the same double."""
        narrow = self.value(f"trunc i64 {self.read(value)} to i32")
        number = self.value(f"bitcast i32 {narrow} to float")
        wide = self.value(f"fpext float {number} to double")
        return self.value(f"bitcast double {wide} to i64")

    def call_type_of(self, value: ast.expr) -> str:
        """Read the class of an object."""
        return self.load(self.there(self.read(value)), self.places["object.type"])

    def call_room(self, count: ast.expr) -> str:
        """Make room for words."""
        return self.value(f"ptrtoint ptr {self.room(int(self.read(count)))} to i64")

    def call_start(self) -> str:
        """Give the address of the world."""
        return self.value("ptrtoint ptr @world to i64")

    def call_refuse(self, text: ast.Constant) -> str:
        """Raise TypeError."""
        name, words = f"@text{self.label()}", str(text.value)
        size = len(words) + 1
        self.heads[name] = f'{name} = internal constant [{size} x i8] c"{words}\\00"'
        address = self.value(f"ptrtoint ptr {name} to i64")
        self.call("PyErr_SetString", self.world("TypeError"), address)
        self.write("ret i64 0")
        return "0"

    def call_need(self, condition: ast.expr) -> str:
        """End the function with 0 unless a condition holds."""
        on, stop = self.label(), self.label()
        self.branch(condition, on, stop)
        self.mark(stop)
        self.write("ret i64 0")
        self.mark(on)
        return "0"

    def call_enter(self, address: ast.expr, *arguments: ast.expr) -> str:
        """Call a function by its address."""
        function = self.value(f"inttoptr i64 {self.read(address)} to ptr")
        listed = ", ".join(f"i64 {self.read(each)}" for each in arguments)
        return self.value(f"call i64 {function}({listed})")

    def call_atomic_read(self, slot: ast.Attribute) -> str:
        """Read a word of several threads."""
        return self.value(f"load atomic i64, ptr {self.word(slot)} seq_cst, align 8")

    def call_atomic_write(self, slot: ast.Attribute, value: ast.expr) -> str:
        """Write a word of several threads."""
        found = self.read(value)
        self.write(f"store atomic i64 {found}, ptr {self.word(slot)} seq_cst, align 8")
        return found

    def call_atomic_add(self, slot: ast.Attribute, value: ast.expr) -> str:
        """Add to a word of several threads, and give what it was."""
        found = self.read(value)
        return self.value(f"atomicrmw add ptr {self.word(slot)}, i64 {found} seq_cst, align 8")

    def call_atomic_and(self, slot: ast.Attribute, value: ast.expr) -> str:
        """Keep some bits of a word of several threads, and give what it was."""
        found = self.read(value)
        return self.value(f"atomicrmw and ptr {self.word(slot)}, i64 {found} seq_cst, align 8")

    def call_atomic_swap(self, slot: ast.Attribute, before: ast.expr, after: ast.expr) -> str:
        """Write a word of several threads if it is still as before: 1 or 0."""
        words = f"i64 {self.read(before)}, i64 {self.read(after)}"
        pair = self.value(f"cmpxchg ptr {self.word(slot)}, {words} seq_cst seq_cst, align 8")
        is_done = self.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
        return self.value(f"zext i1 {is_done} to i64")
