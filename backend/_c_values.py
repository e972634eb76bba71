"""Values of statements as C expressions: floats are computed in double, integers wrap at 64 bits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from polyopt.errors import UnsupportedError
from polyopt.ir import Access, Tensor
from polyopt.reference import Node
from polyopt.sets import Affine, AllOf, Condition, Constraint, Extremum, Floor, Select

__all__ = ["C_TYPES", "HELPERS", "CWriter", "c_type"]

C_TYPES = {
    "float64": "double",
    "float32": "float",
    "int64": "int64_t",
    "int32": "int32_t",
    "int16": "int16_t",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "bool": "bool",
}
"""Element type -> its type in C99."""

HELPERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "po_floor_div": (
        "static inline int64_t po_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }",
        (),
    ),
    "po_min": ("static inline int64_t po_min(int64_t a, int64_t b) { return a < b ? a : b; }", ()),
    "po_max": ("static inline int64_t po_max(int64_t a, int64_t b) { return a > b ? a : b; }", ()),
    "po_add": (
        "static inline int64_t po_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }",
        (),
    ),
    "po_sub": (
        "static inline int64_t po_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }",
        (),
    ),
    "po_mul": (
        "static inline int64_t po_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }",
        (),
    ),
    "po_abs": ("static inline int64_t po_abs(int64_t a) { return a < 0 ? po_sub(0, a) : a; }", ("po_sub",)),
    "po_power": (
        "static inline int64_t po_power(int64_t a, int64_t n) "
        "{ int64_t r = 1; for (; n > 0; n--) r = po_mul(r, a); return r; }",
        ("po_mul",),
    ),
    "po_whole": (
        "static inline int64_t po_whole(double x) {\n"
        "    if (!isfinite(x)) return 0;\n"
        "    x = fmod(trunc(x), 18446744073709551616.0);\n"
        "    return (int64_t)(x < 0 ? 0 - (uint64_t)-x : (uint64_t)x);\n"
        "}",
        (),
    ),
    "po_minimum": (
        "static inline double po_minimum(double a, double b) { return a != a || a < b ? a : b; }",
        (),
    ),
    "po_maximum": (
        "static inline double po_maximum(double a, double b) { return a != a || a > b ? a : b; }",
        (),
    ),
    "po_relu": ("static inline double po_relu(double x) { return x > 0 || x != x ? x : 0.0; }", ()),
    "po_sigmoid": (
        "static inline double po_sigmoid(double x) "
        "{ double e = exp(-fabs(x)); return x >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e); }",
        (),
    ),
    "po_silu": ("static inline double po_silu(double x) { return x * po_sigmoid(x); }", ("po_sigmoid",)),
    "po_gelu": (
        f"static inline double po_gelu(double x) {{ return 0.5 * x * (1.0 + erf(x / {math.sqrt(2.0)!r})); }}",
        (),
    ),
    "po_gelu_tanh": (
        "static inline double po_gelu_tanh(double x) "
        f"{{ return 0.5 * x * (1.0 + tanh({math.sqrt(2.0 / math.pi)!r} * (x + 0.044715 * x * x * x))); }}",
        (),
    ),
}
"""Functions in front of the generated one: name -> (text, functions that it calls)."""

_FLOAT_CALLS = {
    **{op: op for op in ("exp", "log", "sin", "cos", "sqrt", "tanh", "erf", "floor")},
    **{op: f"po_{op}" for op in ("sigmoid", "gelu", "gelu_tanh", "silu", "relu")},
    "abs": "fabs",
    "min": "po_minimum",
    "max": "po_maximum",
    "**": "pow",
}
_INTEGER_CALLS = {"+": "po_add", "-": "po_sub", "*": "po_mul", "abs": "po_abs", "min": "po_min", "max": "po_max"}
_LOGIC = {"and": "&&", "or": "||"}
_WIDE: Mapping[str, str] = {"float": "(double)", "int": "(int64_t)", "bool": ""}
"""Kind -> how a value of a narrower type becomes one of that kind."""
_LARGEST_INT = 2**31 - 1


def c_type(tensor: Tensor) -> str:
    """The C type of a tensor's elements; UnsupportedError when C99 has none."""
    if tensor.dtype not in C_TYPES:
        raise UnsupportedError(
            f"{tensor.name} has the element type {tensor.dtype}, which C does not have",
            help=f"use another element type (--dtype float32); C has {', '.join(C_TYPES)}",
            id="c-dtype",
        )
    return C_TYPES[tensor.dtype]


def _literal(value: int) -> str:
    if value == -(2**63):
        return "INT64_MIN"
    return str(value) if abs(value) <= _LARGEST_INT else f"INT64_C({value})"


class CWriter:
    """Writes expressions; collects the helpers and outside functions that they call.

    names: sizes, iterators, tensors and outside functions -> their names in C.
    """

    def __init__(self, tensors: Mapping[str, Tensor], names: Mapping[str, str]) -> None:
        self.tensors, self.names = tensors, dict(names)
        self.helpers: set[str] = set()
        self.outside: dict[str, int] = {}

    def helper(self, name: str) -> str:
        """The name, once it is noted that the function is needed."""
        if name in HELPERS and name not in self.helpers:
            self.helpers.add(name)
            for needed in HELPERS[name][1]:
                self.helper(needed)
        return name

    # -- affine ---------------------------------------------------------------------------------------------------
    def affine(self, expr: Affine) -> str:
        """Integer text, in parentheses when it is a sum."""
        parts: list[str] = []
        for atom, c in expr.terms:
            body = self.atom(atom)
            scaled = body if abs(c) == 1 else f"{_literal(abs(c))} * {body}"
            parts.append(f"{'-' if c < 0 else ''}{scaled}" if not parts else f" {'-' if c < 0 else '+'} {scaled}")
        if not parts:
            return _literal(expr.const) if expr.const >= 0 else f"({_literal(expr.const)})"
        if expr.const:
            parts.append(f" {'-' if expr.const < 0 else '+'} {_literal(abs(expr.const))}")
        return parts[0] if len(parts) == 1 and expr.terms[0][1] == 1 else f"({''.join(parts)})"

    def bare(self, expr: Affine) -> str:
        """As `affine`, without parentheses around the whole."""
        text = self.affine(expr)
        return text[1:-1] if len(expr.terms) + bool(expr.const) > 1 and text.startswith("(") else text

    def atom(self, atom: str | Floor | Extremum | Select) -> str:
        if isinstance(atom, str):
            return self.names[atom]
        if isinstance(atom, Floor):
            return f"{self.helper('po_floor_div')}({self.bare(atom.arg)}, {_literal(atom.divisor)})"
        if isinstance(atom, Extremum):
            function = self.helper(f"po_{atom.kind}")
            text = self.bare(atom.args[-1])
            for a in reversed(atom.args[:-1]):
                text = f"{function}({self.bare(a)}, {text})"
            return text
        where = " && ".join(self.condition(c) for c in atom.conditions)
        return f"({where} ? {self.affine(atom.then)} : {self.affine(atom.other)})"

    def condition(self, condition: Condition) -> str:
        """A test; parts of a conjunction or disjunction that are such themselves stand in parentheses."""
        if isinstance(condition, Constraint):
            return f"{self.bare(condition.expr)} {'==' if condition.equality else '>='} 0"
        if not condition.parts:
            return "1" if isinstance(condition, AllOf) else "0"
        word = " && " if isinstance(condition, AllOf) else " || "
        texts = [self.condition(c) for c in condition.parts]
        return word.join(
            t if isinstance(c, Constraint) else f"({t})" for c, t in zip(condition.parts, texts, strict=True)
        )

    # -- cells ----------------------------------------------------------------------------------------------------
    def cell(self, access: Access) -> str:
        """The accessed element, `A[i * N + j]` for a row-major A; UnsupportedError on a data-dependent subscript."""
        if not access.is_exact:
            raise UnsupportedError(
                f"{access} has a data-dependent subscript, which the emitter of C does not take",
                help="emit another form, for example --emit program",
                id="c-gather",
            )
        tensor, subscripts = self.tensors[access.tensor], access.affine_subscripts
        text = self.affine(subscripts[0]) if subscripts else "0"
        for k, subscript in enumerate(subscripts[1:], 1):
            outer = text if k == 1 else f"({text})"
            text = f"{outer} * {self.affine(tensor.shape[k])} + {self.affine(subscript)}"
        if len(subscripts) == 1:
            text = self.bare(subscripts[0])
        return f"{self.names[access.tensor]}[{text}]"

    # -- values ---------------------------------------------------------------------------------------------------
    def value(self, node: Node) -> str:
        """An expression of type double, int64_t or int (a truth value), by the node's kind."""
        if node.op == "const":
            return _constant(node)
        if node.op == "index":
            return f"(int64_t){self.affine(node.payload)}"
        if node.op == "read":
            return _WIDE[node.kind] + self.cell(node.payload)
        if node.op == "cast":
            return self.stored(node.args[0], node.payload, kind=node.kind)
        if node.op == "call":
            self.outside[node.payload] = len(node.args)
            return f"{self.names[node.payload]}({', '.join(self.as_kind(a, 'float') for a in node.args)})"
        if node.op == "select":
            test, then, other = node.args
            return f"({self.truth(test)} ? {self.as_kind(then, node.kind)} : {self.as_kind(other, node.kind)})"
        return self.operator(node)

    def operator(self, node: Node) -> str:
        if node.op in _LOGIC:
            return f"({self.truth(node.args[0])} {_LOGIC[node.op]} {self.truth(node.args[1])})"
        if node.op == "not":
            return f"(!{self.truth(node.args[0])})"
        if node.kind == "float":
            return self.float_operator(node.op, [self.as_kind(a, "float") for a in node.args])
        if node.op in ("<", "<=", ">", ">=", "==", "!="):
            kind = "float" if any(a.kind == "float" for a in node.args) else "int"
            left, right = (self.as_kind(a, kind) for a in node.args)
            return f"({left} {node.op} {right})"
        return self.integer_operator(node.op, [self.as_kind(a, "int") for a in node.args])

    def float_operator(self, op: str, args: list[str]) -> str:
        if op in ("+", "-", "*", "/"):
            return f"({args[0]} {op} {args[1]})"
        if op == "neg":
            return f"(-{args[0]})"
        if op == "rsqrt":
            return f"(1.0 / sqrt({args[0]}))"
        return f"{self.helper(_FLOAT_CALLS[op])}({', '.join(args)})"

    def integer_operator(self, op: str, args: list[str]) -> str:
        if op == "neg":
            return f"{self.helper('po_sub')}(0, {args[0]})"
        if op == "relu":
            return f"{self.helper('po_max')}({args[0]}, 0)"
        if op == "floor":
            return args[0]
        if op == "**":
            return f"{self.helper('po_power')}({', '.join(args)})"
        return f"{self.helper(_INTEGER_CALLS[op])}({', '.join(args)})"

    def as_kind(self, node: Node, kind: str) -> str:
        """The value converted to another kind."""
        text = self.value(node)
        if node.kind == kind:
            return text
        return {"float": f"(double){text}", "int": f"(int64_t){text}", "bool": f"({text} != 0)"}[kind]

    def truth(self, node: Node) -> str:
        return self.value(node) if node.kind == "bool" else f"({self.value(node)} != 0)"

    def stored(self, node: Node, dtype: str, *, kind: str = "") -> str:
        """The value as an element type stores it; kind: and then as a value of that kind again."""
        if dtype not in C_TYPES:
            raise UnsupportedError(
                f"a value is cast to {dtype}, which C does not have",
                help=f"cast to another element type; C has {', '.join(C_TYPES)}",
                id="c-dtype",
            )
        text = self.value(node)
        if dtype == "bool":
            return text if node.kind == "bool" else f"({text} != 0)"
        if dtype in ("float64", "float32"):
            text = f"({C_TYPES[dtype]}){text}"
        else:
            whole = f"{self.helper('po_whole')}({text})" if node.kind == "float" else text
            text = f"({C_TYPES[dtype]}){whole}"
        return f"({_WIDE[kind]}{text})" if kind else text


def _constant(node: Node) -> str:
    if node.kind == "bool":
        return "1" if node.payload else "0"
    if node.kind == "int":
        wrapped = (node.payload + 2**63) % 2**64 - 2**63
        return _literal(wrapped) if wrapped >= 0 else f"({_literal(wrapped)})"
    value = float(node.payload)
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return repr(value) if math.copysign(1.0, value) > 0 else f"({value!r})"
