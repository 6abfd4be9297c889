"""A page that shows modelled against published: one dot a row, by family. Needs plotly and Jinja2: ``pip install 'popcore[report]'``."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from html import escape
from pathlib import Path

import click

from bench.fidelity import summary
from bench.fidelity.figures import Figure, Result
from popcore.files import write_text

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>popcore: modelled against published</title>
<style>
body { font: 15px/1.4 sans-serif; margin: 2em auto; max-width: 1100px; }
td, th { padding: 1px 10px; text-align: left; }
</style>
<h1>Modelled against published</h1>
<p>One dot a row of the published figures, each in its own unit. On the line the model is right; between the dashed lines it is within 25 %.
Hollow dots are rows that a constant was read from. A click on a family hides it.</p>
{{ chart | safe }}
<table>
<tr>{% for header in headers %}<th>{{ header }}</th>{% endfor %}</tr>
{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table>
<p>{{ coverage }}.</p>
</html>
"""


def check() -> None:
    """Raises: click.ClickException where what draws the page is not installed."""
    missing = [name for name in ("plotly", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise click.ClickException(f"--report needs {' and '.join(missing)}: pip install 'popcore[report]'")


def write(path: Path, found: Sequence[Result], figures: Sequence[Figure]) -> None:
    """One file that needs nothing else."""
    import jinja2

    page = jinja2.Environment(autoescape=True).from_string(_PAGE)
    shown = page.render(chart=_chart(found), headers=summary.HEADERS, rows=list(summary.rows(found)), coverage=summary.coverage(found, figures))
    write_text(path, shown)


def _chart(found: Sequence[Result]) -> str:
    import plotly.graph_objects as plots

    chart = plots.Figure()
    values = [v for r in found for v in (r.figure.value, r.modelled) if v > 0]
    ends = [min(values) / 2, max(values) * 2] if values else [1, 10]
    for factor, dash in ((1.0, "solid"), (1.25, "dash"), (0.75, "dash")):
        line = {"color": "#999", "width": 1, "dash": dash}
        chart.add_trace(plots.Scatter(x=ends, y=[factor * end for end in ends], mode="lines", line=line, hoverinfo="skip", showlegend=False))
    for name in dict.fromkeys(r.family for r in found):
        of = [r for r in found if r.family == name]
        chart.add_trace(
            plots.Scatter(
                x=[r.figure.value for r in of],
                y=[r.modelled for r in of],
                name=name,
                mode="markers",
                marker={"symbol": ["circle-open" if r.figure.use == "calibrate" else "circle" for r in of], "size": 8},
                text=[_hover(r) for r in of],
                hoverinfo="text",
            )
        )
    chart.update_xaxes(type="log", title="published")
    chart.update_yaxes(type="log", title="modelled")
    chart.update_layout(height=750, margin={"t": 20})
    made: str = chart.to_html(full_html=False, include_plotlyjs=True)
    return made


def _hover(r: Result) -> str:
    f = r.figure
    about = "<br>".join(map(escape, (f.benchmark, f.conditions, f.device)))  # the text of a dot is a kind of HTML
    return f"<b>{escape(f.id)}</b> ({f.use})<br>{about}<br>published {f.value:.6g} {f.unit}, modelled {r.modelled:.6g}, {100 * r.relative_error:+.1f} %"
