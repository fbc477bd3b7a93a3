"""score_groups: how fusion visits what streams over scores (schedule/score_sinks.py)."""

from typing import Protocol

from picograd.graph.row import Role
from picograd.schedule.cost import OPERATION_LIMIT
from picograd.schedule.group import Facts, Group, Labels, identity_labels
from picograd.schedule.score_epilogues import may_follow
from picograd.schedule.score_sinks import base_of, deepest, outer_reads
from picograd.schedule.views import settle, strip_views

OPERAND_LIMIT = 4  # operations on an operand of scores, which is read again and again


class Fusing(Protocol):
    """What the walk of fusion offers."""

    def store(self, facts: Facts, reason: str = "") -> None:
        """Make a floating node a member of a group."""

    def join(self, facts: Facts, group: Group, level: str, labels: Labels) -> None:
        """Make a node a member of a group."""

    def new_group(
        self, kind: str, depth: int, shape: tuple[int, ...], reduced: tuple[int, ...], device: str
    ) -> Group:
        """Open a group."""
        ...


def visit_stream(fuser: Fusing, facts: Facts) -> None:
    """Visit a score, or what reduces scores."""
    visit = visit_score if facts.is_score else visit_sink
    visit(fuser, facts)


def visit_score(fuser: Fusing, facts: Facts) -> None:
    """A score is computed where a stream reads it, from what is in memory or cheap."""
    for source in facts.inputs:
        if not source.is_score:
            settle_read(fuser, source, facts)
        facts.depth = max(facts.depth, source.depth)
    facts.cost = 1


def visit_sink(fuser: Fusing, facts: Facts) -> None:
    """The first of the sinks that stream together opens their group: all is there by now."""
    stream = facts.stream
    for source in facts.inputs:
        if not source.is_score:
            settle_read(fuser, source, facts)
    if stream.group is None:
        own = {id(sink.facts) for sink in stream.sinks}
        for sink in stream.sinks:  # what is stored for a later one is there before the first
            for reader, read in list(outer_reads(sink.facts, stream.at)):
                if id(base_of(read)) not in own:
                    settle_read(fuser, read, reader)
        depth = deepest(stream, own) + 1
        shape = tuple(axis.size for axis in stream.rows)
        stream.group = fuser.new_group("attention", depth, shape, (), facts.node.device)
    fuser.join(facts, stream.group, "hero", identity_labels(facts.node.shape))
    if may_follow(facts, stream):
        stream.group.shape = facts.node.shape  # what is made of each element may join
    else:
        facts.labels = None


def settle_read(fuser: Fusing, source: Facts, facts: Facts) -> None:
    """Store what a stream would compute again at great cost, or what boxes bring."""
    base = strip_views(source)
    if source.has_pages and not base.is_loaded:
        settle_pages(fuser, base)
        settle(source, base)
        return
    is_operand = facts.node.row.role is Role.CONTRACT
    most = OPERAND_LIMIT if is_operand else OPERATION_LIMIT
    is_dear = base.has_window or base.cost > most
    is_wanted = is_dear or (is_operand and source.is_boxed)
    if base.node.inputs and not base.is_loaded and is_wanted:
        fuser.store(base, "a stream of scores reads it")
    base.is_row_major |= source.is_boxed
    settle(source, base)


def settle_pages(fuser: Fusing, gather: Facts) -> None:
    """Store the pages that boxes bring, and the tables that say which, if they are dear."""
    pages, *tables = gather.inputs
    base = strip_views(pages)
    if base.node.inputs and not base.is_loaded:
        fuser.store(base, "a stream of scores reads its pages")
    base.is_row_major = True
    settle(pages, base)
    for table in tables:
        settle_read(fuser, table, gather)
    gather.depth = max(each.depth for each in gather.inputs)
