"""The object cache: what is trusted, what is rebuilt, and what is never written."""

import os
import stat
import subprocess
import sys

import pytest

from popcore.kernels import objects

SCRIPT = """
import sys, time
from popcore.kernels import objects
from tests.engine.machine import *
built = []
compile_object = native.compile_object
native.compile_object = lambda *a: built.append(1) or compile_object(*a)
linked, _ = image(executable([(Op.REPEAT, 0, 1000, 2), (Op.END, 0, 1), HALT], codelets=()))
assert finish(linked).kind == "halt" and linked.counts.tolist() == [1, 1000, 1]
print(len(built))
"""

WARM = """
import sys
from popcore.engine import linker
from popcore.engine.device import Arena
print(len(linker._machine_functions(linker.objects.Cache(linker.cache_folder()))))
print(sorted(name for name in sys.modules if name.split(".")[0] in ("numba", "scipy")))
"""


def python(script, folder, **environment):
    made = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "POPCORE_CACHE_DIR": str(folder), **environment}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.split("\n")


@pytest.fixture
def cache(tmp_path):
    return objects.Cache(tmp_path / "a" / "cache")


def test_what_is_stored_comes_back_to_this_user_alone(cache):
    assert cache.get("key") is None
    assert cache.put("key", b"code")
    assert cache.get("key") == b"code"
    assert cache.put("key", b"other")
    assert cache.get("key") == b"other"
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((cache.folder / "key").stat().st_mode) == 0o600
    assert [p.name for p in cache.folder.iterdir()] == ["key"]


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_damaged_file_is_as_good_as_none(cache, damage):
    cache.put("key", b"code" * 100)
    path = cache.folder / "key"
    data = path.read_bytes()
    for at in (0, len(objects.MAGIC), len(data) - 1):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if damage is None else damage)
        assert cache.get("key") is None
    path.write_bytes(data[:-1])
    assert cache.get("key") is None


def test_a_file_under_another_key_is_not_taken(cache):
    cache.put("key", b"code")
    os.rename(cache.folder / "key", cache.folder / "other")
    assert cache.get("other") is None


def test_a_file_that_others_could_have_written_is_not_taken(cache, tmp_path):
    cache.put("key", b"code")
    path = cache.folder / "key"
    path.chmod(0o666)
    assert cache.get("key") is None
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.get("key") is None
    path.unlink()
    path.mkdir()
    assert cache.get("key") is None


def test_a_folder_that_cannot_be_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    cache = objects.Cache(tmp_path / "file" / "cache")
    assert not cache.put("key", b"code")
    assert cache.get("key") is None
    assert not objects.Cache(None).put("key", b"code")
    assert objects.Cache(None).get("key") is None


def test_code_that_does_not_load_is_built_again(cache):
    from popcore.kernels import native
    from tests.engine.machine import say

    good = native.compile_object({"test_rebuilt": say})
    key = objects.key_of("test_rebuilt")
    cache.put(key, native.compile_object({"test_something_else": say}))
    builds = []
    (address,) = objects.load(cache, key, ("test_rebuilt",), lambda: builds.append(1) or good)
    assert address
    assert builds == [1]
    assert cache.get(key) == good
    assert objects.load(cache, key, ("test_rebuilt",), pytest.fail) == [address]  # from memory
    with pytest.raises(objects.LoadError):
        objects.load(objects.Cache(None), "bad", ("test_bad",), lambda: b"this is no object file")


def test_keys_differ_by_every_part():
    assert len({objects.key_of(*parts) for parts in ((), ("a",), ("a", ""), ("", "a"), ("aa",), ("a", "a"))}) == 6


def test_a_warm_start_loads_and_neither_builds_nor_imports_numba(tmp_path):
    assert python(SCRIPT, tmp_path / "cache")[0] == "1"
    assert python(SCRIPT, tmp_path / "cache")[0] == "0"
    assert python(WARM, tmp_path / "cache")[:2] == ["3", "[]"]
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"!")
    assert python(SCRIPT, tmp_path / "cache")[0] == "1"


def test_two_processes_may_fill_the_cache_at_once_and_write_nowhere_else(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "POPCORE_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(home), "XDG_CACHE_HOME": str(home / "x"), "TMPDIR": str(home)}
    both = [subprocess.Popen([sys.executable, "-B", "-c", SCRIPT], env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    for process in both:
        process.communicate()
        assert process.returncode == 0
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert not list(home.iterdir())
