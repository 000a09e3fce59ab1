import type { ProblemObject } from '../../../wire/response.ts';
import { currentSession, endSession } from './session.ts';

/** A refusal of the daemon, or no answer (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly errors: ProblemObject['errors'];

  constructor(status: number, code: string, detail: string, errors?: ProblemObject['errors']) {
    super(detail);
    this.status = status;
    this.code = code;
    this.errors = errors;
  }
}

/** Any error as one that can be shown. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, 'unknown', error instanceof Error ? error.message : String(error));
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type Sent = {
  /** Sent as JSON; a string or the part of a file is sent as CSV. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

/** Calls the daemon with the token of the session. Throws an `ApiError` unless the status is 2xx or 304. */
export async function call(method: Method, path: string, sent: Sent = {}): Promise<Response> {
  const session = currentSession();
  if (session === null && !path.startsWith('/console/')) throw signedOut();
  const headers = new Headers(sent.headers);
  if (session !== null) headers.set('Authorization', `Bearer ${session.token}`);
  const csv = typeof sent.body === 'string' || sent.body instanceof Blob ? sent.body : null;
  if (sent.body !== undefined) headers.set('Content-Type', csv !== null ? 'text/csv' : 'application/json');
  const body = csv ?? JSON.stringify(sent.body);
  const response = await fetch(path, {
    method,
    headers,
    ...(sent.body !== undefined && { body }),
    ...(sent.signal !== undefined && { signal: sent.signal }),
    cache: 'no-store',
    credentials: 'omit',
  }).catch((error: unknown) => {
    if (sent.signal?.aborted === true) throw error;
    throw new ApiError(0, 'no_answer', 'The daemon does not answer.');
  });
  if (response.ok || response.status === 304) return response;
  if (response.status !== 401 || session === null) throw await errorOf(response);
  // A daemon that was restarted knows no session.
  if (session.token === currentSession()?.token) endSession(session);
  throw signedOut();
}

function signedOut(): ApiError {
  return new ApiError(401, 'signed_out', 'Nothing was done: the session had ended. Sign in, and try again.');
}

/** The address of the next page of a list; null: there is none. */
export function nextOf(response: Response): string | null {
  const link = response.headers.get('Link') ?? '';
  return /^<(?<next>[^>]+)>; rel="next"/.exec(link)?.groups?.['next'] ?? null;
}

/** Reads a list with all its pages; `member` is its name in the answer. */
export async function readAll<Item>(path: string, member: string): Promise<readonly Item[]> {
  const all: Item[] = [];
  for (let next: string | null = `${path}${path.includes('?') ? '&' : '?'}limit=100`; next !== null;) {
    const response: Response = await call('GET', next);
    const { data } = (await response.json()) as { data: Record<string, Item[]> };
    all.push(...(data[member] ?? []));
    next = nextOf(response);
  }
  return all;
}

/** Calls the daemon and returns the member `data` of the answer. */
export async function send<Data = unknown>(method: Method, path: string, body?: unknown): Promise<Data> {
  const response = await call(method, path, body === undefined ? {} : { body });
  if (response.status === 204) return undefined as Data;
  return ((await response.json()) as { data: Data }).data;
}

async function errorOf(response: Response): Promise<ApiError> {
  const problem = (await response.json().catch(() => ({}))) as Partial<ProblemObject>;
  const {
    code = 'unknown',
    detail = `The daemon answered with status ${response.status}.`,
    errors,
  } = problem;
  return new ApiError(response.status, code, detail, errors);
}

/** A path with the parameters that have a value. */
export function withQuery(path: string, query: Readonly<Record<string, string | null | undefined>>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => (pair[1] ?? '') !== '');
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}
