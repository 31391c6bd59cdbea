// The page from ../dist or another folder, with the API of a running `gguf view`: for working on the page without building
// the program each time.
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

/** Serves `folder` in place of the page of the server at `base`; gives the new address, and a function that ends it. */
export async function proxy(base, folder) {
  const target = new URL(base);
  const server = http.createServer(async (request, answer) => {
    if (!request.url?.startsWith(target.pathname)) return void answer.writeHead(404).end();
    const name = request.url.slice(target.pathname.length).split("?")[0] || "index.html";
    if (name.startsWith("api/")) return void forward(request, answer, target);
    try {
      const bytes = await readFile(path.join(folder, path.basename(name)));
      // The policy is that of the server.
      const policy = (await fetch(base)).headers.get("content-security-policy");
      answer
        .writeHead(200, {
          "content-type": TYPES[path.extname(name)] ?? "application/octet-stream",
          ...(policy ? { "content-security-policy": policy } : {}),
        })
        .end(bytes);
    } catch {
      answer.writeHead(404).end();
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

function forward(request, answer, target) {
  const headers = { ...request.headers, host: target.host };
  if (headers.origin) headers.origin = target.origin;
  const further = http.request(
    { host: target.hostname, port: target.port, path: request.url, method: request.method, headers },
    (given) => {
      answer.writeHead(given.statusCode, given.headers);
      given.pipe(answer);
    },
  );
  further.on("error", () => answer.destroy());
  answer.on("close", () => further.destroy());
  request.pipe(further);
}
