// Values of the metadata.
import type { GgufArray } from "./array.js";

/** Value of the metadata. 64-bit integers beyond 2^53 are `bigint`; bytes that are not UTF-8 are U+FFFD in strings. */
export type Value = number | bigint | boolean | string | GgufArray;
