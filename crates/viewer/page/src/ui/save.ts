// Saves files that the page has made.

/** Saves a blob under a name that every file system accepts. */
export function saveBlob(blob: Blob, name: string, extension: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  const safe = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^-+|-+$/g, "");
  link.download = `${safe.slice(0, 120) || "gguf"}.${extension}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Saves a canvas as PNG. */
export function savePng(canvas: HTMLCanvasElement, name: string): void {
  canvas.toBlob((blob) => blob && saveBlob(blob, name, "png"), "image/png");
}
