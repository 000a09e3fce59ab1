import { createHmac, timingSafeEqual } from 'node:crypto';
import type { License } from '../../../domain/license.ts';
import { minuteMs } from '../../../domain/time.ts';

/** How long the forms of a page work. */
const validMs = 30 * minuteMs;

/** What a form is of. With another buyer, the forms of the buyer before end. */
type Opened = Pick<License, 'licenseKey' | 'buyerEmail'>;

/**
 * Proves that a form is from a page that its sender has opened with the license key (and the e-mail address). It takes the
 * place of a session: the page needs no cookie, and a page of another site cannot have the token. `secret`: of the store,
 * so that each node accepts it.
 */
export function formToken(secret: string, license: Opened, now: number): string {
  const endsAt = now + validMs;
  return `${endsAt}.${signatureOf(secret, license, endsAt)}`;
}

export function isFormToken(token: string, secret: string, license: Opened, now: number): boolean {
  const [, end = '', signature = ''] = /^(\d{1,16})\.([\w-]{43})$/.exec(token) ?? [];
  const expected = Buffer.from(signatureOf(secret, license, Number(end)));
  const isOurs = signature !== '' && timingSafeEqual(Buffer.from(signature), expected);
  return isOurs && now < Number(end);
}

function signatureOf(secret: string, { licenseKey, buyerEmail }: Opened, endsAt: number): string {
  return createHmac('sha256', secret)
    .update(JSON.stringify(['form of a buyer', licenseKey, buyerEmail.trim().toLowerCase(), endsAt]))
    .digest('base64url');
}
