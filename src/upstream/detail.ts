const maximumMessageLength = 200;

const failures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  EAI_AGAIN: 'name resolution failed',
  ENOTFOUND: 'host name unknown',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ETIMEDOUT: 'connection timed out',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
  UND_ERR_SOCKET: 'connection closed before the whole answer came',
  UND_ERR_DESTROYED: 'the client is closed',
};

/** Says why no whole answer came. */
export function describeFailure(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return failures[code] ?? (cleaned(error.message) || code || error.name);
}

/**
 * Finds the upstream's own message in a problem's body: the first string among `detail`, `message` and
 * `error`, on one line, at most 200 characters, with `***` in place of every hidden text; null when there is none.
 */
export function messageOf(body: Readonly<Record<string, unknown>>, hidden: readonly string[]): string | null {
  const text = [body['detail'], body['message'], body['error']].find((value) => typeof value === 'string');
  if (text === undefined) return null;
  return cleaned(masked(text, hidden)) || null;
}

function masked(text: string, hidden: readonly string[]): string {
  const words = hidden.flatMap((word) => (word === '' ? [] : [word, ...writtenForms(word)]));
  const patterns = words.map((word) => RegExp.escape(word));
  return patterns.length === 0 ? text : text.replaceAll(new RegExp(patterns.join('|'), 'giu'), '***');
}

/** As a word stands in a query and in JSON: an upstream may quote the request itself. */
function writtenForms(word: string): string[] {
  return [
    new URLSearchParams([['', word]]).toString().slice(1),
    encodeURIComponent(word.toWellFormed()),
    encodeURI(word.toWellFormed()),
    JSON.stringify(word).slice(1, -1),
  ];
}

function cleaned(text: string): string {
  const line = text.replaceAll(/[\p{C}\s]+/gu, ' ').trim();
  return line.slice(0, maximumMessageLength).toWellFormed();
}
