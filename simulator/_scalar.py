"""General instructions point after point, as generated Python on numpy scalars.

Used where points read what the points just before them wrote, so that nothing can be evaluated together.  The source is
built from our own affine and expression trees; every name in it is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from polyopt.errors import InternalError
from polyopt.ir import dtype
from polyopt.ir.expr import Apply, Cast, Const, Expr, Index, Read, Uninterpreted
from polyopt.simulator._affine import source
from polyopt.simulator._functions import Arithmetic
from polyopt.simulator._memory import Region, Store, View
from polyopt.simulator._plan import SitePlan

__all__ = ["ScalarLoop", "is_short"]

_FAST = (np.float32, np.int64)
"""Scalar types on which numpy's operators do what the array operators do."""


class ScalarLoop:
    """The compiled body of one general site."""

    def __init__(self, site: SitePlan, views: Mapping[str, View], store: Store, arithmetic: Arithmetic) -> None:
        self.site = site
        self.store = store
        self.arithmetic = arithmetic
        self.views: list[View] = []
        self.names = {v: f"v{k}" for k, v in enumerate((*site.loops, *site.lanes))}
        self.arguments = ", ".join(self.names.values())
        self.lines: list[str] = []
        self.scope: dict[str, Any] = self.helpers()
        self.readers: dict[str, str] = {}
        if site.instr.value is None:
            raise InternalError(f"{site.name} has no value")
        self.by_name = views
        body = self.text(site.instr.value)
        names = list(self.names.values())
        lanes = "".join(f"{n}, " for n in names[len(site.loops) :])
        self.lines += [
            f"def run({', '.join([*names[: len(site.loops)], 'points', 'cells', 'places'])}):",
            f"    for ({lanes}), cell, place in zip(points, cells, places):",
            f"        x = {body}",
            "        values[place] = x if x.__class__ is direct else put(x)",
            "        owners[cell] = owner",
        ]
        exec(compile("\n".join(self.lines), f"<loop of {site.name}>", "exec"), self.scope)

    def helpers(self) -> dict[str, Any]:
        """What the generated code calls by name."""
        array, apply = self.site.output.array, self.arithmetic.apply
        narrow = not self.arithmetic.exact and dtype(array.dtype).is_float and dtype(array.dtype).element_bytes <= 4
        found: dict[str, Any] = {
            "values": self.store.values[array.name],
            "owners": self.store.owners[array.space],
            "owner": array.owner,
            "direct": np.float32 if narrow else None,
            "put": lambda x: self.arithmetic.store(x, array.dtype)[()],
            "truth": bool,
        }
        for name, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("lo", "min"), ("hi", "max")):
            found[name] = _binary(op, apply)
        return found

    def run(self, target: Region, points: Mapping[str, Any], count: int, at: Mapping[str, int]) -> None:
        """Execute `count` points.  target: where each of them writes."""
        if target.value_index is None or target.cell_index is None:
            raise InternalError("a general instruction writes listed cells")
        lanes = [points[n].tolist() for n in self.site.lanes]
        box = zip(*lanes, strict=True) if lanes else iter([()] * count)
        outer = [at[v] for v in self.site.loops]
        self.scope["at"] = at
        for touched in self.touched:
            touched.clear()
        self.scope["run"](*outer, box, target.cell_index.tolist(), target.value_index.tolist())

    @property
    def touched(self) -> list[list[int]]:
        return [self.scope[f"touched{k}"] for k in range(len(self.views))]

    def regions(self, at: Mapping[str, int]) -> list[Region]:
        """What the last run read."""
        found = []
        for view, touched in zip(self.views, self.touched, strict=True):
            if touched:
                places = np.unique(np.asarray(touched))
                copy, *coordinates = np.unravel_index(places, (view.copies, *view.shape))
                found.append(view.indexed(self.site, coordinates, copy, at))
        return found

    # -- source ---------------------------------------------------------------------------------------------------
    def text(self, expr: Expr) -> str:
        if isinstance(expr, Const):
            return self.named(self.constant(expr.value))
        if isinstance(expr, Index):
            return f"{self.named(np.int64)}({source(expr.value, self.names)})"
        if isinstance(expr, Read):
            return f"{self.reader(self.by_name[expr.access.tensor])}({self.arguments})"
        if isinstance(expr, Cast):
            name = expr.dtype
            return f"{self.named(lambda x: self.arithmetic.cast(x, name)[()])}({self.text(expr.arg)})"
        args = [self.text(a) for a in expr.args]
        if isinstance(expr, Uninterpreted):
            function = expr.name
            return f"{self.named(lambda *a: self.arithmetic.call(function, *a)[()])}({', '.join(args)})"
        return self.operator(expr, args)

    def operator(self, expr: Apply, args: list[str]) -> str:
        names = {"+": "add", "-": "sub", "*": "mul", "min": "lo", "max": "hi"}
        if expr.op == "select":
            return f"({args[1]} if {args[0]} else {args[2]})"
        if expr.op in ("and", "or"):
            return f"(truth({args[0]}) {expr.op} truth({args[1]}))"
        if expr.op in names:
            return f"{names[expr.op]}({', '.join(args)})"
        op = expr.op
        return f"{self.named(lambda *a: np.asarray(self.arithmetic.apply(op, *a))[()])}({', '.join(args)})"

    def constant(self, value: float | int | bool) -> Any:
        """A literal; a float is a float32 unless an operand is wider."""
        if self.arithmetic.exact or not isinstance(value, float):
            return self.arithmetic.constant(value)
        wide = any(o.array.dtype == "float64" for o in self.site.operands)
        return value if wide else np.float32(value)

    def named(self, value: Any) -> str:
        """A name of the generated code for a value."""
        name = f"k{len(self.scope)}"
        self.scope[name] = value
        return name

    def reader(self, view: View) -> str:
        """The name of a function that reads a view at the present point."""
        if view.plan.name in self.readers:
            return self.readers[view.plan.name]
        inner = {axis: self.reader(index) for axis, index in view.indices}
        number = len(self.views)
        self.views.append(view)
        name = self.readers[view.plan.name] = f"read{number}"
        array = view.plan.array
        self.scope.update(self.read_helpers(view, number))
        lines = [f"def {name}({self.arguments}):"]
        for axis, base in enumerate(view.plan.base):
            parts = [source(base, self.names)]
            parts += [f"{self.names[self.site.lanes[lane]]} * ({step})" for lane, step in view.moving[axis]]
            if axis in inner:
                parts.append(f"int({inner[axis]}({self.arguments}))")
            lines += [f"    c{axis} = {' + '.join(parts)}", f"    if not 0 <= c{axis} < {view.shape[axis]}:"]
            lines.append(f"        outside{number}(at, {axis}, c{axis})")
        copy = f"{source(view.plan.copy, self.names)} % {array.copies}"
        terms = [f"({copy}) * {array.value_strides[0]}"] if array.copies > 1 else []
        terms += [f"c{k} * {s}" for k, s in enumerate(array.value_strides[1:])]
        lines.append(f"    place = {' + '.join(terms) or '0'}")
        cell = [str(array.cell_offset)] + ([f"({copy}) * {array.cell_strides[0]}"] if array.copies > 1 else [])
        cell += [f"c{k} * {s}" for k, s in enumerate(array.cell_strides[1:])]
        lines += [
            f"    if owners{number}[{' + '.join(cell)}] != {array.owner}:",
            f"        unowned{number}(at, place)",
            f"    touched{number}.append(place)",
            f"    return load{number}(values{number}[place])",
        ]
        self.lines += lines
        return name

    def read_helpers(self, view: View, number: int) -> dict[str, Any]:
        array = view.plan.array

        def outside(at: Mapping[str, int], axis: int, value: int) -> None:
            view.outside(self.site, at, axis, value, value)

        def unowned(at: Mapping[str, int], place: int) -> None:
            copy, *coordinates = np.unravel_index([place], (view.copies, *view.shape))
            self.store.check_owned(view.indexed(self.site, coordinates, copy, at), self.site, at)

        return {
            f"owners{number}": self.store.owners[array.space],
            f"values{number}": self.store.values[array.name],
            f"touched{number}": [],
            f"outside{number}": outside,
            f"unowned{number}": unowned,
            f"load{number}": self.loader(array.dtype),
        }

    def loader(self, name: str) -> Callable[[Any], Any]:
        """From a stored element to a scalar to compute with."""
        if self.arithmetic.exact or name in ("float32", "float64", "bool", "int64"):
            return lambda x: x
        return np.float32 if dtype(name).is_float else np.int64


def _binary(op: str, apply: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """`op` on two scalars: numpy's own on equal types, else what arrays would do."""
    inline: dict[str, Callable[[Any, Any], Any]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "min": lambda a, b: a if a != a or a < b else b,
        "max": lambda a, b: a if a != a or a > b else b,
    }
    own = inline[op]

    def run(a: Any, b: Any) -> Any:
        if a.__class__ is b.__class__ and a.__class__ in _FAST:
            return own(a, b)
        return np.asarray(apply(op, a, b))[()]

    return run


def is_short(stretches: list[tuple[int, int]], count: int) -> bool:
    """Whether stretches are so short that going point after point is faster."""
    return len(stretches) > 4 and len(stretches) * 8 > count
