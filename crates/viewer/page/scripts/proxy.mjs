// Serves the page from a folder with the API of a running `gguf view`, so that the binary need not be rebuilt.
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** Serves `folder` instead of the page at `base`. Returns the new URL and a function that stops the proxy. */
export async function proxy(base, folder) {
  const target = new URL(base);
  const server = http.createServer(async (request, response) => {
    if (!request.url?.startsWith(target.pathname)) return void response.writeHead(404).end();
    const name = request.url.slice(target.pathname.length).split("?")[0] || "index.html";
    if (name.startsWith("api/")) return void forward(request, response, target);
    try {
      const bytes = await readFile(path.join(folder, path.basename(name)));
      // Use the security policy of the server.
      const policy = (await fetch(base)).headers.get("content-security-policy");
      response
        .writeHead(200, {
          "content-type": TYPES[path.extname(name)] ?? "application/octet-stream",
          ...(policy ? { "content-security-policy": policy } : {}),
        })
        .end(bytes);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = `http://127.0.0.1:${server.address().port}${target.pathname}`;
  return {
    base: own,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function forward(request, response, target) {
  const headers = { ...request.headers, host: target.host };
  if (headers.origin) headers.origin = target.origin;
  const upstream = http.request(
    { host: target.hostname, port: target.port, path: request.url, method: request.method, headers },
    (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    },
  );
  upstream.on("error", () => response.destroy());
  response.on("close", () => upstream.destroy());
  request.pipe(upstream);
}
