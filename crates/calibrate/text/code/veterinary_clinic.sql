-- Veterinary clinic: schema, integrity rules and the monthly management queries.
-- PostgreSQL 15 or later.

BEGIN;

CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE SCHEMA vet;
SET search_path = vet, public;

CREATE TYPE species AS ENUM ('dog', 'cat', 'rabbit', 'bird', 'reptile', 'other');

CREATE TABLE owner (
    owner_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    full_name  text NOT NULL,
    phone      text CHECK (phone ~ '^\+?[0-9 ]{6,20}$'),
    postcode   text NOT NULL,
    joined_on  date NOT NULL DEFAULT current_date
);

CREATE TABLE animal (
    animal_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id   bigint NOT NULL REFERENCES owner ON DELETE RESTRICT,
    name       text NOT NULL,
    kind       species NOT NULL,
    born_on    date,
    died_on    date,
    chip_code  char(15) UNIQUE CHECK (chip_code ~ '^[0-9]{15}$'),
    CHECK (died_on IS NULL OR born_on IS NULL OR died_on >= born_on)
);

CREATE INDEX animal_owner_idx ON animal (owner_id);

CREATE TABLE vet (
    vet_id     int PRIMARY KEY,
    full_name  text NOT NULL,
    hired_on   date NOT NULL
);

CREATE TABLE room (
    room_id  int PRIMARY KEY,
    label    text NOT NULL UNIQUE
);

CREATE TABLE appointment (
    appointment_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    animal_id       bigint NOT NULL REFERENCES animal,
    vet_id          int NOT NULL REFERENCES vet,
    room_id         int NOT NULL REFERENCES room,
    slot            tstzrange NOT NULL,
    status          text NOT NULL DEFAULT 'booked'
                    CHECK (status IN ('booked', 'done', 'cancelled', 'no_show')),
    reason          text NOT NULL,

    -- Only half-open slots of sensible length.
    CHECK (lower_inc(slot) AND NOT upper_inc(slot)),
    CHECK (upper(slot) - lower(slot) BETWEEN interval '5 minutes' AND interval '4 hours'),

    -- Neither a vet nor a room can be in two consultations at once.
    CONSTRAINT vet_not_double_booked EXCLUDE USING gist (vet_id WITH =, slot WITH &&)
        WHERE (status <> 'cancelled'),
    CONSTRAINT room_not_double_booked EXCLUDE USING gist (room_id WITH =, slot WITH &&)
        WHERE (status <> 'cancelled')
);

CREATE INDEX appointment_animal_idx ON appointment (animal_id, lower(slot) DESC);

CREATE TABLE treatment_type (
    code        text PRIMARY KEY,
    label       text NOT NULL,
    repeat_after interval          -- NULL for treatments that are not repeated
);

CREATE TABLE treatment (
    appointment_id  bigint NOT NULL REFERENCES appointment,
    line_no         smallint NOT NULL,
    code            text NOT NULL REFERENCES treatment_type,
    quantity        numeric(8, 2) NOT NULL CHECK (quantity > 0),
    unit_price      numeric(10, 2) NOT NULL CHECK (unit_price >= 0),
    amount          numeric(12, 2) GENERATED ALWAYS AS (round(quantity * unit_price, 2)) STORED,
    PRIMARY KEY (appointment_id, line_no)
);

CREATE TABLE weight_reading (
    animal_id   bigint NOT NULL REFERENCES animal ON DELETE CASCADE,
    measured_at timestamptz NOT NULL,
    grams       int NOT NULL CHECK (grams BETWEEN 5 AND 200000),
    PRIMARY KEY (animal_id, measured_at)
);

-- Nobody books a consultation for an animal that has died.
CREATE FUNCTION reject_dead_patient() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM animal a
         WHERE a.animal_id = NEW.animal_id
           AND a.died_on < lower(NEW.slot)::date
    ) THEN
        RAISE EXCEPTION 'animal % is recorded as deceased', NEW.animal_id
              USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER appointment_alive
    BEFORE INSERT OR UPDATE OF animal_id, slot ON appointment
    FOR EACH ROW EXECUTE FUNCTION reject_dead_patient();

COMMIT;

-- ---------------------------------------------------------------------------
-- 1. Revenue per month with the change against the same month a year earlier
-- ---------------------------------------------------------------------------
WITH monthly AS (
    SELECT date_trunc('month', lower(a.slot))::date AS month,
           sum(t.amount)                            AS revenue,
           count(DISTINCT a.animal_id)              AS patients
      FROM appointment a
      JOIN treatment t USING (appointment_id)
     WHERE a.status = 'done'
     GROUP BY 1
)
SELECT m.month,
       m.revenue,
       m.patients,
       round(m.revenue / m.patients, 2)                                AS per_patient,
       round(100 * (m.revenue / nullif(p.revenue, 0) - 1), 1)          AS change_pct,
       avg(m.revenue) OVER (ORDER BY m.month ROWS 2 PRECEDING)::numeric(12, 2) AS moving_avg
  FROM monthly m
  LEFT JOIN monthly p ON p.month = (m.month - interval '1 year')::date
 ORDER BY m.month;

-- ---------------------------------------------------------------------------
-- 2. Overdue boosters: the latest dose of each repeatable treatment per animal
-- ---------------------------------------------------------------------------
SELECT DISTINCT ON (an.animal_id, tt.code)
       o.full_name,
       o.phone,
       an.name                                        AS animal,
       tt.label,
       lower(ap.slot)::date                           AS last_given,
       (lower(ap.slot) + tt.repeat_after)::date       AS due_on
  FROM treatment t
  JOIN treatment_type tt USING (code)
  JOIN appointment ap USING (appointment_id)
  JOIN animal an USING (animal_id)
  JOIN owner o USING (owner_id)
 WHERE tt.repeat_after IS NOT NULL
   AND ap.status = 'done'
   AND an.died_on IS NULL
   AND NOT EXISTS (
           SELECT
             FROM treatment t2
             JOIN appointment a2 USING (appointment_id)
            WHERE a2.animal_id = an.animal_id
              AND t2.code = tt.code
              AND a2.status = 'done'
              AND lower(a2.slot) + tt.repeat_after > now() + interval '14 days')
 ORDER BY an.animal_id, tt.code, lower(ap.slot) DESC;

-- ---------------------------------------------------------------------------
-- 3. Patients that lost more than a tenth of their weight between two visits
-- ---------------------------------------------------------------------------
SELECT an.name, an.kind, w.measured_at::date, w.previous, w.grams,
       round(100.0 * (w.grams - w.previous) / w.previous, 1) AS change_pct
  FROM (
        SELECT animal_id, measured_at, grams,
               lag(grams) OVER by_time       AS previous,
               lag(measured_at) OVER by_time AS previous_at
          FROM weight_reading
        WINDOW by_time AS (PARTITION BY animal_id ORDER BY measured_at)
       ) w
  JOIN animal an USING (animal_id)
 WHERE w.grams < 0.9 * w.previous
   AND w.measured_at - w.previous_at < interval '6 months'
 ORDER BY change_pct;

-- ---------------------------------------------------------------------------
-- 4. Free half hours of tomorrow, per vet, between 8:30 and 17:00
-- ---------------------------------------------------------------------------
WITH opening AS (
    SELECT tstzrange(current_date + 1 + time '08:30', current_date + 1 + time '17:00') AS hours
), busy AS (
    SELECT vet_id, range_agg(slot) AS taken
      FROM appointment, opening
     WHERE slot && hours
       AND status <> 'cancelled'
     GROUP BY vet_id
)
SELECT v.full_name, lower(gap) AS free_from, upper(gap) - lower(gap) AS length
  FROM vet v
 CROSS JOIN opening
  LEFT JOIN busy USING (vet_id)
 CROSS JOIN LATERAL unnest(
           tstzmultirange(hours) - coalesce(busy.taken, '{}'::tstzmultirange)) AS gap
 WHERE upper(gap) - lower(gap) >= interval '30 minutes'
 ORDER BY v.full_name, free_from;

-- ---------------------------------------------------------------------------
-- 5. Retention: of the owners who joined in a quarter, who came back each year?
-- ---------------------------------------------------------------------------
WITH visits AS (
    SELECT DISTINCT o.owner_id,
           date_trunc('quarter', o.joined_on)::date AS cohort,
           extract(year FROM age(lower(ap.slot), o.joined_on))::int AS year_no
      FROM owner o
      JOIN animal USING (owner_id)
      JOIN appointment ap USING (animal_id)
     WHERE ap.status = 'done'
)
SELECT cohort,
       count(*) FILTER (WHERE year_no = 0) AS first_year,
       count(*) FILTER (WHERE year_no = 1) AS second_year,
       count(*) FILTER (WHERE year_no = 2) AS third_year
  FROM visits
 GROUP BY ROLLUP (cohort)
 ORDER BY cohort NULLS LAST;
