import { memo, useCallback, useEffect, useMemo, useReducer, useRef } from 'react';
import type { KeyboardEvent } from 'react';

export type SeatStatus = 'free' | 'sold' | 'held';
export type Zone = 'stalls' | 'circle' | 'gallery';

export interface Seat {
  readonly id: string;
  readonly row: string;
  readonly number: number;
  readonly zone: Zone;
  readonly status: SeatStatus;
  readonly wheelchair?: boolean;
  readonly restrictedView?: boolean;
}

interface SeatPickerProps {
  seats: readonly Seat[];
  /** Price per zone in minor units (pence, cents). */
  prices: Readonly<Record<Zone, number>>;
  currency: string;
  maxSeats?: number;
  locale?: string;
  onConfirm: (seatIds: string[]) => Promise<void>;
}

type Phase =
  | { kind: 'choosing' }
  | { kind: 'submitting' }
  | { kind: 'failed'; message: string }
  | { kind: 'done'; total: number };

interface State {
  chosen: ReadonlySet<string>;
  cursor: { row: number; col: number };
  notice: string;
  phase: Phase;
}

type Action =
  | { type: 'toggle'; seat: Seat; limit: number }
  | { type: 'move'; row: number; col: number }
  | { type: 'prune'; available: ReadonlySet<string> }
  | { type: 'clear' }
  | { type: 'submit' }
  | { type: 'reject'; message: string }
  | { type: 'accept'; total: number };

const initialState: State = {
  chosen: new Set(),
  cursor: { row: 0, col: 0 },
  notice: '',
  phase: { kind: 'choosing' },
};

function describe(seat: Seat): string {
  const extras = [
    seat.wheelchair && 'wheelchair space',
    seat.restrictedView && 'restricted view',
  ].filter(Boolean);
  const base = `Row ${seat.row}, seat ${seat.number}`;
  return extras.length > 0 ? `${base} (${extras.join(', ')})` : base;
}

export function reducer(state: State, action: Action): State {
  switch (action.type) {
    case 'toggle': {
      const { seat, limit } = action;
      if (state.phase.kind === 'submitting') return state;

      const chosen = new Set(state.chosen);
      if (chosen.delete(seat.id)) {
        return { ...state, chosen, notice: `${describe(seat)} released`, phase: { kind: 'choosing' } };
      }
      if (seat.status !== 'free') {
        return { ...state, notice: `${describe(seat)} is not available` };
      }
      if (chosen.size >= limit) {
        return { ...state, notice: `You can book at most ${limit} seats in one order` };
      }
      chosen.add(seat.id);
      return { ...state, chosen, notice: `${describe(seat)} added`, phase: { kind: 'choosing' } };
    }
    case 'move':
      return { ...state, cursor: { row: action.row, col: action.col } };
    case 'prune': {
      const kept = [...state.chosen].filter((id) => action.available.has(id));
      const lost = state.chosen.size - kept.length;
      if (lost === 0) return state;
      return {
        ...state,
        chosen: new Set(kept),
        notice: lost === 1 ? 'One of your seats was just taken' : `${lost} of your seats were just taken`,
      };
    }
    case 'clear':
      return { ...state, chosen: new Set(), notice: 'Selection cleared', phase: { kind: 'choosing' } };
    case 'submit':
      return { ...state, notice: '', phase: { kind: 'submitting' } };
    case 'reject':
      return { ...state, phase: { kind: 'failed', message: action.message } };
    case 'accept':
      return { ...state, chosen: new Set(), phase: { kind: 'done', total: action.total } };
  }
}

/** Groups a flat list into rows, front row first, each sorted by seat number. */
export function toRows(seats: readonly Seat[]): Seat[][] {
  const byRow = new Map<string, Seat[]>();
  for (const seat of seats) {
    const list = byRow.get(seat.row);
    if (list) list.push(seat);
    else byRow.set(seat.row, [seat]);
  }
  return [...byRow.entries()]
    .sort(([a], [b]) => a.length - b.length || a.localeCompare(b))
    .map(([, list]) => list.sort((a, b) => a.number - b.number));
}

interface SeatButtonProps {
  seat: Seat;
  selected: boolean;
  focusable: boolean;
  priceLabel: string;
  onToggle: (seat: Seat) => void;
}

const SeatButton = memo(function SeatButton({ seat, selected, focusable, priceLabel, onToggle }: SeatButtonProps) {
  const classes = ['seat', `seat--${seat.zone}`, `seat--${seat.status}`];
  if (selected) classes.push('seat--selected');

  return (
    <button
      type="button"
      data-seat={seat.id}
      className={classes.join(' ')}
      tabIndex={focusable ? 0 : -1}
      aria-pressed={selected}
      aria-disabled={seat.status !== 'free' && !selected}
      aria-label={`${describe(seat)}, ${priceLabel}`}
      onClick={() => onToggle(seat)}
    >
      {seat.wheelchair ? '♿' : seat.number}
    </button>
  );
});

export function SeatPicker({
  seats,
  prices,
  currency,
  maxSeats = 6,
  locale = 'en-GB',
  onConfirm,
}: SeatPickerProps) {
  const [state, dispatch] = useReducer(reducer, initialState);
  const gridRef = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => toRows(seats), [seats]);

  const money = useMemo(() => {
    const format = new Intl.NumberFormat(locale, { style: 'currency', currency });
    return (minor: number) => format.format(minor / 100);
  }, [locale, currency]);

  // The server pushes fresh availability; drop whatever somebody else has bought meanwhile.
  useEffect(() => {
    const available = new Set(seats.filter((s) => s.status !== 'sold').map((s) => s.id));
    dispatch({ type: 'prune', available });
  }, [seats]);

  const basket = useMemo(() => seats.filter((s) => state.chosen.has(s.id)), [seats, state.chosen]);
  const total = basket.reduce((sum, seat) => sum + prices[seat.zone], 0);
  const busy = state.phase.kind === 'submitting';

  const toggle = useCallback(
    (seat: Seat) => dispatch({ type: 'toggle', seat, limit: maxSeats }),
    [maxSeats],
  );

  function handleKey(event: KeyboardEvent<HTMLDivElement>) {
    let { row, col } = state.cursor;
    switch (event.key) {
      case 'ArrowUp': row -= 1; break;
      case 'ArrowDown': row += 1; break;
      case 'ArrowLeft': col -= 1; break;
      case 'ArrowRight': col += 1; break;
      case 'Home': col = 0; break;
      case 'End': col = Number.MAX_SAFE_INTEGER; break;
      default: return;
    }
    event.preventDefault();
    row = Math.min(Math.max(row, 0), rows.length - 1);
    const line = rows[row];
    if (!line) return;
    col = Math.min(Math.max(col, 0), line.length - 1);
    dispatch({ type: 'move', row, col });
    gridRef.current
      ?.querySelector<HTMLButtonElement>(`[data-seat="${CSS.escape(line[col].id)}"]`)
      ?.focus();
  }

  async function confirm() {
    if (basket.length === 0 || busy) return;
    dispatch({ type: 'submit' });
    try {
      await onConfirm(basket.map((seat) => seat.id));
      dispatch({ type: 'accept', total });
    } catch (error) {
      const message = error instanceof Error ? error.message : 'The booking office did not answer';
      dispatch({ type: 'reject', message });
    }
  }

  if (state.phase.kind === 'done') {
    return <p role="status">Thank you! {money(state.phase.total)} will be charged to your card.</p>;
  }

  return (
    <section className="seat-picker" aria-busy={busy}>
      <div className="stage" aria-hidden="true">Stage</div>

      <div ref={gridRef} role="group" aria-label="Auditorium" onKeyDown={handleKey}>
        {rows.map((line, r) => (
          <div key={line[0].row} className="seat-row">
            <span className="seat-row__label">{line[0].row}</span>
            {line.map((seat, c) => (
              <SeatButton
                key={seat.id}
                seat={seat}
                selected={state.chosen.has(seat.id)}
                focusable={state.cursor.row === r && state.cursor.col === c}
                priceLabel={money(prices[seat.zone])}
                onToggle={toggle}
              />
            ))}
          </div>
        ))}
      </div>

      <p className="visually-hidden" aria-live="polite">{state.notice}</p>
      {state.phase.kind === 'failed' && <p role="alert">{state.phase.message}</p>}

      <footer>
        <ul>
          {basket.map((seat) => (
            <li key={seat.id}>{describe(seat)} · {money(prices[seat.zone])}</li>
          ))}
        </ul>
        <strong>{basket.length === 0 ? 'Nothing selected yet' : money(total)}</strong>
        <button type="button" disabled={basket.length === 0 || busy} onClick={() => dispatch({ type: 'clear' })}>
          Start over
        </button>
        <button type="button" disabled={basket.length === 0 || busy} onClick={confirm}>
          {busy ? 'Booking…' : 'Book now'}
        </button>
      </footer>
    </section>
  );
}
