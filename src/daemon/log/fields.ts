/**
 * The fields that a log line may have. What is not named here is not written, so that no secret and no
 * license key gets into the log by being passed along.
 */
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
  'socket',
  'sockets',
  'database',
  'at',
  'signal',
  'not_after',
  'file',
  'faults',
  'warnings',
  'changed',
  'restart',
  // of the way up
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

/** Fields that have another name inside. */
const writtenAs: Readonly<Record<string, string>> = { requestId: 'request_id', durationMs: 'duration_ms' };

type Fields = Readonly<Record<string, unknown>>;

/**
 * Keeps what a log line may say; of the rest the name alone, so that it is missed at once. `undefined` says nothing. Most
 * lines say only what they may, and are not copied.
 */
export function allowedFields(fields: Fields): Fields {
  const told = Object.keys(fields).filter((name) => fields[name] !== undefined);
  if (told.every((name) => allowed.has(name))) return fields;
  const kept: Record<string, unknown> = {};
  for (const given of told) {
    const value = fields[given];
    const name = writtenAs[given] ?? given;
    if (name === 'err') kept[name] = describeError(value);
    else kept[name] = allowed.has(name) ? value : '(withheld)';
  }
  return kept;
}

const deepestCause = 3;

/** What an error may tell: never its further properties, which hold what it is about. */
function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error };
  const { name, message, stack, cause } = error;
  // Such a message quotes the text that could not be read.
  const isQuoting = error instanceof SyntaxError;
  return {
    type: name,
    ...('code' in error && { code: String(error.code) }),
    ...(!isQuoting && { message }),
    stack: placesOf(stack ?? ''),
    ...(cause !== undefined && depth < deepestCause && { cause: describeError(cause, depth + 1) }),
  };
}

/** A stack without the message that it begins with. */
function placesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');
}
