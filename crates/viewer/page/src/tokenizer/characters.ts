// Characters whose bytes are spread over several tokens.

/** Tokens `start` to `end` (exclusive) that together are whole characters. */
export interface Characters {
  start: number;
  end: number;
  text: string;
}

/** Returns the number of continuation bytes that a UTF-8 lead byte announces. */
function continuations(lead: number): number {
  if (lead >= 0xf0 && lead < 0xf8) return 3;
  if (lead >= 0xe0) return lead < 0xf0 ? 2 : 0;
  return lead >= 0xc2 ? 1 : 0;
}

function bytesOf(hex: string): number[] {
  return Array.from({ length: hex.length >> 1 }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16));
}

/** Returns the runs of tokens of which each lacks bytes of a character that its neighbors have. `tokens` have their bytes as hex. */
export function charactersOf(tokens: { hex: string }[]): Characters[] {
  const found: Characters[] = [];
  let start = 0;
  let pending = 0;
  let bytes: number[] = [];
  for (const [i, { hex }] of tokens.entries()) {
    const own = bytesOf(hex);
    const continues = pending > 0 && own.length > 0 && ((own[0] as number) & 0xc0) === 0x80;
    if (!continues) [start, pending, bytes] = [i, 0, []];
    for (const byte of own) {
      bytes.push(byte);
      if (pending > 0 && (byte & 0xc0) === 0x80) pending -= 1;
      else pending = continuations(byte);
    }
    if (pending > 0 || start === i) continue;
    const text = new TextDecoder().decode(new Uint8Array(bytes));
    if (!text.includes("\ufffd")) found.push({ start, end: i + 1, text });
    [start, bytes] = [i + 1, []];
  }
  return found;
}
