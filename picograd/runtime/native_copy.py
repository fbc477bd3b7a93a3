"""The native copy of a box: `n0` x `n1` x `n2` runs of `bytes`.

They lie `t0`, `t1` and `t2` bytes apart where they go to, `f0`, `f1` and `f2` where they come from.
"""

COPY = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @picograd_copy(ptr %to, ptr %from, i64 %n0, i64 %n1, i64 %n2, i64 %t0, i64 %t1, i64 %t2,
                           i64 %f0, i64 %f1, i64 %f2, i64 %bytes) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.end ]
  %to.i = mul i64 %i, %t0
  %from.i = mul i64 %i, %f0
  br label %middle
middle:
  %j = phi i64 [ 0, %outer ], [ %j.next, %middle.end ]
  %to.j = mul i64 %j, %t1
  %from.j = mul i64 %j, %f1
  %to.ij = add i64 %to.i, %to.j
  %from.ij = add i64 %from.i, %from.j
  br label %inner
inner:
  %k = phi i64 [ 0, %middle ], [ %k.next, %inner ]
  %to.k = mul i64 %k, %t2
  %from.k = mul i64 %k, %f2
  %to.at = add i64 %to.ij, %to.k
  %from.at = add i64 %from.ij, %from.k
  %a = getelementptr i8, ptr %to, i64 %to.at
  %b = getelementptr i8, ptr %from, i64 %from.at
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %bytes, i1 false)
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %n2
  br i1 %k.more, label %inner, label %middle.end
middle.end:
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %n1
  br i1 %j.more, label %middle, label %outer.end
outer.end:
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %n0
  br i1 %i.more, label %outer, label %exit
exit:
  ret void
}
"""
