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
  // Node's own texts for these, and for most certificates, name options of Node, or places in the source of OpenSSL.
  DEPTH_ZERO_SELF_SIGNED_CERT: 'a self-signed certificate that is not trusted here',
  ERR_SSL_WRONG_VERSION_NUMBER: 'what answers does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'what answers does not speak TLS',
  // No request has a time of its own for the head of its answer: only CONNECT does.
  UND_ERR_HEADERS_TIMEOUT: 'the proxy did not answer in time',
  UND_ERR_SOCKET: 'connection closed before the whole answer came',
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the answer are too large',
  // undici asserts that nobody was answered 101 who did not ask for it.
  ERR_ASSERTION: 'the answer breaks HTTP',
  UND_ERR_DESTROYED: 'the client is closed',
};

/** What is wrong with the certificate of who answered: it is past its time, not trusted here, or another server's. */
export type CertificateFault = 'ended' | 'untrusted' | 'foreign';

const certificateFaults: Readonly<Record<string, CertificateFault>> = {
  CERT_HAS_EXPIRED: 'ended',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'untrusted',
  ERR_TLS_CERT_ALTNAME_INVALID: 'foreign',
};

const certificateDetails: Readonly<Partial<Record<CertificateFault, string>>> = {
  ended: 'the certificate has ended',
  untrusted: 'a certificate of an authority that is not trusted here',
};

/** The fault of a certificate for which no whole answer came; null: it was another reason. */
export function certificateFaultOf(error: Error): CertificateFault | null {
  return certificateFaults[codeOf(error)] ?? null;
}

/** Begins the codes of what OpenSSL refuses. */
const tlsPrefix = 'ERR_SSL_';

/** Says why no whole answer came. */
export function describeFailure(error: Error): string {
  const code = codeOf(error);
  const fault = certificateFaultOf(error);
  const known = failures[code] ?? (fault === null ? undefined : certificateDetails[fault]);
  if (known !== undefined) return known;
  if (code.startsWith(tlsPrefix)) {
    return `TLS failed: ${code.slice(tlsPrefix.length).toLowerCase().replaceAll('_', ' ')}`;
  }
  return cleaned(error.message) || code || error.name;
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/**
 * Finds the upstream's own message in a problem's body, as `told`: the first string among `detail`, `message` and
 * `error`, then the `detail` of each of its `errors`; null when there is none.
 */
export function messageOf(body: Readonly<Record<string, unknown>>, hidden: readonly string[]): string | null {
  const text = [body['detail'], body['message'], body['error']].find((value) => typeof value === 'string');
  if (text === undefined) return null;
  return told([...new Set([text, ...faultsIn(body)])].join(' '), hidden) || null;
}

/** What others say, on one line, at most 200 characters, with `***` in place of every hidden text. */
export function told(text: string, hidden: readonly string[]): string {
  return cleaned(masked(text, hidden));
}

/** What a store that tells the faults of parameters apart, such as Latchkey, says of each. */
function faultsIn({ errors }: Readonly<Record<string, unknown>>): string[] {
  if (!Array.isArray(errors)) return [];
  return errors.flatMap((each: unknown) => {
    const isTold = typeof each === 'object' && each !== null && 'detail' in each;
    return isTold && typeof each.detail === 'string' ? [each.detail] : [];
  });
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
