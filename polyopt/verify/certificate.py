"""An independent checker of certificates that a schedule is legal: `python certificate.py FILE` prints one JSON object.

It imports the standard library alone.  From the program and the new order in the file (SCHEMA) it derives claims:

    distinct S      no two instances of S have the same place in the original order
    cover S         every instance of S has a new order vector
    pair S.a T.b    no two instances that touch a common cell by access a of S and access b of T, one of them writing, S
                    first in the original order, are reversed, unordered or carried by a parallel dimension in the new

Each says that a `System` has no integer solution.  Its proof lists steps that close goals, depth first: combinations
of rows that are negative constants (Farkas' lemma); combinations divided and rounded down as new rows (Chvatal-Gomory
cuts); splits form <= c | form >= c + 1; splits into the alternatives of a clause.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

FORMAT, MAX_BYTES, MAX_WORK, MAX_BITS, MAX_DIGITS = "polyopt-certificate-1", 1 << 26, 50_000_000, 2_000, 600
FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2")
INTEGERS = {f"int{b}": (-(1 << b - 1), (1 << b - 1) - 1) for b in (8, 16, 32, 64)} | {"uint8": (0, 255), "bool": (0, 1)}
CHOICES, EXACT = {"min", "max", "select"}, {"+", "-", "*", "neg", "abs", "floor", "min", "max", "select"}
# Expressions are [constant, [coefficient, atom], ...]; atoms are names, ["floor", e, divisor], ["if", condition, e, e].
# Conditions are lists of [">=", e] and ["=", e] (e >= 0, e = 0), sets are lists of conditions (their union).
ACCESS = {"tensor": str, "subscripts": list, "kind": str, "combine": object}  # a subscript that is null may be anything
VALUE = {"operators": [str], "leaves": list}  # what a statement combines into its cell: element types, numbers, "index"
STATEMENT = {"name": str, "iterators": [str], "domain": [list], "order": [list], "accesses": [ACCESS], "value": VALUE}
TENSORS, ORDERS = {"": {"dtype": str, "rank": int}}, {"": [{"where": list, "vector": [list]}]}  # "": any names
PROGRAM = {"params": [str], "context": [list], "tensors": TENSORS, "reassociate": bool, "statements": [STATEMENT]}
SCHEDULE = {"orders": ORDERS, "parallel": [int], "unordered": [{"dim": int, "among": {"": [list]}}]}
SCHEMA = {"format": str, "name": str, "program": PROGRAM, "schedule": SCHEDULE, "proofs": {"": [list]}}
WRONG = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
Json = dict[str, Any]
Form = dict[str, int]  # variable -> coefficient, in the order of names; the constant's name is empty
Row = tuple[Form, bool]  # form >= 0, or form == 0 when True


def need(condition: object, complaint: str) -> None:
    if not condition:
        raise ValueError(complaint)


def conform(value: Any, schema: Any) -> None:
    """Refuse a value that has not the types and entries of the schema."""
    kind = schema if isinstance(schema, type) else type(schema)
    need(isinstance(value, kind) and (kind is not int or type(value) is int), f"expected {kind.__name__}")
    if isinstance(schema, dict | list):
        need(
            isinstance(schema, list) or "" in schema or value.keys() == schema.keys(),
            f"expected the entries {list(schema)[:9]}",
        )
        for key, item in value.items() if isinstance(schema, dict) else ((0, item) for item in value):
            conform(item, schema.get(key, schema.get("")) if isinstance(schema, dict) else schema[0])


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


def negations(row: Row) -> list[Row]:  # one of them holds where the row does not
    return [less(row[0], {}), less({}, row[0])][: 1 + row[1]]


def first_difference(a: Sequence[Form], b: Sequence[Form], dim: int) -> list[Row]:  # in entry dim a is smaller
    return [*map(equal, a[:dim], b[:dim]), less(a[dim], b[dim])]


class Program:
    """What a certificate is about, well-formed; `claims` gives name, what fills its system, axiom that would do too."""

    def __init__(self, document: Json) -> None:
        conform(document, SCHEMA)
        program, schedule = document["program"], document["schedule"]
        self.context, self.params, self.reassociate = program["context"], program["params"], program["reassociate"]
        self.statements, self.orders, self.tensors = program["statements"], schedule["orders"], program["tensors"]
        self.parallel, self.unordered, self.work = schedule["parallel"], schedule["unordered"], 0
        self.old_length = max((len(s["order"]) for s in self.statements), default=0)
        self.length = max((len(p["vector"]) for pieces in self.orders.values() for p in pieces), default=0)
        dims = [*self.parallel, *(u["dim"] for u in self.unordered)]
        need(all(0 <= d < self.length for d in dims), "a parallel or unordered dimension does not exist")
        need(all(t["dtype"] in (*FLOATS, *INTEGERS) for t in self.tensors.values()), "an unknown element type")
        for names in [[s["name"] for s in self.statements], *(s["iterators"] + self.params for s in self.statements)]:
            need(len(set(names)) == len(names) and all(n.isidentifier() for n in names), "a name is wrong or doubled")
        for access in (a for s in self.statements for a in s["accesses"]):
            need(len(access["subscripts"]) == self.tensors[access["tensor"]]["rank"], "a subscript is missing")
            known = access["kind"] in ("read", "write", "both") and access["combine"] in (None, "+", "*", "min", "max")
            need(known and (access["combine"] is None or access["kind"] == "both"), "an access is malformed")

    def spend(self, amount: int) -> None:
        self.work += amount
        need(self.work <= MAX_WORK, "the certificate takes too much work")

    def swap_axiom(self, s: Json, a: Json, t: Json, b: Json) -> str | None:
        """The axiom by which two combinations into a cell may change places; empty: none needed; None: they may not."""
        operator, dtype = a["combine"], self.tensors[a["tensor"]]["dtype"]
        if operator is None or operator != b["combine"]:
            return None
        if dtype in FLOATS:
            return "" if operator in CHOICES else f"reassociate({operator}, {dtype})" if self.reassociate else None
        low, high = INTEGERS[dtype]
        leaves, operators = ([*s["value"][k], *t["value"][k]] for k in ("leaves", "operators"))
        if operator in CHOICES:
            ranges = [(x, x) if type(x) is int else INTEGERS.get(x, (low, high + 1)) for x in leaves]
            return "" if all(low <= a and b <= high for a, b in ranges) and CHOICES.issuperset(operators) else None
        is_exact = all(type(x) is int or x in (*INTEGERS, "index") for x in leaves) and EXACT.issuperset(operators)
        return "" if is_exact and dtype != "bool" else None

    def claims(self) -> Iterator[tuple[str, Callable[[System], None], str | None]]:
        for s in self.statements:
            yield f"distinct {s['name']}", partial(System.distinct, s=s), None
            yield f"cover {s['name']}", partial(System.cover, s=s), None
        uses = [(s, k, a) for s in self.statements for k, a in enumerate(s["accesses"])]
        self.spend(len(uses) ** 2)
        for (s, j, a), (t, k, b) in ((u, v) for u in uses for v in uses if u[2]["tensor"] == v[2]["tensor"]):
            if a["kind"] != "read" or b["kind"] != "read":
                fill = partial(System.pair, s=s, a=a, t=t, b=b)
                yield f"pair {s['name']}.{j} {t['name']}.{k}", fill, self.swap_axiom(s, a, t, b)


class System:
    """Rows that all hold, and clauses of which one alternative (a list of rows) holds, about integer variables."""

    def __init__(self, program: Program) -> None:
        self.program, self.atoms, self.rows, self.clauses = (
            program,
            dict[str, str](),
            list[Row](),
            list[list[list[Row]]](),
        )
        self.one_of([self.condition(c, {p: p for p in program.params}) for c in program.context])

    def one_of(self, alternatives: Sequence[Sequence[Row]]) -> None:  # rows without variables decide at once
        kept: list[list[Row]] = []
        for rows in alternatives:
            constants = [(form.get("", 0), is_equality) for form, is_equality in rows if not form.keys() - {""}]
            if all(c == 0 if is_equality else c >= 0 for c, is_equality in constants):
                kept.append([row for row in rows if row[0].keys() - {""}])
        if len(kept) == 1:
            self.rows += kept[0]
        else:
            self.clauses.append(kept)

    def form(self, expression: Any, known: dict[str, str]) -> Form:
        need(isinstance(expression, list), "an expression is no list")
        self.program.spend(len(expression))
        terms = [(c, {known[a] if isinstance(a, str) else self.atom(known, *a): 1}) for c, a in expression[1:]]
        return combine([(expression[0], {"": 1}), *terms])

    def atom(self, known: dict[str, str], kind: Any, first: Any, *rest: Any) -> str:  # the variable for it
        need((kind, len(rest)) in (("floor", 1), ("if", 2)), f"unknown expression {str(kind)[:60]}")
        forms = [self.form(e, known) for e in (rest if kind == "if" else [first])]
        where = self.condition(first, known) if kind == "if" else []
        key = repr((kind, forms, where, rest[0] if kind == "floor" else None))
        if key in self.atoms:
            return self.atoms[key]
        name = self.atoms[key] = f"#{len(self.atoms)}"
        if kind == "if":
            elsewhere = [[n, equal({name: 1}, forms[1])] for row in where for n in negations(row)]
            self.one_of([[*where, equal({name: 1}, forms[0])], *elsewhere])
        else:
            need(rest[0] >= 1, "a divisor is not positive")
            left = combine([(1, forms[0]), (-rest[0], {name: 1})])
            self.rows += [(left, False), less(left, {"": rest[0]})]
        return name

    def condition(self, rows: Any, known: dict[str, str]) -> list[Row]:
        need(isinstance(rows, list) and all(sign in (">=", "=") for sign, _ in rows), "a condition is malformed")
        return [(self.form(e, known), sign == "=") for sign, e in rows]

    def instance(self, s: Json, role: str) -> dict[str, str]:  # let there be one; names -> variables
        known = {**{p: p for p in self.program.params}, **{i: role + i for i in s["iterators"]}}
        self.one_of([self.condition(c, known) for c in s["domain"]])
        return known

    def vector(self, expressions: list[Any], known: dict[str, str], length: int) -> list[Form]:
        return [self.form(e, known) for e in expressions] + [{}] * (length - len(expressions))

    def placed(self, s: Json, known: dict[str, str], role: str) -> list[Form]:  # its new vector, by some piece
        pieces = [(self.condition(p["where"], known), p["vector"]) for p in self.program.orders[s["name"]]]
        vectors = [self.vector(v, known, self.program.length) for _, v in pieces]
        columns = [[v[k] for v in vectors] for k in range(self.program.length)]
        entries = [c[0] if c and all(f == c[0] for f in c) else {f"{role}{k}": 1} for k, c in enumerate(columns)]
        self.one_of([[*where, *map(equal, entries, v)] for (where, _), v in zip(pieces, vectors, strict=True)])
        return entries

    def distinct(self, s: Json) -> None:
        x, y = self.instance(s, "0."), self.instance(s, "1.")
        self.one_of([[equal(self.form(e, x), self.form(e, y)) for e in s["order"]]])
        self.one_of([[less({x[i]: 1}, {y[i]: 1})] for i in s["iterators"]])

    def cover(self, s: Json) -> None:
        known = self.instance(s, "0.")
        for piece in self.program.orders[s["name"]]:
            self.one_of([[n] for row in self.condition(piece["where"], known) for n in negations(row)])

    def pair(self, s: Json, a: Json, t: Json, b: Json) -> None:
        program, x, y = self.program, self.instance(s, "0."), self.instance(t, "1.")
        program.spend((program.old_length + program.length) ** 2)
        cells = [(e, f) for e, f in zip(a["subscripts"], b["subscripts"], strict=True) if None not in (e, f)]
        self.one_of([[equal(self.form(e, x), self.form(f, y)) for e, f in cells]])
        p, q = self.vector(s["order"], x, program.old_length), self.vector(t["order"], y, program.old_length)
        same = [list(map(equal, p, q))] if program.statements.index(s) < program.statements.index(t) else []
        self.one_of([first_difference(p, q, k) for k in range(len(p))] + same)
        p, q = self.placed(s, x, "0."), self.placed(t, y, "1.")
        wrong = [first_difference(q, p, k) for k in range(len(p))] + [list(map(equal, p, q))]
        wrong += [first_difference(p, q, k) for k in program.parallel]
        for node in program.unordered:
            at = [[self.condition(c, m) for c in node["among"].get(u["name"], [])] for u, m in ((s, x), (t, y))]
            program.spend(len(at[0]) * len(at[1]) * len(p))
            wrong += [first_difference(p, q, node["dim"]) + c + d for c in at[0] for d in at[1]]
        self.one_of(wrong)

    def prove(self, steps: list[Any]) -> None:  # refuses what does not show that there is no integer solution
        goals: list[tuple[list[Row], list[Row]]] = [(self.rows, [])]
        for done, (kind, first, *rest) in enumerate(steps):
            need(0 < len(goals) <= len(steps) - done, "the proof has too many or too few steps")
            rows = [row for part in goals.pop() for row in part]
            self.program.spend(len(rows))
            if kind == "split":
                form = combine([(c, {str(v): 1}) for v, c in first])
                goals += [(rows, [less({"": rest[0]}, form)]), (rows, [less(form, {"": rest[0] + 1})])]
            elif kind == "or":
                goals += [(rows, alternative) for alternative in reversed(self.clauses[first])]
            else:
                need(kind in ("farkas", "cut"), f"{str(kind)[:20]}: {str(first)[:200]}")
                need(all(m >= 0 or rows[k][1] for k, m in first), "a multiplier is negative")
                total = combine([(m, rows[k][0]) for k, m in first])
                if kind == "farkas":
                    need(total.get("", 0) < 0 and len(total) == 1, "a combination is no contradiction")
                    continue
                need(rest[0] >= 1 and all(c % rest[0] == 0 for v, c in total.items() if v), "a cut does not divide")
                goals.append((rows, [({v: c // rest[0] for v, c in total.items()}, False)]))
        need(not goals, "the proof has too few steps")


def read(data: bytes) -> Any:
    """The parsed certificate, without floats and very long numbers; ValueError or RecursionError when it is none."""
    whole, once = (lambda d: int(d) if len(d) <= MAX_DIGITS else None), (lambda p: len(dict(p)) == len(p) and dict(p))
    none = dict[str, None]().get  # of any number
    document = json.loads(data, parse_int=whole, parse_float=none, parse_constant=none, object_pairs_hook=once)
    need(isinstance(document, dict) and document.get("format") == FORMAT, f"no certificate of the format {FORMAT}")
    return document


def check(data: bytes) -> Json:
    """What is certified, by which axioms, and what is wrong (nothing, when it is accepted); raises as `read`."""
    document, axioms, shown, wrong = read(data), set[str](), list[str](), dict[str, str]()
    try:
        program, proofs = Program(document), dict(document["proofs"])
        for claim, fill, axiom in program.claims():
            program.spend(1)
            steps = proofs.pop(claim, [["open", "there is no proof"]])
            try:
                if axiom is None or steps != [["axiom", axiom]]:
                    system = System(program)
                    fill(system)
                    system.prove(steps)
                axioms.update([axiom] if axiom and steps == [["axiom", axiom]] else [])
                shown.append(claim)
            except WRONG as error:
                wrong[claim] = f"{type(error).__name__}: {error}"
        need(not proofs, f"proofs of what is no claim: {', '.join(proofs)[:200]}")
    except WRONG as error:
        wrong["certificate"] = f"{type(error).__name__}: {error}"
    pairs = [sum(claim.startswith("pair ") for claim in of) for of in (shown, wrong)]
    counts = {"claims": len(shown) + len(wrong), "pairs": sum(pairs), "certified_pairs": pairs[0]}
    return {"accepted": not wrong, **counts, "axioms": sorted(axioms), "refusals": wrong}


def main(path: str) -> int:
    """Exit status 0 when the certificate is accepted, 1 when it is refused, 2 when there is none to read."""
    try:
        with open(path, "rb") as file:
            report = check(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        print(f"unreadable: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report))
    return 0 if report["accepted"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
