"""Plans by structural key, bounded by the bytes that they and the code they run take in memory.

The plan used longest ago goes first. The cache is the one owner of plans: traces of `jit` refer to
theirs weakly, and loaded kernels live for as long as a plan that runs them, so that what falls out
is unloaded, once a run that is under way is over. The newest plan always stays.
"""

import sys
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from picograd.config import config
from picograd.engine.executable import Runnable
from picograd.late_methods import dataclass

WARN_AT = 8  # plans made again because they had fallen out, before we say so
REMEMBERED = 1 << 16  # hashes of keys that fell out


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds."""

    plans: int
    kernels: int
    bytes: int


class PlanCache:
    """See the module docstring; used like a dict. Callers hold `pending.LOCK`."""

    def __init__(self) -> None:
        self.plans: OrderedDict[Any, Runnable] = OrderedDict()
        self.users: Counter[int] = Counter()  # plans that run a kernel, by its identity
        self.counted: dict[int, int] = {}  # its bytes, which may change as better code is loaded
        self.bytes = self.again = 0
        self.gone: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.plans))

    def __getitem__(self, key: Any) -> Runnable:
        return self.plans[key]

    def keys(self) -> list[Any]:
        """List the keys, the one used longest ago first."""
        return list(self.plans)

    def get(self, key: Any) -> Runnable | None:
        """Find a plan, which is used now."""
        found = self.plans.get(key)
        if found is not None:
            self.plans.move_to_end(found.key)  # the same object: nothing is compared
        return found

    def put(self, key: Any, plan: Runnable) -> None:
        """Keep a new plan, and let the oldest go where there is no room."""
        if hash(key) in self.gone:
            self.count_again()
        if key in self.plans:
            self.drop(key)
        plan.key = key
        self.plans[key] = plan
        self.bytes += plan.nbytes
        for executable in plan.executables:
            self.users[id(executable)] += 1
            if self.users[id(executable)] == 1:
                self.counted[id(executable)] = executable.nbytes
                self.bytes += executable.nbytes
        self.shrink()

    def touch(self, plan: Runnable) -> bool:
        """Note that a plan is used now; tells whether it is there."""
        if plan.native.address:  # it is; see `shrink`
            plan.native.is_used = True
            return True
        is_kept = plan.key in self.plans
        if is_kept:
            self.plans.move_to_end(plan.key)
            if plan.native.patience:
                plan.native.count_use(plan)
        return is_kept

    def may_run(self, plan: Runnable) -> bool:
        """Tell whether a plan is there, and no other should be made; then it is used now."""
        return not plan.is_worn and self.touch(plan)

    def charge(self, plan: Runnable, nbytes: int) -> None:
        """Count memory that lives as long as a plan does."""
        if plan.key in self.plans:
            plan.nbytes += nbytes
            self.bytes += nbytes
            self.shrink()

    def shrink(self) -> None:
        """Let the plans go that were used longest ago, until the rest fits."""
        while self.bytes > config.plans_size << 20 and len(self.plans) > 1:
            key, plan = next(iter(self.plans.items()))
            if plan.native.is_used:  # by machine code, which moves none
                plan.native.is_used = False
                self.plans.move_to_end(key)
                continue
            self.drop(key)
            self.gone[hash(key)] = None
        while len(self.gone) > REMEMBERED:
            self.gone.popitem(last=False)

    def drop(self, key: Any) -> None:
        """Let one plan go, and the code that no other one runs."""
        plan = self.plans.pop(key)
        plan.native.end()
        self.bytes -= plan.nbytes
        for executable in plan.executables:
            self.users[id(executable)] -= 1
            if not self.users[id(executable)]:
                del self.users[id(executable)]
                self.bytes -= self.counted.pop(id(executable))

    def clear(self) -> None:
        """Let all plans go."""
        for key in self.keys():
            self.drop(key)
        self.gone.clear()
        self.again = 0

    def update(self, plans: Mapping[Any, Runnable]) -> None:
        """Keep plans that were in a cache."""
        for key, plan in plans.items():
            self.put(key, plan)

    def count_again(self) -> None:
        """Say once that plans are made again and again for want of room."""
        self.again += 1
        if self.again == WARN_AT:
            print(
                f"picograd: {WARN_AT} plans were made again: they had fallen out of the "
                f"{config.plans_size} MiB that plans may take; set PICOGRAD_PLANS_SIZE to more",
                file=sys.stderr,
            )

    def stats(self) -> CacheStats:
        """Count plans, the kernels they run, and bytes."""
        return CacheStats(len(self.plans), len(self.users), self.bytes)


PLANS = PlanCache()
