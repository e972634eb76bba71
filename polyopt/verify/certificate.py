"""An independent checker of certificates that a schedule is legal: `python certificate.py FILE [--json]`.

It imports the standard library alone.  A certificate states a program (domains, original order, accesses) and a new
order.  From these the checker derives the claims that make the order legal for all sizes, and asks a proof of each:

    distinct S      no two instances of S have the same place in the original order
    cover S         every instance of S has a new order vector
    pair S.a T.b    no instances of S and T, in this original order, that touch a common cell by their accesses a and b,
                    one of them writing, are reversed, unordered or carried by a parallel dimension in the new order

Each claim says that a `System` of integer constraints has no solution.  A proof is a list of steps that close goals,
depth first: a nonnegative combination of rows that is a negative constant (Farkas' lemma), a combination divided and
rounded down as a new row (Chvatal-Gomory cut), a split e <= c | e >= c + 1, a split into the alternatives of a clause.

Expressions are `[constant, [coefficient, atom], ...]`, atoms names, `["floor", e, divisor]`, `["min" or "max", e, ...]`
or `["if", [constraint, ...], then, else]`; constraints `[">=" or "=", e]`, meaning e >= 0 or e = 0.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FORMAT, VERSION = "polyopt-certificate", 1
MAX_BYTES, MAX_CLAIMS, MAX_ROWS, MAX_DEPTH, MAX_BITS = 1 << 26, 100_000, 10_000_000, 40, 2_000
FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
INTEGERS = {f"int{b}": (-(1 << b - 1), (1 << b - 1) - 1) for b in (8, 16, 32, 64)} | {"uint8": (0, 255), "bool": (0, 1)}
TRUTHS = ("<", "<=", ">", ">=", "==", "!=", "and", "or", "not")
EXACT = ("+", "-", "*", "neg", "abs", "min", "max", "select", "floor")
SOURCE, SINK = "0.", "1."

Form = dict[str, int]
"""Variable -> coefficient, in the order of names; the constant's name is empty."""
Row = tuple[Form, bool]
"""form >= 0, or form == 0 when True."""


class UnreadableError(Exception):
    """No certificate of this version."""


class RefusedError(Exception):
    """What is wrong with a certificate."""


def need(condition: object, complaint: str) -> None:
    if not condition:
        raise RefusedError(complaint)


def items(value: object, *lengths: int) -> list[object]:
    """A list, of one of the lengths when any is given."""
    if not isinstance(value, list) or (lengths and len(value) not in lengths):
        raise RefusedError(f"expected a list{f' of length {lengths[0]}' if lengths else ''}, found {str(value)[:60]}")
    return value


def integer(value: object, low: int | None = None, high: int | None = None) -> int:
    if type(value) is not int or (low is not None and value < low) or (high is not None and value > high):
        raise RefusedError(f"expected an integer{'' if low is None else ' in its range'}, found {str(value)[:60]}")
    return value


def text(value: object, known: Sequence[str] | None = None) -> str:
    if not isinstance(value, str) or (known is not None and value not in known):
        raise RefusedError(f"unknown or misplaced name {str(value)[:60]!r}")
    return value


def entry(value: object, name: str) -> object:
    if not isinstance(value, dict) or name not in value:
        raise RefusedError(f"missing entry {name!r}")
    return value[name]


def combine(terms: Sequence[tuple[int, Form]]) -> Form:
    total: Form = {}
    for factor, form in terms:
        for name, c in form.items():
            total[name] = total.get(name, 0) + factor * c
    need(all(c.bit_length() <= MAX_BITS for c in total.values()), "a number is too large")
    return {name: total[name] for name in sorted(total) if total[name]}


def equal(a: Form, b: Form) -> Row:
    return combine([(1, a), (-1, b)]), True


def less(a: Form, b: Form) -> Row:
    return combine([(1, b), (-1, a), (-1, {"": 1})]), False


def negations(row: Row) -> list[Row]:
    """Of which one holds where the row does not."""
    form, is_equality = row
    return [less(form, {}), less({}, form)] if is_equality else [less(form, {})]


def first_difference(a: Sequence[Form], b: Sequence[Form], dim: int) -> list[Row]:
    """The vectors differ first in entry `dim`, where a's is the smaller one."""
    return [*map(equal, a[:dim], b[:dim]), less(a[dim], b[dim])]


@dataclass(frozen=True)
class Access:
    tensor: str
    subscripts: list[object]
    writes: bool
    combines: str | None


@dataclass(frozen=True)
class Statement:
    name: str
    iterators: list[str]
    domain: list[object]
    order: list[object]
    accesses: list[Access]
    value: tuple[bool, tuple[int, int] | None]
    pieces: list[tuple[list[object], list[object]]]


@dataclass(frozen=True)
class Program:
    params: list[str]
    context: list[object]
    reassociate: bool
    dtypes: dict[str, str]
    statements: list[Statement]
    parallel: list[int]
    unordered: list[tuple[int, dict[str, list[object]]]]


def names(value: object, taken: Sequence[str] = ()) -> list[str]:
    found = [text(n) for n in items(value)]
    need(len({*found, *taken}) == len(found) + len(taken), "a name occurs twice")
    need(all(n.isidentifier() for n in found), "a name is no identifier")
    return found


def read_program(document: object) -> Program:
    program, schedule = entry(document, "program"), entry(document, "schedule")
    params = names(entry(program, "params"))
    listed = [items(t, 3) for t in items(entry(program, "tensors"))]
    ranks = dict(zip(names([t[0] for t in listed]), (integer(t[2], 0) for t in listed), strict=True))
    dtypes = {text(t[0]): text(t[1], [*FLOATS, *INTEGERS]) for t in listed}
    described = items(entry(program, "statements"))
    statements = [read_statement(s, schedule, params, dtypes, ranks) for s in described]
    names([s.name for s in statements])
    length = max((len(vector) for s in statements for _, vector in s.pieces), default=0)
    reassociate = entry(program, "reassociate")
    need(isinstance(reassociate, bool), "reassociate is no truth value")
    parallel = [integer(d, 0, length - 1) for d in items(entry(schedule, "parallel"))]
    unordered = []
    for dim, sets in (items(u, 2) for u in items(entry(schedule, "unordered"))):
        among = {s.name: items(entry(sets, s.name)) for s in statements if isinstance(sets, dict) and s.name in sets}
        need(isinstance(sets, dict) and len(sets) == len(among), "an unordered node names an unknown statement")
        unordered.append((integer(dim, 0, length - 1), among))
    context = items(entry(program, "context"))
    return Program(params, context, reassociate is True, dtypes, statements, parallel, unordered)


def read_statement(
    value: object, schedule: object, params: list[str], dtypes: dict[str, str], ranks: dict[str, int]
) -> Statement:
    name, iterators = text(entry(value, "name")), names(entry(value, "iterators"), params)
    accesses = []
    for a in items(entry(value, "accesses")):
        tensor, subscripts, combines = text(entry(a, "tensor"), list(ranks)), entry(a, "subscripts"), entry(a, "combine")
        kind = text(entry(a, "kind"), ("read", "write", "both"))
        need(combines is None or (combines in ("+", "*", "min", "max") and kind == "both"), "no such combination")
        operator = None if combines is None else text(combines)
        accesses.append(Access(tensor, items(subscripts, ranks[tensor]), kind != "read", operator))
    pieces = [(items(guard), items(vector)) for guard, vector in map(pair, items(entry(entry(schedule, "orders"), name)))]
    domain, order = items(entry(value, "domain")), items(entry(value, "order"))
    return Statement(name, iterators, domain, order, accesses, read_value(entry(value, "value"), dtypes), pieces)


def pair(value: object) -> tuple[object, object]:
    first, second = items(value, 2)
    return first, second


def read_value(value: object, dtypes: dict[str, str]) -> tuple[bool, tuple[int, int] | None]:
    """(surely an integer computed without rounding, the integers that it may be if that is known), from postfix form."""
    stack: list[tuple[bool, tuple[int, int] | None]] = []
    for token in items(value):
        kind, what, number = items(token, 3)
        count = integer(number, 0, len(stack))
        args = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        used = args[1:] if what == "select" else args
        ranges = [r for _, r in used if r is not None]
        result: tuple[bool, tuple[int, int] | None] = (False, None)
        if kind == "const" and what is not None:
            result = True, (integer(what), integer(what))
        elif kind in ("read", "cast"):
            name = dtypes[text(what, list(dtypes))] if kind == "read" else text(what, [*FLOATS, *INTEGERS])
            result = name in INTEGERS, INTEGERS.get(name)
        elif kind == "apply" and what in TRUTHS:
            result = True, (0, 1)
        elif kind == "apply" and what in EXACT and used:
            known = what in ("min", "max", "select") and len(ranges) == len(used)
            hull = (min(r[0] for r in ranges), max(r[1] for r in ranges)) if known else None
            result = all(exact for exact, _ in used), hull
        elif kind == "index":
            result = True, None
        stack.append(result)
    need(len(stack) <= 1, "a value is no expression")
    return stack[0] if stack else (False, None)


def swap_axiom(program: Program, s: Statement, a: Access, t: Statement, b: Access) -> str | None:
    """The axiom under which two accesses that combine into a cell may change places; empty: none; None: they may not."""
    if a.combines is None or a.combines != b.combines:
        return None
    dtype, values = program.dtypes[a.tensor], (s.value, t.value)
    if dtype in FLOATS:
        named = f"reassociate({a.combines}, {dtype})" if program.reassociate else None
        return "" if a.combines in ("min", "max") else named
    if a.combines in ("min", "max"):
        low, high = INTEGERS[dtype]
        return "" if all(r is not None and low <= r[0] and r[1] <= high for _, r in values) else None
    return "" if dtype != "bool" and all(exact for exact, _ in values) else None


@dataclass
class System:
    """Rows that all hold, and clauses of which at least one alternative (a list of rows) holds."""

    program: Program
    rows: list[Row] = field(default_factory=list)
    clauses: list[list[list[Row]]] = field(default_factory=list)
    atoms: dict[str, str] = field(default_factory=dict)

    def one_of(self, alternatives: Sequence[Sequence[Row]]) -> None:
        """Rows without variables are decided at once; a single alternative needs no clause."""
        kept: list[list[Row]] = []
        for rows in alternatives:
            constant = [(form.get("", 0), eq) for form, eq in rows if not form.keys() - {""}]
            if all(c == 0 if eq else c >= 0 for c, eq in constant):
                kept.append([(form, eq) for form, eq in rows if form.keys() - {""}])
        if len(kept) == 1:
            self.rows += kept[0]
        else:
            self.clauses.append(kept)

    def variable(self, key: str) -> tuple[str, bool]:
        """The variable of a floor, minimum, maximum or selection, and whether it is new."""
        is_new = key not in self.atoms
        return self.atoms.setdefault(key, f"q{len(self.atoms)}"), is_new

    def form(self, expression: object, known: dict[str, str], depth: int = 0) -> Form:
        need(depth <= MAX_DEPTH, "an expression is nested too deeply")
        constant, *terms = items(expression)
        total: list[tuple[int, Form]] = [(1, {"": integer(constant)})]
        for factor, atom in map(pair, terms):
            if isinstance(atom, str):
                variable = known[text(atom, list(known))]
            else:
                variable = self.atom(items(atom), known, depth + 1)
            total.append((integer(factor), {variable: 1}))
        return combine(total)

    def atom(self, atom: list[object], known: dict[str, str], depth: int) -> str:
        kind, *args = [*atom, None, None]
        if kind == "if":
            where = self.condition(args[0], known, depth)
            then, other = (self.form(a, known, depth) for a in items(args[1:-2], 2))
            name, is_new = self.variable(repr((kind, where, then, other)))
            if is_new:
                elsewhere = [[n, equal({name: 1}, other)] for row in where for n in negations(row)]
                self.one_of([[*where, equal({name: 1}, then)], *elsewhere])
        elif kind == "floor":
            inner, divisor = self.form(args[0], known, depth), integer(args[1], 1)
            name, is_new = self.variable(repr((kind, inner, divisor)))
            rest = combine([(1, inner), (-divisor, {name: 1})])
            self.rows += [(rest, False), less(rest, {"": divisor})] if is_new else []
        else:
            sign = {"min": 1, "max": -1}[text(kind, ("min", "max"))]
            inner_forms = [self.form(a, known, depth) for a in args[:-2]]
            name, is_new = self.variable(repr((kind, inner_forms)))
            if is_new:
                rests = [combine([(sign, f), (-sign, {name: 1})]) for f in inner_forms]
                self.rows += [(rest, False) for rest in rests]
                self.one_of([[(combine([(-1, rest)]), False)] for rest in rests])
        return name

    def condition(self, constraints: object, known: dict[str, str], depth: int = 0) -> list[Row]:
        made = [(text(sign, (">=", "=")), self.form(e, known, depth)) for sign, e in map(pair, items(constraints))]
        return [(form, sign == "=") for sign, form in made]

    def instance(self, s: Statement, role: str) -> dict[str, str]:
        """Let there be an instance of the statement; gives names -> variables."""
        known = {p: p for p in self.program.params} | {i: role + i for i in s.iterators}
        self.one_of([self.condition(part, known) for part in s.domain])
        return known

    def vector(self, expressions: Sequence[object], known: dict[str, str], length: int) -> list[Form]:
        return [self.form(e, known) for e in expressions] + [{}] * (length - len(expressions))

    def placed(self, s: Statement, known: dict[str, str], role: str, length: int) -> list[Form]:
        """The new order vector of the instance, by one of the pieces that say something about it."""
        options = [(self.condition(g, known), self.vector(v, known, length)) for g, v in s.pieces]
        columns = list(zip(*(forms for _, forms in options), strict=True))
        entries = [c[0] if all(f == c[0] for f in c) else {f"{role}{k}": 1} for k, c in enumerate(columns)]
        self.one_of([guard + [equal(e, f) for e, f in zip(entries, forms, strict=True)] for guard, forms in options])
        return entries or [{}] * length


def started(program: Program) -> System:
    system = System(program)
    system.one_of([system.condition(part, {p: p for p in program.params}) for part in program.context])
    return system


def distinct_system(program: Program, s: Statement) -> System:
    system = started(program)
    x, y = (system.instance(s, role) for role in (SOURCE, SINK))
    a, b = (system.vector(s.order, known, len(s.order)) for known in (x, y))
    system.one_of([list(map(equal, a, b))])
    system.one_of([[less({x[i]: 1}, {y[i]: 1})] for i in s.iterators])
    return system


def cover_system(program: Program, s: Statement) -> System:
    system = started(program)
    known = system.instance(s, SOURCE)
    for guard, _ in s.pieces:
        system.one_of([[n] for row in system.condition(guard, known) for n in negations(row)])
    return system


def pair_system(program: Program, s: Statement, a: Access, t: Statement, b: Access) -> System:
    system, statements = started(program), program.statements
    x, y = system.instance(s, SOURCE), system.instance(t, SINK)
    for e, f in zip(a.subscripts, b.subscripts, strict=True):
        if e is not None and f is not None:
            system.one_of([[equal(system.form(e, x), system.form(f, y))]])
    old = max(len(r.order) for r in statements)
    p, q = system.vector(s.order, x, old), system.vector(t.order, y, old)
    same = [list(map(equal, p, q))] if statements.index(s) < statements.index(t) else []
    system.one_of([first_difference(p, q, k) for k in range(old)] + same)
    new = max((len(v) for r in statements for _, v in r.pieces), default=0)
    p, q = system.placed(s, x, SOURCE, new), system.placed(t, y, SINK, new)
    wrong = [first_difference(q, p, k) for k in range(new)] + [list(map(equal, p, q))]
    wrong += [first_difference(p, q, k) for k in program.parallel]
    for dim, sets in program.unordered:
        if s.name in sets and t.name in sets:
            at_source, at_sink = ([system.condition(c, known) for c in sets[r.name]] for r, known in ((s, x), (t, y)))
            wrong += [first_difference(p, q, dim) + c + d for c in at_source for d in at_sink]
    system.one_of(wrong)
    return system


Claim = tuple[str, Callable[[], System], "str | None"]
"""Name, what has no solution, and for a pair the axiom under which it may change places instead."""


def claims(document: object) -> Iterator[Claim]:
    """Everything that must be shown."""
    program = read_program(document)
    for s in program.statements:
        yield f"distinct {s.name}", lambda s=s: distinct_system(program, s), None
        yield f"cover {s.name}", lambda s=s: cover_system(program, s), None
    uses = [(s, k, a) for s in program.statements for k, a in enumerate(s.accesses)]
    for s, j, a in uses:
        for t, k, b in uses:
            if a.tensor == b.tensor and (a.writes or b.writes):
                axiom = swap_axiom(program, s, a, t, b)
                yield f"pair {s.name}.{j} {t.name}.{k}", lambda s=s, a=a, t=t, b=b: pair_system(program, s, a, t, b), axiom
