import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { parseLicenseKey } from '../../../../src/domain/license.ts';
import { listen, type Listener } from '../../../support/network/listener.ts';
import type { LeaseVectors } from './vectors.ts';

/** A server on the port of a holder, which answers as an attacker likes. */
export interface FakeHolder extends Listener {
  /** The forms of the uses that were counted. */
  readonly counted: string[];
  /** What was asked for leases: the query, and the header Prefer. */
  readonly asked: { readonly query: URLSearchParams; readonly prefer: string | undefined }[];
}

type Reply = { readonly status?: number; readonly body: unknown };

/**
 * Starts a server that answers each license key with its answer of `vectors`. Whoever only asks `license/verify` reads that
 * every license key is valid.
 */
export async function startFakeHolder({ vectors }: LeaseVectors): Promise<FakeHolder> {
  const byKey = new Map(vectors.map((each) => [parseLicenseKey(each.typed), each]));
  return await startHolderWith((licenseKey, nonce) => {
    const found = byKey.get(parseLicenseKey(licenseKey));
    if (found === undefined) return { status: 404, body: problem('license_not_found', 404) };
    return { body: { data: found.answer(nonce) } };
  });
}

/** Starts a server that answers `GET /agent/v1/lease` with what `answer` returns. */
export async function startHolderWith(
  answer: (licenseKey: string, nonce: string) => Reply,
): Promise<FakeHolder> {
  const counted: string[] = [];
  const asked: { query: URLSearchParams; prefer: string | undefined }[] = [];
  const licensed = (uses: number) => ({
    enabled: true,
    uses,
    license_key: '',
    product_link: '',
    buyer_email: '',
    date: '2026-02-22T10:00:00Z',
  });
  const handle = (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const reply: Reply = (() => {
      if (pathname === '/agent/v1/lease') {
        asked.push({ query: searchParams, prefer: request.headers['prefer'] as string | undefined });
        return answer(searchParams.get('license_key') ?? '', searchParams.get('nonce') ?? '');
      }
      if (request.method === 'PUT') counted.push(body);
      return { body: { data: licensed(1) } };
    })();
    response
      .writeHead(reply.status ?? 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(reply.body));
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      handle(request, response, Buffer.concat(chunks).toString());
    });
  });
  return Object.assign(await listen(server), { counted, asked });
}

export function problem(code: string, status: number): object {
  return { type: 'about:blank', title: code, status, detail: '', code };
}
