"""Score the findings of the labelled fixtures, by rule and mode: ``python -m benchmarks.score [CASE…]``.

Prints recall, precision and exact lines, then each label that is missed and each finding that is wrong. Exits with 1
when there is any. ``fixtures/labels.py`` says what a label may hold.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from fixtures.labels import CASES, MODES, RuleScore, Score, score


def main(names: list[str]) -> int:
    short = 0
    for mode in MODES:
        scores = {case: score(case, mode) for case in names or CASES}
        _print_table(mode, scores)
        for case, result in scores.items():
            for line in result.short:
                print(f"{case}: {line}")
                short += 1
        print()
    return 1 if short else 0


def _print_table(mode: str, scores: dict[str, Score]) -> None:
    rules: defaultdict[str, RuleScore] = defaultdict(RuleScore)
    for result in scores.values():
        for rule, rule_score in result.by_rule.items():
            rules[rule] += rule_score
            rules["all"] += rule_score
    print(f"{f'{len(scores)} cases, {mode}':26} {'recall':>14} {'precision':>14} {'exact lines':>14}")
    for rule in sorted(rules):
        t = rules[rule]
        shares = [_share(t.matched, t.labels), _share(t.right, t.findings), _share(t.exact, t.matched)]
        print(f"{rule:26} " + " ".join(f"{share:>14}" for share in shares))


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} {part / whole:4.0%}" if whole else "–"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
