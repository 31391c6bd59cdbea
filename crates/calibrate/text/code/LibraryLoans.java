package org.example.library.circulation;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Clock;
import java.time.DayOfWeek;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * The circulation desk of a branch library: lending, renewing, returning and reserving.
 *
 * <p>All dates are calendar dates at the branch. A loan that would fall due on a day on which the
 * branch is closed is extended to the next opening day, and closed days never accrue fines; readers
 * cannot be blamed for a locked door.
 *
 * <p>Instances are confined to a single thread. Persistence is the business of whoever subscribes to
 * the events.
 */
public final class LibraryLoans {

    /** Categories of readers, with the privileges granted to each. */
    public enum Membership {
        CHILD(8, 2, new BigDecimal("0.00")),
        ADULT(12, 2, new BigDecimal("0.25")),
        TEACHER(40, 4, new BigDecimal("0.10"));

        final int maxLoans;
        final int maxRenewals;
        final BigDecimal finePerDay;

        Membership(int maxLoans, int maxRenewals, BigDecimal finePerDay) {
            this.maxLoans = maxLoans;
            this.maxRenewals = maxRenewals;
            this.finePerDay = finePerDay;
        }
    }

    /** Kinds of material; a film circulates faster than a novel. */
    public enum Material {
        BOOK(28), AUDIO(21), FILM(7), PERIODICAL(14), REFERENCE(0);

        final int loanDays;

        Material(int loanDays) {
            this.loanDays = loanDays;
        }

        boolean circulates() {
            return loanDays > 0;
        }
    }

    public record Reader(String card, String name, Membership membership) {
        public Reader {
            Objects.requireNonNull(membership, "membership");
            if (card == null || !card.matches("[A-Z]\\d{6}")) {
                throw new IllegalArgumentException("malformed card number: " + card);
            }
        }
    }

    /** A title may exist in several copies; reservations are made on titles, loans on copies. */
    public record Copy(String barcode, String titleId, Material material) { }

    public record Loan(Copy copy, Reader reader, LocalDate lent, LocalDate due, int renewals) {
        boolean overdueOn(LocalDate day) {
            return day.isAfter(due);
        }

        Loan extendedTo(LocalDate newDue) {
            return new Loan(copy, reader, lent, newDue, renewals + 1);
        }
    }

    /** Everything that observers may want to know about. */
    public sealed interface Event {
        record Lent(Loan loan) implements Event { }
        record Renewed(Loan loan) implements Event { }
        record Returned(Loan loan, BigDecimal fine) implements Event { }
        record Reserved(Reader reader, String titleId, int position) implements Event { }
        record HoldReady(Reader reader, Copy copy, LocalDate collectBy) implements Event { }
        record HoldLapsed(Reader reader, Copy copy) implements Event { }
    }

    /** Thrown when the rules forbid a transaction. The message is fit to be read out at the desk. */
    public static final class RefusedException extends Exception {
        private static final long serialVersionUID = 1L;

        RefusedException(String reason) {
            super(reason);
        }
    }

    private record Hold(Reader reader, Copy copy, LocalDate collectBy) { }

    private static final int HOLD_DAYS = 7;
    private static final BigDecimal MAX_FINE_PER_LOAN = new BigDecimal("10.00");
    private static final BigDecimal BLOCKING_BALANCE = new BigDecimal("15.00");

    private final Clock clock;
    private final Set<DayOfWeek> closedWeekdays;
    private final Set<LocalDate> holidays;
    private final Map<String, Loan> loansByBarcode = new HashMap<>();
    private final Map<String, Deque<Reader>> queuesByTitle = new HashMap<>();
    private final Map<String, Hold> holdShelf = new HashMap<>();
    private final Map<String, BigDecimal> balances = new HashMap<>();
    private final List<Consumer<? super Event>> observers = new ArrayList<>();

    public LibraryLoans(Clock clock, Set<DayOfWeek> closedWeekdays, Set<LocalDate> holidays) {
        if (closedWeekdays.size() == DayOfWeek.values().length) {
            throw new IllegalArgumentException("the branch must open at least one day a week");
        }
        this.clock = Objects.requireNonNull(clock);
        this.closedWeekdays = Set.copyOf(closedWeekdays);
        this.holidays = Set.copyOf(holidays);
    }

    public void subscribe(Consumer<? super Event> observer) {
        observers.add(Objects.requireNonNull(observer));
    }

    // ---------------------------------------------------------------- lending

    public Loan lend(Copy copy, Reader reader) throws RefusedException {
        if (!copy.material().circulates()) {
            throw new RefusedException("Reference works may be consulted in the reading room only.");
        }
        if (loansByBarcode.containsKey(copy.barcode())) {
            throw new RefusedException("According to our records this copy is already on loan.");
        }
        requireGoodStanding(reader);

        Hold hold = holdShelf.get(copy.barcode());
        if (hold != null && !hold.reader().equals(reader)) {
            throw new RefusedException("This copy is being kept for another reader.");
        }
        if (loansOf(reader).size() >= reader.membership().maxLoans) {
            throw new RefusedException("The limit of " + reader.membership().maxLoans + " loans has been reached.");
        }

        holdShelf.remove(copy.barcode());
        LocalDate today = LocalDate.now(clock);
        Loan loan = new Loan(copy, reader, today, openOnOrAfter(today.plusDays(copy.material().loanDays)), 0);
        loansByBarcode.put(copy.barcode(), loan);
        publish(new Event.Lent(loan));
        return loan;
    }

    public Loan renew(String barcode) throws RefusedException {
        Loan loan = requireLoan(barcode);
        Reader reader = loan.reader();
        requireGoodStanding(reader);
        if (loan.renewals() >= reader.membership().maxRenewals) {
            throw new RefusedException("This loan cannot be renewed again.");
        }
        if (!queueFor(loan.copy().titleId()).isEmpty()) {
            throw new RefusedException("Someone is waiting for this title.");
        }
        LocalDate today = LocalDate.now(clock);
        if (loan.overdueOn(today)) {
            charge(reader, fineFor(loan, today));
        }
        // Counting from today rather than from the old due date discourages renewing on the first day.
        LocalDate candidate = openOnOrAfter(today.plusDays(loan.copy().material().loanDays));
        Loan renewed = loan.extendedTo(candidate.isAfter(loan.due()) ? candidate : loan.due());
        loansByBarcode.put(barcode, renewed);
        publish(new Event.Renewed(renewed));
        return renewed;
    }

    /** Takes a copy back and returns the fine that was charged, zero in the happy case. */
    public BigDecimal giveBack(String barcode) throws RefusedException {
        Loan loan = requireLoan(barcode);
        BigDecimal fine = fineFor(loan, LocalDate.now(clock));
        loansByBarcode.remove(barcode);
        charge(loan.reader(), fine);
        publish(new Event.Returned(loan, fine));
        offerToNextInLine(loan.copy());
        return fine;
    }

    // ----------------------------------------------------------- reservations

    public int reserve(String titleId, Reader reader) throws RefusedException {
        requireGoodStanding(reader);
        Deque<Reader> queue = queueFor(titleId);
        if (queue.contains(reader)) {
            throw new RefusedException("You are already on the waiting list for this title.");
        }
        boolean hasIt = loansOf(reader).stream().anyMatch(l -> l.copy().titleId().equals(titleId));
        if (hasIt) {
            throw new RefusedException("You have this title at home.");
        }
        queue.addLast(reader);
        int position = queue.size();
        publish(new Event.Reserved(reader, titleId, position));
        return position;
    }

    /** Called once each morning before opening: releases uncollected holds. */
    public void clearHoldShelf() {
        LocalDate today = LocalDate.now(clock);
        List<Hold> lapsed = holdShelf.values().stream()
                .filter(h -> today.isAfter(h.collectBy()))
                .sorted(Comparator.comparing(Hold::collectBy).thenComparing(h -> h.copy().barcode()))
                .toList();
        for (Hold hold : lapsed) {
            holdShelf.remove(hold.copy().barcode());
            publish(new Event.HoldLapsed(hold.reader(), hold.copy()));
            offerToNextInLine(hold.copy());
        }
    }

    private void offerToNextInLine(Copy copy) {
        Reader next = queueFor(copy.titleId()).pollFirst();
        if (next == null) {
            return;
        }
        LocalDate collectBy = openOnOrAfter(LocalDate.now(clock).plusDays(HOLD_DAYS));
        holdShelf.put(copy.barcode(), new Hold(next, copy, collectBy));
        publish(new Event.HoldReady(next, copy, collectBy));
    }

    // ------------------------------------------------------------------ money

    BigDecimal fineFor(Loan loan, LocalDate returned) {
        if (!loan.overdueOn(returned)) {
            return BigDecimal.ZERO.setScale(2);
        }
        long chargeable = loan.due().plusDays(1)
                .datesUntil(returned.plusDays(1))
                .filter(this::isOpen)
                .count();
        return loan.reader().membership().finePerDay
                .multiply(BigDecimal.valueOf(chargeable))
                .min(MAX_FINE_PER_LOAN)
                .setScale(2, RoundingMode.HALF_EVEN);
    }

    public void pay(Reader reader, BigDecimal amount) {
        if (amount.signum() <= 0) {
            throw new IllegalArgumentException("payment must be positive");
        }
        BigDecimal owed = balanceOf(reader);
        if (amount.compareTo(owed) > 0) {
            throw new IllegalArgumentException("we do not keep credit; the reader owes only " + owed);
        }
        balances.put(reader.card(), owed.subtract(amount));
    }

    public BigDecimal balanceOf(Reader reader) {
        return balances.getOrDefault(reader.card(), BigDecimal.ZERO.setScale(2));
    }

    private void charge(Reader reader, BigDecimal fine) {
        if (fine.signum() > 0) {
            balances.merge(reader.card(), fine, BigDecimal::add);
        }
    }

    // ---------------------------------------------------------------- queries

    public List<Loan> loansOf(Reader reader) {
        return loansByBarcode.values().stream()
                .filter(l -> l.reader().equals(reader))
                .sorted(Comparator.comparing(Loan::due))
                .toList();
    }

    /** Overdue loans grouped by reader, for the weekly letters. Loans late by under three days are spared. */
    public Map<Reader, List<Loan>> reminders() {
        LocalDate today = LocalDate.now(clock);
        return loansByBarcode.values().stream()
                .filter(l -> ChronoUnit.DAYS.between(l.due(), today) >= 3)
                .collect(Collectors.groupingBy(Loan::reader));
    }

    public Optional<LocalDate> expectedBack(String titleId) {
        return loansByBarcode.values().stream()
                .filter(l -> l.copy().titleId().equals(titleId))
                .map(Loan::due)
                .min(Comparator.naturalOrder());
    }

    // ---------------------------------------------------------------- helpers

    private boolean isOpen(LocalDate day) {
        return !closedWeekdays.contains(day.getDayOfWeek()) && !holidays.contains(day);
    }

    private LocalDate openOnOrAfter(LocalDate day) {
        while (!isOpen(day)) {
            day = day.plusDays(1);
        }
        return day;
    }

    private Deque<Reader> queueFor(String titleId) {
        return queuesByTitle.computeIfAbsent(titleId, id -> new ArrayDeque<>());
    }

    private Loan requireLoan(String barcode) throws RefusedException {
        Loan loan = loansByBarcode.get(barcode);
        if (loan == null) {
            throw new RefusedException("Copy " + barcode + " is not on loan.");
        }
        return loan;
    }

    private void requireGoodStanding(Reader reader) throws RefusedException {
        BigDecimal owed = balanceOf(reader);
        if (owed.compareTo(BLOCKING_BALANCE) >= 0) {
            throw new RefusedException("The card is blocked until the outstanding " + owed + " has been settled.");
        }
    }

    private void publish(Event event) {
        observers.forEach(o -> o.accept(event));
    }
}
