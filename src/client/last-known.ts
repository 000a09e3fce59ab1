import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigurationError } from './error.ts';
import { plainText } from './license-key.ts';
import type { License, Verdict } from './types.ts';
import { member, readLicense, writeLicense } from './wire.ts';

/** Where verdicts are stored, and how long they are used. */
export interface LastKnownOptions {
  /** The file is created together with its directory. Only this user can read it (0600). */
  readonly file: string;
  /** How long a key stays valid after the store last confirmed it, in ms. Default: 14 days. */
  readonly graceMs?: number | undefined;
}

const dayMs = 24 * 60 * 60 * 1000;
/** Practically for ever; a `Date` can still hold the end. */
const maxGraceMs = 1_000_000 * dayMs;
/** A key that was valid is refused only after the agent has answered `not_found` for this long. */
const notFoundMs = dayMs;
/** A newer confirmation is written only if it is newer by this time. */
const minRewriteMs = 60 * 60 * 1000;
/** If there are more keys, the least recently answered keys are dropped. */
const maxKeys = 100;
const version = 1;
const verdicts: ReadonlySet<Entry['verdict']> = new Set<Entry['verdict']>(['valid', 'disabled', 'not_found']);

/** The last verdict of a key. The file contains a hash of the key, not the key itself. Times are on the clock of the file (`#now`). */
interface Entry {
  verdict: 'valid' | 'disabled' | 'not_found';
  license: License;
  /** When the store last confirmed the key as valid. */
  confirmedAt: number;
  /** When the agent first answered that the key is unknown, after it was valid. */
  notFoundSince: number | null;
  /** When the agent last answered about the key. If several processes write the file, the latest answer counts. */
  saidAt: number;
}

type Entries = ReadonlyMap<string, Entry>;

/**
 * Stores the last verdicts in a small file, so that a program keeps running for a grace period while the agent is down.
 * Only `refused` revokes a key. `disabled` revokes it at once. `not_found` revokes a valid key only if the agent gives
 * the same answer a day later, because a store that loses its catalogue for an hour gives this answer, too. A change of the
 * verdict is written at once, and the license and confirmation of the same verdict at most once an hour. A file that cannot
 * be read or written counts as empty, and causes no error.
 *
 * This does not protect against the user, who can write any verdict into the file.
 *
 * @example
 * const lastKnown = new LastKnown({ file: './last-known.json' });
 * const verdict = await lastKnown.resolve(licenseKey, await latchkey.verify(licenseKey));
 */
export class LastKnown {
  readonly #file: string;
  readonly #graceMs: number;
  readonly #scope: string;
  #entries: Entries = new Map();
  /** The content of the file when it was last read or written. */
  #stored: Entries = new Map();
  /**
   * The clock of the file, in ms. `#now` only moves forward, by as much as the system clock advances. Setting the
   * system clock back extends no grace.
   *
   * `#systemTime` is the system clock when `#now` was computed. `#isSetBack`: the system clock was set back since the
   * file was written, so the next verdict writes the file with the new system time.
   */
  #now = 0;
  #systemTime = 0;
  #isSetBack = false;
  #writing: Promise<void> = Promise.resolve();
  #isWriteQueued = false;

  /** `scope`: separates the same key of different products. */
  constructor({ file, graceMs = 14 * dayMs }: LastKnownOptions, scope = '') {
    checkOptions(file, graceMs);
    this.#file = file;
    this.#graceMs = Math.min(graceMs, maxGraceMs);
    this.#scope = scope;
  }

  /** Stores a verdict of the agent, and replaces it by the last known verdict if the agent has no certain answer. */
  async resolve(licenseKey: string, verdict: Verdict): Promise<Verdict> {
    // Another process may have written the file.
    await this.#read();
    const name = this.#nameOf(licenseKey, verdict);
    const before = this.#entries.get(name) ?? null;
    const after = update(before, verdict, this.#tick());
    if (after === null) return verdict;
    this.#entries = merge(this.#entries, new Map([[name, after]]));
    if (this.#isSetBack || isWorthWriting(this.#stored.get(name) ?? null, after)) await this.#write();
    return verdict.license === null ? this.#recall(licenseKey, after, verdict) : verdict;
  }

  /** Advances the clock of the file and gives its time. */
  #tick(): number {
    const systemTime = Date.now();
    this.#now += Math.max(0, systemTime - this.#systemTime);
    this.#systemTime = systemTime;
    return this.#now;
  }

  /** A key that was pasted with invisible or typographic characters has the entry of the plain key. */
  #nameOf(licenseKey: string, { license }: Verdict): string {
    const asPasted = hash(`${this.#scope}${licenseKey.trim()}`);
    const plainKey = plainText(licenseKey).trim();
    const plain = hash(`${this.#scope}${plainKey}`);
    if (this.#entries.has(asPasted)) return asPasted;
    return this.#entries.has(plain) || license?.licenseKey === plainKey ? plain : asPasted;
  }

  /** The last known verdict of a key, for which the agent gave the verdict `current`. */
  #recall(licenseKey: string, entry: Entry, current: Verdict): Verdict {
    const { verdict, confirmedAt } = entry;
    const license = { ...entry.license, licenseKey };
    const source = 'last_known';
    if (verdict === 'disabled') return { verdict: 'refused', reason: 'disabled', license, source };
    if (verdict === 'not_found') return { verdict: 'refused', reason: 'not_found', license: null, source };
    const unconfirmedUntil = confirmedAt + this.#graceMs;
    const end = endOf(license);
    if (this.#now < unconfirmedUntil && this.#now <= end) {
      const graceUntil = Math.min(unconfirmedUntil, end);
      const dates = { confirmedAt: this.#dateOf(confirmedAt), graceUntil: this.#dateOf(graceUntil) };
      return { verdict: 'valid', license, source, freshness: 'grace', pending: 0, ...dates };
    }
    if (current.verdict === 'undetermined') return current;
    return { verdict: 'undetermined', reason: 'expired', license: null, error: null };
  }

  /** The date of the system clock for a time of the file's clock. */
  #dateOf(time: number): Date {
    return new Date(time - this.#now + this.#systemTime);
  }

  async #read(): Promise<void> {
    try {
      const stored: unknown = JSON.parse(await readFile(this.#file, 'utf8'));
      const [now, systemTime] = ['now', 'systemTime'].map((name) => member(stored, name));
      if (member(stored, 'version') !== version) return;
      if (typeof now !== 'number' || typeof systemTime !== 'number') return;
      const entries = Object.entries(member(stored, 'keys') as object).map(
        ([name, entry]) => [name, readEntry(entry)] as const,
      );
      this.#stored = new Map(entries);
      const own = this.#tick();
      const passedMs = this.#systemTime - systemTime;
      this.#now = Math.max(own, now + Math.max(0, passedMs));
      this.#isSetBack = passedMs < 0;
      this.#entries = merge(this.#stored, this.#entries);
    } catch {
      // The file does not exist yet, or was damaged: it counts as empty.
    }
  }

  /** Writes one after the other. Each write contains everything that is known when it starts. */
  async #write(): Promise<void> {
    if (!this.#isWriteQueued) {
      this.#isWriteQueued = true;
      this.#writing = this.#writing.then(() => this.#replace()).catch(() => undefined);
    }
    await this.#writing;
  }

  /** Replaces the whole file, so that no process reads half of the file, and keeps what other processes wrote. */
  async #replace(): Promise<void> {
    this.#isWriteQueued = false;
    await this.#read();
    const entries = this.#entries;
    const keys = [...entries].map(
      ([name, entry]) => [name, { ...entry, license: writeLicense(entry.license) }] as const,
    );
    const content = {
      version,
      now: this.#now,
      systemTime: this.#systemTime,
      keys: Object.fromEntries(keys),
    };
    await replaceFile(this.#file, JSON.stringify(content));
    this.#stored = entries;
  }
}

/** Plain JavaScript may pass anything. Such a value would silently store nothing, or never expire. */
function checkOptions(file: unknown, graceMs: unknown): void {
  if (typeof file !== 'string' || file === '') {
    throw new ConfigurationError('lastKnown.file must be the path of a file.');
  }
  if (typeof graceMs !== 'number' || !(graceMs >= 0)) {
    throw new ConfigurationError('lastKnown.graceMs must be a number of ms, 0 or above.');
  }
}

/** Keeps the later entry of each key. If both have the same time, keeps the entry of `others`. */
function merge(some: Entries, others: Entries): Entries {
  const merged = new Map(some);
  for (const [name, entry] of others) {
    if (entry.saidAt >= (merged.get(name)?.saidAt ?? 0)) merged.set(name, entry);
  }
  const byTime = [...merged].sort(([, one], [, other]) => one.saidAt - other.saidAt);
  return new Map(byTime.slice(-maxKeys));
}

/** Throws if the entry is damaged; then the whole file counts as damaged. */
function readEntry(entry: unknown): Entry {
  const { verdict, confirmedAt, notFoundSince, saidAt } = entry as Entry;
  const license = readLicense(member(entry, 'license'));
  const isValid =
    license !== null &&
    verdicts.has(verdict) &&
    typeof confirmedAt === 'number' &&
    typeof saidAt === 'number' &&
    (notFoundSince === null || typeof notFoundSince === 'number');
  if (!isValid) throw new Error('the entry is damaged');
  return { verdict, license, confirmedAt, notFoundSince, saidAt };
}

/** The entry of a key after a verdict. Null: there is nothing to store, as the key was never valid. */
function update(before: Entry | null, verdict: Verdict, now: number): Entry | null {
  if (verdict.license !== null) {
    const license = { ...verdict.license, licenseKey: '' };
    const notFoundSince = null;
    if (verdict.verdict === 'refused') {
      const confirmedAt = before?.confirmedAt ?? 0;
      return { verdict: 'disabled', license, confirmedAt, notFoundSince, saidAt: now };
    }
    const ageMs = Math.max(0, Date.now() - (verdict.confirmedAt?.getTime() ?? Date.now()));
    return { verdict: 'valid', license, confirmedAt: now - ageMs, notFoundSince, saidAt: now };
  }
  if (before === null || verdict.verdict === 'undetermined') return before;
  const since = before.notFoundSince ?? now;
  const isRefused = now - since >= notFoundMs;
  return { ...before, verdict: isRefused ? 'not_found' : before.verdict, notFoundSince: since, saidAt: now };
}

/** The last instant at which a license is valid, in ms. */
function endOf({ expiresAt, graceUntil }: License): number {
  return (graceUntil ?? expiresAt)?.getTime() ?? Infinity;
}

function isWorthWriting(stored: Entry | null, after: Entry): boolean {
  if (stored === null || stored.verdict !== after.verdict) return true;
  if (stored.notFoundSince !== after.notFoundSince) return true;
  if (endOf(stored.license) !== endOf(after.license)) return true;
  return after.confirmedAt - stored.confirmedAt >= minRewriteMs;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function replaceFile(file: string, text: string): Promise<void> {
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
    await renameOver(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

const busyErrors: ReadonlySet<unknown> = new Set(['EPERM', 'EACCES', 'EBUSY']);
/** How long to wait before each further attempt, in ms: about a second in all. */
const pausesMs: readonly number[] = [5, 10, 20, 40, 75, 100, 150, 200, 200, 200];

/** Windows refuses to replace a file that a program has opened, even for a moment, as virus scanners do. */
async function renameOver(from: string, to: string): Promise<void> {
  for (const pauseMs of process.platform === 'win32' ? pausesMs : []) {
    try {
      await rename(from, to);
      return;
    } catch (error) {
      if (!busyErrors.has(member(error, 'code'))) throw error;
      await wait(pauseMs);
    }
  }
  await rename(from, to);
}
