"""What clang++ writes of a function, read as text: no clang++ is needed for these."""

from popcore.bindings import names
from popcore.estimate import llvm
from popcore.estimate.compiled import weights_of
from popcore.estimate.ssa import Analysis

WRITTEN = "_ZN7popcore7writtenI1VEEvRT_j"
BEGIN = """
  %3 = tail call align 8 ptr @llvm.threadlocal.address.p0(ptr align 8 @_ZN7popcore5tallyE)
  %4 = getelementptr inbounds %"struct.popcore::Tally", ptr %3, i64 0, i32 1
  %5 = load ptr, ptr %4, align 8, !tbaa !54
  %6 = load i32, ptr %5, align 4, !tbaa !36
  %7 = getelementptr inbounds i32, ptr %5, i64 1
  %8 = load i32, ptr %7, align 4, !tbaa !36
  %9 = load ptr, ptr %0, align 8, !tbaa !60
"""
END = """
  %90 = zext i32 %89 to i64
  %91 = load i64, ptr %3, align 8, !tbaa !83
  %92 = add i64 %91, %90
  store i64 %92, ptr %3, align 8, !tbaa !83
  ret void
"""
SUM = """
  br label %20

20:                                               ; preds = %20, %2
  %21 = phi i64 [ 0, %2 ], [ %27, %20 ]
  %22 = phi i32 [ %6, %2 ], [ %24, %20 ]
  %23 = phi float [ 0.000000e+00, %2 ], [ %26, %20 ]
  %24 = add i32 %22, %8
  %28 = getelementptr inbounds float, ptr %9, i64 %21
  %25 = load float, ptr %28, align 4
  %26 = fadd float %23, %25
  %27 = add nuw nsw i64 %21, 1
  %29 = icmp eq i64 %27, 64
  br i1 %29, label %30, label %20

30:                                               ; preds = %20
  %89 = phi i32 [ %24, %20 ]
  store float %26, ptr %0, align 4
"""
UNTIL = """
  br label %20

20:                                               ; preds = %20, %2
  %21 = phi i32 [ 0, %2 ], [ %26, %20 ]
  %22 = phi i32 [ %6, %2 ], [ %24, %20 ]
  %23 = phi float [ 0.000000e+00, %2 ], [ %25, %20 ]
  %24 = add i32 %22, %8
  %25 = fmul float %23, %23
  %26 = add nuw nsw i32 %21, 1
  %27 = fcmp olt float %25, 4.000000e+00
  %28 = icmp ult i32 %21, 49
  %29 = select i1 %27, i1 %28, i1 false
  br i1 %29, label %20, label %30

30:                                               ; preds = %20
  %89 = phi i32 [ %24, %20 ]
"""
TWICE = """
  br label %14

14:                                               ; preds = %2
  %19 = getelementptr inbounds i32, ptr %5, i64 2
  %18 = load i32, ptr %19, align 4
  %17 = shl i32 %18, 2
  %16 = add i32 %17, %8
  br label %20

20:                                               ; preds = %20, %14
  %21 = phi i64 [ 0, %14 ], [ %27, %20 ]
  %22 = phi i32 [ %6, %14 ], [ %24, %20 ]
  %24 = add i32 %16, %22
  %27 = add nuw nsw i64 %21, 1
  %29 = icmp eq i64 %27, 64
  br i1 %29, label %30, label %20

30:                                               ; preds = %20
  %89 = phi i32 [ %24, %20 ]
"""
LARGEST = SUM.replace("  %26 = fadd float %23, %25\n", "  %31 = fcmp ogt float %25, %23\n  %26 = select i1 %31, float %25, float %23\n")
PAIRS = SUM.replace("i64 %21\n", "i64 %33\n").replace("  %28 =", "  %32 = shl nuw i64 %21, 1\n  %33 = or i64 %32, 1\n  %28 =")


def _dump(body, symbol=WRITTEN):
    head = f"*** IR Dump Before LoopVectorizePass on {symbol} ***\n; Function Attrs: noinline\ndefine weak_odr hidden void @{symbol}(ptr %0, i32 %1) {{"
    return head + (BEGIN + body + END).replace("\n\n  ", "\n  ") + "}\n"


def _function(body):
    (found,) = llvm.functions(_dump(body))
    return found


def test_a_sum_is_done_in_pairs():
    """
    A load of two elements, a sum beside it: half a bundle an element, as g++ has it.
    """
    assert weights_of(_dump(SUM))["V"][1] == 0.5


def test_a_choice_of_what_is_compared_is_an_extreme():
    """
    Which is done in pairs too; of anything else that is chosen, one at a time.
    """
    assert weights_of(_dump(LARGEST))["V"][1] == 0.5
    assert weights_of(_dump(LARGEST.replace("float %25, float %23", "float %25, float 0.000000e+00")))["V"][1] > 1


def test_an_or_may_be_a_sum():
    """
    Of twice a counter and one: addresses walk along, so nothing is computed for them. With two it is none.
    """
    assert weights_of(_dump(PAIRS))["V"][1] == 1
    assert weights_of(_dump(PAIRS.replace("%32, 1\n", "%32, 2\n")))["V"][1] > 2


def test_the_tally_may_have_no_name():
    """
    Up to version 15 what is of a thread is addressed where it is read.
    """
    address = 'getelementptr inbounds (%"struct.popcore::Tally", ptr @_ZN7popcore5tallyE, i64 0, i32 1)'
    lines = [line for line in _dump(SUM).splitlines() if not line.startswith(("  %3 =", "  %4 ="))]
    found = weights_of("\n".join(lines).replace("ptr %4", f"ptr {address}").replace("ptr %3", "ptr @_ZN7popcore5tallyE"))
    assert found == weights_of(_dump(SUM))


def test_loops_are_found():
    """
    One, of one block, in the function.
    """
    loops = _function(SUM).loops
    assert [(loop.depth, loop.outer, len(loop.nodes)) for loop in loops.values()] == [(0, -1, 3), (1, 0, 1)]


def test_a_condition_of_two_parts_is_two_branches():
    """
    As it was written: what follows is come to from either, the loop's begin only from the second.
    """
    found = _function(UNTIL)
    (loop,) = (loop for loop in found.loops.values() if loop.number)
    leaving = [block for block in loop.nodes if any(after not in loop.nodes for after in found.successors[block])]
    assert len(loop.nodes) == len(leaving) == 2
    assert {before for name, (at, values) in found.phis.items() if at == loop.header for _, before in values if before in loop.nodes} == {loop.latch}


def test_a_sum_of_counters_counts_where_it_is_added():
    """
    Formed before the loop, as the compiler likes it; the loop's own is the one that it adds once.
    """
    found = _function(TWICE)
    counters = Analysis(found).counters
    (loop,) = (loop for loop in found.loops.values() if loop.number)
    assert {block: counter for block, counter in counters.items() if block not in loop.nodes} == dict.fromkeys(set(counters) - loop.nodes, 0)
    assert counters[loop.header] == 1


def test_what_goes_on_in_another_way_is_left_out():
    """
    Nothing is said of such a function, so its cycles are by size alone.
    """
    body = SUM.replace("br i1 %29, label %30, label %20", "indirectbr ptr %0, [label %20, label %30]")
    assert weights_of(_dump(body)) == {}


def test_names_are_the_users():
    """
    The linker's name is taken apart; what is no name stays.
    """
    assert names.demangled(WRITTEN).startswith("void popcore::written<V>(")
    assert names.demangled("expf") == "expf"
