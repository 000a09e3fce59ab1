import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { containsGenerated, maskedKey, parseLicenseKey } from '../../../domain/license.ts';
import type { Random } from '../../../service/ports.ts';
import type { KeyMask } from '../../../http/entry/request-state.ts';
import type { RawParameters } from '../../../wire/parameters.ts';
import { keysOfResponse } from '../wire/console.ts';

const macBytes = 16;
/** Tells a cursor from a license key with the same text: no license key contains `\0`. */
const cursorPrefix = '\0';
/** Not the form of a cursor. */
const noCursor = '~';
/** A key that is a number must not change a time. */
const instant = /^\d{4}-\d\d-\d\dT[\d:.]{8,}(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Masks the license keys in the responses to read-only sessions: each key becomes `…LAST4~REFERENCE`. The reference is the
 * key, encrypted under a secret of this process and always in the same way, so that links and lists stay as they are.
 * Requests of such sessions may have a masked key, or its reference, instead of the key.
 */
export class LicenseKeyMask implements KeyMask {
  readonly #macKey: Uint8Array;
  readonly #cipherKey: Uint8Array;

  constructor(random: Pick<Random, 'bytes'>) {
    this.#macKey = random.bytes(32);
    this.#cipherKey = random.bytes(32);
  }

  mask(licenseKey: string): string {
    return `${maskedKey(licenseKey)}~${this.#encrypt(licenseKey)}`;
  }

  /** The key behind a masked key or a reference; any other text stays. */
  unmask(text: string): string {
    return this.#decrypt(text.slice(text.lastIndexOf('~') + 1)) ?? text;
  }

  unmaskPath<Path extends Readonly<Record<string, string>>>(path: Path): Path {
    return Object.fromEntries(
      Object.entries(path).map(([name, value]) => [name, this.unmask(value)]),
    ) as Path;
  }

  unmaskQuery(query: RawParameters): RawParameters {
    const unmasked = [...query].map(([name, value]) => {
      if (typeof value !== 'string') return [name, value] as const;
      return [name, name === 'cursor' ? this.#cursorOf(value) : this.unmask(value)] as const;
    });
    return new Map(unmasked);
  }

  /** Only cursors that this process has masked are known: others would show whether a key comes before a text. */
  #cursorOf(masked: string): string {
    const cursor = this.#decrypt(masked);
    return cursor?.startsWith(cursorPrefix) === true ? cursor.slice(cursorPrefix.length) : noCursor;
  }

  /** Masks the body and the link of a response. Throws for a body that is not JSON: the keys in it are unknown. */
  maskReply(reply: FastifyReply, payload: unknown): unknown {
    const link = reply.getHeader('Link');
    if (typeof link === 'string') reply.header('Link', this.#maskLink(link));
    if (payload === null || payload === undefined || payload === '') return payload;
    const isJson = /^application\/(?:problem\+)?json\b/.test(String(reply.getHeader('Content-Type')));
    if (!isJson || !(typeof payload === 'string' || Buffer.isBuffer(payload))) {
      throw new Error('a read-only session gets JSON only');
    }
    const { params, state } = reply.request;
    const sent = [...Object.values(params as object), ...(state?.query.values() ?? [])];
    return JSON.stringify(this.#maskJson(JSON.parse(payload.toString()), this.#keysIn(sent)));
  }

  /** The keys behind the masked keys of a request. */
  #keysIn(sent: readonly unknown[]): string[] {
    return sent.flatMap((value) => {
      if (typeof value !== 'string') return [];
      const key = this.unmask(value);
      return key === value ? [] : [key];
    });
  }

  #maskJson(body: unknown, sent: readonly string[]): unknown {
    const keys = new Set([...sent, ...keysOfResponse(body)]);
    const pattern = patternOf(keys);
    const maskText = (text: string): string => {
      if (keys.has(text)) return this.mask(text);
      if (instant.test(text)) return text;
      // A sentence needs no reference; any other text may become a link.
      const masked = /\s/.test(text) ? maskedKey : (key: string) => this.mask(key);
      return text.replaceAll(pattern, (found) => masked(keyOf(found, keys)));
    };
    const maskValue = (value: unknown): unknown => {
      if (typeof value === 'string') return maskText(value);
      if (Array.isArray(value)) return value.map(maskValue);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, maskValue(member)]));
    };
    return maskValue(body);
  }

  /** A cursor contains the key of the last row of a page. */
  #maskLink(link: string): string {
    return link.replace(/(?<=[?&]cursor=)[^&>]+/, (cursor) => this.#encrypt(`${cursorPrefix}${cursor}`));
  }

  /** The initialization vector is a digest of the text (RFC 5297): equal texts have equal references. */
  #encrypt(text: string): string {
    const mac = this.#macOf(text);
    const cipher = createCipheriv('aes-256-ctr', this.#cipherKey, mac);
    return Buffer.concat([mac, cipher.update(text, 'utf8'), cipher.final()]).toString('base64url');
  }

  #decrypt(reference: string): string | null {
    if (!/^[\w-]{23,}$/.test(reference)) return null;
    const bytes = Buffer.from(reference, 'base64url');
    const mac = bytes.subarray(0, macBytes);
    const cipher = createDecipheriv('aes-256-ctr', this.#cipherKey, mac);
    const text = Buffer.concat([cipher.update(bytes.subarray(macBytes)), cipher.final()]).toString();
    return timingSafeEqual(mac, this.#macOf(text)) ? text : null;
  }

  #macOf(text: string): Buffer {
    return createHmac('sha256', this.#macKey).update(text).digest().subarray(0, macBytes);
  }
}

/** Shorter keys count only as words of their own: a key `5` does not change a date. */
const minLengthWithin = 8;

/** Finds these keys in texts, as they are and percent-encoded, and all keys in the generated format. */
function patternOf(keys: ReadonlySet<string>): RegExp {
  const written = [...keys].flatMap((key) => [key, encodeURIComponent(key.toWellFormed())]);
  const sorted = [...new Set(written)].toSorted((one, other) => other.length - one.length);
  const parts = sorted.map((text) => {
    const escaped = RegExp.escape(text);
    return text.length < minLengthWithin ? `(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])` : escaped;
  });
  return new RegExp([...parts, containsGenerated.source].join('|'), 'gu');
}

/** The key that a text of the pattern stands for, as it is stored. */
function keyOf(found: string, keys: ReadonlySet<string>): string {
  if (keys.has(found)) return found;
  const key = decodeURIComponent(found);
  return parseLicenseKey(key) ?? key;
}
