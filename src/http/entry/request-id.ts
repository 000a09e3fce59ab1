import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { requestIdHeader } from '../../domain/header-names.ts';
import { containsLicenseKey } from '../../domain/license-key.ts';

/** What tracing software calls a request: UUIDs, ULIDs, hexadecimal, base64, `Root=1-…`; it goes into logs and headers. */
const wellFormed = /^[\w.:@/+=~-]{1,128}$/;

const headerName = requestIdHeader.toLowerCase();

/** The caller's own id of a request, or a new one where it sent none that is well-formed (src/http/README.md, The id of a request). */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers[headerName];
  return requestIdFrom(typeof sent === 'string' ? sent : undefined);
}

/** What the caller sent as the id of a request, or a new one. */
export function requestIdFrom(sent: string | undefined): string {
  const isKept = sent !== undefined && wellFormed.test(sent) && !containsLicenseKey(sent);
  return isKept ? sent : newRequestId();
}

/** For a request that has none of its own. */
export function newRequestId(): string {
  return randomUUID();
}
