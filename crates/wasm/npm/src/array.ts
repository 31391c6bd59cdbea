// Arrays of the metadata.
import { NestedArray } from "./gguf_wasm.js";
import type { Value } from "./value.js";

/** Elements of an array: a typed array for numbers, else a list. */
export type Elements =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigUint64Array
  | BigInt64Array
  | string[]
  | boolean[]
  | GgufArray[];

/** Function of the module that returns elements in a range. */
type Read = (start: number, end: number) => unknown;

/**
 * Array of the metadata: a view of the model, whose elements become JavaScript values on demand. It ends with the model; what
 * `slice` and `toArray` returned stays.
 */
export class GgufArray implements Iterable<Value> {
  /** Type of the elements, such as `STRING` or `FLOAT32`. */
  readonly elementType: string;
  /** Number of elements. */
  readonly length: number;
  readonly #read: Read;

  /** @internal */
  constructor([elementType, length]: [string, number], read: Read) {
    this.elementType = elementType;
    this.length = length;
    this.#read = read;
  }

  /** Returns the element at an index. Takes time proportional to the index. */
  at(index: number): Value | undefined {
    return this.slice(index, index + 1)[0];
  }

  /** Returns the elements in a range. Indices are not negative. */
  slice(start = 0, end = this.length): Elements {
    const last = Math.min(Math.max(Math.trunc(end), 0), this.length);
    const elements = this.#read(Math.min(Math.max(Math.trunc(start), 0), last), last);
    if (this.elementType === "STRING") return strings(elements as [Uint16Array, Uint32Array]);
    return this.elementType === "ARRAY" ? (elements as NestedArray[]).map(nested) : (elements as Elements);
  }

  /** Returns all elements. */
  toArray(): Elements {
    return this.slice();
  }

  [Symbol.iterator](): Iterator<Value> {
    return (this.toArray() as Iterable<Value>)[Symbol.iterator]();
  }
}

function nested(array: NestedArray): GgufArray {
  return new GgufArray(array.description() as [string, number], (start, end) => array.elements(start, end));
}

const utf16 = new TextDecoder("utf-16le", { ignoreBOM: true });

/** Cuts the strings out of one text. */
function strings([units, lengths]: [Uint16Array, Uint32Array]): string[] {
  const text = utf16.decode(units);
  const found = new Array<string>(lengths.length);
  let at = 0;
  for (let i = 0; i < lengths.length; i++) {
    const next = at + lengths[i]!;
    found[i] = text.substring(at, next);
    at = next;
  }
  return found;
}
