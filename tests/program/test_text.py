"""Does a program read as what it does?"""

from popcore import BOOL, FLOAT, INT, program


def test_every_kind_is_written(graph):
    """
    One line a node, indented.
    """
    x, y = (graph.add_variable(FLOAT, (2, 3), name=n, tile=0) for n in "xy")
    flag, index = graph.add_variable(BOOL, (), name="flag", tile=0), graph.add_variable(INT, (), name="index", tile=0)
    stream = graph.add_host_to_device_fifo("feed", FLOAT, 6)
    store = graph.add_remote_buffer("store", FLOAT, 6, repeats=2)
    shared = program.Sequence(program.Sync("global"))
    prog = program.Sequence(
        program.Copy(stream, x),
        program.Copy(x, y.flatten(), name="move"),
        program.Copy(store, x, 1),
        program.Copy(x, store, index.flatten()),
        program.Repeat(3, shared),
        program.RepeatWhileTrue(program.Sequence(), flag, shared),
        program.If(flag, program.Execute(graph.add_compute_set("work"))),
        program.Switch(index, {7: program.Call(graph.add_function(program.WriteUndef(x)))}, program.Abort("odd")),
        program.PrintTensor("x is", x),
        name="main",
    )
    assert program.text(prog, program.ErrorProgram("no", x)) == (
        "program 0\n"
        "  Sequence (main)\n"
        "    Copy stream 'feed' -> x[2, 3]\n"
        "    Copy x[2, 3] -> y[6] (move)\n"
        "    Copy remote 'store' row 1 -> x[2, 3]\n"
        "    Copy x[2, 3] -> remote 'store' row index[1]\n"
        "    Repeat 3\n"
        "      #1 Sequence\n"
        "        Sync global\n"
        "    RepeatWhileTrue flag[]\n"
        "      condition\n"
        "        Sequence\n"
        "      body\n"
        "        #1 Sequence, as above\n"
        "    If flag[]\n"
        "      then\n"
        "        Execute 'work'\n"
        "      else\n"
        "        Sequence\n"
        "    Switch index[]\n"
        "      case 7\n"
        "        Call\n"
        "          WriteUndef x[2, 3]\n"
        "      default\n"
        "        Abort 'odd'\n"
        "    PrintTensor 'x is' x[2, 3]\n"
        "program 1\n"
        "  ErrorProgram 'no' x[2, 3]\n"
    )


def test_depth_is_no_limit():
    """
    Known trap F8; and the text grows with the nodes, not with their depth.
    """
    deep = program.Sync()
    for _ in range(20_000):
        deep = program.Sequence(deep)
    written = program.text(deep)
    assert written.count("\n") == 20_002
    assert len(written) < 200 * 20_000
    assert written.endswith("[20001] Sync internal\n")


def test_what_is_shared_is_written_once():
    """
    Text grows with the nodes, not with the steps.
    """
    s = program.Sequence(program.Sync())
    for _ in range(40):
        s = program.Sequence(s, s)
    assert program.text(s).count("\n") < 100
