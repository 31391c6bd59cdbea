-- Bookings of a small chain of mountain hostels.
-- PostgreSQL 14 or later; btree_gist supplies the operator class for bed_id in the exclusion constraint.

BEGIN;

CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE SCHEMA IF NOT EXISTS hostel;
SET LOCAL search_path = hostel, public;

CREATE TYPE booking_state AS ENUM ('pending', 'confirmed', 'checked_in', 'left', 'cancelled', 'no_show');

CREATE TABLE house (
    house_id    smallint    GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text        NOT NULL UNIQUE,
    altitude_m  integer     NOT NULL CHECK (altitude_m BETWEEN 0 AND 4000),
    opens_on    date,
    closes_on   date,
    CHECK (closes_on > opens_on)
);

CREATE TABLE room (
    room_id     integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    house_id    smallint    NOT NULL REFERENCES house ON DELETE RESTRICT,
    label       text        NOT NULL,
    kind        text        NOT NULL CHECK (kind IN ('dormitory', 'family', 'private')),
    UNIQUE (house_id, label)
);

CREATE TABLE bed (
    bed_id      integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    room_id     integer     NOT NULL REFERENCES room ON DELETE CASCADE,
    position    text        NOT NULL DEFAULT 'single' CHECK (position IN ('single', 'lower', 'upper')),
    nightly     numeric(7,2) NOT NULL CHECK (nightly >= 0)
);

CREATE TABLE guest (
    guest_id    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    full_name   text        NOT NULL,
    email       text        NOT NULL,
    country     char(2)     NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
    member      boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX guest_email_key ON guest (lower(email));

CREATE TABLE booking (
    booking_id  bigint        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    guest_id    bigint        NOT NULL REFERENCES guest,
    bed_id      integer       NOT NULL REFERENCES bed,
    stay        daterange     NOT NULL,
    state       booking_state NOT NULL DEFAULT 'pending',
    price       numeric(9,2)  NOT NULL CHECK (price >= 0),
    booked_at   timestamptz   NOT NULL DEFAULT now(),
    CHECK (NOT isempty(stay) AND NOT lower_inf(stay) AND NOT upper_inf(stay)),
    -- Half-open ranges: whoever leaves on Tuesday does not collide with Tuesday's arrival.
    CONSTRAINT one_sleeper_per_bed
        EXCLUDE USING gist (bed_id WITH =, stay WITH &&)
        WHERE (state NOT IN ('cancelled', 'no_show'))
);

CREATE INDEX booking_guest_idx   ON booking (guest_id);
CREATE INDEX booking_arrival_idx ON booking (lower(stay)) WHERE state IN ('pending', 'confirmed');

COMMENT ON COLUMN booking.price IS 'Agreed total for the whole stay, after the member discount.';

CREATE FUNCTION quote(p_bed integer, p_stay daterange, p_member boolean)
RETURNS numeric
LANGUAGE sql STABLE
AS $$
    SELECT round(b.nightly * (upper(p_stay) - lower(p_stay))
                 * CASE WHEN p_member THEN 0.85 ELSE 1 END, 2)
    FROM   hostel.bed AS b
    WHERE  b.bed_id = p_bed;
$$;

CREATE FUNCTION forbid_resurrection() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state IN ('cancelled', 'left') AND NEW.state <> OLD.state THEN
        RAISE EXCEPTION 'booking % is closed (%)', OLD.booking_id, OLD.state
            USING HINT = 'Create a new booking instead.';
    END IF;
    RETURN NEW;
END;
$$;

CREATE TRIGGER booking_closed_is_closed
    BEFORE UPDATE OF state ON booking
    FOR EACH ROW EXECUTE FUNCTION forbid_resurrection();

CREATE VIEW occupied_night AS
SELECT bk.booking_id,
       r.house_id,
       bk.bed_id,
       n.night::date                                  AS night,
       bk.price / (upper(bk.stay) - lower(bk.stay))   AS revenue
FROM   booking AS bk
JOIN   bed     USING (bed_id)
JOIN   room    AS r USING (room_id)
CROSS  JOIN LATERAL generate_series(lower(bk.stay), upper(bk.stay) - 1, interval '1 day') AS n(night)
WHERE  bk.state IN ('confirmed', 'checked_in', 'left');

INSERT INTO house (name, altitude_m, opens_on, closes_on) VALUES
    ('Larkspur Hut',  1870, DATE '2025-06-07', DATE '2025-10-12'),
    ('Old Customs',    640, NULL, NULL),
    ('Marmot House',  2215, DATE '2025-06-28', DATE '2025-09-21');

INSERT INTO room (house_id, label, kind)
SELECT h.house_id, v.label, v.kind
FROM   (VALUES ('Larkspur Hut', 'Loft',  'dormitory'),
               ('Larkspur Hut', 'Stove', 'family'),
               ('Old Customs',  '1',     'private'),
               ('Marmot House', 'East',  'dormitory')) AS v(house, label, kind)
JOIN   house AS h ON h.name = v.house;

INSERT INTO bed (room_id, position, nightly)
SELECT room_id,
       CASE WHEN kind <> 'dormitory' THEN 'single' WHEN i % 2 = 0 THEN 'upper' ELSE 'lower' END,
       CASE kind WHEN 'dormitory' THEN 27.50 WHEN 'family' THEN 34 ELSE 58 END
FROM   room
CROSS  JOIN LATERAL generate_series(1, CASE kind WHEN 'dormitory' THEN 12 WHEN 'family' THEN 4 ELSE 1 END) AS i;

COMMIT;

SET search_path = hostel, public;

-- 1. Which beds are free for three nights from 14 August, cheapest first?
SELECT h.name, r.label, b.bed_id, b.position, quote(b.bed_id, w.stay, true) AS member_price
FROM   (SELECT daterange('2025-08-14', '2025-08-17') AS stay) AS w
CROSS  JOIN bed AS b
JOIN   room  AS r USING (room_id)
JOIN   house AS h USING (house_id)
WHERE  (h.opens_on IS NULL OR w.stay <@ daterange(h.opens_on, h.closes_on))
  AND  NOT EXISTS (
           SELECT 1
           FROM   booking AS x
           WHERE  x.bed_id = b.bed_id
             AND  x.stay && w.stay
             AND  x.state NOT IN ('cancelled', 'no_show'))
ORDER  BY member_price, h.name, b.bed_id;

-- 2. Occupancy by house and month, empty months included, with the change against the month before.
WITH capacity AS (
    SELECT house_id, count(*) AS beds
    FROM   bed JOIN room USING (room_id)
    GROUP  BY house_id
), calendar AS (
    SELECT m::date AS first_day, (m + interval '1 month')::date AS next_month
    FROM   generate_series(timestamp '2025-01-01', timestamp '2025-12-01', interval '1 month') AS m
), used AS (
    SELECT c.house_id, k.first_day, count(o.night) AS nights,
           c.beds * (k.next_month - k.first_day)   AS offered
    FROM   capacity AS c
    CROSS  JOIN calendar AS k
    LEFT   JOIN occupied_night AS o
           ON  o.house_id = c.house_id AND o.night >= k.first_day AND o.night < k.next_month
    GROUP  BY c.house_id, c.beds, k.first_day, k.next_month
)
SELECT h.name,
       to_char(first_day, 'Mon YYYY')               AS month,
       round(100.0 * nights / offered, 1)           AS pct,
       round(100.0 * (nights::numeric / offered
             - lag(nights::numeric / offered) OVER per_house), 1) AS delta
FROM   used JOIN house AS h USING (house_id)
WINDOW per_house AS (PARTITION BY house_id ORDER BY first_day)
ORDER  BY h.name, first_day;

-- 3. How early do people book, by country, and how often do they drop out?
SELECT g.country,
       count(*)                                                             AS bookings,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY lower(bk.stay) - bk.booked_at::date) AS median_lead_days,
       round(avg(upper(bk.stay) - lower(bk.stay)), 2)                       AS mean_nights,
       count(*) FILTER (WHERE bk.state = 'cancelled')                       AS cancelled,
       count(*) FILTER (WHERE bk.state = 'no_show')                         AS never_came
FROM   booking AS bk
JOIN   guest   AS g USING (guest_id)
GROUP  BY g.country
HAVING count(*) >= 5
ORDER  BY bookings DESC;

-- 4. Hikers who walked from one house to the next without a night elsewhere: chains found by gaps and islands.
WITH legs AS (
    SELECT bk.guest_id, r.house_id, lower(bk.stay) AS arrive, upper(bk.stay) AS depart,
           (lower(bk.stay) IS DISTINCT FROM lag(upper(bk.stay)) OVER w)::int AS starts_tour
    FROM   booking AS bk
    JOIN   bed  USING (bed_id)
    JOIN   room AS r USING (room_id)
    WHERE  bk.state = 'left'
    WINDOW w AS (PARTITION BY bk.guest_id ORDER BY lower(bk.stay))
), tours AS (
    SELECT *, sum(starts_tour) OVER (PARTITION BY guest_id ORDER BY arrive) AS tour
    FROM   legs
)
SELECT guest_id, min(arrive) AS from_day, max(depart) AS to_day,
       string_agg(h.name, ' → ' ORDER BY arrive) AS route
FROM   tours JOIN house AS h USING (house_id)
GROUP  BY guest_id, tour
HAVING count(DISTINCT house_id) > 1;
