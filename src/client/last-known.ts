import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ConfigurationError } from './error.ts';
import { member, readLicense, writeLicense, type License } from './license.ts';
import type { Verdict } from './verdict.ts';

/** Where verdicts are remembered, and for how long they are relied upon. */
export interface LastKnownOptions {
  /** Made with its directory, for this user alone (0600). */
  readonly file: string;
  /** How long after the store last confirmed a key it is taken for valid, in ms; default: 14 days. */
  readonly graceMs?: number | undefined;
}

const dayMs = 24 * 60 * 60 * 1000;
/** For ever, as far as a date can be told. */
const longestGraceMs = 1_000_000 * dayMs;
/** A key that was valid is refused as unknown when it is said again so long after. */
const notFoundMs = dayMs;
/** A confirmation is written again only when it is so much newer. */
const worthWritingMs = 60 * 60 * 1000;
/** The keys of one program; those of which nothing was said for longest are forgotten first. */
const maximumKeys = 100;
const version = 1;
const verdicts: ReadonlySet<Entry['verdict']> = new Set<Entry['verdict']>(['valid', 'disabled', 'not_found']);

/** What is remembered of a key; the license key itself is not, but for its hash. */
interface Entry {
  verdict: 'valid' | 'disabled' | 'not_found';
  license: License;
  /** When the store last confirmed the key as valid, in epoch ms. */
  confirmedAt: number;
  /** Since when the key, valid before, has been answered as unknown. */
  notFoundSince: number | null;
  /** When the agent last said something of it: the later word counts, whichever process heard it. */
  saidAt: number;
}

type Entries = ReadonlyMap<string, Entry>;

/**
 * Remembers the last verdicts in a small file, so that a program goes on for its own grace when the agent itself is
 * down. Only `refused` revokes: `disabled` at once, `not_found` of a key that was valid only when it is said again a
 * day later, since a store that lost its catalogue for an hour says so too. A file that cannot be read or written
 * counts as empty: it never stands in the way of a verdict.
 *
 * It is no protection against its reader: who can write the file can write a verdict.
 */
export class LastKnown {
  readonly #file: string;
  readonly #graceMs: number;
  readonly #scope: string;
  #entries: Entries = new Map();
  /** What the file had when it was last read or written. */
  #kept: Entries = new Map();
  #isRead = false;
  /** The latest time that was seen: a clock that is set back lengthens no grace. */
  #latest = 0;
  #writing: Promise<void> = Promise.resolve();
  #isWriteQueued = false;

  /** `scope`: what is remembered under one says nothing of the same key under another, such as another product. */
  constructor({ file, graceMs = 14 * dayMs }: LastKnownOptions, scope = '') {
    checkOptions(file, graceMs);
    this.#file = file;
    this.#graceMs = Math.min(graceMs, longestGraceMs);
    this.#scope = scope;
  }

  /** What is to be thought of a key after what the agent said of it. */
  async judge(licenseKey: string, said: Verdict): Promise<Verdict> {
    // Where the agent knows nothing, another process may have heard of the key since.
    if (!this.#isRead || said.license === null) await this.#read();
    const name = this.#nameOf(licenseKey, said);
    const before = this.#entries.get(name) ?? null;
    const now = Math.max(this.#latest, Date.now());
    this.#latest = now;
    const after = remember(before, said, now);
    if (after === null) return said;
    this.#entries = merge(this.#entries, new Map([[name, after]]));
    if (isWorthWriting(this.#kept.get(name) ?? null, after)) await this.#write();
    return said.license === null ? this.#recall(licenseKey, after, said, now) : said;
  }

  /** A key that was pasted with invisible or typographic characters is remembered as the key that it is. */
  #nameOf(licenseKey: string, said: Verdict): string {
    const asGiven = hash(`${this.#scope}${licenseKey.trim()}`);
    const plainKey = plainText(licenseKey).trim();
    const plain = hash(`${this.#scope}${plainKey}`);
    if (this.#entries.has(asGiven)) return asGiven;
    return this.#entries.has(plain) || said.license?.licenseKey === plainKey ? plain : asGiven;
  }

  /** What the file says where the agent says nothing, or nothing yet that counts. */
  #recall(licenseKey: string, entry: Entry, said: Verdict, now: number): Verdict {
    const { verdict, confirmedAt } = entry;
    const license = { ...entry.license, licenseKey };
    const source = 'last_known';
    if (verdict === 'disabled') return { verdict: 'refused', reason: 'disabled', license, source };
    if (verdict === 'not_found') return { verdict: 'refused', reason: 'not_found', license: null, source };
    const graceUntil = confirmedAt + this.#graceMs;
    if (now < graceUntil) {
      const worth = { freshness: 'grace', confirmedAt: new Date(confirmedAt), pending: 0 } as const;
      return { verdict: 'valid', license, source, ...worth, graceUntil: new Date(graceUntil) };
    }
    if (said.verdict === 'undetermined') return said;
    return { verdict: 'undetermined', reason: 'expired', license: null, error: null };
  }

  /** Learns what is in the file. */
  async #read(): Promise<void> {
    this.#isRead = true;
    try {
      const kept: unknown = JSON.parse(await readFile(this.#file, 'utf8'));
      const latest = member(kept, 'latest');
      if (member(kept, 'version') !== version || typeof latest !== 'number') return;
      const entries = Object.entries(member(kept, 'keys') as object).map(
        ([name, entry]) => [name, readEntry(entry)] as const,
      );
      this.#kept = new Map(entries);
      this.#latest = Math.max(this.#latest, latest);
      this.#entries = merge(this.#kept, this.#entries);
    } catch {
      // What cannot be read says nothing.
    }
  }

  /** One write after the other, each of all that is known when it begins. */
  async #write(): Promise<void> {
    if (!this.#isWriteQueued) {
      this.#isWriteQueued = true;
      this.#writing = this.#writing.then(() => this.#replace()).catch(() => undefined);
    }
    await this.#writing;
  }

  /** Replaces the file as a whole: half of one is never read, and what others wrote into it is kept. */
  async #replace(): Promise<void> {
    this.#isWriteQueued = false;
    await this.#read();
    const entries = this.#entries;
    const keys = [...entries].map(
      ([name, entry]) => [name, { ...entry, license: writeLicense(entry.license) }] as const,
    );
    const kept = { version, latest: this.#latest, keys: Object.fromEntries(keys) };
    await replace(this.#file, JSON.stringify(kept));
    this.#kept = entries;
  }
}

/** Plain JavaScript may give anything, with which nothing would ever be remembered, or relied upon. */
function checkOptions(file: unknown, graceMs: unknown): void {
  if (typeof file !== 'string' || file === '') {
    throw new ConfigurationError('lastKnown.file must be the path of a file.');
  }
  if (typeof graceMs !== 'number' || !(graceMs >= 0)) {
    throw new ConfigurationError('lastKnown.graceMs must be a number of ms, 0 or above.');
  }
}

/** The later word on each key; of two at the same time, the second one's. */
function merge(some: Entries, others: Entries): Entries {
  const merged = new Map(some);
  for (const [name, entry] of others) {
    if (entry.saidAt >= (merged.get(name)?.saidAt ?? 0)) merged.set(name, entry);
  }
  const bySaid = [...merged].sort(([, one], [, other]) => one.saidAt - other.saidAt);
  return new Map(bySaid.slice(-maximumKeys));
}

/** Throws when it is none: one that is spoilt spoils the file. */
function readEntry(entry: unknown): Entry {
  const { verdict, confirmedAt, notFoundSince, saidAt } = entry as Entry;
  const license = readLicense(member(entry, 'license'));
  const isRead =
    license !== null &&
    verdicts.has(verdict) &&
    typeof confirmedAt === 'number' &&
    typeof saidAt === 'number' &&
    (notFoundSince === null || typeof notFoundSince === 'number');
  if (!isRead) throw new Error('no verdict');
  return { verdict, license, confirmedAt, notFoundSince, saidAt };
}

/** What is remembered after a verdict; null: nothing, as it was never valid. */
function remember(before: Entry | null, said: Verdict, now: number): Entry | null {
  if (said.license !== null) {
    // The file is not to tell a license key.
    const license = { ...said.license, licenseKey: '' };
    const notFoundSince = null;
    if (said.verdict === 'refused') {
      const confirmedAt = before?.confirmedAt ?? 0;
      return { verdict: 'disabled', license, confirmedAt, notFoundSince, saidAt: now };
    }
    const confirmedAt = Math.min(said.confirmedAt?.getTime() ?? now, now);
    return { verdict: 'valid', license, confirmedAt, notFoundSince, saidAt: now };
  }
  if (before === null || said.verdict === 'undetermined') return before;
  const since = before.notFoundSince ?? now;
  const isRefused = now - since >= notFoundMs;
  return { ...before, verdict: isRefused ? 'not_found' : before.verdict, notFoundSince: since, saidAt: now };
}

function isWorthWriting(kept: Entry | null, after: Entry): boolean {
  if (kept === null || kept.verdict !== after.verdict) return true;
  if (kept.notFoundSince !== after.notFoundSince) return true;
  return after.confirmedAt - kept.confirmedAt >= worthWritingMs;
}

const ordinary = /^[\x20-\x7e]*$/;
const invisible = /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const dashes = /[\p{Pd}\p{Dash}]/gu;

/** As an agent reads a pasted key (src/domain/text.ts). */
function plainText(text: string): string {
  if (ordinary.test(text)) return text;
  return text.replace(invisible, '').normalize('NFKC').replace(invisible, '').replace(dashes, '-');
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function replace(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomUUID()}`;
  try {
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
