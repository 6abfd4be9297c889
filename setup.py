"""Where the packages are: kernels/ and bindings/ stand at top level and install as popcore.kernels and popcore.bindings.

A package called ``kernels`` exists on PyPI, so they must never install at top level. The links popcore/kernels and
popcore/bindings serve an uninstalled checkout; what is built does not depend on them.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup

MAPPED = {"popcore.kernels": "kernels", "popcore.bindings": "bindings"}

# setuptools copies into build/lib and never removes: a file deleted from the tree would come back in the wheel.
shutil.rmtree(Path(__file__).parent / "build" / "lib", ignore_errors=True)

packages = ["popcore"]
packages += [f"popcore.{name}" for name in find_packages("popcore") if name.split(".")[0] not in ("kernels", "bindings")]
for package, folder in MAPPED.items():
    packages += [package] + [f"{package}.{name}" for name in find_packages(folder)]

setup(
    packages=packages,
    package_dir=MAPPED,
    package_data={"popcore": ["py.typed"], "popcore.bindings": ["*.h", "include/*", "include/**/*"]},
    include_package_data=False,
)
