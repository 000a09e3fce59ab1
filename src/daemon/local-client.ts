import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stateFiles } from '../store/sqlite/files/state-directory.ts';

/** The response of a local server, with its body parsed. */
export type LocalResponse = { status: number; headers: Headers; body: unknown };

/** Calls a local server over TCP, as any software does, with the same headers on every call. The sandbox and tests use it. */
export class LocalClient {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor(base: string, headers: Record<string, string>) {
    this.#base = base;
    this.#headers = headers;
  }

  get(path: string): Promise<LocalResponse> {
    return this.#call(path, { method: 'GET' });
  }

  putForm(path: string, form: Record<string, string>): Promise<LocalResponse> {
    return this.#call(path, { method: 'PUT', body: new URLSearchParams(form) });
  }

  postJson(path: string, value: unknown): Promise<LocalResponse> {
    const headers = { 'content-type': 'application/json' };
    return this.#call(path, { method: 'POST', body: JSON.stringify(value), headers });
  }

  async #call(path: string, init: RequestInit): Promise<LocalResponse> {
    const response = await fetch(new URL(path, this.#base), {
      ...init,
      headers: { ...(init.headers as Record<string, string> | undefined), ...this.#headers },
      signal: AbortSignal.timeout(35_000),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === '' ? null : JSON.parse(text),
    };
  }
}

/** A client with all rights, by the admin token in the state directory of the server. */
export function adminClient(stateDir: string, url: string): LocalClient {
  return new LocalClient(url, { authorization: `Bearer ${readAdminToken(stateDir)}` });
}

export function readAdminToken(stateDir: string): string {
  return readFileSync(join(stateDir, stateFiles.adminToken), 'utf8').trim();
}
