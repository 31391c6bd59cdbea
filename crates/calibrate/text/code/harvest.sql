-- Orchard records: rows of trees, pickings, and what the press made of them.

CREATE TABLE variety (
    id          integer PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    ripens      text NOT NULL CHECK (ripens IN ('early', 'middle', 'late')),
    keeps_weeks integer NOT NULL DEFAULT 0
);

CREATE TABLE orchard_row (
    id        integer PRIMARY KEY,
    variety   integer NOT NULL REFERENCES variety (id),
    planted   date NOT NULL,
    trees     integer NOT NULL CHECK (trees > 0),
    slope_deg numeric(4, 1)
);

CREATE TABLE picking (
    id         integer PRIMARY KEY,
    row_id     integer NOT NULL REFERENCES orchard_row (id) ON DELETE RESTRICT,
    picked_on  date NOT NULL,
    kilograms  numeric(8, 1) NOT NULL CHECK (kilograms >= 0),
    windfall   boolean NOT NULL DEFAULT false,
    UNIQUE (row_id, picked_on, windfall)
);

CREATE INDEX picking_by_day ON picking (picked_on);

-- Yield per tree and year, with the change from the year before.
WITH yearly AS (
    SELECT v.name,
           EXTRACT(YEAR FROM p.picked_on) AS year,
           SUM(p.kilograms) / SUM(DISTINCT r.trees) AS kg_per_tree
    FROM picking p
    JOIN orchard_row r ON r.id = p.row_id
    JOIN variety v ON v.id = r.variety
    WHERE NOT p.windfall
    GROUP BY v.name, year
)
SELECT name,
       year,
       ROUND(kg_per_tree, 1) AS kg_per_tree,
       ROUND(100 * (kg_per_tree / LAG(kg_per_tree) OVER w - 1), 1) AS change_percent
FROM yearly
WINDOW w AS (PARTITION BY name ORDER BY year)
ORDER BY name, year;

-- Rows that yielded less than half of the median of their variety.
SELECT r.id, v.name, t.total
FROM orchard_row r
JOIN variety v ON v.id = r.variety
JOIN LATERAL (
    SELECT COALESCE(SUM(kilograms), 0) AS total
    FROM picking
    WHERE row_id = r.id AND picked_on >= DATE '2023-08-01'
) t ON true
WHERE t.total < 0.5 * (
    SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY s.sum_kg)
    FROM (
        SELECT SUM(p.kilograms) AS sum_kg
        FROM picking p
        JOIN orchard_row o ON o.id = p.row_id
        WHERE o.variety = r.variety AND p.picked_on >= DATE '2023-08-01'
        GROUP BY o.id
    ) s
);

-- The windfall of a stormy weekend goes to the press at once.
INSERT INTO picking (id, row_id, picked_on, kilograms, windfall)
SELECT MAX(p.id) OVER () + ROW_NUMBER() OVER (ORDER BY r.id), r.id, DATE '2023-09-17', 12.5 * r.trees / 10, true
FROM orchard_row r
LEFT JOIN picking p ON p.row_id = r.id
WHERE r.slope_deg > 8
ON CONFLICT (row_id, picked_on, windfall) DO UPDATE SET kilograms = picking.kilograms + EXCLUDED.kilograms;
