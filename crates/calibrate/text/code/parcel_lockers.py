"""Assign parcels to lockers, and remind people who do not collect them.

Lockers have sizes; a parcel fits into a locker of its size or a larger one. The station
prefers the smallest free locker that fits, so that large ones stay free for large parcels.
"""

from __future__ import annotations

import enum
import heapq
import logging
import secrets
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

log = logging.getLogger(__name__)

HOLD_FOR = timedelta(days=3)
REMINDERS = (timedelta(hours=24), timedelta(hours=60))


class Size(enum.IntEnum):
    SMALL = 1
    MEDIUM = 2
    LARGE = 3


class StationFull(Exception):
    """No locker of a sufficient size is free."""

    def __init__(self, size: Size) -> None:
        super().__init__(f"no free locker for a {size.name.lower()} parcel")
        self.size = size


@dataclass(frozen=True)
class Parcel:
    tracking: str
    recipient: str
    size: Size


@dataclass
class Deposit:
    parcel: Parcel
    locker: int
    code: str
    placed: datetime
    reminded: int = 0

    @property
    def expires(self) -> datetime:
        return self.placed + HOLD_FOR

    def due_reminders(self, now: datetime) -> int:
        """Number of reminders that should have been sent by now."""
        return sum(now - self.placed >= after for after in REMINDERS)


@dataclass
class Station:
    name: str
    sizes: dict[int, Size]
    deposits: dict[int, Deposit] = field(default_factory=dict)
    _free: dict[Size, list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._free = defaultdict(list)
        for number, size in self.sizes.items():
            if number not in self.deposits:
                heapq.heappush(self._free[size], number)

    def free(self) -> dict[Size, int]:
        return {size: len(self._free[size]) for size in Size}

    def place(self, parcel: Parcel, now: datetime) -> Deposit:
        for size in Size:
            if size >= parcel.size and self._free[size]:
                number = heapq.heappop(self._free[size])
                break
        else:
            raise StationFull(parcel.size)
        code = f"{secrets.randbelow(10**6):06d}"
        deposit = Deposit(parcel, number, code, now)
        self.deposits[number] = deposit
        log.info("%s: %s placed in locker %d", self.name, parcel.tracking, number)
        return deposit

    def collect(self, number: int, code: str) -> Parcel:
        deposit = self.deposits.get(number)
        if deposit is None:
            raise KeyError(f"locker {number} is empty")
        if not secrets.compare_digest(deposit.code, code):
            raise PermissionError("wrong code")
        return self._release(number)

    def _release(self, number: int) -> Parcel:
        deposit = self.deposits.pop(number)
        heapq.heappush(self._free[self.sizes[number]], number)
        return deposit.parcel

    def sweep(self, now: datetime, notify) -> list[Parcel]:
        """Send reminders, and return the parcels whose time is over."""
        expired = []
        for number, deposit in sorted(self.deposits.items()):
            if now >= deposit.expires:
                expired.append(number)
                continue
            due = deposit.due_reminders(now)
            if due > deposit.reminded:
                left = deposit.expires - now
                hours = int(left.total_seconds() // 3600)
                notify(deposit.parcel.recipient, f"Your parcel waits {hours} more hours at {self.name}.")
                deposit.reminded = due
        return [self._release(number) for number in expired]


def utilisation(history: list[tuple[datetime, datetime]], start: datetime, end: datetime) -> float:
    """Share of a period in which a locker was occupied.

    >>> day = datetime(2024, 5, 1)
    >>> utilisation([(day, day + timedelta(hours=6))], day, day + timedelta(hours=24))
    0.25
    """
    if end <= start:
        raise ValueError("the period is empty")
    occupied = timedelta()
    for begin, finish in history:
        overlap = min(finish, end) - max(begin, start)
        occupied += max(overlap, timedelta())
    return occupied / (end - start)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    station = Station("Canal Street", {1: Size.SMALL, 2: Size.SMALL, 3: Size.LARGE})
    noon = datetime(2024, 5, 1, 12)
    first = station.place(Parcel("RX-1009", "mira@example.org", Size.SMALL), noon)
    station.place(Parcel("RX-1010", "otis@example.org", Size.MEDIUM), noon)
    print(station.free())
    try:
        station.place(Parcel("RX-1011", "lena@example.org", Size.LARGE), noon)
    except StationFull as full:
        print("sorted out:", full)
    for hours in (25, 61, 73):
        later = noon + timedelta(hours=hours)
        returned = station.sweep(later, notify=lambda to, text: print(f"to {to}: {text}"))
        print(f"after {hours} h:", [parcel.tracking for parcel in returned])
