import { describe, expect, test } from 'vitest';
import { describeFailure, messageOf } from '../../src/upstream/detail.ts';

describe("the upstream's own message", () => {
  test.each([
    [{ error: 'c', message: 'b', detail: 'a' }, 'a'],
    [{ error: 'c', message: 'b', detail: null }, 'b'],
    [{ error: 'c', message: 7 }, 'c'],
    [{ error: { message: 'nested' } }, null],
    [{ error: '' }, null],
    [{ error: '\u0000\n' }, null],
    [{}, null],
    [
      { detail: 'Not valid: a, b.', errors: [{ detail: 'a is odd.' }, { detail: 'b is even.' }] },
      'Not valid: a, b. a is odd. b is even.',
    ],
    [{ detail: 'a', errors: ['b', null, {}, { detail: 7 }, [{ detail: 'c' }]] }, 'a'],
    [{ detail: 'a', errors: 'b' }, 'a'],
    [{ detail: 'a', errors: [{ detail: 'a' }] }, 'a'],
  ])('of %j is %j', (body, expected) => expect(messageOf(body, [])).toBe(expected));

  test('stands on one line, without control characters, and is cut to 200 characters', () => {
    expect(messageOf({ error: 'a\r\nb\u001B[31m\u202Ec' }, [])).toBe('a b [31m c');
    expect(messageOf({ error: 'x'.repeat(500) }, [])).toHaveLength(200);
  });

  test('repeats no hidden text in any letter case, also where the cut would run through it', () => {
    expect(messageOf({ error: 'no key ab(1)* here' }, ['AB(1)*', ''])).toBe('no key *** here');
    expect(messageOf({ detail: 'a', errors: [{ detail: 'AB(1)* is odd' }] }, ['AB(1)*'])).toBe(
      'a *** is odd',
    );
    const quoted = 'a=Old%20key%2F%C3%A9 b=Old+key%2F%C3%A9 c=Old%20key/%C3%A9';
    expect(messageOf({ error: quoted }, ['Old key/é'])).toBe('a=*** b=*** c=***');
    expect(messageOf({ error: `${'x'.repeat(195)}SECRET-1` }, ['SECRET-1'])).not.toContain('SECRE');
  });
});

describe('a failure', () => {
  test('is named by its code, else by its message, else by its name', () => {
    expect(describeFailure(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))).toBe(
      'connection refused',
    );
    expect(describeFailure(new Error('self-signed certificate'))).toBe('self-signed certificate');
    expect(describeFailure(Object.assign(new Error(), { code: 'EODD' }))).toBe('EODD');
    expect(describeFailure(new RangeError())).toBe('RangeError');
  });

  test.each([
    ['UND_ERR_HEADERS_OVERFLOW', 'the headers of the answer are too large'],
    ['ERR_ASSERTION', 'the answer breaks HTTP'],
  ])('of the answer, %s, is told without what undici adds for its own people', (code, expected) => {
    const message = 'The expression evaluated to a falsy value:\n\n  assert(upgrade)\n';
    expect(describeFailure(Object.assign(new Error(message), { code }))).toBe(expected);
  });

  test.each([
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'what answers does not speak TLS'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'TLS failed: tlsv1 alert protocol version'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'a self-signed certificate that is not trusted here'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'a certificate of an authority that is not trusted here'],
  ])('of TLS, %s, is told without what Node and OpenSSL add for their own people', (code, expected) => {
    const message = '4013E41F:error:0A00010B:SSL routines:x:../deps/openssl/x.c:78: try --use-system-ca';
    expect(describeFailure(Object.assign(new Error(message), { code }))).toBe(expected);
  });
});
