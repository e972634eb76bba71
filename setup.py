"""The list of packages, found at build time; everything else stands in pyproject.toml.

The folders in `MAPPED` lie beside `polyopt/` and are installed below it.  `find` in pyproject.toml cannot rename what
it finds, and a list written by hand would lose a new folder silently.
"""

from os.path import isdir

from setuptools import find_packages, setup

MAPPED = ("schedule", "tiling", "hwcost", "backend", "simulator")


def packages() -> list[str]:
    """Import names of all packages; a mapped folder is listed even without a module in it."""
    own = find_packages(include=["polyopt", "polyopt.*"])
    mapped = {*filter(isdir, MAPPED), *find_packages(include=[f"{name}.*" for name in MAPPED])}
    return sorted([*own, *(f"polyopt.{name}" for name in mapped)])


setup(packages=packages())
