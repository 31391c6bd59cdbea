declare module "*/proxy.mjs" {
  export function proxy(base: string, folder: string): Promise<{ base: string; stop: () => void }>;
}

declare module "*/gguf.mjs" {
  interface Tensor {
    name: string;
    shape: number[];
    type: "F32" | "BF16";
  }
  export function header(keys: Record<string, string | number | string[] | number[]>, tensors: Tensor[]): Buffer;
  export function bytes(tensor: { shape: number[]; type: "F32" | "BF16" }): number;
  export function aligned(length: number): number;
}
