"""score_circles: streams over scores that wait for one another are none.

    y = softmax(s) @ v        one stream has y and, beside it, a gradient made of z
    z = softmax(t) @ w        the other has z, and a gradient made of y

A stream is one kernel, so all that it reads is there before it begins. Neither can be first.
"""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from picograd.schedule.group import Facts, Reasons
from picograd.schedule.score_sinks import Stream, waits_of


def untangled(streams: list[Stream], values: Sequence[Facts], reasons: Reasons) -> list[Stream]:
    """Leave out a region of each circle: its scores go to memory. `values` are inputs first."""
    while circle := find_circle(streams, values):
        region = streams[max(circle)].region
        first = region.members[0]
        problem = "its streams wait for others, and these for them"
        reasons.note(f"kept scores {first.node.shape} in memory: {problem}", first.number)
        streams = [stream for stream in streams if stream.region is not region]
    return streams


def find_circle(streams: Sequence[Stream], values: Sequence[Facts]) -> Sequence[int]:
    """Find streams each of which is made of the next one's sinks, by their places."""
    if len(streams) < 2:
        return ()
    bits = {sink.facts.number: 1 << n for n, each in enumerate(streams) for sink in each.sinks}
    waits = waits_of(values, bits)
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for number, stream in enumerate(streams):
        every = 0
        for sink in stream.sinks:
            every |= waits[sink.facts.number]
        every &= ~(1 << number)
        sorter.add(number, *(n for n in range(every.bit_length()) if every >> n & 1))
    try:
        sorter.prepare()
    except CycleError as error:
        found: Sequence[int] = error.args[1]
        return found
    return ()
