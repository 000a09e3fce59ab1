import { createHmac } from 'node:crypto';
import { pino, type Logger } from 'pino';
import { LRUCache } from 'lru-cache';
import type { Log } from '../service/ports.ts';
import type { Traced } from '../domain/outbox/trace.ts';
import { credentialLabel } from '../service/access/credential.ts';
import type { Reader } from '../service/tables.ts';

type LogSettings = { level: string; format: 'json' | 'pretty' };

/** The last time that was formatted, in epoch ms: many lines have the same time. */
let written = { at: 0, member: '' };

/** The time of a line, as pino's `isoTime` writes it. */
function timeMember(): string {
  const at = Date.now();
  if (written.at !== at) written = { at, member: `,"time":"${new Date(at).toISOString()}"` };
  return written.member;
}

/** How many bytes are buffered while standard output accepts no writes. Further lines are lost. */
const maxBufferedBytes = 4 * 1024 * 1024;

/** Standard output. Errors, for instance of a full disk, must not end the process. */
function openOutput(): LineSink {
  const output = pino.destination({ dest: 1, sync: true, maxLength: maxBufferedBytes });
  output.on('error', () => undefined);
  return output;
}

/** Creates the log: JSON lines on standard output, or readable lines for a terminal. */
export async function makeLog({ level, format }: LogSettings): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: timeMember,
    formatters: { log: allowedFields, level: (name: string) => ({ level: name }) },
    // `allowedFields` describes errors: pino's serializer must not do so again.
    serializers: { err: (described: unknown) => described },
  };
  const output = openOutput();
  if (format === 'json') return pino(options, new BufferedLines(output));
  // In this thread: the transports of pino hang in bundles.
  const { prettyFactory } = await import('pino-pretty');
  const prettify = prettyFactory({ colorize: process.stdout.isTTY });
  return pino(options, { write: (line: string) => output.write(prettify(line)) });
}

/** The destination of lines. `write` returns after the line is written. */
type LineSink = { write(lines: string): unknown };

/** How long lines are buffered, in ms. A killed process loses the lines of this time. */
const bufferedMs = 5;

/** Buffers lines for a moment and writes them with one system call. The exit of the process writes them too. */
export class BufferedLines {
  readonly #sink: LineSink;
  #lines = '';

  constructor(sink: LineSink) {
    this.#sink = sink;
    process.on('exit', () => this.flushSync());
  }

  write(line: string): void {
    if (this.#lines === '') setTimeout(() => this.flushSync(), bufferedMs).unref();
    this.#lines += line;
  }

  /** Named as pino's `flush` calls it. */
  flush(): void {
    this.flushSync();
  }

  /** Named as pino calls it, before a process ends with a fatal line. */
  flushSync(): void {
    if (this.#lines === '') return;
    const lines = this.#lines;
    this.#lines = '';
    this.#sink.write(lines);
  }
}

/** The log of one part of the process. Every line names the part. */
export function logOf(log: Log, part: 'daemon' | 'http' | 'lease' | 'store' | 'sync' | 'webhook'): Log {
  return {
    debug: (fields, message) => log.debug({ ...fields, part }, message),
    info: (fields, message) => log.info({ ...fields, part }, message),
    warn: (fields, message) => log.warn({ ...fields, part }, message),
    error: (fields, message) => log.error({ ...fields, part }, message),
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
  const hashed = (fields: Record<string, unknown>): Record<string, unknown> => {
    const { licenseKey } = fields;
    if (typeof licenseKey !== 'string') return fields;
    // Undefined instead of omitted: V8 copies a whole object faster.
    return { ...fields, licenseKey: undefined, license: hashes.memo(licenseKey) };
  };
  return {
    debug: (fields, message) => log.debug(hashed(fields), message),
    info: (fields, message) => log.info(hashed(fields), message),
    warn: (fields, message) => log.warn(hashed(fields), message),
    error: (fields, message) => log.error(hashed(fields), message),
  };
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
  #fieldsOf(traced: Traced): Record<string, unknown> {
    const { point, id, kind, subject, productId, state, attempts, credential, requestId, lastError } = traced;
    const isStuck = point === 'held' || point === 'dead' || point === 'conflicted';
    return {
      operation: id,
      kind,
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

/** The fields of log lines. No other field is written, so that no secret or license key gets into the log by accident. */
const allowed: ReadonlySet<string> = new Set([
  // of requests
  'method',
  'route',
  'status',
  'code',
  'request_id',
  'duration_ms',
  // of the process
  'part',
  'role',
  'version',
  'tcp',
  'other_tcp',
  'socket',
  'sockets',
  'public',
  'database',
  'at',
  'signal',
  'act',
  'not_after',
  'file',
  'errors',
  'warnings',
  'changed',
  'restart',
  // of webhooks
  'webhook',
  'event',
  'type',
  // of leases
  'directory',
  'faults',
  'kid',
  'detail',
  'until',
  'last',
  'issuer',
  'leases',
  'wait_ms',
  // of changes delivered
  'delivered',
  'failures',
  'instance',
  // of events of stores
  'webhook',
  'result',
  'licenses',
  'unlogged',
  // of the upstream
  'proxy',
  'from',
  'operation',
  'operations',
  'kind',
  'attempt',
  'credential',
  'label',
  'outcome',
  'license',
  'product',
  'before',
  'coupon',
  'coupons',
  'state',
  'expected',
  'got',
  'error',
  'hint',
]);

/** Fields with another name in the code. */
const fieldNames: Readonly<Record<string, string>> = {
  requestId: 'request_id',
  durationMs: 'duration_ms',
  waitMs: 'wait_ms',
  otherTcp: 'other_tcp',
};

type Fields = Readonly<Record<string, unknown>>;

/** Replaces the values of other fields by `(withheld)`. Drops `undefined`. Copies only if a field is not allowed. */
export function allowedFields(fields: Fields): Fields {
  const names = Object.keys(fields).filter((name) => fields[name] !== undefined);
  if (names.every((name) => allowed.has(name))) return fields;
  const result: Record<string, unknown> = {};
  for (const key of names) {
    const value = fields[key];
    const name = fieldNames[key] ?? key;
    if (name === 'err') result[name] = describeError(value);
    else result[name] = allowed.has(name) ? value : '(withheld)';
  }
  return result;
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
