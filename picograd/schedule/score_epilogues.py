"""score_epilogues: what is made of each element of a stream's result joins its kernel.

    o = softmax(s) @ v
    %5 [b, i, v] = o * sigmoid(gate)                   o itself is stored if others read it

A gate, a residual, a conversion: elementwise work on the one product of a forward stream, whose
places are those of the product, in any order of its dimensions.
"""

from collections.abc import Iterator, Sequence

from picograd.schedule.group import FREE, Facts
from picograd.schedule.index import Index, Indices, constant
from picograd.schedule.loop import Compute, Expr, walk
from picograd.schedule.lower import PartBuilder
from picograd.schedule.score_lowering import Finished
from picograd.schedule.score_sinks import Stream, columns_of, is_product

MOST_COLUMNS = 64  # of a product that is stored beside what is made of it


def may_follow(facts: Facts, stream: Stream) -> bool:
    """Tell whether others may join a stream behind a node: the one product of a forward stream.

    A wide one that others read as well is rather stored alone: two that leave at the end of each
    tile of rows take longer than another kernel (docs/records/0012-attention).
    """
    products = [sink for sink in stream.sinks if is_product(sink)]
    if stream.total is None or [sink.facts for sink in products] != [facts]:
        return False
    (product,) = products
    return facts.kernels <= 1 or columns_of(product) <= MOST_COLUMNS


def following(members: Sequence[Facts], part: PartBuilder) -> Iterator[Finished]:
    """Yield what is made of elements of a product, with its compute and its own indices.

    The product is lowered before the first is asked for.
    """
    for member in members:
        if member.stream is not None:
            continue
        product = next(each for each in members if is_placed(each))
        at, value = part.available[product.number]
        number = number_of(value)
        axes = part.computes[number].axes
        places = placed(member, at)
        part.bound = axes
        body = part.build(member, places)
        yield member, Compute(axes, (), None, body, body.dtype), places


def is_placed(facts: Facts) -> bool:
    """Tell whether what is made of a sink has places."""
    return facts.stream is not None and facts.labels is not None


def number_of(value: Expr) -> int:
    """Find the compute that a value refers to."""
    refs = [part.arg for part in walk(value) if part.op == "ref"]
    return int(refs[0])


def placed(member: Facts, at: Indices) -> Indices:
    """Find the indices of what is made of a product that has some."""
    found: list[Index] = []
    for label in member.labels or ():
        index = constant(0) if label == FREE else at[label]
        found.append(index)
    return tuple(found)
