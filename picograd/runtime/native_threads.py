"""Native code of the launch runner that its threads share: taking tasks, waiting, sleeping.

LLVM IR for `native.py`, which says how it works and fills in PAUSE, CLOCK, NUMBER and PIECE_WORK.
"""

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
  %is_caller = icmp eq i64 %index, 0
  br i1 %is_caller, label %check, label %look
check:
  %pace = load i64, ptr %pace.p, align 8
  %late = call i1 @is_late(ptr %context, i64 %pace)
  br i1 %late, label %pause, label %look
pause:
  %last = atomicrmw and ptr %context, i64 -4294967296 acq_rel, align 8
  %rest = and i64 %last, 4294967295
  store i64 %rest, ptr %left.p, align 8
  br label %exit
exit:
  ret void
}
"""

CLOCK = """
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

define internal i1 @is_late(ptr %context, i64 %done) {
entry:
  %before = load i64, ptr %work.p, align 8
  %work = add i64 %before, %done
  %is_little = icmp slt i64 %work, PIECE_WORK
  br i1 %is_little, label %early, label %look
early:
  store i64 %work, ptr %work.p, align 8
  ret i1 false
look:
  store i64 0, ptr %work.p, align 8
  %deadline = load i64, ptr %deadline.p, align 8
  %time = call i64 @now()
  %is_first = icmp eq i64 %deadline, 0
  br i1 %is_first, label %begin, label %compare
begin:
  %end = add i64 %time, PIECE_TIME
  store i64 %end, ptr %deadline.p, align 8
  ret i1 false
compare:
  %is_late = icmp sge i64 %time, %deadline
  ret i1 %is_late
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
define internal i64 @parallel(ptr %context, ptr %record, i64 %remaining) {
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
  %done = sub i64 %tasks, %remaining
  store atomic i64 %done, ptr %completed.p monotonic, align 8
  %old = load atomic i64, ptr %context monotonic, align 8
  %generation = lshr i64 %old, 32
  %next = add i64 %generation, 1
  %high = shl i64 %next, 32
  %ticket = or i64 %high, %remaining
  store atomic i64 %ticket, ptr %context seq_cst, align 8
  %sleepers = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %has_sleepers = icmp ne i32 %sleepers, 0
  br i1 %has_sleepers, label %rouse, label %join
rouse:
  %others = sub i64 %remaining, 1
  %ranges = udiv i64 %others, %chunk
  call void @wake(ptr %context, i64 %ranges)
  br label %join
join:
  call void @work(ptr %context, i64 0)
  %left = load i64, ptr %left.p, align 8
  %wanted = sub i64 %tasks, %left
  br label %wait
wait:
  %spin = phi i64 [ 0, %join ], [ %spin_next, %pause ], [ 2000, %yield ]
  %completed = load atomic i64, ptr %completed.p acquire, align 8
  %is_done = icmp eq i64 %completed, %wanted
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
  ret i64 %left
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
