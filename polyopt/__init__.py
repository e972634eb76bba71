"""A polyhedral optimizer for accelerators with software-managed scratchpads, proved and simulated.

    import polyopt as po

    scop = po.load("heat.scop.yaml")          # or po.from_function(f), po.from_torch(module, example_inputs)
    judged = po.check(scop, "{ S[t,i] -> [t, t+i] }")
    compiled = po.compile(scop, target="trn2", at={"T": 4, "N": 512})
    outputs = compiled.run(A=array)

Every name is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyopt.errors import PolyoptError as PolyoptError
    from polyopt.frontend import Kernel as Kernel
    from polyopt.frontend import TensorType as TensorType
    from polyopt.frontend import from_function as from_function
    from polyopt.frontend import kernel as kernel
    from polyopt.frontend import load as load
    from polyopt.frontend import read_scop as read_scop
    from polyopt.frontend import write_scop as write_scop
    from polyopt.frontend._annotations import ElementType
    from polyopt.frontend.torch import TorchProgram as TorchProgram
    from polyopt.frontend.torch import from_torch as from_torch
    from polyopt.ir import Scop as Scop
    from polyopt.pipeline import Compiled as Compiled
    from polyopt.pipeline import compile as compile
    from polyopt.report import RunReport as RunReport
    from polyopt.schedule import Verdict as Verdict
    from polyopt.schedule import check as check
    from polyopt.verify import certify as certify

    Tensor: ElementType
    float64: ElementType
    float32: ElementType
    float16: ElementType
    bfloat16: ElementType
    float8_e4m3: ElementType
    float8_e5m2: ElementType
    int64: ElementType
    int32: ElementType
    int16: ElementType
    int8: ElementType
    uint8: ElementType
    bool: ElementType
    __version__: str

_HOMES = {
    "Compiled": "polyopt.pipeline",
    "Kernel": "polyopt.frontend",
    "PolyoptError": "polyopt.errors",
    "RunReport": "polyopt.report",
    "Scop": "polyopt.ir",
    "TensorType": "polyopt.frontend",
    "TorchProgram": "polyopt.frontend.torch",
    "Verdict": "polyopt.schedule",
    "certify": "polyopt.verify",
    "check": "polyopt.schedule",
    "compile": "polyopt.pipeline",
    "from_function": "polyopt.frontend",
    "from_torch": "polyopt.frontend.torch",
    "kernel": "polyopt.frontend",
    "load": "polyopt.frontend",
    "read_scop": "polyopt.frontend",
    "write_scop": "polyopt.frontend",
}
"""Public name -> the module that has it under the same name."""

_ELEMENTS = (
    *("Tensor", "float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
"""Annotations of kernel arguments."""

_ANNOTATIONS = ("polyopt.frontend", "ANNOTATIONS")
"""Module and name of the mapping that has them."""

__all__ = [*sorted(_HOMES), *_ELEMENTS, "__version__"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return _version()
    if name in _ELEMENTS:
        return getattr(import_module(_ANNOTATIONS[0]), _ANNOTATIONS[1])[name]
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'polyopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    """The version of the installed distribution; a tree that is not installed has none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("polyopt")
    except PackageNotFoundError:
        return "0+not.installed"
