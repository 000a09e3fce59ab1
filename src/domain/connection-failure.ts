import { toOneLine } from './text.ts';

/* Why a connection or its TLS failed, in words for people. */

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
  // Node's own texts for these codes name options of Node or places in the source of OpenSSL.
  DEPTH_ZERO_SELF_SIGNED_CERT: 'a self-signed certificate that is not trusted here',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server does not speak TLS',
  // `headersTimeout` is set for CONNECT alone, so this error always comes from the proxy.
  UND_ERR_HEADERS_TIMEOUT: 'the proxy did not answer in time',
  UND_ERR_SOCKET: 'connection closed before the response was complete',
  UND_ERR_HEADERS_OVERFLOW: 'the response headers are too large',
  // undici asserts that nothing is answered 101 without an upgrade.
  ERR_ASSERTION: 'the response is not valid HTTP',
  UND_ERR_DESTROYED: 'the client is closed',
};

/** What is wrong with the server's certificate: it has expired, is not trusted here, or is for another name. */
export type CertificateFault = 'expired' | 'untrusted' | 'foreign';

const certificateFaults: Readonly<Record<string, CertificateFault>> = {
  CERT_HAS_EXPIRED: 'expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'untrusted',
  ERR_TLS_CERT_ALTNAME_INVALID: 'foreign',
};

const certificateDetails: Readonly<Partial<Record<CertificateFault, string>>> = {
  expired: 'the certificate has expired',
  untrusted: 'the certificate is signed by an authority that is not trusted here',
};

/** What is wrong with the certificate; null if the failure has another reason. */
export function certificateFaultOf(error: Error): CertificateFault | null {
  return certificateFaults[codeOf(error)] ?? null;
}

/** The prefix of OpenSSL's error codes. */
const tlsPrefix = 'ERR_SSL_';

/** Says why there was no complete response. */
export function describeFailure(error: Error): string {
  const code = codeOf(error);
  const fault = certificateFaultOf(error);
  const known = failures[code] ?? (fault === null ? undefined : certificateDetails[fault]);
  if (known !== undefined) return known;
  if (code.startsWith(tlsPrefix)) {
    return `TLS failed: ${code.slice(tlsPrefix.length).toLowerCase().replaceAll('_', ' ')}`;
  }
  return toOneLine(error.message) || code || error.name;
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}
