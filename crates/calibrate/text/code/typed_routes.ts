/**
 * Type utilities and a tiny router that derives parameter types from path strings.
 *
 * ```ts
 * const routes = defineRoutes({
 *   album: "/albums/:albumId<int>",
 *   track: "/albums/:albumId<int>/tracks/:slug",
 *   search: "/search?q&page<int>",
 * });
 *
 * routes.build("track", { albumId: 7, slug: "coda" });  // "/albums/7/tracks/coda"
 * routes.match("/albums/7");  // { name: "album", params: { albumId: 7 } }
 * ```
 */

// ---------------------------------------------------------------------------
// General purpose helpers
// ---------------------------------------------------------------------------

/** Flattens an intersection so that editors show one object instead of `A & B & C`. */
export type Simplify<T> = { [K in keyof T]: T[K] } & {};

/** True when both types are mutually assignable in every position, including `any`. */
export type Equals<A, B> =
  (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;

export type Expect<T extends true> = T;

export type KeysMatching<T, V> = { [K in keyof T]-?: T[K] extends V ? K : never }[keyof T];

/** Makes the named keys optional and keeps the rest as they are. */
export type PartialBy<T, K extends keyof T> = Simplify<Omit<T, K> & Partial<Pick<T, K>>>;

export type DeepReadonly<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<DeepReadonly<K>, DeepReadonly<V>>
    : T extends object
      ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
      : T;

/** `Split<"a/b/c", "/">` is `["a", "b", "c"]`. */
export type Split<S extends string, D extends string> =
  string extends S ? string[]
  : S extends "" ? []
  : S extends `${infer Head}${D}${infer Tail}` ? [Head, ...Split<Tail, D>]
  : [S];

declare const brand: unique symbol;

/** Nominal typing: a `Brand<string, "Email">` cannot be made by accident. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

// ---------------------------------------------------------------------------
// Path grammar:  segment := text | ":" name [ "<" kind ">" ]
// ---------------------------------------------------------------------------

interface KindMap {
  string: string;
  int: number;
  bool: boolean;
  uuid: Brand<string, "Uuid">;
}

export type Uuid = KindMap["uuid"];
type Kind = keyof KindMap;

type ParseKind<S extends string> =
  S extends `${infer Name}<${infer K}>`
    ? K extends Kind ? { [P in Name]: KindMap[K] } : never
    : { [P in S]: string };

type SegmentParams<S> = S extends `:${infer Body}` ? ParseKind<Body> : {};

type PathParams<Segments extends readonly string[]> =
  Segments extends readonly [infer Head, ...infer Tail extends readonly string[]]
    ? SegmentParams<Head> & PathParams<Tail>
    : {};

type QueryParams<Names extends readonly string[]> =
  Names extends readonly [infer Head extends string, ...infer Tail extends readonly string[]]
    ? Partial<ParseKind<Head>> & QueryParams<Tail>
    : {};

/** The parameters of a pattern: path parameters are required, query parameters optional. */
export type ParamsOf<P extends string> = Simplify<
  P extends `${infer Path}?${infer Query}`
    ? PathParams<Split<Path, "/">> & QueryParams<Split<Query, "&">>
    : PathParams<Split<P, "/">>
>;

/** Lets callers leave out the argument when a route has nothing mandatory. */
type BuildArgs<P extends string> = {} extends ParamsOf<P>
  ? [params?: ParamsOf<P>]
  : [params: ParamsOf<P>];

export type MatchOf<R extends Record<string, string>> = {
  [N in keyof R & string]: { name: N; params: ParamsOf<R[N]> };
}[keyof R & string];

// ---------------------------------------------------------------------------
// Runtime
// ---------------------------------------------------------------------------

interface Parameter {
  readonly name: string;
  readonly kind: Kind;
}

type Segment = { readonly literal: string } | { readonly param: Parameter };

interface Compiled {
  readonly segments: readonly Segment[];
  readonly query: readonly Parameter[];
  /** Literal segments count more than parameters when two patterns fit. */
  readonly weight: number;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const decoders: { readonly [K in Kind]: (text: string) => KindMap[K] | undefined } = {
  string: (text) => text,
  int: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined),
  bool: (text) => (text === "true" ? true : text === "false" ? false : undefined),
  uuid: (text) => (UUID.test(text) ? (text.toLowerCase() as Uuid) : undefined),
};

function parseParameter(source: string): Parameter {
  const match = /^([A-Za-z_]\w*)(?:<(\w+)>)?$/.exec(source);
  if (!match) throw new SyntaxError(`malformed parameter "${source}"`);
  const [, name, kind = "string"] = match as unknown as [string, string, string?];
  if (!(kind in decoders)) throw new SyntaxError(`unknown kind "${kind}" in "${source}"`);
  return { name, kind: kind as Kind };
}

function compile(pattern: string): Compiled {
  if (!pattern.startsWith("/")) throw new SyntaxError(`"${pattern}" must begin with a slash`);
  const [path = "", query = ""] = pattern.split("?", 2);
  const segments = path.split("/").slice(1).map((part): Segment =>
    part.startsWith(":") ? { param: parseParameter(part.slice(1)) } : { literal: part },
  );
  return {
    segments,
    query: query === "" ? [] : query.split("&").map(parseParameter),
    weight: segments.reduce((sum, s) => sum * 2 + ("literal" in s ? 1 : 0), 1),
  };
}

/** Like decodeURIComponent, but a lone percent sign is a mismatch and not a crash. */
function safeDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function matchPath(route: Compiled, parts: readonly string[]): Record<string, unknown> | undefined {
  if (parts.length !== route.segments.length) return undefined;
  const params: Record<string, unknown> = {};
  for (const [i, segment] of route.segments.entries()) {
    const text = safeDecode(parts[i]!);
    if (text === undefined) return undefined;
    if ("literal" in segment) {
      if (segment.literal !== text) return undefined;
      continue;
    }
    const value = text === "" ? undefined : decoders[segment.param.kind](text);
    if (value === undefined) return undefined;
    params[segment.param.name] = value;
  }
  return params;
}

export interface Router<R extends Record<string, string>> {
  build<N extends keyof R & string>(name: N, ...args: BuildArgs<R[N]>): string;
  match(url: string): MatchOf<R> | undefined;
}

export function defineRoutes<const R extends Record<string, string>>(patterns: R): Router<R> {
  const compiled = new Map(Object.entries(patterns).map(([name, p]) => [name, compile(p)]));
  const bySpecificity = [...compiled].sort(([, a], [, b]) => b.weight - a.weight);

  return {
    build(name, ...[params]) {
      const route = compiled.get(name)!;
      const values = (params ?? {}) as Record<string, unknown>;
      const path = route.segments
        .map((s) => "/" + encodeURIComponent("literal" in s ? s.literal : String(values[s.param.name])))
        .join("");
      const search = new URLSearchParams();
      for (const { name: key } of route.query) {
        if (values[key] !== undefined) search.set(key, String(values[key]));
      }
      return search.size > 0 ? `${path}?${search}` : path;
    },

    match(url) {
      const [path = "", query = ""] = url.split("#", 1)[0]!.split("?", 2);
      const parts = path.replace(/^\//, "").replace(/(?<=.)\/$/, "").split("/");
      const search = new URLSearchParams(query);
      for (const [name, route] of bySpecificity) {
        const params = matchPath(route, parts);
        if (!params) continue;
        for (const { name: key, kind } of route.query) {
          const raw = search.get(key);
          // A bad query value is dropped: half a search is better than a dead link.
          const value = raw === null ? undefined : decoders[kind](raw);
          if (value !== undefined) params[key] = value;
        }
        return { name, params } as MatchOf<R>;
      }
      return undefined;
    },
  };
}

// ---------------------------------------------------------------------------
// Compile-time tests: this module does not type-check if one of them fails.
// ---------------------------------------------------------------------------

export type Tests = [
  Expect<Equals<Split<"x.y", ".">, ["x", "y"]>>,
  Expect<Equals<ParamsOf<"/">, {}>>,
  Expect<Equals<ParamsOf<"/u/:id<int>/:tab">, { id: number; tab: string }>>,
  Expect<Equals<ParamsOf<"/f?strict<bool>">, { strict?: boolean }>>,
  Expect<Equals<KeysMatching<{ a: 1; b: "s"; c: 2 }, number>, "a" | "c">>,
  Expect<Equals<PartialBy<{ p: 1; q: 2 }, "q">, { p: 1; q?: 2 }>>,
];
