import { requestIdHeader } from '../../domain/header-names.ts';
import type { Readiness, ServerSettings } from '../app.ts';

/** The header of a caller's own id of a request, as names are compared. */
export const requestId: string = requestIdHeader.toLowerCase();

/** What differs from request to request, and decides nothing of the answer but its `X-Request-Id`. */
const variable: readonly string[] = [requestId, 'traceparent', 'tracestate'];

/** In these, a request is refused by its route, or its answer ends the connection. */
export const unrepeated: ReadonlySet<Readiness['state']> = new Set(['starting', 'leaving', 'draining']);

/** The head of a request that was answered on a connection. */
export type KnownHead = {
  rawHeaders: readonly string[];
  /** Where in `rawHeaders` the values are that may be others. */
  variableAt: readonly number[];
  /** Where the caller's own id of the request is; -1: it sends none. */
  requestIdAt: number;
};

/** The names, in lower case, of the headers that may be others; none of them carries a credential. */
export function variableNames(
  { apiKey, productSecret }: ServerSettings['headerAliases'],
  more: readonly string[] = [],
): ReadonlySet<string> {
  return new Set([...variable, ...more]).difference(new Set([...apiKey, ...productSecret]));
}

/** Makes known where another head may differ from this one. */
export function knownHead(rawHeaders: readonly string[], mayDiffer: ReadonlySet<string>): KnownHead {
  const names = rawHeaders.map((name, index) => (index % 2 === 0 ? name.toLowerCase() : ''));
  const variableAt = [...names.keys()].filter((index) => mayDiffer.has(names[index] ?? ''));
  const requestIdAt = names.indexOf(requestId);
  return {
    rawHeaders,
    variableAt: variableAt.map((index) => index + 1),
    requestIdAt: requestIdAt === -1 ? -1 : requestIdAt + 1,
  };
}

/** Whether a request has the known head, but for what may differ. */
export function hasHead({ rawHeaders: known, variableAt }: KnownHead, sent: readonly string[]): boolean {
  if (sent.length !== known.length) return false;
  for (let index = 0; index < sent.length; index += 1) {
    if (sent[index] !== known[index] && !variableAt.includes(index)) return false;
  }
  return true;
}

/** How often a header was sent; the name in lower case. */
export function timesSent(rawHeaders: readonly string[], name: string): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === name).length;
}

/** The headers of a reply as names and values in turn. */
export function writtenOut(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [name.toLowerCase(), String(value)]);
}
