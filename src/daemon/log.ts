import { createHmac } from 'node:crypto';
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino';
import { LRUCache } from 'lru-cache';
import type { Log } from '../service/ports.ts';
import type { Traced } from '../domain/outbox/trace.ts';
import { credentialLabel } from '../service/access/credential.ts';
import type { Reader } from '../service/tables.ts';

type Fields = Record<string, unknown>;
type LogSettings = { level: string; format: 'json' | 'pretty' };

/** How many bytes are buffered while standard output accepts no writes. Further lines are lost. */
const maxBufferedBytes = 4 * 1024 * 1024;
/** Lines are written together once they have so many bytes, and at the latest after `flushMs`. */
const bufferBytes = 8 * 1024;
/** A killed process loses the lines of this time. */
const flushMs = 20;

/** Fields whose values are withheld, whatever part of the program logs them. */
const secretFields = [
  'access_token',
  'api_key',
  'authorization',
  'body',
  'headers',
  'license_key',
  'password',
  'secret',
  'token',
];

/** Creates the log: JSON lines on standard output, or readable lines for a terminal. */
export async function makeLog({ level, format }: LogSettings): Promise<Logger> {
  const output = pino.destination({
    dest: 1,
    sync: true,
    minLength: format === 'json' ? bufferBytes : 0,
    maxLength: maxBufferedBytes,
    periodicFlush: flushMs,
  });
  // Errors, for instance of a full disk, must not end the process.
  output.on('error', () => undefined);
  process.on('exit', () => output.flush());
  if (format === 'json') return makeLogOn(output, level);
  // In this thread: the transports of pino hang in bundles.
  const { prettyFactory } = await import('pino-pretty');
  const prettify = prettyFactory({ colorize: process.stdout.isTTY });
  return makeLogOn({ write: (line: string) => output.write(prettify(line)) }, level);
}

/** Creates a log that writes JSON lines to a stream. */
export function makeLogOn(output: DestinationStream, level: string): Logger {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (name) => ({ level: name }), log: renamed },
    serializers: { err: (error: unknown) => describeError(error) },
    redact: { paths: secretFields, censor: '(withheld)' },
  };
  return pino(options, output);
}

/** Fields with another name in the log. */
const names: Readonly<Record<string, string>> = {
  durationMs: 'duration_ms',
  licenseKey: 'license_key',
  otherTcp: 'other_tcp',
  requestId: 'request_id',
  waitMs: 'wait_ms',
};

function renamed(fields: Fields): Fields {
  const result: Fields = {};
  for (const [name, value] of Object.entries(fields)) result[names[name] ?? name] = value;
  return result;
}

/** The log of one part of the process. Every line names the part. */
export function logOf(log: Log, part: 'daemon' | 'http' | 'lease' | 'store' | 'sync' | 'webhook'): Log {
  return withFields(log, (fields) => ({ ...fields, part }));
}

/** A log that changes the fields of its lines. Not a child of pino: programs that embed Latchkey bring their own log. */
function withFields(log: Log, change: (fields: Fields) => Fields): Log {
  return {
    debug: (fields, message) => log.debug(change(fields), message),
    info: (fields, message) => log.info(change(fields), message),
    warn: (fields, message) => log.warn(change(fields), message),
    error: (fields, message) => log.error(change(fields), message),
  };
}

const hashLength = 12;
/** Several lines in a row are about the same key. */
const maxHashes = 1_000;

/** A log that replaces `licenseKey` by `license`, a short hash with a secret of the store. */
export function hashLicenseKeys(log: Log, secret: string): Log {
  const hashes = new LRUCache<string, string>({
    max: maxHashes,
    memoMethod: (licenseKey) =>
      createHmac('sha256', secret).update(licenseKey).digest('hex').slice(0, hashLength),
  });
  return withFields(log, (fields) => {
    const { licenseKey } = fields;
    if (typeof licenseKey !== 'string') return fields;
    // Undefined instead of omitted: V8 copies a whole object faster.
    return { ...fields, licenseKey: undefined, license: hashes.memo(licenseKey) };
  });
}

const maxLabels = 1_000;

/** Logs the steps of operations, so that one id finds all lines of a use (src/sync/README.md, The log of an operation). */
export class OperationLog {
  /** Labels by credential. The label of a token never changes. Empty: the credential has none. */
  readonly #labels: LRUCache<string, string>;
  readonly #nameOf: (credential: string) => string;
  #log: Log | null = null;
  /** Steps of the start, before the secret for the hashes of license keys is known. */
  #early: readonly Traced[] = [];

  /** `nameOf`: the name of a credential for people. */
  constructor(reader: Pick<Reader, 'tokens'>, nameOf: (credential: string) => string = (name) => name) {
    this.#nameOf = nameOf;
    this.#labels = new LRUCache<string, string>({
      max: maxLabels,
      memoMethod: (credential) => credentialLabel(reader, credential) ?? '',
    });
  }

  /** Logs the earlier steps, and all later steps. */
  begin(log: Log): void {
    this.#log = log;
    this.add(this.#early);
    this.#early = [];
  }

  add(traced: readonly Traced[]): void {
    if (this.#log === null) this.#early = [...this.#early, ...traced];
    else for (const each of traced) this.#log.info(this.#fieldsOf(each), each.point);
  }

  /** Every object has the same shape, which is fast. */
  #fieldsOf(traced: Traced): Fields {
    const { point, id, kind, amount, subject, productId, state, attempts, credential, requestId, lastError } =
      traced;
    const isStuck = point === 'held' || point === 'dead' || point === 'conflicted';
    return {
      operation: id,
      kind,
      amount: amount > 1 ? amount : undefined,
      // Only operations on a license key have a product.
      licenseKey: productId === null ? undefined : subject,
      state,
      attempt: point === 'sent' ? attempts : undefined,
      error: isStuck ? lastError : undefined,
      credential: credential === null ? null : this.#nameOf(credential),
      label: this.#labelOf(credential),
      request_id: requestId,
    };
  }

  /** If the store cannot be read, a write must still be answered. */
  #labelOf(credential: string | null): string | undefined {
    if (credential === null) return undefined;
    try {
      return this.#labels.memo(credential) || undefined;
    } catch {
      return undefined;
    }
  }
}

const maxCauses = 3;

/** Describes an error without its further properties, which may have secrets. */
function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  const { name, message, stack, cause } = error;
  // The message of a SyntaxError quotes the text that cannot be parsed.
  const isQuoting = error instanceof SyntaxError;
  return {
    type: name,
    ...('code' in error && { code: String(error.code) }),
    ...(!isQuoting && { message }),
    stack: framesOf(stack ?? ''),
    ...(cause !== undefined && depth < maxCauses && { cause: describeError(cause, depth + 1) }),
  };
}

/** A stack without its message. */
function framesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');
}
