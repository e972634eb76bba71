"""Bodies of instruction specifications."""

from __future__ import annotations

from polyopt.machine import Body, IndexRef, MaskRef, OperandRef, OpRef, ScalarRef, operand_refs, scalar_refs
from polyopt.machine._pattern import parse_body

OPS = {"op0": ("+", "*"), "op1": ("max",)}


def body(text: str, scalars: tuple[str, ...] = ("s0", "s1")) -> Body:
    return parse_body(text, ops=OPS, scalars=scalars, where="here")


def test_a_contraction() -> None:
    found = body("O[m, n] += W[k, m] * X[k, n]")
    w, x = OperandRef("W", ("k", "m")), OperandRef("X", ("k", "n"))
    assert found.target == OperandRef("O", ("m", "n"))
    assert found.value == OpRef("*", "", ("*",), (w, x))
    assert (found.combine, found.combine_slot, found.reduced_lanes) == (("+",), "", ("k",))
    assert tuple(operand_refs(found.value)) == (w, x)


def test_operator_slots_and_scalars() -> None:
    found = body("O[p, f] = op1(op0(A[p, f], s0), s1)")
    inner = OpRef("", "op0", ("+", "*"), (OperandRef("A", ("p", "f")), ScalarRef("s0")))
    assert found.value == OpRef("", "op1", ("max",), (inner, ScalarRef("s1")))
    assert tuple(scalar_refs(found.value)) == (ScalarRef("s0"), ScalarRef("s1"))
    assert found.reduced_lanes == () and found.combine == ()


def test_folds_choose_their_operator() -> None:
    found = body("O[p, f] = op0.reduce(A[p, f, r])")
    assert (found.combine, found.combine_slot, found.reduced_lanes) == (("+", "*"), "op0", ("r",))
    assert found.value == OperandRef("A", ("p", "f", "r"))


def test_masks_and_indices() -> None:
    found = body("O[p, f] = select(mask, A[p, f], s0)")
    assert found.value == OpRef("select", "", ("select",), (MaskRef(), OperandRef("A", ("p", "f")), ScalarRef("s0")))
    assert body("O[p] = index").value == IndexRef()
    assert body("O[p] = s0").value == ScalarRef("s0")
    assert body("O[p] *= A[p]").combine == ("*",)


def test_one_lane() -> None:
    found = body("O[p] = A[p] ** B[p]")
    assert found.value == OpRef("**", "", ("**",), (OperandRef("A", ("p",)), OperandRef("B", ("p",))))
