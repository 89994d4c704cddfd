"""The law behind throughput over workers: the universal scalability law, and Amdahl's, which is part of it.

With X(n) calls a second at n workers, n / X(n) = (1 + alpha (n - 1) + beta n (n - 1)) / one: linear in three
coefficients that must not be negative, and so found by least squares over the few subsets of them, without a
starting point. Relative errors count, as times have a spread in proportion to them. Three counts give
Amdahl's law; four, with one coefficient more than it and no fewer points, the other, if its third
coefficient is worth having. (N. J. Gunther, "A Simple Capacity Model of Massively Parallel Transaction
Systems", 1993.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from fairlead.lab.analysis.arrays import np
from fairlead.record.advice import Curve, Kind

FAR = 10_000
"""A peak beyond so many workers is none."""
ROUGH = 0.1
"""Points that lie further from the law than this, in the root of the mean square, have no law."""
_WORTH = 0.5
"""The third coefficient is kept if it takes away so much of the squares that are left over."""


def curve(kind: Kind, points: Mapping[int, float]) -> Curve:
    """The curve through calls a second by workers."""
    ordered = tuple(sorted(points.items()))
    if len(ordered) < 3:
        return Curve(kind=kind, points=ordered, law="none")
    n = np.array([count for count, _ in ordered], dtype=float)
    x = np.array([rate for _, rate in ordered])
    columns = np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1)
    amdahl, left = _least(columns[:, :2], n / x)
    if amdahl is None:
        return Curve(kind=kind, points=ordered, law="none")
    one, alpha, beta = 1 / amdahl[0], amdahl[1] / amdahl[0], 0.0
    if len(ordered) >= 4:
        usl, rest = _least(columns, n / x)
        if usl is not None and usl[2] > 0 and rest < left * _WORTH:
            one, alpha, beta = 1 / usl[0], usl[1] / usl[0], usl[2] / usl[0]
            left = rest
    if left > len(ordered) * ROUGH**2:
        return Curve(kind=kind, points=ordered, law="none")
    peak = math.sqrt(max(0.0, 1 - alpha) / beta) if beta > 0 else math.inf
    best = float(peak) if peak < FAR else None
    if best is not None:
        limit = best / (1 + alpha * (best - 1) + beta * best * (best - 1)) if best >= 1 else 1.0
    else:
        limit = 1 / alpha if alpha > 1 / FAR else None
    return Curve(
        kind=kind,
        points=ordered,
        law="usl" if beta > 0 else "amdahl",
        one=float(one),
        alpha=float(alpha),
        beta=float(beta),
        best_workers=best,
        limit=None if limit is None else float(limit),
    )


def _least(columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray | None, float]:
    """The coefficients, none negative and the first above zero, of the least relative squares, and those."""
    best, least = None, math.inf
    weighted = columns / values[:, None]
    for size in range(1, columns.shape[1] + 1):
        for used in itertools.combinations(range(columns.shape[1]), size):
            if 0 not in used:
                continue
            solved = np.linalg.lstsq(weighted[:, used], np.ones(len(values)), rcond=None)[0]
            left = float(((weighted[:, used] @ solved - 1) ** 2).sum())
            if (solved >= 0).all() and solved[0] > 0 and left < least:
                best, least = np.zeros(columns.shape[1]), left
                best[list(used)] = solved
    return best, least
