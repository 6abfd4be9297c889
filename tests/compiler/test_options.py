"""Engine options: what is taken, converted, refused, and who wins."""

import pytest

import popcore as pc
from popcore import errors
from popcore.compiler import OPTIONS, resolve_options


def test_every_option_has_a_default_of_its_type():
    """
    Without anything given, each option has the default it declares.
    """
    assert resolve_options(None) == {o.key: o.default for o in OPTIONS}
    assert set(pc.options()) == {o.key for o in OPTIONS}


@pytest.mark.parametrize(("given", "wanted"), [("true", True), ("false", False), (True, True), (0, False)])
def test_booleans_may_be_strings(given, wanted):
    """
    Poplar's options are strings in most programs, so "true" is a bool.
    """
    assert resolve_options({"debug.compute": given})["debug.compute"] is wanted


def test_a_misspelled_option_names_the_near_ones():
    """
    An unknown key is refused, with what was probably meant.
    """
    with pytest.raises(errors.OptionError, match=r"debug\.instument.*\n.*debug\.instrument"):
        resolve_options({"debug.instument": True})


@pytest.mark.parametrize(
    ("key", "value"), [("engine.threads", "many"), ("engine.threads", -1), ("debug.compute", "perhaps"), ("target.hostSyncTimeout", "soon")]
)
def test_a_value_of_the_wrong_type_is_refused(key, value):
    """
    The message names the option and the value.
    """
    with pytest.raises(errors.OptionError, match=f"(?s){key}.*{value}"):
        resolve_options({key: value})


def test_the_environment_wins_over_the_program(monkeypatch):
    """
    As in Poplar, and popcore's own variable over Poplar's.
    """
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"engine.threads": "2", "debug.compute": "false"}')
    monkeypatch.setenv("POPCORE_ENGINE_OPTIONS", '{"engine.threads": 3}')
    found = resolve_options({"engine.threads": 1, "debug.compute": True})
    assert (found["engine.threads"], found["debug.compute"]) == (3, False)


def test_a_malformed_environment_is_named(monkeypatch):
    """
    The error says which variable is not JSON.
    """
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "autoReport.all=true")
    with pytest.raises(errors.OptionError, match="POPLAR_ENGINE_OPTIONS"):
        resolve_options(None)
