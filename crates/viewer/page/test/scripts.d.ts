declare module "*/proxy.mjs" {
  export function proxy(base: string, folder: string): Promise<{ base: string; stop: () => void }>;
}
