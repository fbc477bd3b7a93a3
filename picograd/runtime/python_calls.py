"""What Python would do around a small plan, as functions of machine code that Python calls.

`picograd_launch` takes memory from the pool, makes its buffers, fills the tables of a plan and runs
it: what `CompiledPlan.launch` takes and gives. A function that meets something unusual changes
nothing and gives None: no free block, a profile, another thread in the middle of a launch. Then the
caller does the same in Python.

A function is in two parts. The first may run Python, as a look-up that compares keys does: so the
handler of a signal, another thread, anything. What it found is not used after that unless it is
owned. The second part runs no Python: nobody sees what is between its first word and its last, and
what it borrows stays. `run`, in the second, needs no lock but the interpreter's; plans are short
(`Device.entry`).

Objects that all functions need are in one table, the *world* (`engine/native_calls.py`); a plan
has a table of its own, which `PLAN` and `MADE` list. The language is that of python_code.py.
"""

SLOTS = 1024  # of a plan
PLAN = (
    "enter", "runner", "call", "addresses", "scalars", "inputs", "made", "slots", "outputs",
    "places", "numbers", "floats", "singles", "pool", "device", "arena", "arenas", "family",
    "sorted", "sorts",
)  # fmt: skip
# of a result: free blocks of its size (0: it is temporary), its place in the arena, ...
MADE = "blocks", "offset", "dtype", "count", "size", "bytes"
ARENA = "blocks", "bytes"  # free blocks of a size that an arena may have, the least first
CONSTANTS = {"SLOTS": SLOTS, "HEAD": 8 * len(PLAN), "ROW": 8 * len(MADE), "EQUAL": 2}
CONSTANTS["ARENA_ROW"] = 8 * len(ARENA)


def places(table: str, names: tuple[str, ...]) -> dict[str, int]:
    """Give the places of the words of a table."""
    return {f"{table}.{name}": 8 * number for number, name in enumerate(names)}


WATCHED = """
def is_watched():
    "whether somebody must be told of what runs, or none of this is wanted"
    if PyDict_GetItemWithError(world.settings, world.debug) != world.zero:
        return 1
    if PyDict_GetItemWithError(world.settings, world.switch) == world.zero:
        return 1
    return PyList_Size(world.watchers) | PyList_Size(world.profiles)

def is_number(value, other):
    "whether two objects are the same, or equal whole numbers"
    if value == other:
        return 1
    need(type_of(value) == world.int and type_of(other) == world.int)
    return PyLong_AsLongLong(value) == PyLong_AsLongLong(other)

def is_alike(value, other):
    "whether two texts, or tuples of whole numbers, are equal; others are only like themselves"
    kind = type_of(value)
    if value == other or kind != type_of(other):
        return value == other
    if kind == world.str:
        return PyObject_RichCompareBool(value, other, EQUAL) == 1
    need(kind == world.tuple and PyTuple_Size(value) == PyTuple_Size(other))
    for at in range(PyTuple_Size(value)):
        need(is_number(PyTuple_GetItem(value, at), PyTuple_GetItem(other, at)))
    return 1

def let_go(found, count):
    "ends references; 0 is none"
    for number in range(count):
        Py_DecRef(found[number])

def set_item(made, at, value):
    PyTuple_SetItem(made, at, own(value))

def own_table(self):
    "the table of a function is the first thing that `self` has, and lives as long"
    return PyLong_AsUnsignedLongLong(PyTuple_GetItem(self, 0))
"""

POOL = """
def sum_of(number, change):
    return PyLong_FromLongLong(PyLong_AsLongLong(number) + change)

def take(pool: Pool, blocks, bytes):
    "the address of a free block, or 0"
    count = PyList_Size(blocks)
    need(count >= 1)
    block = own(PyList_GetItem(blocks, count - 1))
    PyList_SetSlice(blocks, count - 1, count, 0)
    replace(pool.in_use, sum_of(pool.in_use, bytes))
    replace(pool.allocations, sum_of(pool.allocations, 1))
    if PyLong_AsLongLong(pool.in_use) > PyLong_AsLongLong(pool.peak):
        replace(pool.peak, own(pool.in_use))
    return block

def put_back(pool: Pool, blocks, block, bytes):
    replace(pool.in_use, sum_of(pool.in_use, 0 - bytes))
    PyList_Append(blocks, block)

@public
def picograd_release(self: Allocation, unused):
    "the end of an Allocation; of one whose making was interrupted, too, which has no pool"
    pool: Pool = self.pool
    if pool and self.address and self.size and not is_watched():
        blocks = PyDict_GetItemWithError(pool.free, self.size)
        if blocks:
            put_back(pool, blocks, self.address, PyLong_AsLongLong(self.size))
            return own(None)
    return PyObject_CallFunctionObjArgs(world.release, self, 0)
"""

RESULTS = """
def new_buffer(plan: plan, made: made, origin):
    "a Buffer over a free block, or 0"
    block = take(plan.pool, made.blocks, made.bytes)
    need(block)
    allocation: Allocation = PyType_GenericAlloc(world.Allocation, 0)
    buffer: Buffer = PyType_GenericAlloc(world.Buffer, 0)
    if allocation == 0 or buffer == 0:
        put_back(plan.pool, made.blocks, block, made.bytes)
        Py_DecRef(block)
        return 0
    allocation.address = own(block)
    allocation.size = own(made.size)
    allocation.pool = own(plan.pool)
    buffer.address = block
    buffer.handle = allocation
    buffer.device = own(plan.device)
    buffer.dtype = own(made.dtype)
    buffer.count = own(made.count)
    buffer.room = own(made.count)
    buffer.origin = own(origin)
    return buffer

def sort_blocks(plan: plan):
    "`Pool.sort` of the sizes of results, where a graph has addresses in its nodes"
    listed = plan.sorted
    for number in range(plan.sorts):
        if PyList_Size(listed[number]) > 1:
            PyList_Sort(listed[number])
            PyList_Reverse(listed[number])

def make_results(plan: plan, origin, kept, results):
    '''1; 0 where there is no free block. Buffers that are kept take the place of new ones.

    The last first: bools of checks are early, and live on, and the others keep their blocks.
    '''
    sort_blocks(plan)
    for done in range(plan.made):
        number = plan.made - 1 - done
        made: made = plan + HEAD + number * ROW
        results[number] = 0
        if kept:
            kept_one = PyList_GetItem(kept, number)
            if type_of(kept_one) == world.Buffer:
                results[number] = own(kept_one)
        if results[number] == 0 and made.blocks:
            buffer = new_buffer(plan, made, origin)
            if buffer == 0:
                let_go(results + 8 * (number + 1), done)
                return 0
            results[number] = buffer
    return 1
"""

RUN = """
def fill_scalars(plan: plan, scalars):
    table = plan.scalars
    for number in range(plan.numbers):
        value = PyList_GetItem(scalars, number)
        if (plan.singles >> number) & 1:
            table[number] = single(PyFloat_AsDouble(value))
        elif (plan.floats >> number) & 1:
            table[number] = PyFloat_AsDouble(value)
        else:
            table[number] = PyLong_AsLongLong(value)

def fill_and_enter(plan: plan, scalars, found, arena):
    "fills the tables and runs; 0 where a number is none, or nothing was run"
    runner: Running = plan.runner
    base = 0
    if arena:
        base = PyLong_AsUnsignedLongLong(arena)
    table = plan.addresses
    for number in range(plan.slots):
        buffer: Buffer = found[number]
        if buffer:
            table[number] = PyLong_AsUnsignedLongLong(buffer.address)
        else:
            made: made = plan + HEAD + (number - plan.inputs) * ROW
            table[number] = base + made.offset
    if scalars:
        fill_scalars(plan, scalars)
    if PyErr_Occurred():
        PyErr_Clear()
        return 0
    return enter(plan.enter, PyLong_AsUnsignedLongLong(runner.context), plan.call) == 0

def free_arena(plan: plan):
    "the first size of which a block is free, or 0"
    for number in range(plan.arenas):
        arena: arena = plan.arena + number * ARENA_ROW
        if PyList_Size(arena.blocks) >= 1:
            return arena
    return 0

def run_in_arena(plan: plan, scalars, found):
    "runs with memory for what is temporary, or gives 0"
    block = 0
    arena: arena = free_arena(plan)
    if plan.arenas:
        need(arena)
        block = take(plan.pool, arena.blocks, arena.bytes)
        need(block)
    is_done = fill_and_enter(plan, scalars, found, block)
    if block:
        put_back(plan.pool, arena.blocks, block, arena.bytes)
        Py_DecRef(block)
    family: Family = plan.family
    if family and is_done:
        replace(family.last, own(world.minus_one))
    return is_done

def run(plan: plan, scalars, origin, kept, found):
    '''1, or 0 where nothing was done.

    `found` has the buffers of the plan's inputs, borrowed; behind them it gets those of results,
    and 0 for what is temporary. Then all are owned: `let_go(found, plan.slots)` ends that.
    `scalars` and `kept` are lists, or 0.
    '''
    for number in range(plan.inputs):
        need(type_of(found[number]) == world.Buffer)
    runner: Running = plan.runner
    need(not is_watched() and runner.running == None and runner.is_inside == False)
    for number in range(plan.inputs):
        own(found[number])
    results = found + 8 * plan.inputs
    if make_results(plan, origin, kept, results):
        if run_in_arena(plan, scalars, found):
            return 1
        let_go(results, plan.made)
    let_go(found, plan.inputs)
    PyErr_Clear()
    return 0
"""

LAUNCH = """
def list_of(value, count):
    "a list of so many, or 0"
    if type_of(value) == world.list and PyList_Size(value) == count:
        return value
    return 0

@python
def picograd_launch(self, arguments, count):
    if count != 4:
        refuse("launch takes inputs, scalars, origin and kept")
    plan: plan = own_table(self)
    inputs = list_of(arguments[0], plan.inputs)
    scalars = list_of(arguments[1], plan.numbers)
    kept = list_of(arguments[3], plan.made)
    need(inputs and (scalars or not plan.numbers) and (kept or arguments[3] == None))
    found = room(SLOTS)
    for number in range(plan.inputs):
        found[number] = PyList_GetItem(inputs, number)
    need(run(plan, scalars, arguments[2], kept, found))
    results = PyList_New(plan.outputs)
    if results:
        for number in range(plan.outputs):
            places = plan.places
            PyList_SetItem(results, number, own(found[places[number]]))
    let_go(found, plan.slots)
    return results
"""

TEXT = WATCHED + POOL + RESULTS + RUN + LAUNCH
