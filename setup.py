"""The list of packages, found at build time; everything else stands in pyproject.toml.

The folders in `MAPPED` lie beside `polyopt/` and are installed below it.  `find` in pyproject.toml cannot rename what it
finds, and a list written by hand would lose a new folder silently.
"""

from setuptools import find_packages, setup

MAPPED = ("schedule", "tiling", "hwcost", "backend", "simulator")


def packages() -> list[str]:
    """Import names of all packages; a mapped folder is listed even while it is empty."""
    found = find_packages(include=["polyopt", "polyopt.*", *MAPPED, *(f"{name}.*" for name in MAPPED)])
    own = {name for name in found if name.split(".")[0] == "polyopt"}
    return sorted(own | {f"polyopt.{name}" for name in found if name not in own} | {f"polyopt.{name}" for name in MAPPED})


setup(packages=packages())
