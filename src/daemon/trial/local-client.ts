/** An answer of a local process, its body parsed. */
export type LocalAnswer = { status: number; headers: Headers; body: unknown };

/** Calls a local process over TCP, as any software would, with these headers on every call. */
export class LocalClient {
  readonly #base: string;
  readonly #headers: Record<string, string>;

  constructor(base: string, headers: Record<string, string>) {
    this.#base = base;
    this.#headers = headers;
  }

  get(path: string): Promise<LocalAnswer> {
    return this.#call(path, { method: 'GET' });
  }

  putForm(path: string, form: Record<string, string>): Promise<LocalAnswer> {
    return this.#call(path, { method: 'PUT', body: new URLSearchParams(form) });
  }

  postJson(path: string, value: unknown): Promise<LocalAnswer> {
    const headers = { 'content-type': 'application/json' };
    return this.#call(path, { method: 'POST', body: JSON.stringify(value), headers });
  }

  async #call(path: string, init: RequestInit): Promise<LocalAnswer> {
    const answer = await fetch(new URL(path, this.#base), {
      ...init,
      headers: { ...(init.headers as Record<string, string> | undefined), ...this.#headers },
      signal: AbortSignal.timeout(35_000),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? null : JSON.parse(text) };
  }
}
