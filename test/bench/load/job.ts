/** Where a server listens. */
export type Target = { readonly port: number } | { readonly socket: string };

/** In a header, a text that no other request has. */
export const unique = '{unique}';

/** What is asked; `{key}` in the path or the body stands for a license key. */
export type LoadRequest = {
  readonly method: 'GET' | 'PUT';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** License keys by their numbers, asked for in turn. */
export type KeyRange = { readonly first: number; readonly count: number };

/** How a server is put under load. */
export type Job = {
  readonly target: Target;
  readonly request: LoadRequest;
  readonly keys: KeyRange;
  readonly connections: number;
  /** Ends after so many seconds, or when each key was asked for once. */
  readonly ending: { readonly seconds: number } | 'each key once';
  /**
   * Requests a second, sent when they are due whether or not earlier ones were answered, and latency counted
   * from then; null: each connection asks again as soon as it was answered.
   */
  readonly rate: number | null;
};

/** What came of it; latencies in ms. */
export type LoadResult = {
  readonly requests: number;
  /** Answers with another status than 200, and connections that broke. */
  readonly failures: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
};
