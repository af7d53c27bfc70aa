#!/usr/bin/env python3
"""Golden figures for crates/judge: quantiles from numpy, t and binomial quantiles from scipy.

Usage: python3 judge_golden.py OUT_FOLDER   (needs numpy and scipy; OUT_FOLDER is crates/judge/tests/golden)
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats


def dump(path, data):
    path.write_text(json.dumps(data, indent=None, separators=(",", ":")) + "\n")


def quantiles():
    rng = np.random.default_rng(20261115)
    cases = []
    for n in [1, 2, 3, 7, 64, 129, 130, 700]:
        samples = np.rint(rng.lognormal(mean=15.6, sigma=0.2, size=n)).astype(np.int64)
        if n == 129:
            samples = samples // 200_000 * 200_000  # ties, as a coarse clock makes them
        case = {
            "samples": samples.tolist(),
            "mean": float(np.mean(samples)),
            "sd": float(np.std(samples, ddof=1)) if n > 1 else 0.0,
            "q": [[q, float(np.quantile(samples, q, method="linear"))] for q in [0, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1]],
        }
        cases.append(case)
    return {"cases": cases}


def student():
    degrees = list(range(1, 41)) + [50, 60, 99, 100, 250, 1000, 100000]
    return {"t975": [[df, float(stats.t.ppf(0.975, df))] for df in degrees]}


def median_ranks():
    """The largest rank l (from 1) for which [x(l), x(n+1-l)] holds the median with at least 95 %."""
    rows = []
    for n in list(range(6, 201)) + [500, 662, 1000, 10007]:
        best = 1
        for rank in range(1, n // 2 + 1):
            if 1 - 2 * stats.binom.cdf(rank - 1, n, 0.5) >= 0.95:
                best = rank
            else:
                break
        rows.append([n, best])
    return {"lower_rank": rows}


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    dump(out / "quantiles.json", quantiles())
    dump(out / "student.json", student())
    dump(out / "median_ranks.json", median_ranks())
