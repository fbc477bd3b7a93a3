"""The native launch runner: LLVM IR, compiled once, that runs a list of launches on all threads.

One launch is a record of RECORD_WORDS 8-byte words:

    0 entry  1 pointers  2 cells  3 tasks  4 chunk  5 slots  6 slot count  7 scalars  8 scalar count
    9 start  10 end (nanoseconds, written when timed)  11 work (operations and bytes, about)

Before a launch the runner fills `pointers[i] = addresses[slots[i]]` and `cells[i] =
scalar table[scalars[i]]`, so a tape runs on other buffers without being rebuilt. Then the threads
take ranges of `chunk` tasks until none is left; the caller works too.

Running returns 0, or 1 for a pause: Python looks for signals then, and resumes at the step, record
and number of tasks left that the context tells, or drops the rest. `is_late` asks for a pause. It
adds up work and reads the clock when PIECE_WORK is done: first to set the deadline, so that what is
short reads none. It is asked between launches, and in those with more work than that by the caller
after each of its ranges: the caller takes what is left off the ticket, waits for the other threads,
and the same launch begins again with fewer tasks.

A loop runs its records again and again; before step t it moves entries of the address table by
rules of 5 words (entry, base, step, mask, shift): base + step * ((t + shift) & mask).

All threads share a context (offsets in CONTEXT). Its `ticket` packs (generation << 32 | tasks
left). Taking tasks is one compare-and-swap on it, and that makes reading the other fields safe:
while tasks are left the caller cannot have finished the launch, hence has not changed a field, and
the swap fails if the ticket moved in between. So the caller waits for the tasks only, never for a
thread that is not running: with fewer cores than threads nothing hangs.

An idle worker spins for some microseconds, then sleeps on the generation half of the ticket. It
counts itself in `sleepers` first and looks at the ticket again; the caller writes the ticket first
and then reads `sleepers`: one of the two sees the other (both sequentially consistent).
"""

import platform
import sys
import time

from picograd.runtime.python_calls import places
from picograd.runtime.python_code import Translator

RECORD = (
    "entry", "pointers", "cells", "tasks", "chunk", "slots", "slot_count", "scalars",
    "scalar_count", "start", "end", "work",
)  # fmt: skip
CALL = ("records", "count", "addresses", "scalars", "timed")
RULE = ("slot", "base", "step", "mask", "shift")
RECORD_WORDS = len(RECORD)
PIECE_WORK = 1 << 25  # operations and bytes: no processor takes more than some 50 ms for them
PIECE = 50_000_000  # nanoseconds before a pause
CONTEXT_BYTES = 384
# Fields that different threads write are 64 bytes apart: a cache line each.
CONTEXT = {
    "ticket": 0,
    "completed": 64,
    "sleepers": 128,
    "stop": 136,
    "entry": 192,
    "pointers": 200,
    "cells": 208,
    "tasks": 216,
    "chunk": 224,
    "scratch": 232,
    "stride": 240,
    "workers": 248,
    "spins": 256,
    "work": 264,  # since the clock was read
    "deadline": 272,
    "pace": 280,  # work of a range of this launch
    "step": 288,  # of a loop, where it paused
    "position": 296,  # of the record in which it paused
    "left": 304,  # tasks of it that remain
}
FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # system call numbers of Linux
PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
NUMBERS = {
    "HIGH": -1 << 32, "LOW": (1 << 32) - 1, "NEXT": 1 << 32,  # of a ticket
    "MANY": (1 << 31) - 1, "WAIT": 128, "WAKE": 129,  # of a futex of this process
    "LONG": 2000,  # pauses after which a worker that holds tasks may need this very core
    "PIECE_WORK": PIECE_WORK, "PIECE": PIECE, "CLOCK": getattr(time, "CLOCK_MONOTONIC", 1),
    "RECORD": 8 * RECORD_WORDS, "RULE": 8 * len(RULE),
}  # fmt: skip

SLEEPING = """
def sleep(context, generation):
    syscall(FUTEX, context + 4, WAIT, generation, 0, 0, 0)

def wake(context, count):
    syscall(FUTEX, context + 4, WAKE, least(count, MANY), 0, 0, 0)
"""

# Without futexes (not Linux) an idle worker looks at the ticket every 50 microseconds.
DOZING = """
def sleep(context, generation):
    usleep(50)

def wake(context, count):
    return 0
"""

WORKING = """
def least(number, other):
    if number < other:
        return number
    return other

def now():
    time = room(2)
    clock_gettime(CLOCK, time)
    return time[0] * 1000000000 + time[1]

def is_late(context: context, done):
    "whether a pause is due, after so much more work"
    work = context.work + done
    if work < PIECE_WORK:
        context.work = work
        return 0
    context.work = 0
    if context.deadline == 0:
        context.deadline = now() + PIECE
        return 0
    return now() >= context.deadline

def work(context: context, index):
    "takes ranges of tasks until none is left"
    ticket = atomic_read(context.ticket)
    while ticket & LOW:
        left = ticket & LOW
        entry = context.entry
        pointers = context.pointers
        cells = context.cells
        begin = context.tasks - left
        scratch = context.scratch + index * context.stride
        taken = least(context.chunk, left)
        if atomic_swap(context.ticket, ticket, ticket - taken):
            enter(entry, pointers, cells, scratch, begin, begin + taken)
            atomic_add(context.completed, taken)
            if index == 0 and is_late(context, context.pace):
                context.left = atomic_and(context.ticket, HIGH) & LOW
                return 0
        ticket = atomic_read(context.ticket)

def is_tired(context: context):
    "whether no task came for a while"
    for spin in range(context.spins):
        if atomic_read(context.ticket) & LOW or atomic_read(context.stop):
            return 0
        pause()
    return 1

def rest(context: context):
    atomic_add(context.sleepers, 1)
    ticket = atomic_read(context.ticket)
    if (ticket & LOW) == 0 and atomic_read(context.stop) == 0:
        sleep(context, ticket >> 32)
    atomic_add(context.sleepers, 0 - 1)

@public
def picograd_worker(context: context, index):
    while atomic_read(context.stop) == 0:
        work(context, index)
        if is_tired(context):
            rest(context)

@public
def picograd_stop(context: context):
    atomic_write(context.stop, 1)
    atomic_add(context.ticket, NEXT)
    wake(context, MANY)
"""

RUNNING = """
def gather(out, table, numbers, count):
    for number in range(count):
        out[number] = table[numbers[number]]

def run_alone(context: context, record: record, remaining):
    "gives the number of tasks that a pause leaves"
    tasks = record.tasks
    begin = tasks - remaining
    while begin < tasks:
        end = least(begin + record.chunk, tasks)
        enter(record.entry, record.pointers, record.cells, context.scratch, begin, end)
        begin = end
        if begin < tasks and is_late(context, context.pace):
            return tasks - begin

def run_together(context: context, record: record, remaining):
    "gives the number of tasks that a pause leaves"
    context.entry = record.entry
    context.pointers = record.pointers
    context.cells = record.cells
    context.tasks = record.tasks
    context.chunk = record.chunk
    context.completed = record.tasks - remaining
    atomic_write(context.ticket, (((context.ticket >> 32) + 1) << 32) | remaining)
    if atomic_read(context.sleepers):
        wake(context, (remaining - 1) // record.chunk)
    work(context, 0)
    wanted = record.tasks - context.left
    pauses = 0
    while atomic_read(context.completed) != wanted:
        pause()
        pauses = pauses + 1
        if pauses > LONG:
            sched_yield()
    return context.left

def launch(context: context, record: record, addresses, scalars, remaining):
    "gives the number of tasks that a pause leaves; `remaining` is 0 for all of them"
    gather(record.pointers, addresses, record.slots, record.slot_count)
    gather(record.cells, scalars, record.scalars, record.scalar_count)
    context.pace = 0
    if record.work >= PIECE_WORK:
        context.pace = PIECE_WORK
    context.left = 0
    if remaining == 0:
        remaining = record.tasks
    if remaining <= record.chunk or context.workers == 0:
        return run_alone(context, record, remaining)
    return run_together(context, record, remaining)

def note(context: context, position, left):
    "notes where a run ends, or pauses"
    context.position = position
    context.left = left
    return 1

def launches(context, records, count, addresses, scalars, timed, position, left):
    while position < count:
        record: record = records + position * RECORD
        if timed and left == 0:
            record.start = now()
        left = launch(context, record, addresses, scalars, left)
        if left:
            return note(context, position, left)
        if timed:
            record.end = now()
        position = position + 1
        if is_late(context, record.work):
            return note(context, position, 0)
    note(context, position, 0)
    return 0

def begin(context: context):
    context.work = 0
    context.deadline = 0

@public
def picograd_run(context, call: call):
    begin(context)
    tables = call.addresses
    return launches(context, call.records, call.count, tables, call.scalars, call.timed, 0, 0)

@public
def picograd_resume(context: context, records, count, addresses, scalars, timed):
    begin(context)
    position = context.position
    return launches(context, records, count, addresses, scalars, timed, position, context.left)

def move(addresses, rules, count, step):
    for number in range(count):
        rule: rule = rules + number * RULE
        addresses[rule.slot] = rule.base + rule.step * ((step + rule.shift) & rule.mask)

@public
def picograd_loop(
    context: context, records, count, addresses, scalars, rules, rule_count, length, step,
    position, left
):
    "begins at a step, there at the record and with the tasks that a pause left"
    begin(context)
    while step < length:
        move(addresses, rules, rule_count, step)
        if launches(context, records, count, addresses, scalars, 0, position, left):
            context.step = step
            return 1
        step = step + 1
        position = 0
        left = 0

@public
def picograd_copy(to, source, n0, n1, n2, t0, t1, t2, f0, f1, f2, bytes):
    "copies a box of runs: how many, and how far apart where they go to and come from"
    for i in range(n0):
        for j in range(n1):
            for k in range(n2):
                place = source + i * f0 + j * f1 + k * f2
                memcpy(to + i * t0 + j * t1 + k * t2, place, bytes)
"""


def runner_source() -> str:
    """Write the runner for this machine; little-endian, as every host LLVM JITs for here."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    declaration, pause = PAUSE.get(machine, ("", "fence acquire"))
    number = FUTEX.get(machine, 0) if sys.platform == "linux" else 0
    tables = places("record", RECORD) | places("call", CALL) | places("rule", RULE)
    tables |= {f"context.{name}": at for name, at in CONTEXT.items()}
    code = Translator(tables, {**NUMBERS, "FUTEX": number}, shared="context")
    body = f"{{\n  {pause}\n  ret i64 0\n}}"
    code.heads["pause"] = f"{declaration}\ndefine internal i64 @pause() {body}"
    code.translate((SLEEPING if number else DOZING) + WORKING + RUNNING)
    return code.text()
