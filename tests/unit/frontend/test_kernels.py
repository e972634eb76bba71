"""The Python front end means what Python means: each kernel runs as plain Python and in the reference interpreter."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyopt.frontend import from_source, read_scop, write_scop
from polyopt.ir import Scop
from polyopt.reference import inputs, interpret

KERNELS = Path(__file__).parents[2] / "kernels" / "constructs.py"
TREE = ast.parse(KERNELS.read_text(encoding="utf-8"))
NAMES = [n.name for n in TREE.body if isinstance(n, ast.FunctionDef)]
SIZES = (0, 1, 2, 5, 10)


class Executable(ast.NodeTransformer):
    """A kernel without its annotations; declared local tensors are made as arrays."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert isinstance(node.target, ast.Name)
        if node.value is not None:
            return ast.Assign([node.target], node.value)
        assert isinstance(node.annotation, ast.Subscript)
        made = ast.parse(f"{node.target.id} = zeros({ast.unparse(node.annotation.slice)})").body[0]
        return made


def run_as_python(name: str, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
    function = next(n for n in TREE.body if isinstance(n, ast.FunctionDef) and n.name == name)
    plain = ast.fix_missing_locations(Executable().visit(ast.parse(ast.unparse(function))))

    def zeros(*shape: str) -> Any:
        extents = shape[0] if isinstance(shape[0], tuple) else shape
        return np.full([sizes[e] for e in extents], np.nan)

    scope: dict[str, Any] = {
        **sizes,
        "math": math,
        "exp": np.exp,
        "inf": np.inf,
        "zeros": zeros,
        "min": min,
        "max": max,
    }
    exec(compile(plain, str(KERNELS), "exec"), scope)
    scope[name](**arrays, **{a.arg: sizes[a.arg] for a in function.args.args if a.arg in sizes})


def make_inputs(scop: Scop, sizes: Mapping[str, int]) -> dict[str, Any]:
    arrays: dict[str, Any] = dict(inputs(scop, sizes, seed=3))
    if "index" in arrays:  # every value is good for every kernel
        arrays["index"] = np.random.default_rng(3).integers(0, max(1, sizes["N"]), arrays["index"].shape, np.int32)
    return {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in arrays.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_means_what_python_means(name: str) -> None:
    scop = from_source(KERNELS, name)
    for size in SIZES:
        sizes = {p: size + k for k, p in enumerate(scop.params)}
        if scop.at(sizes).context.is_empty():
            continue
        given = make_inputs(scop, sizes)
        arrays = {t.name: np.zeros(t.sizes(sizes)) for t in scop.with_role("output")}
        arrays |= {n: np.array(a) for n, a in given.items()}
        run_as_python(name, arrays, sizes)
        got = interpret(scop, given, sizes, round_outputs=False)
        assert set(got) == {t.name for t in scop.with_role("output", "inout")}
        for tensor, value in got.items():
            where = f"{name} {tensor} {sizes}"
            np.testing.assert_allclose(value, arrays[tensor], rtol=1e-12, atol=1e-14, err_msg=where)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_survives_the_file_format(name: str) -> None:
    scop = from_source(KERNELS, name)
    text = write_scop(scop)
    assert read_scop(text) == scop
    assert write_scop(read_scop(text)) == text
