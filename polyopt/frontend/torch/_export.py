"""PyTorch's side: exporting a module, folding constants, and walking the graph of ATen operators."""

from __future__ import annotations

import keyword
import operator
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import ml_dtypes
import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from polyopt.errors import Location, UnsupportedError
from polyopt.frontend.torch._build import Builder, Call
from polyopt.frontend.torch._fold import as_expression
from polyopt.frontend.torch._pointwise import POINTWISE
from polyopt.frontend.torch._rules import RULES, VIEWS
from polyopt.frontend.torch._value import Array, Value, size, stored
from polyopt.ir import APPLY_OPS, DTYPES, Access, Origin

__all__ = ["Reader", "array_of", "decomposed", "dtype_name", "tensor_of"]

MAX_FOLDED_NODES = 24
"""A folded constant whose expression has more nodes than this becomes a tensor."""

CONSTANT_FILLS = frozenset({"aten.full_like.default", "aten.zeros_like.default", "aten.ones_like.default"})
"""Operators whose result depends on the shape of their tensor argument only."""


def decomposed(module: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]) -> ExportedProgram:
    """`torch.export` of `module`, decomposed to core ATen operators.

    `view` becomes `reshape` first: strides mean nothing here, and some decompositions (attention) give other strides
    than the operator they replace, which makes a `view` recorded before impossible.
    """
    exported = _exported(module, args, kwargs)
    for node in exported.graph.nodes:
        if node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)  # of PyTorch's own copying
        lowered: ExportedProgram = exported.run_decompositions()
    return lowered


def _exported(module: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]) -> ExportedProgram:
    """`torch.export`; whatever it raises is given as the cause of an UnsupportedError."""
    try:
        return torch.export.export(module, tuple(args), dict(kwargs), strict=False)
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise UnsupportedError(
            f"torch.export cannot take in {type(module).__name__}: {reason[0]}",
            help="the module must run on the example inputs, with control flow that does not depend on data",
            id="torch-export",
        ) from error


def dtype_name(kind: torch.dtype) -> str:
    """polyopt's name of an element type; raises UnsupportedError when it has none."""
    name = str(kind).removeprefix("torch.")
    if name not in DTYPES:
        raise UnsupportedError(f"element type {kind} has no counterpart", help=f"cast to one of {', '.join(DTYPES)}")
    return name


def array_of(tensor: torch.Tensor) -> Array:
    """The elements as a NumPy array (bfloat16 and float8 through ml_dtypes)."""
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    if plain.dtype == torch.float8_e5m2:
        return plain.view(torch.int8).numpy().view(ml_dtypes.float8_e5m2)
    return plain.numpy()


def tensor_of(array: Array) -> torch.Tensor:
    """A tensor with the elements of `array`; the inverse of `array_of`."""
    plain = np.array(array)
    if plain.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(plain.view(np.int16)).view(torch.bfloat16)
    if plain.dtype == ml_dtypes.float8_e5m2:
        return torch.from_numpy(plain.view(np.int8)).view(torch.float8_e5m2)
    return torch.from_numpy(plain)


def short_path(path: str) -> str:
    """`path` relative to the place Python would import it from, or just the file's name."""
    file = Path(path)
    roots = [Path(p) for p in sys.path if p] + [Path.cwd()]
    inside = [file.relative_to(r) for r in roots if file.is_absolute() and file.is_relative_to(r)]
    return str(min(inside, key=lambda p: len(p.parts))) if inside else file.name


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in [^\n]*(?:\n +([^\n]*))?')


def origin_of(node: Node) -> Origin:
    """The module path, the operator and the innermost source line outside of PyTorch itself."""
    stack = node.meta.get("nn_module_stack") or {}
    module = str(list(stack.values())[-1][0]) if stack else ""
    frames = _FRAME.findall(str(node.meta.get("stack_trace") or ""))
    library = str(Path(torch.__file__).parent)
    own = [f for f in frames if not f[0].startswith(library)] or frames
    where = Location(short_path(own[-1][0]), int(own[-1][1]), text=own[-1][2].strip()) if own else None
    return Origin(where, module, str(node.target))


RESERVED = frozenset(
    {
        *APPLY_OPS,
        *keyword.kwlist,
        *("call", "cast", "inf", "infty", "infinity", "nan", "true", "false", "exists", "implies"),
        *("div", "mod", "floord", "ceil", "ceild", "rat"),
    }
)
"""Words of Python, of the set language and of expressions: no tensor is called like that."""


def _identifier(name: str) -> str:
    """`name` as a tensor name."""
    clean = re.sub(r"\W", "_", name).lstrip("_")
    if not clean or clean[0].isdigit():
        return f"t_{clean}"
    return f"{clean}_value" if clean in RESERVED or clean.lower() in RESERVED else clean


@dataclass
class Reader:
    """Turns one exported program into tensors and statement drafts."""

    program: ExportedProgram
    builder: Builder = field(default_factory=Builder)
    values: dict[Node, Value | tuple[Value | None, ...]] = field(default_factory=dict)
    folded: dict[Node, torch.Tensor | tuple[torch.Tensor, ...]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    inputs: list[str | None] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)

    def read(self, output_names: Sequence[str]) -> None:
        """Read the whole graph; `output_names` are wanted names of the results in order."""
        self._reserve(output_names)
        live = self._live()
        self._placeholders(live)
        for node in self.program.graph.nodes:
            if node.op == "call_function" and node in live:
                self._call(node)
            elif node.op == "get_attr" and node in live:
                raise self._unknown(node, f"attribute {node.target} holds a sub-graph")
        for name, node in zip(output_names, self._results(), strict=True):
            self.outputs.append(self._output(name, node) if isinstance(node, Node) else None)

    def _results(self) -> list[object]:
        """What the module returns: nodes, or constants that are no tensors.  Tokens of checks are left out."""
        nodes = self.program.graph.output_node().args[0]
        specs = self.program.graph_signature.output_specs
        return [n for n, spec in zip(nodes, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]

    def _reserve(self, output_names: Sequence[str]) -> None:
        """Names of inputs and outputs go before those of intermediates."""
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT and hasattr(spec.arg, "name"):
                self.builder.names.add(spec.arg.name)
        for name in output_names:
            self.builder.names.add(name)

    def count_results(self) -> int:
        """The number of flattened results; refuses a module that changes its own state or its arguments."""
        for spec in self.program.graph_signature.output_specs:
            if spec.kind not in (OutputKind.USER_OUTPUT, OutputKind.TOKEN):
                raise UnsupportedError(
                    f"the module changes {spec.target!r} while it runs ({spec.kind.name.lower().replace('_', ' ')})",
                    help="put the module in evaluation mode (module.eval()) or return the new state as an output",
                    id="torch-mutation",
                )
        return len(self._results())

    def _live(self) -> set[Node]:
        """Nodes that an output depends on."""
        live: set[Node] = set()
        pending = [n for n in self._results() if isinstance(n, Node)]
        while pending:
            node = pending.pop()
            if node not in live:
                live.add(node)
                pending += node.all_input_nodes
        return live

    def _placeholders(self, live: set[Node]) -> None:
        nodes = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        for spec in self.program.graph_signature.input_specs:
            node = nodes.get(getattr(spec.arg, "name", ""))
            if spec.kind is InputKind.USER_INPUT:
                self.inputs.append(self._user_input(node))
            elif node is None or node not in live:
                continue
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
                tensor = self._state(str(spec.target))
                if spec.kind is InputKind.CONSTANT_TENSOR:
                    self._fold(node, Call(str(spec.target), node.name, {}, (), (), origin_of(node)), (tensor,))
                else:
                    self.values[node] = self._parameter(str(spec.target), tensor)
            else:
                raise UnsupportedError(f"input {spec.arg} is a {spec.kind.name.lower()}", help="pass tensors only")

    def _state(self, target: str) -> torch.Tensor:
        found = self.program.state_dict.get(target, self.program.constants.get(target))
        if not isinstance(found, torch.Tensor):
            raise UnsupportedError(f"{target!r} is {type(found).__name__}, expected a tensor")
        return found

    def _user_input(self, node: Node | None) -> str | None:
        if node is None or not isinstance(node.meta.get("val"), torch.Tensor):
            return None
        (shape,), (kind,) = _results(node)
        self.builder.names.discard(node.name)
        name = self.builder.store(_identifier(node.name), shape, kind, "input")
        self.values[node] = stored(name, shape, kind)
        return name

    def _parameter(self, target: str, tensor: torch.Tensor) -> Value:
        kind, elements = dtype_name(tensor.dtype), array_of(tensor)
        name = self.builder.store(_identifier(target), elements.shape, kind, "input")
        self.builder.bound[name] = elements
        self.sources[name] = target
        return stored(name, elements.shape, kind)

    def _output(self, wanted: str, node: Node) -> str:
        """Declare an output and copy the node's value into it; layouts drop the copy again where they can."""
        value = self.values[node]
        if not isinstance(value, Value):
            raise self._unknown(node, "returns several tensors, expected one")
        b = self.builder
        b.names.discard(wanted)
        name = b.store(wanted, value.shape, value.dtype, "output")
        (shape,), (kind,) = _results(node)
        call = Call("output", name, {}, (shape,), (kind,), origin_of(node))
        axes = [b.axis(f"i{k}", n, (value, k)) for k, n in enumerate(value.shape)]
        target = Access(name, tuple(a.index for a in axes))
        b.emit(call, "", axes, target, [b.cases(value, [a.index for a in axes], axes)], lambda e: e[0])
        return name

    def _call(self, node: Node) -> None:
        if node.target is operator.getitem:
            self._item(node)
            return
        name = str(node.target)
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags:
            raise self._unknown(node, "draws random numbers", help="put the module in evaluation mode")
        call = self._as_call(node)
        if name in CONSTANT_FILLS:
            self._fold(node, call, (_filled(node, call),))
        elif name.startswith("aten.empty"):
            raise self._unknown(node, "returns elements that were never written", help="use zeros")
        elif all(n in self.folded for n in node.all_input_nodes) and isinstance(node.target, torch._ops.OpOverload):
            self._fold(node, call, self._evaluated(node, node.target))
        elif name not in RULES:
            raise self._unknown(node, "the PyTorch front end has no rule for this operator")
        else:
            result = RULES[name](self.builder, call)
            self.values[node] = result if isinstance(result, Value) else tuple(result)

    def _item(self, node: Node) -> None:
        source, index = node.args
        if not isinstance(source, Node) or not isinstance(index, int):
            raise self._unknown(node, f"item {index!r}, expected a constant position")
        if source in self.folded:
            whole = self.folded[source]
            self.folded[node] = whole[index] if isinstance(whole, tuple) else whole
        several = self.values[source]
        found = several[index] if isinstance(several, tuple) else several
        if found is None:
            raise self._unknown(source, f"its result number {index} is used, but only the values are computed")
        self.values[node] = found

    def _as_call(self, node: Node) -> Call:
        if not isinstance(node.target, torch._ops.OpOverload):
            raise self._unknown(node, "not an ATen operator")
        schema = node.target._schema.arguments
        given = {a.name: v for a, v in zip(schema, node.args, strict=False)} | dict(node.kwargs)
        arguments = {a.name: self._argument(given.get(a.name, a.default_value)) for a in schema}
        shapes, kinds = _results(node)
        return Call(str(node.target), _identifier(node.name), arguments, shapes, kinds, origin_of(node))

    def _argument(self, given: object) -> object:
        if isinstance(given, Node):
            found = self.values[given]
            return found if isinstance(found, Value) else None
        if isinstance(given, (list, tuple)):
            return [self._argument(g) for g in given]
        return dtype_name(given) if isinstance(given, torch.dtype) else given

    def _evaluated(self, node: Node, target: torch._ops.OpOverload) -> tuple[torch.Tensor, ...]:
        """The node's results by PyTorch, from folded arguments."""

        def concrete(n: Node) -> torch.Tensor | tuple[torch.Tensor, ...]:
            return self.folded[n]

        args = torch.fx.map_arg(node.args, concrete)
        kwargs = torch.fx.map_arg(node.kwargs, concrete)
        result = target(*args, **kwargs)
        return (result,) if isinstance(result, torch.Tensor) else tuple(result)

    def _fold(self, node: Node, call: Call, tensors: tuple[torch.Tensor, ...]) -> None:
        """Give the node its constant elements: as expressions of the indices where possible, else as bound tensors."""
        arrays = [array_of(t) for t in tensors]
        kinds = [dtype_name(t.dtype) for t in tensors]
        values: list[Value | None] = [as_expression(a, k) for a, k in zip(arrays, kinds, strict=True)]
        if any(v is None for v in values):
            derived = self._derived(call)
            for k, (v, d) in enumerate(zip(values, derived or values, strict=True)):
                if v is None and d is not None and _is_small(d):
                    values[k] = replace(d, known=arrays[k], dtype=kinds[k])
        several = len(tensors) > 1
        done = tuple(
            v if v is not None else self.builder.constant(f"{_identifier(node.name)}{f'_{k}' if several else ''}", a, t)
            for k, (v, a, t) in enumerate(zip(values, arrays, kinds, strict=True))
        )
        single = isinstance(node.meta.get("val"), torch.Tensor) or node.op == "placeholder"
        self.values[node] = done[0] if single else done
        self.folded[node] = tensors[0] if single else tensors

    def _derived(self, call: Call) -> Sequence[Value | None] | None:
        """The folded expression that the operator's own rule gives, for views and elementwise operators."""
        if call.operator not in VIEWS and call.operator not in POINTWISE:
            return None
        operands = list(_values_in(call.arguments.values()))
        if sum(len(v.pieces) for v in operands) > MAX_FOLDED_PIECES:
            return None
        try:
            result = RULES[call.operator](self.builder, call)
        except UnsupportedError:  # the elements are known all the same
            return None
        return (result,) if isinstance(result, Value) else tuple(result)

    def _unknown(self, node: Node, reason: str, *, help: str = "") -> UnsupportedError:
        call = Call(str(node.target), node.name, {}, (), (), origin_of(node))
        return call.refuse(reason, help=help or "write it with the operators that known_operators() lists")


MAX_FOLDED_PIECES = 4


def _is_small(value: Value) -> bool:
    return len(value.pieces) <= MAX_FOLDED_PIECES and sum(size(p.expr) for p in value.pieces) <= MAX_FOLDED_NODES


def _values_in(arguments: Iterable[object]) -> Iterable[Value]:
    for a in arguments:
        if isinstance(a, Value):
            yield a
        elif isinstance(a, list):
            yield from _values_in(a)


def _filled(node: Node, call: Call) -> torch.Tensor:
    fill = {"aten.zeros_like.default": 0, "aten.ones_like.default": 1}.get(call.operator)
    value = call.number("fill_value") if fill is None else fill
    return torch.full((1,) * len(call.shape), value, dtype=node.meta["val"].dtype).expand(call.shape)


def _results(node: Node) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    """Shapes and element types of the node's results."""
    found = node.meta.get("val")
    several = [found] if isinstance(found, torch.Tensor) else list(found or ())
    tensors = [t for t in several if isinstance(t, torch.Tensor)]
    for t in tensors:
        if not all(isinstance(n, int) for n in t.shape):
            call = Call(str(node.target), node.name, {}, (), (), origin_of(node))
            raise call.refuse(f"its shape {tuple(t.shape)} depends on data", help="polyopt takes fixed shapes")
    return tuple(tuple(t.shape) for t in tensors), tuple(dtype_name(t.dtype) for t in tensors)
