#!/usr/bin/env node
// A pastebin in one file, no dependencies. Texts expire, are stored compressed,
// and can be burned after the first reading.
//
//   curl --data-binary @notes.txt localhost:3000/            → prints an address
//   curl --data-binary @secret.txt 'localhost:3000/?ttl=1h&once'
//   curl localhost:3000/k3vq9tzm

import { createServer } from 'node:http';
import { randomBytes, createHmac, timingSafeEqual } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify, parseArgs } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', short: 'p', default: '3000' },
    dir: { type: 'string', short: 'd', default: './pastes' },
    'max-bytes': { type: 'string', default: String(512 * 1024) },
    'base-url': { type: 'string' },
  },
});

const MAX_BYTES = Number(options['max-bytes']);
const BASE_URL = options['base-url'] ?? `http://localhost:${options.port}`;
const UNITS = { m: 60, h: 3600, d: 86_400, w: 604_800 };
const MAX_TTL = 4 * UNITS.w;

// No vowels, so that no words appear by accident; no l, 1, o or 0 to misread.
const ALPHABET = '23456789bcdfghjkmnpqrstvwxz';

class HttpError extends Error {
  constructor(status, message, headers = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

function newId(length = 8) {
  let id = '';
  while (id.length < length) {
    for (const byte of randomBytes(length)) {
      // Rejection sampling: 243 is the largest multiple of 27 below 256.
      if (byte < 243 && id.length < length) id += ALPHABET[byte % ALPHABET.length];
    }
  }
  return id;
}

function parseTtl(text) {
  if (text === null) return UNITS.w;
  const match = /^(\d{1,4})([mhdw])$/.exec(text);
  if (!match) throw new HttpError(400, 'ttl looks like 30m, 12h, 5d or 2w');
  const seconds = Number(match[1]) * UNITS[match[2]];
  if (seconds === 0 || seconds > MAX_TTL) throw new HttpError(400, 'ttl must be at most 4w');
  return seconds;
}

/** Collects a request body, giving up as soon as it exceeds the limit. */
async function readBody(request, limit) {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limit) throw new HttpError(413, `at most ${limit} bytes, please`);
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > limit) throw new HttpError(413, `at most ${limit} bytes, please`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

class Store {
  #dir;
  #secret;

  static async open(dir) {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const store = new Store();
    store.#dir = dir;
    store.#secret = await Store.#loadSecret(join(dir, '.secret'));
    return store;
  }

  static async #loadSecret(path) {
    try {
      return await readFile(path);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
      const secret = randomBytes(32);
      // `wx` fails if another process was quicker; then its secret is the one.
      await writeFile(path, secret, { flag: 'wx', mode: 0o600 }).catch((e) => {
        if (e.code !== 'EEXIST') throw e;
      });
      return readFile(path);
    }
  }

  #path(id) {
    return join(this.#dir, `${id}.br`);
  }

  deletionToken(id) {
    return createHmac('sha256', this.#secret).update(id).digest('base64url').slice(0, 22);
  }

  async put(text, { ttl, once }) {
    const packed = await compress(text, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 6, [constants.BROTLI_PARAM_SIZE_HINT]: text.length },
    });
    const header = Buffer.alloc(9);
    header.writeDoubleBE(Date.now() + ttl * 1000, 0);
    header.writeUInt8(once ? 1 : 0, 8);

    for (let attempt = 0; attempt < 5; attempt++) {
      const id = newId();
      let file;
      try {
        file = await open(this.#path(id), 'wx', 0o600);
      } catch (error) {
        if (error.code === 'EEXIST') continue;
        throw error;
      }
      try {
        await file.writev([header, packed]);
        await file.sync();
      } finally {
        await file.close();
      }
      return id;
    }
    throw new Error('could not find a free id');
  }

  async get(id) {
    let raw = await this.#read(this.#path(id));
    if (raw === null) return null;
    const expires = raw.readDoubleBE(0);
    if (expires <= Date.now()) {
      await this.remove(id);
      return null;
    }
    const once = raw.readUInt8(8) === 1;
    if (once) {
      // Renaming is atomic, so of two simultaneous readers only one succeeds.
      const claimed = `${this.#path(id)}.${process.pid}.${randomBytes(4).toString('hex')}`;
      try {
        await rename(this.#path(id), claimed);
      } catch (error) {
        if (error.code === 'ENOENT') return null;
        throw error;
      }
      raw = await readFile(claimed);
      await unlink(claimed);
    }
    return { text: await decompress(raw.subarray(9)), expires, once };
  }

  async #read(path) {
    try {
      return await readFile(path);
    } catch (error) {
      if (error.code === 'ENOENT') return null;
      throw error;
    }
  }

  async remove(id) {
    try {
      await unlink(this.#path(id));
      return true;
    } catch (error) {
      if (error.code === 'ENOENT') return false;
      throw error;
    }
  }

  async sweep() {
    let removed = 0;
    for (const name of await readdir(this.#dir)) {
      if (!name.endsWith('.br')) continue;
      const file = await open(join(this.#dir, name)).catch(() => null);
      if (!file) continue;
      try {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(8), 0, 8, 0);
        if (bytesRead === 8 && buffer.readDoubleBE(0) <= Date.now()) {
          if (await this.remove(name.slice(0, -3))) removed++;
        }
      } finally {
        await file.close();
      }
    }
    return removed;
  }
}

/** Token bucket per address: bursts of ten, then one request every six seconds. */
class RateLimiter {
  #buckets = new Map();

  constructor(capacity, perSecond) {
    this.capacity = capacity;
    this.perSecond = perSecond;
  }

  take(key, now = performance.now()) {
    const bucket = this.#buckets.get(key) ?? { tokens: this.capacity, at: now };
    bucket.tokens = Math.min(this.capacity, bucket.tokens + ((now - bucket.at) / 1000) * this.perSecond);
    bucket.at = now;
    this.#buckets.delete(key); // re-insert at the end: the map doubles as an LRU list
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > 50_000) this.#buckets.delete(this.#buckets.keys().next().value);
    if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / this.perSecond);
    bucket.tokens -= 1;
    return 0;
  }
}

const store = await Store.open(options.dir);
const limiter = new RateLimiter(10, 1 / 6);

async function handle(request) {
  const url = new URL(request.url, BASE_URL);
  const [, id, rest] = /^\/([0-9b-z]*)(\/.*)?$/.exec(url.pathname) ?? [];
  if (id === undefined || rest) throw new HttpError(404, 'not found');

  if (id === '') {
    if (request.method !== 'POST') throw new HttpError(405, 'send your text with POST', { Allow: 'POST' });
    const wait = limiter.take(request.socket.remoteAddress);
    if (wait > 0) throw new HttpError(429, 'too fast', { 'Retry-After': wait });
    const ttl = parseTtl(url.searchParams.get('ttl'));
    const body = await readBody(request, MAX_BYTES);
    if (body.length === 0) throw new HttpError(400, 'there is nothing to paste');
    const created = await store.put(body, { ttl, once: url.searchParams.has('once') });
    return {
      status: 201,
      headers: { Location: `/${created}`, 'X-Deletion-Token': store.deletionToken(created) },
      body: `${BASE_URL}/${created}\n`,
    };
  }

  switch (request.method) {
    case 'GET': {
      const paste = await store.get(id);
      if (!paste) throw new HttpError(404, 'gone, or never was here');
      return {
        status: 200,
        headers: {
          'Cache-Control': paste.once ? 'no-store' : 'private, max-age=60',
          Expires: new Date(paste.expires).toUTCString(),
        },
        body: paste.text,
      };
    }
    case 'DELETE': {
      const given = Buffer.from(request.headers['x-deletion-token'] ?? '');
      const wanted = Buffer.from(store.deletionToken(id));
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw new HttpError(403, 'wrong token');
      if (!(await store.remove(id))) throw new HttpError(404, 'already gone');
      return { status: 204, headers: {}, body: '' };
    }
    default:
      throw new HttpError(405, 'GET or DELETE', { Allow: 'GET, DELETE' });
  }
}

const server = createServer({ requestTimeout: 20_000 }, async (request, response) => {
  const started = performance.now();
  let reply;
  try {
    reply = await handle(request);
  } catch (error) {
    if (!(error instanceof HttpError)) console.error(error);
    reply = error instanceof HttpError
      ? { status: error.status, headers: { ...error.headers, Connection: 'close' }, body: `${error.message}\n` }
      : { status: 500, headers: {}, body: 'internal error\n' };
  }
  response.writeHead(reply.status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'",
    ...reply.headers,
  });
  response.end(reply.body);
  console.log(`${request.method} ${reply.status} ${(performance.now() - started).toFixed(1)} ms`);
});

const sweeper = setInterval(async () => {
  const removed = await store.sweep().catch((error) => (console.error(error), 0));
  if (removed) console.log(`swept ${removed} expired pastes`);
}, 10 * 60 * 1000);
sweeper.unref();

server.listen(Number(options.port), () => console.log(`listening on ${BASE_URL}`));

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    clearInterval(sweeper);
    server.close(() => process.exit(0));
    setTimeout(() => server.closeAllConnections(), 5000).unref();
  });
}
