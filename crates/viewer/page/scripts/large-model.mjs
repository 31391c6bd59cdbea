// Writes a model with one tensor of 4096 x 14336 in Q4_K, for the benchmark of the heat map.
//   node scripts/large-model.mjs GGUF OUTPUT
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { header } from "./gguf.mjs";

export function writeLargeModel(gguf, output, columns = 4096, rows = 14336) {
  const folder = mkdtempSync(path.join(tmpdir(), "gguf-big-"));
  try {
    const bf16 = path.join(folder, "big-bf16.gguf");
    write(bf16, columns, rows);
    execFileSync(gguf, ["quantize", "--pure", bf16, output, "q4_k"], { stdio: ["ignore", "ignore", "inherit"] });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Writes a BF16 matrix of waves with deterministic noise. */
function write(file, columns, rows) {
  const out = openSync(file, "w");
  writeSync(
    out,
    header({ "general.architecture": "llama" }, [
      { name: "blk.0.ffn_up.weight", shape: [columns, rows], type: "BF16" },
    ]),
  );
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

if (process.argv[1]?.endsWith("large-model.mjs")) writeLargeModel(process.argv[2], process.argv[3]);
