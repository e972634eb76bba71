"""Every construct that a kernel must not hold is refused where it stands, with a remedy; golden messages."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from polyopt.errors import InputError
from polyopt.frontend import Kernel, from_function, kernel, load

HEADER = (
    'def f(A: po.float32["N", "M"], x: po.float32["N"], y: po.float32["N"], k: po.int32["N"], a: po.float32, T: int):'
)
HUGE = " and ".join(f"(i != {k} or N != {k})" for k in range(9))

BODIES = {
    "while": "while x[0] > 0:\n    x[0] -= 1",
    "break": "for i in range(N):\n    break",
    "continue": "for i in range(N):\n    continue",
    "return": "return x",
    "call": "print(x)",
    "comprehension": "y[0] = sum([x[i] for i in range(N)])",
    "comprehension loop": "for v in [i for i in x]:\n    y[0] = 1",
    "nested function": "def g():\n    pass",
    "with": "with x:\n    pass",
    "assert": "assert N > 0",
    "for else": "for i in range(N):\n    x[i] = 0\nelse:\n    x[0] = 1",
    "loop over an array": "for v in x:\n    y[0] = v",
    "tuple loop": "for i, j in range(N):\n    y[i] = 0",
    "keyword range": "for i in range(stop=N):\n    y[i] = 0",
    "symbolic step": "for i in range(0, N, T):\n    y[i] = 0",
    "zero step": "for i in range(0, N, 0):\n    y[i] = 0",
    "unknown size": "for i in range(P):\n    y[i] = 0",
    "product bound": "for i in range(N * M):\n    y[i] = 0",
    "data bound": "for i in range(k[0]):\n    y[i] = 0",
    "out of bounds": "for i in range(N):\n    y[i] = x[i + 1]",
    "negative index": "for i in range(N):\n    y[i] = x[-1]",
    "slice": "for i in range(N):\n    y[i] = A[i, :]",
    "shape": "for i in range(A.shape[0]):\n    y[i] = 0",
    "len": "for i in range(len(x)):\n    y[i] = 0",
    "product subscript": "for i in range(N):\n    for j in range(N):\n        y[i * j] = 0",
    "argument as a whole": "y = x",
    "scalar argument as a whole": "a = 3.0",
    "loop variable assigned": "for i in range(N):\n    i = 3",
    "loop variable is a local": "i = 0.0\nfor i in range(N):\n    y[i] = 0",
    "size assigned": "N = 3",
    "shadowed loop": "for i in range(N):\n    for i in range(N):\n        y[i] = 0",
    "loop variable is a tensor": "for x in range(N):\n    y[x] = 0",
    "read before assigned": "for i in range(N):\n    y[i] = t\n    t = x[i]",
    "assigned under a condition": "for i in range(N):\n    if x[i] > 0:\n        t = x[i]\n    y[i] = t",
    "loop variable after the loop": "for i in range(N):\n    y[i] = 0\nx[0] = i",
    "floor division assignment": "for i in range(N):\n    y[i] //= 2",
    "two targets": "for i in range(N):\n    y[i] = x[i] = 0",
    "tuple targets": "for i in range(N):\n    y[i], x[i] = 0, 0",
    "declared with a value": 'B: po.float32["N"] = 0.0',
    "declared twice": 'B: po.float32["N"]\nB: po.float32["N"]',
    "argument declared": 'x: po.float32["N"]',
    "unknown size in a declaration": 'B: po.float32["P"]',
    "unknown type in a declaration": 'B: po.float33["N"]',
    "walrus": "y[0] = (t := 3)",
    "lambda": "y[0] = (lambda: 3)()",
    "matrix product": "y[0] = x @ y",
    "expression": "x[0]",
    "reserved": "exists = 1.0\ny[0] = exists",
    "affine test of a product": "for i in range(N):\n    if i * N > 3:\n        y[i] = 0",
    "is": "for i in range(N):\n    if i is 3:\n        y[i] = 0",
    "huge condition": f"for i in range(N):\n    if {HUGE}:\n        y[i] = 0",
}

FUNCTIONS = {
    "no annotation": "def f(x):\n    pass",
    "default": "def f(x: po.float32[3] = None):\n    pass",
    "star": "def f(*x):\n    pass",
    "two stars": "def f(**x):\n    pass",
    "unknown type": 'def f(x: po.floatt32["N"]):\n    pass',
    "foreign type": "def f(x: np.ndarray):\n    pass",
    "bad size text": 'def f(x: po.float32["N +"]):\n    pass',
    "product size": 'def f(x: po.float32["N*M"]):\n    pass',
    "fractional size": "def f(x: po.float32[1.5]):\n    pass",
    "tensor and size": 'def f(N: po.float32["N"]):\n    pass',
    "negative size": 'def f(x: po.float32["N - 1"]):\n    x[0] = 0',
    "foreign decorator": "@jit\ndef f(x: po.float32[3]):\n    pass",
    "bad option": "@kernel(reassociate=1)\ndef f(x: po.float32[3]):\n    pass",
    "unknown option": "@kernel(fast=True)\ndef f(x: po.float32[3]):\n    pass",
    "bad context": '@kernel(context="N >=")\ndef f(x: po.float32["N"]):\n    pass',
    "no such function": "def g(x: po.float32[3]):\n    pass",
    "no python": "def f(:\n    pass",
}


def message(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    Path("kernel.py").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load("kernel.py:f")
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check_golden: Callable[[str, str], None]) -> None:
    texts = {name: f"{HEADER}\n{textwrap.indent(body, '    ')}\n" for name, body in BODIES.items()}
    shown = [f"# {name}\n{message(text, tmp_path, monkeypatch)}\n" for name, text in (texts | FUNCTIONS).items()]
    check_golden("errors/kernels.txt", "\n".join(shown))


def test_a_file_without_a_function_name_lists_the_functions(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text("def f(): pass\nif True:\n    def g(): pass\n")
    with pytest.raises(InputError, match=r"with one of: f, g"):
        load(path)


def test_modules_that_do_not_help() -> None:
    with pytest.raises(InputError, match="importing no_such_module_here fails: ModuleNotFoundError"):
        load("no_such_module_here:f")
    with pytest.raises(InputError, match="pi of the module math is a float"):
        load("math:pi")
    with pytest.raises(InputError, match="nope of the module math is nothing"):
        load("math:nope")


def test_a_kernel_cannot_be_called() -> None:
    @kernel
    def nothing() -> None: ...

    assert isinstance(nothing, Kernel)
    with pytest.raises(InputError) as caught:
        nothing()
    assert str(caught.value) == (
        "error[kernel-call]: nothing is a kernel: it is parsed and compiled, never executed\n"
        "help: write polyopt.compile(polyopt.from_function(nothing)).run(...) with the arrays by name"
    )


def test_only_functions_with_a_text_can_be_read() -> None:
    with pytest.raises(InputError, match="is not a plain function"):
        kernel(len)
    scope: dict[str, object] = {}
    exec("def f(): pass", scope)
    made = scope["f"]
    assert callable(made)
    with pytest.raises(InputError, match="the text of f is not available"):
        from_function(made)
