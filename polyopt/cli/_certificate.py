"""`polyopt verify-certificate`: does a certificate hold?"""

from __future__ import annotations

import click

from polyopt.cli._options import json_option
from polyopt.cli._output import print_json
from polyopt.errors import InputError

__all__ = ["verify_certificate"]


@click.command("verify-certificate")
@click.argument("file", type=click.Path(dir_okay=False))
@json_option
def verify_certificate(file: str, as_json: bool) -> int:
    """Check a certificate that `check --certificate FILE` wrote, by code that shares nothing with the judge.

    The checker is one file of 300 lines that needs Python alone: polyopt/verify/certificate.py.
    """
    from polyopt.verify import certificate

    try:
        with open(file, "rb") as opened:
            report = certificate.check(opened.read(certificate.MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"cannot read the certificate {file!r}: {error}",
            help="give a file that polyopt check --certificate wrote",
            id="certificate",
        ) from error
    if as_json:
        print_json(report)
    else:
        print(_text(report))
    return 0 if report["accepted"] else 1


def _text(report: dict[str, object]) -> str:
    refusals = report["refusals"]
    assert isinstance(refusals, dict)
    counts = f"{report['claims']} claims, {report['certified_pairs']} of {report['pairs']} pairs of accesses"
    lines = [f"{'accepted' if report['accepted'] else 'refused'}: {counts}"]
    lines += [f"{claim}: {why}" for claim, why in list(refusals.items())[:10]]
    axioms = report["axioms"]
    if isinstance(axioms, list) and axioms:
        lines.append(f"axioms: {', '.join(axioms)}")
    return "\n".join(lines)
