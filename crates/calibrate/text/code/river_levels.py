#!/usr/bin/env python3
"""Summarise water levels of river gauges: monthly means, floods, and a forecast for tomorrow."""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
import pandas as pd


def read_levels(path, station=None):
    """Read a CSV file with the columns time, station, level_cm.

    Levels below zero and jumps of more than two metres within an hour are measurement errors
    and become missing values.
    """
    frame = pd.read_csv(path, parse_dates=["time"], dtype={"station": "category"})
    missing = {"time", "station", "level_cm"} - set(frame.columns)
    if missing:
        raise SystemExit(f"{path}: missing columns: {', '.join(sorted(missing))}")
    if station is not None:
        frame = frame[frame["station"] == station]
        if frame.empty:
            raise SystemExit(f"{path}: no measurements of station {station!r}")
    frame = frame.sort_values(["station", "time"])
    frame.loc[frame["level_cm"] < 0, "level_cm"] = np.nan
    jump = frame.groupby("station", observed=True)["level_cm"].diff().abs()
    hours = frame.groupby("station", observed=True)["time"].diff().dt.total_seconds() / 3600
    frame.loc[(jump > 200) & (hours <= 1), "level_cm"] = np.nan
    return frame.reset_index(drop=True)


def monthly(frame):
    by_month = frame.assign(month=frame["time"].dt.to_period("M"))
    table = by_month.pivot_table(index="month", columns="station", values="level_cm", aggfunc="mean", observed=True)
    return table.round(1)


def floods(levels, threshold, gap="12h"):
    """Yield start, end and peak of each period above the threshold.

    Periods with less than `gap` between them are one flood.
    """
    above = levels[levels["level_cm"] > threshold]
    if above.empty:
        return
    breaks = above["time"].diff() > pd.Timedelta(gap)
    for _, flood in above.groupby(breaks.cumsum()):
        yield flood["time"].iloc[0], flood["time"].iloc[-1], flood["level_cm"].max()


def forecast(series, lags=(1, 2, 3, 7), ridge=1.0):
    """Predict the next daily mean by a ridge regression on earlier days."""
    daily = series.resample("D").mean().interpolate(limit=3).dropna()
    most = max(lags)
    if len(daily) < 3 * most:
        return None
    values = daily.to_numpy()
    rows = np.column_stack([values[most - lag : len(values) - lag] for lag in lags])
    target = values[most:]
    mean, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    x = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    penalty = ridge * np.eye(x.shape[1])
    penalty[-1, -1] = 0.0
    weights = np.linalg.solve(x.T @ x + penalty, x.T @ target)
    residual = target - x @ weights
    latest = np.array([values[-lag] for lag in lags])
    next_day = np.append((latest - mean) / scale, 1.0) @ weights
    return float(next_day), float(residual.std())


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--station")
    parser.add_argument("--flood", type=float, default=350.0, metavar="CM", help="flood level (default: %(default)s)")
    parser.add_argument("--csv", action="store_true", help="write the monthly table as CSV")
    args = parser.parse_args(argv)

    frame = read_levels(args.file, args.station)
    table = monthly(frame)
    if args.csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(["month", *table.columns])
        writer.writerows([str(month), *row] for month, row in zip(table.index, table.to_numpy()))
        return 0
    print(table.to_string(), end="\n\n")
    for station, levels in frame.groupby("station", observed=True):
        for start, end, peak in floods(levels, args.flood):
            hours = (end - start).total_seconds() / 3600
            print(f"{station}: flood from {start:%d %B %Y}, {hours:.0f} hours, peak {peak:.0f} cm")
        series = levels.set_index("time")["level_cm"]
        result = forecast(series)
        if result is None:
            print(f"{station}: too few days for a forecast")
        else:
            print(f"{station}: tomorrow {result[0]:.0f} ± {2 * result[1]:.0f} cm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
