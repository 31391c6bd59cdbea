"""Runs cases, and prints a line for each."""

import traceback


def run(cases, only=""):
    """Runs the cases whose names contain `only`; returns whether all of them pass."""
    failures = passed = 0
    for case in cases:
        if only not in case.__name__:
            continue
        try:
            outcome = case()
            passed += 1
            print(f"{case.__name__}: {outcome or 'ok'}", flush=True)
        except Exception as fault:
            failures += 1
            at = traceback.extract_tb(fault.__traceback__)[-1].lineno
            print(f"{case.__name__}: FAILED (line {at}): {fault}", flush=True)
    print(f"{passed} cases passed, {failures} failed")
    return failures == 0
