"""Seeded faults: one small wrong change each, in every part of the judge, the transformations and the certificates."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MUTANTS", "Mutant"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `path`, the first `old` becomes `new`."""

    name: str
    path: str
    old: str
    new: str

    @property
    def part(self) -> str:
        """The part of polyopt that it is in."""
        return "/".join(self.path.removesuffix(".py").split("/")[-2:])


def _in(path: str, *faults: tuple[str, str, str]) -> tuple[Mutant, ...]:
    return tuple(Mutant(name, path, old, new) for name, old, new in faults)


MUTANTS: tuple[Mutant, ...] = (
    *_in(
        "polyopt/sets/_order.py",
        ("order test swapped", "a.isl.lex_lt_map(b.isl)", "a.isl.lex_gt_map(b.isl)"),
        ("equal vectors count as ordered", "a.isl.lex_ge_map(b.isl)", "a.isl.lex_gt_map(b.isl)"),
        ("reversed pairs count as ordered", "a.isl.lex_ge_map(b.isl)", "a.isl.lex_le_map(b.isl)"),
        (
            "carried one level too deep",
            "for k in range(dim):\n        step = step.equate",
            "for k in range(dim - 1):\n        step = step.equate",
        ),
        (
            "carried backwards only",
            "return step.order_lt(_IN, dim, _OUT, dim)",
            "return step.order_gt(_IN, dim, _OUT, dim)",
        ),
        ("unordered children in one direction", "step.union(step.reverse())", "step"),
        (
            "padding is not zero",
            "result = result.fix_val(_OUT, k, isl.Val(0))",
            "result = result.fix_val(_OUT, k, isl.Val(1))",
        ),
        (
            "witness without smallest sizes",
            "_params_in_front(by_order.wrap().flatten(), params)",
            "_params_in_front(by_order.wrap().flatten(), params[::-1])",
        ),
        ("witness from the first piece", "return min(found, default=None)", "return found[0] if found else None"),
    ),
    *_in(
        "polyopt/sets/_vectors.py",
        ("last run instead of first", "isl.Map.lex_lt(order", "isl.Map.lex_gt(order"),
        ("repeats are not seen", "Map(again.intersect(isl", "Map(again.subtract(isl"),
        ("extension at iterations that never run", "Map(order.isl.intersect_range(allowed))", "order"),
        ("constants at the wrong place", "result.insert_dims(_OUT, position, 1)", "result.insert_dims(_OUT, 0, 1)"),
    ),
    *_in(
        "polyopt/sets/_convert.py",
        ("floor rounds up", ".floor()", ".ceil()"),
    ),
    *_in(
        "schedule/_legality.py",
        ("axioms ignored", 'if d.axiom == "":\n            continue', "if d.axiom is not None:\n            continue"),
        ("unknown counts as legal", "if uncertain:", "if uncertain and certain:"),
        (
            "perhaps counts as certain",
            "if v.dependence.is_ordered and v.dependence.certain]",
            "if v.dependence.is_ordered]",
        ),
        ("first run suffices for every kind", "d.kinds == (FLOW,))", "FLOW in d.kinds)"),
        ("a sum may run twice", 'a.combine in ("min", "max")', 'a.combine in ("min", "max", "+")'),
        ("a call may run twice", "if not b.reads and b.access is not None:", "if not b.reads:"),
        (
            "violations cached for the wrong kind",
            "key = (d.source, d.sink, d.kinds == (FLOW,))",
            "key = (d.source, d.sink, False)",
        ),
        (
            "the witness of the largest pair",
            "best = min(pair for pair, _ in found)",
            "best = max(pair for pair, _ in found)",
        ),
        ("spent budget forgotten", "error.message, spent=True)", "error.message)"),
    ),
    *_in(
        "schedule/_orders.py",
        (
            "parallel dimensions ignored",
            "*(carried_by(a, b, dim) for dim in self.parallel)",
            "*(carried_by(a, b, dim) for dim in self.parallel[1:])",
        ),
        (
            "unordered children ignored",
            "for dim, instances in self.unordered:",
            "for dim, instances in self.unordered[:0]:",
        ),
        ("missing instances accepted", "if not left.is_empty():\n        sizes", "if left.is_empty():\n        sizes"),
        (
            "several vectors accepted",
            "if not repeats and not order.is_single_valued():",
            "if repeats and not order.is_single_valued():",
        ),
        ("sizes outside the context", "if sizes_context(fixed).is_empty():", "if sizes_context(scop).is_empty():"),
        (
            "unknown sizes of a schedule",
            'if name not in scop.params:\n            raise InputError(\n                f"the schedule uses',
            'if False:\n            raise InputError(\n                f"the schedule uses',
        ),
    ),
    *_in(
        "schedule/_dependences.py",
        ("anti dependences dropped", "ANTI: a.reads and b.writes", "ANTI: False"),
        ("output dependences dropped", "OUTPUT: a.writes and b.writes", "OUTPUT: False"),
        ("flow dependences dropped", "FLOW: a.writes and b.reads", "FLOW: False"),
        (
            "later instances as sources",
            "before(self.orders[source], self.orders[sink])",
            "before(self.orders[sink], self.orders[source]).reverse()",
        ),
        (
            "dependences of a statement on itself dropped",
            "earlier = precedence.between(a.statement, b.statement) if kinds else None",
            "earlier = precedence.between(a.statement, b.statement) if kinds and a.statement != b.statement else None",
        ),
        (
            "calls are certain only alone",
            "certain = MAY not in classes or OPAQUE in classes",
            "certain = MAY not in classes",
        ),
        (
            "data-dependent accesses are no dependence",
            "if not relation.is_empty():\n                yield _dependence",
            "if not relation.is_empty() and a.access_class == b.access_class:\n                yield _dependence",
        ),
        ("last writer for reductions too", "all(d.is_ordered for d in own)", "True"),
    ),
    *_in(
        "schedule/_touches.py",
        (
            "a combined target is not read",
            "relation, combine is not None, True, combine)",
            "relation, False, True, combine)",
        ),
        (
            "subscripts' own reads forgotten",
            "(*access_chain(target)[1:], *accesses(statement.body.value))",
            "accesses(statement.body.value)",
        ),
        ("what a call reads forgotten", "(*call.may_write, *call.may_read)", "call.may_write"),
        ("negative sizes allowed", "return bound_below(scop.context, scop.params)", "return scop.context"),
        ("an ambiguous original order accepted", "if not order.is_injective():", "if order.is_empty():"),
    ),
    *_in(
        "schedule/_reorder.py",
        (
            "sums of floats commute",
            'return f"reassociate({a.combine}, {element.name})" if scop.reassociate else None',
            'return f"reassociate({a.combine}, {element.name})"',
        ),
        (
            "different combinations commute",
            "if a.combine is None or a.combine != b.combine:",
            "if a.combine is None or b.combine is None:",
        ),
        ("narrow maxima commute", "all(fits(v, element, scop) for v in values) else None", "values else None"),
        ("sums of rounded values commute", "all(is_integral(v, scop) for v in values) else None", "values else None"),
        (
            "sums of truth values commute",
            'if element.name == "bool":\n        return None',
            'if element.name == "bool":\n        return ""',
        ),
        ("only one side is looked at", "for t in (a, b)]", "for t in (a,)]"),
    ),
    *_in(
        "schedule/_tree_order.py",
        (
            "a sequence's position forgotten",
            "(*vectors[s.name], affine(k)) for s in inside",
            "(*vectors[s.name], affine(0)) for s in inside",
        ),
        (
            "filters ignored",
            "inside = filtered(sets, below)",
            "inside = tuple(s for s in sets if s.name in below.statements)",
        ),
        ("lost instances accepted", "_refuse_lost(sets, node.children)", "_refuse_lost((), node.children)"),
        ("parallel loops in sequence", "if m.kind != SEQUENTIAL:", "if m.kind == SEQUENTIAL and False:"),
        (
            "unordered nodes in sequence",
            "if isinstance(node, Unordered):",
            "if isinstance(node, Unordered) and not sets:",
        ),
        (
            "the depth of a parallel loop",
            "unordered.append((_depth(sets, result), sets))",
            "unordered.append((_depth(sets, vectors), sets))",
        ),
    ),
    *_in(
        "schedule/_tree_relations.py",
        (
            "a filter's rest accepted",
            '_refuse_left(left, "no child of a sequence runs")',
            '_refuse_left({}, "no child of a sequence runs")',
        ),
        ("a sequence's position forgotten", "append_constant(m, k) for n, m", "append_constant(m, 0) for n, m"),
        (
            "an expansion forgets groups",
            '_refuse_left(left, "an expansion says nothing about")',
            '_refuse_left({}, "an expansion says nothing about")',
        ),
        ("set nodes in sequence", 'if node.kind == "set":', 'if node.kind == "nothing":'),
    ),
    *_in(
        "schedule/_tree_build.py",
        (
            "coincident marks believed",
            "PARALLEL if coincident and self.coincident else SEQUENTIAL",
            "PARALLEL if coincident else SEQUENTIAL",
        ),
        ("constants unsorted", "_in_sequence(dict(sorted(groups.items())), sets", "_in_sequence(groups, sets"),
    ),
    *_in(
        "schedule/_replay.py",
        (
            "the probe after a read",
            "return (sink if witness.kind == FLOW else source), _BEFORE",
            "return (source if witness.kind == FLOW else sink), _BEFORE",
        ),
        ("parallel dimensions in order", "for dim in (*order.parallel, *_unordered_dims(order, s)):", "for dim in ():"),
    ),
    *_in(
        "schedule/transform/tile.py",
        ("tile size one too large", "e // size) for s, e", "e // (size + 1)) for s, e"),
        ("tiles inside of the points", "Band(tuple(tiles), band)", "Band((*band.members, *tiles), band.child)"),
    ),
    *_in(
        "schedule/transform/interchange.py",
        (
            "nothing changes places",
            "_put(tree, a.path, a.position, b.member)",
            "_put(tree, a.path, a.position, a.member)",
        ),
    ),
    *_in("schedule/transform/skew.py", ("skewed the other way", "e + added[s] * factor", "e - added[s] * factor")),
    *_in(
        "schedule/transform/shift.py",
        ("every statement shifted", "added.get(s, affine(0))", "next(iter(added.values()), affine(0))"),
        ("shifted back", "e + added.get", "e - added.get"),
    ),
    *_in("schedule/transform/scale.py", ("scaled by one more", "checked.get(s, 1)", "checked.get(s, 2)")),
    *_in("schedule/transform/reverse.py", ("not reversed", "lambda _s, e: -e", "lambda _s, e: e")),
    *_in(
        "schedule/transform/strip_mine.py",
        (
            "strips inside",
            "(*found.outer, outer, found.member, *found.inner)",
            "(*found.outer, found.member, outer, *found.inner)",
        ),
    ),
    *_in(
        "schedule/transform/unroll.py",
        ("one copy too few", "for value in range(begin, end)]", "for value in range(begin, end - 1)]"),
        ("remainders of one more", "exprs[s.name] % modulus", "exprs[s.name] % (modulus + 1)"),
        ("last iteration of all forgotten", "low, high + 1, None)", "low, high, None)"),
        (
            "inner loops outside of the copies",
            "Band(found.inner, found.band.child) if found.inner else found.band.child",
            "found.band.child",
        ),
    ),
    *_in(
        "schedule/transform/fuse.py",
        ("shift forgotten", "late = e + shifts.get(m.name, 0)", "late = e"),
        (
            "second first",
            "replace(first, child=_rest(a, depth)), replace(second, child=_rest(b, depth))",
            "replace(second, child=_rest(b, depth)), replace(first, child=_rest(a, depth))",
        ),
    ),
    *_in("schedule/transform/distribute.py", ("groups in any order", "!= list(range(len(below.children)))", "is None")),
    *_in(
        "schedule/transform/reorder.py",
        ("order inverted", "sequence.children[k] for k in order", "sequence.children[k] for k in reversed(order)"),
    ),
    *_in(
        "schedule/transform/split.py",
        ("split one late", "else limit) - 1 - exprs[s.name])", "else limit) - exprs[s.name])"),
        ("the rest forgotten", "parts.append((left, node))", "parts.append((left[:0], node))"),
        ("the last part peeled too short", "high + 1 - tail)", "high - tail)"),
        ("parts that overlap", "rest = tuple(s.subtract(f) for s, f in zip(sets, first, strict=True))", "rest = sets"),
    ),
    *_in(
        "schedule/transform/separate.py",
        ("rim tiles called full", "low + size - 1 - var(p)", "low + size - 2 - var(p)"),
        ("tile begins one late", "Constraint(var(p) - low)", "Constraint(var(p) - low - 1)"),
    ),
    *_in(
        "schedule/transform/parallel.py",
        ("not marked", "replace(found.member, kind=PARALLEL)", "found.member"),
        ("whole loop as lanes", "lambda _s, e: e // lanes", "lambda _s, e: e * 0"),
    ),
    *_in(
        "schedule/transform/sink.py",
        ("last for first", "if at == FIRST else", "if at == LAST else"),
        ("child on the wrong side", "inside = (inside[1], inside[0])", "pass"),
    ),
    *_in(
        "schedule/transform/diamond.py",
        ("falling side rises", "(e * slope - places[s]) // size", "(e * slope + places[s]) // size"),
        ("tiles in sequence", "kind=PARALLEL", "kind=SEQUENTIAL"),
    ),
    *_in(
        "schedule/transform/contract.py",
        ("the same writer suffices", "or not m.is_subset(sources[m.in_name])", ""),
        ("windows from two on", "range(1, most + 1)", "range(2, most + 1)"),
    ),
    *_in(
        "schedule/transform/expand.py",
        ("low end not taken off", "e - low for e, low", "e for e, low"),
        ("torn sums accepted", "if not total.is_subset(own):", "if total.is_subset(own):"),
        ("unwritten reads accepted", "if not left.is_empty():", "if left.is_empty():"),
    ),
    *_in(
        "schedule/transform/_legal.py",
        ("illegal results returned", "if verdict.verdict == LEGAL:", "if verdict.verdict in (LEGAL, ILLEGAL):"),
    ),
    *_in(
        "schedule/_schedulers.py",
        ("order not judged", "if result.verdict.verdict == ILLEGAL:", "if False:"),
        (
            "anti dependences not passed on",
            "validity = [d.relation for d in own]",
            "validity = [d.relation for d in own if FLOW in d.kinds]",
        ),
        ("plug-ins believed", "verdict = check(scop, result.mapping())", "verdict = result.verdict"),
    ),
    *_in(
        "polyopt/verify/certificate.py",
        (
            "negative multipliers accepted",
            "need(all(m >= 0 or rows[k][1] for k, m in first)",
            "need(all(True or rows[k][1] for k, m in first)",
        ),
        ("variables left in a contradiction", "< 0 and len(total) == 1", "< 0"),
        (
            "a cut rounds up",
            "{v: c // rest[0] for v, c in total.items()}",
            "{v: -(-c // rest[0]) for v, c in total.items()}",
        ),
        ("cuts that do not divide", "all(c % rest[0] == 0 for v, c in total.items() if v)", "True"),
        ("a split leaves a gap", '[less(form, {"": rest[0] + 1})]', '[less(form, {"": rest[0]})]'),
        ("alternatives left out", "reversed(self.clauses[first])", "self.clauses[first][:1]"),
        ("open goals accepted", 'need(not goals, "the proof has too few steps")', "pass"),
        (
            "missing proofs accepted",
            'steps = proofs.pop(claim, [["open", "there is no proof"]])',
            'steps = proofs.pop(claim, [["axiom", axiom]])',
        ),
        ("any axiom accepted", 'if axiom is None or steps != [["axiom", axiom]]:', 'if steps[0][0] != "axiom":'),
        ("equal vectors accepted", "+ [list(map(equal, p, q))]\n        wrong +=", "\n        wrong +="),
        ("parallel dimensions forgotten", "wrong += [first_difference(p, q, k) for k in program.parallel]", "pass"),
        ("unordered nodes forgotten", "for node in program.unordered:", "for node in program.unordered[:0]:"),
        (
            "textual order forgotten",
            "if program.statements.index(s) < program.statements.index(t) else []",
            "if False else []",
        ),
        (
            "the first depth alone",
            "[first_difference(p, q, k) for k in range(len(p))] + same",
            "[first_difference(p, q, k) for k in range(min(len(p), 1))] + same",
        ),
        (
            "reads conflict never",
            'if a["kind"] != "read" or b["kind"] != "read":',
            'if a["kind"] != "read" and b["kind"] != "read":',
        ),
        (
            "domains forgotten",
            'self.one_of([self.condition(c, known) for c in s["domain"]])\n        return known',
            'self.one_of([self.condition(c, known) for c in s["domain"][:1]])\n        return known',
        ),
        ("floors too wide", 'less(left, {"": rest[0]})', 'less(left, {"": rest[0] - 1})'),
        ("extra proofs accepted", "need(not proofs,", "need(True,"),
    ),
)
"""A fault that changes nothing is no fault: each of these makes some answer wrong."""
