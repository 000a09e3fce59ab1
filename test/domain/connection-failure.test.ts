import { describe, expect, test } from 'vitest';
import { describeFailure } from '../../src/domain/connection-failure.ts';

describe('a failure', () => {
  test('a failure is named by its code, else by its message, else by its name', () => {
    expect(describeFailure(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))).toBe(
      'connection refused',
    );
    expect(describeFailure(new Error('self-signed certificate'))).toBe('self-signed certificate');
    expect(describeFailure(Object.assign(new Error(), { code: 'EODD' }))).toBe('EODD');
    expect(describeFailure(new RangeError())).toBe('RangeError');
  });

  test.each([
    ['UND_ERR_HEADERS_OVERFLOW', 'the response headers are too large'],
    ['ERR_ASSERTION', 'the response is not valid HTTP'],
  ])('a failure of the response, %s, is reported without the internal words of undici', (code, expected) => {
    const message = 'The expression evaluated to a falsy value:\n\n  assert(upgrade)\n';
    expect(describeFailure(Object.assign(new Error(message), { code }))).toBe(expected);
  });

  test.each([
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'the server does not speak TLS'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'TLS failed: tlsv1 alert protocol version'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'a self-signed certificate that is not trusted here'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'the certificate is signed by an authority that is not trusted here'],
  ])('a failure of TLS, %s, is reported without the internal words of Node and OpenSSL', (code, expected) => {
    const message = '4013E41F:error:0A00010B:SSL routines:x:../deps/openssl/x.c:78: try --use-system-ca';
    expect(describeFailure(Object.assign(new Error(message), { code }))).toBe(expected);
  });
});
