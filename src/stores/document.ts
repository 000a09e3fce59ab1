import type { License, LicenseExtra } from '../domain/license.ts';
import { limitExtra, type JsonObject } from '../upstream/wire.ts';

/** The limit for the members of each object of an answer, as JSON: they are stored with every license key. */
const maxBytes = 8_192;

/** What is stored of an answer: its members in their order, as far as there is room. These `objects` have room of their own. */
export function documentOf(body: JsonObject, objects: readonly string[]): LicenseExtra {
  const entries = Object.entries(body);
  const isRoomy = (name: string): boolean => objects.includes(name) && isObject(body[name]);
  const kept = limitExtra(Object.fromEntries(entries.filter(([name]) => !isRoomy(name))), maxBytes) ?? {};
  return Object.fromEntries(
    entries.flatMap(([name, value]) => {
      if (isRoomy(name)) return [[name, limitExtra(value as JsonObject, maxBytes) ?? {}]];
      return name in kept ? [[name, value]] : [];
    }),
  );
}

/** A license key of which only is known that it is good. */
export function unknownLicense(licenseKey: string): License {
  return { licenseKey, productKey: '', buyerEmail: '', uses: 0, enabled: true, createdAt: 0 };
}

/** A license key of which only a no is known. */
export function closedLicense(licenseKey: string, extra: LicenseExtra): License {
  return { ...unknownLicense(licenseKey), enabled: false, extra };
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
