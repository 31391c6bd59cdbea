// Memory and speed of a model on a device, computed from its layers.
import type { Layers } from "../api/types";

export interface Device {
  name: string;
  /** Memory in GB, as vendors count: 10^9 bytes. */
  gigabytes: number;
  /** Memory bandwidth in GB/s. */
  bandwidth: number;
}

/** Graphics cards and computers with their memory and bandwidth (data sheets of the vendors). */
export const DEVICES: Device[] = [
  { name: "RTX 3060", gigabytes: 12, bandwidth: 360 },
  { name: "RTX 4060 Ti", gigabytes: 16, bandwidth: 288 },
  { name: "RTX 3090", gigabytes: 24, bandwidth: 936 },
  { name: "RTX 4090", gigabytes: 24, bandwidth: 1008 },
  { name: "RTX 5090", gigabytes: 32, bandwidth: 1792 },
  { name: "RX 7900 XTX", gigabytes: 24, bandwidth: 960 },
  { name: "Apple M4", gigabytes: 16, bandwidth: 120 },
  { name: "Apple M4 Max", gigabytes: 64, bandwidth: 546 },
  { name: "L40S", gigabytes: 48, bandwidth: 864 },
  { name: "A100", gigabytes: 80, bandwidth: 2039 },
  { name: "H100", gigabytes: 80, bandwidth: 3350 },
];

/** Bandwidth of host memory in GB/s: two channels of DDR5-5600. */
export const HOST_BANDWIDTH = 90;

/** Share of the memory of a device that a model may use; the rest is for the driver and the display. */
const USABLE = 0.94;

/** Bytes per element of the types of a KV cache in llama.cpp. */
export const CACHE_TYPES: Record<string, number> = {
  f32: 4,
  f16: 2,
  q8_0: 34 / 32,
  q5_1: 24 / 32,
  q5_0: 22 / 32,
  q4_1: 20 / 32,
  q4_0: 18 / 32,
};

/** What one token reads, and what stays in memory. */
export interface Sizes {
  layers: Layers["layers"];
  /** Bytes of the output projection, which counts as one more layer. */
  output: number;
  /** Bytes of the other tensors outside the layers. */
  rest: number;
  /** Share of the weights of each layer that a token reads: less than 1 with experts. */
  active: number;
  computeBuffer: number;
}

export interface Settings {
  context: number;
  batch: number;
  /** Bytes per element of the KV cache. */
  element: number;
}

/** llama.cpp allocates caches in steps of 256 cells. */
const padded = (cells: number) => Math.ceil(cells / 256) * 256;

/** Returns the bytes of the caches and states of a layer in llama.cpp: sliding-window layers keep the window and a batch. */
export function cacheOf(layer: Layers["layers"][number], { context, batch, element }: Settings): number {
  const bytes = layer.caches.map(({ key_width, value_width, block, window }) => {
    const all = padded(context);
    const cells = window === null ? all : Math.min(all, padded(window + batch));
    return (cells / block) * (key_width + value_width) * element;
  });
  return bytes.reduce((sum, part) => sum + part, layer.state);
}

export interface Fit {
  /** Layers on the device, with the output as the last one; and their number in total. */
  onDevice: number;
  count: number;
  deviceBytes: number;
  hostBytes: number;
  /** Upper bound of the tokens per second of one sequence, from the bytes that a token reads. */
  tokensPerSecond: number;
}

/** Divides a model between a device and the host, as `llama-server --n-gpu-layers` does: the last layers go first. */
export function divided(sizes: Sizes, settings: Settings, device: Device, layers: number | null): Fit {
  const parts = [
    ...sizes.layers.map((layer) => {
      const cache = cacheOf(layer, settings);
      return { bytes: layer.weights + cache, read: layer.weights * sizes.active + cache };
    }),
    { bytes: sizes.output, read: sizes.output },
  ];
  const room = device.gigabytes * 1e9 * USABLE - sizes.computeBuffer;
  let onDevice = 0;
  let deviceBytes = 0;
  for (const part of [...parts].reverse()) {
    if (layers === null ? deviceBytes + part.bytes > room : onDevice >= layers) break;
    deviceBytes += part.bytes;
    onDevice += 1;
  }
  const first = parts.length - onDevice;
  const sum = (list: typeof parts, of: "bytes" | "read") => list.reduce((sum, part) => sum + part[of], 0);
  const [host, onGpu] = [parts.slice(0, first), parts.slice(first)];
  const seconds = sum(onGpu, "read") / (device.bandwidth * 1e9) + sum(host, "read") / (HOST_BANDWIDTH * 1e9);
  return {
    onDevice,
    count: parts.length,
    deviceBytes: onDevice > 0 ? deviceBytes + sizes.computeBuffer : 0,
    hostBytes: sum(host, "bytes") + sizes.rest + (onDevice < parts.length ? sizes.computeBuffer : 0),
    tokensPerSecond: seconds > 0 ? 1 / seconds : 0,
  };
}

/** Returns the longest context with which the whole model fits the device, in steps of 256; 0 if none does. */
export function longestContext(sizes: Sizes, settings: Settings, device: Device, limit: number): number {
  const fits = (context: number) => {
    const { onDevice, count } = divided(sizes, { ...settings, context }, device, null);
    return onDevice === count;
  };
  let [low, high] = [0, Math.ceil(limit / 256)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle * 256)) low = middle;
    else high = middle - 1;
  }
  return low * 256;
}

/** Whether a device has room for the bytes of a model. */
export function hasRoom(device: Device, bytes: number): boolean {
  return bytes <= device.gigabytes * 1e9 * USABLE;
}
