// Makes a model with one large tensor, 4096 x 14336 in Q4_K, for looking at how fast its picture moves.
//   node scripts/big.mjs GGUF OUTPUT
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export function big(gguf, output, columns = 4096, rows = 14336) {
  const folder = mkdtempSync(path.join(tmpdir(), "gguf-big-"));
  try {
    const plain = path.join(folder, "big-bf16.gguf");
    write(plain, columns, rows);
    execFileSync(gguf, ["quantize", "--pure", plain, output, "q4_k"], { stdio: ["ignore", "ignore", "inherit"] });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A matrix in BF16 in which one can see where one is: waves, and noise that is the same each time. */
function write(file, columns, rows) {
  const text = (words) => [number(words.length, 8), Buffer.from(words)];
  const header = Buffer.concat([
    ...[Buffer.from("GGUF"), number(3, 4), number(1, 8), number(1, 8)],
    // One key, a string.
    ...[...text("general.architecture"), number(8, 4), ...text("llama")],
    // One tensor of two dimensions, BF16, at the beginning of the data.
    ...[...text("blk.0.ffn_up.weight"), number(2, 4), number(columns, 8), number(rows, 8), number(30, 4), number(0, 8)],
  ]);
  const out = openSync(file, "w");
  writeSync(out, header);
  writeSync(out, Buffer.alloc((32 - (header.length % 32)) % 32));
  const numbers = new Float32Array(columns);
  const bits = new Uint32Array(numbers.buffer);
  const row = new Uint16Array(columns);
  let state = 1;
  for (let r = 0; r < rows; r += 1) {
    for (let c = 0; c < columns; c += 1) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      numbers[c] = 0.02 * Math.sin(r / 97) * Math.cos(c / 61) + 0.02 * (state / 2 ** 32 - 0.5);
      row[c] = bits[c] >>> 16;
    }
    writeSync(out, row);
  }
  closeSync(out);
}

function number(value, bytes) {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer.subarray(0, bytes);
}

if (process.argv[1]?.endsWith("big.mjs")) big(process.argv[2], process.argv[3]);
