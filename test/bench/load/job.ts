/** Where a server listens. */
export type Target = { readonly port: number } | { readonly socket: string };

/** In a header, this text is replaced by a unique text. */
export const unique = '{unique}';

/** The request; `{key}` in the path or the body is replaced by a license key. */
export type LoadRequest = {
  readonly method: 'GET' | 'PUT';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** The license keys of these numbers, requested in turn. */
export type KeyRange = { readonly first: number; readonly count: number };

/** A load for a server. */
export type Job = {
  readonly target: Target;
  readonly request: LoadRequest;
  readonly keys: KeyRange;
  readonly connections: number;
  /** Ends after this many seconds, or after each key was requested once. */
  readonly ending: { readonly seconds: number } | 'each key once';
  /**
   * Requests per second. They are sent when they are due, and latency counts from the due time. Null: each connection
   * sends the next request as soon as it has the response.
   */
  readonly rate: number | null;
};

/** The result of a load. Latencies are in ms. */
export type LoadResult = {
  readonly requests: number;
  /** Responses with another status than 200, and broken connections. */
  readonly failures: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
};
