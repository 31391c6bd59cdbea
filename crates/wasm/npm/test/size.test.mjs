// The package is small enough for a page.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { built } from "./files.mjs";

test("module and scripts take less than 1.5 MB compressed", (context) => {
  const names = readdirSync(built).filter((name) => /\.(js|wasm)$/.test(name));
  const files = names.map((name) => readFileSync(path.join(built, name)));
  const sum = (size) => files.reduce((total, file) => total + size(file), 0);
  const plain = sum((file) => file.length);
  const gzip = sum((file) => gzipSync(file, { level: 9 }).length);
  const brotli = sum((file) => brotliCompressSync(file).length);
  context.diagnostic(`${plain} bytes, gzip ${gzip}, brotli ${brotli}`);
  assert.ok(gzip < 1_500_000, String(gzip));
  assert.ok(brotli < 1_500_000, String(brotli));
});
