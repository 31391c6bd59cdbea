// Split models and remote models.
import assert from "node:assert/strict";
import { createReadStream, readdirSync, statSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { bytes, whole } from "../src/format";
import { accessible, launch, open, visit } from "./browser";
import { folder, models, run, serve } from "./server";

let browser: Browser;
let at: string;
let made: { f16: string; q4: string };
before(async () => {
  at = folder();
  made = models(at);
  browser = await launch();
});
after(() => browser.close());

/** HTTP server with range requests that counts the bytes sent. */
async function serveRanges(file: string): Promise<{ url: string; sent: () => number; stop: () => void }> {
  const { size } = statSync(file);
  let sent = 0;
  const server = http.createServer((request, response) => {
    const range = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? "");
    const first = Number(range?.[1] ?? 0);
    const last = Math.min(size - 1, range?.[2] ? Number(range[2]) : size - 1);
    const headers = { "content-length": last - first + 1, "accept-ranges": "bytes", etag: '"one"' };
    response.writeHead(
      range ? 206 : 200,
      range ? { ...headers, "content-range": `bytes ${first}-${last}/${size}` } : headers,
    );
    if (request.method === "HEAD") return void response.end();
    const stream = createReadStream(file, { start: first, end: last });
    stream.on("data", (part) => {
      sent += part.length;
    });
    stream.pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/${path.basename(file)}`,
    sent: () => sent,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("a remote model is read by range requests, and the page shows the traffic", async () => {
  const remote = await serveRanges(made.f16);
  const server = await serve(remote.url);
  const { page, faults } = await open(browser, server.base);
  await visit(page, `${server.base}#/0/overview`);
  await page.waitForFunction(() => /\d/.test(document.querySelector(".traffic-bytes")?.textContent ?? ""));
  const counted = async () => {
    // Both counters grow until the page is loaded.
    for (let tries = 0; ; tries++) {
      const { fetched_bytes } = (await server.api("models/0/traffic")) as { fetched_bytes: number };
      const shown = page.waitForFunction(
        (text) => document.querySelector(".traffic-bytes")?.textContent === text,
        bytes(fetched_bytes),
        { timeout: 3000 },
      );
      const isShown = await shown.then(
        () => true,
        () => false,
      );
      if (isShown) return fetched_bytes;
      assert.ok(tries < 10, "the page never shows the traffic");
    }
  };
  const header = await counted();
  assert.ok(header > 0 && header < statSync(made.f16).size / 2, `${header} bytes for the overview`);
  await visit(page, `${server.base}#/0/tensors/blk.0.attn_q.weight`);
  const more = await counted();
  assert.ok(more > header && more < statSync(made.f16).size, `${more} bytes with a tensor`);
  assert.ok(remote.sent() >= more);
  await accessible(page, "a remote model");
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
  remote.stop();
});

test("a split model is one model with several files", async () => {
  run("split", made.f16, path.join(at, "shards"), "--split-max-tensors", "10");
  const shards = readdirSync(at).filter((name) => name.startsWith("shards-"));
  assert.ok(shards.length > 2, shards.join(" "));
  const server = await serve(path.join(at, shards[0] ?? ""));
  const { page, faults } = await open(browser, server.base);
  await visit(page, server.base);
  assert.ok((await page.locator(".models-about").innerText()).includes(`${shards.length} files`));
  await visit(page, `${server.base}#/0/file?file=1`);
  assert.equal(await page.locator(".file-choice option").count(), shards.length);
  assert.match(await page.locator("main .detail-about").first().innerText(), /00002-of/);
  const { tensors } = (await server.api("models/0/tensors")) as {
    tensors: { n: number; name: string; file: number; offset: number; shape: number[] }[];
  };
  const second = tensors.find(({ file, shape }) => file === 1 && shape.length === 2);
  assert.ok(second);
  await visit(page, `${server.base}#/0/tensors/${second.n}?row=0&column=0`);
  const { values } = JSON.parse(run("inspect", made.f16, "--values", `${second.name}:0`, "--json")) as {
    values: { rows: number[][] };
  };
  assert.equal(await page.locator("table.numbers td.here").getAttribute("data-value"), String(values.rows[0]?.[0]));
  assert.ok(
    (await page.locator(".detail-about").innerText()).includes(whole(second.shape[0] ?? 0).replace("\u202f", "")),
  );
  assert.deepEqual(faults, []);
  await page.context().close();
  await server.stop();
});
