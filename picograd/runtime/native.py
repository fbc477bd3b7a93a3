"""The native launch runner: LLVM IR, compiled once, that runs a list of launches on all threads.

One launch is a record of RECORD_WORDS 8-byte words:

    0 entry  1 pointers  2 cells  3 tasks  4 chunk  5 slots  6 slot count  7 scalars  8 scalar count
    9 start  10 end (nanoseconds, written when timed)

Before a launch the runner fills `pointers[i] = addresses[slots[i]]` and `cells[i] =
scalar table[scalars[i]]`, so a tape runs on other buffers without being rebuilt. Then the threads
take ranges of `chunk` tasks until none is left; the caller works too.

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

RECORD_WORDS = 12
CONTEXT_BYTES = 320
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
}
FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # system call numbers of Linux
PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}

WORK = """
define internal void @work(ptr %context, i64 %index) {
entry:
  br label %look
look:
  %ticket = load atomic i64, ptr %context acquire, align 8
  %left = and i64 %ticket, 4294967295
  %is_done = icmp eq i64 %left, 0
  br i1 %is_done, label %exit, label %claim
claim:
  ; atomic only so that the race with the next launch is defined; the swap discards such reads
  %entry_address = load atomic i64, ptr %entry.p monotonic, align 8
  %pointers = load atomic i64, ptr %pointers.p monotonic, align 8
  %cells = load atomic i64, ptr %cells.p monotonic, align 8
  %tasks = load atomic i64, ptr %tasks.p monotonic, align 8
  %chunk = load atomic i64, ptr %chunk.p monotonic, align 8
  %scratch = load atomic i64, ptr %scratch.p monotonic, align 8
  %stride = load atomic i64, ptr %stride.p monotonic, align 8
  %is_last = icmp ult i64 %left, %chunk
  %taken = select i1 %is_last, i64 %left, i64 %chunk
  %after = sub i64 %ticket, %taken
  %swap = cmpxchg ptr %context, i64 %ticket, i64 %after acq_rel monotonic, align 8
  %is_ours = extractvalue { i64, i1 } %swap, 1
  br i1 %is_ours, label %run, label %look
run:
  %begin = sub i64 %tasks, %left
  %end = add i64 %begin, %taken
  %offset = mul i64 %index, %stride
  %own = add i64 %scratch, %offset
  %f = inttoptr i64 %entry_address to ptr
  %a = inttoptr i64 %pointers to ptr
  %b = inttoptr i64 %cells to ptr
  %c = inttoptr i64 %own to ptr
  call void %f(ptr %a, ptr %b, ptr %c, i64 %begin, i64 %end)
  %unused = atomicrmw add ptr %completed.p, i64 %taken release, align 8
  br label %look
exit:
  ret void
}
"""

WORKER = """
define void @picograd_worker(ptr %context, i64 %index) {
entry:
  %spins = load i64, ptr %spins.p, align 8
  br label %busy
busy:
  call void @work(ptr %context, i64 %index)
  br label %idle
idle:
  %spin = phi i64 [ 0, %busy ], [ %next, %again ]
  %ticket = load atomic i64, ptr %context acquire, align 8
  %left = and i64 %ticket, 4294967295
  %has_work = icmp ne i64 %left, 0
  br i1 %has_work, label %busy, label %check
check:
  %stop = load atomic i32, ptr %stop.p acquire, align 4
  %is_stopped = icmp ne i32 %stop, 0
  br i1 %is_stopped, label %exit, label %again
again:
  PAUSE
  %next = add i64 %spin, 1
  %is_tired = icmp uge i64 %next, %spins
  br i1 %is_tired, label %rest, label %idle
rest:
  %before = atomicrmw add ptr %sleepers.p, i32 1 seq_cst, align 4
  %seen = load atomic i64, ptr %context seq_cst, align 8
  %seen_left = and i64 %seen, 4294967295
  %seen_stop = load atomic i32, ptr %stop.p seq_cst, align 4
  %stop_wide = zext i32 %seen_stop to i64
  %either = or i64 %seen_left, %stop_wide
  %must_stay = icmp ne i64 %either, 0
  br i1 %must_stay, label %wake, label %sleep
sleep:
  %generation = lshr i64 %seen, 32
  call void @sleep(ptr %context, i64 %generation)
  br label %wake
wake:
  %awake = atomicrmw sub ptr %sleepers.p, i32 1 seq_cst, align 4
  br label %busy
exit:
  ret void
}

define void @picograd_stop(ptr %context) {
  store atomic i32 1, ptr %stop.p seq_cst, align 4
  %moved = atomicrmw add ptr %context, i64 4294967296 seq_cst, align 8
  call void @wake(ptr %context, i64 2147483647)
  ret void
}
"""

PARALLEL = """
define internal void @parallel(ptr %context, ptr %record) {
entry:
  %entry_address = load i64, ptr %record, align 8
  %r1 = getelementptr i64, ptr %record, i64 1
  %pointers = load i64, ptr %r1, align 8
  %r2 = getelementptr i64, ptr %record, i64 2
  %cells = load i64, ptr %r2, align 8
  %r3 = getelementptr i64, ptr %record, i64 3
  %tasks = load i64, ptr %r3, align 8
  %r4 = getelementptr i64, ptr %record, i64 4
  %chunk = load i64, ptr %r4, align 8
  store atomic i64 %entry_address, ptr %entry.p monotonic, align 8
  store atomic i64 %pointers, ptr %pointers.p monotonic, align 8
  store atomic i64 %cells, ptr %cells.p monotonic, align 8
  store atomic i64 %tasks, ptr %tasks.p monotonic, align 8
  store atomic i64 %chunk, ptr %chunk.p monotonic, align 8
  store atomic i64 0, ptr %completed.p monotonic, align 8
  %old = load atomic i64, ptr %context monotonic, align 8
  %generation = lshr i64 %old, 32
  %next = add i64 %generation, 1
  %high = shl i64 %next, 32
  %ticket = or i64 %high, %tasks
  store atomic i64 %ticket, ptr %context seq_cst, align 8
  %sleepers = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %has_sleepers = icmp ne i32 %sleepers, 0
  br i1 %has_sleepers, label %rouse, label %join
rouse:
  %others = sub i64 %tasks, 1
  %ranges = udiv i64 %others, %chunk
  call void @wake(ptr %context, i64 %ranges)
  br label %join
join:
  call void @work(ptr %context, i64 0)
  br label %wait
wait:
  %spin = phi i64 [ 0, %join ], [ %spin_next, %pause ], [ 2000, %yield ]
  %completed = load atomic i64, ptr %completed.p acquire, align 8
  %is_done = icmp eq i64 %completed, %tasks
  br i1 %is_done, label %exit, label %pause
pause:
  PAUSE
  %spin_next = add i64 %spin, 1
  %is_long = icmp ugt i64 %spin_next, 2000
  br i1 %is_long, label %yield, label %wait
yield:
  ; a worker that holds tasks may need this very core
  %ignored = call i32 @sched_yield()
  br label %wait
exit:
  ret void
}
"""

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

define internal void @launch(ptr %context, ptr %record, ptr %addresses, ptr %scalars) {
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
  call void @gather(ptr %pointers, ptr %addresses, ptr %slots, i64 %slot_count)
  call void @gather(ptr %cells, ptr %scalars, ptr %numbers, i64 %scalar_count)
  %workers = load i64, ptr %workers.p, align 8
  %is_single = icmp ule i64 %tasks, %chunk
  %is_alone = icmp eq i64 %workers, 0
  %is_serial = or i1 %is_single, %is_alone
  br i1 %is_serial, label %serial, label %threads
serial:
  %scratch = load ptr, ptr %scratch.p, align 8
  call void %f(ptr %pointers, ptr %cells, ptr %scratch, i64 0, i64 %tasks)
  ret void
threads:
  call void @parallel(ptr %context, ptr %record)
  ret void
}

define internal i64 @now() {
  %time = alloca [2 x i64], align 8
  %ignored = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %p = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %p, align 8
  %whole = mul i64 %seconds, 1000000000
  %total = add i64 %whole, %rest
  ret i64 %total
}

define void @picograd_run(ptr %context, ptr %records, i64 %count, ptr %addresses, ptr %scalars,
                          i64 %timed) {
entry:
  %is_timed = icmp ne i64 %timed, 0
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %exit
body:
  %position = mul i64 %i, WORDS
  %record = getelementptr i64, ptr %records, i64 %position
  br i1 %is_timed, label %clocked, label %plain
plain:
  call void @launch(ptr %context, ptr %record, ptr %addresses, ptr %scalars)
  br label %advance
clocked:
  %start.p = getelementptr i64, ptr %record, i64 9
  %end.p = getelementptr i64, ptr %record, i64 10
  %start = call i64 @now()
  call void @launch(ptr %context, ptr %record, ptr %addresses, ptr %scalars)
  %end = call i64 @now()
  store i64 %start, ptr %start.p, align 8
  store i64 %end, ptr %end.p, align 8
  br label %advance
advance:
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
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

define void @picograd_loop(ptr %context, ptr %records, i64 %count, ptr %addresses, ptr %scalars,
                           ptr %rules, i64 %rule_count, i64 %length) {
entry:
  br label %test
test:
  %t = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %t, %length
  br i1 %more, label %body, label %exit
body:
  call void @move(ptr %addresses, ptr %rules, i64 %rule_count, i64 %t)
  call void @picograd_run(ptr %context, ptr %records, i64 %count, ptr %addresses, ptr %scalars,
                          i64 0)
  %next = add i64 %t, 1
  br label %test
exit:
  ret void
}
"""

FUTEX_SLEEP = """
declare i64 @syscall(i64, ...)
define internal void @sleep(ptr %context, i64 %generation) {
  %word = getelementptr i8, ptr %context, i64 4
  %seen = trunc i64 %generation to i32
  %ignored = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %word, i32 128, i32 %seen, ptr null,
                                          ptr null, i32 0)
  ret void
}
define internal void @wake(ptr %context, i64 %count) {
  %word = getelementptr i8, ptr %context, i64 4
  %is_many = icmp ugt i64 %count, 2147483647
  %capped = select i1 %is_many, i64 2147483647, i64 %count
  %threads = trunc i64 %capped to i32
  %ignored = call i64 (i64, ...) @syscall(i64 NUMBER, ptr %word, i32 129, i32 %threads, ptr null,
                                          ptr null, i32 0)
  ret void
}
"""

# Without futexes (not Linux) an idle worker looks at the ticket every 50 microseconds.
TIMED_SLEEP = """
declare i32 @usleep(i32)
define internal void @sleep(ptr %context, i64 %generation) {
  %ignored = call i32 @usleep(i32 50)
  ret void
}
define internal void @wake(ptr %context, i64 %count) {
  ret void
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
    body = with_fields(WORK + WORKER + PARALLEL + RUN + LOOP)
    body = body.replace("PAUSE", pause).replace("WORDS", str(RECORD_WORDS))
    clock = str(getattr(time, "CLOCK_MONOTONIC", 1))
    return declaration + "\n" + externals + sleep + body.replace("CLOCK", clock)
