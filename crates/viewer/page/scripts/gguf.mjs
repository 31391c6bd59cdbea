// Writes headers of unusual GGUF files, such as ten thousand tensors or names with scripts.

const TYPES = { F32: { number: 0, bytes: 4 }, BF16: { number: 30, bytes: 2 } };

/**
 * Returns the header. Values are strings, UINT32 numbers, or arrays of strings or INT32 numbers.
 * @param {Record<string, string | number | string[] | number[]>} keys
 * @param {{ name: string, shape: number[], type: "F32" | "BF16" }[]} tensors
 */
export function header(keys, tensors) {
  const parts = [Buffer.from("GGUF"), u32(3), u64(tensors.length), u64(Object.keys(keys).length)];
  for (const [name, value] of Object.entries(keys)) parts.push(text(name), typed(value));
  let offset = 0;
  for (const { name, shape, type } of tensors) {
    parts.push(text(name), u32(shape.length), ...shape.map(u64), u32(TYPES[type].number), u64(offset));
    offset += aligned(bytes({ shape, type }));
  }
  const all = Buffer.concat(parts);
  return Buffer.concat([all, Buffer.alloc(aligned(all.length) - all.length)]);
}

/** Returns the data size of a tensor in bytes. */
export function bytes({ shape, type }) {
  return shape.reduce((product, n) => product * n, 1) * TYPES[type].bytes;
}

/** Rounds a length up to the alignment. */
export function aligned(length) {
  return Math.ceil(length / 32) * 32;
}

function typed(value) {
  if (typeof value === "string") return Buffer.concat([u32(8), text(value)]);
  if (typeof value === "number") return Buffer.concat([u32(4), u32(value)]);
  const texts = typeof value[0] === "string";
  return Buffer.concat([u32(9), u32(texts ? 8 : 5), u64(value.length), ...value.map(texts ? text : u32)]);
}

function text(value) {
  const encoded = Buffer.from(value);
  return Buffer.concat([u64(encoded.length), encoded]);
}

function u32(value) {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(value >>> 0);
  return buffer;
}

function u64(value) {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer;
}
