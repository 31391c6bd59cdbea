// Server of the package, of a page and of files, in several ways of real servers.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { built } from "./files.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const types = { ".js": "text/javascript", ".wasm": "application/wasm" };

/** Starts a server of a folder on loopback; returns its URL. It ends with the process. */
export async function serve(folder) {
  /** Requests of files by name. */
  const log = {};
  const server = createServer(async (request, response) => {
    const [, kind, name = ""] = decodeURIComponent(request.url.split("?")[0]).split("/");
    try {
      if (kind === "") return void response.setHeader("content-type", "text/html").end("<!doctype html>");
      if (kind === "log") return void response.end(JSON.stringify(log[name] ?? []));
      if (kind === "test" || kind === "package") {
        const file = path.join(kind === "test" ? here : built, name);
        response.setHeader("content-type", types[path.extname(file)] ?? "text/plain");
        return void response.end(await readFile(file));
      }
      const bytes = await readFile(path.join(folder, name));
      const sent = send(kind, request, response, bytes);
      if (kind === "ranges")
        (log[name] ??= []).push({ method: request.method, range: request.headers.range, bytes: sent });
    } catch {
      response.statusCode = 404;
      response.end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return `http://127.0.0.1:${server.address().port}`;
}

/** Sends a range, and returns the number of its bytes. */
function send(kind, request, response, bytes) {
  if (kind === "missing") throw new Error("there is no such file");
  if (kind === "endless") {
    response.write(bytes);
    return void response.end();
  }
  if (kind === "whole" || !request.headers.range) {
    response.setHeader("content-length", bytes.length);
    return void response.end(request.method === "HEAD" ? undefined : bytes);
  }
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range).map(Number);
  const last = Math.min(end, bytes.length - 1);
  if (start > last) {
    response.writeHead(416, { "content-range": `bytes */${bytes.length}` });
    response.end();
    return 0;
  }
  const first = kind === "wrong" ? start + 1 : start;
  const part = bytes.subarray(first, kind === "short" ? last - 9 : last + 1);
  response.writeHead(206, {
    ...(kind !== "hidden" && { "content-range": `bytes ${first}-${last}/${bytes.length}` }),
    etag: kind === "changing" ? `"${start}"` : '"1"',
  });
  response.end(part);
  return part.length;
}
