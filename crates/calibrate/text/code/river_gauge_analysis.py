#!/usr/bin/env python3
# %% [markdown]
# # Low flows and floods at one river gauge
#
# Input: a CSV file of 15-minute readings (`time`, `stage_m`, `quality`), plus a
# handful of manual discharge measurements. Output: a rating curve, a clean daily
# series, flood frequencies, the baseflow share and a seasonal trend.

# %%
from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

RNG = np.random.default_rng(20_240_317)
EULER_GAMMA = 0.5772156649015329

# The hydrological year starts in October in much of the northern hemisphere, so
# that a winter's snow and the melt it feeds fall into the same year.
WATER_YEAR_START = 10


# %%
def read_stage(path: Path) -> pd.Series:
    """Load raw readings and return stage in metres on a regular UTC grid."""
    raw = pd.read_csv(
        path,
        usecols=["time", "stage_m", "quality"],
        dtype={"stage_m": "float64", "quality": "category"},
        parse_dates=["time"],
        na_values=["", "---", "-9999"],
    )
    raw["time"] = pd.to_datetime(raw["time"], utc=True)
    raw = raw.drop_duplicates("time", keep="last").set_index("time").sort_index()

    stage = raw["stage_m"].where(raw["quality"].isin(["good", "estimated"]))
    stage = despike(stage)

    # Bridge gaps of at most two hours; anything longer stays missing.
    grid = stage.resample("15min").mean()
    return grid.interpolate("time", limit=8, limit_area="inside").rename("stage")


def despike(series: pd.Series, window: int = 13, threshold: float = 6.0) -> pd.Series:
    """Blank readings that sit far from the rolling median.

    The distance is measured in robust standard deviations (1.4826 times the
    median absolute deviation). A floor of one centimetre keeps the test from
    firing on quiet summer nights when the deviation is practically nil.
    """
    center = series.rolling(window, center=True, min_periods=5).median()
    mad = (series - center).abs().rolling(window, center=True, min_periods=5).median()
    limit = threshold * np.maximum(1.4826 * mad, 0.01)
    return series.mask((series - center).abs() > limit)


# %% [markdown]
# ## Rating curve
#
# Discharge follows stage as $Q = a (h - h_0)^b$. For a fixed $h_0$ the logarithm
# makes this a straight line, so we scan $h_0$ and solve the line in closed form.

# %%
class Rating(NamedTuple):
    a: float
    b: float
    h0: float
    rmse_log: float

    def discharge(self, stage):
        head = np.clip(np.asarray(stage, dtype=float) - self.h0, 0.0, None)
        return self.a * head**self.b

    def __str__(self) -> str:
        return f"Q = {self.a:.2f} * (h - {self.h0:.3f})^{self.b:.3f}  (log-rmse {self.rmse_log:.3f})"


def fit_rating(stage: np.ndarray, flow: np.ndarray, steps: int = 400) -> Rating:
    stage, flow = np.asarray(stage, float), np.asarray(flow, float)
    if stage.shape != flow.shape or stage.size < 4:
        raise ValueError("need at least four paired measurements")
    if (flow <= 0).any():
        raise ValueError("measurements of zero flow carry no information on the exponent")

    span = np.ptp(stage)
    candidates = np.linspace(stage.min() - span, stage.min() - 1e-3, steps)
    y = np.log(flow)

    # One row per candidate: simple regression of log(flow) on log(head).
    x = np.log(stage[None, :] - candidates[:, None])
    xc = x - x.mean(axis=1, keepdims=True)
    slope = (xc @ (y - y.mean())) / np.einsum("ij,ij->i", xc, xc)
    intercept = y.mean() - slope * x.mean(axis=1)
    residual = y[None, :] - intercept[:, None] - slope[:, None] * x
    rmse = np.sqrt(np.mean(residual**2, axis=1))

    # A natural section rarely has an exponent outside this range.
    rmse[(slope < 1.2) | (slope > 3.5)] = np.inf
    best = int(np.argmin(rmse))
    if not np.isfinite(rmse[best]):
        raise ValueError("no plausible exponent; check the datum of the measurements")
    return Rating(float(np.exp(intercept[best])), float(slope[best]),
                  float(candidates[best]), float(rmse[best]))


# %%
def daily_flow(stage: pd.Series, rating: Rating, min_coverage: float = 0.8) -> pd.Series:
    """Daily mean discharge; days with too few readings become missing."""
    flow = pd.Series(rating.discharge(stage), index=stage.index, name="flow")
    groups = flow.resample("1D")
    enough = groups.count() >= min_coverage * 96
    return groups.mean().where(enough)


def water_year(index: pd.DatetimeIndex) -> pd.Index:
    return index.year + (index.month >= WATER_YEAR_START).astype(int)


def baseflow(flow: pd.Series, alpha: float = 0.925, passes: int = 3) -> pd.Series:
    """Separate slow groundwater flow with the Lyne-Hollick recursive filter.

    The filter runs forward, backward and forward again, which cancels the phase
    shift that a single pass leaves behind. Each pass works on the output of the
    one before it.
    """
    values = flow.interpolate(limit_direction="both").to_numpy(copy=True)
    for number in range(passes):
        sequence = values if number % 2 == 0 else values[::-1]
        slow = np.empty_like(sequence)
        quick = 0.0
        slow[0] = sequence[0]
        for i in range(1, sequence.size):
            quick = alpha * quick + 0.5 * (1 + alpha) * (sequence[i] - sequence[i - 1])
            quick = max(quick, 0.0)
            slow[i] = min(sequence[i] - quick, sequence[i])
        values = slow if number % 2 == 0 else slow[::-1].copy()
    return pd.Series(values, index=flow.index, name="baseflow").clip(lower=0)


# %% [markdown]
# ## Floods
#
# Annual maxima, Gumbel distribution, L-moments. The confidence band comes from a
# parametric bootstrap: refit on synthetic records as long as the real one.

# %%
def gumbel_lmoments(sample: np.ndarray) -> tuple[float, float]:
    x = np.sort(np.asarray(sample, float))
    n = x.size
    b0 = x.mean()
    b1 = np.sum(np.arange(n) * x) / (n * (n - 1))
    scale = (2 * b1 - b0) / np.log(2)
    return b0 - EULER_GAMMA * scale, scale


def gumbel_quantile(location, scale, return_period):
    return location - scale * np.log(-np.log1p(-1.0 / np.asarray(return_period, float)))


def flood_table(annual_max: pd.Series, periods=(2, 5, 10, 25, 50, 100),
                replicas: int = 2_000) -> pd.DataFrame:
    sample = annual_max.dropna().to_numpy()
    if sample.size < 10:
        raise ValueError(f"{sample.size} years are too few for a flood frequency")
    location, scale = gumbel_lmoments(sample)

    uniform = RNG.random((replicas, sample.size))
    synthetic = location - scale * np.log(-np.log(uniform))
    fits = np.apply_along_axis(gumbel_lmoments, 1, synthetic)
    draws = np.stack([gumbel_quantile(fits[:, 0], fits[:, 1], t) for t in periods], axis=1)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)

    return pd.DataFrame(
        {"flow": gumbel_quantile(location, scale, periods), "p05": low, "p95": high},
        index=pd.Index(periods, name="return_period"),
    )


# %% [markdown]
# ## Trend per calendar month
#
# Theil-Sen slopes with a seasonal Kendall test. Both shrug at outliers, and neither
# assumes a normal distribution, which river flow never has.

# %%
def seasonal_kendall(monthly: pd.Series) -> dict[str, float]:
    slopes: list[np.ndarray] = []
    score, variance = 0, 0.0
    for _, block in monthly.dropna().groupby(monthly.dropna().index.month):
        t = block.index.year.to_numpy(dtype=float)
        v = block.to_numpy()
        i, j = np.triu_indices(v.size, k=1)
        slopes.append((v[j] - v[i]) / (t[j] - t[i]))
        score += int(np.sign(v[j] - v[i]).sum())
        n = v.size
        variance += n * (n - 1) * (2 * n + 5) / 18

    # Continuity correction: the score moves in steps of two.
    z = 0.0 if score == 0 else (score - np.sign(score)) / np.sqrt(variance)
    return {"slope_per_year": float(np.median(np.concatenate(slopes))), "score": score, "z": float(z)}


# %%
def report(daily: pd.Series) -> pd.DataFrame:
    """One row per water year, complete years only."""
    frame = pd.DataFrame({"flow": daily, "base": baseflow(daily)})
    frame["year"] = water_year(frame.index)
    frame["low7"] = frame["flow"].rolling(7).mean()

    table = frame.groupby("year").agg(
        days=("flow", "count"),
        mean=("flow", "mean"),
        peak=("flow", "max"),
        low7=("low7", "min"),
        q95=("flow", lambda s: s.quantile(0.05)),
        base_share=("base", "sum"),
    )
    table["base_share"] /= frame.groupby("year")["flow"].sum()
    table["peak_date"] = (
        frame.dropna(subset="flow").groupby("year")["flow"].idxmax().dt.strftime("%d %b")
    )
    return table.loc[table["days"] >= 350]


def main(stage_csv: str, gaugings_csv: str) -> int:
    gaugings = pd.read_csv(gaugings_csv, comment="#")
    rating = fit_rating(gaugings["stage_m"].to_numpy(), gaugings["flow_m3s"].to_numpy())
    print(rating)

    stage = read_stage(Path(stage_csv))
    beyond = (stage > 1.5 * gaugings["stage_m"].max()).sum()
    if beyond:
        print(f"warning: {beyond} readings lie far above the highest gauging", file=sys.stderr)

    daily = daily_flow(stage, rating)
    years = report(daily)
    with pd.option_context("display.float_format", "{:.2f}".format, "display.width", 100):
        print(years, end="\n\n")
        try:
            print(flood_table(years["peak"]), end="\n\n")
        except ValueError as problem:
            print(f"no flood frequencies: {problem}")

    trend = seasonal_kendall(daily.resample("MS").mean())
    verdict = "significant" if abs(trend["z"]) > 1.96 else "not significant"
    print(f"trend {trend['slope_per_year']:+.3f} m³/s per year, z = {trend['z']:.2f} ({verdict})")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {Path(sys.argv[0]).name} STAGE.csv GAUGINGS.csv")
    sys.exit(main(*sys.argv[1:]))
