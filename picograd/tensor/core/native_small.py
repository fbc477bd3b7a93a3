"""`pending.compute` of a small graph that was seen before, by machine code: engine/small.py.

The key is written as `SmallGraph.add` writes it, with the same walk; what is found by it is run,
and the tensors of its roots settle. Gradients that wait must be among the roots. Plain values that
live on, and are computed on the way, are stored, or noted, as carried.py has it. The caller holds
`pending.LOCK`. The language is that of runtime/python_code.py; all nodes, and what they read, are
owned from when they are met, so that the look-up may run Python; behind it nothing does.
"""

from picograd.engine import carried, native_calls, small
from picograd.engine.carried import FREE
from picograd.engine.small import HOPS, LIMIT
from picograd.graph import build
from picograd.graph.node import RESULT
from picograd.graph.row import MEMORY, MOVING, NUMBERS, SCALARS, WRITES
from picograd.number import GIVEN, Given, GivenInt
from picograd.runtime.python_calls import places
from picograd.tensor.core.recording import VERSIONS

# How many nodes, buffers and scalars were met, and where they are; the words of the key, and how
# many; which nodes are computed, and whether some are on the way. The first are what is asked for,
# and what that is made of, `own` in all; the others are of values that wait and are stored beside.
GRAPH = (
    "count", "nodes", "buffer_count", "buffers", "scalar_count", "scalars", "asked", "key",
    "length", "computed", "has_inner", "living", "living_count", "is_ahead", "kept",
    "kept_count", "own", "waiting", "waiting_count", "written", "written_count",
)  # fmt: skip
ROW = 6  # words of the key for a node, at most

MEETING = """
def add(graph: graph, value):
    "adds a new object to the key, which is taken"
    if value:
        key = graph.key
        key[graph.length] = value
        graph.length = graph.length + 1

def add_kind(graph, node: Node):
    add(graph, own(node.shape))
    add(graph, own(node.dtype))
    add(graph, own(node.device))

def place_in(listed, count, value):
    "where a word is in a list, or how long that is"
    for number in range(count):
        if listed[number] == value:
            return number
    return count

def meet_node(graph: graph, node):
    "the number of a node; MOST_NODES where there is no room"
    nodes = graph.nodes
    place = place_in(nodes, graph.count, node)
    if place == graph.count and place < MOST_NODES:
        nodes[place] = own(node)
        graph.count = place + 1
    return place

def meet_buffer(graph: graph, buffer):
    buffers = graph.buffers
    place = place_in(buffers, graph.buffer_count, buffer)
    if place == graph.buffer_count:
        buffers[place] = own(buffer)
        graph.buffer_count = place + 1
    return place

def meet_scalar(graph: graph, scalar):
    scalars = graph.scalars
    place = place_in(scalars, graph.scalar_count, scalar)
    if place == graph.scalar_count:
        scalars[place] = own(scalar)
        graph.scalar_count = place + 1
    return place
"""

PLACING = """
def is_given(row):
    "whether a range of a slice begins where a user said"
    need(type_of(row) == world.tuple and PyTuple_Size(row) == 3)
    return PyDict_GetItemWithError(world.given, type_of(PyTuple_GetItem(row, 0))) != 0

def placed_range(graph: graph, row):
    "the range with a name for its start, and its length in the place of its end"
    start = PyTuple_GetItem(row, 0)
    stop = PyTuple_GetItem(row, 1)
    named = PyTuple_New(2)
    made = PyTuple_New(3)
    if named == 0 or made == 0:
        Py_DecRef(named)
        Py_DecRef(made)
        return 0
    PyTuple_SetItem(named, 0, own(world.at))
    PyTuple_SetItem(named, 1, PyLong_FromLongLong(meet_scalar(graph, start)))
    length = PyLong_AsLongLong(stop) - PyLong_AsLongLong(start)
    PyTuple_SetItem(made, 0, named)
    PyTuple_SetItem(made, 1, PyLong_FromLongLong(length))
    PyTuple_SetItem(made, 2, own(PyTuple_GetItem(row, 2)))
    return made

def placed(graph: graph, ranges):
    "the argument of a slice as `starts.placed` gives it; a new object, or 0"
    need(type_of(ranges) == world.tuple and graph.scalar_count + PyTuple_Size(ranges) <= MOST_NODES)
    made = PyTuple_New(PyTuple_Size(ranges))
    need(made)
    for number in range(PyTuple_Size(ranges)):
        each = PyTuple_GetItem(ranges, number)
        if is_given(each):
            PyTuple_SetItem(made, number, placed_range(graph, each))
        else:
            PyTuple_SetItem(made, number, own(each))
    return made
"""

WALKING = """
def is_fixed(argument):
    "whether a user said none of the places to which a pad moves what it shows"
    need(type_of(argument) == world.tuple and PyTuple_Size(argument) == 2)
    pads = PyTuple_GetItem(argument, 0)
    need(type_of(pads) == world.tuple)
    for number in range(PyTuple_Size(pads)):
        pair = PyTuple_GetItem(pads, number)
        need(type_of(pair) == world.tuple and PyTuple_Size(pair) == 2)
        need(not PyDict_GetItemWithError(world.given, type_of(PyTuple_GetItem(pair, 0))))
    return 1

def walk_computed(graph: graph, node: Node):
    "the row of a node that is computed; 0 where it may not be in a small graph"
    inputs = node.inputs
    need(not PyDict_GetItemWithError(world.refused, node.op))
    if is_alike(node.op, world.assign):
        need(note_written(graph, node))
    if is_alike(node.op, world.pad):
        need(is_fixed(node.arg))
    read = PyTuple_New(PyTuple_Size(inputs))
    need(read)
    for number in range(PyTuple_Size(inputs)):
        child = PyTuple_GetItem(inputs, number)
        place = MOST_NODES
        if type_of(child) == world.Node:
            place = meet_node(graph, child)
        if place == MOST_NODES:
            Py_DecRef(read)
            return 0
        PyTuple_SetItem(read, number, PyLong_FromLongLong(place))
    add(graph, own(node.op))
    add(graph, read)
    if is_alike(node.op, world.slice):
        made = placed(graph, node.arg)
        add(graph, made)
        need(made)
    else:
        add(graph, own(node.arg))
    add_kind(graph, node)
    return 1

def walk_number(graph: graph, node: Node):
    "the row of a leaf without memory"
    is_number = PyDict_GetItemWithError(world.numbers, node.op)
    is_scalar = PyDict_GetItemWithError(world.scalars, node.op)
    if is_number:
        is_scalar = PyDict_GetItemWithError(world.given, type_of(node.arg))
    if is_scalar:
        add(graph, own(world.scalar))
        add(graph, PyLong_FromLongLong(meet_scalar(graph, node.arg)))
    elif is_number:
        add(graph, own(node.op))
        add(graph, own(type_of(node.arg)))
        add(graph, PyObject_Repr(node.arg))
    else:
        add(graph, own(node.op))
        add(graph, own(node.arg))
    add_kind(graph, node)
    return 1

def walk_node(graph: graph, place):
    nodes = graph.nodes
    node: Node = nodes[place]
    held = node.realized
    computed = graph.computed
    computed[place] = 0
    need(type_of(node.inputs) == world.tuple)
    if held == None:
        if PyTuple_Size(node.inputs):
            computed[place] = 1
            graph.has_inner = graph.has_inner | (place >= graph.asked)
            return walk_computed(graph, node)
        if node.op != world.buffer and not PyDict_GetItemWithError(world.memory, node.op):
            return walk_number(graph, node)
        storage: Storage = node.arg
        held = 0
        if type_of(storage) == world.Storage:
            held = storage.buffer
    need(type_of(held) == world.Buffer)
    add(graph, PyLong_FromLongLong(meet_buffer(graph, held)))
    add_kind(graph, node)
    return 1

def walk(graph: graph, tops):
    "meets all nodes under the roots; 0 where this is no small graph"
    for number in range(graph.asked):
        node: Node = PyList_GetItem(tops, number)
        need(type_of(node) == world.Node and node.realized == None and node.op != world.result)
        need(meet_node(graph, node) == number)
    add(graph, own(PyDict_GetItemWithError(world.settings, world.epoch)))
    if graph.asked > 1:
        add(graph, own(world.roots))
        for number in range(graph.asked):
            add(graph, PyLong_FromLongLong(number))
    place = 0
    while place < graph.count:
        need(place < LIMIT and walk_node(graph, place))
        place = place + 1
    return 1

def key_of(graph: graph):
    "the key, owned, which takes its words; with the places of what is stored beside, if there is"
    key = PyTuple_New(graph.length)
    need(key)
    words = graph.key
    for number in range(graph.length):
        PyTuple_SetItem(key, number, words[number])
    graph.length = 0
    beside = graph.living_count + graph.waiting_count
    if graph.is_ahead == 0 or beside == 0:
        return key
    places = PyTuple_New(beside)
    pair = PyTuple_New(2)
    if places == 0 or pair == 0:
        Py_DecRef(key)
        Py_DecRef(places)
        Py_DecRef(pair)
        return 0
    living = graph.living
    for number in range(graph.living_count):
        PyTuple_SetItem(places, number, PyLong_FromLongLong(living[number]))
    for number in range(graph.waiting_count):
        place = PyLong_FromLongLong(graph.own + number)
        PyTuple_SetItem(places, graph.living_count + number, place)
    PyTuple_SetItem(pair, 0, key)
    PyTuple_SetItem(pair, 1, places)
    return pair

def known_small(graph: graph):
    "what is known by the key, owned; runs Python"
    key = key_of(graph)
    need(key)
    known = own(PyDict_GetItemWithError(world.known_small, key))
    Py_DecRef(key)
    return known

def values_of(graph: graph, places):
    "a list of the numbers that a plan takes; runs Python: 0 after an error"
    scalars = graph.scalars
    values = PyList_New(0)
    for number in range(PyList_Size(places)):
        place = PyLong_AsLongLong(PyList_GetItem(places, number))
        value = own(scalars[place])
        if type_of(value) != world.Given and type_of(value) != world.GivenInt:
            Py_DecRef(value)
            value = PyObject_GetAttr(scalars[place], world.value)
        if value == 0:
            Py_DecRef(values)
            return 0
        PyList_Append(values, value)
        Py_DecRef(value)
    return values
"""

LOOKING = """
def is_root(graph: graph, address):
    return place_in(graph.nodes, graph.asked, address) < graph.asked

def is_gradient_asked(graph: graph, find):
    "whether the gradient of a leaf is a root, or there is none"
    leaf: Tensor = referred(find)
    if leaf == None:
        return 1
    need(leaf and PyType_IsSubtype(type_of(leaf), world.Tensor))
    gradient: Tensor = leaf._grad
    if gradient == None:
        return 1
    return is_root(graph, gradient._node)

def are_gradients_asked(graph: graph):
    "no gradients wait, or those of one formula, which are roots"
    if PyDict_Size(world.gradients) == 0:
        return 1
    need(PyDict_Size(world.gradients) <= 1)
    at = room(1)
    entry = room(2)
    at[0] = 0
    PyDict_Next(world.gradients, at, entry, entry + 8)
    need(place_in(graph.nodes, graph.count, referred(entry[0])) != graph.count)
    for number in range(PyList_Size(entry[1])):
        need(is_gradient_asked(graph, PyList_GetItem(entry[1], number)))
    return 1

def is_alive(reference):
    need(reference)
    return referred(reference) != None

def is_view(node: Node):
    "whether a node is a leaf, or few views away; not one that cuts off what memory was made of"
    is_cut = 0
    for hop in range(HOPS):
        if PyDict_GetItemWithError(world.memory, node.op):
            return 1
        if node.realized != None:
            return is_cut == 0
        if type_of(node.inputs) == world.tuple and PyTuple_Size(node.inputs) == 0:
            return 1
        need(PyDict_GetItemWithError(world.views, node.op))
        is_cut = is_cut | is_alike(node.op, world.detach)
        node = PyTuple_GetItem(node.inputs, 0)
    return 0

def base_of(graph: graph, node: Node):
    "where the value is of which a node is a view, or that it is; MOST_NODES if not among all"
    for hop in range(HOPS):
        if type_of(node) != world.Node or node.realized != None:
            return MOST_NODES
        if not PyDict_GetItemWithError(world.views, node.op):
            place = place_in(graph.nodes, graph.count, node)
            if place == graph.count or is_alike(node.op, world.result):
                return MOST_NODES
            return place
        if is_alike(node.op, world.detach) or type_of(node.inputs) != world.tuple:
            return MOST_NODES
        node = PyTuple_GetItem(node.inputs, 0)
    return MOST_NODES

def is_plain(node: Node, reference):
    "whether a value that lives on has nothing but its node"
    tensor: Tensor = referred(reference)
    need(tensor and type_of(tensor) == world.Tensor and tensor._node == node)
    return (tensor._tracks == False) & (tensor._view == None) & (tensor._history == None)

def add_living(living, count, place):
    "puts a place where it belongs, the last first: how many there are"
    if place_in(living, count, place) != count:
        return count
    at = count
    while at > 0 and living[at - 1] < place:
        living[at] = living[at - 1]
        at = at - 1
    living[at] = place
    return count + 1

def find_living(graph: graph, living):
    "notes where values on the way are that live on, or views of them: how many, or MOST_NODES"
    nodes = graph.nodes
    computed = graph.computed
    count = 0
    for number in range(graph.has_inner * (graph.own - graph.asked)):
        place = graph.own - 1 - number
        if computed[place] and not is_view(nodes[place]):
            reference = owner_of(nodes[place])
            if is_alive(reference):
                base = base_of(graph, nodes[place])
                if base == MOST_NODES or not is_plain(nodes[place], reference):
                    return MOST_NODES
                if computed[base] and base >= graph.asked:
                    count = add_living(living, count, base)
    return count

def is_past(graph: graph):
    "whether nodes that were computed are read: what they were made of may have to be let go"
    nodes = graph.nodes
    for number in range(graph.count):
        node: Node = nodes[number]
        if node.realized != None:
            return 1
    return 0

def is_ahead(origin):
    "whether values were missed that were asked for at a place"
    need(PyDict_Size(world.spots) and type_of(origin) == world.tuple)
    at = PyLong_AsLongLong(PyTuple_GetItem(origin, 1))
    spot = PyLong_FromVoidPtr(PyTuple_GetItem(origin, 0) + at)
    need(spot)
    found = PyDict_GetItemWithError(world.spots, spot)
    Py_DecRef(spot)
    return found != 0

def look_around(graph: graph, origin):
    "finds what lives on; 0 where Python has to look"
    graph.own = graph.count
    graph.waiting_count = 0
    graph.living_count = find_living(graph, graph.living)
    graph.is_ahead = is_ahead(origin)
    need(graph.living_count < MOST_NODES)
    if graph.living_count:
        need(not is_past(graph))
    return 1

def is_as_found(graph: graph):
    "whether the same values live on as before Python ran"
    found = room(MOST_NODES)
    need(find_living(graph, found) == graph.living_count)
    living = graph.living
    for number in range(graph.living_count):
        need(found[number] == living[number])
    return 1

def is_passed_by(graph: graph):
    "whether no value that an earlier computation could have stored is in a graph"
    need(PyDict_Size(world.passed) <= MOST_PASSED)
    at = room(1)
    entry = room(2)
    at[0] = 0
    for number in range(PyDict_Size(world.passed)):
        PyDict_Next(world.passed, at, entry, entry + 8)
        node: Node = referred(entry[0])
        need(node)
        if node != None and node.realized == None and node.op != world.buffer:
            need(place_in(graph.nodes, graph.count, node) == graph.count)
    return 1

def is_gone_or_view(reference):
    "whether a tensor is gone, or reads memory alone"
    tensor: Tensor = referred(reference)
    need(tensor)
    if tensor == None:
        return 1
    need(type_of(tensor) == world.Tensor)
    node: Node = tensor._node
    return is_view(node)

def is_walked(node: Node):
    need(type_of(node) == world.Node)
    return type_of(node.inputs) == world.tuple

def reach(graph: graph, reference):
    "what a value that waits is made of: nothing that is computed, what is asked for, or more"
    tensor: Tensor = referred(reference)
    stack = room(MOST_NODES)
    stack[0] = tensor._node
    top = 1
    found = APART
    for step in range(LIMIT):
        if top == 0:
            return found
        top = top - 1
        node: Node = stack[top]
        if not is_walked(node):
            return UNKNOWN
        for number in range(PyTuple_Size(node.inputs)):
            child: Node = PyTuple_GetItem(node.inputs, number)
            if not is_walked(child):
                return UNKNOWN
            if child.realized == None and PyTuple_Size(child.inputs):
                place = place_in(graph.nodes, graph.count, child)
                if place == graph.count:
                    if top == LIMIT:
                        return UNKNOWN
                    stack[top] = child
                    top = top + 1
                elif place >= graph.asked:
                    found = INSIDE
                elif found == APART:
                    found = BEHIND
    return UNKNOWN

def is_made_here(graph: graph, reference):
    "whether a new value is a view of what is computed, which carried.py lets go"
    tensor: Tensor = referred(reference)
    need(tensor._view == None)
    place = base_of(graph, tensor._node)
    need(place < MOST_NODES)
    computed = graph.computed
    return computed[place]

def is_kept(graph: graph, key, reference):
    "whether a new value may wait on, as one of few"
    found = reach(graph, reference)
    if found == BEHIND:
        need(graph.is_ahead == 0 and not is_past(graph))
    else:
        need(found == APART)
    need(graph.kept_count < MOST_KEPT)
    kept = graph.kept
    kept[graph.kept_count] = key
    graph.kept_count = graph.kept_count + 1
    return 1

def is_simple(node: Node, reference, root: Node):
    "whether a value that waits may be stored: it is no view, and on the device of what is computed"
    need(is_plain(node, reference) and is_alike(node.device, root.device))
    need(not PyDict_GetItemWithError(world.views, node.op))
    return is_alike(node.op, world.result) == 0

def find_waiting(graph: graph):
    "notes the new values that are made of what is computed; 0 where Python has to look"
    live: LiveTable = world.live
    waiting = graph.waiting
    nodes = graph.nodes
    at = room(1)
    entry = room(2)
    at[0] = 0
    for number in range(PyDict_Size(world.new)):
        PyDict_Next(world.new, at, entry, entry + 8)
        reference = PyDict_GetItemWithError(live.data, entry[0])
        place = place_in(nodes, graph.own, PyLong_AsUnsignedLongLong(entry[0]))
        if reference and place == graph.own:
            if not is_gone_or_view(reference) and not is_made_here(graph, reference):
                found = reach(graph, reference)
                need(found != UNKNOWN)
                if found != APART:
                    tensor: Tensor = referred(reference)
                    need(graph.waiting_count < MOST_KEPT)
                    need(is_simple(tensor._node, reference, nodes[0]))
                    waiting[graph.waiting_count] = tensor._node
                    graph.waiting_count = graph.waiting_count + 1
    return 1

def add_waiting(graph: graph):
    "adds values that wait to what is stored, where some were missed, as `SmallGraph.add` does"
    if graph.is_ahead == 0 or graph.has_inner == 0:
        return 1
    need(find_waiting(graph))
    if graph.waiting_count == 0:
        return 1
    waiting = graph.waiting
    for number in range(graph.waiting_count):
        need(meet_node(graph, waiting[number]) == graph.own + number)
    add(graph, own(world.roots))
    for number in range(graph.waiting_count):
        add(graph, PyLong_FromLongLong(graph.own + number))
    place = graph.own
    while place < graph.count:
        need(place < LIMIT and walk_node(graph, place))
        place = place + 1
    computed = graph.computed
    nodes = graph.nodes
    for number in range(graph.count - graph.own - graph.waiting_count):
        place = graph.own + graph.waiting_count + number
        if computed[place] and not is_view(nodes[place]):
            need(not is_alive(owner_of(nodes[place])))
    return is_past(graph) == 0

def is_waited_for(graph: graph):
    "whether values that wait, as carried.py knows, are made of what is computed"
    if PyDict_Size(world.carried) == 0:
        return 0
    nodes = graph.nodes
    computed = graph.computed
    for number in range(graph.count):
        if computed[number]:
            name = PyWeakref_NewRef(nodes[number], 0)
            if name == 0:
                return 1
            found = PyDict_GetItemWithError(world.waited, name)
            Py_DecRef(name)
            if found:
                return 1
    return 0

def keep_new(graph: graph):
    "lets all new values go but those that wait on"
    kept = graph.kept
    for number in range(graph.kept_count):
        own(kept[number])
    PyDict_Clear(world.new)
    for number in range(graph.kept_count):
        PyDict_SetItem(world.new, kept[number], None)
        Py_DecRef(kept[number])

def is_all_stored(graph: graph):
    "nothing else that is alive has, or may read, what is computed on the way"
    live: LiveTable = world.live
    need(is_passed_by(graph))
    if graph.has_inner == 0:
        return 1
    need(not is_waited_for(graph) and is_as_found(graph))
    graph.kept_count = 0
    at = room(1)
    entry = room(2)
    at[0] = 0
    for number in range(PyDict_Size(world.new)):
        PyDict_Next(world.new, at, entry, entry + 8)
        reference = PyDict_GetItemWithError(live.data, entry[0])
        place = place_in(graph.nodes, graph.count, PyLong_AsUnsignedLongLong(entry[0]))
        if reference and place == graph.count:
            if not is_gone_or_view(reference) and not is_made_here(graph, reference):
                need(is_kept(graph, entry[0], reference))
    return 1

def find_roots(graph: graph, roots):
    "what is stored, in the order of the results; how many"
    nodes = graph.nodes
    living = graph.living
    beside = graph.living_count * graph.is_ahead
    for number in range(beside):
        roots[number] = nodes[living[number]]
    for number in range(graph.waiting_count):
        roots[beside + number] = nodes[graph.own + number]
    beside = beside + graph.waiting_count
    for number in range(graph.asked):
        roots[beside + number] = nodes[number]
    return beside + graph.asked

def are_usual(roots, count, owners):
    for number in range(count):
        node: Node = roots[number]
        owners[number] = 0
        if is_alike(node.op, world.assign) == 0:  # of these Python makes leaves
            owners[number] = owner_of(node)
        need(node.realized == None and is_usual(node, owners[number]))
    return 1
"""

COMPUTING = """
def run_small(graph: graph, known: Known, values, enabled, origin):
    "no Python runs here"
    native: Native = known.native
    events: Events = world.events
    owners = room(MOST_NODES)
    roots = room(MOST_NODES)
    count = find_roots(graph, roots)
    need(native.address != world.zero and are_usual(roots, count, owners))
    need(are_gradients_asked(graph) and is_all_stored(graph) and may_write_all(graph))
    plan: plan = PyLong_AsUnsignedLongLong(native.address)
    need(PyList_Size(values) == plan.numbers and PyList_Size(known.results) == count)
    table = own(native.table)
    found = room(SLOTS)
    buffers = graph.buffers
    for number in range(plan.inputs):
        found[number] = buffers[PyLong_AsLongLong(PyList_GetItem(known.buffers, number))]
    ran = run(plan, values, origin, 0, found)
    if ran:
        replace(native.is_used, own(True))
        if native.is_place == True:
            replace(events.computed, own(referred(known.plan)))
        flushed()
        if graph.has_inner:
            keep_new(graph)
        PyDict_Clear(world.gradients)
        places = plan.places
        for number in range(count):
            own(owners[number])
        for number in range(count):
            place = places[PyLong_AsLongLong(PyList_GetItem(known.results, number))]
            settle(roots[number], found[place], owners[number], enabled)
        for number in range(count):
            place = places[PyLong_AsLongLong(PyList_GetItem(known.results, number))]
            retire(roots[number], found[place])
        let_go(owners, count)
        let_go(found, plan.slots)
    Py_DecRef(table)
    return ran

def note_living(graph: graph):
    "remembers what lives on and is not stored; runs Python: 0 after an error"
    listed = PyList_New(0)
    need(listed)
    nodes = graph.nodes
    living = graph.living
    for number in range(graph.living_count):
        PyList_Append(listed, nodes[living[number]])
    noted = PyObject_CallFunctionObjArgs(world.note_living, listed, 0)
    Py_DecRef(listed)
    Py_DecRef(noted)
    return noted

def compute_small(graph: graph, tops, enabled, origin):
    is_done = 0
    if walk(graph, tops) and look_around(graph, origin) and add_waiting(graph):
        known: Known = known_small(graph)
        if known:
            values = values_of(graph, known.scalars)
            if values and PyErr_Occurred() == 0:
                is_done = run_small(graph, known, values, enabled, origin)
            Py_DecRef(values)
            if is_done and graph.living_count and graph.is_ahead == 0:
                is_done = note_living(graph)
        Py_DecRef(known)
    let_go(graph.nodes, graph.count)
    let_go(graph.buffers, graph.buffer_count)
    let_go(graph.scalars, graph.scalar_count)
    let_go(graph.key, graph.length)
    return is_done

def let_go_of_base(node):
    "`carried.let_go` of the tensor of a node, where no trace is; runs Python"
    owner = owner_of(node)
    need(owner)
    tensor: Tensor = referred(owner)
    need(tensor and tensor != None and PyType_IsSubtype(type_of(tensor), world.Tensor))
    view: View = tensor._view
    need(view != None and view.function == world.cut_off)
    base: Tensor = view.base
    need(type_of(base) == world.Tensor and base[0] & HELD_BY == 1 and base._view == None)
    shown: Node = base._node
    need(type_of(shown) == world.Node and shown.realized == None and PyTuple_Size(shown.inputs))
    need(not PyDict_GetItemWithError(world.writing, shown.op))
    replace(tensor._view, own(None))
    return 1

def compute_listed(tops, origin):
    "1; 0 where nothing was done"
    need(PyList_Size(tops) >= 1 and PyList_Size(tops) <= LIMIT)
    enabled = is_enabled()
    graph: graph = room(GRAPH_WORDS)
    graph.count = 0
    graph.buffer_count = 0
    graph.scalar_count = 0
    graph.length = 0
    graph.has_inner = 0
    graph.asked = PyList_Size(tops)
    graph.nodes = room(MOST_NODES)
    graph.buffers = room(MOST_NODES)
    graph.scalars = room(MOST_SCALARS)
    graph.computed = room(MOST_NODES)
    graph.key = room(MOST_WORDS)
    graph.living = room(MOST_NODES)
    graph.kept = room(MOST_KEPT)
    graph.waiting = room(MOST_KEPT)
    graph.written = room(MOST_NODES)
    graph.written_count = 0
    return compute_small(graph, tops, enabled, origin)

@python
def picograd_small(self, arguments, count):
    "`small(nodes, origin)`: True, or None where nothing was done"
    if count != 2:
        refuse("small takes nodes and a line")
    need(type_of(arguments[0]) == world.list and not PyDict_Size(world.versions))
    need(sweep_live() and is_idle_but_for_writes())
    if is_there(arguments[0]):
        return own(True)
    for number in range(PyList_Size(arguments[0])):
        let_go_of_base(PyList_GetItem(arguments[0], number))
    tops = with_writes(arguments[0])
    need(tops)
    is_done = compute_listed(tops, arguments[1])
    Py_DecRef(tops)
    if is_done:
        return own(True)
"""

TEXT = MEETING + PLACING + WALKING + LOOKING + COMPUTING


def declare_small() -> None:
    """Let these functions be compiled with the others."""
    world = {
        "refused": dict.fromkeys({*MOVING, *WRITES} - {"slice", "pad", "assign"}, True),
        "slice": "slice", "pad": "pad",
        "memory": dict.fromkeys(MEMORY, True), "views": dict.fromkeys(FREE, True),
        "at": "at", "detach": "detach", "cut_off": build.detach,
        "numbers": dict.fromkeys(NUMBERS, True), "scalars": dict.fromkeys(SCALARS, True),
        "Given": Given, "GivenInt": GivenInt, "given": dict.fromkeys(GIVEN, True),
        "known_small": small.KNOWN, "scalar": "scalar",
        "roots": "roots", "value": "value", "versions": carried.entries(VERSIONS),
        "result": RESULT, "carried": carried.entries(carried.WAITING),
        "gradients": carried.entries(carried.GRADIENTS), "spots": carried.SPOTS,
        "waited": carried.GROUPS.known,
        "passed": carried.entries(carried.PASSED), "note_living": carried.note_living,
    }  # fmt: skip
    known = "buffers", "scalars", "results", "native", "plan"
    slots: dict[type, tuple[str, ...]] = {small.Known: known}
    tables, most = places("graph", GRAPH), LIMIT + 1
    numbers = {
        "HOPS": HOPS, "LIMIT": LIMIT, "MOST_NODES": most, "GRAPH_WORDS": len(GRAPH),
        "MOST_WORDS": (ROW + 1) * most + 3,
        "APART": 0, "BEHIND": 1, "INSIDE": 2, "UNKNOWN": 3,
        "MOST_SCALARS": 2 * most,  # of slices as many as `placed` lets in, and of leaves
        "HELD_BY": (1 << 32) - 1,  # the bits of an object that count who holds it
        "MOST_KEPT": 8,  # new values that wait on, and are walked each time
        "MOST_PASSED": 64,  # values that passed and are looked at one by one
    }  # fmt: skip
    native_calls.declare(TEXT, ("picograd_small",), world, slots, tables, numbers)
