import { createHmac, createSign, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import type { PublicJwk, RequestClaims } from '../../../../src/features/leases/wire/lease.ts';

/** A key of a device that signs anything. */
export type RawKey = { jwk: PublicJwk; privateKey: KeyObject };

export function rawKey(): RawKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { kty, crv, x, y } = publicKey.export({ format: 'jwk' });
  return { privateKey, jwk: { kty, crv, x, y } as PublicJwk };
}

const encode = (part: object | string): string =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url');

/** A JWS with any header and payload; a text is used as it is. */
export function jws(header: object | string, payload: object | string, { privateKey }: RawKey): string {
  const signed = `${encode(header)}.${encode(payload)}`;
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}

/** Requests that an issuer must refuse, by what is wrong with them. `claims` would be the next valid request. */
export function hostileRequests(claims: RequestClaims, key: RawKey): Readonly<Record<string, string>> {
  const header = { alg: 'ES256', typ: 'latchkey-request+jwt', jwk: key.jwk };
  const other = rawKey();
  const text = JSON.stringify(claims);
  const good = jws(header, claims, key);
  const [first = '', second = '', third = ''] = good.split('.');
  const unsigned = `${encode({ ...header, alg: 'none' })}.${encode(claims)}`;
  const hmac = `${encode({ ...header, alg: 'HS256' })}.${encode(claims)}`;
  const secret = JSON.stringify(key.jwk);
  const der = createSign('sha256').update(`${first}.${second}`).sign(key.privateKey).toString('base64url');
  return {
    'another typ': jws({ ...header, typ: 'latchkey-lease+jwt' }, claims, key),
    'a typ in other letters': jws({ ...header, typ: 'LATCHKEY-REQUEST+JWT' }, claims, key),
    'no typ': jws({ alg: 'ES256', jwk: key.jwk }, claims, key),
    'the algorithm none without a signature': `${unsigned}.`,
    'the algorithm none with a signature': `${unsigned}.${third}`,
    'HS256 with the public key as the secret': `${hmac}.${createHmac('sha256', secret).update(hmac).digest('base64url')}`,
    'the algorithm ES384': jws({ ...header, alg: 'ES384' }, claims, key),
    'the key of another device': jws({ ...header, jwk: other.jwk }, claims, key),
    'the signature of another device': jws(header, claims, other),
    'no key': jws({ alg: 'ES256', typ: header.typ }, claims, key),
    'a kid instead of a key': jws({ alg: 'ES256', typ: header.typ, kid: 'k' }, claims, key),
    'a private key in the header': jws({ ...header, jwk: { ...key.jwk, d: key.jwk.x } }, claims, key),
    'a key that is no point': jws({ ...header, jwk: { ...key.jwk, y: key.jwk.x } }, claims, key),
    'a key of another curve': jws({ ...header, jwk: { ...key.jwk, crv: 'P-384' } }, claims, key),
    'crit in the header': jws({ ...header, crit: ['exp'] }, claims, key),
    'b64 in the header': jws({ ...header, b64: false }, claims, key),
    'jku in the header': jws({ ...header, jku: 'http://127.0.0.1/keys' }, claims, key),
    'x5c in the header': jws({ ...header, x5c: [] }, claims, key),
    'another audience': jws(header, { ...claims, aud: 'https://other.example.com' }, key),
    'a list of audiences': jws(header, { ...claims, aud: [claims.aud] }, key),
    'a member that appears twice': jws(header, text.replace('{', '{"seq":1,'), key),
    'white space in the payload': jws(header, text.replace('{', '{ '), key),
    'a further claim': jws(header, { ...claims, exp: 1 }, key),
    'a missing claim': jws(header, { ...claims, uses: undefined }, key),
    'another act': jws(header, { ...claims, act: 'steal' }, key),
    'a negative number': jws(header, { ...claims, seq: -1 }, key),
    'a fractional number': jws(header, { ...claims, seq: 1.5 }, key),
    'a number beyond 2^53': jws(header, text.replace(/"seq":\d+/, '"seq":9007199254740993'), key),
    'a list as the payload': jws(header, '[]', key),
    'no JSON as the payload': jws(header, 'payload', key),
    'a prototype in the payload': jws(header, text.replace('{', '{"__proto__":{},'), key),
    'a control character in the name': jws(header, { ...claims, device_name: 'a\u0000b' }, key),
    'half a character in the name': jws(
      header,
      text.replace(/"device_name":"[^"]*"/, '"device_name":"\\ud800"'),
      key,
    ),
    'a signature of another length': `${first}.${second}.${der}`,
    'a changed signature': `${first}.${second}.${third.replace(/^./, third.startsWith('A') ? 'B' : 'A')}`,
    'a changed payload': `${first}.${encode({ ...claims, device_name: 'other' })}.${third}`,
    padding: `${first}.${second}.${third}==`,
    'two parts': `${first}.${second}`,
    'four parts': `${good}.${third}`,
    'white space around it': ` ${good} `,
    nothing: '',
  };
}
