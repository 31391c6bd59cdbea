<?php

declare(strict_types=1);

namespace Workshop\Billing;

use DateTimeImmutable;
use InvalidArgumentException;
use PDO;
use PDOException;
use RuntimeException;

/**
 * Money in the smallest unit. Floats have no business near an invoice.
 */
final readonly class Money
{
    public function __construct(public int $cents, public string $currency = 'EUR')
    {
        if (!preg_match('/^[A-Z]{3}$/', $currency)) {
            throw new InvalidArgumentException("Not a currency code: $currency");
        }
    }

    public function plus(self $other): self
    {
        if ($other->currency !== $this->currency) {
            throw new InvalidArgumentException("Cannot add {$other->currency} to {$this->currency}");
        }

        return new self($this->cents + $other->cents, $this->currency);
    }

    /** Percentage in hundredths: 1900 means 19 %. Rounds half away from zero. */
    public function percentage(int $basisPoints): self
    {
        $product = $this->cents * $basisPoints;
        $rounded = intdiv(abs($product) + 5_000, 10_000);

        return new self($product < 0 ? -$rounded : $rounded, $this->currency);
    }

    public function format(): string
    {
        return number_format($this->cents / 100, 2, ',', '.') . ' ' . $this->currency;
    }
}

final readonly class Line
{
    public function __construct(
        public string $description,
        public int $quantity,
        public Money $unitPrice,
        public int $taxRate,
    ) {
        if ($quantity === 0) {
            throw new InvalidArgumentException("Quantity of '$description' must not be zero");
        }
    }

    public function net(): Money
    {
        return new Money($this->quantity * $this->unitPrice->cents, $this->unitPrice->currency);
    }
}

/**
 * Issues invoices under numbers that are consecutive within a year.
 *
 * The tax office dislikes gaps, so the number is drawn inside the very transaction that stores the
 * invoice: if the latter fails, the counter rolls back along with it. The price is that issuing is
 * serialised by the row lock on the counter, which a workshop with thirty invoices a day can bear.
 */
final class InvoiceNumbering
{
    private const MAX_ATTEMPTS = 3;

    public function __construct(private readonly PDO $db)
    {
        $db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
    }

    /**
     * @param non-empty-list<Line> $lines
     * @return string the number under which the invoice was filed, e.g. "2023-00417"
     */
    public function issue(int $customerId, array $lines, DateTimeImmutable $date): string
    {
        if ($lines === []) {
            throw new InvalidArgumentException('An invoice needs at least one line');
        }

        for ($attempt = 1; ; $attempt++) {
            $this->db->beginTransaction();
            try {
                $number = $this->draw((int) $date->format('Y'));
                $this->store($number, $customerId, $lines, $date);
                $this->db->commit();

                return $number;
            } catch (PDOException $e) {
                $this->db->rollBack();
                // 40001 and 40P01: the database picked us as the loser of a conflict; try again.
                if ($attempt >= self::MAX_ATTEMPTS || !in_array($e->getCode(), ['40001', '40P01'], true)) {
                    throw new RuntimeException('The invoice could not be stored', previous: $e);
                }
                usleep(random_int(10_000, 50_000) * $attempt);
            }
        }
    }

    /** @return array<int, array{net: Money, tax: Money}> totals keyed by tax rate, highest first */
    public static function totals(array $lines): array
    {
        $byRate = [];
        foreach ($lines as $line) {
            $net = $line->net();
            $byRate[$line->taxRate] = isset($byRate[$line->taxRate]) ? $byRate[$line->taxRate]->plus($net) : $net;
        }
        krsort($byRate);

        // Tax is computed once per rate and not per line, otherwise the cents refuse to add up.
        $totals = [];
        foreach ($byRate as $rate => $net) {
            $totals[$rate] = ['net' => $net, 'tax' => $net->percentage($rate)];
        }

        return $totals;
    }

    private function draw(int $year): string
    {
        $statement = $this->db->prepare(<<<'SQL'
            INSERT INTO invoice_counter (year, last_number) VALUES (:year, 1)
            ON CONFLICT (year) DO UPDATE SET last_number = invoice_counter.last_number + 1
            RETURNING last_number
            SQL);
        $statement->execute(['year' => $year]);

        return sprintf('%d-%05d', $year, (int) $statement->fetchColumn());
    }

    private function store(string $number, int $customerId, array $lines, DateTimeImmutable $date): void
    {
        $this->db
            ->prepare('INSERT INTO invoice (number, customer_id, issued_on) VALUES (?, ?, ?)')
            ->execute([$number, $customerId, $date->format('Y-m-d')]);

        $insert = $this->db->prepare(
            'INSERT INTO invoice_line (invoice, position, description, quantity, unit_cents, tax_rate)
             VALUES (?, ?, ?, ?, ?, ?)'
        );
        foreach (array_values($lines) as $i => $line) {
            $insert->execute([
                $number, $i + 1, $line->description, $line->quantity, $line->unitPrice->cents, $line->taxRate,
            ]);
        }
    }
}
