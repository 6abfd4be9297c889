"""Is a published figure held against a program, whoever's row it is?"""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from bench.fidelity import stencil, summary
from bench.fidelity.__main__ import FAMILIES, main
from bench.fidelity.figures import COLUMNS, PUBLISHED, Result, read
from bench.fidelity.programs import system_of
from bench.fidelity.tile import reduction


def written(path, *rows):
    """A CSV of figures: each row gives id, device, conditions, value, unit."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS)
        out.writeheader()
        for name, device, conditions, value, unit in rows:
            out.writerow(dict.fromkeys(COLUMNS, "") | {"id": name, "device": device, "conditions": conditions, "value": value, "unit": unit, "use": "test"})
    return path


def results(*arguments):
    """What a run writes as JSON."""
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


def test_a_row_nobody_has_seen_is_modelled(tmp_path):
    """
    Its conditions say what is run: the id only names the family.
    """
    rows = [("J-GAL-500", "GC2", "n=500, 4 B each", 0.4, "us"), ("J-SCL-100", "GC2", "n=100, 4 B each", 0.25, "us"), ("X-1", "GC2", "no family", 1, "us")]
    out = tmp_path / "out.json"
    results("--figures", written(tmp_path / "figures.csv", *rows), "--json", out)
    gather, scatter = json.loads(out.read_text(encoding="utf-8"))
    assert set(gather) == {"id", "family", "use", "published", "modelled", "unit", "relative_error"}
    assert (gather["id"], gather["family"], scatter["family"]) == ("J-GAL-500", "gather", "scatter")
    assert gather["modelled"] == pytest.approx((120 + 500) / 1.6e3)
    assert gather["relative_error"] == pytest.approx(gather["modelled"] / 0.4 - 1)


def test_conditions_that_say_nothing_are_said(tmp_path):
    """
    Nothing is made up, and the other rows are still run.
    """
    rows = [("J-A2A-9", "GC2", "who knows", 1, "us"), ("J-GAL-7", "an abacus", "n=7", 1, "us"), ("J-GAL-16", "GC2", "n=16", 1, "us")]
    out = tmp_path / "out.json"
    done = results("--figures", written(tmp_path / "figures.csv", *rows), "--json", out)
    assert "who knows" in done.output
    assert "an abacus" in done.output
    assert [r["id"] for r in json.loads(out.read_text(encoding="utf-8"))] == ["J-GAL-16"]


def test_a_benchmark_whose_sizes_are_not_known_is_said(tmp_path):
    """
    By its name, and what is known beside it.
    """
    path = written(tmp_path / "figures.csv", ("PB-lstm_3_x", "IPUModel Mk2", "", 1, "cycles"), ("PB-nobody", "IPUModel Mk2", "", 1, "cycles"))
    path.write_text(path.read_text(encoding="utf-8").replace("Mk2,,", "Mk2,poplibs benchmark lstm_3_x,", 1).replace("Mk2,,", "Mk2,nobody,"), encoding="utf-8")
    said = " ".join(results("--figures", path).output.split())
    assert "'lstm_3_x' does not say" in said
    assert "'nobody' are not known; known are alexnet" in said


def test_a_library_call_on_one_ipu_takes_what_was_measured_besides_its_steps():
    """
    With it the row that it is read from is what was measured.
    """
    figure = next(f for f in read() if f.id == "J-RED1-1216")
    assert reduction(figure) == pytest.approx(figure.value, rel=0.005)


def test_every_row_has_one_family_at_most():
    """
    And each family some row.
    """
    figures = read()
    assert len({f.id for f in figures}) == len(figures)
    for figure in figures:
        assert sum(family.has(figure) for family in FAMILIES) <= 1, figure.id
    for family in FAMILIES:
        assert any(family.has(figure) for figure in figures), family


def test_another_kind_of_file_is_refused(tmp_path):
    """
    By its columns.
    """
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no column .*conditions.*the columns are"):
        read(path)
    assert PUBLISHED.exists()


def test_the_note_holds_what_a_run_gives(tmp_path):
    """
    Of families that run in a moment, the lines of its table are those of a run; the whole is written by ``--note``.
    """
    table = summary.table_of(summary.NOTE.read_text(encoding="utf-8")).splitlines()
    out = tmp_path / "out.json"
    quick = ("product unit", "launch", "tutorial", "all-to-all", "gather")
    results("--json", out, *(word for name in quick for word in ("--family", name)))
    figures = {f.id: f for f in read()}
    found = [Result(figures[r["id"]], r["family"], r["modelled"]) for r in json.loads(out.read_text(encoding="utf-8"))]
    lines = [line for line in summary.markdown(found, []).splitlines() if line.startswith(tuple(f"| {name} " for name in quick))]
    assert {line.split(" | ")[0][2:] for line in lines} == set(quick)
    assert not set(lines) - set(table)


def test_the_table_takes_its_own_place_only(tmp_path):
    """
    What stands around it stays.
    """
    note = tmp_path / "note.md"
    note.write_text(f"before\n{summary.BEGIN}old\n{summary.END}after\n", encoding="utf-8")
    summary.write("new\n", note)
    assert note.read_text(encoding="utf-8") == f"before\n{summary.BEGIN}new\n{summary.END}after\n"


def test_the_report_shows_every_row(tmp_path):
    """
    With its conditions, on one page that needs no network.
    """
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    page = tmp_path / "report.html"
    rows = [("J-GAL-500", "GC2", "n=500, 4 B each", 0.4, "us"), ("J-GAL-16", "GC2", "n=16 & no <more>", 0.1, "us")]
    results("--figures", written(tmp_path / "figures.csv", *rows), "--report", page)
    text = page.read_text(encoding="utf-8")
    assert "J-GAL-500" in text
    assert "n=500, 4 B each" in text
    assert "<more>" not in text
    assert "<script src=" not in text


def test_without_what_draws_it_a_report_is_refused(tmp_path, monkeypatch):
    """
    Before anything is run.
    """
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(main, ["--report", str(tmp_path / "report.html")])
    assert done.exit_code == 1
    assert "popcore[report]" in done.output


@pytest.mark.parametrize(
    ("row", "family", "low", "high"),
    [
        (("J-MEM-9", "GC2", "load width 64 bit", 15.3, "TB/s"), None, 0, 0),
        (("J-MEM-2", "GC2", "load width 128 bit", 30.7, "TB/s"), "memory", 30, 32),
        (("PS-D16-9-9", "GC200", "m=k=512, n=64", 10, "TFLOP/s"), "dense product", 1, 63),
        (("J-CONV-x", "GC2", "a layer 3x3/2 28 32->64, batch 2", 10, "TFLOP/s"), "convolution", 1, 124),
        (("PS-S-x", "GC200", "m=k=512, density 1/4", 1, "TFLOP/s"), "sparse product", 0.1, 63),
        (("LB-PH-x-1-exchange", "GC2", "100x100, float2, 1 IPU", 300, "cycles"), "stencil", 50, 600),
        (("J-REDB-x", "GC2", "100 fp32 per tile, 8 tiles", 1, "GB/s"), "reduction", 0.5, 51),
        (("LB-PH-y-2-global", "GC2", "60x40, half4, 2 IPU", 300, "cycles"), "stencil", 500, 5000),
        (("LB-GB-tiny-float-4", "GC2", "tiny 30x20, float, 4 IPU", 300, "us"), "stencil", 100, 5000),
        (("LB-HX-z", "GC2", "implicit, 4x4 block, 3 iterations", 300, "cycles"), "stencil", 1000, 10_000),
        (("J-GAL-h", "GC2", "4 IPUs", 9, "us"), "gather", 5, 10),
        (("J-RAND-2", "GC2", "2 IPUs across boards, direct", 2.5, "us"), "random", 1, 3),
        (("PB-a", "IPUModel Mk1", "", 1, "cycles"), "PopLibs benchmarks", 500, 5000),
        (("PB-b", "IPUModel Mk2 (GC200)", "", 1, "cycles"), "PopLibs benchmarks", 3000, 100_000),
        (("PB-c", "IPUModel Mk2 (GC200)", "", 1, "cycles"), "PopLibs benchmarks", 1000, 100_000),
        (("PB-d", "IPUModel Mk2 (GC200)", "", 1, "cycles"), "PopLibs benchmarks", 10_000, 1_000_000),
        (("PB-e", "IPUModel Mk2 (GC200)", "", 1, "cycles"), "PopLibs benchmarks", 2000, 100_000),
    ],
)
def test_conditions_say_what_is_run(tmp_path, row, family, low, high):
    """
    Not the number in an id.
    """
    path, out = written(tmp_path / "figures.csv", row), tmp_path / "out.json"
    named = {"PB-a": "bert_reduce_2", "PB-b": "mobilenet_depthwise_12", "PB-c": "gru_2_3_32_32_float_train", "PB-e": "inception_tr_bs1_i9_dmax_pool"}
    named |= {
        "PB-d": "triangular_solve_1_64_1_64_float_left",
        "PS-D16-9-9": "FP16",
        "PS-S-x": "static b=16",
        "LB-PH-x-1-exchange": "exchange",
        "LB-PH-y-2-global": "global exchange",
    }
    benchmark = named.get(row[0], "")
    path.write_text(path.read_text(encoding="utf-8").replace(f"{row[1]},,", f"{row[1]},{benchmark},"), encoding="utf-8")
    results("--figures", path, "--json", out)
    found = json.loads(out.read_text(encoding="utf-8"))
    if family is None:
        assert not found
    else:
        assert found[0]["family"] == family
        assert low < found[0]["modelled"] < high


def test_an_image_is_cut_as_the_published_program_cuts_it():
    """
    Every pixel once: 49 x 24 tiles of 2,200 x 1,122 pixels, the first ones a pixel larger, and strips of columns where these share out more evenly.
    """
    for height, width, ipus in ((1122, 2200, 1), (1122, 2200, 16), (302, 499, 8), (7, 3, 2)):
        seen = np.zeros((height, width), int)
        for whole in stencil.ipu_rectangles(height, width, ipus):
            for part in stencil.tile_rectangles(whole, 1216):
                assert part.tile // 1216 == whole.tile
                for strip in stencil.strips(part, 6):
                    seen[strip.top : strip.bottom, strip.left : strip.right] += 1
        assert (seen == 1).all()
    tiles = stencil.tile_rectangles(*stencil.ipu_rectangles(1122, 2200, 1), 1216)
    assert len(tiles) == 49 * 24
    assert tiles[0] == stencil.Rectangle(0, 0, 47, 0, 45)
    assert [strip.right for strip in stencil.strips(tiles[0], 6)] == [8, 16, 24, 31, 38, 45]
    with pytest.raises(LookupError, match="1, 2, 4, 8, 16 IPUs, not on 3"):
        stencil.ipu_rectangles(100, 100, 3)


def test_a_row_is_run_on_its_own_device():
    """
    GC200 is no GC2, whose name is part of its own.
    """
    named = {figure.device.split(" (")[0].split(",")[0]: system_of(figure) for figure in read() if any(family.has(figure) for family in FAMILIES)}
    assert named["GC2"] == named["IPUModel Mk1"] == named["Mk1"] == "C2"
    assert named["IPUModel Mk2"] == named["GC200/Bow single IPU"] == named["M2000/Bow-2000 class real IPU"] == named["IPU-M2000"] == named["IPU Pod"] == "M2000"
    assert named["Bow IPU"] == "BOW-2000"
