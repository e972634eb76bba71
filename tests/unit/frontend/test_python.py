"""Shapes of what the Python front end makes: names, orders, domains, roles, types, options, ways in."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from polyopt.errors import InputError, PluginError
from polyopt.frontend import ANNOTATIONS, FRONTENDS, Kernel, from_function, from_source, load
from polyopt.frontend._annotations import TensorType
from polyopt.ir import Scop
from polyopt.sets import Set
from tests.kernels import live
from tests.kernels.live import copy, sum_rows

LIVE = live.__file__
KERNELS = Path(__file__).parents[2] / "kernels" / "constructs.py"
float32 = ANNOTATIONS["float32"]


def kernel_scop(name: str) -> Scop:
    return from_source(KERNELS, name)


def roles(name: str) -> dict[str, str]:
    return {t.name: t.role for t in kernel_scop(name).tensors}


def orders(scop: Scop) -> list[str]:
    return [", ".join(e.python() for e in s.order) for s in scop.statements]


def test_a_live_kernel_is_read_from_its_file() -> None:
    assert isinstance(sum_rows, Kernel)
    assert (sum_rows.__name__, sum_rows.__doc__) == ("sum_rows", "A kernel in a test.")
    scop = from_function(sum_rows)
    assert scop is sum_rows.scop
    assert (scop.name, scop.params, scop.reassociate) == ("sum_rows", ("M", "N"), True)
    assert scop.context == Set.parse("M >= 0 and N >= 4", params=["M", "N"])
    assert sum_rows.where.file == LIVE
    assert sum_rows.where.text.startswith("def sum_rows(")
    assert scop == from_source(LIVE, "sum_rows")


def test_a_plain_function_is_read_too() -> None:
    scop = from_function(copy)
    assert [s.name for s in scop.statements] == ["S0"]
    assert str(scop.statements[0].origin.where) == f"{LIVE}:19:9"


def test_statement_names_orders_and_domains() -> None:
    gemm = kernel_scop("gemm")
    assert [s.name for s in gemm.statements] == ["S0", "S1"]
    assert orders(gemm) == ["0, i, 0, j, 0", "0, i, 0, j, 1, k, 0"]
    assert gemm.statements[1].domain == Set.parse(
        "[i, j, k] : 0 <= i < M and 0 <= j < N and 0 <= k < K", name="S1", params=["M", "K", "N"]
    )


def test_a_descending_loop_keeps_its_values_and_turns_its_order() -> None:
    scop = kernel_scop("descending_by_three")
    s = scop.statements[-1]
    assert orders(scop)[-1] == "1, -i, 2"
    assert s.domain.points({"N": 6}) == [(2,), (5,), (8,)]


def test_negative_guards_make_unions() -> None:
    scop = kernel_scop("not_equal")
    assert scop.statements[0].domain == Set.parse(
        "[i, j] : 0 <= i < N and 0 <= j < N and i != j", name="S0", params=["N"]
    )


def test_roles_follow_from_use() -> None:
    assert roles("gemm") == {"A": "input", "B": "input", "C": "output"}
    assert roles("scaled_gemm") == {"alpha": "input", "beta": "input", "A": "input", "B": "input", "C": "inout"}
    assert roles("guarded_element") == {"x": "input", "y": "inout"}
    assert roles("choice_of_one_target") == {"x": "input", "y": "output"}
    assert roles("scalar_locals") == {"x": "input", "y": "output", "t": "temp", "u": "temp"}
    assert roles("scatter") == {"x": "input", "index": "input", "y": "output"}


def test_roles_follow_cells_not_only_names(tmp_path: Path) -> None:
    text = """
        def f(a: po.float32["N"], b: po.float32["N"], c: po.float32["N"], x: po.float32["N"], T: int):
            for t in range(T):
                for i in range(1, N - 1):
                    b[i] = (a[i - 1] + a[i] + a[i + 1]) * 0.25
                for i in range(1, N - 1):
                    a[i] = (b[i - 1] + b[i] + b[i + 1]) * 0.25
            for i in range(N):
                if i > 0:
                    x[i - 1] = c[i - 1]
                c[i] = 1
    """
    found = {t.name: t.role for t in load(f"{written(tmp_path, textwrap.dedent(text))}:f").tensors}
    assert found == {"a": "inout", "b": "inout", "c": "output", "x": "output"}  # the borders of b come from the caller


def test_element_types_of_locals() -> None:
    assert {t.name: t.dtype for t in kernel_scop("scalar_locals").with_role("temp")} == {"t": "float64", "u": "float64"}
    assert {t.name: t.dtype for t in kernel_scop("gather").with_role("temp")} == {"j": "int32"}
    assert {t.name: t.dtype for t in kernel_scop("softmax").with_role("temp")} == {"m": "float32", "s": "float32"}
    local = kernel_scop("local_tensors")
    assert [(t.name, t.dtype, [e.python() for e in t.shape]) for t in local.with_role("temp")] == [
        ("T", "float32", ["M", "N"]),
        ("n", "int32", []),
    ]


def test_params_stand_in_order_of_appearance() -> None:
    assert kernel_scop("heat").params == ("N", "T")
    assert kernel_scop("local_tensors").params == ("M", "K", "N")
    assert kernel_scop("sizes_as_names").params == ("M", "N")


def test_reductions_stay_reductions_below_conditions_on_data() -> None:
    combines = [s.assign.combine for s in kernel_scop("masked_reductions").statements]
    assert combines == [None, None, None, "+", "*", "max"]
    assert [s.assign.combine for s in kernel_scop("choice_of_reductions").statements] == [None, "+"]


def test_a_condition_that_its_branches_change_is_kept() -> None:
    scop = kernel_scop("branches_change_the_condition")
    assert scop.tensor("guard0").dtype == "bool"
    assert len(scop.statements) == 5
    assert len(kernel_scop("guarded_element").statements) == 1


def written(folder: Path, text: str, name: str = "kernels.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_names_of_statements_avoid_those_of_tensors(tmp_path: Path) -> None:
    path = written(tmp_path, "def f(S1: po.float32[3], SSx: po.float32[3]):\n    S1[0] = 1\n    SSx[0] = 2\n")
    assert [s.name for s in load(f"{path}:f").statements] == ["SS0", "SS1"]


def test_statements_without_instances_are_left_out(tmp_path: Path) -> None:
    text = "def f(x: po.float32[3]):\n    if 1 > 2:\n        x[0] = 1\n    else:\n        x[1] = 2\n"
    scop = load(f"{written(tmp_path, text)}:f")
    assert [s.name for s in scop.statements] == ["S0"]
    assert str(scop.statements[0].assign.target) == "x[1]"


def test_options_of_the_decorator_are_read_from_a_file(tmp_path: Path) -> None:
    head = '@po.kernel(reassociate=True, context="N >= 2")\n'
    path = written(tmp_path, head + 'def f(x: po.Tensor["N"]):\n    x[1] = 1\n@kernel\ndef g(x: po.Tensor[2]): pass\n')
    assert from_source(path, "f").reassociate
    assert from_source(path, "f").context == Set.parse("N >= 2", params=["N"])
    assert not from_source(path, "g").reassociate


def test_a_file_is_parsed_and_never_run(tmp_path: Path) -> None:
    path = written(tmp_path, "raise SystemExit(9)\ndef f(x: po.Tensor[2]):\n    x[0] = 1\n")
    assert load(f"{path}:f").name == "f"


def test_a_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from polyopt.frontend import ANNOTATIONS, kernel, read_scop\nfloat32 = ANNOTATIONS['float32']\n"
    text += "@kernel\ndef f(x: float32['N']):\n    for i in range(N):\n        x[i] = 1\n"
    text += "def g(x: float32[2]):\n    x[0] = 1\nscop = f.scop\nbroken = 1\n"
    written(tmp_path, text, "kernels_of_a_module.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load("kernels_of_a_module:f").name == "f"
    assert load("kernels_of_a_module:g").params == ()
    assert load("kernels_of_a_module:scop") == load("kernels_of_a_module:f")
    sys.modules.pop("kernels_of_a_module")


def test_another_frontend_claims_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "def read(path, function):\n    return 3 if function else None\n", "a_frontend.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("polyopt.frontend._load.FRONTENDS", type(FRONTENDS)("g", {"mine": "a_frontend:read"}))
    path = written(tmp_path, "", "x.mine")
    with pytest.raises(PluginError, match="the frontend 'mine' of polyopt returned NoneType, not a Scop"):
        load(path)
    with pytest.raises(PluginError, match="returned int"):
        load(f"{path}:f")
    with pytest.raises(InputError, match="cannot tell what kind of source"):
        load(tmp_path / "x.scop.yaml")


def test_annotations_print_as_they_are_written() -> None:
    assert float32["M", "N + 1"] == TensorType("float32", ("M", "N + 1"))
    assert str(float32["M", 3]) == "float32[M, 3]"
    assert (str(float32), str(float32[()])) == ("float32", "float32[()]")
    assert ANNOTATIONS["Tensor"]["N"] == float32["N"]
    with pytest.raises(InputError, match=r"1.5 is no size of a float32 tensor"):
        float32[1.5]  # type: ignore[index]
