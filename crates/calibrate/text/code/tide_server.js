#!/usr/bin/env node
'use strict';

// A little harbour service: gauges POST their readings, browsers GET them back or
// listen to a live stream. Only the standard library, one process, one append-only file.
//
//   PORT=8040 DATA=./readings.ndjson GAUGE_KEY=change-me node tide_server.js

const http = require('node:http');
const fs = require('node:fs');
const path = require('node:path');
const readline = require('node:readline');
const { once } = require('node:events');
const { createHash, timingSafeEqual } = require('node:crypto');

const config = Object.freeze({
  port: Number(process.env.PORT ?? 8040),
  file: path.resolve(process.env.DATA ?? 'readings.ndjson'),
  key: process.env.GAUGE_KEY ?? '',
  maxBody: 16 * 1024,
  keepPerStation: 2880, // ten days at one reading every five minutes
});

class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/* ---------------------------------------------------------------- storage */

class ReadingStore {
  #stations = new Map();
  #listeners = new Set();
  #out = null;

  async open(file) {
    if (fs.existsSync(file)) {
      const lines = readline.createInterface({ input: fs.createReadStream(file), crlfDelay: Infinity });
      let damaged = 0;
      for await (const line of lines) {
        if (line.trim() === '') continue;
        try {
          this.#remember(JSON.parse(line));
        } catch {
          damaged++; // typically a half-written last line after a power cut
        }
      }
      if (damaged > 0) console.warn(`skipped ${damaged} unreadable line(s) in ${file}`);
    }
    this.#out = fs.createWriteStream(file, { flags: 'a' });
    await once(this.#out, 'open');
  }

  #remember(reading) {
    let series = this.#stations.get(reading.station);
    if (!series) this.#stations.set(reading.station, (series = []));

    // Readings nearly always arrive in order, so look for the place from the end.
    let i = series.length;
    while (i > 0 && series[i - 1].at > reading.at) i--;
    if (i > 0 && series[i - 1].at === reading.at) return false;
    series.splice(i, 0, { at: reading.at, metres: reading.metres });
    if (series.length > config.keepPerStation) series.shift();
    return true;
  }

  async add(reading) {
    if (!this.#remember(reading)) return false;
    if (!this.#out.write(JSON.stringify(reading) + '\n')) await once(this.#out, 'drain');
    for (const listener of this.#listeners) listener(reading);
    return true;
  }

  stations() {
    return [...this.#stations].map(([name, series]) => ({
      name,
      count: series.length,
      latest: series.at(-1),
    }));
  }

  between(station, from, to) {
    const series = this.#stations.get(station);
    if (!series) throw new HttpError(404, `no station called "${station}"`);
    return series.filter((r) => r.at >= from && r.at <= to);
  }

  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close() {
    return new Promise((resolve) => this.#out.end(resolve));
  }
}

// Local maxima and minima, ignoring wiggles smaller than `slack` metres (waves, passing ferries).
function turningPoints(series, slack = 0.08) {
  const found = [];
  let direction = 0;
  let extreme = series[0];
  for (const r of series) {
    const change = r.metres - extreme.metres;
    if (direction === 0) {
      if (Math.abs(change) > slack) {
        direction = Math.sign(change);
        extreme = r;
      }
    } else if (change * direction > 0) {
      extreme = r;
    } else if (Math.abs(change) > slack) {
      found.push({ ...extreme, kind: direction > 0 ? 'high' : 'low' });
      direction = -direction;
      extreme = r;
    }
  }
  return found;
}

/* ------------------------------------------------------------------- HTTP */

async function readJson(req) {
  if (!/^application\/json\b/.test(req.headers['content-type'] ?? '')) {
    throw new HttpError(415, 'send application/json');
  }
  const chunks = [];
  let size = 0;
  for await (const chunk of req) {
    size += chunk.length;
    if (size > config.maxBody) throw new HttpError(413, 'body too large');
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new HttpError(400, 'malformed JSON');
  }
}

function sendJson(res, status, value) {
  const body = JSON.stringify(value);
  res.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  res.end(body);
}

const digest = (text) => createHash('sha256').update(text).digest();

function requireKey(req) {
  const given = (req.headers.authorization ?? '').replace(/^Bearer\s+/i, '');
  // Hashing both sides first makes the lengths equal, which timingSafeEqual insists on.
  if (config.key === '' || !timingSafeEqual(digest(given), digest(config.key))) {
    throw new HttpError(401, 'unknown gauge');
  }
}

function parseTime(text, fallback) {
  if (text === null) return fallback;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new HttpError(400, `cannot read the time "${text}"`);
  return ms;
}

function validate(body) {
  const { station, at, metres } = body ?? {};
  if (typeof station !== 'string' || !/^[a-z][a-z0-9-]{1,30}$/.test(station)) {
    throw new HttpError(422, 'station: lower-case letters, digits and hyphens');
  }
  if (typeof metres !== 'number' || metres < -20 || metres > 20) {
    throw new HttpError(422, 'metres: a number between -20 and 20');
  }
  const when = typeof at === 'string' ? Date.parse(at) : NaN;
  if (!(when <= Date.now() + 60_000)) throw new HttpError(422, 'at: an ISO date, not in the future');
  return { station, at: when, metres };
}

function buildRoutes(store) {
  return [
    ['GET', /^\/stations$/, (req, res) => sendJson(res, 200, store.stations())],

    ['GET', /^\/stations\/(?<station>[\w-]+)\/levels$/, (req, res, { params, query }) => {
      const to = parseTime(query.get('to'), Date.now());
      const from = parseTime(query.get('from'), to - 24 * 3600_000);
      sendJson(res, 200, store.between(params.station, from, to));
    }],

    ['GET', /^\/stations\/(?<station>[\w-]+)\/turns$/, (req, res, { params }) => {
      const series = store.between(params.station, -Infinity, Infinity);
      sendJson(res, 200, turningPoints(series).slice(-8));
    }],

    ['POST', /^\/readings$/, async (req, res) => {
      requireKey(req);
      const fresh = await store.add(validate(await readJson(req)));
      sendJson(res, fresh ? 201 : 200, { stored: fresh });
    }],

    ['GET', /^\/live$/, (req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      res.write('retry: 5000\n\n');
      const stop = store.subscribe((r) => res.write(`event: level\ndata: ${JSON.stringify(r)}\n\n`));
      const heartbeat = setInterval(() => res.write(': still here\n\n'), 25_000);
      res.on('close', () => {
        clearInterval(heartbeat);
        stop();
      });
    }],
  ];
}

async function handle(routes, req, res) {
  try {
    const url = new URL(req.url, 'http://localhost');
    const allowed = [];
    for (const [method, pattern, action] of routes) {
      const match = pattern.exec(url.pathname);
      if (!match) continue;
      if (method === req.method) {
        await action(req, res, { params: match.groups ?? {}, query: url.searchParams });
        return;
      }
      allowed.push(method);
    }
    if (allowed.length === 0) throw new HttpError(404, 'nothing here');
    res.setHeader('allow', allowed.join(', '));
    throw new HttpError(405, `${req.method} is not supported`);
  } catch (err) {
    const status = err instanceof HttpError ? err.status : 500;
    if (status === 500) console.error(err);
    if (res.headersSent) res.destroy();
    else sendJson(res, status, { error: status === 500 ? 'internal error' : err.message });
  }
}

async function main() {
  const store = new ReadingStore();
  await store.open(config.file);
  const routes = buildRoutes(store);
  const server = http.createServer((req, res) => void handle(routes, req, res));
  server.listen(config.port, () => console.log(`tide server on port ${config.port}`));

  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      console.log(`${signal}: closing`);
      server.close(async () => {
        await store.close();
        process.exit(0);
      });
      server.closeAllConnections(); // event streams would otherwise hold the door open
    });
  }
}

if (require.main === module) {
  main().catch((err) => {
    console.error(err);
    process.exitCode = 1;
  });
}

module.exports = { ReadingStore, turningPoints, validate };
