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
  'socket',
  'sockets',
  'database',
  'at',
  'signal',
  'not_after',
  'file',
  'errors',
  'warnings',
  'changed',
  'restart',
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
const fieldNames: Readonly<Record<string, string>> = { requestId: 'request_id', durationMs: 'duration_ms' };

type Fields = Readonly<Record<string, unknown>>;

/**
 * Keeps the allowed fields, and only the names of other fields. Drops `undefined`. Most lines have only allowed fields
 * and are not copied.
 */
export function allowedFields(fields: Fields): Fields {
  const names = Object.keys(fields).filter((name) => fields[name] !== undefined);
  if (names.every((name) => allowed.has(name))) return fields;
  const kept: Record<string, unknown> = {};
  for (const key of names) {
    const value = fields[key];
    const name = fieldNames[key] ?? key;
    if (name === 'err') kept[name] = describeError(value);
    else kept[name] = allowed.has(name) ? value : '(withheld)';
  }
  return kept;
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
