// Chromium, and checks for every page.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const sizes = { desktop: { width: 1360, height: 880 }, phone: { width: 375, height: 780 } };
export type Size = keyof typeof sizes;

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
}

export interface Tab {
  page: Page;
  /** Console errors, script errors, policy violations, and requests to other origins. */
  faults: string[];
}

/** Opens a page. Responses with a status in `allowed` are not faults. */
export async function open(
  browser: Browser,
  base: string,
  size: Size = "desktop",
  scheme: "light" | "dark" = "light",
  allowed: number[] = [],
): Promise<Tab> {
  const context = await browser.newContext({ viewport: sizes[size], colorScheme: scheme, hasTouch: size === "phone" });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => {
    // The console logs every error response.
    const status = /status of (\d+)/.exec(message.text())?.[1];
    if (status && allowed.includes(Number(status))) return;
    if (message.type() === "error" || message.type() === "warning") faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(base) && !request.url().startsWith("data:") && !request.url().startsWith("blob:"))
      faults.push(`request: ${request.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  return { page, faults };
}

/** Navigates and waits until everything is loaded. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await settled(page);
}

export async function settled(page: Page): Promise<void> {
  await page.waitForSelector("main h1");
  // The page renders after the URL fragment has changed.
  await frames(page);
  await page.waitForFunction(
    () =>
      !document.querySelector('[aria-busy="true"], .waiting') &&
      !document.querySelector('.heat-canvas:not([data-missing="0"])'),
  );
  await frames(page);
}

/** Waits for two frames: one for effects, one for their changes. */
async function frames(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Asserts that axe finds no violation. */
export async function accessible(page: Page, where: string): Promise<void> {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await (
      window as unknown as {
        axe: { run: () => Promise<{ violations: { id: string; help: string; nodes: { html: string }[] }[] }> };
      }
    ).axe.run();
    return violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`,
    );
  });
  assert.deepEqual(found, [], `axe at ${where}`);
}

/** Asserts that the page does not scroll horizontally. */
export async function fits(page: Page, where: string): Promise<void> {
  const moved = await page.evaluate(() => {
    scrollTo(1000, 0);
    return scrollX;
  });
  assert.equal(moved, 0, `${where} is wider than the window`);
}

/** Takes a screenshot if SHOTS names a folder. */
export async function shot(page: Page, name: string): Promise<void> {
  const folder = process.env.SHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
}
