"""The native launch runner: LLVM IR, compiled once, that runs a list of launches on all threads.

One launch is a record of RECORD_WORDS 8-byte words:

    0 entry  1 pointers  2 cells  3 tasks  4 chunk  5 slots  6 slot count  7 scalars  8 scalar count
    9 start  10 end (nanoseconds, written when timed)  11 work (operations and bytes, about)

Before a launch the runner fills `pointers[i] = addresses[slots[i]]` and `cells[i] =
scalar table[scalars[i]]`, so a tape runs on other buffers without being rebuilt. Then the threads
take ranges of `chunk` tasks until none is left; the caller works too.

Running returns 0, or 1 for a pause: Python looks for signals then, and resumes at the step, record
and number of tasks left that the context tells, or drops the rest. `@is_late` asks for a pause. It
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

from picograd.runtime.native_copy import COPY
from picograd.runtime.native_threads import CLOCK, FUTEX_SLEEP, PARALLEL, TIMED_SLEEP, WORK, WORKER

RECORD_WORDS = 12
PIECE_WORK = 1 << 25  # operations and bytes: no processor takes more than some 50 ms for them
PIECE = 50_000_000  # nanoseconds before a pause
CONTEXT_BYTES = 384
# Fields that different threads write are 64 bytes apart: a cache line each.
CONTEXT = {
    "ticket": 0,
    "completed": 64,
    "sleepers": 128,
    "stop": 132,
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

RUN = """
define internal void @gather(ptr %out, ptr %table, ptr %numbers, i64 %count) {
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %exit
body:
  %number.p = getelementptr i64, ptr %numbers, i64 %i
  %number = load i64, ptr %number.p, align 8
  %from = getelementptr i64, ptr %table, i64 %number
  %value = load i64, ptr %from, align 8
  %to = getelementptr i64, ptr %out, i64 %i
  store i64 %value, ptr %to, align 8
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
}

; Returns the number of tasks that are left; `remaining` is 0 for all of them.
define internal i64 @launch(ptr %context, ptr %record, ptr %addresses, ptr %scalars,
                            i64 %remaining) {
entry:
  %f = load ptr, ptr %record, align 8
  %r1 = getelementptr i64, ptr %record, i64 1
  %pointers = load ptr, ptr %r1, align 8
  %r2 = getelementptr i64, ptr %record, i64 2
  %cells = load ptr, ptr %r2, align 8
  %r3 = getelementptr i64, ptr %record, i64 3
  %tasks = load i64, ptr %r3, align 8
  %r4 = getelementptr i64, ptr %record, i64 4
  %chunk = load i64, ptr %r4, align 8
  %r5 = getelementptr i64, ptr %record, i64 5
  %slots = load ptr, ptr %r5, align 8
  %r6 = getelementptr i64, ptr %record, i64 6
  %slot_count = load i64, ptr %r6, align 8
  %r7 = getelementptr i64, ptr %record, i64 7
  %numbers = load ptr, ptr %r7, align 8
  %r8 = getelementptr i64, ptr %record, i64 8
  %scalar_count = load i64, ptr %r8, align 8
  %r11 = getelementptr i64, ptr %record, i64 11
  %work = load i64, ptr %r11, align 8
  call void @gather(ptr %pointers, ptr %addresses, ptr %slots, i64 %slot_count)
  call void @gather(ptr %cells, ptr %scalars, ptr %numbers, i64 %scalar_count)
  %is_long = icmp sge i64 %work, PIECE_WORK
  %pace = select i1 %is_long, i64 PIECE_WORK, i64 0
  store i64 %pace, ptr %pace.p, align 8
  store i64 0, ptr %left.p, align 8
  %is_fresh = icmp eq i64 %remaining, 0
  %open = select i1 %is_fresh, i64 %tasks, i64 %remaining
  %workers = load i64, ptr %workers.p, align 8
  %is_single = icmp ule i64 %open, %chunk
  %is_alone = icmp eq i64 %workers, 0
  %is_serial = or i1 %is_single, %is_alone
  br i1 %is_serial, label %serial, label %threads
serial:
  %scratch = load ptr, ptr %scratch.p, align 8
  %first = sub i64 %tasks, %open
  br label %range
range:
  %begin = phi i64 [ %first, %serial ], [ %end, %again ]
  %far = add i64 %begin, %chunk
  %is_last = icmp uge i64 %far, %tasks
  %end = select i1 %is_last, i64 %tasks, i64 %far
  call void %f(ptr %pointers, ptr %cells, ptr %scratch, i64 %begin, i64 %end)
  br i1 %is_last, label %done, label %again
again:
  %late = call i1 @is_late(ptr %context, i64 %pace)
  br i1 %late, label %pause, label %range
pause:
  %rest = sub i64 %tasks, %end
  ret i64 %rest
done:
  ret i64 0
threads:
  %left = call i64 @parallel(ptr %context, ptr %record, i64 %open)
  ret i64 %left
}

define i64 @picograd_run(ptr %context, ptr %call) {
entry:
  %count.word = getelementptr i64, ptr %call, i64 1
  %addresses.word = getelementptr i64, ptr %call, i64 2
  %scalars.word = getelementptr i64, ptr %call, i64 3
  %timed.word = getelementptr i64, ptr %call, i64 4
  %records = load ptr, ptr %call, align 8
  %count = load i64, ptr %count.word, align 8
  %addresses = load ptr, ptr %addresses.word, align 8
  %scalars = load ptr, ptr %scalars.word, align 8
  %timed = load i64, ptr %timed.word, align 8
  store i64 0, ptr %work.p, align 8
  store i64 0, ptr %deadline.p, align 8
  %is_paused = call i64 @launches(ptr %context, ptr %records, i64 %count, ptr %addresses,
                                  ptr %scalars, i64 %timed, i64 0, i64 0)
  ret i64 %is_paused
}

define i64 @picograd_resume(ptr %context, ptr %records, i64 %count, ptr %addresses, ptr %scalars,
                            i64 %timed) {
entry:
  store i64 0, ptr %work.p, align 8
  store i64 0, ptr %deadline.p, align 8
  %position = load i64, ptr %position.p, align 8
  %left = load i64, ptr %left.p, align 8
  %is_paused = call i64 @launches(ptr %context, ptr %records, i64 %count, ptr %addresses,
                                  ptr %scalars, i64 %timed, i64 %position, i64 %left)
  ret i64 %is_paused
}

define internal i64 @launches(ptr %context, ptr %records, i64 %count, ptr %addresses, ptr %scalars,
                              i64 %timed, i64 %position, i64 %left) {
entry:
  %is_timed = icmp ne i64 %timed, 0
  br label %test
test:
  %i = phi i64 [ %position, %entry ], [ %next, %advance ]
  %open = phi i64 [ %left, %entry ], [ 0, %advance ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %exit
body:
  %place = mul i64 %i, WORDS
  %record = getelementptr i64, ptr %records, i64 %place
  br i1 %is_timed, label %clocked, label %start
clocked:
  %is_fresh = icmp eq i64 %open, 0
  br i1 %is_fresh, label %clock, label %start
clock:
  %start.p = getelementptr i64, ptr %record, i64 9
  %time = call i64 @now()
  store i64 %time, ptr %start.p, align 8
  br label %start
start:
  %rest = call i64 @launch(ptr %context, ptr %record, ptr %addresses, ptr %scalars, i64 %open)
  %is_stopped = icmp ne i64 %rest, 0
  br i1 %is_stopped, label %within, label %ended
within:
  store i64 %i, ptr %position.p, align 8
  store i64 %rest, ptr %left.p, align 8
  ret i64 1
ended:
  br i1 %is_timed, label %stamp, label %ask
stamp:
  %end.p = getelementptr i64, ptr %record, i64 10
  %end = call i64 @now()
  store i64 %end, ptr %end.p, align 8
  br label %ask
ask:
  %next = add i64 %i, 1
  %r11 = getelementptr i64, ptr %record, i64 11
  %work = load i64, ptr %r11, align 8
  %late = call i1 @is_late(ptr %context, i64 %work)
  br i1 %late, label %between, label %advance
between:
  store i64 %next, ptr %position.p, align 8
  store i64 0, ptr %left.p, align 8
  ret i64 1
advance:
  br label %test
exit:
  store i64 %i, ptr %position.p, align 8
  store i64 0, ptr %left.p, align 8
  ret i64 0
}
"""

LOOP = """
define internal void @move(ptr %addresses, ptr %rules, i64 %count, i64 %t) {
entry:
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %exit
body:
  %position = mul i64 %i, 5
  %rule = getelementptr i64, ptr %rules, i64 %position
  %slot = load i64, ptr %rule, align 8
  %r1 = getelementptr i64, ptr %rule, i64 1
  %base = load i64, ptr %r1, align 8
  %r2 = getelementptr i64, ptr %rule, i64 2
  %step = load i64, ptr %r2, align 8
  %r3 = getelementptr i64, ptr %rule, i64 3
  %mask = load i64, ptr %r3, align 8
  %r4 = getelementptr i64, ptr %rule, i64 4
  %shift = load i64, ptr %r4, align 8
  %moved = add i64 %t, %shift
  %row = and i64 %moved, %mask
  %offset = mul i64 %row, %step
  %address = add i64 %base, %offset
  %to = getelementptr i64, ptr %addresses, i64 %slot
  store i64 %address, ptr %to, align 8
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
}

; Begins at step `first`, there at the record and with the tasks that a pause left.
define i64 @picograd_loop(ptr %context, ptr %records, i64 %count, ptr %addresses, ptr %scalars,
                          ptr %rules, i64 %rule_count, i64 %length, i64 %first, i64 %position,
                          i64 %left) {
entry:
  store i64 0, ptr %work.p, align 8
  store i64 0, ptr %deadline.p, align 8
  br label %test
test:
  %t = phi i64 [ %first, %entry ], [ %next, %advance ]
  %i = phi i64 [ %position, %entry ], [ 0, %advance ]
  %open = phi i64 [ %left, %entry ], [ 0, %advance ]
  %more = icmp ult i64 %t, %length
  br i1 %more, label %body, label %exit
body:
  call void @move(ptr %addresses, ptr %rules, i64 %rule_count, i64 %t)
  %is_paused = call i64 @launches(ptr %context, ptr %records, i64 %count, ptr %addresses,
                                  ptr %scalars, i64 0, i64 %i, i64 %open)
  %stops = icmp ne i64 %is_paused, 0
  br i1 %stops, label %pause, label %advance
pause:
  store i64 %t, ptr %step.p, align 8
  ret i64 1
advance:
  %next = add i64 %t, 1
  br label %test
exit:
  ret i64 0
}
"""


def with_fields(text: str) -> str:
    """Compute `%name.p` at the top of every function whose body uses that context field."""
    done = []
    for function in text.split("\ndefine "):
        head, brace, body = function.partition("{\n")
        used = [name for name in CONTEXT if f"%{name}.p" in body]
        label, rest = ("entry:\n", body[7:]) if body.startswith("entry:\n") else ("", body)
        lines = [f"  %{n}.p = getelementptr i8, ptr %context, i64 {CONTEXT[n]}\n" for n in used]
        done.append(head + brace + label + "".join(lines) + rest)
    return "\ndefine ".join(done)


def runner_source() -> str:
    """Write the runner for this machine; little-endian, as every host LLVM JITs for here."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    declaration, pause = PAUSE.get(machine, ("", "fence acquire"))
    number = FUTEX.get(machine) if sys.platform == "linux" else None
    sleep = FUTEX_SLEEP.replace("NUMBER", str(number)) if number else TIMED_SLEEP
    externals = "declare i32 @sched_yield()\ndeclare i32 @clock_gettime(i32, ptr)\n"
    body = with_fields(CLOCK + WORK + WORKER + PARALLEL + RUN + LOOP) + COPY
    body = body.replace("PAUSE", pause).replace("WORDS", str(RECORD_WORDS))
    body = body.replace("PIECE_WORK", str(PIECE_WORK)).replace("PIECE_TIME", str(PIECE))
    clock = str(getattr(time, "CLOCK_MONOTONIC", 1))
    return declaration + "\n" + externals + sleep + body.replace("CLOCK", clock)
