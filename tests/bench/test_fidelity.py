"""Is a published figure held against a program, whoever's row it is?"""

import csv
import json

import pytest
from click.testing import CliRunner

from bench.fidelity.__main__ import FAMILIES, main
from bench.fidelity.figures import COLUMNS, PUBLISHED, read


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
