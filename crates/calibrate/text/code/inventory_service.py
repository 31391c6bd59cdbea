"""HTTP service that tracks spare parts for a bicycle workshop.

Parts live in bins, bins live in one of several workshops.  Quantities never
change by assignment: every change is an entry in an append-only ledger, and the
stock on hand is the sum of those entries.  That way a stocktake that turns out
wrong can be explained, and reverted, months later.

Endpoints
---------
``GET  /parts``                  list parts, optionally filtered and paged
``POST /parts``                  register a new part number
``GET  /parts/<sku>``            one part with its stock per workshop
``POST /parts/<sku>/movements``  receive, consume or correct stock
``GET  /reorder``                parts at or below their reorder point
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Iterator

from flask import Blueprint, Flask, current_app, g, jsonify, request
from werkzeug.exceptions import BadRequest, Conflict, HTTPException, NotFound

log = logging.getLogger("workshop.inventory")
api = Blueprint("inventory", __name__)

SKU_PATTERN = re.compile(r"[A-Z]{2,4}-\d{3,6}(?:-[A-Z0-9]{1,4})?")
MAX_PAGE_SIZE = 200

SCHEMA = """
CREATE TABLE IF NOT EXISTS part (
    sku           TEXT PRIMARY KEY,
    title         TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 120),
    unit_cost     TEXT NOT NULL,
    reorder_point INTEGER NOT NULL DEFAULT 0 CHECK (reorder_point >= 0),
    created_at    TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS movement (
    id         TEXT PRIMARY KEY,
    sku        TEXT NOT NULL REFERENCES part (sku),
    workshop   TEXT NOT NULL,
    delta      INTEGER NOT NULL CHECK (delta <> 0),
    reason     TEXT NOT NULL CHECK (reason IN ('receive', 'consume', 'correct')),
    note       TEXT NOT NULL DEFAULT '',
    booked_at  TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS movement_by_part ON movement (sku, workshop);
"""


class InsufficientStock(Conflict):
    """Raised when a movement would take a workshop below zero."""

    def __init__(self, sku: str, workshop: str, on_hand: int, wanted: int) -> None:
        super().__init__(f"{workshop} holds {on_hand} of {sku}, cannot remove {wanted}")
        self.on_hand = on_hand


@dataclass(frozen=True, slots=True)
class Part:
    sku: str
    title: str
    unit_cost: Decimal
    reorder_point: int
    created_at: str

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> Part:
        return cls(
            sku=row["sku"],
            title=row["title"],
            unit_cost=Decimal(row["unit_cost"]),
            reorder_point=row["reorder_point"],
            created_at=row["created_at"],
        )

    def to_json(self) -> dict[str, Any]:
        # Money travels as a string; a float would turn 0.10 into a surprise.
        return asdict(self) | {"unit_cost": str(self.unit_cost)}


def utc_now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def database() -> sqlite3.Connection:
    """Return the connection that belongs to the current request."""
    if "db" not in g:
        g.db = sqlite3.connect(current_app.config["DATABASE"], isolation_level=None)
        g.db.row_factory = sqlite3.Row
        g.db.execute("PRAGMA foreign_keys = ON")
        g.db.execute("PRAGMA busy_timeout = 3000")
    return g.db


def close_database(_error: BaseException | None = None) -> None:
    connection = g.pop("db", None)
    if connection is not None:
        connection.close()


class write_transaction:
    """``BEGIN IMMEDIATE`` so that two consumers cannot both see the last item."""

    def __enter__(self) -> sqlite3.Connection:
        self.db = database()
        self.db.execute("BEGIN IMMEDIATE")
        return self.db

    def __exit__(self, exc_type, exc, tb) -> None:
        self.db.execute("COMMIT" if exc_type is None else "ROLLBACK")


def json_body(*required: str) -> dict[str, Any]:
    body = request.get_json(silent=True)
    if not isinstance(body, dict):
        raise BadRequest("the request body must be a JSON object")
    missing = sorted(set(required) - body.keys())
    if missing:
        raise BadRequest("missing fields: " + ", ".join(missing))
    return body


def parse_money(value: Any) -> Decimal:
    if not isinstance(value, str):
        raise BadRequest("unit_cost must be a decimal string such as \"12.50\"")
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise BadRequest(f"not a decimal number: {value!r}") from None
    if not amount.is_finite() or amount < 0:
        raise BadRequest("unit_cost must be zero or more")
    return amount.quantize(Decimal("0.01"))


def parse_count(name: str, value: Any, *, minimum: int) -> int:
    # bool is a subclass of int, and `true` is not a quantity.
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise BadRequest(f"{name} must be an integer of at least {minimum}")
    return value


def load_part(sku: str) -> Part:
    row = database().execute("SELECT * FROM part WHERE sku = ?", (sku,)).fetchone()
    if row is None:
        raise NotFound(f"no part has the number {sku}")
    return Part.from_row(row)


def stock_by_workshop(sku: str) -> dict[str, int]:
    rows = database().execute(
        """SELECT workshop, SUM(delta) AS on_hand
             FROM movement
            WHERE sku = ?
         GROUP BY workshop
         ORDER BY workshop""",
        (sku,),
    )
    return {row["workshop"]: row["on_hand"] for row in rows}


def escape_like(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


@api.get("/parts")
def list_parts():
    query = request.args.get("q", "").strip()
    after = request.args.get("after", "")
    limit = request.args.get("limit", 50, type=int)
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise BadRequest(f"limit must be between 1 and {MAX_PAGE_SIZE}")

    # Keyset paging: ask for one row more than wanted to learn whether a next
    # page exists, without counting the whole table.
    rows = database().execute(
        r"""SELECT * FROM part
             WHERE sku > :after
               AND (:q = '' OR title LIKE '%' || :like || '%' ESCAPE '\')
          ORDER BY sku
             LIMIT :limit""",
        {"after": after, "q": query, "like": escape_like(query), "limit": limit + 1},
    ).fetchall()

    parts = [Part.from_row(row) for row in rows[:limit]]
    return jsonify(
        items=[part.to_json() for part in parts],
        next=parts[-1].sku if len(rows) > limit else None,
    )


@api.post("/parts")
def create_part():
    body = json_body("sku", "title", "unit_cost")
    sku = str(body["sku"]).upper()
    if not SKU_PATTERN.fullmatch(sku):
        raise BadRequest(f"{sku!r} does not look like a part number")

    part = Part(
        sku=sku,
        title=str(body["title"]).strip(),
        unit_cost=parse_money(body["unit_cost"]),
        reorder_point=parse_count("reorder_point", body.get("reorder_point", 0), minimum=0),
        created_at=utc_now(),
    )
    if not 1 <= len(part.title) <= 120:
        raise BadRequest("title must have 1 to 120 characters")

    try:
        with write_transaction() as db:
            db.execute(
                "INSERT INTO part VALUES (:sku, :title, :unit_cost, :reorder_point, :created_at)",
                part.to_json(),
            )
    except sqlite3.IntegrityError:
        raise Conflict(f"{sku} is already registered") from None

    log.info("registered %s (%s)", part.sku, part.title)
    return jsonify(part.to_json()), 201, {"Location": f"/parts/{part.sku}"}


@api.get("/parts/<sku>")
def show_part(sku: str):
    part = load_part(sku.upper())
    if "brief" in request.args:
        return jsonify(part.to_json())
    stock = stock_by_workshop(part.sku)
    total = sum(stock.values())
    return jsonify(
        **part.to_json(),
        stock=stock,
        on_hand=total,
        stock_value=str(part.unit_cost * total),
    )


@api.post("/parts/<sku>/movements")
def book_movement(sku: str):
    body = json_body("workshop", "quantity", "reason")
    part = load_part(sku.upper())
    workshop = str(body["workshop"]).strip().lower()
    if not workshop:
        raise BadRequest("workshop must not be empty")

    match body["reason"]:
        case "receive":
            delta = parse_count("quantity", body["quantity"], minimum=1)
        case "consume":
            delta = -parse_count("quantity", body["quantity"], minimum=1)
        case "correct":
            # A correction states what was counted; the ledger stores the gap.
            counted = parse_count("quantity", body["quantity"], minimum=0)
            delta = None
        case other:
            raise BadRequest(f"unknown reason {other!r}")

    # Clients that retry after a timeout send the same key and get one booking.
    movement_id = request.headers.get("Idempotency-Key") or str(uuid.uuid4())

    with write_transaction() as db:
        if db.execute("SELECT 1 FROM movement WHERE id = ?", (movement_id,)).fetchone():
            return jsonify(id=movement_id, stock=stock_by_workshop(part.sku)), 200

        on_hand = stock_by_workshop(part.sku).get(workshop, 0)
        if delta is None:
            delta = counted - on_hand
            if delta == 0:
                return jsonify(id=None, stock=stock_by_workshop(part.sku)), 200
        if on_hand + delta < 0:
            raise InsufficientStock(part.sku, workshop, on_hand, -delta)

        db.execute(
            "INSERT INTO movement VALUES (?, ?, ?, ?, ?, ?, ?)",
            (movement_id, part.sku, workshop, delta, body["reason"],
             str(body.get("note", ""))[:500], utc_now()),
        )
        stock = stock_by_workshop(part.sku)

    log.info("%s %+d at %s (%s)", part.sku, delta, workshop, body["reason"])
    return jsonify(id=movement_id, stock=stock), 201


def reorder_candidates() -> Iterator[dict[str, Any]]:
    rows = database().execute(
        """SELECT p.*, COALESCE(SUM(m.delta), 0) AS on_hand
             FROM part AS p
        LEFT JOIN movement AS m ON m.sku = p.sku
         GROUP BY p.sku
           HAVING on_hand <= p.reorder_point
         ORDER BY on_hand - p.reorder_point, p.sku"""
    )
    for row in rows:
        part = Part.from_row(row)
        yield {
            "sku": part.sku,
            "title": part.title,
            "on_hand": row["on_hand"],
            "suggested": max(1, 2 * part.reorder_point - row["on_hand"]),
        }


@api.get("/reorder")
def reorder_list():
    return jsonify(items=list(reorder_candidates()))


def render_http_error(error: HTTPException):
    return jsonify(error=error.name, detail=error.description), error.code


def create_app(database_path: str | None = None) -> Flask:
    app = Flask(__name__)
    app.config["DATABASE"] = database_path or os.environ.get("INVENTORY_DB", "inventory.sqlite3")
    app.register_blueprint(api)
    app.register_error_handler(HTTPException, render_http_error)
    app.teardown_appcontext(close_database)
    with app.app_context():
        database().executescript(SCHEMA)
    return app


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    create_app().run(port=int(os.environ.get("PORT", "8080")))
