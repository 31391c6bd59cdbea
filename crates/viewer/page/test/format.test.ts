// Number formats.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, fixed, share, significant, visible, whole } from "../src/format";

test("sizes and counts as in crates/kit/src/units.rs", () => {
  assert.equal(bytes(0), "0 B");
  assert.equal(bytes(999), "999 B");
  assert.equal(bytes(1_500), "1.50 kB");
  assert.equal(bytes(8_446_368), "8.45 MB");
  assert.equal(bytes(999_999_999), "1.00 GB");
  assert.equal(bytes(140_544), "140.5 kB");
  assert.equal(count(7_240_000_000), "7.24B");
  assert.equal(count(12), "12");
});

test("ties round to even, as in Rust", () => {
  assert.equal(fixed(1.125, 2), "1.12");
  assert.equal(fixed(1.375, 2), "1.38");
  assert.equal(fixed(0.25, 1), "0.2");
  assert.equal(fixed(10.75, 1), "10.8");
  assert.equal(fixed(2.675, 2), "2.67");
  assert.equal(fixed(-1.125, 2), "-1.12");
});

test("weights have four significant digits", () => {
  assert.equal(significant(0), "0");
  assert.equal(significant(0.0302), "0.03020");
  assert.equal(significant(-1.2664), "-1.266");
  assert.equal(significant(1234.5), "1234");
  assert.equal(significant(123456), "1.235e5");
  assert.equal(significant(0.00001234), "1.234e-5");
  assert.equal(significant(null), "NaN");
  assert.equal(significant(Number.POSITIVE_INFINITY), "inf");
});

test("integers, percentages and control characters", () => {
  assert.equal(whole(262144), "262\u202f144");
  assert.equal(whole(999), "999");
  assert.equal(share(687, 1000), "68.7%");
  assert.equal(share(1, 0), "0.0%");
  assert.equal(visible("a\nb\u202ec"), "a\u240ab<U+202E>c");
});
