"""Why a compiled program is as it is (line 10): each fusion, tiling, parallel loop and copy, done or not, with reasons.

    from polyopt.explain import explain, explanation_text

    print(explanation_text(explain(po.compile(scop, target="trn2", at={"N": 512}))))

Nothing is guessed: what was done is read from the schedule and the mapping, what could be done is asked of the judge of
schedules, and what forbids it is the smallest violated dependence.
"""

from polyopt.explain._explain import chosen_scop, explain, written_scop
from polyopt.explain._finding import KINDS, Explanation, Finding
from polyopt.explain._pictures import draw_findings, draw_witness, space_picture
from polyopt.explain._text import explanation_text

__all__ = [
    "KINDS",
    "Explanation",
    "Finding",
    "chosen_scop",
    "draw_findings",
    "draw_witness",
    "explain",
    "explanation_text",
    "space_picture",
    "written_scop",
]
